"""The reader of Bluesky's stream: both envelopes, cursors, bounds, silence, and what it does after failures."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.errors import Blocked, Broken, RateLimited, SourceError, TimedOut, Unreachable
from api.sources.jetstream import CursorLost, JetstreamReader, ReadBounds, ReadCounts
from api.sources.jetstream_frames import (
    AccountChanged,
    Event,
    MalformedFrame,
    Position,
    PostDeleted,
    PostWritten,
    ServerNotice,
    StreamFault,
    read_frame,
)
from tests.loopback import HANG, Asked, Loopback, Reply
from tests.replay import DATA
from tests.sources.stream_emulators import POST, commit, did_of, stream, uri_of, v1, v2, written

RECORDED = DATA / "upstream-streams" / "bluesky"
recorded = pytest.mark.skipif(not RECORDED.is_dir(), reason=f"no recordings in {RECORDED}; set LISTENPOST_TEST_DATA")
AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@contextmanager
def serving(*replies: Reply) -> Iterator[Loopback]:
    """A server that gives these answers, the last one again and again."""
    left = list(replies)
    with Loopback(lambda asked: left.pop(0) if len(left) > 1 else left[0]) as server:
        yield server


def reader_of(*servers: Loopback, **more: Any) -> JetstreamReader:
    """A reader with little patience."""
    fields = {"first_frame": 0.3, "silence": 0.4, "back_off": 0.01} | more
    return JetstreamReader("bluesky", [server.url for server in servers], **fields)


async def events_of(
    reader: JetstreamReader, counts: ReadCounts | None = None, frames: int | None = None, **more: Any
) -> list[Event]:
    """What one connection brings until so many frames, without positions."""
    bounds = ReadBounds(frames=frames)
    async with aclosing(reader.read(more.pop("start", AT), bounds, counts=counts, **more)) as events:
        return [event async for event in events if not isinstance(event, Position)]


def posts(count: int) -> list[str]:
    """Frames of so many posts, one each second."""
    return [written(number, AT + timedelta(seconds=number), f"post {number}") for number in range(count)]


async def test_the_second_version_brings_each_kind_of_event() -> None:
    """A post, its new text, its deletion, an account that goes and comes back; others pass."""
    frames = [
        v2("info", 0, AT, name="OutdatedCursor", message="starting at seq 7"),
        written(1, AT, "hello", langs=["en"]),
        written(1, AT, "hello again", "update"),
        v2("commit", 1, AT, **commit(1, "delete")),
        v2("account", 2, AT, account={"active": False, "did": did_of(2), "status": "takendown"}),
        v2("account", 2, AT, account={"active": True, "did": did_of(2)}),
        v2("identity", 2, AT, identity={}),
        v2("somethingNew", 2, AT),
        '{"$type":"somethingNew","payload":{}}',
        v2("commit", 3, AT, **commit(3, "create") | {"collection": "app.bsky.feed.like"}),
    ]
    counts = ReadCounts()
    with serving(stream(frames)) as server:
        events = await events_of(reader_of(server), counts, len(frames))
        asked = server.asked[0]

    assert asked.path == "/xrpc/network.bsky.jetstream.subscribeEvents"
    assert asked.query == {"kinds": "account", "collections": POST, "cursor": str(int(AT.timestamp() * 1e6))}
    assert "sec-websocket-extensions" not in asked.headers
    notice, first, second, *rest = events
    assert notice == ServerNotice("OutdatedCursor", "starting at seq 7")
    assert isinstance(first, PostWritten)
    assert isinstance(second, PostWritten)
    assert (first.uri, first.at, first.record["text"], first.updated) == (uri_of(1), AT, "hello", False)
    assert (second.record["text"], second.updated) == ("hello again", True)
    assert rest == [
        PostDeleted(uri_of(1), did_of(1), AT),
        AccountChanged(did_of(2), False, AT, "takendown"),
        AccountChanged(did_of(2), True, AT),
    ]
    assert (counts.frames, counts.posts, counts.malformed, counts.ended) == (10, 2, 0, "frames")


@pytest.mark.parametrize("refusal", [Reply(404, "not found"), Reply(400, {"error": "InvalidRequest", "message": "no"})])
async def test_a_server_of_the_first_version_is_read_as_one(refusal: Reply) -> None:
    """It is asked once for the second version, and from then on in its own."""
    frames = [
        v1("commit", 1, AT, commit(1, "create", "hello")),
        v1("commit", 1, AT, commit(1, "delete")),
        v1("account", 2, AT, {"active": False, "did": did_of(2), "status": "deleted"}),
        v1("identity", 2, AT, {"did": did_of(2)}),
    ]
    with Loopback(lambda asked: stream(frames) if asked.path == "/subscribe" else refusal) as server:
        reader = reader_of(server)
        events = await events_of(reader, frames=4)
        await events_of(reader, frames=1)
        paths = [asked.path for asked in server.asked]

    assert [type(event) for event in events] == [PostWritten, PostDeleted, AccountChanged]
    assert paths == ["/xrpc/network.bsky.jetstream.subscribeEvents", "/subscribe", "/subscribe"]
    assert server.asked[1].query == {"wantedCollections": POST, "cursor": str(int(AT.timestamp() * 1e6))}


async def test_neither_version_is_what_the_second_said() -> None:
    """A 400 of the second version is reported, not that of the fallback."""
    with Loopback(lambda asked: Reply(400, {"error": "InvalidRequest"})) as server:
        with pytest.raises(Broken, match="HTTP 400: InvalidRequest"):
            await events_of(reader_of(server))
        with pytest.raises(Broken):
            await events_of(reader_of(server, version="v1"))

    assert [asked.path for asked in server.asked][-1] == "/subscribe"


HANDSHAKES = [
    (Reply(400, {"error": "CursorTooOld", "message": "cursor too old"}), CursorLost),
    (Reply(503, {"error": "ServiceUnavailable", "message": "warming up"}), Unreachable),
    (Reply(503, b"service not ready", {"content-type": "text/plain"}), Unreachable),
    (Reply(200, "<!doctype html><title>Hi</title>"), Blocked),
    (Reply(403, "<h1>Forbidden</h1>"), Blocked),
    (Reply(200, {"hello": 1}), Broken),
    (Reply(429, {"error": "RateLimitExceeded"}, {"retry-after": "7"}), RateLimited),
    (Reply(302, b"", {"location": "/elsewhere"}), Broken),
    (Reply(manner="hang up"), Unreachable),
    (HANG, TimedOut),
]


@pytest.mark.parametrize(("reply", "expected"), HANDSHAKES, ids=[f"{r.status} {r.manner}" for r, _ in HANDSHAKES])
async def test_an_answer_instead_of_a_stream_has_its_outcome(reply: Reply, expected: type[SourceError]) -> None:
    """Each failure of the handshake is one of the outcomes."""
    with serving(reply) as server, pytest.raises(SourceError) as caught:
        await events_of(reader_of(server, seconds=0.3))

    assert type(caught.value) is expected


async def test_a_server_whose_limit_is_reached_is_not_asked_before_it_said() -> None:
    """A second question asks the other server alone; where there is no other, nothing is sent."""
    limited = Reply(429, {"error": "RateLimitExceeded"}, {"retry-after": "3600"})
    with serving(limited) as full, serving(stream(posts(3))) as other:
        alone, both = reader_of(full), reader_of(full, other)
        for _ in range(2):
            with pytest.raises(RateLimited) as caught:
                await events_of(alone)
            assert len(await events_of(both, frames=3)) == 3
        asked = len(full.asked), len(other.asked)

    assert caught.value.retry_at is not None
    assert asked == (2, 2)


async def test_a_silent_server_is_unreachable_and_the_next_one_is_read() -> None:
    """Connected, but without a frame: never empty; with another server the read goes on there."""
    with serving(stream([])) as silent, serving(stream(posts(3))) as other:
        with pytest.raises(Unreachable, match="nothing came in"):
            await events_of(reader_of(silent))
        reader = reader_of(silent, other)
        events = await events_of(reader, frames=3)
        await events_of(reader, frames=3)
        asked = len(silent.asked), len(other.asked)

    assert len(events) == 3
    assert asked == (2, 2)


async def read_into(seen: list[Event], reader: JetstreamReader) -> None:
    """Add whatever a connection brings until it fails."""
    async for event in reader.read(AT):
        seen += [event]


async def test_silence_after_some_frames_is_unreachable_too() -> None:
    """What came before is handed on."""
    seen: list[Event] = []
    with serving(stream(posts(3))) as server, pytest.raises(Unreachable, match=r"nothing came for 0\.4 s"):
        await read_into(seen, reader_of(server))

    assert sum(isinstance(event, PostWritten) for event in seen) == 3


@pytest.mark.parametrize(
    ("last", "why"),
    [
        ('{"$type":"error","error":"ConsumerTooSlow","message":"reconnect"}', "ConsumerTooSlow"),
        (b"", "closed"),
    ],
    ids=["error frame", "close"],
)
async def test_a_server_that_ends_the_stream_is_unreachable(last: str | bytes, why: str) -> None:
    """Its reason is told, and what came before is handed on."""
    frames: list[str | bytes] = [*posts(2), last]
    with serving(stream(frames)) as server, pytest.raises(Unreachable, match=why):
        await events_of(reader_of(server))


LARGE = 200_000_000


@pytest.mark.parametrize(
    ("frame", "expected"),
    [(b"", Broken), (b"\x81\x7f" + LARGE.to_bytes(8, "big"), Unreachable)],
    ids=["answer", "frame"],
)
async def test_what_is_too_large_is_not_read_to_its_end(frame: bytes, expected: type[SourceError]) -> None:
    """An answer instead of a stream, and a frame: the connection ends, though the server would go on."""
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        head = await reader.readuntil(b"\r\n\r\n")
        key = next(line[19:] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key: "))
        token = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
        upgrade = b"101 X\r\nupgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-accept: " + token
        writer.write(
            b"HTTP/1.1 " + (upgrade if frame else b"200 X\r\ncontent-length: %d" % LARGE) + b"\r\n\r\n" + frame
        )
        try:
            while sent < LARGE:
                writer.write(bytes(1_000_000))
                await writer.drain()
                sent += 1_000_000
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(flood, "127.0.0.1", 0) as server:
        reader = JetstreamReader("bluesky", [f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"])
        with pytest.raises(expected):
            await events_of(reader)

    assert sent < LARGE / 4


async def test_bounds_end_a_read() -> None:
    """Bytes, frames and seconds, whichever comes first; which one it was is said."""
    frames = posts(50)
    with serving(stream(frames)) as server:
        reader = reader_of(server, silence=30)
        ends = {}
        for bounds in (ReadBounds(size=5_000), ReadBounds(frames=10), ReadBounds(seconds=0.2)):
            counts = ReadCounts()
            async with aclosing(reader.read(AT, bounds, counts=counts)) as events:
                assert [event async for event in events]
            ends[counts.ended] = counts

    assert set(ends) == {"bytes", "frames", "seconds"}
    assert 5_000 <= ends["bytes"].size <= 5_000 + len(frames[0]) + 10
    assert (ends["frames"].frames, ends["seconds"].frames) == (10, 50)


async def test_unwanted_posts_are_counted_and_not_read() -> None:
    """Only the wanted ones are events; deletions always are, and positions come all the same."""
    frames = [*posts(600), v2("commit", 600, AT, **commit(7, "delete")), written(601, AT, "mug")]
    counts = ReadCounts()
    with serving(stream(frames)) as server:
        bounds = ReadBounds(frames=len(frames))
        async with aclosing(reader_of(server).read(AT, bounds, lambda frame: b"mug" in frame, counts)) as events:
            seen = [event async for event in events]

    assert [type(event) for event in seen if not isinstance(event, Position)] == [PostDeleted, PostWritten]
    places = [event for event in seen if isinstance(event, Position)]
    assert places[0] == Position(24_000_000_000, AT, server.url)
    assert len(places) >= 4
    assert counts.posts == 601


async def test_what_is_no_event_is_counted_and_left_out() -> None:
    """Garbage between events costs nothing but itself."""
    frames: list[str | bytes] = [
        "no json", "[1]", "{}", '{"$type":"message"', b"\xff\xfe", "1e400",
        v2("commit", 1, AT, **commit(1, "create") | {"rkey": "../x"}), v2("commit", 1, AT, **commit(1, "burn")),
        v2("commit", 1, AT, **commit(1, "create") | {"operation": {}}), v2("account", 1, AT, account={"active": "no"}),
        written(5, AT, "hello"),
    ]  # fmt: skip
    counts = ReadCounts()
    with serving(stream(frames)) as server:
        events = await events_of(reader_of(server), counts, len(frames))

    assert len(events) == 1
    assert counts.malformed == len(frames) - 1


async def test_a_position_is_taken_up_again() -> None:
    """By its number at its server, by a time a little earlier at another."""
    with serving(stream(posts(1))) as server:
        place = Position(24_000_000_123, AT, server.url)
        await events_of(reader_of(server), frames=1, start=place)
        await events_of(reader_of(server), frames=1, start=Position(24, AT, "https://elsewhere.example"))
        cursors = [asked.query["cursor"] for asked in server.asked]

    assert cursors == ["24000000123", str(int((AT - timedelta(seconds=5)).timestamp() * 1e6))]


async def first(events: AsyncIterator[Event], count: int) -> list[Event]:
    """So many events, without positions."""
    seen: list[Event] = []
    async for event in events:
        if not isinstance(event, Position):
            seen.append(event)
        if len(seen) == count:
            break
    return seen


async def test_following_goes_on_after_failures_and_hands_on_once() -> None:
    """From the last position, by the next server, without what came before; edits come."""
    some, more = posts(3), posts(5)
    replies = [stream([*some, b""]), Reply(503, {}), stream([*more, written(2, AT, "edited", "update"), b""])]
    with serving(*replies) as server:
        async with asyncio.timeout(20), aclosing(reader_of(server).follow(AT)) as events:
            seen = await first(events, 6)
        cursors = [asked.query["cursor"] for asked in server.asked]

    texts = [event.record["text"] for event in seen if isinstance(event, PostWritten)]
    assert texts == [*(f"post {number}" for number in range(5)), "edited"]
    assert cursors[1:] == ["24000000002", "24000000002"]


async def test_following_from_a_lost_position_says_so_and_goes_on_by_time() -> None:
    """What lies between is lost, which is an event of its own."""
    lost = Reply(400, {"error": "CursorTooOld"})
    with serving(lost, stream(posts(1))) as server:
        place = Position(5, datetime.now(UTC) - timedelta(days=3), server.url)
        async with asyncio.timeout(20), aclosing(reader_of(server).follow(place)) as events:
            notice, post = await first(events, 2)
        cursors = [int(asked.query["cursor"]) for asked in server.asked]

    assert isinstance(notice, ServerNotice)
    assert notice.name == "CursorTooOld"
    assert isinstance(post, PostWritten)
    assert cursors[0] == 5
    assert abs(cursors[1] / 1e6 - (datetime.now(UTC) - timedelta(hours=36)).timestamp()) < 60


async def test_following_ends_where_waiting_does_not_help() -> None:
    """A wall is the caller's to see."""
    with serving(Reply(403, "<h1>Forbidden</h1>")) as server, pytest.raises(Blocked):
        await first(reader_of(server).follow(AT), 1)


