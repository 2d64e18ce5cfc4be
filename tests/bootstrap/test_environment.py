"""A variable that a library cannot read takes away what needs that library, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from api import bootstrap, relevance_filter
from api.errors import ConfigurationError, SourceError, Unreachable, construction_failures_as
from api.services import product as product_service
from api.services.product import Ask, Product
from tests.interfaces.command import inside, process

LIVE = {
    "LISTENPOST_MODE": "live",
    "AMAZON_PROVIDER": "html",
    "AMAZON_URL": "http://amazon.invalid",
    "OPENAI_API_KEY": "key",
    "OPENAI_BASE_URL": "http://model.invalid/v1",
    "LANGFUSE_PUBLIC_KEY": "pk-lf-x",
    "LANGFUSE_SECRET_KEY": "sk-lf-x",
    "LANGFUSE_BASE_URL": "http://langfuse.invalid",
}
NO_PROXY = ("NO_PROXY", "localhost,fe80::/10")
"""Read by all but the model's library, which can."""
OF_CONNECTIONS = [
    ("ALL_PROXY", "socks5://127.0.0.1:9"),
    ("HTTPS_PROXY", "http://[::1"),
    ("SSL_CERT_FILE", "/nowhere/certificates.pem"),
]
OF_REQUESTS = [
    ("reddit", "ALL_PROXY", "socks5://127.0.0.1:9"),
    ("reddit", "HTTPS_PROXY", "foo://"),
    ("reddit", "HTTPS_PROXY", "http://[::1"),
    ("reddit", "REQUESTS_CA_BUNDLE", "/nowhere/certificates.pem"),
    ("youtube", "HTTPS_PROXY", "foo://"),
    ("youtube", "HTTPS_PROXY", "http://[::1"),
    ("youtube", "HTTPS_PROXY", "http://127.0.0.1:9"),
]
"""Read by a library with its first request, or when its client is made in a thread."""
OF_TRACING = [
    ("OTEL_ATTRIBUTE_COUNT_LIMIT", "abc"),
    ("OTEL_SPAN_EVENT_COUNT_LIMIT", "-1"),
]


@pytest.fixture
def anyio_backend() -> str:
    """Our clients run on asyncio."""
    return "asyncio"


@asynccontextmanager
async def built() -> AsyncIterator[Product]:
    """The product of the environment."""
    product = bootstrap.build(bootstrap.load_settings())
    try:
        yield product
    finally:
        await product.aclose()


