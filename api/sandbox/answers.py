"""What the sandbox's model answers, one function per kind of request. It reads only the prompt.

A kind is told by the schema that is asked for, or, without one, by the field its instructions name.
What it writes is the product's own keyless writing, and what it checks the keyless check.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from api.judges.local_support import carries
from api.sandbox.asides import in_passing
from api.sandbox.quoted import Quoted, QuotedPrompt
from api.sandbox.world import Probabilities
from api.services.ports import Claim
from api.services.question.naming import ASKING_WORDS, core_of, name_of
from api.services.reporting.aspects import aspects, aspects_in
from api.services.reporting.explaining import Shortfall, plain_explanation
from api.services.reporting.findings import LONGEST_PASSAGE
from api.services.reporting.polarity import lean_of
from api.services.reporting.sentences import sentences
from api.services.reporting.subjects import Subject
from api.services.reporting.themes import THEMES, find_themes
from api.services.schemas import Question
from api.services.text import cut

KINDS: Mapping[str, str] = {
    "relevant": "judge",
    "supported": "support",
    "grades": "grades",
    "queries": "rewrite",
    "explanation_text": "explain",
    "findings": "agent",
}
"""Field of the answer -> name of the endpoint."""
_THRESHOLD = 0.5
_PARTLY, _SURE, _VERY_SURE = 0.55, 0.58, 0.7
"""Probabilities for the scores 3, 4 and 5: who reads the whole text asks for more than the gate."""
_MENTIONED = 0.3
"""The most that a name dropped in passing is worth."""
_SHORT = "starting point"
"""What the instructions of a short report say: one sentence of summary, two findings."""
_FEW, _QUOTES, _ASPECTS = 2, 4, 5
_FEWEST_WORDS = 4
"""Words of a sentence that is quoted."""


def kind_of(schema: Mapping[str, Any] | None, prompt: QuotedPrompt) -> str | None:
    """The field that tells what is asked for; None for a chat."""
    if schema is not None:
        return next((field for field in KINDS if field in schema.get("properties", {})), None)
    return next((field for field in KINDS if f'{{"{field}":' in prompt.plain), None)


def answer(field: str, prompt: QuotedPrompt, judge: Probabilities) -> dict[str, Any]:
    """The JSON object for one kind of request."""
    if field == "relevant":
        return {"relevant": [p >= _THRESHOLD for p in _judged(prompt, prompt.numbered, judge)]}
    if field == "supported":
        return {"supported": _supported(prompt)}
    if field == "grades":
        chances = _judged(prompt, prompt.numbered, judge)
        graded = zip(prompt.numbered, chances, strict=True)
        return {"grades": [_grade(prompt, item, chance) for item, chance in graded]}
    if field == "queries":
        return {"queries": _queries(prompt)[: prompt.wanted]}
    if field == "explanation_text":
        return _explanation(prompt)
    return report(prompt)


def report(prompt: QuotedPrompt) -> dict[str, Any]:
    """The themes of the exhibits in the prompt, as the JSON of a draft."""
    short = _SHORT in prompt.plain
    question = Question(prompt.question, prompt.about)
    most = _FEW if short else THEMES
    themed = find_themes(question, prompt.shown, most=most, kept=prompt.kept)
    findings = [
        {
            "text": finding.text,
            "kind": finding.kind,
            "evidence": [
                {"cite": passage.label, "passage": passage.text} for passage in finding.passages
            ],
        }
        for finding in themed.findings
    ]
    first = {finding.passages[0].text: finding.passages[0].label for finding in themed.findings}
    return {
        "topic": themed.topic,
        "summary": themed.summary,
        "findings": findings,
        "quotes": [{"text": text, "cite": label} for text, label in first.items()][:_QUOTES],
        "suggestions": list(themed.suggestions),
    }


def _judged(prompt: QuotedPrompt, items: Sequence[Quoted], judge: Probabilities) -> list[float]:
    """Chances by the judge, lower where a text only drops the name."""
    texts, name = [item.text for item in items], name_of(prompt.question)
    chances = judge(prompt.question, prompt.about, texts, prompt.source) if texts else []
    return [
        min(chance, _MENTIONED) if name and in_passing(name, item.parts) else chance
        for item, chance in zip(items, chances, strict=True)
    ]


def _supported(prompt: QuotedPrompt) -> list[bool]:
    question = Question(prompt.question, prompt.about)
    contexts = prompt.all("context", numbered=True)
    parts = zip(
        prompt.all("sentence", numbered=True), prompt.all("passage", numbered=True), contexts,
        strict=False,
    )  # fmt: skip
    return [carries(Claim(*part), question) for part in parts]


def _grade(prompt: QuotedPrompt, item: Quoted, chance: float) -> dict[str, Any]:
    texts = [*item.parts, *prompt.all(f"{item.label} comment")]
    whole = " ".join(texts)
    subject = Subject.of(Question(prompt.question, prompt.about), [whole])
    held = [(aspect, match[0]) for aspect in aspects() if (match := aspect.pattern.search(whole))]
    parts = (part for text in texts for part in sentences(text) if len(part) <= LONGEST_PASSAGE)
    leans = {lean for part in parts if (lean := lean_of(part, subject=subject))}
    if chance < _PARTLY:
        score = 1 if chance < _PARTLY / 2 else 2
    else:
        detailed = len(held) > 1 or bool(leans)
        score = 3 + bool(held and chance >= _SURE) + bool(detailed and chance >= _VERY_SURE)
    return {
        "score": score,
        "explanation": _why(subject, texts, [f"{a.name} (“{words}”)" for a, words in held], chance),
        "sentiment": sum(leans) if leans else None,
        "aspects": [aspect.name for aspect, _ in held][:_ASPECTS],
        "quote": _telling(texts, subject),
    }


def _why(subject: Subject, texts: Sequence[str], topics: Sequence[str], chance: float) -> str:
    """The words that decided: where the name stands, what is spoken of, and the judge's number."""
    title, *rest = texts or [""]
    match = subject.pattern.search(title) or subject.pattern.search(" ".join(rest))
    place = "in the title" if subject.is_named(title) else "below the title"
    named = f"names “{match[0]}” {place}" if match else "does not write the name"
    if subject.name and in_passing(subject.name, texts):
        named += ", only in passing"
    speaks = f" and speaks of {', '.join(topics[:3])}" if topics else ""
    return f"{named[0].upper()}{named[1:]}{speaks}; {chance:.0%} likely to be about it."


