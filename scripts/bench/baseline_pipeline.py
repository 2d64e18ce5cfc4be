"""The simple pipeline that Listenpost is compared with, on the same client libraries.

Fetch five items, read the comments of all five, filter; when fewer than half are relevant, fetch
ten from the beginning, read the comments of all ten, and filter all ten again.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httplib2
import httpx
import praw
from googleapiclient.discovery import build
from openai import AsyncOpenAI

LIMITS = (5, 10)
Post = tuple[str, str]
"""Title and body."""


@dataclass
class Spent:
    """What one source cost."""

    calls: int = 0
    judged: int = 0
    judge_calls: int = 0
    tokens: int = 0
    refetched: bool = False


@dataclass
class Naive:
    """The three sources and the filter of the plain pattern."""

    env: Mapping[str, str]
    spent: dict[str, Spent] = field(default_factory=dict)

    async def run(self, query: str) -> dict[str, Spent]:
        """Ask all three at once."""
        fetchers: dict[str, Callable[[str, int], list[Post]]] = {
            "reddit": self._reddit,
            "youtube": self._youtube,
            "amazon": self._amazon,
        }
        client = AsyncOpenAI(api_key=self.env["OPENAI_API_KEY"], base_url=self.env["OPENAI_BASE_URL"])
        await asyncio.gather(*(self._source(client, name, fetch, query) for name, fetch in fetchers.items()))
        await client.close()
        return self.spent

    async def _source(
        self,
        client: AsyncOpenAI,
        name: str,
        fetch: Callable[[str, int], list[Post]],
        query: str,
    ) -> None:
        spent = self.spent[name] = Spent()
        for limit in LIMITS:
            spent.refetched = limit != LIMITS[0]
            posts = await asyncio.to_thread(fetch, query, limit)
            relevant = await self._filter(client, name, query, posts)
            if len(posts) < limit or sum(relevant) >= len(posts) / 2:
                return

    async def _filter(self, client: AsyncOpenAI, name: str, query: str, posts: list[Post]) -> list[bool]:
        count, spent = len(posts), self.spent[name]
        array = {"type": "array", "items": {"type": "boolean"}}
        schema = {
            "type": "object",
            "additionalProperties": False,
            "required": ["relevant"],
            "properties": {"relevant": {**array, "minItems": count, "maxItems": count}},
        }
        lines = "\n".join(f"<q-naive {n}>{title} {body[:200]}</q-naive>" for n, (title, body) in enumerate(posts, 1))
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
        spent.judged += count
        spent.judge_calls += 1
        spent.tokens += answer.usage.prompt_tokens if answer.usage else 0
        text = answer.choices[0].message.content or ""
        return [word == "true" for word in re.findall(r"true|false", text)]

    def _reddit(self, query: str, limit: int) -> list[Post]:
        reddit = praw.Reddit(
            client_id=self.env["REDDIT_CLIENT_ID"],
            client_secret=self.env["REDDIT_CLIENT_SECRET"],
            user_agent="naive comparison",
            oauth_url=self.env["REDDIT_URL"],
            reddit_url=self.env["REDDIT_URL"],
            check_for_updates=False,
            check_for_async=False,
        )
        posts = list(reddit.subreddit("all").search(query, limit=limit))
        self.spent["reddit"].calls += 2 + len(posts)
        for post in posts:
            post.comments.replace_more(limit=0)
        return [(post.title, post.selftext) for post in posts]

    def _youtube(self, query: str, limit: int) -> list[Post]:
        youtube = build(
            "youtube",
            "v3",
            developerKey=self.env["YOUTUBE_API_KEY"],
            client_options={"api_endpoint": self.env["YOUTUBE_URL"]},
            static_discovery=True,
            http=httplib2.Http(timeout=8),
        )
        search = youtube.search().list(part="snippet", q=query, type="video", maxResults=limit)
        found: list[dict[str, Any]] = search.execute()["items"]
        self.spent["youtube"].calls += 1 + len(found)
        for video in found:
            threads = youtube.commentThreads()
            try:
                threads.list(part="snippet", videoId=video["id"]["videoId"]).execute()
            except OSError:
                continue
            except Exception as error:  # comments may be turned off
                if "commentsDisabled" not in str(error):
                    raise
        return [(v["snippet"]["title"], v["snippet"]["description"]) for v in found]

    def _amazon(self, query: str, limit: int) -> list[Post]:
        with httpx.Client(base_url=self.env["AMAZON_URL"], timeout=8) as client:
            page = client.get("/s", params={"k": query}).text
            asins = list(dict.fromkeys(re.findall(r'data-asin="(\w{10})"', page)))[:limit]
            titles = re.findall(r"<h2[^>]*>.*?</h2>", page, re.S)
            self.spent["amazon"].calls += 1 + len(asins)
            for asin in asins:
                client.get(f"/dp/{asin}")
        plain = [re.sub(r"<[^>]+>", " ", title).strip() for title in titles]
        return [(plain[n] if n < len(plain) else asin, "") for n, asin in enumerate(asins)]
