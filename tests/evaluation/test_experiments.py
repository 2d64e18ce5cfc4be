"""An evaluation as an experiment: what arrives at Langfuse, decoded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from api.core.domain import Question, Usage, Verdict
from api.core.items import Item
from api.core.model_batches import UnusableAnswer
from api.core.ports import Claim, Judgement, Support
from api.errors import ConfigurationError, ModelError
from api.evaluation.judge_evaluation import EvaluationOptions, JudgeCandidate
from api.evaluation.judge_scores import EvalResult
from api.evaluation.labelled_items import LabelledClaim, LabelledItem, LabelledQuery
from api.evaluation.langfuse_experiment import of_claims, of_queries, open_bench
from api.evaluation.support_scores import SupportResult
from api.langfuse.tracing.experiment import experiment_id
from api.settings import TracingSettings
from tests.langfuse.dashboards.kit import Project, settings_for
from tests.langfuse.tracing.collector import Collector, Seen
from tests.langfuse.tracing.trees import received, roots, unmasked

NAME, RUN = "gate/größe", "change 7"
QUERIES = [
    LabelledQuery(
        name, "reddit",
        (
            LabelledItem(f"good {name}", "write to ada@example.com", True),
            LabelledItem(f"bad {name} sk-proj-0123456789", "", False),
            LabelledItem("good too", "", False),
        ),
        "brand",
    )
    for name in ("mug", "lampe für groß", "broken")
]  # fmt: skip
CLAIMS = [
    LabelledClaim(Question("mug"), Claim("yes a", "p", "p"), True),
    LabelledClaim(Question("mug"), Claim("no b", "p", "p"), False),
    LabelledClaim(Question("broken"), Claim("yes c", "p", "p"), True),
]


@dataclass
class Judging:
    """Keeps what says `good`; about `broken` it gives a paid answer that nobody can use."""

    name: str = "fake-1"
    reason: str = "malformed"
    calls: list[str] = field(default_factory=list)

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        self.calls.append(question.text)
        if question.text == "broken":
            raise UnusableAnswer(self.reason, "", Usage(5, 5, 0.25))
        verdicts = tuple(Verdict("good" in item.title, self.name) for item in items)
        return Judgement(verdicts, self.name, Usage(10, 1, 0.5))


class Failing(Judging):
    """Answers the first page alone."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason=reason)

    async def judge(self, question: Question, items: Sequence[Item], source: str) -> Judgement:
        if self.calls:
            raise ModelError(self.reason)
        return await super().judge(question, items, source)


@dataclass
class Checking:
    """Lets by what says yes; nothing is known of `broken`."""

    name: str = "check-1"

    async def check(self, question: Question, claims: Sequence[Claim]) -> Support:
        if question.text == "broken":
            raise ModelError("timeout")
        answers = tuple("yes" in claim.sentence for claim in claims)
        return Support(answers, self.name, Usage(4, 1, 0.125))


async def judged(
    project: Project,
    *,
    judge: Judging | None = None,
    run: str | None = RUN,
    queries: Sequence[LabelledQuery] = tuple(QUERIES),
    page: int = 2,
) -> EvalResult:
    """The result of an evaluation that was recorded."""
    judge = judge or Judging()
    examples = of_queries(queries)
    with open_bench(settings_for(project.sandbox.url), NAME, examples, run, notice=print) as bench:
        candidate = JudgeCandidate(bench.tracing.judge(judge, scored=False), judge.name)
        return await bench.evaluate(candidate, queries, EvaluationOptions(page=page))


async def checked(project: Project) -> SupportResult:
    """The same of a support check."""
    settings = settings_for(project.sandbox.url)
    with open_bench(settings, NAME, of_claims(CLAIMS), RUN, notice=print) as bench:
        return await bench.evaluate_support(bench.tracing.checker(Checking()), CLAIMS)


def arrived(project: Project) -> Collector:
    """Spans and scores as the sandbox's Langfuse got them."""
    return received(project.sandbox)


def task_of(collector: Collector, query: str) -> Seen:
    """The span that stands for one item."""
    (span,) = [s for s in collector.named("experiment-item-task") if query in str(s.told("input"))]
    return span


def run_scores(collector: Collector) -> dict[str, tuple[str, Any]]:
    """Type and value of the scores of the whole."""
    return {score["name"]: (score["dataType"], score["value"]) for score in collector.scores if "datasetRunId" in score}


def dataset(project: Project) -> str:
    """The id of the only one."""
    return str(project.call("GET", "/v2/datasets")["data"][0]["id"])


