"""What every rendering of a comparison shows, before it is laid out: its table, notes and sides.

Texts of posts are strangers': each rendering escapes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from api.choices import MIN_PRODUCTS
from api.core.domain import Outcome
from api.core.text import SHORT_ID, quantity
from api.features.comparisons.compare import window_in_words
from api.features.comparisons.comparison import (
    ComparedFinding,
    Comparison,
    ShareOfVoice,
    Side,
    SourceVolume,
    Standing,
    State,
    Voice,
    VoiceWeek,
)  # fmt: skip
from api.interfaces.shared import presentation
from api.reports.report import Passage

SHOWN = 2
"""Passages of each product shown under a finding; the JSON has the others."""
DIFFER = "Where they differ"
"""Heads the differences that are marked."""
VOICE = "Share of voice"
"""Heading of the shares of voice."""
WEEKS = 8
"""Weeks of a share of voice that are shown, the last ones; JSON has all."""
FEWEST_PEOPLE = 10
"""People of a week below which its shares would show chance alone, so that the week is left out."""
_STATES: dict[State, str] = {
    "compared": "compared",
    "nothing": "nothing was about it",
    "unjudged": "nobody could judge",
    "not_asked": "could not be asked",
    "failed": "has no report",
}
Words = tuple[str, Passage]
"""Product's query and a passage about it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: a measure and its value for each product."""

    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bullet:
    """One line below the table, with its citations and quotes."""

    text: str
    cites: tuple[str, ...] = ()
    words: tuple[Words, ...] = ()


def title(comparison: Comparison) -> str:
    """`A, B and C, compared`."""
    *names, last = map(name_of, comparison.products)
    return f"{', '.join(names)} and {last}, compared"


def name_of(standing: Standing) -> str:
    """A product as the head of its column."""
    return presentation.shortened(standing.query, presentation.LONGEST_PRODUCT)


def alike(comparison: Comparison) -> str:
    """How the products were asked, and the consequence when that differed."""
    if not any(each.analysis_id for each in comparison.products):
        return "None of them has a report."
    if comparison.unlike:
        phrases = ". ".join(phrase[0].upper() + phrase[1:] for phrase in comparison.unlike)
        return (
            f"They were not asked alike. {phrases}. Where they differ below, that may be the "
            "reason, and no interval knows of it. How many posts there are is compared only where "
            "depth and time were the same."
        )
    sources = ", ".join(map(presentation.source_title, comparison.sources)) or "the same sources"
    limit = f", {comparison.limit} items a source at first" if comparison.limit else ""
    return (
        f"Each was asked alike and at the same time: {sources}, depth {comparison.depth}, "
        f"posts of {window_in_words(comparison.since)}{limit}."
    )


def aspect_name(finding: ComparedFinding) -> str:
    """The aspect, with `*` where a difference in it is marked."""
    return f"{finding.aspect}{' *' if finding.marked else ''}"


