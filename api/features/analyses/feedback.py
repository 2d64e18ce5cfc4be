"""Feedback on a report, a finding or an item: stored, and sent to Langfuse."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from typing import Literal

from api.choices import MAX_COMMENT_LENGTH, Rating
from api.core.display_names import source_of_key
from api.core.domain import Correction
from api.core.text import clean, cut, one_line
from api.errors import NotFound, UsageError
from api.features.analyses.analysis_job import missing_report, stored_report
from api.features.analyses.corrections import LONGEST_BODY, StoredCorrection, question_digest
from api.features.analyses.corrections import MOST as MOST_CORRECTIONS
from api.features.analyses.store_ports import Feedback, Store
from api.reports.report import DroppedItem, KeptItem, Report

MOST = 1_000
"""Ratings that one analysis takes, of all authors."""
Watched = Literal["sent", "off", "failed"]


@dataclass(frozen=True, slots=True)
class RatedReport:
    """Feedback on a report, and the report."""

    report: Report
    feedback: Feedback


@dataclass(frozen=True, slots=True)
class RatedTurn:
    """Feedback on one answer of a chat."""

    number: int
    """Number of the turn in its session, from 1."""
    trace_id: str | None
    author: str
    """Pseudonym of who gave it."""
    rating: Rating
    comment: str
    created_at: datetime


Rated = RatedReport | RatedTurn
Send = Callable[[Rated], Awaitable[str]]
"""Sends a rating to Langfuse; returns an empty text, or why it was not accepted."""


@dataclass(frozen=True, slots=True)
class GivenOnTurn:
    """Stored feedback on a turn, and whether Langfuse accepted it."""

    session_id: str
    turn: RatedTurn
    watched: Watched
    why: str = ""
    """Why Langfuse did not accept it; empty when it did."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One rating: of a finding, an item, or the whole report."""

    rating: Rating
    comment: str = ""
    finding: int | None = None
    """Number of the finding in the report, from 1."""
    item_key: str | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """Stored feedback, and whether Langfuse accepted it."""

    feedback: Feedback
    decision: str
    """The report's decision, such as `full_report`."""
    watched: Watched
    why: str = ""
    """Why Langfuse did not accept it; empty when it did."""
    sample: bool = False
    """The report is made of sample data."""
    repeated: bool = False
    """The author had given the same thumb before."""


def author_of(tenant: str, user: str = "") -> str:
    """A pseudonym: the same for the same user of a tenant, and it leads back to neither."""
    return sha256(f"listenpost feedback {tenant}\n{user}".encode("utf-8", "replace")).hexdigest()[:16]


async def give(
    store: Store,
    tenant: str,
    author: str,
    analysis_id: str,
    opinion: Vote,
    send: Send | None,
) -> Given:
    """Store it, then send it to Langfuse; a failure of that loses nothing.

    Without `send`, and of a report that has no trace or is sample data, nobody is told.

    Raises:
        NotFound: the tenant keeps no such report, or it has no such finding or item.
        UsageError: the analysis is not done, the comment is too long, or there are too many.
        StoreUnavailable: the database cannot be used, so nothing was stored or sent.
    """
    if opinion.finding is not None and opinion.item_key is not None:
        raise UsageError("rate a finding or an item, not both at once")
    comment = worded(opinion.comment)
    report = await stored_report(store, tenant, analysis_id)
    subject: Literal["report", "finding", "item"] = "report"
    if opinion.finding is not None:
        subject = "finding"
        if not 1 <= opinion.finding <= len(report.findings):
            raise NotFound(f"there is no finding {opinion.finding}; the report has {len(report.findings)}")
    elif opinion.item_key is not None:
        subject = "item"
        if source_of(report, opinion.item_key) is None:
            raise NotFound(f"the report has no item `{one_line(clean(opinion.item_key))[:60]}`")
    given = Feedback(report.id, author, subject, opinion.rating, opinion.finding, opinion.item_key, comment)
    repeated = any(
        replace(opinion, comment=comment, created_at=None) == given
        for opinion in await store.feedback(tenant, report.id)
    )
    kept = await store.keep_feedback(tenant, given, MOST)
    if kept is None:
        raise missing_report(report.id)
    trace_id = None if report.sample else report.trace_id
    watched, why = await inform(send, RatedReport(report, kept), trace_id)
    return Given(kept, str(report.decision), watched, why, report.sample, repeated)


def worded(comment: str) -> str:
    """A comment as it is stored.

    Raises:
        UsageError: it is too long.
    """
    comment = clean(comment)
    if len(comment) > MAX_COMMENT_LENGTH:
        raise UsageError(f"a comment has {MAX_COMMENT_LENGTH} characters at most; yours has {len(comment)}")
    return comment


async def inform(send: Send | None, rated: Rated, trace_id: str | None) -> tuple[Watched, str]:
    """Whether Langfuse took it, and why not; `off` also where there is no trace for it."""
    if send is None or trace_id is None:
        return "off", ""
    why = await send(rated)
    return ("failed" if why else "sent"), why


def source_of(report: Report, key: str) -> str | None:
    """Source of an item of the report, kept or dropped; None when it has no such item."""
    for item in report.items:
        if item.key == key:
            return item.source
    for name, source in report.sources.items():
        if any(item.key == key for item in source.dropped):
            return name
    return source_of_key(key) if any(item.key == key for item in report.dropped) else None


async def correct(store: Store, tenant: str, analysis_id: str, key: str, relevant: bool) -> StoredCorrection:
    """Keep what a person says of one item of a stored analysis.

    Raises:
        NotFound: the tenant keeps no such analysis, or it has no such item.
        UsageError: the analysis is not done, or its question has too many corrections.
        StoreUnavailable: the database cannot be used.
    """
    report = await stored_report(store, tenant, analysis_id)
    item = report_item(report, key)
    if item is None:
        raise NotFound(f"the report has no item `{one_line(clean(key))[:60]}`")
    text = item.body if isinstance(item, KeptItem) else item.snippet
    correction = Correction(item.key, relevant, item.title, cut(one_line(clean(text)), LONGEST_BODY), item.place or "")
    entry = StoredCorrection(
        correction, question_digest(report.question), report.query, report.about,
        source_of(report, key) or "", datetime.now(UTC),
    )  # fmt: skip
    await store.put_correction(tenant, entry, MOST_CORRECTIONS)
    return entry


async def withdraw(store: Store, tenant: str, analysis_id: str, key: str) -> None:
    """Remove the correction of one item of an analysis.

    Raises:
        NotFound: there is no such analysis, or no correction of that item.
        StoreUnavailable: the database cannot be used.
    """
    report = await stored_report(store, tenant, analysis_id)
    digest = question_digest(report.question)
    if not await store.remove_correction(tenant, digest, key):
        raise NotFound(f"the item `{one_line(clean(key))[:60]}` has no correction")


def report_item(report: Report, key: str) -> KeptItem | DroppedItem | None:
    """A kept or dropped item of a report by its key."""
    everything: list[KeptItem | DroppedItem] = [*report.items, *report.dropped]
    everything += [item for source in report.sources.values() for item in source.dropped]
    return next((item for item in everything if item.key == key), None)
