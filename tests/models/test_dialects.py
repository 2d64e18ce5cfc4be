"""Servers that call themselves compatible: each is asked once more, adapted, and remembered."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic import SecretStr
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.settings import ModelSettings as AgentSettings

from api.bootstrap import agent_model
from api.core.domain import Question, Usage
from api.core.items import Item
from api.core.model_batches import UnusableAnswer
from api.errors import ModelError
from api.models.dialects import Dialects, ModelCallLimiter
from api.models.model_calls import OpenAIJudge, probe
from api.models.model_client import ModelClient, Request
from api.settings import ModelSettings
from tests.models.model_server import KEY, ModelServer, Reply, client_of, fails, says, serving, verdicts

ITEMS = [Item(key=f"reddit:{n}", id=str(n), source="reddit", title=f"Mug {n}") for n in range(2)]
ASKED = Request("answer", {"type": "object"}, "Be brief.", "Hello?", 40, "gpt-4o-mini", 5.0)
Asked = dict[str, Any]


def has(*fields: str) -> Callable[[Asked], bool]:
    """A request with any of these fields, at any depth."""
    return lambda asked: any(f'"{field}"' in json.dumps(asked) for field in fields)


@dataclass(frozen=True)
class Server:
    """One way to be compatible: what it refuses, in which words, and how it is asked in the end."""

    name: str
    refuses: Callable[[Asked], bool]
    status: int
    refusal: dict[str, Any]
    requests: int
    adapted: str
    """What `doctor` would say."""

    def respond(self, asked: Asked) -> Reply:
        """The refusal as long as it is deserved."""
        if self.refuses(asked):
            return Reply(json.dumps(self.refusal).encode(), self.status)
        return says(verdicts([True, False]))


def error(message: str, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """The envelope of the API."""
    return {"error": {"message": message, "type": "invalid", "param": param, "code": code}}


BOUNDED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "array", "items": {"type": "string", "maxLength": 9}, "minItems": 1}},
}
SERVERS = [
    Server(
        "reasoning model", has("temperature"), 400,
        error(
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default "
            "(1) value is supported.", "temperature", "unsupported_value",
        ),
        2, "without `temperature`",
    ),
    Server(
        "temperature of one only", has("temperature"), 400,
        error("invalid temperature: only 1 is allowed for this model"), 2, "without `temperature`",
    ),
    Server(
        "extra field forbidden", has("max_completion_tokens"), 422,
        {"detail": [{"type": "extra_forbidden", "loc": ["body", "max_completion_tokens"]}]},
        2, "with `max_tokens`",
    ),
    Server(
        "unknown property", has("max_completion_tokens"), 400,
        error("property 'max_completion_tokens' is unsupported, did you mean 'max_tokens'?"),
        2, "with `max_tokens`",
    ),
    Server(
        "no grammar at all", has("response_format"), 400, error("Failed to compile grammar"),
        2, "without a schema",
    ),
    Server(
        "unknown strict", has("strict"), 400,
        error("Invalid JSON payload received. Unknown name \"strict\": Cannot find field."),
        2, "without `strict`",
    ),
    Server(
        "no response_format", has("response_format"), 400,
        error("This response_format type is unavailable now"),
        2, "without a schema",
    ),
    Server(
        "words that nobody knows", has("response_format"), 400, error("bad request"),
        2, "without a schema",
    ),
    Server(
        "error in a 200", has("temperature"), 200,
        {"error": {"code": 400, "message": "temperature is not supported"}},
        2, "without `temperature`",
    ),
    Server(
        "everything at once", has("temperature", "max_completion_tokens", "response_format"), 400,
        error("temperature, max_completion_tokens and response_format are not supported"),
        4, "without `temperature`, with `max_tokens`, without a schema",
    ),
]  # fmt: skip


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
async def test_a_dialect_is_learnt_once(model: ModelServer, client: ModelClient, server: Server) -> None:
    """The same question is answered in another form, and the next is asked so at once."""
    model.respond = server.respond
    judge = OpenAIJudge(client)

    first = await judge.judge(Question("mug"), ITEMS, "reddit")
    sent = len(model.asked)
    second = await judge.judge(Question("mug"), ITEMS, "reddit")

    assert [verdict.relevant for verdict in first.verdicts] == [True, False]
    assert second.verdicts == first.verdicts
    assert (sent, len(model.asked)) == (server.requests, server.requests + 1)
    assert client.adaptations("gpt-4o-mini") == server.adapted.split(", ")
    assert all(asked["messages"] == model.asked[0]["messages"] for asked in model.asked[1:sent])


async def test_the_budget_in_its_older_name_and_back(model: ModelServer, client: ModelClient) -> None:
    """A server that was changed under its name is asked with `max_completion_tokens` again."""
    model.respond = SERVERS[2].respond
    await client.ask(ASKED)
    newer = error("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    model.respond = Server("newer", has("max_tokens"), 400, newer, 2, "").respond

    await client.ask(ASKED)
    await client.ask(ASKED)

    names = [{"max_tokens", "max_completion_tokens"} & asked.keys() for asked in model.asked]
    older, newer_name = {"max_tokens"}, {"max_completion_tokens"}
    assert names == [newer_name, older, older, newer_name, newer_name]
    assert [*model.asked[-1].values()].count(40) == 1


@pytest.mark.parametrize(
    ("refused", "message", "adapted"),
    [
        ("maxLength", "Invalid schema: 'maxLength' is not permitted.", "without limits on texts"),
        (
            "maxLength",
            "Failed to parse grammar: too many repetitions",
            "without limits on texts",
        ),
        (
            "minItems",
            "Invalid schema for response_format 'relevance': 'minItems' is not permitted.",
            "without limits on texts, without limits on lists and texts",
        ),
    ],
)
async def test_limits_on_texts_are_given_up_first(
    model: ModelServer, client: ModelClient, refused: str, message: str, adapted: str
) -> None:
    """Then those on lists; the schema itself stays as long as it can."""
    model.respond = lambda asked: fails(400, message=message) if refused in json.dumps(asked) else says("{}")
    request = Request("a", BOUNDED, "s", "u", 40, "gpt-4o-mini", 5.0)

    await client.ask(request)
    await client.ask(request)

    assert "response_format" in model.asked[-1]
    assert client.adaptations("gpt-4o-mini") == adapted.split(", ")
    assert len(model.asked) == len(adapted.split(", ")) + 2


def test_openais_own_servers_are_asked_without_limits_on_texts() -> None:
    """Their strict schemas take none, which need not be learnt in every process."""
    known = {
        server: [adaptation.name for adaptation in Dialects().of(server, "m").adaptations]
        for server in ("https://api.openai.com/v1", "https://me.openai.azure.com/openai/v1", "http://127.0.0.1:8/v1")
    }

    assert list(known.values()) == [["without limits on texts"], ["without limits on texts"], []]


TOO_LONG = [
    (
        400,
        '{"error":{"code":400,"message":"request (1337 tokens) exceeds the available context size (1024 tokens), try'
        ' increasing it","type":"exceed_context_size_error","n_prompt_tokens":1337,"n_ctx":1024}}',
        1024,
    ),
    (
        400,
        '{"error":{"message":"This model\'s maximum context length is 4096 tokens. However, your messages'
        ' resulted in 5000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}',
        4096,
    ),
    (500, '{"error": "the input length exceeds the context length"}', None),
    (400, '{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}', None),
    (413, '{"message": "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"}', 32768),
    (422, '{"error":"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097"}', 4097),
]


@pytest.mark.parametrize(("status", "body", "context"), TOO_LONG)
async def test_what_is_too_long_is_said_and_sent_once(
    model: ModelServer, client: ModelClient, status: int, body: str, context: int | None
) -> None:
    """In the words of six servers; the context is learnt where the refusal states it."""
    model.replies = [Reply(body.encode(), status)]

    with pytest.raises(ModelError) as caught:
        await client.ask(ASKED)

    assert (caught.value.reason, len(model.asked)) == ("too_long", 1)
    assert client.context(ASKED.model) == context


async def test_a_known_context_shortens_the_answer_first(model: ModelServer, client: ModelClient) -> None:
    """A server that counts the answer's tokens as well is asked for fewer; a longer prompt is not sent."""
    words = "'max_tokens' is too large: 2000. This model's maximum context length is 1000 tokens"
    model.respond = lambda asked: fails(400, message=words) if asked["max_completion_tokens"] > 900 else says("{}")
    request = Request("a", {}, "s", "u" * 800, 2000, "gpt-4o-mini", 5.0)

    await client.ask(request)
    with pytest.raises(ModelError, match="too_long"):
        await client.ask(replace(request, user="u" * 3200))

    assert [asked["max_completion_tokens"] for asked in model.asked] == [2000, 775]


