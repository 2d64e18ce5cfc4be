"""The model client against a loopback server: every way an answer can fail has its reason."""

from __future__ import annotations

import asyncio
import gzip
import traceback
from typing import Any

import httpx2
import openai
import pytest
from pydantic import SecretStr

from api.core.domain import Usage
from api.errors import ModelError
from api.models.answer_parsing import Tokens
from api.models.model_client import ModelClient, Request, price_of
from api.settings import ModelSettings
from tests.models.model_server import KEY, ModelServer, Reply, client_of, fails, says, serving

LARGE = says("{}").body + b" " * 8_000_000
ASKED = Request("answer", {"type": "object"}, "Be brief.", "Hello?", 40, "gpt-4o-mini", 5.0)


async def reason(client: ModelClient, request: Request = ASKED) -> str:
    """The reason code with which a question fails."""
    with pytest.raises(ModelError) as caught:
        await client.ask(request)
    return caught.value.reason


async def test_one_strict_request(model: ModelServer, client: ModelClient) -> None:
    """A question is one completion at temperature 0 with a strict schema and a budget."""
    model.replies = [says("{}")]

    answer = await client.ask(ASKED)

    assert (answer.text, answer.model) == ("{}", "gpt-4o-mini")
    (sent,) = model.asked
    assert sent == {
        "model": "gpt-4o-mini",
        "temperature": 0,
        "max_completion_tokens": 40,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello?"},
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": {"type": "object"}},
        },
    }
    assert model.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_price_comes_from_usage(model: ModelServer, client: ModelClient) -> None:
    """Tokens as counted by the server are priced by the model's list price."""
    model.replies = [says("{}")]

    usage = (await client.ask(ASKED)).usage

    assert (usage.input_tokens, usage.output_tokens) == (1000, 100)
    assert usage.usd == pytest.approx(0.00021)


async def test_cached_tokens_are_cheaper(model: ModelServer, client: ModelClient) -> None:
    """Tokens from the server's cache cost half."""
    counted = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 1000},
    }
    model.replies = [says("{}", usage=counted)]

    assert (await client.ask(ASKED)).usage.usd == pytest.approx(0.000135)


@pytest.mark.parametrize(
    ("more", "usage"),
    [
        ({"model": "somebody-7b"}, Usage(1000, 100, 0.0, 1)),
        ({"usage": None}, Usage(0, 0, None, 1)),
        ({"usage": {"prompt_tokens": -1, "completion_tokens": 2}}, Usage(0, 0, None, 1)),
    ],
)
async def test_unknown_price(model: ModelServer, client: ModelClient, more: dict[str, Any], usage: Usage) -> None:
    """An unknown count makes the cost unknown; an unknown model of this machine costs nothing."""
    model.replies = [says("{}", **more)]

    assert (await client.ask(ASKED)).usage == usage


@pytest.mark.parametrize(
    ("url", "prices", "usd"),
    [
        ("https://models.example/v1", None, None),
        ("http://[::1]:8080/v1", None, 0.0),
        ("https://models.example/v1", "other=1/1, somebody-7b=0.5/2", 0.0007),
        ("https://models.example/v1", "*=0/0", 0.0),
        ("http://127.0.0.1:8080/v1", "somebody-7b=0.5/2, *=9/9", 0.0007),
    ],
)
def test_a_price_is_stated_known_or_nothing(url: str, prices: str | None, usd: float | None) -> None:
    """As set, by list, 0 on this machine, else unknown."""
    settings = ModelSettings(openai_base_url=url, model_prices=prices)
    used = Tokens(prompt_tokens=1000, completion_tokens=100)

    assert price_of(settings, used, "/models/7b.gguf", "somebody-7b") == usd
    assert price_of(ModelSettings(openai_base_url=url), used, "gpt-4o-mini") == pytest.approx(0.00021)


