"""What each outcome prints and how the command ends."""

from __future__ import annotations

import pytest

from api.core.display_names import OUTCOME_REASONS
from api.core.domain import Outcome
from api.sandbox.server import Sandbox
from tests.interfaces.command import SAMPLE, Here

SILENT = ("reddit=403html", "youtube=search_quota", "amazon=captcha")


@pytest.fixture(params=["text", "json", "markdown"])
def form(request: pytest.FixtureRequest) -> str:
    """Every format."""
    return str(request.param)


def test_a_report_is_zero(here: Here) -> None:
    """From an empty environment, one JSON object, and the rest on stderr."""
    ended = here("analyze", "plaud.ai", "--format", "json", "--depth", "quick")

    assert ended.code == 0
    assert ended.json["decision"] in {"full_report", "short_report"}
    assert ended.json["sample"] is True
    assert ended.err.startswith(SAMPLE)
    assert "Reddit: " in ended.err


@pytest.mark.parametrize(
    ("query", "decision"),
    [
        ("Zorvexolin Q9", "insufficient_data"),
        ("hello there", "clarify"),
        ("", "clarify"),
        ("???", "clarify"),
        ("plaud " * 200, "clarify"),
        ("site:example.org -plaud", "clarify"),
    ],
)
def test_too_little_and_unclear_are_three(here: Here, query: str, decision: str) -> None:
    """One JSON object for each, whatever was asked."""
    ended = here("analyze", query, "--format", "json")

    assert ended.code == 3
    assert ended.json["decision"] == decision
    assert ended.json["explanation_text"]


def test_unjudged_is_three(here: Here, upstream: Sandbox) -> None:
    """No model answers: the items are listed, and that is not an answer."""
    upstream.fault("openai=500")

    ended = here("analyze", "plaud.ai", "--depth", "quick", "--format", "json")

    assert ended.code == 3
    assert ended.json["decision"] == "unjudged"
    assert ended.json["items"]


def test_nobody_to_ask_is_four(here: Here, upstream: Sandbox, form: str) -> None:
    """Every source fails in its own way: nothing is claimed, and it says how to go on."""
    upstream.fault(*SILENT)

    ended = here("analyze", "plaud.ai", "--format", form)

    assert ended.code == 4
    assert "nothing is known" in ended.out
    assert "listenpost doctor" in " ".join(ended.out.split())
    for wrong in ("addresses the question", "product is new", "says nothing about the product"):
        assert wrong not in ended.out
    assert not upstream.requests("openai")
    if form == "json":
        assert ended.json["decision"] == "insufficient_data"
        assert {one["outcome"] for one in ended.json["sources"].values()} == {
            "blocked", "quota_exhausted",
        }  # fmt: skip


def test_a_source_that_was_not_asked_has_no_yield(here: Here, upstream: Sandbox) -> None:
    """Its share is a dash in the terminal and in markdown, not 100 %."""
    upstream.fault(*SILENT)

    text, markdown = here("analyze", "oura"), here("analyze", "oura", "--format", "markdown")

    rows = [line.split() for line in text.out.splitlines() if line.startswith("Reddit  ")]
    assert [row[1:4] for row in rows] == [["0", "0", "-"]]
    blocked = "blocked by a captcha, login wall or 403 page"
    assert f"| Reddit | {blocked} | 0 | 0 | - | once |" in markdown.out


@pytest.mark.parametrize(
    ("fault", "source", "outcome", "code"),
    [
        ("reddit=403html", "reddit", "blocked", 4),
        ("reddit=401", "reddit", "refused", 4),
        ("reddit.search=429", "reddit", "rate_limited", 4),
        ("youtube=search_quota", "youtube", "quota_exhausted", 4),
        ("youtube=500", "youtube", "unreachable", 4),
        ("amazon=captcha", "amazon", "blocked", 4),
    ],
)
def test_a_fetch_that_fails_is_four(
    here: Here, upstream: Sandbox, fault: str, source: str, outcome: str, code: int
) -> None:
    """Each failure is an outcome and one JSON object."""
    upstream.fault(fault)

    ended = here("fetch", source, "plaud.ai", "--format", "json")

    assert (ended.code, ended.json["outcome"]) == (code, outcome)
    assert ended.json["reason"]
    assert f": {OUTCOME_REASONS[Outcome(outcome)]}: " in ended.err


