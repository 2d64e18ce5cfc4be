"""A reader of Jetstream, Bluesky's stream of posts: typed events from a cursor on, in either of its two envelopes.

`websockets` is imported here alone. A connection that sends nothing is unreachable, never empty. Facts about hosts,
cursors and frames: docs/sources/bluesky.md.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode, urlsplit, urlunsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidProxy, InvalidStatus, InvalidURI

from api.core.addresses import points_here
from api.core.context import count_requests
from api.core.http_limits import MAX_BYTES, no_connection
from api.errors import Broken, RateLimited, SourceError, TimedOut, Unreachable
from api.sources.item_fields import as_dict
from api.sources.jetstream_frames import (
    BEGINNINGS,
    COLLECTION,
    RECORD,
    Event,
    Frame,
    MalformedFrame,
    Position,
    PostWritten,
    ServerNotice,
    StreamFault,
    Version,
    position_of,
    read_frame,
    short_word,
)
from api.sources.json_source import reply_failure
from api.sources.web_client import Reply, tls_of

LOOK_BACK = timedelta(hours=36)
"""About how far back the servers replay: https://github.com/bluesky-social/jetstream."""
FIRST_FRAME = 5.0
"""Seconds in which a server that replays sends its first frame; a silent one is left for the next."""
SILENCE = 30.0
"""Seconds without a frame after which a connection counts as dead; the network has 40 posts a second."""
_PATHS: Mapping[Version, str] = {"v2": "/xrpc/network.bsky.jetstream.subscribeEvents", "v1": "/subscribe"}
_FILTERS: Mapping[Version, tuple[tuple[str, str], ...]] = {
    "v2": (("kinds", "commit"), ("kinds", "account"), ("collections", COLLECTION)),
    "v1": (("wantedCollections", COLLECTION),),
}
# a cursor from here on is a time in microseconds, below it is a number of the server's own
_LEAST_TIME = 10**15
# what a server calls a cursor that it cannot serve; any other 400 is its way to refuse the envelope
_TOO_OLD = "CursorTooOld"
# frames after which other tasks have their turn, and after which the place in the stream is handed on, at least
_TURN, _POSITION = 128, 256
_POSITION_SECONDS = 0.2
_LONGEST_BACK_OFF = 30.0
# the wait after which somebody should know that nothing is read
_WORTH_A_WARNING = 4.0
# how much is read twice when a server is left for another, whose numbers differ
_OVERLAP = timedelta(seconds=5)
# posts of which is known that they were handed on
_RECENT = 20_000
_log = logging.getLogger(__name__)


class CursorLost(Unreachable):
    """The server has dropped the events at this number; reading goes on from a time instead."""

    remedy = "read from a time on"


@dataclass(frozen=True, slots=True)
class ReadBounds:
    """Bounds of a read; None: no bound."""

    size: int | None = None
    """Limit in bytes over all frames, including those that were skipped."""
    seconds: float | None = None
    """Limit in seconds from the first frame on."""
    frames: int | None = None


@dataclass(slots=True)
class ReadCounts:
    """Counts of a read so far."""

    frames: int = 0
    posts: int = 0
    """Frames with a post that was written, wanted or not."""
    size: int = 0
    malformed: int = 0
    ended: str = ""
    """Why it ended, where it was not the caller: `bytes`, `seconds` or `frames`."""


class _Watch:
    """Ends a connection that has been waited for too long, without a timer for each of 20,000 frames a second."""

    def __init__(self, connection: ClientConnection, silence: float, seconds: float | None) -> None:
        self._loop, self._connection, self._silence = asyncio.get_running_loop(), connection, silence
        self.waiting_since: float | None = None
        self.until = None if seconds is None else self._loop.time() + seconds
        self.silent = self.over = False
        self._check()

    def _check(self) -> None:
        now, waiting = self._loop.time(), self.waiting_since
        self.silent = waiting is not None and now - waiting >= self._silence
        self.over = waiting is not None and self.until is not None and now >= self.until
        if self.silent or self.over:
            self._connection.transport.abort()
            return
        left = self._silence / 4 if self.until is None else max(min(self._silence / 4, self.until - now), 0.01)
        self._timer = self._loop.call_later(left, self._check)

    def stop(self) -> None:
        self._timer.cancel()


