"""The sandbox's writer, on prompts as the product builds them."""

from __future__ import annotations

import re

import pytest

from api.sandbox import corpus
from api.sandbox.answers import answer
from api.sandbox.lexicon import lexicon, sentences
from api.sandbox.quoted import Prompt
from api.sandbox.writer import name_of, report
from api.services.text import Fence
from tests.sandbox.conftest import words

FENCE = Fence("cafe")


def prompt(question: str, *lines: str, about: str = "") -> Prompt:
    """A prompt with a question and ready lines."""
    head = [FENCE.quote(question, "question")] + ([FENCE.quote(about, "about")] if about else [])
    return Prompt((("system", f"Write. {FENCE.rule}"), ("user", "\n".join([*head, *lines]))))


def exhibits(*texts: str, source: str = "reddit") -> list[str]:
    """Exhibits as the dossier shows them."""
    return [
        f"E{n}: {source}, 2026-01-01, 4 votes\n{FENCE.quote(text, f'E{n}')}"
        for n, text in enumerate(texts, 1)
    ]


SAID = exhibits(
    '(gadgets) Glow Lamp after a month | The battery is great. | "Love the battery, lasts forever"',
    "Glow Lamp review | Way too expensive for what it is.",
    "Is the Glow Lamp worth it? | Please add a dimmer to the app.",
    "Glow worms | The battery of my torch died, terrible.",
)


def test_findings_cite_exhibits_that_say_it() -> None:
    """Each finding cites what holds its aspect; the off-topic exhibit is left alone."""
    made = report(prompt("Glow Lamp", *SAID), words)
    by_kind = {finding["kind"]: finding["cites"] for finding in made["findings"]}

    assert by_kind == {"praise": ["E1"], "complaint": ["E2"], "request": ["E3"]}
    assert "Glow Lamp" in made["topic"]
    assert {"text": "Way too expensive for what it is.", "cite": "E2"} in made["quotes"]


def test_texts_are_the_writers_own_and_hold_no_numbers() -> None:
    """Over whole products: at least three findings, no digits, no unknown exhibit, real quotes."""
    for slug, query in (("oura", "Oura"), ("bolt", "Bolt app"), ("xiaomi", "小米")):
        posts = [post for post in corpus.load(slug) if post.source != "amazon"][:20]
        shown = [
            " | ".join([p.title, p.body, *(f'"{c.body}"' for c in p.comments)]).replace("\n", " ")
            for p in posts
        ]
        made = report(prompt(query, *exhibits(*shown)), words)
        labels = {f"E{n}": text for n, text in enumerate(shown, 1)}

        assert 3 <= len(made["findings"]) <= 7
        said = [made["summary"], *(finding["text"] for finding in made["findings"])]
        assert not re.search(r"\d", " ".join(said))
        assert all(finding["cites"] for finding in made["findings"])
        assert {c for finding in made["findings"] for c in finding["cites"]} <= set(labels)
        assert made["quotes"]
        assert all(quote["text"] in labels[quote["cite"]] for quote in made["quotes"])


def test_what_a_shop_says_of_its_own_product_is_no_opinion() -> None:
    """On Amazon only reviews count."""
    shop = exhibits('Glow Lamp | Great battery! | "Screen is too dim, bad."', source="amazon")
    made = report(prompt("Glow Lamp", *shop), words)

    assert [f["kind"] for f in made["findings"] if f["kind"] in {"praise", "complaint"}] == [
        "complaint"
    ]


def test_disagreement_is_a_finding_of_its_own() -> None:
    """An aspect that is praised here and criticised there becomes a difference, citing both."""
    shown = exhibits(
        "Glow Lamp a | The battery is great.", "Glow Lamp b | The battery is terrible."
    )
    made = report(prompt("Glow Lamp", *shown), words)
    difference = next(f for f in made["findings"] if f["kind"] == "difference")

    assert set(difference["cites"]) == {"E1", "E2"}


def test_few_opinions_are_filled_with_plain_description() -> None:
    """Exhibits without an opinion are still described, one finding each."""
    shown = exhibits("Glow Lamp today", "Which glow lamp?", "glow lamp glow lamp")
    made = report(prompt("Glow Lamp", *shown), words)

    assert [finding["kind"] for finding in made["findings"]] == ["other"] * 3


def test_an_explanation_is_honest_and_of_the_right_length() -> None:
    """It names queries, sources and reasons it was given, in 150 to 250 words."""
    for dropped in ((), ("Glow worms | reason: about insects", "Glow stars") * 6):
        lines = [
            FENCE.quote("glow lamp review", "query"),
            FENCE.quote("Reddit: kept 0 of 5, yield 0 %", "source"),
            *(FENCE.quote(text, "dropped") for text in dropped),
        ]
        made = answer("explanation_text", prompt("Glow Lamp", *lines), words)
        text = made["explanation_text"]

        assert 150 <= len(text.split()) <= 250
        assert "“glow lamp review”" in text
        assert "kept 0 of 5" in text
        assert ("about insects" in text) is bool(dropped)
        assert made["suggestions"]


@pytest.mark.parametrize(
    ("question", "about", "expected"),
    [
        ("plaud.ai", "", ["plaud review", "plaud", "plaudai"]),
        (
            "Glow Lamp",
            "a foldable desk light",
            ["Glow Lamp desk light", "Glow Lamp review", "GlowLamp"],
        ),
    ],
)
def test_other_queries_are_other_spellings(question: str, about: str, expected: list[str]) -> None:
    """Without the web ending, run together, with the words that stand beside the name."""
    wanted = prompt(question, "queries wanted: 3", about=about)

    assert answer("queries", wanted, words)["queries"] == expected


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Bolt app", "Bolt"),
        ("What do people think about the Ember mug?", "Ember mug"),
        ("How is the battery of the Plaud Note?", "Plaud Note"),
        ("小米", "小米"),
        ("please compare every single lamp that anybody ever sold here", ""),
    ],
)
def test_the_name_is_what_is_left_of_a_question(question: str, name: str) -> None:
    """Words of asking and of topics are no part of a name; a long rest is none."""
    assert name_of(question) == name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("great battery", 1),
        ("not great at all", -1),
        ("it is a lamp", 0),
        ("真的强", 1),
        ("太贵", -1),
    ],
)
def test_praise_and_complaint_are_told_apart(text: str, expected: int) -> None:
    """Denied praise is a complaint."""
    assert lexicon().polarity(text) == expected


def test_sentences_leave_out_links_and_tags() -> None:
    """What is left can be quoted."""
    text = "Great lamp! See https://example.com/x\n#lamp #glow\nBright. 很好。亮"

    assert sentences(text) == ["Great lamp!", "See", "Bright.", "很好。", "亮"]
