"""The options of `eval`; `eval_run.py` measures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.choices import JudgeName
from api.interfaces.cli.output import As


def evaluate(
    files: Annotated[list[Path] | None, typer.Argument(help="Labelled queries, one JSON object a line.")] = None,
    judge: Annotated[JudgeName, typer.Option(help="Judge that is measured.")] = "local",
    model: Annotated[str | None, typer.Option(help="Model for `openai` and `grader`.")] = None,
    corpus: Annotated[bool, typer.Option("--corpus", help="Measure on the sample corpus, too.")] = False,
    bench: Annotated[
        list[str] | None,
        typer.Option(help="Also measure on the `dev` part of a set of the benchmark, such as `posts-1`; repeatable."),
    ] = None,
    about: Annotated[bool, typer.Option(help="Tell the judge what each query is about.")] = True,
    pure: Annotated[
        bool, typer.Option("--pure", help="Judge relevant and irrelevant items on separate pages.")
    ] = False,
    page: Annotated[int, typer.Option(help="Items judged in one call.", min=1, max=50)] = 25,
    orders: Annotated[
        int,
        typer.Option(help="2: judge each page also shuffled and with another yield, and say what stays.", min=1, max=2),
    ] = 1,
    form: As = "text",
    compare: Annotated[
        Path | None,
        typer.Option(help="Earlier result (JSON) to compare with: FILES, or one newer result."),
    ] = None,
    fail_below: Annotated[
        float | None,
        typer.Option(
            help="With --compare: exit with 1 when the MCC surely fell by more, such as -0.03.",
            min=-2,
            max=0,
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a calibration plot to this new SVG file.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder in which answers of models are cached.")] = None,
    support: Annotated[
        Path | None, typer.Option(help="File of labelled claims, to measure a support check on.")
    ] = None,
    langfuse: Annotated[
        str | None,
        typer.Option(help="Name of a dataset in Langfuse: upload the labels to it, and record an experiment."),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(help="With --langfuse: name of the experiment, after the judge's (default: the time)."),
    ] = None,
    retrieval: Annotated[
        Path | None,
        typer.Option(help="File of labelled questions, to measure the archive's search on."),
    ] = None,
) -> int:
    """Measure a judge on labelled items; see docs/evaluation.md."""
    options = {**locals(), "files": files or [], "bench": bench or []}
    from api.interfaces.cli.eval_run import EvalOptions, run_evaluation

    return run_evaluation(EvalOptions(**options))
