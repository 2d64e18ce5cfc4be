"""Finds the posts of a report that are new to a watch, and counts them.

A post is new once, whatever its edits, crossposts and copies. Counts are of a source's posts since the last run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from api.core.items import Item
from api.core.own_words import own_words
from api.core.text import cut, one_line
from api.features.comparisons.comparison import Measure
from api.features.comparisons.product_counts import FEELINGS, LEANS, ProductCounts, count_product
from api.features.watches.watch import Watch
from api.features.watches.watch_ports import SeenPost
from api.features.watches.watch_run import NewPost, RunCounts, SourceCount
from api.pipeline.evidence.duplicates import COMPARED, copies_among
from api.reports.keyless.aspects import aspects
from api.reports.report import LONGEST_PASSAGE, KeptItem, Report
from api.services.product import Ask

# What drops a post for not being about it, or not enough.
_VERDICTS = frozenset({"gate", "cutoff", "floor"})


@dataclass(frozen=True, slots=True)
class NewPosts:
    """A report as a watch sees it."""

    counted: tuple[KeptItem, ...]
    """Judged to be about it, without copies of what earlier runs had and what they dropped."""
    new: tuple[KeptItem, ...]
    """Posts that no run has seen, written since the watch began or at an unknown time."""
    learnt: tuple[SeenPost, ...]
    """Posts to remember from now on."""


def sifted(report: Report, watch: Watch, known: Iterable[SeenPost], similarity: float) -> NewPosts:
    """Compare a report with the posts seen before; unjudged posts are neither new nor remembered."""
    memory = {entry.key: entry for entry in known}
    kept = {key for key, entry in memory.items() if not entry.dropped_by}
    dropped = {key for key, entry in memory.items() if entry.dropped_by == watch.rule}
    judged = [item for item in report.items if item.verdict and item.key not in dropped]
    unknown = [item for item in judged if item.key not in kept]
    copies = copies_among(
        unknown,
        [entry.item for entry in memory.values() if entry.item is not None],
        similarity,
    )
    began = watch.began_at
    new = tuple(
        item
        for item in unknown
        if item.key not in copies and (began is None or item.created_at is None or item.created_at > began)
    )
    learnt = [SeenPost(item.key, item=_recognisable(item)) for item in unknown]
    for out in report.dropped:
        if out.key not in kept:
            if out.dropped_by == "duplicate":
                learnt.append(SeenPost(out.key))
            elif out.dropped_by in _VERDICTS:
                learnt.append(SeenPost(out.key, watch.rule))
    return NewPosts(tuple(item for item in judged if item.key not in copies), new, tuple(learnt))


def _recognisable(item: Item) -> Item:
    """The item with only the parts that are compared."""
    return item.edited(body=item.body[:COMPARED], comments=(), notes=(), engagement={}, places=())


def sources_heard(report: Report) -> Sequence[str]:
    """The sources that answered, and whose answers a judge has seen."""
    return [name for name, source in report.sources.items() if source.outcome.answered and not source.gate.unjudged]


POSTS: Measure = "posts"
Keys = Mapping[tuple[Measure, str], tuple[str, ...]]
"""Keys of the posts that count, by measure and subject."""


@dataclass(frozen=True, slots=True)
class CountedRun:
    """A run's counts, the posts behind them, and the new posts in words."""

    counts: RunCounts
    keys: Keys
    new: tuple[NewPost, ...]


def counted(report: Report, ask: Ask, sift: NewPosts, since: datetime, until: datetime) -> CountedRun:
    """Count what a report holds of the time after `since` up to `until`.

    The aspects are the known ones whose words mean the same in every run: those that the question
    alone gives their meaning.
    """
    stated = f"{report.query} {report.about}"
    names = tuple(aspect.name for aspect in aspects() if aspect.fits(stated))
    counts_of_new = count_product(ask, report.model_copy(update={"items": sift.new}), names)
    looks: list[tuple[Measure, str]] = [
        (measure, name) for name in counts_of_new.passages for measure in ("mentions", *LEANS)
    ]
    if counts_of_new.standing.sentiment is not None:
        looks += [(measure, "") for measure in FEELINGS]
    heard = sources_heard(report)
    keys: dict[tuple[Measure, str], tuple[str, ...]] = {
        (measure, name): counts_of_new.counted(measure, name, heard) for measure, name in looks
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
            fresh=counts_of_new.total("mentions", (source,)),
            undated=sum(item.source == source and item.created_at is None for item in sift.new),
            graded=counts_of_new.total("sounds_negative", (source,)) if not report.sample else 0,
            tallies={
                f"{measure}:{name}": number
                for measure, name in looks
                if (number := len(counts_of_new.counted(measure, name, (source,))))
            },
        )
        for source in heard
    }
    counts = RunCounts(since=since, until=until, sources=sources)
    new = tuple(_post(item, counts_of_new, report.sample) for item in sift.new)
    return CountedRun(counts, keys, new)


def _post(item: KeptItem, counts_of_new: ProductCounts, sample: bool) -> NewPost:
    """A new post in the words that tell most of it: a complaint's before others, those of its beginning at last."""
    complaints = [name for name in counts_of_new.passages if item.key in counts_of_new.leans[name, "complaint"]]
    passages = [
        passage.passage
        for name in (*complaints, *counts_of_new.passages)
        for passage in counts_of_new.passages[name]
        if passage.key == item.key
    ]
    if not (passages or item.title):  # nothing else says which post it is
        passages = [cut(one_line(own_words(item.body)), LONGEST_PASSAGE)]
    return NewPost(
        key=item.key,
        source=item.source,
        title=item.title,
        url=item.url,
        created_at=item.created_at,
        passage=passages[0] if passages else "",
        complains=bool(complaints) or (item.sentiment == -1 and not sample),
    )
