"""The variables of tracing, the SDK's own among them: honoured or refused, never ignored."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from api import bootstrap, settings
from api.core.domain import Question
from api.core.ports import Facts
from api.langfuse.tracing import Tracing, start
from api.settings import TracingSettings
from tests.langfuse.tracing.collector import TRACES, Collector, settings_for
from tests.langfuse.tracing.fakes import EvenJudge, ShopSource, run

Given = dict[str, str]
Writing = Callable[[Given], None]
PLAUD = Question("plaud")
WORDS = (
    "zanzibarlamp", "a thing to read by", "quokkareport", "walrusprompt", "ocelotexhibit",
    "narwhalquestion", "lemurtrouble", "post 1",
)  # fmt: skip
HONOURED: list[tuple[Given, dict[str, Any]]] = [
    ({"LANGFUSE_BASE_URL": "http://lf"}, {"langfuse_base_url": "http://lf"}),
    ({"LANGFUSE_HOST": "http://lf"}, {"langfuse_base_url": "http://lf"}),
    (
        {"LANGFUSE_HOST": "http://lf/", "LANGFUSE_BASE_URL": "http://lf"},
        {"langfuse_base_url": "http://lf"},
    ),
    ({"LANGFUSE_HOST": ""}, {"langfuse_base_url": "https://cloud.langfuse.com"}),
    ({"LANGFUSE_TRACING_ENVIRONMENT": "qa"}, {"trace_environment": "qa"}),
    ({"LISTENPOST_TRACE_ENVIRONMENT": "qa"}, {"trace_environment": "qa"}),
    ({"LANGFUSE_SAMPLE_RATE": "0.25"}, {"langfuse_sample_rate": 0.25}),
    ({"LANGFUSE_TRACING_ENABLED": "False"}, {"langfuse_tracing_enabled": False}),
    ({"LANGFUSE_TRACING_ENABLED": "0"}, {"langfuse_tracing_enabled": False}),
    ({"LANGFUSE_RELEASE": "2026.11"}, {"langfuse_release": "2026.11"}),
    ({"LISTENPOST_TRACE_CONTENT": "false"}, {"trace_content": False}),
    ({"LISTENPOST_TRACE_OLD_SCORES": "true"}, {"trace_old_scores": True}),
]
REFUSED: list[tuple[Given, str]] = [
    (
        {"LANGFUSE_HOST": "http://one", "LANGFUSE_BASE_URL": "http://two"},
        "`LANGFUSE_HOST` and `LANGFUSE_BASE_URL` differ; unset one",
    ),
    (
        {"LANGFUSE_HOST": "http://one", "LANGFUSE_BASE_URL": "https://cloud.langfuse.com"},
        "`LANGFUSE_HOST` and `LANGFUSE_BASE_URL` differ; unset one",
    ),
    (
        {"LANGFUSE_TRACING_ENVIRONMENT": "qa", "LISTENPOST_TRACE_ENVIRONMENT": "default"},
        "`LANGFUSE_TRACING_ENVIRONMENT` and `LISTENPOST_TRACE_ENVIRONMENT` differ; unset one",
    ),
    ({"LANGFUSE_BASE_URL": "lf.example:3000"}, "`LANGFUSE_BASE_URL` must begin with `https://` or"),
    ({"LANGFUSE_HOST": "lf.example"}, "`LANGFUSE_HOST` must begin with `https://` or `http://`"),
]
MALFORMED = [
    ("LANGFUSE_SAMPLE_RATE", "2"), ("LANGFUSE_SAMPLE_RATE", "abc"), ("LANGFUSE_TRACING_ENABLED", "perhaps"),
]  # fmt: skip


@pytest.fixture(params=["environment", ".env"])
def write(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Writing:
    """Sets variables where people have them."""

    def in_environment(given: Given) -> None:
        for name, value in given.items():
            monkeypatch.setenv(name, value)

    def in_file(given: Given) -> None:
        Path(".env").write_text("".join(f"{name}={value}\n" for name, value in given.items()))

    return in_environment if request.param == "environment" else in_file


@pytest.mark.parametrize(("given", "meant"), HONOURED)
def test_honoured(write: Writing, given: Given, meant: dict[str, Any]) -> None:
    """Each says what it says to the SDK, from the environment and from `.env`."""
    write(given)

    read = settings.load().tracing
    assert {
        name: getattr(read, name).rstrip("/") if isinstance(value, str) else getattr(read, name)
        for name, value in meant.items()
    } == meant


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_refused(write: Writing, given: Given, message: str) -> None:
    """One line names the variables."""
    write(given)

    with pytest.raises(ValueError, match=r"^`") as refusal:
        settings.load()

    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(("name", "value"), MALFORMED)
def test_malformed_value_switches_tracing_off(
    write: Writing, name: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Other programs read the variable too; it is named once for each process, and nothing else ends."""
    write({name: value, "LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"})

    read = [settings.load().tracing for _ in range(2)]

    assert [each.is_on for each in read] == [False, False]
    assert all(record.message.startswith(f"`{name}`: ") for record in caplog.records)
    assert len(caplog.records) <= 1


