"""The sandbox's YouTube, through Google's client."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from tests.sandbox.conftest import Start, youtube_row

Connect = Callable[..., Any]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make real clients, pointed at a sandbox; their connections end with the test."""
    with ExitStack() as stack:

        def make(sandbox: Sandbox, key: str = "k") -> Any:
            endpoint = {"api_endpoint": sandbox.url}
            youtube = build("youtube", "v3", developerKey=key, client_options=endpoint, static_discovery=True)
            return stack.enter_context(youtube)

        yield make


def search(youtube: Any, query: str = "glow lamp", **more: Any) -> dict[str, Any]:
    """One page of videos."""
    asked = {"part": "snippet", "q": query, "type": "video"} | more
    answer: dict[str, Any] = youtube.search().list(**asked).execute()
    return answer


def refused(call: Any) -> tuple[int, str]:
    """Status and reason of the error a call ends with."""
    with pytest.raises(HttpError) as caught:
        call.execute(num_retries=0)
    body = json.loads(caught.value.content)
    return caught.value.status_code, body["error"]["errors"][0]["reason"]


def test_search_text_is_encoded_and_cut(sandbox: Sandbox, connect: Connect) -> None:
    """Search encodes entities and cuts descriptions; `videos` gives both whole."""
    youtube = connect(sandbox)
    found = search(youtube)["items"][0]
    details = youtube.videos().list(part="snippet,statistics", id=found["id"]["videoId"]).execute()

    video = details["items"][0]
    assert found["snippet"]["title"] == "Glow Lamp: Dara&#39;s &amp; Bo&#39;s &quot;test&quot;"
    assert video["snippet"]["title"] == "Glow Lamp: Dara's & Bo's \"test\""
    assert found["snippet"]["description"].endswith(" ...")
    assert len(found["snippet"]["description"]) <= 124 < len(video["snippet"]["description"])
    assert video["statistics"]["viewCount"] == "900"
    assert video["statistics"]["commentCount"] == "4"


def test_hidden_counts_are_absent(sandbox: Sandbox, connect: Connect) -> None:
    """Hidden likes and comments turned off leave no count; unknown ids are left out."""
    youtube = connect(sandbox)
    id_ = search(youtube, "glow sticks")["items"][0]["id"]["videoId"]
    items = youtube.videos().list(part="statistics", id=f"{id_},xxxxxxxxxxx").execute()["items"]

    assert [set(item["statistics"]) for item in items] == [{"viewCount", "favoriteCount"}]
    answer = refused(youtube.commentThreads().list(part="snippet", videoId=id_))
    assert answer == (403, "commentsDisabled")


def test_pages_follow_their_token(start: Start, connect: Connect) -> None:
    """Sixty videos are two pages of at most fifty, and a made-up token is refused."""
    youtube = connect(start([youtube_row(n, f"glow number{n}") for n in range(60)]))
    first = search(youtube, "glow", maxResults=50)
    second = search(youtube, "glow", maxResults=50, pageToken=first["nextPageToken"])

    ids = [item["id"]["videoId"] for item in first["items"] + second["items"]]
    assert first["nextPageToken"] == "CDIQAA"
    assert len(set(ids)) == len(ids) == 60
    assert "nextPageToken" not in second
    wrong = youtube.search().list(part="snippet", q="glow", pageToken="nonsense")
    assert refused(wrong) == (400, "invalidPageToken")


def test_the_two_quotas_are_apart(start: Start, connect: Connect) -> None:
    """An empty search bucket says 429 and leaves the units alone; empty units say 403."""
    sandbox = start(options=Options(search_quota=1, unit_quota=2))
    youtube = connect(sandbox)
    search(youtube)
    asked = youtube.search().list(part="snippet", q="x", type="video")
    videos = youtube.videos().list(part="snippet", id="xxxxxxxxxxx")

    assert refused(asked) == (429, "rateLimitExceeded")
    assert [len(videos.execute()["items"]) for _ in range(2)] == [0, 0]
    assert refused(videos) == (403, "quotaExceeded")
    assert search(connect(sandbox, "another"))["items"]


