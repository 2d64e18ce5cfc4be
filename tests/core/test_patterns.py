"""Patterns and functions over strangers' text grow no faster than it, whatever it is made of."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules, walk_packages
from time import process_time
from types import ModuleType
from typing import Any

import pytest
import regex

import api
from api.choices import MAX_QUESTION_LENGTH
from api.core import own_words, text, words
from api.core.domain import Question
from api.core.items import Item
from api.core.text import Fence
from api.models import answer_parsing
from api.models.local import likeness
from api.pipeline.evidence import duplicates
from api.pipeline.gate import excerpt
from api.pipeline.gate.name_matches import name_of, sightings
from api.pipeline.question import query_screen
from api.reports import markdown_text, quotes
from api.reports.draft_rules import DraftCleaner
from api.reports.keyless import aspects, polarity
from api.reports.quotes import citable_text
from api.sources import amazon_pages, item_fields

MUG = name_of("ember mug", "")
NOTHING = citable_text({}, ["ember mug"])
SHAPES = (
    "a.", "a-b ", " ", "1.1,", "http://a", "a:", "@", "[a](", "((", "E1,E2;", "[E1,", "two ",
    "\\[", "<a", '"', "-x:", "小", "é\u0301", ".\u3002", "site:(", "aaaaaaaaa.com", "%\n",
    "<think ", "[removed by ", "good ", "-", ">", "*", "_", "#", "|",
)  # fmt: skip
BEGUN = ("[removed by", "<think", '"', "(", "-")
"""Beginnings of a pattern whose end never comes, only blanks."""
FUNCTIONS: tuple[Callable[[str], object], ...] = (
    text.clean, text.unescape, text.one_line, text.is_visible, text.web_url, text.fold,
    lambda written: text.cut(written, 100), Fence().quote,
    markdown_text.md, markdown_text.formatted, lambda written: markdown_text.link("a", written),
    lambda written: DraftCleaner(lambda _: NOTHING, markdown=True).whole(written),
    lambda written: DraftCleaner(lambda _: NOTHING, markdown=False).whole(written),
    quotes.sentences, quotes.beginning, aspects.aspects_in,
    polarity.count_feelings,
    polarity.lean_of,
    quotes.numbers, lambda written: quotes.says_count(written, 7), duplicates.canonical_url,
    words.split_words, words.joined_pieces, own_words.own_words,
    lambda written: sightings(MUG, words.split_words(written), written),
    lambda written: excerpt.excerpt_of(
        Question("ember mug"), Item(key="k", id="i", source="s", title=written, body=written)
    ),
    answer_parsing.unwrapped, amazon_pages.asin_of, amazon_pages.stars_of,
    amazon_pages.count_of, amazon_pages.price_of, amazon_pages.day_of,
    amazon_pages.review_title, amazon_pages.review_body, amazon_pages.brand_of,
    item_fields.parsed_date,
)  # fmt: skip
"""What reads a stranger's text of any length."""
LENGTH = 2_000
"""Characters of the shortest text."""
UNMEASURED = 0.0015
"""Seconds below which four times that length is fast, however it grows."""
GROWTH = 2.5
"""How many times longer twice the text may take."""


def patterns() -> Iterator[tuple[str, Any]]:
    """Every pattern of the product, with where it stands: compiled, made or written in place."""
    seen = set()
    for found in walk_packages(api.__path__, "api."):
        if found.name == "api.__main__":
            continue
        module = import_module(found.name)
        for name, value in (*vars(module).items(), *_made(module), *_written(module)):
            for pattern in _within(value):
                if id(pattern) not in seen:
                    seen.add(id(pattern))
                    yield f"{module.__name__}.{name} {pattern.pattern[:40]}", pattern


