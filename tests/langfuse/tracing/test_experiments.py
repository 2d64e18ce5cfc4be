"""Experiments: their id, and that no queue runs full. Their spans: `tests/evaluation`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from langfuse import Langfuse

from api.langfuse.tracing.experiment import Experiment, ExperimentItem, ExperimentOutcome, experiment_id
from api.langfuse.tracing.langfuse_client import Client


@dataclass
class Quiet:
    """A client and a span of its own that counts how often it is emptied."""

    id: str = "1"
    flushes: int = 0

    def observation(self, *_: object, **__: object) -> AbstractContextManager[Any]:
        return nullcontext(self)

    def update(self, **_: object) -> None:
        """Nothing."""

    def flush(self) -> None:
        self.flushes += 1


def test_the_id_is_the_one_that_the_sdk_derives() -> None:
    """So that a run of the same name joins the same experiment, whoever made it."""
    client = Langfuse(public_key="pk-lf-derive", secret_key="sk-lf", tracing_enabled=False)
    theirs = client._create_experiment_id(project_id="p", dataset_id="größe", run_name="a/b")

    assert experiment_id("p", "größe", "a/b") == theirs


async def test_what_is_queued_is_sent_before_the_queue_is_full() -> None:
    """A full one drops spans: 500 of the 2048 that it holds are enough."""
    client = Quiet()
    experiment = Experiment(cast("Client", client), "e", "run", "d", {})

    async def task() -> ExperimentOutcome:
        return ExperimentOutcome(None, {}, calls=7)

    for _ in range(100):
        await experiment.carry_out(ExperimentItem("i", None, None, {}), task)

    assert client.flushes == 2
