"""One suite over watches in the store, on SQLite and on PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from api.core.items import Item
from api.errors import UsageError
from api.features.analyses.store_ports import Purpose, Store
from api.features.watches.watch import Target, next_digest
from api.features.watches.watch_ports import KeptCounts, RunClaim, SeenPost
from api.features.watches.watch_run import VERSION, Delivery, NewPost, NewQuestion, WatchRun
from api.features.watches.watch_service import utc_now
from api.store import open_store
from tests.features.watches.made import MONDAY, WATCH, WEEK, of, week
from tests.store.made import ODD, counted

LATER = MONDAY + timedelta(minutes=30)
FULL = replace(
    WATCH, id="w2", name=ODD.replace("\x00", ""), about=ODD, sources=("reddit",), limit=9,
    only="complaints", notify=(Target("slack", "https://hooks.example/T/secret"),),
    created_at=MONDAY + timedelta(seconds=1), due_at=MONDAY + timedelta(seconds=1),
)  # fmt: skip


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """With one watch."""
    opened = await open_store(store_url)
    await opened.add_watch(WATCH, 9)
    yield opened
    await opened.aclose()


def run_of(run_id: str, number: int = 0) -> WatchRun:
    """Of one week."""
    counts = week(number, reddit=of(3, {"mentions:battery": 1}))
    post = NewPost(
        key="reddit:1", source="reddit", title=ODD, url="", created_at=None, passage="",
        complains=True,
    )  # fmt: skip
    return WatchRun(
        version=VERSION, id=run_id, watch_id="w1", state="changed", reason=None, report_id="r1",
        counts=counts, new=(post,), kept=1, unusual=(), looked_at=0, new_aspects=(), gaps=(),
        sample=False, created_at=MONDAY + number * WEEK,
        questions=(NewQuestion(text=ODD, cites=("reddit:1",)),),
    )  # fmt: skip


async def claimed(store: Store, run_id: str = "run1", now: datetime = MONDAY) -> RunClaim:
    """A run of the watch."""
    claim = await store.claim_watch("local", "w1", now, now + timedelta(minutes=30), run_id)
    assert claim is not None
    return claim


async def finished(store: Store, number: int = 0, *learnt: SeenPost) -> WatchRun:
    """The run of a week."""
    run = run_of(f"run{number}", number)
    assert await store.finish_run(await claimed(store, run.id), run, learnt, MONDAY + WEEK)
    return run


async def test_watch_is_read_as_it_was_kept(store: Store) -> None:
    """Every field, oldest first, each tenant's own."""
    await store.add_watch(FULL, 9)
    await store.add_watch(replace(WATCH, tenant="b"), 9)
    assert await store.watches("local") == [WATCH, FULL]
    assert [watch.tenant for watch in await store.watches("b")] == ["b"]


async def test_names_and_numbers_are_limited(store: Store) -> None:
    """One of each name, and no more than so many."""
    with pytest.raises(UsageError, match="a watch named “Ember” is there already"):
        await store.add_watch(replace(WATCH, id="w2"), 9)
    with pytest.raises(UsageError, match="there are 1 watches; remove one first"):
        await store.add_watch(FULL, 1)
    await store.add_watch(FULL, 2)
    with pytest.raises(UsageError, match="a watch named"):
        await store.change_watch(replace(FULL, name=WATCH.name))


async def test_watch_is_changed(store: Store) -> None:
    """Not when it began, which only a run says; one that is gone is not."""
    changed = replace(WATCH, query="cup", paused=True, due_at=LATER, began_at=LATER)
    assert await store.change_watch(changed)
    assert await store.watches("local") == [replace(changed, began_at=None)]
    assert not await store.change_watch(replace(WATCH, id="none", name="none"))


