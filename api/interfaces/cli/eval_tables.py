"""Tables of an evaluation for people: measures by slice, differences of two results, a calibration plot as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import getitem
from typing import Any

from api.core.text import clean, one_line, quantity
from api.evaluation.judge_evaluation import ALIKE, UNSTABLE
from api.interfaces.cli.terminal_text import table_lines
from api.interfaces.shared import svg

_COLUMNS = (
    ("precision", "P"), ("recall", "R"), ("f1", "F1"), ("balanced_accuracy", "BA"), ("mcc", "MCC"),
    ("yield_mae", "yield err"), ("refetch_right", "refetch ok"), ("kept_irrelevant", "kept irrel."),
    ("ece", "ECE"),
)  # fmt: skip
_SLICES = (
    ("families", "family"), ("sources", "source"), ("languages", "language"),
    ("mention", "mention"),
)  # fmt: skip
# Items below which a language stands in the JSON only: languages are guessed.
_FEW = 20


def table(result: Mapping[str, Any], *, markdown: bool = False) -> str:
    """Measures over all and by slice, the 95 % interval beside the MCC, then kinds and cost."""
    head = ["", "n", *(title for _, title in _COLUMNS)]
    head.insert(head.index("MCC") + 1, "95 %")
    rows = [_row("overall", result["overall"])]
    for key, title in _SLICES:
        parts: Mapping[str, Any] = result[key]
        least = _FEW if key == "languages" else 1
        if len(parts) > 1 or key == "families":
            rows += [_row(f"{title} {name or 'unnamed'}", part) for name, part in parts.items() if part["n"] >= least]
    lines = _laid_out([head, *rows], markdown)
    about = "what it is about is shown" if result["about"] else "the query alone is shown"
    notes = [
        f"kind {_plain(kind)}: kept {part['kept']} of {part['n']} ({part['share'] * 100:.1f} %)"
        for kind, part in result["kinds"].items()
    ]
    if (grades := result["grades"]) is not None:
        spans = {key: _span(*ends) for key, ends in grades["intervals"].items()}
        measures = (("spearman", "Spearman"), ("quadratic_kappa", "quadratic kappa"),
                    ("ndcg10", "nDCG@10"))  # fmt: skip
        figures = ", ".join(f"{title} {_number(grades[key])} {spans.get(key, '')}".strip() for key, title in measures)
        notes.append(f"{quantity(grades['n'], 'graded item')}: {figures}")
    overall = result["overall"]
    usd = "unknown" if overall["usd"] is None else f"{overall['usd']:.4f} USD"
    brier = f", Brier {overall['brier']:.3f}" if overall["brier"] is not None else ""
    notes.append(
        f"{overall['ms_per_10']:g} ms for 10 items (median page), "
        f"{overall['tokens']} tokens, {usd}, "
        f"{quantity(overall['degraded'], 'item')} without an answer{brier}"
    )
    lead = "- " if markdown else ""
    return "\n".join(
        [
            f"{result['judge']}: {quantity(overall['n'], 'item')}, "
            f"{quantity(len(result['queries']), 'query', 'queries')}, "
            f"pages of {result['page']}, {about}",
            "",
            *lines,
            "",
            *(f"{lead}{note}" for note in notes),
        ]
    )


def comparison_table(comparison: Mapping[str, Any], *, markdown: bool = False) -> str:
    """Paired differences with their intervals; a star where the interval leaves out zero."""
    mine, other = comparison["judge"], comparison["other"]
    rows = [["", "measure", "difference", "95 %", ""]]
    for name, part in (("overall", comparison["overall"]), *comparison["families"].items()):
        few = {key: part[key] for key in ("mcc", "yield_mae")}
        measures = part if name == "overall" else few
        rows += [
            [
                name,
                key,
                f"{part['difference']:+.3f}",
                _span(low, high),
                "*" if low is not None and (low > 0 or high < 0) else "",
            ]
            for key, part in measures.items()
            if part["difference"] is not None
            for low, high in [(part["low"], part["high"])]
        ]
    left_out = (
        ("unpaired", "only in the first"), ("missing", "only in the second"),
        ("changed", "not with the same items in both"),
    )  # fmt: skip
    notes = [f", {comparison[key]} {where}" for key, where in left_out if comparison[key]]
    shared = quantity(comparison["queries"], "query", "queries")
    title = f"{mine} minus {other}, {shared} in both{''.join(notes)}"
    return "\n".join([title, "", *_laid_out(rows, markdown)])


def order_lines(orders: Mapping[str, Any], *, markdown: bool = False) -> str:
    """How many verdicts stay in another order and on a page of another yield, and what that means."""
    lines = []
    for key, where in (("shuffled", "in another order"), ("other_yield", "on a page of another yield")):
        part = orders[key]
        if part["stay"] is None:
            lines.append(f"{where}: nothing to compare")
        else:
            span = _span(part["low"], part["high"])
            lines.append(f"{where} {part['stay']:.3f} of {quantity(part['n'], 'verdict')} stay {span}".rstrip())
    if orders["pattern"]:
        pattern = orders["pattern"]
        answers = pattern if pattern == ALIKE else f"{pattern[:60]} to every page"
        lines.append(f"this model does not read what it judges: it answers {answers}")
    elif any((orders[key]["stay"] or 1) <= UNSTABLE for key in ("shuffled", "other_yield")):
        lines.append(
            f"{UNSTABLE:g} or less stay: use another model, `LISTENPOST_JUDGE=local` or smaller pages (docs/models.md)"
        )
    return "\n".join(f"{'- ' if markdown else ''}{line}" for line in lines)


def support_line(result: Mapping[str, Any]) -> str:
    """Scores of a support check, in two lines."""
    measures = (
        ("precision", "precision"), ("recall", "recall"), ("let_by", "unsupported let by"),
        ("mcc", "MCC"), ("kappa", "kappa"),
    )  # fmt: skip
    shares = ((title, result[key]) for key, title in measures)
    return (
        f"{result['judge']}: {quantity(result['claims'], 'claim')}, "
        f"{result['supported']} supported, {result['unanswered']} without an answer\n"
        + ", ".join(f"{title} {'-' if n is None else f'{n:.2f}'}" for title, n in shares)
    )


def retrieval_table(results: Sequence[Mapping[str, Any]], *, markdown: bool = False) -> str:
    """Searches beside each other, over all, by part and by kind, with their 95 % intervals."""
    columns = (
        ("recall", "recall@8"), ("precision", "precision"), ("ndcg", "nDCG@8"),
        ("quiet", "cites nothing"),
    )  # fmt: skip
    slices = [("overall", ("overall",)), ("with an answer", ("answerable",))] + [
        (f"{title} {_plain(name)}", (group, name))
        for group, title in (("parts", "part"), ("kinds", "kind"))
        for name in results[0][group]
    ]
    rows = [["", "search", "n", *(cell for _, title in columns for cell in (title, "95 %"))]]
    for name, path in slices:
        for result in results:
            part: Any = reduce(getitem, path, result)
            cells = [
                cell
                for key, _ in columns
                for cell in (
                    _number(part[key]), _span(*part["intervals"].get(key, (None, None))),
                )
            ]  # fmt: skip
            rows.append([name, result["search"], str(part["n"]), *cells])
    times = ", ".join(f"{result['search']} {result['ms']:g} ms" for result in results)
    return "\n".join([*_laid_out(rows, markdown), "", f"a search takes, by the median: {times}"])


BENCH_TABLES = {
    "about": "Is it about the query?",
    "mention": "Does it mention the query?",
    "events": "Is it about the event? (tweets)",
}
_QUALITY = (("recall", "recall"), ("dropped", "irrelevant dropped"), ("mcc", "MCC"))
_WAYS = (("yield_mae", "yield error"), ("refetch_right", "refetch right"), ("ece", "calibration error"))
_COSTS = (("ms_per_1000", "ms"), ("usd_per_1000", "USD"))


def bench_tables(results: Mapping[str, Any], *, markdown: bool = False) -> str:
    """Tables of the benchmark by task."""
    rows = results["rows"]
    blocks = []
    for key, title in BENCH_TABLES.items():
        tested = f"{key}, test"
        members = [row for row in rows if key in row["described"]["groups"]]
        if not members:
            continue
        counts = members[0]["described"]["groups"][key]
        head = ["gate", *(name for _, name in _QUALITY), "MCC undescribed", "MCC, test part"]
        quality = [head, *([_plain(row["gate"]), *_quality(row, key, tested)] for row in members)]
        head = ["gate", *(name for _, name in _WAYS), "same shuffled", "same, other yield", "ms / 1,000", "USD / 1,000"]
        ways = [head, *([_plain(row["gate"]), *_ways(row, key)] for row in members)]
        relevant = f"{quantity(counts['n'], 'text')}, {counts['relevant']} of them relevant"
        blocks += [_title(f"{title} {relevant}", markdown), *_laid_out(quality, markdown), ""]
        blocks += [*_laid_out(ways, markdown), ""]
    names = list(results["coverage"])
    by_set = [
        ["gate", *map(_plain, names)],
        *([_plain(row["gate"]), *(_set_mcc(row, name) for name in names)] for row in rows),
    ]
    blocks += [_title("MCC by set", markdown), *_laid_out(by_set, markdown), ""]
    if comparisons := results["comparisons"]:
        differences = [["gate", "MCC minus the keyword's", *map(_plain, names)]]
        for gate, comparison in comparisons.items():
            parts = [comparison["overall"], *(comparison["families"].get(name) for name in names)]
            differences.append([_plain(gate), *(_difference(part) for part in parts)])
        blocks += [_title("Differences", markdown), *_laid_out(differences, markdown), ""]
    ways_to_run = [["gate", "judge", "how to run it"]]
    ways_to_run += [[_plain(row["gate"]), _plain(row["judge"]), _code(row["how"], markdown)] for row in rows]
    blocks += [_title("How each row was made", markdown), *_laid_out(ways_to_run, markdown, right=False), ""]
    lead = "- " if markdown else ""
    blocks += [f"{lead}{_plain(name)}: {have} of {of} texts" for name, (have, of) in results["coverage"].items()]
    blocks += [
        f"{lead}{_plain(row['gate'])}: {quantity(row['unanswered'], 'item')} without a verdict, counted as kept"
        for row in rows
        if row["unanswered"]
    ]
    blocks += [f"{lead}{_plain(row['gate'])}: {_plain(row['note'])}" for row in rows if row["note"]]
    return "\n".join(blocks)


def _title(text: str, markdown: bool) -> str:
    return f"### {text}\n" if markdown else text


def _code(text: str, markdown: bool) -> str:
    line = one_line(clean(text))
    return f"`{line.replace('|', chr(92) + '|')}`" if markdown else line


def _quality(row: Mapping[str, Any], key: str, tested: str) -> list[str]:
    part, alone = row["described"]["groups"][key], row["alone"]
    undescribed = alone["groups"].get(key, {})
    return [
        *(_measured(part, name) for name, _ in _QUALITY),
        _measured(undescribed, "mcc"),
        _measured(row["described"]["groups"].get(tested, {}), "mcc"),
    ]


def _ways(row: Mapping[str, Any], key: str) -> list[str]:
    part, orders = row["described"]["groups"][key], row["orders"][key]
    return [
        *(_measured(part, name) for name, _ in _WAYS),
        *(_stay(orders[kind]) for kind in ("shuffled", "other_yield")),
        *(_cost(part[name]) for name, _ in _COSTS),
    ]


def _measured(part: Mapping[str, Any], name: str) -> str:
    value = part.get(name)
    return f"{_number(value)} {_span(*part['intervals'].get(name, (None, None)))}".strip() if part else "-"


def _stay(part: Mapping[str, Any]) -> str:
    return f"{_number(part['stay'])} {_span(part['low'], part['high'])}".strip()


def _cost(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2g}" if value < 10 else f"{value:,.0f}"


def _set_mcc(row: Mapping[str, Any], name: str) -> str:
    return _measured(row["described"]["groups"].get(name, {}), "mcc")


def _difference(part: Mapping[str, Any] | None) -> str:
    mcc = part["mcc"] if part else {"difference": None}
    if mcc["difference"] is None:
        return "-"
    return f"{mcc['difference']:+.2f} {_span(mcc['low'], mcc['high'])}".strip()


def _row(name: str, part: Mapping[str, Any]) -> list[str]:
    cells = [_plain(name), str(part["n"])]
    for key, _ in _COLUMNS:
        cells.append(_number(part.get(key)))
        if key == "mcc":
            cells.append(_span(*part["intervals"].get("mcc", (None, None))))
    return cells


def _laid_out(rows: Sequence[Sequence[str]], markdown: bool, *, right: bool = True) -> list[str]:
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + " --- |" * len(rows[0]))
        return lines
    return table_lines(rows, right=right)


def _plain(text: str) -> str:
    return one_line(clean(text)).replace("|", "/")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.2f}, {high:.2f}]"


_SIDE, _LEFT, _TOP = 360, 64, 56
_BARS = 70
_WIDTH, _HEIGHT = _LEFT + _SIDE + 24, _TOP + _SIDE + _BARS + 76
_FLOOR = _TOP + _SIDE
_INK, _LINE, _FILL = "#1f2933", "#9aa5b1", "#2563eb"


def calibration_plot(result: Mapping[str, Any]) -> str:
    """Share that is relevant against the probability that was said, and how often it was said.

    On the diagonal a judge means what it says; below it, it promises too much.
    """
    bins: Sequence[tuple[int, float, float]] = result["calibration"]
    overall = result["overall"]
    heading = f"{result['judge']}: ECE {overall['ece']:.3f}, Brier {overall['brier']:.3f}"
    note = f"{overall['n']} items, share relevant by probability said"
    shapes = (
        svg.title(heading),
        svg.element("rect", width=_WIDTH, height=_HEIGHT, fill="#ffffff"),
        svg.words(_LEFT, 24, heading, fill=_INK, font_size=14),
        svg.words(_LEFT, 42, note, fill=_INK),
        *_axes(),
        *_points(bins),
        *_histogram(bins),
    )
    picture = svg.element(
        "svg", "\n", *(f"{shape}\n" for shape in shapes),
        xmlns="http://www.w3.org/2000/svg", width=_WIDTH, height=_HEIGHT,
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}", role="img", font_family="sans-serif", font_size=12,
    )  # fmt: skip
    return f"{picture}\n"


def _axes() -> Iterator[str]:
    box = {"x": _LEFT, "y": _TOP, "width": _SIDE, "height": _SIDE}
    yield svg.element("rect", **box, fill="none", stroke=_LINE)
    diagonal = {"x1": _LEFT, "y1": _FLOOR, "x2": _LEFT + _SIDE, "y2": _TOP}
    yield svg.element("line", **diagonal, stroke=_LINE, stroke_dasharray="4 4")
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield svg.words(_x(tick), _FLOOR + 16, f"{tick:g}", fill=_INK, text_anchor="middle")
        yield svg.words(_LEFT - 8, _y(tick) + 4, f"{tick:g}", fill=_INK, text_anchor="end")
    middle = _TOP + _SIDE / 2
    for x, y, name, turn in (
        (_LEFT + _SIDE / 2, _FLOOR + 34, "probability said", 0),
        (18, middle, "share relevant", -90),
    ):
        yield svg.words(x, y, name, fill=_INK, text_anchor="middle", transform=f"rotate({turn} {x} {y})")


def _points(bins: Sequence[tuple[int, float, float]]) -> Iterator[str]:
    path = " ".join(f"{_x(probability):.1f},{_y(true):.1f}" for _, probability, true in bins)
    yield svg.element("polyline", points=path, fill="none", stroke=_FILL, stroke_width=2)
    for count, probability, true in bins:
        note = svg.title(f"{count} items: said {probability:.2f}, relevant {true:.2f}")
        yield svg.element("circle", note, cx=_x(probability), cy=_y(true), r=4, fill=_FILL)


def _histogram(bins: Sequence[tuple[int, float, float]]) -> Iterator[str]:
    most = max(count for count, _, _ in bins)
    base = _FLOOR + 48 + _BARS
    yield svg.words(_LEFT - 8, base, "items", fill=_INK, text_anchor="end")
    for count, probability, _ in bins:
        height = max(1.0, _BARS * 0.8 * svg.part(count, most))
        left = _x(min(int(probability * 10), 9) / 10) + 2
        box = {"x": left, "y": base - height, "width": _SIDE / 10 - 4, "height": height}
        yield svg.element("rect", **box, fill=_FILL, fill_opacity=0.35)
        middle = left + _SIDE / 20 - 2
        yield svg.words(middle, base + 14, count, fill=_INK, text_anchor="middle", font_size=10)


def _x(share: float) -> float:
    return _LEFT + share * _SIDE


def _y(share: float) -> float:
    return _FLOOR - share * _SIDE
