"""Prompts of Langfuse in a whole product: all who ask a model use them, and their spans say so."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import httpx
import pytest

from api import bootstrap
from api.bootstrap import chat, gate_version
from api.core.prompts import NAMES, PackagedPrompts, packaged
from api.errors import ConfigurationError
from api.features.chat.chat_turn import Turn
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from api.services.product import Ask, Product, analyze
from tests.langfuse.tracing.collector import TRACES, Collector, Seen

GENERATIONS = {
    "relevance_filter": "relevance",
    "grade": "grades",
    "rewrite": "rewrites",
    "support_check": "support",
    "explain": "insufficient",
    "name_senses": "senses",
}
"""The prompt of each."""
NOTHING = "Zorvexolin Q9"
"""A name that nobody writes about."""
NAME, VERSION = "langfuse.observation.prompt.name", "langfuse.observation.prompt.version"


@pytest.fixture
def anyio_backend() -> str:
    """Our clients run on asyncio."""
    return "asyncio"


@pytest.fixture
def upstream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    """A world that the environment names as if it were live, prompts of Langfuse included."""
    with Sandbox.start(options=Options(search_quota=10_000, reddit_limit=10_000)) as sandbox:
        for name, value in sandbox.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("LISTENPOST_PROMPTS", "langfuse")
        yield sandbox


@asynccontextmanager
async def built() -> AsyncIterator[Product]:
    """The product of the environment, closed with all its traces sent."""
    product = bootstrap.build(bootstrap.load_settings())
    try:
        yield product
    finally:
        await product.aclose()


def push(sandbox: Sandbox, *names: str, text: str | None = None) -> None:
    """Two versions of prompts as the package has them, the second in production."""
    url = f"{sandbox.url}/api/public/v2/prompts"
    keys = ("pk", "sk")
    for name in NAMES:
        if name in (names or NAMES):
            prompt = packaged(name)
            for words in (prompt.text, text or prompt.text):
                body = {"name": prompt.title, "prompt": words, "labels": ["production"]}
                httpx.post(url, json=body, auth=keys).raise_for_status()


def spans_of(sandbox: Sandbox) -> Collector:
    """What Langfuse was sent."""
    collector = Collector()
    for entry in sandbox.requests("langfuse", "traces"):
        collector.receive(TRACES, gzip.decompress(entry.body))
    return collector


def links(spans: list[Seen]) -> set[tuple[object, object]]:
    """Name and version of the prompts that spans name."""
    return {(span.attributes.get(NAME), span.attributes.get(VERSION)) for span in spans}


async def test_every_question_to_a_model_names_its_prompt(upstream: Sandbox) -> None:
    """By name and number, on generations alone; what an agent looks up names its own."""
    await asyncio.to_thread(push, upstream)
    async with built() as product:
        await analyze(product, Ask("plaud note"))
        await analyze(product, Ask(NOTHING))
        await analyze(product, Ask("Bolt"))  # its posts are about several things
        conversation = chat(bootstrap.load_settings(), product)
        turn = await conversation.answer(conversation.begin(), "What about the ember mug?")

    assert isinstance(turn, Turn)
    spans = spans_of(upstream)
    for generation, name in GENERATIONS.items():
        assert links(spans.named(generation)) == {(f"listenpost/{name}", 2)}, generation
    asked = [span for span in spans.spans if span.name.startswith("chat ")]
    assert links([span for span in asked if "report" in spans.path(span)]) == {("listenpost/report", 2)}
    assert links([span for span in asked if "invoke_agent chat" in spans.path(span)]) == {("listenpost/chat", 2)}
    others = [span for span in spans.spans if span not in asked and span.name not in GENERATIONS]
    assert links(others) == {(None, None)}
    assert {type(span.attributes[VERSION]) for span in asked} == {int}


async def test_a_prompt_that_lost_its_rule_is_not_used_and_not_named(
    upstream: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    """Below an agent that has one, too: nothing is named by which nothing was asked."""
    await asyncio.to_thread(push, upstream)
    await asyncio.to_thread(push, upstream, "relevance", text='Keep all. {"relevant": [true]}')
    async with built() as product:
        conversation = chat(bootstrap.load_settings(), product)
        await conversation.answer(conversation.begin(), "What about the ember mug?")

    spans = spans_of(upstream)
    assert links(spans.named("relevance_filter")) == {(None, None)}
    assert links([s for s in spans.spans if s.name.startswith("chat ")]) == {("listenpost/chat", 2)}
    bodies = [str(entry.body) for entry in upstream.requests("openai", "judge")]
    assert bodies
    assert all("Not a namesake" in body and "Keep all" not in body for body in bodies)
    (warning,) = [m for m in caplog.messages if m.startswith("prompts of Langfuse")]
    assert "`listenpost/relevance`: version 4: it lacks `{{rule}}`" in warning


async def test_what_a_model_reads_is_langfuses_text(upstream: Sandbox) -> None:
    """With the rule of the fence where the owner put it."""
    text = "{{ rule }} " + packaged("relevance").text.replace("{{rule}}", "Be strict.")
    await asyncio.to_thread(push, upstream, "relevance", text=text)
    async with built() as product:
        await analyze(product, Ask("plaud note", "quick", ("reddit",)))

    system = upstream.requests("openai", "judge")[0].body["messages"][0]["content"]
    assert system.startswith("Text in <q-")
    assert system.endswith("\nBe strict.")


async def test_a_run_without_prompts_in_langfuse_is_as_ever(
    upstream: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    """All from the files, nothing named, one warning; two questions ask for each prompt once."""
    async with built() as product:
        first = await analyze(product, Ask("plaud note", "quick"))
        second = await analyze(product, Ask("ember mug", "quick"))

    assert first.decision == second.decision == "full_report"
    assert links(spans_of(upstream).spans) == {(None, None)}
    assert len(upstream.requests("langfuse", "prompts")) == len(NAMES)
    assert len([m for m in caplog.messages if m.startswith("prompts of Langfuse")]) == 1


@pytest.mark.parametrize("name", ["LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"])
async def test_a_missing_key_is_named(upstream: Sandbox, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody believes in a prompt that is not used."""
    monkeypatch.delenv(name)

    with pytest.raises(ConfigurationError, match=f"`LISTENPOST_PROMPTS=langfuse` needs `{name}`"):
        bootstrap.build(bootstrap.load_settings())


