"""`Product`, which every interface calls: `analyze` a question, or `fetch` from one source through the gate."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from types import MappingProxyType
from typing import Any, Self, TypeVar, get_args

from api.choices import MAX_LIMIT, MAX_PRODUCTS, Aim, DepthName, ReplayJudge, Window
from api.core.context import as_caller, current_caller
from api.core.display_names import SourceLabels, reason_in_words
from api.core.domain import Correction, Question, Sense, Usage
from api.core.items import Gathered
from api.core.model_batches import usage_of_error
from api.core.ports import (
    AnswerChecker,
    Facts,
    Grader,
    NamedSenses,
    Observer,
    SenseFinder,
    SenseNamer,
    Source,
    SupportChecker,
    UpstreamCheck,
)
from api.core.progress import Listener, Reported, SourceGathered, ignore_event
from api.core.prompts import PackagedPrompts, Prompts
from api.core.text import SHORT_ID, Fence, clean, is_visible, one_line
from api.core.work import SharedTasks, StepRunner, run_step, translated
from api.errors import ModelError, NotConfigured, UsageError
from api.pipeline.evidence.collection import Evidence, Steps, collect
from api.pipeline.evidence.crawl import Bounds, Run, Searches, Sources
from api.pipeline.gate.verdicts import Gate, RunGate
from api.pipeline.question import Scope
from api.pipeline.question.exclusions import NOTHING_EXCLUDED, Blocklist, exclusions_of, split_exclusions
from api.pipeline.question.product_name import question_parts, search_words
from api.pipeline.question.query_screen import one_name, screen_query
from api.reports.composition import Origin, clarified, fetched, report_of
from api.reports.exhibits import Dossier, describe, fitting, gate_line
from api.reports.insufficient_data import Explainer
from api.reports.report import Fetched, Report, Timings
from api.reports.report_writing import Writer, conclude
from api.settings import AdaptiveSettings, Depth

T = TypeVar("T")
ROOM: Mapping[DepthName, int] = MappingProxyType({"quick": 8_000, "standard": 17_000, "deep": 100_000})
"""Characters that a foreign model is shown of one answer at most, by depth."""
# Of these for the rule and for the note of what is not shown.
_MARGIN = 200
ServerCheck = Callable[[], Awaitable[tuple[str, str, str]]]
MOST_RUNS = 64
"""Runs of agents, and conversations, that a product remembers."""
# The source of a question over own items.
_OWN = ("items",)
# Options of a question that its report has under the same name.
_REPORTED = ("since", "limit", "exclude", "exclude_authors", "exclude_sites")


@dataclass(frozen=True, slots=True)
class QuestionOptions:
    """Options that a caller may set; `api.interfaces.shared.requests` describes each."""

    query: str
    depth: DepthName = "standard"
    sources: tuple[str, ...] = ()
    """Sources to ask; empty: those of `LISTENPOST_SOURCES`, else all enabled ones."""
    limit: int | None = None
    """Items requested of each source at first; None: the number of the depth."""
    about: str = ""
    not_about: tuple[str, ...] = ()
    """What the product is not; `about` may say so, too: `the payments company; not crochet`."""
    aim: Aim = "about"
    exclude: tuple[str, ...] = ()
    """Words whose posts and comments are left out before judging."""
    exclude_authors: tuple[str, ...] = ()
    exclude_sites: tuple[str, ...] = ()
    sandbox: bool = False
    """Answered from made-up data, whatever is configured."""

    @classmethod
    def of(cls, options: object, **more: Any) -> Self:
        """The question with every field that `options` has under the same name, and `more`."""
        names = [field.name for field in fields(cls) if hasattr(options, field.name)]
        return cls(**{**{name: getattr(options, name) for name in names}, **more})

    @property
    def question(self) -> Question:
        """The question as judges take it, even when it names no product."""
        query, about = screen_query(self.query).query, clean(self.about)
        described, denied = split_exclusions(about)
        excluded = exclusions_of((*self.not_about, *denied))
        return Question(query, described if denied else about, excluded, self.aim)

    @property
    def blocklist(self) -> Blocklist:
        """The question's exclusions. Raises `UsageError` for too many or too long entries, or an empty one."""
        return Blocklist.of(self.exclude, self.exclude_authors, self.exclude_sites)