async def test_watch_goes_with_all_that_it_has_seen(store: Store, store_url: str) -> None:
    """A run that is under way then keeps nothing."""
    await finished(store, 0, SeenPost("reddit:1"))
    claim = await claimed(store, "run1")
    assert await store.drop_watch("local", "w1")
    assert not await store.drop_watch("local", "w1")
    assert not await store.finish_run(claim, run_of("run1"), (), MONDAY + WEEK)
    tables = await counted(store_url, "watches", "watch_runs", "watch_items")
    assert tables == [0, 0, 0]


async def test_longest_due_is_claimed_first(store: Store) -> None:
    """Each once, until none is due; paused ones and those of later never."""
    await store.add_watch(FULL, 9)
    await store.add_watch(replace(WATCH, id="w3", name="paused", paused=True), 9)
    await store.add_watch(replace(WATCH, id="w4", name="later", due_at=LATER), 9)
    now = MONDAY + timedelta(minutes=1)
    claims = [await store.claim_due(now, LATER, f"run{number}") for number in range(3)]
    assert [claim and (claim.watch.id, claim.run_id) for claim in claims] == [
        ("w1", "run0"), ("w2", "run1"), None,
    ]  # fmt: skip


@pytest.mark.parametrize("count", [100, pytest.param(1000, marks=pytest.mark.nightly)])
async def test_three_stores_claim_many_watches_once_each(store: Store, store_url: str, count: int) -> None:
    """All due at the same minute."""
    for number in range(1, count):
        await store.add_watch(replace(WATCH, id=f"x{number}", name=f"x{number}"), 1000)
    others = [await open_store(store_url) for _ in range(2)]
    claims: list[str] = []

    async def work(mine: Store, name: str) -> None:
        while (claim := await mine.claim_due(MONDAY, LATER, name)) is not None:
            claims.append(claim.watch.id)

    await asyncio.gather(*(work(mine, f"{at}") for at, mine in enumerate((store, *others))))
    for other in others:
        await other.aclose()
    assert len(set(claims)) == len(claims) == count


async def test_what_is_due_is_listed_and_run_as_it_was_due(store: Store) -> None:
    """Not by another run meanwhile, not again once it is done; the same run goes on."""
    assert [watch.id for watch in await store.due_watches(MONDAY, 9)] == ["w1"]
    due = MONDAY
    first = await store.claim_watch("local", "w1", MONDAY, LATER, "run1", due)
    assert first is not None
    assert await store.due_watches(MONDAY, 9) == []
    assert await store.claim_watch("local", "w1", MONDAY, LATER, "run2", due) is None
    assert await store.claim_watch("local", "w1", MONDAY, LATER, "run1", due) == first
    assert await store.finish_run(first, run_of("run1"), (), MONDAY + WEEK)
    assert await store.claim_watch("local", "w1", LATER, LATER, "run3", due) is None


async def test_paused_watch_is_not_run_as_it_was_due(store: Store) -> None:
    """It was due before."""
    await store.change_watch(replace(WATCH, paused=True))
    assert await store.claim_watch("local", "w1", MONDAY, LATER, "run1", WATCH.due_at) is None


async def test_claim_that_died_is_taken_over_with_its_run(store: Store) -> None:
    """After the time in its row, by the same id; the first then has nothing to say."""
    first = await claimed(store, "run1")
    assert await store.claim_watch("local", "w1", MONDAY, LATER, "run2") is None
    assert await store.claim_due(MONDAY, LATER, "run2") is None
    assert await store.claim_watch("b", "w1", LATER, LATER, "run2") is None
    second = await claimed(store, "run2", LATER)
    assert second.run_id == first.run_id == "run1"
    assert await store.finish_run(second, run_of("run1"), (), MONDAY + WEEK)
    assert not await store.finish_run(first, run_of("run1"), (), MONDAY + WEEK)
    assert (await claimed(store, "run3")).run_id == "run3"


