"""The comparison of products: typed and versioned like the reports that it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Literal

from pydantic.json_schema import SkipJsonSchema

from api.choices import DepthName, Window
from api.core.domain import Outcome
from api.core.published import IF_SET, WHERE_THERE, Published, Timestamp
from api.pipeline.evidence.figures import AspectCount, Interval, Sentiment
from api.reports.report import Cost, KeptItem, Passage

VERSION = 1  # of a `Comparison`; raised when a field changes meaning
State = Literal["compared", "nothing", "unjudged", "not_asked", "failed"]
"""Result for one product: posts were counted; there were none; those found went unjudged; no source could be asked;
its analysis ended without a report."""
Measure = Literal["posts", "sounds_positive", "sounds_negative", "mentions", "praise", "complaint"]
"""What is compared: number of posts, sentiment of graded posts, and for an aspect the posts that mention, praise, or
complain of it."""


class SourceVolume(Published):
    """Posts of one source about one product."""

    outcome: Outcome
    reason: str | None
    fetched: int
    posts: int
    """Judged to be about the product, and kept in the end."""
    capped: bool
    """Whether the source may hold more than was requested, or that is unknown; both counts are then a minimum."""
    judged: bool
    """Whether a judge gave verdicts on its posts."""

    @property
    def comparable(self) -> bool:
        """Whether the count is of all that the source has."""
        return self.outcome.answered and self.judged and not self.capped


class Standing(Published):
    """One product's row: its posts and what they mention."""

    query: str
    about: str
    analysis_id: str | None
    """Id of the stored report; None when it is not stored."""
    state: State
    reason: str | None
    """Why it could not be compared."""
    posts: int
    """Kept posts that a judge found relevant; the base of all shares."""
    capped: bool
    """A source may hold more."""
    sources: Mapping[str, SourceVolume]
    sentiment: Sentiment | None
    """Sentiment of the graded posts; None when no model graded, and for sample data."""
    aspects: tuple[AspectCount, ...]
    """Posts that surely mention each aspect: a minimum, equally for every product."""


class Contrast(Published):
    """A difference between two products that chance does not explain."""

    measure: Measure
    aspect: str
    """Empty where it is of posts as a whole."""
    more: str
    less: str
    """Queries of the two products."""
    estimate: float | None
    """Ratio of `posts`, None when the other product has none; for other measures, the difference of two shares."""
    low: float
    high: float | None
    """Upper end of the 95 % interval of the estimate; None: unbounded."""
    chance: float
    """Probability that chance makes one as large, after Holm's correction for `looked_at`."""
    sources: tuple[str, ...]
    """Sources whose posts are counted: all that answered for both; for `posts`, those without a limit."""
    cites: tuple[str, ...]
    """Keys of the counted posts: of `more`, then of `less`."""
    text: str


class Side(Published):
    """The counts and passages of a finding for one product."""

    query: str
    count: int
    of: int
    positive: int
    negative: int
    """Counted posts whose passage plainly complains of the aspect; `positive` counts plain praise."""
    evidence: tuple[Passage, ...]
    """A passage of each counted post, the most telling first."""


class ComparedFinding(Published):
    """What posts say of one aspect, for every product."""

    aspect: str
    text: str
    sides: tuple[Side, ...]
    marked: bool
    """Whether one of the `contrasts` concerns this aspect."""


class ComparedItem(KeptItem):
    """An item that is cited or counts for several products; its assessment is for the first of them."""

    products: tuple[str, ...]
    """Queries of the products it counts for."""


class Voice(Published):
    """One product's share among all that are compared."""

    query: str
    people: int
    """Number of people who wrote kept posts about it; one author in one source is one person."""
    share: float | None
    """Share of the people of all products; None when there are none."""
    interval: Interval | None
    """95 % interval of the share (Wilson)."""


class VoiceWeek(Published):
    """The shares of one week, of people who wrote in it."""

    monday: date
    voices: tuple[Voice, ...]


class ShareOfVoice(Published):
    """How people divide among the products they mention, counted from posts by code."""

    reason: str | None
    """Why no share can be stated; None when one is."""
    total: tuple[Voice, ...]
    """Over all counted sources, by product."""
    places: Mapping[str, tuple[Voice, ...]]
    """By source, for the sources that were read to the end for every product."""
    weeks: tuple[VoiceWeek, ...]
    """Weeks in which anybody wrote, in order, of all counted places."""
    left_out: Mapping[str, str]
    """Why a source is excluded for every product, by source."""
    undated: int
    """Counted posts without a date, which no week holds."""


class Comparison(Published):
    """Products side by side; depth, sources, window and limit are those of the first product."""

    version: int
    depth: DepthName
    sources: tuple[str, ...]
    """Chosen sources; empty: those of the settings."""
    since: Window
    limit: int | None
    unlike: Annotated[tuple[str, ...], IF_SET] = ()
    """How the requests differed, one phrase each; differences between products may come from it."""
    products: tuple[Standing, ...]
    """Products in the order in which they were named."""
    looked_at: int
    """Number of differences that were tested for significance."""
    contrasts: tuple[Contrast, ...]
    """Contrasts, those least likely by chance first."""
    findings: tuple[ComparedFinding, ...]
    """Findings with a contrast first, then by number of posts."""
    items: tuple[ComparedItem, ...]
    """Items by product, best first."""
    voice: Annotated[ShareOfVoice | SkipJsonSchema[None], WHERE_THERE] = None
    sample: bool
    cost: Cost
    """USD, tokens and requests of all analyses together."""
    created_at: Timestamp

    @property
    def comparable(self) -> tuple[Standing, ...]:
        """The products whose posts were counted."""
        return tuple(standing for standing in self.products if standing.state == "compared")

    @property
    def answered(self) -> bool:
        """Whether any source could be asked about any product."""
        return any(standing.state not in {"not_asked", "failed"} for standing in self.products)
