"""The sandbox's Reddit, through praw."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import praw
import prawcore
import pytest
from prawcore.sessions import FiniteRetryStrategy

from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from tests.sandbox.conftest import LAMPS, Start, reddit_row


class NoRetry(FiniteRetryStrategy):
    """One try."""

    def _sleep_seconds(self) -> None:
        return None

    def should_retry_on_failure(self) -> bool:
        return False


Connect = Callable[..., praw.Reddit]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Make real clients, pointed at a sandbox; their connections end with the test."""
    with ExitStack() as stack:

        def make(sandbox: Sandbox, secret: str = "s") -> praw.Reddit:
            reddit = praw.Reddit(
                client_id="id",
                client_secret=secret,
                user_agent="linux:tests:1.0",
                oauth_url=sandbox.url,
                reddit_url=sandbox.url,
                check_for_updates=False,
                check_for_async=False,
            )
            session: Any = reddit._core
            session._retry_strategy_class = NoRetry
            stack.callback(session.close)
            return reddit

        yield make


@pytest.fixture
def reddit(sandbox: Sandbox, connect: Connect) -> praw.Reddit:
    """A client of the lamps' sandbox."""
    return connect(sandbox)


def search(reddit: praw.Reddit, query: str = "glow lamp", **more: Any) -> list[Any]:
    """Submissions found everywhere."""
    return list(reddit.subreddit("all").search(query, **more))


def bearer(sandbox: Sandbox) -> dict[str, str]:
    """Headers with a token, for requests without a client."""
    url, form = f"{sandbox.url}/api/v1/access_token", {"grant_type": "client_credentials"}
    token = httpx.post(url, data=form, auth=("id", "s")).json()["access_token"]
    return {"authorization": f"bearer {token}"}


def test_a_search_gives_submissions_as_reddit_shapes_them(reddit: praw.Reddit) -> None:
    """Self, link, crosspost and removed post have the fields that tell them apart."""
    found = {vars(post)["title"]: vars(post) for post in search(reddit, "glow lamp review seen")}

    own, link = found["Glow Lamp after a month"], found["Glow review"]
    cross, gone = found["Seen elsewhere"], found["[deleted by user] glow"]
    assert own["is_self"]
    assert own["url"].endswith(own["permalink"])
    assert link["url"] == "https://example.com/glow"
    assert link["selftext"] == ""
    assert cross["crosspost_parent"] == own["name"]
    assert cross["crosspost_parent_list"][0]["title"] == own["title"]
    assert gone["author"] is None
    assert gone["removed_by_category"] == "moderator"


def test_pages_hold_a_hundred_and_continue(start: Start, connect: Connect) -> None:
    """A search for 130 takes two pages, without repeating a post."""
    rows = [reddit_row(n, f"glow number{n}") for n in range(150)]
    sandbox = start(rows)

    found = search(connect(sandbox), "glow", limit=130)

    assert len({post.id for post in found}) == 130
    pages = sandbox.requests("reddit", "search")
    assert [bool(page.query.get("after")) for page in pages] == [False, True]


def test_time_and_order_are_obeyed(reddit: praw.Reddit) -> None:
    """`t` leaves out what is older, `top` sorts by votes, a small subreddit is searched alone."""
    recent = search(reddit, "glow", time_filter="month")
    top = search(reddit, "glow", sort="top")

    assert "Ask me anything about glow worms" not in [post.title for post in recent]
    assert top[0].score == 9000
    assert [p.title for p in reddit.subreddit("lamps").search("seen glow")] == ["Seen elsewhere"]


def test_a_missing_subreddit_redirects(reddit: praw.Reddit) -> None:
    """A subreddit without posts answers as a missing one does."""
    with pytest.raises(prawcore.Redirect):
        list(reddit.subreddit("nothere").search("glow"))


def test_comments_come_as_a_forest_with_the_rest_behind_more(reddit: praw.Reddit, sandbox: Sandbox) -> None:
    """Replies hang under comments, what is over the limit is one `more`, and it can be opened."""
    post = next(post for post in search(reddit) if post.title == "Glow Lamp after a month")
    post.comment_limit = 3
    tree = post.comments

    assert [comment.body for comment in tree[:2]] == ["Mine flickers", "[removed]"]
    assert tree[0].author is not None
    assert tree[1].author is None
    assert tree[1].replies[0].body == "I love it"
    assert tree[2].count == 2
    tree.replace_more()
    assert [comment.body for comment in tree][-1] == "Where did you buy it?"
    assert len(sandbox.requests("reddit", "more")) == 1


def test_text_is_escaped_unless_raw_json_is_asked(sandbox: Sandbox) -> None:
    """Without `raw_json=1` the three characters come as entities."""
    headers, url = bearer(sandbox), f"{sandbox.url}/r/all/search/?q=battery"
    plain = httpx.get(url, headers=headers).json()["data"]["children"][0]["data"]
    raw = httpx.get(f"{url}&raw_json=1", headers=headers).json()["data"]["children"][0]["data"]

    assert plain["selftext"] == "Battery &lt;3 &amp; bright."
    assert raw["selftext"] == "Battery <3 & bright."


def test_rate_limit_headers_have_reddits_types(start: Start) -> None:
    """Used and reset are integers, remaining is a float; past the limit comes 429."""
    sandbox = start(options=Options(reddit_limit=2))
    headers, url = bearer(sandbox), f"{sandbox.url}/r/all/search/?q=glow"
    answers = [httpx.get(url, headers=headers) for _ in range(3)]

    first = answers[0].headers
    assert (first["x-ratelimit-used"], first["x-ratelimit-remaining"]) == ("1", "1.0")
    assert 290 <= int(first["x-ratelimit-reset"]) <= 300
    assert [answer.status_code for answer in answers] == [200, 200, 429]


def test_only_known_credentials_and_tokens_come_in(start: Start, connect: Connect) -> None:
    """A wrong secret and a made-up token are refused as Reddit refuses them."""
    sandbox = start(options=Options(reddit_credentials=("id", "right")))
    with pytest.raises(prawcore.ResponseException, match="401"):
        search(connect(sandbox, "wrong"))
    assert search(connect(sandbox, "right"))

    refused = httpx.get(f"{sandbox.url}/r/all/search/?q=x", headers={"authorization": "bearer no"})
    assert refused.status_code == 401
    assert "invalid_token" in refused.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("401", prawcore.InvalidToken),
        ("403", prawcore.Forbidden),
        ("403html", prawcore.Forbidden),
        ("429", prawcore.TooManyRequests),
        ("500", prawcore.ServerError),
        ("notjson", prawcore.BadJSON),
        ("login", prawcore.BadJSON),
    ],
)
def test_faults_look_like_reddits(start: Start, connect: Connect, kind: str, error: type[Exception]) -> None:
    """Each fault is what the real client calls it."""
    with pytest.raises(error):
        search(connect(start(faults=[f"reddit.search={kind}"])))


def test_answers_are_the_same_every_time(start: Start) -> None:
    """Two sandboxes that start at the same moment answer alike, byte for byte."""
    url, texts = "/r/all/search/?q=glow&raw_json=1", []
    for _ in range(2):
        sandbox = start(LAMPS, clock=lambda: 1_790_000_000.0)
        texts.append(httpx.get(sandbox.url + url, headers=bearer(sandbox)).text)

    assert texts[0] == texts[1]
    newest = json.loads(texts[0])["data"]["children"][0]["data"]
    assert newest["created_utc"] % 1 == 0
