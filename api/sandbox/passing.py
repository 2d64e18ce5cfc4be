"""Whether a text is about a name or only drops it, as somebody sees who reads all of it."""

from __future__ import annotations

from collections.abc import Sequence

import regex

_ASIDE = regex.compile(r"[(\[（][^)\]）]*[)\]）]|#\w+")
_SENTENCE = regex.compile(r"(?<=[.!?。！？])\s+|\n+")
_COMMA = regex.compile(r"[,、，/|&+]")
_ENTRIES = 4
_ENDINGS = frozenset("ai com io app co new net org".split())


def in_passing(name: str, parts: Sequence[str]) -> bool:
    """The name stands only in brackets, hashtags and lists, or once, late, outside the title.

    `parts` are the title and what follows it. A text that does not hold the name is not judged.
    """
    said = _spelling(name)
    title, body = parts[0] if parts else "", " ".join(parts[1:])
    if not said.search(f"{title} {body}"):
        return False
    sentences = [part for part in _SENTENCE.split(body) if part.strip()]
    spoken = [_ASIDE.sub(" ", part) for part in (title, *sentences)]
    holding = [place for place, part in enumerate(spoken) if said.search(_without_list(part, said))]
    return not holding or (len(holding) == 1 and holding[0] > 1)


def _without_list(sentence: str, said: regex.Pattern[str]) -> str:
    """The sentence without the entries of an enumeration that hold the name and little else."""
    entries = _COMMA.split(sentence)
    if len(entries) < _ENTRIES:
        return sentence
    kept = [entries[0]]
    kept += [
        one for one in entries[1:] if len(said.sub("", one).split()) > 1 or not said.search(one)
    ]
    return ", ".join(kept)


def _spelling(name: str) -> regex.Pattern[str]:
    """The name's words with any joint, without a web ending."""
    words = regex.split(r"[\s.\-]+", name)
    if len(words) > 1 and words[-1].casefold() in _ENDINGS:
        words = words[:-1]
    return regex.compile(rf"(?<!\w){'[ .-]?'.join(map(regex.escape, words))}(?!\w)", regex.I)
