"""Quotes stand in the item, word for word."""

from __future__ import annotations

import pytest

from api.reports.quotes import LONGEST_QUOTE, READ, verbatim
from tests.services.kit import post, said

POST = post(
    0,
    title="My ‘new’ mug",
    body="I dislike it.\nR&D must\n try harder, 100 % sure. 这个杯子很好用。",
    comments=(
        said("Same here", "c1"),
        said("Works for me", "c2", url="https://www.example.org/c2"),
    ),
)


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
def test_what_comes_back_stands_in_the_item(words: str, held: str) -> None:
    """White space, quotation marks and entities may differ; the item's own words are returned."""
    quote = verbatim(words, POST)

    assert quote is not None
    assert quote.text == held
    assert held in POST.title or held in POST.body
    assert (quote.key, quote.url, quote.comment_id) == (POST.key, POST.url, None)


@pytest.mark.parametrize(
    "words",
    [
        "like it",
        "I dis",
        "must try hard",
        "I DISLIKE it",
        "100 %",
        "",
        "“”",
        "x" * (LONGEST_QUOTE + 1),
    ],
)
def test_what_does_not_stand_there_is_no_quote(words: str) -> None:
    """Parts of words, other words, other case, no letter, and too much are none."""
    assert verbatim(words, POST) is None


@pytest.mark.parametrize(
    ("words", "body", "held"),
    [
        ("it's 'warm' now", "Well, it’s ‘warm’ now.", "it’s ‘warm’ now"),
        ('"so warm"', "He said „so warm“.", "so warm"),
        ("say “hot” now", 'They say "hot" now', 'say "hot" now'),
        ("say “hot” now", "They say «hot» now", "say «hot» now"),
        ("non-stick pan", "a non\u2011stick pan", "non\u2011stick pan"),
        ("café au lait", "cafe\u0301 au lait", "cafe\u0301 au lait"),
        ("cafe\u0301 au lait", "café au lait", "café au lait"),
        ("ABC 12", "ＡＢＣ　１２!", "ＡＢＣ　１２"),
        ("カメラ", "ｶﾒﾗが良い", "ｶﾒﾗ"),
        ("final fit", "ﬁnal ﬁt", "ﬁnal ﬁt"),
        ("wait... what", "wait… what", "wait… what"),
        ("really good", "really\u200b\u00a0go\u00adod", "really\u200b\u00a0go\u00adod"),
        ("iPhone", "买iPhone手机", "iPhone"),
        ("well", "Well, well.", "well"),
        ("5 stars", "4.5 stars, no: 5 stars", "5 stars"),
        ("the mugs", "the mugs' lids", "the mugs"),
        ("the lid", "'the lid' leaks", "the lid"),
    ],
)
def test_what_a_keyboard_changes_does_not_matter(words: str, body: str, held: str) -> None:
    """Quotation marks, hyphens, Unicode form, width, invisible signs; theirs comes back."""
    quote = verbatim(words, post(0, title="", body=body))

    assert quote is not None
    assert quote.text == held


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("attery las", "The battery lasts."),
        ("I can", "I can't recommend it"),
        ("I can", "I can’t recommend it"),
        ("t recommend", "I can't recommend it"),
        ("sticky", "it is non-sticky"),
        ("5 stars", "4.5 stars"),
        ("costs 1", "costs 1,299"),
        ("хорош", "хороший"),
        ("طيب", "والطيبة"),
        ("café", "cafes"),
        ("e\u0301", "cafe\u0301"),
    ],
)
def test_no_word_is_cut(words: str, body: str) -> None:
    """Not by a letter, an apostrophe, a hyphen or a decimal point: that may turn the meaning."""
    assert verbatim(words, post(0, title="", body=body)) is None


@pytest.mark.parametrize("value", [None, 5, ["warm"], {"text": "warm"}])
def test_only_text_is_a_quote(value: object) -> None:
    """Whatever a model hands in."""
    assert verbatim(value, post(0, body="warm 5")) is None


def test_a_comment_has_its_own_id_and_address() -> None:
    """
    Where a comment has no address, the item's leads there.
    """
    here, works = verbatim("Same here", POST), verbatim("Works for me", POST)

    assert here is not None
    assert works is not None
    assert (here.comment_id, here.url) == ("c1", POST.url)
    assert (works.comment_id, works.url) == ("c2", "https://www.example.org/c2")


def test_what_stands_behind_the_longest_post_is_not_looked_for() -> None:
    """A text of millions of characters costs no more than the longest post there is."""
    endless = post(0, body=f"It is warm. {'And so on. ' * (READ // 11)}It leaks a lot.")

    assert verbatim("It is warm", endless) is not None
    assert verbatim("It leaks a lot", endless) is None
