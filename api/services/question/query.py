"""The query gate, disarming search operators, and one form for the variants of a name."""

from __future__ import annotations

from dataclasses import dataclass

import regex

from api.services.question.small_talk import STOP_WORDS_ALONE, is_small_talk
from api.services.text import clean, fold, one_line

LONGEST = 500
"""Characters a question may have."""

EXAMPLE = "for example `standing desk wobble` or `plaud.ai`"
_HELP = {
    "empty": f"Nothing was asked. Name a product, a brand or a topic, {EXAMPLE}.",
    "noise": f"It holds no word to search for. Name a product, a brand or a topic, {EXAMPLE}.",
    "small_talk": f"Hello! Say which product, brand or topic you want to hear about, {EXAMPLE}.",
    "operators": (
        "It holds search operators only (such as `site:`, `author:` or `-word`), which are not "
        f"used here. Write the name in plain words, {EXAMPLE}."
    ),
    "long": "It is too long: ask in at most {longest} characters.",
}


@dataclass(frozen=True, slots=True)
class Screened:
    """What the query gate says; `guidance` is empty when the query may be asked."""

    ok: bool
    query: str
    """The question on one line, without control characters."""
    guidance: str = ""


def screen(
    text: str, *, longest: int = LONGEST, stop_words_alone: int = STOP_WORDS_ALONE
) -> Screened:
    """Let names pass, however short, and answer what cannot be searched with guidance.

    Refused: nothing, no letter or digit, one character over and over, operators only, small talk in
    any of 58 languages, and more than `longest` characters.
    """
    query = one_line(clean(text))
    fault = _fault(query, longest, stop_words_alone)
    if fault is None:
        return Screened(True, query)
    return Screened(False, query, _HELP[fault].format(longest=longest))


def _fault(query: str, longest: int, stop_words_alone: int) -> str | None:
    if not query:
        return "empty"
    if len(query) > longest:
        return "long"
    if not _WORDY.search(query) or _ONE_CHARACTER.fullmatch(query):
        return "noise"
    plain = neutralise(query, "amazon")
    if not _WORDY.search(plain) or (
        plain != query and {"and", "or", "not"}.issuperset(plain.split())
    ):
        return "operators"
    return "small_talk" if is_small_talk(plain, alone=stop_words_alone) else None


_WORDY = regex.compile(r"[\p{L}\p{N}]")
_ONE_CHARACTER = regex.compile(r"(\X)(?:\s*\1){4,}")

FIELDS = (
    "site author subreddit self selftext nsfw over18 flair flair_text title url timestamp created "
    "intitle allintitle inurl allinurl intext allintext filetype related cache before after "
    "channel description hashtag duration"
).split()
"""Field prefixes that Reddit, YouTube or a web search obeys."""

_QUOTES = str.maketrans(dict.fromkeys("“”„‟«»「」『』", '"') | dict.fromkeys("‘’‛", "'"))
_FIELD = "|".join(sorted(FIELDS, key=len, reverse=True))
_SHARED = tuple(
    (regex.compile(pattern), by)
    for pattern, by in (
        (r"(?i)https?://(?:www\.)?", " "),
        (rf'(?i)(?<!\w)[-+!]*(?:{_FIELD}):(?:"[^"]*"?|\([^()]*\)?|\[[^][]*\]?|[^\s"()[\]]+)', " "),
        (rf"(?i)(?<!\w)({_FIELD}):", r"\1 "),
        (r'\b\w+:[<>=]+[^\s"]*', " "),
        (r'(?<![^\s("])-+(?=\d)', ""),
        (r'(?<![^\s("])-+(?:"[^"]*"?|[^\s"]+)', " "),
        (r'(?<![^\s("])[+!]+(?=\S)', ""),
        (r"(?<!\S)-+(?!\S)", " "),
        (r"\|+|&&+", " "),
    )
)
_BOOLEAN = regex.compile(r"(?<![\w&.'-])(?:AND|OR|NOT)(?![\w&'-]|\.\w)")
_LONE = (r"(?<!\S)[!#-/:-@\[-`{-~]+(?!\S)", " ")
_EXTRA = {
    "reddit": tuple(
        (regex.compile(pattern), by)
        for pattern, by in (
            (r"[~^][\d.]*", " "),
            (r"[][(){}\\*?:!<>]", " "),
            (r"(?<!\S)/+|/+(?!\S)", " "),
            _LONE,
        )
    ),
    "amazon": tuple(
        (regex.compile(pattern), by)
        for pattern, by in ((r"[^\p{L}\p{M}\p{N}\s.+&#'\-\u200c\u200d]", " "), _LONE)
    ),
}
_PHRASE = regex.compile(r'"([^"]*)"')


def neutralise(query: str, source: str) -> str:
    r"""The query as plain words for one source; empty when it holds operators only.

    Everywhere: `field:value` of a known field and `any:>value` go (`title: Dune` loses its colon);
    `-word` goes (`-20` keeps its number); a leading `+` or `!`, `|`, `&&` and URL schemes go; AND,
    OR, NOT become lower case; quotes become straight and pair up. Names such as `C++`, `R&D`,
    `Spider-Man`, `plaud.ai` and "quoted phrases" stay.
    Reddit (lucene) also loses parentheses, brackets, wildcards, `~`, `^`, `!`, `\`, `:` and `/` at
    a word's edge. Amazon keeps words only: no quotes either. Doing it twice changes nothing.
    """
    text = one_line(clean(query)).translate(_QUOTES)
    while (after := _pass(text, source)) != text:
        text = after
    return text


def _pass(text: str, source: str) -> str:
    for pattern, by in (*_SHARED, *_EXTRA.get(source, ())):
        text = pattern.sub(by, text)
    text = _BOOLEAN.sub(lambda word: word.group().lower(), text)
    if text.count('"') % 2:
        head, _, tail = text.rpartition('"')
        text = f"{head} {tail}"
    return one_line(_PHRASE.sub(_phrase, text))


def _phrase(match: regex.Match[str]) -> str:
    inner = one_line(match[1])
    return f'"{inner}"' if _WORDY.search(inner) else " "


_ENDINGS = "ai app co com dev io net org so".split()
# What stands behind a name: `.ai` of `plaud.ai`, ` AI` of `Plaud AI`.
_ENDING = regex.compile(rf"(?i)(?<=\w)(?:\.(?:{'|'.join(_ENDINGS)})|\s+ai)(?=\W*$)")
_DROPPED = regex.compile(r"[[\p{P}\p{Z}\p{C}™®©`´]--[#&%]]|^#+", regex.V1)


def canonical(name: str) -> str:
    """One form for the variants of a name; empty when it holds punctuation only.

    Case, width (NFKC), Latin, Greek, Arabic and Hebrew diacritics, quotes, apostrophes, hyphens,
    dots and spaces do not count; `+`, `#`, `&` do (C++ is not C); other scripts stay as they are.
    """
    folded: str = _DROPPED.sub("", fold(_DROPPED.sub("", clean(name))))
    return folded


def same_name(one: str, other: str) -> bool:
    """Whether two spellings name one thing, with or without `.com`, `.ai`, ` ai` and the like."""
    return bool(_forms(one) & _forms(other))


def _forms(name: str) -> set[str]:
    bare = _ENDING.sub("", clean(name))
    return {canonical(name), canonical(bare)} - {""}
