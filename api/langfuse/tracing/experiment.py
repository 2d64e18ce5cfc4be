"""An experiment in Langfuse: a trace for each item of a dataset, with its output and scores.

Its spans have the attributes that the SDK's `run_experiment` sets. That method is not used: it runs the tasks in an
event loop of its own, and only logs an item that failed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from api.langfuse.tracing.langfuse_client import Client
from api.langfuse.tracing.spans import Parent, labelled

ENVIRONMENT = "sdk-experiment"
"""Environment of experiments, as in Langfuse's SDK; the product's traces have another."""
_PREFIX = "langfuse.experiment."
# The queue drops spans beyond 2048, so it is flushed after this many; an item has three of its own.
_FLUSH_AT, _OWN = 500, 3


@dataclass(frozen=True, slots=True)
class ExperimentItem:
    """An item of the dataset, as its spans show it."""

    id: str
    input: Any
    expected: Any
    metadata: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ExperimentOutcome:
    """Output and scores of one dataset item, and why it has none."""

    output: Any
    scores: Mapping[str, bool | float | None]  # by name; None is not sent
    fault: str = ""  # why the answer is incomplete or missing
    failed: bool = False  # whether there is no answer at all
    calls: int = 1  # calls that were made, each a span


@dataclass(slots=True)
class Experiment:
    """A run over a dataset, whose item results are sent to Langfuse."""

    client: Client
    id: str
    name: str
    dataset_id: str
    metadata: Mapping[str, Any]
    _queued: int = field(default=0, init=False)

    async def carry_out(
        self, item: ExperimentItem, task: Callable[[], Awaitable[ExperimentOutcome]]
    ) -> ExperimentOutcome:
        """Trace and score a task: span `experiment-item-run` with `-task` and `-evaluation`."""
        observation = self.client.observation
        with observation("experiment-item-run", "span", input=item.input) as run:
            whole = Parent()
            with observation("experiment-item-task", "span", input=item.input) as span:
                labels = self._labels(item, span.id)
                for parent in (whole, Parent()):
                    parent.label(labels)
                with labelled(labels):
                    outcome = await task()
                ended: dict[str, Any] = {"output": outcome.output}
                if outcome.fault:
                    level = "ERROR" if outcome.failed else "WARNING"
                    ended |= {"level": level, "status_message": outcome.fault}
                span.update(**ended)
            run.update(**ended)
            scores = {name: value for name, value in outcome.scores.items() if value is not None}
            with labelled(labels), observation(
                "experiment-item-evaluation", "evaluator",
                input={"output": outcome.output, "expected_output": item.expected},
                output=scores,
            ):  # fmt: skip
                for name, value in scores.items():
                    self.client.score(name, value, span)
        self._queued += _OWN + outcome.calls
        if self._queued >= _FLUSH_AT:
            self._queued = 0
            await asyncio.to_thread(self.client.flush)
        return outcome

    def score(self, scores: Mapping[str, float | None]) -> None:
        """Send scores of the whole run; None is not sent."""
        for name, value in scores.items():
            if value is not None:
                self.client.score_run(self.id, name, value)

    def _labels(self, item: ExperimentItem, root: str) -> dict[str, str]:
        """Attributes that make spans part of it; `root` is the span of the item."""
        text = partial(json.dumps, ensure_ascii=False)
        labels = {
            "id": self.id, "name": self.name, "metadata": text(self.metadata),
            "dataset.id": self.dataset_id, "item.id": item.id,
            "item.expected_output": text(item.expected),
            "item.metadata": text(item.metadata), "item.root_observation_id": root,
        }  # fmt: skip
        return {f"{_PREFIX}{name}": value for name, value in labels.items()}


def experiment_id(project: str, dataset: str, run: str) -> str:
    """Computed as by server and SDK, so that runs of one name are one experiment."""
    parts = ["langfuse-experiment-v1", project, dataset, run]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
