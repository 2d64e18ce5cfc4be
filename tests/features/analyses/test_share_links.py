"""A feed, or a report, is read by its token, and by nothing else."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from api.errors import LimitReached, NotFound
from api.features.analyses.api_keys import Keys, Tenant
from api.features.analyses.limits import Limits
from api.features.analyses.share_links import feed_of, linked_report, open_feed, open_link
from api.features.analyses.store_ports import Store
from api.store import open_store
from tests.features.watches.example_run import run
from tests.features.watches.made import MONDAY, WATCH, WEEK
from tests.store.made import report, typed


@pytest.fixture
async def store(sqlite_url: str) -> AsyncIterator[Store]:
    """With one watch, and a run that was worth telling."""
    opened = await open_store(sqlite_url)
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


def link_in(path: str) -> str:
    """The token of a report's address."""
    match = re.fullmatch(r"/shared/r\d\?token=([\w-]{43})", path)
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


async def test_report_is_read_by_its_link(store: Store) -> None:
    """And not by the link before it, by none, once it is ended, or by the link of another."""
    keys, limits = Keys((), store), Limits(store)
    for name in ("r1", "r2"):
        await store.finish("local", typed(report(name)))
    old, token = [link_in(await open_link(store, "local", "r1")) for _ in range(2)]
    other = link_in(await open_link(store, "local", "r2"))

    assert (await linked_report(store, keys, limits, "r1", token)).id == "r1"
    await store.set_link("local", "r2", None)
    refusals = set()
    for name, wrong in (("r1", old), ("r1", ""), ("r1", other), ("r2", other), ("none", token)):
        with pytest.raises(NotFound) as caught:
            await linked_report(store, keys, limits, name, wrong)
        refusals.add(str(caught.value))
    assert len(refusals) == 1
    with pytest.raises(NotFound, match="no such analysis"):
        await open_link(store, "local", "none")


async def test_link_shows_nothing_while_there_is_no_report(store: Store) -> None:
    """As when its report cannot be read any more."""
    await store.begin("local", "r1", "mug")
    token = link_in(await open_link(store, "local", "r1"))
    with pytest.raises(NotFound):
        await linked_report(store, Keys((), store), Limits(store), "r1", token)


async def test_readers_of_a_link_have_a_limit_of_their_own(store: Store) -> None:
    """They keep nobody from their own reports; the link ends with the key."""
    keys, limits = Keys((), store), Limits(store, requests_per_minute=1, clock=lambda: MONDAY)
    key, _ = await keys.add("ann")
    await store.finish(key.id, typed(report("r1")))
    token = link_in(await open_link(store, key.id, "r1"))
    for _ in range(10):
        await linked_report(store, keys, limits, "r1", token)
    with pytest.raises(LimitReached, match="10 looks per minute"):
        await linked_report(store, keys, limits, "r1", token)
    await limits.admit(Tenant(key.id, "store"), looks=True)
    await keys.revoke(key.id)
    with pytest.raises(NotFound):
        await linked_report(store, keys, limits, "r1", token)
