"""The sets of the public benchmark: labels, ids and origins as shipped, joined with texts.

The texts are fetched from public files at recorded commits; of each file only what is labelled is kept.
"""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import regex

from api.choices import BENCH_SERVER, Aim, BenchPart
from api.core.text import clean, cut, fold, one_line, quantity, unescape
from api.errors import Broken, ConfigurationError, SourceError, TimedOut, Unreachable, UsageError
from api.evaluation.labelled_items import LabelledQuery, labelled_item
from api.sources.web_client import Limit, WebClient, pace_of

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
    """Where titles are when another file holds them: its `path`, its fields `key` and `title`, and the field `by`
    with the key."""
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
    """Descriptions of the sets, the public files, and the labelled queries."""

    sets: Mapping[str, Mapping[str, str]]
    """Description of each set by name: `task`, `table`, `what` it holds, origin of its `labels`, `salt` of its test
    labels."""
    origins: Sequence[PublicFile]
    queries: Sequence[BenchQuery]

    def chosen(self, names: Collection[str], part: BenchPart = "all") -> list[BenchQuery]:
        """The queries of these sets (none named: of all) and of this part; raises `UsageError`."""
        if unknown := next((name for name in names if name not in self.sets), None):
            raise UsageError(f"there is no set `{unknown}`; there are {', '.join(f'`{name}`' for name in self.sets)}")
        return [query for query in self.queries if (not names or query.set in names) and part in {query.part, "all"}]


def read_sets(folder: Traversable = SHIPPED) -> BenchSets:
    """Read the shipped sets; raises `ConfigurationError` for a label of the test part that is neither yes nor no."""
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
    """First 16 hexadecimal digits of the SHA-256 of salt, query, item and `True` or `False`, a line each."""
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
    """The part that a query is in: `test` for a third of all, by a digest of set and query."""
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
    """Whether a text holds at least half of a sketch; not all, since names of people were replaced for labelling."""
    return likeness(sketch, runs) >= 0.5


@dataclass(frozen=True, slots=True)
class FetchedTexts:
    """Titles and bodies by item id, as they lie in a folder."""

    texts: Mapping[str, tuple[str, str]]

    @classmethod
    def read(cls, folder: Path, sets: BenchSets) -> FetchedTexts:
        """Labelled texts in a folder; a damaged file counts as empty."""
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
        """Labelled queries with the items that have a text; each query's family is its set."""
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
        """Number of items with a text, and of all items, by set in the order of `sets`."""
        having, of = Counter[str](), Counter[str]()
        for query in queries:
            of[query.set] += len(query.items)
            having[query.set] += sum(item.id in self.texts for item in query.items)
        return {name: (having[name], of[name]) for name in sets if name in of}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """Texts stored from one public file."""

    texts: Mapping[str, tuple[str, str]]
    """Titles and bodies by item id."""
    lacking: frozenset[str]
    """Ids of items whose texts the file does not have."""


def read_stored(path: Path) -> StoredFile | None:
    """What was stored from one public file; None when it is missing or damaged."""
    try:
        held = json.loads(path.read_text("utf-8"))
        texts = {
            key: (cut(str(title), TEXT_LENGTH), cut(str(body), TEXT_LENGTH))
            for key, (title, body) in held["texts"].items()
        }
        return StoredFile(texts, frozenset(held.get("lacking", ())))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