@dataclass(frozen=True, slots=True)
class Ask(QuestionOptions):
    """One question as an interface passes it on."""

    since: Window = "all"
    items: tuple[Mapping[str, Any], ...] = ()
    """The person's own items as they came; then they are the only source."""
    again: str = ""
    """Id of a stored report whose items are judged again; no source is asked."""
    again_items: int = 0
    """Number of items in the report to judge again, for the price."""
    chosen_before: bool = False
    """Whether the description is the tenant's earlier choice for this name; excluded from `digest`."""
    corrections: tuple[Correction, ...] = ()
    """The tenant's corrections for this question; excluded from `digest`."""
    as_of: datetime | None = None
    """Beginning of the window of a scheduled run, which shares answers; excluded from `digest`."""

    @property
    def digest(self) -> str:
        """Digest of the question, the same in every process."""
        options = asdict(replace(self, corrections=(), chosen_before=False, as_of=None))
        # without them the digest is that of requests which older programs kept
        options = {name: value for name, value in options.items() if value or not name.startswith(("exclude", "as_of"))}
        return sha256(json.dumps(options, sort_keys=True).encode()).hexdigest()

    def __post_init__(self) -> None:
        """Refuse options with an invalid value; the product checks names of sources.

        Raises:
            UsageError: an argument is of another type.
        """
        check("query", self.query, str, "text")
        check("about", self.about, str, "text")
        if self.aim not in get_args(Aim):
            known = ", ".join(f"`{aim}`" for aim in get_args(Aim))
            raise UsageError(f"there is no aim `{str(self.aim)[:40]}`; there are {known}")
        if self.limit is not None:
            check("limit", self.limit, int, f"a whole number from 1 to {MAX_LIMIT}")


