"""The real PRAW against a loopback Reddit: what goes wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from api.core.context import request_counter
from api.core.domain import FetchPlan
from api.core.ports import Source
from api.errors import Blocked, Broken, RateLimited, Refused, SourceError, TimedOut, Unreachable
from api.sources import SOURCES
from tests.loopback import DRIP, HANG, Reply
from tests.sources.emulators import SECRET, RedditEmulator, comment, found_by, listing, on, post

PLAN = FetchPlan("mug", 5)
PAGE_403 = Reply(403, "<html><h1>whoa there, pardner</h1></html>")


async def test_revoked_token_is_replaced_once(reddit_server: RedditEmulator, reddit: Source) -> None:
    """A token that stops working costs one 401, one new token and one more try."""
    found = await found_by(reddit, 1)
    reddit_server.token = "token-2"

    read = await reddit.comments(found)

    assert len(read.items[0].comments) == 20
    assert [path.split("/")[-1] or path for path in reddit_server.paths][2:] == [
        "/comments/p0/", "access_token", "/comments/p0/",
    ]  # fmt: skip


async def test_token_that_is_always_rejected_is_refused(reddit_server: RedditEmulator, reddit: Source) -> None:
    """After the second 401 the key is the trouble, with or without the header that explains it."""
    reddit_server.fault = on("/search", Reply(401, {"error": 401}))

    with pytest.raises(Refused):
        await reddit.fetch(PLAN)

    assert len(reddit_server.searches) == 2


async def test_closed_connection_is_tried_again(reddit_server: RedditEmulator, reddit: Source) -> None:
    """A server that hangs up on a kept connection is asked once more, and both are counted."""
    await found_by(reddit, 1)
    reddit_server.fault = on("/comments/", Reply(manner="hang up"), times=1)

    with request_counter() as calls:
        read = await reddit.comments(await found_by(reddit, 1))

    assert len(read.items[0].comments) == 20
    assert calls.made == 2


LARGE = json.dumps(listing([post(1)])).encode() + b" " * 8_000_000
PACKED = Reply(200, gzip.compress(LARGE), {"content-encoding": "gzip"})
CHUNKED = Reply(200, b"%x\r\n%b\r\n0\r\n\r\n" % (len(LARGE), LARGE), {"transfer-encoding": "chunked"})
FAILURES = [
    pytest.param("/search", Reply(200, LARGE), Broken, id="above 8 MB"),
    pytest.param("/search", PACKED, Broken, id="above 8 MB unpacked"),
    pytest.param("/search", CHUNKED, Broken, id="above 8 MB without a length"),
    pytest.param("/search", Reply(403, {"error": 403}), Refused, id="403 JSON"),
    pytest.param("/search", Reply(403, {"reason": "private"}), Refused, id="private"),
    pytest.param("/search", PAGE_403, Blocked, id="403 page"),
    pytest.param("access_token", PAGE_403, Blocked, id="403 page for the token"),
    pytest.param("/search", Reply(200, "<form action='/login'>"), Blocked, id="login page"),
    pytest.param("/search", Reply(200, "<p>hello</p>"), Broken, id="some page"),
    pytest.param("/search", Reply(302, "", {"location": "https://r.test/login?d=1"}), Blocked, id="to login"),
    pytest.param("/search", Reply(302, "", {"location": "/subreddits/search"}), Broken, id="redirect"),
    pytest.param("access_token", Reply(302, "", {"location": "/login"}), Blocked, id="token to login"),
    pytest.param("/search", Reply(404, {"error": 404}), Broken, id="404"),
    pytest.param("/search", Reply(400, {"fields": ["q"]}), Broken, id="400"),
    pytest.param("/search", Reply(500, {}), Unreachable, id="500"),
    pytest.param("/search", Reply(503, "<h1>503</h1>"), Unreachable, id="503 page"),
    pytest.param("/search", Reply(manner="hang up"), Unreachable, id="hangs up"),
    pytest.param("/search", Reply(200, b"not json"), Broken, id="not JSON"),
    pytest.param("/search", Reply(200, b"[" * 100_000), Broken, id="deep JSON"),
    pytest.param("/search", Reply(200, []), Broken, id="a list"),
    pytest.param("/search", Reply(200, b"null"), Broken, id="null"),
    pytest.param("/search", Reply(200, {"kind": "Listing", "data": None}), Broken, id="no data"),
    pytest.param("/search", Reply(body=listing([comment(1)])), Broken, id="comments"),
    pytest.param("access_token", Reply(401, {"error": 401}), Refused, id="wrong secret"),
    pytest.param("access_token", Reply(200, {"error": "invalid_grant"}), Refused, id="no grant"),
    pytest.param("access_token", Reply(200, b"hello"), Broken, id="token not JSON"),
    pytest.param("access_token", Reply(200, {"scope": "*"}), Broken, id="no token"),
    pytest.param("access_token", Reply(200, b"7"), Broken, id="token a number"),
    pytest.param(
        "access_token",
        Reply(200, {"access_token": "a\0b", "expires_in": 3600, "scope": "*"}),
        Broken,
        id="token for no header",
    ),
    pytest.param("access_token", Reply(503, {}), Unreachable, id="token 503"),
    pytest.param("access_token", Reply(429, {"error": 429}), RateLimited, id="token 429"),
]


@pytest.mark.parametrize(("part", "reply", "expected"), FAILURES)
async def test_failure_has_its_outcome(
    reddit_server: RedditEmulator,
    reddit: Source,
    part: str,
    reply: Reply,
    expected: type[SourceError],
) -> None:
    """Each failure becomes one outcome, at once, without the secret, and is forgotten."""
    reddit_server.fault = on(part, reply)

    with pytest.raises(expected) as caught:
        await reddit.fetch(PLAN)
    asked = sum(part in path for path in reddit_server.paths)
    probe = await reddit.probe()
    reddit_server.fault = on("never", reply)

    assert caught.value.code == expected.code == probe.outcome
    assert SECRET not in str(caught.value)
    assert asked <= 2, "prawcore would have slept and asked a third time"
    assert len((await reddit.fetch(PLAN)).items) == 5


WAITS = [
    pytest.param({"retry-after": "7"}, 7, id="seconds"),
    pytest.param({"retry-after": "7.5"}, 7.5, id="fraction"),
    pytest.param({"x-ratelimit-reset": "42"}, 42, id="only the reset"),
    pytest.param({"retry-after": "soon"}, None, id="words"),
    pytest.param({}, None, id="absent"),
    pytest.param({"retry-after": "date"}, 90, id="date"),
]


@pytest.mark.parametrize(("headers", "seconds"), WAITS)
async def test_rate_limit_names_the_wait(
    reddit_server: RedditEmulator,
    reddit: Source,
    headers: dict[str, str],
    seconds: float | None,
) -> None:
    """A 429 says until when, in whichever way Reddit said it."""
    now = datetime.now(UTC)
    date = format_datetime(now + timedelta(seconds=90), usegmt=True)
    headers = {name: date if value == "date" else value for name, value in headers.items()}
    reddit_server.fault = on("/search", Reply(429, "<h1>Too Many Requests</h1>", headers))

    with pytest.raises(RateLimited) as caught:
        await reddit.fetch(PLAN)

    if seconds is None:
        assert caught.value.retry_at is None
    else:
        assert caught.value.retry_at is not None
        assert abs((caught.value.retry_at - now).total_seconds() - seconds) < 3
    assert len(reddit_server.searches) == 1


async def test_empty_allowance_refuses_instead_of_sleeping(reddit_server: RedditEmulator, reddit: Source) -> None:
    """With nothing left of the window the next call is refused, unasked, with the time."""
    reddit_server.limits = {
        "x-ratelimit-remaining": "0.0", "x-ratelimit-used": "100.5", "x-ratelimit-reset": "300.5",
    }  # fmt: skip
    found = await found_by(reddit, 3)
    asked = len(reddit_server.server.asked)

    with pytest.raises(RateLimited) as caught:
        await reddit.comments(found)

    assert caught.value.retry_at is not None
    assert 290 < (caught.value.retry_at - datetime.now(UTC)).total_seconds() < 302
    assert len(reddit_server.server.asked) == asked


async def test_pace_is_not_slept_for(reddit_server: RedditEmulator, reddit: Source) -> None:
    """Being ahead of Reddit's pace, for which prawcore sleeps up to ten seconds, costs nothing."""
    reddit_server.limits = {
        "x-ratelimit-remaining": "2.0", "x-ratelimit-used": "98", "x-ratelimit-reset": "590",
    }  # fmt: skip
    found = await found_by(reddit, 2)
    before = len(reddit_server.server.asked)

    async with asyncio.timeout(120):
        await reddit.comments(found)

    assert len(reddit_server.server.asked) > before