@pytest.fixture
def live(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything configured, at hosts that are nowhere."""
    for name, value in LIVE.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(("name", "value"), [NO_PROXY, *OF_CONNECTIONS, *OF_TRACING])
async def test_the_demo_runs(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Offline every source answers, the model judges, and only tracing may be off."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    monkeypatch.setenv(name, value)

    async with built() as product:
        report = await product_service.analyze(product, Ask("plaud.ai", "quick"))
        model = await product.probes["model"]()
        langfuse = await product.probes["langfuse"]()

    assert report.decision == "full_report"
    assert {source.outcome for source in report.sources.values()} == {"ok"}
    assert {source.gate.status for source in report.sources.values()} == {"ok"}
    assert model[0] == "ok"
    assert f"unset `{name}`" in langfuse[1]


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy"])
async def test_the_sandbox_asks_no_proxy(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    """Behind a dead proxy the demo is traced and probed as ever, without a warning."""
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    monkeypatch.setenv(name, "http://127.0.0.1:9")

    async with built() as product:
        report = await product_service.analyze(product, Ask("plaud.ai", "quick"))
        outcomes = [(await probe())[0] for probe in product.probes.values()]

    assert report.decision == "full_report"
    assert outcomes == ["ok", "ok"]
    assert caplog.records == []


@pytest.mark.parametrize(("name", "value"), [NO_PROXY, *OF_CONNECTIONS])
@pytest.mark.usefixtures("live")
async def test_a_variable_takes_away_what_needs_it(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Source, model and tracing each say which variable to correct, without its value."""
    monkeypatch.setenv(name, value)

    async with built() as product:
        amazon = product.sources["amazon"]
        upstreams = ["langfuse"] if name == "NO_PROXY" else ["langfuse", "model"]
        probes = [await product.probes[upstream]() for upstream in upstreams]

    assert isinstance(amazon, Unreachable)
    for outcome, detail in [(amazon.code, str(amazon)), *probes]:
        assert outcome == "unreachable"
        assert f"correct or unset `{name}`" in detail
        assert value not in detail


@pytest.mark.parametrize(("source", "name", "value"), OF_REQUESTS)
async def test_a_variable_that_is_read_late_is_named(
    monkeypatch: pytest.MonkeyPatch, live: None, source: str, name: str, value: str
) -> None:
    """A place that cannot be reached over it is `unreachable`, with that one line."""
    for other in ("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "YOUTUBE_API_KEY"):
        monkeypatch.setenv(other, "key")
    monkeypatch.setenv("REDDIT_URL", "https://reddit.invalid")
    monkeypatch.setenv("YOUTUBE_URL", "https://youtube.invalid")
    monkeypatch.setenv(name, value)

    async with built() as product:
        report = await product_service.analyze(product, Ask("plaud.ai", "quick", (source,)))

    answered = report.sources[source]
    assert answered.outcome == "unreachable"
    assert f"`{name}`" in (answered.reason or "")
    assert value not in (answered.reason or "")


@pytest.mark.parametrize(
    ("name", "source"),
    [("PRAWCORE_TIMEOUT", "reddit"), pytest.param("HTTPLIB2_CA_CERTS", "youtube", marks=pytest.mark.nightly)],
)
def test_a_variable_that_is_read_at_import_is_named(name: str, source: str) -> None:
    """`doctor` in a process of its own: one line, and no traceback."""
    keys = ("REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET", "YOUTUBE_API_KEY")
    addresses = dict.fromkeys(("REDDIT_URL", "YOUTUBE_URL"), "http://127.0.0.1:9")
    ended = process("doctor", "--format", "json", env={**dict.fromkeys(keys, "k"), **addresses, name: "abc"})

    rows = {row["upstream"]: row for row in ended.json["upstreams"]}
    assert rows[source]["outcome"] == "unreachable"
    assert rows[source]["detail"].endswith(f"correct or unset `{name}`")
    assert "Traceback" not in ended.err


@pytest.mark.usefixtures("live")
def test_a_chat_whose_model_cannot_be_built_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason and the variable, and no traceback."""
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")

    ended = inside("chat", stdin=b"What about the Plaud Note?\n")

    assert ended.code == 2
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("listenpost: error: model: unreachable (")
    assert "`ALL_PROXY`" in ended.err


@pytest.mark.parametrize(("name", "value"), [NO_PROXY, *OF_CONNECTIONS, *OF_TRACING])
def test_help_needs_no_client(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Whatever the environment holds."""
    monkeypatch.setenv(name, value)

    assert inside("--help").code == 0


@pytest.mark.parametrize(("name", "value"), OF_TRACING)
@pytest.mark.usefixtures("live")
async def test_a_variable_of_tracing_concerns_tracing(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Without its traces everything is there; the probe says what is wrong."""
    monkeypatch.setenv(name, value)

    async with built() as product:
        outcome, detail = await product.probes["langfuse"]()
        amazon = product.sources["amazon"]

    assert not isinstance(amazon, SourceError)
    assert outcome == "unreachable"
    assert detail.endswith(f"correct or unset `{name}`")


def test_a_variable_that_a_library_can_do_without_is_one_line() -> None:
    """OpenTelemetry falls back to its default; a person reads the variable, and no traceback."""
    ended = process("doctor", "--format", "json", env={"OTEL_PYTHON_CONTEXT": "abc"})

    assert ended.err.splitlines() == [
        "listenpost: warning: `OTEL_PYTHON_CONTEXT` names nothing that is installed; unset it"
    ]
    outcomes = {row["upstream"]: row["outcome"] for row in ended.json["upstreams"]}
    assert outcomes["langfuse"] == "ok"


@pytest.mark.parametrize(("name", "value"), OF_CONNECTIONS)
@pytest.mark.usefixtures("live")
async def test_the_filter_fails_open(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """A model client that cannot be built lets every item pass, with a reason."""
    monkeypatch.setenv(name, value)

    filtered = await relevance_filter("plaud", [{"title": "a"}, {"title": "b"}], "reddit")

    assert len(filtered[0]) == 2
    assert (filtered.status, filtered.reason) == ("degraded", "unreachable")


async def test_a_defect_is_no_matter_of_the_environment() -> None:
    """What no variable explains says so, and keeps its cause."""

    with (
        pytest.raises(ConfigurationError, match="no variable") as caught,
        construction_failures_as(ConfigurationError),
    ):
        raise TypeError("a defect")

    assert isinstance(caught.value.__cause__, TypeError)
