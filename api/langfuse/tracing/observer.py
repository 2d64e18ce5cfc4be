"""The observer: one trace per question, a span per source, and the scores on both.

What each score means stands in docs/langfuse.md; which there are, in `scoring`.

Which scores a source and a question get: one name has one meaning and one level.

What is not known has no score, and what was not judged no yield, so that every mean is one of
what was measured.

What somebody thought of a report, or of a turn of a chat, as a score on its trace.

Sent at once and not by the queue of the other scores, so that it is known whether it was taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import requests

from api.core.domain import Gathered, Question, open_reason
from api.core.http_limits import REDIRECTS, TooLarge, no_connection, read_all
from api.core.ports import REPORT_WORDS, Facts, Recorder
from api.core.published import Published
from api.features.analyses.feedback import Rated, RatedReport, RatedTurn, source_of
from api.features.analyses.store_ports import Feedback
from api.langfuse.tracing.masking import HomeSession, basic, mask
from api.settings import TracingSettings

if TYPE_CHECKING:
    from api.langfuse.tracing.langfuse_client import Client, Kind, Observation


Score = bool | float | str
# How a question ended, by its kind; how a `fetch` did stands at its source.
_ENDING = {"analyze": "decision", "chat": "turn_outcome"}


def source_scores(gathered: Gathered) -> dict[str, Score]:
    """Of asking one source; of one that did not answer its outcome alone."""
    scores: dict[str, Score] = {"outcome": str(gathered.outcome)}
    if not gathered.outcome.answered:
        return scores
    reason = open_reason(gathered.attempts)
    scores |= {"refetched": gathered.refetched, "fail_open": reason is not None}
    if gathered.refetched:
        scores["refetch_gain"] = float(gathered.refetch_gain)
    if gathered.status == "ok" and gathered.yield_ratio is not None:
        scores["relevance_yield"] = gathered.yield_ratio
    if reason is not None:
        scores["fail_open_reason"] = reason
    return scores


def run_scores(name: str, facts: Facts, searches: Sequence[Gathered]) -> dict[str, Score]:
    """Of one question of this name; of one for which nobody was asked its ending alone."""
    scores: dict[str, Score] = {_ENDING[name]: facts.decision} if name in _ENDING else {}
    if not (searches or facts.upstream_calls or facts.usd):
        return scores
    scores |= {
        "items_kept": float(facts.items_kept),
        "upstream_calls": float(facts.upstream_calls),
    }
    if facts.items_cited is not None:
        scores["items_cited"] = float(facts.items_cited)
    if facts.support_rate is not None:
        scores["support_rate"] = facts.support_rate
    if facts.usd is not None:
        scores["run_cost_usd"] = facts.usd
    answers = [gathered for gathered in searches if gathered.outcome.answered]
    degraded = any(gathered.status == "degraded" for gathered in answers)
    if facts.usd is not None and facts.items_kept and not degraded:
        scores["cost_per_kept_item_usd"] = facts.usd / facts.items_kept
    if answers:
        kept, judged = _judged(answers)
        scores |= {
            "run_refetched": any(gathered.refetched for gathered in answers),
            "run_fail_open": any(open_reason(gathered.attempts) for gathered in answers),
            "items_judged": float(judged),
        }
        if judged and not degraded:
            scores["run_yield"] = kept / judged
    return scores


def older_scores(facts: Facts, searches: Sequence[Gathered]) -> dict[str, Score]:
    """What stood on a trace under names that now mean something else; gone in 0.2.0."""
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
    """Items that are relevant, and items with a sound verdict: each once, over all sources."""
    sound = [gathered for gathered in answers if gathered.status == "ok"]
    kept = {entry.item.original for gathered in sound for entry in gathered.kept}
    dropped = {
        entry.item.original
        for gathered in sound
        for entry in gathered.dropped
        if entry.dropped_by != "unfit"
    }
    return len(kept), len(kept | dropped)


# Parts of an answer that stay out of the trace: the spans of the sources tell about them.
_BULKY = {"items", "dropped", "observations"}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the question under way gathered, whichever tool or task asked for it, and who wrote."""

    searches: list[Gathered] = field(default_factory=list)
    judged: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys of the items that came first in a span."""
    agents: list[str] = field(default_factory=list)
    """Their spans."""


_seen: ContextVar[_Seen | None] = ContextVar("listenpost_seen", default=None)


@dataclass(frozen=True, slots=True)
class LangfuseObserver:
    """Implements `Observer`."""

    client: Client
    old_scores: bool = False
    """Whether the scores of a trace are also written under their older names."""

    @property
    def trace_id(self) -> str | None:
        """The trace under way in this context."""
        return self.client.trace_id

    @property
    def observations(self) -> Mapping[str, tuple[str, ...]]:
        """See `Observer.observations`."""
        seen = _seen.get()
        if seen is None or self.client.trace_id is None:
            return {}
        return seen.judged | dict.fromkeys(seen.agents[-1:], REPORT_WORDS)

    @contextmanager
    def analysis(self, name: str, question: Question, *tags: str) -> Iterator[Recorder[Facts]]:
        """A trace; inside another one a span, whose facts then count for the outer one.

        A trace of the program around us is not ours to score: there the scores are the span's.
        """
        previous, guest = _seen.get(), self.client.is_guest
        inner = previous is not None and self.client.trace_id is not None
        seen = _Seen()
        given = {"question": question.text, "about": question.about or None}
        kind: Kind = "span" if name == "fetch" else "agent"
        with self.client.observation(name, kind, tags, input=given) as span:
            if not inner:
                self._watch(seen)
            try:
                yield _Analysis(
                    self.client, span, name, None if inner else seen.searches, not guest,
                    self.old_scores,
                )  # fmt: skip
            finally:
                self._watch(previous)

    def _watch(self, seen: _Seen | None) -> None:
        """What happens in this context belongs to it; no token, since a stream ends anywhere."""
        _seen.set(seen)
        self.client.note_agents(seen.agents if seen else None)

    @contextmanager
    def gathering(self, source: str, query: str) -> Iterator[Recorder[Gathered]]:
        """The span `gather.<source>` with its scores."""
        with self.client.observation(
            f"gather.{source}", "span", (source,), input={"query": query}
        ) as span:
            yield _Gathering(self.client, span)

    @contextmanager
    def retrieving(self, query: str) -> Iterator[Recorder[Published]]:
        """The span `search_archive`."""
        with self.client.observation("search_archive", "retriever", input={"query": query}) as span:
            yield _Retrieving(span)


@dataclass(frozen=True, slots=True)
class _Retrieving:
    span: Observation

    def record(self, facts: Published) -> None:
        """See `Recorder.record`; its figures stand where they stay without words."""
        document = facts.model_dump(mode="json")
        self.span.update(output={**document.pop("retrieval", {}), **document})


@dataclass(frozen=True, slots=True)
class _Analysis:
    client: Client
    span: Observation
    name: str
    searches: list[Gathered] | None
    """None within another analysis: the scores of a trace are written once."""
    whole_trace: bool
    """Whether the trace is ours, and scored as a whole."""
    old_scores: bool

    def record(self, facts: Facts) -> None:
        """See `Recorder.record`."""
        answer: Any = facts.output
        if isinstance(answer, Published):
            answer = answer.model_dump(mode="json", exclude=_BULKY)
        output = {
            "decision": facts.decision,
            "items_kept": facts.items_kept,
            "upstream_calls": facts.upstream_calls,
            "usd": facts.usd,
            "answer": answer,
        }
        # as text: Langfuse would look for media in every part of a value, and copy all of it
        self.span.update(output=json.dumps(output))
        if self.searches is None:
            return
        scores = run_scores(self.name, facts, self.searches)
        if self.old_scores:
            scores |= older_scores(facts, self.searches)
        reasons = dict.fromkeys(filter(None, (open_reason(g.attempts) for g in self.searches)))
        for name, value in scores.items():
            why = ", ".join(reasons) if name.endswith("fail_open") and value else None
            self.client.score(
                name, value, self.span, {"scope": "run", "kind": self.name},
                whole_trace=self.whole_trace, comment=why,
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Gathering:
    client: Client
    span: Observation

    def record(self, facts: Gathered) -> None:
        """See `Recorder.record`."""
        if (seen := _seen.get()) is not None:
            known = {key for keys in seen.judged.values() for key in keys}
            keys = [entry.item.key for entry in (*facts.kept, *facts.dropped)]
            seen.judged[self.span.id] = tuple(key for key in keys if key not in known)
            seen.searches.append(facts)
        self.span.update(output=_output(facts))
        reason = open_reason(facts.attempts)
        if not facts.outcome.answered:
            self.span.update(level="ERROR", status_message=str(facts.outcome))
        elif reason is not None:
            self.span.update(level="WARNING", status_message=f"fail_open: {reason}")
        for name, value in source_scores(facts).items():
            why = reason if name == "fail_open" else None
            mark = {"scope": "source", "source": facts.source}
            self.client.score(name, value, self.span, mark, comment=why)


def _output(gathered: Gathered) -> dict[str, Any]:
    return {
        "outcome": str(gathered.outcome),
        "reason": gathered.reason,
        "gate": {
            "status": gathered.status,
            "reason": gathered.gate_reason,
            "model": gathered.model,
        },
        "attempts": [asdict(attempt) for attempt in gathered.attempts],
        "fetched": gathered.fetched,
        "kept": [assessed.item.key for assessed in gathered.kept],
        "dropped": [assessed.item.key for assessed in gathered.dropped],
        "disputed": [
            assessed.item.key
            for assessed in (*gathered.kept, *gathered.dropped)
            if assessed.verdict.disputed
        ],
        "yield_ratio": gathered.yield_ratio,
        "refetched": gathered.refetched,
        "refetch_gain": gathered.refetch_gain,
        "upstream_calls": gathered.upstream_calls,
        "notes": list(gathered.notes),
    }


NAME = "user_feedback"
SECONDS = 5.0
"""For the one request; whoever gave the feedback waits for it."""
_PIECE = 8_192


def score_of(rated: Rated, settings: TracingSettings) -> dict[str, Any]:
    """The score: true is a thumb up, so that its mean is the share of them.

    It stands on the span that judged the item or wrote the finding, where that is known, and else
    on the trace; `scope` says what it is about. What its author thinks later of the same takes its
    place, since id, name and day are the same. Where no words may leave there is no comment, and no
    key of an item.
    """
    metadata: dict[str, Any]
    feedback: Feedback | RatedTurn
    span = None
    if isinstance(rated, RatedReport):
        feedback, report = rated.feedback, rated.report
        trace_id, key = report.trace_id, feedback.item_key
        span = _span_of(rated)
        what = f"{feedback.subject}\n{feedback.finding}\n{key}\n{feedback.author}"
        metadata = {
            "scope": feedback.subject,
            "author": feedback.author,
            "decision": str(report.decision),
            "source": source_of(report, key) if key else None,
            "item_key": key if settings.trace_content else None,
            "finding": feedback.finding,
        }
    else:
        feedback, trace_id, what = rated, rated.trace_id, f"turn\n{rated.author}"
        metadata = {"scope": "turn", "author": rated.author, "turn": rated.number}
    digest = sha256(what.encode("utf-8", "replace")).hexdigest()[:16]
    score = {
        "id": f"{trace_id}-{NAME}-{digest}",
        "traceId": trace_id,
        "observationId": span,
        "name": NAME,
        "value": 1 if feedback.rating == "up" else 0,
        "dataType": "BOOLEAN",
        "comment": (mask(feedback.comment) or None) if settings.trace_content else None,
        "metadata": {name: mask(value) for name, value in metadata.items() if value is not None},
        "environment": settings.trace_environment,
        "timestamp": feedback.created_at.isoformat() if feedback.created_at else None,
    }
    return {name: value for name, value in score.items() if value is not None}


def _span_of(rated: RatedReport) -> str | None:
    """Where the item was judged, or the finding written; None of what no span alone is about."""
    feedback, report = rated.feedback, rated.report
    parts = {feedback.item_key}
    if feedback.finding is not None and report.findings[feedback.finding - 1].support != "counted":
        parts = set(REPORT_WORDS)  # what is counted are themes, which nobody wrote
    spans = (span for span, keys in report.observations.items() if parts.intersection(keys))
    return next(spans, None)


def send_feedback(settings: TracingSettings, rated: Rated, seconds: float = SECONDS) -> str:
    """Send the score; blocks for one request. Empty when it was taken, else why it was not."""
    url = f"{settings.langfuse_base_url.rstrip('/')}/api/public/scores"
    headers = {"Authorization": basic(settings)}
    body = [score_of(rated, settings)]
    with HomeSession(settings) as session:
        session.max_redirects = REDIRECTS
        try:
            with session.post(
                url, json=body, headers=headers, timeout=seconds, stream=True
            ) as response:
                status = response.status_code
                rejected = status == HTTPStatus.MULTI_STATUS and _rejected(response)
        except requests.Timeout:
            return f"Langfuse gave no answer within {seconds:g} s"
        except (OSError, ValueError) as error:
            return f"Langfuse: {no_connection(error, url)}; check `LANGFUSE_BASE_URL`"
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "Langfuse refuses the keys; check `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"
    if rejected or status not in {HTTPStatus.OK, HTTPStatus.ACCEPTED, HTTPStatus.MULTI_STATUS}:
        return f"Langfuse does not take the score (HTTP {status})"
    return ""


def _rejected(response: requests.Response) -> bool:
    """Whether a mixed answer says that the one score was not taken, or says nothing."""
    try:
        answer = json.loads(read_all(response.iter_content(_PIECE)))
        return bool(answer["rejected"])
    except (TooLarge, ValueError, TypeError, LookupError):
        return True
