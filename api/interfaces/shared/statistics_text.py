"""Statistics in words and table cells for every interface; unknown values are `-`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from api.core.display_names import reason_in_words
from api.core.domain import Outcome
from api.core.text import quantity
from api.features.analyses.statistics import MOST, SourceStats, Stats, ThumbStats, YieldStats
from api.interfaces.shared.presentation import DECISIONS, OUTCOMES, source_title

SAMPLES_HOW = "`--sample` counts them"
POOLED = "Yields over time are pooled: relevant of all judged."


def heads(stats: Stats, how: str = SAMPLES_HOW) -> Iterator[str]:
    """Over what they are; `how` says what counts sample data, too."""
    # not `%Y`: it writes the year 1 as `1`
    since = f"since {stats.since.isoformat(' ')[:16]}Z" if stats.since else "from the first on"
    yield f"{quantity(stats.runs, 'analysis', 'analyses')} {since}, {stats.failed} failed"
    left_out = (
        (stats.own_items, "of your own items"),
        (stats.unanswered, "that no source answered"),
    )
    if words := " and ".join(f"{number} {which}" for number, which in left_out if number):
        yield f"{words}: counted here, and in no mean"
    if stats.samples:
        counted = "counted" if stats.with_samples else f"left out: {how}"
        yield f"{stats.samples} of sample data {'is' if stats.samples == 1 else 'are'} {counted}"
    if stats.cut:
        yield f"There are more: only the newest {MOST} are counted"


def glance(stats: Stats) -> Iterator[tuple[str, str]]:
    """Four figures over all analyses, each a label and its value."""
    yields, items, cost = stats.yields, stats.items, stats.cost
    yield "analyses", str(stats.runs)
    yield f"of {quantity(items.judged, 'judged post')} are about the question", _share(yields.pooled)
    yield "posts kept in reports", str(items.kept)
    unpriced = f", and {quantity(cost.unpriced, 'analysis', 'analyses')} of unknown price" if cost.unpriced else ""
    yield f"USD spent{unpriced}", f"{cost.usd:.2f}" if not cost.usd or cost.usd >= _CENT else f"{cost.usd:.4f}"


_CENT = 0.01
# what the page calls a row of `source_table`
PLAIN_ROWS = {
    "yield, pooled": "about the question", "yield, mean": "average of analyses", "refetched": "searched again",
    "gain of one": "new posts by that", "failed open": "went on unjudged",
}  # fmt: skip


def explained(stats: Stats) -> Iterator[tuple[str, str]]:
    """The figures over all analyses for the page: each a label and a sentence."""
    yields, items, cost, support = stats.yields, stats.items, stats.cost, stats.support
    yield "Reports", _counts((DECISIONS[of], count) for of, count in stats.decisions.items())
    judged = f"{items.relevant} of {quantity(items.judged, 'judged post')}, {_share(yields.pooled)}."
    if yields.runs > 1:
        judged += f" The average of {quantity(yields.runs, 'analysis', 'analyses')} is {_share(yields.mean)}."
    if yields.degraded:
        judged += f" {quantity(yields.degraded, 'search', 'searches')} could not be judged and are not counted."
    yield "About the question", judged
    left = max(items.relevant - items.kept, 0)
    less = f"; {left} more were copies, or were graded too low" if left else ""
    yield "Kept in reports", f"{quantity(items.kept, 'post')}{less}. Cited: {items.cited}."
    if support.pairs:
        pairs = f"{support.pairs} checked quotes in {quantity(support.reports, 'report')}"
        yield "Quotes", f"{_share(support.rate)} of {pairs} say what the claim above them says."
    yield "Requests", f"{stats.upstream_calls} to sources, {_number(stats.calls_per_analysis)} per analysis."
    money = f"{cost.usd:.4f} USD, {_usd(cost.per_analysis)} per analysis." if cost.usd else "Nothing was spent."
    if cost.unpriced:
        money += f" The price of {quantity(cost.unpriced, 'analysis', 'analyses')} is not known."
    yield "Cost", money
    yield from ((name.capitalize(), words) for name, words in sentences(stats) if name in {"local judge", "thumbs up"})


def sentences(stats: Stats) -> Iterable[tuple[str, str]]:
    """Each figure over all analyses: a label and its value."""
    yields, items, cost, support = stats.yields, stats.items, stats.cost, stats.support
    yield (
        "decisions",
        _counts((DECISIONS[of], count) for of, count in stats.decisions.items()),
    )
    yield (
        "yield",
        f"{_share(yields.pooled)} pooled, {_share(yields.mean)} mean of "
        f"{quantity(yields.runs, 'analysis', 'analyses')}; "
        f"{yields.degraded} left out that could not be judged",
    )
    yield (
        "items",
        f"{items.judged} judged, {items.relevant} relevant, {items.kept} kept, {items.cited} cited",
    )
    if support.pairs:
        checked = f"{support.pairs} checked pairs in {quantity(support.reports, 'report')}"
        yield "support", f"{_share(support.rate)} of {checked}"
    yield "requests", f"{stats.upstream_calls}, {_number(stats.calls_per_analysis)} per analysis"
    yield (
        "cost",
        f"{cost.usd:.4f} USD: {_usd(cost.per_analysis)} per analysis, "
        f"{_usd(cost.per_kept_item)} per kept item; {cost.unpriced} of unknown price",
    )
    if (agreement := stats.agreement) is not None:
        usd = "an unknown price" if agreement.saved_usd is None else f"{agreement.saved_usd:.4f} USD"
        calls = f"{quantity(agreement.saved_calls, 'call')}, " if agreement.saved_calls else ""
        yield (
            "local judge",
            f"{agreement.local} of {agreement.judged} verdicts in place of the model; saved about "
            f"{calls}{quantity(agreement.saved_tokens, 'token')}, {usd}",
        )
    if stats.feedback.share is not None:
        parts = [
            f"{_thumbs(thumbs)} on {DECISIONS[decision]}" for decision, thumbs in stats.feedback_by_decision.items()
        ]
        yield "thumbs up", f"{_thumbs(stats.feedback)}: {', '.join(parts)}"


def source_table(sources: Mapping[str, SourceStats]) -> list[list[str]]:
    """Rows with one column for each source; the first row has their names."""
    each = list(sources.values())
    return [
        ["", *map(source_title, sources)],
        ["answered", *(f"{source.answered} of {source.runs}" for source in each)],
        ["yield, pooled", *(_share(source.yields.pooled) for source in each)],
        ["yield, mean", *(_share(source.yields.mean) for source in each)],
        ["not judged", *(str(source.yields.degraded) for source in each)],
        ["refetched", *(_share(source.refetch_rate) for source in each)],
        ["gain of one", *(_number(source.gain_per_refetch) for source in each)],
        *([["disputed", *(_share(source.disputed_rate) for source in each)]] if any(s.disputed for s in each) else []),
        ["failed open", *(_share(source.fail_open_rate) for source in each)],
        ["requests", *(str(source.upstream_calls) for source in each)],
    ]


def outcomes(sources: Mapping[str, SourceStats]) -> Iterator[str]:
    """For each source that did not always answer, how asking it ended, and why its gate failed open."""
    for name, source in sources.items():
        ended = ((OUTCOMES[outcome], number) for outcome, number in source.outcomes.items())
        if set(source.outcomes) != {Outcome.OK}:
            yield f"{source_title(name)}: {_counts(ended)}"
        if source.fail_open:
            reasons = source.fail_open_reasons.items()
            why = _counts((reason_in_words(reason), number) for reason, number in reasons)
            yield f"{source_title(name)} failed open: {why}"


def period_table(stats: Stats) -> list[list[str]]:
    """A row for each day or week, under a row that names the columns."""
    names = list(stats.sources)
    return [
        [stats.unit, "runs", *map(source_title, names)],
        *(
            [
                f"{period.start:%Y-%m-%d}", str(period.runs),
                *(_yield(period.yields.get(name)) for name in names),
            ]
            for period in stats.periods
        ),
    ]  # fmt: skip


def _counts(counts: Iterable[tuple[str, int]]) -> str:
    return "; ".join(f"{name} ({number})" for name, number in counts)


def _share(share: float | None) -> str:
    return "-" if share is None else f"{share * 100:.0f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _usd(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _yield(yields: YieldStats | None) -> str:
    return "-" if yields is None else _share(yields.pooled)


def _thumbs(thumbs: ThumbStats) -> str:
    return f"{thumbs.up} of {thumbs.up + thumbs.down}"
