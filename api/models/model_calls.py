"""One boolean for each of up to 50 things, from one cheap call.

Which items are about the question, and which passages carry the sentences that cite them.

What goes with a prompt: the question and excerpts behind the fence, the schema of the answer.

How well each kept item answers the question: a grade from 1 to 5, in words and with a quote.

Other words under which the same product is discussed.

Why there is too little for a report, in a model's words.

Asking a model server what the gate asks, once and as little as that can be.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from api.core.domain import Grade, Item, Question, Usage, Verdict
from api.core.model_cost import bill_of, paying
from api.core.ports import UNGRADED, Claim, Grades, Judgement, Rewrites, Support
from api.core.prompts import PackagedPrompts, Prompt, PromptName, Prompts
from api.core.text import Fence, clean, cut, one_line
from api.errors import ModelError
from api.models import GRADED_AT_ONCE
from api.models.answer_parsing import booleans, entries, record
from api.models.model_client import ModelClient, Request
from api.pipeline.evidence.ranking import best_comments
from api.pipeline.gate.excerpt import shown
from api.reports.citable import CitableText, ground_of
from api.reports.draft_rules import DraftCleaner
from api.reports.quotes import verbatim
from api.reports.shortfall import MOST_DROPPED, Explanation, Shortfall, fitted, words
from api.reports.support_check import LONGEST_SENTENCE
from api.settings import ModelSettings


def quote_question(question: Question, fence: Fence) -> str:
    """The question, fenced, and on a second line what it is about when the person said so."""
    lines = [fence.quote(question.text, "question")]
    if question.about:
        lines.append(fence.quote(question.about, "about"))
    return "\n".join(lines)


def excerpt(value: object, limit: int) -> str:
    """The first `limit` characters of any field, null and numbers included."""
    return cut(clean(value), limit)


def strict_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of an object that has all of these properties and no other."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }


# Characters of each part that the model sees beside the sentence.
_PASSAGE, _CONTEXT = 800, 500
_BOOLEAN_TOKENS, _TOKENS_PER_BOOLEAN = 512, 8


@dataclass(frozen=True, slots=True)
class _BooleanModel:
    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 15.0
    fence: Callable[[], Fence] = Fence
    prompts: Prompts = field(default_factory=PackagedPrompts)

    @property
    def name(self) -> str:
        """The model that was asked for."""
        return self.model

    async def _ask(
        self, name: PromptName, field: str, count: int, fence: Fence, user: str
    ) -> tuple[tuple[bool, ...], Usage]:
        """Exactly `count` booleans under `field`, by the prompt of that name."""
        array = {
            "type": "array", "items": {"type": "boolean"}, "minItems": count, "maxItems": count,
        }  # fmt: skip
        async with self.prompts.using(name) as prompt:
            answer = await self.client.ask(
                Request(
                    name=name,
                    schema=strict_object({field: array}),
                    system=prompt.filled(rule=fence.rule),
                    user=user,
                    max_tokens=_BOOLEAN_TOKENS + _TOKENS_PER_BOOLEAN * count,
                    model=self.model,
                    seconds=self.seconds,
                )
            )
        with paying(answer.usage):
            return booleans(answer.text, count, field), answer.usage


@dataclass(frozen=True, slots=True)
class OpenAIJudge(_BooleanModel):
    """Asks a model about title and 200 characters (`shown`); implements `Judge`."""

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """One verdict per item, in order, from one request; see `Judge.judge`.

        Cost: about 85 input and 4 output tokens per item, and 200 per call.
        """
        if not items:
            return Judgement((), self.name)
        fence = self.fence()
        user = (
            f"source: {' '.join(excerpt(source, 40).split())}\n{quote_question(question, fence)}\n"
            f"{fence.quote_all(shown(question, item).line for item in items)}"
        )
        answers, usage = await self._ask("relevance", "relevant", len(items), fence, user)
        return Judgement(
            tuple(Verdict(relevant, self.name) for relevant in answers), self.name, usage
        )


@dataclass(frozen=True, slots=True)
class OpenAISupport(_BooleanModel):
    """Asks a model about (sentence, passage) pairs; implements `SupportChecker`."""

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """One boolean per claim, in order, from one request; see `SupportChecker.check`.

        Cost: about 200 input and 4 output tokens per pair, and 250 per call.
        """
        if not claims:
            return Support((), self.name)
        fence = self.fence()
        lines = [quote_question(question, fence)]
        for number, claim in enumerate(claims, 1):
            lines += (
                fence.quote(excerpt(claim.sentence, LONGEST_SENTENCE), f"{number} sentence"),
                fence.quote(excerpt(claim.passage, _PASSAGE), f"{number} passage"),
                fence.quote(excerpt(claim.context, _CONTEXT), f"{number} context"),
            )
        answers, usage = await self._ask(
            "support", "supported", len(claims), fence, "\n".join(lines)
        )
        return Support(answers, self.name, usage)


_GRADE_TOKENS, _TOKENS_PER_ITEM = 512, 300
# Characters of each that are shown or taken.
_TITLE, _COMMENT, _EXPLANATION, _ASPECT = 300, 300, 300, 30
_ASPECTS = 5
_GRADE = strict_object(
    {
        "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]},
        "explanation": {"type": "string"},
        "sentiment": {"type": ["integer", "null"], "enum": [-1, 0, 1, None]},
        "aspects": {"type": "array", "items": {"type": "string"}, "maxItems": _ASPECTS},
        "quote": {"type": "string"},
    }
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenAIGrader:
    """Asks a model about chunks of items, all chunks at once; implements `Grader`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 15.0
    fence: Callable[[], Fence] = Fence
    prompts: Prompts = field(default_factory=PackagedPrompts)
    chunk: int = GRADED_AT_ONCE
    """Items per call at most."""
    body: int = 1500
    """Characters of the body that the model sees."""
    comments: int = 3
    """Comments per item that the model sees, those that fit the question first."""

    async def grade(self, question: Question, items: Sequence[Item]) -> Grades:
        """One grade per item, in order; what failed is a defaulted 3, logged once with causes."""
        chunks = [items[start : start + self.chunk] for start in range(0, len(items), self.chunk)]
        done = await asyncio.gather(*(self._chunk(question, chunk) for chunk in chunks))
        grades = tuple(chain.from_iterable(part.grades for part in done))
        causes = Counter(chain.from_iterable(part.causes for part in done))
        if causes:
            named = ", ".join(f"{cause}: {count}" for cause, count in causes.items())
            _log.warning("%d of %d grades defaulted to 3 (%s)", causes.total(), len(items), named)
        return Grades(grades, sum((part.usage for part in done), Usage()), self.model)

    async def _chunk(self, question: Question, items: Sequence[Item]) -> _Chunk:
        try:
            async with self.prompts.using("grades") as prompt:
                answer = await self.client.ask(self._request(prompt, question, items))
        except ModelError as error:
            return _defaulted(len(items), error.reason, bill_of(error))
        try:
            written = entries(answer.text, "grades")
        except ModelError as error:
            return _defaulted(len(items), error.reason, answer.usage)
        if len(written) != len(items):
            return _defaulted(len(items), "count_mismatch", answer.usage)
        grades = tuple(_grade(entry, item) for entry, item in zip(written, items, strict=True))
        return _Chunk(grades, tuple("malformed" for g in grades if g.defaulted), answer.usage)

    def _request(self, prompt: Prompt, question: Question, items: Sequence[Item]) -> Request:
        fence = self.fence()
        lines = [quote_question(question, fence)]
        for number, item in enumerate(items, 1):
            texts = (excerpt(item.title, _TITLE), excerpt(item.body, self.body))
            lines.append(fence.quote(" | ".join(text for text in texts if text), str(number)))
            best = (
                excerpt(comment.body, _COMMENT) for comment in best_comments(item, question.text)
            )
            comments = [text for text in best if text][: self.comments]
            lines += [fence.quote(text, f"{number} comment") for text in comments]
        grades = {"minItems": len(items), "maxItems": len(items), "type": "array", "items": _GRADE}
        return Request(
            name="grades",
            schema=strict_object({"grades": grades}),
            system=prompt.filled(rule=fence.rule),
            user="\n".join(lines),
            max_tokens=_GRADE_TOKENS + _TOKENS_PER_ITEM * len(items),
            model=self.model,
            seconds=self.seconds,
        )


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Grades of one call, and why some of them are defaults: one cause each."""

    grades: tuple[Grade, ...]
    causes: tuple[str, ...]
    usage: Usage


def _defaulted(count: int, cause: str, usage: Usage) -> _Chunk:
    return _Chunk((UNGRADED,) * count, (cause,) * count, usage)


def _grade(entry: Any, item: Item) -> Grade:
    """One entry of the answer, each field believed only as far as it is well-formed."""
    score = entry.get("score") if isinstance(entry, dict) else None
    if type(score) is not int or not 1 <= score <= 5:
        return UNGRADED
    words = entry.get("aspects")
    aspects = [
        one_line(clean(word)).lower()
        for word in (words if isinstance(words, list) else [])
        if isinstance(word, str)
    ]
    sentiment, quote = entry.get("sentiment"), verbatim(entry.get("quote"), item)
    return Grade(
        score,
        cut(one_line(clean(entry.get("explanation"))), _EXPLANATION),
        sentiment=sentiment if type(sentiment) is int and sentiment in {-1, 0, 1} else None,
        aspects=tuple(dict.fromkeys(word for word in aspects if 0 < len(word) <= _ASPECT))[
            :_ASPECTS
        ],
        quote=quote.text if quote is not None else "",
    )


# Characters of a query and of a gap, and gaps, that are taken.
_QUERY, _GAP, _GAPS = 120, 200, 20
_REWRITE_TOKENS, _TOKENS_PER_QUERY = 512, 40


@dataclass(frozen=True, slots=True)
class OpenAIRewriter:
    """Asks a model for search queries; implements `Rewriter`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 30.0
    fence: Callable[[], Fence] = Fence
    prompts: Prompts = field(default_factory=PackagedPrompts)

    async def rewrite(
        self, question: Question, variants: int, gaps: Sequence[str] = ()
    ) -> Rewrites:
        """At most `variants` queries, the original first; no call for one, see `Rewriter`."""
        if variants <= 1:
            return Rewrites((question.text,))
        fence, wanted = self.fence(), variants - 1
        seen = [fence.quote(excerpt(gap, _GAP), "seen") for gap in gaps[:_GAPS]]
        queries = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": wanted}
        user = "\n".join((f"queries wanted: {wanted}", quote_question(question, fence), *seen))
        usage = Usage()
        try:
            async with self.prompts.using("rewrites") as prompt:
                answer = await self.client.ask(
                    Request(
                        name="rewrites",
                        schema=strict_object({"queries": queries}),
                        system=prompt.filled(rule=fence.rule),
                        user=user,
                        max_tokens=_REWRITE_TOKENS + _TOKENS_PER_QUERY * wanted,
                        model=self.model,
                        seconds=self.seconds,
                    )
                )
            usage = answer.usage
            rewritten = entries(answer.text, "queries")
        except ModelError as error:
            _log.warning("only the original query is asked: %s", error)
            return Rewrites((question.text,), usage + bill_of(error))
        # the original as it is, then what differs from it in more than case and blanks
        distinct = {_folded(question.text): question.text}
        for value in rewritten:
            query = one_line(clean(value)) if isinstance(value, str) else ""
            if query and len(query) <= _QUERY:
                distinct.setdefault(_folded(query), query)
        return Rewrites(tuple(distinct.values())[:variants], usage)


