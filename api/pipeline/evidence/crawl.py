"""All sources at once; what several queries found of one source becomes one.

One run: within it nothing is fetched, judged, graded or read twice.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from api.choices import Window
from api.core.display_names import OUTCOME_REASONS, SourceLabels, title_in
from api.core.domain import FetchPlan, Grade, Outcome, Question, Usage
from api.core.items import Assessed, Commented, Gathered, Item, sum_of_agreements
from api.core.ports import UNGRADED, Grader, Grades, Observer, Source
from api.core.progress import ItemGraded, Listener, SourceGathered, SourceKept, ignore_event
from api.core.shared_answers import shared_run
from api.core.words import canonical
from api.core.work import Failure, RunCache, SharedTasks, StepRunner, contained, run_step
from api.errors import SourceError
from api.pipeline.gate.refetch import RefetchPolicy, failed_source, gather, merge_crossposts
from api.pipeline.gate.verdicts import RunGate, question_key
from api.pipeline.question.exclusions import NOTHING_EXCLUDED, Blocklist, ExcludingSource
from api.pipeline.question.product_name import judged_words, product_in
from api.pipeline.question.query_screen import without_operators
from api.settings import AdaptiveSettings

Search = Callable[[str, str], Coroutine[Any, Any, Gathered]]
"""`search(source, query)`; never raises for a source that fails."""


@dataclass(frozen=True, slots=True)
class Crawl:
    """What all sources gave, one entry per source in the order asked for."""

    sources: tuple[Gathered, ...]
    queries: tuple[str, ...]
    by_name: bool = False
    """No source heeds more of a query than the product's name, so that other queries bring nothing."""

    @property
    def kept(self) -> tuple[Assessed, ...]:
        """Items of all sources that the gate kept, in the order of the sources."""
        return tuple(assessed for gathered in self.sources for assessed in gathered.kept)

    @property
    def dropped(self) -> tuple[Assessed, ...]:
        """Items of all sources that the gate dropped, in the order of the sources."""
        return tuple(assessed for gathered in self.sources for assessed in gathered.dropped)

    @property
    def answered(self) -> int:
        """Number of sources that answered, with or without items."""
        return sum(gathered.outcome.answered for gathered in self.sources)

    @property
    def upstream_calls(self) -> int:
        """Number of requests sent to all sources, failed ones included."""
        return sum(gathered.upstream_calls for gathered in self.sources)

    @property
    def usage(self) -> Usage:
        """Tokens and USD of judging the items of all sources."""
        return sum((gathered.usage for gathered in self.sources), Usage())


async def crawl(
    search: Search,
    sources: Sequence[str],
    queries: Sequence[str],
    more: Awaitable[Sequence[str]] | None = None,
    *,
    earlier: Sequence[Gathered] = (),
    by_name: Collection[str] = (),
    listener: Listener = ignore_event,
) -> Crawl:
    """Ask every source every query, all at once.

    Args:
        search: asks one source one query.
        sources: their names.
        queries: asked at once; the first leads.
        more: a task that gives further queries, which are asked as soon as they are known.
        earlier: what the same sources gave before, which leads.
        by_name: sources that get the first query of all crawls alone, since they search for a name only.
        listener: hears of each source when the last of its queries has ended.
    """
    before = {gathered.source: [gathered] for gathered in earlier}

    async def gather(source: str) -> Gathered:
        once = source in by_name
        async with asyncio.TaskGroup() as group:
            first = queries[: 0 if source in before else 1] if once else queries
            asking = [group.create_task(search(source, query)) for query in first]
            later = await more if more is not None and not once else ()
            asking += [group.create_task(search(source, query)) for query in later]
        gathered = combine([*before.get(source, ()), *(task.result() for task in asking)])
        listener(SourceGathered.of(gathered))
        return gathered

    async with asyncio.TaskGroup() as group:
        gathering = [group.create_task(gather(source)) for source in sources]
    further = await more if more is not None else ()
    only_by_name = set(sources) <= set(by_name)
    return Crawl(tuple(task.result() for task in gathering), (*queries, *further), only_by_name)