async def test_finished_run_says_what_is_next(store: Store) -> None:
    """When it is due, and when it began: by its first run alone."""
    await finished(store)
    (watch,) = await store.watches("local")
    assert (watch.due_at, watch.began_at) == (MONDAY + WEEK, MONDAY + WEEK)
    await finished(store, 1)
    (watch,) = await store.watches("local")
    assert watch.began_at == MONDAY + WEEK


async def test_time_that_a_person_set_meanwhile_stands(store: Store) -> None:
    """The run that ends does not undo it."""
    claim = await claimed(store)
    await store.change_watch(replace(WATCH, due_at=LATER))
    await store.finish_run(claim, run_of("run1"), (), MONDAY + WEEK)
    assert [watch.due_at for watch in await store.watches("local")] == [LATER]


async def test_runs_are_listed_newest_first(store: Store) -> None:
    """As they were kept, with who was told, and for each tenant its own."""
    runs = [await finished(store, number) for number in range(2)]
    delivery = Delivery(target="file:x", delivered=False, tries=3, reason="no")
    last = run_of("run2", 2).model_copy(update={"deliveries": (delivery,)})
    await store.finish_run(await claimed(store, "run2"), last, (), MONDAY + WEEK)
    assert await store.watch_runs("local", "w1", 2) == [last, runs[1]]
    assert await store.watch_runs("b", "w1", 2) == []


async def test_an_analysis_knows_what_it_was_begun_for(store: Store) -> None:
    """By its key, and by the watch once its run is kept, long after its key; each tenant's own."""
    for key, analysis_id in (
        ("comparison:0:k", "r2"), ("watch:run9:7d", "r3"), ("mine", "r4"), ("watch:run0:7d", "r1"),
    ):  # fmt: skip
        await store.claim("local", key, "digest", analysis_id)
    begun = dict.fromkeys(("r1", "r2", "r3", "r4", "r5"), MONDAY + timedelta(minutes=2))
    waiting = await store.purposes("local", begun)
    await finished(store)

    assert waiting["r1"] == Purpose("watch")
    assert await store.purposes("local", begun) == {
        "r1": Purpose("watch", "w1", WATCH.name),
        "r2": Purpose("comparison"),
        "r3": Purpose("watch"),
    }
    assert await store.purposes("b", begun) == await store.purposes("local", {}) == {}


async def test_runs_that_were_worth_telling_are_listed_apart(store: Store) -> None:
    """However many others came after them."""
    told = run_of("told").model_copy(update={"news": True})
    await store.finish_run(await claimed(store, "told"), told, (), MONDAY + WEEK)
    quiet = [await finished(store, number) for number in range(1, 3)]
    assert await store.watch_runs("local", "w1", 1, news=True) == [told]
    assert await store.watch_runs("local", "w1", 9) == [*quiet[::-1], told]


DIGESTED = replace(WATCH, notify=(Target("mail", "ann@example.org", digest="08:00"),))


async def held(store: Store, *run_ids: str) -> None:
    """Store runs that wait for the digest of the watch's receiver."""
    waiting = Delivery(target="mail:ann@example.org", delivered=False, tries=0, held="digest", reason="waits")
    for number, run_id in enumerate(run_ids):
        made = run_of(run_id, number).model_copy(update={"news": True, "deliveries": (waiting,)})
        assert await store.finish_run(await claimed(store, run_id), made, (), MONDAY + WEEK)