def _folded(query: str) -> str:
    return "".join(query.casefold().split())


_FEWEST_WORDS = 60
_EXPLANATION_TOKENS = 1200
# Characters of a quoted line and of a suggestion.
_LINE, _SUGGESTION = 200, 120
_SUGGESTIONS = 3
_SCHEMA = strict_object(
    {
        "explanation_text": {"type": "string"},
        "suggestions": {"type": "array", "items": {"type": "string"}},
    }
)


@dataclass(frozen=True, slots=True)
class OpenAIExplainer:
    """Asks a model to explain a shortfall; implements `Explainer`."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 30.0
    fence: Callable[[], Fence] = Fence
    prompts: Prompts = field(default_factory=PackagedPrompts)

    async def explain(self, shortfall: Shortfall) -> Explanation:
        """One call; links, names and numbers the model made up go, see `Explainer.explain`."""
        fence = self.fence()
        lines = [quote_question(shortfall.question, fence)]
        lines += [fence.quote(excerpt(query, _LINE), "query") for query in shortfall.queries]
        lines += [fence.quote(excerpt(line, _LINE), "source") for line in shortfall.coverage]
        lines.append(fence.quote(str(shortfall.kept), "kept"))
        if shortfall.own:
            lines.append(fence.quote("yes", "own"))
        for title, reason in shortfall.dropped[:MOST_DROPPED]:
            why = f" | reason: {excerpt(reason, _LINE)}" if reason else ""
            lines.append(fence.quote(excerpt(title, _LINE) + why, "dropped"))
        async with self.prompts.using("insufficient") as prompt:
            answer = await self.client.ask(
                Request(
                    name="explanation",
                    schema=_SCHEMA,
                    system=prompt.filled(rule=fence.rule),
                    user="\n".join(lines),
                    max_tokens=_EXPLANATION_TOKENS,
                    model=self.model,
                    seconds=self.seconds,
                )
            )
        ground = _ground(shortfall)
        with paying(answer.usage):
            explained = record(answer.text)
            text = _cleared(clean(explained.get("explanation_text")), ground).strip()
            if words(text) < _FEWEST_WORDS:
                raise ModelError("malformed", "the explanation is too short")
        suggestions = explained.get("suggestions")
        lines = [
            one_line(_cleared(line, ground))
            for line in (suggestions if isinstance(suggestions, list) else [])
            if isinstance(line, str)
        ]
        distinct = dict.fromkeys(line for line in lines if 0 < len(line) <= _SUGGESTION)
        return Explanation(
            fitted(text, shortfall.advice), tuple(distinct)[:_SUGGESTIONS], answer.usage
        )


def _ground(shortfall: Shortfall) -> CitableText:
    """What the explanation may rest on: what the model is shown, and how many that is."""
    dropped = shortfall.dropped[:MOST_DROPPED]
    given = [*shortfall.queries, *shortfall.coverage, *chain.from_iterable(dropped)]
    counts = (len(shortfall.queries), len(shortfall.coverage), len(dropped), shortfall.kept)
    question = shortfall.question
    return ground_of({}, (question.text, question.about), [*given, *map(str, counts)])


def _cleared(text: str, ground: CitableText) -> str:
    return DraftCleaner(lambda _: ground, markdown=False).whole(text)


# Reason of a `ModelError` -> outcome; any other answer is `broken`.
_OUTCOMES = {
    "no_key": "not_configured",
    "unauthorized": "refused",
    "rate_limited": "rate_limited",
    "quota": "quota_exhausted",
    "timeout": "timed_out",
    "unreachable": "unreachable",
    "http_error": "unreachable",
}
_ITEM = Item(
    key="example:1", id="1", source="example", title="Ember mug, two years later: worth it"
)


async def probe(client: ModelClient, models: ModelSettings) -> tuple[str, str]:
    """Outcome and detail of judging one item: how the server wants to be asked, and the cost.

    Cost: about 300 input and 10 output tokens, and what a reasoning model thinks.
    """
    judge = OpenAIJudge(client, models.filter_model, models.scoring_timeout)
    try:
        judged = await judge.judge(Question("ember mug"), (_ITEM,), _ITEM.source)
    except ModelError as error:
        usage, outcome = bill_of(error), _OUTCOMES.get(error.reason, "broken")
        detail = error.detail or error.reason
        if outcome == "broken":
            detail = f"{error.reason}: {detail}"
    else:
        usage, outcome = judged.usage, "ok"
        detail = f"`{models.filter_model}` judged one item"
    adapted = client.adaptations(models.filter_model)
    manner = [f"asked {', '.join(adapted)}"] if adapted else []
    return outcome, "; ".join([detail, *manner, *_cost(usage)])


def _cost(usage: Usage) -> list[str]:
    if usage.usd is None:
        tokens = usage.input_tokens + usage.output_tokens
        return [f"it took {tokens} tokens, whose price is not known"]
    return [f"it cost {usage.usd:.6f} USD"] if usage.usd else []
