"""The calls of the model: verdicts, support checks, grades, search queries and explanations.

Each call states its prompt, the JSON schema of its answer and how the answer becomes values;
`ModelStep` sends it and accounts for what an unusable answer cost.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from itertools import chain, islice, zip_longest
from random import Random
from typing import Any, Generic, TypeVar

import regex

from api.core.domain import Correction, Grade, Question, Sense, Usage, Verdict
from api.core.items import Item
from api.core.model_batches import cost_on_failure, usage_of_error
from api.core.ports import UNGRADED, Claim, Grades, Judge, Judgement, NamedSenses, Rewrites, Support
from api.core.prompts import PackagedPrompts, PromptName, Prompts
from api.core.text import Fence, clean, cut, one_line
from api.core.words import index_tokens
from api.errors import ModelError
from api.models.answer_parsing import entries, numbered_entries, record, verdicts
from api.models.dialects import GRADED_AT_ONCE
from api.models.model_client import ModelClient, Request
from api.pipeline.evidence.ranking import best_comments
from api.pipeline.gate.excerpt import excerpt_of
from api.pipeline.question.query_guard import rewritten_query
from api.reports.draft_rules import LONGEST_SENTENCE, DraftCleaner
from api.reports.insufficient_data import MOST_DROPPED, Explanation, Shortfall, count_words, fitted
from api.reports.quotes import citable_text, verbatim
from api.settings import ModelSettings

T = TypeVar("T")
_log = logging.getLogger(__name__)
# Tokens of the JSON around the entries of a list, with room for a model that indents it.
_LIST_TOKENS = 512


@dataclass(frozen=True, slots=True)
class ModelCall(Generic[T]):
    """Prompt, schema and parser of one kind of call."""

    prompt: PromptName
    schema: Mapping[str, Any]
    parse: Callable[[str], T]
    """The text of the answer as values; raises `ModelError` where it cannot be used."""
    max_tokens: int
    name: str = ""  # name of the schema as sent; empty: that of the prompt
    parse_cut: Callable[[str], T] | None = None
    """Parses an answer that was truncated at its limit; None: such an answer is unusable."""


def strict_object(**properties: Any) -> dict[str, Any]:
    """A schema of an object that has all of these properties and no other."""
    closed = {"type": "object", "additionalProperties": False}
    return closed | {"required": list(properties), "properties": properties}


def text_of_at_most(length: int) -> dict[str, Any]:
    """A schema of a text, bounded so that a model that repeats itself ends."""
    return {"type": "string", "maxLength": length}


def array_of(entry: Mapping[str, Any], least: int, most: int) -> dict[str, Any]:
    """A schema of a list of `least` to `most` entries."""
    return {"type": "array", "items": entry, "minItems": least, "maxItems": most}


def numbered(entry: Mapping[str, Any], count: int) -> dict[str, Any]:
    """A schema of an object with an entry for each number from 1 to `count`, and no other."""
    return strict_object(**dict.fromkeys(map(str, range(1, count + 1)), entry))


def verdict_call(prompt: PromptName, field: str, count: int) -> ModelCall[tuple[bool, ...]]:
    """A yes or no for each of `count` numbered things: how they are asked for and read.

    Each stands under its number, so a list can neither be copied nor be a verdict too short; `field`
    is what a server without schemas may call the list.
    """
    return ModelCall(
        prompt, numbered({"type": "boolean"}, count),
        lambda text: verdicts(text, count, field), _LIST_TOKENS + 8 * count,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ModelStep:
    """Sends the calls of one step of the product to one model."""

    client: ModelClient
    model: str = "gpt-4o-mini"
    seconds: float = 15.0
    fence: Callable[[], Fence] = Fence
    prompts: Prompts = field(default_factory=PackagedPrompts)

    @property
    def name(self) -> str:
        """Name of the model, as settings, results and traces have it."""
        return self.model

    async def ask(self, call: ModelCall[T], fence: Fence, lines: Iterable[str]) -> tuple[T, Usage]:
        """The values in the answer to one request, and its cost, which a `ModelError` has, too."""
        async with self.prompts.using(call.prompt) as prompt:
            request = Request(
                name=call.name or call.prompt, schema=call.schema,
                system=prompt.filled(rule=fence.rule), user="\n".join(lines),
                max_tokens=call.max_tokens, model=self.model, seconds=self.seconds,
                partial=call.parse_cut is not None,
            )  # fmt: skip
            answer = await self.client.ask_fenced(request, fence.nonce, call.parse)
        with cost_on_failure(answer.usage):
            parse = call.parse_cut if answer.cut and call.parse_cut is not None else call.parse
            return parse(answer.text), answer.usage


def quote_question(question: Question, fence: Fence) -> list[str]:
    """The question, fenced, and on lines of their own what it is and is not about."""
    about = [fence.quote(question.about, "about")] if question.about else []
    excluded = [fence.quote(text, "not about") for text in question.not_about]
    return [fence.quote(question.text, "question"), *about, *excluded]


def excerpt(value: object, limit: int) -> str:
    """The first `limit` characters of any field, null and numbers included."""
    return cut(clean(value), limit)


def strings(value: object) -> list[str]:
    """The texts in a list of an answer; none where it is no list."""
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


MOST_EXAMPLES = 8
"""Most corrections shown in one model call."""
# An example is quoted as short as the items it stands beside: about 40 tokens, 320 for all.
_EXAMPLE_LENGTH = 160


def nearest_corrections(
    corrections: Sequence[Correction], items: Iterable[Item], most: int = MOST_EXAMPLES
) -> tuple[Correction, ...]:
    """At most `most` corrections, relevant and irrelevant alternately, those most similar to `items` first.

    Likeness is the share of a correction's words that the batch holds; the newest wins a tie.
    """
    batch = set(chain.from_iterable(index_tokens(f"{item.title} {item.body}") for item in items))

    def likeness(entry: tuple[int, Correction]) -> tuple[float, int]:
        words = set(index_tokens(f"{entry[1].title} {entry[1].body}"))
        return len(words & batch) / max(1, len(words)), entry[0]

    ranked = [entry for _, entry in sorted(enumerate(corrections), key=likeness, reverse=True)]
    kinds = [[entry for entry in ranked if entry.relevant is kind] for kind in (True, False)]
    balanced = (entry for pair in zip_longest(*kinds) for entry in pair if entry is not None)
    return tuple(balanced)[:most]


def quoted_examples(examples: Sequence[Correction], fence: Fence) -> list[str]:
    """Lines of the examples for the prompt: our label in the clear, a stranger's words fenced."""
    return [
        fence.quote(
            cut(f"{correction.title} {correction.body}", _EXAMPLE_LENGTH),
            "judged relevant" if correction.relevant else "judged irrelevant",
        )
        for correction in examples
    ]