async def test_a_digest_is_claimed_with_the_runs_that_wait(store: Store, store_url: str) -> None:
    """By one process at a time; one that takes over has the same runs, and whoever was too slow stores nothing."""
    assert await store.change_watch(DIGESTED)
    await held(store, "run0", "run1")
    due = next_digest(DIGESTED, utc_now())
    assert due is not None
    now, until = due + timedelta(seconds=1), due + timedelta(minutes=5)
    assert await store.claim_digest(due - timedelta(days=2), until) is None
    other = await open_store(store_url)
    claims = await asyncio.gather(store.claim_digest(now, until), other.claim_digest(now, until))
    await other.aclose()
    (first,) = [claim for claim in claims if claim is not None]
    assert (first.watch.id, [run.id for run in first.runs]) == ("w1", ["run0", "run1"])
    await held(store, "run2")
    later = until + timedelta(minutes=5)
    second = await store.claim_digest(until, later)
    assert second is not None
    assert second.runs == first.runs
    told = Delivery(target="mail:ann@example.org", delivered=True, tries=1, at=now)
    await store.finish_digest(first, {"run0": (told,), "run1": (told,)}, now)
    assert await store.claim_digest(until, later) is None
    await store.finish_digest(second, {"run0": (told,), "run1": (told,)}, until)

    assert await store.claim_digest(until, later) is None
    third = await store.claim_digest(now + timedelta(days=1), later + timedelta(days=1))
    assert third is not None
    assert [run.id for run in third.runs] == ["run2"]
    runs = await store.watch_runs("local", "w1", 9)
    assert {run.id: run.deliveries[0].held for run in runs} == {"run0": None, "run1": None, "run2": "digest"}
    assert await store.drop_watch("local", "w1")
    await store.finish_digest(third, {}, now)


async def test_what_waits_for_a_digest_that_was_taken_away_is_due_at_once(store: Store) -> None:
    """Whether it was taken away before or after the run ended; a digest without runs is none."""
    now = utc_now() + timedelta(minutes=1)
    await store.change_watch(DIGESTED)
    assert await store.claim_digest(now + timedelta(days=2), now + timedelta(days=2)) is None
    await store.change_watch(WATCH)
    assert await store.claim_digest(now + timedelta(days=2), now + timedelta(days=2)) is None
    await held(store, "run0")
    claim = await store.claim_digest(now, now)
    assert claim is not None
    assert [run.id for run in claim.runs] == ["run0"]
    await store.finish_digest(claim, {}, now)
    assert await store.claim_digest(now, now + timedelta(minutes=1)) is not None


async def test_what_became_of_telling_again_is_kept(store: Store) -> None:
    """What was delivered meanwhile stays so; a run that is gone is not made."""
    missed = Delivery(target="file:x", delivered=False, tries=3, failure="refused", reason="no")
    reached = Delivery(target="file:y", delivered=True, tries=1, at=MONDAY)
    run = run_of("run1").model_copy(update={"news": True, "deliveries": (missed, reached)})
    await store.finish_run(await claimed(store), run, (), MONDAY + WEEK)
    again = missed.model_copy(update={"delivered": True, "tries": 4})

    await store.keep_deliveries(WATCH, "run1", (again, missed))
    await store.keep_deliveries(WATCH, "run1", (missed, missed))
    await store.keep_deliveries(WATCH, "none", (missed,))
    await store.keep_deliveries(replace(WATCH, tenant="b"), "run1", (missed, missed))

    expected = run.model_copy(update={"deliveries": (again, reached)})
    assert await store.watch_runs("local", "w1", 9) == [expected]


async def test_feed_is_read_by_its_token_alone(store: Store) -> None:
    """The last one, of this watch; a change of the watch leaves it alone."""
    await store.add_watch(FULL, 9)
    assert await store.watch_of_feed("w1", "digest") is None
    for digest in ("old", "digest"):
        assert await store.set_feed(WATCH, digest)
    await store.change_watch(replace(WATCH, about="new", feed="stolen"))
    fed = replace(WATCH, about="new", feed="digest")

    assert await store.watch_of_feed("w1", "digest") == fed
    assert (await store.watches("local"))[0] == fed
    for watch_id, digest in (("w2", "digest"), ("w1", "old"), ("w1", ""), (ODD, ODD)):
        assert await store.watch_of_feed(watch_id, digest) is None
    assert await store.set_feed(WATCH, None)
    assert await store.watch_of_feed("w1", "digest") is None
    assert not await store.set_feed(replace(WATCH, id="none"), "other")
    await store.set_feed(WATCH, "digest")
    await store.drop_watch("local", "w1")
    assert await store.watch_of_feed("w1", "digest") is None