@pytest.mark.parametrize("prices", ["", "a=1", "a=1/", "a b=1/2", "a=-1/2", "a=1/2;b=1/2"])
def test_a_malformed_price_is_refused(prices: str) -> None:
    """With the form that is wanted."""
    with pytest.raises(ValueError, match="needs prices such as"):
        ModelSettings(model_prices=prices)


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (says('{"a": [true, fal', "length"), "truncated"),
        (says("[true]", "length"), "truncated"),
        (says(None, "content_filter"), "filtered"),
        (says("[true]", "content_filter"), "filtered"),
        (says(None, refusal="I would rather not."), "refused"),
        (says(None), "malformed"),
        (says(" \n"), "malformed"),
        (says("{}", choices=[]), "filtered"),
        (says("{}", choices=None), "malformed"),
        (says("{}", choices=[{"index": 0}]), "malformed"),
        (says("{}", choices=[{"message": {"content": ["parts"]}}]), "malformed"),
        (Reply(b"<html>hello</html>"), "malformed"),
        (Reply(b""), "malformed"),
        (Reply(b'"a string"'), "malformed"),
        (Reply(b"\xff\xfe"), "malformed"),
        (Reply(b"not gzip", headers={"content-encoding": "gzip"}), "malformed"),
        (Reply(LARGE), "malformed"),
        (Reply(gzip.compress(LARGE), headers={"content-encoding": "gzip"}), "malformed"),
        (fails(400, "content_filter"), "filtered"),
        (fails(401, "invalid_api_key"), "unauthorized"),
        (fails(403), "unauthorized"),
        (fails(404, "model_not_found"), "http_error"),
        (fails(429, "insufficient_quota"), "quota"),
        (fails(402), "quota"),
        (Reply(b"<html>busy</html>", 418), "http_error"),
    ],
)
async def test_one_call_and_its_reason(model: ModelServer, client: ModelClient, reply: Reply, why: str) -> None:
    """An unusable answer is never asked for again and has its reason code."""
    model.replies = [reply]

    assert await reason(client) == why
    assert len(model.asked) == 1


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (fails(429, "rate_limit_exceeded", retry_after="0"), "rate_limited"),
        (fails(500, retry_after="0"), "http_error"),
        (fails(503, retry_after="0"), "http_error"),
        (Reply(drop=True), "unreachable"),
    ],
)
async def test_one_retry(model: ModelServer, client: ModelClient, reply: Reply, why: str) -> None:
    """What may pass is tried a second time, and no third."""
    model.replies = [reply]

    assert await reason(client) == why
    assert len(model.asked) == 2


@pytest.mark.parametrize("first", [fails(429, retry_after="0"), Reply(drop=True), fails(502)])
async def test_retry_helps(model: ModelServer, client: ModelClient, first: Reply) -> None:
    """A second try that is answered counts."""
    model.replies = [first, says("{}")]

    assert (await client.ask(ASKED)).text == "{}"


async def test_nobody_listens() -> None:
    """A closed port is `unreachable` and the message names the setting."""
    settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url="http://127.0.0.1:9/v1")
    client = ModelClient(settings)

    with pytest.raises(ModelError, match="OPENAI_BASE_URL") as caught:
        await client.ask(ASKED)

    assert caught.value.reason == "unreachable"
    await client.aclose()


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/v1", "127.0.0.1/v1", "ftp://127.0.0.1"])
async def test_impossible_address(url: str) -> None:
    """A base URL that is none is `unreachable`, not a crash."""
    client = ModelClient(ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=url))

    assert await reason(client) == "unreachable"
    await client.aclose()


async def test_a_redirect_within_the_server_is_followed(model: ModelServer, client: ModelClient) -> None:
    """Another path of the same server is asked, prompt and all."""
    model.replies = [Reply(status=307, headers={"location": "/v2/chat"}), says("{}")]

    assert (await client.ask(ASKED)).text == "{}"
    assert model.asked[0] == model.asked[1]


async def test_a_redirect_in_a_ring_ends(model: ModelServer, client: ModelClient) -> None:
    """Three redirects are followed, and no fourth."""
    model.replies = [Reply(status=307, headers={"location": "/v1/again"})]

    assert await reason(client) == "unreachable"
    assert len(model.asked) == 4


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_prompt_goes_to_another_server(model: ModelServer, client: ModelClient, status: int) -> None:
    """A redirect to another host or port is not followed, and the setting to check is named."""
    async with serving(says("{}")) as other:
        model.replies = [Reply(status=status, headers={"location": f"{other.url}/stolen"})]

        with pytest.raises(ModelError, match="another host; check `OPENAI_BASE_URL`") as caught:
            await client.ask(ASKED)

    assert caught.value.reason == "unreachable"
    assert (len(model.asked), other.asked, other.headers) == (1, [], [])


