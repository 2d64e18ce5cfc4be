"""`doctor`: what each upstream answers, how to mend it, and no key in any of it."""

from __future__ import annotations

from typing import Any

import pytest

from api.interfaces.cli.server_commands import words_of_waiting
from api.sandbox.server import Sandbox
from api.settings import ModelSettings
from tests.interfaces.command import Here

NAMES = ["reddit", "youtube", "amazon", "model", "langfuse"]
FIELDS = {"upstream", "configured", "outcome", "detail", "quota_left", "fix"}
KEYS = ("REDDIT_CLIENT_SECRET", "YOUTUBE_API_KEY", "OPENAI_API_KEY", "LANGFUSE_SECRET_KEY")


def rows(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each upstream's row, in the shape that all have."""
    assert [row["upstream"] for row in report["upstreams"]] == NAMES
    assert all(set(row) == FIELDS for row in report["upstreams"])
    real = report["mode"] == "live"
    assert all((real and row["outcome"] == "ok") == (row["fix"] == "") for row in report["upstreams"])
    return {row["upstream"]: row for row in report["upstreams"]}


def test_everything_answers_in_the_sandbox(here: Here) -> None:
    """From an empty environment: all stand-ins, and what would make each of them real."""
    text, told = here("doctor"), here("doctor", "--format", "json")

    assert (text.code, told.code) == (0, 0)
    assert told.json["mode"] == "sandbox"
    assert {row["outcome"] for row in rows(told.json).values()} == {"ok"}
    assert not any(row["configured"] for row in told.json["upstreams"])
    assert rows(told.json)["model"]["fix"] == "set `OPENAI_API_KEY`, see docs/settings.md"
    assert text.out.startswith("sample data: ")
    assert "to be real: set `REDDIT_CLIENT_ID` and `REDDIT_CLIENT_SECRET`" in text.out
    assert text.out.endswith("without it the real places are asked.\n")
    assert text.err == told.err == ""


def test_who_waits_is_told_for_what_and_how_long() -> None:
    """On stderr after ten seconds: a server of one's own may take minutes."""
    assert words_of_waiting(ModelSettings(scoring_timeout=200, report_timeout=300)) == (
        "waiting for the model server: four questions of up to 200 s (`LISTENPOST_SCORING_TIMEOUT`), "
        "then a report in up to three forms, 300 s each (`LISTENPOST_REPORT_TIMEOUT`)"
    )


def test_a_key_that_the_sample_world_does_not_use_is_named(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model's key alone leaves the world made up, and is not spent on it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-mine")
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    text, told = here("doctor"), here("doctor", "--format", "json")

    (model,) = [row for row in told.json["upstreams"] if row["upstream"] == "model"]
    assert (model["configured"], model["fix"]) == (True, "")
    assert "though `OPENAI_API_KEY` is set" in model["detail"]
    assert "`LISTENPOST_MODE=sandbox` is set; without it" in text.out
    assert "sk-of-mine" not in text.out


def test_nothing_configured_says_what_to_set(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Live without any key: exit code 4, and each fix names its variables."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    ended = here("doctor", "--format", "json")

    found = rows(ended.json)
    assert ended.code == 4
    assert {row["outcome"] for row in found.values()} == {"not_configured"}
    assert not any(row["configured"] for row in found.values())
    assert found["reddit"]["fix"].startswith("set `REDDIT_CLIENT_ID` and `REDDIT_CLIENT_SECRET`")
    assert found["model"]["fix"].startswith("set `OPENAI_API_KEY`")
    assert "the local judge answers" in found["model"]["detail"]


def test_a_setting_that_is_there_but_wrong_is_to_be_corrected(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is missing, so nothing is to be set."""
    monkeypatch.setenv("LISTENPOST_MODE", "live")
    monkeypatch.setenv("LISTENPOST_SOURCES", "github,amazon")
    monkeypatch.setenv("LISTENPOST_GITHUB_TOKEN", "t\u00f6ken")
    monkeypatch.setenv("AMAZON_PROVIDER", "omkar")
    monkeypatch.setenv("AMAZON_API_KEY", "k\u00e9y")
    told = here("doctor", "--format", "json").json
    found = {row["upstream"]: row for row in told["upstreams"]}

    assert found["github"]["fix"] == "correct what is named, see docs/sources/github.md"
    assert "`LISTENPOST_GITHUB_TOKEN` holds characters" in found["github"]["detail"]
    assert found["amazon"]["fix"] == "correct what is named, see docs/sources/amazon.md"


def test_a_live_upstream_is_asked_for_as_little_as_possible(here: Here, upstream: Sandbox) -> None:
    """One small request each, and never a YouTube search."""
    ended = here("doctor")

    assert ended.code == 0
    assert ended.out.startswith("mode: live\n")
    assert "sample" not in ended.out
    assert not upstream.requests("youtube", "search")
    words = " ".join(ended.out.split())
    assert "judged four items in two orders, 8 of 8 right; graded an item; checked two sentences, both right" in words
    assert "drafted a report, asked by tool call" in words
    kinds = [request.endpoint for request in upstream.requests("openai")]
    assert kinds == ["judge", "judge", "grades", "support", "agent"]
    assert len(upstream.requests("youtube")) == 1


@pytest.mark.parametrize(
    ("fault", "name", "outcome", "fix"),
    [
        ("reddit=401", "reddit", "refused", "check `REDDIT_CLIENT_ID` and"),
        ("reddit=403html", "reddit", "blocked", "ask less often"),
        ("reddit.search=429", "reddit", "rate_limited", "wait"),
        ("youtube=quota", "youtube", "quota_exhausted", "wait for the reset"),
        ("youtube=500", "youtube", "unreachable", "`YOUTUBE_URL`"),
        ("openai=401", "model", "refused", "check `OPENAI_API_KEY`"),
        ("openai=500", "model", "unreachable", "`OPENAI_BASE_URL`"),
    ],
)
def test_each_failure_is_an_outcome_with_a_remedy(
    here: Here, upstream: Sandbox, fault: str, name: str, outcome: str, fix: str
) -> None:
    """The others stay well, and what failed says how to mend it."""
    upstream.fault(fault)
    ended = here("doctor", "--format", "json")

    found = rows(ended.json)
    assert ended.code == 0
    assert (found[name]["outcome"], found[name]["configured"]) == (outcome, True)
    assert fix in found[name]["fix"]
    assert {row["outcome"] for other, row in found.items() if other != name} == {"ok"}
    assert "doctor" not in found[name]["fix"] + found[name]["detail"]


def test_only_sources_make_it_zero(here: Here, upstream: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model and a Langfuse that answer are no source to ask."""
    upstream.fault("reddit=401", "youtube=quota")
    monkeypatch.setenv("AMAZON_URL", "http://127.0.0.1:1")

    ended = here("doctor", "--format", "json")
    assert ended.code == 4
    found = rows(ended.json)
    assert found["model"]["outcome"] == "ok"
    assert found["amazon"]["outcome"] == "unreachable"
    assert "`AMAZON_URL`" in found["amazon"]["fix"]


def test_a_fix_stands_below_its_upstream(here: Here, upstream: Sandbox) -> None:
    """What a person reads: name, outcome, detail, and the remedy indented."""
    upstream.fault("youtube=quota")
    lines = here("doctor").out.splitlines()

    at = next(number for number, line in enumerate(lines) if line.startswith("YouTube"))
    assert lines[at].split()[:2] == ["YouTube", "quota_exhausted"]
    assert lines[at + 1] == f"{'':<10} fix: wait for the reset, or use the key of another project"
    assert not any(line != line.rstrip() for line in lines)


def test_no_key_is_printed(here: Here, upstream: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither when all is well nor when everything is refused."""
    for name in KEYS:
        monkeypatch.setenv(name, f"sekret-{name.lower()}")
    said = [here("doctor"), here("doctor", "--format", "json")]
    upstream.fault("reddit=401", "youtube=500", "openai=401", "langfuse=500")
    said += [here("doctor"), here("doctor", "--format", "json")]

    assert not any("sekret" in one.out + one.err for one in said)
    assert said[-1].json["upstreams"][3]["outcome"] == "refused"


def test_prompts_that_are_not_used_are_named(here: Here, upstream: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `LISTENPOST_PROMPTS=langfuse`: which, why, and what is used."""
    monkeypatch.setenv("LISTENPOST_PROMPTS", "langfuse")
    ended = here("doctor", "--format", "json")

    langfuse = rows(ended.json)["langfuse"]
    assert langfuse["outcome"] == "ok"
    assert "prompts labelled `production`: none; `listenpost/relevance`, " in langfuse["detail"]
    assert langfuse["detail"].endswith("no version has the label `production`; the package's file is used")


def test_prompts_of_langfuse_want_its_keys(here: Here, upstream: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """The missing one is named, by every command that would ask a model."""
    monkeypatch.setenv("LISTENPOST_PROMPTS", "langfuse")
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    ended = here("analyze", "plaud note")

    assert ended.code == 2
    assert "`LISTENPOST_PROMPTS=langfuse` needs `LANGFUSE_SECRET_KEY`" in ended.err
