"""A Langfuse that refuses, hangs, dawdles or rejects costs a run nothing and the exit little."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import threading
import weakref
from pathlib import Path

import pytest
from langfuse import Langfuse, get_client
from langfuse._client.resource_manager import LangfuseResourceManager

from api.core.domain import Question
from api.core.ports import Facts
from api.langfuse.tracing import Tracing, start
from api.langfuse.tracing.langfuse_client import ShutdownThread
from tests.forked import CODE, Forked
from tests.langfuse.tracing.collector import Collector, settings_for
from tests.langfuse.tracing.fakes import EvenJudge, ShopSource, run
from tests.loopback import free_port

PROGRAM = """
import asyncio, sys
from api.langfuse.tracing import langfuse_client, start
from tests.langfuse.tracing.collector import settings_for
from tests.langfuse.tracing.fakes import EvenJudge, ShopSource, run

langfuse_client.REQUEST_SECONDS = 3600
tracings = [start(settings_for(sys.argv[1])) for _ in range(int(sys.argv[2]))]
for tracing in tracings:
    sources = [tracing.source(ShopSource(name)) for name in ("reddit", "youtube", "amazon")]
    judge = tracing.judge(EvenJudge())
    for _ in range(int(sys.argv[4])):
        asyncio.run(run(tracing.observer, sources, judge))
if sys.argv[3] == "shutdown":
    tracings[0].shutdown()
    tracings[0].shutdown()
print("over", flush=True)
"""
"""No request is given up within an hour, so a program that waits for one does not end."""
SECOND_RUN = """
import asyncio, sys
from api.langfuse.tracing import langfuse_client, start
from tests.langfuse.tracing.collector import settings_for
from tests.langfuse.tracing.fakes import EvenJudge, ShopSource, run

langfuse_client.REQUEST_SECONDS = 3600
tracing = start(settings_for(sys.argv[1], trace_flush_timeout=0.1))
source, judge = tracing.source(ShopSource()), tracing.judge(EvenJudge())
asyncio.run(run(tracing.observer, [source], judge))
sys.stdin.readline()
asyncio.run(run(tracing.observer, [source], judge))
print("over", flush=True)
"""
ROOT = Path(__file__).parents[3]
HANGS = 60
"""Seconds after which a program that should end is killed, and its test fails."""


def exit_of(url: str, tracings: int = 1, last: str = "exit", runs: int = 20) -> str:
    """What a program said on stderr until its end, which no unanswered request holds up."""
    arguments = url, str(tracings), last, str(runs)
    with Forked[str]([CODE, PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "over\n"
        try:
            _, errors = program.communicate(timeout=HANGS)
        finally:
            program.kill()
    assert program.returncode == 0
    return errors


@pytest.mark.parametrize("tracings", [1, 3])
def test_exit_with_a_hung_server(langfuse: Collector, tracings: int) -> None:
    """The exit waits for no answer, with one tracing or three."""
    langfuse.delay = 3600

    errors = exit_of(langfuse.url, tracings)

    _at_most_one_warning_each(errors, tracings)
    assert "takes no traces" in errors


def test_exit_with_a_slow_server(langfuse: Collector) -> None:
    """A server that takes 2 s to answer gets everything before the exit is over."""
    langfuse.delay = 2

    errors = exit_of(langfuse.url, runs=1)

    _at_most_one_warning_each(errors, 1)
    assert langfuse.one("analyze")
    assert {"decision", "upstream_calls"} <= set(langfuse.scored())
    assert len(langfuse.scores) == 3 * (6 + 2) + 9, "of sources, calls of the gate, the question"


@pytest.mark.parametrize("last", ["exit", "shutdown"])
def test_exit_with_a_closed_port(last: str) -> None:
    """A refused connection is one warning, and the exit does not wait until it is accepted."""
    errors = exit_of(f"http://127.0.0.1:{free_port()}", last=last)

    _at_most_one_warning_each(errors, 1)
    assert "takes no traces" in errors


def test_exit_hands_over(langfuse: Collector) -> None:
    """Without any shutdown the exit hands over every span and score; a late one would warn."""
    errors = exit_of(langfuse.url)

    assert errors == ""
    assert len(langfuse.named("analyze")) == 20
    assert len([score for score in langfuse.scores if score["name"] == "decision"]) == 20


def test_no_request_on_the_path(langfuse: Collector) -> None:
    """While the server leaves a request unanswered, the next run ends."""
    langfuse.delay = 3600
    with Forked[str](
        [CODE, SECOND_RUN, langfuse.url],
        env=os.environ | {"LANGFUSE_FLUSH_INTERVAL": "0.01"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        try:
            assert langfuse.arrived.wait(HANGS)
            printed, _ = program.communicate("now\n", timeout=HANGS)
        finally:
            program.kill()

    assert printed == "over\n"


@pytest.mark.parametrize("status", [401, 404, 500, 503])
async def test_errors_are_one_warning(
    langfuse: Collector, tracing: Tracing, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that rejects everything is one warning without a key, and the run is the same."""
    langfuse.status = status

    found = await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()))
    tracing.shutdown()

    assert len(found[0].kept) == 4
    assert [(record.name, record.levelname) for record in caplog.records] == [("api.langfuse.tracing", "WARNING")]
    assert "127.0.0.1" in caplog.text
    assert "lf-" not in caplog.text


