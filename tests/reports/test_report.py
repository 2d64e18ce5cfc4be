"""The JSON of `analyze` and `fetch`, field by field."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from api.core.domain import Attempt, Grade, Outcome, Stage, Verdict
from api.core.items import Gathered, Item
from api.reports.composition import (
    Origin,
    assessed_of,
    clarified,
    coverage,
    dropped_item,
    fetched,
    kept_item,
    source_report,
)
from api.reports.draft_rules import DraftFlaws, DraftText
from api.reports.report import Fetched, Finding, Quote, Report
from api.services.product import Ask, analyze, fetch
from tests.services.fakes import FakeJudge, FakeSource
from tests.services.kit import Author, Grading, assessed, kit, plain, post, posts, said

ANALYZE = set(
    "id version query rewritten_queries depth decision decision_rationale disclaimer "
    "explanation_text total_scored total_survived quality_notes grading topic summary findings "
    "figures quotes sources coverage suggestions items dropped sample cost timings_ms trace_id "
    "created_at".split()
)
FETCH = set(
    "query source outcome reason gate attempts fetched kept yield_ratio refetched refetch_gain "
    "first capped upstream_calls items dropped sample trace_id".split()
)
ITEM = set("key id source title body url created_at engagement place comments".split())
DROPPED = {"key", "title", "url", "reason"}
DECIDED = set("verdict score explanation relevance defaulted low_relevance disputed rank dropped_by".split())
MORE: dict[str, set[str]] = {
    "analyze": {"about", "support"},
    "fetch": {"retry_at", "notes"},
    "decided": {"judge", "probability", "sentiment", "aspects"},
    "item": {"places", "notes"},
    "dropped": {"place"},
    "alone": {"usage"},
}
"""What we add to the interface, and explain in `docs/json.md`."""
NOON = datetime(2026, 9, 27, 12, 0, tzinfo=timezone(timedelta(hours=2)))


async def answers() -> tuple[dict[str, Any], dict[str, Any]]:
    """An analysis with every kind of entry, and a fetch at the same depth."""
    page = "https://www.example.org/mug"
    found = [post(0, link=page), *posts(5, start=1), post(6, link=page)]
    weak = {"5": Grade(1, "about tea")}
    quotes = (
        Quote("warm", "reddit:1", "https://www.example.org/"),
        Quote("mine too", "reddit:1", "https://www.example.org/c", "c1"),
    )
    draft = DraftText("t", "s", (Finding("f", "praise", ("reddit:1",)),), quotes, (), DraftFlaws())
    judge = FakeJudge([str(number) for number in (0, 1, 2, 3, 5, 6)])
    product = kit(FakeSource(found), judge=judge, grader=Grading(weak), writer=Author(draft=draft))
    heard = await fetch(product, "reddit", Ask("ember mug", "standard"))
    return plain(await analyze(product, Ask("ember mug"))), plain(heard.fetched)


async def test_analyze_has_exactly_the_fields_of_the_interface() -> None:
    """
    Nothing is missing, and what is added is listed.
    """
    answer, _ = await answers()

    assert set(answer) == ANALYZE | MORE["analyze"] | {"since"}
    assert set(answer["sources"]["reddit"]) == (FETCH - {"items"}) | MORE["fetch"]
    assert set(answer["cost"]) == {"usd", "tokens", "upstream_calls"}
    assert set(answer["findings"][0]) == {"text", "kind", "cites", "evidence", "support"}
    assert [set(quote) for quote in answer["quotes"]] == [
        {"text", "key", "url"}, {"text", "key", "url", "comment_id"},
    ]  # fmt: skip
    assert {one["dropped_by"] for one in answer["dropped"]} == {"gate", "cutoff", "duplicate"}
    assert json.loads(json.dumps(answer)) == answer


async def test_fetch_has_exactly_the_fields_of_the_interface() -> None:
    """
    Also at a depth that grades and ranks.
    """
    _, answer = await answers()

    assert set(answer) == FETCH | MORE["fetch"] | MORE["alone"]
    assert set(answer["gate"]) == {"status", "reason", "model"}
    assert set(answer["usage"]) == {"requests", "input_tokens", "output_tokens", "usd"}
    assert set(answer["attempts"][0]) == {
        "limit", "fetched", "new", "relevant", "requests", "status", "reason",
    }  # fmt: skip
    assert json.loads(json.dumps(answer)) == answer


async def test_every_entry_says_what_was_decided_about_it() -> None:
    """
    Kept and dropped, in both objects.
    """
    for answer in await answers():
        assert answer["items"]
        assert answer["dropped"]
        for item in answer["items"]:
            assert set(item) - {"link"} == ITEM | DECIDED | MORE["decided"] | MORE["item"]
            assert set(item["comments"][0]) == {"id", "body", "url", "created_at", "engagement"}
        for out in answer["dropped"]:
            fields = DROPPED | DECIDED | MORE["decided"] | MORE["dropped"]
            assert set(out) - {"snippet", "created_at"} == fields


def test_a_dropped_item_keeps_how_it_begins() -> None:
    """At most 200 characters on one line, with whoever a licence names; none of nobody's words."""
    long = post(1, body="It leaks.\n" + "word " * 100, credit="Ada", created_at=NOON)
    out = dropped_item(replace(assessed(long), dropped_by="gate", reason="r"))
    assert out.snippet.startswith("It leaks. word word")
    assert out.snippet.endswith("word…")
    assert 190 < len(out.snippet) <= 200
    assert (out.credit, out.created_at, out.place) == ("Ada", NOON, long.place)

    short = dropped_item(assessed(post(1, body="It leaks.")))
    unfit = dropped_item(replace(assessed(long), dropped_by="unfit", reason="removed"))
    assert (short.snippet, unfit.snippet) == ("It leaks.", "")


