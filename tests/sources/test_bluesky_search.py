"""The search of an account of Bluesky: what it adds to the stream, whom it is asked for, and what can go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

import pytest

from api.core.domain import FetchPlan
from api.core.items import Batch
from api.core.shared_answers import answers_as_of
from api.errors import NotConfigured, Unreachable
from api.sandbox.server import Sandbox
from api.settings import SourceSettings
from api.sources import SOURCES
from api.sources.bluesky_search import BlueskySearch
from tests.loopback import Asked, Loopback, Reply

ROWS: list[dict[str, Any]] = [
    {"source": "bluesky", "title": "", "body": "My Lumo lamp hums", "age_days": 0.05, "votes": 5},
    {"source": "bluesky", "title": "", "body": "A Lumo lamp, long ago", "age_days": 20, "votes": 9},
    {"source": "bluesky", "title": "", "body": "A Lumo lamp in another year", "age_days": 300, "votes": 9},
    {"source": "bluesky", "title": "", "body": "Lumo lamp regret", "age_days": 12, "deleted": True},
]  # fmt: skip
OLD, NEW = "A Lumo lamp, long ago", "My Lumo lamp hums"
ACCOUNT = {"BLUESKY_HANDLE": "ann.example", "BLUESKY_APP_PASSWORD": "sandbox"}


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox with these rows alone."""
    with Sandbox.start(ROWS) as server:
        yield server


def settings_of(sandbox: Sandbox, **more: Any) -> SourceSettings:
    """An account of the sandbox, and one second for an answer."""
    given = {"source_timeout": 1, "bluesky_seconds": 16, **ACCOUNT, **more}
    return SourceSettings.model_validate(sandbox.environment | given)


async def fetched(sandbox: Sandbox, **more: Any) -> Batch:
    """What the real source finds within a month."""
    source = SOURCES["bluesky"].build(settings_of(sandbox, **more))
    async with aclosing(source):
        return await source.fetch(FetchPlan("Lumo lamp", 10, "month"))


def searches(sandbox: Sandbox) -> list[str]:
    """What was asked of the account's server."""
    return [entry.endpoint for entry in sandbox.requests("bluesky") if entry.endpoint in {"session", "search"}]


async def test_it_finds_what_the_stream_no_longer_holds(sandbox: Sandbox) -> None:
    """Within the window, by the whole name, each once with its counts; a second question needs no login."""
    source = SOURCES["bluesky"].build(settings_of(sandbox))
    async with aclosing(source):
        batch = await source.fetch(FetchPlan("Lumo lamp", 10, "month"))
        await source.fetch(FetchPlan("Lumo", 10, "month"))

    assert sorted(item.body for item in batch.items) == [OLD, NEW]
    assert {item.body: item.engagement["likes"] for item in batch.items} == {OLD: 9, NEW: 5}
    assert batch.notes[-1] == "its search gave 2 posts that name it"
    assert searches(sandbox) == ["session", "search", "search"]


async def test_without_an_account_nothing_is_searched(sandbox: Sandbox) -> None:
    """And half of one is none."""
    batch = await fetched(sandbox, BLUESKY_HANDLE=None, BLUESKY_APP_PASSWORD=None)

    assert [item.body for item in batch.items] == [NEW]
    assert searches(sandbox) == []
    with pytest.raises(NotConfigured, match="`BLUESKY_APP_PASSWORD` not set"):
        await fetched(sandbox, BLUESKY_APP_PASSWORD=None)


async def test_it_is_asked_for_people_alone(sandbox: Sandbox) -> None:
    """A due run of a watch reads the stream."""
    with answers_as_of(datetime.now(UTC)):
        batch = await fetched(sandbox)

    assert [item.body for item in batch.items] == [NEW]
    assert searches(sandbox) == []


@pytest.mark.parametrize(
    ("more", "fault", "note"),
    [
        ({"BLUESKY_APP_PASSWORD": "wrong"}, "", "`BLUESKY_HANDLE` or `BLUESKY_APP_PASSWORD` is wrong"),
        ({}, "bluesky.session=429", "HTTP 429"),
        ({}, "bluesky.search=403html", "a web page instead of data"),
        ({}, "bluesky.search=html200", "a web page instead of data"),
        ({}, "bluesky.search=503", "HTTP 503"),
        ({}, "bluesky.search=hang", "no full answer in 1 s"),
        ({}, "bluesky.search=notjson", ""),
    ],
)
async def test_a_search_that_fails_leaves_the_stream(
    sandbox: Sandbox, more: dict[str, Any], fault: str, note: str
) -> None:
    """With a note, which holds no password."""
    sandbox.fault(*([fault] if fault else []))
    batch = await fetched(sandbox, **more)

    assert [item.body for item in batch.items] == [NEW]
    assert batch.notes[-1].startswith("its search failed: ")
    assert note in batch.notes[-1]
    assert "wrong-password" not in repr(batch)


