"""The gate: one verdict per item; a judge that fails lets all items pass, and the result says so.

`RunGate` makes sure that within one run nothing is asked twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from api.core.domain import Question, Usage, Verdict
from api.core.items import Gated, Item, sum_of_agreements
from api.core.model_batches import ask_in_batches, usage_of_error
from api.core.ports import Judge, Judgement
from api.core.words import canonical
from api.core.work import RunCache, translated
from api.errors import ModelError
from api.pipeline.gate.cascade import Cascade

Verdicts = Callable[[Sequence[Item], str], Awaitable[Gated]]
"""`verdicts(items, source)`: one per item, in order; never raises for a failed judge."""
SURE_NO, SURE_YES = 0.2, 0.8
"""Below and above these probabilities a second judge's opposite opinion marks an item disputed."""
CORRECTED = "correction"
"""The judge of a verdict that a person gave."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A judge, its replacement when it fails, and a second judge beside it."""

    primary: Judge
    fallback: Judge | None = None
    """Judge used when `primary` fails (`LISTENPOST_FAIL_OPEN=local`); None: all items pass."""
    checker: Judge | None = None
    """Cheap second judge, asked at the same time; its verdicts only mark items `disputed`."""
    cascade: Cascade | None = None
    """Decides for which items the second judge replaces `primary`; None: `primary` judges all."""

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Gated:
        """Judge a batch, one call per `PER_CALL`; when one fails all items pass (`degraded`)."""
        if not items:
            return Gated((), "skipped")
        corrected = {entry.key: entry.relevant for entry in question.corrections}
        if corrected:
            return await self._judge_the_rest(question, items, source, corrected)
        return await self._ask(question, items, source)

    async def _judge_the_rest(
        self, question: Question, items: Sequence[Item], source: str, corrected: Mapping[str, bool]
    ) -> Gated:
        """A person's verdict where there is one; only the other items are sent to the judge."""
        others = [item for item in items if item.key not in corrected]
        gated = await self._ask(question, others, source) if others else Gated((), "ok")
        judged = iter(gated.verdicts)
        verdicts = tuple(
            Verdict(corrected[item.key], CORRECTED, reason="corrected by a person")
            if item.key in corrected
            else next(judged)
            for item in items
        )
        return replace(gated, verdicts=verdicts, model=gated.model or CORRECTED)

    async def _ask(self, question: Question, items: Sequence[Item], source: str) -> Gated:
        if self.cascade is not None and (opinions := await self._second(question, items, source)):
            return await self._ask_in_cascade(self.cascade, question, items, source, opinions)
        opinion = asyncio.ensure_future(self._second(question, items, source))
        try:
            judged = await _judge(self.primary, question, items, source)
            verdicts = _compared(judged.verdicts, await opinion)
        except ModelError as error:
            return await self._opened(question, items, source, error)
        finally:
            opinion.cancel()
        return Gated(verdicts, "ok", None, judged.model, judged.usage)

    async def _ask_in_cascade(
        self, cascade: Cascade, question: Question, items: Sequence[Item], source: str, opinions: Sequence[Verdict]
    ) -> Gated:
        """Keep the local verdict where `cascade` trusts it, and send all other items to the model."""
        plan = await cascade.plan(question, items, source, opinions)
        others = [at for at, local in enumerate(plan.local) if not local]
        judged = Judgement((), self.primary.name)
        if others:
            try:
                judged = await _judge(self.primary, question, [items[at] for at in others], source)
            except ModelError as error:
                return await self._opened(question, items, source, error)
        of_model = _compared(judged.verdicts, [opinions[at] for at in others])
        merged = [replace(opinion, place=None) for opinion in opinions]
        for at, verdict in zip(others, of_model, strict=True):
            merged[at] = verdict
        agreement = await cascade.learn(plan, opinions, merged)
        return Gated(tuple(merged), "ok", None, judged.model, judged.usage, agreement)

    async def _opened(self, question: Question, items: Sequence[Item], source: str, error: ModelError) -> Gated:
        """All items unjudged, or with the verdicts of the replacement."""
        everything = Gated.opened(items, error.reason, usage_of_error(error))
        if self.fallback is None:
            return everything
        try:
            judged = await _judge(self.fallback, question, items, source)
        except ModelError:
            return everything
        usage = everything.usage + judged.usage
        return replace(everything, verdicts=judged.verdicts, model=judged.model, usage=usage)

    async def _second(self, question: Question, items: Sequence[Item], source: str) -> tuple[Verdict, ...]:
        if self.checker is None:
            return ()
        try:
            return (await _judge(self.checker, question, items, source)).verdicts
        except ModelError:
            return ()


def question_key(question: Question) -> tuple[Hashable, ...]:
    """Equal for equal questions: the name in any spelling, its sense, aim and corrections."""
    name = canonical(question.text) or question.text
    return name, question.about, question.not_about, question.aim, question.corrections


_Key = tuple[Hashable, ...]


class _KnownVerdict(NamedTuple):
    verdict: Verdict
    unjudged: str | None
    """Why the item passed without a judge's verdict; None when it was judged."""


