"""The sets of the public benchmark: labels, ids and origins as shipped, joined with texts that were fetched."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import regex

from api.choices import Aim, BenchPart
from api.core.text import cut, fold, unescape
from api.errors import ConfigurationError, UsageError
from api.evaluation.labelled_items import LabelledQuery, labelled_item

SHIPPED: Traversable = files("api.evaluation") / "bench_data"
TEXT_LENGTH = 3_000
"""Characters of a body that are kept, and that the labels were given for."""
_SHINGLE, _SKETCH = 3, 6
# a word, or one character of a script without blanks; addresses and handles differ between copies of a text
_BOUNDLESS = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}]"
_WORD = regex.compile(rf"{_BOUNDLESS}|(?:(?!{_BOUNDLESS})[\p{{L}}\p{{N}}])+")
_VOLATILE = regex.compile(r"https?://\S+|[@/]u?/?[\w.-]+")


@dataclass(frozen=True, slots=True)
class PublicFile:
    """A public file at a recorded commit, and the fields of its rows that make a text."""

    repository: str
    commit: str
    path: str
    licence: str
    title: tuple[str, ...]
    body: tuple[str, ...]
    titles_of: Mapping[str, str] | None = None
    """Where titles stand in another file: its `path`, its fields `key` and `title`, and the field `by` with the key."""
    tweets: bool = False

    @property
    def address(self) -> str:
        """Path of the file on a server with GitHub's layout."""
        return self.address_of(self.path)

    def address_of(self, path: str) -> str:
        """Path of another file of the same repository and commit."""
        return f"/{self.repository}/{self.commit}/{quote(path)}"

    @property
    def stored_as(self) -> str:
        """Name of the file with the texts that were taken from it."""
        return hashlib.sha256(self.address.encode()).hexdigest()[:16] + ".json"


@dataclass(frozen=True, slots=True)
class BenchItem:
    """One labelled item without its text."""

    id: str
    origin: int
    position: str
    sketch: tuple[str, ...]
    place: str
    relevant: bool


@dataclass(frozen=True, slots=True)
class BenchQuery:
    """A query with its items."""

    number: int
    set: str
    query: str
    about: str
    aim: Aim
    source: str
    part: BenchPart
    items: tuple[BenchItem, ...]


@dataclass(frozen=True, slots=True)
class BenchSets:
    """All that is shipped."""

    sets: Mapping[str, Mapping[str, str]]
    """By name: `task`, `table` of results, `what` it holds, who gave the `labels`, the `salt` of its test labels."""
    origins: Sequence[PublicFile]
    queries: Sequence[BenchQuery]

    def chosen(self, names: Collection[str], part: BenchPart = "all") -> list[BenchQuery]:
        """The queries of these sets (none named: of all) and of this part; raises `UsageError`."""
        if unknown := next((name for name in names if name not in self.sets), None):
            raise UsageError(f"there is no set `{unknown}`; there are {', '.join(f'`{name}`' for name in self.sets)}")
        return [query for query in self.queries if (not names or query.set in names) and part in {query.part, "all"}]


def read_sets(folder: Traversable = SHIPPED) -> BenchSets:
    """What is shipped; raises `ConfigurationError` where a label of the test part is neither yes nor no."""
    head = json.loads((folder / "sets.json").read_text("utf-8"))
    queries = []
    for number, line in enumerate((folder / "queries.jsonl").read_text("utf-8").splitlines()):
        row: dict[str, Any] = json.loads(line)
        salt = head["sets"][row["set"]]["salt"]
        items = tuple(
            BenchItem(key, origin, position, tuple(sketch.split()), place, revealed(salt, row["query"], key, label))
            for key, origin, position, sketch, place, label in row.pop("items")
        )
        queries.append(BenchQuery(number=number, items=items, **row))
    origins = [
        PublicFile(**{**row, "title": tuple(row["title"]), "body": tuple(row["body"])}) for row in head["origins"]
    ]
    return BenchSets(head["sets"], origins, queries)


def label_digest(salt: str, query: str, item: str, relevant: bool) -> str:
    """How a label of the test part is written."""
    return hashlib.sha256(f"{salt}\n{query}\n{item}\n{relevant}".encode()).hexdigest()[:16]


