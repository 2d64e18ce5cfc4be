"""A stored report beside its items judged again: what only one side keeps, and which claims come and go.

Nothing of it is stored. Authors are not stored either, so claims are compared by posts and comments, each once; the
people of a stored claim are those that were counted while authors were known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

from api.choices import Aim
from api.core.display_names import source_of_key
from api.core.domain import Decision, Question, Stage
from api.core.items import Thread
from api.core.published import Published, Timestamp
from api.core.text import cut, one_line
from api.pipeline.gate.excerpt import PASSAGE_LENGTH, excerpt_of
from api.reports.report import Cost, DroppedItem, Finding, FindingKind, KeptItem, Report

VERSION = 1  # of a `Replay`; raised when a field changes meaning
SAME_CLAIM = 0.5
"""Two claims of one kind are the same when they share at least this part of the posts of the one that cites fewer."""
Change = Literal["appears", "disappears", "stays"]
NotJudged = Literal["deleted", "copy", "unfit", "excluded"]


class ReplaySide(Published):
    """One side of a replay: how the items were judged, and the result."""

    about: str
    not_about: tuple[str, ...]
    aim: Aim
    judges: tuple[str, ...]
    """Names of the judges, models or people whose verdicts stand."""
    decision: Decision
    kept: int
    """Items of the report: past gate, grades and copies."""
    claims: int


class ReplayedItem(Published):
    """An item that only one side keeps."""

    key: str
    source: str
    title: str
    thread: Thread = ""
    url: str
    created_at: Timestamp | None
    dropped_by: Stage | None
    """The step of the other side that dropped it."""
    reason: str
    """Why the other side dropped it."""
    probability: float | None
    """Probability that it is about the question, by the replay's judge; None when that judge gives none."""
    passage: str
    """What a judge sees of its text: at most 200 characters."""


class ReplayedClaim(Published):
    """A claim of either side, in the words of now, or of the stored report where it disappears."""

    change: Change
    kind: FindingKind
    text: str
    posts_before: int
    """Distinct posts and comments cited in the stored report; 0 for a claim that is new."""
    posts: int
    """Distinct posts and comments cited now; 0 for a claim that disappears."""
    people_before: int | None
    """People behind it as counted in the stored report; None when it did not count them, and for a new claim."""


class Replay(Published):
    """The differences between a stored report and its items judged again."""

    version: int
    report_id: str
    query: str
    before: ReplaySide
    after: ReplaySide
    judged_twice: int
    """Items with a verdict of a judge, or of a person, on both sides."""
    same_verdicts: int
    """Number of items judged twice whose verdict is the same."""
    newly_kept: tuple[ReplayedItem, ...]
    """The most relevant first."""
    newly_dropped: tuple[ReplayedItem, ...]
    """Items that are dropped now, in the order of the stored report."""
    claims: tuple[ReplayedClaim, ...]
    """Claims that appear, disappear and stay, in this order."""
    not_judged: Mapping[NotJudged, int]
    """Stored items that were not judged now: deleted by their source, duplicates, unfit, or excluded."""
    beginnings: int
    """Items judged by title and beginning alone, since a stored report holds no more of an item that it dropped."""
    unjudged: tuple[str, ...]
    """Sources whose items passed now without a verdict, since the judge failed."""
    sample: bool
    cost: Cost
    """Cost of judging and writing again."""
    created_at: Timestamp

    @property
    def agreement(self) -> float | None:
        """Share of equal verdicts; None when no item was judged twice."""
        return self.same_verdicts / self.judged_twice if self.judged_twice else None


