"""Protocols of everything outside that the product calls: sources, models, tracing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeVar, runtime_checkable

from api.core.domain import FetchPlan, Grade, Question, Sense, Usage, Verdict
from api.core.items import Batch, Commented, Gathered, Item
from api.core.published import Published

PER_CALL = 50
"""Most items that a judge is asked about in one request, and most claims of a support check."""


SenseFinder = Callable[[Question, Sequence[Item], Collection[str]], tuple[Sense, ...]]
"""`find(question, items, keys of the kept items)`: the things that share a name, or nothing."""


@dataclass(frozen=True, slots=True)
class NamedSenses:
    """Senses of a name with what a model calls each, in their order."""

    senses: tuple[Sense, ...]
    usage: Usage = Usage()


class SenseNamer(Protocol):
    """Says what kind of thing each sense of a name is."""

    async def name_senses(self, question: Question, senses: Sequence[Sense]) -> NamedSenses:
        """Name all senses in one call; a sense that the model cannot tell stays without a name. Raises `ModelError`."""
        ...


class Source(Protocol):
    """A site or store with items, such as Reddit; its errors are all `SourceError`."""

    @property
    def name(self) -> str:
        """The source's name in `SOURCES`."""

    async def fetch(self, plan: FetchPlan) -> Batch:
        """Search, best match first, at most `plan.limit` items without comments.

        A wider plan for the same query and window continues with what the first one left over, then
        the next page; no page is requested twice within `page_ttl`. Identical concurrent calls
        share one request. Each is `charge`d. Failures raise `SourceError` and are not cached.
        """

    async def comments(self, items: Sequence[Item]) -> Commented:
        """Read comments, reviews and details of kept items, concurrently.

        An item whose comments cannot be read comes back as it was, with a note. Raises
        `SourceError` if the source as a whole stopped answering.
        """

    async def with_best_comments(self, item: Item) -> Item | None:
        """The item with its best comments, read by one request; None when the source does not read any.

        Amazon's does not: a review is always about its product. Raises `SourceError`.
        """

    async def probe(self) -> Probe:
        """Whether it can be asked, by the cheapest request there is (never a YouTube search)."""

    async def aclose(self) -> None:
        """Close sockets and threads for good."""


@dataclass(frozen=True, slots=True)
class WrappedSource:
    """Forwards every call to `inner`; a subclass overrides what it changes."""

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

    async def with_best_comments(self, item: Item) -> Item | None:
        """See `Source.with_best_comments`."""
        return await self.inner.with_best_comments(item)

    async def probe(self) -> Probe:
        """See `Source.probe`."""
        return await self.inner.probe()

    async def aclose(self) -> None:
        """See `Source.aclose`."""
        await self.inner.aclose()


@dataclass(frozen=True, slots=True)
class Probe:
    """What `doctor` reports about one source."""

    outcome: str
    """`ok` or a `SourceError.code`."""
    detail: str = ""
    quota_left: int | None = None
    """Searches left today; None when unknown."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A judge's verdicts on a batch, in its order."""

    verdicts: tuple[Verdict, ...]
    model: str
    usage: Usage = Usage()
    order_stability: float | None = None
    """Share of verdicts that stayed when the page was judged in another order; None when that was not tried."""


# an argument of the public tools is checked against it
@runtime_checkable
class Judge(Protocol):
    """Decides which items are about the question."""

    @property
    def name(self) -> str:
        """Name and version, for example `gpt-4o-mini` or `local-3`."""

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        """One verdict per item, in order; one request for `PER_CALL` at most.

        Raises `ModelError` without a usable answer; the caller fails open.
        """


UNGRADED = Grade(3, "Score could not be parsed, defaulting to include", defaulted=True)
"""The grade of an item whose grading failed."""


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


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a report, and the passage it cites."""

    sentence: str
    passage: str
    """Verbatim; for a sentence of the summary several, joined by ` … `."""
    context: str
    """The item's title, and the words around the passage."""


@dataclass(frozen=True, slots=True)
class Support:
    """Which claims their passages support, in order, and what asking cost."""

    supported: tuple[bool, ...]
    model: str
    usage: Usage = Usage()
    doubted: tuple[bool, ...] = ()
    """For each claim, whether a second check found nothing of it in the passage; empty when no second check was
    made."""