def revealed(salt: str, query: str, item: str, label: bool | str) -> bool:
    """A label, plain or as the digest of the test part."""
    if isinstance(label, bool):
        return label
    for relevant in (True, False):
        if label_digest(salt, query, item, relevant) == label:
            return relevant
    raise ConfigurationError(f"the label of `{item}` for `{query}` is damaged; install Listenpost again")


def part_of(set_name: str, query: str) -> BenchPart:
    """`test` for a third of the queries, by a digest of set and query."""
    return "test" if hashlib.sha256(f"{set_name}\n{query}".encode()).digest()[0] % 3 == 0 else "dev"


def shingles(text: str) -> set[str]:
    """Digests of all runs of three words, without addresses and handles; a longer text cannot be read from them."""
    words = _WORD.findall(fold(_VOLATILE.sub(" ", unescape(text))))
    runs = [words[at : at + _SHINGLE] for at in range(max(len(words) - _SHINGLE + 1, 1))]
    return {hashlib.sha256(" ".join(run).encode()).hexdigest()[:8] for run in runs}


def sketch_of(text: str) -> tuple[str, ...]:
    """The few shingles of a text by which it is known again."""
    return tuple(sorted(shingles(text))[:_SKETCH])


def likeness(sketch: Sequence[str], runs: Collection[str]) -> float:
    """Share of a sketch that is among the shingles of a text."""
    return sum(part in runs for part in sketch) / len(sketch)


def is_same_text(sketch: Sequence[str], runs: Collection[str]) -> bool:
    """Whether at least half of a sketch is in a text: names of people were replaced for labelling."""
    return likeness(sketch, runs) >= 0.5


@dataclass(frozen=True, slots=True)
class FetchedTexts:
    """Titles and bodies by item id, as they lie in a folder."""

    texts: Mapping[str, tuple[str, str]]

    @classmethod
    def read(cls, folder: Path, sets: BenchSets) -> FetchedTexts:
        """All texts of a folder that are those that were labelled; a damaged file holds none."""
        texts: dict[str, tuple[str, str]] = {}
        for number, origin in enumerate(sets.origins):
            stored = read_stored(folder / origin.stored_as)
            if stored is None:
                continue
            for query in sets.queries:
                for item in query.items:
                    text = stored.texts.get(item.id) if item.origin == number else None
                    if text is not None and is_same_text(item.sketch, shingles("\n".join(text))):
                        texts[item.id] = text
        return cls(texts)

    def joined(self, queries: Iterable[BenchQuery]) -> list[LabelledQuery]:
        """Labelled queries of what has a text; the family is the set. Queries without any text are left out."""
        joined = []
        for query in queries:
            items = tuple(
                labelled_item(
                    query.query, *self.texts[item.id], item.relevant, place=item.place,
                    item_id=f"{query.set}/{query.number}/{item.id}",
                )
                for item in query.items
                if item.id in self.texts
            )  # fmt: skip
            if items:
                joined.append(LabelledQuery(query.query, query.source, items, query.set, query.about, aim=query.aim))
        return joined

    def coverage(self, queries: Iterable[BenchQuery], sets: Iterable[str]) -> dict[str, tuple[int, int]]:
        """By set, in the order of `sets`: items that have a text, and all."""
        having, of = Counter[str](), Counter[str]()
        for query in queries:
            of[query.set] += len(query.items)
            having[query.set] += sum(item.id in self.texts for item in query.items)
        return {name: (having[name], of[name]) for name in sets if name in of}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """What was taken from one public file."""

    texts: Mapping[str, tuple[str, str]]
    """Titles and bodies by item id."""
    lacking: frozenset[str]
    """Ids of items whose texts were looked for and are not in it."""


def read_stored(path: Path) -> StoredFile | None:
    """What was taken from one public file; None where it is missing or damaged."""
    try:
        held = json.loads(path.read_text("utf-8"))
        texts = {
            key: (cut(str(title), TEXT_LENGTH), cut(str(body), TEXT_LENGTH))
            for key, (title, body) in held["texts"].items()
        }
        return StoredFile(texts, frozenset(held.get("lacking", ())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
