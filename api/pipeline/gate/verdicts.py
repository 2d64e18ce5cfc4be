"""The gate: one verdict per item, failing open and saying so.

What one run found out, or is finding out: asked for once, whoever needs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeVar

from api.core.domain import Gated, Item, Question, Usage, Verdict
from api.core.model_cost import ask_in_batches, usage_of_error
from api.core.ports import Judge, Judgement
from api.core.words import canonical
from api.core.work import Flight, translated
from api.errors import ModelError

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
V = TypeVar("V")


@dataclass(slots=True)
class RunCache(Generic[K, V]):
    """Values by key; what is not found, or forgotten, is free for the next caller."""

    _known: dict[K, V] = field(default_factory=dict)
    _finding: dict[K, Flight[Mapping[K, V]]] = field(default_factory=dict)

    async def recall(
        self,
        wanted: Mapping[K, T],
        find: Callable[[dict[K, T]], Coroutine[Any, Any, Mapping[K, V]]],
    ) -> dict[K, V]:
        """What is known of `wanted`; `find` is asked for what nobody knows or is finding out.

        `find` may find less: then that is missing here too, and for all who wait for it, as its
        error is everybody's. It goes on as long as somebody waits, whoever asked first.
        """
        known = {key: self._known[key] for key in wanted if key in self._known}
        under_way = {
            key: flight
            for key, flight in self._finding.items()
            if key in wanted and key not in known and not flight.cancelled
        }
        flights = list(dict.fromkeys(under_way.values()))
        mine = {
            key: thing for key, thing in wanted.items() if key not in known and key not in under_way
        }
        if mine:
            flight: Flight[Mapping[K, V]] = Flight()
            flight.begin(self._find(mine, find))
            self._finding |= dict.fromkeys(mine, flight)
            flight.when_over(partial(self._free, mine, flight))
            flights.append(flight)
        for flight in flights:
            flight.waiting += 1
        try:
            for flight in flights:
                known |= await flight.result()
        finally:
            for flight in flights:
                flight.leave()
            for flight in flights:
                if flight.cancelled:
                    await flight.over()
        return {key: known[key] for key in wanted if key in known}

    def forget(self, key: K) -> None:
        """Let the next caller look again; those already waiting keep what was found."""
        self._known.pop(key, None)

    async def _find(
        self,
        mine: dict[K, T],
        find: Callable[[dict[K, T]], Coroutine[Any, Any, Mapping[K, V]]],
    ) -> Mapping[K, V]:
        values = await find(mine)
        self._known |= {key: values[key] for key in mine if key in values}
        return values

    def _free(self, keys: Mapping[K, T], flight: Flight[Mapping[K, V]]) -> None:
        for key in keys:
            if self._finding.get(key) is flight:
                del self._finding[key]


Verdicts = Callable[[Sequence[Item], str], Awaitable[Gated]]
"""`verdicts(items, source)`: one per item, in order; never raises for a failed judge."""
SURE_NO, SURE_YES = 0.2, 0.8
"""Probabilities beyond which a second judge's opposite opinion marks an item `disputed`."""
CORRECTED = "correction"
"""The judge of a verdict that a person gave."""


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
        corrected = {entry.key: entry.relevant for entry in question.corrections}
        if corrected:
            return await self._judge_the_rest(question, items, source, corrected)
        return await self._ask(question, items, source)

    async def _judge_the_rest(
        self, question: Question, items: Sequence[Item], source: str, corrected: Mapping[str, bool]
    ) -> Gated:
        """A person's verdict where there is one; the judge is asked about the others alone."""
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
        """The judge's verdicts, or what stands in when it fails."""
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
        everything = Gated.opened(items, error.reason, usage_of_error(error))
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


def question_key(question: Question) -> tuple[Hashable, ...]:
    """What makes two questions one: the name in any spelling, its sense, aim and corrections."""
    name = canonical(question.text) or question.text
    return name, question.about, question.not_about, question.aim, question.corrections


_Key = tuple[Hashable, ...]


class _Answer(NamedTuple):
    """A verdict, and why it is none: what passed unjudged."""

    verdict: Verdict
    reason: str | None


@dataclass(slots=True)
class RunGate:
    """The gate of one run: an item is judged once per question, whatever query or tool found it."""

    gate: Gate
    _known: RunCache[_Key, _Answer] = field(default_factory=RunCache)

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Gated:
        """Verdicts in order; what was judged in this run, or is being judged, is not sent again.

        Only sound verdicts are remembered: what passed unjudged may be judged later, though not by
        those who waited for it. A crosspost shares the verdict of its original.
        """
        identified = question_key(question)
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
    answers = await ask_in_batches(
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
