"""The real google-api-python-client against a loopback YouTube: what is found and read."""

from __future__ import annotations

import json
import threading
from datetime import UTC, date, datetime, timedelta
from typing import Any, cast

import pytest

from api.core.context import request_counter
from api.core.domain import FetchPlan
from api.core.items import Item
from api.errors import NotConfigured
from api.features.analyses.store_ports import SourceMemory
from api.settings import SourceSettings
from api.sources import SOURCES
from api.sources.searched_source import Page, page_to_json
from api.sources.youtube import YouTubeSource
from tests.loopback import Asked, Reply
from tests.sources.emulators import YouTubeEmulator, answer, found_by, on, refusal, result, thread, video

PLAN = FetchPlan("mug", 5)


async def test_search_asks_fifty_videos(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """The wire form of a search is the same for any limit, and the window is sent as UTC."""
    batch = await youtube.fetch(FetchPlan("café ☕ 小米", 5, "week"))

    query = youtube_server.searches[0].query
    assert youtube_server.searches[0].path == "/youtube/v3/search"
    assert (query["q"], query["type"], query["maxResults"]) == ("café ☕ 小米", "video", "50")
    start = datetime.fromisoformat(query["publishedAfter"])
    assert abs(datetime.now(UTC) - timedelta(days=7) - start) < timedelta(seconds=30)
    assert batch.full


async def test_item_has_every_field(youtube: YouTubeSource) -> None:
    """A search result becomes an item with key, channel and unknown counts."""
    item = (await found_by(youtube, 1))[0]

    assert (item.key, item.id, item.place) == ("youtube:v0", "v0", "Mugs & Co")
    assert item.url == "https://www.youtube.com/watch?v=v0"
    assert item.engagement == {"views": None, "likes": None, "comments": None}
    assert item.created_at == datetime(2026, 9, 21, 13, 33, 20, tzinfo=UTC)
    assert (item.author or "").startswith("channel-")


async def test_four_comment_threads_do_not_wait_for_the_details(
    youtube_server: YouTubeEmulator, youtube: YouTubeSource
) -> None:
    """The details of four videos and their comments are five requests under way together."""
    items, meeting = await found_by(youtube, 4), threading.Barrier(5)

    def met(asked: Asked) -> Reply | None:
        meeting.wait(5)
        return None

    youtube_server.fault = met
    commented = await youtube.comments(items)

    assert not commented.notes
    assert not meeting.broken


async def test_pages_follow_the_token(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """A third page is asked with the second's token."""
    batch = await found_by(youtube, 120)

    tokens = [asked.query.get("pageToken") for asked in youtube_server.searches]
    assert tokens == [None, "50", "100"]
    assert len(batch) == 120


class Shelved:
    """Pages kept between runs: of every query the first one, read in an earlier year."""

    def __init__(self) -> None:
        fresh = datetime.now(UTC)
        items = [
            Item(key=f"youtube:k{n}", id=f"k{n}", source="youtube", title="t", created_at=fresh) for n in range(50)
        ]
        self.first = page_to_json(Page(tuple(items), "2020-02-02T02:02:02Z 50"), fresh)

    async def page(self, key: str, ttl: float) -> str | None:
        return self.first if json.loads(key)[-1] is None else None

    async def keep_page(self, key: str, text: str) -> None:
        """Keep nothing more."""

    async def take(self, scope: str, day: date, units: int, limit: int) -> bool:
        return True


@pytest.mark.parametrize("stale", [0, 1], ids=["token known", "token forgotten"])
async def test_the_window_of_the_first_page_holds_for_the_next(youtube_server: YouTubeEmulator, stale: int) -> None:
    """`publishedAfter` is the first page's however late the next is asked, restarted or not."""
    source = SOURCES["youtube"].build(youtube_server.settings(), cast(SourceMemory, Shelved()))
    youtube_server.fault = on("pageToken", refusal(400, "invalidPageToken"), times=stale)

    await source.fetch(FetchPlan("mug", 100, "month"))
    await source.aclose()

    starts = [asked.query.get("publishedAfter") for asked in youtube_server.searches]
    assert starts == ["2020-02-02T02:02:02Z"] * (3 if stale else 1)


async def test_no_window_is_sent_without_one(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """All time is no `publishedAfter`, on any page."""
    await youtube.fetch(FetchPlan("mug", 60))

    assert len(youtube_server.searches) == 2
    assert not any("publishedAfter" in asked.query for asked in youtube_server.searches)


async def test_stale_page_token_restarts_paging_once(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """A forgotten token is replaced by walking from the first page again, and noted."""
    await found_by(youtube, 50)
    youtube_server.fault = on("pageToken", refusal(400, "invalidPageToken"), times=1)

    batch = await youtube.fetch(FetchPlan("mug", 100))

    tokens = [asked.query.get("pageToken") for asked in youtube_server.searches]
    assert tokens == [None, "50", None, "50"]
    assert len(batch.items) == 100
    assert batch.notes == ("paging was restarted",)


async def test_a_page_that_is_a_little_short_is_enough(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """48 of 50 on a page: wanting 50 spends no second search, wanting 100 does."""
    short = answer([result(number) for number in range(48)]) | {"nextPageToken": "50"}
    youtube_server.fault = on("/search", Reply(body=short), times=1)

    await youtube.fetch(FetchPlan("mug", 25))
    batch = await youtube.fetch(FetchPlan("mug", 50))

    assert len(youtube_server.searches) == 1
    assert (len(batch.items), batch.full) == (48, True)
    assert batch.notes == ("48 of 50 came; the rest is not worth another page",)
    assert len((await youtube.fetch(FetchPlan("mug", 100))).items) == 98
    assert len(youtube_server.searches) == 2


ODD = [
    pytest.param(result(1, title="Rubik&#39;s &amp; Co"), "Rubik's & Co", id="entities"),
    pytest.param(result(1, title="&amp;lt;b&amp;gt;"), "&lt;b&gt;", id="decoded once"),
    pytest.param(result(1, title=None), "", id="no title"),
    pytest.param(result(1, title="a \ud83d b"), "a \ufffd b", id="lone surrogate"),
    pytest.param(result(1, title={}, description=None), None, id="no text"),
    pytest.param({"id": {"channelId": "UC1"}, "snippet": {"title": "c"}}, None, id="channel"),
    pytest.param({"id": "v1"}, None, id="id is text"),
    pytest.param(None, None, id="null"),
]


@pytest.mark.parametrize(("entry", "title"), ODD)
async def test_odd_result_is_cleaned_or_dropped(
    youtube_server: YouTubeEmulator, youtube: YouTubeSource, entry: Any, title: str | None
) -> None:
    """Search text is unescaped once; what is no video is dropped and still counted."""
    youtube_server.fault = on("/search", Reply(body=answer([entry, result(2)])))

    batch = await youtube.fetch(FetchPlan("mug", 1))

    assert [item.title for item in batch.items] == ([] if title is None else [title])
    assert batch.full


async def test_details_and_comments_of_kept_videos(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """One `videos.list` for all and one thread list each bring full text, counts, comments."""
    found = await found_by(youtube, 3)
    with request_counter() as calls:
        read = await youtube.comments(found)

    assert calls.made == 4
    assert [asked.query["id"] for asked in youtube_server.calls("videos")] == ["v0,v1,v2"]
    threads = youtube_server.calls("commentThreads")[0].query
    assert (threads["order"], threads["textFormat"], threads["maxResults"]) == (
        "relevance", "plainText", "20",
    )  # fmt: skip
    item = read.items[0]
    assert (item.title, item.body, item.place) == ("Full v0", "All of it", "Mugs & Co")
    assert item.engagement == {"views": 1200, "likes": 30, "comments": 4}
    assert len(item.comments) == 20
    assert item.comments[0].url == "https://www.youtube.com/watch?v=v0&lc=T0"
    assert (item.notes, read.notes) == ((), ())


async def test_many_videos_are_detailed_in_fifties(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """Sixty videos take two `videos.list` calls."""
    await youtube.comments(await found_by(youtube, 60))

    asked = [len(call.query["id"].split(",")) for call in youtube_server.calls("videos")]
    assert sorted(asked) == [10, 50]


async def test_details_are_not_unescaped_and_may_be_missing(
    youtube_server: YouTubeEmulator, youtube: YouTubeSource
) -> None:
    """Text of `videos.list` stays as it is; hidden counts are None; a vanished video is noted."""
    shown = video("v0", likeCount=None, commentCount="many")
    shown["snippet"]["title"] = "a &amp; b"
    youtube_server.fault = on("/videos", Reply(body=answer([shown])))

    read = await youtube.comments(await found_by(youtube, 2))

    assert read.items[0].title == "a &amp; b"
    assert read.items[0].engagement == {"views": 1200, "likes": None, "comments": None}
    assert read.items[1].notes == ("the video is no longer listed",)


async def test_lost_details_are_noted(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """Without `videos.list` the videos keep the search's text and their comments."""
    youtube_server.fault = on("/videos", Reply(500, {}))

    read = await youtube.comments(await found_by(youtube, 2))

    assert read.notes == ("full texts and counts could not be read",)
    assert [(item.title, len(item.comments)) for item in read.items] == [
        ("Video 0", 20), ("Video 1", 20),
    ]  # fmt: skip


async def test_what_is_no_opinion_is_left_out(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """The owner of the channel, in threads and replies, emotes, links and what nobody sees."""
    owner: dict[str, Any] = {"authorChannelId": {"value": "UC1"}}
    reply = {"id": "R1", "snippet": {"textDisplay": "thanks!", **owner}}
    threads = [
        thread(1, [reply]), thread(2, **owner), thread(3, textDisplay=":face-red-heart-shape:"),
        thread(4, textDisplay="https://a.example/mug"), thread(5, textDisplay="\u200b"),
        thread(6, textDisplay="\u2764", authorChannelId={"value": "UC2"}),
    ]  # fmt: skip
    for each in threads:
        each["snippet"]["channelId"] = "UC1"
    youtube_server.fault = on("/commentThreads", Reply(body=answer(threads)))

    item = (await youtube.comments(await found_by(youtube, 1))).items[0]

    assert [said.id for said in item.comments] == ["T1", "T6"]


async def test_a_video_without_words_is_nobodys_opinion(
    youtube_server: YouTubeEmulator, youtube: YouTubeSource
) -> None:
    """Title and text of zero width leave nothing to judge, which the video says."""
    unseen = result(1, title="\u200b", description="&#8203;", channelTitle="\u2060")
    youtube_server.fault = on("/search", Reply(body=answer([unseen])))

    (item,) = await found_by(youtube, 1)

    assert (item.title, item.body, item.place) == ("", "", None)
    assert item.unfit == "no title and no text that can be seen"


@pytest.mark.parametrize("at", ["1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "2099-01-01T00:00:00Z", "soon", 1e400])
async def test_a_time_that_cannot_be_true_is_none(
    youtube_server: YouTubeEmulator, youtube: YouTubeSource, at: object
) -> None:
    """Before the first video or in the future there is no time, and the video says so."""
    youtube_server.fault = on("/search", Reply(body=answer([result(1, publishedAt=at)])))
    (item,) = await found_by(youtube, 1)
    youtube_server.fault = on("/commentThreads", Reply(body=answer([thread(1, publishedAt=at)])))
    (full,) = (await youtube.comments([item])).items

    assert item.created_at is None
    assert item.notes == ("its time cannot be true, so it counts as undated",)
    assert [said.created_at for said in full.comments] == [None]


async def test_details_without_fields_are_noted_as_lost(
    youtube_server: YouTubeEmulator, youtube: YouTubeSource
) -> None:
    """Details that cannot be understood do not make a video one that is no longer listed."""
    youtube_server.fault = on("/videos", Reply(body=answer([{"etag": "x"}, {"etag": "y"}])))

    read = await youtube.comments(await found_by(youtube, 2))

    assert read.notes == ("full texts and counts could not be read",)


async def test_threads_come_before_their_replies(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """Comments keep Google's order, replies follow, and empty or broken ones are left out."""
    reply = {"id": "R1", "snippet": {"textDisplay": "yes", "authorDisplayName": "@someone"}}
    youtube_server.fault = on(
        "/commentThreads",
        Reply(body=answer([thread(1, [reply, None, {}]), thread(2), thread(3, textDisplay=""), 7])),
    )

    item = (await youtube.comments(await found_by(youtube, 1))).items[0]

    assert [said.id for said in item.comments] == ["T1", "T2", "R1"]
    assert item.comments[2].engagement == {"likes": None}
    author = item.comments[2].author or ""
    assert author.startswith("viewer-")
    assert "someone" not in author


@pytest.mark.parametrize(
    ("reply", "note"),
    [
        (refusal(403, "commentsDisabled"), "comments are turned off"),
        (refusal(404, "videoNotFound"), "the video is gone"),
    ],
    ids=["disabled", "gone"],
)
async def test_video_without_comments_is_kept(
    youtube_server: YouTubeEmulator, youtube: YouTubeSource, reply: Reply, note: str
) -> None:
    """One of three videos has no comments: all three stay and only that one says why."""
    youtube_server.fault = on("'videoId': 'v1'", reply)

    read = await youtube.comments(await found_by(youtube, 3))

    assert [len(item.comments) for item in read.items] == [20, 0, 20]
    assert [item.notes for item in read.items] == [(), (note,), ()]
    assert read.notes == ()


async def test_probe_never_searches(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """Asking whether YouTube works costs one unit and no search."""
    assert (await youtube.probe()).outcome == "ok"
    assert [asked.path for asked in youtube_server.server.asked] == ["/youtube/v3/videos"]


async def test_no_comments_wanted_asks_only_details(youtube_server: YouTubeEmulator) -> None:
    """With `comments_per_item` at 0 the full texts and counts are still read."""
    source = SOURCES["youtube"].build(youtube_server.settings(comments_per_item=0))

    read = await source.comments(await found_by(source, 2))
    await source.aclose()

    assert youtube_server.calls("commentThreads") == []
    assert read.items[0].engagement["views"] == 1200


def test_unconfigured_names_what_to_set() -> None:
    """The factory says which variable is missing, without asking anything."""
    with pytest.raises(NotConfigured, match="youtube: `YOUTUBE_API_KEY` not set"):
        SOURCES["youtube"].build(SourceSettings.model_validate({"YOUTUBE_API_KEY": ""}))