@dataclass(frozen=True, slots=True)
class Product:
    """Everything that one event loop works with; its builder closes it in that loop."""

    sources: Sources
    gate: Gate
    grader: Grader | None
    steps: Steps
    writer: Writer
    explainer: Explainer
    observer: Observer
    depths: Mapping[DepthName, Depth]
    adaptive: AdaptiveSettings
    crawl_seconds: float
    sample: bool = False
    """Whether all items come from the sandbox."""
    gate_of: Callable[[ReplayJudge | None, str | None], Gate] | None = None
    """Builds the gate of another judge, or of another model as judge."""
    senses: SenseFinder | None = None
    """Finds the senses of a name; None: senses are not searched."""
    namer: SenseNamer | None = None
    """Names the senses; None: the words of their items describe them."""
    server_check: ServerCheck | None = None
    """Asks the model server what the product will ask it: outcome, detail and what to set."""
    checker: SupportChecker | None = None
    """Checks sentences against their passages; None: findings stay unverified."""
    answerer: AnswerChecker | None = None
    """Finds which stored passages answer a question in other words; None: this is not checked."""
    chosen: tuple[str, ...] = ()
    """Sources asked when a question names none; empty: all."""
    places: SourceLabels = field(default_factory=dict)
    """Titles and descriptions of the sources."""
    prompts: Prompts = field(default_factory=PackagedPrompts)
    """Source of prompts for agents."""
    agent_model: Callable[[], Any] | None = None
    """Builds an agent's model; its library is imported at the first call. None without a key."""
    probes: Mapping[str, UpstreamCheck] = field(default_factory=dict)
    """Checks of other servers: `model` and `langfuse`."""
    watched: Callable[[Source], Source] | None = None
    """Wraps a source that is added later, for tracing; None: it is not wrapped."""
    requests: Callable[[], Iterable[str]] = tuple
    """Returns the requests to the sandbox so far, one line each."""
    closing: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Closed by `aclose`, the last entry first."""
    _searches: Searches = field(default_factory=SharedTasks, init=False)
    _runs: OrderedDict[str, Run] = field(default_factory=OrderedDict, init=False)
    _dossiers: OrderedDict[str, Dossier] = field(default_factory=OrderedDict, init=False)

    @property
    def usual(self) -> tuple[str, ...]:
        """Sources that a question is put to when it names none, in their order."""
        return self.chosen or tuple(self.sources)

    @property
    def askable(self) -> tuple[str, ...]:
        """Those of `usual` that are configured; all of `usual` when none is."""
        unset = {name for name, source in self.sources.items() if isinstance(source, NotConfigured)}
        return tuple(name for name in self.usual if name not in unset) or self.usual

    async def aclose(self) -> None:
        """Close sockets and threads, hand over the last traces, stop the sandbox; once."""
        await self.closing.aclose()

    def start(
        self,
        window: Window = "all",
        listener: Listener = ignore_event,
        run_step: StepRunner = run_step,
        blocklist: Blocklist = NOTHING_EXCLUDED,
    ) -> Run:
        """A run with an empty memory."""
        bounds = Bounds(self.adaptive, self.crawl_seconds, window, blocklist)
        return Run(
            self.sources, RunGate(self.gate), self.grader, bounds, self.observer, listener,
            self.places, run_step, self._searches,
        )  # fmt: skip

    async def listen(
        self, source: str, ask: Ask, run_id: str | None, given: int = 0,
        conversation: str | None = None,
    ) -> SourceAnswer:  # fmt: skip
        """Ask one source; calls of one agent's run ask nothing twice.

        Args:
            source: its name.
            ask: the question.
            run_id: of the agent; None: the call has no memory.
            given: the highest number that exhibits in the messages so far have.
            conversation: to which the run belongs; in it an exhibit keeps its number, whichever run
                showed it. None: the run alone.
        """
        conversation = conversation or run_id
        run = _remembered(self._runs, run_id, self.start())
        dossier = _remembered(self._dossiers, conversation, Dossier(self.places))
        dossier.given = max(dossier.given, given)
        with as_caller(replace(current_caller(), interface="tool")):
            return await fetch(self, source, ask, run=run, dossier=dossier)

    def scope(self, ask: Ask) -> Scope:
        """Depth, sources, window and limit of the question.

        Raises:
            UsageError: an unknown source, depth or window, or a limit out of range.
        """
        for what, name, known in (
            *(("source", name, tuple(self.sources)) for name in ask.sources),
            ("depth", ask.depth, tuple(self.depths)),
            ("`since`", ask.since, get_args(Window)),
        ):
            if name not in known:
                listed = ", ".join(f"`{other}`" for other in known)
                raise UsageError(f"there is no {what} `{str(name)[:40]}`; there are {listed}")
        if ask.limit is not None and not 1 <= ask.limit <= MAX_LIMIT:
            raise UsageError(f"`limit` must lie between 1 and {MAX_LIMIT}, not {ask.limit}")
        depth = self.depths[ask.depth]
        names = tuple(dict.fromkeys(ask.sources)) or self.usual
        question = replace(ask.question, corrections=ask.corrections)
        ask.blocklist  # noqa: B018 - what it raises
        return Scope(question, ask.depth, depth, names, ask.limit or depth.limit)


def _remembered(memory: OrderedDict[str, T], key: str | None, new: T) -> T:
    """The value of a key, `new` when it has none yet; only the most recently used keys are kept."""
    if key is None:
        return new
    value = memory.setdefault(key, new)
    memory.move_to_end(key)
    while len(memory) > MOST_RUNS:
        memory.popitem(last=False)
    return value


@dataclass(frozen=True, slots=True)
class SourceAnswer:
    """One source's answer: `text` for a model, `fetched` for a program."""

    gathered: Gathered
    usage: Usage
    """Tokens and USD of judging and grading."""
    text: str
    fetched: Fetched
    exhibits: Mapping[str, str] = field(default_factory=dict)
    """The keys of the items that `text` shows, by their labels."""


