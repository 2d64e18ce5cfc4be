"""The observer: a trace per question, a span per source, their scores, and scores of feedback.

Scores are made by `source_scores` and `run_scores`; docs/langfuse.md says what each means. What is unknown has no
score, and a page that was not judged has no yield, so that means are over measured values alone. Feedback is sent at
once and not by the queue of the other scores, so that it is known whether Langfuse took it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, fields
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import requests

from api.core.domain import BEFORE_JUDGING, Question, open_reason
from api.core.http_limits import TooLarge, no_connection, read_all
from api.core.items import Gathered
from api.core.ports import REPORT_WORDS, Facts, Recorder
from api.core.published import Published
from api.features.analyses.feedback import Rated, RatedReport, RatedTurn, source_of
from api.features.analyses.store_ports import Feedback
from api.langfuse.tracing.masking import HomeSession, mask
from api.settings import TracingSettings

if TYPE_CHECKING:
    from api.langfuse.tracing.langfuse_client import Client, Kind


T = TypeVar("T")
Score = bool | float | str
# Name of the score with a question's result, by kind; a `fetch` has it at its source.
_RESULTS = {"analyze": "decision", "chat": "turn_outcome"}


def source_scores(gathered: Gathered) -> dict[str, Score]:
    """Scores of one source; only the outcome of one that did not answer."""
    scores: dict[str, Score] = {"outcome": str(gathered.outcome)}
    if not gathered.outcome.answered:
        return scores
    reason = open_reason(gathered.attempts)
    scores |= {"refetched": gathered.refetched, "fail_open": reason is not None}
    if gathered.refetched:
        scores["refetch_gain"] = float(gathered.refetch_gain)
    if gathered.status == "ok" and gathered.yield_ratio is not None:
        scores["relevance_yield"] = gathered.yield_ratio
        judged = [entry for entry in (*gathered.kept, *gathered.dropped) if entry.dropped_by not in BEFORE_JUDGING]
        by_model = [entry for entry in judged if entry.verdict.probability is None]
        if by_model:
            scores["disputed_share"] = sum(entry.verdict.disputed for entry in by_model) / len(by_model)
    if gathered.agreement is not None:
        scores["local_share"] = gathered.agreement.local / max(1, gathered.agreement.judged)
    if reason is not None:
        scores["fail_open_reason"] = reason
    return scores


def run_scores(name: str, facts: Facts, searches: Sequence[Gathered]) -> dict[str, Score]:
    """Scores of a question of kind `name`; only its result if no source was asked."""
    scores: dict[str, Score] = {_RESULTS[name]: facts.decision} if name in _RESULTS else {}
    if not (searches or facts.upstream_calls or facts.usd):
        return scores
    answers = [gathered for gathered in searches if gathered.outcome.answered]
    degraded = any(gathered.status == "degraded" for gathered in answers)
    known: dict[str, Score | None] = {
        "items_kept": float(facts.items_kept), "upstream_calls": float(facts.upstream_calls),
        "items_cited": None if facts.items_cited is None else float(facts.items_cited),
        "support_rate": facts.support_rate, "run_cost_usd": facts.usd,
    }  # fmt: skip
    if facts.usd is not None and facts.items_kept and not degraded:
        known["cost_per_kept_item_usd"] = facts.usd / facts.items_kept
    if answers:
        kept, judged = _judged(answers)
        known |= {
            "run_refetched": any(gathered.refetched for gathered in answers),
            "run_fail_open": any(open_reason(gathered.attempts) for gathered in answers),
            "items_judged": float(judged),
            "run_yield": kept / judged if judged and not degraded else None,
        }
    return scores | {name: value for name, value in known.items() if value is not None}


def older_scores(facts: Facts, searches: Sequence[Gathered]) -> dict[str, Score]:
    """Scores of a trace whose names now mean something else; gone in 0.2.0."""
    scores: dict[str, Score] = {"decision": facts.decision}
    answers = [gathered for gathered in searches if gathered.outcome.answered]
    if answers:
        kept, judged = _judged(answers)
        scores |= {
            "refetched": any(gathered.refetched for gathered in answers),
            "refetch_gain": float(sum(gathered.refetch_gain for gathered in answers)),
            "fail_open": any(open_reason(gathered.attempts) for gathered in answers),
        }
        if judged:
            scores["relevance_yield"] = kept / judged
    return scores


def _judged(answers: Sequence[Gathered]) -> tuple[int, int]:
    sound = [gathered for gathered in answers if gathered.status == "ok"]
    kept = {entry.item.original for gathered in sound for entry in gathered.kept}
    seen = [entry for gathered in sound for entry in gathered.dropped if entry.dropped_by not in BEFORE_JUDGING]
    dropped = {entry.item.original for entry in seen}
    return len(kept), len(kept | dropped)


# Parts of an answer that stay out of its span: the spans of the sources have them.
_IN_OTHER_SPANS = {"items", "dropped", "observations"}


@dataclass(frozen=True, slots=True)
class _Run:
    """Record of the current question over all its tools and tasks."""

    searches: list[Gathered] = field(default_factory=list)
    judged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Span -> keys of the items that were judged there first."""
    agents: list[str] = field(default_factory=list)  # spans of agents


