"""Runs `listenpost eval` over a few labelled rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from typer.testing import CliRunner, Result

from api.errors import ListenpostError
from api.interfaces.cli.main import app

ROWS: list[dict[str, Any]] = [
    {
        "query": "ember mug",
        "source_hint": "reddit",
        "family": "brand",
        "about": "a mug that keeps coffee warm",
        "items": [
            {"title": "My Ember mug died", "body": "no heat", "relevant": True, "grade": 5},
            {"title": "", "body": "ember mug keeps coffee warm all day", "relevant": True},
            {"title": "embers of the fire", "relevant": False, "neg_kind": "homonym", "grade": 1},
            {"title": "coupon | ember mug", "relevant": False, "neg_kind": "bot"},
        ],
    },
    {
        "query": "tidbyt",
        "source_hint": "youtube",
        "family": "clock",
        "items": [
            {"title": "Tidbyt review", "relevant": True, "grade": 3},
            {"title": "pixel art for beginners", "relevant": False, "grade": 1},
        ],
    },
]


def evaluate(*words: object) -> Result:
    """Run the command; an expected failure is in `exception`."""
    result = CliRunner().invoke(app, ["eval", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        assert isinstance(result.exception, ListenpostError), result.exception
    return result


def figures(*words: object) -> Mapping[str, Any]:
    """The JSON that the command prints."""
    result = evaluate(*words, "--format", "json")
    assert result.exit_code == 0, result.output
    shown: Mapping[str, Any] = json.loads(result.stdout)
    return shown