def replay_of(before: Report, after: Report) -> Replay:
    """What differs between a stored report and one over the same items; some 10 ms for 100 items."""
    kept, dropped = {item.key for item in before.items}, {item.key: item for item in before.dropped}
    kept_now, dropped_now = {item.key for item in after.items}, {item.key: item for item in after.dropped}
    verdicts = [_verdicts(before), _verdicts(after)]
    seen = kept_now | dropped_now.keys()
    both = verdicts[0].keys() & verdicts[1].keys()
    stages = Counter(item.dropped_by for item in before.dropped if item.key not in kept_now)
    fetched = sum(source.fetched for source in before.sources.values())
    not_judged: dict[NotJudged, int] = {
        "deleted": max(0, fetched - len(kept) - len(dropped)),
        "copy": sum(item.dropped_by == "duplicate" and item.key not in seen for item in before.dropped),
        "unfit": stages["unfit"],
        "excluded": stages["excluded"],
    }
    return Replay(
        version=VERSION,
        report_id=before.id,
        query=before.query,
        before=_side(before),
        after=_side(after),
        judged_twice=len(both),
        same_verdicts=sum(verdicts[0][key] == verdicts[1][key] for key in both),
        newly_kept=tuple(
            _item(item, dropped.get(item.key), item.probability, after.question)
            for item in after.items
            if item.key not in kept
        ),
        newly_dropped=tuple(
            _item(item, other, other.probability if other else None, after.question)
            for item in before.items
            if item.key not in kept_now
            for other in (dropped_now.get(item.key),)
        ),
        claims=tuple(_claims(before, after)),
        not_judged={why: count for why, count in not_judged.items() if count},
        beginnings=sum(key in verdicts[1] for key in dropped),
        unjudged=tuple(name for name, source in after.sources.items() if source.fetched and source.gate.unjudged),
        sample=after.sample,
        cost=after.cost,
        created_at=after.created_at,
    )


def _verdicts(report: Report) -> dict[str, bool]:
    """The verdict on each item that has one, by key."""
    entries: tuple[KeptItem | DroppedItem, ...] = (*report.items, *report.dropped)
    return {entry.key: entry.verdict for entry in entries if entry.verdict is not None}


def _side(report: Report) -> ReplaySide:
    judges = dict.fromkeys(entry.judge for entry in (*report.items, *report.dropped) if entry.judge)
    return ReplaySide(
        about=report.about, not_about=report.not_about, aim=report.aim, judges=tuple(sorted(judges)),
        decision=report.decision, kept=len(report.items), claims=len(report.findings),
    )  # fmt: skip


def _item(item: KeptItem, other: DroppedItem | None, probability: float | None, question: Question) -> ReplayedItem:
    """An item of the side that keeps it; `other` is what the other side has of it."""
    comments = (cut(one_line(comment.body), PASSAGE_LENGTH) for comment in item.comments)
    return ReplayedItem(
        key=item.key,
        source=source_of_key(item.key),
        title=item.title,
        thread=item.thread,
        url=item.url,
        created_at=item.created_at,
        dropped_by=other.dropped_by if other else None,
        reason=other.reason if other else "",
        probability=probability,
        passage=one_line(excerpt_of(question, item).passage) or next(comments, ""),
    )


def _claims(before: Report, after: Report) -> Iterator[ReplayedClaim]:
    pairs = sorted(
        (
            (likeness, first, second)
            for first, earlier in enumerate(before.findings)
            for second, later in enumerate(after.findings)
            if (likeness := _likeness(earlier, later))[1] >= SAME_CLAIM or likeness[0]
        ),
        key=lambda pair: (*(-value for value in pair[0]), *pair[1:]),
    )
    earlier_of: dict[int, int] = {}
    for _, first, second in pairs:
        if second not in earlier_of and first not in earlier_of.values():
            earlier_of[second] = first
    for number, claim in enumerate(after.findings):
        if number not in earlier_of:
            yield _claim("appears", claim, None, claim)
    for number, claim in enumerate(before.findings):
        if number not in earlier_of.values():
            yield _claim("disappears", claim, claim, None)
    for number, claim in enumerate(after.findings):
        if number in earlier_of:
            yield _claim("stays", claim, before.findings[earlier_of[number]], claim)


def _claim(change: Change, shown: Finding, before: Finding | None, after: Finding | None) -> ReplayedClaim:
    return ReplayedClaim(
        change=change, kind=shown.kind, text=shown.text,
        posts_before=len(_cited(before)) if before else 0, posts=len(_cited(after)) if after else 0,
        people_before=sum(before.people.values()) or None if before else None,
    )  # fmt: skip


def _likeness(first: Finding, second: Finding) -> tuple[bool, float, float]:
    """How surely two claims are the same.

    Three measures in order of weight: their words, the share of the smaller one's posts, the share of both.
    """
    if first.kind != second.kind:
        return False, 0.0, 0.0
    earlier, later = _cited(first), _cited(second)
    shared, fewer = len(earlier & later), min(len(earlier), len(later))
    return first.text == second.text, shared / fewer if fewer else 0.0, shared / (len(earlier | later) or 1)


def _cited(finding: Finding) -> set[tuple[str, str | None]]:
    """Posts and comments that a claim cites; only posts in older reports."""
    return {(passage.key, passage.comment_id) for passage in finding.evidence} or {(key, None) for key in finding.cites}
