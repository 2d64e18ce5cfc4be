"""What a person is told when there is too little for a report, with a model or without one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import regex

from api.core.domain import Question, Usage
from api.core.text import clean, cut, is_visible, one_line
from api.pipeline.question.product_name import new_queries, sought

FEWEST_WORDS, MOST_WORDS = 150, 250
MOST_DROPPED = 10

_WORD = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]|[^\s\p{Han}\p{Hiragana}\p{Katakana}]+")
_SENTENCE = regex.compile(r"\S.*?(?:[.!?](?=\s)|[\u3002\uff01\uff1f]|\Z)\s*", regex.S)
_ADVICE = (
    "It may be hard to find because the product is new, sold in few places or known under another "
    "name, or because its name is also an ordinary word or belongs to something else, so that a "
    "search brings up posts about other things.",
    "People also talk in closed groups, in other languages and deep in comment threads, where a "
    "search does not reach.",
    "Adding the maker, the model or the kind of product to the name, or saying what it is about, "
    "usually tells it from its namesakes.",
    "Other places worth a look are the maker's support forum, reviews in app stores and specialist "
    "shops, and chat communities of its users.",
    "A wider time window or a deeper search may bring more.",
    "That little was found here says nothing about the product itself, only that what was "
    "looked at did not answer today.",
)
# Of a person's own items: there is no other place, and no search that could be wider.
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
    "Until then `--sandbox` shows the whole way on sample data, and `--items FILE.jsonl` analyzes "
    "posts that you already have.",
)


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Why there is no report: all that an explanation may use."""

    question: Question
    queries: tuple[str, ...]
    """Every query that was asked, the original first."""
    coverage: tuple[str, ...]
    """One line per source: what it was asked for and how that ended."""
    dropped: tuple[tuple[str, str], ...] = ()
    """Title and reason of what was left out; the reason may be empty; ten are used."""
    answered: bool = True
    """Some source answered; else nothing is known, which is not the same as nothing being there."""
    kept: int = 0
    """Items that stayed, too few for a report."""
    unjudged: bool = False
    """Whether some of them stayed since nobody judged whether they are about it."""
    own: bool = False
    """The items are the person's own."""

    @property
    def advice(self) -> Sequence[str]:
        """Why it may be hard to find, and what may help."""
        return _OWN_ADVICE if self.own else _ADVICE


@dataclass(frozen=True, slots=True)
class Explanation:
    """Text of 150 to 250 words, fewer where nothing was searched, and the questions to ask next."""

    text: str
    suggestions: tuple[str, ...]
    usage: Usage = Usage()


class Explainer(Protocol):
    """Puts a shortfall into words."""

    async def explain(self, shortfall: Shortfall) -> Explanation:
        """One call.

        Raises:
            ModelError: no usable answer; the caller takes `plain_explanation`.
        """
        ...


def plain_explanation(shortfall: Shortfall) -> Explanation:
    """The same facts in fixed words, without any model."""
    if not shortfall.answered:
        return _unasked(shortfall)
    short = _leading(sought(shortfall.question.text), 8)
    ideas = [f"{short} {word}" for word in ("review", "problems", "alternatives", "experience")]
    suggestions = () if shortfall.own else tuple(new_queries(ideas, shortfall.queries))[:2]
    better = " and ".join(f"“{query}”" for query in suggestions)
    hard, *rest = shortfall.advice
    advice = " ".join([hard, *([f"Better queries to try: {better}."] if better else []), *rest])
    searched = _searched(shortfall)
    results = _results(shortfall, MOST_WORDS - words(searched) - words(advice))
    return Explanation(f"{searched} {results}\n\n{advice}", suggestions)


def _unasked(shortfall: Shortfall) -> Explanation:
    """Nothing could be asked: why, what that does not mean, and how to mend it."""
    name = _leading(shortfall.question.text, 10)
    text = f"“{name}” was not searched for: no source could be asked."
    lines = _within(60, (_leading(line, 20, 200) for line in shortfall.coverage[:12]))
    text += f" By source: {'; '.join(lines)}." if lines else ""
    return Explanation(f"{text}\n\n{' '.join(_UNASKED)}", ())


def fitted(text: str, advice: Sequence[str] = _ADVICE) -> str:
    """The text with 150 to 250 words: whole sentences cut at the end, or plain advice added."""
    kept = ""
    for sentence in _SENTENCE.findall(text.strip()):
        if words(kept + sentence) > MOST_WORDS:
            break
        kept += sentence
    kept = kept.strip() or _leading(text, MOST_WORDS, 10_000)
    for sentence in advice:
        if words(kept) >= FEWEST_WORDS:
            break
        kept += f" {sentence}"
    return kept


def words(text: str) -> int:
    """How many words; where words are not spaced, each character is one."""
    return sum(1 for _ in _WORD.finditer(text))


def _searched(shortfall: Shortfall) -> str:
    also = [f"“{_leading(query, 6)}”" for query in shortfall.queries[1:4]]
    first = next(iter(shortfall.queries), shortfall.question.text)
    queries = f"Searched for “{_leading(first, 10)}”"
    queries += f" and also for {', '.join(also)}." if also else "."
    lines = _within(45, (_leading(line, 24, 200) for line in shortfall.coverage[:12]))
    return f"{queries} By source: {'; '.join(lines)}." if lines else queries


def _results(shortfall: Shortfall, budget: int) -> str:
    """What came back: how many are about it, and titles of those that are not, each once."""
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
    named = (_dropped(title, reason) for title, reason in dropped if is_visible(title))
    shown = _within(budget - words(start) - 2, dict.fromkeys(named))
    return f"{start}, for example {'; '.join(shown)}." if shown else f"{start}."


def _dropped(title: str, reason: str) -> str:
    why = _leading(reason, 8).rstrip(".")
    return f"“{_leading(title, 6)}”" + (f" ({why})" if why else "")


def _within(budget: int, parts: Iterable[str]) -> list[str]:
    """The leading parts that fit into so many words, each part whole."""
    kept: list[str] = []
    for part in parts:
        budget -= words(part)
        if budget < 0:
            break
        kept.append(part)
    return kept


def _leading(text: str, most: int, characters: int = 80) -> str:
    """The first words of any text, on one line."""
    text = cut(one_line(clean(text)), characters)
    ends = [match.end() for match in _WORD.finditer(text)]
    return text if len(ends) <= most else f"{text[: ends[most - 1]]}…"
