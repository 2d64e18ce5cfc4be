"""The real PRAW against a loopback Reddit: what is found and read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from praw.config import Config

from api.core.context import request_counter
from api.core.domain import FetchPlan
from api.core.ports import Source
from api.errors import ConfigurationError, NotConfigured
from api.settings import SourceSettings
from api.sources import SOURCES
from tests.loopback import Reply
from tests.sources.emulators import NOW, RedditEmulator, comment, found_by, listing, on, post

PLAN = FetchPlan("mug", 5)
PAGE_403 = Reply(403, "<html><h1>whoa there, pardner</h1></html>")


async def test_search_is_one_request_for_a_hundred(reddit_server: RedditEmulator, reddit: Source) -> None:
    """The wire form of a search, whatever the limit; the token comes first."""
    batch = await reddit.fetch(FetchPlan("café ☕ 小米", 5, "week"))

    assert reddit_server.paths == ["/api/v1/access_token", "/r/all/search/"]
    query = reddit_server.searches[0].query
    assert query["q"] == "café ☕ 小米"
    assert (query["t"], query["limit"], query["raw_json"]) == ("week", "100", "1")
    assert query["restrict_sr"] == "False"
    assert not batch.items, "everything found is older than a week"
    assert batch.full


async def test_item_has_every_field(reddit: Source) -> None:
    """A submission becomes an item with key, place, measures and a pseudonym."""
    item = (await found_by(reddit, 1))[0]

    assert (item.key, item.id, item.place) == ("reddit:t3_p0", "p0", "r/mugs")
    assert item.url == "https://www.reddit.com/r/mugs/comments/p0/post/"
    assert item.engagement == {"votes": 12, "comments": 3, "upvote_ratio": 0.9}
    assert item.created_at == datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)
    assert item.author is not None
    assert item.author.startswith("redditor-")
    assert "potter" not in item.author


async def test_third_page_follows_after(reddit_server: RedditEmulator, reddit: Source) -> None:
    """220 things take three requests, each with the cursor of the page before."""
    batch = await reddit.fetch(FetchPlan("mug", 250))

    cursors = [asked.query.get("after") for asked in reddit_server.searches]
    assert cursors == [None, "t3_p99", "t3_p199"]
    assert len(batch.items) == 220
    assert not batch.full


ODD = [
    pytest.param({"selftext": "[deleted]"}, ("Post 1", ""), id="deleted body"),
    pytest.param({"selftext": "&amp;#x200B;"}, ("Post 1", "&#x200B;"), id="escaped twice"),
    pytest.param({"selftext": "&#x200B;"}, ("Post 1", ""), id="zero width body"),
    pytest.param({"title": "\u200b\u2060"}, ("", "Body 1"), id="zero width title"),
    pytest.param(
        {"selftext": "Try:\n\n    def f():\n        return 1"},
        ("Post 1", "Try:\n\n    def f():\n        return 1"),
        id="code",
    ),
    pytest.param(
        {"selftext": "Which?", "poll_data": {"options": [{"text": "Red mug"}, {"text": "Blue"}]}},
        ("Post 1", "Which?\n\n- Red mug\n- Blue"),
        id="poll",
    ),
    pytest.param(
        {
            "selftext": "",
            "gallery_data": {"items": [{"caption": "It leaks here"}, {"media_id": "x"}, None]},
        },
        ("Post 1", "- It leaks here"),
        id="gallery",
    ),
    pytest.param({"promoted": True}, None, id="advertisement"),
    pytest.param({"title": None, "selftext": 123}, ("", "123"), id="odd types"),
    pytest.param({"title": {}, "selftext": []}, None, id="containers"),
    pytest.param({"title": "a \ud83d\x00 b"}, ("a \ufffd b", "Body 1"), id="lone surrogate"),
    pytest.param({"selftext": "a &gt; b &amp;lt;"}, ("Post 1", "a > b &lt;"), id="entities"),
    pytest.param({"id": None}, None, id="no id"),
]


@pytest.mark.parametrize(("fields", "expected"), ODD)
async def test_odd_post_is_cleaned_or_dropped(
    reddit_server: RedditEmulator,
    reddit: Source,
    fields: dict[str, Any],
    expected: tuple[str, str] | None,
) -> None:
    """What is unusable is dropped and still counted; what is odd is made safe."""
    reddit_server.fault = on("/search", Reply(body=listing([post(1, **fields), post(2)])))

    batch = await reddit.fetch(FetchPlan("mug", 1))

    found = [(item.title, item.body) for item in batch.items]
    assert found == ([] if expected is None else [expected])
    assert batch.full


UNFIT = [
    ({"selftext": "[removed]", "title": "[deleted by user]"}, "title and text were removed"),
    ({"selftext": "", "title": "[ Removed by Reddit ]"}, "title and text were removed"),
    ({"selftext": "&#x200B;", "title": "\u200b\ufeff"}, "no title and no text that can be seen"),
    ({"author": "AutoModerator", "title": "Weekly mugs"}, "written by a bot"),
    ({"author": "WikiSummarizerBot"}, "written by a bot"),
    ({"author": "mugs-ModTeam"}, "written by a bot"),
    ({"author": "Talbot"}, ""),
]


@pytest.mark.parametrize(("fields", "why"), UNFIT)
async def test_nobodys_opinion_says_why(
    reddit_server: RedditEmulator, reddit: Source, fields: dict[str, Any], why: str
) -> None:
    """Removed texts and those of bots come along with the reason why nobody judges them."""
    reddit_server.fault = on("/search", Reply(body=listing([post(1, **fields)])))

    (item,) = await found_by(reddit, 1)

    assert item.unfit == why


async def test_a_profile_is_no_place(reddit_server: RedditEmulator, reddit: Source) -> None:
    """A post on a user's own page has no place, and no address that names the user."""
    own = {"subreddit": "u_potter", "permalink": "/user/potter/comments/p1/post/"}
    deep = comment(1, permalink="/user/potter/comments/p1/post/c1/")
    reddit_server.fault = on("/search", Reply(body=listing([post(1, **own)])))

    (item,) = await found_by(reddit, 1)
    reddit_server.fault = on("/comments/", Reply(body=[listing([]), listing([deep])]))
    (full,) = (await reddit.comments([item])).items

    assert item.place is None
    assert item.url == "https://www.reddit.com/comments/p1/"
    assert full.comments[0].url == "https://www.reddit.com/comments/p1/_/c1/"


