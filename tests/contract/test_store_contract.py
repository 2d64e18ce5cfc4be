"""One suite over the store, on SQLite and on PostgreSQL: what a caller may rely on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from api.core.domain import Question
from api.errors import UsageError
from api.features.analyses.store_ports import AnalysisSummary, DurableWork, Filters, Store
from api.reports.composition import Origin, clarified
from api.store import open_store
from tests.services.kit import plain
from tests.store.made import ODD, counted, dropped, finding, item, report, source, typed

DAY = date(2026, 11, 27)
EVERYTHING = Filters()


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[Store]:
    """An empty store."""
    opened = await open_store(store_url)
    yield opened
    await opened.aclose()


async def loaded(store: Store, tenant: str, analysis_id: str) -> Mapping[str, Any]:
    """The report of an analysis that is done, as its JSON."""
    kept = await store.get(tenant, analysis_id)
    assert kept is not None
    assert kept.report is not None
    return plain(kept.report)


async def finish(store: Store, tenant: str, document: dict[str, Any]) -> None:
    """Store the report that this is the JSON of."""
    await store.finish(tenant, typed(document))


async def ids(store: Store, filters: Filters = EVERYTHING, tenant: str = "a") -> list[str]:
    """What a listing of one tenant shows."""
    return [kept.id for kept in (await store.listing(tenant, filters, 50)).analyses]


async def test_report_is_loaded_as_it_was_saved(store: Store) -> None:
    """Every value and the order of every field, with text that a database would refuse."""
    odd = item("items:odd", title=ODD, body=ODD * 50, place=None, sentiment=None, new={"deep": [1]})
    saved = report(
        "r1",
        item("reddit:t3_1"),
        odd,
        item(f"items:{ODD}{'x' * 3000}"),
        out=[dropped("reddit:t3_8"), dropped("reddit:t3_1", "copy of reddit:t3_9")],
        query=ODD,
    )

    await finish(store, "a", saved)
    report_again = await loaded(store, "a", "r1")

    assert json.dumps(report_again) == json.dumps(saved)


async def test_item_that_changed_upstream_changes_no_older_report(store: Store) -> None:
    """Votes, comments and length differ from run to run; each report keeps what it saw."""
    seen = [
        report("r1", out=[dropped("reddit:t3_1")]),
        report("r2", item("reddit:t3_1")),
        report("r3", item("reddit:t3_1", engagement={"votes": 13}, comments=[], body="longer")),
        report("r4", item("reddit:t3_1", rank=2, score=5)),
    ]
    for one in seen:
        await finish(store, "a", one)
    await store.delete("a", "r1")

    assert [await loaded(store, "a", f"r{number}") for number in (2, 3, 4)] == seen[1:]


async def test_every_decision_is_stored(store: Store) -> None:
    """A report without items, and the answer to what is no question, come back like any other."""
    reports = [
        report("insufficient", decision="insufficient_data", sources={}),
        report("unjudged", item("youtube:v1", judge=None, verdict=None), decision="unjudged"),
        plain(clarified("hey", Question("hey"), "standard", "Name a product.", Origin("clarify", True, None))),
    ]
    for one in reports:
        await finish(store, "a", one)

    for one in reports:
        assert await loaded(store, "a", one["id"]) == one


async def test_analysis_goes_from_running_to_done(store: Store) -> None:
    """It is there from the start, without a report, and keeps the time at which it began."""
    began = await store.begin("a", "r1", "mug")
    running = await store.get("a", "r1")
    again = await store.begin("a", "r1", "mug")
    await finish(store, "a", report("r1"))
    done = await store.get("a", "r1")

    assert running is not None
    assert done is not None
    assert (running.state, running.report, running.query) == ("running", None, "mug")
    assert (done.state, done.reason, done.created_at) == ("done", None, running.created_at)
    assert began == again == running.created_at
    assert running.created_at.tzinfo is UTC
    assert abs(running.created_at - datetime.now(UTC)) < timedelta(minutes=1)


async def test_failed_analysis_says_why(store: Store) -> None:
    """A reason is kept; it never overwrites a report, and nothing begins a second time."""
    await store.begin("a", "r1", "mug")
    await store.fail("a", "r1", "the model is away \x00")
    await finish(store, "a", report("r2"))
    await store.fail("a", "r2", "too late")
    await store.begin("a", "r2", "again")

    failed, done = await store.get("a", "r1"), await store.get("a", "r2")
    assert failed is not None
    assert done is not None
    assert (failed.state, failed.report) == ("failed", None)
    assert failed.reason == "the model is away \ufffd"
    assert (done.state, done.reason) == ("done", None)


async def test_report_may_be_finished_again(store: Store, store_url: str) -> None:
    """The second report of an id takes the place of the first, and of its items."""
    await finish(store, "a", report("r1", item("reddit:t3_1"), out=[dropped("reddit:t3_2")]))
    second = report("r1", item("reddit:t3_3"))
    await finish(store, "a", second)

    assert await loaded(store, "a", "r1") == second
    assert await counted(store_url, "analyses", "items") == [1, 1]


async def test_outcome_of_work_is_stored_where_it_still_runs(store: Store, store_url: str) -> None:
    """Not where it was deleted, or begun again: here for other work, or by another process."""
    other = await open_store(store_url)
    await store.begin("a", "r1", "mug", "r1.1")
    await store.begin("a", "r2", "mug", "r2.2")
    await store.begin("a", "r3", "mug")
    await other.begin("a", "r3", "mug")
    for id_, work_id in (("r1", "r1.1"), ("r2", "r2.1"), ("r3", ""), ("gone", "")):
        stored = [
            await store.fail("a", id_, "ask less", work_id),
            await store.finish("a", typed(report(id_, item("reddit:t3_1"))), work_id),
        ]
        assert stored == [id_ == "r1"] * 2, id_

    states = {kept.id: kept.state for kept in (await store.listing("a", EVERYTHING, 9)).analyses}
    assert states == {"r1": "done", "r2": "running", "r3": "running"}
    assert await counted(store_url, "items", "verdicts") == [1, 1]
    assert await other.finish("a", typed(report("r3")), "")
    await other.aclose()


async def test_tenants_do_not_see_each_other(store: Store, store_url: str) -> None:
    """The same id is two analyses, and neither is read, listed or deleted by the other."""
    mine, yours = report("r1", item("reddit:t3_1")), report("r1", item("reddit:t3_1", body="x"))
    await finish(store, "a", mine)
    await finish(store, "b", yours)
    await finish(store, "b", report("r2"))

    assert await store.get("a", "r2") is None
    assert await ids(store) == ["r1"]
    assert not await store.delete("a", "r2")
    assert await store.delete("a", "r1")
    assert await loaded(store, "b", "r1") == yours
    assert await counted(store_url, "items") == [1], "mine went although yours has its key"


async def test_listing_is_newest_first_and_filtered(store: Store) -> None:
    """By decision, by source that was asked, and from `since` until before `until`."""
    for day, decision in ((3, "full_report"), (1, "short_report"), (2, "full_report")):
        made = f"2026-11-0{day}T00:00:00Z"
        names = ("items",) if day == 2 else ("reddit", "youtube")
        asked = {name: source() for name in names}
        await finish(store, "a", report(f"r{day}", created_at=made, decision=decision, sources=asked))
    second = datetime(2026, 11, 2, tzinfo=UTC)

    assert await ids(store) == ["r3", "r2", "r1"]
    assert await ids(store, Filters(decision="full_report")) == ["r3", "r2"]
    assert await ids(store, Filters(source="youtube")) == ["r3", "r1"]
    assert await ids(store, Filters(since=second)) == ["r3", "r2"]
    assert await ids(store, Filters(until=second)) == ["r1"]
    assert await ids(store, Filters(prefix="r2")) == ["r2"]
    assert await ids(store, Filters(prefix="r")) == ["r3", "r2", "r1"]
    assert await ids(store, Filters(prefix="%")) == []
    assert await ids(store, Filters("full_report", "reddit", second, second)) == []


async def test_listing_shows_summaries(store: Store) -> None:
    """What is listed has the outcome of each source and the decision, but no items or texts."""
    await finish(store, "a", report("r1", item("reddit:t3_1"), out=[dropped("reddit:t3_2")]))
    await store.begin("a", "r2", "mug")

    running, done = (await store.listing("a", EVERYTHING, 5)).analyses

    assert (running.state, running.summary) == ("running", None)
    assert done.summary is not None
    assert done.summary.decision == "full_report"
    assert done.summary.sources["reddit"].kept == 1
    assert not {"items", "dropped", "findings", "quotes", "figures"} & set(plain(done.summary))
    assert "dropped" not in plain(done.summary.sources["reddit"])


async def test_pages_of_a_listing_are_stable(store: Store) -> None:
    """Analyses that come in while somebody turns the pages repeat none and hide none."""
    same = "2026-11-01T00:00:00Z"
    for number in range(5):
        await finish(store, "a", report(f"r{number}", created_at=same))
    shown: list[AnalysisSummary] = []
    cursor: str | None = None
    for turn in range(3):
        page = await store.listing("a", EVERYTHING, 2, cursor)
        shown += page.analyses
        cursor = page.cursor
        await finish(store, "a", report(f"new{turn}"))

    assert cursor is None
    assert [listed.id for listed in shown] == ["r4", "r3", "r2", "r1", "r0"]


@pytest.mark.parametrize("cursor", ["", "x", "not ours!", "W10", "WzEsMl0", "WyJ4IiwieSJd", "ü", "Wzk", "\x00"])
async def test_foreign_cursor_is_a_usage_error(store: Store, cursor: str) -> None:
    """A cursor that was made up is named as such."""
    with pytest.raises(UsageError, match="cursor"):
        await store.listing("a", EVERYTHING, 2, cursor)


async def test_delete_takes_what_only_it_held(store: Store, store_url: str) -> None:
    """Items of another analysis stay, those of nobody go, and so do its idempotency keys."""
    await finish(store, "a", report("r1", item("reddit:t3_1"), item("reddit:t3_2")))
    kept = report("r2", item("reddit:t3_2", rank=3), out=[dropped("reddit:t3_3")])
    await finish(store, "a", kept)
    await store.claim("a", "key", "digest", "r1")

    assert await store.delete("a", "r1")
    assert not await store.delete("a", "r1")
    assert await store.get("a", "r1") is None
    assert await loaded(store, "a", "r2") == kept
    assert await counted(store_url, "items", "verdicts") == [2, 3]
    assert await store.claim("a", "key", "other digest", "r3") == ("r3", True)


async def test_forgotten_item_is_nowhere(store: Store, store_url: str) -> None:
    """Items, quotes, findings, pages and sessions of every tenant lose it, and a note says so."""
    gone, left = "reddit:t3_1", "reddit:t3_11"
    for tenant in ("a", "b"):
        both = finding("Both", gone, left)
        one = report(
            "r1", item(gone), item(left), out=[dropped("x:1", f"copy of {gone}")],
            observations={"span": [gone, left]},
        )  # fmt: skip
        await finish(store, tenant, one | {"findings": [*one["findings"], both]})
    await store.keep_page("with", json.dumps({"slots": [{"key": gone}]}))
    await store.keep_page("without", "[]")
    await store.keep_session("a", "listed", json.dumps([{"key": gone}, {"key": left}]))
    await store.keep_session("a", "told", json.dumps({"said": f"As {gone} says"}))

    assert await store.forget([gone, "reddit:t3_unknown"]) == 1
    assert await store.forget([gone]) == 0

    for tenant in ("a", "b"):
        now = await loaded(store, tenant, "r1")
        assert [entry["key"] for entry in now["items"]] == [left]
        assert [quote["key"] for quote in now["quotes"]] == [left]
        assert [found["cites"] for found in now["findings"]] == [[left], [left]]
        assert [found["evidence"][0]["key"] for found in now["findings"]] == [left, left]
        assert [len(found["evidence"]) for found in now["findings"]] == [1, 1]
        assert now["figures"]["aspects"][0] == {
            "aspect": "battery",
            "count": 2,
            "positive": 0,
            "negative": 2,
            "cites": [left],
        }
        assert [entry["reason"] for entry in now["dropped"]] == ["copy of [removed]"]
        assert now["observations"] == {"span": [left]}
        assert "1 item was removed" in now["quality_notes"][0]
        assert len(now["quality_notes"]) == 1
        assert gone not in json.dumps(now).replace(left, "")
    assert await store.page("with", 60) is None
    assert await store.page("without", 60) == "[]"
    assert json.loads(await store.session("a", "listed") or "") == [{"key": left}]
    assert await store.session("a", "told") is None
    assert await counted(store_url, "items") == [4]


async def test_work_is_charged_once(store: Store) -> None:
    """Whichever process asks, before and after it is settled; settled to what it used, once."""
    assert await store.charge("w1", "s", DAY, 3, 4)
    assert await store.charge("w1", "s", DAY, 3, 4)
    assert not await store.charge("w2", "s", DAY, 2, 4)
    assert await store.spent("s", DAY) == 3
    await store.settle("w1", "s", 1)
    await store.settle("w1", "s", 0)
    assert await store.charge("w1", "s", DAY, 3, 4)
    assert await store.spent("s", DAY) == 1
    assert await store.charge("w2", "s", DAY, 0, 4)
    await store.settle("w2", "s", 9)
    await store.settle("nobody", "s", 9)
    assert await store.spent("s", DAY) == 10


async def test_what_is_released_may_be_charged_again(store: Store) -> None:
    """Once, all of it, and nothing that is settled."""
    assert await store.charge("w1", "s", DAY, 3, 4)
    for _ in range(2):
        await store.release("w1", "s")
        assert await store.spent("s", DAY) == 0
    assert await store.charge("w2", "s", DAY, 2, 4)
    assert not await store.charge("w1", "s", DAY, 3, 4)
    await store.settle("w2", "s", 1)
    await store.release("w2", "s")
    assert await store.spent("s", DAY) == 1


async def test_durable_work_does_not_end_with_its_process(store: Store, store_url: str) -> None:
    """It is found by its question while it runs; what is not durable has failed."""
    other = await open_store(store_url)
    await other.begin("a", "kept", "mug", "kept.1", "digest")
    await other.begin("a", "lost", "mug", "", "digest")
    assert await store.running("a", "digest") == "kept"
    assert await store.running("b", "digest") is None
    assert list(await store.durable()) == [DurableWork("a", "kept", "kept.1")]
    await other.aclose()
    states = {kept.id: kept.state for kept in (await store.listing("a", Filters(), 9)).analyses}
    assert states == {"kept": "running", "lost": "failed"}
    assert await store.sweep() == 0
    await store.fail("a", "kept", "cancelled")
    assert await store.running("a", "digest") is None
    assert not await store.durable()


async def test_a_process_is_gone_when_it_is_closed(store: Store, store_url: str) -> None:
    """Or when nobody has ever heard of it."""
    other = await open_store(store_url)
    name = await other.appear()
    assert set(await store.gone({name, "nobody", await store.appear()})) == {"nobody"}
    await other.aclose()
    assert set(await store.gone({name})) == {name}


async def test_ledger_lets_nobody_beyond_the_limit(store: Store) -> None:
    """Units are taken while they fit, by scope and day, and can be given back."""
    assert await store.take("s", DAY, 3, 4)
    assert not await store.take("s", DAY, 2, 4)
    assert await store.take("s", DAY, 1, 4)
    assert not await store.take("s", DAY, 1, 4)
    assert await store.take("s", DAY + timedelta(days=1), 4, 4)
    assert await store.take("other", DAY, 1, 4)
    assert not await store.take("new", DAY, 5, 4)
    assert [await store.spent(scope, DAY) for scope in ("s", "other", "new")] == [4, 1, 0]

    await store.give_back("s", DAY, 1)
    assert await store.spent("s", DAY) == 3
    await store.give_back("s", DAY, 9)
    await store.give_back("new", DAY, 1)
    assert [await store.spent(scope, DAY) for scope in ("s", "new")] == [0, 0]


async def test_ten_at_once_get_the_last_unit_once(store: Store) -> None:
    """Checking and charging are one step (case B94)."""
    assert await store.take("s", DAY, 99, 100)

    taken = await asyncio.gather(*(store.take("s", DAY, 1, 100) for _ in range(10)))

    assert sum(taken) == 1
    assert await store.spent("s", DAY) == 100


async def test_ledger_holds_large_amounts(store: Store) -> None:
    """Costs are counted in millionths of a dollar."""
    assert await store.take("usd", DAY, 5_000_000_000_000, 10**13)
    assert await store.spent("usd", DAY) == 5_000_000_000_000


async def test_page_lives_as_long_as_it_is_asked_to(store: Store) -> None:
    """The last text of a key comes back exactly, and not when it is too old."""
    await store.keep_page("k", "first")
    await store.keep_page("k", ODD)
    await store.keep_page("l" * 5000, "long key")

    assert await store.page("k", 60) == ODD
    assert await store.page("k", 0) is None
    assert await store.page("l" * 5000, 60) == "long key"
    assert await store.page("unknown", 60) is None


async def test_key_is_known_until_it_is_revoked(store: Store) -> None:
    """By its digest; the list has revoked ones too, oldest first."""
    first, second = await store.add_key("first", "d1"), await store.add_key("second", "d2")

    assert await store.keys() == (first, second)
    assert await store.key_of("d1") == first
    assert await store.key_of("d3") is None
    assert await store.revoke_key(first.id)
    assert await store.revoke_key("second")
    assert not await store.revoke_key("third")
    assert await store.key_of("d1") is None
    assert await store.key_of("d2") is None
    assert [key.revoked for key in await store.keys()] == [True, True]
    assert first.origin == "store"
    assert first.created_at is not None
    assert first.created_at.tzinfo is UTC


async def test_name_of_a_key_is_taken_once(store: Store) -> None:
    """Two keys cannot have one name, and one key not two names."""
    await store.add_key("mine", "d1")

    for name, digest in (("mine", "d2"), ("yours", "d1")):
        with pytest.raises(UsageError):
            await store.add_key(name, digest)

    assert len(await store.keys()) == 1


async def test_report_is_opened_by_its_link_alone(store: Store) -> None:
    """The last one, of this analysis; one that is stored anew keeps it."""
    await finish(store, "a", report("r1", item("reddit:t3_1")))
    await finish(store, "b", report("r1"))
    assert not await store.has_link("a", "r1")
    for digest in ("old", "digest"):
        assert await store.set_link("a", "r1", digest)
    await finish(store, "a", report("r1"))

    assert await store.owner_of_link("r1", "digest") == "a"
    assert (await store.has_link("a", "r1"), await store.has_link("b", "r1")) == (True, False)
    for analysis_id, digest in (("r2", "digest"), ("r1", "old"), ("r1", ""), (ODD, ODD)):
        assert await store.owner_of_link(analysis_id, digest) is None
    assert not await store.set_link("a", "none", "other")
    assert await store.set_link("a", "r1", None)
    assert await store.owner_of_link("r1", "digest") is None
    await store.set_link("a", "r1", "digest")
    await store.delete("a", "r1")
    assert await store.owner_of_link("r1", "digest") is None


async def test_login_lasts_until_its_time(store: Store) -> None:
    """Or until it is dropped."""
    noon = datetime(2026, 11, 27, 12, tzinfo=UTC)
    await store.keep_login("first", "a", noon)
    await store.keep_login("second", "b", noon)

    assert await store.login("first", noon - timedelta(seconds=1)) == "a"
    assert await store.login("first", noon) is None
    assert await store.login(ODD, noon) is None
    await store.drop_login("second")
    await store.drop_login("none")
    assert await store.login("second", noon - timedelta(days=1)) is None


async def test_session_belongs_to_its_tenant(store: Store) -> None:
    """What was saved last comes back exactly, to nobody else."""
    await store.keep_session("a", "s", "first")
    await store.keep_session("a", "s", ODD)

    assert await store.session("a", "s") == ODD
    assert await store.session("b", "s") is None
    assert await store.session("a", "t") is None


async def test_sessions_are_listed_and_dropped(store: Store) -> None:
    """The last used first, page by page, the tenant's own alone; what is dropped is gone."""
    for name in ("one", "two", "three", "one"):
        await store.keep_session("a", name, f"text of {name}")
    await store.keep_session("b", "other", "")

    pages, cursor = [await store.sessions("a", 2)], ""
    while cursor := pages[-1].cursor or "":
        pages.append(await store.sessions("a", 2, cursor))
    dropped = [await store.drop_session(*session) for session in (("a", "two"), ("a", "other"))]
    again = await store.drop_session("a", "two")

    assert [[kept.id for kept in page.sessions] for page in pages] == [["one", "three"], ["two"]]
    assert pages[0].sessions[0].text == "text of one"
    assert pages[0].sessions[0].saved_at > pages[0].sessions[1].saved_at
    assert (dropped, again) == ([True, False], False)
    assert [kept.id for kept in (await store.sessions("a", 9)).sessions] == ["one", "three"]
    assert await store.session("a", "two") is None
    with pytest.raises(UsageError, match="cursor"):
        await store.sessions("a", 2, "made up")


