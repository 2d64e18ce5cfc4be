"""A report apart and together again: its items on their own, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

FACTS = (
    "key", "id", "source", "title", "body", "url", "created_at", "engagement", "place", "places",
    "comments", "notes",
)  # fmt: skip
"""What is the item's own, whoever asked; every other field belongs to the analysis."""
_LISTED = (
    "id", "version", "query", "about", "depth", "decision", "decision_rationale", "disclaimer",
    "total_scored", "total_survived", "topic", "sample", "cost", "trace_id", "created_at",
)  # fmt: skip
_LISTED_OF_SOURCE = ("outcome", "reason", "fetched", "kept", "yield_ratio")


@dataclass(frozen=True, slots=True)
class Entry:
    """One place where an item stands in a report."""

    part: str
    """`items`, `dropped`, or the name of a source after a colon: its own dropped items."""
    position: int
    facts: Mapping[str, Any]
    own: Mapping[str, Any]

    @property
    def key(self) -> str:
        """The item's key."""
        return str(self.facts["key"])


@dataclass(frozen=True, slots=True)
class Divided:
    """A report as it is stored."""

    body: Mapping[str, Any]
    """The report with a number where a list of items was."""
    entries: tuple[Entry, ...]


def divided(report: Mapping[str, Any]) -> Divided:
    """Take the items out; a list that holds anything without a key stays where it is."""
    body = dict(report)
    entries: list[Entry] = []
    for part in ("items", "dropped"):
        _taken(body, part, part, entries)
    sources = body.get("sources")
    if isinstance(sources, Mapping):
        body["sources"] = dict(sources)
        for name, told in sources.items():
            if isinstance(told, Mapping):
                body["sources"][name] = dict(told)
                _taken(body["sources"][name], "dropped", f":{name}", entries)
    return Divided(body, tuple(entries))


def _taken(holder: dict[str, Any], field: str, part: str, entries: list[Entry]) -> None:
    listed = holder.get(field)
    if not isinstance(listed, Sequence) or not all(map(_is_item, listed)):
        return
    for position, one in enumerate(listed):
        facts = {name: one[name] for name in FACTS if name in one}
        own = {name: value for name, value in one.items() if name not in facts}
        entries.append(Entry(part, position, facts, own))
    holder[field] = len(listed)


def _is_item(one: object) -> bool:
    return isinstance(one, Mapping) and isinstance(one.get("key"), str)


def united(body: Mapping[str, Any], entries: Iterable[Entry]) -> dict[str, Any]:
    """The report again; `entries` come in their order within each part."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        parts.setdefault(entry.part, []).append({**entry.facts, **entry.own})
    report = dict(body)
    for part in ("items", "dropped"):
        _put_back(report, part, parts.get(part))
    sources = report.get("sources")
    if isinstance(sources, Mapping):
        for name, told in sources.items():
            if isinstance(told, dict):
                _put_back(told, "dropped", parts.get(f":{name}"))
    return report


def _put_back(holder: dict[str, Any], field: str, listed: list[dict[str, Any]] | None) -> None:
    if isinstance(holder.get(field), int):
        holder[field] = listed or []


def summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """What a listing shows: the same fields, without texts, items and figures."""
    shown = {name: report[name] for name in _LISTED if name in report}
    sources = report.get("sources")
    if isinstance(sources, Mapping):
        shown["sources"] = {
            name: {field: told[field] for field in _LISTED_OF_SOURCE if field in told}
            for name, told in sources.items()
            if isinstance(told, Mapping)
        }
    return shown
