"""Markdown: what strangers wrote is shown as it is, and only http links are links."""

from __future__ import annotations

import re

import pytest

from api.errors import Blocked
from api.interfaces.pages.report_values import report_html
from api.interfaces.shared.markdown_report import fetch_markdown, report_markdown
from api.reports.markdown_text import link, md
from api.reports.report import Report
from api.services.product import Ask, analyze, fetch
from tests.interfaces.answers import TRICKS, hostile_fetch, hostile_report, plain_report, sentiment
from tests.interfaces.markdown_tokens import READER, headings, tokens
from tests.services.fakes import FakeSource
from tests.services.kit import kit
from tests.services.kit import plain as dumped

HEADINGS = [
    "What else is said", "In their words", "Figures", "Cited posts", "Dropped", "Next questions", "About this report",
]  # fmt: skip


def plain(text: str) -> str:
    """What a reader reads, without the marks and our invisible breaks."""
    return "".join(token.content for token in READER.parseInline(text)[0].children or []).replace("\u200b", "")


@pytest.mark.parametrize("trick", TRICKS)
def test_any_text_reads_as_it_was_written(trick: str) -> None:
    """B88: on one line, without control characters, and without any markup of its own."""
    shown = md(trick)
    types = {token.type for token in tokens(shown)}

    assert types - {"text_special"} == {"paragraph_open", "inline", "text", "paragraph_close"}
    assert "\n" not in shown
    assert not set("\x1b\x07\x00\x9b\u202e\u2066") & set(shown)
    if "\x1b" not in trick:
        assert plain(shown) == " ".join(trick.split())


@pytest.mark.parametrize("lead", ["- a", "+ a", "* a", "1. a", "23) a", "=== a", "--- ", "# a", "> a"])
def test_no_text_starts_a_block(lead: str) -> None:
    """Lists, headings, rules and quotes stay words."""
    assert [token.type for token in READER.parse(md(lead))] == [
        "paragraph_open", "inline", "paragraph_close",
    ]  # fmt: skip
    assert plain(md(lead)) == lead.strip()


@pytest.mark.parametrize(
    "address",
    ["http://evil.example", "HTTPS://evil.example", "www.evil.example", "ftp://evil.example",
     "mailto:a@evil.example", "a@evil.example"],
)  # fmt: skip
def test_addresses_in_texts_do_not_link_themselves(address: str) -> None:
    """A zero-width space breaks what GitHub would make a link of."""
    shown = md(f"see {address} now")

    assert address not in shown
    assert shown.replace("\u200b", "") == f"see {address} now"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "//evil.example", "", None, "http://a b"])
def test_only_http_addresses_are_links(url: str | None) -> None:
    """B88: anything else leaves the label alone."""
    assert link("label", url) == "label"


def test_an_address_cannot_leave_its_brackets() -> None:
    """
    Parentheses, brackets and back-ticks in it are encoded.
    """
    text = link("label", "http://good.example/a_(b)`c`[d]") + " and `more`"
    (opened,) = [token for token in tokens(text) if token.type == "link_open"]

    assert opened.attrs["href"] == "http://good.example/a_%28b%29%60c%60%5Bd%5D"


async def test_a_hostile_report_has_our_headings_and_only_good_links() -> None:
    """
    B88: no image, no HTML, no heading, code or table but ours, no other address.
    """
    text = report_markdown(await hostile_report(), dropped=True)
    found = list(tokens(text))

    assert {token.type for token in found} & {
        "image",
        "html_inline",
        "html_block",
        "s_open",
    } == set()
    assert headings(text)[1:] == HEADINGS
    hrefs = {str(token.attrs["href"]) for token in found if token.type == "link_open"}
    assert hrefs == {
        "http://good.example/a_%28b%29%60c%60%5Bd%5D", "https://good.example/fine",
    }  # fmt: skip
    assert not any(token.type == "fence" for token in found)
    assert sum(token.type == "table_open" for token in found) == 1
    assert not any(token.type == "code_inline" for token in found)
    assert not set("\x1b\x07\x00\x9b\u202e\u2066") & set(text)


async def test_a_hostile_fetch_is_no_better_off() -> None:
    """
    The same for one source, dropped items included.
    """
    text = fetch_markdown(await hostile_fetch(), dropped=True)

    assert headings(text)[1:] == ["Items", "Dropped"]
    hrefs = {token.attrs["href"] for token in tokens(text) if token.type == "link_open"}
    assert hrefs <= {
        "http://good.example/a_%28b%29%60c%60%5Bd%5D", "https://good.example/fine",
    }  # fmt: skip
    assert not any(token.type in {"image", "html_inline"} for token in tokens(text))


