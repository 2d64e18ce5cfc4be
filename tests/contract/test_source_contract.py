"""One suite over every source: what a caller may rely on, whoever is asked.

A source joins by a line in `EMULATORS`: a loopback upstream with things to find, and faults.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from api.core.context import request_counter
from api.core.domain import FetchPlan, Outcome, Question, Verdict
from api.core.items import Gated, Gathered, Item
from api.core.ports import SilentObserver, Source
from api.errors import Blocked, Broken, NotConfigured, RateLimited, SourceError, TimedOut, Unreachable
from api.pipeline.gate.excerpt import COMMENT_PLACE
from api.pipeline.gate.refetch import RefetchPolicy, gather
from api.settings import SourceSettings
from api.sources import SOURCES
from tests.forked import CODE, Forked
from tests.loopback import DRIP, HANG, Loopback, Reply, packed_zeros
from tests.sources.emulators import SECRET, AmazonEmulator, Emulator, RedditEmulator, YouTubeEmulator, found_by, on
from tests.sources.feed_emulator import FeedsEmulator
from tests.sources.issue_emulators import GitHubEmulator, StackExchangeEmulator
from tests.sources.json_emulators import (
    DiscourseEmulator,
    HackerNewsEmulator,
    Lemmy1Emulator,
    LemmyEmulator,
    NewsEmulator,
    SteamEmulator,
)
from tests.sources.stream_emulators import BlueskyEmulator

EMULATORS: tuple[type[Emulator], ...] = (
    RedditEmulator,
    YouTubeEmulator,
    AmazonEmulator,
    HackerNewsEmulator,
    LemmyEmulator,
    Lemmy1Emulator,
    DiscourseEmulator,
    StackExchangeEmulator,
    GitHubEmulator,
    FeedsEmulator,
    BlueskyEmulator,
    SteamEmulator,
    NewsEmulator,
)
NOT_SEARCHED = "a stream is read once for all that it holds, and knows no query"
UNTITLED = {"bluesky"}
PLAN = FetchPlan("mug", 5)
CLIENTS = (
    "praw", "prawcore", "requests", "googleapiclient", "httplib2", "httpx", "selectolax", "feedparser", "websockets",
)  # fmt: skip


@pytest.fixture(params=EMULATORS, ids=lambda kind: kind.name)
def upstream(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """One upstream on loopback."""
    with request.param() as server:
        yield server


@pytest.fixture
async def source(upstream: Emulator) -> AsyncIterator[Source]:
    """The real source that asks it."""
    made = upstream.build()
    yield made
    await made.aclose()


@pytest.fixture
def comments_asked(upstream: Emulator) -> None:
    """Leave a source out whose comments come with what was found, or which has none."""
    if not upstream.comments_path:
        pytest.skip("no request is made for comments")


async def test_name_is_the_one_it_is_registered_under(upstream: Emulator, source: Source) -> None:
    """A source calls itself what `SOURCES` calls it."""
    assert source.name == upstream.name


async def test_building_asks_nothing(upstream: Emulator, source: Source) -> None:
    """A source that was only built has not touched the network."""
    assert upstream.server.asked == []


async def test_items_are_whole(upstream: Emulator, source: Source) -> None:
    """At most `limit` items, distinct, each with its identity, text, address and UTC."""
    batch = await source.fetch(PLAN)

    assert batch.plan == PLAN
    assert batch.full
    assert len({item.key for item in batch.items}) == len(batch.items) == 5
    for item in batch.items:
        assert item.source == source.name
        assert item.key.startswith(f"{source.name}:")
        assert item.title or (source.name in UNTITLED and item.body)
        assert item.url.startswith(("https://", upstream.server.url))
        assert (item.created_at and item.created_at.tzinfo) is (None if source.name == "amazon" else UTC)
        assert item.comments == ()


async def test_refetch_from_surplus_is_free(upstream: Emulator, source: Source) -> None:
    """Twice the items of the same page cost no request and begin with the same ones."""
    first = await source.fetch(PLAN)
    with request_counter() as calls:
        wider = await source.fetch(PLAN.widened(2))

    assert calls.made == 0
    assert wider.items[:5] == first.items
    assert len(wider.items) == 10
    assert len(upstream.searches) == 1


async def test_next_page_is_asked_once(upstream: Emulator, source: Source) -> None:
    """More than a page costs one request more, and nothing comes twice."""
    if not upstream.paged:
        pytest.skip(NOT_SEARCHED)
    await source.fetch(PLAN)
    with request_counter() as calls:
        batch = await source.fetch(replace(PLAN, limit=upstream.page + 1))

    assert calls.made == upstream.requests
    assert len({item.key for item in batch.items}) == upstream.page + 1


async def test_end_is_not_full(upstream: Emulator, source: Source) -> None:
    """A source that has fewer than were asked for says that there is no more."""
    batch = await source.fetch(replace(PLAN, limit=upstream.count + 1))

    assert len(batch.items) == upstream.count
    assert not batch.full


async def test_nothing_found_is_an_answer(source: Source) -> None:
    """No result is an empty batch, not an error."""
    batch = await source.fetch(FetchPlan("nothing", 5))

    assert (batch.items, batch.full) == ((), False)


async def test_identical_calls_share_a_flight(upstream: Emulator, source: Source) -> None:
    """Three callers of the same plan cost one search."""
    batches = await asyncio.gather(*(source.fetch(PLAN) for _ in range(3)))

    assert len(upstream.searches) == 1
    assert batches[0] == batches[1] == batches[2]


async def test_every_request_is_counted(upstream: Emulator, source: Source) -> None:
    """What the meter counts is what the server saw, failures and token included."""
    with request_counter() as calls:
        await source.comments(await found_by(source, 4))
        upstream.later()
        upstream.fault = on("/", Reply(500, {}))
        with pytest.raises(SourceError):
            await source.fetch(FetchPlan("cup", 5))

    assert calls.made == len(upstream.server.asked)


async def test_failure_is_typed_and_forgotten(upstream: Emulator, source: Source) -> None:
    """A failed server is one of the outcomes, keeps the secret, and the next call asks again."""
    upstream.fault = on(upstream.search_path, Reply(502, "down"))

    with pytest.raises(Unreachable) as caught:
        await source.fetch(PLAN)
    upstream.fault = on("never", Reply())
    upstream.later()

    assert caught.value.code in set(Outcome)
    assert SECRET not in str(caught.value)
    assert len((await source.fetch(PLAN)).items) == 5


WAITS = [
    ({"retry-after": "7"}, 7),
    ({"retry-after": "7.5"}, 7.5),
    ({"retry-after": "172800"}, 86_400),
    ({"retry-after": "9" * 30}, 86_400),
    ({"retry-after": "1e400"}, 86_400),
    ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, 86_400),
    ({"retry-after": "epoch"}, 90),
    ({"retry-after": "date"}, 90),
    ({"retry-after-ms": "7500"}, 7.5),
    ({"x-ratelimit-reset": "42"}, 42),
    ({"x-ratelimit-requests-reset": "42"}, 42),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "Fri, 31 Dec 2027 23:59:59 +99999999999999999999"}, None),
    ({"retry-after": "Fri, 31 Dec 9999 23:59:59 -2359"}, 86_400),
    ({"retry-after": "Mon, 01 Jan 0001 00:00:00 +2359"}, 0),
    ({"retry-after": "\u00b2"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("headers", "seconds"), WAITS, ids=[str(wait[0]) for wait in WAITS])
async def test_the_wait_is_read_one_way(upstream: Emulator, headers: dict[str, str], seconds: float | None) -> None:
    """Whoever says when to come back, in whichever way, is understood alike and within a day."""
    source = upstream.build(source_timeout=2)
    now = datetime.now(UTC)
    later = now + timedelta(seconds=90)
    spelled = {"epoch": str(int(later.timestamp())), "date": format_datetime(later, usegmt=True)}
    named = {name: spelled.get(value, value) for name, value in headers.items()}
    upstream.fault = on(upstream.search_path, upstream.limited(named))

    with pytest.raises((RateLimited, Blocked)) as caught:
        await source.fetch(PLAN)
    await source.aclose()

    at = caught.value.retry_at
    assert (at is None) == (seconds is None)
    if at is not None and seconds is not None:
        assert abs((at - now).total_seconds() - seconds) < 10


WIRE = [
    pytest.param(Reply(408, {}), Unreachable, id="408"),
    pytest.param(Reply(408, "<p>too slow</p>"), Unreachable, id="408 page"),
    pytest.param(Reply(200, b"no gzip", {"content-encoding": "gzip"}), Broken, id="bad gzip"),
    pytest.param(Reply(200, packed_zeros(200), {"content-encoding": "gzip"}), Broken, id="200 MB packed"),
    pytest.param(Reply(200, b" " * 8_000_001), Broken, id="above 8 MB"),
    pytest.param(Reply(200, b"x" * 8_000_001), Broken, id="above 8 MB of text"),
    pytest.param(Reply(500, b"x" * 8_000_001), Broken, id="500 above 8 MB"),
    pytest.param(Reply(307, b"", {"location": "/elsewhere?x=1"}), Broken, id="redirect in a ring"),
]


@pytest.mark.parametrize(("reply", "expected"), WIRE)
async def test_the_wire_fails_alike(
    upstream: Emulator, source: Source, reply: Reply, expected: type[SourceError]
) -> None:
    """What goes wrong below the answer's meaning has one outcome, whichever library met it."""
    upstream.fault = lambda asked: reply

    with pytest.raises(SourceError) as caught:
        await source.fetch(PLAN)

    assert type(caught.value) is expected


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nothing_goes_to_another_server(upstream: Emulator, source: Source, status: int) -> None:
    """A redirect to another host or port is an error; key and question stay where they are."""
    with Loopback(lambda asked: upstream.reply(asked)) as other:
        moved = Reply(status, b"", {"location": f"{other.url}/s?q=mug"})
        upstream.fault = lambda asked: moved

        with pytest.raises(Broken):
            await source.fetch(PLAN)

    assert other.asked == []


