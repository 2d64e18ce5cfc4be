"""What the product needs from outside, as protocols; everything with a socket is behind one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeVar, runtime_checkable

from api.core.domain import (
    Batch,
    Commented,
    FetchPlan,
    Gathered,
    Grade,
    Item,
    Published,
    Question,
    Usage,
    Verdict,
)

PER_CALL = 50
"""Things in one request for booleans at most: items that a judge sees, claims that are checked."""


class Source(Protocol):
    """A place where people talk. Every foreign error leaves it as a `SourceError`."""

    @property
    def name(self) -> str:
        """Its name in `SOURCES`."""
        ...

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search, best match first, at most `plan.limit` items without their comments.

        A wider plan for the same query and window is served from what the first one left over, or
        from the next page; page one is never asked twice within `page_ttl`. Identical concurrent
        calls share one flight. Each request sent is `charge`d. Failures are not remembered.

        Raises:
            SourceError: one of its subclasses, each an outcome.
        """
        ...

    async def comments(self, items: Sequence[Item]) -> Commented:
        """Read comments, reviews and details of kept items, concurrently.

        An item whose comments cannot be read comes back as it was, with a note.

        Raises:
            SourceError: the source as a whole stopped answering.
        """
        ...

    async def remarked(self, item: Item) -> Item | None:
        """The item with its best comments, for one request; None where none are read.

        So on Amazon, where reviews speak of nothing but the product they stand under.

        Raises:
            SourceError: they could not be read.
        """
        ...

    async def probe(self) -> Probe:
        """Say whether it can be asked, at the lowest cost there is (never a YouTube search)."""
        ...

    async def aclose(self) -> None:
        """Close sockets and threads; the source is not used again."""
        ...


@dataclass(frozen=True, slots=True)
class WrappedSource:
    """Forwards everything to the source inside; a wrapper overrides what it changes."""

    inner: Source

    @property
    def name(self) -> str:
        """See `Source.name`."""
        return self.inner.name

    async def fetch(self, plan: FetchPlan) -> Batch:
        """See `Source.fetch`."""
        return await self.inner.fetch(plan)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """See `Source.comments`."""
        return await self.inner.comments(items)

    async def remarked(self, item: Item) -> Item | None:
        """See `Source.remarked`."""
        return await self.inner.remarked(item)

    async def probe(self) -> Probe:
        """See `Source.probe`."""
        return await self.inner.probe()

    async def aclose(self) -> None:
        """See `Source.aclose`."""
        await self.inner.aclose()


@dataclass(frozen=True, slots=True)
class Probe:
    """What `doctor` learns about one upstream."""

    outcome: str
    """`ok` or a `SourceError.code`."""
    detail: str = ""
    quota_left: int | None = None
    """Searches left today, where known."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a judge answered about a batch, in order."""

    verdicts: tuple[Verdict, ...]
    model: str
    usage: Usage = Usage()


@runtime_checkable
class Judge(Protocol):
    """Decides which items are about the question."""

    @property
    def name(self) -> str:
        """Name and version, for example `gpt-4o-mini` or `local-2`."""
        ...

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """One verdict per item, in order; one request for `PER_CALL` at most.

        Raises:
            ModelError: no usable answer; the caller fails open.
        """
        ...


@dataclass(frozen=True, slots=True)
class WrappedJudge:
    """Forwards to another judge; a wrapper overrides what it changes."""

    inner: Judge

    @property
    def name(self) -> str:
        """The inner judge's name."""
        return self.inner.name

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """See `Judge.judge`."""
        return await self.inner.judge(question, items, source)


UNGRADED = Grade(3, "Score could not be parsed, defaulting to include", defaulted=True)
"""What stands in for a grade that could not be had."""


@dataclass(frozen=True, slots=True)
class Grades:
    """Grades in the order of the items, and what they cost."""

    grades: tuple[Grade, ...]
    usage: Usage = Usage()
    model: str = ""


