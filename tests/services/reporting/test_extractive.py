"""A report in the items' own words."""

from __future__ import annotations

from api.services.reporting.dossier import Dossier, Exhibit
from api.services.reporting.extractive import FINDINGS, extract, quotes
from api.services.schemas import Grade, Item
from tests.services.kit import MUG, PLACES, assessed, post, posts, said


def exhibits(*found: tuple[Item, Grade | None]) -> tuple[Exhibit, ...]:
    """Items with their grades, shown."""
    return Dossier(PLACES).show(assessed(item, grade=grade) for item, grade in found)


def test_each_of_the_best_items_speaks_for_itself() -> None:
    """
    Place, title and the passage the grader picked, else the body; the kind is the sentiment's.
    """
    found = exhibits(
        (post(0, title="Mug", body="Long body."), Grade(5, sentiment=1, quote="Long")),
        (post(1, "youtube", title="Leaks", body="All\nover", place=None), Grade(4, sentiment=-1)),
        (post(2, title="Only a title"), Grade(4, sentiment=0)),
        (post(3, "forum", title="", body="No title"), None),
        (post(4, title="", place=None), None),
    )

    draft = extract(MUG, found)

    assert [(one.text, one.kind, one.cites) for one in draft.findings] == [
        ("Reddit (r/a): “Mug”, Long", "praise", ("reddit:0",)),
        ("YouTube: “Leaks”, All over", "complaint", ("youtube:1",)),
        ("Reddit (r/a): “Only a title”", "other", ("reddit:2",)),
        ("forum (r/a): No title", "other", ("forum:3",)),
        ("Reddit: untitled", "other", ("reddit:4",)),
    ]
    assert draft.topic == "ember mug"
    assert draft.summary == (
        "No report model wrote this: it only lists what the items themselves say."
    )
    assert (draft.suggestions, bool(draft.flaws)) == ((), False)


def test_there_are_eight_findings_at_most_and_long_texts_are_cut() -> None:
    """
    The rest is in the items.
    """
    found = exhibits(*((one, None) for one in posts(10)))
    (long,) = extract(MUG, exhibits((post(0, title="t" * 99, body="b" * 999), None))).findings

    assert len(extract(MUG, found).findings) == FINDINGS == 8
    assert long.text == f"Reddit (r/a): “{'t' * 90}”, {'b' * 160}"


def test_a_body_that_repeats_the_title_is_not_said_twice() -> None:
    """
    A video's text is often its title.
    """
    (finding,) = extract(MUG, exhibits((post(0, title="Warm", body="Warm"), None))).findings

    assert finding.text == "Reddit (r/a): “Warm”"


def test_the_graders_passages_are_quoted_when_they_are_verbatim() -> None:
    """
    One that stands nowhere is left out, one from a comment carries its id, none comes twice.
    """
    comments = (said("Mine leaks", "c9", url="https://www.example.org/c9"),)
    found = exhibits(
        (post(0, body="Stays warm"), Grade(5, quote="Stays warm")),
        (post(0, body="Stays warm"), Grade(5, quote="Stays warm")),
        (post(1, comments=comments), Grade(4, quote="Mine leaks")),
        (post(2), Grade(4, quote="made up")),
        (post(3), Grade(4)),
        (post(4), None),
    )

    first, second = quotes(found)

    assert (first.text, first.key, first.comment_id) == ("Stays warm", "reddit:0", None)
    assert (second.text, second.comment_id) == ("Mine leaks", "c9")
    assert second.url == "https://www.example.org/c9"
    assert quotes(found, 1) == (first,)
    assert extract(MUG, found).quotes == (first, second)
