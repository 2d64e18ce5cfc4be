"""From the reports on each product to the comparison; every sentence and number is made here.

Whether products were asked alike; if not, a difference may come from how they were asked.

The same question about each product.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from api.choices import Window
from api.core.display_names import SourceLabels, title_in
from api.core.domain import Outcome
from api.core.progress import Listener, ProductEvent, ignore_event
from api.core.text import clean, cut, one_line, utc_minute
from api.core.words import canonical
from api.core.work import Failure, contained
from api.errors import UsageError
from api.features.comparisons.comparison import (
    VERSION,
    ComparedFinding,
    ComparedItem,
    Comparison,
    Side,
)
from api.features.comparisons.product_counts import (
    ProductCounts,
    common_aspects,
    contender_of,
    contrasts_of,
    looks_at,
)
from api.reports.keyless.theme_sentences import SHARED
from api.reports.report import Cost, Report
from api.services.caller_arguments import question_of
from api.services.product import Ask

AT_ONCE = timedelta(hours=1)
"""Reports made within it are of one moment: places hardly change, and one may have waited."""
# Terms that decide which posts are counted, wherever they are.
_EXTENT = ("depth", "grades by a model", "how far back", "data", "when")
_UNKNOWN = "not known (an older version asked)"


def unlike(reports: Sequence[Report], places: SourceLabels) -> Mapping[str, str]:
    """In what these were asked differently, by term: `quick for Oura; deep for Whoop`.

    Empty where all were asked alike. A report for which nothing was asked differs in nothing.
    """
    inquiries = [report for report in reports if report.sources]
    names = [one_line(clean(report.query)) for report in inquiries]
    return {
        term: _by_value(names, values)
        for term, values in _terms(inquiries, places)
        if len({*values}) > 1 or _UNKNOWN in values
    }


def same_extent(terms: Container[str]) -> bool:
    """Whether counts of posts can be compared although products were `unlike` in these.

    Which places and how many posts of each were asked for may differ: what counts is a place that
    was read to its end for both.
    """
    return not any(term in terms for term in _EXTENT)


def ask_of(report: Report) -> Ask:
    """The question of a stored report, as far as that knows it; its places are those asked."""
    sources = tuple(
        name
        for name, source in report.sources.items()
        if source.outcome is not Outcome.NOT_CONFIGURED
    )
    since = report.since or "all"
    return Ask(report.query, report.depth, sources, since, report.limit, report.about)


def reach(since: Window) -> str:
    """How far back, in words."""
    return "any time" if since == "all" else f"the last {since}"


def _terms(reports: Sequence[Report], places: SourceLabels) -> Iterator[tuple[str, list[str]]]:
    """Each term on which reports are made, and its value for each of them."""
    yield "depth", [report.depth for report in reports]
    yield "grades by a model", ["yes" if report.grading == "on" else "no" for report in reports]
    yield "how far back", [reach(report.since) if report.since else _UNKNOWN for report in reports]
    titles_of_each = [
        {title_in(places, name) for name in ask_of(report).sources} for report in reports
    ]
    yield "places", [", ".join(sorted(titles)) or "none" for titles in titles_of_each]
    if len({report.depth for report in reports}) == 1:  # else it is the depths' own
        limits = [f"{report.limit} at first" if report.limit else "as usual" for report in reports]
        yield "posts asked of a place", limits
    yield "data", ["made up" if report.sample else "real" for report in reports]
    moments = [report.created_at for report in reports]
    if moments and max(moments) - min(moments) > AT_ONCE:
        yield "when", [utc_minute(moment) for moment in moments]


def _by_value(names: Sequence[str], values: Sequence[str]) -> str:
    """Whose is which: `quick for Oura; deep for Whoop, Garmin`."""
    holders: dict[str, list[str]] = {}
    for name, value in zip(names, values, strict=True):
        holders.setdefault(value, []).append(name)
    return "; ".join(f"{value} for {', '.join(names)}" for value, names in holders.items())


MOST_ASPECTS = 8
"""Findings without a marked difference, at most; the counts of all aspects stand in the JSON."""


def comparison_of(
    asks: Sequence[Ask], answers: Sequence[Report | Failure], places: SourceLabels
) -> Comparison:
    """The products of these questions side by side, in their order.

    Each answer is its question's report, or how its analysis failed.
    """
    reports = [answer for answer in answers if isinstance(answer, Report)]
    names = common_aspects(reports)
    products = [contender_of(*both, names) for both in zip(asks, answers, strict=True)]
    compared = [each for each in products if each.standing.state == "compared"]
    differently = unlike(reports, places)
    looks = looks_at(compared, names, volumes=same_extent(differently))
    contrasts = contrasts_of(looks, places)
    marked = tuple(dict.fromkeys(each.aspect for each in contrasts if each.aspect))
    findings = tuple(_findings(compared, names, marked)) if len(compared) > 1 else ()
    cited = {key for contrast in contrasts for key in contrast.cites}
    cited |= {
        passage.key for finding in findings for side in finding.sides for passage in side.evidence
    }
    like, prices = asks[0], [report.cost.usd for report in reports]
    return Comparison(
        version=VERSION,
        depth=like.depth,
        sources=like.sources,
        since=like.window,
        limit=like.limit,
        unlike=tuple(f"{term}: {values}" for term, values in differently.items()),
        products=tuple(each.standing for each in products),
        looked_at=len(looks),
        contrasts=contrasts,
        findings=findings,
        items=tuple(_items(compared, cited)),
        sample=any(report.sample for report in reports),
        cost=Cost(
            usd=None if None in prices else sum(filter(None, prices)),
            tokens=sum(report.cost.tokens for report in reports),
            upstream_calls=sum(report.cost.upstream_calls for report in reports),
        ),
        created_at=datetime.now(UTC),
    )


def _findings(
    compared: Sequence[ProductCounts], names: Sequence[str], marked: Sequence[str]
) -> Iterator[ComparedFinding]:
    """The aspects in which something differs, then those that most posts speak of."""
    speaking = Counter(
        {name: sum(len(each.words.get(name, ())) for each in compared) for name in names}
    )
    shared = [name for name, count in speaking.most_common() if count >= SHARED]
    for name in (*marked, *[name for name in shared if name not in marked][:MOST_ASPECTS]):
        sides = tuple(_side(each, name) for each in compared)
        counts = ", ".join(
            f"in {side.count or 'none'} of {side.of}{'' if number else ' posts'} about {each.name}"
            f"{_leaning(side)}"
            for number, (side, each) in enumerate(zip(sides, compared, strict=True))
        )
        text = f"{name.capitalize()}: spoken of {counts}."
        yield ComparedFinding(aspect=name, text=text, sides=sides, marked=name in marked)


def _side(contender: ProductCounts, aspect: str) -> Side:
    counted = next((each for each in contender.standing.aspects if each.aspect == aspect), None)
    return Side(
        query=contender.standing.query,
        count=counted.count if counted else 0,
        of=contender.standing.posts,
        positive=counted.positive if counted else 0,
        negative=counted.negative if counted else 0,
        evidence=contender.words.get(aspect, ()),
    )


def _leaning(side: Side) -> str:
    """How many plainly lean, in brackets; nothing where none does."""
    leans = [(side.positive, "praising"), (side.negative, "complaining")]
    parts = [f"{count} {doing}" for count, doing in leans if count]
    return f" ({', '.join(parts)})" if parts else ""


def _items(compared: Sequence[ProductCounts], cited: Collection[str]) -> Iterator[ComparedItem]:
    """What is cited, and what counts for several products, each once."""
    holders: dict[str, list[str]] = {}
    for each in compared:
        for item in each.items:
            holders.setdefault(item.key, []).append(each.standing.query)
    listed: set[str] = set()
    for each in compared:
        for item in each.items:
            products = tuple(holders[item.key])
            if item.key not in listed and (item.key in cited or len(products) > 1):
                listed.add(item.key)
                yield ComparedItem(**dict(item), products=products)


FEWEST, MOST = 2, 5
"""Products of one comparison."""


def check_number(number: int) -> None:
    """Whether so many can stand beside one another.

    Raises:
        UsageError: too few or too many.
    """
    if not FEWEST <= number <= MOST:
        raise UsageError(f"a comparison takes {FEWEST} to {MOST} products, not {number}")


def check_products(names: Sequence[str]) -> None:
    """Whether these can stand beside one another.

    Raises:
        UsageError: too few or too many, or the same one twice.
    """
    check_number(len(names))
    known: dict[str, str] = {}
    for name, form in zip(map(_shown, names), map(canonical, names), strict=True):
        if form in known:
            raise UsageError(f"“{known[form]}” and “{name}” are the same product: name each once")
        known[form] = name


def asks_of(products: Sequence[tuple[str, str]], like: Ask) -> tuple[Ask, ...]:
    """An `Ask` for each product and what it is; all else as in `like`.

    Raises:
        UsageError: too few or too many, one that names nothing, or the same one twice.
    """
    asks = []
    for query, about in products:
        try:
            question = question_of(query, about)
        except UsageError as error:
            raise UsageError(f"“{_shown(query)}”: {error}") from None
        asks.append(replace(like, query=question.text, about=question.about))
    check_products([ask.query for ask in asks])
    return tuple(asks)


async def analyze_each(
    analyze: Callable[[Ask, Listener], Awaitable[Report]],
    asks: Sequence[Ask],
    listener: Listener = ignore_event,
) -> list[Report | Failure]:
    """Analyze all at once, so at one moment; one that fails leaves the others alone.

    The listener hears `ProductEvent`s.
    """

    def heard(ask: Ask) -> Listener:
        return lambda event: listener(ProductEvent(product=ask.query, event=event))

    return await asyncio.gather(
        *(contained(analyze(ask, heard(ask)), "an analysis to compare") for ask in asks)
    )


def _shown(name: str) -> str:
    """A product as a message calls it."""
    return cut(one_line(clean(name)), 60)
