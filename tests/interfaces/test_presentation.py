"""What every rendering shows of an answer."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from api.core.progress import SourceJudged, SourceLookedAgain
from api.features.chat.chat_turn import Citation, CitedPassage
from api.interfaces.cli.terminal_text import report_text
from api.interfaces.pages.report_values import report_html
from api.interfaces.shared import presentation
from api.interfaces.shared.csv_export import report_csv
from api.interfaces.shared.markdown_report import report_markdown
from api.interfaces.shared.presentation import (
    LONGEST_HEADING,
    LONGEST_TITLE,
    judged_by,
    progress,
    source_rows,
    title_of,
)
from api.models.answer_parsing import STAND_IN
from tests.interfaces.answers import plain_report


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        ("My\nmug", "My mug"),
        ("", "“good”"),
        ("\u200b \u202e", "“good”"),
        ("m" * LONGEST_TITLE, "m" * LONGEST_TITLE),
        ("m" * 1_000_000, "m" * LONGEST_TITLE + "…"),
    ],
)
async def test_an_item_has_a_name_that_can_be_read(title: str, shown: str) -> None:
    """Of a person's own item a title may be anything; without one it is called by its first words."""
    item = (await plain_report()).items[0].model_copy(update={"title": title})

    assert title_of(item) == shown
    wordless = item.model_copy(update={"title": "", "body": "\u200b", "comments": ()})
    assert title_of(wordless) == "untitled"


async def test_a_comment_is_not_called_by_its_threads_title() -> None:
    """Kept or dropped; JSON and CSV name the thread, of a post they name none."""
    report = await plain_report()
    kept, *others = report.items
    hit = kept.model_copy(update={"title": "Warm?", "thread": "lemmy:1"})
    report = report.model_copy(update={"items": (hit, *others)})
    rows = list(csv.DictReader(io.StringIO(report_csv(report))))

    assert title_of(hit) == "comment on: Warm?"
    assert "comment on: Warm?" in report_text(report, False, 100)
    assert [row["thread"] for row in rows[:2]] == ["lemmy:1", ""]
    assert "thread" not in kept.model_dump()
    assert hit.model_dump()["thread"] == "lemmy:1"


async def test_a_report_says_how_its_product_was_described() -> None:
    """Also what it is not; a report without either says nothing of it."""
    plain = (await plain_report()).model_copy(update={"about": "", "not_about": ()})
    exact = plain.model_copy(update={"about": "a\nmug", "not_about": ("a <b>cup</b>", "a bowl")})
    denied = exact.model_copy(update={"about": ""})

    assert "Described" not in report_text(plain, False, 100)
    sentence = "Described as “a mug”; not meant: “a <b>cup</b>”, “a bowl”."
    assert sentence in report_text(exact, False, 100)
    assert "Described as “a mug”; not meant: “a \\<b\\>cup" in report_markdown(exact, False)
    assert "not meant: “a &lt;b&gt;cup&lt;/b&gt;”, “a bowl”." in report_html(exact)
    assert "Not meant: “a <b>cup</b>”, “a bowl”." in report_text(denied, False, 100)


async def test_what_a_source_left_out_stands_by_the_sources() -> None:
    """In every rendering, once; a table's `ok` does not say that a part was not searched."""
    report = await plain_report()
    name, source = next(iter(report.sources.items()))
    notes = ("forum.example not searched: HTTP 503", "read already")
    told = f"{presentation.source_title(name)}: read already"
    sources = {**report.sources, name: source.model_copy(update={"notes": notes})}
    report = report.model_copy(update={"sources": sources, "quality_notes": (told,)})

    for page in (report_text(report, False, 120), report_markdown(report, False),
                 report_html(report)):  # fmt: skip
        assert page.replace("\\", "").count(": forum.example not searched: HTTP 503") == 1
        assert page.count("read already") == 1


@pytest.mark.parametrize("relevant", [1, 0])
def test_a_second_look_is_told(relevant: int) -> None:
    """What came of it stands in the progress."""
    line = progress(SourceLookedAgain(source="reddit", relevant=relevant, status="ok"))

    assert line == f"a second look at what was dropped: {relevant} about it"


def test_what_holds_nothing_new_is_no_share() -> None:
    """Nor is `0 of 0` a number of posts."""
    empty = SourceJudged(source="reddit", judged=0, relevant=0, status="skipped")

    assert progress(empty) is None


