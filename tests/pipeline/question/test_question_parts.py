"""A question taken apart, in seven languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.core.text import fold
from api.core.words import canonical
from api.pipeline.question.product_name import QuestionParts, question_parts

TABLE = Path(__file__).parents[2] / "data" / "questions.jsonl"
ROWS: list[dict[str, Any]] = list(map(json.loads, TABLE.read_text("utf-8").splitlines()))
RIGHT = 54
"""Questions of the table of which product and aspect have to be right."""


def is_right(row: dict[str, Any], parts: QuestionParts) -> bool:
    """Whether products and aspect are those of the table, in any spelling."""
    products = list(map(canonical, parts.products)) == list(map(canonical, row["products"]))
    return products and fold(parts.aspect) == fold(row["aspect"])


def test_products_and_aspects_of_a_table() -> None:
    """40 questions that the rules were made with, and 20 that were written before and kept apart."""
    wrong = [row["question"] for row in ROWS if not is_right(row, question_parts(row["question"]))]

    assert len(ROWS) == 60
    assert len(ROWS) - len(wrong) >= RIGHT, wrong


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["question"])
def test_kind_and_side(row: dict[str, Any]) -> None:
    """A comparison, a greeting or one product; complaints, praise or neither."""
    parts = question_parts(row["question"])

    assert (parts.kind, parts.side) == (row["kind"], row["lean"])


@pytest.mark.parametrize(
    ("question", "products", "aspect"),
    [
        ("Which is better, Oura or Whoop?", ("Oura", "Whoop"), ""),
        ("monday.com vs ClickUp", ("monday.com", "ClickUp"), ""),
        ("R vs X", ("R", "X"), ""),
        ("plaud.ai vs otter vs fireflies", ("plaud.ai", "otter", "fireflies"), ""),
        ("Framework laptop or ThinkPad for Linux?", ("Framework laptop", "ThinkPad"), "Linux"),
        ("Is Oura better than Whoop for sleep?", ("Oura", "Whoop"), "sleep"),
        ('"Batman vs Superman"', ("Batman vs Superman",), ""),
        ("Kramer vs. Kramer", ("Kramer vs. Kramer",), ""),
        ("Trick or Treat", ("Trick or Treat",), ""),
        ("Is the Ember mug dishwasher safe or not?", ("Ember mug",), "dishwasher safe"),
        ("How do people find the Framework laptop's keyboard?", ("Framework laptop",), "keyboard"),
        ("What do most people really think of X?", ("X",), ""),
        ("does it leak?", (), "leak"),
        ("鬼滅の刃はどう？", ("鬼滅の刃",), ""),
    ],
)
def test_what_is_compared_and_what_is_one_name(question: str, products: tuple[str, ...], aspect: str) -> None:
    """Words of asking are no aspects; a name in quotation marks is one."""
    parts = question_parts(question)

    assert (parts.products, parts.aspect) == (products, aspect)


@pytest.mark.parametrize(
    "question",
    [
        "PVS-Studio", "DevSecOps", "Tchaikovsky edition", "EVSE charger", "NVSwitch", "LG TVs/monitors",
        "Ember mug black or white?", "Plaud Note for work or school?", "is my battery worse than normal?",
        "Plaud, is it better than nothing?", "flamenco vs classical guitarist pricing",
    ],
)  # fmt: skip
def test_a_question_about_one_product_is_no_comparison(question: str) -> None:
    """Letters inside a name compare nothing, and colours, purposes and "normal" are no products."""
    assert question_parts(question).kind == "product"


@given(st.text(max_size=120))
def test_any_text_is_taken_apart(text: str) -> None:
    """Without an error; what is compared is compared with something else."""
    parts = question_parts(text)

    assert parts.kind != "comparison" or len(set(map(canonical, parts.products))) > 1
