"""`replay` in the sandbox: what another judge or description would keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.command import Here

QUERY = ("analyze", "Ember mug", "--depth", "quick", "--source", "reddit", "--format", "json")


@pytest.fixture
def in_sandbox(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """The command over sample data and a database of this test."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    monkeypatch.setenv("LISTENPOST_DATABASE_URL", f"sqlite:///{tmp_path / 'listenpost.db'}")
    return here


def test_a_replay_shows_both_sides_and_stores_nothing(in_sandbox: Here) -> None:
    """As text for a person and as JSON; a corrected item is newly dropped."""
    first = in_sandbox(*QUERY).json
    wrong = first["items"][0]
    in_sandbox("correct", first["id"], wrong["key"], "--irrelevant")

    data = in_sandbox("replay", first["id"][:8], "--format", "json")
    text = in_sandbox("replay", first["id"], "--judge", "local", "--about", "a mug that heats")

    assert (data.code, text.code) == (0, 0)
    assert [each["key"] for each in data.json["newly_dropped"]] == [wrong["key"]]
    assert data.json["newly_kept"] == []
    assert "Newly dropped\n-------------" in text.out
    assert "a mug that heats" in text.out
    assert "(before 1 post or comment, by 1 person)" in " ".join(text.out.split())
    assert "Nothing was spent." in text.out
    assert len(in_sandbox("reports", "list").out.splitlines()) == 1


def test_the_price_is_said_before(in_sandbox: Here) -> None:
    """In the units of `analyze --estimate`, without asking anything."""
    first = in_sandbox(*QUERY).json
    told = in_sandbox("replay", first["id"], "--estimate", "--format", "json").json
    text = in_sandbox("replay", first["id"], "--estimate")

    assert told["maximum"]["upstream_calls"] == 0
    assert told["sample"] is True
    assert "model_calls: " in text.out


def test_what_cannot_be_replayed_names_the_remedy(in_sandbox: Here) -> None:
    """An unknown id, and a model for the judge of this machine."""
    first = in_sandbox(*QUERY).json
    missing = in_sandbox("replay", "0123")
    wrong = in_sandbox("replay", first["id"], "--judge", "local", "--model", "gpt-4o")

    assert (missing.code, wrong.code) == (2, 2)
    assert "there is no report `0123`" in missing.err
    assert "takes no `model`" in wrong.err
