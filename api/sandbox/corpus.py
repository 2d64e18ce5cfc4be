"""The sample corpus: invented posts by invented people, with native ids computed from their text.

The servers read `load()`; the labels, for tests and evaluation, are in other files.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Literal

SourceName = Literal[
    "reddit",
    "youtube",
    "amazon",
    "hackernews",
    "stackexchange",
    "github",
    "lemmy",
    "discourse",
    "feeds",
    "bluesky",
    "steam",
    "news",
]
# fields that make a post popular, where it is not its votes
_MEASURES = {"youtube": "views", "amazon": "ratings"}
LEMMY = "https://lemmy.example"  # server of the sample's Lemmy posts, whichever server is asked

DIGITS = "0123456789"
HEX = "0123456789abcdef"
BASE32 = "234567abcdefghijklmnopqrstuvwxyz"
BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
WEB = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
"""Characters of base 64 in URLs."""
_UPPER = BASE36.upper()
_FIRST = (
    "amber brisk cedar dapper eager fuzzy gentle hazel idle jolly kind lucid mellow noble olive "
    "plain quiet rusty sunny tidy umber vivid witty young"
).split()
_SECOND = (
    "acorn badger candle dune ember ferry gravel harbor island juniper kettle lantern meadow "
    "nickel otter pebble quill river spoon teapot upland velvet walnut zephyr"
).split()


def spelled(alphabet: str, length: int, *parts: object) -> str:
    """An identifier computed from a hash of the parts."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8", "replace")).digest()
    number = int.from_bytes(digest, "big")
    letters = []
    for _ in range(length):
        number, rest = divmod(number, len(alphabet))
        letters.append(alphabet[rest])
    return "".join(letters)


def handle(*parts: object) -> str:
    """An invented user name, the same for the same parts: `brisk_otter_417`."""
    first = _FIRST[int(spelled(DIGITS, 6, "first", *parts)) % len(_FIRST)]
    second = _SECOND[int(spelled(DIGITS, 6, "second", *parts)) % len(_SECOND)]
    return f"{first}_{second}_{spelled(DIGITS, 3, *parts)}"


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment, or a review on Amazon."""

    id: str
    body: str
    age_days: float = 0
    votes: int = 0  # votes, likes or helpful votes
    deleted: bool = False
    title: str = ""
    stars: int | None = None
    verified: bool = False
    country: str = "the United States"


@dataclass(frozen=True, slots=True)
class Post:
    """A submission, video or product; fields that its source does not have keep their default."""

    id: str  # the native id: base 36 on Reddit, eleven characters on YouTube, an ASIN on Amazon
    source: SourceName
    title: str
    body: str = ""
    place: str = ""
    age_days: float | None = None
    votes: int = 0
    link: str | None = None
    deleted: bool = False
    bot: bool = False  # whether a program wrote it
    crosspost_parent: str | None = None  # native id of the post of which this is a crosspost
    views: int = 0
    likes: int | None = None
    comments_disabled: bool = False
    price: str | None = None
    stars: float | None = None
    ratings: int | None = None
    sponsored: bool = False
    comments: tuple[Remark, ...] = ()

    @property
    def key(self) -> str:
        """The item key in the product."""
        native = {
            "reddit": f"t3_{self.id}",
            "stackexchange": f"{self.place}:{self.id}",
            "github": f"{self.place}#{self.id}",
            "lemmy": f"{LEMMY}/post/{self.id}",
            "discourse": f"127.0.0.1:{self.id}",
            "bluesky": bluesky_uri(self.id),
            "steam": f"{game_id(self.place)}:{self.id}",
            "news": hashlib.sha256(f"{self.place}/{self.id}".encode()).hexdigest()[:16],
        }
        return f"{self.source}:{native.get(self.source, self.id)}"

    @property
    def popularity(self) -> int:
        """Votes, views or ratings of a post, by which sites rank it."""
        return int(getattr(self, _MEASURES.get(self.source, "votes")) or 0)

    @property
    def text(self) -> str:
        """The text that searches look at."""
        return f"{self.title}\n{self.body}"


def game_id(name: str) -> int:
    """The number of a game in Steam's shop."""
    return 1_000_000 + int(spelled(DIGITS, 6, "game", name))


def native_id(source: str, *parts: object) -> str:
    """A post id in the source's own form."""
    if source == "reddit":
        return "1" + spelled(BASE36, 6, source, *parts)
    if source == "youtube":
        return spelled(WEB, 11, source, *parts)
    if source == "amazon":
        return "B0" + spelled(_UPPER, 8, source, *parts)
    if source == "bluesky":
        return "3m" + spelled(BASE32, 11, source, *parts)
    return "4" + spelled(DIGITS, 6, source, *parts)


