"""Stack Exchange: what is sent, what its answers become, its own failures, recordings."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from api.core.context import request_counter
from api.core.domain import FetchPlan
from api.core.items import Item
from api.core.ports import Source
from api.errors import Blocked, Broken, NotConfigured, QuotaExhausted, RateLimited, Refused, SourceError, Unreachable
from api.pipeline.question.query_screen import without_operators
from api.sources import SOURCES
from tests.loopback import Reply
from tests.sources.emulators import found_by, on
from tests.sources.issue_emulators import SITES, StackExchangeEmulator, answered, envelope, owner, question

SETTING = "LISTENPOST_STACKEXCHANGE_SITES"


@pytest.fixture
def upstream() -> Iterator[StackExchangeEmulator]:
    """Stack Exchange on loopback."""
    with StackExchangeEmulator() as server:
        yield server


@pytest.fixture
async def source(upstream: StackExchangeEmulator) -> AsyncIterator[Source]:
    """The real source that asks it."""
    made = SOURCES["stackexchange"].build(upstream.settings())
    yield made
    await made.aclose()


@pytest.fixture
async def of_one(upstream: StackExchangeEmulator) -> AsyncIterator[Source]:
    """The same of one site, without a key."""
    settings = upstream.settings(stackexchange_sites="superuser", stackexchange_key=None)
    made = SOURCES["stackexchange"].build(settings)
    yield made
    await made.aclose()


def error(name: str, message: str = "", number: int = 400) -> Reply:
    """An error, always HTTP 400."""
    body = {"error_id": number, "error_message": message, "error_name": name}
    return Reply(400, body)


async def found(upstream: StackExchangeEmulator, source: Source, *rows: Any) -> tuple[Item, ...]:
    """What these questions become."""
    upstream.fault = on("/search/advanced", Reply(body=envelope(list(rows))))
    return (await source.fetch(FetchPlan("mug", 10))).items


async def test_each_site_is_asked_once(upstream: StackExchangeEmulator, source: Source) -> None:
    """A hundred questions each, in turns; the refetch and the answers cost one request a site."""
    plan = FetchPlan("Ember mug", 10, name="Ember mug")
    batch = await source.fetch(plan)
    await source.fetch(plan.widened(2))

    searches = [asked for asked in upstream.server.asked if asked.path.endswith("advanced")]
    assert sorted(asked.query["site"] for asked in searches) == sorted(SITES)
    assert {asked.query["q"] for asked in searches} == {'"Ember mug"'}
    assert {asked.query["filter"] for asked in searches} == {"withbody"}
    assert {asked.query["pagesize"] for asked in searches} == {"100"}
    assert all("fromdate" not in asked.query for asked in searches)
    assert [item.place for item in batch.items[:4]] == [*SITES, SITES[0]]

    with request_counter() as calls:
        read = await source.comments(batch.items[:6])

    assert calls.made == 3
    assert sorted(upstream.paths[-3:]) == [
        f"/2.3/questions/{ids}/answers" for ids in ("4000;4003", "4001;4004", "4002;4005")
    ]
    assert all(len(item.comments) == 3 for item in read.items)


async def test_no_log_holds_the_key(upstream: StackExchangeEmulator, caplog: pytest.LogCaptureFixture) -> None:
    """It travels in the query, which httpx logs with the address of every request."""
    source = SOURCES["stackexchange"].build(upstream.settings(stackexchange_key="planted-K3y"))

    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.INFO, "httpx"):
        await source.fetch(FetchPlan("mug", 10))
    await source.aclose()

    assert {asked.query["key"] for asked in upstream.searches} == {"planted-K3y"}
    assert "/2.3/search/advanced" in caplog.text
    assert "planted-K3y" not in caplog.text


async def test_a_window_is_exact(upstream: StackExchangeEmulator, of_one: Source) -> None:
    """To the second, by the place itself."""
    await of_one.fetch(FetchPlan("mug", 10, "week"))

    (search,) = upstream.searches
    week_ago = (datetime.now(UTC) - timedelta(days=7)).timestamp()
    assert abs(int(search.query["fromdate"]) - week_ago) < 600


async def test_only_sites_with_more_are_asked_again(upstream: StackExchangeEmulator, source: Source) -> None:
    """The second page is the first site's alone."""
    batch = await source.fetch(FetchPlan("mug", 500))

    assert len(batch.items) == 320
    sites = [asked.query["site"] for asked in upstream.server.asked]
    assert (sorted(sites[:3]), sites[3:]) == (sorted(SITES), [SITES[0]])


async def test_a_question_names_its_author(upstream: StackExchangeEmulator, of_one: Source) -> None:
    """Name as written and profile, as the licence asks; entities and markup are read."""
    asker = owner("ann") | {"display_name": "Ann &amp; Co"}
    (item,) = await found(upstream, of_one, question(1, owner=asker))
    upstream.fault = on("/answers", Reply(body=envelope([answered(4001, 1, owner=owner("Bo"))])))
    (full,) = (await of_one.comments((item,))).items

    assert (item.key, item.id, item.place) == (
        "stackexchange:superuser:4001", "4001", "superuser",
    )  # fmt: skip
    assert (item.title, item.body) == ("Mug's 1", "It's cold")
    assert item.author == "Ann & Co"
    assert item.credit == "Ann & Co (https://superuser.com/users/7/ann)"
    assert list(item.engagement.items()) == [("score", 12), ("views", 900), ("answers", 3)]
    (answer,) = full.comments
    assert answer.url == "https://superuser.com/a/9001"
    assert (answer.author, answer.credit) == ("Bo", "Bo (https://superuser.com/users/7/Bo)")
    assert answer.engagement == {"score": 8}


