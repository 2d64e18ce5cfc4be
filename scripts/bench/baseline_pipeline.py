"""The simple pipeline that Listenpost is compared with, on the same client libraries.

Fetch five items, read the comments of all five, filter; when fewer than half are relevant, fetch
ten from the beginning, read the comments of all ten, and filter all ten again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from openai import AsyncOpenAI

from place_posts import PLACES, PlaceClients, PlacePost

LIMITS = (5, 10)


@dataclass
class Spent:
    """What one source cost."""

    calls: int = 0
    judged: int = 0
    judge_calls: int = 0
    tokens: int = 0
    refetched: bool = False
    kept: list[str] = field(default_factory=list)
    """Keys of the posts that its filter kept."""


@dataclass
class Naive:
    """The three sources and the filter of the plain pattern."""

    env: Mapping[str, str]
    spent: dict[str, Spent] = field(default_factory=dict)

    async def run(self, query: str) -> dict[str, Spent]:
        """Ask all three at once."""
        places = PlaceClients(self.env)
        async with AsyncOpenAI(api_key=self.env["OPENAI_API_KEY"], base_url=self.env["OPENAI_BASE_URL"]) as client:
            await asyncio.gather(*(self._source(client, places, name, query) for name in PLACES))
        return self.spent

    async def _source(self, client: AsyncOpenAI, places: PlaceClients, name: str, query: str) -> None:
        spent = self.spent[name] = Spent()
        for limit in LIMITS:
            spent.refetched = limit != LIMITS[0]
            posts = await asyncio.to_thread(places.search, name, query, limit)
            relevant = await self._filter(client, name, query, posts)
            spent.calls = places.calls[name]
            spent.kept = [post.key for post, kept in zip(posts, relevant, strict=True) if kept]
            if len(posts) < limit or sum(relevant) >= len(posts) / 2:
                return

    async def _filter(self, client: AsyncOpenAI, name: str, query: str, posts: Sequence[PlacePost]) -> list[bool]:
        spent = self.spent[name]
        relevant, tokens = await filtered(client, query, [f"{post.title} {post.body[:200]}" for post in posts])
        spent.judged += len(posts)
        spent.judge_calls += 1
        spent.tokens += tokens
        return relevant


async def filtered(client: AsyncOpenAI, query: str, texts: Sequence[str]) -> tuple[list[bool], int]:
    """Whether each text is about the question, by one call of a model, and the tokens of the call."""
    numbers = [str(number) for number in range(1, len(texts) + 1)]
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": numbers,
        "properties": {number: {"type": "boolean"} for number in numbers},
    }
    lines = "\n".join(f"<q-naive {number}>{text}</q-naive>" for number, text in zip(numbers, texts, strict=True))
    answer = await client.chat.completions.create(
        model="gpt-4o-mini",
        temperature=0,
        messages=[
            {"role": "system", "content": "Which of these posts are about the question?"},
            {"role": "user", "content": f"<q-naive question>{query}</q-naive>\n{lines}"},
        ],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "relevance", "strict": True, "schema": schema},
        },
    )
    verdicts: Mapping[str, bool] = json.loads(answer.choices[0].message.content or "{}")
    return [verdicts[number] for number in numbers], answer.usage.total_tokens if answer.usage else 0