async def test_past_is_of_one_rule(store: Store) -> None:
    """Since a time, the newest first; a run without counts is none."""
    runs = [await finished(store, number) for number in range(3)]
    failed = run_of("failed", 3).model_copy(update={"counts": None})
    await store.finish_run(await claimed(store, "failed"), failed, (), LATER)
    past = await store.past_counts(WATCH, MONDAY + WEEK, 9)
    assert past == [runs[2].counts, runs[1].counts]
    assert await store.past_counts(WATCH, MONDAY, 1) == [runs[2].counts]
    assert await store.past_counts(replace(WATCH, about="other"), MONDAY, 9) == []


async def test_runs_over_time_are_of_every_rule(store: Store) -> None:
    """With those that failed; since a time, the newest first, each tenant's own."""
    runs = [await finished(store, number) for number in range(2)]
    await store.change_watch(replace(WATCH, about="other"))
    failed = run_of("failed", 2).model_copy(update={"counts": None})
    claim = await claimed(store, "failed")
    await store.finish_run(claim, failed, (), LATER)
    kept = await store.kept_counts(WATCH, MONDAY + WEEK, 9)
    assert kept == [
        KeptCounts(claim.watch.rule, failed.created_at, None),
        KeptCounts(WATCH.rule, runs[1].created_at, runs[1].counts),
    ]
    assert claim.watch.rule != WATCH.rule
    assert await store.kept_counts(WATCH, MONDAY, 1) == kept[:1]
    assert await store.kept_counts(replace(WATCH, tenant="b"), MONDAY, 9) == []


async def test_claim_is_held_until_the_run_ends_or_the_watch_is_gone(store: Store) -> None:
    """So that nobody is told what is not kept."""
    claim = await claimed(store)
    assert await store.holds_claim(claim)
    assert not await store.holds_claim(replace(claim, run_id="other"))
    await store.drop_watch("local", "w1")
    assert not await store.holds_claim(claim)


async def test_what_was_seen_is_known(store: Store) -> None:
    """By key, the last with words; a later run may know better."""
    item = Item(key="reddit:1", id="1", source="reddit", title="T", body=ODD, link="https://a.b/c")
    await finished(store, 0, SeenPost("reddit:1", item=item), SeenPost("reddit:2", "rule"))
    known = sorted(await store.seen_posts(WATCH, 9), key=lambda entry: entry.key)
    assert known == [SeenPost("reddit:1", item=item), SeenPost("reddit:2", "rule")]
    await finished(store, 1, SeenPost("reddit:2", item=item.edited(key="reddit:2")))
    known = sorted(await store.seen_posts(WATCH, 1), key=lambda entry: entry.key)
    second = item.edited(key="reddit:2")
    assert known == [SeenPost("reddit:1"), SeenPost("reddit:2", item=second)]


async def test_forgotten_post_leaves_no_words(store: Store) -> None:
    """Neither among what was seen nor in a run; its key stays known, so it is not told again."""
    item = Item(key="reddit:1", id="1", source="reddit", title="Secret words")
    await finished(store, 0, SeenPost("reddit:1", item=item))
    await store.forget(["reddit:9"])
    assert (await store.watch_runs("local", "w1", 1))[0].new != ()
    assert (await store.watch_runs("local", "w1", 1))[0].questions != ()
    await store.forget(["reddit:1"])
    assert await store.seen_posts(WATCH, 9) == [SeenPost("reddit:1")]
    (run,) = await store.watch_runs("local", "w1", 1)
    assert (run.new, run.questions) == ((), ())


def test_secrets_are_in_no_log() -> None:
    """Neither the signing secret nor an address."""
    assert "secret" not in repr(FULL)