def test_the_quota_comes_back_at_midnight_in_california(start: Start, connect: Connect) -> None:
    """The counts belong to a day that starts at 08:00 UTC."""
    now = [1_790_000_000.0]
    youtube = connect(start(options=Options(search_quota=1), clock=lambda: now[0]))
    search(youtube)
    now[0] += 86_400

    assert search(youtube)["items"]


def test_keys_are_checked(start: Start, connect: Connect) -> None:
    """A wrong key and a missing one are told apart."""
    sandbox = start(options=Options(youtube_key="right"))
    wrong = connect(sandbox, "wrong").search().list(part="snippet", q="x")

    with pytest.raises(HttpError) as caught:
        wrong.execute()
    assert json.loads(caught.value.content)["error"]["details"][0]["reason"] == "API_KEY_INVALID"
    missing = httpx.get(f"{sandbox.url}/youtube/v3/search?part=snippet&q=x")
    assert missing.status_code == 403


def test_comments_come_as_threads(sandbox: Sandbox, connect: Connect) -> None:
    """Best first, the fourth as a reply, HTML unless plain text is asked for."""
    youtube = connect(sandbox)
    id_ = search(youtube)["items"][0]["id"]["videoId"]
    asked = {"part": "snippet,replies", "videoId": id_, "order": "relevance"}
    plain = youtube.commentThreads().list(**asked, textFormat="plainText").execute()["items"]
    html = youtube.commentThreads().list(**asked).execute()["items"]

    tops = [thread["snippet"]["topLevelComment"]["snippet"] for thread in plain]
    assert [top["textDisplay"] for top in tops] == ["Too dim", "Nice & warm <b>", "Hm"]
    shown = html[1]["snippet"]["topLevelComment"]["snippet"]["textDisplay"]
    assert shown == "Nice &amp; warm &lt;b&gt;"
    parent = plain[2]["id"]
    assert plain[2]["replies"]["comments"][0]["snippet"]["parentId"] == parent
    replies = youtube.comments().list(part="snippet", parentId=parent).execute()["items"]
    assert [reply["snippet"]["textOriginal"] for reply in replies] == ["Agreed"]


def test_what_is_older_is_left_out(start: Start, connect: Connect) -> None:
    """`publishedAfter` is obeyed, and channels come when no type is given."""
    rows = [youtube_row(1, "glow new", age_days=1), youtube_row(2, "glow old", age_days=300)]
    youtube = connect(start(rows, clock=lambda: 1_790_000_000.0))
    recent = search(youtube, "glow", publishedAfter="2026-09-01T00:00:00Z")["items"]
    mixed = youtube.search().list(part="snippet", q="glow").execute()["items"]

    assert [item["snippet"]["title"] for item in recent] == ["glow new"]
    assert [item["id"]["kind"] for item in mixed].count("youtube#channel") == 1


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("quota", 403, "quotaExceeded"),
        ("search_quota", 429, "rateLimitExceeded"),
        ("keyinvalid", 400, "badRequest"),
        ("disabled", 403, "accessNotConfigured"),
        ("500", 500, "backendError"),
    ],
)
def test_faults_look_like_googles(start: Start, connect: Connect, kind: str, status: int, reason: str) -> None:
    """Each fault has the status and reason of the real error."""
    youtube = connect(start(faults=[f"youtube={kind}"]))

    assert refused(youtube.search().list(part="snippet", q="x")) == (status, reason)


def test_limits_are_refused_by_name(sandbox: Sandbox, connect: Connect) -> None:
    """Too many results, an unknown video and a missing part are errors of their own."""
    youtube = connect(sandbox)

    too_many = youtube.search().list(part="snippet", q="x", maxResults=51)
    assert refused(too_many) == (400, "invalidParameter")
    unknown = youtube.commentThreads().list(part="snippet", videoId="xxxxxxxxxxx")
    assert refused(unknown) == (404, "videoNotFound")
    assert httpx.get(f"{sandbox.url}/youtube/v3/search?q=x&key=k").status_code == 400