async def test_what_did_not_help_is_not_remembered(model: ModelServer, client: ModelClient) -> None:
    """A request that is refused in every form says so, and the next begins as ever."""
    model.replies = [fails(400, message="no")]

    for _ in range(2):
        with pytest.raises(ModelError, match="http_error"):
            await client.ask(ASKED)

    assert ["response_format" in asked for asked in model.asked] == [True, False, True, False]
    assert client.adaptations("gpt-4o-mini") == []


@pytest.mark.parametrize(
    "message",
    [
        "This model's maximum context length is 8192 tokens; reduce max_tokens",
        "The response was filtered by Azure's content management policy",
    ],
)
async def test_what_no_form_helps_is_asked_once(model: ModelServer, client: ModelClient, message: str) -> None:
    """A question that is too long or not allowed is not asked in other clothes."""
    model.replies = [fails(400, message=message)]

    with pytest.raises(ModelError):
        await client.ask(ASKED)

    assert len(model.asked) == 1


async def test_each_server_and_model_speaks_its_own(model: ModelServer) -> None:
    """What is known of one model of a server is not known of another, and lasts for the process."""
    model.respond = SERVERS[0].respond
    dialects = Dialects()
    async with serving(says("{}")) as other:
        for server, name in ((model, "o4"), (model, "o4"), (model, "o5"), (other, "o4")):
            settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=server.url)
            client = ModelClient(settings, ModelCallLimiter(2, dialects))
            await client.ask(Request("a", {}, "s", "u", 40, name, 5.0))
            await client.aclose()

    named = [(asked["model"], "temperature" in asked) for asked in model.asked]
    assert named == [("o4", True), ("o4", False), ("o4", False), ("o5", True), ("o5", False)]
    assert "temperature" in other.asked[0]


