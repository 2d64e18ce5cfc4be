"""What a run counts: posts of a source since the run before, and what the new ones speak of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from api.services.comparing.comparison import Measure
from api.services.comparing.standings import (
    FEELINGS,
    LEANS,
    Contender,
    contender_of,
)
from api.services.listening import Ask
from api.services.reporting.aspects import aspects
from api.services.reporting.report import KeptItem, Report
from api.services.watching.run import NewPost, RunCounts, SourceCount
from api.services.watching.sifting import Sifted, sources_heard

POSTS: Measure = "posts"
Keys = Mapping[tuple[Measure, str], tuple[str, ...]]
"""By measure and subject, the keys of the posts that count."""


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A run's counts, the posts behind them, and the new posts in words."""

    counts: RunCounts
    keys: Keys
    new: tuple[NewPost, ...]


def counted(report: Report, ask: Ask, sift: Sifted, since: datetime, until: datetime) -> CountedRun:
    """Count what a report holds of the time after `since` up to `until`.

    The aspects are the known ones whose words mean the same in every run: those that the question
    alone gives their meaning.
    """
    stated = f"{report.query} {report.about}"
    names = tuple(aspect.name for aspect in aspects() if aspect.fits(stated))
    contender = contender_of(ask, report.model_copy(update={"items": sift.new}), names)
    looks: list[tuple[Measure, str]] = [
        (measure, name) for name in contender.words for measure in ("mentions", *LEANS)
    ]
    if contender.standing.sentiment is not None:
        looks += [(measure, "") for measure in FEELINGS]
    heard = sources_heard(report)
    keys: dict[tuple[Measure, str], tuple[str, ...]] = {
        (measure, name): contender.counted(measure, name, heard) for measure, name in looks
    }
    for source in heard:
        keys[POSTS, source] = tuple(
            item.key
            for item in sift.counted
            if item.source == source and item.created_at and since < item.created_at <= until
        )
    sources = {
        source: SourceCount(
            posts=len(keys[POSTS, source]),
            capped=report.sources[source].capped is not False,
            fresh=contender.total("mentions", (source,)),
            undated=sum(item.source == source and item.created_at is None for item in sift.new),
            graded=contender.total("sounds_negative", (source,)) if not report.sample else 0,
            tallies={
                f"{measure}:{name}": number
                for measure, name in looks
                if (number := len(contender.counted(measure, name, (source,))))
            },
        )
        for source in heard
    }
    counts = RunCounts(since=since, until=until, sources=sources)
    new = tuple(_post(item, contender, report.sample) for item in sift.new)
    return CountedRun(counts, keys, new)


def _post(item: KeptItem, contender: Contender, sample: bool) -> NewPost:
    """A new post in the words that tell most of it: a complaint's before others."""
    complaints = [
        name for name in contender.words if item.key in contender.leans[name, "complaint"]
    ]
    passages = [
        passage.passage
        for name in (*complaints, *contender.words)
        for passage in contender.words[name]
        if passage.key == item.key
    ]
    return NewPost(
        key=item.key,
        source=item.source,
        title=item.title,
        url=item.url,
        created_at=item.created_at,
        passage=passages[0] if passages else "",
        complains=bool(complaints) or (item.sentiment == -1 and not sample),
    )