def test_two_names_in_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server in the environment and another in `.env` are refused, too."""
    Path(".env").write_text("LANGFUSE_BASE_URL=http://one\n")
    monkeypatch.setenv("LANGFUSE_HOST", "http://two")

    with pytest.raises(ValueError, match="`LANGFUSE_HOST` and `LANGFUSE_BASE_URL` differ"):
        settings.load()


async def test_the_older_name_of_the_server(
    langfuse: Collector, write: Writing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `LANGFUSE_HOST` alone traces go there."""
    write({
        "LANGFUSE_HOST": langfuse.url, "LANGFUSE_PUBLIC_KEY": "pk-lf-host",
        "LANGFUSE_SECRET_KEY": "sk-lf-host",
    })  # fmt: skip
    tracing = start(settings.load().tracing)
    assert tracing is not None
    await run(tracing.observer, [tracing.source(ShopSource())], EvenJudge())
    tracing.shutdown()

    assert langfuse.one("analyze")
    assert langfuse.scored()


async def test_switched_off(write: Writing) -> None:
    """With both keys in place nothing is traced, and `doctor` says why."""
    write({
        "LISTENPOST_MODE": "live", "AMAZON_PROVIDER": "html", "LANGFUSE_PUBLIC_KEY": "pk-lf-off",
        "LANGFUSE_SECRET_KEY": "sk-lf-off", "LANGFUSE_TRACING_ENABLED": "false",
    })  # fmt: skip
    assert start(settings.load().tracing) is None

    product = bootstrap.build(bootstrap.load_settings())
    answer = await product.probes["langfuse"]()
    await product.aclose()

    assert answer == ("not_configured", "`LANGFUSE_TRACING_ENABLED` is off: nothing is traced")


async def traced(langfuse: Collector, **given: Any) -> Tracing:
    """A question, traced by these settings and handed over."""
    tracing = start(settings_for(langfuse.url, **given))
    assert tracing is not None
    await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()))
    tracing.shutdown()
    return tracing


@pytest.mark.parametrize(
    ("given", "release"),
    [({}, version("listenpost")), ({"langfuse_release": "2026.11"}, "2026.11")],
)
async def test_release(langfuse: Collector, given: Given, release: str) -> None:
    """On every span: the program's own, or the version of this package."""
    await traced(langfuse, **given)

    assert {span.attributes["langfuse.release"] for span in langfuse.spans} == {release}


async def test_who_sends(langfuse: Collector) -> None:
    """The server is told the SDK whose attributes it gets, and the version of what sends them."""
    await traced(langfuse)

    (headers,) = (headers for path, headers in zip(langfuse.requests, langfuse.headers, strict=True) if path == TRACES)
    assert headers["x-langfuse-sdk-version"] == version("langfuse")
    resources = {(span.resource["service.name"], span.resource["service.version"]) for span in langfuse.spans}
    assert resources == {("listenpost", version("listenpost"))}


async def test_no_trace_is_sampled(langfuse: Collector) -> None:
    """At 0 nothing is sent: no span, no agent's, no score; and answers name no trace."""
    tracing = start(settings_for(langfuse.url, langfuse_sample_rate=0))
    assert tracing is not None
    with tracing.observer.analysis("chat", PLAUD) as span:
        inside = tracing.observer.trace_id
        await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()))
        await Agent(tracing.model(TestModel()), name="report").run("hello")
        span.record(Facts("answered", 1, 1, 0.1))
    tracing.shutdown()

    assert inside is None
    assert (langfuse.spans, langfuse.scores) == ([], [])


