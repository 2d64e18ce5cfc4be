"""What the sandbox's model answers, one function per kind of request. It reads only the prompt.

A kind is told by the schema that is asked for, or, without one, by the field its instructions name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from api.sandbox.lexicon import lexicon, sentences
from api.sandbox.passing import in_passing
from api.sandbox.quoted import Prompt, Quoted
from api.sandbox.world import Probabilities
from api.sandbox.writer import QUESTION_WORDS, listed, name_of, report

KINDS: Mapping[str, str] = {
    "relevant": "judge",
    "grades": "grades",
    "queries": "rewrite",
    "explanation_text": "explain",
    "findings": "agent",
}
"""Field of the answer -> name of the endpoint."""
_THRESHOLD = 0.5
_PARTLY, _SURE, _VERY_SURE = 0.58, 0.66, 0.75
"""Probabilities for the scores 3, 4 and 5: who reads the whole text asks for more than the gate."""
_PASSING = 0.3
"""The most that a name dropped in passing is worth."""
_MOST_WORDS, _MOST_TITLES = 235, 4


def kind_of(schema: Mapping[str, Any] | None, prompt: Prompt) -> str | None:
    """The field that tells what is asked for; None for a chat."""
    if schema is not None:
        return next((field for field in KINDS if field in schema.get("properties", {})), None)
    return next((field for field in KINDS if f'{{"{field}":' in prompt.plain), None)


def answer(field: str, prompt: Prompt, judge: Probabilities) -> dict[str, Any]:
    """The JSON object for one kind of request."""
    if field == "relevant":
        return {"relevant": [p >= _THRESHOLD for p in _judged(prompt, prompt.numbered, judge)]}
    if field == "grades":
        return {"grades": _grades(prompt, judge)}
    if field == "queries":
        return {"queries": _queries(prompt)[: prompt.wanted]}
    if field == "explanation_text":
        return _explanation(prompt)
    return report(prompt, judge)


def _judged(prompt: Prompt, items: Sequence[Quoted], judge: Probabilities) -> list[float]:
    """Chances by the judge, lower where a text only drops the name."""
    texts, name = [item.text for item in items], name_of(prompt.question)
    chances = judge(prompt.question, prompt.about, texts, prompt.source) if texts else []
    return [
        min(chance, _PASSING) if name and in_passing(name, item.parts) else chance
        for item, chance in zip(items, chances, strict=True)
    ]


def _grades(prompt: Prompt, judge: Probabilities) -> list[dict[str, Any]]:
    items = prompt.numbered
    return [
        _grade(item, prompt.all(f"{item.label} comment"), chance)
        for item, chance in zip(items, _judged(prompt, items, judge), strict=True)
    ]


def _grade(item: Quoted, comments: Sequence[str], chance: float) -> dict[str, Any]:
    words, texts = lexicon(), [*item.parts, *comments]
    aspects = [aspect.noun.removeprefix("the ") for aspect in words.about(" ".join(texts))][:5]
    feeling = words.polarity(" ".join(texts))
    if chance < _PARTLY:
        score = 1 if chance < _PARTLY / 2 else 2
    else:
        score = (
            3
            + bool(aspects and chance >= _SURE)
            + bool((len(aspects) > 1 or feeling) and chance >= _VERY_SURE)
        )
    return {
        "score": score,
        "explanation": _why(score, aspects),
        "sentiment": feeling or (0 if aspects else None),
        "aspects": aspects,
        "quote": telling(texts),
    }


def _why(score: int, aspects: Sequence[str]) -> str:
    topics = listed(aspects[:3])
    return {
        1: "Uses the words of the question but is about something else.",
        2: "Touches the subject without saying anything about the product asked for.",
        3: "Is about the product, without much detail.",
        4: f"Talks about the product and {topics or 'how it is used'}.",
        5: f"Gives a concrete account of the product: {topics or 'how it is used'}.",
    }[score]


def telling(texts: Sequence[str], most: int = 200) -> str:
    """The sentence that says most: an opinion about something, not too short and not too long."""
    words, best, top = lexicon(), "", 0.0
    for number, text in enumerate(texts):
        for sentence in sentences(text):
            count = len(sentence.split())
            if count < 4 or len(sentence) > most:
                continue
            weight = 2.0 * abs(words.polarity(sentence)) + len(words.about(sentence)[:2])
            weight += 0.5 * (6 <= count <= 30) - 0.2 * (number == 0)
            if weight > top:
                best, top = sentence, weight
    return best


def _queries(prompt: Prompt) -> list[str]:
    """Other spellings of the name, and what stands beside it."""
    name = name_of(prompt.question) or prompt.question
    core = re.sub(r"\.(?:ai|com|io|app|co|new|net|org)\b", "", name, flags=re.I).strip()
    held = {word.casefold() for word in re.findall(r"\w+", name)} | QUESTION_WORDS
    beside = [w for w in re.findall(r"[^\W\d_][\w-]{3,}", prompt.about) if w.casefold() not in held]
    found = [
        f"{core} {' '.join(beside[-2:])}" if beside else "",
        f"{core} review",
        core,
        "".join(name.replace(".", "").split()),
        f"{core} problems",
        f"{core} alternatives",
    ]
    original = prompt.question.casefold()
    return [query for query in dict.fromkeys(found) if query and query.casefold() != original]


def _explanation(prompt: Prompt) -> dict[str, Any]:
    """Why there is too little, from the queries, sources and reasons quoted in the prompt."""
    name = name_of(prompt.question) or "the product"
    asked, sources = prompt.all("query"), prompt.all("source")
    dropped = [text.partition(" | reason: ") for text in prompt.all("dropped")]
    lines = [
        f"You asked about “{prompt.question}”. The search used "
        + (listed([f"“{query}”" for query in asked]) if asked else "the question as it stands")
        + ".",
        *(f"{source.rstrip('.')}." for source in sources),
    ]
    lines += _left_out([(title, why.rstrip(".")) for title, _, why in dropped])
    lines += _advice(name)
    kept: list[str] = []
    for line in lines:
        if len(" ".join([*kept, line]).split()) <= _MOST_WORDS:
            kept.append(line)
    suggestions = [
        f"What do owners of {name} complain about?",
        f"How does {name} compare with its rivals?",
    ]
    return {"explanation_text": " ".join(kept), "suggestions": suggestions}


def _left_out(dropped: Sequence[tuple[str, str]]) -> list[str]:
    """What came back and why it is no answer, told once per reason."""
    if not dropped:
        return []
    titles: dict[str, list[str]] = {}
    for title, why in dropped:
        titles.setdefault(why, []).append(f"“{_cut(title)}”")
    lines = ["Texts came back, but they do not answer the question."]
    for why, named in titles.items():
        shown = listed(named[:_MOST_TITLES])
        reason = why or "nothing in them is about what was asked"
        lines.append(f"Left out, for example: {shown} ({reason}).")
    return lines


def _advice(name: str) -> list[str]:
    core = re.sub(r"\.\w{2,4}$", "", name)
    return [
        "There are ordinary reasons for such a gap. The name may be young or rarely written down, "
        "people may use a nickname or a product line instead of it, or the word may mean other "
        "things that are talked about far more often and crowd it out of the first results.",
        "None of this says that nobody has an opinion; it only says that this search did not reach "
        "it.",
        f"Two queries look more promising: “{core} review”, which finds people who judge from use, "
        f"and “{core} problems”, which finds those who got stuck.",
        "A few words that tell the product from its namesakes, given with the question, help too.",
        "Beyond these places it is worth looking at the maker's own forum and release notes, at a "
        "subreddit of the trade in which the product is used, and at independent tests in "
        "magazines, where the name is usually written out in full.",
    ]


def _cut(title: str) -> str:
    words = title.split()
    return " ".join(words[:10]) + ("…" if len(words) > 10 else "")
