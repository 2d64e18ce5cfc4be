"""The sentences of a report without a model, and the functions that read such a sentence back."""

from __future__ import annotations

from collections.abc import Sequence

import regex

_SMALL = "no one two three four five six seven eight nine ten eleven twelve".split()
SHARED = 3
"""People from which a theme is shown, and posts from which an aspect is counted in figures: fewer may be chance."""
VOICE = "One voice"
"""Name of what one person alone says, where no subject is shared."""

COUNTED = regex.compile(
    r"^(?!Most |Said: |One person each said)(?P<name>[^:“”\n]{1,60}?)(?P<example>, for example)?: "
    r"(?:“(?P<claim>.+)”|(?:(?P<number>[\w ,]+?) )?(?:of the [\w,]+ )?(?:people|person) (?:who )?speaks? of it\b"
    r"|people (?:complain|praise it|wish for something)(?=, for example “)"
    r"|(?:at least )?(?:\d+ of \d+ kept posts|one post|two posts) (?:speaks?|is|are) (?:of|about) it\b)",
    regex.S,
)
"""A theme: `Battery: “It does not last a day”: six of the ten people who speak of it say alike.`, or a subject of which
people only speak: `Battery: people speak of it.`

Older reports have `Battery, for example: “It does not last a day”.`, and those older still count posts.
"""
_EACH = "One person each said"
SUMMARY = regex.compile(
    rf"^(?:[^.“”]{{1,160}}[.] ){{0,3}}(?:Most said|Said|{_EACH}): “|^(?:[^.“”]{{1,160}}[.] ){{0,3}}Most spoken of: "
)
"""The summary: `Most said: “It does not last a day” (six people), “The app is slow” (four).`"""
_PARTS = regex.compile(
    r"^(?P<name>[^:“”\n]{1,60}?)(?:, for example)?: “(?P<claim>.+?)”(?:: (?P<held>[^“”]+?))?\.?$", regex.S
)
# the end of a theme's sentence that counts nobody: `“It dies”`, `people complain, for example “It dies”.`
_BARE = regex.compile(r"(?:”|^[^“”]+: people [\w ]+)\.?$")
# Claims and subjects that a summary names.
_NAMED, _SPOKEN = 3, 10


def claim_sentence(name: str, claim: str, people: int, speaking: int) -> str:
    """The sentence of a claim: how many say alike, of how many people who speak of its subject."""
    quoted = f"{name}: “{claim}”"
    if people == 1:
        return f"{quoted}: one of the {in_words(speaking)} people who speak of it." if speaking > 1 else f"{quoted}."
    if speaking > people:
        return f"{quoted}: {in_words(people)} of the {in_words(speaking)} people who speak of it say alike."
    return f"{quoted}: {'both' if people == 2 else f'all {in_words(people)}'} people who speak of it say alike."


def side_sentence(name: str, side: str, example: str, people: int, speaking: int) -> str:
    """The sentence of those who surely take one side of a subject, with the words of one of them."""
    if people == 1:
        return claim_sentence(name, example, people, speaking)
    holders = f"at least {in_words(people)} of the {in_words(speaking)} people who speak of it {side}"
    if speaking == people:
        holders = f"{'both' if people == 2 else f'all {in_words(people)}'} people who speak of it {side}"
    return f"{name}: “{example}”: {holders}."


def subject_sentence(name: str, speaking: int, praising: int = 0, complaining: int = 0) -> str:
    """The sentence of a subject that people speak of without saying alike, and how many surely take a side."""
    sides = ((praising, "praise it"), (complaining, "complain"))  # one alone is not sure enough
    phrases = [f"{in_words(count)} {plural}" for count, plural in sides if count > 1]
    leaning = f"; at least {' and '.join(phrases)}" if phrases else ""
    speak = "person speaks" if speaking == 1 else "people speak"
    return f"{name}: {in_words(speaking)} {speak} of it{leaning}."


def example_phrase(example: str) -> str:
    """`, for example “The case cracked”`: words that show a subject and that nobody else is said to share."""
    return f", for example “{example}”" if example else ""


def theme_summary(claims: Sequence[tuple[str, int]], spoken: Sequence[tuple[str, int]] = (), opening: str = "") -> str:
    """What most people say, then what most speak of without saying alike; `opening` goes before it.

    `claims` are quotes with their people, 0 where they are not counted; `spoken` are subjects with theirs.
    """
    held = [(claim, count) for claim, count in claims if count != 1]
    quotes, verb = (held, "Most said" if any(count for _, count in held) else "Said") if held else (claims, _EACH)
    named = [
        f"“{claim}”{_people_phrase(count, at) if held else ''}" for at, (claim, count) in enumerate(quotes[:_NAMED])
    ]
    parts = [opening, f"{verb}: {', '.join(named)}." if held or (quotes and not spoken) else ""]
    if spoken:
        named = [f"{name}{_people_phrase(count, at)}" for at, (name, count) in enumerate(spoken[:_SPOKEN])]
        parts.append(f"Most spoken of: {', '.join(named)}.")
    return " ".join(filter(None, parts)) or "No two people were found to say alike, and nothing that could be quoted."


def _people_phrase(count: int, number: int) -> str:
    """` (six people)` of the first, ` (four)` of those after it; nothing where nobody is counted."""
    if not count:
        return ""
    return f" ({in_words(count)}{'' if number else ' people'})"


def tone_sentence(graded: int, sounding: int, lean: int) -> str:
    """`Of the 7 posts whose tone can be told, 5 sound negative.`; empty without grades."""
    verb, side = "sounds" if sounding <= 1 else "sound", "positive" if lean > 0 else "negative"
    number = sounding or "none"
    whole = f"Of the {graded} posts whose tone can be told, {number} {verb} {side}."
    return whole if graded else ""


def is_subject(sentence: str) -> bool:
    """Whether a finding's sentence names what people speak of, without saying that any of them say alike."""
    match = COUNTED.match(sentence)
    return match is not None and (match["example"] is not None or names_only(sentence))


def parts_of(sentence: str) -> tuple[str, str, str] | None:
    """The subject of a theme's sentence, the words that it quotes, and who holds them; None for every other sentence.

    Empty: `held` where the sentence counts nobody, the subject where one person's words stand alone.
    """
    match = _PARTS.match(sentence)
    if match is None:
        return None
    return "" if match["name"] == VOICE else match["name"], match["claim"], match["held"] or ""


def names_only(sentence: str) -> bool:
    """Whether a finding's sentence names what people speak of, and shows no words of theirs."""
    match = COUNTED.match(sentence)
    return match is not None and not (match["example"] or match["claim"]) and "speak" in match[0]


def recount_theme(sentence: str) -> str | None:
    """The sentence of a theme that has lost passages: the same where it counts nobody, else None."""
    match = COUNTED.match(sentence)
    counts = match is None or match["number"] or _BARE.search(sentence) is None
    return None if counts else sentence


def recount_summary(summary: str, findings: Sequence[str]) -> str | None:
    """The summary of themes over other findings, by their sentences; None for any other summary."""
    if not SUMMARY.match(summary):
        return None
    matches = (COUNTED.match(text) for text in findings)
    held = (match for match in matches if match and match["claim"] and not match["example"])
    claims = [(match["claim"].partition("”: ")[0], 0) for match in held]
    return theme_summary(claims) if claims else ""


def in_words(number: int) -> str:
    """A number up to twelve in words, so that it is never taken for a measure."""
    return _SMALL[number] if number < len(_SMALL) else f"{number:,}"