async def test_a_query_is_sent_without_what_nobody_sees(upstream: Emulator, source: Source) -> None:
    """Zero width, BOM and soft hyphen hide in pasted names; no search finds anything with them."""
    if not upstream.asked_by_query:
        pytest.skip("no query is sent there")
    if not upstream.paged:
        pytest.skip(NOT_SEARCHED)
    await source.fetch(FetchPlan("\ufeffpla\u200bud no\u00adte", 5))

    query = upstream.named[0].query
    assert any(value.startswith("plaud note") for value in query.values())


async def test_what_nobody_understands_is_broken_and_forgotten(upstream: Emulator, source: Source) -> None:
    """Entries without the fields we read are no empty answer, and the next call asks again."""
    search, _ = upstream.strange()
    upstream.fault = on(upstream.search_path, search)

    with pytest.raises(Broken):
        await source.fetch(PLAN)
    upstream.fault = on("never", Reply())
    upstream.later()

    assert len((await source.fetch(PLAN)).items) == 5


@pytest.mark.usefixtures("comments_asked")
async def test_comments_nobody_understands_are_noted(upstream: Emulator, source: Source) -> None:
    """An item whose comments have none of the fields we read says so instead of having none."""
    items = await found_by(source, 4)
    _, comments = upstream.strange()
    upstream.fault = on(upstream.comments_of(2), comments)

    read = await source.comments(items)

    assert [bool(item.comments) for item in read.items] == [True, True, False, True]
    assert any("could not be read" in note for note in read.items[2].notes)
    assert "1 of 4 failed (its answer was malformed)" in read.notes[0]


