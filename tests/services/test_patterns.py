"""Patterns over strangers' text grow no faster than the text, whatever it is made of."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from time import process_time
from typing import Any

import pytest
import regex

import api

SHAPES = (
    "a.", "a-b ", " ", "1.1,", "http://a", "a:", "@", "[a](", "((", "E1,E2;", "[E1,", "two ",
    "\\[", "<a", '"', "-x:", "小", "é\u0301", ".\u3002", "site:(", "aaaaaaaaa.com", "%\n",
    "<think ", "[removed by ",
)  # fmt: skip
BEGUN = ("[removed by", "<think", '"', "(", "-")
"""Beginnings of a pattern whose end never comes, only blanks."""
ELSEWHERE = ("api.sandbox", "api.judges.local")
"""Rooms whose texts are our own, or cut before they are read."""
LENGTH = 2_000
"""Characters of the shortest text."""
UNMEASURED = 0.0015
"""Seconds below which four times that length is fast, however it grows."""
GROWTH = 2.5
"""How many times longer twice the text may take."""


def patterns() -> Iterator[tuple[str, Any]]:
    """Every compiled pattern of the product, with where it stands."""
    seen = set()
    for module in pkgutil.walk_packages(api.__path__, "api."):
        if module.name == "api.__main__" or any(map(module.name.startswith, ELSEWHERE)):
            continue
        for name, value in vars(import_module(module.name)).items():
            for pattern in _within(value):
                if id(pattern) not in seen:
                    seen.add(id(pattern))
                    yield f"{module.name}.{name} {pattern.pattern[:40]}", pattern


def _within(value: object) -> Iterator[Any]:
    if isinstance(value, re.Pattern | regex.Pattern):
        yield value
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _within(part)
    elif isinstance(value, dict):
        yield from _within(list(value.values()))


def seconds(pattern: Any, text: str) -> float:
    """Processor time to look for a pattern everywhere, the best of three."""
    times = []
    for _ in range(3):
        began = process_time()
        pattern.sub("", text)
        pattern.fullmatch(text)
        times.append(process_time() - began)
    return min(times)


def growth(pattern: Any, shape: str, begun: str = "", length: int = LENGTH) -> float:
    """How many times longer twice the text takes, the better of two doublings; 1 if it is fast."""
    texts = [begun + (shape * 4 * length)[: length * times] for times in (1, 2, 4)]
    whole = seconds(pattern, texts[2])
    if whole < UNMEASURED:
        return 1.0
    half, quarter = seconds(pattern, texts[1]), seconds(pattern, texts[0])
    return min(whole / half, half / quarter)


FOUND = dict(patterns())


def test_there_are_patterns() -> None:
    """Of every room that reads text."""
    rooms = {".".join(name.split(".")[1:3]) for name in FOUND}

    assert len(FOUND) > 80
    assert {"services.question", "services.text", "sources.amazon", "judges.answers"} <= rooms


@pytest.mark.parametrize("name", FOUND)
def test_a_pattern_grows_no_faster_than_its_text(name: str) -> None:
    """Also when something else has the processor: a slow doubling is measured again."""
    for shape, begun in (*((shape, "") for shape in SHAPES), *((" ", begun) for begun in BEGUN)):
        worst = growth(FOUND[name], shape, begun)
        if worst > GROWTH:
            worst = min(growth(FOUND[name], shape, begun) for _ in range(3))
        assert worst <= GROWTH, f"{worst:.1f} times longer on {begun + shape!r}"


def test_a_pattern_that_looks_back_is_found_out() -> None:
    """The pattern of addresses as it was once."""
    once = regex.compile(r"\b[a-z][a-z0-9+.-]*://|\b[\w-]+(?:\.[\w-]+)*\.com/")

    assert growth(once, "a.", length=500) > GROWTH