class _Connection(ClientConnection):
    """A connection that ends when an answer or frame cannot be taken: what still comes is not waited for."""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.protocol.handshake_exc is not None or self.protocol.parser_exc is not None:
            self.transport.abort()


class _OneServer(connect):
    """A connection that follows no redirect."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


def wants_everything(frame: bytes) -> bool:
    """Accept every frame; the filter of a reader that needs all posts."""
    return True


@dataclass(slots=True)
class JetstreamReader:
    """Reads one of several servers; belongs to one event loop."""

    name: str
    """Name of the source, used in errors."""
    roots: Sequence[str]
    """`https://HOST`, in the order in which they are tried."""
    version: Version | None = None
    """Version of the frames; None: v2, or v1 for a server that does not support it."""
    seconds: float = 8.0
    """Limit for opening a connection, in seconds."""
    user_agent: str = "listenpost"
    first_frame: float = FIRST_FRAME
    silence: float = SILENCE
    back_off: float = 0.25
    """Seconds before the first connection after a failure; twice as many before each further one, up to 30."""
    _versions: dict[str, Version] = field(default_factory=dict)
    _at: int = 0
    """Number of the server that answered last."""
    _paused: dict[str, datetime] = field(default_factory=dict)
    """When a server whose limit was reached may be asked again, as it said."""

    async def read(
        self,
        start: datetime | Position,
        bounds: ReadBounds = ReadBounds(),
        wanted: Callable[[bytes], bool] = wants_everything,
        counts: ReadCounts | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Events of one connection, each at least once, from a time or position on, until a bound is reached.

        A frame with a post is read as JSON only if `wanted(frame)`, a quick look at its bytes, says so; deletions and
        accounts always are. `Position` comes after each event, and with every 256th frame. What is no event is counted
        and left out.

        Raises:
            CursorLost: no server holds the position any more.
            Unreachable: no connection, or the server was silent or ended the stream.
            SourceError: what an answer instead of a stream means.
        """
        counts = ReadCounts() if counts is None else counts
        connection, root, version, frame = await self._opened(start)
        loop, watch = asyncio.get_running_loop(), _Watch(connection, self.silence, bounds.seconds)
        beginning, position, handed_on = BEGINNINGS[version], None, loop.time()
        try:
            while True:
                counts.frames += 1
                counts.size += len(frame)
                event = None
                if skipped := RECORD in frame and frame.startswith(beginning) and not wanted(frame):
                    counts.posts += 1
                else:
                    entry = _read(frame, counts)
                    event = entry.event
                    if entry.cursor is not None and entry.at is not None:
                        position = Position(entry.cursor, entry.at, root)
                now = loop.time()
                due = position is None or counts.frames % _POSITION == 0 or now - handed_on >= _POSITION_SECONDS
                if skipped and due:
                    position = position_of(frame, version, root) or position
                if event is not None:
                    yield event
                if position is not None and (due or event is not None):
                    handed_on = now
                    yield position
                if _bound_reached(bounds, counts, now, watch.until):
                    return
                if counts.frames % _TURN == 0:
                    await asyncio.sleep(0)
                watch.waiting_since = loop.time()
                frame = await connection.recv(decode=False)
                watch.waiting_since = None
        except StreamFault as fault:
            raise Unreachable(self.name, f"the stream ended: {fault.name}") from fault
        except ConnectionClosed as error:
            if watch.over and _bound_reached(bounds, counts, loop.time(), watch.until):
                return
            why = f"nothing came for {self.silence:g} s" if watch.silent else "the stream was closed"
            raise Unreachable(self.name, why) from error
        finally:
            watch.stop()
            connection.transport.abort()  # a closing handshake would wait behind all that was sent already

    async def follow(
        self, start: datetime | Position, wanted: Callable[[bytes], bool] = wants_everything
    ) -> AsyncGenerator[Event, None]:
        """Events without end: as `read`, and after a failure from the last position on, by the next server.

        A post that comes again with the same words is handed on once, if it is among the last 20,000. A position that
        no server holds any more gives a `ServerNotice`, and reading goes on from the earliest time that they hold.

        Raises:
            SourceError: a failure that does not pass by itself, such as `Blocked` or `Broken`.
        """
        place, wait = start, self.back_off
        recent: OrderedDict[tuple[str, int], None] = OrderedDict()
        while True:
            until: datetime | None = None
            try:
                async with aclosing(self.read(place, wanted=wanted)) as events:
                    async for event in events:
                        wait = self.back_off
                        if isinstance(event, Position):
                            place = event
                        elif isinstance(event, PostWritten):
                            known = event.uri, hash(str(event.record))
                            if known in recent:
                                recent.move_to_end(known)
                                continue
                            recent[known] = None
                            if len(recent) > _RECENT:
                                recent.popitem(last=False)
                        yield event
            except CursorLost as error:
                yield ServerNotice(_TOO_OLD, error.detail)
                at = place if isinstance(place, datetime) else place.at
                place = max(at, datetime.now(UTC) - LOOK_BACK)
            except (Unreachable, TimedOut, RateLimited) as error:
                level = logging.WARNING if wait >= _WORTH_A_WARNING else logging.INFO
                _log.log(level, "%s: %s; reading goes on in %.1f s", self.name, error.detail, wait)
                until = error.retry_at
                self._at = (self._at + 1) % len(self.roots)
            rest = (until - datetime.now(UTC)).total_seconds() if until is not None else 0.0
            await asyncio.sleep(max(wait, rest))
            wait = min(2 * wait, _LONGEST_BACK_OFF)

    async def _opened(self, start: datetime | Position) -> tuple[ClientConnection, str, Version, bytes]:
        """The first server that sends a frame, with that frame; raises what the last one failed with."""
        failure: SourceError | None = None
        for turn in range(len(self.roots)):
            number = (self._at + turn) % len(self.roots)
            root = self.roots[number]
            if (until := self._paused.get(root)) is not None and until > datetime.now(UTC):
                failure = failure or RateLimited(self.name, "its limit is reached, nothing sent", retry_at=until)
                continue
            try:
                connection, version = await self._connected(root, start)
                frame = await self._first(connection)
            except SourceError as error:
                if isinstance(error, RateLimited) and error.retry_at is not None:
                    self._paused[root] = error.retry_at
                failure = failure or error
                continue
            self._at = number
            return connection, root, version, frame
        raise failure or Broken(self.name, "no server is named")

    async def _first(self, connection: ClientConnection) -> bytes:
        frame: bytes | None = None
        try:
            async with asyncio.timeout(self.first_frame):
                frame = await connection.recv(decode=False)
        except (TimeoutError, ConnectionClosed) as error:
            silent = isinstance(error, TimeoutError)
            why = f"connected, but nothing came in {self.first_frame:g} s" if silent else "the stream was closed"
            raise Unreachable(self.name, why) from error
        finally:
            if frame is None:  # also when nobody waits any longer
                connection.transport.abort()
        return frame

    async def _connected(self, root: str, start: datetime | Position) -> tuple[ClientConnection, Version]:
        """A connection in the newest version that the server takes."""
        version = self.version or self._versions.get(root)
        if version is not None:
            return await self._connect(root, version, start), version
        try:
            connection = await self._connect(root, "v2", start)
        except _OtherEnvelope as refusal:
            try:
                connection = await self._connect(root, "v1", start)
            except SourceError as error:
                raise refusal.failure from error
            self._versions[root] = "v1"
            return connection, "v1"
        self._versions[root] = "v2"
        return connection, "v2"

    async def _connect(self, root: str, version: Version, start: datetime | Position) -> ClientConnection:
        url = _address(root, version, start)
        here = points_here(root)
        count_requests()
        try:
            return await _OneServer(
                url, ssl=tls_of(not here) if url.startswith("wss:") else None, proxy=None if here else True,
                compression=None, user_agent_header=self.user_agent, open_timeout=self.seconds, ping_interval=None,
                max_size=MAX_BYTES, create_connection=_Connection,
            )  # fmt: skip
        except InvalidStatus as error:
            answer = error.response
            headers = {name.lower(): value for name, value in answer.headers.raw_items()}
            reply = Reply(answer.status_code, headers, bytes(answer.body or b"").decode("utf-8", "replace"))
            raise self._refusal(reply, version) from error
        except TimeoutError as error:
            raise TimedOut(self.name, f"no connection in {self.seconds:g} s") from error
        except (InvalidProxy, ImportError) as error:  # `ImportError`: a SOCKS proxy needs another package
            raise Unreachable(self.name, "its proxy cannot be used") from error
        except InvalidURI as error:
            raise Broken(self.name, "no address of a stream") from error
        except InvalidHandshake as error:
            lost = isinstance(error.__cause__, EOFError | OSError)
            why = no_connection(error, root) if lost else "no stream in its answer"
            raise (Unreachable if lost else Broken)(self.name, why) from error
        except OSError as error:
            raise Unreachable(self.name, no_connection(error, root)) from error

    def _refusal(self, reply: Reply, version: Version) -> Exception:
        """What an answer instead of a stream means."""
        error = as_dict(reply.data).get("error")
        if reply.status == 400 and error == _TOO_OLD:
            return CursorLost(self.name, "the cursor is too old")
        word = short_word(error)
        failure = reply_failure(self.name, reply) or Broken(self.name, "no stream in its answer")
        if reply.status in {400, 404} and word:
            failure = Broken(self.name, f"HTTP {reply.status}: {word}")
        return (
            _OtherEnvelope(failure)
            if version == "v2" and self.version is None and reply.status in {400, 404}
            else failure
        )


