"""Repeats the calls of an analysis with the client libraries alone, for comparison.

The sandbox's log says which requests an analysis sent. Reddit is asked through praw, YouTube
through Google's client, models through openai's, everything else through httpx; answers are decoded
as far as the library does it, pages are parsed, results are thrown away. Clients are built once.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from urllib.request import urlopen

import httplib2
import httpx
import praw
from googleapiclient.discovery import build
from openai import AsyncOpenAI
from selectolax.lexbor import LexborHTMLParser

Entry = Mapping[str, Any]
"""One request in the sandbox's log."""
UNASKED = ("token", "version")
"""What a client asks once, and not for each question."""


def sent(url: str, since: int = 0) -> list[Entry]:
    """What this sandbox was asked after request number `since`, in order, with its bodies."""
    with urlopen(f"{url}/_sandbox/log?bodies=1&since={since}") as answer:
        entries: list[Entry] = json.load(answer)["entries"]
        return entries


class Bare:
    """The clients of an analysis; belongs to one event loop."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """Build each client once."""
        self._root = env["REDDIT_URL"]
        self._reddit = praw.Reddit(
            client_id=env["REDDIT_CLIENT_ID"],
            client_secret=env["REDDIT_CLIENT_SECRET"],
            user_agent="bare comparison",
            oauth_url=self._root,
            reddit_url=self._root,
            check_for_updates=False,
            check_for_async=False,
        )
        self._youtube = build(
            "youtube",
            "v3",
            developerKey=env["YOUTUBE_API_KEY"],
            client_options={"api_endpoint": self._root},
            static_discovery=True,
            http=httplib2.Http(timeout=8),
        )
        self._model = AsyncOpenAI(api_key=env["OPENAI_API_KEY"], base_url=env["OPENAI_BASE_URL"])
        self._web = httpx.AsyncClient(base_url=self._root, timeout=8)
        self._blocking = {"reddit": asyncio.Lock(), "youtube": asyncio.Lock()}

    async def run(self, entries: Sequence[Entry]) -> None:
        """Make the calls of one analysis: those of a kind at once, one kind after another."""
        asked = [entry for entry in entries if entry["endpoint"] not in UNASKED]
        for _, calls in groupby(asked, lambda entry: entry["endpoint"]):
            await asyncio.gather(*(self._again(call) for call in calls))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._model.close()
        await self._web.aclose()

    async def _again(self, call: Entry) -> None:
        path = urlsplit(call["path"])
        query: dict[str, str | int] = dict(parse_qsl(path.query))
        match call["upstream"]:
            case "openai":
                await self._model.chat.completions.create(**call["body"])
            case "reddit":
                async with self._blocking["reddit"]:
                    await asyncio.to_thread(self._reddit.get, path.path, params=query)
            case "youtube":
                async with self._blocking["youtube"]:
                    await asyncio.to_thread(self._listed(path.path, query))
            case "amazon":
                page = await self._web.get(call["path"])
                LexborHTMLParser(page.text)
            case _:
                (await self._web.get(call["path"])).json()

    def _listed(self, path: str, query: Mapping[str, str | int]) -> Callable[[], Any]:
        """What executes `/youtube/v3/commentThreads?videoId=x`."""
        resource = getattr(self._youtube, path.rpartition("/")[2])()
        fields = {name: value for name, value in query.items() if name not in ("key", "alt")}
        if "maxResults" in fields:
            fields["maxResults"] = int(fields["maxResults"])
        execute: Callable[[], Any] = resource.list(**fields).execute
        return execute