async def test_a_long_question_is_not_repeated_whole() -> None:
    """Its beginning stands above the answer; one long word is no wider than the page."""
    words = " ".join(f"word{n}" for n in range(1_000))
    for query in (words, "w" * 5_000):
        report = (await plain_report()).model_copy(update={"topic": "", "query": query})
        heading = presentation.heading(report)
        assert heading == f"{query[:LONGEST_HEADING].rstrip()}…"
        for page in (report_markdown(report, True), report_html(report)):
            assert query[:100] in page
            assert query[:200] not in page
        lines = report_text(report, True, 80).splitlines()
        assert query[:200] not in " ".join(lines)
        assert max(len(line) for line in lines if set(line) == {"="}) <= 80


async def test_who_judged_is_said_in_plain_words() -> None:
    """A reader need not know what the sample data is made of."""
    source = (await plain_report()).sources["reddit"]

    def judged(model: str) -> str:
        gate = source.gate.model_copy(update={"model": model})
        return judged_by([source.model_copy(update={"gate": gate})])

    assert judged(STAND_IN) == (
        "A small program on this machine, in place of a language model, judged what is about the question."
    )
    assert judged("gpt") == "`gpt` judged what is about the question."


async def test_a_share_is_of_what_stands_beside_it() -> None:
    """Of what was found, though the yield leaves out what nobody could judge."""
    source = (await plain_report()).sources["reddit"]
    found = source.model_copy(update={"fetched": 5, "kept": 3, "yield_ratio": 0.75})

    (row,) = source_rows([found])

    assert (row.fetched, row.kept, row.share) == (5, "3", "60 %")


async def test_what_nobody_judged_is_no_share() -> None:
    """A gate that failed open does not look like success; one with a stand-in has its figures."""
    report = await plain_report()
    source = report.sources["reddit"]
    gate = source.gate.model_copy(update={"status": "degraded", "model": None})
    opened = source.model_copy(update={"gate": gate, "yield_ratio": None})
    stood_in = gate.model_copy(update={"model": "local-3"})
    told = report.model_copy(update={"sources": {"reddit": opened}})

    row, other = source_rows([opened, source.model_copy(update={"gate": stood_in})])
    assert (row.kept, row.share, row.judged) == ("-", "-", "not judged")
    assert (other.kept, other.judged) == (str(source.kept), "no")
    assert f"| {source.fetched} | - | - | once | not judged |" in report_markdown(told, dropped=False)
    text = " ".join(report_text(told, dropped=False, width=40).split())
    assert f"nobody judged which of {source.fetched} were about it" in text


def test_a_batch_that_passed_unjudged_is_not_counted_as_relevant() -> None:
    """The line that people follow says that nobody could tell."""
    opened = SourceJudged(source="reddit", judged=5, relevant=0, status="degraded")

    assert progress(opened) == "which of 5 are about it could not be judged"


def test_a_citation_of_a_chat_says_whose_day_and_votes_it_shows() -> None:
    """A comment's are marked as such; of words of several people, or of none, the place alone is said."""
    day = datetime(2026, 5, 3, tzinfo=UTC)
    cited = Citation("E1", "k", "Mug", "", "Hot.", source="reddit", place="r/mugs", created_at=day)
    cited = replace(cited, engagement={"votes": 3}, passages=(CitedPassage("Hot."),))
    comment, other = CitedPassage("Hot.", "c1", credit="Ada (https://a.example)"), CitedPassage("Cold.", "c2")

    assert presentation.cited_facts(cited) == "Reddit (r/mugs), 2026-05-03, 3 votes"
    assert presentation.cited_facts(replace(cited, passages=(comment,))) == (
        "Reddit (r/mugs), comment, 2026-05-03, 3 votes"
    )
    stars = replace(cited, passages=(comment,), source="amazon", engagement={"stars": 5}, place=None)
    assert presentation.cited_facts(stars) == "Amazon, review, 2026-05-03, 5 stars"
    assert presentation.cited_facts(replace(cited, passages=(comment, other))) == "Reddit (r/mugs)"
    assert presentation.cited_facts(replace(cited, passage="", passages=())) == "Reddit (r/mugs)"
    assert presentation.credits_of(replace(cited, passages=(comment, other))) == ["Ada (https://a.example)"]
