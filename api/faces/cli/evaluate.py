"""`eval`: ask a judge about labelled items and say how good it is, as tables or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from api import wiring
from api.errors import ConfigurationError, UsageError
from api.faces.cli.plot import calibration_plot
from api.faces.cli.printing import Format, as_json, check_output, say, tell
from api.faces.cli.running import run
from api.lab.building import PAID, JudgeName, candidate, sampled, support_checker
from api.lab.evaluating import AnswerCache, Manner, Progress, evaluate
from api.lab.labelled import pure, read_labelled
from api.lab.scoring import compare
from api.lab.supporting import evaluate_support, read_claims
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

_SAMPLE = "Sample model: the offline sandbox answers, no key is used."
_FEW = 20
"""Items below which a language stands in the JSON only: languages are guessed."""


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """Who is evaluated on what, and how the result is wanted."""

    files: Sequence[Path]
    judge: JudgeName
    model: str | None
    corpus: bool
    about: bool
    pure: bool
    page: int
    format: Format
    compare: Path | None
    plot: Path | None
    cache: Path | None


def eval_command(evaluation: EvalRequest) -> int:
    """Evaluate and print; exit code 0 when anything was judged."""
    settings, name = wiring.load_settings(), evaluation.judge
    check_output(evaluation.plot)
    other = None
    if evaluation.compare is not None:
        with suppress(ValueError):
            other = json.loads("\n".join(_lines(evaluation.compare)))
        if not isinstance(other, dict):
            raise UsageError(f"`{evaluation.compare}` is no result; write one with `--format json`")
    queries = [
        query for path in evaluation.files for query in read_labelled(_lines(path), str(path))
    ]
    if evaluation.corpus:
        from api.lab.building import labelled_corpus

        queries += labelled_corpus()
    if not queries:
        raise UsageError("nothing to evaluate on; name a file of labelled queries, or `--corpus`")
    if evaluation.pure:
        queries = pure(queries)

    async def work() -> int:
        async with candidate(settings, name, evaluation.model) as judge:
            if sampled(settings, name):
                tell(_SAMPLE)
            paid = name in PAID
            manner = Manner(
                page=evaluation.page,
                concurrency=settings.models.model_concurrency if paid else 1,
                about=evaluation.about,
                min_yield=settings.adaptive.min_yield,
            )
            cache = None
            if evaluation.cache is not None and paid:
                cache = AnswerCache(evaluation.cache, judge.name)
            elif evaluation.cache is not None:
                tell(f"`{name}` costs nothing: its answers are not kept")
            measured = await evaluate(judge, queries, manner, cache=cache, progress=_progress())
        result = measured.as_json()
        if other is not None:
            result["comparison"] = compare(result, other)
        _deliver(result, evaluation)
        return 0

    return run(work)


def support_command(file: Path, judge: str, model: str | None, form: Format) -> int:
    """Measure a support check on labelled claims and print; exit code 0."""
    settings = wiring.load_settings()
    if not (claims := read_claims(_lines(file), str(file))):
        raise UsageError(f"`{file}` holds no claims")

    async def work() -> int:
        async with support_checker(settings, judge, model) as checker:
            if sampled(settings, judge):
                tell(_SAMPLE)
            result = await evaluate_support(checker, claims)
        if form is Format.json:
            say(as_json(result.as_json()))
            return 0
        shares = (
            ("precision", result.precision), ("recall", result.recall),
            ("unsupported let by", result.let_by), ("kappa", result.kappa),
        )  # fmt: skip
        say(
            f"{result.checker}: {result.claims} claims, {result.supported} supported, "
            f"{result.unanswered} without an answer\n"
            + ", ".join(f"{name} {'-' if n is None else f'{n:.2f}'}" for name, n in shares)
        )
        return 0

    return run(work)


def _lines(path: Path) -> list[str]:
    try:
        # not `splitlines`: a JSON string may hold U+2028 and the like as they are
        return path.read_text("utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"`{path}` is not UTF-8 text; save it as UTF-8") from None


def _progress() -> Progress:
    """A line on stderr: rewritten in a terminal, elsewhere one every few seconds."""
    terminal, every = sys.stderr.isatty(), 0.2 if sys.stderr.isatty() else 5.0
    last = monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        if monotonic() - last >= every or (terminal and done == total):
            last = monotonic()
            end = "" if terminal and done < total else "\n"
            start = "\r" if terminal else ""
            print(f"{start}judged {done} of {total}", end=end, file=sys.stderr, flush=True)

    return show


def _deliver(result: Mapping[str, Any], evaluation: EvalRequest) -> None:
    """Print tables or JSON, say what was not judged, and draw the calibration when wanted."""
    if evaluation.format is Format.json:
        say(as_json(result))
    else:
        markdown = evaluation.format is Format.markdown
        say(table(result, markdown=markdown))
        if "comparison" in result:
            say("\n" + comparison_table(result["comparison"], markdown=markdown))
    if degraded := result["overall"]["degraded"]:
        reasons = ", ".join(result["reasons"])
        tell(f"{degraded} items were not judged ({reasons}) and count in no figure")
    path = evaluation.plot
    if path is None:
        return
    if not result["calibration"]:
        raise UsageError(f"`{result['judge']}` gives no probabilities: there is nothing to plot")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(calibration_plot(result))
    except OSError as error:
        raise ConfigurationError(
            f"`{path}` cannot be written ({error.strerror}); the figures are on stdout"
        ) from None
    tell(f"written to {path}")


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
    notes = [
        f"kind {_plain(kind)}: kept {part['kept']} of {part['n']} ({part['share'] * 100:.1f} %)"
        for kind, part in result["kinds"].items()
    ]
    if (grades := result["grades"]) is not None:
        spans = {key: _span(*ends) for key, ends in grades["intervals"].items()}
        measures = (("spearman", "Spearman"), ("quadratic_kappa", "quadratic kappa"),
                    ("ndcg10", "nDCG@10"))  # fmt: skip
        figures = ", ".join(
            f"{title} {_number(grades[key])} {spans.get(key, '')}".strip()
            for key, title in measures
        )
        notes.append(f"{grades['n']} graded items: {figures}")
    overall = result["overall"]
    usd = "unknown" if overall["usd"] is None else f"{overall['usd']:.4f} USD"
    brier = f", Brier {overall['brier']:.3f}" if overall["brier"] is not None else ""
    notes.append(
        f"{overall['ms_per_10']:g} ms for 10 items (median page), "
        f"{overall['tokens']} tokens, {usd}, {overall['degraded']} items without an answer{brier}"
    )
    lead = "- " if markdown else ""
    return "\n".join(
        [
            f"{result['judge']}: {overall['n']} items, {len(result['queries'])} queries, "
            f"pages of {result['page']}, {about}",
            "",
            *lines,
            "",
            *(f"{lead}{note}" for note in notes),
        ]
    )


def comparison_table(comparison: Mapping[str, Any], *, markdown: bool = False) -> str:
    """Paired differences with their intervals; a star where the interval leaves out zero."""
    mine, other, queries = comparison["judge"], comparison["other"], comparison["queries"]
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


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"[{low:.2f}, {high:.2f}]"
