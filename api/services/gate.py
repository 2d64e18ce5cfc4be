"""The gate: one verdict per item, failing open and saying so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from api.errors import ModelError
from api.services.ports import Judge
from api.services.schemas import Item, Judgement, Question, Sifted, Usage, Verdict

CHUNK = 50
"""Items in one judge call at most."""
SURE_NO, SURE_YES = 0.2, 0.8
"""Probabilities beyond which a second judge's opposite opinion marks an item `disputed`."""


@dataclass(frozen=True, slots=True)
class Gate:
    """A judge, what stands in when it fails, and who looks over its shoulder."""

    judge: Judge
    fallback: Judge | None = None
    """Answers when the judge fails (`LISTENPOST_FAIL_OPEN=local`); None: all items pass."""
    checker: Judge | None = None
    """A cheap second judge; it can only mark an item `disputed`, never change a verdict."""

    async def sift(self, question: Question, items: Sequence[Item], source: str) -> Sifted:
        """Judge a batch: one call per 50 items, concurrently.

        No items: `skipped`, no call. Any failure of any call: all items pass, status `degraded`
        with the reason. Raises only for programming errors and cancellation.
        """
        if not items:
            return Sifted((), "skipped")
        try:
            judged = await _judge(self.judge, question, items, source)
        except ModelError as error:
            return await self._open(question, items, source, error.reason)
        verdicts = await self._checked(question, items, source, judged.verdicts)
        return Sifted(verdicts, "ok", None, judged.model, judged.usage)

    async def _open(
        self, question: Question, items: Sequence[Item], source: str, reason: str
    ) -> Sifted:
        everything = Sifted(tuple(Verdict(True) for _ in items), "degraded", reason)
        if self.fallback is None:
            return everything
        try:
            judged = await _judge(self.fallback, question, items, source)
        except ModelError:
            return everything
        return Sifted(judged.verdicts, "degraded", reason, judged.model, judged.usage)

    async def _checked(
        self,
        question: Question,
        items: Sequence[Item],
        source: str,
        verdicts: tuple[Verdict, ...],
    ) -> tuple[Verdict, ...]:
        if self.checker is None:
            return verdicts
        try:
            second = await _judge(self.checker, question, items, source)
        except ModelError:
            return verdicts
        return tuple(
            replace(mine, disputed=_opposed(mine.relevant, other.probability))
            for mine, other in zip(verdicts, second.verdicts, strict=True)
        )


@dataclass(slots=True)
class RunGate:
    """The gate of one run: an item is judged once per question, whatever query or tool found it."""

    gate: Gate
    _known: dict[tuple[Question, str], asyncio.Future[Verdict]] = field(default_factory=dict)

    async def sift(self, question: Question, items: Sequence[Item], source: str) -> Sifted:
        """Verdicts in order; what was judged in this run, or is being judged, is not sent again."""
        mine = [item for item in items if (question, item.key) not in self._known]
        loop = asyncio.get_running_loop()
        self._known.update(((question, item.key), loop.create_future()) for item in mine)
        sifted: Sifted | None = None
        try:
            sifted = await self.gate.sift(question, mine, source)
        finally:
            self._settle(question, mine, sifted)
        judged = dict(zip((item.key for item in mine), sifted.verdicts, strict=True))
        verdicts = tuple(
            [judged.get(item.key) or await self._other(question, item) for item in items]
        )
        if items and not mine:
            return Sifted(verdicts, "ok", None, verdicts[0].judge or None)
        return replace(sifted, verdicts=verdicts)

    async def _other(self, question: Question, item: Item) -> Verdict:
        """The verdict of a call that another query of this run made."""
        waiting = self._known.get((question, item.key))
        return Verdict(True) if waiting is None else await waiting

    def _settle(self, question: Question, items: Sequence[Item], sifted: Sifted | None) -> None:
        """Publish sound verdicts; what failed passes now and may be judged later."""
        verdicts = (Verdict(True) for _ in items) if sifted is None else iter(sifted.verdicts)
        for item, verdict in zip(items, verdicts, strict=True):
            self._known[question, item.key].set_result(verdict)
            if sifted is None or sifted.status == "degraded":
                del self._known[question, item.key]


@dataclass(frozen=True, slots=True)
class Sieve:
    """The run's gate for one question: what `gather` judges with."""

    gate: RunGate
    question: Question

    async def sift(self, items: Sequence[Item], source: str) -> Sifted:
        """See `RunGate.sift`."""
        return await self.gate.sift(self.question, items, source)


async def _judge(judge: Judge, question: Question, items: Sequence[Item], source: str) -> Judgement:
    """All chunks at once; one that fails fails the whole."""
    chunks = [items[at : at + CHUNK] for at in range(0, len(items), CHUNK)]
    failed: ModelError | None = None
    calls: list[asyncio.Task[Judgement]] = []
    try:
        async with asyncio.TaskGroup() as group:
            calls += [group.create_task(judge.judge(question, chunk, source)) for chunk in chunks]
    except* ModelError as errors:
        failed = next(e for e in _leaves(errors) if isinstance(e, ModelError))
    if failed is not None:
        raise failed
    answers = [call.result() for call in calls]
    for chunk, answer in zip(chunks, answers, strict=True):
        if len(answer.verdicts) != len(chunk):
            raise ModelError("count_mismatch", f"{len(answer.verdicts)} for {len(chunk)}")
    return Judgement(
        tuple(verdict for answer in answers for verdict in answer.verdicts),
        answers[0].model,
        sum((answer.usage for answer in answers), Usage()),
    )


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _opposed(relevant: bool, probability: float | None) -> bool:
    if probability is None:
        return False
    return probability < SURE_NO if relevant else probability > SURE_YES