NAME = "benchmark"
SECONDS = 120.0
"""Seconds for one file."""
_POLITE = Limit(1, 1.0)
_HOPELESS = 3
"""Failed connections in a row after which no further file is asked for."""
_GONE = frozenset({404, 410, 451})
_BUSY = frozenset({403, 429, 503})
_RETWEET, _HANDLE, _LINK = (
    regex.compile(r"^\s*(RT\s+)+"),
    regex.compile(r"@\w+"),
    regex.compile(r"https?://([^/\s]+)\S*"),
)
_TWEET_LENGTH = 200
Record = Mapping[str, Any]
Texts = dict[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class FetchOutcome:
    """Result of one fetch."""

    files: int
    """Files that were read now."""
    kept: int
    """Files whose texts were there already."""
    missing: tuple[str, ...]
    """A sentence for each file that is gone or other than recorded."""
    stopped: str = ""
    """Why the remaining files were not requested; empty when all were."""


async def fetch(
    sets: BenchSets, folder: Path, names: Sequence[str] = (), *,
    root: str = BENCH_SERVER, user_agent: str = "listenpost",
    progress: Callable[[int, int], None] | None = None,
) -> FetchOutcome:  # fmt: skip
    """Fetch the files that the folder lacks, one per second.

    Raises `ConfigurationError` for a folder that cannot be written.
    """
    chosen = {item.origin for query in sets.chosen(names) for item in query.items}
    wanted: dict[int, dict[str, BenchItem]] = defaultdict(dict)
    for query in sets.queries:  # all sets' texts of a file, so that it is read once
        for item in query.items:
            if item.origin in chosen:
                wanted[item.origin][item.id] = item
    await asyncio.to_thread(_make, folder)
    todo = [number for number in wanted if not _is_complete(folder / sets.origins[number].stored_as, wanted[number])]
    missing, failures, done, stopped = list[str](), 0, 0, ""
    client = WebClient(NAME, root.rstrip("/"), SECONDS, address="--mirror", headers={"User-Agent": user_agent})
    try:
        for place, number in enumerate(todo):
            origin, items = sets.origins[number], wanted[number]
            try:
                content, titles = await _files(client, root, origin)
            except _Missing as error:
                missing.append(f"{_named(origin)}: {error}, {quantity(len(items), 'text')} missing")
            except (Unreachable, TimedOut, Broken) as error:
                failures += 1
                missing.append(f"{_named(origin)}: {error}, {quantity(len(items), 'text')} missing")
                if failures >= _HOPELESS:
                    stopped = f"{failures} files in a row could not be had; run the command again to go on"
                    break
                continue
            except SourceError as error:
                stopped = f"{error}; run the command again later to go on"
                break
            else:
                texts = await asyncio.to_thread(extract, origin, content, titles, items)
                lacking = items.keys() - texts.keys()
                _keep(folder / origin.stored_as, origin, content, texts, lacking)
                done += 1
                if lacking:
                    count = quantity(len(items), "text")
                    missing.append(f"{_named(origin)}: {len(lacking)} of {count} not as labelled")
            failures = 0
            if progress is not None:
                progress(place + 1, len(todo))
    finally:
        await client.aclose()
    return FetchOutcome(done, len(wanted) - len(todo), tuple(missing), stopped)


class _Missing(Exception):
    """A file is not there any more."""


async def _files(client: WebClient, root: str, origin: PublicFile) -> tuple[bytes, bytes]:
    """The file, and the file with its titles when they are in another."""
    pace = pace_of(NAME, root, _POLITE)
    contents = []
    for path in (origin.path, origin.titles_of["path"] if origin.titles_of else None):
        if path is None:
            contents.append(b"")
            continue
        await pace.turn()
        reply = await client.get(origin.address_of(path))
        if reply.status in _GONE:
            raise _Missing(f"`{path}` is gone (status {reply.status})")
        if reply.status in _BUSY:
            pace.pause(reply.wait)
            wait = f" until {reply.wait:%H:%M} UTC" if reply.wait else ""
            raise SourceError(NAME, f"the server wants no more requests{wait} (status {reply.status})")
        if reply.status != 200:
            raise _Missing(f"`{path}` was answered with status {reply.status}")
        contents.append(reply.content)
    return contents[0], contents[1]


def _named(origin: PublicFile) -> str:
    return one_line(clean(f"{origin.repository} {origin.path}"))


def _is_complete(path: Path, items: Mapping[str, BenchItem]) -> bool:
    """Whether the file was read for all these items; an item that it lacks counts, since it will lack it again."""
    stored = read_stored(path)
    if stored is None or not items.keys() <= stored.texts.keys() | stored.lacking:
        return False
    texts = [(item, stored.texts[key]) for key, item in items.items() if key in stored.texts]
    return all(is_same_text(item.sketch, shingles("\n".join(text))) for item, text in texts)


def _keep(path: Path, origin: PublicFile, content: bytes, texts: Texts, lacking: Collection[str]) -> None:
    """Write the texts of one file, whole or not at all, with the digest of the file that they are from."""
    row = {
        "origin": origin.address, "sha256": sha256(content).hexdigest(), "bytes": len(content), "texts": texts,
        "lacking": sorted(lacking),
    }  # fmt: skip
    partial = path.with_suffix(".part")
    try:
        partial.write_text(json.dumps(row, ensure_ascii=False), "utf-8")
        os.replace(partial, path)
    except OSError as error:
        raise _unwritable(path.parent, error) from None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None


def _unwritable(folder: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"`{folder}` cannot be written ({error.strerror}); name another with `--folder`")


def extract(origin: PublicFile, content: bytes, titles: bytes, items: Mapping[str, BenchItem]) -> Texts:
    """The texts of the labelled items: at their recorded position, else the row that is most like them."""
    names = {}
    if origin.titles_of:
        key, title = origin.titles_of["key"], origin.titles_of["title"]
        names = {str(row.get(key)): str(row.get(title)) for _, row in records(titles, origin.titles_of["path"])}
    rows = [(position, text_of(origin, row, names)) for position, row in records(content, origin.path)]
    by_position = dict(rows)
    kept: Texts = {}
    for key, item in items.items():
        text = by_position.get(item.position)
        if text is not None and is_same_text(item.sketch, shingles("\n".join(text))):
            kept[key] = text
    left = [item for key, item in items.items() if key not in kept]
    best: dict[str, float] = {}
    for _, text in rows if left else ():
        runs = shingles("\n".join(text))
        for item in left:
            if is_same_text(item.sketch, runs) and (like := likeness(item.sketch, runs)) > best.get(item.id, 0.0):
                kept[item.id], best[item.id] = text, like
    return kept


def text_of(origin: PublicFile, row: Record, titles: Mapping[str, str]) -> tuple[str, str]:
    """Title and body of a row, as they were labelled."""
    title = titles.get(str(row.get(origin.titles_of["by"])), "") if origin.titles_of else _first(row, origin.title)
    body = _first(row, origin.body)
    if origin.tweets:
        body = cut(_LINK.sub(r"\1", _HANDLE.sub("@user", _RETWEET.sub("", body))), _TWEET_LENGTH)
    return cut(one_line(unescape(title)), TEXT_LENGTH), cut(unescape(body), TEXT_LENGTH)


def _first(row: Record, fields: Sequence[str]) -> str:
    return next((value for field in fields if isinstance(value := row.get(field), str)), "")


def records(content: bytes, path: str) -> list[tuple[str, Record]]:
    """Rows of a CSV, JSON or JSON lines file with their positions; rows within a row have its fields, too.

    A file that is none of these has no rows.
    """
    text = content.decode("utf-8-sig", "replace")
    try:
        if path.endswith(".csv"):
            reader = csv.DictReader(io.StringIO(text, newline=""))
            return [
                (str(at), {str(name).strip(): value for name, value in row.items()}) for at, row in enumerate(reader)
            ]
        if path.endswith(".jsonl"):
            document = [json.loads(line) for line in text.split("\n") if line.strip()]
        else:
            document = json.loads(text)
    except (csv.Error, ValueError, RecursionError):
        return []
    if isinstance(document, dict):
        document = max((value for value in document.values() if isinstance(value, list)), key=len, default=[])
    return list(_nested(document, "")) if isinstance(document, list) else []


def _nested(rows: Sequence[Any], before: str) -> Iterator[tuple[str, Record]]:
    for at, row in enumerate(rows):
        if isinstance(row, dict):
            yield f"{before}{at}", row
            for name, value in row.items() if not before else ():
                for inner, child in _nested(value, f"{at}/{name}/") if isinstance(value, list) else ():
                    yield inner, {**row, **child}
