"""Jetstream, the AppView and an account's search: the stream in both envelopes, and posts by address or words."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar

from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from api.sandbox.corpus import BASE32, Post, Remark, bluesky_uri, handle, spelled
from api.sandbox.site_search import tokens
from api.sandbox.world import EmulatedServer, SandboxCall, SiteRefusal, decoded, reply, serves, whole

COLLECTION = "app.bsky.feed.post"
_NSID = "network.bsky.jetstream.subscribeEvents"
_V1_NAMES = ("wantedCollections", "wantedDids", "compress")
_KINDS = ("commit", "identity", "account", "sync")
LOOK_BACK = 36 * 3600.0
# numbers of events, and times in microseconds from here on
_FIRST, _LEAST_TIME = 24_000_000_000, 10**15
# seconds between two posts: of the past, and while a client listens
_EVERY, _LIVE = 60.0, 0.05
_DELETED_AFTER = 600.0
# the app password of every account, and the token of its session
_PASSWORD, _TOKEN = "sandbox", "sandbox-session"  # nosec B105 # of made-up accounts
_CHATTER = (
    "good morning, the kettle is on and the cat is not", "three trains, two of them late",
    "does anybody else count stairs", "おはようございます、今日も寒いですね", "le pain d'hier fait encore l'affaire",
    "new bike day! it squeaks", "Wer hat eigentlich die Wolken bestellt?", "reading in the bath was a mistake",
    "hoy toca sopa", "the choir was flat but we were together",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Event:
    at: float
    """Time of the event, in seconds since 1970 UTC."""
    seq: int
    did: str
    operation: str
    rkey: str = ""
    record: Mapping[str, Any] | None = None
    status: str = ""
    """Status of an account that is no longer active."""


class Bluesky(EmulatedServer):
    """Answers as Jetstream (both versions) and the AppView do."""

    upstream = "bluesky"
    fault_replies: ClassVar = {
        "too_old": ({"error": "CursorTooOld", "message": "subscribe: cursor too old"}, 400),
        "400": ({"error": "InvalidRequest", "message": "subscribe: invalid options"}, 400),
        "404": ({"error": "XRPCNotSupported", "message": "XRPCNotSupported"}, 404),
        "403html": ("<html><body><h1>403 Forbidden</h1></body></html>", 403),
        "html200": ("<!doctype html><title>One moment</title>",),
        "429": ({"error": "RateLimitExceeded", "message": "Rate Limit Exceeded"}, 429),
        "503": ({"error": "ServiceUnavailable", "message": "service not ready"}, 503),
    }

    def routes(self) -> list[BaseRoute]:  # type: ignore[override]
        """Routes of the AppView, and a socket for each version of the stream."""
        return [
            *super().routes(),
            WebSocketRoute(f"/xrpc/{_NSID}", self._subscribe),
            WebSocketRoute("/subscribe", self._subscribe),
        ]

    @cached_property
    def _posts(self) -> dict[str, tuple[Post, Remark | None]]:
        """Posts and replies by their address."""
        posts: dict[str, tuple[Post, Remark | None]] = {}
        for post in self.world.of("bluesky"):
            posts[bluesky_uri(post.id)] = (post, None)
            posts |= {bluesky_uri(remark.id): (post, remark) for remark in post.comments}
        return posts

    @serves("posts", "/xrpc/app.bsky.feed.getPosts")
    def _get_posts(self, call: SandboxCall) -> dict[str, Any]:
        uris = call.request.query_params.getlist("uris")
        if not 1 <= len(uris) <= 25:
            raise SiteRefusal({"error": "InvalidRequest", "message": "Error: uris must have 1 to 25 elements"})
        return {"posts": [self._view(uri) for uri in uris if self._is_there(uri)]}

    @serves("thread", "/xrpc/app.bsky.feed.getPostThread")
    def _get_thread(self, call: SandboxCall) -> dict[str, Any]:
        uri = call.query.get("uri", "")
        if not self._is_there(uri):
            raise SiteRefusal({"error": "NotFound", "message": f"Post not found: {uri}"})
        post, remark = self._posts[uri]
        below = [] if remark else [bluesky_uri(reply.id) for reply in post.comments]
        return {"thread": self._thread(uri) | {"replies": [
            self._thread(reply) if self._is_there(reply)
            else {"$type": "app.bsky.feed.defs#notFoundPost", "uri": reply, "notFound": True}
            for reply in below
        ]}}  # fmt: skip

    @serves("session", "/xrpc/com.atproto.server.createSession", methods=("POST",))
    def _create_session(self, call: SandboxCall) -> dict[str, Any]:
        account = decoded(call.body)
        if not isinstance(account, Mapping) or account.get("password") != _PASSWORD:
            refusal = {"error": "AuthenticationRequired", "message": "Invalid identifier or password"}
            raise SiteRefusal(refusal, 401)
        name = str(account.get("identifier"))
        return {"did": "did:plc:sandbox", "handle": name, "accessJwt": _TOKEN, "refreshJwt": "", "active": True}

    @serves("search", "/xrpc/app.bsky.feed.searchPosts")
    def _search_posts(self, call: SandboxCall) -> dict[str, Any]:
        """Posts and replies with all words, the best liked first, of any age."""
        if call.request.headers.get("authorization") != f"Bearer {_TOKEN}":
            raise SiteRefusal({"error": "AuthMissing", "message": "Authentication Required"}, 401)
        wanted, since = set(tokens(call.query.get("q", ""))), call.query.get("since", "")
        views = [self._view(uri) for uri in self._posts if self._is_there(uri)]
        fitting = [
            view for view in views
            if wanted <= set(tokens(view["record"]["text"])) and view["indexedAt"] >= since.removesuffix("Z")
        ]  # fmt: skip
        fitting.sort(key=lambda view: view["likeCount"], reverse=True)
        return {"posts": fitting[: min(call.number("limit", 25), 100)], "hitsTotal": len(fitting)}

    def _thread(self, uri: str) -> dict[str, Any]:
        return {"$type": "app.bsky.feed.defs#threadViewPost", "post": self._view(uri), "replies": []}

    def _is_there(self, uri: str) -> bool:
        if uri not in self._posts:
            return False
        post, remark = self._posts[uri]
        goes = remark.deleted if remark else post.deleted or post.bot
        return not goes or self.world.clock() < self._created(post, remark) + _DELETED_AFTER

    def _view(self, uri: str) -> dict[str, Any]:
        post, remark = self._posts[uri]
        did, likes = uri.split("/")[2], remark.votes if remark else post.votes
        return {
            "uri": uri, "cid": _cid(uri), "record": self._record(post, remark), "labels": [],
            "author": {"did": did, "handle": f"{handle(did).replace('_', '-')}.example", "labels": []},
            "likeCount": likes, "replyCount": 0 if remark else len(post.comments), "repostCount": likes // 5,
            "quoteCount": likes // 20, "bookmarkCount": 0, "indexedAt": self._stamp(self._created(post, remark)),
        }  # fmt: skip

    def _record(self, post: Post, remark: Remark | None) -> dict[str, Any]:
        text = remark.body if remark else post.body
        stamp = self._stamp(self._created(post, remark), 3)
        record: dict[str, Any] = {"$type": COLLECTION, "createdAt": stamp, "langs": ["en"], "text": text}
        if remark:
            root = {"uri": bluesky_uri(post.id), "cid": _cid(bluesky_uri(post.id))}
            record["reply"] = {"root": root, "parent": root}
        elif post.link:
            external = {"uri": post.link, "title": post.place, "description": ""}
            record["embed"] = {"$type": "app.bsky.embed.external", "external": external}
        return record

    def _created(self, post: Post, remark: Remark | None) -> float:
        return self.world.created(remark.age_days if remark else post.age_days)

    def _events(self, since: float, until: float) -> list[_Event]:
        """What happened between two times, in order: the sample's posts among everybody else's."""
        events = []
        for uri, (post, remark) in self._posts.items():
            did, rkey = uri.split("/")[2], uri.rsplit("/", 1)[1]
            at = self._created(post, remark) + 0.25
            if since <= at <= until:
                events.append(_Event(at, _number(at), did, "create", rkey, self._record(post, remark)))
            if not since <= (gone := at + _DELETED_AFTER) <= until:
                continue
            if remark.deleted if remark else post.deleted:
                events.append(_Event(gone, _number(gone), did, "delete", rkey))
            elif post.bot and not remark:
                events.append(_Event(gone, _number(gone), did, "account", status="takendown"))
        minutes = range(-int(-since // _EVERY), int(until // _EVERY) + 1)
        events += [self._chatter(minute * _EVERY, minute) for minute in minutes]
        return sorted(events, key=lambda event: event.at)

    def _chatter(self, at: float, number: int) -> _Event:
        did, rkey = f"did:plc:{spelled(BASE32, 24, 'chatter', number % 997)}", spelled(BASE32, 13, "rkey", number)
        text = _CHATTER[number % len(_CHATTER)]
        record = {"$type": COLLECTION, "createdAt": self._stamp(at, 3), "langs": ["en"], "text": text}
        return _Event(at, _number(at), did, "create", rkey, record)

    async def _subscribe(self, socket: WebSocket) -> None:
        """Serve one client until it disconnects or the sandbox stops."""
        with suppress(asyncio.CancelledError, WebSocketDisconnect):
            await self._serve(socket)

    async def _serve(self, socket: WebSocket) -> None:
        """Answer a wrong parameter with an error, otherwise stream from the client's cursor on."""
        v2 = socket.url.path != "/subscribe"
        entry = self.world.journal.start(self.upstream, "stream", "GET", socket.url.path, socket.url.query)
        kind = self.world.faults.strike(self.upstream, "stream")
        await asyncio.sleep(self.world.faults.seconds(self.upstream, "stream"))
        if kind == "hang":
            self.world.journal.end(entry, 0, kind)
            await _disconnected(socket)
            return
        refusal = self._refusal(kind, socket, v2)
        self.world.journal.end(entry, 101 if refusal is None else refusal.status_code, kind)
        if refusal is not None:
            await socket.send_denial_response(refusal)
            return
        await socket.accept()
        tasks = [asyncio.create_task(self._send(socket, v2, kind)), asyncio.create_task(_disconnected(socket))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _send(self, socket: WebSocket, v2: bool, kind: str | None) -> None:
        number = 0
        async for frame in self._frames(socket, v2, kind):
            await socket.send_text(frame)
            await asyncio.sleep(0)  # a client that has read enough is noticed
            number += 1
            if kind == "close" and number == 5:
                await socket.close(1001)
                return
            if kind == "error" and number == 5:
                await socket.send_text('{"$type":"error","error":"ConsumerTooSlow","message":"reconnect"}')
                await socket.close(1008)
                return
            if kind in {"slow", "drip"}:
                await asyncio.sleep(0.2)

    def _refusal(self, kind: str | None, socket: WebSocket, v2: bool) -> Response | None:
        """The error for a fault or a wrong parameter; None when the stream can begin."""
        query = socket.query_params
        if kind in self.fault_replies:
            return reply(*self.fault_replies[kind])
        if kind == "500":
            return PlainTextResponse("Internal Server Error", 500)
        if kind == "notjson":
            return PlainTextResponse("Please come back soon.", 200)
        if not v2:
            return None
        wrong = next((name for name in _V1_NAMES if name in query), None)
        if wrong or any(value not in _KINDS for value in query.getlist("kinds")):
            return _refused("InvalidRequest", f"subscribe: invalid options: {wrong or 'unknown kind'}")
        cursor = whole(query.get("cursor"), 0)
        if 0 < cursor < _number(self.world.clock() - LOOK_BACK):
            return _refused("CursorTooOld", f"subscribe: cursor too old: cursor {cursor} below lookback floor")
        return None

    async def _frames(self, socket: WebSocket, v2: bool, kind: str | None) -> AsyncIterator[str]:
        """Frames from the cursor on, then live ones, changed as the fault of this `kind` says."""
        now, cursor = self.world.clock(), whole(socket.query_params.get("cursor"), 0)
        floor = now - LOOK_BACK
        wished = cursor / 1e6 if cursor >= _LEAST_TIME else _time_of(cursor) if cursor else now
        if kind == "silent":
            await asyncio.Event().wait()
        if v2 and cursor >= _LEAST_TIME and wished < floor:
            info = {"$type": f"{_NSID}#info", "name": "OutdatedCursor", "message": "below retention floor"}
            yield json.dumps({"$type": "message", "payload": info})
        events = self._events(max(wished, floor), now)
        if kind == "gap":  # a quarter is missing, without a word
            events = events[: len(events) // 2] + events[3 * len(events) // 4 :]
        if kind == "disorder":
            events = [event for pair in zip(events[1::2], events[::2], strict=False) for event in pair]
        for number, event in enumerate(events):
            if kind == "garbage" and number % 3 == 0:
                yield '{"$type":"message","payload":{"seq":'
            frame = _frame(event, v2)
            yield frame
            if kind == "duplicates":
                yield frame
        while True:
            await asyncio.sleep(_LIVE)
            before, now = now, self.world.clock()
            for event in self._events(before, now):
                yield _frame(event, v2)
            yield _frame(self._chatter(now, int(now * 20)), v2)

    @staticmethod
    def _stamp(at: float, digits: int = 6) -> str:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S.%f}"[: 20 + digits] + "Z"


async def _disconnected(socket: WebSocket) -> None:
    """Wait until the client disconnects; it sends nothing else."""
    while (await socket.receive())["type"] != "websocket.disconnect":
        pass


def _number(at: float) -> int:
    """The number of an event of that time: a server counts on, so later ones have larger numbers."""
    return _FIRST + int((at - 1_700_000_000) * 1_000)


def _time_of(number: int) -> float:
    return (number - _FIRST) / 1_000 + 1_700_000_000


def _cid(uri: str) -> str:
    return f"bafyrei{spelled(BASE32, 52, 'cid', uri)}"


def _refused(error: str, message: str) -> Response:
    return JSONResponse({"error": error, "message": message}, 400)


def _frame(event: _Event, v2: bool) -> str:
    """An event in the envelope of a version, as compact as the servers write it."""
    uri = f"at://{event.did}/{COLLECTION}/{event.rkey}"
    account = event.operation == "account"
    key = {"operation": event.operation, "collection": COLLECTION, "rkey": event.rkey}
    commit: dict[str, Any] = {"rev": spelled(BASE32, 13, "rev", uri), **key}
    if event.record is not None:
        commit |= {"record": event.record, "cid": _cid(uri)}
    state = {"active": False, "did": event.did, "seq": 1, "time": Bluesky._stamp(event.at, 3), "status": event.status}
    name = "account" if account else "commit"
    if v2:
        payload = {"$type": f"{_NSID}#{name}", "seq": event.seq, "did": event.did, "time": Bluesky._stamp(event.at)}
        body: dict[str, Any] = {"$type": "message", "payload": payload | ({"account": state} if account else commit)}
    else:
        body = {"did": event.did, "time_us": int(event.at * 1e6), "kind": name, name: state if account else commit}
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