def test_a_fetch_that_finds_something_is_zero(here: Here) -> None:
    """With its items, attempts and gate."""
    ended = here("fetch", "reddit", "plaud.ai", "--format", "json")

    assert (ended.code, ended.json["outcome"]) == (0, "ok")
    assert ended.json["items"]
    assert ended.json["kept"] == sum(one["relevant"] for one in ended.json["attempts"])


def test_a_fetch_that_finds_nothing_is_three(here: Here) -> None:
    """Asked, and nothing was there."""
    ended = here("fetch", "amazon", "Zorvexolin Q9", "--format", "json")

    assert ended.code == 3
    assert ended.json["outcome"] in {"empty", "irrelevant"}
    assert ended.json["items"] == []


def test_a_source_without_a_key_is_four(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not configured is not empty, and names what to set."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")

    fetched = here("fetch", "youtube", "plaud.ai", "--format", "json")
    analyzed = here("analyze", "plaud.ai", "--format", "json")

    assert (fetched.code, fetched.json["outcome"]) == (4, "not_configured")
    assert "`YOUTUBE_API_KEY`" in fetched.json["reason"]
    assert analyzed.code == 4
    assert "Sample" not in fetched.err + analyzed.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("analyze", "oura", "--source", "myspace"), "`reddit`, `youtube`, `amazon`"),
        (("analyze", "oura", "--source", "myspace", "--estimate"), "`reddit`, `youtube`, `amazon`"),
        (("fetch", "myspace", "oura"), "`reddit`, `youtube`, `amazon`"),
        (("fetch", "myspace", "oura", "--estimate"), "`reddit`, `youtube`, `amazon`"),
        (("fetch", "reddit", "hello"), "Say which product"),
        (("analyze", "oura", "--limit", "0"), "--limit"),
        (("analyze", "oura", "--limit", "501"), "--limit"),
        (("analyze", "oura", "--limit", "many"), "--limit"),
        (("analyze", "oura", "--since", "yesterday"), "--since"),
        (("analyze", "oura", "--depth", "abyss"), "--depth"),
        (("analyze", "oura", "--format", "pdf"), "--format"),
        (("fetch", "reddit", "oura", "--format", "csv"), "--format"),
        (("analyze", "oura", "--items", "nowhere.jsonl"), "`nowhere.jsonl` cannot be read"),
        (("analyze",), "Missing argument"),
        (("fetch", "reddit"), "Missing argument"),
        (("analyse", "oura"), "No such command"),
    ],
)
def test_what_makes_no_sense_is_two(here: Here, words: tuple[str, ...], said: str) -> None:
    """It is said on stderr, and stdout stays empty."""
    ended = here(*words, *(("--format", "json") if "--format" not in words else ()))

    assert (ended.code, ended.out) == (2, "")
    assert said in " ".join(ended.err.replace("│", " ").split())


@pytest.mark.parametrize("limit", ["1", "500"])
def test_limits_have_room(here: Here, limit: str) -> None:
    """The smallest and the largest are taken."""
    ended = here("fetch", "amazon", "oura", "--limit", limit, "--format", "json")

    assert ended.code in {0, 3}
    assert ended.json["attempts"][0]["limit"] == int(limit)


def test_sources_can_be_chosen(here: Here) -> None:
    """`--source` is repeatable, in the order given, each once."""
    words = ("--source", "amazon", "--source", "reddit", "--source", "amazon")
    ended = here("analyze", "oura", "--depth", "quick", "--format", "json", *words)

    assert list(ended.json["sources"]) == ["amazon", "reddit"]


def test_the_window_holds_for_dated_items(here: Here) -> None:
    """`--since` reaches the source and is applied to what comes back."""
    ended = here("fetch", "reddit", "plaud.ai", "--since", "day", "--format", "json")
    older = here("fetch", "reddit", "plaud.ai", "--since", "all", "--format", "json")

    assert ended.json["fetched"] < older.json["fetched"]
