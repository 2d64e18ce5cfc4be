"""Texts as the archive keeps their meaning."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.features.archive.search_ranking import cosines
from api.features.archive.search_values import DIMENSIONS
from api.models.local.word_vectors import embed, vectors


@pytest.fixture(autouse=True)
def installed() -> None:
    """Only where the vectors are."""
    if embed([""]) is None:
        pytest.skip("WordLlama is not installed")


@pytest.mark.parametrize("text", ["", "\ud83d", "a\x00b", "x" * 100_000, "小米手环", "👨\u200d👩"])
def test_any_text_has_a_vector_of_the_same_length(text: str) -> None:
    """Of signed bytes; of length 127 but for rounding, or nothing for a text without words."""
    vector = (embed([text]) or [b""])[0]

    assert len(vector) == DIMENSIONS
    length = sum(number * number for number in memoryview(vector).cast("b")) ** 0.5
    assert length == pytest.approx(127, abs=2) if text else length == 0


@given(st.lists(st.sampled_from([*"ab<>/s▁ \n\t.é小👍", "  ", "<s>", "battery", "x" * 41])).map("".join))
def test_words_have_the_pieces_that_they_have_in_their_text(text: str) -> None:
    """They are looked up word by word, which is many times faster, and the same."""
    known = vectors()
    assert known is not None
    assert known.pieces(text) == list(known.encode(text))


def test_what_means_the_same_is_nearer() -> None:
    """In the order of the texts; the same text has the same vector."""
    question, near, far, same = embed(
        ["battery died", "the accumulator is dead", "banana split", "battery died"]
    ) or [b""] * 4  # fmt: skip

    close, distant, equal = cosines(question, [near, far, same])
    assert close > 0.2 > distant
    assert equal == pytest.approx(1.0)
    assert embed([]) == []
