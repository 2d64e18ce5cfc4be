"""Today's answers against ones that were stored: the same keys, in the same places, of one kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from api import wiring
from api.services import listening
from api.services.listening import Ask
from api.services.reporting.report import Fetched
from api.store.migrate_reports import TODAY
from tests.acceptance.conftest import analyzed
from tests.services.kit import plain

QUESTIONS = {"full": "plaud.ai", "insufficient": "zzqx frobnicator 9000", "clarify": "hello"}
BOUND_TO_ONE_RUN = {"id", "trace_id", "created_at", "timings_ms", "timeline"}
"""Keys whose values no second run repeats; their kind it does."""


def stored(root: Path, name: str) -> Any:
    """What the sandbox once answered."""
    return json.loads((root / "tests" / "data" / "answers" / f"{name}.json").read_text("utf-8"))


def settled(value: Any, name: str = "") -> Any:
    """The value, with the kind of a value in the place of what belongs to one run."""
    if isinstance(value, dict):
        return [(key, settled(inner, key or name)) for key, inner in value.items()]
    if isinstance(value, list):
        return [settled(inner, name) for inner in value]
    return (
        type(value).__name__
        if name in BOUND_TO_ONE_RUN | {"evidence", "report", "total"}
        else value
    )


@pytest.mark.parametrize("name", QUESTIONS)
async def test_analyze_answers_as_it_did(built: wiring.Built, root: Path, name: str) -> None:
    """Every key, null, text and number of a quick analysis, in the same order."""
    depth = "quick" if name == "full" else "standard"
    answer = await analyzed(built, QUESTIONS[name], depth=depth)
    before = plain(TODAY.report(stored(root, name)))
    for each in (answer, before):
        each["sample"] = True
        each["figures"].pop("timeline", None)
        for source in each["sources"].values():
            source["sample"] = True

    assert settled(answer) == settled(before)


async def test_fetch_answers_as_it_did(built: wiring.Built, root: Path) -> None:
    """The same of one source, asked at standard and at quick."""
    found = await listening.fetch(built.product, "reddit", Ask("plaud.ai", "standard", limit=4))
    empty = await listening.fetch(built.product, "youtube", Ask("zzqx frobnicator", "quick"))

    for heard, name in ((found, "fetch"), (empty, "fetch_empty")):
        before = plain(Fetched.model_validate(stored(root, name)))
        assert settled(plain(heard.fetched) | {"sample": True}) == settled(before)