def combine(parts: Sequence[Gathered]) -> Gathered:
    """One source's results for several queries as one; the first leads, items are distinct."""
    # what a run's memory served a second time shares its very attempts, and counts once
    attempts: set[int] = set()
    fresh: list[Gathered] = []
    for part in parts:
        own = {id(attempt) for attempt in part.attempts}
        if not own or not own <= attempts:
            fresh.append(part)
        attempts |= own
    first, *others = parts = fresh
    if not others:
        return first
    entries = (entry for part in parts for entry in (*part.kept, *part.dropped))
    narrow = {entry.item.original for entry in entries if not entry.wider}
    kept = _distinct((entry for part in parts for entry in part.kept), narrow)
    known = {entry.item.original for entry in kept}
    dropped = tuple(
        entry
        for entry in _distinct((entry for part in parts for entry in part.dropped), narrow)
        if entry.item.original not in known
    )
    judged = [part for part in parts if part.status != "skipped"] or [first]
    worst = next((part for part in judged if part.status == "degraded"), judged[0])
    leading = next((part for part in parts if part.outcome.answered), first)
    notes: dict[str, None] = {}
    for part in parts:
        notes |= dict.fromkeys(part.notes)
        if part is not leading and not part.outcome.answered:
            notes[f"one query failed: {OUTCOME_REASONS[part.outcome]}"] = None
    combined = replace(
        leading,
        query=first.query,
        outcome=Outcome.OK if kept else Outcome.IRRELEVANT if dropped else leading.outcome,
        attempts=tuple(attempt for part in parts for attempt in part.attempts),
        kept=kept,
        dropped=dropped,
        status=worst.status,
        model=worst.model,
        gate_reason=worst.gate_reason,
        usage=sum((part.usage for part in parts), Usage()),
        agreement=sum_of_agreements(part.agreement for part in parts),
        upstream_calls=sum(part.upstream_calls for part in parts),
        notes=tuple(notes),
        refetched=any(part.refetched for part in parts),
        # what a query that failed would have brought, nobody knows
        capped=any(part.capped or not part.outcome.answered for part in parts),
    )
    return replace(combined, refetch_gain=sum(entry.wider for entry in combined.relevant))


def _distinct(assessed: Iterable[Assessed], narrow: Collection[str]) -> tuple[Assessed, ...]:
    """The first of each original post, with the places of all; `narrow`: a first search had it."""
    entries = list(assessed)
    items = {item.original: item for item in merge_crossposts([entry.item for entry in entries])}
    first: dict[str, Assessed] = {}
    for entry in entries:
        original = entry.item.original
        wider = original not in narrow
        first.setdefault(original, replace(entry, item=items[original], wider=wider))
    return tuple(first.values())


Sources = Mapping[str, Source | SourceError]
"""Every source by name; one that cannot be built is the error that says why."""
_Key = tuple[Hashable, ...]
Searches = SharedTasks[tuple[Hashable, ...], Gathered]
"""Sources being asked, by question, source and plan: runs that ask the same at once ask once."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of one crawl: seconds, window, refetch and what is left out."""

    adaptive: AdaptiveSettings
    seconds: float
    """For all sources of one crawl, refetch and comments included."""
    window: Window = "all"
    blocklist: Blocklist = NOTHING_EXCLUDED


