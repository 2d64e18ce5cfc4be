"""A run in words."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from typing import Any

import pytest

from api.core.domain import Outcome
from api.errors import UsageError
from api.features.watches.notification import Message, digest_message, run_message, run_text, signature, trial_message
from api.features.watches.watch import Target, check_watch, name_of_query, new_watch, target_of
from api.features.watches.watch_run import Gap, NewQuestion
from tests.features.comparisons.made import PLACES
from tests.features.watches.example_run import CHANGE, POST, new_post, run
from tests.features.watches.made import MONDAY, WATCH

SLACK = Target("slack", "https://hooks.slack.com/services/T/B/x")
GAP = Gap(source="lemmy", outcome=Outcome.TIMED_OUT, reason=None)


def text(**more: Any) -> str:
    """Of a run."""
    return run_text(WATCH, run(**more), PLACES)


def test_what_changed() -> None:
    """Unusual first, then each new post with its words, then of what nothing is known."""
    undated = POST.model_copy(update={"created_at": None, "title": " ", "passage": "", "url": ""})
    assert text(new=(POST, undated), unusual=(CHANGE,), new_aspects=("noise",), gaps=(GAP,)).splitlines() == [
        "Ember: 2 new posts and 1 unusual change since 2026-11-02 08:00Z",
        "Unusual: Reddit: 20 posts in this time.",
        "Mentioned for the first time: noise.",
        "- My Ember <!channel> (Reddit, 2026-11-02)",
        "  “I hate the battery.”",
        "  https://r.example/1",
        "- reddit:1 (Reddit)",
        "No answer, so nothing is known of: Lemmy (no answer in time).",
        "Report: r1",
    ]


def test_question_with_where_it_is_asked() -> None:
    """In its words, and how many others ask it; what is made up cannot be opened."""
    question = NewQuestion(text="Does it\nfloat?", cites=("reddit:1", "reddit:2"))
    asked = {"new": (POST,), "questions": (question,)}
    words = "Asked for the first time: “Does it float?” (Reddit, 2026-11-02, and 1 other)"
    assert text(**asked).splitlines()[1:4] == [
        words, "  https://r.example/1", "- My Ember <!channel> (Reddit, 2026-11-02)",
    ]  # fmt: skip
    once = {**asked, "questions": (question.model_copy(update={"cites": ("reddit:1",)}),)}
    lines = text(**once, sample=True).splitlines()
    assert lines[1] == words.replace(", and 1 other", "")
    assert not lines[2].startswith("  ")


def test_many_posts_are_counted() -> None:
    """Ten are shown."""
    lines = text(new=(POST,) * 12).splitlines()
    assert lines[0] == "Ember: 12 new posts since 2026-11-02 08:00Z"
    assert lines[-2] == "- and 2 more"
    assert "https" not in text(new=(POST,), sample=True)
    assert text(unusual=(CHANGE,), report_id=None).splitlines()[0].startswith("Ember: 1 unusual")


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            {"state": "nothing", "looked_at": 9},
            "Ember: no new posts and nothing unusual since 2026-11-02 08:00Z",
        ),
        ({"state": "nothing"}, "Ember: no new posts since 2026-11-02 08:00Z"),  # it is too early
        (
            {"state": "nothing", "gaps": (GAP,), "sample": True},
            "Ember (made-up sample data): no new posts since 2026-11-02 08:00Z; no answer: Lemmy (no answer in time)",
        ),
        ({"state": "failed", "reason": "no\nmodel"}, None),
        ({"state": "failed", "counts": None, "reason": "a\nb"}, "Ember: the run failed: a b"),
        ({"state": "failed", "counts": None}, "Ember: the run failed: unknown reason"),
        (
            {"state": "not_asked", "counts": None, "gaps": (GAP,)},
            "Ember: no source answered: unknown reason",
        ),
        (
            {"state": "baseline", "report_id": None},
            "Ember: the first run found 1 post written since 2026-11-02 08:00Z or without a date; "
            "later runs report new posts",
        ),
    ],
)
def test_what_is_one_line(more: dict[str, Any], line: str | None) -> None:
    """Nothing new, nothing heard, a failure."""
    assert text(**more) == (line or "Ember: the run failed: no model")


def test_posts_behind_a_change_come_first() -> None:
    """However many others are new."""
    others = POST.model_copy(update={"key": "reddit:2", "title": "Another"})
    lines = text(new=(*[others] * 12, POST), unusual=(CHANGE,)).splitlines()
    assert lines[2].startswith("- My Ember")
    assert lines[5].startswith("- Another")


def test_only_complaints() -> None:
    """Other posts may be new, so that is not denied."""
    picky = replace(WATCH, only="complaints")
    assert run_text(picky, run(state="nothing", looked_at=1), PLACES) == (
        "Ember: no new complaints and nothing unusual since 2026-11-02 08:00Z"
    )
    assert run_text(picky, run(new=(POST,)), PLACES).startswith("Ember: 1 new complaint since ")


def test_program_gets_everything() -> None:
    """With the id of the run, and no word on who else was told."""
    message = run_message(WATCH, run(new=(POST,) * 12), PLACES)
    document = json.loads(message.body)
    assert (document["id"], document["type"], document["watch"]["id"]) == (
        "run1",
        "watch.run",
        "w1",
    )
    assert len(document["run"]["new"]) == 12
    assert not {"deliveries", "news"} & set(document["run"])
    assert "secret" not in message.body.decode()
    trial = json.loads(trial_message(WATCH, "t1").body)
    assert (trial["type"], trial["id"]) == ("watch.test", "t1")


def test_people_get_a_link_for_each_post_where_the_server_has_an_address() -> None:
    """Below each post, in Slack and mail alone, and the same whenever the run is sent again."""
    message = run_message(WATCH, run(new=(POST,)), PLACES)
    again = run_message(WATCH, run(new=(POST,)), PLACES)
    line = next(line for line in message.text_for("https://l.example").splitlines() if "corrections" in line)

    assert line.startswith("  Star, mark as read, not about it: https://l.example/corrections/")
    assert "item=reddit%3A1&until=" in line
    assert line in again.text_for("https://l.example")
    assert "corrections" in json.loads(message.for_chat(SLACK, "https://l.example"))["text"]
    assert message.text_for("") == message.text
    assert "corrections" not in message.text + message.body.decode() + message.for_chat(SLACK).decode()


def test_a_digest_has_the_link_of_each_post_in_its_report() -> None:
    """Of posts without a report there is none; the same runs for another receiver are another message."""
    streamed = run(id="run2", report_id=None, new=(new_post(2),), as_it_happens=True, more=70, counts=None)
    runs = [run(new=(POST,), unusual=(CHANGE,)), streamed]
    message, other = (digest_message(WATCH, runs, receiver, PLACES) for receiver in "ab")
    lines = message.text_for("https://l.example").splitlines()
    assert lines[0] == "Ember: 72 new posts and 1 unusual change since 2026-11-02 08:00Z"
    assert [line.partition("?")[0] for line in lines if "corrections" in line] == [
        "  Star, mark as read, not about it: https://l.example/corrections/w1/r1"
    ]
    assert "- and 42 more, all in the inbox" in lines
    assert message.run_id != other.run_id
    assert message == digest_message(WATCH, runs, "a", PLACES)


def test_receivers_are_not_told_what_the_settings_lack() -> None:
    """The terminal names the setting; webhooks, mails and feeds go to people outside."""
    lacking = Gap(source="reddit", outcome=Outcome.NOT_CONFIGURED, reason="set `REDDIT_CLIENT_ID`")
    heard = run(state="not_asked", reason="reddit: set `REDDIT_CLIENT_ID`", gaps=(lacking, GAP))

    outside = run_message(WATCH, heard, PLACES)

    assert "REDDIT_CLIENT_ID" in run_text(WATCH, heard, PLACES)
    assert "REDDIT_CLIENT_ID" not in outside.body.decode() + outside.text
    assert "a setting is missing or wrong" in outside.text
    assert [gap["reason"] for gap in json.loads(outside.body)["run"]["gaps"]] == ["not configured", None]


def test_no_stranger_commands_slack() -> None:
    """`<!channel>` calls nobody."""
    slack = json.loads(Message("run1", "a <!channel> & b", b"").for_chat(SLACK))
    assert slack == {"text": "a &lt;!channel&gt; &amp; b"}


def test_signature() -> None:
    """As a receiver computes it."""
    digest = hmac.new(b"secret", b"1700000000.{}", hashlib.sha256).hexdigest()
    assert signature("secret", 1_700_000_000, b"{}") == f"t=1700000000,v1={digest}"


def test_targets() -> None:
    """Where it goes, without what may be secret."""
    shown = {
        "https://a.example/T/secret?key=x": "webhook:a.example",
        "slack:https://hooks.slack.example/secret": "slack:hooks.slack.example",
        " file:/tmp/x.jsonl": "file:/tmp/x.jsonl",
        "MAILTO:ann.b+mug@example.org ": "mail:ann.b+mug@example.org",
    }
    for words, short in shown.items():
        target = target_of(words, files=True)
        assert target.shown == short
        assert "secret" not in repr(target)
    for words in (
        "ftp://a.example", "slack:nothing", "file:", "https://ann:pw@a.example/", "mailto:ann",
        "mailto:a@b.example,c@d.example", "mailto:a@b.example?bcc=c@d.example", "mailto:a@b.c\nx",
        "mailto:Ann <a@b.example>", "mailto:ä@b.example", "mailto:%0a@b.example",
        "mailto:@b.example", "https://[::1", "https://a.example:65536/", "slack:https://[x]/ only complaints",
        f"mailto:{'x' * 65}@b.example", f"mailto:a@{'b.' * 130}example", "mailto:a@b..example",
    ):  # fmt: skip
        with pytest.raises(UsageError, match="or `file:PATH`"):
            target_of(words, files=True)
    with pytest.raises(UsageError, match=r"`mailto:ann@example.org`, and"):
        target_of("file:/etc/passwd", files=False)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"name": ""}, "one line of 1 to 100"),
        ({"name": "a\nb"}, "one line of 1 to 100"),
        ({"name": "x" * 101}, "one line of 1 to 100"),
        ({"query": "   "}, "Nothing was asked"),
        ({"every": "never"}, "is no schedule"),
        ({"zone": "Mars"}, "no time zone"),
        ({"notify": (Target("file", "x"),) * 6}, "has 5 receivers at most, not 6"),
    ],
)
def test_watch_that_could_never_run(more: dict[str, Any], words: str) -> None:
    """It is refused."""
    check_watch(WATCH)
    with pytest.raises(UsageError, match=words):
        check_watch(replace(WATCH, **more))
    assert name_of_query("a\n" + "b" * 200) == "a " + "b" * 98


def test_new_watch_is_due_at_once() -> None:
    """By a name, an id and a secret of its own."""
    first, second = (new_watch("local", "plaud.ai", "hourly", MONDAY) for _ in range(2))
    assert (first.name, first.due_at, first.began_at) == ("plaud.ai", MONDAY, None)
    assert first.id != second.id
    assert first.secret != second.secret
    assert len(first.secret) > 32
