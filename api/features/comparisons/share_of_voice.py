"""Divides the people who mention several products among them, by source and week.

Counted from the posts of reports that were asked alike. A place counts for all products or for none: it has to be
read to its end, and judged, for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

from api.choices import MIN_PRODUCTS
from api.core.domain import Outcome
from api.core.text import clean, one_line
from api.features.comparisons.comparison import ShareOfVoice, SourceVolume, Standing, Voice, VoiceWeek
from api.pipeline.evidence.figures import Voices, wilson
from api.reports.report import Report

Party = tuple[Standing, Report]
"""A product of which something is known, and its report."""


def share_of_voice(products: Sequence[tuple[Standing, object]], unlike: Sequence[str]) -> ShareOfVoice:
    """The shares of these products, each with its report; `unlike` says in what they were asked differently."""
    parties = [
        (standing, report)
        for standing, report in products
        if isinstance(report, Report) and standing.state in {"compared", "nothing"}
    ]
    left_out = _left_out(parties)
    if reason := _reason(parties, unlike):
        return _no_share(reason, left_out)
    names = dict.fromkeys(name for standing, _ in parties for name in standing.sources)
    places = [name for name in names if name not in left_out and parties[0][0].sources[name].outcome.answered]
    if not places:
        cut = any("cut by a limit" in why for why in left_out.values())
        return _no_share(f"no place counts for every product{': ask with a higher limit' if cut else ''}", left_out)
    counted = [{name: _voices(report, name) for name in places} for _, report in parties]
    queries = [standing.query for standing, _ in parties]
    weeks = [sum((Counter(each.weeks) for each in of.values()), Counter[str]()) for of in counted]
    mondays = sorted(set[str]().union(*weeks))
    return ShareOfVoice(
        reason=None,
        total=_shared(queries, [sum(each.people for each in of.values()) for of in counted]),
        places={name: _shared(queries, [of[name].people for of in counted]) for name in places},
        weeks=tuple(
            VoiceWeek(monday=date.fromisoformat(monday), voices=_shared(queries, [week[monday] for week in weeks]))
            for monday in mondays
        ),
        left_out=left_out,
        undated=sum(each.undated for of in counted for each in of.values()),
    )


def _no_share(reason: str, left_out: Mapping[str, str]) -> ShareOfVoice:
    return ShareOfVoice(reason=reason, total=(), places={}, weeks=(), left_out=left_out, undated=0)


def _reason(parties: Sequence[Party], unlike: Sequence[str]) -> str:
    """Why no share can be stated; empty when one can."""
    if len(parties) < MIN_PRODUCTS:
        return "posts were counted for fewer than two products"
    if unlike:
        return f"they were not asked alike ({'; '.join(unlike)}): ask them together"
    for standing, report in parties:
        if report.again_of or (report.items and report.figures.voices is None):
            why = "was judged again" if report.again_of else "is of an older version"
            return f"the report on {_name(standing)} {why}, so its people are not known: ask anew"
    return ""


def _left_out(parties: Sequence[Party]) -> dict[str, str]:
    """Sources excluded for every product because a count is unknown for one; unconfigured sources are not listed."""
    known: dict[str, str] = {}
    for name in dict.fromkeys(name for standing, _ in parties for name in standing.sources):
        volumes = [standing.sources.get(name) for standing, _ in parties]
        if all(volume is None or volume.outcome is Outcome.NOT_CONFIGURED for volume in volumes):
            continue
        lacks = [(_lack(standing.sources.get(name), report, name), _name(standing)) for standing, report in parties]
        lacking = [(why, of) for why, of in lacks if why]
        if lacking:
            known[name] = "; ".join(
                f"{why} for {', '.join(of for other, of in lacking if other == why)}"
                for why in dict.fromkeys(why for why, _ in lacking)
            )
    return known


def _lack(volume: SourceVolume | None, report: Report, name: str) -> str:
    """Why the count of a source cannot be used; empty when it can."""
    if volume is None or volume.outcome in {Outcome.NOT_CONFIGURED, Outcome.NOT_ASKED}:
        return "not asked"
    if not volume.outcome.answered:
        return "no answer"
    if not volume.judged:
        return "not judged"
    if volume.capped:
        return "cut by a limit"
    return "its posts name no author" if volume.posts and name not in (report.figures.voices or {}) else ""


def _voices(report: Report, place: str) -> Voices:
    return (report.figures.voices or {}).get(place) or Voices(people=0, weeks={}, undated=0)


def _shared(queries: Sequence[str], people: Sequence[int]) -> tuple[Voice, ...]:
    total = sum(people)
    return tuple(
        Voice(query=query, people=count, share=count / total if total else None, interval=wilson(count, total))
        for query, count in zip(queries, people, strict=True)
    )


def _name(standing: Standing) -> str:
    return one_line(clean(standing.query))
