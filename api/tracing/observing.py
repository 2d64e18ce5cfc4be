"""The observer: one trace per question, a span per source, and the scores on both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from api.services.ports import Facts, Recorder
from api.services.published import Published
from api.services.schemas import Gathered, Question

if TYPE_CHECKING:
    from api.tracing.client import Client, Kind, Observation

Score = bool | float | str
_BULKY = {"items", "dropped"}
"""Parts of an answer that stay out of the trace: the spans of the sources tell about them."""


@dataclass(slots=True)
class _Tally:
    """What one question gathered, whichever tool or task asked for it."""

    gathered: list[Gathered] = field(default_factory=list)


_tally: ContextVar[_Tally | None] = ContextVar("listenpost_tally", default=None)


@dataclass(frozen=True, slots=True)
class LangfuseObserver:
    """Implements `Observer`."""

    client: Client

    @property
    def trace_id(self) -> str | None:
        """The trace under way in this context."""
        return self.client.trace_id

    @contextmanager
    def analysis(self, name: str, question: Question) -> Iterator[Recorder[Facts]]:
        """A trace; inside another one a span, whose facts then count for the outer one."""
        self.client.instrument_if_loaded()
        outer = _tally.get() if self.client.trace_id else None
        asked = {"question": question.text, "about": question.about or None}
        kind: Kind = "span" if name == "fetch" else "agent"
        with self.client.observation(name, kind, input=asked) as span:
            tally = outer or _Tally()
            previous = _tally.get()
            _tally.set(tally)
            try:
                yield _Analysis(self.client, span, None if outer else tally)
            finally:
                _tally.set(previous)

    @contextmanager
    def gathering(self, source: str, query: str) -> Iterator[Recorder[Gathered]]:
        """The span `gather.<source>` with its scores."""
        with self.client.observation(f"gather.{source}", "span", input={"query": query}) as span:
            yield _Gathering(self.client, span)


@dataclass(frozen=True, slots=True)
class _Analysis:
    client: Client
    span: Observation
    tally: _Tally | None
    """None within another analysis: the scores of a trace are written once."""

    def record(self, facts: Facts) -> None:
        """See `Recorder.record`."""
        self.span.update(
            output={
                "decision": facts.decision,
                "items_kept": facts.items_kept,
                "upstream_calls": facts.upstream_calls,
                "usd": facts.usd,
                "answer": _brief(facts.output),
            }
        )
        if self.tally is None:
            return
        scores: dict[str, Score] = {
            "decision": facts.decision,
            "items_kept": float(facts.items_kept),
            "upstream_calls": float(facts.upstream_calls),
            **_of_all(self.tally.gathered),
        }
        reasons = dict.fromkeys(filter(None, map(_open_reason, self.tally.gathered)))
        for name, value in scores.items():
            comment = ", ".join(reasons) if name == "fail_open" and value else None
            self.client.score(name, value, self.span, whole_trace=True, comment=comment)


@dataclass(frozen=True, slots=True)
class _Gathering:
    client: Client
    span: Observation

    def record(self, facts: Gathered) -> None:
        """See `Recorder.record`."""
        self.span.update(output=_told(facts), **_level(facts))
        if (tally := _tally.get()) is not None:
            tally.gathered.append(facts)
        reason = _open_reason(facts)
        for name, value in _of_one(facts).items():
            comment = reason if name == "fail_open" else None
            self.client.score(name, value, self.span, comment=comment)


def _of_one(gathered: Gathered) -> dict[str, Score]:
    """A source's scores; without a sound verdict it has no yield, so that means stay true."""
    if not gathered.outcome.asked:
        return {}
    scores: dict[str, Score] = {
        "refetched": gathered.refetched,
        "refetch_gain": float(gathered.refetch_gain),
        "fail_open": gathered.fail_open,
    }
    if gathered.status == "ok":
        scores["relevance_yield"] = gathered.yield_ratio
    if (reason := _open_reason(gathered)) is not None:
        scores["fail_open_reason"] = reason
    return scores


def _of_all(gathered: list[Gathered]) -> dict[str, Score]:
    """The same over all sources that could be asked; each item counts once."""
    asked = [one for one in gathered if one.outcome.asked]
    if not asked:
        return {}
    scores: dict[str, Score] = {
        "refetched": any(one.refetched for one in asked),
        "refetch_gain": float(sum(one.refetch_gain for one in asked)),
        "fail_open": any(one.fail_open for one in asked),
    }
    judged = [one for one in asked if one.status == "ok"]
    kept = {assessed.item.key for one in judged for assessed in one.kept}
    seen = kept | {assessed.item.key for one in judged for assessed in one.dropped}
    if seen:
        scores["relevance_yield"] = len(kept) / len(seen)
    return scores


def _open_reason(gathered: Gathered) -> str | None:
    """Why items passed, or stayed away, without a verdict."""
    degraded = (one for one in gathered.attempts if one.status == "degraded")
    return next((one.reason or "unknown" for one in degraded), None)


def _level(gathered: Gathered) -> dict[str, str]:
    if not gathered.outcome.asked:
        return {"level": "ERROR", "status_message": str(gathered.outcome)}
    if (reason := _open_reason(gathered)) is not None:
        return {"level": "WARNING", "status_message": f"fail_open: {reason}"}
    return {}


def _told(gathered: Gathered) -> dict[str, Any]:
    return {
        "outcome": str(gathered.outcome),
        "reason": gathered.reason,
        "gate": {
            "status": gathered.status,
            "reason": gathered.gate_reason,
            "model": gathered.model,
        },
        "attempts": [
            {
                "limit": one.limit,
                "fetched": one.fetched,
                "new": one.new,
                "relevant": one.relevant,
                "requests": one.requests,
                "status": one.status,
                "reason": one.reason,
            }
            for one in gathered.attempts
        ],
        "fetched": gathered.fetched,
        "kept": [assessed.item.key for assessed in gathered.kept],
        "dropped": [assessed.item.key for assessed in gathered.dropped],
        "disputed": [
            one.item.key for one in (*gathered.kept, *gathered.dropped) if one.verdict.disputed
        ],
        "yield_ratio": gathered.yield_ratio,
        "refetched": gathered.refetched,
        "refetch_gain": gathered.refetch_gain,
        "upstream_calls": gathered.upstream_calls,
        "notes": list(gathered.notes),
    }


def _brief(output: Published | str | None) -> dict[str, Any] | str | None:
    if isinstance(output, Published):
        return output.model_dump(mode="json", exclude=_BULKY)
    return output