def bluesky_uri(id_: str) -> str:
    """The address of a post on Bluesky, by an account of its own."""
    return f"at://did:plc:{spelled(BASE32, 24, 'did', id_)}/app.bsky.feed.post/{id_}"


def remark_id(source: str, *parts: object) -> str:
    """A comment or review id in the source's own form."""
    if source == "reddit":
        return "n" + spelled(BASE36, 6, source, "remark", *parts)
    if source == "youtube":
        return "Ug" + spelled(WEB, 18, source, "remark", *parts) + "4AaABAg"
    if source == "amazon":
        return "R" + spelled(_UPPER, 13, source, "remark", *parts)
    if source == "bluesky":
        return "3m" + spelled(BASE32, 11, source, "remark", *parts)
    return "5" + spelled(DIGITS, 7, source, "remark", *parts)


def posts(rows: Iterable[Mapping[str, Any]]) -> tuple[Post, ...]:
    """Rows of a corpus file as posts.

    A row has the fields of `Post`, those of `Remark` in its `comments` (with `helpful` for `votes`
    on Amazon), and `n` and `crosspost_of`, which link rows to each other.
    """
    copies: Counter[str] = Counter()
    made: list[tuple[Mapping[str, Any], Post]] = []
    for row in rows:
        given = _given(row, Post)
        source = given["source"]
        id_ = native_id(source, given.get("place", ""), given["title"], given.get("body", ""))
        remarks = []
        for at, comment in enumerate(row.get("comments") or ()):
            facts = _given({"body": "", "votes": comment.get("helpful"), **comment}, Remark)
            remarks.append(Remark(id=remark_id(source, id_, at, facts["body"]), **facts))
        copies[id_] += 1
        own = id_ if copies[id_] == 1 else native_id(source, id_, copies[id_] - 1)
        made.append((row, Post(id=own, **given | {"comments": tuple(remarks)})))
    ids = {(post.source, row["n"]): post.id for row, post in made if row.get("n") is not None}
    return tuple(replace(post, crosspost_parent=ids.get((post.source, row.get("crosspost_of")))) for row, post in made)


def _given(row: Mapping[str, Any], kind: type[Post | Remark]) -> dict[str, Any]:
    """The fields of `kind` for which the row has a value."""
    names = {field.name for field in fields(kind)}
    return {name: row[name] for name in row if name in names and row[name] is not None}


def _rows(file: Traversable) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def _files(folder: str) -> Iterator[tuple[str, Traversable]]:
    at = resources.files("api.sandbox") / "data" / folder
    if at.is_dir():
        files = {file.name: file for file in at.iterdir() if file.name.endswith(".jsonl")}
        yield from ((name.removesuffix(".jsonl"), files[name]) for name in sorted(files))


def load(slug: str | None = None) -> tuple[Post, ...]:
    """The shipped posts of the sources with a key, of all products or of one."""
    return _load("posts", slug)


def keyless(slug: str | None = None) -> tuple[Post, ...]:
    """The shipped posts of the sources without a key; no judge is measured on them."""
    return _load("keyless", slug)


def feeds() -> tuple[Post, ...]:
    """The shipped entries of feeds; `place` is the name of the feed."""
    return _load("feeds", None)


def streamed(slug: str | None = None) -> tuple[Post, ...]:
    """The shipped posts of Bluesky, a few for each product; no judge is measured on them."""
    return _load("bluesky", slug)


def further() -> tuple[Post, ...]:
    """The shipped posts of the sources that are off unless they are switched on; they have no labels."""
    return _load("further", None)


@cache
def _load(folder: str, slug: str | None) -> tuple[Post, ...]:
    files = [file for name, file in _files(folder) if slug in (None, name)]
    return tuple(post for file in files for post in posts(_rows(file)))


def labels(slug: str | None = None) -> dict[str, dict[str, Any]]:
    """Item key -> label (`n`, `relevant`, `kind`, `reason`); for tests and evaluation only."""
    texts = dict(_files("posts"))
    labelled: dict[str, dict[str, Any]] = {}
    for name, file in _files("labels"):
        if slug in (None, name):
            rows = _rows(texts[name])
            keys = {row["n"]: post.key for row, post in zip(rows, posts(rows), strict=True)}
            labelled |= {keys[label["n"]]: label for label in _rows(file)}
    return labelled
