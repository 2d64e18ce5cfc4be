"""Requests that read what is stored, rate it or judge it again: search, replay, runs, trends, statistics, listings."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from api.choices import (
    MAX_ASSIGNED_LENGTH,
    MAX_COMMENT_LENGTH,
    MAX_NOTE_LENGTH,
    MAX_TREND_WEEKS,
    STATISTICS_SINCE,
    TREND_WEEKS,
    Aim,
    Rating,
    ReplayJudge,
    Show,
)
from api.core.domain import Decision
from api.core.text import clean, is_visible, one_line, quantity, utc_minute
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
    from api.features.archive.search_values import ArchiveFilters
    from api.features.watches.followed_feeds import ListedFeed
    from api.features.watches.watch import Watch
    from api.features.watches.watch_ports import InboxFilter


class AgainRequest(RequestBody):
    """Under which meaning the items of a report are judged again; what is left out stays."""

    about: Annotated[
        About | None, Label("What it is", "empty: as it was asked"), Field(description="What the product is.")
    ] = None
    not_about: Annotated[
        NotAbout | None,
        Label("What it is not", "one a line; empty: as it was asked"),
        Field(description="What it is not: one namesake or topic each."),
    ] = None
    aim: Annotated[
        Aim | None,
        Label(
            "What counts",
            words=(
                ("", "as it was asked"),
                ("about", "posts about it"),
                ("mention", "posts that only mention it, too"),
            ),
        ),
        Field(description="Whether an item has to be about the product, or only to mention it."),
    ] = None
    sense: Annotated[
        int | None,
        Label("Which of the groups that share the name"),
        Field(description="Number of one of the report's `senses`; 0 for none.", ge=0, le=9),
    ] = None


def _visible_name(name: str | None) -> str | None:
    if name is None:
        return None
    name = one_line(clean(name))
    if not is_visible(name):
        raise ValueError("must be a name that can be seen")
    return name


class ReplayRequest(AgainRequest):
    """What changes when the items of a report are judged again only to be compared; what is left out stays."""

    judge: Annotated[
        ReplayJudge | None,
        Label(
            "Who judges",
            words=(("", "as now"), ("openai", "the model"), ("local", "the judge on this machine")),
        ),
        Field(description="Who judges: the model (`openai`), or the judge on this machine (`local`)."),
    ] = None
    model: Annotated[
        str | None,
        Label("Model that judges", "its name at the model server; empty: as now"),
        Field(description="Model that judges, by its name at the model server.", min_length=1, max_length=200),
        AfterValidator(_visible_name),
    ] = None

    @property
    def meaning(self) -> dict[str, Any]:
        """Arguments of `ask_again` in this request."""
        return {name: getattr(self, name) for name in AgainRequest.model_fields}


class FeedRequest(RequestBody):
    """The address of a feed, or of a page that announces one, and the tenant's name for it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"address": "https://forum.example.com/latest.rss"}]})
    address: Annotated[
        str,
        Label("Address of a feed, or of a page that has one"),
        Field(
            description="Address of a feed (RSS, Atom, JSON Feed), or of a page that announces one.", max_length=1_000
        ),
    ]
    name: Annotated[
        str,
        Label("Name", hint="may be empty"),
        Field(description="What to call it (default: its own title).", max_length=100),
    ] = ""


