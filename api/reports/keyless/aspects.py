"""Aspects of products (battery, price, support) and the words in which people speak of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from tomllib import loads
from typing import Any

import regex


@dataclass(frozen=True, slots=True)
class Aspect:
    """One aspect and the words that mean it."""

    name: str
    pattern: regex.Pattern[str]
    context: regex.Pattern[str] | None = None
    """What the question or a title must say for the words to mean this aspect."""

    def fits(self, text: str) -> bool:
        """Whether its words mean this aspect, given the question and the titles as `text`."""
        return self.context is None or self.context.search(text) is not None

    def is_in(self, text: str) -> bool:
        """Whether a text speaks of it."""
        return self.pattern.search(text) is not None


@cache
def data(name: str) -> dict[str, Any]:
    """A TOML file of this folder, by its name without the ending."""
    return loads(files("api.reports.keyless").joinpath(f"{name}.toml").read_text("utf-8"))


@cache
def aspects() -> tuple[Aspect, ...]:
    """Every known aspect, in the order of `aspects.toml`."""
    return tuple(
        Aspect(
            name,
            _pattern(entry["words"], entry.get("signs", "")),
            _pattern(entry["context"], "") if "context" in entry else None,
        )
        for name, entry in data("aspects").items()
    )


def aspects_in(text: str) -> list[Aspect]:
    """The aspects that a text speaks of."""
    return [aspect for aspect in aspects() if aspect.is_in(text)]


def aspects_named(word: str) -> list[Aspect]:
    """The aspects that a word of a question means: it speaks of them, or is their name."""
    return [aspect for aspect in aspects() if aspect.name == word.lower() or aspect.is_in(word)]


@cache
def aspect_words() -> frozenset[str]:
    """Single words that mean an aspect by themselves, as far as the patterns spell them out."""
    spelled = (regex.findall(r"\b\p{L}{3,}\b", entry["words"]) for entry in data("aspects").values())
    words = {word for matches in spelled for word in matches}
    return frozenset(word for word in words if aspects_in(word)) | frozenset(data("aspects"))


def _pattern(words: str, signs: str) -> regex.Pattern[str]:
    # whole words only; `signs` (emoji, scripts without spaces) match anywhere
    spelled = rf"(?<![\p{{L}}\p{{N}}])(?:{words.replace(chr(10), '')})(?![\p{{L}}\p{{N}}])"
    return regex.compile(f"{spelled}|{signs}" if signs else spelled, regex.I)
