"""Word frequency, and which names are everyday words by it."""

from __future__ import annotations

import pytest

from api.pipeline.gate.name_matches import everyday_parts, name_of, zipf


def test_common_words_have_higher_frequencies() -> None:
    """The scale is logarithmic, and a word that is not listed has 0."""
    assert zipf("the") > 7 > zipf("notion") > 3.5 > zipf("corona") > 2 > zipf("plaud") == 0


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("Corona", 1), ("Go", 1), ("Visa", 1), ("Pixel", 1), ("Arc browser", 1), ("monday.com", 1),
        ("Rain Bird", 2), ("Plaud", 0), ("Spotify", 0), ("Uniqlo", 0), ("Pixel 9", 0),
        ("Rosetta Stone", 0), ("小米", 0),
    ],
)  # fmt: skip
def test_a_name_of_frequent_words_is_everyday(query: str, words: int) -> None:
    """A code, another script or one rare word makes it a name of its own."""
    assert everyday_parts(name_of(query)) == words