async def analyze(
    product: Product,
    ask: Ask,
    listener: Listener = ignore_event,
    report_id: str | None = None,
    run_step: StepRunner = run_step,
) -> Report:
    """The report on one question; every upstream failure is part of it.

    What each source gave, the grades and the report are steps that `run_step` takes.

    Raises:
        UsageError: an unknown source or a limit out of range.
    """
    began, report_id = time.monotonic(), report_id or uuid.uuid4().hex
    screened, scope = screen_query(ask.query), product.scope(ask)
    compared = compared_products(ask) if screened.ok and scope.sources != _OWN else ()
    tags = (scope.depth_name, *scope.sources)
    with product.observer.analysis("analyze", scope.question, *tags) as span:
        origin = Origin(report_id, product.sample, product.observer.trace_id)
        if screened.ok and not compared:
            run = product.start(ask.since, listener, run_step, ask.blocklist)
            evidence = await collect(run, scope, product.steps)

            async def reporting() -> Report:
                conclusion, (named, unnamed) = await asyncio.gather(
                    conclude(
                        run, evidence, product.writer, product.checker, product.explainer,
                        product.places,
                    ),
                    _senses_of(evidence, product),
                )  # fmt: skip
                total = int((time.monotonic() - began) * 1000)
                spent = conclusion.evidence.timings_ms.get("evidence", 0)
                timings = Timings(evidence=spent, report=total - spent, total=total)
                seen = replace(origin, observations=product.observer.observations)
                report = report_of(conclusion, seen, timings, named)
                notes = (*report.quality_notes, *unnamed, *_notes_on_request(ask))
                copied = {name: getattr(ask, name) for name in _REPORTED}
                return report.model_copy(update={"quality_notes": notes, "again_of": ask.again, **copied})

            report = await run_step("report", Report, reporting)
        else:
            guidance = screened.guidance or _comparison_guidance(compared)
            report = clarified(ask.query, scope.question, ask.depth, guidance, origin, compared)
        cost, rate, count = report.cost, report.support.rate, len(report.items)
        span.record(Facts(str(report.decision), count, cost.upstream_calls, cost.usd, report, rate, report.cited))
    listener(Reported(decision=report.decision, id=report_id))
    return report


def with_one_name(ask: Ask) -> Ask:
    """The question with its query in quotation marks, so that it compares nothing."""
    return replace(ask, query=one_name(ask.query))


def compared_products(options: QuestionOptions) -> tuple[str, ...]:
    """The products of a question that must be asked as a comparison; otherwise empty.

    Own items, a stored report and a description (`--about`) are of one thing, whatever its name.
    """
    parts = question_parts(options.query)
    one_thing = options.about or (isinstance(options, Ask) and (options.items or options.again))
    fits = parts.kind == "comparison" and len(parts.products) <= MAX_PRODUCTS
    return parts.products if fits and not one_thing else ()


def _comparison_guidance(products: Sequence[str]) -> str:
    names = ", ".join(f'"{name}"' for name in products)
    return (
        f"The question compares products, each of which has to be asked about: `listenpost compare "
        f'{names.replace(",", "")}`, `POST /v1/comparisons` with {{"products": [{names}]}}, or the tool '
        "`compare_products`. If it is one thing, write its name in quotation marks or say what it is in `about`."
    )


def _notes_on_request(ask: Ask) -> Iterator[str]:
    """Notes on where the items and the description come from, when the question did not say."""
    if ask.again:
        yield f"the items are those of report {ask.again[:SHORT_ID]}: no source was asked"
    if ask.chosen_before:
        yield f"taken as “{ask.about}”, the meaning that was chosen before; set `about` for another"
    if blocklist := ask.blocklist:
        listed = [*(f"“{word}”" for word in blocklist.words), *blocklist.authors, *blocklist.sites]
        yield f"posts and comments left out before judging: {', '.join(listed)}"
    _, denied = split_exclusions(clean(ask.about))
    if denied:
        named = " and ".join(f"“{text}”" for text in denied)
        yield f"{named} was read as what it is not (`--not`)"


def _senses_in(evidence: Evidence, find: SenseFinder | None) -> tuple[Sense, ...]:
    """The things that share the name, among all items that were judged."""
    if find is None:
        return ()
    dropped = (entry.item for entry in evidence.crawl.dropped if entry.dropped_by == "gate")
    kept = [entry.item for entry in evidence.crawl.kept]
    return find(evidence.scope.question, (*kept, *dropped), {item.key for item in kept})