async def test_thinking_that_eats_the_budget_gets_room_once(model: ModelServer, client: ModelClient) -> None:
    """Cut without a word: asked again with eight times the tokens; both answers are paid for."""

    def respond(asked: Asked) -> Reply:
        return says("", "length") if asked["max_completion_tokens"] < 300 else says("{}")

    model.respond = respond
    first, second = await client.ask(ASKED), await client.ask(ASKED)

    assert [asked["max_completion_tokens"] for asked in model.asked] == [40, 320, 320]
    assert (first.usage.input_tokens, first.usage.output_tokens) == (2000, 200)
    assert first.usage.usd == pytest.approx(0.00042)
    assert second.usage.input_tokens == 1000


@pytest.mark.parametrize(("budget", "sent"), [(4000, [4000, 16_384]), (20_000, [20_000])])
async def test_room_has_an_end(model: ModelServer, client: ModelClient, budget: int, sent: list[int]) -> None:
    """A model that thinks without an end is cut at 16,384 tokens, and all of it is counted."""
    model.replies = [says(None, "length")]

    with pytest.raises(UnusableAnswer) as caught:
        await client.ask(Request("a", {}, "s", "u", budget, "gpt-4o-mini", 5.0))

    assert caught.value.reason == "truncated"
    assert caught.value.usage.input_tokens == 1000 * len(sent)
    assert [asked["max_completion_tokens"] for asked in model.asked] == sent