_run: ContextVar[_Run | None] = ContextVar("listenpost_run", default=None)


@dataclass(frozen=True, slots=True)
class _Recorder(Generic[T]):
    record: Callable[[T], None]


@dataclass(frozen=True, slots=True)
class LangfuseObserver:
    """An `Observer` that records each analysis as a trace in Langfuse."""

    client: Client
    old_scores: bool = False
    """Whether the scores of a trace are also written under their older names."""

    @property
    def trace_id(self) -> str | None:
        return self.client.trace_id

    @property
    def observations(self) -> Mapping[str, tuple[str, ...]]:
        run = _run.get()
        if run is None or self.client.trace_id is None:
            return {}
        return run.judged | dict.fromkeys(run.agents[-1:], REPORT_WORDS)

    @contextmanager
    def analysis(self, name: str, question: Question, *tags: str) -> Iterator[Recorder[Facts]]:
        """A trace; inside another one a span, whose facts count for the outer one.

        Inside a trace of the outer program, which is not ours to score, its span has the scores.
        """
        outer, whole_trace = _run.get(), not self.client.is_guest
        nested = outer is not None and self.client.trace_id is not None
        run = _Run()

        def record(facts: Facts) -> None:
            answer: Any = facts.output
            if isinstance(answer, Published):
                answer = answer.model_dump(mode="json", exclude=_IN_OTHER_SPANS)
            output = {
                "decision": facts.decision, "items_kept": facts.items_kept,
                "upstream_calls": facts.upstream_calls, "usd": facts.usd, "answer": answer,
            }  # fmt: skip
            # as text, since Langfuse searches every part of a value for media and copies all of it
            span.update(output=json.dumps(output))
            if nested:
                return
            scores = run_scores(name, facts, run.searches)
            if self.old_scores:
                scores |= older_scores(facts, run.searches)
            reasons = dict.fromkeys(filter(None, (open_reason(g.attempts) for g in run.searches)))
            for score, value in scores.items():
                comment = ", ".join(reasons) if score.endswith("fail_open") and value else None
                self.client.score(
                    score, value, span, {"scope": "run", "kind": name},
                    whole_trace=whole_trace, comment=comment,
                )  # fmt: skip

        given = question_input(question)
        kind: Kind = "span" if name == "fetch" else "agent"
        with self.client.observation(name, kind, tags, input=given) as span:
            if not nested:
                self._enter(run)
            try:
                yield _Recorder(record)
            finally:
                self._enter(outer)

    def _enter(self, run: _Run | None) -> None:
        """Make this the current run, without a token, since a stream may end in any context."""
        _run.set(run)
        self.client.note_agents(run.agents if run else None)

    @contextmanager
    def gathering(self, source: str, query: str) -> Iterator[Recorder[Gathered]]:
        """The span `gather.<source>` with its scores."""

        def record(gathered: Gathered) -> None:
            judged = (*gathered.kept, *gathered.dropped)
            if (run := _run.get()) is not None:
                known = {key for keys in run.judged.values() for key in keys}
                keys = [entry.item.key for entry in judged]
                run.judged[span.id] = tuple(key for key in keys if key not in known)
                run.searches.append(gathered)
            reason = open_reason(gathered.attempts)
            output = {
                "outcome": str(gathered.outcome), "reason": gathered.reason,
                "gate": {
                    "status": gathered.status, "reason": gathered.gate_reason,
                    "model": gathered.model,
                },
                "attempts": [asdict(attempt) for attempt in gathered.attempts],
                "fetched": gathered.fetched,
                "kept": [entry.item.key for entry in gathered.kept],
                "dropped": [entry.item.key for entry in gathered.dropped],
                "disputed": [entry.item.key for entry in judged if entry.verdict.disputed],
                "agreement": gathered.agreement and asdict(gathered.agreement),
                "yield_ratio": gathered.yield_ratio, "refetched": gathered.refetched,
                "refetch_gain": gathered.refetch_gain, "notes": list(gathered.notes),
                "upstream_calls": gathered.upstream_calls,
            }  # fmt: skip
            span.update(output=output)
            if not gathered.outcome.answered:
                span.update(level="ERROR", status_message=str(gathered.outcome))
            elif reason is not None:
                span.update(level="WARNING", status_message=f"fail_open: {reason}")
            for name, value in source_scores(gathered).items():
                comment = reason if name == "fail_open" else None
                metadata = {"scope": "source", "source": gathered.source}
                self.client.score(name, value, span, metadata, comment=comment)

        given = {"query": query}
        with self.client.observation(f"gather.{source}", "span", (source,), input=given) as span:
            yield _Recorder(record)

    @contextmanager
    def retrieving(self, query: str) -> Iterator[Recorder[Published]]:

        def record(answer: Published) -> None:
            # the figures at the top level, where `wordless` keeps them
            document = answer.model_dump(mode="json")
            span.update(output={**document.pop("retrieval", {}), **document})

        with self.client.observation("search_archive", "retriever", input={"query": query}) as span:
            yield _Recorder(record)


