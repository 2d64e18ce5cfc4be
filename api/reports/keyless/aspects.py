"""What people talk about when they talk about a product, in the words they use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from tomllib import loads

import regex


@dataclass(frozen=True, slots=True)
class Aspect:
    """One side of products, and the words that speak of it."""

    name: str
    pattern: regex.Pattern[str]
    context: regex.Pattern[str] | None = None
    """What the question or a title must say for the words to mean this."""

    def fits(self, text: str) -> bool:
        """Whether its words mean it where this is said."""
        return self.context is None or self.context.search(text) is not None

    def is_in(self, text: str) -> bool:
        """Whether a text speaks of it."""
        return self.pattern.search(text) is not None


@cache
def aspects() -> tuple[Aspect, ...]:
    """Every known aspect, in the order of `aspects.toml`."""
    read = loads(files("api.reports.keyless").joinpath("aspects.toml").read_text("utf-8"))
    return tuple(
        Aspect(
            name,
            _pattern(part["words"], part.get("signs", "")),
            _pattern(part["context"], "") if "context" in part else None,
        )
        for name, part in read.items()
    )


def aspects_in(text: str) -> list[Aspect]:
    """The aspects that a text speaks of."""
    return [aspect for aspect in aspects() if aspect.is_in(text)]


def aspects_named(word: str) -> list[Aspect]:
    """The aspects that a word asked about means: it speaks of them, or is their name."""
    return [aspect for aspect in aspects() if aspect.name == word.lower() or aspect.is_in(word)]


@cache
def aspect_words() -> frozenset[str]:
    """Single words that speak of an aspect by themselves, as far as the patterns spell them out."""
    read = loads(files("api.reports.keyless").joinpath("aspects.toml").read_text("utf-8"))
    words = {
        word for part in read.values() for word in regex.findall(r"\b\p{L}{3,}\b", part["words"])
    }
    return frozenset(word for word in words if aspects_in(word)) | frozenset(read)


def _pattern(words: str, signs: str) -> regex.Pattern[str]:
    spelled = rf"(?<![\p{{L}}\p{{N}}])(?:{words.replace(chr(10), '')})(?![\p{{L}}\p{{N}}])"
    return regex.compile(f"{spelled}|{signs}" if signs else spelled, regex.I)
