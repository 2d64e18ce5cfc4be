"""`stats` and `feedback` over a real database."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from tests.features.analyses.counted_runs import OPEN, asked, attempt
from tests.interfaces.command import Here
from tests.interfaces.stored_history import keep, url
from tests.snippets import commands
from tests.store.made import ODD, item, report

__all__ = ["url"]

TRACE = "0af7651916cd43dd8448eb211c80319c"
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def made(id_: str, days: int = 0, **fields: Any) -> dict[str, Any]:
    """A report of so many days ago."""
    items = item("reddit:t3_1"), item("reddit:t3_2")
    moment = (TODAY - timedelta(days=days)).isoformat()
    return report(id_, *items, created_at=moment, **fields)


def test_figures_as_text(here: Here, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions, yields, cost; a table of sources with outcomes and reasons; one over time."""
    paid = {"usd": 0.3, "tokens": 5, "upstream_calls": 6}
    opened = asked(7, 7, attempts=[attempt("degraded", 7, "timeout")], **OPEN)
    away = asked(0, 0, outcome="blocked")
    keep(url, [
        made("r1", cost=paid, sources={"reddit": asked(90, 9), "youtube": asked(10, 5)}),
        made("r2", 1, cost=paid, sources={"reddit": asked(10, 5), "youtube": opened}),
        made("r3", 1, decision="short_report", sources={"reddit": away}),
        made("r4", 40), made("r5", sample=True),
    ])  # fmt: skip

    monkeypatch.setenv("COLUMNS", "100")  # a line of the report is not broken
    text = here("stats").out

    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0].startswith("3 analyses since ")
    assert lines[0].endswith("0 failed")
    assert lines[1] == "1 that no source answered: counted here, and in no mean"
    assert lines[2] == "1 of sample data is left out: `--sample` counts them"
    assert "decisions a full report (2); a short report (1)" in lines
    assert "yield 14 % pooled, 14 % mean of 1 analysis; 1 left out that could not be judged" in lines
    assert "cost 0.6000 USD: 0.3000 per analysis, 0.1500 per kept item; 0 of unknown price" in lines
    assert "Reddit YouTube" in lines
    assert "answered 2 of 3 2 of 2" in lines
    assert "yield, pooled 14 % 50 %" in lines
    assert "yield, mean 30 % 50 %" in lines
    assert "not judged 0 1" in lines
    assert "failed open 0 % 50 %" in lines
    assert "gain of one - -" in lines
    assert "Reddit: ok (2); blocked by a captcha, login wall or 403 page (1)" in lines
    assert "YouTube failed open: no answer in time (1)" in lines
    assert f"{TODAY:%Y-%m-%d} 1 10 % 50 %" in lines
    assert f"{TODAY - timedelta(days=1):%Y-%m-%d} 2 50 % -" in lines


def test_figures_as_json_are_those_of_the_http_api(here: Here, url: str) -> None:
    """One object; the period and sample data as asked."""
    keep(url, [made("r1"), made("r2", 40), made("r3", sample=True)])

    stats = here("stats", "--since", "all", "--sample", "--format", "json").json

    assert (stats["runs"], stats["samples"], stats["with_samples"]) == (3, 1, True)
    assert (stats["since"], stats["unit"]) == (None, "week")
    assert here("stats", "--format", "json").json["runs"] == 1
    assert here("stats", "--since", f"{TODAY - timedelta(days=50):%Y-%m-%d}", "--format",
                "json").json["runs"] == 2  # fmt: skip


def test_of_nothing_little_is_said(here: Here, url: str) -> None:
    """No tables without rows; a wrong period is refused."""
    ended = here("stats", "--since", "all")
    old = here("stats", "--since", "0001-01-01")
    wrong = here("stats", "--since", "soon")

    assert ended.out == "0 analyses from the first on, 0 failed\n"
    assert old.out == "0 analyses since 0001-01-01 00:00Z, 0 failed\n"
    assert wrong.code == 2
    assert "`since` needs days or weeks" in wrong.err


