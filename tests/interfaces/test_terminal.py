"""Text for a terminal: nothing of it is obeyed, and columns hold."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from rich.cells import cell_len

from api.errors import Blocked
from api.interfaces.cli.terminal_text import fetched_text, padded, report_text, shown, wrapped
from api.reports.report import Report
from api.services.product import Ask, analyze, fetch
from tests.interfaces.answers import ESCAPES, hostile_fetch, hostile_report, plain_report, sentiment
from tests.services.fakes import FakeSource
from tests.services.kit import kit, plain

CONTROLS = set(map(chr, [*range(9), *range(11, 32), *range(127, 160), 0x202E, 0x2066, 0x200F]))
OURS = {
    "What else is said", "Summary", "In their words", "Figures", "Cited posts", "Kept, not cited", "Kept posts",
    "Dropped", "Next questions", "About this report",
}  # fmt: skip


def underlined(text: str) -> list[str]:
    """The lines that are headings."""
    lines = text.split("\n")
    return [line for line, below in itertools.pairwise(lines) if re.fullmatch("-+", below)]


@pytest.mark.parametrize("width", [40, 80, 120])
async def test_a_hostile_report_obeys_us(width: int) -> None:
    """B88: no escape, control or bidirectional sign, no heading but ours, no address but http."""
    text = report_text(await hostile_report(), True, width)

    assert not CONTROLS & set(text)
    assert set(underlined(text)) <= OURS
    addresses = set(re.findall(r"\b(?:\w+:/*|www\.)[^\s:]+\.example\S*", text))
    assert addresses == {"http://good.example/a_(b)`c`[d]", "https://good.example/fine"}
    assert max(cell_len(line) for line in text.split("\n") if " " in line.strip()) <= max(width, 75)


async def test_a_hostile_fetch_obeys_us() -> None:
    """
    The same for one source.
    """
    text = fetched_text(await hostile_fetch(), True, 100)

    assert not CONTROLS & set(text)
    assert underlined(text) == ["Sources", "Kept", "Dropped"]
    assert text.startswith("SAMPLE DATA: everything here is made up")


async def test_a_report_reads_from_top_to_bottom() -> None:
    """
    Topic, what to know first, claims with who holds them, words, figures, cited posts, how it was made.
    """
    text = report_text(await plain_report(), True, 100)
    lines = text.split("\n")

    assert lines[:7] == [
        "The mug",
        "=======",
        "Only 3 of 4 posts found were relevant to your question. Consider this a starting point, not a",
        "comprehensive answer.",
        "People like it.",
        "",
        "1. It stays warm. [1][2] (unverified) (2 posts on Reddit)",
    ]
    assert lines[lines.index("In their words") + 2 :][:2] == [
        "  “Warm all day” [1]",
        "    https://www.example.org/0",
    ]
    assert lines[lines.index("Figures") + 2 :][:2] == [
        "The tone of 2 of 3 kept posts can be told: 1 positive, 1 negative",
        "2 of 3 kept posts have a date, between 1 September and 3 September 2026",
    ]
    assert "[1] Warm all day - Reddit (r/a), 2026-09-01" in lines
    assert "[2] Lid leaks - Reddit" in lines
    assert "[3] “good” - Reddit (r/a), 2026-09-03, low relevance" in lines
    assert "- Tea leaves - graded too low: score 1 of 5, below the cutoff 3: about tea" in lines
    assert "- Is it heavy?" in lines
    about = "\n".join(lines[lines.index("About this report") :])
    assert "Reddit            4         4  100 %  once      yes        ok" in about
    assert "- Enough was found for a short report only: 3 of 4 posts about it say enough" in about
    assert "- 1 post was dropped: graded too low to answer the question." in about
    assert "- It rests on 3 posts, all without a known author; 2 posts are cited." in about
    assert "5 requests to sources, 1221 tokens for 0.5100 USD; it\n  took " in about


async def test_a_report_that_lists_nothing_dropped_lists_what_is_cited() -> None:
    """
    What is kept and not cited is a number only.
    """
    text = report_text(await plain_report(), False, 100)

    assert "[3]" not in text
    assert "2 posts are cited." in text


async def test_a_sample_report_names_no_address_and_no_bill() -> None:
    """
    What is made up can be opened nowhere, was judged by no model, and cost nothing.
    """
    text = report_text(await plain_report(sample=True), True, 100)
    lines = text.split("\n")

    assert lines[2] == "SAMPLE DATA: everything here is made up and comes from the offline sandbox."
    assert "http" not in text
    assert "[1] Warm all day - Reddit (r/a), 2026-09-01, sample" in lines
    assert "5 requests to the sample data, nothing was spent; it took " in " ".join(text.split())


async def test_enough_posts_with_a_tone_are_bars() -> None:
    """
    With the interval of each share.
    """
    answer = plain(await plain_report())
    answer["figures"]["sentiment"] = sentiment(12, 0, 12).model_dump(mode="json")
    lines = report_text(Report.model_validate(answer), False, 100).split("\n")
    start = lines.index("How 24 of 24 kept posts sound") + 1

    assert lines[start : start + 2] == [
        "  positive  ████████████············ 12 of 24 (31-69 %)",
        "  neutral   ························ 0 of 24 (0-14 %)",
    ]
    assert lines[start + 3] == ("  in brackets: where the share of all posts whose tone can be told likely lies (95 %)")


async def test_the_whole_timeline_is_too_long_but_its_end_is_shown() -> None:
    """
    Twelve points at most, the latest.
    """
    answer = plain(await plain_report())
    points = [{"start": f"2026-09-{day:02}", "count": day} for day in range(1, 15)]
    answer["figures"]["timeline"] = {"unit": "day", "points": points, "undated": 0}

    text = report_text(Report.model_validate(answer), False, 100)

    assert "Posts per day (UTC); 105 of 105 kept posts have a date; the latest 12 of 14 days\n" in text
    assert "2026-09-02 " not in text
    assert "  2026-09-14 ████████████████████████ 14" in text
    assert "  2026-09-03 █████··················· 3" in text


async def test_an_answer_without_figures_has_no_empty_parts() -> None:
    """
    Nothing found, one source not asked: no bars, no list, a dash for its yield.
    """
    product = kit(FakeSource([]), ("amazon", Blocked("amazon")))
    text = report_text(await analyze(product, Ask("ember mug")), True, 100)

    assert underlined(text) == ["Next questions", "About this report"]
    assert "Amazon            0         0      -  once      -          blocked by a captcha" in text
    assert "could not be asked:" not in text
    assert "Nothing was said about it." in text


async def test_clarify_is_guidance_alone() -> None:
    """
    No table, no list, and nothing spent.
    """
    text = report_text(await analyze(kit(), Ask("hello")), True, 100)

    assert underlined(text) == ["About this report"]
    assert "Say which product" in text
    assert "at depth standard; nothing was spent; it took 0.0 s." in text or text.endswith("nothing was spent.")


async def test_an_unknown_cost_is_not_zero() -> None:
    """
    B101: it is called unknown.
    """
    answer = plain(await plain_report())
    answer["cost"]["usd"] = None

    assert "1221 tokens for an unknown sum" in report_text(Report.model_validate(answer), False, 100)


async def test_marks_of_doubt_are_shown() -> None:
    """
    Disputed and barely relevant items say so.
    """
    answer = plain(await plain_report())
    answer["items"][2]["disputed"] = True

    assert "2026-09-03, low relevance, disputed" in report_text(Report.model_validate(answer), True, 100)


async def test_a_fetch_that_failed_says_why() -> None:
    """
    Reason, then notes.
    """
    failed = await fetch(kit(("amazon", Blocked("amazon", "captcha"))), "amazon", Ask("mug"))
    heard = await fetch(kit(FakeSource([])), "reddit", Ask("mug"))
    noted = heard.fetched.model_copy(update={"notes": ("one note",)})

    assert "\ncaptcha; ask less often" in fetched_text(failed.fetched, False, 80)
    assert "! one note" in fetched_text(noted, True, 80)
    assert "SAMPLE" not in fetched_text(noted, True, 80)


async def test_the_terminal_tells_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Between 40 and 120 columns.
    """
    monkeypatch.setenv("COLUMNS", "44")
    narrow = report_text(await plain_report(), False, None)
    monkeypatch.setenv("COLUMNS", "400")
    wide = report_text(await plain_report(), False, None)

    words = "for a short report only: 3 of 4 posts about it say enough, graded 3 of 5 or better; a"
    assert words not in narrow
    assert words in wide


