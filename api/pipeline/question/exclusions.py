"""What a description says that a product is not: `the soap, not the bird`."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from api.choices import MAX_EXCLUSION_LENGTH, MAX_EXCLUSIONS
from api.core.text import clean, cut, one_line

_PIECE = r"(?:[^,;.()\[\]–—]|\([^()]*\))+"
# `; not a crochet square`, `(not the fruit)`, `, nicht der Fluss`: a clause that begins with a
# negation; inside a sentence (`it does not sync`) the word denies something else and stays.
# commas belong to it when its list ends with `or`: `not the game, an arc, or a plot`
_CLAUSE = regex.compile(
    # blanks are taken whole and from their first on, so that a long run of them costs no more
    r"(?:^|(?<!\s)\s*+[,;:.(\[–—-]|(?<!\s)\s++(?:and|but|und|aber|et|y|e|mas|pero))\s*+"
    r"(?:not|nicht|kein|keine|pas|no|não|non)\s+"
    rf"(?P<what>{_PIECE}(?:(?:,{_PIECE})*,\s*(?:or|nor|oder|ou|o)\s{_PIECE})?)[)\]]?",
    regex.IGNORECASE,
)
# within a clause: `not the fruit or the record label` excludes two things
_ALTERNATIVES = regex.compile(
    r"(?<!\s)\s*+,\s*+(?:(?:or|nor|oder|ou|o)\s++)?|(?<!\s)\s++(?:or|nor|oder|ou|o)\s++",
    regex.IGNORECASE,
)
# the blank that a clause leaves in `the soap , made by Unilever`
_BEFORE_MARK = regex.compile(r"(?<!\s)\s++(?=[,;:.])")
_ARTICLE = regex.compile(
    r"^(?:about\s+)?(?:an?|the|any|der|die|das|ein|eine|le|la|les|un|une|el|los|um|uma)\s+",
    regex.IGNORECASE,
)


def split_exclusions(about: str) -> tuple[str, tuple[str, ...]]:
    """The description without its negated clauses, and what these exclude, in order."""
    clauses: list[str] = []

    def take(match: regex.Match[str]) -> str:
        clauses.extend(_ALTERNATIVES.split(match["what"]))
        return " "

    left = _BEFORE_MARK.sub("", one_line(_CLAUSE.sub(take, about))).strip(" ,;:.-–—")
    return left, exclusions_of(clauses)


def exclusions_of(excluded: Iterable[str]) -> tuple[str, ...]:
    """Exclusions as judges take them: on one line, without article, each once."""
    plain = (_ARTICLE.sub("", one_line(clean(text))).strip(" .") for text in excluded)
    bounded = dict.fromkeys(cut(text, MAX_EXCLUSION_LENGTH) for text in plain if text)
    return tuple(bounded)[:MAX_EXCLUSIONS]