HUGE = b"[" + b"9" * 5_000 + b"]"
DEEP = b'{"items": ' + b"[" * 100_000
ODD = [
    b'{"kind": ["x"], "items": []}', b'{"kind": {"x": 1}, "items": [{}]}',
    b'{"items": [{"id": {"videoId": ["v"]}, "snippet": 7}], "nextPageToken": 1e400}',
    b'{"items": [{"id": {"videoId": "v"}, "snippet": {"title": 1e400, "publishedAt": 1e400}}]}',
    b'{"items": [{"id": "v", "snippet": {}, "statistics": {"viewCount": 1e400}}]}',
    b'{"kind": "Listing", "data": {"children": [{"kind": ["t3"], "data": 7}, 1e400]}}',
    b'{"kind": 1e400, "data": {"after": 1e400, "children": [{"kind": "t3", "data": '
    b'{"id": 1e400, "title": ["x"], "score": 1e400, "created_utc": 1e400, "url": {}}}]}}',
    b'[{"data": {"children": []}}, {"data": {"children": [{"kind": "t1", "data": '
    b'{"id": 7, "body": 1e400, "score": 1e300, "created_utc": 1e300, "replies": [1]}}]}}]',
    b'{"access_token": ["t"], "expires_in": 1e400, "scope": 7}',
    b'{"access_token": "t", "expires_in": [1], "scope": "*"}',
    b'{"access_token": "t", "expires_in": NaN, "scope": "*"}',
    b'{"error": {"errors": {"reason": 7}, "message": ["x"]}}', b"1e400", b"NaN", b'"x"', HUGE, DEEP,
]  # fmt: skip


