"""Answers of the product to hostile and to ordinary posts, for the faces that show them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from api.core.domain import Grade
from api.core.items import Item
from api.pipeline.evidence.figures import Intervals, Sentiment, Shares, wilson
from api.reports.draft_rules import DraftFlaws, DraftText
from api.reports.report import Fetched, Finding, FindingKind, Quote, Report
from api.services.product import Ask, analyze, fetch
from tests.services.fakes import FakeJudge, FakeSource
from tests.services.kit import Author, Grading, kit, post

ESCAPES = "\x1b[31mred\x1b]8;;http://evil.example\x07x\x1b]8;;\x07\x9b2J\x07\x00\u202eolleh\u2066"
TRICKS = (
    "<img src=x onerror=alert(1)>",
    "](http://evil.example) [click](javascript:alert(1))",
    "![p](http://evil.example/p.png) <http://evil.example>",
    "# SYSTEM\n\n## Findings\n- all great",
    "```mermaid\npie\n``` `code` ~~~",
    "http://evil.example www.evil.example a@evil.example mailto:a@evil.example",
    "| a | b |\n| --- | --- |\n&lt;b&gt; **bold** _it_ ~~gone~~ $x$ {{y}}",
    ESCAPES,
    "> quoted\n1. listed\n=====\n[ref]: http://evil.example",
)
URLS = (
    "javascript:alert(1)",
    "data:text/html,<script>",
    "http://good.example/a_(b)`c`[d]",
    "https://evil.example/\x1b[31m\u202ex y",
    "//evil.example",
    "https://good.example/fine",
)


def hostile() -> list[Item]:
    """One post per trick, with a bad address."""
    return [
        post(
            number,
            title=f"{trick} number {'z' * 30 * (number + 1)}",
            body=trick,
            place=trick,
            url=URLS[number % len(URLS)],
            created_at=datetime(2026, 9, 1 + number, tzinfo=UTC),
        )
        for number, trick in enumerate(TRICKS)
    ]


async def hostile_report() -> Report:
    """A report over them, whose writer repeats what they say."""
    kinds: tuple[FindingKind, ...] = ("praise", "complaint", "request", "difference", "other")
    keys = [item.key for item in hostile()]
    findings = tuple(Finding(trick, kinds[number % 5], (keys[number],)) for number, trick in enumerate(TRICKS))
    quotes = tuple(Quote(trick, keys[0], URLS[n % 6]) for n, trick in enumerate(TRICKS))
    draft = DraftText(TRICKS[3], TRICKS[1], findings, quotes, TRICKS, DraftFlaws())
    grades = {
        str(number): Grade(5 - number % 4, trick, sentiment=1 - number % 3, aspects=(trick,))
        for number, trick in enumerate(TRICKS)
    }
    product = kit(FakeSource(hostile()), grader=Grading(grades), writer=Author(draft=draft))
    return await analyze(product, Ask(f"ember mug {TRICKS[0]}"))


async def hostile_fetch() -> Fetched:
    """Half of them, the other half dropped."""
    product = kit(FakeSource(hostile()), judge=FakeJudge("02468"), sample=True)
    return (await fetch(product, "reddit", Ask(f"ember mug {TRICKS[1]}", "quick", limit=9))).fetched


async def plain_report(**fields: Any) -> Report:
    """A report about ordinary posts."""
    found = [
        post(
            number,
            title=title,
            url="" if number == 2 else f"https://www.example.org/{number}",
            created_at=None if number == 1 else datetime(2026, 9, 1 + number, tzinfo=UTC),
            place=None if number == 1 else "r/a",
        )
        for number, title in enumerate(("Warm all day", "Lid leaks", "", "Tea leaves"))
    ]
    grades = {
        "0": Grade(5, "just so", sentiment=1, aspects=("heat", "电池寿命")),
        "1": Grade(4, "so so", sentiment=-1, aspects=("lid", "heat")),
        "2": Grade(3, "barely"),
        "3": Grade(1, "about tea"),
    }
    finding = Finding("It stays warm.", "praise", ("reddit:0", "reddit:1"))
    quote = Quote("Warm all day", "reddit:0", "https://www.example.org/0")
    draft = DraftText("The mug", "People like it.", (finding,), (quote,), ("Is it heavy?",), DraftFlaws())
    product = kit(FakeSource(found), grader=Grading(grades), writer=Author(draft=draft), **fields)
    return await analyze(product, Ask("ember mug"))


def sentiment(positive: int, neutral: int, negative: int, *, ungraded: int = 0) -> Sentiment:
    """The sentiment of so many items, shares and intervals counted."""
    feelings = {"positive": positive, "neutral": neutral, "negative": negative}
    n = sum(feelings.values())
    return Sentiment(
        n=n,
        **feelings,
        shares=Shares(**{name: count / n if n else None for name, count in feelings.items()}),
        wilson95=Intervals(**{name: wilson(count, n) for name, count in feelings.items()}),
        ungraded=ungraded,
    )
