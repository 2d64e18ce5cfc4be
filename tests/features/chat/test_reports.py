"""A session over a stored report."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from api.core.domain import Outcome
from api.errors import NotFound, UsageError
from api.features.analyses.analysis_job import stored_report
from api.features.analyses.store_ports import StoredAnalysis
from api.features.chat.chat_agent import Chat
from api.features.chat.session import EXHIBITS
from api.reports.report import Finding, Passage, Report
from api.services.product import Ask, Product, analyze
from api.settings import ChatSettings
from tests.services.fakes import FakeSource
from tests.services.kit import NOBODY, Grading, kit, posts
from tests.services.shelf import Shelf


def product(count: int = 6, **fields: Any) -> Product:
    """Reddit with posts, YouTube with nothing."""
    return kit(FakeSource(posts(count)), FakeSource([], "youtube"), grader=Grading(), **fields)


async def report_of(whole: Product) -> Report:
    """What such a product reports."""
    return await analyze(whole, Ask("ember mug"))


def chat(whole: Product) -> Chat:
    """Without a model."""
    return Chat(whole, None, ChatSettings())


async def test_a_question_is_answered_from_the_report_s_items() -> None:
    """As they were judged and graded; nobody is asked what the report asked."""
    whole = product()
    report = await report_of(whole)
    one = chat(whole)
    session = one.begin("ada", "s1", report)

    turn = await one.answer(session, "what opinion do they have on the mug?")
    again = session.lookup("reddit", "Ember-Mug", "standard")

    source = whole.sources["reddit"]
    assert isinstance(source, FakeSource)
    assert len(source.plans) == 1
    assert {citation.key for citation in turn.citations} <= {item.key for item in report.items}
    assert len(turn.citations) == 4
    exhibits = list(session.exhibits.values())
    assert [exhibit.item.key for exhibit in exhibits] == [item.key for item in report.items]
    grades = [exhibit.assessed.grade for exhibit in exhibits]
    assert [grade and (grade.score, grade.aspects) for grade in grades] == [(4, ("heat",))] * 6
    assert exhibits[0].item.comments[0].body == "good"
    assert again is not None
    assert again.line == "Reddit: 6 of 6 results were about it"
    assert session.lookup("youtube", "ember mug", "standard") is not None
    assert session.subjects == ["ember mug"]
    assert session.exchanges[0].question == "ember mug"
    assert session.exchanges[0].answer == "People like it.\n- It stays warm. [E1]"


async def test_what_a_report_cites_is_known_before_all_else() -> None:
    """Of more posts than a session holds, than a prompt shows, or comments than are saved."""
    report = await report_of(product(3))
    first = report.items[0]
    comments = tuple(first.comments[0].model_copy(update={"id": f"c{number}"}) for number in range(20))
    items = tuple(first.model_copy(update={"key": f"reddit:t3_{number}", "comments": comments}) for number in range(70))
    passages = (Passage("reddit:t3_69", "It leaks.", "c19"), Passage("reddit:t3_2", "It drips."))
    finding = Finding.resting("It is not tight.", "complaint", passages, "counted")
    one = chat(product())
    session = one.begin("ada", "s1", report.model_copy(
        update={"items": items, "findings": (finding,)}
    ))  # fmt: skip
    saved = one.resume("ada", "s1", session.save())
    assert saved is not None

    for known in (session, saved):
        keys = {exhibit.item.key: label for label, exhibit in known.exhibits.items()}
        assert len(keys) == EXHIBITS
        assert keys["reddit:t3_69"] == f"E{EXHIBITS}"
        leaking = known.exhibits[keys["reddit:t3_69"]]
        assert leaking.item.comments[0].id == "c19"
        (shown,) = known.best("what annoys people about it?", 30, known.subjects).values()
        assert {keys["reddit:t3_69"], keys["reddit:t3_2"]} <= {each.label for each in shown}


async def test_what_the_report_could_not_judge_is_not_called_relevant() -> None:
    """The line of its source says what became of the items, as it did when it was asked."""
    whole = product(judge=NOBODY)
    session = chat(whole).begin("ada", "s1", await report_of(whole))

    lookup = session.lookup("reddit", "ember mug", "standard")

    assert lookup is not None
    assert lookup.line == (
        "Reddit: kept 6 of 6 results; relevance could not be judged (no key is set), so none was sorted out"
    )


async def test_a_finding_of_a_post_that_is_gone_cites_nothing() -> None:
    """And items without a grade have none; sample data stays sample."""
    report = await report_of(product(sample=True))
    items = tuple(item.model_copy(update={"score": None}) for item in report.items[1:])
    session = chat(product()).begin(report=report.model_copy(update={"items": items}))

    assert session.exchanges[0].answer.endswith("\n- It stays warm.")
    assert {exhibit.assessed.grade for exhibit in session.exhibits.values()} == {None}
    assert session.sample


async def test_a_report_without_items_knows_why() -> None:
    """Its explanation is what was said; a source that could not be asked may be asked again."""
    whole = kit(FakeSource([]))
    report = await report_of(whole)
    failed = report.sources["reddit"].model_copy(update={"outcome": Outcome.BLOCKED})

    session = chat(whole).begin(report=report.model_copy(update={"sources": {"reddit": failed}}))

    assert session.exchanges[0].answer == report.explanation_text
    assert session.looks == []


async def test_a_report_is_found_by_its_id() -> None:
    """Of the tenant alone, and only when there is one."""
    report = await report_of(product())
    shelf = Shelf()
    await shelf.begin("ada", report.id, report.query)
    await shelf.finish("ada", report)
    await shelf.begin("ada", "x1", "ember mug")

    assert await stored_report(shelf.store, "ada", report.id) == report
    for tenant, name in (("eve", report.id), ("ada", "nope"), ("ada", "a\x00b"), ("ada", "")):
        with pytest.raises(NotFound, match="there is no report"):
            await stored_report(shelf.store, tenant, name)
    with pytest.raises(UsageError, match="`x1` holds no report yet: it is running; look again"):
        await stored_report(shelf.store, "ada", "x1")
    failed = StoredAnalysis("x2", "ada", "failed", datetime(2026, 9, 1, tzinfo=UTC), "mug", None, "stopped.")
    assert failed.why_none == ('`x2` holds no report: stopped; ask again: `listenpost analyze "mug"`')