@pytest.mark.parametrize(
    ("created", "year"),
    [
        (0, None), (-1, None), (-62_135_596_800, None), (1_000_000_000, None),
        (4_070_908_800, None), (253_402_300_799, None), ("soon", None), (NOW, 2026),
    ],
)  # fmt: skip
async def test_a_time_that_cannot_be_true_is_none(
    reddit_server: RedditEmulator, reddit: Source, created: object, year: int | None
) -> None:
    """Before Reddit began or in the future there is no time, and the item says so."""
    odd = Reply(body=listing([post(1, created_utc=created)]))
    reddit_server.fault = on("/search", odd)
    thread = [listing([]), listing([comment(1, created_utc=created)])]

    (item,) = await found_by(reddit, 1)
    reddit_server.fault = on("/comments/", Reply(body=thread))
    (full,) = (await reddit.comments([item])).items

    assert (item.created_at and item.created_at.year) == year
    assert item.notes == (() if year else ("its time cannot be true, so it counts as undated",))
    said = full.comments[0].created_at
    assert (said and said.year) == year


async def test_links_crossposts_and_missing_values(reddit_server: RedditEmulator, reddit: Source) -> None:
    """A link keeps its target, a crosspost its origin, and what is unknown is None."""
    parent = {"name": "t3_origin", "selftext": "Said first"}
    children = [
        post(1, is_self=False, url="https://example.org/mug", selftext=""),
        post(2, is_self=False, url="javascript:alert(1)", selftext=""),
        post(3, crosspost_parent="t3_origin", crosspost_parent_list=[parent], selftext=""),
        post(4, score=None, upvote_ratio="?", created_utc=None, author="[deleted]"),
        {"kind": "t5", "data": {"id": "sub"}}, None, 7,
    ]  # fmt: skip
    reddit_server.fault = on("/search", Reply(body=listing(children, "t3_p7")))

    batch = await reddit.fetch(FetchPlan("mug", 7))
    link, script, crosspost, bare = batch.items

    assert (link.link, link.body, script.link) == ("https://example.org/mug", "", "")
    assert (crosspost.crosspost_parent, crosspost.body) == ("reddit:t3_origin", "Said first")
    assert bare.engagement == {"votes": None, "comments": 3, "upvote_ratio": None}
    assert (bare.created_at, bare.author) == (None, None)
    assert batch.full


BOTS = ("RemindMeBot", "WikiSummarizerBot", "sneakpeekbot", "mugs-ModTeam")
WORDLESS = (
    "![gif](giphy|3o7abc)", "![img](emote|t5_2qh33|5)", "![img](abc123)\n", ":snoo_smile:",
    "https://preview.redd.it/x.png?width=9", "[https://a.example/](https://a.example/)",
    "![a](b) [c](https://d.example \"e\")!", "\u200b", "&#x200B;",
)  # fmt: skip


async def test_best_comments_without_bots_and_deletions(reddit_server: RedditEmulator, reddit: Source) -> None:
    """Comments are ordered by votes at any depth, without what nobody said."""
    deep = comment(9, score=99)
    for level in range(100):
        deep = comment(1000 + level, body="[deleted]", replies=listing([deep]))
    children = [
        comment(1, score=5), comment(2, score=50, body="[removed]"), comment(3, stickied=True),
        comment(4, author="AutoModerator", score=70), comment(5, score_hidden=True), deep,
        comment(6, score=7, body="a &lt;b&gt;", permalink=None), {"kind": "more", "data": {}},
        comment(7, author="[deleted]"), comment(8, score="?"), None,
        *(comment(20 + n, author=name) for n, name in enumerate(BOTS)),
        *(comment(40 + n, body=body) for n, body in enumerate(WORDLESS)),
    ]  # fmt: skip
    reddit_server.fault = on("/comments/", Reply(body=[listing([]), listing(children)]))

    read = await reddit.comments(await found_by(reddit, 1))
    found = read.items[0].comments

    assert [said.id for said in found] == ["c9", "c6", "c1", "c7", "c5", "c8"]
    assert [said.engagement["votes"] for said in found] == [99, 7, 5, 1, None, None]
    assert found[1].body == "a <b>"
    assert found[1].url == "https://www.reddit.com/comments/p0/_/c6/"
    assert found[3].author is None
    assert read.notes == ()