async def test_a_stream_that_fails_leaves_the_search(sandbox: Sandbox) -> None:
    """Where both fail, or the search finds nothing, the stream's failure is the answer."""
    sandbox.fault("bluesky.stream=503")
    batch = await fetched(sandbox)
    sandbox.fault("bluesky.search=503")
    with pytest.raises(Unreachable):
        await fetched(sandbox)

    assert sorted(item.body for item in batch.items) == [OLD, NEW]
    assert batch.notes[0].startswith("the stream could not be read: ")


async def test_the_probe_logs_in(sandbox: Sandbox) -> None:
    """A wrong password is found before a question needs it."""
    outcomes = []
    for password in ("sandbox", "wrong"):
        source = SOURCES["bluesky"].build(settings_of(sandbox, BLUESKY_APP_PASSWORD=password))
        async with aclosing(source):
            outcomes.append((await source.probe()).outcome)

    assert outcomes == ["ok", "refused"]


async def test_an_ended_session_is_opened_anew() -> None:
    """Once; a second refusal is the answer."""
    tokens = iter(range(9))

    def reply(asked: Asked) -> Reply:
        if "createSession" in asked.path:
            return Reply(body={"accessJwt": f"token {next(tokens)}"})
        if asked.headers["authorization"] == "Bearer token 0":
            return Reply(400, {"error": "ExpiredToken", "message": "Token has expired"})
        return Reply(body={"posts": [{"uri": "at://x"}, 7]})

    with Loopback(reply) as server:
        search = BlueskySearch(SourceSettings.model_validate({"BLUESKY_LOGIN_URL": server.url} | ACCOUNT))
        async with aclosing(search):
            since = datetime(2026, 11, 1, tzinfo=UTC) - timedelta(hours=1)
            posts = [await search.posts("mug", since) for _ in range(2)]
        asked = server.asked

    assert posts == [[{"uri": "at://x"}, {}]] * 2
    assert [each.path.rpartition(".")[2] for each in asked] == [
        "createSession", "searchPosts", "createSession", "searchPosts", "searchPosts",
    ]  # fmt: skip
    assert asked[1].query == {"q": "mug", "sort": "top", "limit": "100", "since": "2026-10-31T23:00:00Z"}


@pytest.mark.parametrize(
    "address",
    [
        "https://localhost:1", "https://127.0.0.1:1", "https://10.0.0.1", "https://169.254.169.254", "https://[fd00::1]",
        "https://[::ffff:10.0.0.1]", "http://1.1.1.1", "https://[::1", "https://xn--\udc80", "https://1.1.1.1:99999999",
        f"https://{'a' * 300}.example", {"a": 1}, 7, None,
    ],
)  # fmt: skip
async def test_no_session_leads_into_this_network(address: object) -> None:
    """Whatever its document says of the account's server: then the server of the login is asked."""
    document = {"service": [{"id": "#atproto_pds", "serviceEndpoint": address}]}

    def reply(asked: Asked) -> Reply:
        session = {"accessJwt": "token", "didDoc": document}
        return Reply(body=session if "createSession" in asked.path else {"posts": []})

    with Loopback(reply) as server:
        search = BlueskySearch(SourceSettings.model_validate({"BLUESKY_LOGIN_URL": server.url} | ACCOUNT))
        async with aclosing(search):
            assert await search.posts("mug", None) == []
        assert [each.path.rpartition(".")[2] for each in server.asked] == ["createSession", "searchPosts"]


async def test_a_search_under_way_outlasts_its_session() -> None:
    """The connections to the account's server stay while another search opens the session anew."""
    tokens, anew = iter(range(9)), Event()

    def login(asked: Asked) -> Reply:
        return Reply(body={"accessJwt": f"token {next(tokens)}"})

    def account(asked: Asked) -> Reply:
        if asked.headers["authorization"] == "Bearer token 1":
            anew.set()
        elif asked.query["q"] == "short":
            return Reply(400, {"error": "ExpiredToken", "message": "Token has expired"})
        else:
            anew.wait(10)
        return Reply(body={"posts": []})

    with Loopback(login) as first, Loopback(account) as second:

        async def root_of(address: str, seconds: float) -> str:
            return second.url

        settings = SourceSettings.model_validate({"BLUESKY_LOGIN_URL": first.url} | ACCOUNT)
        async with aclosing(BlueskySearch(settings, root_of)) as search:
            await search.session()
            for posts in await asyncio.gather(search.posts("long", None), search.posts("short", None)):
                assert posts == []
