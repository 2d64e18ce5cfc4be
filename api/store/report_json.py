"""A report's JSON: read in any version, split into parts for storing, and freed of deleted items.

Items of a report are stored once per tenant; what is left of its JSON is the body. A report of a
newer program is read as it is: unknown fields are kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from api.core.items import Item
from api.core.published import Published
from api.reports.report import VERSION, Report, Summary

Step = Callable[[dict[str, Any]], dict[str, Any]]
P = TypeVar("P", bound=Published)
REMOVED = "[removed]"
_QUOTE = re.compile(r'[“"]([^“”"]+)[”"]')
FACTS = tuple(Item.model_fields)
"""Fields that belong to the item itself; every other field belongs to the analysis."""


class Unreadable(Exception):
    """A stored report cannot be read; the message says where, without its content."""


def version_of(document: Mapping[str, Any]) -> int:
    """The version a report says it has; 1 when it says nothing."""
    version = document.get("version")
    return version if isinstance(version, int) and version >= 1 else 1


@dataclass(frozen=True, slots=True)
class ReportReader:
    """Reads stored reports, including older versions."""

    steps: Mapping[int, Step]
    """Version -> what makes a report of the next version; a step need not write `version`."""
    version: int
    """Version to which reports are upgraded."""

    def upgraded(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The report's JSON in today's version; that of a newer program as it is.

        Raises:
            Unreadable: there is no step from its version, or it holds something else.
        """
        report = dict(document)
        for version in range(version_of(document), self.version):
            try:
                report = {**self.steps[version](report), "version": version + 1}
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise Unreadable(f"its version {version} cannot be upgraded") from error
        return report

    def report(self, document: Mapping[str, Any]) -> Report:
        """The whole report, upgraded to today's version.

        Raises:
            Unreadable: it is none, or one of a newer program that changed too much.
        """
        return _read(Report, self.upgraded(document))

    def summary(self, document: Mapping[str, Any]) -> Summary:
        """What a listing shows of it, whatever else it holds.

        Raises:
            Unreadable: see `report`.
        """
        return _read(Summary, self.upgraded(document))


def _read(shape: type[P], document: Mapping[str, Any]) -> P:
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
        raise Unreadable(f"version {version_of(document)}, at `{where}`") from error


def _with_one_kept(report: dict[str, Any]) -> dict[str, Any]:
    """Version 4: `kept` and `yield_ratio` of the figures are those of the source; what was `kept` is `in_report`."""
    figures = report.get("figures") or {}  # a listing has none
    counted = {
        name: {
            **counts,
            "in_report": counts["kept"],
            **{field: report["sources"][name][field] for field in ("kept", "yield_ratio")},
        }
        for name, counts in (figures.get("sources") or {}).items()
    }
    return {**report, "figures": {**figures, "sources": counted}} if counted else report


READER = ReportReader(MappingProxyType({3: _with_one_kept}), VERSION)
"""Reader of this program; raising `VERSION` adds a step. Version 3 is the oldest that can be read."""


@dataclass(frozen=True, slots=True)
class ReportItem:
    """One position of an item in a report."""

    part: str
    """`items`, `dropped`, or a colon and the name of a source: that source's dropped items."""
    position: int
    facts: Mapping[str, Any]
    own: Mapping[str, Any]
    """Fields that belong to the analysis."""

    @property
    def key(self) -> str:
        """Key of the item, which the store has once for each tenant."""
        return str(self.facts["key"])


@dataclass(frozen=True, slots=True)
class ReportParts:
    """Parts in which a report is stored."""

    body: Mapping[str, Any]
    """The report with a number where a list of items was."""
    items: tuple[ReportItem, ...]


def split_report(document: Mapping[str, Any]) -> ReportParts:
    """Take the items out; a list that holds anything without a key stays where it is."""
    body = dict(document)
    items: list[ReportItem] = []
    for part in ("items", "dropped"):
        _take_items(body, part, part, items)
    sources = body.get("sources")
    if isinstance(sources, Mapping):
        body["sources"] = dict(sources)
        for name, source in sources.items():
            if isinstance(source, Mapping):
                body["sources"][name] = dict(source)
                _take_items(body["sources"][name], "dropped", f":{name}", items)
    return ReportParts(body, tuple(items))


def _take_items(holder: dict[str, Any], field: str, part: str, items: list[ReportItem]) -> None:
    listed = holder.get(field)
    if not isinstance(listed, Sequence) or not all(
        isinstance(item, Mapping) and isinstance(item.get("key"), str) for item in listed
    ):
        return
    for position, item in enumerate(listed):
        facts = {name: item[name] for name in FACTS if name in item}
        own = {name: value for name, value in item.items() if name not in facts}
        items.append(ReportItem(part, position, facts, own))
    holder[field] = len(listed)


