"""Labelled sets as datasets of Langfuse, and experiments over them: a trace for each item, with its output and scores.

The same file makes the same items, written once. The traces are written by `api/langfuse/tracing/experiment.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http import HTTPStatus
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from api.core.domain import Usage
from api.core.ports import SupportChecker
from api.core.text import quantity
from api.errors import ConfigurationError, LangfuseError, UsageError
from api.evaluation.judge_evaluation import AnswerCache, Around, Ask, Candidate, EvaluationOptions, Progress, evaluate
from api.evaluation.judge_scores import AnswerSheet, EvalResult, verdicts_on
from api.evaluation.labelled_items import LabelledClaim, LabelledQuery
from api.evaluation.metrics import measures, tally
from api.evaluation.support_scores import SupportResult, by_question, evaluate_support
from api.langfuse.dashboards.dashboard_client import Server, read_project
from api.langfuse.tracing import Tracing, start
from api.langfuse.tracing.experiment import ENVIRONMENT, Experiment, ExperimentItem, ExperimentOutcome, experiment_id
from api.langfuse.tracing.masking import mask
from api.settings import TracingSettings

_DATASETS, _ITEMS = "/v2/datasets", "/dataset-items"
# Characters of a name: with the rest of an item's id they are within Langfuse's limit of 255.
_NAME = 200
_DIGEST = 16


@dataclass(frozen=True, slots=True)
class Example:
    """A case of a labelled set, as an item of a dataset."""

    case: str  # digest of what the judge is asked, so that a changed label keeps the case
    input: Mapping[str, Any]
    expected: Mapping[str, Any]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def key(self, dataset: str) -> str:
        """Id of the dataset item in Langfuse, the same whenever it is pushed again."""
        return f"{_prefix(dataset)}{self.case}"


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset with these examples, and what the upload wrote."""

    id: str
    name: str
    examples: Sequence[Example]
    written: int
    unchanged: int
    archived: int  # items of ours that the file no longer holds


def of_queries(queries: Sequence[LabelledQuery]) -> list[Example]:
    """One example for each query, in order, with its labels as the expected output."""
    examples = []
    for query in queries:
        texts = [_filled(title=item.title, body=item.body, place=item.place) for item in query.items]
        grades = [item.grade for item in query.items]
        kinds = [item.kind for item in query.items]
        examples.append(
            Example(
                _digest(query.query, query.source, texts),
                _filled(query=query.query, source=query.source, about=query.about, items=texts),
                {
                    "relevant": [item.relevant for item in query.items],
                    **({"grades": grades} if any(grades) else {}),
                },
                _filled(family=query.family, kinds=kinds if any(kinds) else []),
            )
        )
    return _distinct(examples)


def of_claims(claims: Sequence[LabelledClaim]) -> list[Example]:
    """An example for the claims of each question, in order."""
    examples = []
    for members in by_question(claims):
        question = members[0].question
        pairs = [
            {"sentence": claim.sentence, "passage": claim.passage, "context": claim.context}
            for claim in (labelled.claim for labelled in members)
        ]
        examples.append(
            Example(
                _digest(question.text, "", pairs),
                _filled(query=question.text, about=question.about, pairs=pairs),
                {"supported": [labelled.supported for labelled in members]},
            )
        )
    return _distinct(examples)


def upload(server: Server, name: str, examples: Sequence[Example]) -> Dataset:
    """Make a dataset hold exactly these examples, writing only what differs, masked.

    An existing one keeps its description and the items that other programs made. Raises
    `UsageError` for a name that Langfuse refuses, `LangfuseError` after which a second run goes on.
    """
    if not (name.strip() and name.isprintable()) or len(name) > _NAME or "|" in name:
        raise UsageError(f"a dataset's name has 1 to {_NAME} characters, no `|`, and is one line")
    dataset = server.find(f"{_DATASETS}/{quote(name, safe='')}")
    if dataset is None:
        # without schemas, since a null clears those that a dataset has
        about = "Labelled for `listenpost eval`; what its file says is written here again."
        dataset = _post(server, _DATASETS, {"name": name, "description": about}, name)
    rows = {str(row.get("id")): row for row in server.pages(_ITEMS, datasetName=name)}
    wanted = {
        example.key(name): {
            "input": mask(example.input),
            "expectedOutput": mask(example.expected),
            "metadata": mask(example.metadata),
            "status": "ACTIVE",
        }
        for example in examples
    }
    changed = {
        key: body
        for key, body in wanted.items()
        if key not in rows or any((rows[key].get(name) or {}) != value for name, value in body.items())
    }
    gone = {
        key: {"status": "ARCHIVED"}
        for key, row in rows.items()
        if key.startswith(_prefix(name)) and key not in wanted and row.get("status") != "ARCHIVED"
    }
    for key, body in (changed | gone).items():
        _post(server, _ITEMS, {"datasetName": name, "id": key, **body}, key)
    unchanged = len(wanted) - len(changed)
    return Dataset(str(dataset["id"]), name, examples, len(changed), unchanged, len(gone))


