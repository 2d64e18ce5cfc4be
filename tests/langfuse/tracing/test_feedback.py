"""What somebody thought of a report, as Langfuse gets it, and what it may answer."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from api.core.ports import REPORT_WORDS
from api.features.analyses.feedback import RatedReport, RatedTurn
from api.features.analyses.store_ports import Feedback
from api.langfuse.tracing.observer import score_of, send_feedback
from api.reports.report import Backing, Finding
from tests.langfuse.tracing.collector import SECRET, Collector, settings_for
from tests.store.made import ODD, item, report, typed

TRACE = "0af7651916cd43dd8448eb211c80319c"
REPORT = typed(report("r1", item("reddit:t3_1"), item(f"items:{ODD}"), trace_id=TRACE))
NOW = datetime(2026, 11, 28, tzinfo=UTC)
BACKINGS: tuple[Backing, ...] = "checked", "counted"
GIVEN = Feedback("r1", "ada", "report", "up", created_at=NOW)


async def test_a_score_has_what_langfuse_wants(langfuse: Collector) -> None:
    """A list of one, of the documented fields, with the project's keys and its environment."""
    settings = settings_for(langfuse.url, trace_environment="staging")
    why = send_feedback(settings, RatedReport(REPORT, GIVEN))

    (score,) = langfuse.scores
    assert why == ""
    assert score == {
        "id": score["id"], "traceId": TRACE, "name": "user_feedback", "value": 1,
        "dataType": "BOOLEAN", "environment": "staging", "timestamp": "2026-11-28T00:00:00+00:00",
        "metadata": {"scope": "report", "author": "ada", "decision": "full_report"},
    }  # fmt: skip
    assert score["id"].startswith(f"{TRACE}-user_feedback-")
    assert langfuse.authorizations == {f"Basic {settings.langfuse_public_key}:{SECRET}"}


@pytest.mark.parametrize(
    "other",
    [
        {"author": "eve"},
        {"subject": "finding", "finding": 1},
        {"subject": "item", "item_key": "reddit:t3_1"},
    ],
)
def test_each_author_and_thing_has_a_score(other: dict[str, Any]) -> None:
    """Of one who thinks again it is the same, whatever is said then."""
    fields = {"analysis_id": "r1", "author": "ada", "subject": "report", "rating": "up"}
    ids = [
        score_of(RatedReport(REPORT, Feedback(**fields | more)), settings_for(""))["id"]
        for more in ({}, other, {"rating": "down", "comment": "no"})
    ]

    assert ids[0] != ids[1]
    assert ids[0] == ids[2]


def test_what_is_about_a_part_stands_on_its_span() -> None:
    """Of an item where it was judged; of a finding where it was written, unless it is a theme."""
    seen = {"a" * 16: ("reddit:t3_1",), "b" * 16: REPORT_WORDS}
    written, theme = (Finding("Good.", "praise", ("reddit:t3_1",), (), support) for support in BACKINGS)
    fields = {"observations": seen, "findings": (written, theme)}
    rated = REPORT.model_copy(update=fields)
    about: list[dict[str, Any]] = [
        {"subject": "item", "item_key": "reddit:t3_1"},
        {"subject": "finding", "finding": 1},
        {"subject": "finding", "finding": 2},
        {"subject": "item", "item_key": f"items:{ODD}"},
        {"subject": "report"},
    ]
    scores = [score_of(RatedReport(rated, replace(GIVEN, **part)), settings_for("")) for part in about]

    assert [score.get("observationId") for score in scores] == [
        "a" * 16, "b" * 16, None, None, None,
    ]  # fmt: skip
    assert {score["traceId"] for score in scores} == {TRACE}


def test_secrets_and_odd_text_are_masked() -> None:
    """In the comment and in the key of an item."""
    key = f"items:{ODD}"
    given = Feedback("r1", "ada", "item", "down", None, key, f"key sk-{'x' * 20} of ada@example.org")
    score = score_of(RatedReport(REPORT, given), settings_for(""))

    assert score["comment"] == "key [masked] of [masked]"
    assert score["metadata"]["source"] == "items"
    assert "\ud83d" not in score["metadata"]["item_key"]


def test_without_words() -> None:
    """What was said stays here, and which item it is about; the thumb and the source leave."""
    given = Feedback("r1", "ada", "item", "down", None, "reddit:t3_1", "a bad quokka")
    score = score_of(RatedReport(REPORT, given), settings_for("", trace_content=False))

    assert "comment" not in score
    assert score["metadata"] == {
        "scope": "item", "author": "ada", "decision": "full_report", "source": "reddit"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "answer", "why"),
    [
        (207, b'{"accepted": ["a"], "rejected": [], "errors": []}', ""),
        (207, b'{"accepted": [], "rejected": ["a"], "errors": []}', "does not take the score"),
        (207, b"<html>", "does not take the score"),
        (207, b"[]", "does not take the score"),
        (302, b"", r"does not take the score \(HTTP 302\)"),
        (401, b"", "refuses the keys; check `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"),
        (404, b"<html>", r"does not take the score \(HTTP 404\)"),
        (500, b"", r"does not take the score \(HTTP 500\)"),
    ],
)
def test_what_was_not_taken_is_known(langfuse: Collector, status: int, answer: bytes, why: str) -> None:
    """In one line; nothing is sent twice."""
    langfuse.status, langfuse.accepted = status, answer
    words = send_feedback(settings_for(langfuse.url), RatedReport(REPORT, GIVEN))

    assert re.fullmatch(f".*{why}.*" if why else "", words), words
    assert len(langfuse.requests) == 1


def test_one_that_hangs_or_is_away_is_not_waited_for(langfuse: Collector) -> None:
    """Longer than said."""
    langfuse.delay = 3600
    slow = send_feedback(settings_for(langfuse.url), RatedReport(REPORT, GIVEN), seconds=0.1)
    away = send_feedback(settings_for("http://127.0.0.1:9"), RatedReport(REPORT, GIVEN))

    assert slow == "Langfuse gave no answer within 0.1 s"
    assert away.startswith("Langfuse: no connection (it was refused)")
    assert away.endswith("check `LANGFUSE_BASE_URL`")


def test_a_turn_s_score_stands_on_its_trace() -> None:
    """With its number and whose it is; of another author it is another, the comment is masked."""
    given = RatedTurn(2, TRACE, "ada", "down", "mail ada@example.org", NOW)

    score = score_of(given, settings_for(""))
    other = score_of(replace(given, author="eve"), settings_for("", trace_content=False))

    assert (score["traceId"], score["name"], score["value"]) == (TRACE, "user_feedback", 0)
    assert score["metadata"] == {"scope": "turn", "author": "ada", "turn": 2}
    assert (score["comment"], "comment" in other) == ("mail [masked]", False)
    assert score["id"] != other["id"]
