"""`eval`: measure a judge or a support check on labelled items; `bench`: the public benchmark."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from api.choices import BENCH_SERVER, BenchPart, JudgeName
from api.errors import UsageError
from api.interfaces.cli.output import As, as_json, check_output, say, tell

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from api.evaluation.bench_results import BenchRun, Row
    from api.evaluation.bench_sets import FetchedTexts


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


Sets = Annotated[list[str] | None, typer.Option("--set", help="Set, such as `posts-1` (default: all); repeatable.")]
Folder = Annotated[Path | None, typer.Option(help="Folder with the texts (default: in this user's data).")]
Mirror = Annotated[str, typer.Option(help="Server with the public files, in GitHub's layout.")]
PartName = Annotated[BenchPart, typer.Option(help="Part of the queries; the labels of `test` are shipped as digests.")]


async def fetch(set_: Sets = None, folder: Folder = None, mirror: Mirror = BENCH_SERVER) -> int:
    """Fetch the texts from the public files at their recorded commits; what is there is not asked for again."""
    return await _fetched(set_ or [], folder, mirror)


async def items(set_: Sets = None, part: PartName = "all", folder: Folder = None) -> None:
    """Print the items that a gate reads, one JSON object a line, for verdicts made elsewhere."""
    from api.evaluation.bench_gates import CollectedBatches
    from api.evaluation.bench_results import ask_gate

    run_, _ = _prepared(set_ or [], part, folder)
    collected = CollectedBatches("items")
    await ask_gate(collected, run_)
    say("\n".join(collected.lines()))


async def run(
    gate: Annotated[str | None, typer.Option(help="Command that reads items and writes verdicts.")] = None,
    verdicts: Annotated[Path | None, typer.Option(help="File of verdicts for what `bench items` prints.")] = None,
    baseline: Annotated[
        list[str] | None, typer.Option(help="Gate of this program (default: all that cost nothing); repeatable.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model for the baseline `openai`.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the gate in the results.")] = None,
    set_: Sets = None,
    part: PartName = "all",
    do_fetch: Annotated[bool, typer.Option("--fetch", help="Fetch the texts that are missing first.")] = False,
    mirror: Mirror = BENCH_SERVER,
    folder: Folder = None,
    seconds: Annotated[float, typer.Option(help="Longest time for the command.", min=1)] = 600.0,
    cache: Annotated[Path | None, typer.Option(help="Folder in which answers of models are cached.")] = None,
    out: Annotated[Path | None, typer.Option(help="JSON file of results; other gates' rows in it stay.")] = None,
    form: As = "text",
) -> int:
    """Have gates judge the benchmark, and print their figures with 95 % intervals."""
    from api.evaluation.bench_gates import FREE
    from api.evaluation.bench_results import merged, read_results, results_of, write_results

    if gate is not None and not gate.strip():
        raise UsageError("`--gate` wants a command")
    if gate is not None and verdicts is not None:
        raise UsageError("a gate is a command or a file of verdicts: use one of `--gate` and `--verdicts`")
    known = (*FREE, "openai")
    if unknown := next((each for each in baseline or () if each not in known), None):
        raise UsageError(f"there is no baseline `{unknown}`; there are {', '.join(f'`{each}`' for each in known)}")
    if model is not None and "openai" not in (baseline or ()):
        raise UsageError("`--model` goes with `--baseline openai`; no other gate asks a model")
    if (gate is not None or verdicts is not None) and (named := _name_of(gate, verdicts, name)) in known:
        raise UsageError(f"`{named}` is a gate of this program, whose row it would replace; use another `--name`")
    if out is not None and not out.exists():
        check_output(out)
    if do_fetch:
        await _fetched(set_ or [], folder, mirror)
    run_, texts = _prepared(set_ or [], part, folder)
    coverage = texts.coverage(run_.chosen, run_.sets.sets)
    if out is not None and out.exists():
        merged(read_results(out), results_of([], run_, coverage))  # raises before anything is spent if they do not fit
    command = " ".join(["listenpost bench run", *(f"--set {each}" for each in set_ or ())])
    command += f" --part {part}" * (part != "all")
    rows: list[Row] = []
    if gate is not None or verdicts is not None:
        rows.append(await _given(run_, command, gate, verdicts, name, seconds))
    if baseline or not rows:
        rows += [row async for row in _baselines(run_, command, baseline, model, cache)]
    results = results_of(rows, run_, coverage)
    if out is not None:
        write_results(results, out)
        tell(f"written to {out}")
    _print(results, form)
    return 0


def show(
    results: Annotated[list[Path], typer.Argument(help="Results of `bench run --out`; of one gate the last counts.")],
    form: As = "text",
) -> int:
    """Print results again, or those of several files beside each other; nothing is asked."""
    from api.evaluation.bench_results import merged, read_results

    held = read_results(results[0])
    for path in results[1:]:
        held = merged(held, read_results(path))
    _print(held, form)
    return 0


def _print(results: dict[str, object], form: str) -> None:
    from api.interfaces.cli.eval_tables import bench_tables

    if form == "json":
        say(as_json(results))
    else:
        say(bench_tables(results, markdown=form == "markdown"))


def _texts_folder(folder: Path | None) -> Path:
    from api.settings import data_folder

    return folder or data_folder() / "bench"


async def _fetched(names: Sequence[str], folder: Path | None, mirror: str) -> int:
    from api import bootstrap
    from api.core.text import quantity
    from api.evaluation.bench_sets import FetchedTexts, read_sets
    from api.evaluation.bench_sets import fetch as fetch_texts
    from api.interfaces.cli.eval_run import progress_line

    sets, place = read_sets(), _texts_folder(folder)
    agent = bootstrap.load_settings().sources.user_agent
    fetched = await fetch_texts(
        sets, place, names, root=mirror, user_agent=agent, progress=progress_line("fetched", "files")
    )
    for sentence in fetched.missing:
        tell(sentence)
    if fetched.stopped:
        tell(fetched.stopped)
    tell(f"{quantity(fetched.files, 'file')} read, {fetched.kept:,} there already; texts in {place}")
    coverage = FetchedTexts.read(place, sets).coverage(sets.chosen(names), sets.sets)
    tell("; ".join(f"{name} {have} of {of}" for name, (have, of) in coverage.items()))
    return 4 if fetched.stopped else 0


def _prepared(names: Sequence[str], part: BenchPart, folder: Path | None) -> tuple[BenchRun, FetchedTexts]:
    from api.evaluation.bench_results import BenchRun
    from api.evaluation.bench_sets import FetchedTexts, read_sets
    from api.evaluation.judge_evaluation import EvaluationOptions

    sets, place = read_sets(), _texts_folder(folder)
    chosen = sets.chosen(names, part)
    texts = FetchedTexts.read(place, sets)
    queries = texts.joined(chosen)
    if not queries:
        raise UsageError(f"`{place}` holds no texts of the benchmark; `listenpost bench fetch` brings them")
    # batches one after the other: their order is part of what a gate is asked
    return BenchRun(sets, chosen, queries, EvaluationOptions(concurrency=1)), texts


def _name_of(gate: str | None, verdicts: Path | None, name: str | None) -> str:
    """The name of a gate in the results: as given, else that of its file or of its command's program."""
    return name or (verdicts.name if verdicts is not None else Path(str(gate).split()[0]).name)


