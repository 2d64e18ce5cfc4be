"""Whoever has to be named is, beside each quote and in every export."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import pytest

from api.core.items import Commented, Item
from api.interfaces.cli.terminal_text import report_text
from api.interfaces.pages.report_values import report_html
from api.interfaces.shared.csv_export import report_csv
from api.interfaces.shared.markdown_report import report_markdown
from api.reports.draft_rules import DraftFlaws, DraftText
from api.reports.report import Finding, Passage, Quote, Report
from api.services.product import Ask, analyze
from tests.services.fakes import FakeSource
from tests.services.kit import Author, Grading, kit, post, said

ADA, BO = "https://superuser.com/users/7/ada", "https://superuser.com/users/8/bo"


class Answered(FakeSource):
    """Its items have an answer of Bo's."""

    async def comments(self, items: Sequence[Item]) -> Commented:
        answer = said("Update the firmware of it.", "c1").edited(credit=f"Bo ({BO})")
        first, *others = items
        return Commented((first.edited(comments=(answer,)), *others))


async def credited_report(*, sample: bool = False) -> Report:
    """A question and its answer, each quoted, and a post of nobody who has to be named."""
    question = post(0, title="Why does it hum?", body="The mug hums at night.").model_copy(
        update={"credit": f"Ada <b> ({ADA})"}
    )
    other = post(1, title="Warm all day", body="It stays warm.")
    evidence = (
        Passage("reddit:0", "The mug hums at night."),
        Passage("reddit:1", "It stays warm."),
    )
    finding = Finding.resting("It hums.", "complaint", evidence, "checked")
    quote = Quote("Update the firmware of it.", "reddit:0", "https://x.example/1", "c1")
    draft = DraftText("The mug", "It hums.", (finding,), (quote,), (), DraftFlaws())
    product = kit(Answered([question, other]), grader=Grading(), writer=Author(draft=draft), sample=sample)
    return await analyze(product, Ask("ember mug"))


async def test_the_terminal_names_them() -> None:
    """Beside the words, the profile on a line of its own that can be opened."""
    lines = [line.strip() for line in report_text(await credited_report(), False, 100).splitlines()]

    passage, answer = (
        next(at for at, line in enumerate(lines) if line.startswith(words))
        for words in ("“The mug hums at night.”", "“Update the firmware of it.”")
    )
    assert lines[passage] == "“The mug hums at night.” [1] by Ada <b>, Reddit (r/a)"
    assert lines[passage + 1] == ADA
    assert lines[answer] == "“Update the firmware of it.” [1] by Bo"
    assert lines[answer + 2] == BO
    assert any(line.startswith("“It stays warm.” [2]") and "by" not in line for line in lines)


async def test_markdown_and_page_link_the_profile() -> None:
    """Beside passage, quote and source, escaped."""
    report = await credited_report()
    markdown, page = report_markdown(report, False), report_html(report)

    named = f"by [Ada \\<b\\>](<{ADA}>)"
    lines = markdown.splitlines()
    assert sum(named in line for line in lines) == 2
    assert any("Update the firmware" in line and f"by [Bo](<{BO}>)" in line for line in lines)
    anchor = f'by <a href="{ADA}" rel="noopener noreferrer nofollow ugc">Ada &lt;b&gt;</a>'
    assert page.count(anchor) == 2  # the passage, and the source, whose text is signed above it
    assert page.count(f'href="{BO}"') == 2
    assert "<b>" not in page


async def test_json_and_csv_carry_them() -> None:
    """By the item and the comment; nothing where nobody has to be named."""
    report = await credited_report()
    first, second = json.loads(report.model_dump_json())["items"]
    rows = list(csv.DictReader(io.StringIO(report_csv(report))))

    assert first["credit"] == f"Ada <b> ({ADA})"
    assert first["comments"][0]["credit"] == f"Bo ({BO})"
    assert "credit" not in second
    assert [row["credit"] for row in rows] == [f"Ada <b> ({ADA})", ""]


@pytest.mark.parametrize("face", ["text", "markdown", "html"])
async def test_a_profile_that_nobody_has_is_no_link(face: str) -> None:
    """Made-up people are named without an address."""
    report = await credited_report(sample=True)
    shown = {
        "text": lambda: report_text(report, False, 100),
        "markdown": lambda: report_markdown(report, False),
        "html": lambda: report_html(report),
    }[face]()

    assert "by Ada" in shown
    assert "superuser.com" not in shown
