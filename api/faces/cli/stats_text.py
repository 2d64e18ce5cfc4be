"""Statistics as text for a terminal; what is unknown, or of nothing, is `-`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from rich.cells import cell_len

from api.faces.cli.terminal import shown, wrapped
from api.faces.outline import source_title
from api.services.keeping.stats import SourceStats, Stats, ThumbStats, YieldStats
from api.services.keeping.summing import MOST
from api.services.schemas import Decision, Outcome
from api.services.text import many

_LEAD = 12


def stats_text(stats: Stats, columns: int) -> str:
    """All of it; tables keep their width, sentences are wrapped."""
    columns = max(min(columns, 120), 40)
    # not `%Y`: it writes the year 1 as `1`
    since = f"since {stats.since.isoformat(' ')[:16]}Z" if stats.since else "from the first on"
    heads = [f"{many(stats.runs, 'analysis', 'analyses')} {since}, {stats.failed} failed"]
    left_out = (
        (stats.own_items, "of your own items"),
        (stats.unanswered, "that no source answered"),
    )
    if words := " and ".join(f"{number} {which}" for number, which in left_out if number):
        heads.append(f"{words}: counted here, and in no mean")
    if stats.samples:
        counted = "are counted" if stats.with_samples else "are left out: `--sample` counts them"
        heads.append(f"{stats.samples} of sample data {counted}")
    if stats.cut:
        heads.append(f"There are more: only the newest {MOST} are counted")
    lines = [line for head in heads for line in wrapped(head, columns)]
    if not stats.runs:
        return "\n".join(lines)
    lines.append("")
    for name, words in _sentences(stats):
        lines += wrapped(words, columns, f"{name:<{_LEAD}}")
    if stats.sources:
        lines += ["", *_sources(stats.sources)]
        for name, source in stats.sources.items():
            outcomes = _counts(source.outcomes)
            lines += wrapped(f"{source_title(name)}: {outcomes}", columns)
            if source.fail_open:
                reasons = f"failed open: {_counts(source.fail_open_reasons)}"
                lines += wrapped(f"{source_title(name)} {reasons}", columns)
    if stats.periods:
        names = list(stats.sources)
        rows = [
            [
                f"{period.start:%Y-%m-%d}", str(period.runs),
                *(_yield(period.yields.get(name)) for name in names),
            ]
            for period in stats.periods
        ]  # fmt: skip
        lines += ["", *_table([[stats.unit, "runs", *map(source_title, names)], *rows])]
        lines += wrapped("Yields over time are pooled: relevant of all judged.", columns)
    return "\n".join(lines)


def _sentences(stats: Stats) -> Iterable[tuple[str, str]]:
    yields, items, cost, support = stats.yields, stats.items, stats.cost, stats.support
    yield "decisions", _counts(stats.decisions)
    yield (
        "yield",
        f"{_share(yields.pooled)} pooled, {_share(yields.mean)} mean of "
        f"{many(yields.runs, 'analysis', 'analyses')}; "
        f"{yields.degraded} degraded and left out",
    )
    yield (
        "items",
        f"{items.judged} judged, {items.relevant} relevant, {items.kept} kept, {items.cited} cited",
    )
    if support.pairs:
        checked = f"{support.pairs} checked pairs in {many(support.reports, 'report')}"
        yield "support", f"{_share(support.rate)} of {checked}"
    yield "requests", f"{stats.upstream_calls}, {_number(stats.calls_per_analysis)} per analysis"
    yield (
        "cost",
        f"{cost.usd:.4f} USD: {_usd(cost.per_analysis)} per analysis, "
        f"{_usd(cost.per_kept_item)} per kept item; {cost.unpriced} of unknown price",
    )
    if stats.feedback.share is not None:
        parts = [f"{name} {_thumbs(of)}" for name, of in stats.feedback_by_decision.items()]
        yield "thumbs up", f"{_thumbs(stats.feedback)}: {', '.join(parts)}"


def _sources(sources: Mapping[str, SourceStats]) -> list[str]:
    each = list(sources.values())
    return _table(
        [
            ["", *map(source_title, sources)],
            ["answered", *(f"{source.answered} of {source.runs}" for source in each)],
            ["yield, pooled", *(_share(source.yields.pooled) for source in each)],
            ["yield, mean", *(_share(source.yields.mean) for source in each)],
            ["degraded", *(str(source.yields.degraded) for source in each)],
            ["refetched", *(_share(source.refetch_rate) for source in each)],
            ["gain of one", *(_number(source.gain_per_refetch) for source in each)],
            ["failed open", *(_share(source.fail_open_rate) for source in each)],
            ["requests", *(str(source.upstream_calls) for source in each)],
        ]
    )


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, the others to the right."""
    cells = [[shown(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for first, *others in cells:
        line = first + " " * (widths[0] - cell_len(first))
        for cell, width in zip(others, widths[1:], strict=True):
            line += "  " + " " * (width - cell_len(cell)) + cell
        lines.append(line.rstrip())
    return lines


def _counts(counts: Mapping[str, int] | Mapping[Outcome, int] | Mapping[Decision, int]) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.items())


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
