"""Quotes stand in the item, word for word."""

from __future__ import annotations

import pytest

from api.services.reporting.dossier import Dossier, Exhibit
from api.services.reporting.verbatim import LONGEST, verbatim
from tests.services.kit import assessed, post, said

POST = post(
    0,
    title="My ‘new’ mug",
    body="I dislike it.\nR&D must\n try harder, 100 % sure. 这个杯子很好用。",
    comments=(
        said("Same here", "c1"),
        said("Works for me", "c2", url="https://www.example.org/c2"),
    ),
)


@pytest.fixture
def exhibit() -> Exhibit:
    """The post as shown."""
    return Dossier().show([assessed(POST)])[0]


@pytest.mark.parametrize(
    ("words", "held"),
    [
        ("My 'new' mug", "My ‘new’ mug"),
        ('"R&D must try harder"', "R&D must\n try harder"),
        ("R&amp;D must", "R&D must"),
        ("杯子很好", "杯子很好"),
        ("\x1b[1mmust\u202e try", "must\n try"),
    ],
)
def test_what_comes_back_stands_in_the_item(exhibit: Exhibit, words: str, held: str) -> None:
    """White space, quotation marks and entities may differ; the item's own words are returned."""
    quote = verbatim(words, exhibit)

    assert quote is not None
    assert quote.text == held
    assert held in POST.title or held in POST.body
    assert (quote.key, quote.url, quote.comment_id) == (POST.key, POST.url, None)


@pytest.mark.parametrize(
    "words",
    ["like it", "I dis", "must try hard", "I DISLIKE it", "100 %", "", "“”", "x" * (LONGEST + 1)],
)
def test_what_does_not_stand_there_is_no_quote(exhibit: Exhibit, words: str) -> None:
    """Parts of words, other words, other case, no letter, and too much are none."""
    assert verbatim(words, exhibit) is None


def test_no_exhibit_no_quote() -> None:
    """
    An unknown name holds nothing.
    """
    assert verbatim("Same here", None) is None


def test_a_comment_has_its_own_id_and_address(exhibit: Exhibit) -> None:
    """
    Where a comment has no address, the item's leads there.
    """
    here, works = verbatim("Same here", exhibit), verbatim("Works for me", exhibit)

    assert here is not None
    assert works is not None
    assert (here.comment_id, here.url) == ("c1", POST.url)
    assert (works.comment_id, works.url) == ("c2", "https://www.example.org/c2")
