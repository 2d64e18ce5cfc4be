"""Requests that read what is stored or rate it: search, runs, trends, statistics, listings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import ConfigDict, Field

from api.choices import MAX_COMMENT_LENGTH, MAX_TREND_WEEKS, STATISTICS_SINCE, TREND_WEEKS, Aim, Rating
from api.core.domain import Decision
from api.interfaces.shared.requests import (
    About,
    CliOption,
    ItemSource,
    Label,
    NotAbout,
    Query,
    RequestBody,
    Sandbox,
    TimeSpan,
)
from api.sources import ITEM_SOURCES

if TYPE_CHECKING:
    from api.features.analyses.feedback import Vote
    from api.features.archive.entries import ArchiveFilters


class AgainRequest(RequestBody):
    """Under which meaning the items of a report are judged again; what is left out stays."""

    about: Annotated[About | None, Field(description="What the product is.")] = None
    not_about: Annotated[NotAbout | None, Field(description="What it is not: one namesake or topic each.")] = None
    aim: Annotated[
        Aim | None,
        Field(description="Whether an item has to be about the product, or only to mention it."),
    ] = None
    sense: Annotated[
        int | None,
        Field(description="Number of one of the report's `senses`; 0 for none.", ge=0, le=9),
    ] = None


class SearchRequest(RequestBody):
    """A question to what is stored."""

    query: Annotated[Query, Field(description="A word, or a question in your own words.")]
    since: TimeSpan = "all"
    source: Annotated[ItemSource | None, Label("Place"), Field(description="Only posts of this source.")] = None
    about: Annotated[str, Field(description="Only posts that were found for this product.", max_length=500)] = ""
    language: Annotated[
        str | None,
        Field(
            description="Only posts that may be in this language: its code, such as `de`.",
            max_length=20,
        ),
    ] = None
    kept: Annotated[
        bool | None,
        CliOption("--kept/--dropped"),
        Field(
            description="Only posts that a report kept or an import brought, or only posts that "
            "every report dropped (default: both)."
        ),
    ] = None
    k: Annotated[
        int | None,
        Field(description="Number of hits at most (default: `LISTENPOST_RETRIEVAL_K`).", ge=1, le=50),
    ] = None
    # what stands in an address is text: `sandbox=true`
    sandbox: Annotated[Sandbox, Field(description="Search posts of the offline sandbox.", strict=False)] = False

    def filters(self) -> ArchiveFilters:
        """The filters as the archive takes them.

        Raises:
            UsageError: `since` is no time, or `source` no source.
        """
        from api.features.analyses.statistics import since_of
        from api.features.archive.entries import filters_of

        since = since_of(self.since, datetime.now(UTC))
        return filters_of(self.source, since, self.about, ITEM_SOURCES, self.language, self.kept)


class RunsRequest(RequestBody):
    """How many of a watch's runs are returned."""

    limit: Annotated[int, Field(description="Number of runs at most, newest first.", ge=1, le=100)] = 20


class TrendRequest(RequestBody):
    """How many weeks of a watch's trend are returned."""

    weeks: Annotated[int, Field(description="Weeks, the current one included.", ge=1, le=MAX_TREND_WEEKS)] = TREND_WEEKS


class StatsRequest(RequestBody):
    """Which analyses the statistics count."""

    since: TimeSpan = STATISTICS_SINCE
    sample: Annotated[bool, Field(description="Count analyses of sample data, too.")] = False


class FeedbackRequest(RequestBody):
    """A rating of the whole report, or of a finding or item of it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"rating": "up", "comment": "just what I needed"},
                {"rating": "down", "finding": 2, "comment": "the post says the opposite"},
                {"rating": "down", "item_key": "reddit:t3_1abcde"},
            ]
        }
    )
    rating: Rating
    comment: Annotated[str, Field(description="Comment, up to 2,000 characters.", max_length=MAX_COMMENT_LENGTH)] = ""
    finding: Annotated[
        int | None,
        Field(description="Number of the rated finding in the report, from 1.", ge=1, le=1_000),
    ] = None
    item_key: Annotated[
        str | None,
        CliOption("--item"),
        Field(description="Key of the rated item, kept or dropped.", max_length=5_000),
    ] = None

    def vote(self) -> Vote:
        """The rating as the product takes it."""
        from api.features.analyses.feedback import Vote

        return Vote(self.rating, self.comment, self.finding, self.item_key)


Moment = Annotated[str | None, Field(max_length=40, json_schema_extra={"format": "date-time"})]


class PageRequest(RequestBody):
    """Number of entries of a page, and the cursor where it begins."""

    limit: Annotated[int, Field(description="Number of entries at most.", ge=1, le=100)] = 20
    cursor: Annotated[str | None, Field(description="`cursor` of the page before.", max_length=500)] = None


class ChatsRequest(PageRequest):
    """Which conversations."""

    report_id: Annotated[
        str | None, Field(description="Only those that began over this report.", min_length=1, max_length=64)
    ] = None


class ListingRequest(PageRequest):
    """Which analyses; an unknown filter is refused, since ignoring it would show too many."""

    decision: Annotated[Decision | None, Field(description="Only with this decision.")] = None
    source: Annotated[ItemSource | None, Field(description="Only those that asked this source.")] = None
    since: Annotated[Moment, Field(description="Begun at this time or later.")] = None
    until: Annotated[Moment, Field(description="Begun before this time.")] = None


ReportFormat = Literal["json", "html", "markdown", "csv"]
