"""The rule of each receiver: what it is told of at once, what in its digest, and what is held back."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, get_args

import pytest

from api.choices import Only
from api.errors import UsageError
from api.features.analyses.inbox import UNREAD
from api.features.analyses.store_ports import Store
from api.features.watches.notification import DIGEST_POSTS, Message
from api.features.watches.receiver_rules import held_back, run_for, send_digest
from api.features.watches.watch import Target, Watch, digest_after, next_digest, target_of, with_rule
from api.features.watches.watch_ports import SeenPost
from api.features.watches.watch_run import NEWS, Delivery, WatchRun
from api.features.watches.watch_service import (
    WatchRunner,
    changed_watch,
    resend,
    undelivered_runs,
    undelivered_targets,
    utc_now,
)
from api.interfaces.shared.watch_view import held_views, undelivered_views
from tests.features.comparisons.made import PLACES
from tests.features.watches.example_run import CHANGE, new_post, run
from tests.features.watches.made import WATCH

HOOK = "https://hooks.slack.com/services/T/secret"
CALM, COMPLAINT = new_post(1, complains=False), new_post(2, complains=True)


def told_by(*rules: str) -> Watch:
    """A watch with a receiver for each rule, all of one server."""
    return replace(
        WATCH, notify=tuple(target_of(f"{HOOK}{number} {rule}", files=False) for number, rule in enumerate(rules))
    )


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("mailto:ann@example.org", ""),
        ("mailto:ann@example.org only complaints", "only complaints"),
        ("mailto:ann@example.org  Only  UNUSUAL digest 8:00", "only unusual digest 8:00"),
        (f"{HOOK} digest mon,thu 08:00", "digest mon,thu 08:00"),
        ("file:/a b/only c.jsonl digest 08:00", "digest 08:00"),
        ("file:/a b/the only digest.jsonl", ""),
    ],
)
def test_a_rule_stands_behind_the_address(written: str, rule: str) -> None:
    """It is shown as it is written; without one the receiver is what it was in older versions."""
    target = target_of(written, files=True)
    assert target.rule == rule
    assert target.described == f"{target.shown} {rule}".strip()
    assert with_rule(target, rule) == target
    assert rule not in target.address or not rule


@pytest.mark.parametrize(
    "rule", ["complaints", "only praise", "digest", "digest 25:00", "digest noon", "digest x 08:00"]
)
def test_what_is_no_rule_is_refused(rule: str) -> None:
    """With the forms that there are."""
    with pytest.raises(UsageError, match="write `only complaints`") as refused:
        target_of(f"mailto:ann@example.org {rule}", files=False)
    assert refused.value.field == "notify"


@pytest.mark.parametrize("rule", ["only everything", "digest 8", "digest 08:00 only complaints"])
def test_a_wrong_rule_is_no_part_of_a_path(rule: str) -> None:
    """A file of such a name would be written, and nobody would know why."""
    with pytest.raises(UsageError, match=f"“{rule}” is no rule of a receiver"):
        target_of(f"file:/a b/heard.jsonl {rule}", files=True)


def test_a_digest_is_due_by_the_clock_of_the_watch() -> None:
    """The first of all receivers; by UTC where the zone is unknown here."""
    watch = replace(told_by("digest 08:00", "digest mon 07:30", ""), zone="Europe/Berlin")
    monday, later = datetime.fromisoformat("2026-11-30T00:00Z"), datetime.fromisoformat("2026-11-30T06:30Z")
    assert next_digest(watch, monday) == later
    assert next_digest(watch, later) == datetime.fromisoformat("2026-11-30T07:00Z")
    assert next_digest(told_by("", "only unusual"), monday) is None
    odd = replace(watch, zone="Mars/Crater")
    assert digest_after(odd, odd.notify[0], monday) == datetime.fromisoformat("2026-11-30T08:00Z")


@pytest.mark.parametrize(
    ("rule", "made", "posts"),
    [
        ("", {"new": (CALM,)}, 1),
        ("only complaints", {"new": (CALM, COMPLAINT), "more": 3}, 1),
        ("only complaints", {"new": (CALM,), "unusual": (CHANGE,)}, None),
        ("only complaints", {"new": (CALM,), "unusual": (CHANGE.model_copy(update={"measure": "complaint"}),)}, 0),
        ("only unusual", {"new": (CALM, COMPLAINT)}, None),
        ("only unusual", {"new": (CALM, COMPLAINT), "unusual": (CHANGE,)}, 2),
        ("only unusual", {"state": "failed"}, 0),
        ("only complaints digest 08:00", {"state": "not_asked"}, 0),
    ],
)
def test_a_rule_leaves_out_what_it_does_not_name(rule: str, made: dict[str, Any], posts: int | None) -> None:
    """But that a watch hears nothing, which is told to all at once."""
    watch = told_by(rule)
    told = run_for(watch, run(**made), watch.notify[0])
    assert (None if told is None else len(told[1].new)) == posts
    assert (held_back(watch, run(**made), watch.notify[0]) is None) == (posts is not None)
    if rule == "only complaints" and told:
        assert (told[0].only, told[1].more) == ("complaints", 0)


@dataclass
class World:
    """Receivers that keep what they get, and a clock that the test moves."""

    store: Store
    now: datetime
    deaf: set[str] = field(default_factory=set)
    messages: list[tuple[str, Message]] = field(default_factory=list)

    async def send(self, watch: Watch, target: Target, message: Message) -> Delivery:
        self.messages.append((target.address[-1], message))
        return Delivery(
            target=target.shown, delivered=target.address[-1] not in self.deaf, tries=1, reason="no answer"
        ).model_copy(update={} if target.address[-1] in self.deaf else {"reason": ""})

    @property
    def runner(self) -> WatchRunner:
        async def analyze(*_: object) -> Any:
            raise AssertionError

        return WatchRunner(self.store, analyze, self.send, PLACES, 92, lambda: self.now)

    async def ran(self, run_id: str, **made: Any) -> WatchRun:
        """A run of the stored watch that ends now and has seen its new posts."""
        claim = await self.store.claim_watch("local", "w1", self.now, self.now + timedelta(minutes=1), run_id)
        assert claim is not None
        self.now += timedelta(seconds=1)
        learnt = [SeenPost(post.key) for post in made.get("new", ())]
        return await self.runner.sent_and_stored(claim, run(id=run_id, created_at=self.now, **made), learnt)

    def told(self) -> list[tuple[str, int]]:
        """Who got how many posts in each message, since the last call; in order of who."""
        messages, self.messages = self.messages, []
        documents = [(who, json.loads(message.body)) for who, message in messages]
        return sorted(
            (who, sum(len(part["new"]) for part in document.get("runs", [document.get("run")])))
            for who, document in documents
        )

    async def stored(self, run_id: str) -> list[tuple[bool, str | None]]:
        """Of each delivery of a run, whether it arrived and what holds it back."""
        runs = await self.store.watch_runs("local", "w1", 99)
        (found,) = [each for each in runs if each.id == run_id]
        return [(delivery.delivered, delivery.held) for delivery in found.deliveries]


async def world_of(store: Store, *rules: str) -> World:
    """With one watch, before its next digest."""
    watch = replace(told_by(*rules), due_at=utc_now() + timedelta(days=900))
    await store.add_watch(watch, 9)
    return World(store, utc_now())


def next_eight(world: World) -> datetime:
    """The next 08:00 by UTC, by which the store counts from now."""
    return digest_after(told_by("digest 08:00"), target_of(f"{HOOK} digest 08:00", files=False), world.now)


def test_each_value_of_only_has_its_posts_changes_and_words() -> None:
    """A value without them would be refused by nothing and announced as another."""
    assert tuple(NEWS) == (None, *get_args(Only))
    assert len({kind.noun for kind in NEWS.values()}) == len({kind.label for kind in NEWS.values()}) == len(NEWS)
    posts, changes = (CALM, COMPLAINT), (CHANGE, CHANGE.model_copy(update={"measure": "complaint"}))
    assert (NEWS[None].posts(posts), NEWS[None].changes(changes)) == (posts, changes)
    assert (NEWS["complaints"].posts(posts), NEWS["complaints"].changes(changes)) == ((COMPLAINT,), changes[1:])


async def test_each_receiver_is_told_by_its_rule(store: Store) -> None:
    """What is held back is news all the same, in the inbox and the history, and is said with its reason."""
    world = await world_of(store, "", "only complaints", "only unusual", "digest 08:00")
    made = await world.ran("aa1", new=(CALM, COMPLAINT))

    assert world.told() == [("0", 2), ("1", 1)]
    assert made.news
    assert await world.stored("aa1") == [(True, None), (True, None), (False, "rule"), (False, "digest")]
    assert len(await store.inbox("local", UNREAD, 9)) == 2
    (watch,) = await store.watches("local")
    assert await undelivered_runs(store, watch) == []
    assert undelivered_views([made]) == []
    await world.ran("aa2", new=(CALM,))
    held = held_views(await store.watch_runs("local", "w1", 9, news=True))
    assert [(view.reason, view.runs, view.run_id) for view in held] == [
        ("no complaint in it", 1, "aa2"),
        ("nothing unusual in it", 2, "aa2"),
        ("waits for the digest of 08:00", 2, "aa2"),
    ]


async def test_a_first_run_without_a_new_post_waits_for_no_digest(store: Store) -> None:
    """Of a watch that tells of it: a digest would leave it out."""
    world = await world_of(store, "digest 08:00", "only complaints digest 08:00")
    (watch,) = await store.watches("local")
    assert await store.change_watch(replace(watch, tell_first=True))
    await world.ran("aa1", state="baseline", kept=7)
    ((who, message),) = world.messages
    assert (who, "the first run found 7 posts" in message.text) == ("0", True)
    assert await world.stored("aa1") == [(True, None), (False, "rule")]


async def test_a_digest_gathers_what_came_since_the_one_before(store: Store) -> None:
    """Once, at its time, also posts of streams; then what comes later waits for the next."""
    world = await world_of(store, "digest 08:00")
    await world.ran("aa1", new=(CALM,), unusual=(CHANGE,))
    await world.ran("stream-1", new=(COMPLAINT,), counts=None, report_id=None, as_it_happens=True)
    assert await world.runner.send_digests() == []
    eight = world.now = next_eight(world)
    (watch,) = await world.runner.send_digests()
    (_, message), *others = world.messages
    assert others == []
    document = json.loads(message.body)
    assert (document["type"], document["id"]) == ("watch.digest", message.run_id)
    assert [part["id"] for part in document["runs"]] == ["aa1", "stream-1"]
    assert "2 new posts and 1 unusual change since" in message.text.splitlines()[0]
    assert world.told() == [("0", 2)]
    assert await world.stored("aa1") == await world.stored("stream-1") == [(True, None)]

    assert await world.runner.send_digests() == []
    await world.ran("aa2", new=(new_post(3),))
    world.now = eight + timedelta(hours=23)
    assert await world.runner.send_digests() == []
    world.now = eight + timedelta(days=3)
    await world.runner.send_digests()
    assert world.told() == [("0", 1)]
    assert watch.id == "w1"


async def test_a_process_that_dies_after_sending_sends_the_same_again(store: Store) -> None:
    """Of the same runs by the same id, whatever came meanwhile, which the next digest holds."""
    world = await world_of(store, "digest 08:00")
    await world.ran("aa1", new=(CALM,))
    world.now = next_eight(world)
    claim = await store.claim_digest(world.now, world.now + timedelta(minutes=5))
    assert claim is not None
    dying = replace(world.runner, store=Dying(store))
    world.now += timedelta(minutes=6)
    with pytest.raises(asyncio.CancelledError):
        await dying.send_digests()
    await world.ran("aa2", new=(COMPLAINT,))
    assert await store.claim_digest(world.now, world.now) is None
    world.now += timedelta(minutes=6)
    await world.runner.send_digests()

    first, second = (message for _, message in world.messages)
    assert first == second
    assert world.told() == [("0", 1), ("0", 1)]
    assert (await world.stored("aa1"), await world.stored("aa2")) == ([(True, None)], [(False, "digest")])
    world.now += timedelta(days=1)
    await world.runner.send_digests()
    assert world.told() == [("0", 1)]


@dataclass
class Dying:
    """A store whose process is killed before it keeps what became of a digest."""

    store: Store

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    async def finish_digest(self, *_: object) -> None:
        raise asyncio.CancelledError


async def test_a_digest_that_does_not_arrive_is_undelivered(store: Store) -> None:
    """Each run of it is sent again by hand, to that receiver alone."""
    world = await world_of(store, "digest 08:00", "digest 08:00")
    await world.ran("aa1", new=(CALM,))
    world.now, world.deaf = next_eight(world), {"1"}
    await world.runner.send_digests()
    assert world.told() == [("0", 1), ("1", 1)]
    (watch,) = await store.watches("local")
    (missed,) = await undelivered_runs(store, watch)
    assert list(undelivered_targets(watch, missed)) == [1]
    world.deaf = set()
    again = await resend(store, world.send, PLACES, watch, missed)
    assert [delivery.delivered for delivery in again.deliveries] == [True, True]
    assert world.told() == [("1", 1)]
    assert await undelivered_runs(store, watch) == []


async def test_a_rule_that_changes_loses_nothing(store: Store) -> None:
    """Who has no digest any more is told of what waited; who is removed is not, whatever else has its server."""
    world = await world_of(store, "digest 08:00", "digest 08:00", "digest 08:00")
    await world.ran("aa1", new=(CALM, COMPLAINT))
    (watch,) = await store.watches("local")
    at_once, _, narrowed = watch.notify
    now = (replace(narrowed, only="complaints"), replace(at_once, digest=""))
    assert await store.change_watch(changed_watch(watch, {"notify": now}))
    world.now = utc_now()
    await world.runner.send_digests()
    assert world.told() == [("0", 2)]
    assert await world.stored("aa1") == [(True, None), (False, "removed"), (False, "digest")]
    world.now = next_eight(world)
    await world.runner.send_digests()
    assert world.told() == [("2", 1)]
    assert await world.stored("aa1") == [(True, None), (False, "removed"), (True, None)]


async def test_what_was_deleted_meanwhile_is_in_no_digest(store: Store) -> None:
    """Nor is there an empty one."""
    world = await world_of(store, "digest 08:00")
    await world.ran("aa1", new=(CALM,))
    await store.forget([CALM.key])
    world.now = next_eight(world)
    await world.runner.send_digests()
    assert world.told() == []
    assert await world.stored("aa1") == [(False, "rule")]


async def test_each_rule_of_one_address_has_its_own_digest(store: Store) -> None:
    """At its own time, by its own rule, as another message; a rule that is taken away leaves its runs to the other."""
    world = await world_of(store)
    (watch,) = await store.watches("local")
    later = f"{world.now + timedelta(days=2):%a} 12:00".lower()  # than the next 08:00, at whatever hour this runs
    rules = ("only unusual digest 08:00", "digest 08:00", f"only complaints digest {later}")
    notify = tuple(target_of(f"{HOOK}0 {rule}", files=False) for rule in rules)
    assert await store.change_watch(changed_watch(watch, {"notify": notify}))
    await world.ran("aa1", new=(CALM,))
    await world.ran("aa2", new=(COMPLAINT,), unusual=(CHANGE,))
    world.now = next_eight(world)
    await world.runner.send_digests()
    assert len({message.run_id for _, message in world.messages}) == 2
    assert world.told() == [("0", 1), ("0", 2)]
    assert await world.stored("aa1") == [(False, "rule"), (True, None), (False, "rule")]
    assert await world.stored("aa2") == [(True, None), (True, None), (False, "digest")]
    (watch,) = await store.watches("local")
    assert await store.change_watch(changed_watch(watch, {"notify": notify[:2]}))
    await world.runner.send_digests()
    assert world.told() == [("0", 1)]
    assert await world.stored("aa2") == [(True, None)] * 3


async def test_a_watch_that_changes_while_its_digest_is_sent(store: Store) -> None:
    """Who has no digest any more is notified at once of what came during that, not with the digest of another."""
    world = await world_of(store, "digest 08:00", "digest 08:00")
    (watch,) = await store.watches("local")
    await world.ran("aa1", new=(CALM,))
    moment = world.now = next_eight(world) + timedelta(seconds=3)
    claim = await store.claim_digest(moment, moment + timedelta(minutes=5))
    assert claim is not None
    await world.ran("aa2", new=(COMPLAINT,))
    kept = (replace(watch.notify[0], digest=""), watch.notify[1])
    assert await store.change_watch(changed_watch(watch, {"notify": kept}))
    await store.finish_digest(claim, await send_digest(claim, moment, world.send, PLACES), moment)
    assert world.told() == [("0", 1), ("1", 1)]
    await world.runner.send_digests()
    assert world.told() == [("0", 1)]
    assert await world.stored("aa2") == [(True, None), (False, "digest")]


async def test_a_digest_that_is_due_stays_due_when_its_watch_is_changed(store: Store) -> None:
    """Where no process ran at its time, too."""
    world = await world_of(store, "digest 08:00")
    await world.ran("aa1", new=(CALM,))
    (watch,) = await store.watches("local")
    past = replace(watch, created_at=watch.created_at - timedelta(days=3))
    claim = await store.claim_digest(next_eight(world), utc_now() - timedelta(seconds=1))
    assert claim is not None
    await store.finish_digest(claim, {}, utc_now() - timedelta(days=2))
    assert await store.change_watch(changed_watch(past, {"name": "Mugs"}))
    world.now = utc_now()
    await world.runner.send_digests()
    assert world.told() == [("0", 1)]


async def test_a_digest_holds_a_bounded_number_of_posts(store: Store) -> None:
    """Of the others it says how many there are; all are in the inbox."""
    world = await world_of(store, "digest 08:00")
    numbers = iter(range(DIGEST_POSTS + 20))
    for run_id in range(3):
        await world.ran(f"aa{run_id}", new=[new_post(next(numbers)) for _ in range(DIGEST_POSTS // 3 + 1)])
    world.now = next_eight(world)
    await world.runner.send_digests()
    ((_, message),) = world.messages
    runs = json.loads(message.body)["runs"]
    assert sum(len(run["new"]) for run in runs) == DIGEST_POSTS
    assert [run.get("more", 0) for run in runs] == [0, 0, 2]
    assert f"- and {DIGEST_POSTS + 2 - 30} more, all in the inbox" in message.text