def test_a_snippet_stands_once_in_an_answer() -> None:
    """In the list of all that was dropped, not again under its source."""
    entry = replace(assessed(post(1, body="It leaks.")), dropped_by="gate", reason="r")
    gathered = Gathered("reddit", "mug", Outcome.IRRELEVANT, dropped=(entry,))
    origin = Origin("", sample=False, trace_id=None)
    assert fetched(gathered, (), (entry,), origin).dropped[0].snippet == "It leaks."
    assert source_report(gathered, origin).dropped[0].snippet == ""


def names(value: Any) -> Iterator[str]:
    """Every field name in an answer, without what its figures and measures are called."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield name
            if name not in {"figures", "engagement", "sources"}:
                yield from names(below)
    elif isinstance(value, list):
        for below in value:
            yield from names(below)


async def test_the_page_explains_every_field(root: Path) -> None:
    """`docs/json.md` names each field of both objects in backticks."""
    page = (root / "docs" / "json.md").read_text("utf-8")
    explained = set(re.findall(r"`(\w+)`", page))

    for answer in await answers():
        assert set(names(answer)) - explained == set()
    assert set((await answers())[0]["figures"]) - explained == set()


async def test_items_and_counts_agree() -> None:
    """
    Everything fetched is kept or dropped once, and ranks run from 1.
    """
    answer, _ = await answers()
    keys = [one["key"] for one in (*answer["items"], *answer["dropped"])]

    assert len(keys) == len(set(keys)) == answer["sources"]["reddit"]["fetched"] == 7
    assert [item["rank"] for item in answer["items"]] == [1, 2, 3, 4]
    assert (answer["total_scored"], answer["total_survived"]) == (5, 4)


def test_clarify_has_the_same_fields_and_encodes_anything() -> None:
    """
    But how far back: nothing asked, nothing spent, and no lone surrogate in it.
    """
    origin = Origin("1", sample=True, trace_id="t")
    answer = plain(clarified("hey \ud83d", Ask("hey", about="\x1b[1mthe app").question, "quick", "Name it.", origin))

    assert set(answer) == ANALYZE | MORE["analyze"]
    assert (answer["query"], answer["about"]) == ("hey \ufffd", "the app")
    assert (answer["decision"], answer["explanation_text"]) == ("clarify", "Name it.")
    assert answer["cost"] == {"usd": 0.0, "tokens": 0, "upstream_calls": 0}
    assert (answer["sample"], answer["trace_id"], answer["sources"]) == (True, "t", {})
    json.dumps(answer, ensure_ascii=False).encode("utf-8")


def test_an_item_is_told_with_everything_decided() -> None:
    """
    Times are UTC, unknown ones null; a grade brings its words along.
    """
    comment = said("Mine too", "c1", 3, created_at=NOON, url="https://www.example.org/c")
    one = post(
        0, body="b", created_at=NOON, engagement={"votes": 3, "views": None}, comments=(comment,),
        places=("r/a", "r/b"), notes=("comments are off",),
    )  # fmt: skip
    grade = Grade(4, "why", sentiment=-1, aspects=("lid",))
    verdict = Verdict(True, "local-1", 0.9, disputed=True)

    told = plain(kept_item(replace(assessed(one, grade=grade, relevance=0.75, rank=2), verdict=verdict)))

    assert told == {
        "key": "reddit:0", "id": "0", "source": "reddit", "title": one.title, "body": "b",
        "url": one.url, "created_at": "2026-09-27T10:00:00Z",
        "engagement": {"votes": 3, "views": None}, "place": "r/a", "places": ["r/a", "r/b"],
        "comments": [{
            "id": "c1", "body": "Mine too", "url": "https://www.example.org/c",
            "created_at": "2026-09-27T10:00:00Z", "engagement": {"votes": 3},
        }],
        "notes": ["comments are off"],
        "verdict": True, "judge": "local-1", "probability": 0.9, "score": 4, "explanation": "why",
        "sentiment": -1, "aspects": ["lid"], "relevance": 0.75, "defaulted": False,
        "low_relevance": False, "disputed": True, "rank": 2, "dropped_by": None,
    }  # fmt: skip


@pytest.mark.parametrize("grade", [None, Grade(4, "why", False, -1, ("lid",))])
def test_a_kept_item_leads_back_to_what_was_assessed(grade: Grade | None) -> None:
    """
    All but the authors, which are not published.
    """
    comment = said("Mine too", "c1", 3, created_at=NOON, url="https://www.example.org/c")
    item = post(
        0, body="b", created_at=NOON, engagement={"votes": 3, "views": None}, comments=(comment,),
        places=("r/a", "r/b"), notes=("comments are off",), thread="reddit:t", link="x",
        crosspost_parent="reddit:1", credit="Ada",
    )  # fmt: skip
    verdict = Verdict(True, "local-1", 0.9, disputed=True)
    signed = item.edited(author="ann", comments=(comment.edited(author="bob"),))
    entry = replace(assessed(signed, grade=grade, relevance=0.75, rank=2), verdict=verdict)

    kept = kept_item(entry)

    assert assessed_of(kept) == replace(entry, item=kept)
    assert {name: getattr(kept, name) for name in Item.model_fields} == dict(item)
    assert not {"author", "unfit"} & set(names(plain(kept)))


def test_what_nobody_judged_has_no_verdict() -> None:
    """
    An item that passed because the gate failed is not told as relevant.
    """
    told = plain(kept_item(replace(assessed(post(0)), verdict=Verdict(True))))

    assert (told["verdict"], told["judge"], told["score"], told["created_at"]) == (None,) * 4


@pytest.mark.parametrize(
    ("stage", "reason", "grade", "told"),
    [
        ("gate", "the gate judged it off topic", None, "the gate judged it off topic"),
        ("cutoff", "score 2 of 5, below the cutoff 3", Grade(2, "about tea"),
         "score 2 of 5, below the cutoff 3: about tea"),
        ("cutoff", "score 2 of 5, below it", Grade(2), "score 2 of 5, below it"),
        ("floor", "relevance 0.50, below the threshold 0.60", Grade(3, "half"),
         "relevance 0.50, below the threshold 0.60"),
        ("duplicate", "copy of reddit:0", Grade(5, "good"), "copy of reddit:0"),
    ],
)  # fmt: skip
def test_a_dropped_item_says_why(stage: Stage, reason: str, grade: Grade | None, told: str) -> None:
    """The gate, the grade with its explanation, the floor, or the key it is a copy of."""
    one = assessed(post(1), grade=grade, dropped_by=stage, reason=reason)

    entry = plain(dropped_item(one))

    assert (entry["key"], entry["reason"], entry["dropped_by"]) == ("reddit:1", told, stage)
    assert entry["rank"] is None


async def test_dropped_items_of_an_analysis_say_why_in_words() -> None:
    """
    From the steps that really dropped them.
    """
    answer, _ = await answers()

    assert {one["dropped_by"]: one["reason"] for one in answer["dropped"]} == {
        "cutoff": "score 1 of 5, below the cutoff 3: about tea",
        "duplicate": f"copy of {_twin(answer)}",
        "gate": "judged off topic by fake-1",
    }


def _twin(answer: dict[str, Any]) -> str:
    """Which of the two copies stayed."""
    kept = [str(one["key"]) for one in answer["items"]]
    return next(key for key in kept if key in {"reddit:0", "reddit:6"})


def test_a_source_that_could_not_be_asked_is_told_whole() -> None:
    """
    Outcome, reason in words, and when to ask again.
    """
    gathered = Gathered(
        "youtube", "mug", Outcome.QUOTA_EXHAUSTED, (Attempt(5, 0, 0, 0, 1, "degraded", "quota"),),
        reason="youtube: quota", retry_at=datetime(2026, 9, 28, 7, 0, tzinfo=UTC), upstream_calls=1,
        notes=("n",),
    )  # fmt: skip

    told = plain(fetched(gathered, (), (), Origin("", sample=False, trace_id=None)))

    assert (told["outcome"], told["reason"]) == ("quota_exhausted", "youtube: quota")
    assert told["retry_at"] == "2026-09-28T07:00:00Z"
    assert told["attempts"] == [
        {"limit": 5, "fetched": 0, "new": 0, "relevant": 0, "requests": 1, "status": "degraded",
         "reason": "quota"}
    ]  # fmt: skip
    assert (told["fetched"], told["kept"], told["items"], told["notes"]) == (0, 0, [], ["n"])
    assert told["gate"] == {"status": "skipped", "reason": None, "model": None}


def test_coverage_is_one_sentence_per_source() -> None:
    """
    Without any source it says so.
    """
    kept = tuple(assessed(one) for one in posts(1))
    found = (
        Gathered("reddit", "mug", Outcome.OK, kept=kept, status="ok", title="Reddit"),
        Gathered("amazon", "mug", Outcome.BLOCKED, title="Amazon"),
    )

    assert coverage(found) == (
        "Reddit: 1 of 1 results were about it. Amazon could not be asked: blocked by a captcha, login wall or 403 page."
    )
    assert coverage(()) == "No source was asked."


async def test_an_unknown_price_is_not_zero() -> None:
    """
    B101: one call without a price makes the sum unknown; tokens are counted all the same.
    """
    answer, _ = await answers()
    dear = plain(await analyze(kit(FakeSource(posts(4)), grader=Grading()), Ask("ember mug")))

    assert answer["cost"]["usd"] == pytest.approx(0.51 + 0.5)
    assert dear["cost"]["usd"] == pytest.approx(0.51)
    assert dear["cost"]["tokens"] == 11 + 110 + 1100
    assert dear["cost"]["upstream_calls"] == 5


def test_an_item_needs_nothing_but_a_title() -> None:
    """
    The rest is empty or null, never missing.
    """
    told = plain(kept_item(assessed(Item(key="x:1", id="1", source="x", title="T"))))

    assert (told["body"], told["url"], told["place"], told["comments"]) == ("", "", None, [])


@pytest.mark.parametrize("name", ["full", "insufficient", "clarify", "fetch", "fetch_empty"])
def test_a_stored_answer_is_read_and_written_to_the_letter(root: Path, name: str) -> None:
    """
    Every key in its order, every null and every absent key, as `analyze` and `fetch` gave them.
    """
    text = (root / "tests" / "data" / "answers" / f"{name}.json").read_text("utf-8")
    shape = Fetched if name.startswith("fetch") else Report

    answer = shape.model_validate_json(text)

    assert json.dumps(plain(answer)) == json.dumps(json.loads(text))
    assert shape.model_validate(answer.model_dump()) == answer


def test_the_schema_gives_no_default_where_a_key_is_left_out() -> None:
    """
    A key that is absent is not null.
    """
    quote = Report.model_json_schema()["$defs"]["Quote"]["properties"]

    assert "default" not in quote["comment_id"]


def test_fields_of_a_newer_program_are_carried_along(root: Path) -> None:
    """
    Unknown ones pass through unread; within findings and quotes they are left out.
    """
    document = json.loads((root / "tests/data/answers/full.json").read_text("utf-8"))
    document["mood"] = {"a": [1]}
    document["items"][0]["mood"] = document["sources"]["reddit"]["gate"]["mood"] = "b"
    newer = json.loads(json.dumps(document))
    newer["findings"][0]["mood"] = newer["quotes"][0]["mood"] = "c"

    assert plain(Report.model_validate(newer)) == document