async def _given(
    run_: BenchRun, command: str, gate: str | None, verdicts: Path | None, name: str | None, seconds: float
) -> Row:
    """The row of a gate's command, or of a file of verdicts; `command` is our command line that makes the row again."""
    from api.evaluation.bench_gates import CollectedBatches, GivenVerdicts, read_verdicts, run_gate
    from api.evaluation.bench_results import ask_gate, measure
    from api.interfaces.cli.eval_run import read_lines

    named = _name_of(gate, verdicts, name)
    collected = CollectedBatches(named)
    await ask_gate(collected, run_)
    items_ = collected.lines()
    if gate is not None:
        tell(f"`{named}` reads {len(items_):,} lines")
        lines, took = await run_gate(gate, items_, seconds)
        how = f"{command} --gate {shlex.quote(gate)}"
    else:
        assert verdicts is not None  # nosec B101 # one of both is given
        lines, took, how = read_lines(verdicts), 0.0, f"{command} --verdicts {shlex.quote(verdicts.name)}"
    how += f" --name {shlex.quote(name)}" if name else ""
    given = GivenVerdicts(named, collected.batches, read_verdicts(lines, named, collected), took / len(items_))
    row = await measure(given, run_, gate=named, how=how, timed=gate is not None)
    return row | {"unanswered": given.missing}


async def _baselines(
    run_: BenchRun, command: str, names: Sequence[str] | None, model: str | None, cache: Path | None
) -> AsyncIterator[Row]:
    """The rows of this program's gates."""
    from api import bootstrap
    from api.evaluation.bench_gates import FREE, baseline
    from api.evaluation.bench_results import measure
    from api.evaluation.judge_evaluation import AnswerCache, EvaluationOptions, RememberedAnswers
    from api.interfaces.cli.eval_run import progress_line

    settings = bootstrap.load_settings()
    for name in names or FREE:
        async with baseline(settings, name, model if name == "openai" else None, run_.queries) as (judge, note):
            kept = AnswerCache(cache, judge.name) if cache is not None and name == "openai" else None
            how = f"{command} --baseline {name}" + (f" --model {model}" if name == "openai" and model else "")
            # a model is asked several batches at once, the others one: they work on one processor
            asked_at_once = replace(run_, options=EvaluationOptions()) if name == "openai" else run_
            yield await measure(
                RememberedAnswers(judge), asked_at_once, gate=judge.name if name == "openai" else name, how=how,
                note=note, cache=kept, progress=progress_line(f"{name}: judged", "items"),
            )  # fmt: skip