@pytest.mark.parametrize("part", ["/search", "access_token"])
@pytest.mark.parametrize("reply", [HANG, DRIP], ids=["silent", "dripping"])
async def test_deadline_holds(reddit_server: RedditEmulator, part: str, reply: Reply) -> None:
    """A silent server, and one that drips so that no socket times out, end at the deadline."""
    source = SOURCES["reddit"].build(reddit_server.settings(source_timeout=0.3))
    reddit_server.fault = on(part, reply)

    async with asyncio.timeout(60):
        with pytest.raises(TimedOut):
            await source.fetch(PLAN)
    reddit_server.fault = on("never", reply)

    assert len((await source.fetch(PLAN)).items) == 5, "the next call has a fresh client"
    await source.aclose()


async def test_nobody_listening_is_unreachable(reddit_server: RedditEmulator) -> None:
    """A refused connection is one failed request, not three."""
    source = SOURCES["reddit"].build(reddit_server.settings(REDDIT_URL="http://127.0.0.1:1"))

    with request_counter() as calls, pytest.raises(Unreachable):
        await source.fetch(PLAN)
    await source.aclose()

    assert calls.made == 1


async def test_one_failure_of_the_server_costs_nobody_the_answer(reddit_server: RedditEmulator, reddit: Source) -> None:
    """Everybody who waits for the page gets it; a second failure in a row is the answer."""
    reddit_server.fault = on("/search", Reply(500, {}), times=1)
    batches = await asyncio.gather(*(reddit.fetch(PLAN) for _ in range(3)))

    assert [len(batch.items) for batch in batches] == [5, 5, 5]
    assert sum("/search" in path for path in reddit_server.paths) == 2