@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        ({"retry_after": "0"}, 2),
        ({"retry_after_ms": "1"}, 2),
        ({"retry_after": "-5"}, 2),
        ({"retry_after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 2),
        ({"retry_after": "172800"}, 1),
        ({"retry_after": "9" * 30}, 1),
        ({"retry_after": "1e400"}, 1),
        ({"retry_after": "9999999999"}, 1),
        ({"x_ratelimit_reset": "3600"}, 1),
        ({"retry_after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 1),
    ],
)
async def test_the_wait_is_read_as_everywhere(
    model: ModelServer, client: ModelClient, headers: dict[str, str], asked: int
) -> None:
    """A wait that fits the deadline is kept; a longer one is no reason to hurry, or to crash."""
    model.replies = [fails(429, **headers)]

    assert await reason(client) == "rate_limited"
    assert len(model.asked) == asked


@pytest.mark.parametrize("host", ["LocalHost", "127.0.0.1"])
async def test_no_proxy_is_asked_for_this_machine(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """However this machine is written, a proxy in the environment is not between."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    model.replies = [says("{}")]
    url = f"http://{host}:{model.port}/v1"
    client = ModelClient(ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=url))

    assert (await client.ask(ASKED)).text == "{}"
    await client.aclose()


async def test_server_forbids_retry(model: ModelServer, client: ModelClient) -> None:
    """`x-should-retry: false` is obeyed."""
    model.replies = [fails(500, x_should_retry="false")]

    assert await reason(client) == "http_error"
    assert len(model.asked) == 1


@pytest.mark.parametrize("key", [None, "", "  "])
async def test_no_key_no_request(model: ModelServer, key: str | None) -> None:
    """Without a key nothing is sent."""
    async with client_of(model, key) as client:
        assert await reason(client) == "no_key"

    assert not model.asked


@pytest.mark.parametrize("key", ["sk-two\nlines", "sk-schlüssel", "sk two"])
async def test_key_no_header_carries(model: ModelServer, key: str) -> None:
    """A key with blanks or accents is refused before it is sent, and not repeated."""
    async with client_of(model, key) as client:
        with pytest.raises(ModelError) as caught:
            await client.ask(ASKED)

    assert caught.value.reason == "unauthorized"
    assert "sk" not in str(caught.value)
    assert not model.asked


@pytest.mark.parametrize(
    "reply",
    [
        fails(401, message=f"Incorrect API key provided: {KEY}"),
        fails(400, message=KEY),
        fails(500, KEY, KEY, retry_after="0"),
        Reply(KEY.encode()),
        says(None, refusal=KEY),
    ],
)
async def test_key_is_never_told(
    model: ModelServer, client: ModelClient, caplog: pytest.LogCaptureFixture, reply: Reply
) -> None:
    """A server that repeats the key does not get it into message, traceback or log."""
    model.replies = [reply]

    with pytest.raises(ModelError) as caught:
        await client.ask(ASKED)

    told = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert KEY not in told


async def test_closing_what_was_never_opened(client: ModelClient, caplog: pytest.LogCaptureFixture) -> None:
    """A client that asked nothing closes without a word, and twice."""
    await client.aclose()
    await client.aclose()

    assert not caplog.records


def test_httpx_keeps_a_body_that_was_read_for_it() -> None:
    """The one private member of the library that the client touches."""
    response = httpx2.Response(200)
    response._content = b'{"a": 1}'

    assert response.content == b'{"a": 1}'
    assert response.json() == {"a": 1}


async def test_kept_connections_that_died_are_not_the_servers_silence(model: ModelServer, client: ModelClient) -> None:
    """However many were kept: each that fails is passed over, until one is opened anew."""
    model.replies = [says("{}")]
    await asyncio.gather(*(client.ask(ASKED) for _ in range(4)))
    model.once_a_connection = True

    assert (await client.ask(ASKED)).text == "{}"


@pytest.mark.parametrize("body", [b"", b"One moment", b"[]", b"{}", b"[" * 100_000])
async def test_an_answer_that_is_no_object_is_malformed_for_every_library(
    model: ModelServer, client: ModelClient, body: bytes
) -> None:
    """Before a library makes a failed connection of it; its cause says what it means."""
    model.replies = [Reply(body)]

    with pytest.raises(openai.APIConnectionError) as caught:
        await client.openai.chat.completions.create(model="m", messages=[])

    assert caught.value.__cause__.meaning.reason == "malformed"  # type: ignore[union-attr]
    assert await reason(client) == "malformed"
