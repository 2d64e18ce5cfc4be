"""The whole product, as it is built for live use, against upstreams on loopback."""

from __future__ import annotations

import html
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from api import bootstrap
from api.core.ports import Judge
from api.services import product
from api.services.product import Ask, Product, SourceAnswer
from tests.models.model_server import KEY, ModelServer, Reply, says, serving, verdicts
from tests.services.kit import plain
from tests.sources.emulators import AmazonEmulator, Emulator, RedditEmulator, YouTubeEmulator

EXHIBIT = re.compile(r"<q-\w+ (E\d+)(?: title)?>(?:\([^()]*\) )?([^<|]*)")


def finding(text: str, *cites: str, kind: str = "praise") -> dict[str, Any]:
    """One finding as a model writes it; `@E1` becomes words of that exhibit."""
    evidence = [{"cite": cite, "passage": f"@{cite}"} for cite in cites]
    return {"text": text, "kind": kind, "evidence": evidence}


GRADE = {"score": 4, "explanation": "says how it is", "sentiment": 1, "aspects": [], "quote": ""}
DRAFT = {
    "topic": "The mug",
    "summary": "People like it.",
    "findings": [finding("It stays warm.", "E1")],
    "quotes": [],
    "suggestions": ["Is it heavy?"],
}


def handing_in(*calls: tuple[str, Mapping[str, Any]]) -> Reply:
    """A chat model's turn that calls these tools."""
    made = [
        {
            "id": f"call-{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for number, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    return says("", choices=[{"index": 0, "finish_reason": "tool_calls", "message": message}])


@dataclass
class Mind:
    """The model behind the server: a rule for verdicts, grades that pass, turns for a report."""

    relevant: Callable[[str], bool] = lambda text: True
    grade: Mapping[str, Any] = field(default_factory=lambda: GRADE)
    turns: Sequence[Reply] = (handing_in(("final_result", DRAFT)),)
    judged: list[list[str]] = field(default_factory=list)
    """The texts of every relevance question, as they stood in the prompt."""
    prompts: list[dict[str, Any]] = field(default_factory=list)
    """What the report model was asked, turn by turn."""

    def answer(self, request: dict[str, Any]) -> Reply:
        if "tools" in request:
            self.prompts.append(request)
            turn = self.turns[min(len(self.prompts), len(self.turns)) - 1]
            return replace(turn, body=self._quoting(request, turn.body.decode()).encode())
        user = request["messages"][1]["content"]
        texts = re.findall(r"<q-\w+ \d+>(.*)</q-\w+>", user)
        name = request["response_format"]["json_schema"]["name"]
        if name == "relevance":
            self.judged.append(texts)
            return says(verdicts([self.relevant(text) for text in texts]))
        if name == "support":
            return says(json.dumps({"supported": [True] * user.count(" sentence>")}))
        if name == "grades":
            numbers = request["response_format"]["json_schema"]["schema"]["required"]
            return says(json.dumps(dict.fromkeys(numbers, self.grade)))
        if name == "explanation":
            return says(json.dumps({"explanation": "Nobody said it. " * 60, "suggestions": ["x"]}))
        return says(json.dumps({"queries": []}))

    def _quoting(self, request: dict[str, Any], body: str) -> str:
        """The turn with the words of the exhibits that it names, JSON within JSON."""
        for label, words in EXHIBIT.findall(json.dumps(request["messages"], ensure_ascii=False)):
            spelled = json.dumps(json.dumps(html.unescape(words.strip()))[1:-1])[1:-1]
            body = body.replace(f"@{label}\\", spelled + "\\")
        return body


@dataclass
class World:
    """Three sources and a model to set up, and the product that asks them."""

    reddit: RedditEmulator
    youtube: YouTubeEmulator
    amazon: AmazonEmulator
    model: ModelServer
    mind: Mind
    built: Product

    async def fetch(self, source: str, query: str = "mug", **wanted: Any) -> SourceAnswer:
        """One source through the gate, at `quick` unless told otherwise."""
        return await product.fetch(self.built, source, Ask(query, **{"depth": "quick", **wanted}))

    async def analyze(self, query: str = "mug", **wanted: Any) -> dict[str, Any]:
        """A whole report."""
        return plain(await product.analyze(self.built, Ask(query, **wanted)))

    @property
    def judge(self) -> Judge:
        """The judge as configured, asked directly."""
        return self.built.gate.primary

    def emulator(self, source: str) -> Emulator:
        """One of the three."""
        found = {one.name: one for one in (self.reddit, self.youtube, self.amazon)}
        return found[source]


@pytest.fixture
def upstreams() -> Iterator[tuple[RedditEmulator, YouTubeEmulator, AmazonEmulator]]:
    """The three sources on loopback, with a few things each."""
    with RedditEmulator(4) as reddit, YouTubeEmulator(4) as youtube, AmazonEmulator(4) as amazon:
        yield reddit, youtube, amazon


@pytest.fixture
async def world(
    upstreams: tuple[RedditEmulator, YouTubeEmulator, AmazonEmulator],
    monkeypatch: pytest.MonkeyPatch,
) -> AsyncIterator[World]:
    """The product, configured through the environment."""
    reddit, youtube, amazon = upstreams
    mind = Mind()
    async with serving(respond=mind.answer) as model:
        environment = {
            "LISTENPOST_MODE": "live",
            "REDDIT_CLIENT_ID": "id",
            "REDDIT_CLIENT_SECRET": "s3cr3t-value",
            "REDDIT_URL": reddit.server.url,
            "YOUTUBE_API_KEY": "s3cr3t-value",
            "YOUTUBE_URL": youtube.server.url,
            "AMAZON_PROVIDER": "html",
            "AMAZON_URL": amazon.server.url,
            "OPENAI_API_KEY": KEY,
            "OPENAI_BASE_URL": model.url,
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        built = bootstrap.build(bootstrap.load_settings())
        yield World(reddit, youtube, amazon, model, mind, built)
        await built.aclose()
