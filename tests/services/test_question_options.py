"""What of a request reaches the judges, the report and the trace."""

from __future__ import annotations

from dataclasses import replace

import pytest

from api.bootstrap.storage import with_report_items
from api.core.domain import Question
from api.core.items import pseudonym
from api.errors import UsageError
from api.features.analyses.rejudging import ask_again as question_again
from api.features.watches.watch import check_watch
from api.interfaces.shared.requests import ComparisonRequest, RelevanceRequest
from api.langfuse.tracing.observer import question_input
from api.services.product import Ask, QuestionOptions, analyze, question_of
from tests.features.watches.made import WATCH
from tests.services.fakes import FakeJudge, FakeSource
from tests.services.kit import kit, plain, post, posts

ARC = Ask("Arc", about="the browser; not a crochet arc", not_about=("the Arc Raiders game",))
EXCLUDED = ("Arc Raiders game", "crochet arc")


def test_what_a_description_denies_is_excluded() -> None:
    """
    After what is excluded by name; a description that denies nothing stays as it was written.
    """
    assert ARC.question == Question("Arc", "the browser", EXCLUDED)
    assert Ask("Arc", about="it never syncs.").question == Question("Arc", "it never syncs.")
    assert Ask("Arc", about="not the fruit").question == Question("Arc", "", ("fruit",))


async def test_exclusions_are_judged_kept_and_said() -> None:
    """
    The report holds them, is itself asked again by them, and says which it read out of `about`.
    """
    judge = FakeJudge(relevant=["reddit-0"])
    report = await analyze(kit(FakeSource(posts(4)), judge=judge), ARC)

    assert {question.not_about for question in judge.questions} == {EXCLUDED}
    assert report.question == Question("Arc", "the browser", EXCLUDED)
    assert plain(report)["not_about"] == list(EXCLUDED)
    assert "“crochet arc” was read as what it is not (`--not`)" in report.quality_notes


async def test_a_report_without_exclusions_does_not_speak_of_them() -> None:
    """Neither a field nor a note."""
    report = await analyze(kit(FakeSource(posts(4))), Ask("Arc", about="the browser"))

    assert "not_about" not in plain(report)
    assert not [note for note in report.quality_notes if "--not" in note]


def test_a_trace_has_what_was_set_of_a_question() -> None:
    """Beside the question and its description, which are always there."""
    assert question_input(Question("Arc")) == {"question": "Arc", "about": None}
    assert question_input(ARC.question) == {
        "question": "Arc", "about": "the browser", "not_about": EXCLUDED,
    }  # fmt: skip


async def test_a_mention_can_be_enough() -> None:
    """A judge is told so, the report keeps it, and the trace has it."""
    judge = FakeJudge(relevant=["reddit-0"])
    ask = Ask("Arc", aim="mention")
    report = await analyze(kit(FakeSource(posts(4)), judge=judge), ask)

    assert {question.aim for question in judge.questions} == {"mention"}
    assert (report.question.aim, plain(report)["aim"]) == ("mention", "mention")
    assert question_input(ask.question)["aim"] == "mention"


async def test_what_is_excluded_is_dropped_before_judging() -> None:
    """
    No judge sees it, it is counted with its reason, and the comments under what stays lose what is excluded.
    """
    judge = FakeJudge(relevant=["0", "1", "2", "3", "4"])
    found = [post(0), post(1, body="A giveaway!"), post(2, author=pseudonym("redditor", "ada")), post(3), post(4)]
    found[4] = post(4, url="https://shop.example.com/4")
    ask = Ask("Ember mug", exclude=("giveaway", "good"), exclude_authors=("u/ada",), exclude_sites=("example.com",))
    report = await analyze(kit(FakeSource(found), judge=judge), ask)
    source = report.sources["reddit"]

    assert judge.asked == [["0", "3"]]
    assert [(item.key, item.dropped_by, item.reason) for item in source.dropped] == [
        ("reddit:1", "excluded", "has “giveaway”"),
        ("reddit:2", "excluded", "its author is left out"),
        ("reddit:4", "excluded", "from example.com"),
    ]
    assert (source.fetched, source.fit, source.kept, source.yield_ratio) == (5, 2, 2, 1.0)
    assert not any(item.comments for item in report.items)
    assert "2 comments left out as excluded" in source.notes
    assert "3 posts were dropped: left out as asked." in report.quality_notes
    words = "“giveaway”, “good”, ada, example.com"
    assert f"posts and comments left out before judging: {words}" in report.quality_notes
    shown = plain(report)
    assert (shown["exclude"], shown["exclude_authors"]) == (["giveaway", "good"], ["u/ada"])
    assert shown["exclude_sites"] == ["example.com"]


async def test_a_report_judged_again_leaves_out_the_same() -> None:
    """
    Also what its author made it: a stored post has no author any more, but the reason stands.
    """
    judge = FakeJudge(relevant=["0", "1"])
    found = [post(0), post(1, author=pseudonym("redditor", "ada"))]
    before = await analyze(kit(FakeSource(found), judge=judge), Ask("Ember mug", exclude_authors=("ada",)))
    again = question_again(before, about="a cup")
    after = await analyze(with_report_items(kit(judge=judge), before), again)

    assert again.exclude_authors == ("ada",)
    assert judge.asked == [["0"], ["0"]]
    assert [(item.key, item.reason) for item in after.dropped if item.dropped_by == "excluded"] == [
        ("reddit:1", "its author is left out")
    ]


def test_what_is_excluded_makes_another_question() -> None:
    """Who asks it waits for an answer of its own, and a watch begins a new past; a blank excludes nothing."""
    assert Ask("Arc", exclude=("games",)).digest != Ask("Arc").digest
    assert replace(WATCH, exclude=("games",)).rule != WATCH.rule
    with pytest.raises(UsageError, match="names nothing"):
        check_watch(replace(WATCH, exclude=(" ",)))


def test_items_of_the_caller_are_judged_by_the_same_options() -> None:
    """The body of `POST /v1/relevance`, the tool's arguments and the command's options."""
    given = {"about": "the browser", "not_about": ["the Arc game"], "aim": "mention"}
    request = RelevanceRequest.model_validate({"query": "Arc", "source": "x", "items": [], **given})

    question = Question("Arc", "the browser", ("Arc game",), "mention")
    assert question_of(QuestionOptions.of(request)) == question


def test_what_no_product_of_a_comparison_is_holds_for_each() -> None:
    """What one of them is not stands in its own description."""
    request = ComparisonRequest.model_validate(
        {"products": ["Arc", "Dia"], "about": ["a browser; not crochet", "a browser"],
         "not_about": ["games"]}
    )  # fmt: skip

    first, second = (ask.question for ask in request.asks())
    assert (first.about, first.not_about) == ("a browser", ("games", "crochet"))
    assert (second.about, second.not_about) == ("a browser", ("games",))


@pytest.mark.parametrize(
    ("text", "products"),
    [("plaud.ai vs otter", ["plaud.ai", "otter"]), ("compare Arc, Dia and Zen", ["Arc", "Dia", "Zen"])],
)
def test_one_text_that_compares_names_the_products(text: str, products: list[str]) -> None:
    """As `listenpost compare "plaud.ai vs otter"` gives it."""
    request = ComparisonRequest.model_construct(products=[text])

    assert [ask.query for ask in request.asks()] == products


def test_other_exclusions_are_another_question() -> None:
    """To whoever waits for the same question, and to a watch."""
    digests = {Ask("Arc", not_about=("games",)).digest, Ask("Arc", aim="mention").digest}
    assert len(digests | {Ask("Arc").digest}) == 3