class SupportChecker(Protocol):
    """Decides whether a passage, in its item, says what a sentence says."""

    @property
    def name(self) -> str:
        """Name and version, for example `gpt-4o-mini`."""

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        """One boolean per claim, in order; one request for `PER_CALL` at most.

        Raises `ModelError` without a usable answer; the caller leaves the sentences unverified.
        """


class AnswerChecker(Protocol):
    """Decides which passages answer a question, in whatever words."""

    async def answering(self, question: Question, passages: Sequence[tuple[str, str]]) -> Support:
        """For each title and text, in order, whether it answers the question; one request. Raises `ModelError`."""


@dataclass(frozen=True, slots=True)
class Rewrites:
    """Queries to search for, the original first."""

    queries: tuple[str, ...]
    usage: Usage = Usage()


class Rewriter(Protocol):
    """Finds other words under which the same thing is discussed."""

    async def rewrite(self, question: Question, variants: int, gaps: Sequence[str] = ()) -> Rewrites:
        """At most `variants` queries, the original first, distinct; only the original on failure.

        `gaps` are titles that were kept and reasons why items were dropped, quoted in the prompt.
        """


T_contra = TypeVar("T_contra", contravariant=True)
Recording = AbstractContextManager["Recorder[Facts]"]


class Recorder(Protocol[T_contra]):
    """Takes the facts of a finished step."""

    def record(self, facts: T_contra) -> None:
        """Called once before the block ends, unless the step failed."""


REPORT_WORDS = ("findings",)
"""Key in `Observer.observations` that stands for the report's text instead of items."""


class Observer(Protocol):
    """Records what the product does; implemented by tracing, and by a default that does nothing."""

    @property
    def trace_id(self) -> str | None:
        """Id of the current trace in this context."""

    @property
    def observations(self) -> Mapping[str, tuple[str, ...]]:
        """Keys of the items first judged in each span of the current trace, by span id.

        The span of the agent that wrote the report has `REPORT_WORDS`.
        """

    def analysis(self, name: str, question: Question, *tags: str) -> Recording:
        """Around one question; `name` is `analyze`, `fetch` (a tool) or `chat` (a turn)."""

    def gathering(self, source: str, query: str) -> AbstractContextManager[Recorder[Gathered]]:
        """Around fetching from one source, judging, and reading comments."""

    def retrieving(self, query: str) -> AbstractContextManager[Recorder[Published]]:
        """Around a search of the archive."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts recorded when a question has been answered."""

    decision: str
    items_kept: int
    upstream_calls: int
    usd: float | None
    output: Published | str | None = None
    """The report, or the text of a chat's answer."""
    support_rate: float | None = None
    """Passages that support their sentence, over those that were checked."""
    items_cited: int | None = None
    """Distinct items that the answer cites; None when such an answer has no citations."""


class SilentObserver:
    """The observer without Langfuse keys: an `Observer` and a `Recorder` that do nothing."""

    trace_id: str | None = None
    observations: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    def analysis(self, name: str, question: Question, *tags: str) -> Recording:
        """See `Observer.analysis`."""
        return nullcontext(self)

    def gathering(self, source: str, query: str) -> AbstractContextManager[Recorder[Gathered]]:
        """See `Observer.gathering`."""
        return nullcontext(self)

    def retrieving(self, query: str) -> AbstractContextManager[Recorder[Published]]:
        """See `Observer.retrieving`."""
        return nullcontext(self)

    def record(self, facts: object) -> None:
        """See `Recorder.record`."""


@dataclass(frozen=True, slots=True)
class SampledPost:
    """A post that the model and the local judge both judged, without its text."""

    digest: str
    """Digest of the post's key."""
    sureness: float
    """Distance of the local judge's probability from 0.5."""
    agrees: bool
    """Whether both gave the same verdict."""


class SampleMemory(Protocol):
    """Stores samples of judged posts; each tenant sees only its own."""

    async def agreement_sample(self, tenant: str, question: str, most: int) -> Sequence[SampledPost]:
        """The newest posts of a sample, newest first."""

    async def keep_agreement_sample(self, tenant: str, question: str, posts: Sequence[SampledPost], most: int) -> int:
        """Add posts that the sample lacks, keep its newest `most`, and return its size."""


UpstreamCheck = Callable[[], Awaitable[tuple[str, str]]]
"""Outcome (as in `Probe`) and detail of asking an upstream that is no source."""