def _post(server: Server, path: str, body: Mapping[str, Any], title: str) -> Mapping[str, Any]:
    """Create or replace by name or id, which makes repeating it safe."""
    while True:
        try:
            return server.post(path, body, f"`{title}`")
        except LangfuseError as error:
            if error.http_status == HTTPStatus.CONFLICT:
                raise UsageError(
                    f"`{title}` is an item of another dataset, which had this name once; use the "
                    "name that it has now, or a new one"
                ) from None
            if error.retry_after is None:
                raise
            server.wait(error.retry_after)


def _prefix(dataset: str) -> str:
    return f"listenpost:{dataset}:"


def _digest(*parts: Any) -> str:
    text = json.dumps(parts, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]


def _distinct(examples: Iterable[Example]) -> list[Example]:
    seen: Counter[str] = Counter()
    distinct = []
    for example in examples:
        seen[example.case] += 1
        if (number := seen[example.case]) > 1:
            example = replace(example, case=f"{example.case}-{number}")
        distinct.append(example)
    return distinct


def _filled(**fields: Any) -> dict[str, Any]:
    """The fields that are not empty: where null is sent, Langfuse keeps the old value."""
    return {name: value for name, value in fields.items() if value}


# Seconds that the end waits for queued spans, longer than usual: here they are the result.
_FLUSH_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ExperimentRun:
    """Evaluations over one dataset, recorded in a Langfuse project."""

    server: Server
    tracing: Tracing
    project: str
    dataset: Dataset
    run: str | None
    notice: Callable[[str], None]

    async def evaluate(
        self, candidate: Candidate, queries: Sequence[LabelledQuery], options: EvaluationOptions, *,
        cache: AnswerCache | None = None, progress: Progress | None = None,
    ) -> EvalResult:  # fmt: skip
        """See `evaluate`; `queries` are those of the dataset."""
        experiment = self._begin(candidate.name, page=options.page, about=options.about)

        def outcome(number: int, sheets: Sequence[AnswerSheet]) -> ExperimentOutcome:
            labels = [item.relevant for item in queries[number].items]
            return _outcome("kept", labels, sheets, options.min_yield, yield_error="yield_mae")

        around = _traced(experiment, self.dataset, outcome)
        result = await evaluate(candidate, queries, options, cache=cache, progress=progress, around=around)
        overall = result.overall
        names = (
            "precision", "recall", "f1", "mcc", "kept_irrelevant", "refetch_right", "ece", "usd",
            "ms_per_10",
        )  # fmt: skip
        scores = {name: overall[name] for name in names}
        scores |= {"yield_error": overall["yield_mae"], "unanswered": overall["degraded"]}
        self._end(experiment, scores)
        return result

    async def evaluate_support(self, checker: SupportChecker, claims: Sequence[LabelledClaim]) -> SupportResult:
        """See `evaluate_support`; `claims` are those of the dataset."""
        experiment, questions = self._begin(checker.name), by_question(claims)

        def outcome(number: int, sheets: Sequence[AnswerSheet]) -> ExperimentOutcome:
            labels = [labelled.supported for labelled in questions[number]]
            return _outcome("supported", labels, sheets, let_by="kept_irrelevant")

        around = _traced(experiment, self.dataset, outcome)
        result = await evaluate_support(checker, claims, around=around)
        names = ("precision", "recall", "mcc", "let_by", "usd", "ms_per_10", "unanswered")
        self._end(experiment, {name: getattr(result, name) for name in names})
        return result

    def _begin(self, judge: str, **options: Any) -> Experiment:
        """A run named after the judge, since runs of one name are one experiment in Langfuse."""
        name = f"{judge} {self.run or datetime.now(UTC).strftime('%Y-%m-%d %H:%M:%S')}"
        return Experiment(
            self.tracing.client, experiment_id(self.project, self.dataset.id, name), name,
            self.dataset.id, {"judge": judge, "listenpost": version("listenpost"), **options},
        )  # fmt: skip

    def _end(self, experiment: Experiment, figures: Mapping[str, float | None]) -> None:
        experiment.score({f"eval_run_{name}": value for name, value in figures.items()})
        root = f"{self.server.address}/project/{self.project}/experiments/results"
        self.notice(f"experiment `{experiment.name}`: {root}?baseline={experiment.id}")


