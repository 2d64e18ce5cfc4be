"""The observer: one trace per question, a span per source, and the scores on both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from api.services.ports import Facts, Recorder
from api.services.schemas import Gathered, Published, Question, open_reason

if TYPE_CHECKING:
    from api.tracing.client import Client, Kind, Observation

Score = bool | float | str
_BULKY = {"items", "dropped"}
"""Parts of an answer that stay out of the trace: the spans of the sources tell about them."""


_searches: ContextVar[list[Gathered] | None] = ContextVar("listenpost_searches", default=None)
"""What the question under way gathered, whichever tool or task asked for it."""


@dataclass(frozen=True, slots=True)
class LangfuseObserver:
    """Implements `Observer`."""

    client: Client

    @property
    def trace_id(self) -> str | None:
        """The trace under way in this context."""
        return self.client.trace_id

    @contextmanager
    def analysis(self, name: str, question: Question, *tags: str) -> Iterator[Recorder[Facts]]:
        """A trace; inside another one a span, whose facts then count for the outer one.

        A trace of the program around us is not ours to score: there the scores are the span's.
        """
        previous, guest = _searches.get(), self.client.is_guest
        inner = previous is not None and self.client.trace_id is not None
        given = {"question": question.text, "about": question.about or None}
        kind: Kind = "span" if name == "fetch" else "agent"
        with self.client.observation(name, kind, tags, input=given) as span:
            searches: list[Gathered] = []
            if not inner:
                _searches.set(searches)
            try:
                yield _Analysis(self.client, span, None if inner else searches, not guest)
            finally:
                _searches.set(previous)

    @contextmanager
    def gathering(self, source: str, query: str) -> Iterator[Recorder[Gathered]]:
        """The span `gather.<source>` with its scores."""
        with self.client.observation(
            f"gather.{source}", "span", (source,), input={"query": query}
        ) as span:
            yield _Gathering(self.client, span)


@dataclass(frozen=True, slots=True)
class _Analysis:
    client: Client
    span: Observation
    searches: list[Gathered] | None
    """None within another analysis: the scores of a trace are written once."""
    whole_trace: bool
    """Whether the trace is ours, and scored as a whole."""

    def record(self, facts: Facts) -> None:
        """See `Recorder.record`."""
        answer: Any = facts.output
        if isinstance(answer, Published):
            answer = answer.model_dump(mode="json", exclude=_BULKY)
        self.span.update(
            output={
                "decision": facts.decision,
                "items_kept": facts.items_kept,
                "upstream_calls": facts.upstream_calls,
                "usd": facts.usd,
                "answer": answer,
            }
        )
        if self.searches is None:
            return
        scores: dict[str, Score] = {
            "decision": facts.decision,
            "items_kept": float(facts.items_kept),
            "upstream_calls": float(facts.upstream_calls),
            **_trace_scores(self.searches),
        }
        if facts.support_rate is not None:
            scores["support_rate"] = facts.support_rate
        reasons = dict.fromkeys(filter(None, map(_open_reason, self.searches)))
        for name, value in scores.items():
            comment = ", ".join(reasons) if name == "fail_open" and value else None
            self.client.score(name, value, self.span, whole_trace=self.whole_trace, comment=comment)


@dataclass(frozen=True, slots=True)
class _Gathering:
    client: Client
    span: Observation

    def record(self, facts: Gathered) -> None:
        """See `Recorder.record`."""
        if (searches := _searches.get()) is not None:
            searches.append(facts)
        self.span.update(output=_output(facts))
        if not facts.outcome.answered:
            self.span.update(level="ERROR", status_message=str(facts.outcome))
            return
        if (reason := _open_reason(facts)) is not None:
            self.span.update(level="WARNING", status_message=f"fail_open: {reason}")
        scores: dict[str, Score] = {
            "refetched": facts.refetched,
            "refetch_gain": float(facts.refetch_gain),
            "fail_open": facts.fail_open,
        }
        if facts.status == "ok":  # without a sound verdict no yield, so that means stay true
            scores["relevance_yield"] = facts.yield_ratio
        if reason is not None:
            scores["fail_open_reason"] = reason
        for name, value in scores.items():
            comment = reason if name == "fail_open" else None
            self.client.score(name, value, self.span, comment=comment)


def _trace_scores(searches: list[Gathered]) -> dict[str, Score]:
    """Scores of a trace, over all sources that could be asked; each item counts once."""
    answers = [gathered for gathered in searches if gathered.outcome.answered]
    if not answers:
        return {}
    scores: dict[str, Score] = {
        "refetched": any(gathered.refetched for gathered in answers),
        "refetch_gain": float(sum(gathered.refetch_gain for gathered in answers)),
        "fail_open": any(gathered.fail_open for gathered in answers),
    }
    judged = [gathered for gathered in answers if gathered.status == "ok"]
    kept = {assessed.item.key for gathered in judged for assessed in gathered.kept}
    seen = kept | {assessed.item.key for gathered in judged for assessed in gathered.dropped}
    if seen:
        scores["relevance_yield"] = len(kept) / len(seen)
    return scores


def _open_reason(gathered: Gathered) -> str | None:
    """Why items passed, or stayed away, without a verdict."""
    return open_reason(gathered.attempts)


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