async def test_sessions_over_a_report_are_listed_by_it(store: Store) -> None:
    """The last used first, page by page; another tenant's, another report's and those without one are left out."""
    for name, report_id in (("one", "r1"), ("two", "r1"), ("three", "r2"), ("four", None), ("one", "r1")):
        await store.keep_session("a", name, f"text of {name}", report_id)
    await store.keep_session("b", "other", "", "r1")

    first = await store.sessions("a", 1, report_id="r1")
    rest = await store.sessions("a", 1, first.cursor, "r1")

    assert [kept.id for kept in (*first.sessions, *rest.sessions)] == ["one", "two"]
    assert rest.cursor is None
    assert (await store.sessions("a", 9, report_id="r3")).sessions == ()
    assert len((await store.sessions("a", 9)).sessions) == 4


async def test_idempotency_key_stands_for_one_request(store: Store) -> None:
    """The first caller owns it, the same request finds it, another is refused, tenants differ."""
    claims = await asyncio.gather(*(store.claim("a", "k", "d", f"r{n}") for n in range(5)))

    assert sum(mine for _, mine in claims) == 1
    assert len({owner for owner, _ in claims}) == 1
    with pytest.raises(UsageError, match="Idempotency-Key"):
        await store.claim("a", "k", "another", "r9")
    assert await store.claim("b", "k", "another", "r9") == ("r9", True)