async def test_one_failing_thread_is_noted(reddit_server: RedditEmulator, reddit: Source) -> None:
    """One of six threads fails: the item stays, and both it and the whole say so."""
    found = await found_by(reddit, 6)
    reddit_server.fault = on("/comments/p3/", Reply(500, {}))

    read = await reddit.comments(found)

    assert read.notes == ("comments: 1 of 6 failed (unreachable)",)
    assert [len(item.comments) for item in read.items] == [20, 20, 20, 0, 20, 20]
    assert read.items[3].notes == ("comments could not be read: HTTP 500",)


async def test_block_stops_the_reading(reddit_server: RedditEmulator, reddit: Source) -> None:
    """A block page for comments is the whole source's, and not asked for eleven more times."""
    found = await found_by(reddit, 12)
    reddit_server.fault = on("/comments/", PAGE_403)

    with pytest.raises(Blocked):
        await reddit.comments(found)

    assert sum("/comments/" in path for path in reddit_server.paths) <= 4


async def test_dead_comments_stop_early(reddit_server: RedditEmulator) -> None:
    """When the first four threads stay silent, the other twenty are not waited for."""
    source = SOURCES["reddit"].build(reddit_server.settings(source_timeout=0.3))
    found = await found_by(source, 24)
    reddit_server.fault = on("/comments/", HANG)

    with pytest.raises(TimedOut):
        await source.comments(found)
    await source.aclose()

    assert sum("/comments/" in path for path in reddit_server.paths) <= 8


@pytest.mark.parametrize("kind", [None, ["t1"], "t7"])
async def test_a_thread_of_unknown_things_is_broken(
    reddit_server: RedditEmulator, reddit: Source, kind: object
) -> None:
    """It is no thread without comments."""
    items = await found_by(reddit, 2)
    thread = [listing([]), listing([{"kind": kind, "data": comment(1)["data"]}])]
    reddit_server.fault = on("/comments/p1/", Reply(body=thread))

    read = await reddit.comments(items)

    assert read.notes == ("comments: 1 of 2 failed (its answer was malformed)",)
