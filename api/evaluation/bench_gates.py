"""Gates of the public benchmark: anyone's command or file of verdicts, and the local judge by five folds.

A command reads items as JSON lines and writes verdicts as JSON lines. All batches of a run are one input, so that a
command starts once and a file of verdicts holds as much as a command would write.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shlex
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from time import perf_counter
from typing import Annotated

from pydantic import BaseModel, Field, StrictBool

from api.core.domain import Correction, Question, Usage, Verdict
from api.core.items import Item
from api.core.model_batches import UnusableAnswer
from api.core.ports import Judgement
from api.core.text import quantity
from api.errors import UsageError
from api.evaluation.bench_sets import SHIPPED
from api.evaluation.judge_candidates import candidate, sampled
from api.evaluation.judge_evaluation import Candidate, JudgeCandidate, page_key
from api.evaluation.judge_scores import Answered, Opinion
from api.evaluation.labelled_items import LabelledQuery, NonEmpty, read_rows
from api.models.local.judge import LocalJudge, Profile, parse
from api.models.local.word_vectors import Vectors, vectors
from api.settings import Settings

SHAPE = '{"id": "...", "relevant": true}, and perhaps "probability": 0.9'
MOST_BYTES = 16_000_000
"""Most that a command may write."""
CORRECTIONS = 10
_ENDING = 5.0
"""Longest wait, in seconds, for the end of a command that was killed."""


class _VerdictRow(BaseModel):
    id: NonEmpty
    relevant: StrictBool
    probability: Annotated[float, Field(ge=0, le=1)] | None = None


@dataclass(frozen=True, slots=True)
class _Batch:
    question: Question
    source: str
    items: tuple[Item, ...]
    ids: tuple[str, ...]
    """One id for each item; the n-th batch with the same item adds `/n` to its id."""


@dataclass(slots=True)
class CollectedBatches:
    """A candidate that keeps every item and records the batches of a whole run, in order."""

    name: str
    template: str = ""
    batches: dict[str, _Batch] = field(default_factory=dict)
    _seen: Counter[str] = field(default_factory=Counter)

    async def answer(self, question: Question, items: Sequence[Item], source: str) -> Answered:
        """See `JudgeCandidate.answer`: everything is kept."""
        key = page_key(self.name, "", question, source, items)
        if key not in self.batches:
            self._seen.update(item.id for item in items)
            ids = tuple(f"{item.id}/{self._seen[item.id]}" for item in items)
            self.batches[key] = _Batch(question, source, tuple(items), ids)
        return Answered(tuple(Opinion(True) for _ in items))

    def lines(self) -> list[str]:
        """Input of a gate: one item per line, batch by batch."""
        return [
            json.dumps(
                {
                    "id": key, "batch": number, "task": batch.question.aim, "query": batch.question.text,
                    "about": batch.question.about, "source": batch.source, "title": item.title, "body": item.body,
                    "place": item.place or "",
                },
                ensure_ascii=False,
            )
            for number, batch in enumerate(self.batches.values(), 1)
            for key, item in zip(batch.ids, batch.items, strict=True)
        ]  # fmt: skip


@dataclass(slots=True)
class GivenVerdicts:
    """A candidate whose verdicts were given for all batches at once.

    An item without a verdict counts as kept, as in the product where a gate gives none. A batch without any is no
    answer.
    """

    name: str
    batches: Mapping[str, _Batch]
    opinions: Mapping[str, Opinion]
    seconds: float = 0.0
    """Seconds for one item."""
    template: str = ""

    @property
    def missing(self) -> int:
        """Items that have no verdict in the first batch that holds them."""
        ids = (key for batch in self.batches.values() for key in batch.ids if key.endswith("/1"))
        return sum(key not in self.opinions for key in ids)

    async def answer(self, question: Question, items: Sequence[Item], source: str) -> Answered:
        """See `JudgeCandidate.answer`."""
        ids = self.batches[page_key(self.name, "", question, source, items)].ids
        if not any(key in self.opinions for key in ids):
            raise UnusableAnswer("malformed", "no verdict for a batch")
        opinions = tuple(self.opinions.get(key, Opinion(True)) for key in ids)
        return Answered(opinions, Usage(usd=None), self.seconds * len(items))


def read_verdicts(lines: Sequence[str], name: str, collected: CollectedBatches) -> dict[str, Opinion]:
    """Verdicts by id; raises `UsageError` for a line that is none, an id that was not asked, and a second verdict."""
    if not any(line.strip() for line in lines):
        raise UsageError(f"`{name}` gave no verdict; write {SHAPE}, one a line")
    known = {key for batch in collected.batches.values() for key in batch.ids}
    opinions: dict[str, Opinion] = {}
    for row in read_rows(lines, name, _VerdictRow, "verdict", SHAPE):
        if row.id not in known:
            raise UsageError(
                f"`{name}` judges `{row.id[:80]}`, which is no item of this run; `bench items` prints them"
            )
        if row.id in opinions:
            raise UsageError(f"`{name}` gives two verdicts for `{row.id}`; write one an item")
        opinions[row.id] = Opinion(row.relevant, row.probability)
    return opinions


async def run_gate(command: str, lines: Sequence[str], seconds: float) -> tuple[list[str], float]:
    """Lines that a command wrote for these input lines, and its duration in seconds; its stderr is passed on.

    Raises `UsageError` where it cannot be started, takes longer than `seconds`, writes more than `MOST_BYTES`, or
    ends with a failure. What it started ends with it.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"`--gate`: {error} in `{command}`") from None
    began = perf_counter()
    try:
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise UsageError(f"`{words[0]}` cannot be started: {error.strerror}") from None
    feeding = asyncio.create_task(_feed(process, "".join(f"{line}\n" for line in lines).encode()))
    try:
        async with asyncio.timeout(seconds):
            written = await _read(process, words[0])
            code = await process.wait()
    except TimeoutError:
        raise UsageError(f"`{words[0]}` was not done after {seconds:g} s; `--seconds` gives it more") from None
    finally:
        feeding.cancel()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):  # a process that left the group may hold the output open
            async with asyncio.timeout(_ENDING):
                await _discard(process)
                await process.wait()
                await _closed(process)
    if code:
        end = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
        count = quantity(written.count(b"\n"), "line")
        raise UsageError(f"`{words[0]}` {end} after {count} of {len(lines):,}; nothing is scored")
    return written.decode("utf-8", "replace").split("\n"), perf_counter() - began


