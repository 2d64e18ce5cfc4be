"""A feed is read by its token, and by nothing else."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from api.errors import LimitReached, NotFound
from api.services.keeping.feeds import feed_of, open_feed
from api.services.keeping.keys import Keys
from api.services.keeping.limits import Limits
from api.services.keeping.storage import Store
from api.store import open_store
from tests.services.watching.made import MONDAY, WATCH, WEEK
from tests.services.watching.test_telling import run


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """With one watch, and a run that was worth telling."""
    opened = await open_store(f"sqlite:///{tmp_path / 'watches.db'}")
    await opened.add_watch(WATCH, 9)
    claim = await opened.claim_watch("local", "w1", MONDAY, MONDAY + WEEK, "run1")
    assert claim is not None
    await opened.finish_run(claim, run(news=True), (), MONDAY + WEEK)
    yield opened
    await opened.aclose()


def token_in(path: str) -> str:
    """Of a feed's address."""
    match = re.fullmatch(r"/v1/feeds/w1\?token=([\w-]{43})", path)
    assert match is not None
    return match[1]


async def test_feed_holds_what_was_worth_telling(store: Store) -> None:
    """And is not read by the token that was before it, or that of another watch."""
    keys, limits = Keys((), store), Limits(store)
    await store.add_watch(replace(WATCH, id="w2", name="b"), 9)
    old = token_in(await open_feed(store, WATCH))
    new = token_in(await open_feed(store, WATCH))
    watch, runs = await feed_of(store, keys, limits, "w1", new)
    assert (watch.id, [one.id for one in runs]) == ("w1", ["run1"])
    assert new not in repr(watch)
    refusals = set()
    for watch_id, token in (("w1", old), ("w1", ""), ("w2", new), ("none", new), ("w1", "x")):
        with pytest.raises(NotFound) as caught:
            await feed_of(store, keys, limits, watch_id, token)
        refusals.add(str(caught.value))
    assert refusals == {"there is no such feed"}
    with pytest.raises(NotFound, match="“Ember” is gone"):
        await open_feed(store, replace(WATCH, id="gone"))


async def test_feed_counts_as_looks_of_its_key(store: Store) -> None:
    """And ends with that key."""
    keys, limits = Keys((), store), Limits(store, requests_per_minute=1, clock=lambda: MONDAY)
    key, _ = await keys.add("ann")
    theirs = replace(WATCH, id="w1", tenant=key.id)
    await store.add_watch(theirs, 9)
    token = token_in(await open_feed(store, theirs))
    for _ in range(10):
        await feed_of(store, keys, limits, "w1", token)
    with pytest.raises(LimitReached, match="10 looks per minute"):
        await feed_of(store, keys, limits, "w1", token)
    await keys.revoke(key.id)
    with pytest.raises(NotFound, match="there is no such feed"):
        await feed_of(store, keys, limits, "w1", token)
