"""The gate: one verdict per item, failing open and saying so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from api.errors import ModelError
from api.services.bills import bill_of, flagged
from api.services.containment import translated
from api.services.gate.memory import Memory
from api.services.ports import Judge, Judgement
from api.services.question.query import canonical
from api.services.schemas import Gated, Item, Question, Usage, Verdict

Verdicts = Callable[[Sequence[Item], str], Awaitable[Gated]]
"""`verdicts(items, source)`: one per item, in order; never raises for a failed judge."""
SURE_NO, SURE_YES = 0.2, 0.8
"""Probabilities beyond which a second judge's opposite opinion marks an item `disputed`."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A judge, what stands in when it fails, and who looks over its shoulder."""

    primary: Judge
    fallback: Judge | None = None
    """Answers when the judge fails (`LISTENPOST_FAIL_OPEN=local`); None: all items pass."""
    checker: Judge | None = None
    """A cheap second judge; it can only mark an item `disputed`, never change a verdict."""

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Gated:
        """Judge a batch: one call per `PER_CALL`, concurrently.

        No items: `skipped`, no call. Any failure of any call: all items pass, status `degraded`
        with the reason. Raises only for programming errors and cancellation.
        """
        if not items:
            return Gated((), "skipped")
        opinion = asyncio.ensure_future(self._second(question, items, source))
        try:
            judged = await _judge(self.primary, question, items, source)
            second = await opinion
        except ModelError as error:
            return await self._open(question, items, source, error)
        finally:
            opinion.cancel()
        verdicts = judged.verdicts
        if second:
            verdicts = tuple(
                replace(verdict, disputed=_opposed(verdict.relevant, other.probability))
                for verdict, other in zip(verdicts, second, strict=True)
            )
        return Gated(verdicts, "ok", None, judged.model, judged.usage)

    async def _open(
        self, question: Question, items: Sequence[Item], source: str, error: ModelError
    ) -> Gated:
        """All items pass, unless somebody stands in for the judge that failed."""
        everything = Gated.opened(items, error.reason, bill_of(error))
        if self.fallback is None:
            return everything
        try:
            judged = await _judge(self.fallback, question, items, source)
        except ModelError:
            return everything
        usage = everything.usage + judged.usage
        return replace(everything, verdicts=judged.verdicts, model=judged.model, usage=usage)

    async def _second(
        self, question: Question, items: Sequence[Item], source: str
    ) -> tuple[Verdict, ...]:
        """What the second judge says, while the first one is asked; nothing without one."""
        if self.checker is None:
            return ()
        try:
            return (await _judge(self.checker, question, items, source)).verdicts
        except ModelError:
            return ()


def identity(question: Question) -> tuple[str, str]:
    """What makes two questions one within a run: the name in any spelling, and what it is about."""
    return canonical(question.text) or question.text, question.about


_Key = tuple[str, str, str]


class _Answer(NamedTuple):
    """A verdict, and why it is none: what passed unjudged."""

    verdict: Verdict
    reason: str | None


@dataclass(slots=True)
class RunGate:
    """The gate of one run: an item is judged once per question, whatever query or tool found it."""

    gate: Gate
    _known: Memory[_Key, _Answer] = field(default_factory=Memory)

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Gated:
        """Verdicts in order; what was judged in this run, or is being judged, is not sent again.

        Only sound verdicts are remembered: what passed unjudged may be judged later, though not by
        those who waited for it. A crosspost shares the verdict of its original.
        """
        identified = identity(question)
        wanted: dict[_Key, Item] = {}
        for item in items:
            wanted.setdefault((*identified, item.original), item)
        if not items:
            return Gated((), "skipped")
        calls: list[Gated] = []

        async def find(mine: dict[_Key, Item]) -> dict[_Key, _Answer]:
            gated = await self.gate.judge(question, tuple(mine.values()), source)
            calls.append(gated)
            reason = None if gated.status == "ok" else gated.reason or gated.status
            return {
                key: _Answer(verdict, reason)
                for key, verdict in zip(mine, gated.verdicts, strict=True)
            }

        known = await self._known.recall(wanted, find)
        reasons = []
        for key, answer in known.items():
            if answer.reason is not None:
                reasons.append(answer.reason)
                self._known.forget(key)
        verdicts = tuple(known[*identified, item.original].verdict for item in items)
        model = calls[-1].model if calls else verdicts[0].judge or None
        usage = sum((call.usage for call in calls), Usage())
        if reasons:
            stood_in = all(verdict.judge for verdict in verdicts)
            return Gated(verdicts, "degraded", reasons[0], model if stood_in else None, usage)
        return Gated(verdicts, "ok", None, model, usage)


async def _judge(judge: Judge, question: Question, items: Sequence[Item], source: str) -> Judgement:
    """All items; a call that fails stops the others and fails the whole."""

    async def answer(chunk: Sequence[Item]) -> Judgement:
        try:
            return await judge.judge(question, chunk, source)
        except OSError as error:  # a judge of the caller's may let its client's errors through
            reason = "timeout" if isinstance(error, TimeoutError) else "unreachable"
            raise ModelError(reason, type(error).__name__) from None

    defect, name = partial(ModelError, "defect"), f"the judge {judge.name}"
    answers = await flagged(
        items,
        lambda chunk: translated(answer(chunk), name, defect),
        lambda judged: [verdict.relevant for verdict in judged.verdicts],
    )
    verdicts = tuple(verdict for judged in answers for verdict in judged.verdicts)
    return Judgement(verdicts, answers[0].model, sum((a.usage for a in answers), Usage()))


def _opposed(relevant: bool, probability: float | None) -> bool:
    if probability is None:
        return False
    return probability < SURE_NO if relevant else probability > SURE_YES