async def test_wrong_types_are_an_outcome(upstream: Emulator, source: Source) -> None:
    """Whatever JSON a server sends, for whichever call, nothing but a `SourceError` comes out."""
    items = await found_by(source, 2)
    replies = [*(Reply(200, body) for body in ODD), *(Reply(403, body) for body in ODD[-5:])]
    failures = []
    for number, reply in enumerate(replies):
        for part in {upstream.search_path, upstream.comments_path, "/videos"}:
            upstream.fault = on(part, reply)
            upstream.later()
            query = FetchPlan(f"cup {number} {part}", 5)
            for call in (source.fetch(query), source.comments(items)):
                try:
                    await call
                except SourceError as error:
                    failures.append(error)
    assert failures
    assert all(str(failure) for failure in failures)


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
async def test_a_wrong_token_is_an_outcome(body: bytes) -> None:
    """A token answer of any shape either works or is an error of the source."""
    with RedditEmulator() as upstream:
        upstream.fault = on("access_token", Reply(200, body))
        source = SOURCES["reddit"].build(upstream.settings())

        with suppress(SourceError):
            await source.fetch(PLAN)
        await source.aclose()

        assert upstream.server.asked


@pytest.mark.usefixtures("comments_asked")
async def test_refused_comments_are_the_whole_sources(upstream: Emulator, source: Source) -> None:
    """When nobody may read, the source says so once and is not asked for every item."""
    items = await found_by(source, 12)
    upstream.fault = on(upstream.comments_path, Reply(403, "<h1>no</h1>"))

    with pytest.raises(Blocked):
        await source.comments(items)

    read = [asked for asked in upstream.server.asked if upstream.comments_path in asked.path]
    assert len(read) <= 8


async def test_hung_server_ends_at_the_deadline(upstream: Emulator) -> None:
    """A server that never answers costs the deadline and nothing more."""
    source = upstream.build(source_timeout=0.3)
    upstream.fault = on("/", HANG)

    async with asyncio.timeout(60):
        with pytest.raises(TimedOut):
            await source.fetch(PLAN)
        await source.aclose()


@pytest.mark.usefixtures("comments_asked")
async def test_dripping_servers_hold_no_thread(upstream: Emulator) -> None:
    """After the deadline no thread reads on from a server that never ends its answer."""
    patient = upstream.build()
    items = await found_by(patient, 12)
    await patient.aclose()
    before = set(threading.enumerate())
    source = upstream.build(source_timeout=0.3)
    upstream.fault = on(upstream.comments_path, DRIP)

    with suppress(SourceError):
        await source.comments(items)
    await source.aclose()

    started = [each for each in threading.enumerate() if each.name == source.name]
    for thread in {*started} - before:
        await asyncio.to_thread(thread.join, 60)
    assert not any(thread.is_alive() for thread in {*started} - before)
    assert not upstream.server.over.is_set()


