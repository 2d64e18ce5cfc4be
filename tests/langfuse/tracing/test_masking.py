"""Secrets and e-mail addresses leave the process in no span."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from api.core.domain import Question
from api.core.items import Item
from api.langfuse.tracing import Tracing, start
from api.langfuse.tracing.masking import MASKED, mask
from tests.langfuse.tracing.collector import Collector, settings_for
from tests.langfuse.tracing.fakes import EvenJudge

SECRETS = (
    "sk-proj-abcdef1234567890",
    "sk-lf-12345678",
    "pk-lf-12345678",
    "AIzaSyA1234567890abcdefghijklmnopqrstu",
    "ada.lovelace+x@example.co.uk",
    "user:pass-word@",
)
SAID = " ".join((*SECRETS[:-1], f"https://{SECRETS[-1]}x.test"))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("key sk-abcdefgh.", f"key {MASKED}."),
        ("pk-lf-1234-5678 sk-lf-1234-5678", f"{MASKED} {MASKED}"),
        ("Authorization: Bearer abcdef.ghi", f"Authorization: Bearer {MASKED}"),
        (
            "https://x.test/v3?q=a&key=AIzaXYZ&alt=json",
            f"https://x.test/v3?q=a&key={MASKED}&alt=json",
        ),
        ("/s?api_key=abc&access_token=def", f"/s?api_key={MASKED}&access_token={MASKED}"),
        ("http://ada:pw@x.test/", f"http://{MASKED}@x.test/"),
        ("write to ada@example.com!", f"write to {MASKED}!"),
        ("write to ada\u200b@example.com!", f"write to {MASKED}!"),
        ("task-force desk-top basic understanding a@b reddit:t3_x", None),
    ],
)
def test_texts(text: str, masked: str | None) -> None:
    """A secret goes, the words around it stay; ordinary text is untouched."""
    assert mask(text) == (masked or text)


def test_json_stays_json() -> None:
    """A secret after an escaped line break, or in JSON within JSON, leaves valid JSON."""
    inner = json.dumps({"query": "x\nada@example.com", "api_key": "plain", "key": "reddit:t3_x"})
    text = json.dumps({"arguments": inner, "count": 3})

    found = json.loads(mask(text))

    assert found["count"] == 3
    assert json.loads(found["arguments"]) == {
        "query": f"x\n{MASKED}",
        "api_key": MASKED,
        "key": "reddit:t3_x",
    }


@given(st.recursive(st.text() | st.none() | st.integers(), st.lists, max_leaves=5))
def test_any_value(value: object) -> None:
    """Whatever comes, masking ends without an error and gives what UTF-8 can carry."""
    masked = mask(value)

    assert json.loads(json.dumps(masked, ensure_ascii=False).encode()) == masked


@pytest.mark.parametrize("text", ["\ud800 lone", '{"a": "\ud800"}', "[" * 100_000, '"\\ud800"'])
def test_hostile_text(text: str) -> None:
    """Lone surrogates and bottomless nesting are survived."""
    assert mask(text).encode()


@pytest.mark.parametrize("text", ["a" * 200_000, "a." * 100_000, "a@" * 100_000, "&a" * 100_000])
def test_time(text: str) -> None:
    """Masking long text takes time in proportion to its length."""
    began = time.process_time()
    mask(text)
    assert time.process_time() - began < 2


async def test_langfuse_spans(langfuse: Collector, tracing: Tracing) -> None:
    """Question, titles, errors and stack traces are masked on the way out."""
    item = Item(key="reddit:1", id="1", source="reddit", title=SAID)

    async def work() -> None:
        with tracing.observer.analysis("analyze", Question(f"{SAID} \ud800")):
            await tracing.judge(EvenJudge()).judge(Question("q"), [item], "reddit")
            raise RuntimeError(SAID)

    with pytest.raises(RuntimeError):
        await work()
    tracing.shutdown()

    assert {span.name for span in langfuse.spans} == {"analyze", "relevance_filter"}
    root = langfuse.one("analyze")
    assert root.told("level") == "ERROR"
    assert root.status
    assert root.events
    _clean(langfuse)


async def test_agent_spans(langfuse: Collector, tracing: Tracing) -> None:
    """Prompts, tool arguments and answers of agents are masked as well."""
    agent = Agent(tracing.model(TestModel(custom_output_text=SAID)), name="report")

    @agent.tool_plain
    async def look(query: str = SAID) -> str:
        return SAID

    with tracing.observer.analysis("chat", Question("q")):
        await agent.run(SAID)
    tracing.shutdown()

    assert langfuse.named("execute_tool look")
    assert MASKED in str(langfuse.one("invoke_agent report").attributes)
    _clean(langfuse)


async def test_owner_settings_stay(langfuse: Collector, tracing: Tracing) -> None:
    """User and session are what the owner set, an address included; long ones stay distinct."""
    for session_id in ("é" * 50, "é" * 90, f"{'é' * 90}2"):
        made = start(settings_for(langfuse.url), user_id="ada@example.com", session_id=session_id)
        assert made is not None
        with made.observer.analysis("analyze", Question("q")):
            pass
        made.shutdown()

    seen = [span.attributes for span in langfuse.named("analyze")]
    assert {attributes["user.id"] for attributes in seen} == {"ada@example.com"}
    short, *cut = [str(attributes["session.id"]) for attributes in seen]
    assert short == "\\xe9" * 50
    assert len(set(cut)) == 2
    assert {len(label) for label in cut} == {200}
    assert all(label.startswith("\\xe9" * 45) for label in cut)


def _clean(langfuse: Collector) -> None:
    sent = str(langfuse.spans)
    assert not [secret for secret in SECRETS if secret in sent]