async def test_a_report_reads_from_top_to_bottom() -> None:
    """
    Topic, claims with linked numbers, quotes, figures, cited posts, questions, and how it was made.
    """
    text = report_markdown(await plain_report(), dropped=True)

    assert text.startswith(
        "# The mug\n\n"
        "> Only 3 of 4 posts found were relevant to your question. Consider this a starting point, "
        "not a comprehensive answer.\n\n"
        "People like it.\n\n"
        "- **It stays warm.** (unverified) 2 posts on Reddit [\\[1\\]](<https://www.example.org/0>) "
        "[\\[2\\]](<https://www.example.org/1>)\n"
    )
    assert "> “Warm all day” [link](<https://www.example.org/0>) [\\[1\\]]" in text
    assert "The tone of 2 of 3 kept posts can be told: 1 positive, 1 negative.\n\n2 of 3 kept" in text
    assert "- \\[1\\] [Warm all day](<https://www.example.org/0>): Reddit \\(r/a\\), 2026-09-01\n" in text
    assert "- \\[2\\] [Lid leaks](<https://www.example.org/1>): Reddit\n" in text
    assert "- \\[3\\] “good”: Reddit \\(r/a\\), 2026-09-03 *low relevance*\n" in text
    assert (
        "- [Tea leaves](<https://www.example.org/3>): "
        "graded too low: score 1 of 5, below the cutoff 3: about tea\n" in text
    )
    assert "## Next questions\n\n- Is it heavy?\n" in text
    about = text.partition("## About this report\n\n")[2]
    assert about.startswith(
        "- Enough was found for a short report only: 3 of 4 posts about it say enough, graded 3 of "
        "5 or better; a full one needs 4.\n"
    )
    assert "- 1 post was dropped: graded too low to answer the question.\n" in about
    assert "| Reddit | ok | 4 | 4 | 100 % | once | yes | 5 |" in about
    assert re.search(r"\n- Asked 20\d\d-\d\d-\d\d \d\d:\d\dZ at depth standard; ", about)
    assert "## Dropped" not in report_markdown(await plain_report(), dropped=False)


async def test_enough_items_are_a_table_and_a_chart() -> None:
    """
    Shares with their intervals; periods without items are zeros.
    """
    answer = dumped(await plain_report())
    points = [{"start": f"2026-09-0{day}", "count": 5 * (day % 2)} for day in (1, 2, 3)]
    answer["figures"] = {
        "sentiment": sentiment(12, 0, 12).model_dump(mode="json"),
        "timeline": {"unit": "day", "points": points, "undated": 2},
    }
    text = report_markdown(Report.model_validate(answer), dropped=False)

    assert (
        "How 24 of 24 kept posts sound.\n\n"
        "| they sound | posts | likely share of all posts whose tone can be told (95 %) |" in text
    )
    assert "| positive | 12 of 24 | 31 to 69 % |\n| neutral | 0 of 24 | 0 to 14 % |" in text
    assert (
        "Posts per day (UTC); 10 of 12 kept posts have a date.\n\n```mermaid\nxychart-beta\n"
        '    x-axis "2026-09-01 to 2026-09-03" 1 --> 3\n    y-axis "posts" 0 --> 5\n'
        "    bar [5, 0, 5]\n```" in text
    )


async def test_sample_data_says_so_first() -> None:
    """
    In both, before anything is claimed.
    """
    text = report_markdown(await plain_report(sample=True), dropped=False)

    assert text.splitlines()[2] == "> SAMPLE DATA: everything here is made up and comes from the offline sandbox."
    assert "- \\[1\\] Warm all day: Reddit \\(r/a\\), 2026-09-01 *sample*\n" in text
    assert "http" not in text
    assert "nothing was spent" in text
    assert "**Sample data**" in fetch_markdown(await hostile_fetch(), dropped=False)
    assert "SAMPLE DATA" not in report_markdown(await plain_report(), dropped=False)


async def test_an_empty_answer_has_no_empty_parts() -> None:
    """
    An explanation in paragraphs, the coverage, suggestions; a source not asked has no yield.
    """
    product = kit(FakeSource([]), ("amazon", Blocked("amazon")))
    text = report_markdown(await analyze(product, Ask("ember mug")), dropped=True)

    assert headings(text) == ["ember mug", "Next questions", "About this report"]
    assert "Nothing was said about it." in text
    assert " | 0 | 0 | - | once | \\- | 0 |" in text
    assert "\n\n\n" not in text


async def test_clarify_is_guidance_alone() -> None:
    """
    No table of sources that were not asked.
    """
    text = report_markdown(await analyze(kit(), Ask("hello")), dropped=True)

    assert headings(text) == ["hello", "About this report"]
    assert "nothing was spent" in text


async def test_a_fetch_that_failed_says_why() -> None:
    """
    Reason and notes as quotes, no list.
    """
    heard = await fetch(kit(("amazon", Blocked("amazon", "captcha"))), "amazon", Ask("mug"))
    failed = fetch_markdown(heard.fetched, dropped=True)
    noted = await fetch(kit(FakeSource([])), "reddit", Ask("mug"))
    fine = noted.fetched.model_copy(update={"notes": ("a *note*",)})

    assert "\ncaptcha; ask less often" in failed
    assert headings(failed) == ["mug on Amazon"]
    assert "> a \\*note\\*" in fetch_markdown(fine, dropped=True)


async def test_disputed_items_are_marked() -> None:
    """
    A second judge is sure of the opposite.
    """
    report = await plain_report()
    first, *others = report.items
    disputed = (first.model_copy(update={"disputed": True}), *others)
    report = report.model_copy(update={"items": disputed})

    assert "2026-09-01 *disputed*\n" in report_markdown(report, dropped=False)
    assert '<span class="badge">Disputed</span>' in report_html(report)