class Grader(Protocol):
    """Scores kept items from 1 to 5 against the original question."""

    async def grade(self, question: Question, items: Sequence[Item]) -> Grades:
        """One grade per item, in order; without answer `UNGRADED`. Never raises ModelError."""
        ...


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a report, and the passage that is said to carry it."""

    sentence: str
    passage: str
    """Verbatim; several are joined for a sentence of the summary."""
    context: str
    """The item's title, and the words around the passage."""


@dataclass(frozen=True, slots=True)
class Support:
    """Which claims their passages carry, in order, and what asking cost."""

    supported: tuple[bool, ...]
    model: str
    usage: Usage = Usage()


class SupportChecker(Protocol):
    """Decides whether a passage, in its item, says what a sentence says."""

    @property
    def name(self) -> str:
        """Name and version, for example `gpt-4o-mini`."""
        ...

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """One boolean per claim, in order; one request for `PER_CALL` at most.

        Raises:
            ModelError: no usable answer; the caller leaves the sentences unverified.
        """
        ...


@dataclass(frozen=True, slots=True)
class Rewrites:
    """Queries to ask, the original first."""

    queries: tuple[str, ...]
    usage: Usage = Usage()


class Rewriter(Protocol):
    """Finds other words under which the same thing is discussed."""

    async def rewrite(
        self, question: Question, variants: int, gaps: Sequence[str] = ()
    ) -> Rewrites:
        """At most `variants` queries, the original first, distinct; only the original on failure.

        `gaps` are titles kept and reasons of what was dropped: quoted text, fenced like any other.
        """
        ...


T_contra = TypeVar("T_contra", contravariant=True)
Recording = AbstractContextManager["Recorder[Facts]"]


class Recorder(Protocol[T_contra]):
    """Takes the facts of a finished step."""

    def record(self, facts: T_contra) -> None:
        """Called once, before the block ends; not called when the step failed."""
        ...


WRITTEN = ("findings",)
"""What stands for the words of a report among `Observer.observations`."""


class Observer(Protocol):
    """Sees the product work; tracing implements it, the default does nothing."""

    @property
    def trace_id(self) -> str | None:
        """The trace under way in this context."""
        ...

    @property
    def observations(self) -> Mapping[str, tuple[str, ...]]:
        """Of that trace so far, span -> keys of the items that were judged there first.

        The span of the agent that wrote has `WRITTEN` instead.
        """
        ...

    def analysis(self, name: str, question: Question, *tags: str) -> Recording:
        """Around one question (`analyze`), tool (`fetch`) or chat turn (`chat`)."""
        ...

    def gathering(self, source: str, query: str) -> AbstractContextManager[Recorder[Gathered]]:
        """Around fetching, judging and commenting of one source."""
        ...

    def retrieving(self, query: str) -> AbstractContextManager[Recorder[Published]]:
        """Around a search of the archive; its answer is recorded."""
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known when a question has been answered."""

    decision: str
    items_kept: int
    upstream_calls: int
    usd: float | None
    output: Published | str | None = None
    """The answer itself."""
    support_rate: float | None = None
    """Passages that carry their sentence, over those that were checked."""
    items_cited: int | None = None
    """Distinct items that the answer cites; None for one that cites nothing by its nature."""


class _Silent:
    """Records nothing."""

    def record(self, facts: object) -> None:
        """Ignore."""


class SilentObserver:
    """The observer without Langfuse keys."""

    trace_id: str | None = None
    observations: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def analysis(self, name: str, question: Question, *tags: str) -> Recording:
        """Do nothing around the block."""
        return nullcontext(_Silent())

    def gathering(self, source: str, query: str) -> AbstractContextManager[Recorder[Gathered]]:
        """Do nothing around the block."""
        return nullcontext(_Silent())

    def retrieving(self, query: str) -> AbstractContextManager[Recorder[Published]]:
        """Do nothing around the block."""
        return nullcontext(_Silent())


Probing = Callable[[], Awaitable[tuple[str, str]]]
"""Asks what is no source whether it can be asked: outcome (as in `Probe`) and detail."""
