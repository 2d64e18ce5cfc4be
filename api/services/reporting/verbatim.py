"""Quotes: words that stand in an item or one of its comments, exactly so, with their address."""

from __future__ import annotations

import html

import regex

from api.services.reporting.dossier import Exhibit
from api.services.schemas import Quote
from api.services.text import clean

LONGEST = 600
"""Characters of a quote; more is no quote."""

_ALIKE = ("'’‘`´", '"“”„«»')
_OUTER = "\"'“”‘’„«» "
_SPELLED = r"[\p{Latin}\p{Cyrillic}\p{Greek}\d]"


def verbatim(words: str, exhibit: Exhibit | None) -> Quote | None:
    """The quote with its link, if the exhibit's item or one of its comments holds it word for word.

    White space, and straight for curly quotation marks, may differ; what comes back is theirs.
    """
    said = clean(words)
    if exhibit is None or len(said) > LONGEST:
        return None
    patterns = [pattern for text in (said, html.unescape(said)) if (pattern := _pattern(text))]
    item = exhibit.item
    for text in (item.title, item.body):
        if found := _held(patterns, text):
            return Quote(found, item.key, item.url)
    for comment in item.comments:
        if found := _held(patterns, comment.body):
            return Quote(found, item.key, comment.url or item.url, comment.id)
    return None


def _pattern(said: str) -> regex.Pattern[str] | None:
    """The words as they may stand; None when there is no letter in them."""
    words = said.strip(_OUTER).split()
    plain = " ".join(words)
    if not regex.search(r"\p{L}", plain):
        return None
    before = rf"(?<!{_SPELLED})" if regex.match(_SPELLED, plain) else ""
    after = rf"(?!{_SPELLED})" if regex.match(_SPELLED, plain[-1]) else ""
    held = r"\s+".join("".join(map(_sign, word)) for word in words)
    return regex.compile(f"{before}{held}{after}")


def _sign(character: str) -> str:
    alike = next((signs for signs in _ALIKE if character in signs), None)
    return regex.escape(character) if alike is None else f"[{alike}]"


def _held(patterns: list[regex.Pattern[str]], text: str) -> str:
    found = (match[0] for pattern in patterns if (match := pattern.search(text)))
    return next(found, "")
