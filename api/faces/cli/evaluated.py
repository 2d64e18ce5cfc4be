"""An evaluation as tables, plain or Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from api.services.text import clean, one_line

_COLUMNS = (
    ("precision", "P"), ("recall", "R"), ("f1", "F1"), ("balanced_accuracy", "BA"), ("mcc", "MCC"),
    ("yield_mae", "yield err"), ("refetch_right", "refetch ok"), ("kept_irrelevant", "kept irrel."),
    ("ece", "ECE"),
)  # fmt: skip
_SLICES = (
    ("families", "family"), ("sources", "source"), ("languages", "language"),
    ("mention", "mention"),
)  # fmt: skip

_FEW = 20
"""Items below which a language stands in the JSON only: languages are guessed."""


def table(result: Mapping[str, Any], *, markdown: bool = False) -> str:
    """Measures over all and by slice, the 95 % interval beside the MCC, then kinds and cost."""
    head = ["", "n", *(title for _, title in _COLUMNS)]
    head.insert(head.index("MCC") + 1, "95 %")
    rows = [_row("overall", result["overall"])]
    for key, title in _SLICES:
        parts: Mapping[str, Any] = result[key]
        least = _FEW if key == "languages" else 1
        if len(parts) > 1 or key == "families":
            rows += [
                _row(f"{title} {name or 'unnamed'}", part)
                for name, part in parts.items()
                if part["n"] >= least
            ]
    lines = _laid_out([head, *rows], markdown)
    about = "what it is about is shown" if result["about"] else "the query alone is shown"
    title = f"{result['judge']}: {result['overall']['n']} items, {len(result['queries'])} queries, "
    return "\n".join(
        [f"{title}pages of {result['page']}, {about}", "", *lines, "", *_notes(result, markdown)]
    )


def comparison_table(comparison: Mapping[str, Any], *, markdown: bool = False) -> str:
    """Paired differences with their intervals; a star where the interval leaves out zero."""
    mine, other, queries = comparison["judge"], comparison["other"], comparison["queries"]
    rows = [["", "measure", "difference", "95 %", ""]]
    for name, part in (("overall", comparison["overall"]), *comparison["families"].items()):
        shown = part if name == "overall" else {key: part[key] for key in ("mcc", "yield_mae")}
        rows += [
            [name, key, _signed(one["difference"]), _span(one["low"], one["high"]), _star(one)]
            for key, one in shown.items()
            if one["difference"] is not None
        ]
    alone = f", {comparison['unpaired']} only in the first" if comparison["unpaired"] else ""
    title = f"{mine} minus {other}, {queries} queries in both{alone}"
    return "\n".join([title, "", *_laid_out(rows, markdown)])


def _row(name: str, part: Mapping[str, Any]) -> list[str]:
    cells = [_plain(name), str(part["n"])]
    for key, _ in _COLUMNS:
        cells.append(_number(part.get(key)))
        if key == "mcc":
            cells.append(_span(*part["intervals"].get("mcc", (None, None))))
    return cells


def _notes(result: Mapping[str, Any], markdown: bool) -> Iterator[str]:
    lead = "- " if markdown else ""
    for kind, part in result["kinds"].items():
        share = f"{part['share'] * 100:.1f} %"
        yield f"{lead}kind {_plain(kind)}: kept {part['kept']} of {part['n']} ({share})"
    if (grades := result["grades"]) is not None:
        spans = {key: _span(*ends) for key, ends in grades["intervals"].items()}
        shown = (("spearman", "Spearman"), ("quadratic_kappa", "quadratic kappa"),
                 ("ndcg10", "nDCG@10"))  # fmt: skip
        said = ", ".join(f"{t} {_number(grades[k])} {spans.get(k, '')}".strip() for k, t in shown)
        yield f"{lead}{grades['n']} graded items: {said}"
    overall = result["overall"]
    usd = "unknown" if overall["usd"] is None else f"{overall['usd']:.4f} USD"
    brier = f", Brier {overall['brier']:.3f}" if overall["brier"] is not None else ""
    yield (
        f"{lead}{overall['ms_per_10']:g} ms for 10 items (median page), "
        f"{overall['tokens']} tokens, {usd}, {overall['degraded']} items without an answer{brier}"
    )


def _laid_out(rows: Sequence[Sequence[str]], markdown: bool) -> list[str]:
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + " --- |" * len(rows[0]))
        return lines
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _plain(text: str) -> str:
    return one_line(clean(text)).replace("|", "/")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.2f}, {high:.2f}]"


def _star(one: Mapping[str, Any]) -> str:
    low, high = one["low"], one["high"]
    return "*" if low is not None and (low > 0 or high < 0) else ""
