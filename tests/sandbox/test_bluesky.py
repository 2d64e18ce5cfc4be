"""The sandbox's Bluesky: two envelopes, cursors, deletions, posts and threads, and what can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from api.core.domain import FetchPlan
from api.core.items import Batch
from api.errors import Blocked, Broken, RateLimited, SourceError, Unreachable
from api.sandbox.faults import KINDS
from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.sources import SOURCES
from api.sources.jetstream import CursorLost, JetstreamReader, ReadBounds
from api.sources.jetstream_frames import (
    AccountChanged,
    Event,
    Position,
    PostDeleted,
    PostWritten,
    ServerNotice,
    Version,
)

ROWS: list[dict[str, Any]] = [
    {"source": "bluesky", "title": "", "body": "My Lumo lamp hums", "age_days": 0.05, "votes": 5,
     "comments": [{"body": "Mine is silent", "age_days": 0.04, "votes": 9},
                  {"body": "gone again", "age_days": 0.03, "deleted": True}]},
    {"source": "bluesky", "title": "", "body": "Lumo lamp regret", "age_days": 0.2, "deleted": True},
    {"source": "bluesky", "title": "", "body": "LUMO LAMP for free", "age_days": 0.3, "bot": True},
    {"source": "bluesky", "title": "", "body": "A Lumo lamp on the train", "age_days": 1.2, "votes": 2},
    {"source": "bluesky", "title": "", "body": "Lumo lamp, long ago", "age_days": 3},
]  # fmt: skip


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox with these rows alone."""
    with Sandbox.start(ROWS) as server:
        yield server


async def fetched(sandbox: Sandbox, seconds: float = 16) -> Batch:
    """What the real source finds."""
    settings = SourceSettings.model_validate(
        {
            "BLUESKY_URL": sandbox.url,
            "BLUESKY_APPVIEW_URL": sandbox.url,
            "source_timeout": 1,
            "bluesky_seconds": seconds,
        }
    )
    source = SOURCES["bluesky"].build(settings)
    try:
        return await source.fetch(FetchPlan("Lumo lamp", 10, "week"))
    finally:
        await source.aclose()


async def read(sandbox: Sandbox, start: datetime | Position, frames: int, version: Version = "v2") -> list[Event]:
    """Events of a read of so many frames."""
    reader = JetstreamReader("bluesky", [sandbox.url], version)
    async with aclosing(reader.read(start, ReadBounds(frames=frames))) as events:
        return [event async for event in events]


async def test_the_source_finds_what_is_there(sandbox: Sandbox) -> None:
    """Two posts of the last 36 hours: what was deleted, taken down or is older is not there."""
    batch = await fetched(sandbox)

    assert [item.body for item in batch.items] == ["My Lumo lamp hums", "A Lumo lamp on the train"]
    assert batch.items[0].engagement == {"likes": 5, "comments": 2, "reposts": 1, "quotes": 0}
    assert "the stream reaches back 36 hours" in batch.notes[0]


@pytest.mark.parametrize("version", ["v2", "v1"])
async def test_both_versions_bring_the_same(sandbox: Sandbox, version: Version) -> None:
    """Posts, a deletion and an account, among everybody else's posts, in order of time."""
    events = await read(sandbox, datetime.now(UTC) - timedelta(hours=33), 1_990, version)

    texts = [event.record["text"] for event in events if isinstance(event, PostWritten)]
    assert {"My Lumo lamp hums", "Mine is silent", "Lumo lamp regret"} <= set(texts)
    assert sum(isinstance(event, PostDeleted) for event in events) == 2
    assert [event.status for event in events if isinstance(event, AccountChanged)] == ["takendown"]
    times = [event.at for event in events if isinstance(event, Position)]
    assert times == sorted(times)


async def test_a_cursor_is_inclusive_and_one_that_is_too_old_is_clamped_or_refused(sandbox: Sandbox) -> None:
    """A time begins late, with a notice; a number is refused."""
    events = await read(sandbox, datetime.now(UTC) - timedelta(hours=35), 10)
    last = [event for event in events if isinstance(event, Position)][-1]
    again = [event for event in await read(sandbox, last, 1) if isinstance(event, Position)]
    old = await read(sandbox, datetime.now(UTC) - timedelta(hours=48), 2)

    assert again[0].cursor == last.cursor
    assert isinstance(old[0], ServerNotice)
    assert old[0].name == "OutdatedCursor"
    with pytest.raises(CursorLost):
        await read(sandbox, Position(24_000_000_000, last.at, sandbox.url), 1)


def test_wrong_parameters_are_refused(sandbox: Sandbox) -> None:
    """Names of the first version, unknown kinds, and what the AppView takes."""
    stream = f"{sandbox.url}/xrpc/network.bsky.jetstream.subscribeEvents"
    upgrade = {
        "connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    for query in ("wantedCollections=app.bsky.feed.post", "kinds=post"):
        refused = httpx.get(f"{stream}?{query}", headers=upgrade)
        assert (refused.status_code, refused.json()["error"]) == (400, "InvalidRequest")
    assert httpx.get(f"{sandbox.url}/xrpc/app.bsky.feed.getPosts").status_code == 400
    unknown = httpx.get(f"{sandbox.url}/xrpc/app.bsky.feed.getPostThread", params={"uri": "at://x"})
    assert (unknown.status_code, unknown.json()["error"]) == (400, "NotFound")


OUTCOMES: dict[str, type[SourceError] | str] = {
    "silent": Unreachable, "503": Unreachable, "500": Unreachable, "429": RateLimited, "html200": Blocked,
    "403html": Blocked, "notjson": Broken, "400": Broken, "404": Broken, "too_old": Unreachable,
    "hang": Unreachable, "garbage": "could not be read", "gap": "read from", "duplicates": "read from",
    "disorder": "read from", "slow": "read from", "drip": "read from", "close": Unreachable,
    "error": Unreachable,
}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(KINDS["bluesky"]))
async def test_every_fault_has_its_outcome(sandbox: Sandbox, kind: str) -> None:
    """Of the whole stream: an error, or what was read with a note on how far that was."""
    sandbox.fault(f"bluesky.stream={kind}")
    expected = OUTCOMES[kind]

    if isinstance(expected, str):
        batch = await fetched(sandbox, 4)
        assert expected in batch.notes[0]
        assert len({item.key for item in batch.items}) == len(batch.items)
    else:
        with pytest.raises(SourceError) as caught:
            await fetched(sandbox, 4)
        assert isinstance(caught.value, expected) or kind == "hang"
