"""The observer: one trace per question, a span per source, and the scores on both.

What each score means stands in docs/langfuse.md; which there are, in `scoring`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from api.services.ports import WRITTEN, Facts, Recorder
from api.services.schemas import Gathered, Published, Question, open_reason
from api.tracing.scoring import older_scores, run_scores, source_scores

if TYPE_CHECKING:
    from api.tracing.client import Client, Kind, Observation

_BULKY = {"items", "dropped", "observations"}
"""Parts of an answer that stay out of the trace: the spans of the sources tell about them."""


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
        return seen.judged | dict.fromkeys(seen.agents[-1:], WRITTEN)

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