def glance(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """For each product with counted posts, a label and its number."""
    for each in comparison.comparable:
        fetched = sum(volume.fetched for volume in each.sources.values())
        yield f"posts about {name_of(each)}, of {fetched}{_more(each)} found", f"{each.posts}{_more(each)}"


def undecided(comparison: Comparison) -> str:
    """Sentence saying that no difference is certain; empty when one is, or when fewer than two are compared."""
    if comparison.contrasts or len(comparison.comparable) < MIN_PRODUCTS:
        return ""
    if not comparison.looked_at:
        return "No difference is sure: there are too few posts to compare any."
    looked_at = quantity(comparison.looked_at, "comparison")
    return (
        f"No difference is sure: in {looked_at} of so few posts, chance alone makes differences as large as those "
        "below. That does not mean that the products are alike."
    )


def table(comparison: Comparison) -> list[Row]:
    """Rows for posts, sentiment and aspects of each product; `-` when unknown."""
    products = comparison.products
    rows = [Row("outcome", tuple(_STATES[each.state] for each in products))]
    if len(comparison.comparable) == len(products):
        rows = []
    fetched = [sum(volume.fetched for volume in each.sources.values()) for each in products]
    counts = tuple(f"{n}{_more(each)}" for n, each in zip(fetched, products, strict=True))
    rows.append(Row("posts found", counts))
    rows.append(Row("about it", tuple(f"{each.posts}{_more(each)}" for each in products)))
    for name in dict.fromkeys(name for each in products for name in each.sources):
        volumes = [each.sources.get(name) for each in products]
        if any(each and each.outcome is not Outcome.NOT_CONFIGURED for each in volumes):
            rows.append(Row(f"on {presentation.source_title(name)}", tuple(map(_volume, volumes))))
    felt = [each.sentiment for each in products]
    if any(felt):
        good = tuple(f"{each.positive} of {each.n}" if each else "-" for each in felt)
        bad = tuple(f"{each.negative} of {each.n}" if each else "-" for each in felt)
        rows += [Row("sound positive", good), Row("sound negative", bad)]
    for finding in comparison.findings:
        sides = {side.query: _side(side) for side in finding.sides}
        cells = tuple(sides.get(each.query, "-") for each in products)
        rows.append(Row(aspect_name(finding), cells))
    ids = (each.analysis_id[:SHORT_ID] if each.analysis_id else "-" for each in products)
    return [*rows, Row("report", tuple(ids))]


def notes(comparison: Comparison) -> Iterator[str]:
    """What the signs of the table mean, what of it may be claimed, and why a product is missing."""
    yield from signs(comparison)
    yield from missing(comparison)


def missing(comparison: Comparison) -> Iterator[str]:
    """Why a product could not be compared, for each."""
    for each in comparison.products:
        if each.reason:
            reason = presentation.shortened(each.reason, 400)
            yield f"{name_of(each)}: {_STATES[each.state]}. {reason[:1].upper()}{reason[1:]}"


def plus(comparison: Comparison) -> str:
    """Explanation of a count such as `31+`; empty when there is none."""
    if not any(each.capped for each in comparison.products):
        return ""
    return (
        "+: a place may hold more posts than were asked for, so the count is a minimum, and says nothing of which "
        "product has more posts."
    )


def signs(comparison: Comparison) -> Iterator[str]:
    """What the signs of the table mean, and what of it may be claimed."""
    looked_at = quantity(comparison.looked_at, "comparison")
    if comparison.comparable:
        yield (
            "“About it”: posts that a judge found to be about the product and its report kept; "
            "below, how many of them each place has. All shares are of these."
        )
    for finding in comparison.findings[:1]:
        yield (
            f"“{finding.aspect}” and the like: in how many of the posts about a product it is "
            "surely spoken of, a minimum."
        )
    if any(side.positive or side.negative for each in comparison.findings for side in each.sides):
        yield "(+2 -1): two of these plainly praise it, one plainly complains of it."
    if sign := plus(comparison):
        yield sign
    if len(comparison.comparable) < MIN_PRODUCTS:
        yield "Nothing could be compared: posts were counted for fewer than two products."
    elif comparison.contrasts:
        yield (
            f"* and “{DIFFER}”: differences that the posts support. The range after “95 %:” is "
            "where one lies with 95 % confidence, each by itself. If no products differed at all, "
            f"chance would mark any of the {looked_at} looked at in 5 % of cases at most (Holm's "
            "correction). All else may be chance."
        )
        yield (
            "What the intervals do not know: posts of one thread are not independent of one "
            "another, who writes is not who buys, and each place's search chose what came first."
        )
    elif comparison.looked_at:
        yield (
            f"No difference is marked: what was looked at ({looked_at}) is no more than chance "
            "alone makes of so few posts. That does not mean that the products are alike."
        )
    else:
        yield "No difference is marked: there are too few posts to look at any."


def sections(comparison: Comparison) -> Iterator[tuple[str, list[Bullet]]]:
    """Below the table: each heading that has anything, differences first."""
    products, marked = comparison.products, list[Bullet]()
    words = {each.aspect: _words(each, products) for each in comparison.findings}
    for aspect in dict.fromkeys(each.aspect for each in comparison.contrasts):
        contrasts = [each for each in comparison.contrasts if each.aspect == aspect]
        marked += [Bullet(each.text, () if aspect else each.cites) for each in contrasts]
        marked[-1] = replace(marked[-1], words=words.get(aspect, ()))
    rest = [Bullet(each.text, words=words[each.aspect]) for each in comparison.findings if not each.marked]
    names = {each.query: name_of(each) for each in products}
    several = [
        Bullet(f"{' and '.join(names[each] for each in item.products)}: {title}", (item.key,))
        for item, title in zip(comparison.items, map(presentation.title_of, comparison.items), strict=True)
        if len(item.products) > 1
    ]
    for heading, bullets in (
        (DIFFER, marked),
        ("What else is said of each" if marked else "What is said of each", rest),
        ("Posts about more than one of them", several),
    ):
        if bullets:
            yield heading, bullets


def voices(comparison: Comparison) -> list[tuple[str, Sequence[Voice]]]:
    """Shares of all counted places, of each of several places, and of recent weeks; empty when none can be stated."""
    voice = comparison.voice
    if voice is None or not voice.total:
        return []
    places = [(f"on {presentation.source_title(name)}", each) for name, each in voice.places.items()]
    weeks = [(f"week of {week.monday}", week.voices) for week in _full_weeks(voice)[-WEEKS:]]
    return [("all places", voice.total), *(places if len(places) > 1 else ()), *(weeks if len(weeks) > 1 else ())]


def _full_weeks(voice: ShareOfVoice) -> list[VoiceWeek]:
    return [week for week in voice.weeks if sum(each.people for each in week.voices) >= FEWEST_PEOPLE]


def voice_table(comparison: Comparison) -> list[Row]:
    """One row for each share of voice: `57 % (37-76), 12 people`; `-` when nobody mentions a product."""
    rows = []
    for name, shares in voices(comparison):
        cells = {each.query: _voice(each) for each in shares}
        rows.append(Row(name, tuple(cells.get(each.query, "-") for each in comparison.products)))
    return rows


def voice_notes(comparison: Comparison) -> Iterator[str]:
    """Which places and weeks are counted, what is excluded and why, and what the shares do not show."""
    voice = comparison.voice
    if voice is None:
        return
    if voice.reason:
        yield f"No share of voice can be stated: {voice.reason}."
    else:
        titles = ", ".join(map(presentation.source_title, voice.places))
        weeks = [week.monday for week in voice.weeks]
        span = f", dated from the week of {weeks[0]} to that of {weeks[-1]}" if weeks else ""
        undated = f"; {quantity(voice.undated, 'post')} without a date in no week" if voice.undated else ""
        yield f"Counted, for every product: {titles}{span}{undated}."
        yield (
            "People are counted, not posts: whoever wrote six posts in a place is one person there, and one in each "
            "week in which they wrote. Who only commented is not counted. The range of a share is its 95 % interval, "
            "each taken by itself."
        )
        full = len(_full_weeks(voice))
        if few := len(weeks) - full:
            yield f"{quantity(few, 'week')} in which fewer than {FEWEST_PEOPLE} people wrote: only JSON has them."
        if full > WEEKS:
            yield f"Of {full} weeks in which more people wrote, the last {WEEKS} are shown; JSON has all."
    if voice.left_out:
        listed = "; ".join(f"{presentation.source_title(name)} ({why})" for name, why in voice.left_out.items())
        yield f"Left out for every product: {listed}."
    if not voice.reason:
        yield (
            "What a share cannot say: who calls a product by another name is not found, posts on a namesake that "
            "passed the gate are counted, an author of two places or products counts in each, and who writes is not "
            "who buys."
        )


def _voice(voice: Voice) -> str:
    if voice.share is None or voice.interval is None:
        return "-"
    share, low, high = (round(100 * part) for part in (voice.share, *voice.interval))
    return f"{share} % ({low}-{high}), {quantity(voice.people, 'person', 'people')}"


def _words(finding: ComparedFinding, products: Sequence[Standing]) -> tuple[Words, ...]:
    names = {each.query: name_of(each) for each in products}
    return tuple((names[side.query], passage) for side in finding.sides for passage in side.evidence[:SHOWN])


def _more(standing: Standing) -> str:
    return "+" if standing.capped else ""


def _volume(volume: SourceVolume | None) -> str:
    if volume is None:
        return "-"
    if not volume.outcome.answered:
        return volume.outcome.replace("_", " ")
    more = "+" if volume.capped else ""
    return f"{volume.posts}{more}" if volume.judged else "not judged"


def _side(side: Side) -> str:
    leans = f" (+{side.positive} -{side.negative})" if side.positive or side.negative else ""
    return f"{side.count} of {side.of}{leans}"
