"""An evaluation as an experiment in Langfuse: its dataset, its spans and its scores.

Scores of one case are `eval_...`, those of the whole run `eval_run_...`: one name has one meaning.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

from api.core.domain import Usage
from api.core.ports import SupportChecker
from api.core.text import quantity
from api.errors import ConfigurationError
from api.evaluation.evaluate import (
    AnswerCache,
    Around,
    Candidate,
    EvaluationOptions,
    Progress,
    evaluate,
)
from api.evaluation.judge_scores import AnswerSheet, EvalResult
from api.evaluation.labelled_items import LabelledQuery
from api.evaluation.langfuse_datasets import Dataset, Example, upload
from api.evaluation.metrics import LabelledVerdict, Measures, measures, tally
from api.evaluation.support_scores import (
    CaseAnswers,
    LabelledClaim,
    SupportResult,
    answered,
    by_question,
    evaluate_support,
    measured,
)
from api.langfuse.dashboards.dashboard_client import Server, read_project
from api.langfuse.tracing import Tracing, start
from api.langfuse.tracing.experiment import (
    ENVIRONMENT,
    Experiment,
    ExperimentItem,
    ExperimentOutcome,
    experiment_id,
)
from api.langfuse.tracing.masking import mask
from api.settings import TracingSettings

C = TypeVar("C")
T = TypeVar("T")
# Seconds that the end waits for what is queued: here it is the result, not a by-product.
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """A Langfuse project in which evaluations over one dataset are recorded."""

    server: Server
    tracing: Tracing
    project: str
    dataset: Dataset
    run: str | None
    notice: Callable[[str], None]

    async def evaluate(
        self,
        candidate: Candidate,
        queries: Sequence[LabelledQuery],
        manner: EvaluationOptions,
        *,
        cache: AnswerCache | None = None,
        progress: Progress | None = None,
    ) -> EvalResult:
        """The same as the function, and an experiment; the queries are those of the dataset."""
        shown = {"page": manner.page, "about": manner.about}
        experiment = self._begin(candidate.name, shown)
        trial = partial(_judged, min_yield=manner.min_yield)
        around: Around[list[AnswerSheet]] = _tracing(experiment, self.dataset, queries, trial)
        result = await evaluate(
            candidate, queries, manner, cache=cache, progress=progress, around=around
        )
        overall = result.overall
        shares = ("precision", "recall", "f1", "mcc", "kept_irrelevant", "refetch_right", "ece")
        self._end(
            experiment,
            {
                **{name: overall[name] for name in shares},
                "yield_error": overall["yield_mae"],
                "usd": overall["usd"],
                "ms_per_10": overall["ms_per_10"],
                "unanswered": overall["degraded"],
            },
        )
        return result

    async def evaluate_support(
        self, checker: SupportChecker, claims: Sequence[LabelledClaim]
    ) -> SupportResult:
        """The same as the function, and an experiment; the claims are those of the dataset."""
        experiment = self._begin(checker.name, {})
        around: Around[CaseAnswers] = _tracing(
            experiment, self.dataset, by_question(claims), _checked
        )
        result = await evaluate_support(checker, claims, around=around)
        names = ("precision", "recall", "mcc", "let_by", "usd", "ms_per_10", "unanswered")
        self._end(experiment, {name: getattr(result, name) for name in names})
        return result

    def _begin(self, judge: str, manner: Mapping[str, Any]) -> Experiment:
        """One run, named after the judge, and its own name or the time.

        Two judges under one name would be one experiment, with the figures of the second.
        """
        name = f"{judge} {self.run or datetime.now(UTC).strftime('%Y-%m-%d %H:%M:%S')}"
        return Experiment(
            self.tracing.client,
            experiment_id(self.project, self.dataset.id, name),
            name,
            self.dataset.id,
            {"judge": judge, "listenpost": version("listenpost"), **manner},
        )

    def _end(self, experiment: Experiment, figures: Mapping[str, float | None]) -> None:
        experiment.score({f"eval_run_{name}": value for name, value in figures.items()})
        root = f"{self.server.address}/project/{self.project}/experiments/results"
        self.notice(f"experiment `{experiment.name}`: {root}?baseline={experiment.id}")


@contextmanager
def open_bench(
    settings: TracingSettings,
    dataset: str,
    examples: Sequence[Example],
    run: str | None,
    *,
    notice: Callable[[str], None],
) -> Iterator[ExperimentRun]:
    """The project of the keys, its dataset as the examples say; at the end all is handed over.

    Blocks while it uploads. `notice` hears what was written, of waits that the server asks for,
    and where the experiment is seen.

    Raises:
        ConfigurationError: keys, address or version do not fit, or tracing is switched off.
        LangfuseError: Langfuse failed.
    """
    if not settings.langfuse_tracing_enabled:
        raise ConfigurationError("an experiment is traces: unset `LANGFUSE_TRACING_ENABLED`")
    with closing(Server(settings, notice=notice)) as server:
        project = read_project(server)
        held = upload(server, dataset, examples)
        notice(
            f"dataset `{dataset}` at `{server.host}`: {quantity(held.written, 'item')} written, "
            f"{held.unchanged} as they were, {held.archived} archived"
        )
        update = {
            "trace_environment": ENVIRONMENT, "trace_flush_timeout": _PATIENCE,
            "langfuse_sample_rate": 1.0,
        }  # fmt: skip
        tracing = start(settings.model_copy(update=update))
        assert tracing is not None, "without keys there is no server"
        try:
            yield ExperimentRun(server, tracing, project.id, held, run, notice)
        finally:
            tracing.shutdown()


def _tracing(
    experiment: Experiment,
    dataset: Dataset,
    cases: Sequence[C],
    trial: Callable[[C, T], ExperimentOutcome],
) -> Around[T]:
    """Around each case: its trace, and the measures of this case alone."""

    async def around(number: int, ask: Callable[[], Awaitable[T]]) -> T:
        answers: list[T] = []

        async def task() -> ExperimentOutcome:
            answers.append(await ask())
            return trial(cases[number], answers[0])

        await experiment.carry_out(_item(dataset.examples[number], dataset.name), task)
        return answers[0]

    return around


def _item(example: Example, dataset: str) -> ExperimentItem:
    """As spans show it: like all of ours without the bodies, which are in the dataset."""
    shown = dict(example.input)
    if "items" in shown:
        shown["items"] = [item.get("title", "") for item in shown["items"]]
    if "pairs" in shown:
        shown["pairs"] = [[pair["sentence"], pair["passage"]] for pair in shown["pairs"]]
    return ExperimentItem(example.key(dataset), shown, example.expected, mask(example.metadata))


def _judged(
    query: LabelledQuery, sheets: Sequence[AnswerSheet], *, min_yield: float
) -> ExperimentOutcome:
    answers: list[bool | None] = [None] * len(query.items)
    verdicts = []
    given = [(sheet.start, sheet.answered) for sheet in sheets if sheet.answered is not None]
    for first, page in given:
        for at, opinion in enumerate(page.opinions, first):
            answers[at] = opinion.relevant
            truth = query.items[at].relevant
            verdicts.append(LabelledVerdict(truth, opinion.relevant, opinion.probability))
    wasted = sum((sheet.wasted for sheet in sheets), Usage())
    case = CaseAnswers(
        tuple(answers),
        sum((page.usage for _, page in given), wasted),
        sum(page.seconds for _, page in given),
        tuple(sheet.reason for sheet in sheets if sheet.reason),
        len(sheets),
    )
    shares = measures(tally(verdicts, min_yield))
    whole = None not in answers
    return _trial("kept", case, shares, eval_yield_error=shares["yield_mae"] if whole else None)


def _checked(members: Sequence[LabelledClaim], case: CaseAnswers) -> ExperimentOutcome:
    shares = measured(answered(members, case))
    return _trial("supported", case, shares, eval_let_by=shares["kept_irrelevant"])


def _trial(
    title: str, case: CaseAnswers, shares: Measures, **scores: float | None
) -> ExperimentOutcome:
    """What both kinds are scored by, and their own scores."""
    count = sum(answer is not None for answer in case.answers)
    return ExperimentOutcome(
        {title: case.answers},
        {
            **{f"eval_{name}": shares[name] for name in ("precision", "recall", "mcc")},
            **scores,
            "eval_usd": case.usage.usd,
            "eval_ms_per_10": case.seconds / count * 10_000 if count else None,
            "eval_answered": count == len(case.answers),
        },
        ", ".join(sorted(set(case.reasons))),
        failed=not count,
        calls=case.calls,
    )
