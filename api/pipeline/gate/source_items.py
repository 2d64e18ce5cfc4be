"""What one source gave, attempt by attempt; a failed refetch never takes anything out."""

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
"""Part of the note on a request that was not sent, since its answer would have come too late."""
UNJUDGED_REFETCH = "refetch could not be judged"
"""Beginning of the note on a refetch whose items are withheld."""


@dataclass(slots=True)
class SourceItems:
    """Distinct items with their verdicts, in order of first sight; a crosspost is its original."""

    source: str
    query: str
    slowest_answer: float = 0.0
    """Seconds of the slowest answer of this source so far."""
    _items: dict[str, Item] = field(default_factory=dict)
    _verdicts: dict[str, Verdict] = field(default_factory=dict)
    _unfit: dict[str, Item] = field(default_factory=dict)
    # keys, or originals, of items that only the second fetch brought
    _wider: set[str] = field(default_factory=set)
    _attempts: list[Attempt] = field(default_factory=list)
    _notes: dict[str, None] = field(default_factory=dict)
    # of the first attempt: a failed second one only leaves a note
    _gate: Gated = field(default_factory=lambda: Gated((), "skipped"))
    _usage: Usage = Usage()
    # the source may hold more than the widest fetch of which items are here
    _capped: bool = False
    _retry_at: datetime | None = None

    def take_new(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """The items to judge: neither judged before nor unfit; crossposts only add their places."""
        unfit = {item.key: item for item in items if item.unfit}
        self._wider |= unfit.keys() - self._unfit.keys() if self._attempts else set()
        self._unfit |= unfit
        known, fit = set(self._items), [item for item in items if not item.unfit]
        merged = merge_crossposts([*self._items.values(), *fit])
        self._items = {item.original: item for item in merged if item.original in known}
        return tuple(item for item in merged if item.original not in known)

    def add_attempt(
        self, batch: Batch, distinct: int, new: Sequence[Item], gated: Gated, requests: int
    ) -> None:
        """Add an attempt; new items of a second one that could not be judged are withheld.

        `distinct` counts the posts of the batch, crossposts once.
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
        limit, status = batch.plan.limit, gated.status
        self._attempts.append(
            Attempt(limit, distinct, len(new), relevant, requests, status, gated.reason)
        )

    def add_failed_refetch(self, plan: FetchPlan, requests: int, error: Failure) -> None:
        """Add a second attempt that gave nothing."""
        outcome = _outcome(error)
        self._attempts.append(Attempt(plan.limit, 0, 0, 0, requests, "degraded", outcome))
        self._retry_at = getattr(error, "retry_at", None)
        self.note(f"refetch failed ({OUTCOME_REASONS[outcome]}); the first pass stands")

    def add_comments(self, commented: Commented) -> None:
        """Replace kept items by those with comments; one that did not come back stays as it was."""
        for item in commented.items:
            held = self._items.get(item.original)
            if held is not None and held.key == item.key:
                self._items[item.original] = replace(item, places=held.places)
        self.note(*commented.notes)

    def add_second_look(self, item: Item, gated: Gated) -> None:
        """Keep the dropped item if the second look found it relevant."""
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

    def note(self, *notes: str) -> None:
        """Add notes, each once."""
        self._notes |= dict.fromkeys(notes)

    def note_failure(self, failed_step: str, error: Failure) -> None:
        """Note a step that failed, with its outcome; the items stay as they are."""
        self.note(f"{failed_step} ({OUTCOME_REASONS[_outcome(error)]})")

    def note_too_late(self, request: str, left: float) -> None:
        """Note a request that was not sent, since only `left` seconds were left."""
        self.note(
            f"{request} not sent ({NO_TIME}): {max(left, 0):.1f} s were left, "
            f"an answer took {self.slowest_answer:.1f} s"
        )

    @property
    def kept(self) -> list[Item]:
        """The relevant items, and those that passed unjudged."""
        return [item for key, item in self._items.items() if self._verdicts[key].relevant]

    @property
    def likeliest_dropped(self) -> Item | None:
        """The likeliest of the dropped items with comments; of equals the most discussed."""
        dropped = [
            (verdict.probability or 0.0, discussed or 0, item)
            for key, verdict in self._verdicts.items()
            for item in [self._items[key]]
            for discussed in [item.engagement.get("comments")]
            if not verdict.relevant and discussed != 0
        ]
        return max(dropped, key=itemgetter(0, 1))[2] if dropped else None

    def first_yield_below(self, share: float) -> bool:
        """Whether a smaller share of the first attempt was relevant; False if it was unjudged."""
        judged = len(self._gate.verdicts)
        return self._gate.status == "ok" and judged > 0 and self._gate.relevant / judged < share

    def yield_below(self, share: float) -> bool:
        """Whether a smaller share of all items is kept; False if any attempt was unjudged."""
        sound = all(attempt.status != "degraded" for attempt in self._attempts)
        return sound and bool(self._items) and len(self.kept) / len(self._items) < share

    def result(self, calls: int) -> Gathered:
        """Everything so far; `calls` counts the requests that were sent."""
        assessed = [
            Assessed(item, self._verdicts[key], wider=key in self._wider)
            for key, item in self._items.items()
        ]
        kept = tuple(entry for entry in assessed if entry.verdict.relevant)
        dropped = tuple(
            replace(entry, dropped_by="gate", reason=drop_reason(entry.verdict))
            for entry in assessed
            if not entry.verdict.relevant
        ) + tuple(
            Assessed(
                item, Verdict(False), dropped_by="unfit", reason=item.unfit,
                wider=key in self._wider,
            )
            for key, item in self._unfit.items()
        )  # fmt: skip
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
    """The result of a source that could not be asked."""
    if isinstance(error, TimeoutError):
        return Gathered(source, query, Outcome.TIMED_OUT, reason="the crawl's deadline passed")
    return Gathered(source, query, _outcome(error), reason=error.reason, retry_at=error.retry_at)


def merge_crossposts(items: Sequence[Item]) -> tuple[Item, ...]:
    """One item per original post, in order of first sight, with the places of its crossposts."""
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
