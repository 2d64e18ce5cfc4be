"""The options of `eval`; `eval_run.py` measures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.choices import JudgeName
from api.interfaces.cli.output import As


def evaluate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Labelled queries, one JSON object a line.")
    ] = None,
    judge: Annotated[JudgeName, typer.Option(help="Judge that is measured.")] = "local",
    model: Annotated[str | None, typer.Option(help="Model for `openai` and `grader`.")] = None,
    corpus: Annotated[
        bool, typer.Option("--corpus", help="Measure on the sample corpus, too.")
    ] = False,
    about: Annotated[bool, typer.Option(help="Tell the judge what each query is about.")] = True,
    pure: Annotated[
        bool, typer.Option("--pure", help="Split pages into all relevant and all irrelevant.")
    ] = False,
    page: Annotated[int, typer.Option(help="Items judged in one call.", min=1, max=50)] = 25,
    form: As = "text",
    compare: Annotated[
        Path | None, typer.Option(help="Result (JSON) to subtract: of FILE, or a newer result.")
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            help="With --compare: end with 1 when the MCC surely fell by more, such as -0.03.",
            min=-2,
            max=0,
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="New SVG file for the calibration.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder for the answers of models.")] = None,
    support: Annotated[
        Path | None, typer.Option(help="Labelled claims: measure a support check on them.")
    ] = None,
    langfuse: Annotated[
        str | None,
        typer.Option(help="Dataset in Langfuse: upload the labels, and record an experiment."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(help="Name of that experiment, after the judge's (default: the time)."),
    ] = None,
    retrieval: Annotated[
        Path | None, typer.Option(help="Labelled questions: measure the archive's search on them.")
    ] = None,
) -> int:
    """Measure a judge on labelled items; see docs/evaluation.md."""
    options = {**locals(), "files": files or []}
    from api.interfaces.cli.eval_run import EvalOptions, run_evaluation

    return run_evaluation(EvalOptions(**options))