def join_report(body: Mapping[str, Any], items: Iterable[ReportItem]) -> dict[str, Any]:
    """The report's JSON again; `items` come in their order within each part."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        parts.setdefault(item.part, []).append({**item.facts, **item.own})
    document = dict(body)
    holders = [(document, "items", "items"), (document, "dropped", "dropped")]
    sources = document.get("sources")
    if isinstance(sources, Mapping):
        holders += [(of, "dropped", f":{name}") for name, of in sources.items() if isinstance(of, dict)]
    for holder, field, part in holders:
        if isinstance(holder.get(field), int):
            holder[field] = parts.get(part, [])
    return document


def without_items(report: Mapping[str, Any], keys: Set[str]) -> dict[str, Any]:
    """The report without these items: entries, quotes, findings that cite nothing else, mentions.

    Counts and figures stay as they were counted, and words that a model wrote stay but for the
    keys in them and what they quote; a note says so.
    """
    left = _without_mentions(without_entries(report, keys), _mention(keys))
    left = _without_quotes(left, _one_line(" ".join(_texts_in(report, keys))))
    gone = len(_keys_in(report) & keys)
    was, them = ("1 item was", "it") if gone == 1 else (f"{gone} items were", "them")
    why = f"removed here because the source deleted {them}; figures and text still count {them}."
    left["quality_notes"] = [*left.get("quality_notes", ()), f"{was} {why}"]
    return dict(left)


def _texts_in(value: Any, keys: Set[str], *, inside: bool = False) -> Iterator[str]:
    """Texts of the entries with these keys."""
    if isinstance(value, str):
        yield from (value,) if inside else ()
    elif isinstance(value, Mapping):
        inside = inside or value.get("key") in keys
        for inner in value.values():
            yield from _texts_in(inner, keys, inside=inside)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_in(inner, keys, inside=inside)


def _without_quotes(value: Any, words: str) -> Any:
    """The report's texts with each quotation of three words or more from `words` replaced by `REMOVED`."""

    def replaced(match: re.Match[str]) -> str:
        quote = _one_line(match[1].strip(" …."))
        return f"“{REMOVED}”" if quote.count(" ") >= 2 and quote in words else match[0]

    if isinstance(value, str):
        return _QUOTE.sub(replaced, value)
    if isinstance(value, Mapping):
        own = not isinstance(value.get("key"), str)  # else it is an item: what others write stays
        return {name: _without_quotes(inner, words) if own else inner for name, inner in value.items()}
    return [_without_quotes(inner, words) for inner in value] if isinstance(value, list) else value


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _keys_in(value: Any) -> set[str]:
    if isinstance(value, Mapping):
        own = {value["key"]} if isinstance(value.get("key"), str) else set()
        return own.union(*map(_keys_in, value.values()))
    return set().union(*map(_keys_in, value)) if isinstance(value, list | tuple) else set()


def without_entries(value: Any, keys: Set[str]) -> Any:
    """A JSON value without the list entries that are one of the keys or cite nothing else."""
    if isinstance(value, Mapping):
        return {name: without_entries(inner, keys) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_entries(inner, keys) for inner in value if not _rests_on(inner, keys)]
    return value


def _rests_on(value: Any, keys: Set[str]) -> bool:
    if not isinstance(value, Mapping):
        return isinstance(value, str) and value in keys
    cites = value.get("cites")
    if "text" in value and isinstance(cites, list | tuple) and cites:
        return all(cite in keys for cite in cites)
    return value.get("key") in keys


def mentions(text: str, keys: Set[str]) -> bool:
    """Whether a text names one of the keys."""
    return bool(_mention(keys).search(text))


def without_mentions(text: str, keys: Set[str]) -> str:
    """The text with `REMOVED` instead of each of the keys."""
    return _mention(keys).sub(REMOVED, text)


def _mention(keys: Set[str]) -> re.Pattern[str]:
    # not the beginning or end of another key: `reddit:t3_a` but not `reddit:t3_ab`
    names = "|".join(re.escape(key) for key in sorted(keys))
    return re.compile(rf"(?<![\w:-])(?:{names})(?![\w-])")


def _without_mentions(value: Any, mention: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return mention.sub(REMOVED, value)
    if isinstance(value, Mapping):
        return {name: _without_mentions(inner, mention) for name, inner in value.items()}
    return [_without_mentions(inner, mention) for inner in value] if isinstance(value, list) else value