@pytest.mark.parametrize("odd", ["", "x\x00", "\ud800", "é" * 5000, "'; DROP TABLE items; --"])
async def test_odd_names_are_names(store: Store, odd: str) -> None:
    """Whatever a URL or a header holds is looked up, stored and not found like any other."""
    await finish(store, "a", report("r1"))

    assert await store.get("a", odd) is None
    assert await store.get(odd, "r1") is None
    assert not await store.delete(odd, odd)
    assert await ids(store, Filters(decision=odd, source=odd)) == []
    assert await store.key_of(odd) is None
    assert not await store.revoke_key(odd)
    await store.begin(odd, odd, odd)
    assert await store.get(odd, odd) is not None
    assert await store.take(odd, DAY, 1, 1)
    assert await store.spent(odd, DAY) == 1
    assert (await store.claim(odd, odd, odd, "r2"))[1]
    assert not (await store.claim(odd, odd, odd, "r2"))[1]


async def test_many_finish_and_delete_at_once(store: Store, store_url: str) -> None:
    """Analyses that share items are stored and deleted side by side without a scratch."""
    reports = [report(f"r{number}", *(item(f"reddit:t3_{n}", rank=number) for n in range(6))) for number in range(12)]
    await asyncio.gather(*(finish(store, "a", one) for one in reports))
    gone = await asyncio.gather(
        *(store.delete("a", f"r{number}") for number in range(0, 12, 2)),
        *(finish(store, "a", report(f"new{number}", item("reddit:t3_0"))) for number in range(3)),
    )

    assert gone[:6] == [True] * 6
    for number in range(1, 12, 2):
        assert await loaded(store, "a", f"r{number}") == reports[number]
    assert await counted(store_url, "analyses", "items") == [9, 6]


async def test_large_report_is_stored(store: Store) -> None:
    """More items than one statement takes parameters."""
    many = report("r1", *(item(f"items:{number}") for number in range(1200)))

    await finish(store, "a", many)

    assert await loaded(store, "a", "r1") == many
    assert await store.delete("a", "r1")