async def test_words_that_are_cut_are_not_asked_again(model: ModelServer, client: ModelClient) -> None:
    """More room is for what was never said."""
    model.replies = [says('{"a": [true, fal', "length")]

    with pytest.raises(UnusableAnswer):
        await client.ask(ASKED)

    assert len(model.asked) == 1


async def test_effort_is_sent_where_it_is_taken(model: ModelServer) -> None:
    """`LISTENPOST_REASONING_EFFORT` goes along; a model that does not reason is asked without."""
    refusal = error("Unrecognized request argument supplied: reasoning_effort")
    plain = Server("plain", has("reasoning_effort"), 400, refusal, 2, "")
    model.respond = plain.respond
    settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=model.url, reasoning_effort="low")
    client = ModelClient(settings)
    await client.ask(ASKED)
    await client.aclose()

    assert [asked.get("reasoning_effort") for asked in model.asked] == ["low", None]


@pytest.mark.parametrize(
    ("usual", "why", "requests"),
    [
        ({"error": {"code": 402, "message": "Insufficient credits"}}, "quota", 1),
        ({"error": {"message": "Your balance is used up"}}, "quota", 1),
        ({"error": {"code": "429", "message": "slow down"}}, "rate_limited", 2),
        ({"error": {"type": "rate_limit_exceeded", "message": "no"}}, "rate_limited", 2),
        ({"error": {"message": "Invalid API key"}}, "unauthorized", 1),
        ({"error": "the model crashed"}, "http_error", 2),
        ({"object": "error", "message": "unknown model", "code": 404}, "http_error", 1),
        ({"choices": [{"error": {"code": 502, "message": "upstream"}}]}, "http_error", 2),
    ],
)
async def test_an_error_in_a_200_is_that_error(
    model: ModelServer, client: ModelClient, usual: dict[str, Any], why: str, requests: int
) -> None:
    """A gateway that says 200 and means something else is understood."""
    model.replies = [Reply(json.dumps(usual).encode(), headers={"retry-after": "0"})]

    with pytest.raises(ModelError) as caught:
        await client.ask(ASKED)

    assert caught.value.reason == why
    assert len(model.asked) == requests


@pytest.mark.parametrize("more", [{"error": None}, {"errors": []}, {"note": "no error"}])
async def test_an_answer_that_mentions_errors_is_one(
    model: ModelServer, client: ModelClient, more: dict[str, Any]
) -> None:
    """An empty `error` beside an answer is none."""
    model.replies = [says("{}", **more)]

    assert (await client.ask(ASKED)).text == "{}"


async def test_content_may_come_in_parts(model: ModelServer, client: ModelClient) -> None:
    """Parts that are text are joined; thoughts and what nobody knows are left out."""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": '{"relevant": '},
        {"text": "[true,false]}"},
        "odd",
    ]
    model.replies = [says(None, choices=[{"message": {"content": parts}, "finish_reason": "stop"}])]

    judged = await OpenAIJudge(client).judge(Question("mug"), ITEMS, "reddit")

    assert [verdict.relevant for verdict in judged.verdicts] == [True, False]


