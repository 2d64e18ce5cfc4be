"""What one source gave, filled attempt by attempt; a failed refetch never takes anything out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter

from api.core.display_names import OUTCOME_REASONS, reason_in_words
from api.core.domain import (
    Assessed,
    Attempt,
    Batch,
    Commented,
    FetchPlan,
    Gated,
    Gathered,
    Item,
    Outcome,
    Usage,
    Verdict,
)
from api.errors import SourceError
from api.pipeline.gate.drop_reasons import drop_reason

Failure = SourceError | TimeoutError
NO_TIME = "no_time"
"""In the note on a request that was not sent, since its answer would have come too late."""
UNJUDGED_REFETCH = "refetch could not be judged"
"""Begins the note on a refetch whose items are withheld."""


@dataclass(slots=True)
class SourceItems:
    """Distinct items by original, in order of first sight, each with its verdict."""

    source: str
    query: str
    pace: float = 0.0
    """The longest that this source took for an answer, in seconds."""
    _items: dict[str, Item] = field(default_factory=dict)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _unfit: dict[str, Item] = field(default_factory=dict)
    _wider: set[str] = field(default_factory=set)
    """Keys, or originals, of what no first search brought."""
    _attempts: list[Attempt] = field(default_factory=list)
    _notes: dict[str, None] = field(default_factory=dict)
    _gate: Gated = field(default_factory=lambda: Gated((), "skipped"))
    """Of the first attempt: a failed second one only leaves a note."""
    _usage: Usage = Usage()
    _capped: bool = False
    """Whether the source may hold more than the widest fetch of which items are here."""
    _failed: Gathered | None = None
    _retry_at: datetime | None = None

    def unseen(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """What nobody judged yet; copies of what is here only add their places to it.

        What is unfit to be judged is listed as dropped, and is none of it.
        """
        unfit = {item.key: item for item in items if item.unfit}
        self._wider |= unfit.keys() - self._unfit.keys() if self._attempts else set()
        self._unfit |= unfit
        known, fit = set(self._items), [item for item in items if not item.unfit]
        merged = merge_crossposts([*self._items.values(), *fit])
        self._items = {item.original: item for item in merged if item.original in known}
        return tuple(item for item in merged if item.original not in known)

    def add(
        self, batch: Batch, distinct: int, new: Sequence[Item], gated: Gated, requests: int
    ) -> None:
        """One attempt; of a second one that could not be judged the new items are withheld.

        `distinct` is how many posts the batch holds, each once.
        """
        first, relevant = not self._attempts, gated.relevant
        if first:
            self._gate = gated
        else:
            self._wider |= {item.original for item in new}
        self._usage += gated.usage
        self.note(*batch.notes)
        if first or gated.status != "degraded":
            self._capped = batch.full
            self._items |= {item.original: item for item in new}
            judged = zip(new, gated.verdicts, strict=True)
            self._verdicts |= {item.original: verdict for item, verdict in judged}
        else:
            relevant = 0
            self.note(
                f"{UNJUDGED_REFETCH} ({reason_in_words(gated.reason)}): "
                f"{len(new)} new items withheld, the first pass stands"
            )
        self._attempts.append(
            Attempt(
                batch.plan.limit, distinct, len(new), relevant, requests, gated.status,
                gated.reason,
            )
        )  # fmt: skip

    def refetch_failed(self, plan: FetchPlan, requests: int, error: Failure) -> None:
        """The first pass stands."""
        self._attempts.append(Attempt(plan.limit, 0, 0, 0, requests, "degraded", _outcome(error)))
        self._retry_at = getattr(error, "retry_at", None)
        self.note(f"refetch failed ({OUTCOME_REASONS[_outcome(error)]}); the first pass stands")

    def note(self, *notes: str) -> None:
        """Each once."""
        self._notes |= dict.fromkeys(notes)

    def thin(self, min_yield: float) -> bool:
        """Judged for sure, and too little of it relevant."""
        judged = len(self._gate.verdicts)
        return self._gate.status == "ok" and judged > 0 and self._gate.relevant / judged < min_yield

    @property
    def kept(self) -> list[Item]:
        """What the gate let through."""
        return [item for key, item in self._items.items() if self._verdicts[key].relevant]

    def poor(self, min_yield: float) -> bool:
        """All of it judged for sure, and too little of it relevant even now."""
        sound = all(attempt.status != "degraded" for attempt in self._attempts)
        return sound and bool(self._items) and len(self.kept) / len(self._items) < min_yield

    @property
    def likeliest(self) -> Item | None:
        """The dropped item that the judge was least sure of; of equals the most discussed."""
        dropped = [
            (verdict.probability or 0.0, discussed or 0, item)
            for key, verdict in self._verdicts.items()
            for item in [self._items[key]]
            for discussed in [item.engagement.get("comments")]
            if not verdict.relevant and discussed != 0
        ]
        return max(dropped, key=itemgetter(0, 1))[2] if dropped else None

    def reconsider(self, item: Item, gated: Gated) -> None:
        """A dropped item after the second look; what could not be judged stays dropped."""
        self._usage += gated.usage
        verdict = gated.verdicts[0]
        if gated.status == "degraded":
            self.note(f"second look could not be judged ({reason_in_words(gated.reason)})")
        elif verdict.relevant:
            why = "a comment names it"
            self._items[item.original] = replace(item, notes=(*item.notes, f"kept: {why}"))
            self._verdicts[item.original] = replace(verdict, reason=why)
            self.note(f"second look: one dropped item kept, {why}")
        else:
            self.note("second look: its comment does not speak for it")

    def second_look_failed(self, error: Failure) -> None:
        """Everything stands as it was."""
        self.note(f"second look failed ({OUTCOME_REASONS[_outcome(error)]})")

    def read(self, commented: Commented) -> None:
        """Kept items with their comments; one that did not come back stays as it was."""
        for item in commented.items:
            held = self._items.get(item.original)
            if held is not None and held.key == item.key:
                self._items[item.original] = replace(item, places=held.places)
        self.note(*commented.notes)

    def hurried(self, request: str, left: float) -> None:
        """A request was not sent in the `left` seconds that there were."""
        self.note(
            f"{request} not sent ({NO_TIME}): {max(left, 0):.1f} s were left, "
            f"an answer took {self.pace:.1f} s"
        )

    def unread(self, error: Failure) -> None:
        """Comments are missing."""
        self.note(f"comments could not be read ({OUTCOME_REASONS[_outcome(error)]})")

    def fail(self, error: Failure) -> None:
        """Nothing could be had."""
        self._failed = failed_source(self.source, self.query, error)

    def cancelled(self, calls: int) -> Gathered:
        """As far as it went."""
        return Gathered(self.source, self.query, Outcome.CANCELLED, upstream_calls=calls)

    def gathered(self, calls: int) -> Gathered:
        """All of it; `calls` is how many requests were sent upstream."""
        if self._failed is not None:
            return replace(self._failed, upstream_calls=calls)
        assessed = [
            Assessed(item, self._verdicts[key], wider=key in self._wider)
            for key, item in self._items.items()
        ]
        kept = tuple(entry for entry in assessed if entry.verdict.relevant)
        stopped = (
            replace(entry, dropped_by="gate", reason=drop_reason(entry.verdict))
            for entry in assessed
            if not entry.verdict.relevant
        )
        unfit = (
            Assessed(
                item,
                Verdict(False),
                dropped_by="unfit",
                reason=item.unfit,
                wider=key in self._wider,
            )
            for key, item in self._unfit.items()
        )
        dropped = (*stopped, *unfit)
        return Gathered(
            self.source,
            self.query,
            Outcome.OK if kept else Outcome.IRRELEVANT if dropped else Outcome.EMPTY,
            attempts=tuple(self._attempts),
            kept=kept,
            dropped=dropped,
            status=self._gate.status,
            model=self._gate.model,
            gate_reason=self._gate.reason,
            usage=self._usage,
            upstream_calls=calls,
            retry_at=self._retry_at,
            notes=tuple(self._notes),
            refetched=len(self._attempts) > 1,
            refetch_gain=sum(attempt.relevant for attempt in self._attempts[1:]),
            capped=self._capped,
        )


def failed_source(source: str, query: str, error: Failure) -> Gathered:
    """The outcome of a source that could not be asked."""
    if isinstance(error, TimeoutError):
        return Gathered(source, query, Outcome.TIMED_OUT, reason="the crawl's deadline passed")
    outcome = Outcome.of(error.code)
    return Gathered(source, query, outcome, reason=error.reason, retry_at=error.retry_at)


def merge_crossposts(items: Sequence[Item]) -> tuple[Item, ...]:
    """One item per original post, in order of first sight; the places of its crossposts listed."""
    merged: dict[str, Item] = {}
    for item in items:
        first = merged.setdefault(item.original, item)
        if first.key != item.key or first.places != item.places:
            both = [*(first.places or (first.place,)), *(item.places or (item.place,))]
            places = tuple(dict.fromkeys(place for place in both if place))
            merged[item.original] = replace(first, places=places)
    return tuple(merged.values())


def _outcome(error: Failure) -> Outcome:
    return Outcome.of(error.code) if isinstance(error, SourceError) else Outcome.TIMED_OUT
