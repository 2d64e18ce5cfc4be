"""Fetches the texts of the benchmark from public files at recorded commits, and keeps only what is labelled."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import regex

from api.choices import BENCH_SERVER
from api.core.text import clean, cut, one_line, quantity, unescape
from api.errors import Broken, ConfigurationError, SourceError, TimedOut, Unreachable
from api.evaluation.bench_sets import (
    TEXT_LENGTH,
    BenchItem,
    BenchSets,
    PublicFile,
    is_same_text,
    likeness,
    read_stored,
    shingles,
)
from api.sources.web_client import Limit, WebClient, pace_of

NAME = "benchmark"
SECONDS = 120.0
"""Seconds for one file."""
_POLITE = Limit(1, 1.0)
_HOPELESS = 3
"""Connections that fail one after the other, after which no more is asked."""
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
    """What became of one fetch."""

    files: int
    """Files that were read now."""
    kept: int
    """Files whose texts were there already."""
    missing: tuple[str, ...]
    """A sentence for each file that is gone or other than recorded."""
    stopped: str = ""
    """Why the rest was not asked for; empty: all was."""


async def fetch(
    sets: BenchSets, folder: Path, names: Sequence[str] = (), *,
    root: str = BENCH_SERVER, user_agent: str = "listenpost",
    progress: Callable[[int, int], None] | None = None,
) -> FetchOutcome:  # fmt: skip
    """Fetch what the folder lacks, a file a second; what is there is not asked for again.

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
    """The file and, where titles stand in another, that one."""
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
    """The file was read for all of these: texts that it lacked then it will lack again."""
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
