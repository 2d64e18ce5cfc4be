"""Shapes and words of a picture: whatever goes in, what comes out is well-formed and finite."""

from __future__ import annotations

from math import isfinite
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.interfaces.shared.svg import brief, element, part, percent, shortened, title, words

# the two signs that Unicode calls no characters are none in XML either
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff"))


@given(TEXTS, TEXTS, st.floats())
def test_anything_is_well_formed(text: str, value: str, number: float) -> None:
    """Tags, quotes and control characters of strangers are text or nothing."""
    written = element("g", words(0, 1, text, class_="dim"), title(text), fill=value, x=number)
    read = ElementTree.fromstring(written)

    assert [child.tag for child in read] == ["text", "title"]
    assert isfinite(float(read.attrib["x"]))


@pytest.mark.parametrize(
    ("share", "length"),
    [(0, "0%"), (1, "100%"), (1 / 3, "33.33%"), (0.5, "50%"), (-1, "0%"), (7, "100%")],
)
def test_a_length_is_within_the_picture(share: float, length: str) -> None:
    """Two decimals at most."""
    assert percent(share) == length


def test_what_is_no_number_is_drawn_as_none() -> None:
    """
    Neither `nan` nor `inf` ends up in a picture, and nothing is divided by zero.
    """
    nan, inf = float("nan"), float("inf")

    assert (percent(nan), percent(inf)) == ("0%", "0%")
    assert element("rect", x=nan, y=inf, r=-0.0) == '<rect x="0" y="0" r="0"/>'
    assert (part(3, 0), part(0, 0), part(1, 4), part(9, 3), part(-1, 3)) == (0, 0, 0.25, 1, 0)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"), (9_999, "9999"), (10_000, "10k"), (99_499, "99k"), (999_499, "999k"),
        (999_500, "1.0M"), (1_234_567, "1.2M"), (9_960_000, "10M"), (2_500_000_000, "2.5G"),
        (10**15, ">999G"),
    ],
)  # fmt: skip
def test_huge_counts_are_short(count: int, shown: str) -> None:
    """Five characters at most."""
    assert brief(count) == shown
    assert len(shown) <= 5


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("battery", "battery"), ("battery life", "battery…"), ("eight ab", "eight ab"),
        ("电池寿命", "电池寿命"), ("电池寿命!", "电池寿…"), ("a\nb\x1b[31m", "a b"), ("", ""),
    ],
)  # fmt: skip
def test_labels_are_cut_by_columns(text: str, label: str) -> None:
    """A Chinese sign takes two of the eight, the ellipsis one."""
    assert shortened(text, 8) == label