async def test_each_item_is_a_trace_with_one_root(project: Project) -> None:
    """Run over task and evaluation, the judge's calls below the task, page after page."""
    await judged(project)
    collector = arrived(project)

    assert [root.name for root in roots(collector).values()] == ["experiment-item-run"] * 3
    below = "experiment-item-run > experiment-item-task"
    assert sorted({collector.path(span) for span in collector.spans}) == [
        "experiment-item-run",
        "experiment-item-run > experiment-item-evaluation",
        below,
        f"{below} > relevance_filter",
    ]
    assert len(collector.named("relevance_filter")) == 6


async def test_every_span_says_what_it_belongs_to(project: Project) -> None:
    """The attributes by which the server makes an experiment, in the environment of the SDK's."""
    await judged(project)
    collector = arrived(project)
    task = task_of(collector, "lampe")
    example = of_queries(QUERIES)[1]
    name = "langfuse.experiment."

    for span in [span for span in collector.spans if span.trace == task.trace]:
        bound = {key.removeprefix(name): value for key, value in span.attributes.items() if key.startswith(name)}
        metadata = json.loads(bound.pop("metadata"))
        assert bound == {
            "id": experiment_id("sandbox", dataset(project), f"fake-1 {RUN}"),
            "name": f"fake-1 {RUN}",
            "dataset.id": dataset(project),
            "item.id": example.key(NAME),
            "item.expected_output": json.dumps(example.expected),
            "item.metadata": json.dumps(example.metadata),
            "item.root_observation_id": task.id,
        }
        assert metadata.items() >= {"judge": "fake-1", "page": 2, "about": True}.items()
        assert span.attributes["langfuse.environment"] == "sdk-experiment"


async def test_an_item_is_scored_by_its_own_measures(project: Project) -> None:
    """Typed, in the same environment, on the span that stands for it."""
    await judged(project)
    collector = arrived(project)
    scores = collector.scored(task_of(collector, "mug"))
    (latency,) = [scores.pop("eval_ms_per_10")]

    assert scores == {
        "eval_precision": ("NUMERIC", 0.5),
        "eval_recall": ("NUMERIC", 1),
        "eval_mcc": ("NUMERIC", pytest.approx(0.5)),
        "eval_yield_error": ("NUMERIC", pytest.approx(1 / 3)),
        "eval_usd": ("NUMERIC", 1),
        "eval_answered": ("BOOLEAN", 1),
    }
    assert latency[0] == "NUMERIC"
    assert {score["environment"] for score in collector.scores} == {"sdk-experiment"}


async def test_the_run_is_scored_by_the_printed_figures(project: Project) -> None:
    """Under names of their own, on the experiment; what is not defined is not sent."""
    result = await judged(project)
    collector = arrived(project)
    scores = run_scores(collector)

    assert {score["datasetRunId"] for score in collector.scores if "datasetRunId" in score} == {
        experiment_id("sandbox", dataset(project), f"fake-1 {RUN}")
    }
    for name in ("precision", "recall", "mcc", "usd", "ms_per_10"):
        assert scores[f"eval_run_{name}"] == ("NUMERIC", result.overall[name])
    assert scores["eval_run_yield_error"] == ("NUMERIC", result.overall["yield_mae"])
    assert "eval_run_ece" not in scores
    assert None not in {value for _, value in scores.values()}
    assert {entry.status for entry in project.sandbox.requests("langfuse", "scores")} == {202}


async def test_an_item_that_failed_is_counted(project: Project) -> None:
    """Its spans say why, its score that it has no answer; measures it has none."""
    result = await judged(project)
    collector = arrived(project)
    task = task_of(collector, "broken")
    runs = {span.trace: span for span in collector.named("experiment-item-run")}

    assert result.overall["degraded"] == 3
    assert run_scores(collector)["eval_run_unanswered"] == ("NUMERIC", 3)
    assert collector.scored(task) == {
        "eval_usd": ("NUMERIC", 0.5),
        "eval_answered": ("BOOLEAN", 0),
    }
    assert task.told("output") == {"kept": [None, None, None]}
    for span in (task, runs[task.trace]):
        assert (span.told("level"), span.told("status_message")) == ("ERROR", "malformed")


async def test_half_an_answer_is_a_warning(project: Project) -> None:
    """What was answered is measured, but its yield is not that of the page."""
    halves = [LabelledQuery("mug", "reddit", QUERIES[0].items)]
    judge = Failing("timeout")
    await judged(project, judge=judge, queries=halves)
    collector = arrived(project)
    task = task_of(collector, "mug")
    scores = collector.scored(task)

    assert task.told("output") == {"kept": [True, False, None]}
    assert (task.told("level"), task.told("status_message")) == ("WARNING", "timeout")
    assert (scores["eval_mcc"], scores["eval_answered"]) == (("NUMERIC", 1), ("BOOLEAN", 0))
    assert "eval_yield_error" not in scores


