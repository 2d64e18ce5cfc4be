"""Reads single values of foreign answers and files: each has the wanted type, or is absent.

Also which texts are words of a person: no picture or link, nothing deleted, invisible or by a bot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import regex

from api.core.domain import BY_BOT, INVISIBLE, REMOVED
from api.core.items import Item
from api.core.text import clean, is_visible, one_line

# a larger number is no measure of an item
_MAX_NUMBER = 1e15
EARLIEST = datetime(1990, 1, 1, tzinfo=UTC)
"""Time before which there was no web page with posts."""
# time zones and wrong clocks put a time ahead by less
_MAX_AHEAD = timedelta(days=2)
IMPLAUSIBLE_TIME = "its time cannot be true, so it counts as undated"
# seconds or milliseconds since 1970, but not `20230115`
_EPOCH = regex.compile(r"\d{9,16}(?:\.\d{1,9})?")
# `datetime.fromisoformat` reads no zone names
_UTC_NAME = regex.compile(r" ?(?:UTC|GMT|Z)$", regex.I)
# larger numbers are milliseconds: as seconds they would be beyond the year 5000
_MILLISECONDS = 1e11
# `09 4, 2015`, as in the files of Amazon's reviews; `September 4, 2015`; `2015/09/04`
_FORMATS = ("%m %d, %Y", "%B %d, %Y", "%b %d, %Y", "%Y/%m/%d", "%Y/%m/%d %H:%M:%S")
_MAX_DATE = 60
# what is left of a deleted text: `[deleted]`, `[ removed by Reddit ]`; Hacker News' `[flagged]`, `[dead]`; Lemmy's
# `*Permanently Deleted*`, `*deleted by creator*`; Discourse's `(post deleted by author)`
_DELETED = regex.compile(
    r"\[\s*(?:deleted|removed|flagged|dead)(?:\s+by\b[^][]*|\s*)\]"
    r"|\*(?:permanently )?(?:deleted|removed)(?: by [\w ]{1,20})?\*"
    r"|\((?:post|topic|comment) (?:deleted|withdrawn) by (?:the )?author\b[^()]*\)",
    regex.I,
)
# what holds no words of its own: `![gif](giphy|x)`, `[label](https://x)`, `https://x`, `:emote:`
_WORDLESS = regex.compile(r"!?\[[^][]*+\]\([^()\s]*+(?:\s[^()]*+)?\)|https?://\S++|:[\p{L}\p{N}_~-]++:", regex.I)
# a letter, a digit, or a sign that means something by itself: a heart, a thumb, a star
_WORD = regex.compile(r"[\p{L}\p{N}\p{So}]")
# what a program says of itself where a sentence begins: `Beep boop`, `*I am a bot, and this action ...*`
_DECLARED_BOT = regex.compile(
    r"(?:^|[.!?\n])(?:(?![>|])[\s\W]){0,20}(?:be+p[ ,]+boo+p\b|bleep[ ,]+bloop\b"
    r"|i(?:['’]m| am) an? (?:automated )?bot\b(?=[\s\W]*"
    r"(?:$|and this|that|created|made|written|[.,!\n(*^|]))|this action was performed automatically)",
    regex.I,
)
# well-known bots, in small letters, since Reddit's answers do not mark them; a name that ends in
# `bot` may be a person's (Talbot)
_BOTS = frozenset(
    """
    automoderator botdefense visualmod alphabet_order_bot anti-gif-bot auddbot autotldr autowikibot
    b0trank bot-sleuth-bot botrickbateman clickablelinkbot colorizebot commonmisspellingbot
    converter-bot couldwouldshouldbot decronym gifreversingbot goodbot_badbot haiku-bot haikusbot
    i-am-dad-bot image_linker_bot imguralbumbot kickopenthedoorbot linkfixerbot magic_eye_bot
    mentioned_videos metric_units mtgcardfetcher nice-scores nwordcountbot phonebatterylevelbot
    profanitycounter qualityvote remindmebot repostsleuthbot roboragi savevideo savevideobot
    sneakpeekbot stabbot stabbot_crop sub_doesnt_exist_bot substitute-bot the_timezone_bot
    timestampbot timezone_bot totes_meta_bot totesmessenger tweetposter twitterinfo_bot
    useles-converter-bot userleansbot vredditdownloader vredditshare wikimobilelinkbot
    wikipedia_answer_bot wikipediaposter wikisummarizerbot wikitextbot youtubefactsbot
    """.split()
)


def as_dict(value: object) -> Mapping[str, Any]:
    """The mapping, or an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> Sequence[Any]:
    """The list, or an empty one."""
    return value if isinstance(value, list) else ()