async def test_comments_share_one_token(reddit_server: RedditEmulator, reddit: Source) -> None:
    """Twelve threads over four clients take twelve requests and the token of the search."""
    found = await found_by(reddit, 12)
    with request_counter() as calls:
        read = await reddit.comments(found)

    assert reddit_server.paths.count("/api/v1/access_token") == 1
    assert calls.made == 12
    assert all(len(item.comments) == 20 for item in read.items)
    assert [item.key for item in read.items] == [item.key for item in found]


async def test_cold_comments_take_one_token(reddit_server: RedditEmulator) -> None:
    """Concurrent first calls wait for one token instead of asking four times."""
    asking, reading = (
        SOURCES["reddit"].build(reddit_server.settings()),
        SOURCES["reddit"].build(reddit_server.settings()),
    )
    found = await found_by(asking, 8)

    await reading.comments(found)
    await asking.aclose()
    await reading.aclose()

    assert reddit_server.paths.count("/api/v1/access_token") == 2


async def test_no_comments_wanted_asks_nothing(reddit_server: RedditEmulator) -> None:
    """With `comments_per_item` at 0 the items come back as they were."""
    source = SOURCES["reddit"].build(reddit_server.settings(comments_per_item=0))
    found = await found_by(source, 3)
    asked = len(reddit_server.server.asked)

    read = await source.comments(found)
    await source.aclose()

    assert read.items == found
    assert len(reddit_server.server.asked) == asked


async def test_quoted_query_falls_back(reddit_server: RedditEmulator, reddit: Source) -> None:
    """An exact phrase without hits is asked once more without quotes."""
    reddit_server.fault = on('"', Reply(body=listing([])), times=2)

    batch = await reddit.fetch(FetchPlan('"plaud note pro"', 5))

    assert [asked.query["q"] for asked in reddit_server.searches] == [
        '"plaud note pro"', "plaud note pro",
    ]  # fmt: skip
    assert len(batch.items) == 5
    assert "without quotes" in batch.notes[0]


async def test_praw_ini_does_not_matter(
    reddit_server: RedditEmulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A `praw.ini` in the working directory, even a planted or broken one, changes nothing."""
    before = Config.CONFIG
    for text in ("[DEFAULT]\noauth_url=http://evil.test\nusername=u\npassword=p\n", "garbage"):
        (tmp_path / "praw.ini").write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("praw_username", "u")
        monkeypatch.setenv("praw_password", "p")
        source = SOURCES["reddit"].build(reddit_server.settings())

        assert len(await found_by(source, 5)) == 5
        await source.aclose()

    grants = {a.form["grant_type"] for a in reddit_server.server.asked if a.method == "POST"}
    assert grants == {"client_credentials"}
    assert Config.CONFIG is before, "a host program's own PRAW still reads its own file"


async def test_root_may_have_a_path(reddit_server: RedditEmulator) -> None:
    """`REDDIT_URL` may hold a path, for token and API alike, and a slash at its end."""
    source = SOURCES["reddit"].build(reddit_server.settings(REDDIT_URL=f"{reddit_server.server.url}/behind/a/proxy/"))

    await found_by(source, 1)
    await source.aclose()

    assert reddit_server.paths == [
        "/behind/a/proxy/api/v1/access_token", "/behind/a/proxy/r/all/search/",
    ]  # fmt: skip


def test_unconfigured_names_what_to_set() -> None:
    """The factory says which variables are missing, without asking anything."""
    with pytest.raises(NotConfigured, match="`REDDIT_CLIENT_ID` and `REDDIT_CLIENT_SECRET`"):
        SOURCES["reddit"].build(SourceSettings.model_validate({"REDDIT_CLIENT_ID": " "}))
    with pytest.raises(NotConfigured, match="reddit: `REDDIT_CLIENT_SECRET` not set"):
        SOURCES["reddit"].build(SourceSettings.model_validate({"REDDIT_CLIENT_ID": "id"}))


def test_short_user_agent_is_named() -> None:
    """Reddit wants seven characters; the setting is named at once, not at the first request."""
    given = {"REDDIT_CLIENT_ID": "i", "REDDIT_CLIENT_SECRET": "s", "REDDIT_USER_AGENT": "me"}

    with pytest.raises(ConfigurationError, match="REDDIT_USER_AGENT"):
        SOURCES["reddit"].build(SourceSettings.model_validate(given))
