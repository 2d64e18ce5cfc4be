"""Reports by servers that take no tool calls, have little context or never end, in their refusals' words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from api.bootstrap import agent_model
from api.core.text import estimated_tokens
from api.models.dialects import ModelCallLimiter
from api.models.model_client import ModelClient
from api.pipeline.evidence.collection import Assessor
from api.reports.agent_writer import FORMS, AgentWriter, EndedByCut, WriterModel
from api.reports.exhibits import Dossier
from api.reports.report_writing import WritingFailed, WrittenDraft
from api.settings import ModelSettings, RankingSettings, RetrievalSettings
from tests.models.model_server import KEY, ModelServer, Reply, fails, says, serving
from tests.services.fakes import FakeSource
from tests.services.kit import evidence_of, kit, posts

DRAFT: dict[str, Any] = {
    "topic": "The mug",
    "summary": "People like the mug.",
    "findings": [{"text": "It is a mug.", "kind": "other", "evidence": [{"cite": "E1", "passage": "ember mug"}]}],
    "quotes": [],
    "suggestions": [],
}
TOOLLESS = [
    (500, "tools param requires --jinja flag"),
    (400, "registry.ollama.ai/library/smollm2:135m does not support tools"),
    (400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
]


@pytest.fixture
def anyio_backend() -> str:
    """Our clients run on asyncio."""
    return "asyncio"


@pytest.fixture
async def server() -> AsyncIterator[ModelServer]:
    """A server without a script yet."""
    async with serving() as made:
        yield made


async def written(server: ModelServer, times: int = 1, found: int = 6) -> list[WrittenDraft]:
    """Reports of one process by this server."""
    settings = ModelSettings(openai_api_key=SecretStr(KEY), openai_base_url=server.url, agent_model="some-7b")
    client = ModelClient(settings, ModelCallLimiter(2))
    known = WriterModel(
        FORMS,
        lambda: client.context("some-7b"),
        lambda: client.report_form("some-7b"),
        lambda form: client.learn_report_form("some-7b", form),
    )
    assessor = Assessor(RankingSettings(), RetrievalSettings())
    writer = AgentWriter(agent_model(settings, client, None, EndedByCut), 30, assessor, known=known)
    body = "The ember mug keeps tea warm for hours. " * 12
    product = kit(FakeSource([post.edited(body=body) for post in posts(found)]))
    try:
        drafts = []
        for _ in range(times):
            run, evidence = await evidence_of(product)
            drafts.append(await writer.write(run, evidence, Dossier()))
        return drafts
    finally:
        await client.aclose()


def in_form(asked: dict[str, Any]) -> str:
    """How a request asks for the draft."""
    if "tools" in asked:
        return "tool"
    return "schema" if "response_format" in asked else "fenced"


@pytest.mark.parametrize(("status", "words"), TOOLLESS)
async def test_a_server_without_tool_calls_gives_a_report(server: ModelServer, status: int, words: str) -> None:
    """By `response_format`; the next report is asked so at once."""
    server.respond = lambda asked: fails(status, message=words) if "tools" in asked else says(json.dumps(DRAFT))

    first, second = await written(server, 2)

    assert [finding.text for finding in first.draft.findings] == ["It is a mug."]
    assert second.draft.findings == first.draft.findings
    assert [in_form(asked) for asked in server.asked] == ["tool", "schema", "schema"]
    schema = json.dumps(server.asked[1]["response_format"])
    assert all(f'"maxLength": {length}' in schema for length in (40, 200, 600, 1500))


async def test_a_server_that_knows_no_schema_gives_a_report_in_a_fence(server: ModelServer) -> None:
    """Neither tools nor `response_format`: JSON between two lines of a code fence."""

    def respond(asked: dict[str, Any]) -> Reply:
        if "tools" in asked:
            return fails(400, message="this model does not support tools")
        if "response_format" in asked:
            return fails(400, message="response_format is not supported")
        told = "JSON" in json.dumps(asked["messages"])
        return says(f"Here it is:\n```json\n{json.dumps(DRAFT)}\n```" if told else "It is a good mug.")

    server.respond = respond

    first, second = await written(server, 2)

    assert [finding.text for finding in (*first.draft.findings, *second.draft.findings)] == ["It is a mug."] * 2
    assert in_form(server.asked[-1]) == "fenced"
    assert in_form(server.asked[-2]) == "fenced"


async def test_a_small_context_gives_a_short_report(server: ModelServer) -> None:
    """1,024 tokens as a llama.cpp server counts them, the answer's included; fewer exhibits, and a note."""

    def respond(asked: dict[str, Any]) -> Reply:
        prompt = "".join(str(message.get("content")) for message in asked["messages"])
        tokens = estimated_tokens(prompt + json.dumps(asked.get("tools", ""))) + asked["max_completion_tokens"]
        if tokens > 1024:
            error = {
                "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": tokens, "n_ctx": 1024,
                "message": f"request ({tokens} tokens) exceeds the available context size (1024 tokens)",
            }  # fmt: skip
            return Reply(json.dumps({"error": error}).encode(), 400)
        return says(json.dumps(DRAFT))

    server.respond = respond

    first, second = await written(server, 2)

    assert [finding.text for finding in first.draft.findings] == ["It is a mug."]
    assert [in_form(asked) for asked in server.asked] == ["tool", "schema", "schema"]
    assert any("the report model's context holds" in note for note in first.notes)
    assert second.notes == first.notes


async def test_a_context_that_no_refusal_states_is_approached(server: ModelServer) -> None:
    """Exhibits are shortened until they fit, a few times at most."""

    def respond(asked: dict[str, Any]) -> Reply:
        tokens = estimated_tokens("".join(str(message.get("content")) for message in asked["messages"]))
        return fails(400, message="the input length exceeds the context length") if tokens > 900 else says(None)

    server.respond = respond
    with pytest.raises(WritingFailed):
        await written(server, found=9)

    sent = [len(json.dumps(asked["messages"])) for asked in server.asked]
    assert sent[0] > sent[1] > sent[2]
    assert len(sent) < 12


async def test_an_answer_that_never_ends_is_cut_and_its_whole_findings_stand(server: ModelServer) -> None:
    """Every request has a bound, and the entries of a cut list that are whole are used."""
    endless = json.dumps(DRAFT | {"findings": DRAFT["findings"] * 2})
    endless = endless[: endless.rfind('"kind"') - 3] + " and so on" * 300
    server.respond = lambda asked: says(endless, "length") if "tools" not in asked else fails(400, message="no tools")

    (draft,) = await written(server)

    assert [finding.text for finding in draft.draft.findings] == ["It is a mug."]
    assert any("cut at its length limit" in note for note in draft.notes)
    assert all(1000 < asked["max_completion_tokens"] <= 8192 for asked in server.asked)
    assert (draft.usage.input_tokens, draft.usage.output_tokens) == (1000, 100)


async def test_endless_tool_calls_are_asked_for_as_json_instead(server: ModelServer) -> None:
    """As real small models did: whatever the tool call held, it held no finding."""
    loop = {"id": "c", "type": "function", "function": {"name": "final_result", "arguments": '{"topic": "mug mug mug'}}
    cut = json.loads(says(None, "length").body)
    cut["choices"][0]["message"]["tool_calls"] = [loop]
    replies = {"tool": Reply(json.dumps(cut).encode()), "schema": says(json.dumps(DRAFT))}
    server.respond = lambda asked: replies[in_form(asked)]

    (draft,) = await written(server)

    assert [finding.text for finding in draft.draft.findings] == ["It is a mug."]
    assert [in_form(asked) for asked in server.asked] == ["tool", "schema"]