@dataclass(slots=True)
class RunGate:
    """The gate of one run: an item is judged once per question, also when found several times."""

    gate: Gate
    _known: RunCache[_Key, _KnownVerdict] = field(default_factory=RunCache)

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Gated:
        """Verdicts in order; an item is sent once per run, unless it passed unjudged."""
        if not items:
            return Gated((), "skipped")
        asked_key = question_key(question)
        wanted: dict[_Key, Item] = {}
        for item in items:
            wanted.setdefault((*asked_key, item.original), item)
        calls: list[Gated] = []

        async def find(missing: dict[_Key, Item]) -> dict[_Key, _KnownVerdict]:
            gated = await self.gate.judge(question, tuple(missing.values()), source)
            calls.append(gated)
            reason = None if gated.status == "ok" else gated.reason or gated.status
            return {key: _KnownVerdict(verdict, reason) for key, verdict in zip(missing, gated.verdicts, strict=True)}

        known = await self._known.values_of(wanted, find)
        unjudged = {key: entry.unjudged for key, entry in known.items() if entry.unjudged}
        for key in unjudged:
            self._known.remove(key)
        verdicts = tuple(known[*asked_key, item.original].verdict for item in items)
        model = calls[-1].model if calls else verdicts[0].judge or None
        usage = sum((call.usage for call in calls), Usage())
        agreement = sum_of_agreements(call.agreement for call in calls)
        if unjudged:
            reason, replaced = next(iter(unjudged.values())), all(v.judge for v in verdicts)
            return Gated(verdicts, "degraded", reason, model if replaced else None, usage, agreement)
        return Gated(verdicts, "ok", None, model, usage, agreement)


async def _judge(judge: Judge, question: Question, items: Sequence[Item], source: str) -> Judgement:
    """Judge all items in batches; a call that fails stops the others and fails the whole."""

    async def answer(chunk: Sequence[Item]) -> Judgement:
        try:
            return await judge.judge(question, chunk, source)
        except OSError as error:  # a caller's own judge may let its client's errors through
            reason = "timeout" if isinstance(error, TimeoutError) else "unreachable"
            raise ModelError(reason, type(error).__name__) from None

    defect, name = partial(ModelError, "defect"), f"the judge {judge.name}"
    answers = await ask_in_batches(
        items,
        lambda chunk: translated(answer(chunk), name, defect),
        lambda judged: [verdict.relevant for verdict in judged.verdicts],
    )
    verdicts: list[Verdict] = []
    for judged in answers:
        call = items[len(verdicts)].key
        verdicts += [replace(verdict, place=(call, number)) for number, verdict in enumerate(judged.verdicts, 1)]
    return Judgement(tuple(verdicts), answers[0].model, sum((a.usage for a in answers), Usage()))


def _compared(verdicts: Sequence[Verdict], second: Sequence[Verdict]) -> tuple[Verdict, ...]:
    """The verdicts with what a second judge says of the same items, where it was asked."""
    if not second:
        return tuple(verdicts)
    return tuple(
        replace(verdict, disputed=_opposed(verdict.relevant, other.probability), second=other.relevant)
        for verdict, other in zip(verdicts, second, strict=True)
    )


def _opposed(relevant: bool, probability: float | None) -> bool:
    if probability is None:
        return False
    return probability < SURE_NO if relevant else probability > SURE_YES


# Share of the verdicts that are those of their places in every call, from which a pattern is fixed, how
# far that is above the share of the others' verdicts, and calls and verdicts that it takes.
_FIXED, _ABOVE_LIKELY, _LEAST_CALLS, _LEAST_VERDICTS = 0.95, 0.1, 3, 12
# Verdicts of a call from which it counts that all are alike, and the share of the rarer ones among the
# others' from which they should not be.
_LEAST_ALIKE, _MIXED = 4, 0.2
Calls = Sequence[tuple[Sequence[bool], Sequence[bool]]]
"""Verdicts of each call in the order of its items, and the labels or another judge's verdicts on the same items."""


def fixed_pattern(calls: Calls) -> str:
    """The verdicts by position, such as `TFTF`, when nearly the same in each of three calls or more; else empty.

    The other judge's verdicts must differ between calls.
    """
    if len(calls) < _LEAST_CALLS or sum(len(given) for given, _ in calls) < _LEAST_VERDICTS:
        return ""
    pattern, share = _by_place([given for given, _ in calls])
    _, likely = _by_place([others for _, others in calls])
    return pattern if share >= max(_FIXED, likely + _ABOVE_LIKELY) else ""


def alike_in_each(calls: Calls) -> bool:
    """Whether all verdicts of a call are alike in each of three calls or more of which the others' are mixed."""
    mixed = [
        given
        for given, others in calls
        if len(others) >= _LEAST_ALIKE and min(sum(others), len(others) - sum(others)) >= _MIXED * len(others)
    ]
    return len(mixed) >= _LEAST_CALLS and all(len(set(given)) == 1 for given in mixed)


def _by_place(rows: Sequence[Sequence[bool]]) -> tuple[str, float]:
    """The usual verdict at each place, and the share of all verdicts that are the usual one."""
    columns = [[row[at] for row in rows if at < len(row)] for at in range(max(map(len, rows)))]
    usual = [2 * sum(column) > len(column) for column in columns]
    agreeing = sum(column.count(flag) for column, flag in zip(columns, usual, strict=True))
    return "".join("FT"[flag] for flag in usual), agreeing / sum(map(len, columns))
