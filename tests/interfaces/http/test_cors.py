"""Pages of other origins: what a browser lets them read, and that no stranger's page gets in."""

from __future__ import annotations

import httpx
import pytest

from api.errors import ConfigurationError
from api.interfaces.http.access import EXPOSED
from api.interfaces.http.errors_json import LARGEST
from tests.interfaces.http.api_keys import KEYED, OPEN
from tests.interfaces.http.conftest import Opening, Served

PAGE = "http://localhost:5173"
APP = "https://app.example"
STRANGERS = [
    "null", "https://evil.example", "http://localhost.evil.example", "http://127.0.0.1.evil.example",
    "http://evil.example:5173", "file://localhost", "http://[::1", "http://192.0.2.7", "",
    "http://localhost:5173.evil", "http://localhost:evil.example", "http://evil@localhost",
    "http://127.0.0.1:80/path", "http://localhost:99999", "http://localhost:", "http://localhost?a",
]  # fmt: skip
ROUTES = [(method, path) for method, path, _ in KEYED] + [("GET", path) for path in OPEN]


def allowed(answer: httpx.Response) -> str | None:
    """The origin whose pages may read this answer."""
    origin: str | None = answer.headers.get("access-control-allow-origin")
    return origin


async def preflight(client: httpx.AsyncClient, path: str, origin: str, method: str = "POST") -> httpx.Response:
    """What a browser asks before it sends a page's request."""
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "authorization,content-type,idempotency-key",
        "Access-Control-Request-Private-Network": "true",
    }
    return await client.options(path, headers=headers)


@pytest.mark.parametrize("origin", [PAGE, "http://127.0.0.1:3000", "http://[::1]:3000"])
async def test_without_keys_pages_of_this_machine_may_call(served: Served, origin: str) -> None:
    """A preflight of every route is answered, and the answer can be read with its headers."""
    preflights = [
        await preflight(served.client, path, origin, method)
        for method, path in [*ROUTES, ("POST", "/mcp"), ("POST", "/nowhere")]
    ]
    answer = await served.client.get("/v1/analyses", headers={"Origin": origin})

    assert {before.status_code for before in preflights} == {200}
    assert {allowed(before) for before in preflights} == {origin}
    for before in preflights:
        assert "authorization" in before.headers["access-control-allow-headers"]
        assert "DELETE" in before.headers["access-control-allow-methods"]
        assert before.headers["access-control-allow-private-network"] == "true"
    assert (answer.status_code, allowed(answer)) == (200, origin)
    assert answer.headers["access-control-expose-headers"] == ", ".join(EXPOSED)
    assert "Origin" in answer.headers["vary"]
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("origin", STRANGERS)
async def test_without_keys_no_stranger_s_page_may(served: Served, origin: str) -> None:
    """Neither with a preflight nor at once, as a form or an image would; nobody is asked."""
    before = await preflight(served.client, "/v1/chat", origin)
    answers = [
        await served.client.request(method, path, json=body, headers={"Origin": origin}) for method, path, body in KEYED
    ]
    plain = await served.client.post(
        "/v1/chat",
        content='{"message": "plaud.ai"}',
        headers={"Origin": origin, "Content-Type": "text/plain"},
    )

    assert not before.is_success or "access-control-allow-methods" not in before.headers
    assert {answer.status_code for answer in (*answers, plain)} == {403}
    assert {allowed(answer) for answer in (before, *answers, plain)} == {None}
    assert served.sandbox.log == ()


async def test_a_name_that_points_here_is_no_page_of_this_machine(served: Served) -> None:
    """DNS rebinding: the page's own name is the host's, so the browser asks nothing before."""
    async with served.calling("http://rebound.example") as client:
        answers = [
            await client.get("/v1/analyses", headers={"Origin": origin}) for origin in ("http://rebound.example", PAGE)
        ]

    assert {answer.status_code for answer in answers} == {403}


async def test_a_setting_names_who_may_call_a_server_with_keys(opening: Opening) -> None:
    """Those alone: not every page of this machine, and never without a key."""
    named = f"{APP}, http://localhost:3000"
    async with opening(keys="ann", CORS_ORIGINS=named) as served:
        preflights = {
            origin: await preflight(served.client, "/v1/chat", origin)
            for origin in (APP, "http://localhost:3000", PAGE, "https://evil.example")
        }
        key = {"Authorization": "Bearer ann"}
        own = await served.client.get("/v1/analyses", headers={"Origin": APP, **key})
        keyless = await served.client.get("/v1/analyses", headers={"Origin": APP})
        other = await served.client.get("/v1/analyses", headers={"Origin": PAGE, **key})

    assert [origin for origin, answer in preflights.items() if allowed(answer)] == named.split(", ")
    assert (own.status_code, allowed(own)) == (200, APP)
    assert (keyless.status_code, allowed(keyless)) == (401, APP)
    assert (other.status_code, allowed(other)) == (200, None)


async def test_a_setting_lets_no_page_in_without_keys(opening: Opening) -> None:
    """Which page is on a site does not make its visitors' machines its own; it can read why."""
    async with opening(CORS_ORIGINS=APP) as served:
        answer = await served.client.get("/v1/analyses", headers={"Origin": APP})

    assert (answer.status_code, allowed(answer)) == (403, APP)


async def test_with_keys_no_page_may_call_unless_named(opening: Opening) -> None:
    """Off by default, also once the first key was added while the server ran."""
    async with opening(keys="ann") as served:
        keyed = await preflight(served.client, "/v1/chat", PAGE)
    async with opening() as served:
        await served.app_context.keys.add("ann")
        await served.client.get("/v1/analyses")
        added = await preflight(served.client, "/v1/chat", PAGE)

    assert (allowed(keyed), allowed(added)) == (None, None)


async def test_a_page_can_read_what_went_wrong(opening: Opening) -> None:
    """Errors of every layer carry the headers: the route's, the router's, the outermost door's."""
    settings = {"keys": "ann", "token": "ann", "CORS_ORIGINS": APP}
    async with opening(**settings) as served:
        client, page = served.client, {"Origin": APP}
        answers = [
            await client.get("/v1/analyses/nope", headers=page),
            await client.get("/nowhere", headers=page),
            await client.put("/v1/chat", headers=page),
            await client.post("/v1/chat", content=b"x" * (LARGEST + 1), headers=page),
            await client.post("/v1/chat", content=b"{", headers=page),
        ]
    async with opening(**settings, LIMIT_REQUESTS_PER_MINUTE="1") as served:
        while (limited := await served.client.get("/v1/sources", headers=page)).is_success:
            continue

    statuses = [answer.status_code for answer in (*answers, limited)]
    assert statuses == [404, 404, 405, 413, 422, 429]
    assert {allowed(answer) for answer in (*answers, limited)} == {APP}
    assert int(limited.headers["retry-after"]) > 0
    assert "Retry-After" in limited.headers["access-control-expose-headers"]


@pytest.mark.parametrize(
    "named",
    ["*", "null", "https://app.example/", "app.example", APP + ",,",
     "https://app.example/page", "https://*.example", "https://App.example", "https://app.example?x",
     "https://app..example", "https://:5173", "http://localhost:port"],
)  # fmt: skip
async def test_what_is_no_origin_is_refused(opening: Opening, named: str) -> None:
    """At start, with the name of the setting and what it wants."""
    with pytest.raises(ConfigurationError, match=r"LISTENPOST_CORS_ORIGINS.*https://app.example"):
        async with opening(CORS_ORIGINS=named):
            pass
