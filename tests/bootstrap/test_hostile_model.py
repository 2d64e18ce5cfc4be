"""A model server that answers what nobody foresaw: each step fails alone, and the report comes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic import SecretStr

from api import bootstrap
from api.bootstrap import chat
from api.core.items import Item
from api.services import product as listening
from api.services.product import Ask
from api.sources.own_items import OwnItems
from tests.models.model_server import KEY, ModelServer, Reply, fails, says, serving

DEEP = "[" * 100_000
ITEMS = [
    Item(
        key=f"items:{n}", id=str(n), source="items", title=f"Plaud Note review {n}",
        body=f"The Plaud Note recorder number {n} works well in meetings and transcribes fast.",
    )
    for n in range(6)
]  # fmt: skip


def calls(arguments: str) -> Reply:
    """An answer that hands in a report with these arguments."""
    function = {"name": "final_result", "arguments": arguments}
    call = {"id": "c1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return says(None, choices=[choice])


def counted(tokens: str) -> Reply:
    """A fair answer with this number of tokens, as JSON writes it."""
    body = json.loads(says('{"relevant": [true, true, true, true, true, true]}').body)
    text = json.dumps(body | {"usage": {"prompt_tokens": "N", "completion_tokens": 1}})
    return Reply(text.replace('"N"', tokens).encode())


HOSTILE = {
    "a nested body": Reply(DEEP.encode()),
    "a nested text": says(f'{{"relevant": {DEEP}'),
    "a nested object": says('{"relevant":' * 50_000),
    "a nested report": calls(f'{{"topic": {DEEP}'),
    "a nested list of parts": Reply(says("X").body.replace(b'"X"', b"[" * 500 + b"]" * 500)),
    "kinds that are lists": calls(
        '{"topic": [], "summary": {}, "findings": [{"text": 1e400, "kind": [".."], "evidence": {}}], "quotes": 1e400}'
    ),
    "grades of 1e400": says('{"grades": [{"score": 1e400, "sentiment": -1e400, "aspects": 1}]}'),
    "1e400 tokens": counted("1e400"),
    "tokens without end": counted("9" * 4000),
    "negative tokens": counted("-1"),
    "a wait without end": fails(429, retry_after="Fri, 31 Dec 9999 23:59:59 +99999999999999999999"),
    "an error that is a list": Reply(b'{"error": [{"code": [400]}]}'),
    "an error that is nested": Reply(b'{"error": ' + DEEP.encode()),
    "lone surrogates": says('{"relevant": ["\\ud800"]}'),
    "a usage that is a text": says("[true]", usage="much", model=["x"]),
    "choices of null": says("", choices=[None]),
}


@pytest.fixture
def anyio_backend() -> str:
    """Our clients run on asyncio."""
    return "asyncio"


def settings_of(model: ModelServer) -> Any:
    """Everything at this server."""
    settings = bootstrap.load_settings()
    update = {"openai_api_key": SecretStr(KEY), "openai_base_url": model.url}
    models = settings.models.model_copy(update=update)
    object.__setattr__(settings, "models", models)
    return settings


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_report_comes_all_the_same(name: str) -> None:
    """Judge, grader, rewriter, checker and writer stumble alone, and nobody stays cancelled."""
    async with serving(HOSTILE[name]) as model:
        product = bootstrap.build(settings_of(model), OwnItems(tuple(ITEMS)))
        report = await listening.analyze(product, Ask("plaud note", "standard"))
        turn = await chat(settings_of(model), product).answer(
            chat(settings_of(model), product).begin(), "what about the plaud note?"
        )
        await product.aclose()

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    assert report.sources["items"].outcome == "ok"
    assert len(report.items) == len(ITEMS)
    assert turn.text