ODD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"owner": {"display_name": "user99", "user_type": "does_not_exist"}}, {"credit": "user99"}),
    ({"owner": {"display_name": "Bo (https://evil.example)"}}, {"credit": None}),
    ({"owner": None}, {"author": None, "credit": None}),
    ({"owner": {"user_id": -1, "display_name": "Community"}}, {"unfit": "written by a bot"}),
    ({"body": None}, {"body": "", "unfit": ""}),
    ({"creation_date": 0}, {"created_at": None}),
    ({"link": "javascript:alert(1)"}, {"url": ""}),
    (
        {"score": "x", "view_count": None},
        {"engagement": {"score": None, "views": None, "answers": 3}},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "expected"), ODD)
async def test_odd_questions(upstream: StackExchangeEmulator, of_one: Source, fields: Any, expected: Any) -> None:
    """Deleted people, the sites' own program, what is missing."""
    (item,) = await found(upstream, of_one, question(1, **fields))

    assert {name: getattr(item, name) for name in expected} == expected


async def test_answers_that_say_nothing_are_left_out(upstream: StackExchangeEmulator, of_one: Source) -> None:
    """And those to other questions, and the program's own; the best voted come first."""
    (item,) = await found(upstream, of_one, question(1))
    rows = [
        answered(4001, 1, body="<p><img src='x'></p>"),
        answered(4001, 2, owner={"user_id": -1}),
        answered(4002, 3),
        answered(4001, 4),
    ]
    upstream.fault = on("/answers", Reply(body=envelope(rows)))

    (full,) = (await of_one.comments((item,))).items

    assert [comment.id for comment in full.comments] == ["9004"]


FAILURES: list[tuple[Reply, type[SourceError]]] = [
    (error("throttle_violation", "more requests available in 17524 seconds", 502), QuotaExhausted),
    (error("throttle_violation", "more requests available in 3601 seconds", 502), QuotaExhausted),
    (error("throttle_violation", "more requests available in 3600 seconds", 502), RateLimited),
    (error("throttle_violation", "more requests available in 40 seconds", 502), RateLimited),
    (error("throttle_violation", "Violation of backoff parameter", 502), RateLimited),
    (error("bad_parameter", "No site found for name `superuser`"), NotConfigured),
    (error("bad_parameter", "`key` doesn't match a known application"), Refused),
    (error("bad_parameter", "pagesize"), Broken),
    (error("access_denied", "", 403), Refused),
    (error("temporarily_unavailable", "", 503), Unreachable),
    (error("no_method", "", 404), Broken),
    (error("<b>odd</b>"), Broken),
    (Reply(400, {}), Broken),
    (Reply(400, b"{"), Broken),
    (Reply(429, "<h1>slow down</h1>"), RateLimited),
    (Reply(403, "<h1>Forbidden</h1>"), Blocked),
    (Reply(body="<html>checking your browser</html>"), Blocked),
    (Reply(503, "<h1>down</h1>"), Unreachable),
    (Reply(body={"has_more": False}), Broken),
    (Reply(body={"items": None}), Broken),
]


@pytest.mark.parametrize(("answer", "expected"), FAILURES)
async def test_no_failure_looks_like_nothing_found(
    upstream: StackExchangeEmulator, source: Source, answer: Reply, expected: type[SourceError]
) -> None:
    """Each of its own ways to fail is an outcome when all sites have it, never an empty page."""
    upstream.fault = on("/search", answer)

    with pytest.raises(SourceError) as caught:
        await source.fetch(FetchPlan("mug", 5))

    assert type(caught.value) is expected
    assert "<b>" not in str(caught.value)


@pytest.mark.parametrize(("answer", "expected"), FAILURES)
async def test_a_failing_site_costs_only_itself(
    upstream: StackExchangeEmulator, source: Source, answer: Reply, expected: type[SourceError]
) -> None:
    """The others' questions come, with a note that names it."""
    upstream.fault = on("'site': 'softwarerecs'", answer)

    batch = await source.fetch(FetchPlan("mug", 5))

    assert {item.place for item in batch.items} == {"superuser", "hardwarerecs"}
    (note,) = batch.notes
    assert note.startswith("softwarerecs not searched: ")
    if expected is NotConfigured:
        assert f"`softwarerecs` in `{SETTING}`" in note