async def _feed(process: asyncio.subprocess.Process, content: bytes) -> None:
    assert process.stdin is not None  # nosec B101 # a pipe was asked for
    with suppress(BrokenPipeError, ConnectionResetError):  # a gate may read no more than it wants
        process.stdin.write(content)
        await process.stdin.drain()
        process.stdin.close()


async def _read(process: asyncio.subprocess.Process, name: str) -> bytes:
    assert process.stdout is not None  # nosec B101 # a pipe was asked for
    written = bytearray()
    while chunk := await process.stdout.read(65_536):
        written += chunk
        if len(written) > MOST_BYTES:
            raise UsageError(f"`{name}` wrote more than {MOST_BYTES // 1_000_000} MB; a verdict takes about 60 bytes")
    return bytes(written)


async def _discard(process: asyncio.subprocess.Process) -> None:
    """Read the remaining output, since asyncio reports the end of a process only after its output has ended."""
    assert process.stdout is not None  # nosec B101 # a pipe was asked for
    while await process.stdout.read(65_536):
        pass


async def _closed(process: asyncio.subprocess.Process) -> None:
    """Give up what was not written: else the loop may end before it notices that nobody reads, and Python complains."""
    assert process.stdin is not None  # nosec B101 # a pipe was asked for
    if not process.stdin.is_closing():
        process.stdin.transport.abort()
    with suppress(BrokenPipeError, ConnectionResetError):
        await process.stdin.wait_closed()


