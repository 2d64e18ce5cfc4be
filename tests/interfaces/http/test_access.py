"""Who may ask what: keys, tenants, limits, and this machine while there is no key."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from inspect import iscoroutinefunction
from pathlib import Path

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer

from api.features.analyses.api_keys import LOCAL
from api.interfaces.http.access import NOTICE, USER
from api.interfaces.http.app import ROUTERS, SCREENS
from tests.interfaces.http.api_keys import CLARIFY, ID, ITEMS, KEYED, OPEN, bearer, code
from tests.interfaces.http.conftest import QUESTION, Opening, Served

TOKENED = {("GET", "/v1/feeds/{watch_id}"), ("GET", "/v1/inbox/feed.{form}")}
"""What a token in the address opens."""


def named(path: str) -> str:
    """A path as the routes have it."""
    name = "{session_id}" if "/chat" in path else "{analysis_id}"
    name = "{watch_id}" if "/watches" in path else name
    name = "{entry_id}" if "/inbox" in path else name
    path = path.replace(ID, name).replace("/filters/mine", "/filters/{name}").replace("/runs/run/", "/runs/{run_id}/")
    path = path.replace("/items/reddit:x/", "/items/{key}/")
    return path.replace("/reddit", "/{source}")


def in_a_thread(dependant: Dependant) -> set[str]:
    """What FastAPI would call in a thread of its pool for each request, by name."""
    own = set[str]()
    for each in dependant.dependencies:
        call = each.call.__call__ if isinstance(each.call, HTTPBearer) else each.call
        if not iscoroutinefunction(call):
            own.add(str(getattr(each.call, "__qualname__", each.call)))
        own |= in_a_thread(each)
    return own


def test_no_request_waits_for_a_thread_before_its_route_runs() -> None:
    """A dependency that is a class or a plain function costs each request a turn of the thread pool."""
    routes = [route for router in (*ROUTERS, *SCREENS) for route in router.routes if isinstance(route, APIRoute)]

    assert len(routes) > 100
    assert {name for route in routes for name in in_a_thread(route.dependant)} == set()
    assert [route.path for route in routes if not iscoroutinefunction(route.endpoint)] == []


def test_every_route_is_in_this_list() -> None:
    """A new one is either open or keyed; nobody forgets to decide."""
    own = {
        (method, getattr(route, "path_format"))  # noqa: B009
        for router in ROUTERS
        for route in router.routes
        for method in getattr(route, "methods")  # noqa: B009
    }
    listed = {(method, named(path.partition("?")[0])) for method, path, _ in KEYED}
    listed |= {("GET", path) for path in OPEN} | TOKENED

    assert own - listed == set()


@pytest.mark.parametrize(("method", "path", "body"), KEYED)
async def test_a_key_is_needed_and_must_be_valid(
    opening: Opening, method: str, path: str, body: dict[str, object] | None
) -> None:
    """401 with the scheme that is wanted; with a key of either kind it is let in."""
    async with opening(keys="first,second") as served:
        _, added = await served.app_context.keys.add("ann")
        refused = [
            await served.client.request(method, path, json=body, headers=headers)
            for headers in (
                {},
                bearer("wrong"),
                bearer(""),
                {"Authorization": "Basic Zmlyc3Q6"},
                {"Authorization": "first"},
                bearer("first,second"),
            )
        ]
        let_in = [
            await served.client.request(method, path, json=body, headers=bearer(key))
            for key in ("first", "second", added)
        ]

    assert {answer.status_code for answer in refused} == {401}
    assert {code(answer) for answer in refused} == {"unauthorized"}
    assert {answer.headers["www-authenticate"] for answer in refused} == {"Bearer"}
    # the sandbox takes no feeds of others: 422
    assert {answer.status_code for answer in let_in} <= {200, 201, 204, 404, 422}


async def test_a_key_that_nobody_needs_is_told_so(opening: Opening) -> None:
    """By a header of each answer of a server without keys, also where that says that the key is not valid."""
    async with opening() as served:
        sent = await served.client.get("/v1/sources", headers=bearer("first"))
        plain = await served.client.get("/v1/sources")
    async with opening(keys="first") as keyed:
        needed = await keyed.client.get("/v1/sources", headers=bearer("first"))

    assert sent.headers[NOTICE] == "this server has no API keys: send none"
    assert NOTICE not in plain.headers
    assert NOTICE not in needed.headers
    assert [answer.status_code for answer in (sent, plain, needed)] == [401, 200, 200]


@pytest.mark.parametrize("path", OPEN)
async def test_some_routes_need_no_key(opening: Opening, path: str) -> None:
    """Whoever watches the server has none."""
    async with opening(keys="first") as served:
        assert (await served.client.get(path)).status_code == 200


async def test_a_revoked_key_is_refused_at_once(opening: Opening) -> None:
    """And revoking the last one opens nothing."""
    async with opening() as served:
        _, key = await served.app_context.keys.add("ann")
        before = await served.client.get("/v1/analyses", headers=bearer(key))
        await served.app_context.keys.revoke("ann")
        after = await served.client.get("/v1/analyses", headers=bearer(key))
        without = await served.client.get("/v1/analyses")

    assert (before.status_code, after.status_code, without.status_code) == (200, 401, 401)


@pytest.mark.parametrize(
    ("base", "peer", "headers"),
    [
        ("http://localhost", "192.0.2.7", {}),
        ("http://rebound.example", "127.0.0.1", {}),
        ("http://192.0.2.7:8420", "127.0.0.1", {}),
        ("http://localhost", "127.0.0.1", {"Host": ""}),
        ("http://localhost", "127.0.0.1", {"Host": "[::1"}),
        ("http://localhost", "127.0.0.1", {"Origin": "https://evil.example"}),
        ("http://localhost", "127.0.0.1", {"Origin": "null"}),
    ],
)
async def test_without_keys_strangers_are_refused(
    served: Served, base: str, peer: str, headers: dict[str, str]
) -> None:
    """Other machines, names that were made to point here, and pages of other sites."""
    async with served.calling(base, peer) as client:
        answers = [await client.request(method, path, json=body, headers=headers) for method, path, body in KEYED]

    assert {answer.status_code for answer in answers} == {403}
    assert {code(answer) for answer in answers} == {"forbidden"}
    assert served.sandbox.log == ()


@pytest.mark.parametrize(
    ("base", "peer"),
    [
        ("http://127.0.0.1:8420", "127.0.0.1"),
        ("http://[::1]:8420", "::1"),
        ("http://LOCALHOST", "127.0.0.2"),
    ],
)
async def test_without_keys_this_machine_may_call(served: Served, base: str, peer: str) -> None:
    """By any name that is its own."""
    async with served.calling(base, peer) as client:
        assert (await client.get("/v1/analyses")).status_code == 200


async def test_a_server_without_keys_says_so_to_who_sends_one(served: Served) -> None:
    """And to nobody else; the key, which nobody has, is refused."""
    async with served.calling("http://127.0.0.1:8420", "127.0.0.1") as client:
        answers = [await client.get("/v1/analyses", headers=headers) for headers in ({}, bearer("mine"))]

    assert [(answer.status_code, answer.headers.get("listenpost-notice")) for answer in answers] == [
        (200, None), (401, "this server has no API keys: send none"),
    ]  # fmt: skip


async def test_with_keys_strangers_may_call(opening: Opening) -> None:
    """They have a key."""
    async with (
        opening(keys="first") as served,
        served.calling("http://a.example", "192.0.2.7") as client,
    ):
        assert (await client.get("/v1/analyses", headers=bearer("first"))).status_code == 200


async def test_tenants_see_nothing_of_each_other(opening: Opening) -> None:
    """Every route that takes an id answers 404 for another's; listings and keys are apart."""
    async with opening(keys="ann,ben") as served:
        post = {**bearer("ann"), "Idempotency-Key": "k"}
        address = (await served.client.post("/v1/analyses", json=CLARIFY, headers=post)).headers["location"]
        ben = bearer("ben")
        tried = [
            await served.client.get(address, headers=ben),
            await served.client.get(address, params={"format": "html"}, headers=ben),
            await served.client.delete(address, headers=ben),
        ]
        listed = (await served.client.get("/v1/analyses", headers=ben)).json()
        other = await served.client.post("/v1/analyses", json={"query": "hi"}, headers={**ben, "Idempotency-Key": "k"})
        own = await served.client.get(address, headers=bearer("ann"))

    assert [answer.status_code for answer in tried] == [404, 404, 404]
    assert listed["analyses"] == []
    assert other.status_code == 200
    assert other.headers["location"] != address
    assert own.status_code == 200


