"""Whether a sentence surely asks for something; what is in doubt asks nothing.

The signs stand in `asking.toml`; with a question mark any language counts, without one English,
German, Spanish and French.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from tomllib import loads

import regex

from api.services.archive.words import tokens
from api.services.reporting.findings import LONGEST_PASSAGE
from api.services.reporting.polarity import is_english
from api.services.text import one_line

_WORDS = 3
"""Of a question, at least; in scripts without blanks letters by the pair."""
_SMALL, _SHOUTED = 3, 0.8
"""Letters of words that headlines write small, and their share of others that begin large."""
# `?` at the end, also of Chinese and Arabic, and before a bracket: `(does it work?)`
_MARK = regex.compile(r"[?？؟][!?？]*[\"'”’»)」』]?$")
# somebody else's words: `“Does it work?” she said`
_QUOTATION = regex.compile(r"^[\"“”„«‘'「『]")
# whose words follow: `On Mon, Ann wrote:`, `Am 3. Mai schrieb Ann:`, `-----Original Message-----`
_REPLIED = regex.compile(
    r"^[^\w\n]*+(?:on .{4,80} wrote|am .{4,80} schrieb.{0,60}|le .{4,80} a écrit"
    r"|el .{4,80} escribió) ?:"
    r"|^-{2,} ?(?:original message|ursprüngliche nachricht|message d'origine|mensaje original)"
    r"|^(?:from|von|de|sent|gesendet) ?: .*@.*$",
    regex.I | regex.M,
)
# what is quoted or no prose: `> does it?`, a block of code, `Q: what is it?` of a list of answers
_ASIDE = regex.compile(
    r"^[ \t]*[>|].*$|```[^`]*(?:```|\Z)|^[^\w\n]*(?:q|f|p) ?\d*[:.)] .*$", regex.M | regex.I
)


def asks(sentence: str, following: str = "") -> bool:
    """Whether it asks for something, not for show, and what follows it is no answer."""
    text = one_line(sentence).replace("’", "'")
    words = max(len(text.split()), len(tokens(text)))
    if words < _WORDS or len(text) > LONGEST_PASSAGE or _QUOTATION.search(text):
        return False
    if _sign("rhetorical").search(text) or _sign("answered").match(following):
        return False
    if not _MARK.search(text):
        return _sign("unmarked").match(text) is not None and not text.endswith(":")
    return not is_english(text) or _sign("english").search(text) is not None


def is_headline(title: str) -> bool:
    """Whether a title is made to be clicked, not to be answered, as `Is This Stock A Buy?` is."""
    long = [word for word in title.split() if len(word) > _SMALL]
    capitals = sum(word[0].isupper() for word in long)
    shouted = len(long) >= _WORDS and capitals >= _SHOUTED * len(long)
    return shouted or _sign("headline").search(title) is not None


def own_words(text: str) -> str:
    """A text without what it quotes: an e-mail that it answers, code, a list of answers."""
    reply = _REPLIED.search(text)
    return _ASIDE.sub("", text[: reply.start()] if reply else text)


@cache
def generic_words() -> frozenset[str]:
    """Words that say nothing of what is asked for."""
    return frozenset(_signs()["generic"].split())


@cache
def _sign(name: str) -> regex.Pattern[str]:
    """The patterns of this name; `match` finds them behind a greeting only."""
    lines = (line for line in _signs()[name].split("\n") if line and not line.startswith("#"))
    pattern = "|".join(f"(?:{line})" for line in lines)
    if name in _FIRST:
        pattern = rf"{_FIRST[name]}(?:{pattern})"
    return regex.compile(pattern, regex.I)


_FIRST = {
    # what may stand before a question: `Hi, anyone know`
    "unmarked": r"\W*(?:(?:hi|hey|hello|ok|so|also|and|but|question|quick question)\W+)*+",
    "answered": r"\W*",
}
"""What comes before the patterns of a name that hold at the beginning alone."""


@cache
def _signs() -> dict[str, str]:
    read: dict[str, str] = loads(
        files("api.services.watching").joinpath("asking.toml").read_text("utf-8")
    )
    return read
