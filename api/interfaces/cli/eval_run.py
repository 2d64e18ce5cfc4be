"""`eval`: ask a judge or a support check about labelled items and say how good it is."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from api import bootstrap
from api.choices import JudgeName
from api.errors import ConfigurationError, LangfuseError, UsageError
from api.evaluation.judge_candidates import PAID, candidate, labelled_corpus, sampled, support_checker
from api.evaluation.judge_evaluation import (
    AnswerCache,
    EvaluationOptions,
    Progress,
    RememberedAnswers,
    evaluate,
    order_stability,
)
from api.evaluation.labelled_items import LabelledClaim, LabelledQuery, pure, read_claims, read_labelled
from api.evaluation.metrics import compare, is_regression
from api.evaluation.search_scores import (
    Search,
    checked_search,
    plain_searches,
    product_search,
    read_questions,
    retrieve,
    sample_archive,
    score_retrieval,
)
from api.evaluation.support_scores import evaluate_support
from api.interfaces.cli.eval_tables import (
    calibration_plot,
    comparison_table,
    order_lines,
    retrieval_table,
    support_line,
    table,
)
from api.interfaces.cli.output import TextFormat, as_json, check_output, run_to_end, say, tell
from api.settings import Settings, data_folder

if TYPE_CHECKING:
    from api.evaluation.langfuse_experiment import ExperimentRun


_SAMPLE = "Sample model: the offline sandbox answers, no key is used."
_REGRESSED, _UNREACHABLE = 1, 4
_CHECKED = ", answers known"
"""Suffix of a search whose answer check knows the labels."""


@dataclass(frozen=True, slots=True)
class EvalOptions:
    """What is evaluated on which data, and the form of the result."""

    files: Sequence[Path]
    judge: JudgeName
    model: str | None
    corpus: bool
    bench: Sequence[str]
    """Sets of the benchmark, whose texts were fetched."""
    about: bool
    pure: bool
    page: int
    orders: int
    form: TextFormat
    compare: Path | None
    plot: Path | None
    cache: Path | None
    support: Path | None
    langfuse: str | None
    """The dataset over which it is an experiment."""
    run: str | None
    fail_below: float | None
    retrieval: Path | None


def run_evaluation(options: EvalOptions) -> int:
    """Evaluate, or compare two results, and print.

    Exit code 1 for a regression, 4 when Langfuse cannot take the experiment, which is known before
    anything is judged; else 0.
    """
    check_output(options.plot)
    if options.retrieval is not None:
        return _search_archive(options, options.retrieval)
    if options.orders > 1 and options.support:
        raise UsageError("`--orders` measures a judge of items, not a `--support` check")
    for option, needed in (("fail_below", "compare"), ("run", "langfuse")):
        if getattr(options, option) is not None and getattr(options, needed) is None:
            raise UsageError(f"`--{option.replace('_', '-')}` goes with `--{needed}`")
    if not (options.run or "").isprintable():
        raise UsageError("the name of a `--run` is one line")
    other = None
    if options.compare is not None:
        other = _result(options.compare)
        if other is None:
            raise UsageError(f"`{options.compare}` is no result; write one with `--format json`")
        results = [held for path in options.files if (held := _result(path)) is not None]
        if results and len(options.files) > 1:
            raise UsageError("two results are compared: `--compare BEFORE AFTER`; more are named")
        for mine in results:
            if options.langfuse is not None:
                raise UsageError("two results are compared without asking anybody: no `--langfuse`")
            return _compared(mine, other, options)
    resolved = [path.resolve() for path in options.files]
    if twice := next((path for path in options.files if resolved.count(path.resolve()) > 1), None):
        raise UsageError(f"`{twice}` is named twice, and each of its items would count twice")
    settings = bootstrap.load_settings()
    if options.langfuse is not None and sampled(settings, options.judge):
        raise UsageError(
            "the sandbox's model would answer, and what it says belongs in no project; set "
            "`OPENAI_API_KEY`, and no `LISTENPOST_MODE=sandbox`"
        )
    queries = [] if options.support else _queries(options)
    claims = _claims(options.support) if options.support else []

    async def work() -> int:
        if options.support:
            result = await _check(settings, options, claims, bench)
        else:
            result = await _judge(settings, options, queries, bench)
        if other is not None:
            result["comparison"] = compare(result, other)
        _deliver(result, options)
        return _REGRESSED if _is_worse(result, options) else 0

    try:
        with _benched(settings, options, queries, claims) as bench:
            return run_to_end(work())
    except LangfuseError as error:
        tell(f"listenpost: error: {error}")
        return _UNREACHABLE


def _search_archive(options: EvalOptions, file: Path) -> int:
    """Measure the search of the archive, plain ones, and that with the vectors of a server, where one is set; print."""
    others = ("files", "corpus", "bench", "compare", "support", "plot", "langfuse", "run", "cache")
    if any(getattr(options, option) for option in others):
        raise UsageError("`--retrieval FILE` goes with `--format` alone: no judge is measured")
    questions = read_questions(read_lines(file), str(file))
    settings = bootstrap.load_settings()
    chosen = settings.retrieval, settings.ranking

    async def measured(searches: Mapping[str, Search]) -> list[dict[str, Any]]:
        return [score_retrieval(name, await retrieve(search, questions)).as_json() for name, search in searches.items()]

    async def work() -> int:
        async with sample_archive() as archive:
            product, checked = product_search(archive, *chosen), checked_search(archive, *chosen, questions)
            results = await measured({"archive": product, f"archive{_CHECKED}": checked, **plain_searches(archive)})
        if settings.embeddings.model:
            from api.models.embeddings import server_embedder  # loads the model's library

            embedder = server_embedder(settings)
            async with sample_archive(embedder) as archive:
                product = product_search(archive, *chosen, embedder)
                checked = checked_search(archive, *chosen, questions, embedder)
                name = f"archive, {settings.embeddings.model}"
                results += await measured({name: product, f"{name}{_CHECKED}": checked})
        if options.form == "json":
            say(as_json(results))
        else:
            say(retrieval_table(results, markdown=options.form == "markdown"))
        return 0

    return run_to_end(work())


def _compared(mine: Mapping[str, Any], other: Mapping[str, Any], options: EvalOptions) -> int:
    """Print two results side by side, without asking a model."""
    result = {"comparison": compare(mine, other)}
    if options.form == "json":
        say(as_json(result["comparison"]))
    else:
        markdown = options.form == "markdown"
        say(comparison_table(result["comparison"], markdown=markdown))
    return _REGRESSED if _is_worse(result, options) else 0


def _is_worse(result: Mapping[str, Any], options: EvalOptions) -> bool:
    """Whether the result is a regression beyond the limit; if so, print it."""
    threshold = options.fail_below
    if threshold is None or not is_regression(result["comparison"], threshold):
        return False
    mcc = result["comparison"]["overall"]["mcc"]
    tell(
        f"regression: MCC {mcc['difference']:+.3f}, 95 % from {mcc['low']:+.3f} to "
        f"{mcc['high']:+.3f}, all of it below {threshold:+g}"
    )
    return True


@contextmanager
def _benched(
    settings: Settings,
    options: EvalOptions,
    queries: Sequence[LabelledQuery],
    claims: Sequence[LabelledClaim],
) -> Iterator[ExperimentRun | None]:
    """The run that records the evaluation, with its labels uploaded; None without `--langfuse`."""
    if options.langfuse is None:
        yield None
        return
    from api.evaluation.langfuse_experiment import of_claims, of_queries, open_bench

    examples = of_claims(claims) if options.support else of_queries(queries)
    with open_bench(settings.tracing, options.langfuse, examples, options.run, notice=tell) as bench:
        yield bench


def _queries(options: EvalOptions) -> list[LabelledQuery]:
    queries = [query for path in options.files for query in read_labelled(read_lines(path), str(path))]
    if options.corpus:
        queries += labelled_corpus()
    if options.bench:
        queries += fetched_queries(options.bench)
        if options.judge == "local":
            tell("the local judge was fitted on these queries; `listenpost bench run` takes weights without the query")
    if not queries:
        raise UsageError("nothing to evaluate on; name a file of labelled queries, `--corpus` or `--bench SET`")
    return pure(queries) if options.pure else queries


async def _judge(
    settings: Settings,
    options: EvalOptions,
    queries: Sequence[LabelledQuery],
    bench: ExperimentRun | None,
) -> dict[str, Any]:
    """The result of a judge or grader."""
    name, tracing = options.judge, bench.tracing if bench else None
    async with candidate(settings, name, options.model, tracing) as judge:
        if sampled(settings, name):
            tell(_SAMPLE)
        paid = name in PAID
        conditions = EvaluationOptions(
            page=options.page,
            concurrency=settings.models.model_concurrency if paid else 1,
            about=options.about,
            min_yield=settings.adaptive.min_yield,
        )
        cache = None
        if options.cache is not None and paid:
            cache = AnswerCache(options.cache, judge.name)
        elif options.cache is not None:
            tell(f"`{name}` costs nothing: its answers are not kept")
        ask = evaluate if bench is None else bench.evaluate
        if options.orders < 2:
            return (await ask(judge, queries, conditions, cache=cache, progress=progress_line())).as_json()
        remembered = RememberedAnswers(judge)
        measured = await ask(remembered, queries, conditions, cache=cache, progress=progress_line())
        orders = await order_stability(remembered, queries, conditions, cache=cache)
    return measured.as_json() | {"orders": orders}


def fetched_queries(names: Sequence[str]) -> list[LabelledQuery]:
    """The `dev` part of sets of the benchmark; raises `UsageError` where their texts were not fetched."""
    from api.evaluation.bench_sets import FetchedTexts, read_sets

    sets, folder = read_sets(), data_folder() / "bench"
    if queries := FetchedTexts.read(folder, sets).joined(sets.chosen(names, "dev")):
        return queries
    raise UsageError(f"`{folder}` holds no texts of the benchmark; `listenpost bench fetch` brings them")


def _claims(file: Path) -> list[LabelledClaim]:
    if not (claims := read_claims(read_lines(file), str(file))):
        raise UsageError(f"`{file}` holds no claims")
    return claims


async def _check(
    settings: Settings,
    options: EvalOptions,
    claims: Sequence[LabelledClaim],
    bench: ExperimentRun | None,
) -> dict[str, Any]:
    """The result of a support check."""
    name, tracing = options.judge, bench.tracing if bench else None
    async with support_checker(settings, name, options.model, tracing) as checker:
        if sampled(settings, name):
            tell(_SAMPLE)
        ask = evaluate_support if bench is None else bench.evaluate_support
        measured = await ask(checker, claims)
    return measured.as_json()


def _result(path: Path) -> dict[str, Any] | None:
    """A result that `--format json` wrote; None when it is something else."""
    with suppress(ValueError):
        held = json.loads("\n".join(read_lines(path)))
        if isinstance(held, dict) and "queries" in held:
            return held
    return None


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 file; raises `UsageError`."""
    try:
        # not `splitlines`: a JSON string may hold U+2028 and the like as they are
        return path.read_text("utf-8-sig").split("\n")
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"`{path}` is not UTF-8 text; save it as UTF-8") from None


