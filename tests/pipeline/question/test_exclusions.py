"""What a description excludes."""

from __future__ import annotations

import pytest

from api.choices import MAX_EXCLUSION_LENGTH, MAX_EXCLUSIONS
from api.pipeline.question.exclusions import exclusions_of, split_exclusions


@pytest.mark.parametrize(
    ("about", "left", "excluded"),
    [
        ("the payments company; not a crochet square", "the payments company", ["crochet square"]),
        ("the browser (not Arc Raiders)", "the browser", ["Arc Raiders"]),
        ("the notes app, not the PreSonus program or the philosophy term", "the notes app",
         ["PreSonus program", "philosophy term"]),
        ("the browser — not the game Arc Raiders, electric arcs (of light), or architecture",
         "the browser", ["game Arc Raiders", "electric arcs (of light)", "architecture"]),
        ("the soap, not a bird, made by Unilever", "the soap, made by Unilever", ["bird"]),
        ("not the fruit", "", ["fruit"]),
        ("the maker of phones but not the fruit", "the maker of phones", ["fruit"]),
        ("der Bezahldienst, nicht die Häkelform", "der Bezahldienst", ["Häkelform"]),
        ("an app that does not sync", "an app that does not sync", []),
        ("the notes app", "the notes app", []),
        ("", "", []),
    ],
)  # fmt: skip
def test_negated_clauses_are_exclusions(about: str, left: str, excluded: list[str]) -> None:
    """A clause that begins with a negation goes; a negation inside a sentence stays."""
    assert split_exclusions(about) == (left, tuple(excluded))


def test_exclusions_are_bounded_and_each_stands_once() -> None:
    """However many and long they are."""
    texts = ["the fruit", "The fruit."[4:], "x" * 999, *(f"thing {n}" for n in range(99))]

    excluded = exclusions_of(texts)

    assert excluded[0] == "fruit"
    assert len(excluded) == MAX_EXCLUSIONS
    assert max(map(len, excluded)) <= MAX_EXCLUSION_LENGTH
    assert len(set(excluded)) == MAX_EXCLUSIONS