class FeedView(BaseModel):
    """A feed that questions read, and how it is."""

    address: str
    name: str
    """Name given by the tenant, else the feed's title."""
    title: str
    of_settings: bool
    """Whether it stands in `FEEDS`, so that every question reads it."""
    outcome: str
    """`ok`, the code of what went wrong when it was last asked, or empty: it was not asked yet."""
    reason: str
    read_at: datetime | None
    """When it was last read; None if not since it was followed here, even when others follow it."""
    next_at: datetime | None
    """Earliest time of the next request; None with an outcome: no further request, since the feed has ended."""
    entries: int
    newest: datetime | None

    @classmethod
    def of(cls, listed: ListedFeed) -> Self:
        """A feed in words and times."""
        feed, state = listed.feed, listed.state
        return cls(
            address=feed.address, name=feed.name or state.title or feed.address, title=state.title,
            of_settings=listed.of_settings, outcome=state.outcome, reason=state.detail, read_at=state.read_at,
            next_at=state.next_at, entries=state.entries, newest=listed.newest,
        )  # fmt: skip

    @property
    def condition(self) -> str:
        """State in words for a person: entries, last and next request."""
        words = ["not asked yet: the next question reads it"]
        if self.outcome:
            newest = "" if self.newest is None else f", the newest of {self.newest:%Y-%m-%d}"
            words = [f"{quantity(self.entries, 'entry', 'entries')}{newest}"]
            if self.outcome != "ok":
                words.insert(0, f"{self.outcome.replace('_', ' ')} ({self.reason})")
            words.append("never read" if self.read_at is None else f"read {utc_minute(self.read_at)}")
            words.append("not asked again" if self.next_at is None else f"next from {utc_minute(self.next_at)} on")
        return "; ".join([*words, *(["of `FEEDS`"] if self.of_settings else [])])


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
        from api.features.archive.search_values import filters_of

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
    """Which conversations are listed: all, or those about one report."""

    report_id: Annotated[
        str | None, Field(description="Only those that began over this report.", min_length=1, max_length=64)
    ] = None


class ListingRequest(PageRequest):
    """Which analyses; an unknown filter is refused, since ignoring it would show too many."""

    decision: Annotated[Decision | None, Field(description="Only with this decision.")] = None
    source: Annotated[ItemSource | None, Field(description="Only those that asked this source.")] = None
    since: Annotated[Moment, Field(description="Begun at this time or later.")] = None
    until: Annotated[Moment, Field(description="Begun before this time.")] = None


class InboxFilters(RequestBody):
    """Which entries of the inbox."""

    show: Annotated[Show, Field(description="Only entries in this state, or all.")] = "unread"
    watch: Annotated[str, Field(description="Only new posts of this watch, by its id or name.", max_length=100)] = ""
    source: Annotated[ItemSource | None, Field(description="Only posts of this source.")] = None
    # what stands in an address is text: `complaints=true`
    complaints: Annotated[bool, Field(description="Only complaints.", strict=False)] = False
    text: Annotated[
        str, Field(description="Only entries with this text in title, quote, site, watch or note.", max_length=200)
    ] = ""

    assigned: Annotated[
        str, Field(description="Only entries assigned to this name.", max_length=MAX_ASSIGNED_LENGTH)
    ] = ""

    def filters(self, watches: Sequence[Watch]) -> InboxFilter:
        """The filter as the inbox takes it; a watch may be named."""
        from api.features.watches.watch_ports import InboxFilter

        named = (watch.id for watch in watches if self.watch in {watch.name, watch.id})
        watch_id = next(named, self.watch)  # the id of a watch that was removed stays one
        name = one_line(clean(self.assigned))
        return InboxFilter(self.show, watch_id, self.source or "", self.complaints, self.text, name)


class InboxRequest(InboxFilters, PageRequest):
    """Which entries of the inbox, a page at a time."""


class ReadRequest(InboxFilters):
    """Which entries are marked as read."""

    newest: Annotated[
        str, Field(description="Id of the newest entry that was shown; later ones stay unread.", max_length=60)
    ] = ""


class EntryPatch(RequestBody):
    """What becomes of an entry of the inbox; a field that is left out stays as it is."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"read": True}]})
    read: Annotated[bool | None, Field(description="Whether it is read.")] = None
    starred: Annotated[bool | None, Field(description="Whether it has a star.")] = None
    note: Annotated[str | None, Field(description="A note; empty removes it.", max_length=MAX_NOTE_LENGTH)] = None
    assigned: Annotated[
        str | None,
        Field(description="Name of whoever shall deal with it; empty: nobody.", max_length=MAX_ASSIGNED_LENGTH),
    ] = None
    not_about: Annotated[
        bool | None, Field(description="Whether it is not about the product: a correction, from which the gate learns.")
    ] = None


ReportFormat = Literal["json", "html", "markdown", "csv"]
