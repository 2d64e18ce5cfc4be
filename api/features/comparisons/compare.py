"""Asks one question about several products at once, and compares their reports.

Every sentence and number of a comparison is made by code.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from api.choices import MAX_PRODUCTS, MIN_PRODUCTS, Window
from api.core.display_names import SourceLabels, title_in
from api.core.domain import Outcome
from api.core.progress import Listener, ProductEvent, ignore_event
from api.core.text import clean, cut, one_line, utc_minute
from api.core.words import canonical
from api.core.work import Failure, contained
from api.errors import UsageError
from api.features.comparisons import product_counts
from api.features.comparisons.comparison import VERSION, ComparedFinding, ComparedItem, Comparison, Side
from api.features.comparisons.product_counts import ProductCounts
from api.features.comparisons.share_of_voice import share_of_voice
from api.reports.keyless.theme_sentences import SHARED
from api.reports.report import Cost, Report
from api.services.product import Ask, question_of

MOST_ASPECTS = 8
"""Most findings about aspects without a significant difference; the JSON has the counts of every aspect."""
AT_ONCE = timedelta(hours=1)
"""Reports made within it are of one moment: sources hardly change, and one may have waited."""
# Terms that decide which posts are counted. Sources and limits may differ: volumes are compared
# only where a source was read to its end for both products.
_COUNT_TERMS = ("depth", "grades by a model", "how far back", "data", "when")
_UNKNOWN = "not known (an older version asked)"


def differing_terms(reports: Sequence[Report], places: SourceLabels) -> Mapping[str, str]:
    """Terms on which reports that asked sources differ: `quick for Oura; deep for Whoop`."""
    reports = [report for report in reports if report.sources]
    names = [one_line(clean(report.query)) for report in reports]
    differing = {}
    for term, values in _terms(reports, places):
        if len({*values}) > 1 or _UNKNOWN in values:
            products: dict[str, list[str]] = {}
            for name, value in zip(names, values, strict=True):
                products.setdefault(value, []).append(name)
            phrases = (f"{value} for {', '.join(of)}" for value, of in products.items())
            differing[term] = "; ".join(phrases)
    return differing


def _terms(reports: Sequence[Report], places: SourceLabels) -> Iterator[tuple[str, list[str]]]:
    yield "depth", [report.depth for report in reports]
    yield "grades by a model", ["yes" if report.grading == "on" else "no" for report in reports]
    yield (
        "how far back",
        [window_in_words(report.since) if report.since else _UNKNOWN for report in reports],
    )
    titles_of_each = [{title_in(places, name) for name in ask_of_report(report).sources} for report in reports]
    yield "places", [", ".join(sorted(titles)) or "none" for titles in titles_of_each]
    if len({report.depth for report in reports}) == 1:  # else the depths' own limits differ
        limits = [f"{report.limit} at first" if report.limit else "as usual" for report in reports]
        yield "posts asked of a place", limits
    yield "data", ["made up" if report.sample else "real" for report in reports]
    times = [report.created_at for report in reports]
    if times and max(times) - min(times) > AT_ONCE:
        yield "when", [utc_minute(time) for time in times]


def ask_of_report(report: Report) -> Ask:
    """The request behind a stored report, as far as the report says it; with the asked sources."""
    sources = tuple(name for name, source in report.sources.items() if source.outcome is not Outcome.NOT_CONFIGURED)
    since = report.since or "all"
    return Ask.of(report, sources=sources, since=since, items=())


def window_in_words(since: Window) -> str:
    """`any time`, or `the last week`."""
    return "any time" if since == "all" else f"the last {since}"


def comparison_of(asks: Sequence[Ask], answers: Sequence[Report | Failure], places: SourceLabels) -> Comparison:
    """The products of these requests side by side, in order; each answer is of its request."""
    reports = [answer for answer in answers if isinstance(answer, Report)]
    names = product_counts.common_aspects(reports)
    products = [product_counts.count_product(*both, names) for both in zip(asks, answers, strict=True)]
    compared = [each for each in products if each.standing.state == "compared"]
    differing = differing_terms(reports, places)
    volumes = differing.keys().isdisjoint(_COUNT_TERMS)
    tests = product_counts.difference_tests(compared, names, volumes=volumes)
    contrasts = product_counts.marked_contrasts(tests, places)
    marked = tuple(dict.fromkeys(each.aspect for each in contrasts if each.aspect))
    findings = tuple(_findings(compared, names, marked)) if len(compared) > 1 else ()
    cited = {key for contrast in contrasts for key in contrast.cites}
    for finding in findings:
        cited.update(passage.key for side in finding.sides for passage in side.evidence)
    like, prices = asks[0], [report.cost.usd for report in reports]
    return Comparison(
        version=VERSION,
        depth=like.depth,
        sources=like.sources,
        since=like.since,
        limit=like.limit,
        unlike=tuple(f"{term}: {values}" for term, values in differing.items()),
        products=tuple(each.standing for each in products),
        looked_at=len(tests),
        contrasts=contrasts,
        findings=findings,
        items=tuple(_items(compared, cited)),
        voice=share_of_voice(
            [(each.standing, answer) for each, answer in zip(products, answers, strict=True)],
            [f"{term}: {differing[term]}" for term in _COUNT_TERMS if term in differing],
        ),
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
    """Findings on aspects with a significant difference, then on those that most posts mention."""
    counts = Counter({n: sum(len(each.passages.get(n, ())) for each in compared) for n in names})
    shared = [name for name, count in counts.most_common() if count >= SHARED]
    for name in (*marked, *[name for name in shared if name not in marked][:MOST_ASPECTS]):
        sides, phrases = [], []
        for number, product in enumerate(compared):
            row = next((entry for entry in product.standing.aspects if entry.aspect == name), None)
            side = Side(
                query=product.standing.query,
                count=row.count if row else 0,
                of=product.standing.posts,
                positive=row.positive if row else 0,
                negative=row.negative if row else 0,
                evidence=product.passages.get(name, ()),
            )
            sides.append(side)
            leans = [(side.positive, "praising"), (side.negative, "complaining")]
            leaning = ", ".join(f"{count} {doing}" for count, doing in leans if count)
            of = f"{side.of}{'' if number else ' posts'} about {product.name}"
            phrases.append(f"in {side.count or 'none'} of {of}{f' ({leaning})' if leaning else ''}")
        text = f"{name.capitalize()}: spoken of {', '.join(phrases)}."
        yield ComparedFinding(aspect=name, text=text, sides=tuple(sides), marked=name in marked)


def _items(compared: Sequence[ProductCounts], cited: Collection[str]) -> Iterator[ComparedItem]:
    """Items that are cited or count for several products, each once."""
    products: dict[str, list[str]] = {}
    for each in compared:
        for item in each.items:
            products.setdefault(item.key, []).append(each.standing.query)
    listed: set[str] = set()
    for each in compared:
        for item in each.items:
            queries = tuple(products[item.key])
            if item.key not in listed and (item.key in cited or len(queries) > 1):
                listed.add(item.key)
                yield ComparedItem(**dict(item), products=queries)


def check_count(number: int) -> None:
    """Raise `UsageError` unless there are `FEWEST_PRODUCTS` to `MOST_PRODUCTS`."""
    if not MIN_PRODUCTS <= number <= MAX_PRODUCTS:
        raise UsageError(f"a comparison takes {MIN_PRODUCTS} to {MAX_PRODUCTS} products, not {number}")


def check_products(names: Sequence[str]) -> None:
    """Raise `UsageError` for too few or too many products, or one that is named twice."""
    check_count(len(names))
    known: dict[str, str] = {}
    for name, form in zip(map(_shown, names), map(canonical, names), strict=True):
        if form in known:
            raise UsageError(f"“{known[form]}” and “{name}” are the same product: name each once")
        known[form] = name


def asks_of(products: Sequence[tuple[str, str]], like: Ask) -> tuple[Ask, ...]:
    """A request, like `like`, for each product and its description; raises `UsageError`."""
    asks = []
    for query, about in products:
        ask = replace(like, query=query, about=clean(about))
        try:
            asks.append(replace(ask, query=question_of(ask).text))
        except UsageError as error:
            raise UsageError(f"“{_shown(query)}”: {error}") from None
    check_products([ask.query for ask in asks])
    return tuple(asks)


async def analyze_each(
    analyze: Callable[[Ask, Listener], Awaitable[Report]],
    asks: Sequence[Ask],
    listener: Listener = ignore_event,
) -> list[Report | Failure]:
    """Analyze all concurrently, so at one moment; failures are results, events `ProductEvent`s."""

    def listener_of(ask: Ask) -> Listener:
        return lambda event: listener(ProductEvent(product=ask.query, event=event))

    return await asyncio.gather(*(contained(analyze(ask, listener_of(ask)), "an analysis to compare") for ask in asks))


def _shown(name: str) -> str:
    return cut(one_line(clean(name)), 60)
