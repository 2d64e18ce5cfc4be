"""The real google-api-python-client against a loopback YouTube: what goes wrong."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
from datetime import UTC, datetime, timedelta

import pytest

from api.core.context import request_counter
from api.core.domain import FetchPlan
from api.errors import Blocked, Broken, QuotaExhausted, RateLimited, Refused, SourceError, TimedOut, Unreachable
from api.sources import SOURCES
from api.sources.youtube import YouTubeSource
from api.sources.youtube_answers import next_reset
from tests.loopback import DRIP, HANG, Reply, packed_zeros
from tests.sources.emulators import SECRET, YouTubeEmulator, answer, found_by, on, refusal, result

PLAN = FetchPlan("mug", 5)
BOMB = packed_zeros(100)
PER_DAY = "Quota exceeded for quota metric 'Search Queries' and limit 'Search Queries per day'"


async def test_stale_token_twice_is_broken(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """Paging is restarted once, not for ever."""
    youtube_server.fault = on("pageToken", refusal(400, "invalidPageToken"))

    with pytest.raises(Broken):
        await youtube.fetch(FetchPlan("mug", 100))

    assert len(youtube_server.searches) == 4


async def test_other_refusals_stay_loud(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """A 403 that is about the key is an error, not a video without comments."""
    youtube_server.fault = on("/commentThreads", refusal(403, "accessNotConfigured"))

    with pytest.raises(Refused):
        await youtube.comments(await found_by(youtube, 2))


async def test_one_failing_list_is_noted(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """A 500 for one video's comments costs only those."""
    youtube_server.fault = on("'videoId': 'v1'", Reply(500, {}))

    read = await youtube.comments(await found_by(youtube, 3))

    assert read.notes == ("comments: 1 of 3 failed (unreachable)",)
    assert [len(item.comments) for item in read.items] == [20, 0, 20]


DETAILS = {"error": {"code": 400, "message": "x", "details": [{"reason": "API_KEY_INVALID"}]}}
LARGE = json.dumps(answer([result(1)])).encode() + b" " * 8_000_000
PACKED = Reply(200, gzip.compress(LARGE), {"content-encoding": "gzip"})
CHUNKED = Reply(200, b"%x\r\n%b\r\n0\r\n\r\n" % (len(LARGE), LARGE), {"transfer-encoding": "chunked"})
FAILURES = [
    pytest.param(Reply(200, LARGE), Broken, 1, id="above 8 MB"),
    pytest.param(PACKED, Broken, 1, id="above 8 MB unpacked"),
    pytest.param(CHUNKED, Broken, 1, id="above 8 MB without a length"),
    pytest.param(refusal(403, "quotaExceeded"), QuotaExhausted, 1, id="quotaExceeded"),
    pytest.param(refusal(429, "rateLimitExceeded", PER_DAY), QuotaExhausted, 1, id="per day"),
    pytest.param(refusal(429, "rateLimitExceeded"), RateLimited, 2, id="burst 429"),
    pytest.param(Reply(429, "<h1>Sorry</h1>"), RateLimited, 2, id="429 page"),
    pytest.param(refusal(403, "userRateLimitExceeded"), RateLimited, 2, id="burst 403"),
    pytest.param(refusal(400, "keyInvalid"), Refused, 1, id="keyInvalid"),
    pytest.param(Reply(400, DETAILS), Refused, 1, id="API_KEY_INVALID"),
    pytest.param(refusal(400, "badRequest", "API key not valid. Pass one."), Refused, 1, id="words"),
    pytest.param(refusal(403, "accessNotConfigured"), Refused, 1, id="accessNotConfigured"),
    pytest.param(refusal(403, "forbidden"), Refused, 1, id="forbidden"),
    pytest.param(refusal(401, "authError"), Refused, 1, id="401"),
    pytest.param(Reply(403, "<h1>Sorry</h1>"), Blocked, 1, id="403 page"),
    pytest.param(Reply(403, {"error": "no"}), Refused, 1, id="403 with an odd error"),
    pytest.param(Reply(403, []), Refused, 1, id="403 with a list"),
    pytest.param(Reply(403, {"error": {"errors": [None]}}), Refused, 1, id="403 odd errors"),
    pytest.param(refusal(400, "invalidParameter"), Broken, 1, id="400"),
    pytest.param(refusal(404, "notFound"), Broken, 1, id="404"),
    pytest.param(Reply(302, "", {"location": "http://127.0.0.1:1/"}), Broken, 1, id="redirect"),
    pytest.param(Reply(500, "oops"), Unreachable, 1, id="500"),
    pytest.param(Reply(503, {}), Unreachable, 1, id="503"),
    pytest.param(Reply(manner="hang up"), Unreachable, None, id="hangs up"),
    pytest.param(Reply(200, "<p>hello</p>"), Broken, 1, id="page"),
    pytest.param(Reply(200, "<form id='captcha-form'>"), Blocked, 1, id="captcha"),
    pytest.param(Reply(200, b""), Broken, 1, id="nothing"),
    pytest.param(Reply(200, b"\xff\xfe"), Broken, 1, id="no UTF-8"),
    pytest.param(Reply(200, b"[" * 100_000), Broken, 1, id="deep JSON"),
    pytest.param(Reply(200, BOMB, {"content-encoding": "gzip"}), Broken, 1, id="gzip bomb"),
    pytest.param(Reply(200, []), Broken, 1, id="a list"),
    pytest.param(Reply(200, {}), Broken, 1, id="an empty object"),
    pytest.param(Reply(200, {"items": {}}), Broken, 1, id="items no list"),
    pytest.param(Reply(200, {"kind": "youtube#other", "items": []}), Broken, 1, id="other kind"),
    pytest.param(refusal(403, "commentsDisabled"), Broken, 1, id="a video's reason"),
]


