"""What the sandbox's model answers, on prompts as the product builds them."""

from __future__ import annotations

import pytest

from api.core.domain import Verdict
from api.core.items import Assessed, Comment, Item
from api.core.text import Fence
from api.reports.exhibits import BODY, Dossier, describe
from api.sandbox import corpus
from api.sandbox.model_answers import QuotedPrompt, answer, report
from tests.sandbox.conftest import words

FENCE = Fence("cafe")


def prompt(question: str, *lines: str, about: str = "") -> QuotedPrompt:
    """A prompt with a question and ready lines."""
    head = [FENCE.quote(question, "question")] + ([FENCE.quote(about, "about")] if about else [])
    return QuotedPrompt((("system", f"Write. {FENCE.rule}"), ("user", "\n".join([*head, *lines]))))


def shown(question: str, *items: Item) -> QuotedPrompt:
    """A prompt with exhibits as the dossier describes them."""
    exhibits = Dossier().show(Assessed(item, Verdict(True)) for item in items)
    return prompt(question, describe(exhibits, FENCE, question))


def lamp(number: int, title: str, body: str = "", *comments: str, source: str = "reddit") -> Item:
    """An item about the lamp."""
    return Item(
        key=f"{source}:{number}", id=str(number), source=source, title=title, body=body,
        place="r/a",
        comments=tuple(Comment(id=f"c{at}", body=text) for at, text in enumerate(comments)),
    )  # fmt: skip


def test_findings_hold_passages_of_what_they_cite() -> None:
    """Over whole products: every passage stands in the exhibit it is cited from."""
    for slug, query in (("oura", "Oura"), ("bolt", "Bolt app"), ("xiaomi", "小米")):
        items = [
            lamp(number, post.title, post.body, *(comment.body for comment in post.comments[:4]))
            for number, post in enumerate(corpus.load(slug)[:20])
        ]
        asked = shown(query, *items)
        made = report(asked)
        texts = {exhibit.label: exhibit.text for exhibit in asked.exhibits}

        assert 1 <= len(made["findings"]) <= 7
        for finding in made["findings"]:
            passages = finding["evidence"]
            assert all(passage["passage"] in texts[passage["cite"]] for passage in passages)
        assert all(quote["text"] in texts[quote["cite"]] for quote in made["quotes"])


def test_a_sentence_that_the_prompt_cut_off_is_no_passage() -> None:
    """Nor is what a shop says of its own goods."""
    body = f"The battery of the Glow Lamp is great. {'It glows. ' * 70}"[: BODY + 40]
    long = shown("Glow Lamp", lamp(0, "Glow Lamp", body))
    shop = shown("Glow Lamp", lamp(1, "Glow Lamp", "Great battery!", "Dim.", source="amazon"))

    assert long.shown[0].item.body.endswith("It glows.")
    assert report(shop)["findings"][0]["text"].startswith("One voice")


def test_a_writer_counts_nobody() -> None:
    """It states claims as a model does; who says so is counted by code."""
    post = lamp(0, "Glow Lamp", "The battery is great.")
    asked = shown("Glow Lamp", *(post.edited(id=str(n), key=f"reddit:{n}") for n in range(3)))

    assert report(asked)["findings"][0]["text"] == "Battery: “The battery is great”"
    assert report(asked)["summary"] == "Said: “The battery is great”. Most spoken of: battery."


def test_a_short_report_has_two_findings() -> None:
    """Its instructions say that it is a starting point."""
    body = "The battery lasts. The price is fair. The app crashes. Support replied."
    asked = shown("Glow Lamp", *(lamp(number, "Glow Lamp", body) for number in range(3)))
    short = QuotedPrompt((("system", "Say that this is a starting point."), *asked.messages))

    assert (len(report(asked)["findings"]), len(report(short)["findings"])) == (3, 2)


def test_an_explanation_is_the_products_own() -> None:
    """It names queries, sources and reasons it was given, in 150 to 250 words."""
    for dropped in ((), ("Glow worms | reason: about insects", "Glow stars") * 3):
        lines = [
            FENCE.quote("glow lamp review", "query"),
            FENCE.quote("Reddit: 0 of 5 results were about it", "source"),
            *(FENCE.quote(text, "dropped") for text in dropped),
        ]
        made = answer("explanation_text", prompt("Glow Lamp", *lines), words)
        text = made["explanation_text"]

        assert 150 <= len(text.split()) <= 250
        assert "“glow lamp review”" in text
        assert "0 of 5 results were about it" in text
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


def test_a_grade_says_which_words_decided() -> None:
    """Where the name stands, what is spoken of in which words, and the judge's probability."""
    lines = [
        FENCE.quote("Glow Lamp after a month | The battery is excellent. Charger is tiny.", "1"),
        FENCE.quote("Lamps (glow lamp) | Any of them will do.", "2"),
        FENCE.quote("Worms | They glow at night.", "3"),
        FENCE.quote("The app crashes a lot.", "3 comment"),
    ]
    first, second, third = answer("grades", prompt("Glow Lamp", *lines), words).values()

    assert first["explanation"].startswith("Names “Glow Lamp” in the title and speaks of battery (“battery”); ")
    assert (first["sentiment"], first["quote"]) == (1, "The battery is excellent.")
    assert "only in passing" in second["explanation"]
    assert second["sentiment"] is None
    assert third["explanation"].startswith("Names “glow” below the title and speaks of app")
    assert third["sentiment"] == -1


def test_pairs_are_checked_in_order() -> None:
    """One boolean per sentence and passage."""
    lines = [
        FENCE.quote("Owners praise the battery.", "1 sentence"),
        FENCE.quote("The battery is excellent.", "1 passage"),
        FENCE.quote("Glow Lamp after a month", "1 context"),
        FENCE.quote("Owners praise the battery.", "2 sentence"),
        FENCE.quote("The battery is terrible.", "2 passage"),
        FENCE.quote("Glow Lamp after a month", "2 context"),
    ]

    assert answer("supported", prompt("Glow Lamp", *lines), words) == {"1": True, "2": False}