KEYS = st.sampled_from(
    "$type payload seq did time time_us kind commit account operation collection rkey record active status error name"
    .split()
)  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    | st.sampled_from(["message", "error", "commit", "account", "create", "delete", POST, did_of(1), "3maaa",
                       "network.bsky.jetstream.subscribeEvents#commit", "2026-11-29T12:00:00.000000Z"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=8),
    max_leaves=20,
)  # fmt: skip


@given(
    st.binary(max_size=200) | st.dictionaries(KEYS, VALUES, max_size=8).map(lambda value: json.dumps(value).encode())
)
def test_any_bytes_are_a_frame_or_malformed(frame: bytes) -> None:
    """Nothing else comes out of the parser, and times are UTC."""
    try:
        entry = read_frame(frame)
    except (MalformedFrame, StreamFault):
        return
    assert entry.at is None or entry.at.tzinfo is UTC


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_frame_is_a_frame_or_malformed(at: int, byte: int) -> None:
    """One byte of a real form is another one."""
    frame = bytearray(written(1, AT, "hello, plaud note").encode())
    frame[at % len(frame)] = byte
    try:
        entry = read_frame(bytes(frame))
    except (MalformedFrame, StreamFault):
        return
    assert entry.event is None or isinstance(entry.event, PostWritten | ServerNotice)


