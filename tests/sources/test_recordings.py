"""Every recorded Reddit and YouTube answer through the real client: what each gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from api.core.domain import FetchPlan
from api.core.items import Item
from api.core.ports import Source
from api.errors import SourceError
from api.settings import SourceSettings
from api.sources import SOURCES
from api.sources.reddit_answers import post
from tests.loopback import Loopback
from tests.replay import MISSING, UPSTREAM, replay

pytestmark = pytest.mark.skipif(not UPSTREAM.is_dir(), reason=MISSING)

TOKEN = {"/api/v1/access_token": "access_token_client_credentials.json"}
KEYS = {
    "reddit": {"REDDIT_CLIENT_ID": "id", "REDDIT_CLIENT_SECRET": "secret"},
    "youtube": {"YOUTUBE_API_KEY": "key"},
}


@dataclass(frozen=True)
class Searched:
    """How many items a recorded search gives, and in how many a field is filled."""

    items: int
    body: int
    link: int = 0
    votes: int = 0


@dataclass(frozen=True)
class Read:
    """How many comments a recorded thread gives, and how many of them are signed."""

    comments: int
    signed: int


SEARCHES = {
    "reddit": {
        "search_listing_2016.json": Searched(6, 6, votes=6),
        "search_listing_2020_first25.json": Searched(25, 25, votes=25),
        "listing_popular_2026_excerpt.json": Searched(19, 11, 15, 19),
        "listing_empty.json": Searched(0, 0),
    },
    "youtube": {
        "portable_charger_search_2026.json": Searched(5, 5),
        "search_keywords_p1.json": Searched(25, 25),
        "search_live_event.json": Searched(25, 25),
        "search_videos_by_channel.json": Searched(5, 5),
        "search_channels.json": Searched(0, 0),
    },
}
THREADS = {
    "reddit": {
        "submission_comments_2016.json": Read(2, 2),
        "submission_comments_2020.json": Read(2, 2),
        "submission_comments_with_more.json": Read(10, 9),
        "comment_removed_thread_2020.json": Read(3, 3),
        "comment_deleted_thread.json": Read(0, 0),
        "submission_crosspost.json": Read(0, 0),
        "submission_gallery_2025.json": Read(0, 0),
        "submission_poll.json": Read(0, 0),
    },
    "youtube": {
        "portable_charger_comments_2026.json": Read(10, 10),
        "comment_threads_p1.json": Read(5, 5),
        "comment_threads_by_channel_all.json": Read(4, 4),
        "comment_threads_search_terms.json": Read(1, 1),
        "comment_threads_with_replies.json": Read(2, 2),
    },
}
VIDEOS = {
    "portable_charger_videos_2026.json": (5, 5),
    "videos_chart_p1.json": (5, 0),
    "videos_multi.json": (2, 0),
}
"""`videos.list` answers: videos, and how many of them come with counts."""
FAILURES = {
    "reddit": {
        "error_400_fields.json": "broken",
        "error_400_html.html": "broken",
        "error_401_invalid_token.json": "refused",
        "error_403_insufficient_scope.json": "refused",
        "error_403_plain.json": "refused",
        "error_403_quarantined.json": "refused",
        "error_404.json": "broken",
        "error_429_retry_after.html": "rate_limited",
        "redirect_302.html": "broken",
    },
    "youtube": {
        "error_400_keyInvalid.json": "refused",
        "error_403_permission.json": "refused",
        "error_403_quotaExceeded.json": "quota_exhausted",
        "error_429_search_queries_per_day.json": "quota_exhausted",
    },
}
NOTED = {
    "error_403_commentsDisabled.json": "comments are turned off",
    "error_404_videoNotFound.json": "the video is gone",
}
"""Answers to a thread list that concern one video only."""
TOKENS = {"access_token_client_credentials.json": None, "error_429_token.json": "rate_limited"}
INDEX = "says how the others were answered; the replay server reads it"
UNUSED = {
    "reddit": {
        "index.json": INDEX,
        "comment_deleted_info.json": "`/api/info` is never asked",
        "morechildren.json": "`more` entries are dropped, not followed",
        "search_rss_2026.xml": "the feeds have ended and are not asked",
    },
    "youtube": {
        "index.json": INDEX,
        "comments_replies_p1.json": "replies come with their threads; `comments.list` is not asked",
        "corpus_phones_comments_2025.json": "a collection, not an answer of the API",
        "corpus_phones_videos_2025.json": "a collection, not an answer of the API",
    },
}


def source_at(name: str, site: Loopback) -> Source:
    """The real source, pointed at the recordings."""
    given = KEYS[name] | {f"{name.upper()}_URL": site.url}
    return SOURCES[name].build(SourceSettings.model_validate(given))


def cases(table: Mapping[str, Mapping[str, object]]) -> list[tuple[str, str]]:
    """Source and file of each row."""
    return [(name, file) for name, files in table.items() for file in files]


@pytest.mark.parametrize("name", ["reddit", "youtube"])
def test_every_file_is_accounted_for(name: str) -> None:
    """A recording that no table names is a gap in this test."""
    own = TOKENS if name == "reddit" else VIDEOS | NOTED
    named = {*SEARCHES[name], *THREADS[name], *FAILURES[name], *UNUSED[name], *own}

    assert {path.name for path in (UPSTREAM / name).iterdir()} == named


@pytest.mark.parametrize(("name", "file"), cases(SEARCHES))
async def test_searches(name: str, file: str) -> None:
    """So many items, all with title, place, author and time in UTC, some with more."""
    expected = SEARCHES[name][file]
    with replay(name, TOKEN | {"/r/all/search": file, "/youtube/v3/search": file}) as site:
        source = source_at(name, site)
        items = (await source.fetch(FetchPlan("anything", expected.items or 5))).items
        await source.aclose()

    assert len(items) == expected.items
    assert all(item.title and item.place and item.author and item.url for item in items)
    assert all(item.created_at and item.created_at.utcoffset() is not None for item in items)
    assert sum(bool(item.body) for item in items) == expected.body
    assert sum(bool(item.link) for item in items) == expected.link
    assert sum(item.engagement.get("votes") is not None for item in items) == expected.votes
    assert not [item.title for item in items if "&#39;" in item.title or "&amp;" in item.title]


@pytest.mark.parametrize(("name", "file"), cases(THREADS))
async def test_threads(name: str, file: str) -> None:
    """So many comments, each with text, address, time and a count."""
    expected = THREADS[name][file]
    videos = {"/youtube/v3/videos": "videos_multi.json", "/youtube/v3/commentThreads": file}
    with replay(name, TOKEN | {"/comments/": file} | videos) as site:
        source = source_at(name, site)
        read = await source.comments([Item(key=f"{name}:x", id="x", source=name, title="t")])
        await source.aclose()

    comments = read.items[0].comments
    assert read.notes == ()
    assert len(comments) == expected.comments
    assert sum(bool(said.author) for said in comments) == expected.signed
    assert all(said.body and said.created_at and said.url for said in comments)
    assert all(None not in said.engagement.values() for said in comments)


@pytest.mark.parametrize("file", VIDEOS)
async def test_videos(file: str) -> None:
    """Full text for every video of the answer, and counts where it has them."""
    videos, counted = VIDEOS[file]
    listed = json.loads((UPSTREAM / "youtube" / file).read_text("utf-8"))["items"]
    items = [Item(key=v["id"], id=v["id"], source="youtube", title="t") for v in listed]
    threads = {"/youtube/v3/commentThreads": "error_403_commentsDisabled.json"}
    with replay("youtube", {"/youtube/v3/videos": file} | threads) as site:
        source = source_at("youtube", site)
        read = await source.comments(items)
        await source.aclose()

    assert sum(bool(item.title != "t" and item.body and item.place) for item in read.items) == videos
    assert sum(isinstance(item.engagement["views"], int) for item in read.items) == counted


@pytest.mark.parametrize(("name", "file"), cases(FAILURES))
async def test_failures(name: str, file: str) -> None:
    """A recorded error is one outcome when searching."""
    with replay(name, TOKEN | {"/r/all/search": file, "/youtube/v3/search": file}) as site:
        source = source_at(name, site)
        with pytest.raises(SourceError) as caught:
            await source.fetch(FetchPlan("anything", 5))
        await source.aclose()

    assert caught.value.code == FAILURES[name][file]


@pytest.mark.parametrize("file", NOTED)
async def test_noted(file: str) -> None:
    """A recorded answer about one video is a note on it."""
    routes = {"/youtube/v3/commentThreads": file, "/youtube/v3/videos": "videos_multi.json"}
    with replay("youtube", routes) as site:
        source = source_at("youtube", site)
        read = await source.comments([Item(key="k", id="x", source="youtube", title="t")])
        await source.aclose()

    assert NOTED[file] in read.items[0].notes
    assert read.notes == ()


@pytest.mark.parametrize("file", TOKENS)
async def test_tokens(file: str) -> None:
    """A recorded token is accepted; a recorded refusal of one has its outcome."""
    with replay("reddit", {"/api/v1/access_token": file, "/r/all": "listing_empty.json"}) as site:
        source = source_at("reddit", site)
        probe = await source.probe()
        await source.aclose()

    assert probe.outcome == (TOKENS[file] or "ok")


@pytest.mark.parametrize(
    ("file", "body", "link", "crosspost"),
    [
        ("submission_crosspost.json", True, False, True),
        ("submission_gallery_2025.json", True, True, False),
        ("submission_poll.json", True, False, False),
    ],
)
def test_kinds_of_posts(file: str, body: bool, link: bool, crosspost: bool) -> None:
    """Crosspost, gallery and poll, as the thread's own answer shows them."""
    thread = json.loads((UPSTREAM / "reddit" / file).read_text("utf-8"))

    item = post(thread[0]["data"]["children"][0])

    assert item is not None
    assert (bool(item.body), bool(item.link), bool(item.crosspost_parent)) == (
        body,
        link,
        crosspost,
    )
