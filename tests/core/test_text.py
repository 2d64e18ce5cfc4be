"""Any value made safe to judge, print and send."""

from __future__ import annotations

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from api.core.text import (
    clean,
    clean_query,
    cut,
    display_title,
    fold,
    is_visible,
    one_line,
    quantity,
    unescape,
    web_url,
)

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
ANY = st.text(st.characters(exclude_categories=()))
"""Lone surrogates, controls and unassigned included."""
GRAPHEMES = st.lists(st.sampled_from([FAMILY, "e\u0301", "\U0001f1e9\U0001f1ea", "a", " ", "小", "\r\n", "👍🏽"])).map(
    "".join
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ({}, ""),
        ([1], ""),
        (123, "123"),
        (4.5, "4.5"),
        pytest.param(10**5000, "", id="digits"),
        ("a\x00b\x07", "ab"),
        ("a\r\nb\rc", "a\nb\nc"),
        (" a \t\u00a0\u2028 b ", "a b"),
        ("\ud83d", "\ufffd"),
        ("a\ude00b", "a\ufffdb"),
        ("\ud83d\ude00", "😀"),
        ("\ufeffa", "\ufeffa"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]8;;http://evil\x07link\x1b]8;;\x1b\\", "link"),
        ("\u202eabc\u2066", "abc"),
        ("Try:\n    def f():\n\treturn  1 \n \nEnd", "Try:\n    def f():\n    return 1\n\nEnd"),
        ("a\n" + " " * 9_000 + "b", "a\n" + " " * 40 + "b"),
    ],
)
def test_anything_becomes_clean_text(value: object, text: str) -> None:
    """
    B22, B58: nulls, numbers, containers, NUL, lone surrogates and escapes are no trouble.
    """
    assert clean(value) == text


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_a_plain_line_is_what_it_is_beside_others(line: str) -> None:
    """
    English lines go a shorter way, to the same text.
    """
    assert clean(f"é\n{line}\né") == f"é\n{' ' * _indent(line)}{clean(line)}\né"
    assert fold(f"{line}é") == f"{fold(line)}e"


def _indent(line: str) -> int:
    """Blanks that stay before the words of a line among others."""
    return min(len(line) - len(line.lstrip()), 40) if line.strip() else 0


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("pla\u200bud", "plaud"),
        ("\ufeffplaud note", "plaud note"),
        ("pla\u00adud", "plaud"),
        ("pl\u200caud \u2060x\u200d", "plaud x"),
        ("\U000e0070\U000e006cmug", "mug"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष", "क्\u200dष"),
        (FAMILY, FAMILY),
        ("☕\ufe0f mug", "☕\ufe0f mug"),
        ("\u200b", ""),
    ],
)
def test_a_query_is_sent_without_what_nobody_sees(query: str, sent: str) -> None:
    """
    Zero width, BOM, soft hyphen go; joiners stay where a script or an emoji needs them.
    """
    assert clean_query(query) == sent


@given(ANY)
def test_clean_text_encodes_and_stays_as_it_is(text: str) -> None:
    """
    B58: whatever comes, the result is UTF-8 without control characters, and cleaning ends there.
    """
    cleaned = clean(text)

    cleaned.encode("utf-8")
    assert not regex.search(r"[\p{Cc}--[\n]]", cleaned, regex.V1)
    assert clean(cleaned) == cleaned


@given(st.one_of(ANY, GRAPHEMES), st.integers(0, 30))
def test_a_cut_never_splits_a_grapheme(text: str, limit: int) -> None:
    """
    B58: the result is a whole number of graphemes, the most that fit.
    """
    graphemes = regex.findall(r"\X", text)
    short = cut(text, limit)

    count = next(n for n in range(len(graphemes) + 1) if "".join(graphemes[:n]) == short)
    assert len(short) <= limit
    assert count == len(graphemes) or len("".join(graphemes[: count + 1])) > limit


def test_the_cut_before_an_emoji_family_is_whole() -> None:
    """
    B58: 198 letters and a family at the cut of 200 leave the letters.
    """
    assert cut("x" * 198 + FAMILY, 200) == "x" * 198
    assert cut("x" * 195 + FAMILY, 200) == "x" * 195 + FAMILY


@pytest.mark.parametrize(
    ("value", "text"),
    [("Rubik&#39;s &amp; Co", "Rubik's & Co"), ("&amp;lt;", "&lt;"), ("a &gt; b", "a > b"),
     (7, "7"), (None, "")],
)  # fmt: skip
def test_entities_are_decoded_once(value: object, text: str) -> None:
    """
    B42, B43: once and not twice, and what is no text is cleaned alone.
    """
    assert unescape(value) == text


def test_one_line_has_single_blanks() -> None:
    """
    Every run of white space is one blank, with none at the ends.
    """
    assert one_line(" a\n\n b\tc ") == "a b c"


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("https://example.org/a?b=c#d", "https://example.org/a?b=c#d"),
        ("HTTP://example.org", "HTTP://example.org"),
        (" https://example.org/ ", "https://example.org/"),
        ("javascript:alert(1)", ""),
        ("data:text/html,x", ""),
        ("//example.org", ""),
        ("https://", ""),
        ("https:///a", ""),
        ("https://?a", ""),
        ("https://#a", ""),
        ("https://example.org/a b", ""),
        ('https://example.org/"onclick=', ""),
        ("https://example.org\\@evil", ""),
        ("https://[::1", ""),
        ("https://[x]/", ""),
        ("https://example.org:65536/", ""),
        ("https://example.org:1x/", ""),
        ("https://[::1]:65535/", "https://[::1]:65535/"),
        (None, ""),
    ],
)
def test_only_web_addresses_with_a_host_are_links(value: object, url: str) -> None:
    """
    B88: other schemes, no host, white space and quotes make no link.
    """
    assert web_url(value) == url


@pytest.mark.parametrize(
    ("one", "other"),
    [("PLAUD", "plaud"), ("café", "CAFE\u0301"), ("ＨＰ", "hp"), ("اپل", "اپَل"), ("علي", "على")],
)
def test_folding_makes_spellings_one(one: str, other: str) -> None:
    """
    B60: case, width and optional marks do not make another name.
    """
    assert fold(one) == fold(other)


def test_folding_keeps_marks_that_matter() -> None:
    """
    A mark that is part of a letter in its script stays: が is not か.
    """
    assert fold("が") != fold("か")


@pytest.mark.parametrize(("text", "visible"), [("a", True), (" 😀", True), ("", False), (" \u200b\u202e\n\x07", False)])
def test_what_nobody_sees_is_not_visible(text: str, visible: bool) -> None:
    """Blanks, and signs without a shape, are nothing to read."""
    assert is_visible(text) is visible


def test_numbers_have_their_nouns() -> None:
    """One is one; a plural of its own is named."""
    assert [quantity(number, "item") for number in (0, 1, 2)] == ["0 items", "1 item", "2 items"]
    assert [quantity(number, "query", "queries") for number in (1, 2)] == ["1 query", "2 queries"]


def test_a_text_of_a_thread_is_called_what_it_is() -> None:
    """A comment by its thread's title, a review by the product's, a post by its own."""
    shown = [display_title("Lantern Deep", thread) for thread in ("steam:900100", "lemmy:https://a.example/post/1", "")]

    assert shown == ["review of: Lantern Deep", "comment on: Lantern Deep", "Lantern Deep"]
