"""An experiment in Langfuse: a trace for each item of a dataset, with what came out and its scores.

No call of the API makes one: it is what its spans say they belong to, with the attributes that
experiments of the SDK write. That one is not used: it runs tasks in a loop of its own, and an item
that failed is only logged.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from api.langfuse.tracing.langfuse_client import Client
from api.langfuse.tracing.spans import Parent, labelled

ENVIRONMENT = "sdk-experiment"
"""Where Langfuse's SDK files experiments, apart from what the product does."""
_PREFIX = "langfuse.experiment."
# Spans after which what is queued is sent, since a full queue drops (2048); those of an item.
_FLUSHED, _OWN = 500, 3


@dataclass(frozen=True, slots=True)
class ExperimentItem:
    """An item of the dataset, as its spans show it."""

    id: str
    input: Any
    expected: Any
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExperimentOutcome:
    """What came of one item."""

    output: Any
    scores: Mapping[str, bool | float | None]
    """By name; None is not sent."""
    fault: str = ""
    """Why there is no answer, or not a whole one."""
    failed: bool = False
    """There is none at all."""
    calls: int = 1
    """What was asked, each a span."""


@dataclass(slots=True)
class Experiment:
    """One run over a dataset."""

    client: Client
    id: str
    name: str
    dataset_id: str
    metadata: Mapping[str, Any]
    _queued: int = field(default=0, init=False)

    async def carry_out(
        self, item: ExperimentItem, task: Callable[[], Awaitable[ExperimentOutcome]]
    ) -> ExperimentOutcome:
        """Trace a task and score it: `experiment-item-run` over `-task` and `-evaluation`."""
        observation = self.client.observation
        with observation("experiment-item-run", "span", input=item.input) as run:
            whole = Parent()
            with observation("experiment-item-task", "span", input=item.input) as span:
                labels = self._labels(item, span.id)
                for parent in (whole, Parent()):
                    parent.label(labels)
                with labelled(labels):
                    trial = await task()
                ended: dict[str, Any] = {"output": trial.output}
                if trial.fault:
                    level = "ERROR" if trial.failed else "WARNING"
                    ended |= {"level": level, "status_message": trial.fault}
                span.update(**ended)
            run.update(**ended)
            scores = {name: value for name, value in trial.scores.items() if value is not None}
            with labelled(labels), observation(
                "experiment-item-evaluation", "evaluator",
                input={"output": trial.output, "expected_output": item.expected},
                output=scores,
            ):  # fmt: skip
                for name, value in scores.items():
                    self.client.score(name, value, span)
        self._queued += _OWN + trial.calls
        if self._queued >= _FLUSHED:
            self._queued = 0
            await asyncio.to_thread(self.client.flush)
        return trial

    def score(self, scores: Mapping[str, float | None]) -> None:
        """Scores of the whole; None is not sent."""
        for name, value in scores.items():
            if value is not None:
                self.client.score_run(self.id, name, value)

    def _labels(self, item: ExperimentItem, root: str) -> dict[str, str]:
        """What makes spans part of it; `root` is the one that stands for the item."""
        labels = {
            "id": self.id,
            "name": self.name,
            "metadata": _text(self.metadata),
            "dataset.id": self.dataset_id,
            "item.id": item.id,
            "item.expected_output": _text(item.expected),
            "item.metadata": _text(item.metadata),
            "item.root_observation_id": root,
        }
        return {f"{_PREFIX}{name}": value for name, value in labels.items()}


def experiment_id(project: str, dataset: str, run: str) -> str:
    """As server and SDK derive it: a run of the same name joins the same experiment."""
    parts = ["langfuse-experiment-v1", project, dataset, run]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