@dataclass(frozen=True, slots=True)
class FoldedJudge:
    """Answers every question with weights that never saw it; implements `Judge`."""

    folds: Mapping[str, int]
    weights: Sequence[Mapping[str, Profile]]
    known: Vectors | None
    name: str = "local-3, five folds"

    def of(self, question: Question) -> LocalJudge:
        """The judge whose weights were trained without the question; the shipped weights for a question of no fold."""
        if (fold := self.folds.get(question.text)) is None:
            return LocalJudge(lambda: self.known)
        weights = self.weights[fold]
        return LocalJudge(lambda: self.known, lambda: weights)

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`."""
        return await self.of(question).judge(question, items, source)


@cache
def folded_judge() -> FoldedJudge:
    """The local judge with the weights of five folds that are shipped for the benchmark alone."""
    shipped = json.loads((SHIPPED / "folds.json").read_text("utf-8"))
    return FoldedJudge(shipped["folds"], [parse(weights) for weights in shipped["weights"]], vectors())


class CorrectedJudge:
    """The local judge that was given the labels of ten other items of the question; implements `Judge`.

    The items of a query are in two halves by a digest. Each half is judged with ten corrections from the other, so
    that every item is judged and none with its own label.
    """

    def __init__(self, judge: FoldedJudge, queries: Sequence[LabelledQuery], count: int = CORRECTIONS) -> None:
        self.name = f"{judge.name}, {count} corrections"
        self._judge = judge
        # by set and query of the items' ids, and half
        self._known: dict[tuple[str, bool], tuple[Correction, ...]] = {}
        for query in queries:
            labelled = sorted(zip(query.shown(), query.items, strict=True), key=lambda pair: _digest(pair[0].id))
            for half in (True, False):
                members = [pair for pair in labelled if _half(pair[0].id) is half][:count]
                self._known[_group(query.items[0].id), half] = tuple(
                    Correction(item.id, label.relevant, item.title, item.body, item.place or "")
                    for item, label in members
                )

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`."""
        return await asyncio.to_thread(self._judged, question, items, source)

    def _judged(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        verdicts: dict[str, Verdict] = {}
        for half in (True, False):
            known = self._known.get((_group(items[0].id), half), ())
            known_ids = {correction.key for correction in known}
            rest = [item for item in items if item.id not in known_ids]
            taught = replace(question, corrections=known)
            answers = self._judge.of(question).verdicts(taught, rest, source)
            verdicts |= {
                item.id: verdict for item, verdict in zip(rest, answers, strict=True) if _half(item.id) is not half
            }
        return Judgement(tuple(verdicts[item.id] for item in items), self.name)


def _digest(item: str) -> str:
    return hashlib.sha256(item.encode()).hexdigest()


def _half(item: str) -> bool:
    return int(_digest(item)[-1], 16) % 2 == 0


def _group(item: str) -> str:
    """Set and query of an item's id."""
    return item.rpartition("/")[0]


FREE = ("keep_all", "keyword", "names", "bm25", "cosine", "hybrid", "local", "corrected")
"""Gates of this program that cost nothing."""
_UNSEEN = "weights never saw the query, but rules and limits were chosen with these sets in view"
_CHOSEN = "its threshold was chosen on development data that hold the tweets"


@asynccontextmanager
async def baseline(
    settings: Settings, name: str, model: str | None, queries: Sequence[LabelledQuery]
) -> AsyncIterator[tuple[Candidate, str]]:
    """A gate of this program by name, one of `FREE` or `openai`, and what to know of its figures."""
    if name == "local":
        folded = folded_judge()
        yield JudgeCandidate(folded, folded.name), _UNSEEN
    elif name == "corrected":
        corrected = CorrectedJudge(folded_judge(), queries)
        yield JudgeCandidate(corrected, corrected.name), f"{_UNSEEN}; ten labels of each query were given"
    else:
        async with candidate(settings, name, model) as judge:
            note = "the sandbox's model answered" if sampled(settings, name) else ""
            yield judge, note or (_CHOSEN if name in {"names", "bm25", "cosine", "hybrid"} else "")