async def test_full_queue(langfuse: Collector, caplog: pytest.LogCaptureFixture) -> None:
    """More spans than the queue holds are dropped without a word from the libraries."""
    langfuse.delay = 60
    made = start(settings_for(langfuse.url, trace_flush_timeout=0.1))
    assert made is not None

    agents = made.client._provider.get_tracer("pydantic-ai")
    for _ in range(4000):
        agents.start_span("chat").end()
    made.shutdown()
    langfuse.over.set()

    assert {record.name for record in caplog.records} == {"api.langfuse.tracing"}
    assert len(caplog.records) == 1


async def test_others_may_still_speak(tracing: Tracing, caplog: pytest.LogCaptureFixture) -> None:
    """What the program's own OpenTelemetry and Langfuse log is not swallowed."""
    with tracing.observer.analysis("analyze", Question("q")):
        for name in ("langfuse", "opentelemetry.sdk._shared_internal"):
            logging.getLogger(name).warning("theirs")

    assert [record.message for record in caplog.records] == ["theirs", "theirs"]


async def test_same_key_twice(langfuse: Collector) -> None:
    """Two tracings with the same keys do not share an end: the second outlives the first."""
    settings = settings_for(langfuse.url)
    first, second = start(settings), start(settings)
    assert first is not None
    assert second is not None

    first.shutdown()
    with second.observer.analysis("analyze", Question("q")) as span:
        span.record(Facts("clarify", 0, 0, 0.0))
    second.shutdown()

    assert len(langfuse.named("analyze")) == 1
    assert langfuse.scored()["decision"] == ("CATEGORICAL", "clarify")


async def test_their_langfuse(langfuse: Collector) -> None:
    """A program's own client with the same keys stays as it is, and carries nothing of ours."""
    settings = settings_for(langfuse.url)
    key = settings.langfuse_public_key
    theirs = Langfuse(public_key=key, secret_key="sk-lf-x", base_url=langfuse.url, tracing_enabled=False)

    made = start(settings)
    assert made is not None
    with made.observer.analysis("analyze", Question("ada@example.com")):
        pass
    made.shutdown()

    assert langfuse.one("analyze").told("input")["question"] == "[masked]"
    assert get_client(public_key=key).api is theirs.api
    theirs.shutdown()


def test_nothing_stays(langfuse: Collector) -> None:
    """No client is left for others to find, and after the shutdown no thread."""
    settings, before = settings_for(langfuse.url), set(threading.enumerate())
    made = start(settings)
    assert made is not None
    assert settings.langfuse_public_key not in LangfuseResourceManager._instances
    begun = set(threading.enumerate()) - before

    made.shutdown()
    for thread in begun:
        thread.join(5)

    assert begun
    assert not [thread for thread in begun if thread.is_alive()]


async def test_dropped_tracing(langfuse: Collector) -> None:
    """A tracing that nobody holds any longer hands over what it has and ends its threads."""
    before = {thread for thread in threading.enumerate() if isinstance(thread, ShutdownThread)}
    made = start(settings_for(langfuse.url))
    assert made is not None
    (closer,) = {one for one in threading.enumerate() if isinstance(one, ShutdownThread)} - before
    with made.observer.analysis("analyze", Question("q")):
        pass

    gone = weakref.ref(made.client)
    del made
    gc.collect()
    closer.join(10)

    assert gone() is None
    assert not closer.is_alive()
    assert len(langfuse.named("analyze")) == 1


async def test_after_the_end(langfuse: Collector, tracing: Tracing) -> None:
    """A run after the shutdown works, and says nothing."""
    tracing.shutdown()

    found = await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()))

    assert len(found[0].kept) == 4
    assert langfuse.requests == []


def _at_most_one_warning_each(errors: str, tracings: int) -> None:
    lines = errors.splitlines()
    assert len(lines) <= tracings, errors
    assert "lf-" not in errors