def test_cells_are_filled_up_or_cut() -> None:
    """
    By columns, never in the middle of a wide sign.
    """
    assert padded("ab", 4) == "ab  "
    assert padded("abcdef", 4) == "abcd"
    assert padded("电池寿命", 5) == "电池 "
    assert padded("a\x1b[31m\tb\n", 4) == "a b "


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("one two three", ["- one two", "  three"]),
        ("one  \n two", ["- one two"]),
        ("unbreakably", ["- unbreakably"]),
        ("a unbreakably b", ["- a", "  unbreakably", "  b"]),
        ("电池寿命很好。", ["- 电池寿命", "  很好。"]),
        ("电池寿命。好", ["- 电池寿命。", "  好"]),
        ("lid 很 好", ["- lid 很 好"]),
        ("lid很好 ok", ["- lid很好", "  ok"]),
    ],
)
def test_lines_break_by_columns(text: str, lines: list[str]) -> None:
    """At spaces, and between signs of scripts without them, but not before a full stop."""
    assert wrapped(text, 11, "- ") == lines


@pytest.mark.parametrize("value", [ESCAPES, None, 3, "a\u2028b\x85c"])
def test_anything_is_one_harmless_line(value: Any) -> None:
    """Whatever an answer holds."""
    assert not (CONTROLS | {"\n", "\u2028"}) & set(shown(value))


@pytest.mark.parametrize("part", ["sentiment", "timeline"])
async def test_each_figure_stands_alone(part: str) -> None:
    """
    What there is nothing to count about is left out.
    """
    answer = plain(await plain_report())
    answer["figures"] = {part: answer["figures"][part]}
    text = report_text(Report.model_validate(answer), False, 100)

    shown_parts = [name in text for name in ("The tone of 2", "have a date")]
    assert shown_parts == [part == name for name in ("sentiment", "timeline")]
