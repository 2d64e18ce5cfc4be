"""The claims of a report: their order, who holds them, and what stands above them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from api.core.domain import Outcome
from api.core.items import Comment
from api.interfaces.cli.terminal_text import report_text
from api.interfaces.pages.report_values import report_html
from api.interfaces.shared import claim_layout, presentation
from api.interfaces.shared.markdown_report import report_markdown
from api.pipeline.evidence.figures import AspectCount, Authors
from api.reports.report import Finding, Passage, Report
from tests.interfaces.answers import plain_report


def claim(text: str, people: dict[str, int], *words: str, kind: str = "other", key: str = "reddit:0") -> Finding:
    """A finding on passages of one post."""
    passages = [Passage(key, each) for each in words]
    return replace(Finding.resting(text, kind, passages, "checked"), people=people)  # type: ignore[arg-type]


async def stating(*findings: Finding, **changes: object) -> Report:
    """A report that says this."""
    return (await plain_report()).model_copy(update={"findings": findings, "quotes": (), **changes})


async def test_the_most_held_claims_come_first() -> None:
    """
    Five of them; the JSON keeps the writer's order.
    """
    findings = [claim(f"Claim {count}.", {"reddit": count}, "Warm all day") for count in (1, 3, 2, 6, 5, 4)]
    report = await stating(*findings)

    first, others = claim_layout.claims_of(report)

    assert [each.finding.text for each in first] == [f"Claim {count}." for count in (6, 5, 4, 3, 2)]
    assert [each.finding.text for each in others] == ["Claim 1."]
    assert report.findings[0].text == "Claim 1."


async def test_what_is_asked_for_leads() -> None:
    """
    A side, or the words beside the product's name.
    """
    praise = claim("It stays warm.", {"reddit": 9}, "Warm all day", kind="praise")
    complaint = claim("The lid leaks.", {"reddit": 2}, "Lid leaks", kind="complaint")
    annoyed = await stating(praise, complaint, query="What annoys people about the Ember mug?")
    lidded = await stating(praise, complaint, query="the lid of the Ember mug")

    for report in (annoyed, lidded):
        assert claim_layout.claims_of(report)[0][0].finding.text == "The lid leaks."


@pytest.mark.parametrize(
    ("people", "cites", "held"),
    [
        ({"reddit": 4, "youtube": 3}, 7, "7 people: Reddit 4, YouTube 3"),
        ({"reddit": 1}, 1, "1 person on Reddit"),
        ({"reddit": 1}, 6, "6 posts by one author on Reddit"),
        ({"reddit": 2}, 6, "2 people in 6 posts on Reddit"),
        ({"items": 3}, 3, "3 people"),
        ({}, 1, "1 post on Reddit"),
    ],
)
async def test_who_holds_it(people: dict[str, int], cites: int, held: str) -> None:
    """People are counted, not posts; of an older report posts."""
    report = await plain_report()
    items = [report.items[0].model_copy(update={"key": f"reddit:{at}", "created_at": None}) for at in range(cites)]
    passages = [Passage(item.key, "Warm all day") for item in items]
    finding = replace(Finding.resting("It stays warm.", "praise", passages, "checked"), people=people)

    report = report.model_copy(update={"items": tuple(items), "findings": (finding,)})

    assert claim_layout.claims_of(report)[0][0].held == held


async def test_what_the_sentence_says_is_not_said_again() -> None:
    """
    Neither who holds it, nor the words that it quotes.
    """
    text = "Heat: “Warm all day”: all three people who speak of it say alike."
    counted = replace(claim(text, {"reddit": 3}, "Warm all day."), support="counted")
    report = await stating(counted)
    (shown,) = claim_layout.claims_of(report)[0]

    assert shown.held == "Reddit; 1 September 2026"
    assert shown.quotes[0].words == ""
    assert shown.quotes[0].facts == "Reddit (r/a), 2026-09-01"


async def test_words_have_their_place_day_and_echo() -> None:
    """
    Those of a comment its own; a measure of nothing is not shown.
    """
    report = await plain_report()
    comment = Comment(
        id="c", body="Warm", created_at=datetime(2026, 10, 5, tzinfo=UTC), engagement={"stars": 4.0, "helpful": 1_200}
    )
    item = report.items[0].model_copy(update={"comments": (comment,), "engagement": {"votes": -3, "comments": 0}})

    assert presentation.facts_of(item, "c") == "Reddit (r/a), 2026-10-05, 4 stars, 1,200 found it helpful"
    assert presentation.facts_of(item) == "Reddit (r/a), 2026-09-01, -3 votes"


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ([], ""),
        ([(2026, 5, 3)], "3 May 2026"),
        ([(2026, 5, 3), (2026, 5, 9)], "May 2026"),
        ([(2026, 11, 3), (2026, 5, 9)], "May to November 2026"),
        ([(2025, 11, 3), (2026, 5, 9)], "November 2025 to May 2026"),
    ],
)
def test_a_span_of_time_is_short(days: list[tuple[int, int, int]], words: str) -> None:
    """By the month where it is more than a day."""
    assert claim_layout.span([datetime(*day, tzinfo=UTC) for day in days]) == words


async def test_one_line_says_what_must_be_known_first() -> None:
    """
    Made-up data, posts that nobody judged, a place that was blocked; else nothing.
    """
    report = await plain_report()
    source = report.sources["reddit"]
    gate = source.gate.model_copy(update={"status": "degraded", "model": None})
    opened = source.model_copy(update={"gate": gate})
    blocked = source.model_copy(update={"source": "amazon", "outcome": Outcome.BLOCKED, "fetched": 0})
    unset = source.model_copy(update={"source": "youtube", "outcome": Outcome.NOT_CONFIGURED, "fetched": 0})
    sources = {"reddit": opened, "amazon": blocked, "youtube": unset}

    assert claim_layout.notice(report) == ""
    assert claim_layout.notice(report.model_copy(update={"sources": sources})) == (
        "Nobody judged which posts of Reddit are about it; Amazon could not be asked."
    )


@pytest.mark.parametrize("width", [80, 100])
async def test_three_claims_stand_in_the_first_fifteen_lines(width: int) -> None:
    """
    With a sentence, a count and a quote of usual lengths.
    """
    words = "I charged it four times over two weeks and it still had half left at the end of it all"
    findings = [
        claim(f"The battery of number {at} lasts more than a week of daily use, also on the road.", people, words)
        for at, people in enumerate(({"reddit": 4, "youtube": 3}, {"reddit": 3, "amazon": 2}, {"youtube": 3}), 1)
    ]
    report = await stating(*findings, sample=True, disclaimer=None)
    lines = report_text(report, False, width).split("\n")[:15]

    assert sum(line.startswith(("1. The", "2. The", "3. The")) for line in lines) == 3


async def test_how_it_was_made_comes_last_everywhere() -> None:
    """
    After the claims and the posts; on the page folded, with the posts beside it.
    """
    report = await plain_report()
    html = report_html(report)
    order = ("It stays warm.", "Cited posts", "About this report", "1 post was")
    for text in (report_text(report, True, 100), report_markdown(report, True)):
        places = [text.index(words) for words in order]
        assert places == sorted(places)
    assert html.index("It stays warm.") < html.index('id="about"') < html.index("1 post was")


async def test_a_summary_of_more_than_two_lines_stands_below() -> None:
    """
    One that is short answers above; one that counts the claims says nothing new.
    """
    finding = claim("It stays warm.", {"reddit": 3}, "Warm all day")
    long = await stating(finding, summary="People like it very much. " * 9)
    counting = await stating(finding, summary="Most said: “Warm all day” (three people).")

    assert claim_layout.lead(long) == []
    assert claim_layout.summary(long)
    assert "\nSummary\n-------\nPeople like it" in report_text(long, False, 100)
    assert claim_layout.lead(counting) == claim_layout.summary(counting) == []


async def held_over(months: dict[str, int]) -> Report:
    """A report of one claim that is held over these months."""
    finding = replace(claim("It stays warm.", {"reddit": 9}, "Warm"), months=months)
    report = await stating(finding)
    items = [item.model_copy(update={"created_at": datetime(2026, 5, 3, tzinfo=UTC)}) for item in report.items]
    return report.model_copy(update={"items": tuple(items)})


async def test_a_claim_has_a_line_over_time_everywhere() -> None:
    """Signs in a terminal and in Markdown, a picture with title and table on a page, counts in the JSON."""
    report = await held_over({"2026-02": 1, "2026-04": 6, "2026-05": 2})
    (shown,), _ = claim_layout.claims_of(report)
    html = report_html(report)

    assert claim_layout.in_words(shown) == "9 people on Reddit; 3 May 2026, by month ▃▁█▄"
    assert "by month ▃▁█▄" in report_text(report, dropped=False, width=200)
    assert "by month ▃▁█▄" in report_markdown(report, dropped=False)
    assert "<title>People by month, February 2026 to May 2026: 6 people at most</title>" in html
    drawn = html.partition('class="chart line" role="img"')[2].partition("</svg>")[0]
    assert drawn.count("<rect ") == 4
    assert '<tr><th scope="row">2026-03</th><td>0</td></tr>' in html
    assert report.model_dump(mode="json")["findings"][0]["months"] == {"2026-02": 1, "2026-04": 6, "2026-05": 2}


async def test_a_long_line_has_its_latest_months_and_none_stands_without_counts() -> None:
    """The pieces of a line are bounded, whatever dates strangers give."""
    long, ages, none = [
        claim_layout.claims_of(await held_over(months))[0][0].over_time
        for months in ({"2020-01": 1, "2025-06": 4, "2025-07": 4}, {"0001-01": 4, "2026-01": 4}, {})
    ]

    assert long == "by month, the latest 24 ██"
    assert (ages, none) == ("", "")


async def test_four_figures_stand_above_the_claims() -> None:
    """
    Each with what it counts; nothing of a report without posts, and no tone where none is known.
    """
    report = await plain_report()
    labels = dict(claim_layout.glance(report))
    assert any("tone" in label for label in labels)
    empty = report.model_copy(update={"items": ()})
    toneless = report.model_copy(update={"figures": report.figures.model_copy(update={"sentiment": None})})

    assert any(
        label.startswith("posts kept") and value == str(len(report.items))
        for label, value in claim_layout.glance(report)
    )
    assert claim_layout.glance(empty) == []
    assert not any("tone" in label for label, _ in claim_layout.glance(toneless))
    assert all(labels.values())


@pytest.mark.parametrize(
    ("authors", "shown", "rests"),
    [
        ((21, 3, 0), ("people", "21"), "33 posts by 21 people, one of whom wrote 3 of them;"),
        ((33, 1, 0), ("people", "33"), "33 posts;"),
        (
            (21, 1, 12),
            ("people, and 12 posts without a known author", "21"),
            "33 posts by 21 people; 12 posts have no known author;",
        ),
        (
            (1, 32, 1),
            ("person, and 1 post without a known author", "1"),
            "33 posts by 1 person; 1 post has no known author;",
        ),
        ((0, 0, 33), None, "33 posts, all without a known author;"),
        ((33, 1, None), ("people", "33"), "33 posts;"),
    ],
)
async def test_people_are_known_authors(authors: Any, shown: tuple[str, str] | None, rests: str) -> None:
    """
    What nobody's name stands on is said as posts; a report of an older version does not know which.
    """
    report = await plain_report()
    people, most, unnamed = authors
    known = Authors(people=people, most=most, unnamed=unnamed)
    items = tuple(report.items[0].model_copy(update={"key": f"reddit:{n}"}) for n in range(33))
    figures = report.figures.model_copy(update={"authors": known})
    report = report.model_copy(update={"items": items, "figures": figures})

    people_shown = [figure for figure in claim_layout.glance(report) if figure[0].startswith("pe")]
    assert people_shown == ([shown] if shown else [])
    assert f"It rests on {rests}" in " ".join(claim_layout.process(report))
    assert all(sentence.endswith(".") for sentence in claim_layout.process(report))


@pytest.mark.parametrize(
    ("query", "first", "said"),
    [
        ("What annoys people about the Ember mug?", ["The lid leaks."], []),
        ("the app of the Ember mug", ["The app is slow."], []),
        ("What do people say about the app crashes of the Ember mug?", ["The app is slow."], []),
        ("How good is the app of the Ember mug in Germany?", ["The app is slow."], []),
        ("Was sagen Leute über die App von Ember mug?", ["The app is slow."], []),
        ("Ember mug", ["The lid leaks.", "The app is slow."], []),
        ("The Last of Us", ["The lid leaks.", "The app is slow."], []),
        ("What do people say about The Last of Us?", ["The lid leaks.", "The app is slow."], []),
        ("What do people like about the Ember mug?", ["The lid leaks.", "The app is slow."],
         ["Nothing here was recognised as praise; some may still be. What is said:"]),
        ("the charger of the Ember mug", ["The lid leaks.", "The app is slow."],
         ["No claim here is about the charger. What is said instead:"]),
        ("What do people like about the charger of the Ember mug?", ["The lid leaks.", "The app is slow."],
         ["Nothing here was recognised as praise about the charger; some may still be. What is said:"]),
    ],
)  # fmt: skip
async def test_only_answers_stand_first(query: str, first: list[str], said: list[str]) -> None:
    """What else is said follows below its heading; where nothing is an answer, a sentence says so."""
    lid, app = (
        claim("The lid leaks.", {"reddit": 2}, "It leaks", kind="complaint"),
        claim("The app is slow.", {}, "Slow"),
    )
    report = await stating(lid, app, query=query, summary="")

    shown, others = claim_layout.claims_of(report)
    assert [each.finding.text for each in shown] == first
    assert len(shown) + len(others) == 2
    assert claim_layout.lead(report) == said


@pytest.mark.parametrize(
    ("sentence", "support", "name", "words", "people"),
    [
        ("Lid, for example: “It leaks: “badly”, they say”.", None, "Lid", "It leaks: “badly”, they say", "2 people"),
        ("Lid: “It leaks”.", "counted", "Lid", "It leaks", "2 people"),
        ("Lid: “It leaks”: both people who speak of it say alike.", "counted", "Lid", "It leaks",
         "both people who speak of it say alike"),
        ("One voice: “It leaks”.", "counted", "", "", ""),
        ("The lid leaks: two people say so.", "counted", "", "", ""),
        ("The lid leaks.", None, "", "", "2 people"),
    ],
)  # fmt: skip
async def test_a_subject_heads_its_card(sentence: str, support: Any, name: str, words: str, people: str) -> None:
    """With who holds it, and its words below; a sentence without a subject stands as it is."""
    finding = replace(claim(sentence, {"reddit": 2}, "It leaks", "A lid"), support=support)
    (first,), _ = claim_layout.claims_of(await stating(finding))

    assert (first.name, first.words, first.people) == (name, words, people)
    assert first.where.startswith("Reddit 2")


async def test_posts_that_speak_of_an_aspect_are_counted_beside_one_of_them() -> None:
    """By the figures, which count the items; above the claims stand those of three posts or more, the most first."""
    aspects = tuple(
        AspectCount(aspect=name, count=1, positive=0, negative=0, cites=tuple(map(str, range(posts))))
        for name, posts in (("app", 3), ("lid", 14), ("price", 2))
    )
    price = claim("Price: “Dear”", {"reddit": 1}, "Dear")
    plain = await stating(price, claim("Lid: “It leaks”", {"reddit": 1}, "It leaks"), summary="")
    report = plain.model_copy(update={"figures": plain.figures.model_copy(update={"aspects": aspects})})

    (first, second), _ = claim_layout.claims_of(report)
    assert (first.name, first.people, first.where) == ("Lid", "one of 14 posts that speak of it", "")
    assert (second.name, second.people) == ("Price", "one of 2 posts that speak of it")
    assert claim_layout.lead(report) == ["Most spoken of, in posts: lid (14), app (3)."]
    counted = replace(
        claim("Lid: “It leaks”: one of the six people who speak of it.", {"reddit": 1}, "It leaks"), support="counted"
    )
    (only,), _ = claim_layout.claims_of(report.model_copy(update={"findings": [counted]}))
    assert only.people == "one of the six people who speak of it"  # not beside posts, another unit
    named = report.model_copy(update={"summary": "Most spoken of: lid (two people)."})
    assert claim_layout.lead(named) == ["Most spoken of: lid (two people)."]


async def test_questions_on_a_part_are_on_subjects_of_claims() -> None:
    """Those with the most people, as many as were suggested; other suggestions stay."""
    subject = claim("Lid, for example: “It leaks”.", {"reddit": 2}, "It leaks", "A lid")
    suggestions = ("What annoys people about the mug?", "What do people say about the data of the mug?")
    report = await stating(subject, suggestions=suggestions)

    assert claim_layout.next_questions(report) == [suggestions[0], "What do people say about the lid of the mug?"]
    assert claim_layout.next_questions(await stating(suggestions=suggestions)) == list(suggestions)
