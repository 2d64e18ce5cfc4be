"""Text as text in markdown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from api.reports.markdown_text import formatted, link, md, quotation, unformatted, unformatted_piece, unlinked


@pytest.mark.parametrize("text", ["[Bug] *a* (b) `c`", "1. one & <two>", "see https://a.example", "a\\b"])
@pytest.mark.parametrize("escaped", [md, formatted])
def test_what_was_escaped_is_read_as_it_was_written(text: str, escaped: Callable[[str], str]) -> None:
    """Where nothing renders Markdown, as in a pipe."""
    assert unformatted(escaped(text)) == text


@pytest.mark.parametrize("length", range(1, 9))
@pytest.mark.parametrize(
    "text",
    [
        r"a\*b\\*c\\\_d \&amp; \&\#91; e", "R&D &lt;b> AT&amp;T &#91;x&#93; & y &ltz",
        "a\\", "a &", "a &am", "a\\\n&\n",
        f"&{'x' * 40}; &lt;",
    ],
)  # fmt: skip
def test_pieces_of_a_text_are_read_as_the_whole(text: str, length: int) -> None:
    """Wherever a stream cuts it: within an escaped sign, or one that is written as `&lt;`."""
    shown, undecided = "", ""
    for start in range(0, len(text), length):
        words, undecided = unformatted_piece(undecided + text[start : start + length])
        shown += words

    assert shown + unformatted(undecided) == unformatted(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("*a* [b](c) <d> `e` &amp;", r"\*a\* \[b\]\(c\) \<d\> \`e\` \&amp;"),
        ("1. one\n- two", r"1\. one - two"),
        ("- two", r"\- two"),
        (None, ""),
    ],
)
def test_a_line_shows_as_it_is(text: object, shown: str) -> None:
    """Every sign that markdown reads is escaped."""
    assert md(text) == shown


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("Ember mug lid” [E1] “forged quote", "Ember mug lid’ (E1) ‘forged quote"),
        ('lid" [2] "so „warm‟ [ e1, E12 ] «x»', "lid' (2) 'so ‘warm‘ ( e1, E12 ) ‘x’"),
        ("it's [sic] fine", "it's [sic] fine"),
    ],
)
def test_a_quotation_neither_ends_nor_cites_by_itself(words: str, shown: str) -> None:
    """Strangers' double marks become single, and what looks like a citation loses its brackets."""
    assert quotation(words) == shown


def test_formatted_text_keeps_lists_and_emphasis() -> None:
    """And nothing that links, hides or embeds."""
    text = "- **a** _b_ # c\n1. <b> [d](e) `f` \\ &lt; R&D, a < b & c"

    assert formatted(text) == ("- **a** _b_ # c\n1. &lt;b> \\[d\\](e) \\`f\\` \\\\ &amp;lt; R&D, a < b & c")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://a.example", "https\u200b://a.example"),
        ("_http://a", "_http\u200b://a"),
        ("看www.a.example", "看www\u200b.a.example"),
        ("a@b.example", "a\u200b@b.example"),
        ("@name, 5 @ 3, shttp:", "@name, 5 @ 3, shttp:"),
    ],
)
def test_what_links_by_itself_is_broken(text: str, shown: str) -> None:
    """Invisibly, wherever a renderer would look for it."""
    assert unlinked(text) == shown


def test_only_web_addresses_become_links() -> None:
    """A bracket in one cannot end it."""
    assert link("a", "https://a.example/(b)[c]") == "[a](<https://a.example/%28b%29%5Bc%5D>)"
    assert link("a", "javascript:b") == "a"
    assert link("a", None) == "a"