NAME = "user_feedback"
SECONDS = 5.0  # timeout of the request, for which the person who gave the feedback waits
_CHUNK = 8_192


def score_of(rated: Rated, settings: TracingSettings) -> dict[str, Any]:
    """The score of a thumb: 1 is up, 0 is down; `scope` says what it is about.

    It belongs to the span that judged the item or wrote the finding, else to the trace. A later
    opinion of the same author has the same id. Without `trace_content` no comment or key is sent.
    """
    metadata: dict[str, Any]
    feedback: Feedback | RatedTurn
    span = None
    if isinstance(rated, RatedReport):
        feedback, report = rated.feedback, rated.report
        trace_id, key, number = report.trace_id, feedback.item_key, feedback.finding
        parts = {key}
        if number is not None and report.findings[number - 1].support != "counted":
            parts = set(REPORT_WORDS)  # counted findings are themes, which no agent wrote
        spans = (span for span, keys in report.observations.items() if parts.intersection(keys))
        span = next(spans, None)
        subject = f"{feedback.subject}\n{feedback.finding}\n{key}\n{feedback.author}"
        metadata = {
            "scope": feedback.subject, "author": feedback.author, "finding": feedback.finding,
            "decision": str(report.decision), "source": source_of(report, key) if key else None,
            "item_key": key if settings.trace_content else None,
        }  # fmt: skip
    else:
        feedback, trace_id, subject = rated, rated.trace_id, f"turn\n{rated.author}"
        metadata = {"scope": "turn", "author": rated.author, "turn": rated.number}
    digest = sha256(subject.encode("utf-8", "replace")).hexdigest()[:16]
    score = {
        "id": f"{trace_id}-{NAME}-{digest}", "traceId": trace_id, "observationId": span,
        "name": NAME, "value": 1 if feedback.rating == "up" else 0, "dataType": "BOOLEAN",
        "comment": (mask(feedback.comment) or None) if settings.trace_content else None,
        "metadata": {name: mask(value) for name, value in metadata.items() if value is not None},
        "environment": settings.trace_environment,
        "timestamp": feedback.created_at.isoformat() if feedback.created_at else None,
    }  # fmt: skip
    return {name: value for name, value in score.items() if value is not None}


def question_input(question: Question) -> dict[str, Any]:
    """The question as the input of a span: what it asks, and its options other than defaults."""
    options = {
        field.name: getattr(question, field.name)
        for field in fields(question)
        if field.name not in {"text", "about", "corrections"} and getattr(question, field.name) != field.default
    }
    return {"question": question.text, "about": question.about or None, **options}


def send_feedback(settings: TracingSettings, rated: Rated, seconds: float = SECONDS) -> str:
    """Send the score with one request, which blocks; returns why it was not taken, else nothing."""
    url = f"{settings.langfuse_base_url.rstrip('/')}/api/public/scores"
    body = [score_of(rated, settings)]
    with HomeSession(settings) as session:
        try:
            with session.post(url, json=body, timeout=seconds, stream=True) as response:
                status = response.status_code
                rejected = False
                if status == HTTPStatus.MULTI_STATUS:
                    try:
                        answer = json.loads(read_all(response.iter_content(_CHUNK)))
                        rejected = bool(answer["rejected"])
                    except (TooLarge, ValueError, TypeError, LookupError):
                        rejected = True
        except requests.Timeout:
            return f"Langfuse gave no answer within {seconds:g} s"
        except (OSError, ValueError) as error:
            return f"Langfuse: {no_connection(error, url)}; check `LANGFUSE_BASE_URL`"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "Langfuse refuses the keys; check `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"
    if rejected or status not in {HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.MULTI_STATUS}:
        return f"Langfuse does not take the score (HTTP {status})"
    return ""
