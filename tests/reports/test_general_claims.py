"""A claim about people in general needs three people whose words carry it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from api.core.domain import Question
from api.core.items import Item
from api.reports.draft_rules import Draft, DraftFinding, DraftPassage, check, held_by
from api.reports.exhibits import Dossier
from api.reports.report import Passage
from tests.services.kit import assessed, post

WORDS = "The subscription is a scam"


@pytest.mark.parametrize(
    "text",
    [
        "Owners resent the subscription.",
        "Most people dislike it.",
        "Everyone hates the app.",
        "Many complain about the app.",
        "Some users report crashes.",
        "Die Nutzer klagen über den Preis.",
        "A los usuarios no les gusta.",
        "Les clients se plaignent.",
        "ユーザーは不満です。",
        "用户觉得太贵。",
    ],
)
def test_fewer_than_three_are_quoted_instead(text: str) -> None:
    """In any of the languages; three are enough."""
    passages = [Passage("reddit:0", WORDS)]

    assert held_by(text, passages, {"reddit": 2}) == f"“{WORDS}”"
    assert held_by(text, passages, {"reddit": 2, "youtube": 1}) == text


@pytest.mark.parametrize(
    "text",
    [
        "One owner resents the subscription.",
        "Two users call it a scam.",
        "The subscription is too expensive.",
        "It has too many buttons.",
        "The user interface is slow, and customer support too.",
        "It is the most expensive mug.",
    ],
)
def test_a_claim_about_the_product_needs_nobody_in_general(text: str) -> None:
    """Nor does one that says how many they are."""
    assert held_by(text, [Passage("reddit:0", WORDS)], {"reddit": 1}) == text


def drafted(items: Sequence[Item], text: str) -> Draft:
    """A draft that rests one finding on all items."""
    evidence = [DraftPassage(cite=f"E{at}", passage=WORDS) for at in range(1, len(items) + 1)]
    finding = DraftFinding(text=text, kind="complaint", evidence=evidence)
    return Draft(topic="", summary="", findings=[finding])


@pytest.mark.parametrize(
    ("authors", "people", "stands"),
    [(("a", "b", "c"), 3, True), (("a", "a", "a"), 1, False), ((None, None, None), 3, True), (("a", "b"), 2, False)],
)
def test_one_author_is_one_person(authors: Sequence[str | None], people: int, stands: bool) -> None:
    """Six posts of one author hold no claim about owners; the draft goes back with the reason."""
    items = [post(at, body=WORDS, author=author) for at, author in enumerate(authors)]
    dossier = Dossier()
    dossier.show(map(assessed, items))
    text = "Owners resent the subscription."

    checked = check(drafted(items, text), dossier, Question("mug"))

    (finding,) = checked.findings
    assert finding.people == {"reddit": people}
    assert finding.text == (text if stands else f"“{WORDS}”")
    assert bool(checked.flaws.general) == (not stands)
    assert ("fewer than 3 people" in checked.flaws.advice) == (not stands)