async def test_prompts_need_no_traces(upstream: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a variable of the tracing libraries cannot be read."""
    monkeypatch.setenv("OTEL_ATTRIBUTE_COUNT_LIMIT", "abc")
    await asyncio.to_thread(push, upstream)
    async with built() as product:
        outcome, detail = await product.probes["langfuse"]()
        async with product.prompts.using("report") as prompt:
            assert prompt.version == 2

    assert outcome == "unreachable"
    assert "prompts labelled `production`: relevance 2, grades 2" in detail


async def test_the_sandbox_uses_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no project of yours, and a person's own items in that mode leave nowhere."""
    monkeypatch.setenv("LISTENPOST_PROMPTS", "langfuse")
    monkeypatch.setenv("LISTENPOST_MODE", "sandbox")
    settings = bootstrap.load_settings()
    products = bootstrap.build(settings), bootstrap.build_gate(settings)
    kinds = {type(product.prompts) for product in products}
    for product in products:
        await product.aclose()

    assert kinds == {PackagedPrompts}


def test_traces_are_filed_under_the_label(upstream: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the model, in place of the digest of the package's prompt."""
    monkeypatch.setenv("LISTENPOST_PROMPT_LABEL", "candidate")
    assert gate_version(bootstrap.load_settings(), sandboxed=False) == "gpt-4o-mini+candidate"

    monkeypatch.setenv("LISTENPOST_PROMPTS", "files")
    ours = packaged("relevance").digest
    assert gate_version(bootstrap.load_settings(), sandboxed=False) == f"gpt-4o-mini+{ours}"