@contextmanager
def open_bench(
    settings: TracingSettings, dataset: str, examples: Sequence[Example], run: str | None, *,
    notice: Callable[[str], None],
) -> Iterator[ExperimentRun]:  # fmt: skip
    """Upload the examples as the dataset (blocks), and record what is evaluated in the block.

    `notice` gets a line about what was written, about each wait that the server asks for, and the
    experiment's address. Raises `ConfigurationError` or `LangfuseError`.
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
            "trace_environment": ENVIRONMENT, "trace_flush_timeout": _FLUSH_SECONDS,
            "langfuse_sample_rate": 1.0,
        }  # fmt: skip
        tracing = start(settings.model_copy(update=update))
        assert tracing is not None, "without keys there is no server"
        try:
            yield ExperimentRun(server, tracing, project.id, held, run, notice)
        finally:
            tracing.shutdown()


def _traced(
    experiment: Experiment,
    dataset: Dataset,
    outcome: Callable[[int, Sequence[AnswerSheet]], ExperimentOutcome],
) -> Around:
    async def around(number: int, ask: Ask) -> list[AnswerSheet]:
        sheets: list[AnswerSheet] = []

        async def task() -> ExperimentOutcome:
            sheets.extend(await ask())
            return outcome(number, sheets)

        await experiment.carry_out(_item(dataset.examples[number], dataset.name), task)
        return sheets

    return around


def _item(example: Example, dataset: str) -> ExperimentItem:
    """The item as shown in spans, without the bodies, which are in the dataset."""
    shown = dict(example.input)
    if "items" in shown:
        shown["items"] = [item.get("title", "") for item in shown["items"]]
    if "pairs" in shown:
        shown["pairs"] = [[pair["sentence"], pair["passage"]] for pair in shown["pairs"]]
    return ExperimentItem(example.key(dataset), shown, example.expected, mask(example.metadata))


def _outcome(
    title: str, labels: Sequence[bool], sheets: Sequence[AnswerSheet], min_yield: float = 0.5,
    **measure: str,
) -> ExperimentOutcome:  # fmt: skip
    """The answers under `title`, and the scores; `measure` names the one of this kind of case."""
    answers: list[bool | None] = [None] * len(labels)
    for sheet in sheets:
        for position, opinion in sheet.positions:
            answers[position] = opinion.relevant
    verdicts = verdicts_on(labels, sheets)
    shares = measures(tally(verdicts, min_yield))
    if len(verdicts) < len(labels):  # a part of a page has no yield
        shares["yield_mae"] = None
    seconds = sum(sheet.answered.seconds for sheet in sheets if sheet.answered)
    return ExperimentOutcome(
        {title: answers},
        {
            **{f"eval_{name}": shares[name] for name in ("precision", "recall", "mcc")},
            **{f"eval_{name}": shares[column] for name, column in measure.items()},
            "eval_usd": sum((sheet.usage for sheet in sheets), Usage()).usd,
            "eval_ms_per_10": seconds / len(verdicts) * 10_000 if verdicts else None,
            "eval_answered": len(verdicts) == len(labels),
        },
        ", ".join(sorted({sheet.reason for sheet in sheets if sheet.reason})),
        failed=not verdicts,
        calls=len(sheets),
    )
