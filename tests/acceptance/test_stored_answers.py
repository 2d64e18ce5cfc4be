"""Today's answers beside ones that were stored: the same keys in the same order, of one kind."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from api.reports.report import Fetched
from api.services import product
from api.services.product import Ask, Product
from api.store.report_json import READER
from tests.acceptance.conftest import analyzed
from tests.services.kit import plain

QUESTIONS = {"full": "plaud.ai", "insufficient": "zzqx frobnicator 9000", "clarify": "hello"}
BY_NAME = {"sources", "engagement"}
"""Objects whose keys are names of sources or measures."""


def stored(root: Path, name: str) -> Any:
    """What the sandbox once answered."""
    return json.loads((root / "tests" / "data" / "answers" / f"{name}.json").read_text("utf-8"))


def kinds(value: Any, path: str = "", name: str = "") -> dict[str, set[object]]:
    """By path, of which kind the values are; an object's kind is its keys in their order."""
    found: dict[str, set[object]] = defaultdict(set)
    if isinstance(value, dict):
        named = name in BY_NAME
        found[path].add("names" if named else tuple(value))
        parts = [(f"{path}.{'*' if named else key}", key, inner) for key, inner in value.items()]
    elif isinstance(value, list):
        found[path].add("list")
        parts = [(f"{path}[]", "", inner) for inner in value]
    else:
        # a median is whole or not, as the numbers happen to fall
        number: object = float if type(value) is int else type(value)
        found[path].add(None if value is None else number)
        parts = []
    for below, key, inner in parts:
        for place, kind in kinds(inner, below, key).items():
            found[place] |= kind
    return found


def assert_same_kinds(answer: Any, before: Any) -> None:
    """Wherever both hold something, it is the same kind of thing, or null in one of them."""
    for source in (answer, *answer.get("sources", {}).values()):
        source.pop("capped", None)  # there where it is known, which it was not yet
        source.pop("first", None)  # as well
        for entry in source.get("dropped", ()):
            for name in ("created_at", "place", "snippet", "credit"):
                entry.pop(name, None)
    today, then = kinds(answer), kinds(before)
    for path in today.keys() & then.keys():
        told = today[path] - {None}, then[path] - {None}
        assert told[0] <= told[1] or told[1] <= told[0], path
    assert today[""] == then[""]


@pytest.mark.parametrize("name", QUESTIONS)
async def test_analyze_answers_in_the_shape_it_had(built: Product, root: Path, name: str) -> None:
    """A report, an explanation and guidance."""
    answer = await analyzed(built, QUESTIONS[name], depth="quick")

    answer.pop("observations", None)  # there where it is traced
    answer.pop("since", None)  # there where it is known, which it was not yet
    for counted in ("authors", "voices"):  # there where the sources name them
        (answer.get("figures") or {}).pop(counted, None)
    for finding in answer.get("findings", ()):
        finding.pop("people", None)  # there since people are counted
    assert_same_kinds(answer, plain(READER.report(stored(root, name))))
    assert answer["items"] or name != "full"


async def test_fetch_answers_in_the_shape_it_had(built: Product, root: Path) -> None:
    """With items, and without any."""
    full = await product.fetch(built, "reddit", Ask("plaud.ai", "standard", limit=4))
    empty = await product.fetch(built, "youtube", Ask("zzqx frobnicator", "quick"))

    assert full.fetched.items
    for heard, name in ((full, "fetch"), (empty, "fetch_empty")):
        assert_same_kinds(plain(heard.fetched), plain(Fetched.model_validate(stored(root, name))))