def is_text(value: object) -> bool:
    """Whether a field can hold words: text, or a number instead of it."""
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def as_number(value: object) -> float | None:
    """A finite number that can be a measure, also from text; a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) <= _MAX_NUMBER else None  # false for NaN


def as_int(value: object) -> int | None:
    """A whole number, also from text; fractions are cut off."""
    number = as_number(value)
    return None if number is None else int(number)


def as_time(value: object) -> datetime | None:
    """Aware UTC from seconds since 1970 or from ISO 8601 (UTC when it names no zone)."""
    try:
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
        seconds = as_number(value)
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def plausible_time(at: datetime | None, since: datetime = EARLIEST, now: datetime | None = None) -> datetime | None:
    """The time if something can have been written then (not 1970), on a site that began `since`."""
    latest = (now or datetime.now(UTC)) + _MAX_AHEAD
    return at if at is not None and since <= at <= latest else None


def time_since(value: object, since: datetime = EARLIEST) -> datetime | None:
    """`as_time` if it is a `plausible_time`."""
    return plausible_time(as_time(value), since)


def parsed_date(value: object) -> datetime | None:
    """Aware UTC (UTC when no zone is named) from a date as files have it; None if unreadable.

    ISO 8601, also as `2023-01-15 12:34:56 UTC`; seconds or milliseconds since 1970, also as text;
    RFC 2822 (`Sun, 15 Jan 2023 12:34:56 +0100`); `_FORMATS`.
    """
    text = one_line(clean(value))
    if isinstance(value, bool) or len(text) > _MAX_DATE:
        return None
    if not isinstance(value, str) or _EPOCH.fullmatch(text):
        seconds = as_number(value)
        return as_time(seconds / 1000 if seconds and abs(seconds) >= _MILLISECONDS else seconds)
    if at := as_time(_UTC_NAME.sub("+00:00", text)):
        return at
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    try:
        at = parsedate_to_datetime(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, LookupError, OverflowError):  # what the parser itself raises
        return None


def visible_text(text: str) -> str:
    """The text, or an empty one when all of it is invisible."""
    return text if is_visible(text) else ""


def undeleted_text(text: str) -> str:
    """The text, or an empty one when it is only the mark of a deletion or invisible."""
    return "" if _DELETED.fullmatch(text) else visible_text(text)


def unfit_reason(*texts: str) -> str:
    """Why an item with these texts cannot be judged; empty when one has words left."""
    if any(map(_DECLARED_BOT.search, texts)):
        return BY_BOT
    if any(map(undeleted_text, texts)):
        return ""
    return REMOVED if any(map(_DELETED.fullmatch, texts)) else INVISIBLE


def says_something(text: str) -> bool:
    """Whether a comment has words of a person; a picture, an emote, a link or a text of a declared bot has none."""
    if _DECLARED_BOT.search(text):
        return False
    rest, removed = _WORDLESS.subn(" ", text)
    return _WORD.search(rest) is not None if removed else is_visible(text)


def is_bot(name: str) -> bool:
    """Whether a well-known program writes under this name of Reddit."""
    plain = name.lower()
    return plain in _BOTS or plain.endswith("-modteam")  # they explain removals


def make_item(source: str, key: str, title: str, body: str, created_at: datetime | None, **fields: Any) -> Item:
    """An item of a search with its visible texts, and a note when its time is missing or wrong.

    `key` is without the source; `fields` are further ones of `Item`. Without a reason among them it
    is unfit when nobody can judge its texts.
    """
    fields["unfit"] = fields.get("unfit") or unfit_reason(title, body)
    fields.setdefault("notes", () if created_at else (IMPLAUSIBLE_TIME,))
    return Item(
        key=f"{source}:{key}", source=source, title=visible_text(title), body=visible_text(body),
        created_at=created_at, **fields,
    )  # fmt: skip