async def _senses_of(evidence: Evidence, product: Product) -> tuple[NamedSenses, tuple[str, ...]]:
    """The senses, named by a model where there is one and the name is ambiguous; a note on why none has a name."""
    senses = await asyncio.to_thread(_senses_in, evidence, product.senses)
    if not senses or product.namer is None:
        return NamedSenses(senses), ()
    try:
        naming = product.namer.name_senses(evidence.scope.question, senses)
        return await translated(naming, "the namer of senses", partial(ModelError, "defect")), ()
    except ModelError as error:
        why = reason_in_words(error.reason)
        note = f"the groups have no names, only words, since no model named them ({why})"
        return NamedSenses(senses, usage_of_error(error)), (note,)


async def fetch(
    product: Product,
    source: str,
    ask: Ask,
    *,
    listener: Listener = ignore_event,
    run: Run | None = None,
    dossier: Dossier | None = None,
) -> SourceAnswer:
    """Ask one source through the gate; at standard and deep also grade and rank what is kept.

    Calls that share a `run` ask and judge nothing twice; those that share a `dossier` number their
    exhibits on.

    Raises:
        UsageError: an unknown source, a limit out of range, or a query that names nothing.
    """
    scope = product.scope(replace(ask, sources=(source,)))
    question_of(ask)
    run = run or product.start(ask.since, listener, blocklist=ask.blocklist)
    with product.observer.analysis("fetch", scope.question, scope.depth_name, source) as span:
        gathered = await run.search(scope.question, source, search_words(scope.question.text), scope.limit)
        run.listener(SourceGathered.of(gathered))
        ranked = await product.steps.assessor.assess(run, scope, gathered.kept, graded=scope.depth_name != "quick")
        usage = gathered.usage + ranked.usage
        origin = Origin("", product.sample, product.observer.trace_id)
        dropped = (*ranked.dropped, *gathered.dropped)
        answer = fetched(gathered, ranked.kept, dropped, origin, usage)
        calls = gathered.upstream_calls
        span.record(Facts(str(gathered.outcome), len(ranked.kept), calls, usage.usd, None))
    fence = Fence()
    lines = [gate_line(gathered) + "."]
    if product.sample:
        lines.append("This is made-up sample data from the offline sandbox.")
    weak = len(gathered.kept) - len(ranked.kept)
    notes = [*gathered.notes]
    notes += [f"{weak} of the kept are left out as weak or as copies"] if weak else []
    lines += [f"Note: {note}." for note in notes]
    room = ROOM[scope.depth_name] - len("\n".join(lines)) - _MARGIN
    shown = fitting(ranked.exhibits, room, scope.question.text)
    exhibits = (dossier or Dossier(product.places)).show(shown)
    if more := len(ranked.kept) - len(exhibits):
        lines.append(f"Note: {more} more are kept but not shown.")
    if exhibits:
        linked = not product.sample  # what is made up cannot be opened
        lines += [fence.rule, describe(exhibits, fence, scope.question.text, linked=linked)]
    keys = {exhibit.label: exhibit.item.key for exhibit in exhibits}
    return SourceAnswer(gathered, usage, "\n".join(lines), answer, keys)


def check(name: str, value: object, kind: type, wanted: str) -> None:
    """Check a value's type; booleans are not accepted as integers.

    Raises:
        UsageError: it is of another; the message names the argument and what it must be.
    """
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise UsageError(f"`{name}` must be {wanted}, not {type(value).__name__}")


def texts_of(name: str, value: object) -> tuple[str, ...]:
    """The texts of a list; raises `UsageError`, which names the argument, for anything else."""
    wanted = "a list of texts"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise UsageError(f"`{name}` must be {wanted}, not {type(value).__name__}")
    texts = tuple(value)
    for text in texts:
        check(name, text, str, wanted)
    return texts


def question_of(options: QuestionOptions) -> Question:
    """The question as judges take it; raises `UsageError` if it names nothing to look for."""
    screened = screen_query(options.query)
    if not screened.ok:
        raise UsageError(screened.guidance, field="query")
    return options.question


def origin_of(source: str, argument: str = "source") -> str:
    """Origin of a caller's own items as judges take it: any name, on one line.

    Raises:
        UsageError: it names nothing, or is no text; the message names the argument.
    """
    check(argument, source, str, "text")
    name = one_line(clean(source))
    if not is_visible(name):
        raise UsageError(f"`{argument}` names nothing; say where the items are from")
    return name
