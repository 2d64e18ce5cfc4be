"""Vectors of a server, by the real client over loopback: the sandbox's, and one that is scripted."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from api.bootstrap import load_settings
from api.errors import ConfigurationError, ModelError
from api.features.archive.search_ranking import cosines
from api.models.embeddings import AT_ONCE, ServerEmbedder, server_embedder
from api.sandbox.server import Sandbox
from tests.models.model_server import ModelServer, Reply, fails


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox without posts."""
    with Sandbox.start([]) as started:
        yield started


@asynccontextmanager
async def embedding(url: str, **fields: Any) -> AsyncIterator[ServerEmbedder]:
    """The embedder of a server at this address."""
    settings = load_settings()
    chosen = {"model": "text-embedding-3-small", "url": url, "dimensions": 256, **fields}
    embeddings = settings.embeddings.model_copy(update=chosen)
    made = server_embedder(replace(settings, embeddings=embeddings))
    assert made is not None
    try:
        yield made
    finally:
        await made.aclose()


async def test_vectors_come_in_batches_and_in_order(sandbox: Sandbox) -> None:
    """At most so many texts a request; a question is nearest to the text that holds its words."""
    texts = [f"word{number} battery" for number in range(2 * AT_ONCE + 1)]
    async with embedding(f"{sandbox.url}/v1") as embedder:
        made = await embedder.of_entries(texts)
        question = await embedder.of_question("battery word40")
        near = cosines(question.vectors[0], made.vectors)

    asked = sandbox.requests("openai", "embeddings")
    assert sorted(len(request.body["input"]) for request in asked) == [1, 1, AT_ONCE, AT_ONCE]
    assert {request.body["dimensions"] for request in asked} == {256}
    assert (made.model, question.model) == ("text-embedding-3-small 256",) * 2
    assert made.tokens == sum(-(-len(text) // 4) for text in texts)
    assert near.index(max(near)) == 40


async def test_dimensions_are_those_of_the_model_unless_fewer_are_asked_for(sandbox: Sandbox) -> None:
    """They are part of the name by which vectors are stored."""
    async with embedding(f"{sandbox.url}/v1", dimensions=None) as embedder:
        made = await embedder.of_question("mug")
    assert (made.model, len(made.vectors[0])) == ("text-embedding-3-small 1536", 1536)
    assert "dimensions" not in sandbox.requests("openai", "embeddings")[0].body


@pytest.mark.parametrize(
    ("fault", "reason", "words"),
    [
        ("dimensions", "malformed", "320 dimensions"),
        ("wrong_count", "count_mismatch", "0 vectors for 1 texts"),
        ("401", "unauthorized", "`LISTENPOST_EMBEDDINGS_KEY`"),
        ("429", "rate_limited", "HTTP 429"),
        ("insufficient_quota", "quota", "HTTP 429"),
        ("500", "http_error", "HTTP 500"),
        ("notjson", "malformed", "`LISTENPOST_EMBEDDINGS_URL`"),
        ("hang", "timeout", "no answer"),
    ],
)
async def test_each_failure_is_named(sandbox: Sandbox, fault: str, reason: str, words: str) -> None:
    """With what to look at, and no vector."""
    sandbox.fault(f"openai.embeddings={fault}")
    async with embedding(f"{sandbox.url}/v1", timeout=0.5) as embedder:
        with pytest.raises(ModelError, match=words) as caught:
            await embedder.of_question("mug")
    assert caught.value.reason == reason


async def test_a_dead_server_is_named() -> None:
    """By the variable with its address."""
    async with embedding("http://127.0.0.1:1/v1") as embedder:
        with pytest.raises(ModelError, match="`LISTENPOST_EMBEDDINGS_URL`") as caught:
            await embedder.of_question("mug")
    assert caught.value.reason == "unreachable"


def answers(body: Mapping[str, Any], size: int = 64, **more: Any) -> Reply:
    """A vector a text, of which each is as long as its text says."""
    data = [{"index": n, "embedding": [float(len(text)), *[0.5] * (size - 1)]} for n, text in enumerate(body["input"])]
    return Reply(json.dumps({"data": data[::-1], "usage": {"prompt_tokens": 7}, **more}).encode())


async def test_a_server_that_takes_fewer_texts_gets_halves(model: ModelServer) -> None:
    """Their order is that of the texts, whatever order the answer has."""
    model.respond = lambda body: answers(body) if len(body["input"]) <= 4 else fails(413)
    async with embedding(model.url, dimensions=None) as embedder:
        made = await embedder.of_entries(["x" * length for length in range(1, 10)])
    assert [vector[1] for vector in made.vectors] == [round(127 * 0.5 / length) for length in range(1, 10)]
    assert made.tokens == 7 * 3


async def test_a_refused_text_is_cut_and_at_last_left_out(model: ModelServer) -> None:
    """One too long is embedded by its beginning; one that is refused however short has zeros, and hides no other."""
    model.respond = lambda body: (
        fails(400) if any(len(text) > 500 or "poison" in text for text in body["input"]) else answers(body)
    )
    async with embedding(model.url, dimensions=None) as embedder:
        made = await embedder.of_entries(["fine", "y" * 900, "poison"])
    assert [any(vector) for vector in made.vectors] == [True, True, False]


async def test_a_server_that_takes_nothing_is_no_matter_of_the_text(model: ModelServer) -> None:
    """Nothing is left out then."""
    model.respond = lambda body: fails(400)
    async with embedding(model.url) as embedder:
        with pytest.raises(ModelError, match=r"HTTP 400.*`LISTENPOST_EMBEDDINGS_DIMENSIONS`"):
            await embedder.of_entries(["a", "b"])


@pytest.mark.parametrize("size", [100, 4032])
async def test_vectors_that_cannot_be_stored_are_refused(model: ModelServer, size: int) -> None:
    """The message says which dimensions can be."""
    model.respond = lambda body: answers(body, size)
    async with embedding(model.url, dimensions=None) as embedder:
        with pytest.raises(ModelError, match="a multiple of 64 up to 3,968"):
            await embedder.of_question("mug")


async def test_a_number_that_is_none_is_refused(model: ModelServer) -> None:
    """And what is no list of vectors."""
    for body in (b'{"data": [{"index": 0, "embedding": [NaN]}]}', b'{"data": [{"embedding": "AAAA"}]}', b'{"data": 7}'):
        model.replies = [Reply(body)]
        async with embedding(model.url, dimensions=None) as embedder:
            with pytest.raises(ModelError, match="no vectors"):
                await embedder.of_question("mug")


async def test_numbers_near_zero_are_scaled_and_zeros_are_like_nothing(model: ModelServer) -> None:
    """The least number that there is makes a vector; for a question zeros are a failure, not a likeness to anything."""
    model.respond = lambda body: Reply(b'{"data": [{"embedding": [5e-324, %s]}]}' % b", ".join([b"0.0"] * 63))
    async with embedding(model.url, dimensions=None) as embedder:
        assert (await embedder.of_question("mug")).vectors == (bytes([127]) + bytes(63),)
        model.respond = lambda body: Reply(b'{"data": [{"embedding": [%s]}]}' % b", ".join([b"0.0"] * 64))
        assert (await embedder.of_entries(["mug"])).vectors == (bytes(64),)
        with pytest.raises(ModelError, match="all zeros"):
            await embedder.of_question("mug")


async def test_the_key_of_the_models_goes_to_their_own_server_alone(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address of its own gets a key of its own, or none."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-models")
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    model.respond = answers
    for url, key in (("", None), (model.url, None), (model.url, "sk-own")):
        monkeypatch.setenv("LISTENPOST_EMBEDDINGS_URL", url)
        monkeypatch.setenv("LISTENPOST_EMBEDDINGS_KEY", key or "")
        loaded = load_settings().embeddings
        async with embedding(loaded.url or None, key=loaded.key, dimensions=None) as embedder:  # type: ignore[arg-type]
            await embedder.of_question("mug")
    assert [headers["authorization"] for headers in model.headers] == [
        "Bearer sk-models",
        "Bearer none",
        "Bearer sk-own",
    ]


async def test_headers_of_the_environment_go_to_the_server_of_the_models_alone(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library would add them to every request: they may hold another key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-models")
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway: secret\nAuthorization: Bearer sk-secret")
    model.respond = answers
    for url, key in ((None, None), (model.url, None), (model.url, SecretStr("sk-own"))):
        async with embedding(url, key=key, dimensions=None) as embedder:  # type: ignore[arg-type]
            await embedder.of_question("mug")
    assert model.headers[0]["x-gateway"] == "secret"
    assert [headers["authorization"] for headers in model.headers[1:]] == ["Bearer none", "Bearer sk-own"]
    assert not any("secret" in value for headers in model.headers[1:] for value in headers.values())


async def test_families_that_expect_a_prefix_get_it(model: ModelServer) -> None:
    """Another before a question than before an entry."""
    model.respond = answers
    for name in ("intfloat/multilingual-e5-small", "nomic-embed-text:v1.5", "bge-m3"):
        async with embedding(model.url, model=name, dimensions=None) as embedder:
            await embedder.of_question("mug")
            await embedder.of_entries(["mug"])
    assert [asked["input"][0] for asked in model.asked] == [
        "query: mug", "passage: mug", "search_query: mug", "search_document: mug", "mug", "mug",
    ]  # fmt: skip


async def test_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the list, as stated, nothing on this machine, else not known."""
    async with embedding("https://embeddings.example/v1") as embedder:
        assert embedder.usd(1_000_000) == pytest.approx(0.02)
    async with embedding("https://embeddings.example/v1", model="bge-m3") as embedder:
        assert embedder.usd(1_000_000) is None
    async with embedding("http://127.0.0.1:8080/v1", model="bge-m3") as embedder:
        assert embedder.usd(1_000_000) == 0
    monkeypatch.setenv("LISTENPOST_MODEL_PRICES", "bge-m3=0.01/0")
    async with embedding("https://embeddings.example/v1", model="bge-m3") as embedder:
        assert embedder.usd(1_000_000) == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("name", "value"),
    [("MODEL", "a'b"), ("MODEL", "a b"), ("DIMENSIONS", "100"), ("DIMENSIONS", "4032"), ("URL", "embeddings.example")],
)
def test_what_cannot_be_used_is_refused_at_start(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """By its name."""
    monkeypatch.setenv(f"LISTENPOST_EMBEDDINGS_{name}", value)
    with pytest.raises(ConfigurationError, match=f"`LISTENPOST_EMBEDDINGS_{name}`"):
        load_settings()
