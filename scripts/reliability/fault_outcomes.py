"""What can go wrong between two machines, and which outcome must follow from it.

An outcome is one that `docs/errors.md` names: of a source, or the reason of a model's step. `ok`
means that nothing is lost, `traces` that the log warns about lost traces. The rules behind them:

- No answer is `unreachable`; one that does not come in time is `timed_out` (`timeout`).
- What cannot be read is `broken` (`malformed`); a web page that lets nobody in is `blocked`.
- Single values that are impossible are left out, and the rest counts.
- A status means the same, whoever answers; no redirect to another host is followed.
- A file, a document or a stream gives what could be read of it, and fails when that is nothing.
- Langfuse says in its status whether it took the traces; the body is not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import broken_answers
import broken_frames
from fault_proxy import Breaker
from fault_run import Call, ConnectionMode, Fault, UpstreamKind

# comments on Lemmy and forums are asked by the lines that ask GitHub, which meet all faults
FEW = frozenset(
    {
        "hang", "reset before headers", "403 page", "429 without Retry-After", "500",
        "HTML with 200", "empty body", "cut JSON", "wrong types",
    }
)  # fmt: skip
SEARCH = FEW | {
    "refused", "kept connection dies", "204", "an empty object", "nulls", "captcha", "307 to another host", "403",
    "gzip bomb", "wrong charset", "every key twice", "a next page for ever",
}  # fmt: skip
"""What the search for a game and the reviews meet: other places without a key are asked by the same lines."""
NEWEST = FEW - {"cut JSON", "wrong types"} | {
    "refused", "plain on a TLS port", "kept connection dies", "204", "not JSON", "an empty object", "captcha",
    "307 to another host", "404", "429 Retry-After in seconds", "gzip bomb", "200 MB", "wrong charset",
}  # fmt: skip
"""What the feed meets that names the newest list: it holds one date, and is asked by the lines that ask for lists."""
XML = frozenset(
    {
        "hang", "cut JSON", "length too long", "empty body", "HTML with 200", "captcha", "wrong charset",
        "invalid UTF-8", "500",
    }
)  # fmt: skip
"""What a feed in XML meets: it is parsed in a process of its own, and fetched as one in JSON is."""
CALLS = (
    Call("reddit token", "api", first=True),
    Call("reddit search", "api"),
    Call("reddit comments", "api"),
    Call("youtube search", "api", first=True),
    Call("youtube details", "api"),
    Call("youtube comments", "api"),
    Call("hackernews search", "open", first=True),
    Call("hackernews comments", "open"),
    Call("stackexchange search", "open", first=True),
    Call("stackexchange comments", "open"),
    Call("github search", "open", first=True),
    Call("github comments", "open"),
    Call("lemmy search", "open", first=True),
    Call("lemmy comments", "open", only_faults=FEW),
    Call("discourse search", "open", first=True),
    Call("discourse comments", "open", only_faults=FEW),
    Call("steam search", "open", first=True, only_faults=SEARCH - {"a next page for ever"}),
    Call("steam reviews", "open", only_faults=SEARCH - {"refused"}),
    Call("news list", "lists", first=True, only_faults=NEWEST),
    Call("news file", "lists"),
    Call("feeds document", "feed", first=True),
    Call("feeds xml", "feed", only_faults=XML),
    Call("bluesky stream", "stream", first=True),
    Call("bluesky comments", "open", only_faults=FEW),
    Call("amazon search", "page", first=True),
    Call("amazon comments", "page"),
    Call("paid search", "paid", first=True),
    Call("paid comments", "paid"),
    Call("model gate", "model", first=True),
    Call("model grades", "model"),
    Call("model support", "model"),
    Call("model rewrite", "model"),
    Call("model report", "model"),
    Call("langfuse traces", "traces", first=True),
    Call("database store", "database", first=True),
)


def fault(
    name: str,
    breaker: Breaker,
    source: str,
    model: str,
    *,
    free: str | None = None,
    lists: str | None = None,
    feed: str | None = None,
    stream: str | None = None,
    page: str | None = None,
    paid: str | None = None,
    traces: str = "traces",
    database: str | None = None,
    mode: ConnectionMode = "answer",
    waits: bool = False,
    parts: tuple[str, ...] = (),
) -> Fault:
    """A row of the table; `free`, `page` and `paid` are as the others where nothing is said.

    `free` is a place that needs no key, as `lists`, `feed` and `stream` do; an empty text: they have no such fault.
    """
    free = free or source
    outcomes: Mapping[UpstreamKind, str | None] = {
        "api": source, "open": free, "page": page or source, "paid": paid or source,
        "lists": free if lists is None else lists, "feed": free if feed is None else feed,
        "stream": free if stream is None else stream, "model": model, "traces": traces, "database": database,
    }  # fmt: skip
    expected = {kind: outcome for kind, outcome in outcomes.items() if outcome}
    return Fault(name, breaker, expected, mode, waits, parts)


def streamed(name: str, breaker: Breaker, outcome: str, *, waits: bool = False) -> Fault:
    """A row about a WebSocket that is open."""
    return Fault(name, breaker, {"stream": outcome}, waits=waits)


def without_a(text: bytes) -> bytes:
    """The text with a byte in place of each `a` that no character of UTF-8 has."""
    return text.replace(b"a", b"\xff")


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n"
JSON_START = b'{"kind": "Listing", "data": {'
LOST = "store_unavailable"
UTF16 = {"content-type": "application/json; charset=utf-16"}
NOT_OPENED: Mapping[str, Breaker] = {
    "a stream without a frame": broken_frames.sent(b""),
    "a frame byte by byte": broken_frames.dripping,
    "a message whose parts never end": broken_frames.sent(
        broken_frames.frame(b"{", flags=broken_frames.PART),
        again=broken_frames.frame(b" ", 0, broken_frames.PART),
        pause=0.05,
    ),
    "pings for ever": broken_frames.sent(b"", again=broken_frames.frame(b"", broken_frames.PING), pause=0.05),
}
"""Streams of which the first frame does not come in time."""
CLOSED: Mapping[str, Breaker] = {
    "a stream that closes at once": broken_frames.sent(
        broken_frames.frame(broken_frames.LEFT, broken_frames.CLOSE), "hang up"
    ),
    "a stream that closes after its first frame": broken_frames.sent(
        broken_frames.frame(broken_frames.LEFT, broken_frames.CLOSE), "hang up", good=1
    ),
    "a stream that is reset after its first frame": broken_frames.sent(b"", "reset", good=1),
    "a stream that is reset within a frame": broken_frames.sent(broken_frames.frame(b"{", size=500), "reset", good=1),
    "a last word of the server": broken_frames.sent(broken_frames.frame(broken_frames.LAST_WORD)),
    "a frame of 200 MB": broken_frames.flood,
    "a masked frame": broken_frames.sent(broken_frames.frame(b"1234{}", mask=broken_frames.MASKED)),
    "a compressed frame": broken_frames.sent(
        broken_frames.frame(b"{}", flags=broken_frames.WHOLE | broken_frames.COMPRESSED)
    ),
    "a frame of an unknown kind": broken_frames.sent(broken_frames.frame(b"{}", 0x3)),
    "no frames": broken_frames.sent(b"HTTP/1.1 200 OK\r\n\r\n"),
}
"""Streams that end, or that hold what no WebSocket may."""
NO_EVENTS: Mapping[str, Callable[[bytes], bytes]] = {
    "frames that are not JSON": lambda content: b"One moment",
    "frames of empty objects": lambda content: b"{}",
    "frames of wrong types": broken_answers.with_values(lambda value: [value]),
    "frames of nulls": broken_answers.with_values(lambda value: None),
    "frames with NULs": broken_answers.with_values(broken_answers.with_nul),
    "frames with numbers of 1e400": lambda content: broken_answers.NUMBER.sub(b"1e400", content),
    "frames of invalid UTF-8": without_a,
    "deeply nested frames": lambda content: b"[" * 200_000,
}
"""Changes after which no frame is an event."""
RETRIES: Mapping[str, dict[str, object]] = {
    "without Retry-After": {},
    "Retry-After in seconds": {"retry-after": 7200},
    "Retry-After 1.5": {"retry-after": 1.5},
    "Retry-After as a date": {"retry-after": "Fri, 31 Dec 2100 23:59:59 GMT"},
    "Retry-After as an epoch": {"retry-after": 4_000_000_000},
    "Retry-After absurd": {"retry-after": "9" * 400},
    "Retry-After overflowing": {"retry-after": f"Fri, 31 Dec 2100 23:59:59 +{'9' * 20}"},
    "Retry-After negative": {"retry-after": -5},
    "Retry-After NaN": {"retry-after": "nan"},
}
NO_ANSWER = ("unreachable", "unreachable")
NOT_READ = ("broken", "malformed")
FAILED = ("unreachable", "http_error")
WRONG = ("broken", "http_error")

FAULTS = (
    fault("refused", broken_answers.hang, *NO_ANSWER, mode="closed", database=LOST),
    fault("hang", broken_answers.hang, "timed_out", "timeout", waits=True, database=LOST),
    fault("reset before headers", broken_answers.cut(b""), *NO_ANSWER, database=LOST),
    fault("hung up before headers", broken_answers.cut(b"", reset=False), *NO_ANSWER, database=LOST),
    fault(
        "reset after headers",
        broken_answers.cut(HEAD + b"\r\n"),
        *NO_ANSWER,
        database=LOST,
        traces="ok",
    ),
    fault("reset mid body", broken_answers.cut(HEAD + b"\r\n" + JSON_START), *NO_ANSWER, traces="ok"),
    fault(
        "hung up mid body",
        broken_answers.cut(HEAD + b"\r\n{", reset=False),
        *NO_ANSWER,
        traces="ok",
    ),
    fault(
        "dripping body",
        broken_answers.dripping(HEAD + b"\r\n", b" "),
        "timed_out",
        "timeout",
        waits=True,
        traces="ok",
    ),
    fault(
        "slow headers",
        broken_answers.dripping(HEAD, b"x: 1\r\n"),
        "timed_out",
        "timeout",
        waits=True,
        database=LOST,
    ),
    fault("too many headers", broken_answers.cut(HEAD + b"x: y\r\n" * 50_000 + b"\r\n"), *NO_ANSWER, stream="broken"),
    fault("one endless header", broken_answers.cut(HEAD + b"x: " + b"y" * 2_000_000), *NO_ANSWER, stream="broken"),
    fault(
        "no HTTP",
        broken_answers.cut(b"SSH-2.0-OpenSSH_9.6\r\n", reset=False),
        *NO_ANSWER,
        database=LOST,
        stream="broken",
    ),
    fault(
        "TLS on a plain port",
        broken_answers.cut(b"\x15\x03\x03\x00\x02\x02\x46"),
        *NO_ANSWER,
        database=LOST,
    ),
    fault("plain on a TLS port", broken_answers.hang, *NO_ANSWER, mode="tls"),
    fault("kept connection dies", broken_answers.stale, "ok", "ok", traces="ok", mode="warm", feed="", stream=""),
    fault("empty body", broken_answers.content(b""), *NOT_READ, traces="ok"),
    fault("204", broken_answers.content(b"", code=204), *NOT_READ, traces="ok"),
    fault(
        "cut JSON",
        broken_answers.changed(lambda body: body[: len(body) // 2]),
        *NOT_READ,
        page="ok",
        traces="ok",
        lists="ok|broken",
        feed="ok|broken",
        stream="",
    ),
    fault("length too short", broken_answers.short, *NOT_READ, page="ok", traces="ok", lists="ok|broken", stream=""),
    fault("length too long", broken_answers.long, *NO_ANSWER, traces="ok", stream=""),
    fault("not JSON", broken_answers.content(b"One moment"), *NOT_READ, traces="ok"),
    fault("an empty object", broken_answers.content(b"{}"), *NOT_READ, traces="ok"),
    fault("wrong types", broken_answers.values(lambda value: [value]), *NOT_READ, page="ok", traces="ok", stream=""),
    fault("nulls", broken_answers.values(lambda value: None), *NOT_READ, page="ok", traces="ok", stream=""),
    fault(
        "HTML with 200",
        broken_answers.page("<html><h1>One moment</h1></html>"),
        *NOT_READ,
        free="blocked",
        traces="ok",
        feed="broken",
    ),
    fault("captcha", broken_answers.page(broken_answers.CAPTCHA), "blocked", "malformed", traces="ok"),
    fault(
        "301 to another host",
        broken_answers.redirect(301, other_host=True),
        "broken",
        "unreachable",
    ),
    fault(
        "307 to another host",
        broken_answers.redirect(307, other_host=True),
        "broken",
        "unreachable",
    ),
    fault(
        "307 in circles",
        broken_answers.redirect(307, other_host=False),
        "broken",
        "unreachable",
    ),
    # Reddit answers so to a wrong id or secret: refused
    fault(
        "400",
        broken_answers.status(400),
        "broken|refused",
        "http_error",
        free="broken",
        page="broken",
        paid="broken",
    ),
    fault("401", broken_answers.status(401), "refused", "unauthorized", page="blocked"),
    fault(
        "402",
        broken_answers.status(402),
        "broken",
        "quota",
        free="quota_exhausted",
        page="quota_exhausted",
        paid="quota_exhausted",
    ),
    # Hacker News says so that it is asked too often
    fault(
        "403",
        broken_answers.status(403),
        "refused",
        "unauthorized",
        free="refused|rate_limited",
        page="blocked",
        feed="blocked",
    ),
    fault("403 page", broken_answers.status(403, page=True), "blocked", "unauthorized"),
    fault("404", broken_answers.status(404), *WRONG, lists="broken|unreachable"),
    fault("408", broken_answers.status(408), *FAILED),
    fault("409", broken_answers.status(409), *WRONG),
    fault("413", broken_answers.status(413), *WRONG),
    fault("422", broken_answers.status(422), *WRONG),
    *(
        fault(
            f"429 {name}",
            broken_answers.status(429, wait),
            "rate_limited",
            "rate_limited",
            page="blocked",
            parts=("search", "list", "document", "stream", "gate", "report", "traces") if wait else (),
        )
        for name, wait in RETRIES.items()
    ),
    fault(
        "429 page",
        broken_answers.status(429, page=True),
        "rate_limited",
        "rate_limited",
        page="blocked",
        paid="blocked",
    ),
    fault("500", broken_answers.status(500), *FAILED),
    fault("502 page", broken_answers.status(502, page=True), *FAILED),
    # a forum says so of too many searches
    fault("503", broken_answers.status(503), *FAILED, free="unreachable|rate_limited"),
    fault("504", broken_answers.status(504), *FAILED),
    fault(
        "bad gzip",
        broken_answers.content(b"\x1f\x8bno", {"content-encoding": "gzip"}),
        *NOT_READ,
        traces="ok",
    ),
    fault("gzip bomb", broken_answers.bomb, *NOT_READ, traces="ok"),
    fault("200 MB", broken_answers.flood, *NOT_READ, traces="ok"),
    fault("wrong charset", broken_answers.changed(bytes, UTF16), "ok|broken", "ok", traces="ok", stream=""),
    fault(
        "invalid UTF-8",
        broken_answers.changed(broken_answers.unpacked(without_a)),
        "ok|broken",
        "malformed",
        traces="ok",
        feed="empty",
        stream="",
    ),
    fault("NULs", broken_answers.values(broken_answers.with_nul), "ok|broken", "ok|malformed", traces="ok", stream=""),
    fault("deep nesting", broken_answers.content(b"[" * 200_000), *NOT_READ, traces="ok"),
    fault("numbers of 1e400", broken_answers.numbers(b"1e400"), "ok|broken", "ok|malformed", traces="ok", stream=""),
    fault("NaN for numbers", broken_answers.numbers(b"NaN"), "ok|broken", "ok|malformed", traces="ok", stream=""),
    fault(
        "numbers of 400 digits", broken_answers.numbers(b"9" * 400), "ok|broken", "ok|malformed", traces="ok", stream=""
    ),
    fault(
        "numbers of 9,000 digits",
        broken_answers.numbers(b"9" * 9000),
        "ok|broken",
        "ok|malformed",
        traces="ok",
        stream="",
    ),
    fault("every key twice", broken_answers.changed(broken_answers.doubled), "ok", "ok", traces="ok", stream=""),
    fault("a next page for ever", broken_answers.endless, "ok", "", parts=("search", "reviews")),
    *(streamed(name, breaker, "unreachable", waits=True) for name, breaker in NOT_OPENED.items()),
    *(streamed(name, breaker, "unreachable") for name, breaker in CLOSED.items()),
    *(streamed(name, broken_frames.changed(change), "broken") for name, change in NO_EVENTS.items()),
    # what could be read until the time was over is the answer, and a note says how far that was
    streamed("a stream that stalls", broken_frames.sent(b"", good=1), "ok|empty"),
    streamed("one frame for ever", broken_frames.repeated, "ok|empty"),
    streamed("frames with every key twice", broken_frames.changed(broken_answers.doubled), "ok"),
)
