"""Whether a text is about a name or only drops it, as somebody sees who reads all of it."""

from __future__ import annotations

from collections.abc import Sequence

import regex

_ASIDE = regex.compile(r"[(\[（][^)\]）]{0,500}[)\]）]|#\w+")
"""What stands in brackets of any script, and hashtags: `(like Plaud)`, `[Plaud]`, `#plaud`."""
_SENTENCE = regex.compile(r"(?<=[.!?。！？])\s+|\n+")
"""Where a sentence ends: the blank in `Great. But`, or a new line."""
_COMMA = regex.compile(r"[,、，/|&+]")
_ENTRIES, _LITTLE = 4, 3
"""A list has so many entries; an entry with so few words beside the name says little of it."""
_ENDINGS = frozenset("ai com io app co new net org".split())


def in_passing(name: str, parts: Sequence[str]) -> bool:
    """The name stands only in brackets, hashtags and lists, or once, late, outside the title.

    `parts` are the title and what follows it. A text that does not hold the name is not judged.
    """
    words = regex.split(r"[\s.\-]+", name)
    if len(words) > 1 and words[-1].casefold() in _ENDINGS:
        words = words[:-1]
    # the name's words with any joint, without a web ending: `Plaud Note`, `plaud-note`, `PlaudNote`
    joined = "[ .-]?".join(map(regex.escape, words))
    mention = regex.compile(rf"(?<!\w){joined}(?!\w)", regex.I)
    title, body = parts[0] if parts else "", " ".join(parts[1:])
    if not mention.search(f"{title} {body}"):
        return False
    sentences = [part for part in _SENTENCE.split(body) if part.strip()]
    spoken = [_ASIDE.sub(" ", part) for part in (title, *sentences)]
    holding = [
        place
        for place, part in enumerate(spoken)
        if mention.search(_without_list(part, mention, 0 if place else 1))
    ]
    return not holding or (len(holding) == 1 and holding[0] > 1)


def _without_list(sentence: str, mention: regex.Pattern[str], start: int) -> str:
    """The sentence without the entries of an enumeration that hold the name and little else.

    A title may well begin with the name, so there the first entry counts (`start` is 1).
    """
    entries = _COMMA.split(sentence)
    if len(entries) < _ENTRIES:
        return sentence
    return ", ".join(
        entry
        for place, entry in enumerate(entries)
        if place < start
        or not mention.search(entry)
        or len(mention.sub("", entry).split()) > _LITTLE
    )