def _within(value: object) -> Iterator[Any]:
    if isinstance(value, re.Pattern | regex.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _within(part)
    elif isinstance(value, dict):
        yield from _within(list(value.values()))
    elif isinstance(value, type):
        yield from (part for part in vars(value).values() if isinstance(part, re.Pattern))
    elif dataclasses.is_dataclass(value):
        yield from _within([getattr(value, part.name) for part in dataclasses.fields(value)])


def _made(module: ModuleType) -> Iterator[tuple[str, object]]:
    """What functions without parameters make of word lists."""
    for name, value in vars(module).items():
        made_here = getattr(value, "__module__", "") == module.__name__ and callable(value)
        if made_here and not isinstance(value, type):
            signature = inspect.signature(value)
            if not signature.parameters and "Pattern" in str(signature.return_annotation):
                yield name, value()


def _written(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Patterns that stand in the call that uses them: `re.sub(r"...", ...)`."""
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text("utf-8"))):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="re" | "regex" as library)),
                args=[ast.Constant(value=str(written)), *_],
            ):
                yield str(node.lineno), vars(module).get(library, regex).compile(written)


def searching(pattern: Any) -> Callable[[str], object]:
    """Looking for a pattern everywhere."""
    if isinstance(pattern.pattern, bytes):
        return lambda written: (pattern.sub(b"", written.encode()), pattern.fullmatch(written.encode()))
    return lambda written: (pattern.sub("", written), pattern.fullmatch(written))


def seconds(reading: Callable[[str], object], written: str) -> float:
    """Processor time."""
    began = process_time()
    reading(written)
    return process_time() - began


def growth(reading: Callable[[str], object], shape: str, begun: str = "", length: int = 0) -> float:
    """How many times longer twice the text takes, the better of two doublings; 1 if it is fast."""
    length = length or LENGTH
    texts = [begun + (shape * 4 * length)[: length * times] for times in (1, 2, 4)]
    whole = seconds(reading, texts[2])
    if whole < UNMEASURED:
        return 1.0
    quarter, half = (seconds(reading, written) for written in texts[:2])
    return min(whole / half, half / quarter)


def check_growth(reading: Callable[[str], object], name: str = "", length: int = 0) -> None:
    """Over every shape; what grows too fast does so thirteen times: we share the processor."""
    for shape, begun in (*((shape, "") for shape in SHAPES), *((" ", begun) for begun in BEGUN)):
        measure = partial(growth, reading, shape, begun, length)
        worst = measure()
        linear = worst <= GROWTH or any(measure() <= GROWTH for _ in range(12))
        assert linear, f"{name} {worst:.1f} times longer on {begun + shape!r}"


@cache
def found() -> dict[str, Any]:
    """Every pattern by its name; loads the whole product."""
    return dict(patterns())


@pytest.mark.nightly
def test_there_are_patterns() -> None:
    """Of every package that reads text, in every way of writing them."""
    names = found()
    rooms = {".".join(name.split(".")[1:3]) for name in names}

    assert len(names) > 180
    assert {"pipeline.question", "core.text", "sources.amazon", "models.answer_parsing"} <= rooms
    assert {"sandbox.model_answers", "models.local", "store.tables"} <= rooms
    assert any("._lexicon " in name for name in names)
    assert any(".sources.amazon_pages.1" in name for name in names), "those in a call"


@pytest.mark.nightly
@pytest.mark.parametrize("package", sorted(module.name for module in iter_modules(api.__path__)))
def test_a_pattern_grows_no_faster_than_its_text(package: str) -> None:
    """One, two and four times a text of each shape; minutes for all patterns of the product."""
    for name, pattern in found().items():
        if name.split(".")[1] == package:
            asked = MAX_QUESTION_LENGTH // 4 if name.startswith("api.pipeline.question") else 0
            check_growth(searching(pattern), name, asked)


@pytest.mark.parametrize("reading", FUNCTIONS)
def test_a_function_grows_no_faster_than_its_text(reading: Callable[[str], object]) -> None:
    """The same for what is made of several patterns, loops and rules."""
    check_growth(reading)


@pytest.mark.parametrize("shape", ["a.", "a..", "-..a", "a-.b"])
def test_links_of_a_long_text_are_found_in_one_pass(shape: str) -> None:
    """Up to 16,000 characters; runs of dots were read again from each label on."""
    measure = partial(growth, searching(likeness._NOISE), shape, length=4_000)

    assert any(measure() <= GROWTH for _ in range(13))


@pytest.mark.parametrize("shape", ["\u0301", "a\u0301", "\u0301 ", "a"])
def test_one_character_is_recognised_in_one_pass(shape: str) -> None:
    """Up to 32 times the longest question, which is all that is matched, and as a whole."""
    measure = partial(growth, query_screen._ONE_CHARACTER.fullmatch, shape, length=8 * MAX_QUESTION_LENGTH)

    assert any(measure() <= GROWTH for _ in range(13))


def test_a_pattern_that_looks_back_is_found_out() -> None:
    """The pattern of addresses as it was once."""
    once = regex.compile(r"\b[a-z][a-z0-9+.-]*://|\b[\w-]+(?:\.[\w-]+)*\.com/")

    assert growth(searching(once), "a.", length=500) > GROWTH