def progress_line(done_word: str = "judged", noun: str = "") -> Progress:
    """A line on stderr: rewritten in a terminal, elsewhere one every few seconds."""
    terminal, every = sys.stderr.isatty(), 0.2 if sys.stderr.isatty() else 5.0
    last = monotonic()

    def show(done: int, total: int) -> None:
        nonlocal last
        if monotonic() - last >= every or (terminal and done == total):
            last = monotonic()
            end = "" if terminal and done < total else "\n"
            start = "\r" if terminal else ""
            print(f"{start}{done_word} {done} of {total} {noun}".rstrip(" "), end=end, file=sys.stderr, flush=True)

    return show


def _deliver(result: Mapping[str, Any], options: EvalOptions) -> None:
    """Print tables or JSON, say what was not judged, and draw the calibration when wanted."""
    markdown = options.form == "markdown"
    if options.form == "json":
        say(as_json(result))
    else:
        say(support_line(result) if options.support else table(result, markdown=markdown))
        if "orders" in result:
            say("\n" + order_lines(result["orders"], markdown=markdown))
        if "comparison" in result:
            say("\n" + comparison_table(result["comparison"], markdown=markdown))
    if options.support:
        return
    if degraded := result["overall"]["degraded"]:
        reasons = ", ".join(result["reasons"])
        were = "item was" if degraded == 1 else "items were"
        tell(f"{degraded} {were} not judged ({reasons}) and count in no figure")
    path = options.plot
    if path is None:
        return
    if not result["calibration"]:
        raise UsageError(f"`{result['judge']}` gives no probabilities: there is nothing to plot")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(calibration_plot(result))
    except OSError as error:
        raise ConfigurationError(f"`{path}` cannot be written ({error.strerror}); the figures are on stdout") from None
    tell(f"written to {path}")
