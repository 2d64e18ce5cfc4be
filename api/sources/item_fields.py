"""Reading single values out of foreign answers: each is of the wanted type, or nothing.

When something can have been said; a time that cannot be true is worse than none.

Dates in the forms that people's own files have.

What counts as somebody's words: not a picture or link, not what is gone or cannot be seen.

Reddit's programs that post: known by name, since nothing in an answer says what they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import regex

from api.core.text import clean, is_visible, one_line
from api.pipeline.gate.drop_reasons import INVISIBLE, REMOVED

# What is larger than this counts nothing.
_LARGEST = 1e15


def record(value: object) -> Mapping[str, Any]:
    """The mapping, or an empty one."""
    return value if isinstance(value, dict) else {}


def entries(value: object) -> Sequence[Any]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else ()


def is_text(value: object) -> bool:
    """Whether a field can hold words: text, or a number that stands for it."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def number(value: object) -> float | None:
    """A number that something can have, also when it comes as text; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        measure = float(value)
    except (ValueError, OverflowError):
        return None
    return measure if abs(measure) <= _LARGEST else None  # false for what is no number


def whole(value: object) -> int | None:
    """A whole number, also when it comes as text."""
    measure = number(value)
    return None if measure is None else int(measure)


def moment(value: object) -> datetime | None:
    """Aware UTC from seconds since 1970 or from ISO 8601 (UTC when it names no zone)."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        seconds = number(value)
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def pseudonym(kind: str, *names: object) -> str | None:
    """A short name for an author, the same for the same author and not their own.

    It comes from the first of the names that says anything; None when none does.
    """
    name = next((text for name in names if (text := one_line(clean(name)))), "")
    return f"{kind}-{hashlib.sha256(f'{kind}:{name}'.encode()).hexdigest()[:8]}" if name else None


EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""Before it there was no web page to say anything on."""
# Zones and wrong clocks put a time ahead by less.
_AHEAD = timedelta(days=2)
IMPLAUSIBLE = "its time cannot be true, so it counts as undated"
"""The note of an item that lost its time."""


def plausible(
    at: datetime | None, since: datetime = EARLIEST, now: datetime | None = None
) -> datetime | None:
    """The time, aware UTC, when something can have been said then; else None.

    `since` is when the place began: nobody wrote on Reddit in 1970, which is what a time of 0 says.
    """
    latest = (now or datetime.now(UTC)) + _AHEAD
    return at if at is not None and since <= at <= latest else None


# seconds or milliseconds since 1970, but not `20230115`
_COUNTED = regex.compile(r"\d{9,16}(?:\.\d{1,9})?")
_ZONE = regex.compile(r" ?(?:UTC|GMT|Z)$", regex.I)
# Numbers from here on are milliseconds; as seconds they would lie beyond the year 5000.
_MILLISECONDS = 1e11
# `09 4, 2015`, as in the files of Amazon's reviews; `September 4, 2015`; `2015/09/04`.
_FORMS = ("%m %d, %Y", "%B %d, %Y", "%b %d, %Y", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S")
_LONGEST = 60


def date_of(value: object) -> datetime | None:
    """Aware UTC (UTC when no zone is named); None when it cannot be read.

    ISO 8601, also as `2023-01-15 12:34:56 UTC`; seconds or milliseconds since 1970, also as text;
    RFC 2822 (`Sun, 15 Jan 2023 12:34:56 +0100`); `_FORMS`.
    """
    text = one_line(clean(value))
    if isinstance(value, bool) or len(text) > _LONGEST:
        return None
    if not isinstance(value, str) or _COUNTED.fullmatch(text):
        seconds = number(value)
        return moment(seconds / 1000 if seconds and abs(seconds) >= _MILLISECONDS else seconds)
    if at := moment(_ZONE.sub("+00:00", text)):
        return at
    for form in _FORMS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    try:
        at = parsedate_to_datetime(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, LookupError, OverflowError):  # the parser's own stumbling
        return None


# what is left of a deleted text: `[deleted]`, `[ removed by Reddit ]`
_GONE = regex.compile(r"\[\s*(?:deleted|removed)(?:\s+by\b[^][]*|\s*)\]", regex.I)
# what holds no words of its own: `![gif](giphy|x)`, `[label](https://x)`, `https://x`, `:emote:`
_WORDLESS = regex.compile(
    r"!?\[[^][]*+\]\([^()\s]*+(?:\s[^()]*+)?\)|https?://\S++|:[\p{L}\p{N}_~-]++:", regex.I
)
# a letter, a digit, or a sign that means something by itself: a heart, a thumb, a star
_WORD = regex.compile(r"[\p{L}\p{N}\p{So}]")


def seen(text: str) -> str:
    """The text, or nothing where a person would see nothing."""
    return text if is_visible(text) else ""


def left(text: str) -> str:
    """The text, or nothing where only the mark of a deletion is left, or nothing to see."""
    return "" if _GONE.fullmatch(text) else seen(text)


def why_unfit(*texts: str) -> str:
    """Why nobody can judge these texts of an item; nothing where something is left of one."""
    if any(map(left, texts)):
        return ""
    return REMOVED if any(map(_GONE.fullmatch, texts)) else INVISIBLE


def is_said(text: str) -> bool:
    """Whether somebody says something: a comment of a picture, an emote or a link says nothing."""
    rest, removed = _WORDLESS.subn(" ", text)
    return _WORD.search(rest) is not None if removed else is_visible(text)


# Well-known programs, in lower case; a name that ends in `bot` may be a person's: Talbot.
_NAMES = frozenset(
    """
    automoderator botdefense visualmod
    alphabet_order_bot anti-gif-bot auddbot autotldr autowikibot b0trank bot-sleuth-bot
    botrickbateman clickablelinkbot colorizebot commonmisspellingbot converter-bot
    couldwouldshouldbot decronym gifreversingbot goodbot_badbot haiku-bot haikusbot
    i-am-dad-bot image_linker_bot imguralbumbot kickopenthedoorbot linkfixerbot
    magic_eye_bot mentioned_videos metric_units mtgcardfetcher nice-scores nwordcountbot
    phonebatterylevelbot profanitycounter qualityvote remindmebot repostsleuthbot roboragi
    savevideo savevideobot sneakpeekbot stabbot stabbot_crop sub_doesnt_exist_bot
    substitute-bot the_timezone_bot timestampbot timezone_bot totes_meta_bot totesmessenger
    tweetposter twitterinfo_bot useles-converter-bot userleansbot vredditdownloader
    vredditshare wikimobilelinkbot wikipedia_answer_bot wikipediaposter wikisummarizerbot
    wikitextbot youtubefactsbot
    """.split()
)
# The end of the accounts under which removals are explained: `gadgets-ModTeam`.
_MOD_TEAM = "-modteam"


def is_bot(name: str) -> bool:
    """Whether a program writes under this name."""
    plain = name.lower()
    return plain in _NAMES or plain.endswith(_MOD_TEAM)
