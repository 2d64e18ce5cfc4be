"""Asks a judge or grader about labelled queries, page by page, and caches paid answers."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any, Protocol

import regex

from api.core.domain import Question, Usage
from api.core.items import Item
from api.core.model_batches import UnusableAnswer, usage_of_error
from api.core.ports import Grader, Judge
from api.errors import ConfigurationError, ModelError
from api.evaluation.judge_scores import Answered, AnswerSheet, EvalResult, Opinion, score
from api.evaluation.labelled_items import LabelledQuery
from api.evaluation.metrics import summary
from api.pipeline.gate.verdicts import alike_in_each, fixed_pattern

HOPELESS = frozenset({"no_key", "unauthorized", "quota"})
"""Failures that every further call would repeat: the evaluation stops."""
Progress = Callable[[int, int], None]  # called with the number of items answered so far and in all

Ask = Callable[[], Awaitable[list[AnswerSheet]]]
Around = Callable[[int, Ask], Awaitable[list[AnswerSheet]]]
"""Wraps the asking about a case: gets its number and a call to make once, returns the answer."""


class Candidate(Protocol):
    """A judge or another gate whose answers to labelled cases are measured."""

    @property
    def name(self) -> str:
        """Name and version, as they head a row of the table: `local-3`."""
        ...

    @property
    def template(self) -> str:
        """Prompt without the nonce; empty when it has none."""
        ...

    async def answer(self, question: Question, items: Sequence[Item], source: str) -> Answered:
        """One opinion per item, in order; raises `ModelError` without a usable answer."""
        ...


@dataclass(frozen=True, slots=True)
class JudgeCandidate:
    """A judge that is measured: its name, its prompt if it has one, its verdicts on a page."""

    judge: Judge
    name: str  # and version
    template: str = ""  # its prompt without the nonce; empty: it has none

    async def answer(self, question: Question, items: Sequence[Item], source: str) -> Answered:
        """One opinion per item, in order; raises `ModelError` without a usable answer."""
        judged = await self.judge.judge(question, items, source)
        opinions = (Opinion(v.relevant, v.probability) for v in judged.verdicts)
        return Answered(tuple(opinions), judged.usage)


@dataclass(frozen=True, slots=True)
class GraderCandidate:
    """A grader under evaluation; a grade of `cutoff` or more counts as relevant."""

    grader: Grader
    name: str
    template: str = ""
    cutoff: int = 3

    async def answer(self, question: Question, items: Sequence[Item], source: str) -> Answered:
        """See `JudgeCandidate.answer`; a page with a defaulted grade is no answer."""
        graded = await self.grader.grade(question, items)
        if any(grade.defaulted for grade in graded.grades):
            raise UnusableAnswer("malformed", "some grades are defaults", graded.usage)
        opinions = (Opinion(g.score >= self.cutoff, score=g.score) for g in graded.grades)
        return Answered(tuple(opinions), graded.usage)


class AnswerCache:
    """Paid answers on disk, so that an interrupted run goes on where it stopped.

    A file of JSON lines per judge; a line that a crash cut short is skipped. Raises
    `ConfigurationError` where folder or file cannot be used.
    """

    def __init__(self, folder: Path, judge: str) -> None:
        # `gpt-4o-mini@host:8000` as `gpt-4o-mini_host_8000`
        slug = regex.sub(r"[^\w.-]+", "_", judge)[:60]
        self._path = folder / f"{slug}-{_digest(judge)[:8]}.jsonl"
        self._known: dict[str, Answered] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab+") as file:
                file.seek(0)
                held = file.read()
                if held and not held.endswith(b"\n"):
                    file.write(b"\n")
        except OSError as error:
            raise _unusable(folder, error) from None
        for line in held.splitlines():
            with suppress(ValueError, KeyError, TypeError):
                row: dict[str, Any] = json.loads(line)
                opinions = tuple(Opinion(**opinion) for opinion in row["opinions"])
                answered = Answered(opinions, Usage(**row["usage"]), row["seconds"])
                self._known[row["key"]] = answered

    def get(self, key: str, count: int) -> Answered | None:
        """The cached answer, if it has `count` opinions."""
        known = self._known.get(key)
        return known if known is not None and len(known.opinions) == count else None

    def put(self, key: str, answered: Answered) -> None:
        """Cache an answer and write it to disk."""
        self._known[key] = answered
        line = json.dumps({"key": key, **asdict(answered)}, separators=(",", ":")) + "\n"
        try:
            with self._path.open("ab") as file:
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _unusable(self._path, error) from None


def page_key(judge: str, template: str, question: Question, source: str, items: Sequence[Item]) -> str:
    """Digest of what an answer depends on: judge, prompt without nonce, question and texts."""
    texts = [[item.title, item.body] for item in items]
    return _digest(json.dumps([judge, template, question.text, question.about, source, texts]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _unusable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"cache `{path}`: {error.strerror}; name a folder you can write to")


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """Options for asking and scoring queries."""

    page: int = 25  # most items in one call
    concurrency: int = 8  # most calls at once
    about: bool = True  # whether the judge sees what the query is about
    min_yield: float = 0.5  # yield below which the product fetches again


@dataclass(slots=True)
class _LabelledPage:
    number: int  # of the query
    start: int
    question: Question
    source: str
    items: tuple[Item, ...]


async def evaluate(
    candidate: Candidate, queries: Sequence[LabelledQuery],
    options: EvaluationOptions | None = None, *, cache: AnswerCache | None = None,
    progress: Progress | None = None, around: Around | None = None,
) -> EvalResult:  # fmt: skip
    """Ask about all pages that are not cached, and score the answers.

    A page that fails counts as degraded, and in no measure. Raises `ModelError` as `answer_sheets`
    does, or without any answer.
    """
    options = options or EvaluationOptions()
    sheets = await answer_sheets(candidate, queries, options, cache=cache, progress=progress, around=around)
    return _result(candidate.name, queries, sheets, options)


async def answer_sheets(
    candidate: Candidate, queries: Sequence[LabelledQuery], options: EvaluationOptions, *,
    cache: AnswerCache | None = None, progress: Progress | None = None, around: Around | None = None,
) -> list[AnswerSheet]:  # fmt: skip
    """The answers about all pages, by query and position.

    With `around` the pages of a query are asked in sequence. Raises `ModelError` for a failure of
    `HOPELESS`.
    """
    pages = _pages(queries, options)
    total, done, hopeless = sum(len(page.items) for page in pages), 0, None
    key = (lambda page: page.number) if around else (lambda page: (page.number, page.start))
    queue = iter([list(group) for _, group in groupby(pages, key=key)])
    sheets: list[AnswerSheet] = []

    async def ask(pages: Sequence[_LabelledPage]) -> list[AnswerSheet]:
        nonlocal done, hopeless
        answers = []
        for page in pages:
            if hopeless is not None:
                break
            sheet = AnswerSheet(page.number, page.start, None)
            try:
                sheet = replace(sheet, answered=await _answered(candidate, page, cache))
            except ModelError as error:
                sheet = replace(sheet, wasted=usage_of_error(error), reason=error.reason)
                hopeless = error if error.reason in HOPELESS else hopeless
            answers.append(sheet)
            done += len(page.items)
            if progress is not None:
                progress(done, total)
        return answers

    async def work() -> None:
        for pages in queue:
            if hopeless is None:
                call = partial(ask, pages)
                sheets.extend(await (around(pages[0].number, call) if around else call()))

    await asyncio.gather(*(work() for _ in range(options.concurrency)))
    if hopeless is not None:
        raise hopeless
    return sorted(sheets, key=lambda sheet: (sheet.query, sheet.start))


def _pages(queries: Sequence[LabelledQuery], options: EvaluationOptions) -> list[_LabelledPage]:
    return [
        _LabelledPage(number, start, question, query.source, items[start : start + options.page])
        for number, query in enumerate(queries)
        for question in [query.question(about=options.about)]
        for items in [query.shown()]
        for start in range(0, len(items), options.page)
    ]


@dataclass(slots=True)
class RememberedAnswers:
    """A candidate that is asked about the same page once."""

    candidate: Candidate
    _known: dict[str, Answered] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """See `JudgeCandidate`."""
        return self.candidate.name

    @property
    def template(self) -> str:
        """See `JudgeCandidate`."""
        return self.candidate.template

    async def answer(self, question: Question, items: Sequence[Item], source: str) -> Answered:
        """See `JudgeCandidate.answer`."""
        key = page_key(self.name, self.template, question, source, items)
        if key not in self._known:
            self._known[key] = await self.candidate.answer(question, items, source)
        return self._known[key]


ALIKE = "the same for all items of a page"
"""The pattern of a judge that tells no two items of a page apart."""
UNSTABLE = 0.9
"""Share of verdicts that stay, at which and below which a judge is not to be trusted with a page."""


async def order_stability(
    candidate: Candidate, queries: Sequence[LabelledQuery], options: EvaluationOptions, *,
    cache: AnswerCache | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Shares of verdicts that stay when a page is shuffled, and when its yield is another.

    Each with a 95 % interval over queries. `pattern` holds the verdicts by position where they are
    nearly the same in all calls, or on all pages as they were given, whatever was read, or `ALIKE`;
    else it is empty. Pages that fail count nowhere.
    """
    slots = asyncio.Semaphore(options.concurrency)
    labels = [[item.relevant for item in query.items] for query in queries]
    calls: list[tuple[list[bool], list[bool]]] = []
    pages: list[tuple[list[bool], list[bool]]] = []
    stays: dict[str, dict[str, tuple[int, int]]] = {"shuffled": {}, "other_yield": {}}  # by the query's text

    async def flags_of(page: _LabelledPage, order: Sequence[int]) -> dict[int, bool]:
        changed = replace(page, items=tuple(page.items[at] for at in order))
        answered = await _answered(candidate, changed, cache)
        flags = [opinion.relevant for opinion in answered.opinions]
        calls.append((flags, [labels[page.number][page.start + at] for at in order]))
        return dict(zip(order, flags, strict=True))

    async def compare_orders(page: _LabelledPage) -> None:
        truth = labels[page.number][page.start : page.start + len(page.items)]
        given, shuffled = list(range(len(truth))), list(range(len(truth)))
        Random(_digest(f"{page.number} {page.start}")).shuffle(shuffled)  # noqa: S311 # nosec B311 # no secret
        majority = 2 * sum(truth) >= len(truth)
        alike = [at for at in given if truth[at] is majority]
        fewer = [at for at in given if at not in set(alike[1::2])]
        async with slots:
            try:
                first = await flags_of(page, given)
                pages.append((list(first.values()), truth))
                for kind, order in (("shuffled", shuffled), ("other_yield", fewer)):
                    # a page that is all the same has no other yield, and a single item no other order
                    if order != given and (kind == "shuffled" or len(set(truth)) > 1):
                        again = await flags_of(page, order)
                        same = sum(first[at] is again[at] for at in order)
                        text = queries[page.number].query
                        stayed, count = stays[kind].get(text, (0, 0))
                        stays[kind][text] = (stayed + same, count + len(order))
            except ModelError as error:
                if error.reason in HOPELESS:
                    raise

    await asyncio.gather(*map(compare_orders, _pages(queries, options)))
    pattern = fixed_pattern(calls) or fixed_pattern(pages) or (ALIKE if alike_in_each(pages) else "")
    return {**{kind: _stayed([*counts.values()]) for kind, counts in stays.items()}, "pattern": pattern}


