"""The explanation in place of a report when the evidence is too thin, by a model or without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice
from typing import Protocol

import regex

from api.core.domain import Question, Usage
from api.core.text import clean, cut, fold, is_visible, one_line
from api.core.words import canonical, stem
from api.pipeline.question.product_name import judged_words, new_queries, search_words

FEWEST_WORDS, MOST_WORDS = 150, 250
# Letters of a name of which another spelling can be told, words of one, and titles that hold it.
_SHORTEST_NAME, _LONGEST_NAME, _FEWEST_TITLES = 4, 5, 2
# Titles that are read, and characters of one.
_MOST_TITLES, _TITLE = 200, 120
# Likeness from which two names are spellings of one: `embrmug` and `embermug` have 0.93.
_LIKE_NAME = 0.8
_AROUND = " ?!,;:.\"“”„'‘’()[]{}|*_~`-–—"
MOST_DROPPED = 10  # dropped items that an explanation may name

# a run of other signs, or one sign of a script without spaces between words
_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[^\s\p{Han}\p{Hiragana}\p{Katakana}]+")
# `.`, `!` or `?` before a space, a full stop of Chinese and Japanese, or the end of the text
_SENTENCE = regex.compile(r"\S.*?(?:[.!?](?=\s)|[\u3002\uff01\uff1f]|\Z)\s*", regex.S)
_ADVICE = (
    "It may be hard to find because the product is new, sold in few places or known under another "
    "name, or because its name is also an ordinary word or belongs to something else, so that a "
    "search brings up posts about other things.",
    "People also talk in closed groups, in other languages and deep in comment threads, where a search does not reach.",
    "Adding the maker, the model or the kind of product to the name, or saying what it is about, "
    "usually tells it from its namesakes.",
    "Other places worth a look are the maker's support forum, reviews in app stores and specialist "
    "shops, and chat communities of its users.",
    "A wider time window or a deeper search may bring more.",
    "That little was found here says nothing about the product itself, only that what was "
    "looked at did not answer today.",
)
# For a person's own items there is no other source, and no search that could be wider.
_OWN_ADVICE = (
    "The items are those that you handed in, and no place was searched. They may speak of it under "
    "another name, in another spelling or language, or only in pictures and links, which nobody "
    "reads here; or its name is also an ordinary word, and what was handed in means something else "
    "by it.",
    "An item is judged by its title, where it stood and the passage that names the question, so a "
    "title and a text in fields of their own help, and so does the parent's title of a comment.",
    "Adding the maker, the model or the kind of product to the name, or saying what it is about, "
    "usually tells it from its namesakes.",
    "Each item that was left out is listed with its reason; what is older than the time window, or "
    "has the key of an earlier item, is counted in a note.",
    "That little stayed of what was handed in says nothing about the product itself, only that "
    "these items do not answer the question.",
)
_UNASKED = (
    "Therefore nothing is known: neither that people talk about this, nor that they do not.",
    "`listenpost doctor` says what is wrong with each source, and what to set or to wait for.",
    "Until then `--sandbox` shows a report on made-up posts, and `--items FILE.jsonl` analyzes "
    "posts that you already have.",
)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why there is no report: all that an explanation may use."""

    question: Question
    queries: tuple[str, ...]  # every query that was sent, the original first
    coverage: tuple[str, ...]  # one line per source: what it was asked for and how that ended
    dropped: tuple[tuple[str, str], ...] = ()
    """Title and reason (maybe empty) of dropped items; the first `MOST_DROPPED` are used."""
    answered: bool = True
    """Whether at least one source answered; if not, nothing is known, which differs from "nothing found"."""
    kept: int = 0  # kept items, too few for a report
    unjudged: bool = False  # some of the kept items were never judged
    meant: str = ""  # the name that was probably meant
    own: bool = False  # the items were handed in by the person; no source was searched
    by_name: bool = False  # every source that was asked searches by the product's name alone

    @property
    def advice(self) -> Sequence[str]:
        """Sentences about likely reasons for few results and what may help."""
        return _OWN_ADVICE if self.own else _ADVICE


@dataclass(frozen=True, slots=True)
class Explanation:
    """Text of 150 to 250 words, fewer where nothing was searched, and the questions to ask next."""

    text: str
    suggestions: tuple[str, ...]
    usage: Usage = Usage()
    meant: str = ""
    """The name that was probably meant, as `likely_name` found it."""


class Explainer(Protocol):
    """Explains in words why too little was found."""

    async def explain(self, shortfall: Shortfall) -> Explanation:
        """One model call; raises `ModelError` without a usable answer."""