class _OtherEnvelope(Exception):
    """A server that does not know v2 may know v1."""

    def __init__(self, failure: SourceError) -> None:
        super().__init__(failure)
        self.failure = failure


def _address(root: str, version: Version, start: datetime | Position) -> str:
    """Address of a server's stream: `wss://HOST/subscribe?wantedCollections=...&cursor=...`."""
    if isinstance(start, datetime):
        cursor = microseconds(start)
    elif start.root == root and (version == "v2" or start.cursor >= _LEAST_TIME):
        cursor = start.cursor
    else:
        cursor = microseconds(start.at - _OVERLAP)
    parts = urlsplit(root)
    scheme = "ws" if parts.scheme == "http" else "wss"
    query = urlencode([*_FILTERS[version], ("cursor", cursor)])
    return urlunsplit((scheme, parts.netloc, parts.path + _PATHS[version], query, ""))


def microseconds(moment: datetime) -> int:
    """A time as a cursor: microseconds since 1970."""
    return int(moment.timestamp() * 1e6)


def _read(frame: bytes, counts: ReadCounts) -> Frame:
    """A parsed frame, counted; a malformed one becomes an empty frame."""
    try:
        entry = read_frame(frame)
    except MalformedFrame:
        counts.malformed += 1
        return Frame()
    counts.posts += isinstance(entry.event, PostWritten)
    return entry


def _bound_reached(bounds: ReadBounds, counts: ReadCounts, now: float, until: float | None) -> bool:
    """Whether a read ends here; `counts.ended` says by which bound."""
    if bounds.size is not None and counts.size >= bounds.size:
        counts.ended = "bytes"
    elif bounds.frames is not None and counts.frames >= bounds.frames:
        counts.ended = "frames"
    elif until is not None and now >= until:
        counts.ended = "seconds"
    return bool(counts.ended)