async def test_the_running_analysis_of_another_is_not_there(opening: Opening) -> None:
    """It can neither be seen nor cancelled."""
    async with opening(keys="ann,ben") as served:
        served.sandbox.latency("openai=1s")
        headers = {**bearer("ann"), "Prefer": "respond-async"}
        address = (await served.client.post("/v1/analyses", json=QUESTION, headers=headers)).headers["location"]
        seen = await served.client.get(address, headers=bearer("ben"))
        deleted = await served.client.delete(address, headers=bearer("ben"))
        still = await served.client.get(address, headers=bearer("ann"))

    assert (seen.status_code, deleted.status_code) == (404, 404)
    assert still.json()["state"] == "running"


async def test_the_command_line_and_a_server_without_keys_share_a_tenant(served: Served) -> None:
    """What `analyze` kept can be read over HTTP, by whoever sits here."""
    report = (await served.client.post("/v1/analyses", json=CLARIFY)).json()

    assert await served.app_context.store.get(LOCAL.id, report["id"]) is not None


async def test_requests_per_minute(opening: Opening) -> None:
    """Of ten at once three are let in; health is not counted, and neither is a wrong key."""
    async with opening(keys="ann,ben", LIMIT_REQUESTS_PER_MINUTE="3") as served:
        for path in (*OPEN, "/metrics"):
            await served.client.get(path, headers=bearer("ann"))
        await served.client.get("/v1/analyses", headers=bearer("wrong"))
        answers = await asyncio.gather(*(served.client.get("/v1/analyses", headers=bearer("ann")) for _ in range(10)))
        other = await served.client.get("/v1/analyses", headers=bearer("ben"))

    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) == 7
    assert {code(answer) for answer in refused} == {"limit_reached"}
    assert all(0 < int(answer.headers["retry-after"]) <= 60 for answer in refused)
    assert other.status_code == 200


