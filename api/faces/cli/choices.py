"""The closed sets that options take."""

from __future__ import annotations

from enum import StrEnum


class DepthChoice(StrEnum):
    """How far to look."""

    quick = "quick"
    standard = "standard"
    deep = "deep"


class WindowChoice(StrEnum):
    """How far back to look."""

    day = "day"
    week = "week"
    month = "month"
    year = "year"
    all = "all"


class Format(StrEnum):
    """How the answer is printed."""

    text = "text"
    json = "json"
    markdown = "markdown"


class JudgeChoice(StrEnum):
    """Who is evaluated."""

    local = "local"
    openai = "openai"
    grader = "grader"
    keyword = "keyword"
    names = "names"
    bm25 = "bm25"
    cosine = "cosine"
    hybrid = "hybrid"
    keep_all = "keep_all"
