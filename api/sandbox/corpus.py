"""The sample corpus: made-up posts, and native ids computed from their text.

The servers read `load()`. Labels lie in other files, which only `labels()` opens: for tests and
evaluation.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, Literal

SourceName = Literal["reddit", "youtube", "amazon"]

_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"
_UPPER = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WEB = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_PREFIX: Mapping[str, str] = {"reddit": "t3_", "youtube": "", "amazon": ""}


def spelled(alphabet: str, length: int, *parts: object) -> str:
    """A stable identifier made from a hash of the parts."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8", "replace")).digest()
    number = int.from_bytes(digest, "big")
    letters = []
    for _ in range(length):
        number, rest = divmod(number, len(alphabet))
        letters.append(alphabet[rest])
    return "".join(letters)


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment, or a review on Amazon."""

    id: str
    body: str
    age_days: float
    votes: int = 0
    """Votes, likes or helpful votes."""
    deleted: bool = False
    title: str = ""
    stars: int | None = None
    verified: bool = False
    country: str = "the United States"


@dataclass(frozen=True, slots=True)
class Post:
    """A submission, a video or a product; fields a source does not have keep their default."""

    id: str
    """The native id: base 36 on Reddit, eleven characters on YouTube, an ASIN on Amazon."""
    source: SourceName
    title: str
    body: str = ""
    place: str = ""
    age_days: float | None = None
    votes: int = 0
    link: str | None = None
    deleted: bool = False
    crosspost_parent: str | None = None
    """Native id of the post this one is a crosspost of."""
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
        """The item key the product uses."""
        return f"{self.source}:{_PREFIX[self.source]}{self.id}"

    @property
    def popularity(self) -> int:
        """Votes, views or ratings."""
        return {"reddit": self.votes, "youtube": self.views}.get(self.source, self.ratings or 0)

    @property
    def text(self) -> str:
        """What search sees."""
        return f"{self.title}\n{self.body}"


def native_id(source: str, *parts: object) -> str:
    """An id of the source's own shape."""
    if source == "reddit":
        return "1" + spelled(_BASE36, 6, source, *parts)
    if source == "youtube":
        return spelled(_WEB, 11, source, *parts)
    return "B0" + spelled(_UPPER, 8, source, *parts)


def remark_id(source: str, *parts: object) -> str:
    """A comment or review id of the source's own shape."""
    if source == "reddit":
        return "n" + spelled(_BASE36, 6, source, "remark", *parts)
    if source == "youtube":
        return "Ug" + spelled(_WEB, 18, source, "remark", *parts) + "4AaABAg"
    return "R" + spelled(_UPPER, 13, source, "remark", *parts)


def posts(rows: Iterable[Mapping[str, Any]]) -> tuple[Post, ...]:
    """Rows of one corpus file as posts; `n` and `crosspost_of` only link rows to each other."""
    numbered = [(row.get("n"), row.get("crosspost_of"), _post(row)) for row in rows]
    seen: Counter[str] = Counter()
    made: list[tuple[object, object, Post]] = []
    for number, parent, post in numbered:
        copy = seen[post.id]
        seen[post.id] += 1
        if copy:
            post = replace(post, id=native_id(post.source, post.id, copy))
        made.append((number, parent, post))
    ids = {(post.source, number): post.id for number, _, post in made if number is not None}
    return tuple(
        replace(post, crosspost_parent=ids.get((post.source, parent)))
        if parent is not None
        else post
        for _, parent, post in made
    )


def _post(row: Mapping[str, Any]) -> Post:
    source: SourceName = row["source"]
    title, body, place = str(row["title"]), str(row.get("body") or ""), str(row.get("place") or "")
    id_ = native_id(source, place, title, body)
    age = row.get("age_days")
    return Post(
        id=id_,
        source=source,
        title=title,
        body=body,
        place=place,
        age_days=None if age is None else float(age),
        votes=int(row.get("votes") or 0),
        link=row.get("link"),
        deleted=bool(row.get("deleted")),
        views=int(row.get("views") or 0),
        likes=row.get("likes"),
        comments_disabled=bool(row.get("comments_disabled")),
        price=row.get("price"),
        stars=row.get("stars"),
        ratings=row.get("ratings"),
        sponsored=bool(row.get("sponsored")),
        comments=tuple(
            _remark(source, id_, place, remark)
            for place, remark in enumerate(row.get("comments") or ())
        ),
    )


def _remark(source: str, post: str, place: int, row: Mapping[str, Any]) -> Remark:
    body = str(row.get("body") or "")
    return Remark(
        id=remark_id(source, post, place, body),
        body=body,
        age_days=float(row.get("age_days") or 0),
        votes=int(row.get("votes") or row.get("helpful") or 0),
        deleted=bool(row.get("deleted")),
        title=str(row.get("title") or ""),
        stars=row.get("stars"),
        verified=bool(row.get("verified")),
        country=str(row.get("country") or "the United States"),
    )


def _data() -> Traversable:
    return resources.files("api.sandbox") / "data"


def _rows(file: Traversable) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]


def _files(folder: str) -> Iterator[Traversable]:
    at = _data() / folder
    if at.is_dir():
        yield from sorted(
            (file for file in at.iterdir() if file.name.endswith(".jsonl")), key=lambda f: f.name
        )


def slugs() -> tuple[str, ...]:
    """Names of the products in the shipped corpus."""
    return tuple(file.name.removesuffix(".jsonl") for file in _files("posts"))


def load(slug: str | None = None) -> tuple[Post, ...]:
    """The shipped posts, of all products or of one."""
    return tuple(
        post
        for file in _files("posts")
        if slug in (None, file.name.removesuffix(".jsonl"))
        for post in posts(_rows(file))
    )


def labels(slug: str | None = None) -> dict[str, dict[str, Any]]:
    """Item key -> its label (`n`, `relevant`, `kind`, `reason`). For tests and evaluation only."""
    found: dict[str, dict[str, Any]] = {}
    for file in _files("labels"):
        if slug not in (None, file.name.removesuffix(".jsonl")):
            continue
        rows = _rows(_data() / "posts" / file.name)
        keys = {row["n"]: post.key for row, post in zip(rows, posts(rows), strict=True)}
        found |= {keys[label["n"]]: label for label in _rows(file)}
    return found
