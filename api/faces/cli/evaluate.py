"""`eval`: ask a judge about labelled items and say how good it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from api import wiring
from api.errors import ConfigurationError, UsageError
from api.faces.cli.choices import Format, JudgeChoice
from api.faces.cli.evaluated import comparison_table, table
from api.faces.cli.plot import calibration_plot
from api.faces.cli.running import run
from api.lab.building import PAID, candidate, sampled
from api.lab.evaluating import AnswerCache, Manner, Progress, evaluate
from api.lab.labelled import LabelledQuery, pure, read_labelled
from api.lab.scoring import compare
from api.settings import Settings


@dataclass(frozen=True, slots=True)
class EvalRequest:
    """Who is evaluated on what, and how the result is wanted."""

    files: Sequence[Path]
    judge: JudgeChoice
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
    settings = wiring.load_settings()
    if evaluation.plot is not None and evaluation.plot.exists():
        raise UsageError(f"`{evaluation.plot}` exists and is never overwritten; name a new file")
    other = None if evaluation.compare is None else _result(evaluation.compare)
    queries = _queries(evaluation)

    async def work() -> int:
        name = evaluation.judge.value
        async with candidate(settings, name, evaluation.model) as judge:
            if sampled(settings, name):
                print("Sample model: the offline sandbox answers, no key is used.", file=sys.stderr)
            manner, cache = _manner(evaluation, settings), _cache(evaluation, judge.name)
            result = await evaluate(judge, queries, manner, cache=cache, progress=_progress())
        shown = result.as_json()
        if other is not None:
            shown["comparison"] = compare(shown, other)
        _deliver(shown, evaluation)
        return 0

    return run(work)


def _queries(evaluation: EvalRequest) -> list[LabelledQuery]:
    found = [query for path in evaluation.files for query in read_labelled(_lines(path), str(path))]
    if evaluation.corpus:
        from api.lab.building import labelled_corpus

        found += labelled_corpus()
    if not found:
        raise UsageError("nothing to evaluate on; name a file of labelled queries, or `--corpus`")
    return pure(found) if evaluation.pure else found


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"`{path}` is not UTF-8 text; save it as UTF-8") from None


def _result(path: Path) -> dict[str, Any]:
    try:
        value = json.loads("\n".join(_lines(path)))
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(f"`{path}` is no result; write one with `--format json`")
    return value


def _manner(evaluation: EvalRequest, settings: Settings) -> Manner:
    return Manner(
        page=evaluation.page,
        concurrency=settings.models.model_concurrency if evaluation.judge.value in PAID else 1,
        about=evaluation.about,
        min_yield=settings.adaptive.min_yield,
    )


def _cache(evaluation: EvalRequest, name: str) -> AnswerCache | None:
    if evaluation.cache is None:
        return None
    if evaluation.judge.value not in PAID:
        print(
            f"`{evaluation.judge.value}` costs nothing: its answers are not kept", file=sys.stderr
        )
        return None
    return AnswerCache(evaluation.cache, name)


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


def _deliver(shown: dict[str, Any], evaluation: EvalRequest) -> None:
    if evaluation.format is Format.json:
        print(json.dumps(shown, ensure_ascii=False))
    else:
        markdown = evaluation.format is Format.markdown
        print(table(shown, markdown=markdown))
        if "comparison" in shown:
            print("\n" + comparison_table(shown["comparison"], markdown=markdown))
    if degraded := shown["overall"]["degraded"]:
        reasons = ", ".join(shown["reasons"])
        print(
            f"{degraded} items were not judged ({reasons}) and count in no figure", file=sys.stderr
        )
    if evaluation.plot is not None:
        _draw(shown, evaluation.plot)


def _draw(shown: dict[str, Any], path: Path) -> None:
    if not shown["calibration"]:
        raise UsageError(f"`{shown['judge']}` gives no probabilities: there is nothing to plot")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(calibration_plot(shown))
    except OSError as error:
        raise ConfigurationError(
            f"`{path}` cannot be written ({error.strerror}); the figures are on stdout"
        ) from None
    print(f"written to {path}", file=sys.stderr)
