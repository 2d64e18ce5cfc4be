"""Arguments as callers hand them in, checked before anything is asked."""

from __future__ import annotations

import hashlib
import json

from api.core.domain import Question
from api.core.text import clean, is_visible, one_line
from api.core.words import canonical
from api.errors import UsageError
from api.pipeline.question.product_name import judged_words
from api.pipeline.question.query_screen import screen_query


def check(name: str, value: object, kind: type, wanted: str) -> None:
    """Let a value of this type pass; true and false are no whole numbers.

    Raises:
        UsageError: it is of another; the message names the argument and what it must be.
    """
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UsageError(f"`{name}` must be {wanted}, not {type(value).__name__}")


def question_of(query: str, about: str | None) -> Question:
    """The question as judges take it.

    Raises:
        UsageError: the query names nothing to look for, or one of the two is no text.
    """
    check("query", query, str, "text")
    if about is not None:
        check("about", about, str, "text")
    screened = screen_query(query)
    if not screened.ok:
        raise UsageError(screened.guidance, field="query")
    return Question(screened.query, clean(about))


def origin_of(source: str, argument: str = "source") -> str:
    """Where a caller's own items are from, as judges take it: any name, on one line.

    Raises:
        UsageError: it names nothing, or is no text; the message names the argument.
    """
    check(argument, source, str, "text")
    name = one_line(clean(source))
    if not is_visible(name):
        raise UsageError(f"`{argument}` names nothing; say where the items are from")
    return name


def question_digest(question: Question) -> str:
    """SHA-256 of product, description and aim: the same in any spelling and word of asking."""
    named = judged_words(question.text)
    parts = [canonical(named) or named, canonical(question.about), question.aim]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
