"""Whether products were asked alike; if not, a difference may come from how they were asked."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from datetime import timedelta

from api.services.listening import Ask
from api.services.places import Places, title_of
from api.services.reporting.report import Report
from api.services.schemas import Outcome
from api.services.text import clean, minute, one_line
from api.settings import Window

AT_ONCE = timedelta(hours=1)
"""Reports made within it are of one moment: places hardly change, and one may have waited."""
_EXTENT = ("depth", "grades by a model", "how far back", "data", "when")
"""Terms that decide which posts are counted, wherever they are."""
_UNKNOWN = "not known (an older version asked)"


def unlike(reports: Sequence[Report], places: Places) -> Mapping[str, str]:
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


def _terms(reports: Sequence[Report], places: Places) -> Iterator[tuple[str, list[str]]]:
    """Each term on which reports are made, and its value for each of them."""
    yield "depth", [report.depth for report in reports]
    yield "grades by a model", ["yes" if report.grading == "on" else "no" for report in reports]
    yield "how far back", [reach(report.since) if report.since else _UNKNOWN for report in reports]
    titles_of_each = [
        {title_of(places, name) for name in ask_of(report).sources} for report in reports
    ]
    yield "places", [", ".join(sorted(titles)) or "none" for titles in titles_of_each]
    if len({report.depth for report in reports}) == 1:  # else it is the depths' own
        limits = [f"{report.limit} at first" if report.limit else "as usual" for report in reports]
        yield "posts asked of a place", limits
    yield "data", ["made up" if report.sample else "real" for report in reports]
    moments = [report.created_at for report in reports]
    if moments and max(moments) - min(moments) > AT_ONCE:
        yield "when", [minute(moment) for moment in moments]


def _by_value(names: Sequence[str], values: Sequence[str]) -> str:
    """Whose is which: `quick for Oura; deep for Whoop, Garmin`."""
    holders: dict[str, list[str]] = {}
    for name, value in zip(names, values, strict=True):
        holders.setdefault(value, []).append(name)
    return "; ".join(f"{value} for {', '.join(names)}" for value, names in holders.items())