def _stayed(counts: Sequence[tuple[int, int]]) -> dict[str, Any]:
    def share(drawn: Sequence[tuple[int, int]]) -> dict[str, float | None]:
        total = sum(count for _, count in drawn)
        return {"stay": sum(same for same, _ in drawn) / total if total else None}

    figures = summary(counts, share)
    low, high = figures["intervals"].get("stay", (None, None))
    return {"n": sum(count for _, count in counts), "stay": figures["stay"], "low": low, "high": high}


def _result(
    name: str, queries: Sequence[LabelledQuery], sheets: list[AnswerSheet],
    options: EvaluationOptions,
) -> EvalResult:  # fmt: skip
    reasons = sorted({sheet.reason for sheet in sheets if sheet.reason})
    if not any(sheet.answered for sheet in sheets):
        raise ModelError(reasons[0], "no page was answered") if reasons else ModelError("malformed")
    result = score(name, queries, sheets, min_yield=options.min_yield)
    about = options.about and any(query.about for query in queries)
    return replace(result, reasons=tuple(reasons), page=options.page, about=about)


async def _answered(candidate: Candidate, page: _LabelledPage, cache: AnswerCache | None) -> Answered:
    count, question = len(page.items), page.question
    key = page_key(candidate.name, candidate.template, question, page.source, page.items)
    if cache is not None and (known := cache.get(key, count)) is not None:
        return known
    began = perf_counter()
    answered = await candidate.answer(question, page.items, page.source)
    if len(answered.opinions) != count:
        detail = f"{len(answered.opinions)} for {count}"
        raise UnusableAnswer("count_mismatch", detail, answered.usage)
    # verdicts that a command gave for all pages at once bring their own time
    answered = replace(answered, seconds=answered.seconds or perf_counter() - began)
    if cache is not None:
        cache.put(key, answered)
    return answered