@dataclass(slots=True)
class Run:
    """The memory of one question, tool-using agent or chat session."""

    sources: Sources
    gate: RunGate
    grader: Grader | None
    bounds: Bounds
    observer: Observer
    listener: Listener = ignore_event
    places: SourceLabels = field(default_factory=dict)
    run_step: StepRunner = run_step
    """Takes what asks places and models, and what another process need not ask again."""
    under_way: Searches = field(default_factory=SharedTasks)
    """What other runs ask at this moment."""
    searches: list[Gathered] = field(default_factory=list)
    """Everything that was searched in this run, failures included, each once."""
    _gathered: RunCache[_Key, Gathered] = field(default_factory=RunCache)
    _commented: RunCache[str, Item] = field(default_factory=RunCache)
    _graded: RunCache[_Key, Grade] = field(default_factory=RunCache)
    _numbers: Counter[str] = field(default_factory=Counter)

    @property
    def by_name(self) -> frozenset[str]:
        """Names of the sources that search by the product's name alone."""
        return frozenset(name for name, label in self.places.items() if label.by_name)

    async def search(self, question: Question, source: str, query: str, limit: int) -> Gathered:
        """Ask one source one query; the same again within the run costs nothing.

        Spellings of one name are the same query. A query of search operators only is taken for the
        question. A failure is shared by those who wait for it, but not remembered.
        """
        plain = without_operators(query, source) or without_operators(question.text, source)
        key = (*question_key(question), source, canonical(plain) or plain, str(limit))
        fresh: list[Gathered] = []

        async def find(wanted: Mapping[_Key, str]) -> dict[_Key, Gathered]:
            name = product_in(judged_words(question.text))
            plan = FetchPlan(wanted[key], limit, self.bounds.window, name)
            step = f"ask {source} for {limit}: {plan.query}"
            gathered = await self.run_step(step, Gathered, lambda: self._gather(question, source, plan))
            fresh.append(replace(gathered, title=title_in(self.places, source)))
            return {key: fresh[0]}

        known = await self._gathered.values_of({key: plain}, find)
        if not fresh:
            return replace(known[key], usage=Usage(), agreement=None, upstream_calls=0)
        self.searches.append(fresh[0])
        if not fresh[0].outcome.answered:
            self._gathered.remove(key)
        return fresh[0]

    async def _gather(self, question: Question, name: str, plan: FetchPlan) -> Gathered:
        """Through the loop, until the crawl's deadline; one that could not be built says so.

        What another run asks at this moment is not asked again, and costs this one nothing.
        """
        source = self.sources[name]
        if isinstance(source, SourceError):
            gathered = failed_source(name, plan.query, source)
            self.listener(SourceKept.of(gathered))
            return gathered
        adaptive, blocklist = self.bounds.adaptive, self.bounds.blocklist
        if blocklist:
            source = ExcludingSource(source, blocklist)
        until = asyncio.get_running_loop().time() + self.bounds.seconds
        second_look = question if adaptive.second_look else None
        own: list[Gathered] = []

        async def gathering(listener: Listener) -> Gathered:
            gathered = await gather(
                source,
                plan,
                partial(self.gate.judge, question),
                RefetchPolicy(adaptive.min_yield, adaptive.refetch_factor, until, second_look),
                observer=self.observer,
                listener=listener,
                reader=_CommentsOnce(source, self._commented),
            )
            own.append(gathered)
            return gathered

        # a scheduled run shares stored answers alone: its counts are those of one that asks by itself
        key = (*question_key(question), name, plan, blocklist, shared_run())
        gathered = await self.under_way.share(key, gathering, self.listener)
        return gathered if own else replace(gathered, usage=Usage(), agreement=None, upstream_calls=0)

    async def grade(
        self, question: Question, kept: Sequence[Assessed], cutoff: int
    ) -> tuple[tuple[Assessed, ...], Usage]:
        """The same items with their grades, and what grading them used; without a grader as is.

        Each is asked for once. `cutoff` is what a grade must reach to stay; it is only told to the
        listener.
        """
        grader, identified = self.grader, question_key(question)
        if grader is None or not kept:
            return tuple(kept), Usage()
        spent = [Usage()]

        async def find(mine: Mapping[_Key, Item]) -> dict[_Key, Grade]:
            async def grading() -> Grades:
                graded = await contained(grader.grade(question, tuple(mine.values())), "the grader")
                return Grades((UNGRADED,) * len(mine)) if isinstance(graded, Failure) else graded

            graded = await self.run_step(f"grade {len(mine)}", Grades, grading)
            spent.append(graded.usage)
            grades = dict(zip(mine, graded.grades, strict=True))
            for key, grade in grades.items():
                item = mine[key]
                self._numbers[item.source] += 1
                self.listener(
                    ItemGraded(
                        source=item.source,
                        number=self._numbers[item.source],
                        place=item.place,
                        score=grade.score,
                        cutoff=cutoff,
                        defaulted=grade.defaulted,
                        explanation=grade.explanation,
                    )
                )
            return grades

        keys: dict[str, _Key] = {entry.item.key: (*identified, entry.item.key) for entry in kept}
        wanted = {keys[entry.item.key]: entry.item for entry in kept}
        grades = await self._graded.values_of(wanted, find)
        graded = (replace(entry, grade=grades[keys[entry.item.key]]) for entry in kept)
        return tuple(graded), sum(spent, Usage())


@dataclass(frozen=True, slots=True)
class _CommentsOnce:
    """Within one run an item's comments are read once, whichever query found it."""

    source: Source
    read: RunCache[str, Item]

    async def comments(self, items: Sequence[Item]) -> Commented:
        """Only those that this run has not read yet."""
        notes: list[str] = []

        async def find(mine: Mapping[str, Item]) -> dict[str, Item]:
            commented = await self.source.comments(tuple(mine.values()))
            notes.extend(commented.notes)
            return {item.key: item for item in commented.items if item.key in mine}

        known = await self.read.values_of({item.key: item for item in items}, find)
        return Commented(tuple(known.get(item.key, item) for item in items), tuple(notes))

    async def with_best_comments(self, item: Item) -> Item | None:
        """Once, whichever queries dropped the item."""

        async def find(mine: Mapping[str, Item]) -> dict[str, Item]:
            commented = await self.source.with_best_comments(item)
            return dict.fromkeys(mine, commented) if commented else {}

        key = f"remarks under {item.key}"
        return (await self.read.values_of({key: item}, find)).get(key)
