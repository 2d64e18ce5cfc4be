"""A report's JSON apart and together again: its items on their own, and what is left of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from api.services.reporting.report import ItemFacts

FACTS = tuple(ItemFacts.model_fields)
"""What is the item's own, whoever asked; every other field belongs to the analysis."""


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


def divided(document: Mapping[str, Any]) -> Divided:
    """Take the items out; a list that holds anything without a key stays where it is."""
    body = dict(document)
    entries: list[Entry] = []
    for part in ("items", "dropped"):
        _taken(body, part, part, entries)
    sources = body.get("sources")
    if isinstance(sources, Mapping):
        body["sources"] = dict(sources)
        for name, source in sources.items():
            if isinstance(source, Mapping):
                body["sources"][name] = dict(source)
                _taken(body["sources"][name], "dropped", f":{name}", entries)
    return Divided(body, tuple(entries))


def _taken(holder: dict[str, Any], field: str, part: str, entries: list[Entry]) -> None:
    listed = holder.get(field)
    if not isinstance(listed, Sequence) or not all(
        isinstance(item, Mapping) and isinstance(item.get("key"), str) for item in listed
    ):
        return
    for position, item in enumerate(listed):
        facts = {name: item[name] for name in FACTS if name in item}
        own = {name: value for name, value in item.items() if name not in facts}
        entries.append(Entry(part, position, facts, own))
    holder[field] = len(listed)


def united(body: Mapping[str, Any], entries: Iterable[Entry]) -> dict[str, Any]:
    """The report's JSON again; `entries` come in their order within each part."""
    parts: dict[str, list[dict[str, Any]]] = {}
    for entry in entries:
        parts.setdefault(entry.part, []).append({**entry.facts, **entry.own})
    document = dict(body)
    for part in ("items", "dropped"):
        _put_back(document, part, parts.get(part))
    sources = document.get("sources")
    if isinstance(sources, Mapping):
        for name, source in sources.items():
            if isinstance(source, dict):
                _put_back(source, "dropped", parts.get(f":{name}"))
    return document


def _put_back(holder: dict[str, Any], field: str, listed: list[dict[str, Any]] | None) -> None:
    if isinstance(holder.get(field), int):
        holder[field] = listed or []