async def test_the_query_of_the_base_url_is_kept(model: ModelServer) -> None:
    """`?api-version=` stays at the end of every address."""
    url = f"{model.url}/deployments/mini?api-version=2024-10-21&a=b"
    model.replies = [says("{}")]
    client = ModelClient(ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=url))
    await client.ask(ASKED)
    await client.aclose()

    path = "/v1/deployments/mini/chat/completions?api-version=2024-10-21&a=b"
    assert model.paths == [path]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (says('{"relevant": [true', "length"), "truncated"),
        (says("[true]"), "count_mismatch"),
        (says("No."), "malformed"),
        (says(None, refusal="no"), "refused"),
        (says(None, "content_filter"), "filtered"),
        (says("{}", choices=[]), "filtered"),
    ],
)
async def test_a_useless_answer_is_paid_for(model: ModelServer, client: ModelClient, reply: Reply, why: str) -> None:
    """What was rejected, cut or malformed carries its cost."""
    model.replies = [reply]

    with pytest.raises(UnusableAnswer) as caught:
        await OpenAIJudge(client).judge(Question("mug"), ITEMS, "reddit")

    assert caught.value.reason == why
    assert caught.value.usage == Usage(1000, 100, 0.00021, 1)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_speaks_the_same_dialect(model: ModelServer, client: ModelClient, stream: bool) -> None:
    """Report writer and chat share the server: temperature, budget and `strict` are adapted."""

    def respond(asked: Asked) -> Reply:
        if has("temperature")(asked):
            return fails(400, message="temperature is not supported")
        if has("max_completion_tokens")(asked):
            return fails(400, message="unknown field max_completion_tokens")
        if not asked.get("stream"):
            return says("Well.")
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        delta = {"index": 0, "delta": {"content": "Well."}, "finish_reason": "stop"}
        event = f"data: {json.dumps({**chunk, 'choices': [delta]})}\n\ndata: [DONE]\n\n"
        return Reply(event.encode(), headers={"content-type": "text/event-stream"})

    model.respond = respond
    settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=model.url)
    usual = AgentSettings(temperature=0, max_tokens=99)
    agent = Agent(agent_model(settings, client, None), model_settings=usual)
    for _ in range(2):
        if stream:
            async with agent.run_stream("Hi") as run:
                assert await run.get_output() == "Well."
        else:
            assert (await agent.run("Hi")).output == "Well."

    assert len(model.asked) == 4
    assert model.asked[-1]["max_tokens"] == 99
    assert "temperature" not in model.asked[-1]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_agent_sees_an_error_in_a_200(model: ModelServer, client: ModelClient, stream: bool) -> None:
    """Streamed or not, what a gateway means reaches the agent as that."""
    model.replies = [Reply(b'{"error": {"code": 402, "message": "no credit"}}')]
    settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=model.url)
    agent = Agent(agent_model(settings, client, None))

    async def ask() -> str:
        if not stream:
            return (await agent.run("Hi")).output
        async with agent.run_stream("Hi") as run:
            return await run.get_output()

    with pytest.raises(ModelHTTPError) as caught:
        await ask()

    assert caught.value.status_code == 402


async def test_the_agents_effort_is_the_settings(model: ModelServer, client: ModelClient) -> None:
    """One setting for every model that reasons."""
    model.replies = [says("Well.")]
    settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=model.url, reasoning_effort="low")
    await Agent(agent_model(settings, client, None)).run("Hi")

    assert model.asked[0]["reasoning_effort"] == "low"


@pytest.mark.parametrize(
    ("reply", "outcome", "detail"),
    [
        (
            says('{"relevant": [true]}'),
            "ok",
            "`gpt-4o-mini` judged one item; it cost 0.000210",
        ),
        (says('{"relevant": [true]}', usage=None), "ok", "whose price is not"),
        (says("No."), "broken", "malformed: not an array of booleans; it cost 0.000210 USD"),
        (fails(401), "refused", "check `OPENAI_API_KEY`"),
        (fails(402), "quota_exhausted", "HTTP 402; the account's quota is used up"),
        (fails(404), "unreachable", "the model's name"),
        (fails(429, retry_after="9999"), "rate_limited", "HTTP 429; lower"),
    ],
)
async def test_the_probe_asks_what_the_gate_asks(
    model: ModelServer, client: ModelClient, reply: Reply, outcome: str, detail: str
) -> None:
    """One small call, with its cost, and each failure as an outcome."""
    model.replies = [reply]

    answer = await probe(client, ModelSettings())

    assert answer[0] == outcome
    assert detail in answer[1]
    assert model.asked[0]["response_format"]["json_schema"]["name"] == "relevance"


async def test_the_probe_names_the_adaptations(model: ModelServer) -> None:
    """What the server wants stands beside what it cost."""
    server = SERVERS[0]
    model.respond = lambda asked: server.respond(asked) if server.refuses(asked) else says(verdicts([True]))
    async with client_of(model) as client:
        outcome, detail = await probe(client, ModelSettings())

    assert outcome == "ok"
    assert "; asked without `temperature`; it cost" in detail
