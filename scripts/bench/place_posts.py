"""Posts of Reddit, YouTube and Amazon by the client libraries alone, as a simple program reads them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httplib2
import httpx
import praw
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError
from praw.models import Comment
from selectolax.lexbor import LexborHTMLParser

PLACES = ("reddit", "youtube", "amazon")
_REVIEWS = '[data-hook="review-body"], [data-hook="reviewRichContentContainer"]'


@dataclass(frozen=True, slots=True)
class PlacePost:
    """A post with what was read below it."""

    key: str
    """As Listenpost has it: `reddit:t3_1abc`."""
    title: str
    body: str
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlaceClients:
    """Asks the places that the variables point at, and counts its requests; clients are built for each search."""

    env: Mapping[str, str]
    calls: Counter[str] = field(default_factory=Counter)
    """Requests, by place."""

    def search(self, place: str, query: str, limit: int, *, comments: bool = True) -> list[PlacePost]:
        """The first posts of a search, each with its comments or reviews if they are wanted."""
        match place:
            case "reddit":
                return self._reddit(query, limit, comments)
            case "youtube":
                return self._youtube(query, limit, comments)
            case _:
                return self._amazon(query, limit, comments)

    def _reddit(self, query: str, limit: int, comments: bool) -> list[PlacePost]:
        reddit = praw.Reddit(
            client_id=self.env["REDDIT_CLIENT_ID"],
            client_secret=self.env["REDDIT_CLIENT_SECRET"],
            user_agent="naive comparison",
            oauth_url=self.env["REDDIT_URL"],
            reddit_url=self.env["REDDIT_URL"],
            check_for_updates=False,
            check_for_async=False,
        )
        found = list(reddit.subreddit("all").search(query, limit=limit))
        self.calls["reddit"] += 2 + (len(found) if comments else 0)
        posts = []
        for post in found:
            texts: tuple[str, ...] = ()
            if comments:
                post.comments.replace_more(limit=0)
                texts = tuple(each.body for each in post.comments.list() if isinstance(each, Comment))
            posts.append(PlacePost(f"reddit:{post.fullname}", post.title, post.selftext, texts))
        return posts

    def _youtube(self, query: str, limit: int, comments: bool) -> list[PlacePost]:
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
        self.calls["youtube"] += 1 + (len(found) if comments else 0)
        posts = []
        for video in found:
            id_, snippet = video["id"]["videoId"], video["snippet"]
            texts: tuple[str, ...] = ()
            if comments:
                try:
                    threads = youtube.commentThreads().list(part="snippet", videoId=id_).execute()["items"]
                except HttpError as error:
                    if "commentsDisabled" not in str(error):
                        raise
                    threads = []
                shown = (thread["snippet"]["topLevelComment"]["snippet"] for thread in threads)
                texts = tuple(comment["textDisplay"] for comment in shown)
            posts.append(PlacePost(f"youtube:{id_}", snippet["title"], snippet["description"], texts))
        return posts

    def _amazon(self, query: str, limit: int, comments: bool) -> list[PlacePost]:
        with httpx.Client(base_url=self.env["AMAZON_URL"], timeout=8) as client:
            page = client.get("/s", params={"k": query}).text
            asins = list(dict.fromkeys(re.findall(r'data-asin="(\w{10})"', page)))[:limit]
            titles = [re.sub(r"<[^>]+>", " ", title).strip() for title in re.findall(r"<h2[^>]*>.*?</h2>", page, re.S)]
            self.calls["amazon"] += 1 + (len(asins) if comments else 0)
            posts = []
            for number, asin in enumerate(asins):
                texts: tuple[str, ...] = ()
                if comments:
                    product = LexborHTMLParser(client.get(f"/dp/{asin}").text)
                    texts = tuple(review.text(strip=True) for review in product.css(_REVIEWS))
                title = titles[number] if number < len(titles) else asin
                posts.append(PlacePost(f"amazon:{asin}", title, "", texts))
        return posts