async def test_the_wait_stands_in_the_words(upstream: StackExchangeEmulator, of_one: Source) -> None:
    """17,524 seconds; until then nothing is sent, not even for answers of another question."""
    words = "too many requests from this IP, more requests available in 17524 seconds"
    upstream.fault = on("/search", error("throttle_violation", words, 502))
    with pytest.raises(QuotaExhausted) as caught:
        await of_one.fetch(FetchPlan("mug", 5))
    upstream.fault = on("never", Reply())
    before = len(upstream.paths)

    with pytest.raises(QuotaExhausted, match="nothing sent"):
        await of_one.fetch(FetchPlan("cup", 5))

    assert len(upstream.paths) == before
    at = caught.value.retry_at
    assert at is not None
    assert abs((at - datetime.now(UTC)).total_seconds() - 17_524) < 600


async def test_backoff_forbids_the_same_kind(upstream: StackExchangeEmulator, of_one: Source) -> None:
    """The answer counts; another search is not sent, answers are read all the same."""
    upstream.fault = on("/search", Reply(body=envelope([question(1)], backoff=600)))
    batch = await of_one.fetch(FetchPlan("mug", 5))
    before = len(upstream.paths)

    with pytest.raises(RateLimited, match="nothing sent"):
        await of_one.fetch(FetchPlan("cup", 5))
    read = await of_one.comments(batch.items)

    assert len(upstream.paths) == before + 1
    assert len(read.items[0].comments) == 3


async def test_an_empty_quota_ends_the_day(upstream: StackExchangeEmulator, of_one: Source) -> None:
    """Of everything, until midnight UTC; what came with the last request counts."""
    upstream.fault = on("/search", Reply(body=envelope([question(1)], quota_remaining=0)))
    batch = await of_one.fetch(FetchPlan("mug", 5))
    before = len(upstream.paths)

    with pytest.raises(QuotaExhausted):
        await of_one.comments(batch.items)
    with pytest.raises(QuotaExhausted) as caught:
        await of_one.fetch(FetchPlan("cup", 5))

    assert len(batch.items) == 1
    assert len(upstream.paths) == before
    at = caught.value.retry_at
    assert at is not None
    midnight = (datetime.now(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0)
    assert abs((at - midnight).total_seconds()) < 86_400 + 5
    assert (at + timedelta(seconds=2)).hour == 0


async def test_sites_are_read_leniently(upstream: StackExchangeEmulator) -> None:
    """Case, blanks and doubles do not count; what asking costs is as many."""
    settings = upstream.settings(stackexchange_sites=" SuperUser, superuser,hardwarerecs ,")
    source = SOURCES["stackexchange"].build(settings)
    await source.fetch(FetchPlan("mug", 5))
    await source.aclose()

    sites = {asked.query["site"] for asked in upstream.server.asked}
    assert (len(upstream.server.asked), sites) == (2, {"superuser", "hardwarerecs"})
    price = SOURCES["stackexchange"].price(settings)
    assert (price.searches, price.threads) == (2, 2)


OPERATORS = [
    ("[apple] mug", "apple mug"),
    ("user:7 mug", "mug"),
    ("-mug cup", "cup"),
    ("mug OR (cup)", "mug or (cup)"),
    ('"ember mug" -used', '"ember mug"'),
    ('half"open mug', "half open mug"),
    ('mug "" "  "', "mug"),
    ("C++ R&D 24/7 plaud.ai", "C++ R&D 24/7 plaud.ai"),
]
NOTHING_ELSE = ["score:3 is:question"]


@pytest.mark.parametrize(("query", "sent"), OPERATORS)
async def test_operators_are_words(upstream: StackExchangeEmulator, of_one: Source, query: str, sent: str) -> None:
    """Nothing that a person writes is a command, when it comes as every query does."""
    await of_one.fetch(FetchPlan(without_operators(query, "stackexchange"), 5))

    assert upstream.searches[0].query["q"] == sent


@pytest.mark.parametrize("query", NOTHING_ELSE)
def test_of_commands_alone_nothing_is_left(query: str) -> None:
    """Then the question is asked instead, see `Run.search`."""
    assert without_operators(query, "stackexchange") == ""


async def test_the_probe_says_what_is_left(upstream: StackExchangeEmulator, source: Source) -> None:
    """Of the day's requests; a site that does not exist is named, an empty quota is none."""
    assert (await source.probe()).detail == "296 of 300 requests left today"

    no_site = error("bad_parameter", "No site found for name `softwarerecs`")
    upstream.fault = on("'site': 'softwarerecs'", no_site)
    probe = await source.probe()
    assert (probe.outcome, SETTING in probe.detail) == ("ok", True)

    upstream.fault = on("/info", Reply(body={"items": []}))
    assert (await source.probe()).detail == ""

    upstream.fault = on("/info", Reply(body=envelope([{}], quota_remaining=0)))
    assert (await source.probe()).outcome == "quota_exhausted"


async def test_comments_switched_off_ask_nothing(upstream: StackExchangeEmulator) -> None:
    """`LISTENPOST_COMMENTS_PER_ITEM=0` holds for answers, too."""
    source = SOURCES["stackexchange"].build(upstream.settings(comments_per_item=0))
    items = await found_by(source, 3)
    before = len(upstream.paths)

    read = await source.comments(items)
    await source.aclose()

    assert (read.items, len(upstream.paths)) == (items, before)
