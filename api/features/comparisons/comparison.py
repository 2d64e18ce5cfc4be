"""What a comparison says: typed and versioned like a report, of whose ids it is made.

Its sentences are made by code; its items and their words are those of the reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from api.choices import DepthName, Window
from api.core.domain import Outcome
from api.core.published import Published
from api.pipeline.evidence.figures import IF_SET, AspectCount, Sentiment
from api.reports.report import Cost, KeptItem, Passage, Timestamp

VERSION = 1
"""Of a `Comparison`; raised when a field changes meaning."""
State = Literal["compared", "nothing", "unjudged", "not_asked", "failed"]
"""Of a product: posts about it were counted; none was; those that came went unjudged; no source
could be asked; its analysis ended without a report."""
Measure = Literal["posts", "sounds_positive", "sounds_negative", "mentions", "praise", "complaint"]
"""What two products differ in: how many posts, how the graded ones sound, and of an aspect how many
posts speak of it, plainly praise it, or plainly complain of it."""


class SourceVolume(Published):
    """What one source had about one product."""

    outcome: Outcome
    reason: str | None
    fetched: int
    posts: int
    """Judged to be about the product, and kept in the end."""
    capped: bool
    """It may hold more than was asked for, or nobody knows: both counts are a minimum."""
    judged: bool
    """A judge has seen what it gave."""

    @property
    def comparable(self) -> bool:
        """Whether its count is all that the source has."""
        return self.outcome.answered and self.judged and not self.capped


class Standing(Published):
    """One product's row: what was found about it, and what that speaks of."""

    query: str
    about: str
    analysis_id: str | None
    """Of the report that is kept; None where there is none."""
    state: State
    reason: str | None
    """Why nothing of it could be compared."""
    posts: int
    """All shares are of these: kept posts that a judge has found to be about the product."""
    capped: bool
    """One source at least may hold more."""
    sources: Mapping[str, SourceVolume]
    sentiment: Sentiment | None
    """Of the graded posts; None where no model graded, and of made-up data."""
    aspects: tuple[AspectCount, ...]
    """Posts that surely speak of each, as in the themes of a report: a minimum, for each alike."""


class Contrast(Published):
    """A difference between two products that the interval supports."""

    measure: Measure
    aspect: str
    """Empty of posts as a whole."""
    more: str
    less: str
    """Queries of the two."""
    estimate: float | None
    """Of `posts` the ratio, None where the other has none; else the difference of two shares."""
    low: float
    high: float | None
    """Ends of its 95 % interval; None: it has no upper end."""
    chance: float
    """How often chance alone makes one as large, after Holm's correction for `looked_at`."""
    sources: tuple[str, ...]
    """Those whose posts are counted: all that answered for both, of `posts` without a limit."""
    cites: tuple[str, ...]
    """Keys of the counted posts: of `more`, then of `less`."""
    text: str


class Side(Published):
    """What a finding rests on for one product."""

    query: str
    count: int
    of: int
    positive: int
    negative: int
    """Of the counted posts, those whose passage plainly praises it, and plainly complains of it."""
    evidence: tuple[Passage, ...]
    """A passage of each counted post, the most telling first."""


class ComparedFinding(Published):
    """What is said of one aspect: its counts for every product, and the words of each."""

    aspect: str
    text: str
    sides: tuple[Side, ...]
    marked: bool
    """A difference in it is among the `contrasts`."""


class ComparedItem(KeptItem):
    """An item that is cited, or counts for several; its assessment is that of the first."""

    products: tuple[str, ...]
    """Queries of those it counts for."""


class Comparison(Published):
    """Products side by side; how they were asked is that of the first where they were `unlike`."""

    version: int
    depth: DepthName
    sources: tuple[str, ...]
    """As they were chosen; empty: those of the settings."""
    since: Window
    limit: int | None
    unlike: Annotated[tuple[str, ...], IF_SET] = ()
    """In what they were asked differently, a phrase each; a difference may come of it."""
    products: tuple[Standing, ...]
    """In the order in which they were named."""
    looked_at: int
    """Comparisons that could have been marked."""
    contrasts: tuple[Contrast, ...]
    """The surest first; none: no difference is marked."""
    findings: tuple[ComparedFinding, ...]
    """The marked ones first, then by how many posts speak of them."""
    items: tuple[ComparedItem, ...]
    """By product, best first."""
    sample: bool
    cost: Cost
    """Of all analyses together."""
    created_at: Timestamp

    @property
    def comparable(self) -> tuple[Standing, ...]:
        """The products of which posts were counted."""
        return tuple(standing for standing in self.products if standing.state == "compared")

    @property
    def answered(self) -> bool:
        """Whether any source could be asked about any product."""
        return any(standing.state not in {"not_asked", "failed"} for standing in self.products)
