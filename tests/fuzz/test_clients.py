"""Any answer, through the real clients: a source or a model step ends in an outcome of ours."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from api.core.domain import FetchPlan, Question
from api.core.items import Item
from api.core.ports import Claim, Source
from api.errors import ModelError, SourceError
from api.models.model_calls import OpenAIExplainer, OpenAIGrader, OpenAIJudge, OpenAIRewriter, OpenAISupport
from api.models.model_client import ModelClient
from api.reports.insufficient_data import Shortfall
from api.settings import ModelSettings
from api.sources import SOURCES
from tests.fuzz import foreign
from tests.fuzz.foreign import answers, pages, unchecked
from tests.loopback import Asked, Loopback, Reply
from tests.sources import emulators as shapes
from tests.sources.emulators import AmazonEmulator, Emulator, RedditEmulator, YouTubeEmulator

GOOD: Mapping[str, Any] = {
    "reddit token": {"access_token": "token-1", "expires_in": 3600, "scope": "*"},
    "reddit search": shapes.listing([shapes.post(1), shapes.post(2)]),
    "reddit comments": [shapes.listing([]), shapes.listing([{"kind": "t1", "data": {}}])],
    "youtube search": shapes.answer([shapes.result(1), shapes.result(2)]),
    "youtube details": shapes.answer([shapes.video("v1")]),
    "youtube comments": shapes.answer([shapes.thread(1)]),
}
"""Answers in the shapes of each place, to be spoilt."""
PAGES = pages.map(lambda page: page.encode("utf-8", "replace"))
SOURCE_CALLS: Mapping[str, tuple[type[Emulator], str, st.SearchStrategy[bytes]]] = {
    **{
        name: (kind, part, foreign.bodies(GOOD[name]))
        for name, kind, part in (
            ("reddit token", RedditEmulator, "access_token"),
            ("reddit search", RedditEmulator, "/search"),
            ("reddit comments", RedditEmulator, "/comments/"),
            ("youtube search", YouTubeEmulator, "/search"),
            ("youtube details", YouTubeEmulator, "/videos"),
            ("youtube comments", YouTubeEmulator, "/commentThreads"),
        )
    },
    "amazon search": (AmazonEmulator, "/s", PAGES),
    "amazon comments": (AmazonEmulator, "/dp/", PAGES),
}
"""Call of a source -> its place, part of the path, and the bodies that are tried."""
ITEM = Item(key="a:1", id="1", source="a", title="Ember mug", body="It stays warm.")
QUESTION, CLAIMS = Question("ember mug"), [Claim("It is warm.", "It stays warm.", "")]
STEPS: Mapping[str, Callable[[ModelClient], Coroutine[Any, Any, object]]] = {
    "gate": lambda client: OpenAIJudge(client).judge(QUESTION, [ITEM], "reddit"),
    "grades": lambda client: OpenAIGrader(client).grade(QUESTION, [ITEM]),
    "support": lambda client: OpenAISupport(client).check(QUESTION, CLAIMS),
    "rewrite": lambda client: OpenAIRewriter(client).rewrite(QUESTION, 3),
    "explanation": lambda client: OpenAIExplainer(client).explain(
        Shortfall(QUESTION, ("ember mug",), ("reddit: nothing",), (), True, 0)
    ),
}
"""Step of a model -> how it is asked."""


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """One loop for all examples, so that clients live as long as in a server."""
    with asyncio.Runner() as running:
        yield running


@pytest.mark.parametrize("call", SOURCE_CALLS)
def test_any_answer_of_a_place_is_an_outcome(call: str, runner: asyncio.Runner) -> None:
    """Items or a `SourceError`, at search and at comments, whatever one of its calls answers."""
    kind, part, bodies = SOURCE_CALLS[call]
    numbers = itertools.count()

    async def asked(source: Source) -> None:
        with suppress(SourceError):  # a fresh query, since pages are remembered
            batch = await source.fetch(FetchPlan(f"mug {next(numbers)}", 2))
            read = await source.comments(batch.items)
            assert [item.key for item in read.items] == [item.key for item in batch.items]

    @unchecked
    @given(bodies)
    def tried(body: bytes) -> None:
        emulator.fault = shapes.on(part, Reply(200, body, {"content-type": "application/json"}))
        runner.run(asked(source))

    emulator: Emulator
    with kind() as emulator:
        settings = emulator.settings(youtube_searches_per_day=1_000_000)
        source = SOURCES[emulator.name].build(settings)
        tried()
        runner.run(source.aclose())
        assert len(emulator.searches) > 10


def completion(content: Any) -> dict[str, Any]:
    """A chat completion that says this."""
    message = {"role": "assistant", "content": content, "refusal": None}
    return {
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    }  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
def test_any_answer_of_a_model_is_an_answer_or_a_model_error(step: str, runner: asyncio.Runner) -> None:
    """Whatever the completion is, and whatever its text says."""
    said = answers.map(lambda text: foreign.as_json(completion(text)))
    whole = foreign.bodies(completion('{"relevant": [true], "supported": [true], "grades": []}'))
    served = [b""]

    async def asked(client: ModelClient) -> None:
        with suppress(ModelError):
            await STEPS[step](client)

    @unchecked
    @given(st.one_of(said, whole))
    def tried(body: bytes) -> None:
        served[0] = body
        runner.run(asked(client))

    def answer(request: Asked) -> Reply:
        return Reply(200, served[0], {"content-type": "application/json"})

    with Loopback(answer) as server:
        key, url = SecretStr("sk-test"), f"{server.url}/v1"
        client = ModelClient(ModelSettings(openai_api_key=key, openai_base_url=url))
        tried()
        runner.run(client.aclose())
        assert len(server.asked) > 10