async def test_of_ten_in_parallel_one_gets_the_last_analysis(opening: Opening) -> None:
    """Ten different questions, two analyses a day, one of them used."""
    async with opening(keys="ann", token="ann", LIMIT_ANALYSES_PER_DAY="2") as served:
        questions = [{**QUESTION, "about": f"number {number}"} for number in range(11)]
        first = await served.client.post("/v1/analyses", json=questions[0])
        answers = await asyncio.gather(
            *(served.client.post("/v1/analyses", json=question) for question in questions[1:])
        )

    assert first.status_code == 200
    assert sorted(answer.status_code for answer in answers) == [200, *[429] * 9]
    assert all(int(answer.headers["retry-after"]) > 0 for answer in answers if answer.is_error)


@pytest.mark.parametrize(
    ("url", "body"),
    [("/v1/relevance", ITEMS), ("/v1/fetch/reddit", QUESTION), ("/v1/analyses", QUESTION)],
)
async def test_who_waits_too_much_is_refused_and_another_is_not(
    opening: Opening, url: str, body: dict[str, object]
) -> None:
    """Of two places Ann has one; one more of hers may wait, the next comes back later."""
    limits = {"LIMIT_AT_ONCE": "2", "LIMIT_WAITING": "1"}
    async with opening(keys="ann,bob", token="ann", **limits) as served:
        served.sandbox.latency("openai.judge=1s")
        bob = {"Authorization": "Bearer bob"}
        bodies = [{**body, "query": f"{body['query']} {number}"} for number in range(3)]
        *anns, bobs = await asyncio.gather(
            *(served.client.post(url, json=each) for each in bodies),
            served.client.post(url, json=body, headers=bob),
        )

    assert sorted(answer.status_code for answer in anns) == [200, 200, 429]
    assert all(int(answer.headers["retry-after"]) > 0 for answer in anns if answer.is_error)
    assert bobs.status_code == 200


async def test_what_asked_nobody_is_given_back(opening: Opening) -> None:
    """Guidance is free, as often as one likes."""
    async with opening(keys="ann", token="ann", LIMIT_ANALYSES_PER_DAY="1") as served:
        free = [await served.client.post("/v1/analyses", json=CLARIFY) for _ in range(3)]
        paid = [await served.client.post("/v1/analyses", json=QUESTION) for _ in range(2)]

    assert [answer.status_code for answer in free] == [200, 200, 200]
    assert [answer.status_code for answer in paid] == [200, 429]


async def test_usd_per_day_hold_for_every_route_that_asks_models(opening: Opening) -> None:
    """Less than an estimate is left: analyses, fetches and judging wait for tomorrow."""
    async with opening(keys="ann", token="ann", LIMIT_USD_PER_DAY="0.000001") as served:
        answers = [
            await served.client.post("/v1/analyses", json=QUESTION),
            await served.client.post("/v1/fetch/reddit", json=QUESTION),
            await served.client.post("/v1/relevance", json=ITEMS),
        ]

    assert [answer.status_code for answer in answers] == [429, 429, 429]
    assert served.sandbox.log == ()


async def test_a_broken_store_lets_nobody_in(opening: Opening, tmp_path: Path) -> None:
    """503 for whatever needs it, a probe included; keys of the environment change nothing."""
    file = tmp_path / "listenpost.db"
    async with opening(keys="ann", token="ann", DATABASE_URL=f"sqlite:///{file}") as served:
        with closing(sqlite3.connect(file)) as other:
            other.execute("DROP TABLE ledger")
        answers = [
            await served.client.request(method, path, json=body) for method, path, body in KEYED if path != "/metrics"
        ]
        ready = await served.client.get("/readyz")
        health = await served.client.get("/healthz")

    assert {answer.status_code for answer in (*answers, ready)} == {503}
    assert {code(answer) for answer in (*answers, ready)} == {"store_unavailable"}
    assert health.status_code == 200
    assert served.sandbox.log == ()


async def test_a_request_has_one_user(served: Served) -> None:
    """Of two nobody could say under which to file it."""
    twice = [(USER, "u-1"), (USER, "u-2")]
    answer = await served.client.get("/v1/sources", headers=twice)

    assert answer.status_code == 422
    assert answer.json()["error"]["message"] == f"`{USER}` came 2 times: send it once"
