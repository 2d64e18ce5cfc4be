"""What one command remembers of those before: searches that are left, pages of minutes ago."""

from __future__ import annotations

import pytest

from api.sandbox.server import Sandbox
from tests.interfaces.command import Here

FETCH = ("fetch", "youtube", "plaud.ai", "--format", "json")


def searches(upstream: Sandbox) -> int:
    """How many searches YouTube has seen."""
    return len(upstream.requests("youtube", "search"))


def left(here: Here) -> tuple[int | None, str]:
    """What `doctor` says is left, for a program and for a person."""
    row = here("doctor", "--format", "json").json["upstreams"][1]
    assert row["upstream"] == "youtube"
    return row["quota_left"], next(line for line in here("doctor").out.splitlines() if line.startswith("YouTube"))


def test_doctor_knows_what_is_left(here: Here, upstream: Sandbox) -> None:
    """Every search of an earlier command is counted; doctor itself costs none."""
    before = left(here)
    here(*FETCH)
    after = left(here)

    assert before[0] == 100
    assert after[0] == 100 - searches(upstream) == 99
    assert after[1].endswith("ok               99 searches left today")


def test_the_same_question_again_costs_no_search(here: Here, upstream: Sandbox) -> None:
    """Within minutes the page of the command before serves, and the answer is the same."""
    first, second = here(*FETCH).json, here(*FETCH).json

    assert searches(upstream) == 1
    assert [one["key"] for one in first["items"]] == [one["key"] for one in second["items"]]
    assert second["upstream_calls"] < first["upstream_calls"]


def test_the_last_search_is_the_last(here: Here, upstream: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the day's searches are gone nothing more is sent, and the answer says until when."""
    monkeypatch.setenv("LISTENPOST_YOUTUBE_SEARCHES_PER_DAY", "1")
    here(*FETCH)
    ended = here("fetch", "youtube", "oura ring", "--format", "json")

    assert (ended.code, ended.json["outcome"]) == (4, "quota_exhausted")
    assert ended.json["retry_at"]
    assert searches(upstream) == 1


def test_the_sandbox_starts_afresh(here: Here) -> None:
    """Sample searches are nobody's quota."""
    here(*FETCH)

    assert left(here)[0] is None


def test_a_database_that_cannot_be_used_costs_the_memory_alone(
    here: Here, upstream: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One warning without a password in it, and the answer."""
    monkeypatch.setenv("LISTENPOST_DATABASE_URL", "postgresql://me:sekret@127.0.0.1:1/none")
    ended = here(*FETCH)

    assert (ended.code, ended.json["outcome"]) == (0, "ok")
    assert "listenpost: warning: no searches are counted" in ended.err
    assert "sekret" not in ended.err
