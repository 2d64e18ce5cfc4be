"""From the reports on each product to the comparison; every sentence and number is made here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime

from api.services.comparing.comparison import (
    VERSION,
    ComparedFinding,
    ComparedItem,
    Comparison,
    Side,
)
from api.services.comparing.contrasts import contrasts_of, looks_at
from api.services.comparing.likeness import same_extent, unlike
from api.services.comparing.standings import Contender, common_aspects, contender_of
from api.services.containment import Failure
from api.services.listening import Ask
from api.services.places import Places
from api.services.reporting.counting import SHARED
from api.services.reporting.report import Cost, Report

MOST_ASPECTS = 8
"""Findings without a marked difference, at most; the counts of all aspects stand in the JSON."""


def comparison_of(
    asks: Sequence[Ask], answers: Sequence[Report | Failure], places: Places
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
    compared: Sequence[Contender], names: Sequence[str], marked: Sequence[str]
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


def _side(contender: Contender, aspect: str) -> Side:
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


def _items(compared: Sequence[Contender], cited: Collection[str]) -> Iterator[ComparedItem]:
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