def plain_explanation(shortfall: Shortfall) -> Explanation:
    """The facts in fixed words, without a model."""
    query, lines = shortfall.question.text, shortfall.coverage[:12]
    if not shortfall.answered:
        by_source = _within(60, (_first_words(line, 20, 200) for line in lines))
        text = f"“{_first_words(query, 10)}” was not searched for: no source could be asked."
        text += f" By source: {'; '.join(by_source)}." if by_source else ""
        return Explanation(f"{text}\n\n{' '.join(_UNASKED)}", ())
    also = [f"“{_first_words(query, 6)}”" for query in shortfall.queries[1:4]]
    searched = f"Searched for “{_first_words(next(iter(shortfall.queries), query), 10)}”"
    searched += f" and also for {', '.join(also)}." if also else "."
    by_source = _within(45, (_first_words(line, 24, 200) for line in lines))
    searched += f" By source: {'; '.join(by_source)}." if by_source else ""
    name = _first_words(shortfall.meant or search_words(query), 8)
    ideas = [f"{name} {word}" for word in ("review", "problems", "alternatives", "experience")]
    suggestions = () if shortfall.own or shortfall.by_name else tuple(new_queries(ideas, shortfall.queries))[:2]
    better = " and ".join(f"“{query}”" for query in suggestions)
    hard, *rest = shortfall.advice
    advice = " ".join([hard, *([f"Better queries to try: {better}."] if better else []), *rest])
    results = _results(shortfall, MOST_WORDS - count_words(searched) - count_words(advice))
    return Explanation(f"{searched} {results}\n\n{advice}", suggestions)


def likely_name(question: str, titles: Iterable[str]) -> str:
    """The name that most titles spell nearly as a question does: `Ember mug` for `embr mug`.

    Compared are names as a whole. Empty where a title holds the very name, where fewer than
    `_FEWEST_TITLES` hold such a one, or where the name is too short to tell.
    """
    name = one_line(judged_words(question))
    wanted, size = fold(name).replace(" ", ""), len(name.split())
    if len(wanted) < _SHORTEST_NAME or size > _LONGEST_NAME:
        return ""
    spellings: dict[str, Counter[str]] = {}
    for title in islice(titles, _MOST_TITLES):
        words = [word.strip(_AROUND) for word in cut(clean(title), _TITLE).split()]
        near: dict[str, str] = {}
        for length in {max(1, size - 1), size, size + 1}:
            for start in range(len(words) - length + 1):
                written = " ".join(words[start : start + length])
                folded = fold(written).replace(" ", "")
                if stem(folded) == stem(wanted) or canonical(written) == canonical(name):
                    return ""
                if _likeness(folded, wanted) >= _LIKE_NAME:
                    near.setdefault(stem(folded), written)
        for form, written in near.items():
            spellings.setdefault(form, Counter())[written] += 1
    counts = {form: written.total() for form, written in spellings.items()}
    # of two that as many titles hold, the one that is spelled more alike
    best = max(counts, key=lambda form: (counts[form], _likeness(form, wanted)), default="")
    return spellings[best].most_common(1)[0][0] if best and counts[best] >= _FEWEST_TITLES else ""


@lru_cache(maxsize=10_000)
def _likeness(name: str, other: str) -> float:
    """0 to 1: twice the letters in common over all letters; 0 where the lengths rule out a likeness."""
    if 2 * min(len(name), len(other)) < _LIKE_NAME * (len(name) + len(other)):
        return 0.0
    return SequenceMatcher(None, name, other, autojunk=False).ratio()


def fitted(text: str, advice: Sequence[str] = _ADVICE) -> str:
    """The text with 150 to 250 words: whole sentences cut at the end, or plain advice added."""
    kept = ""
    for sentence in _SENTENCE.findall(text.strip()):
        if count_words(kept + sentence) > MOST_WORDS:
            break
        kept += sentence
    kept = kept.strip() or _first_words(text, MOST_WORDS, 10_000)
    for sentence in advice:
        if count_words(kept) >= FEWEST_WORDS:
            break
        kept += f" {sentence}"
    return kept


def count_words(text: str) -> int:
    """The number of words; in scripts without spaces each character is one."""
    return sum(1 for _ in _WORD.finditer(text))


def _results(shortfall: Shortfall, budget: int) -> str:
    """How many items are about the question, and titles of others; at most `budget` words."""
    dropped, kept = shortfall.dropped[:MOST_DROPPED], shortfall.kept
    if kept:
        are = "is" if kept == 1 else "are"
        left = "left, not all of them judged" if shortfall.unjudged else "about it and kept"
        about = f"{kept} item{'s' * (kept > 1)} {are} {left}, too few for a report."
        start = f"{about} What else came back does not answer it"
    else:
        about = "" if dropped else "Nothing came back that addresses the question."
        start = "What came back does not answer it"
    if not dropped:
        return about
    titles = dict[str, None]()  # each once, in order
    for title, reason in dropped:
        if is_visible(title):
            why = _first_words(reason, 8).rstrip(".")
            titles[f"“{_first_words(title, 6)}”" + (f" ({why})" if why else "")] = None
    shown = _within(budget - count_words(start) - 2, titles)
    return f"{start}, for example {'; '.join(shown)}." if shown else f"{start}."


def _within(budget: int, parts: Iterable[str]) -> list[str]:
    """The first parts that fit into `budget` words, each part whole."""
    kept: list[str] = []
    for part in parts:
        budget -= count_words(part)
        if budget < 0:
            break
        kept.append(part)
    return kept


def _first_words(text: str, most: int, characters: int = 80) -> str:
    text = cut(one_line(clean(text)), characters)
    ends = [match.end() for match in _WORD.finditer(text)]
    return text if len(ends) <= most else f"{text[: ends[most - 1]]}…"