@pytest.mark.parametrize("columns", ["40", "60"])
def test_figures_fit_narrow_terminals(here: Here, url: str, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences are wrapped, and the tables of three sources are as narrow."""
    keep(url, [made("r1", sources={name: asked(9, 3) for name in ("reddit", "youtube", "amazon")})])
    monkeypatch.setenv("COLUMNS", columns)

    lines = here("stats").out.splitlines()

    assert max(map(len, lines)) <= max(int(columns), 42)


def test_feedback_is_given_and_listed(here: Here, url: str) -> None:
    """Of a report by the beginning of its id, of a finding and of an item; escapes do nothing."""
    keep(url, [made("r1abc")])
    ended = [
        here("feedback", "r1", "--up", "--comment", "fine \x1b[2J<b>"),
        here("feedback", "r1", "--down", "--finding", "2"),
        here("feedback", "r1", "--down", "--item", "reddit:t3_1", "--format", "json"),
        here("feedback", "r1", "--up", "--item", "reddit:t3_1"),
    ]
    listed = here("feedback", "r1")
    rows = json.loads(here("feedback", "r1", "--format", "json").out)
    stats = here("stats").out

    assert [entry.code for entry in ended] == [0, 0, 0, 0]
    assert {entry.err for entry in ended} == {"kept\n"}
    assert ended[2].json["langfuse"] == {"status": "off", "reason": None}
    assert listed.out == "up   report  fine <b>\ndown finding 2\nup   item reddit:t3_1\n"
    assert [(row["subject"], row["rating"]) for row in rows] == [
        ("report", "up"), ("finding", "down"), ("item", "up"),
    ]  # fmt: skip
    assert "thumbs up   2 of 3: 2 of 3 on a full report" in stats


def test_a_key_that_is_listed_can_be_used(here: Here, url: str) -> None:
    """An address in it is not broken, as those in people's words are."""
    key = "lemmy:https://lemmy.example/post/1"
    keep(url, [report("r1abc", item(key))])
    here("feedback", "r1", "--down", "--item", key)

    assert here("feedback", "r1").out == f"down item {key}\n"


def test_what_was_said_of_items_is_a_file_of_labels(here: Here, url: str) -> None:
    """A line for each source; with a thumb, and of nothing, there is none."""
    keep(url, [made("r1abc")])
    before = here("feedback", "r1", "--labels")
    here("feedback", "r1", "--down", "--item", "reddit:t3_1")
    after = here("feedback", "r1", "--labels")

    assert (before.code, before.out) == (0, "")
    assert "nothing was said of its items" in before.err
    (line,) = map(json.loads, after.out.splitlines())
    assert (line["source_hint"], [row["relevant"] for row in line["items"]]) == ("reddit", [False])


def test_the_commands_of_the_page_do_what_it_says(here: Here, url: str) -> None:
    """As they stand in `docs/stats.md`, on a report whose id begins as theirs does."""
    keep(url, [made("8c1f00")])

    ended = [here(*words) for words in commands("docs/stats.md")]

    assert [entry.code for entry in ended] == [0] * 5
    (line,) = map(json.loads, ended[-1].out.splitlines())
    assert [row["relevant"] for row in line["items"]] == [False]
    assert ended[2].out == ("up   report  just what I needed\ndown finding 2  the post says the opposite\n")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--up", "--down"), "not both"),
        (("--up", "--labels"), "it goes with no thumb"),
        (("--comment", "fine"), "say `--up` or `--down` with it"),
        (("--up", "--finding", "1", "--item", "reddit:t3_1"), "not both at once"),
        (("--up", "--finding", "9"), "there is no finding 9; the report has 2"),
        (("--up", "--item", f"x{ODD[:5]}"), "the report has no item"),
        (("--up", "--comment", "x" * 2001), "2000 characters at most; yours has 2001"),
    ],
)
def test_what_makes_no_sense_is_refused(here: Here, url: str, words: tuple[str, ...], says: str) -> None:
    """With the reason, and nothing is kept."""
    keep(url, [made("r1abc")])
    ended = here("feedback", "r1", *words)
    listed = here("feedback", "r1")

    assert ended.code == 2
    assert says in ended.err
    assert listed.out == ""
    assert "nothing was said of it yet" in listed.err


def test_a_report_that_is_not_there_has_none(here: Here, url: str) -> None:
    """Nor can it be rated."""
    keep(url, [])

    for words in ((), ("--up",)):
        ended = here("feedback", "nope", *words)
        assert ended.code == 2
        assert "there is no report `nope`" in ended.err


def test_langfuse_is_told_or_it_is_said_why_not(
    here: Here, url: str, upstream: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A live report's trace gets the score; while Langfuse is down the feedback is kept."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    keep(url, [made("r1abc", trace_id=TRACE)])
    sent = here("feedback", "r1", "--up")
    upstream.fault("langfuse.scores=500")
    failed = here("feedback", "r1", "--down")
    listed = here("feedback", "r1")

    bodies = [entry.body for entry in upstream.log if entry.endpoint == "scores"]
    assert [body[0]["value"] for body in bodies] == [1, 0]
    assert bodies[0][0]["traceId"] == TRACE
    assert (sent.code, sent.err) == (0, "kept, and sent to Langfuse\n")
    assert failed.code == 0
    assert "kept here, but not in Langfuse" in failed.err
    assert listed.out.startswith("down report")