@recorded
@pytest.mark.parametrize(
    ("file", "version", "written_posts", "deleted", "accounts"),
    [
        ("v1_2026.jsonl", "v1", 17, 1, 1),
        ("v1_lifecycle_built.jsonl", "v1", 5, 1, 4),
        ("v2_2026_built.jsonl", "v2", 22, 2, 5),
    ],
)
async def test_recordings_replay(file: str, version: Any, written_posts: int, deleted: int, accounts: int) -> None:
    """Every recorded event through a socket: posts with texts and times, and nothing malformed."""
    frames = (RECORDED / file).read_text("utf-8").splitlines()
    counts = ReadCounts()
    with serving(stream(frames)) as server:
        events = await events_of(reader_of(server, version=version), counts, len(frames))

    found = [event for event in events if isinstance(event, PostWritten)]
    assert len(found) == written_posts
    assert all(post.uri.startswith(f"at://{post.did}/{POST}/") and "text" in post.record for post in found)
    assert all(post.at.year == 2026 for post in found)
    assert sum(isinstance(event, PostDeleted) for event in events) == deleted
    assert sum(isinstance(event, AccountChanged) for event in events) == accounts
    assert counts.malformed == 0


@recorded
async def test_recorded_special_frames_replay() -> None:
    """A notice, unknown kinds, the same event twice, and the server's last word."""
    frames = (RECORDED / "v2_specials_built.jsonl").read_text("utf-8").splitlines()
    seen: list[Event] = []
    with serving(stream(frames)) as server, pytest.raises(Unreachable, match="ConsumerTooSlow"):
        await read_into(seen, reader_of(server))

    kinds = [type(event) for event in seen if not isinstance(event, Position)]
    assert kinds == [ServerNotice, PostWritten, PostWritten]


def _recorded_errors() -> Iterable[str]:
    return sorted(file.name for file in RECORDED.glob("v?_error_*")) if RECORDED.is_dir() else []


@recorded
@pytest.mark.parametrize("file", _recorded_errors())
async def test_recorded_refusals_replay(file: str) -> None:
    """Each refusal before the stream is an outcome with a reason in words."""
    facts = json.loads((RECORDED / "index.json").read_text("utf-8"))[file]

    def answer(asked: Asked) -> Reply:
        return Reply(facts["status"], (RECORDED / file).read_bytes(), facts["headers"])

    with Loopback(answer) as server, pytest.raises(SourceError) as caught:
        await events_of(reader_of(server, version=file[:2]))

    expected = CursorLost if "too_old" in file else Unreachable if facts["status"] == 503 else Broken
    assert type(caught.value) is expected
    assert caught.value.detail
