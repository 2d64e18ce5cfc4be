"""What renderings of a comparison show, and that strangers' words stay words in each."""

from __future__ import annotations

import csv
import io
import re
from typing import Any

import pytest

from api.core.work import Failure
from api.features.comparisons.comparison import Comparison
from api.interfaces.cli.terminal_text import comparison_text
from api.interfaces.pages.report_values import comparison_html
from api.interfaces.shared.comparison_table import alike, notes, table
from api.interfaces.shared.csv_export import comparison_csv
from api.interfaces.shared.markdown_report import comparison_markdown
from tests.features.comparisons.made import about, compared, posts, spoken
from tests.interfaces.answers import TRICKS
from tests.interfaces.markdown_tokens import headings, tokens

HATED, MUG = "I hate the battery of the {}.", "It is a mug."


def cells(comparison: Comparison) -> dict[str, tuple[str, ...]]:
    """The table by the names of its rows."""
    return {row.name: row.cells for row in table(comparison)}


def test_each_product_says_how_it_stands() -> None:
    """Nobody knows, none and not asked are three signs; what is not configured has no row."""
    unset: dict[str, Any] = {"youtube": {"outcome": "not_configured", "capped": None}}
    blocked = {"reddit": {"outcome": "blocked", "capped": None}}
    degraded = {"gate": {"status": "degraded", "reason": "timeout", "model": None}, "fetched": 3}
    capped = {"reddit": {"fetched": 6, "capped": True}}
    comparison = compared(
        about("Ember", posts("Ember", HATED.format("Ember"), MUG), unset | capped),
        about("Ohom", [], unset | blocked),
        about("Tescoma", posts("Tescoma", MUG, verdict=None), {"reddit": degraded, "lemmy": {}}),
        Failure("internal", "an internal error"),
    )

    assert cells(comparison) == {
        "outcome": ("compared", "could not be asked", "nobody could judge", "has no report"),
        "posts found": ("6+", "0", "3", "0"),
        "about it": ("2+", "0", "0", "0"),
        "on Reddit": ("2+", "blocked", "not judged", "-"),
        "on Lemmy": ("-", "-", "0", "-"),
        "report": ("idEmber", "idOhom", "idTescom", "-"),
    }
    said = list(notes(comparison))
    assert said[0].startswith("“About it”: posts that a judge found to be about the product")
    assert said[1].startswith("+: a place may hold more")
    assert said[2] == "Nothing could be compared: posts were counted for fewer than two products."
    assert said[3:] == [
        "Ohom: could not be asked. All were asked.",
        "Tescoma: nobody could judge. 4 of 7",
        "Failed3: has no report. An internal error",
    ]


def test_how_graded_posts_sound_has_rows_of_its_own() -> None:
    """Where a product has grades; what is marked of it cites the posts."""
    glad = [{**each, "sentiment": 1} for each in posts("Ember", *[MUG] * 12)]
    sad = [{**each, "sentiment": -1} for each in posts("Ohom", *[MUG] * 12)]
    comparison = compared(about("Ember", glad), about("Ohom", sad), about("Tescoma", posts("T", MUG)))

    assert cells(comparison)["sound positive"] == ("12 of 12", "0 of 12", "-")
    assert cells(comparison)["sound negative"] == ("0 of 12", "12 of 12", "-")
    text = " ".join(comparison_text(comparison, 100).split())
    assert "More posts sound positive about Ember, in 12 of 12 posts, against none of 12" in text
    assert "(100 percentage points, 95 %: 66 to 100). [1][2]" in text


def test_the_share_of_voice_stands_in_every_rendering() -> None:
    """With intervals, places and weeks; what is left out, and what it cannot say, below."""
    ember = spoken("Ember", {"reddit": 6, "lemmy": 3}, {"2026-11-02": 14, "2026-11-09": 12, "2026-11-16": 2})
    capped = {"lemmy": {"capped": True}}
    comparison = compared(ember, spoken("Ohom", {"reddit": 2, "lemmy": 1}, {"2026-11-09": 2}, sources=capped))
    text, page = comparison_text(comparison, 100), comparison_html(comparison)

    for words in (
        "all places 75 % (41-93), 6 people 25 % (7-59), 2 people",
        "week of 2026-11-02 100 % (78-100), 14 people 0 % (0-22), 0 people",
        "1 week in which fewer than 10 people wrote: only JSON has them.",
    ):
        assert words in " ".join(text.split())
    for words in (
        "Counted, for every product: Reddit, dated from the week of 2026-11-02 to that of 2026-11-16.",
        "People are counted, not posts",
        "Left out for every product: Lemmy (cut by a limit for Ohom).",
        "What a share cannot say",
    ):
        assert words in " ".join(text.split())
        assert words in page
    assert "Share of the people who speak of any of them" in page
    markdown = comparison_markdown(comparison).replace("\\", "")
    assert "| all places | 75 % (41-93), 6 people | 25 % (7-59), 2 people |" in markdown
    rows = list(csv.reader(io.StringIO(comparison_csv(comparison))))
    assert ["share of voice, all places", "75 % (41-93), 6 people", "25 % (7-59), 2 people"] in rows


