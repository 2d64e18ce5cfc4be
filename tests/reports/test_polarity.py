"""Which way a sentence leans, measured on the committed sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from api.reports.keyless.aspects import aspects_in
from api.reports.keyless.polarity import count_feelings, lean_of, lean_wanted

LABELLED = Path(__file__).parents[2] / "evaluation/support/polarity.jsonl"


@pytest.mark.parametrize(
    ("sentence", "lean"),
    [
        ("The battery is excellent.", 1),
        ("The battery isn’t excellent.", -1),
        ("I have no complaints.", 1),
        ("It crashes all the time.", -1),
        ("Much better than the old one, excellent.", 1),
        ("It is not excellent, better than nothing.", None),
        ("Great, another update.", None),
        ("Excellent screen, terrible battery.", None),
        ("Is it excellent?", None),
        ("I wish it were excellent.", None),
        ("It weighs 30 grams.", None),
        ("Der Akku ist excellent.", None),
        ("电池太差了", None),
        ("...", None),
        ("My old one was excellent.", None),
        ("A plan without a dimmer is a joke.", -1),
        ("No bugs, no crashes.", 1),
        ("No lag, excellent sound.", 1),
        ("They charged me 99 dollars without warning, shady.", -1),
        ("It was never slow, awful or loud.", 1),
    ],
)
def test_only_what_is_sure_leans(sentence: str, lean: int | None) -> None:
    """Praise and complaint, turned by denial; questions, wishes, irony and two sides have none."""
    assert lean_of(sentence) == lean


@pytest.mark.parametrize(
    ("sentence", "lean"),
    [
        ("The kettle died after three weeks.", -1),
        ("It stopped charging overnight.", -1),
        ("Won't connect to the printer.", -1),
        ("Takes forever to start.", -1),
        ("Had to return mine.", -1),
        ("They refused to refund me.", -1),
        ("Support never answered.", -1),
        ("It costs more than my rent, not worth the upgrade.", -1),
        ("It gave me a headache.", -1),
        ("The handle came off.", -1),
        ("Still works after six years.", 1),
        ("Lasts all day.", 1),
        ("Works every time.", 1),
        ("Never had a problem with it.", 1),
        ("We use it every day.", 1),
        ("I would buy it again.", 1),
        ("Set up in five minutes.", 1),
        ("It never jams.", 1),
        ("Quiet enough to run at night.", 1),
    ],
)
def test_what_a_product_does_leans(sentence: str, lean: int) -> None:
    """Failure and success, without a word of feeling."""
    assert lean_of(sentence) == lean


@pytest.mark.parametrize(
    "sentence",
    [
        "Does it still work after six years?",
        "My old one died after three weeks.",
        "If it stopped charging I would call them.",
        "I wish it lasted all day.",
        "I need one that doesn't leak.",
        "The other brand leaked on my bag.",
        "My brother's stopped charging.",
        "Ordered mine yesterday.",
        "I quit after three weeks.",
        "I'll send it back when the box arrives.",
        "The manual says it lasts all day.",
        "It lasts all day and the handle came off.",
        "It hardly ever works every time, but I use it every day.",
    ],
)
def test_what_is_beside_the_product_does_not_lean(sentence: str) -> None:
    """A question, a wish, a condition, a plan, a person, another thing, two sides."""
    assert lean_of(sentence) is None


def test_the_marks_of_a_quotable_sentence_count_words_of_feeling_alone() -> None:
    """They were fitted on those."""
    assert count_feelings("Still runs, and it never once let us wait.") == (0, 0)


def test_the_clause_of_a_theme_must_lean() -> None:
    """What is said of the strap says nothing about sleep."""
    (sleep,) = aspects_in("sleep")
    (comfort,) = aspects_in("rash")
    sentence = "Sleep is tracked all night, the strap gave me a rash."

    assert lean_of(sentence, sleep.pattern) is None
    assert lean_of(sentence, comfort.pattern) == -1


def test_the_committed_sentences_are_read_with_precision() -> None:
    """At least nine of ten leans are right over all sentences, and two of five are seen."""
    rows = [json.loads(line) for line in LABELLED.read_text("utf-8").splitlines()]
    leans = [(row["lean"], lean_of(row["text"])) for row in rows]
    sure = [(label, lean) for label, lean in leans if lean is not None]
    right = sum(label == lean for label, lean in sure)

    assert len(rows) >= 300
    assert right / len(sure) >= 0.9
    assert right / sum(label != 0 for label, _ in leans) >= 0.4


@pytest.mark.parametrize(
    ("question", "lean"),
    [
        ("what annoys people about the Ember mug?", -1),
        ("what's wrong with it", -1),
        ("any issues?", -1),
        ("what do people really like about it?", 1),
        ("why is it praised?", 1),
        ("what do they like and dislike?", None),
        ("what is it like?", None),
        ("is it any good?", None),
    ],
)
def test_a_question_may_ask_for_one_side(question: str, lean: int | None) -> None:
    """`like` only where somebody likes; both sides are none."""
    assert lean_wanted(question) == lean


@pytest.mark.parametrize(
    ("sentence", "lean"),
    [
        ("Bad: battery lasts five hours of real work, not the nine people quote", -1),
        ("Pros: it is light and small", 1),
        ("- **Cons:** the app", -1),
        ("Pros: light. Cons: it leaks", None),
        ("I have read of many cons: none is true", None),
        ("The heating itself is flawless, though", 1),
        ("The app is awful though.", -1),
    ],
)
def test_a_named_side_decides_and_a_last_though_does_not(sentence: str, lean: int | None) -> None:
    """A side counts where the sentence begins with it; `though` at the end speaks of the sentence before."""
    assert lean_of(sentence) == lean