def _telling(texts: Sequence[str], subject: Subject) -> str:
    """The sentence that says most: about the product, with a sure lean, about something known."""
    candidates = [
        sentence
        for text in texts
        for sentence in sentences(text)
        if len(sentence) <= LONGEST_PASSAGE and len(sentence.split()) >= _FEWEST_WORDS
    ]

    def weight(sentence: str) -> float:
        sure = lean_of(sentence, subject=subject) is not None
        named = subject.is_named(sentence)
        return 2.0 * sure + min(2, len(aspects_in(sentence))) + 0.5 * named

    best = max(candidates, key=weight, default="")
    return best if best and weight(best) >= 1 else ""


def _queries(prompt: QuotedPrompt) -> list[str]:
    """Other spellings of the name, and what stands beside it."""
    name = name_of(prompt.question) or prompt.question
    core = core_of(name)
    held = {word.casefold() for word in re.findall(r"\w+", name)} | ASKING_WORDS
    beside = [w for w in re.findall(r"[^\W\d_][\w-]{3,}", prompt.about) if w.casefold() not in held]
    queries = [
        f"{core} {' '.join(beside[-2:])}" if beside else "",
        f"{core} review",
        core,
        "".join(name.replace(".", "").split()),
        f"{core} problems",
        f"{core} alternatives",
    ]
    original = prompt.question.casefold()
    return [query for query in dict.fromkeys(queries) if query and query.casefold() != original]


def _explanation(prompt: QuotedPrompt) -> dict[str, Any]:
    """Why there is too little, as the product says it without a model."""
    dropped = (text.partition(" | reason: ") for text in prompt.all("dropped"))
    shortfall = Shortfall(
        Question(prompt.question, prompt.about),
        (prompt.question, *(query for query in prompt.all("query") if query != prompt.question)),
        tuple(prompt.all("source")),
        tuple((cut(title, LONGEST_PASSAGE), reason) for title, _, reason in dropped),
        kept=sum(int(count) for count in prompt.all("kept") if count.isdecimal()),
        own=bool(prompt.all("own")),
    )
    explanation = plain_explanation(shortfall)
    return {
        "explanation_text": explanation.text, "suggestions": list(explanation.suggestions),
    }  # fmt: skip