def test_why_no_share_of_voice_can_be_stated_is_said() -> None:
    """Of a report whose people nobody counted."""
    text = comparison_text(compared(spoken("Ember", {"reddit": 6}), about("Ohom", posts("Ohom", MUG))), 100)

    words = "No share of voice can be stated: the report on Ohom is of an older version, so its people are not known"
    assert words in " ".join(text.split())


def test_all_that_is_asked_alike_is_said() -> None:
    """Sources, depth, window and limit."""
    like: dict[str, Any] = {"sources": ("reddit",), "since": "week", "limit": 7, "depth": "quick"}
    text = comparison_text(compared(about("Ember", []), about("Ohom", []), **like), 100)
    assert (
        "Each was asked alike and at the same time: Reddit, depth quick, posts of the last week, "
        "7 items a source at first."
    ) in " ".join(text.split())


def test_what_was_asked_differently_is_said() -> None:
    """And what follows from that; where nothing came of any there is nothing to say of it."""
    day = about("Ember", posts("Ember", MUG), since="day", depth="quick")
    always = about("Ohom", posts("Ohom", MUG))
    text = comparison_text(compared(day, always), 100)
    failed = compared(Failure("error", "no"), Failure("error", "no"))

    assert (
        "They were not asked alike. Depth: quick for Ember; standard for Ohom. How far back: the "
        "last day for Ember; any time for Ohom. Where they differ below, that may be the reason, "
        "and no interval knows of it."
    ) in " ".join(text.split())
    assert "asked alike and at the same time" not in text
    assert alike(failed) == "None of them has a report."


def test_what_an_interval_knows_and_does_not_is_said() -> None:
    """Wherever a difference is marked; how it is marked is explained there, too."""
    hated = [HATED.format("Ember")] * 9 + [MUG] * 5
    ember, ohom = about("Ember", posts("Ember", *hated)), about("Ohom", posts("Ohom", *[MUG] * 15))
    text = " ".join(notes(compared(ember, ohom)))

    assert "The range after “95 %:” is where one lies with 95 % confidence, each by itself." in text
    assert "of the 3 comparisons looked at in 5 % of cases at most" in text
    assert "What the intervals do not know: posts of one thread are not independent" in text


@pytest.mark.parametrize("trick", TRICKS)
def test_strangers_words_stay_words(trick: str) -> None:
    """As a product's name, a title, a place and a passage."""
    hostile = posts(f"Ember {trick}", HATED.format("Ember"), place="reddit")
    for each in hostile:
        each.update(place=trick, key=f"reddit:{trick}", url="javascript:alert(1)", source="reddit")
    comparison = compared(about(f"Ember {trick}", hostile), about("Ohom", [*hostile, *posts("Ohom", MUG)]))

    page, markdown = comparison_html(comparison), comparison_markdown(comparison)
    read = list(tokens(markdown))
    tags = re.findall(r"<(\w+)", page.partition("<body>")[2])
    assert not {"script", "img", "svg", "b"} & set(tags)
    assert set(re.findall(r'href="([^"]*)"', page)) <= {"#source-1", "#source-2"}
    assert not {"image", "html_inline", "html_block", "fence"} & {token.type for token in read}
    assert [token for token in read if token.type == "link_open"] == []
    assert sum(token.type == "table_open" for token in read) == 1
    assert headings(markdown)[1:] == ["Share of voice", "Posts about more than one of them", "Cited"]
    for text in (page, markdown, comparison_text(comparison, 100)):
        assert not set("\x1b\x07\x9b\u202e\u2066") & set(text)
    assert len(comparison_csv(comparison).splitlines()) >= 4


def test_an_author_that_must_be_named_is() -> None:
    """Beside the passage, in every format."""
    signed = posts("Ember", HATED.format("Ember"), credit="Ada (https://example.org/ada)")
    comparison = compared(about("Ember", signed), about("Ohom", posts("Ohom", *[HATED.format("Ohom")] * 2)))
    assert "by Ada" in comparison_text(comparison, 100)
    assert "https://example.org/ada" in comparison_text(comparison, 100)
    assert "by [Ada](<https://example.org/ada>)" in comparison_markdown(comparison)
    assert 'href="https://example.org/ada"' in comparison_html(comparison)


def test_where_nothing_is_marked_it_says_why() -> None:
    """Chance alone makes as much, or there is too little to look at; never a bare table."""
    four = [about(name, posts(name, *[HATED.format(name)] * 2)) for name in ("Ember", "Ohom")]
    assert (
        "No difference is marked: what was looked at (2 comparisons) is no more than chance alone "
        "makes of so few posts. That does not mean that the products are alike."
    ) in list(notes(compared(*four)))
    few = [about(name, posts(name, MUG)) for name in ("Ember", "Ohom")]
    assert "No difference is marked: there are too few posts to look at any." in list(notes(compared(*few)))