@pytest.mark.parametrize(("reply", "expected", "searches"), FAILURES)
async def test_failure_has_its_outcome(
    youtube_server: YouTubeEmulator,
    youtube: YouTubeSource,
    caplog: pytest.LogCaptureFixture,
    reply: Reply,
    expected: type[SourceError],
    searches: int | None,
) -> None:
    """Each failure is one outcome, never holds the key, costs no search in vain, is forgotten."""
    caplog.set_level(logging.DEBUG)
    SOURCES["youtube"].build(youtube_server.settings())
    youtube_server.fault = on("/", reply)

    with pytest.raises(expected) as caught:
        await youtube.fetch(PLAN)
    asked = len(youtube_server.searches)
    probe = await youtube.probe()
    youtube_server.fault = on("never", reply)

    assert type(caught.value).code == expected.code == probe.outcome
    assert SECRET not in f"{caught.value}{probe}{caplog.text}"
    assert asked == searches or searches is None
    assert len((await youtube.fetch(PLAN)).items) == 5


async def test_quota_names_its_return(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """An empty bucket says when it is full again."""
    youtube_server.fault = on("/search", refusal(403, "quotaExceeded"))

    with pytest.raises(QuotaExhausted) as caught:
        await youtube.fetch(PLAN)

    left = (caught.value.retry_at or datetime.min.replace(tzinfo=UTC)) - datetime.now(UTC)
    assert timedelta() < left <= timedelta(hours=25)


@pytest.mark.parametrize(
    ("now", "reset"),
    [
        ("2026-11-27T23:10:00+00:00", "2026-11-28T08:00:00+00:00"),
        ("2026-07-01T06:59:00+00:00", "2026-07-01T07:00:00+00:00"),
        ("2026-03-08T09:00:00+00:00", "2026-03-09T07:00:00+00:00"),
    ],
    ids=["winter", "summer", "the day the clocks change"],
)
def test_reset_is_midnight_in_california(now: str, reset: str) -> None:
    """The quota returns at midnight Pacific time, summer time included."""
    assert next_reset(datetime.fromisoformat(now)) == datetime.fromisoformat(reset)


async def test_burst_is_retried_once(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """A burst limit that passes costs one more request, which is counted."""
    youtube_server.fault = on("/search", refusal(429, "rateLimitExceeded"), times=1)

    with request_counter() as calls:
        batch = await youtube.fetch(PLAN)

    assert len(batch.items) == 5
    assert calls.made == 2


async def test_long_wait_is_not_waited(youtube_server: YouTubeEmulator, youtube: YouTubeSource) -> None:
    """A burst limit with a minute to wait is reported with its time instead."""
    reply = refusal(429, "rateLimitExceeded")
    youtube_server.fault = on("/search", Reply(429, reply.body, {"retry-after": "60"}))

    with pytest.raises(RateLimited) as caught:
        await youtube.fetch(PLAN)

    assert len(youtube_server.searches) == 1
    assert caught.value.retry_at is not None


@pytest.mark.parametrize("reply", [HANG, DRIP], ids=["silent", "dripping"])
async def test_deadline_holds(youtube_server: YouTubeEmulator, reply: Reply) -> None:
    """A silent server, and one that drips so that no socket times out, end at the deadline."""
    source = SOURCES["youtube"].build(youtube_server.settings(source_timeout=3))
    youtube_server.fault = on("/search", reply)

    async with asyncio.timeout(60):
        with pytest.raises(TimedOut):
            await source.fetch(PLAN)
    youtube_server.fault = on("never", reply)

    assert len((await source.fetch(PLAN)).items) == 5, "the next call has a fresh client"
    await source.aclose()


async def test_nobody_listening_is_unreachable(youtube_server: YouTubeEmulator) -> None:
    """A refused connection is one failed request."""
    source = SOURCES["youtube"].build(youtube_server.settings(YOUTUBE_URL="http://127.0.0.1:1/"))

    with request_counter() as calls, pytest.raises(Unreachable):
        await source.fetch(PLAN)
    await source.aclose()

    assert calls.made == 1
