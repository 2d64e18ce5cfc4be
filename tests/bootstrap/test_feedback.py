"""Whether feedback is told to Langfuse, and what becomes of it while Langfuse hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from api.bootstrap import load_settings
from api.bootstrap.storage import feedback_sender
from api.features.analyses.feedback import RatedReport, Send
from api.features.analyses.store_ports import Feedback
from tests.langfuse.tracing.collector import SECRET, collecting
from tests.store.made import report, typed

REPORT = typed(report("r1", trace_id="0af7651916cd43dd8448eb211c80319c"))
RATED = RatedReport(REPORT, Feedback("r1", "ada", "report", "up"))


def sender(variables: Mapping[str, str], patience: float = 10.0) -> Send | None:
    """As the environment has it."""
    with pytest.MonkeyPatch.context() as environment:
        keys = {"LANGFUSE_PUBLIC_KEY": "pk-lf-feedback", "LANGFUSE_SECRET_KEY": SECRET}
        for name, value in {"LISTENPOST_MODE": "live", **keys, **variables}.items():
            environment.setenv(name, value)
        return feedback_sender(load_settings(), patience)


@pytest.mark.parametrize(
    "variables",
    [
        {"LANGFUSE_SECRET_KEY": ""},
        {"LANGFUSE_PUBLIC_KEY": ""},
        {"LANGFUSE_TRACING_ENABLED": "False"},
        {"LISTENPOST_MODE": "sandbox"},
    ],
)
def test_nobody_is_told(variables: dict[str, str]) -> None:
    """Without both keys, switched off, and of sample data."""
    assert sender({}) is not None
    assert sender(variables) is None


async def test_a_langfuse_that_hangs_holds_few() -> None:
    """Whoever waits for too long is told so, and those on their way are sent in the end."""
    with collecting() as langfuse:
        langfuse.delay = 3600
        send = sender({"LANGFUSE_BASE_URL": langfuse.url}, 0.01)
        assert send is not None
        first = [asyncio.create_task(_sent(send)) for _ in range(2)]
        await asyncio.to_thread(langfuse.arrived.wait, 20)
        late = await send(RATED)
        langfuse.over.set()

        assert late == "Langfuse is slow, and others wait for it already"
        assert await asyncio.gather(*first) == ["", ""]
        assert len(langfuse.scores) == 2


async def _sent(send: Send) -> str:
    return await send(RATED)