@pytest.mark.usefixtures("comments_asked")
async def test_reset_idle_connections_are_replaced(upstream: Emulator, source: Source) -> None:
    """Every kept connection ended while it was idle: what is asked next works, and is counted."""
    items = await found_by(source, 4)
    upstream.fault = lambda asked: replace(upstream.reply(asked), manner="answer and reset")
    before = len(upstream.server.asked)
    await source.comments(items)
    usual = len(upstream.server.asked) - before
    for _ in range(usual):
        await asyncio.to_thread(upstream.server.resets.acquire, True, 60)
    upstream.fault = on("never", Reply())
    before = len(upstream.server.asked)

    read = await source.comments(items)

    assert read.notes == ()
    assert all(item.comments for item in read.items)
    assert len(upstream.server.asked) - before in {usual, usual + 1}


@pytest.mark.usefixtures("comments_asked")
async def test_resets_within_answers_cost_those_answers(upstream: Emulator, source: Source) -> None:
    """Each is asked once, they are unreachable, and what is asked next works."""
    items = await found_by(source, 4)
    with request_counter() as usual:
        await source.comments(items)
    upstream.fault = lambda asked: replace(upstream.reply(asked), manner="half")

    with request_counter() as failing, pytest.raises(Unreachable):
        await source.comments(items)
    for _ in range(usual.made):
        await asyncio.to_thread(upstream.server.resets.acquire, True, 60)
    upstream.fault = on("never", Reply())
    before = len(upstream.server.asked)
    with request_counter() as fresh:
        read = await source.comments(items)

    assert read.notes == ()
    assert all(item.comments for item in read.items)
    assert usual.made == failing.made == fresh.made == len(upstream.server.asked) - before


async def test_comments_keep_the_items(upstream: Emulator, source: Source) -> None:
    """The same items in the same order, each with comments that can be linked to."""
    items = await found_by(source, 3)

    read = await source.comments(items)

    assert [item.key for item in read.items] == [item.key for item in items]
    assert read.notes == ()
    for comment in read.items[0].comments:
        assert comment.id
        assert comment.body
        assert comment.url.startswith(("https://", upstream.server.url))
    assert upstream.has_comments <= len(read.items[0].comments) <= 20


@pytest.mark.usefixtures("comments_asked")
async def test_one_bad_item_costs_only_itself(upstream: Emulator, source: Source) -> None:
    """One of four comment pages fails: it is kept with a note, and the whole has one."""
    items = await found_by(source, 4)
    upstream.fault = on(upstream.comments_of(2), Reply(500, {}))

    read = await source.comments(items)

    assert [bool(item.comments) for item in read.items] == [True, True, False, True]
    assert read.items[2].notes
    assert "1 of 4" in read.notes[0]


@pytest.mark.parametrize("names_it", [True, False], ids=["a comment names it", "none does"])
async def test_a_second_look_is_one_request(upstream: Emulator, names_it: bool) -> None:
    """A page of which nothing is kept costs one request more with it; where comments prove nothing not even that."""
    question = Question({"reddit": "comment", "youtube": "thread"}.get(upstream.name, "review"))
    question = question if names_it else Question("lamp")
    comments_fit = upstream.looks_twice

    async def comments_alone(items: Sequence[Item], source: str) -> Gated:
        return Gated(tuple(Verdict(item.place == COMMENT_PLACE) for item in items), "ok")

    async def sent(policy: RefetchPolicy) -> tuple[int, Gathered]:
        source, before = upstream.build(), len(upstream.paths)
        gathered = await gather(source, PLAN, comments_alone, policy, observer=SilentObserver())
        await source.aclose()
        arrived = len(upstream.paths) - before
        # one that met a closed connection is sent, and counted, twice
        assert gathered.upstream_calls >= arrived
        return arrived, gathered

    without, _ = await sent(RefetchPolicy())
    looking, gathered = await sent(RefetchPolicy(second_look=question))

    assert looking - without == comments_fit
    assert len(gathered.kept) == (comments_fit and names_it)