async def test_some_traces_are_sampled(langfuse: Collector) -> None:
    """Each is sent whole and with its scores, or not at all."""
    tracing = start(settings_for(langfuse.url, langfuse_sample_rate=0.5))
    assert tracing is not None
    sources = [tracing.source(ShopSource())]
    for _ in range(64):  # all or none of them: one in 10**19
        await run(tracing.observer, sources, tracing.judge(EvenJudge()))
    tracing.shutdown()

    roots = {span.trace for span in langfuse.named("analyze")}
    assert 0 < len(roots) < 64
    assert len(langfuse.spans) == 7 * len(roots)
    assert {span.trace for span in langfuse.spans} == roots
    assert {score["traceId"] for score in langfuse.scores} == roots
    assert len(langfuse.scores) == (6 + 2 + 9) * len(roots)


async def test_a_trace_of_the_program_is_sampled_by_its_id(langfuse: Collector) -> None:
    """The program records everything, yet Langfuse is to have none of it."""
    provider = TracerProvider(shutdown_on_exit=False)
    with provider.get_tracer("program").start_as_current_span("tool"):
        await traced(langfuse, langfuse_sample_rate=0)
    provider.shutdown()

    assert (langfuse.spans, langfuse.scores) == ([], [])


async def all_said(langfuse: Collector, *, content: bool) -> None:
    """A turn that fails after an agent has asked, by a tool, and answered: `WORDS` are said."""
    tracing = start(settings_for(langfuse.url, trace_content=content))
    assert tracing is not None
    question = Question("zanzibarlamp", "a thing to read by")
    agent = Agent(
        tracing.model(TestModel(custom_output_text="a quokkareport")), name="report",
        instructions="write like a walrusprompt",
    )  # fmt: skip

    @agent.tool_plain
    async def fetch_reddit(query: str) -> str:
        await run(tracing.observer, [tracing.source(ShopSource())], tracing.judge(EvenJudge()), question)
        return "an ocelotexhibit"

    with suppress(ValueError), tracing.observer.analysis("chat", question) as span:
        await agent.run("tell me, narwhalquestion")
        span.record(Facts("answered", 4, 6, 0.5, "a quokkareport"))
        raise ValueError("lemurtrouble")
    tracing.shutdown()


@pytest.mark.parametrize("content", [True, False])
async def test_words(langfuse: Collector, content: bool) -> None:
    """Switched off, none of question, title, prompt, tool, answer or error leaves in any form."""
    await all_said(langfuse, content=content)

    sent = b"".join(langfuse.bodies).lower()
    assert {word for word in WORDS if word.encode() in sent} == (set(WORDS) if content else set())


async def test_without_words(langfuse: Collector) -> None:
    """Numbers, verdicts, models, costs, codes and scores are there."""
    await all_said(langfuse, content=False)

    gather, root = langfuse.one("gather.reddit"), langfuse.one("chat")
    assert gather.told("output")["kept"] == 4
    assert gather.told("output")["upstream_calls"] == 6
    call = langfuse.named("relevance_filter")[0]
    assert call.told("input") == {"count": 5, "titles": 5}
    assert call.told("output") == [True, False, False, True, False]
    assert call.told("cost_details") == {"total": 0.0002}
    assert (root.told("level"), root.told("status_message")) == ("ERROR", "ValueError")
    assert [event["exception.type"] for event in root.events] == ["ValueError"]
    models = {span.attributes["gen_ai.request.model"] for span in langfuse.named("chat test")}
    assert models == {"test"}
    assert langfuse.scored()["run_yield"] == ("NUMERIC", 0.4)


def test_defaults() -> None:
    """Words are sent, all of them, under new names alone."""
    read = TracingSettings()
    assert (read.trace_content, read.trace_old_scores) == (True, False)
    assert (read.langfuse_sample_rate, read.langfuse_tracing_enabled) == (1.0, True)