async def test_costs_of_the_spans_are_what_it_cost(project: Project) -> None:
    """Answers that nobody could use are paid for, too; nothing is counted twice."""
    result = await judged(project)
    costs = [span.told("cost_details") for span in arrived(project).spans]

    assert sum(cost["total"] for cost in costs if cost) == result.overall["usd"] == 2.5


async def test_nothing_secret_is_in_what_is_sent(project: Project) -> None:
    """Neither keys nor addresses, and no bodies in spans."""
    await judged(project)
    collector = arrived(project)
    sent = repr([entry.body for entry in project.writes() if not isinstance(entry.body, bytes)])
    spans = repr([span.attributes for span in collector.spans])

    assert unmasked(collector) == set()
    assert "sk-proj" not in sent
    assert "example.com" not in sent
    assert "write to" in sent
    assert "write to" not in spans


async def test_a_run_without_a_name_is_one_of_its_own(project: Project) -> None:
    """Named after the judge and the time."""
    await judged(project, run=None)
    (name,) = {span.attributes["langfuse.experiment.name"] for span in arrived(project).spans}

    assert name.startswith("fake-1 2")


async def test_two_judges_of_one_name_are_two_experiments(project: Project) -> None:
    """Each with the figures of its own; the same judge joins its own."""
    for judge in (Judging(), Judging(name="fake-2"), Judging()):
        await judged(project, run="pr-7", judge=judge)
    named = {
        span.attributes["langfuse.experiment.name"]: span.attributes["langfuse.experiment.id"]
        for span in arrived(project).spans
    }

    assert named.keys() == {"fake-1 pr-7", "fake-2 pr-7"}
    assert len(set(named.values())) == 2


async def test_a_run_that_makes_no_sense_ends(project: Project) -> None:
    """A used-up quota is the error; the items so far are there, and no scores of a whole."""
    with pytest.raises(ModelError, match="quota"):
        await judged(project, judge=Judging(reason="quota"))
    collector = arrived(project)

    assert collector.named("experiment-item-run")
    assert run_scores(collector) == {}


async def test_a_support_check_is_an_experiment(project: Project) -> None:
    """An item for each question, with the same scores."""
    result = await checked(project)
    collector = arrived(project)
    mug, broken = task_of(collector, "mug"), task_of(collector, "broken")
    scores = collector.scored(mug)
    (latency,) = [scores.pop("eval_ms_per_10")]

    assert collector.path(collector.named("support_check")[0]).endswith("task > support_check")
    assert mug.told("input") == {"query": "mug", "pairs": [["yes a", "p"], ["no b", "p"]]}
    assert scores == {
        "eval_precision": ("NUMERIC", 1),
        "eval_recall": ("NUMERIC", 1),
        "eval_mcc": ("NUMERIC", 1),
        "eval_let_by": ("NUMERIC", 0),
        "eval_usd": ("NUMERIC", 0.125),
        "eval_answered": ("BOOLEAN", 1),
    }
    assert latency[0] == "NUMERIC"
    assert (broken.told("status_message"), broken.told("level")) == ("timeout", "ERROR")
    assert run_scores(collector)["eval_run_unanswered"] == ("NUMERIC", result.unanswered)
    assert run_scores(collector)["eval_run_let_by"] == ("NUMERIC", 0)


async def test_switched_off_there_is_no_bench(project: Project) -> None:
    """An experiment is nothing but traces; the message says what to do."""
    settings = settings_for(project.sandbox.url)
    off = settings.model_copy(update={"langfuse_tracing_enabled": False})
    with (
        pytest.raises(ConfigurationError, match="unset `LANGFUSE_TRACING_ENABLED`"),
        open_bench(off, NAME, [], RUN, notice=print),
    ):
        raise AssertionError


async def test_an_experiment_is_never_sampled(project: Project) -> None:
    """Each of its items is there, whatever share of the product's traces is sent."""
    settings = settings_for(project.sandbox.url)
    few = settings.model_copy(update={"langfuse_sample_rate": 0.0})
    examples = of_queries(QUERIES)
    with open_bench(few, NAME, examples, RUN, notice=print) as bench:
        candidate = JudgeCandidate(bench.tracing.judge(Judging(), scored=False), Judging().name)
        await bench.evaluate(candidate, QUERIES, EvaluationOptions(page=2))

    assert len(arrived(project).named("experiment-item-run")) == len(examples)


async def test_without_keys_there_is_no_bench() -> None:
    """The message says which."""
    with (
        pytest.raises(ConfigurationError, match="LANGFUSE_PUBLIC_KEY"),
        open_bench(TracingSettings(), NAME, [], RUN, notice=print),
    ):
        raise AssertionError