@dataclass(frozen=True, slots=True)
class OpenAIJudge(ModelStep):
    """Asks a model about title and 200 characters (`excerpt_of`); implements `Judge`."""

    examples: int = MOST_EXAMPLES  # corrections shown as examples in one call; 0: none

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`; about 85 input and 4 output tokens per item, and 200 per call."""
        if not items:
            return Judgement((), self.name)
        fence = self.fence()
        lines = [f"source: {' '.join(excerpt(source, 40).split())}"]
        lines += quote_question(question, fence)
        if question.aim == "mention":
            lines.append("A mention of it is enough.")
        lines += quoted_examples(nearest_corrections(question.corrections, items, self.examples), fence)
        lines.append(fence.quote_all(excerpt_of(question, item).line for item in items))
        call = verdict_call("relevance", "relevant", len(items))
        flags, usage = await self.ask(call, fence, lines)
        return Judgement(tuple(Verdict(flag, self.name) for flag in flags), self.name, usage)


@dataclass(frozen=True, slots=True)
class OrderCheckedJudge:
    """Judges a share of the pages in another order as well, at the same time; implements `Judge`."""

    inner: Judge
    share: float

    @property
    def name(self) -> str:
        """Name of the inner judge, as results and traces have it."""
        return self.inner.name

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """The verdicts in the given order; which pages are checked depends on their items alone."""
        digest = sha256("\0".join((question.text, *(item.key for item in items))).encode()).digest()
        if len(items) < 2 or int.from_bytes(digest[:4]) >= self.share * 2**32:
            return await self.inner.judge(question, items, source)
        order = list(range(len(items)))
        Random(digest).shuffle(order)  # noqa: S311  # nosec B311 # no secret
        shuffled = [items[at] for at in order]
        calls = (self.inner.judge(question, page, source) for page in (items, shuffled))
        judged, other = await asyncio.gather(*calls, return_exceptions=True)
        if isinstance(judged, BaseException):
            raise judged
        if isinstance(other, BaseException):  # the check alone failed
            return replace(judged, usage=judged.usage + usage_of_error(other))
        flags = [verdict.relevant for verdict in judged.verdicts]
        pairs = zip(order, other.verdicts, strict=True)
        stable = sum(flags[at] == verdict.relevant for at, verdict in pairs) / len(order)
        return replace(judged, usage=judged.usage + other.usage, order_stability=stable)


# Characters of each that the model sees beside the sentence.
_PASSAGE, _CONTEXT = 800, 500


@dataclass(frozen=True, slots=True)
class OpenAISupport(ModelStep):
    """Asks a model about (sentence, passage) pairs; implements `SupportChecker`."""

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """See `SupportChecker.check`; about 200 input and 4 output tokens a pair, 250 a call."""
        if not claims:
            return Support((), self.name)
        fence = self.fence()
        lines = quote_question(question, fence)
        for number, claim in enumerate(claims, 1):
            lines += (
                fence.quote(excerpt(claim.sentence, LONGEST_SENTENCE), f"{number} sentence"),
                fence.quote(excerpt(claim.passage, _PASSAGE), f"{number} passage"),
                fence.quote(excerpt(claim.context, _CONTEXT), f"{number} context"),
            )
        call = verdict_call("support", "supported", len(claims))
        supported, usage = await self.ask(call, fence, lines)
        return Support(supported, self.name, usage)


# Characters of title, body and comment that a grader sees, and comments of an item.
_TITLE, _BODY, _COMMENT, _COMMENTS = 300, 1500, 300, 3
# Characters of an explanation and of an aspect that are taken, and aspects of an item.
_EXPLANATION, _ASPECT, _ASPECTS = 300, 30, 5
_QUOTED = 300
"""Longest quote accepted in an answer, in characters; the prompt asks for 200."""
_GRADE = strict_object(
    score={"type": "integer", "enum": [1, 2, 3, 4, 5]}, explanation=text_of_at_most(_EXPLANATION),
    sentiment={"type": ["integer", "null"], "enum": [-1, 0, 1, None]},
    aspects={"type": "array", "items": text_of_at_most(_ASPECT), "maxItems": _ASPECTS},
    quote=text_of_at_most(_QUOTED),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class OpenAIGrader(ModelStep):
    """Asks a model about chunks of items, all chunks at once; implements `Grader`."""

    async def grade(self, question: Question, items: Sequence[Item]) -> Grades:
        """One grade per item, in order; a failed item gets the default 3, and failures are logged once."""
        starts = range(0, len(items), GRADED_AT_ONCE)
        chunks = [items[start : start + GRADED_AT_ONCE] for start in starts]
        answers = await asyncio.gather(*(self.grade_chunk(question, chunk) for chunk in chunks))
        causes = Counter(chain.from_iterable(causes for _, causes, _ in answers))
        if causes:
            named = ", ".join(f"{cause}: {count}" for cause, count in causes.items())
            if causes["timeout"]:
                named = f"{named}; no answer within {self.seconds:g} s, `LISTENPOST_SCORING_TIMEOUT`"
            _log.warning("%d of %d grades defaulted to 3 (%s)", causes.total(), len(items), named)
        grades = tuple(chain.from_iterable(grades for grades, _, _ in answers))
        return Grades(grades, sum((usage for _, _, usage in answers), Usage()), self.model)

    async def grade_chunk(self, question: Question, items: Sequence[Item]) -> tuple[list[Grade], list[str], Usage]:
        """Grades of one call, a cause for each that is a default, and what the call cost.

        A chunk that is too long for the model is asked about in halves.
        """
        fence, count = self.fence(), len(items)
        lines = quote_question(question, fence)
        for number, item in enumerate(items, 1):
            title, body = excerpt(item.title, _TITLE), excerpt(item.body, _BODY)
            lines += [fence.quote(title, f"{number} title")] if title else []
            lines += [fence.quote(body, str(number))] if body or not title else []
            best = best_comments(item, question.text)
            comments = filter(None, (excerpt(comment.body, _COMMENT) for comment in best))
            lines += [fence.quote(text, f"{number} comment") for text in islice(comments, _COMMENTS)]
        schema = numbered({"$ref": "#/$defs/grade"}, count) | {"$defs": {"grade": _GRADE}}

        def grades_in(text: str, whole: bool) -> tuple[list[Grade], list[str]]:
            graded = numbered_entries(text, count, "grades", whole=whole)
            grades = [grade_from(entry, item) for entry, item in zip(graded, items, strict=True)]
            cause = "malformed" if whole else "truncated"
            return grades, [cause for grade in grades if grade.defaulted]

        call = ModelCall(
            "grades", schema, partial(grades_in, whole=True), _LIST_TOKENS + 300 * count,
            parse_cut=partial(grades_in, whole=False),
        )  # fmt: skip
        try:
            (grades, causes), usage = await self.ask(call, fence, lines)
        except ModelError as error:
            if error.reason != "too_long" or count < 2:
                return [UNGRADED] * count, [error.reason] * count, usage_of_error(error)
        else:
            return grades, causes, usage
        first = await self.grade_chunk(question, items[: count // 2])
        second = await self.grade_chunk(question, items[count // 2 :])
        return first[0] + second[0], first[1] + second[1], first[2] + second[2]


def grade_from(entry: Any, item: Item) -> Grade:
    """The grade in one entry of the answer; malformed fields get their defaults."""
    score = entry.get("score") if isinstance(entry, dict) else None
    if type(score) is not int or not 1 <= score <= 5:
        return UNGRADED
    aspects = [one_line(clean(word)).lower() for word in strings(entry.get("aspects"))]
    short = dict.fromkeys(word for word in aspects if 0 < len(word) <= _ASPECT)
    sentiment, quote = entry.get("sentiment"), verbatim(entry.get("quote"), item)
    return Grade(
        score, cut(one_line(clean(entry.get("explanation"))), _EXPLANATION),
        sentiment=sentiment if type(sentiment) is int and sentiment in {-1, 0, 1} else None,
        aspects=tuple(short)[:_ASPECTS], quote=quote.text if quote is not None else "",
    )  # fmt: skip


# Characters of a query and of a gap that are taken, and gaps.
_QUERY, _GAP, _GAPS = 120, 200, 20


@dataclass(frozen=True, slots=True)
class OpenAIRewriter(ModelStep):
    """Asks a model for search queries; implements `Rewriter`."""

    seconds: float = 30.0

    async def rewrite(self, question: Question, variants: int, gaps: Sequence[str] = ()) -> Rewrites:
        """At most `variants` queries, the original first; makes no call when one is wanted. See `Rewriter`."""
        if variants <= 1:
            return Rewrites((question.text,))
        fence, wanted = self.fence(), variants - 1
        lines = [f"queries wanted: {wanted}", *quote_question(question, fence)]
        lines += [fence.quote(excerpt(gap, _GAP), "seen") for gap in gaps[:_GAPS]]
        call = ModelCall(
            "rewrites", strict_object(queries=array_of(text_of_at_most(_QUERY), 1, wanted)),
            lambda text: strings(entries(text, "queries")), _LIST_TOKENS + 40 * wanted,
        )  # fmt: skip
        try:
            rewritten, usage = await self.ask(call, fence, lines)
        except ModelError as error:
            _log.warning("only the original query is asked: %s", error)
            return Rewrites((question.text,), usage_of_error(error))
        # the original as it is, then what differs from it in more than case and blanks
        distinct = {_folded(question.text): question.text}
        written = f"{question.text}\n{question.about}"
        for text in rewritten:
            if len(text) <= _QUERY and (query := rewritten_query(written, text)) is not None:
                distinct.setdefault(_folded(query), query)
        return Rewrites(tuple(distinct.values())[:variants], usage)


def _folded(query: str) -> str:
    return "".join(query.casefold().split())


# Words that an explanation has at least: fewer say no more than the disclaimer.
_FEWEST_WORDS = 60
# Characters of a quoted line and of a suggestion, and suggestions.
_LINE, _SUGGESTION, _SUGGESTIONS = 200, 120, 3
# Characters of an explanation: 250 words are asked for.
_LONGEST_EXPLANATION = 1900
_EXPLANATION_SCHEMA = strict_object(
    explanation_text=text_of_at_most(_LONGEST_EXPLANATION),
    suggestions={"type": "array", "items": text_of_at_most(_SUGGESTION), "maxItems": _SUGGESTIONS},
)


@dataclass(frozen=True, slots=True)
class OpenAIExplainer(ModelStep):
    """Asks a model to explain a shortfall; implements `Explainer`."""

    seconds: float = 30.0

    async def explain(self, shortfall: Shortfall) -> Explanation:
        """One call; invented links, names and numbers are removed. See `Explainer.explain`."""
        fence, question, dropped = (
            self.fence(), shortfall.question, shortfall.dropped[:MOST_DROPPED],
        )  # fmt: skip
        lines = quote_question(question, fence)
        lines += [fence.quote(excerpt(query, _LINE), "query") for query in shortfall.queries]
        lines += [fence.quote(excerpt(line, _LINE), "source") for line in shortfall.coverage]
        lines.append(fence.quote(str(shortfall.kept), "kept"))
        lines += [fence.quote("yes", mark) for mark in ("own", "by_name") if getattr(shortfall, mark)]
        for title, reason in dropped:
            why = f" | reason: {excerpt(reason, _LINE)}" if reason else ""
            lines.append(fence.quote(excerpt(title, _LINE) + why, "dropped"))
        # what the explanation may rest on: what the model is shown, and how many that is
        given = [*shortfall.queries, *shortfall.coverage, *chain.from_iterable(dropped)]
        counts = (len(shortfall.queries), len(shortfall.coverage), len(dropped), shortfall.kept)
        texts = [*given, *map(str, counts)]
        ground = citable_text({}, (question.text, question.about), texts)

        def cleared(text: str) -> str:
            return DraftCleaner(lambda _: ground, markdown=False).whole(text)

        def parse(text: str) -> tuple[str, tuple[str, ...]]:
            answer = record(text)
            explanation = cleared(clean(answer.get("explanation_text"))).strip()
            if count_words(explanation) < _FEWEST_WORDS:
                raise ModelError("malformed", "the explanation is too short")
            lines = [one_line(cleared(line)) for line in strings(answer.get("suggestions"))]
            distinct = dict.fromkeys(line for line in lines if 0 < len(line) <= _SUGGESTION)
            return explanation, tuple(distinct)[:_SUGGESTIONS]

        call = ModelCall("insufficient", _EXPLANATION_SCHEMA, parse, 1200, name="explanation")
        (text, suggestions), usage = await self.ask(call, fence, lines)
        return Explanation(fitted(text, shortfall.advice), suggestions, usage)


_NAME = 60  # characters of a sense's name; it is two to six words
_LINK = regex.compile(r"https?:|www\.|[@<>{}]")  # no kind of thing is an address or markup


@dataclass(frozen=True, slots=True)
class OpenAISenseNamer(ModelStep):
    """Asks a model what the senses of a name are; implements `SenseNamer`."""

    seconds: float = 30.0

    async def name_senses(self, question: Question, senses: Sequence[Sense]) -> NamedSenses:
        """About 120 input tokens a sense, and 200 per call; see `SenseNamer.name_senses`."""
        fence, count = self.fence(), len(senses)
        lines = [fence.quote(question.text, "name")]
        for sense in senses:
            lines.append(fence.quote(excerpt(", ".join(sense.words), _LINE), f"{sense.number} words"))
            lines += [fence.quote(excerpt(title, _LINE), f"{sense.number} title") for title in sense.titles]

        def names_in(text: str) -> list[str]:
            names = [one_line(clean(entry)).strip(" .\"'") for entry in numbered_entries(text, count, "senses")]
            usable = [name if len(name) <= _NAME and not _LINK.search(name) else "" for name in names]
            times = Counter(name.casefold() for name in usable)
            # a name that two groups have tells neither from the other
            distinct = [name if times[name.casefold()] == 1 else "" for name in usable]
            if not any(distinct):
                raise ModelError("malformed", "no group has a name of its own")
            return distinct

        call = ModelCall("senses", numbered(text_of_at_most(_NAME), count), names_in, _LIST_TOKENS + 40 * count)
        names, usage = await self.ask(call, fence, lines)
        named = (replace(sense, name=name) for sense, name in zip(senses, names, strict=True))
        return NamedSenses(tuple(named), usage)


OUTCOMES = {
    "no_key": "not_configured", "unauthorized": "refused", "rate_limited": "rate_limited",
    "quota": "quota_exhausted", "timeout": "timed_out", "unreachable": "unreachable",
    "http_error": "unreachable",
}  # fmt: skip
"""Reason of a `ModelError` -> outcome of a probe; any other answer is `broken`."""


async def probe(client: ModelClient, models: ModelSettings) -> tuple[str, str]:
    """Outcome and detail of judging one item, for about 300 input and 10 output tokens."""
    judge = OpenAIJudge(client, models.filter_model, models.scoring_timeout)
    title = "Ember mug, two years later: worth it"
    item = Item(key="example:1", id="1", source="example", title=title)
    try:
        judged = await judge.judge(Question("ember mug"), (item,), item.source)
    except ModelError as error:
        usage, outcome = usage_of_error(error), OUTCOMES.get(error.reason, "broken")
        details = [error.detail or error.reason]
        if outcome == "broken":
            details = [f"{error.reason}: {details[0]}"]
    else:
        usage, outcome = judged.usage, "ok"
        details = [f"`{models.filter_model}` judged one item"]
    if adapted := client.adaptations(models.filter_model):
        details.append(f"asked {', '.join(adapted)}")
    if usage.usd is None:
        tokens = usage.input_tokens + usage.output_tokens
        details.append(f"it took {tokens} tokens, whose price is not known")
    elif usage.usd:
        details.append(f"it cost {usage.usd:.6f} USD")
    return outcome, "; ".join(details)