async def test_without_comments_there_is_no_second_look(upstream: Emulator) -> None:
    """`LISTENPOST_COMMENTS_PER_ITEM=0` holds for it, too."""
    source = upstream.build(comments_per_item=0)
    (item,) = await found_by(source, 1)
    before = len(upstream.paths)

    commented = await source.with_best_comments(item)
    await source.aclose()

    assert (commented, len(upstream.paths)) == (None, before)


async def test_no_items_ask_nothing(upstream: Emulator, source: Source) -> None:
    """Comments of nothing are nothing."""
    read = await source.comments(())

    assert (read.items, read.notes) == ((), ())
    assert upstream.server.asked == []


async def test_probe_agrees_with_the_calls(upstream: Emulator, source: Source) -> None:
    """A probe is `ok` or names the same outcome as a call, and never raises."""
    assert (await source.probe()).outcome == "ok"
    upstream.later()
    upstream.fault = on("/", Reply(403, "<h1>no</h1>"))

    with pytest.raises(SourceError) as caught:
        await source.fetch(FetchPlan("cup", 5))

    assert (await source.probe()).outcome == caught.value.code == "blocked"


@pytest.mark.parametrize("host", ["127.0.0.1", "LocalHost"])
async def test_proxy_is_not_asked_for_this_machine(
    upstream: Emulator, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """A proxy in the environment does not stand between a source and this machine."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    root = upstream.server.url.replace("127.0.0.1", host)
    address = SOURCES[upstream.name].address
    source = upstream.build(**{address: root})

    assert len(await found_by(source, 5)) == 5
    await source.aclose()


async def test_cancelling_is_immediate(upstream: Emulator, source: Source) -> None:
    """A cancelled fetch ends at once although the server hangs, and the source goes on."""
    upstream.fault = on(upstream.search_path, HANG)

    async with asyncio.timeout(60):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await source.fetch(PLAN)
        upstream.fault = on("never", HANG)

        assert len((await source.fetch(PLAN)).items) == 5


@pytest.mark.parametrize(
    "upstream",
    [
        # two that have threads of their own, and one of those that share the web client
        pytest.param(kind, marks=() if kind.name in {"reddit", "youtube", "lemmy"} else pytest.mark.nightly)
        for kind in EMULATORS
    ],
    indirect=True,
    ids=lambda kind: kind.name,
)
def test_dead_upstream_does_not_hold_the_process(upstream: Emulator) -> None:
    """A program whose source hangs ends by itself, long before the server lets go."""
    upstream.fault = on("/", HANG)
    settings = {
        name: getattr(value, "get_secret_value", lambda value=value: value)()
        for name, value in upstream.settings(source_timeout=0.3)
        if value is not None
    }
    program = f"""
import asyncio
from api.errors import TimedOut
from api.core.domain import FetchPlan
from api.settings import SourceSettings
from api.sources import SOURCES
async def main():
    source = SOURCES[{upstream.name!r}].build(SourceSettings.model_validate({settings!r}))
    try:
        await source.fetch(FetchPlan("mug", 5))
    except TimedOut:
        print("too slow")
asyncio.run(main())
"""
    with Forked[str]([CODE, program], stdout=subprocess.PIPE, text=True) as process:
        try:
            printed, _ = process.communicate(timeout=60)
        finally:
            process.kill()

    assert (process.returncode, printed) == (0, "too slow\n")
    assert not upstream.server.over.is_set()


@pytest.mark.parametrize("name", [name for name, spec in SOURCES.items() if spec.variables])
def test_unconfigured_source_names_its_variables(name: str) -> None:
    """Without settings each factory says which variables are missing."""
    empty = SourceSettings.model_construct(
        **{name: field.default for name, field in SourceSettings.model_fields.items()}
    )

    with pytest.raises(NotConfigured, match=rf"{name}: .*`{name.upper()}_"):
        SOURCES[name].build(empty)


def test_registry_imports_no_client(root: Path) -> None:
    """Knowing the sources loads none of their libraries."""
    program = f"import sys, api.sources; print([n for n in {CLIENTS!r} if n in sys.modules])"

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout.strip() == "[]"
