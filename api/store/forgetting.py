"""Taking items out of what was written about them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any

REMOVED = "[removed]"


def forgotten(report: Mapping[str, Any], keys: Set[str]) -> dict[str, Any]:
    """The report without these items: entries, quotes, findings that cite nothing else, mentions.

    Counts and figures stay as they were counted, and words that a model wrote stay but for the
    keys in them; a note says so.
    """
    left = _unnamed(without(report, keys), _mention(keys))
    gone = len(_held(report) & keys)
    was = "1 item was" if gone == 1 else f"{gone} items were"
    note = f"{was} removed here because the source deleted them; figures and text still count them."
    if gone == 1:
        note = note.replace("them", "it")
    left["quality_notes"] = [*left.get("quality_notes", ()), note]
    return dict(left)


def _held(value: Any) -> set[str]:
    """Every key that an entry of any list has."""
    if isinstance(value, Mapping):
        own = {value["key"]} if isinstance(value.get("key"), str) else set()
        return own.union(*map(_held, value.values()))
    return set().union(*map(_held, value)) if isinstance(value, list | tuple) else set()


def without(value: Any, keys: Set[str]) -> Any:
    """Any JSON value without the entries of its lists that are, or only cite, one of the keys."""
    if isinstance(value, Mapping):
        return {name: without(inner, keys) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without(inner, keys) for inner in value if not _rests_on(inner, keys)]
    return value


def _rests_on(value: Any, keys: Set[str]) -> bool:
    if not isinstance(value, Mapping):
        return isinstance(value, str) and value in keys
    cites = value.get("cites")
    if "text" in value and isinstance(cites, list | tuple) and cites:
        return all(cite in keys for cite in cites)
    return value.get("key") in keys


def mentioned(text: str, keys: Set[str]) -> bool:
    """Whether a text names one of the keys."""
    return bool(_mention(keys).search(text))


def _mention(keys: Set[str]) -> re.Pattern[str]:
    """A key that is not the beginning or end of another: `reddit:t3_a` but not `reddit:t3_ab`."""
    names = "|".join(re.escape(key) for key in sorted(keys))
    return re.compile(rf"(?<![\w:-])(?:{names})(?![\w-])")


def _unnamed(value: Any, mention: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return mention.sub(REMOVED, value)
    if isinstance(value, Mapping):
        return {name: _unnamed(inner, mention) for name, inner in value.items()}
    return [_unnamed(inner, mention) for inner in value] if isinstance(value, list) else value
