"""A claim about people in general needs three people whose words carry it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import pytest

from api.core.domain import Question
from api.core.items import Item
from api.reports.draft_rules import Draft, DraftFinding, DraftPassage, check, held_by
from api.reports.exhibits import Dossier
from api.reports.report import Finding, Passage, people_by_month
from tests.services.kit import assessed, post, said

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


def dated(*written: tuple[str, str | None]) -> tuple[list[Passage], dict[str, Item]]:
    """A comment of each author on each day (`2026-05-03`, None: without a date), and a post that holds them."""
    comments = tuple(
        said(
            "Warm", f"c{at}", author=author, created_at=None if day is None else datetime.fromisoformat(f"{day}T12:00Z")
        )
        for at, (author, day) in enumerate(written)
    )
    thread = post(1, comments=comments)
    return [Passage(thread.key, "Warm", comment.id) for comment in comments], {thread.key: thread}


def test_people_are_counted_by_month_where_enough_have_a_date() -> None:
    """Each person once a month, whatever they wrote; below five people, or in one month alone, nobody."""
    many = [("ann", "2026-05-03"), ("ann", "2026-05-04"), ("ann", "2026-07-01"), ("ben", "2026-05-09"),
            ("cat", "2026-07-02"), ("dan", "2026-07-31"), ("eve", "2026-02-01"), ("fay", None)]  # fmt: skip
    passages, items = dated(*many)

    assert people_by_month(passages, items) == {"2026-02": 1, "2026-05": 2, "2026-07": 3}
    assert list(people_by_month(passages, items)) == ["2026-02", "2026-05", "2026-07"]
    assert people_by_month(*dated(*many[:-2])) == {}
    assert people_by_month(*dated(*((name, "2026-05-03") for name in "abcdefg"))) == {}
    assert people_by_month(passages, {}) == {}
    finding = Finding.resting("Warm.", "praise", passages, "checked", items)
    assert (finding.people, sum(finding.months.values())) == ({"reddit": 6}, 6)


def test_a_date_of_long_ago_is_a_month_like_any_other() -> None:
    """Strangers' dates stand in the first year, too."""
    days = [(name, "0001-05-03") for name in "abcd"] + [("e", "2026-05-03")]

    assert people_by_month(*dated(*days)) == {"0001-05": 4, "2026-05": 1}
