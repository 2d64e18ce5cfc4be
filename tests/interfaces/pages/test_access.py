"""Who may see the pages: a login with a key, a form of ours, and this machine without keys."""

from __future__ import annotations

import pytest
from starlette.requests import Request

from api.errors import ConfigurationError
from api.interfaces.http.access import PROXY_HEADERS
from api.interfaces.http.app import ROUTERS, SCREENS, refuse_own_path
from api.interfaces.pages.screen import COOKIE, POLICY, caller_address, section_of
from api.settings.value_types import networks_in
from tests.interfaces.http.conftest import Opening, Served
from tests.interfaces.pages.visiting import QUICK, begun, csrf, entered, submit

KEYED = ["/", "/analyses/0", "/analyses/0/evidence", "/analyses/0/live", "/analyses/0/export/csv"]


@pytest.mark.parametrize("path", KEYED)
async def test_who_has_no_login_is_asked_for_a_key(opening: Opening, path: str) -> None:
    """And comes back to where they wanted to go; a key in a header is the API's alone."""
    async with opening(keys="ann", token="ann") as served:
        answer = await served.client.get(path)

    assert answer.status_code == 303
    assert answer.headers["location"] == f"/login?next={path}"


async def test_a_key_is_taken_for_a_cookie(opening: Opening) -> None:
    """Which is no key, ends with the login, and opens the pages alone, not the API."""
    async with opening(keys="a-key-of-ann,ben") as served:
        wrong = await entered(served.client, "guessed")
        right = await entered(served.client, "a-key-of-ann", next="/analyses/0")
        cookie = right.headers["set-cookie"]
        page = await served.client.get("/")
        api = await served.client.get("/v1/analyses")
        forged = await served.client.post("/logout", data={"csrf": "guessed"})
        out = await submit(served.client, "/logout")
        served.client.cookies.set(COOKIE, cookie.partition("=")[2].partition(";")[0])
        stolen = await served.client.get("/")

    assert wrong.status_code == 401
    assert "This key is not valid." in wrong.text
    assert "set-cookie" not in wrong.headers
    assert (right.status_code, right.headers["location"]) == (303, "/analyses/0")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert "a-key-of-ann" not in cookie
    assert (page.status_code, api.status_code, forged.status_code) == (200, 401, 403)
    assert (out.status_code, stolen.status_code) == (303, 303)


async def test_over_https_the_cookie_is_secure(opening: Opening) -> None:
    """So that it never goes in the clear, also where a proxy is what speaks it."""
    async with opening(keys="ann") as served, served.calling("https://a.example") as client:
        assert "Secure" in (await entered(client, "ann")).headers["set-cookie"]
    async with opening(keys="ann") as served:
        proxied = {"Origin": "https://localhost"}
        answer = await served.client.post("/login", data={"key": "ann"}, headers=proxied)
        assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("path", ["", "/tools/listenpost"], ids=["removed by the proxy", "passed on"])
async def test_below_a_path_a_server_names_it(opening: Opening, path: str) -> None:
    """In `Location` of pages and API, in the cookie's path, in a feed's address and in the OpenAPI document."""
    root = "/tools/listenpost"
    async with opening(keys="ann", ROOT_PATH=f"{root}/") as served, served.calling(f"http://localhost{path}") as client:
        first = await client.get("/history")
        login = await entered(client, "ann", next="/history")
        client.cookies.set(COOKIE, login.headers["set-cookie"].partition("=")[2].partition(";")[0])
        watch = (await submit(client, "/watches", query="Oura", every="mon 8:00")).headers["location"]
        feed = await submit(client, watch.removeprefix(root) + "/feed")
        out = await submit(client, "/logout")
        headers = {"Authorization": "Bearer ann", "Prefer": "respond-async"}
        begun = await client.post("/v1/analyses", json=QUICK, headers=headers)
        healthy = await client.get("/healthz")
        nowhere = await client.get("/toolsandmore")

    assert first.headers["location"] == f"{root}/login?next=/history"
    assert login.headers["location"] == f"{root}/history"
    assert [f"Path={root};" in answer.headers["set-cookie"] for answer in (login, out)] == [True, True]
    assert f'value="http://localhost{root}/v1/feeds/' in feed.text
    assert begun.headers["location"].startswith(f"{root}/v1/analyses/")
    assert (healthy.status_code, nowhere.status_code) == (200, 404)
    assert served.app.servers[0]["url"] == root


@pytest.mark.parametrize("root", ["/v1", "/search/posts", "/mcp"])
def test_a_path_of_the_server_itself_is_no_root(root: str) -> None:
    """With it a request whose root a proxy removed would look like one whose root is still there."""
    refuse_own_path("/searches/posts", (*ROUTERS, *SCREENS))
    refuse_own_path("", (*ROUTERS, *SCREENS))
    with pytest.raises(ConfigurationError, match="LISTENPOST_ROOT_PATH"):
        refuse_own_path(root, (*ROUTERS, *SCREENS))


@pytest.mark.parametrize("header", PROXY_HEADERS)
async def test_without_keys_a_proxy_of_this_machine_lets_nobody_in(served: Served, header: str) -> None:
    """Whose requests come from this machine, by whatever name it calls the server."""
    answer = await served.client.get("/v1/analyses", headers={header: "for=198.51.100.7"})

    assert answer.status_code == 403
    assert "no proxy" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.9", "198.51.100.7", "203.0.113.9"),  # no proxy of ours: it may write what it likes
        ("10.0.0.2", "", "10.0.0.2"),
        ("10.0.0.2", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.2", "192.0.2.1, 198.51.100.7, 10.0.0.3", "198.51.100.7"),  # the first is the caller's own words
        ("10.0.0.2", "unknown", "10.0.0.2"),
        ("10.0.0.2", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", "", "203.0.113.9"),
        ("::ffff:10.0.0.2", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.2", "198.51.100.7:5678", "198.51.100.7"),
        ("10.0.0.2", "[2001:db8:1:2:3::4]:5678", "2001:db8:1:2::/64"),
        ("testclient", "198.51.100.7", "testclient"),
    ],
)
def test_a_caller_behind_a_proxy_has_an_address(peer: str, forwarded: str, address: str) -> None:
    """So that attempts to log in are counted for each caller, and nobody chooses for whom."""
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    request = Request({"type": "http", "client": (peer, 1), "headers": headers})

    assert caller_address(request, networks_in("10.0.0.0/8")) == address


async def test_attempts_of_one_caller_leave_the_others_theirs(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind one proxy, which both come through."""
    monkeypatch.setenv("LISTENPOST_TRUSTED_PROXIES", "127.0.0.1")
    monkeypatch.setenv("LISTENPOST_LIMIT_REQUESTS_PER_MINUTE", "2")
    async with opening(keys="ann") as served:

        async def attempt(key: str, address: str) -> int:
            headers = {"X-Forwarded-For": address}
            return (await served.client.post("/login", data={"key": key}, headers=headers)).status_code

        guesses = [await attempt("guessed", "198.51.100.7") for _ in range(3)]
        other = await attempt("ann", "198.51.100.8")

    assert (guesses[-1], other) == (429, 303)


async def test_a_revoked_key_opens_nothing_more(opening: Opening) -> None:
    """Its logins included."""
    async with opening() as served:
        _, key = await served.app_context.keys.add("ann")
        await entered(served.client, key)
        before = await served.client.get("/")
        await served.app_context.keys.revoke("ann")
        after = await served.client.get("/")

    assert (before.status_code, after.status_code) == (200, 303)


async def test_nobody_sees_the_analyses_of_another(opening: Opening) -> None:
    """Not the page, nor its evidence, its events or its files; nor can they cancel it."""
    async with opening(keys="ann,ben") as served, served.calling() as ben:
        served.sandbox.latency("openai.judge=1s")
        await entered(served.client, "ann")
        await entered(ben, "ben")
        place = (await submit(served.client, "/ask", **QUICK)).headers["location"]
        answers = [await ben.get(f"{place}{rest}") for rest in ("", "/evidence", "/live", "/export/csv")]
        cancelled = await submit(ben, f"{place}/cancel")
        still = await served.client.get(place)

    assert {answer.status_code for answer in answers} == {404}
    assert cancelled.status_code == 303
    assert "lanes" in still.text


@pytest.mark.parametrize(
    ("base", "peer"),
    [("http://localhost", "192.0.2.7"), ("http://rebound.example", "127.0.0.1")],
)
async def test_without_keys_strangers_see_nothing(served: Served, base: str, peer: str) -> None:
    """Other machines, and names that were made to point here."""
    async with served.calling(base, peer) as client:
        answers = [await client.get(path) for path in KEYED]
        answers.append(await client.post("/ask", data=QUICK))

    assert {answer.status_code for answer in answers} == {403}
    assert await begun(served) == 0


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:5173"])
async def test_forms_of_other_pages_are_refused(opening: Opening, served: Served, origin: str) -> None:
    """A login too; another server of this machine is another page."""
    ask = await served.client.post("/ask", data=QUICK, headers={"Origin": origin})
    async with opening(keys="ann") as keyed:
        headers = {"Origin": origin}
        login = await keyed.client.post("/login", data={"key": "ann"}, headers=headers)

    assert (ask.status_code, login.status_code) == (403, 403)
    assert "set-cookie" not in login.headers


@pytest.mark.parametrize("target", ["https://evil.example", "//evil.example", "/\\evil.example", ""])
async def test_a_login_leads_to_pages_of_ours_alone(opening: Opening, target: str) -> None:
    """Wherever the address says that it shall lead."""
    async with opening(keys="ann") as served:
        page = await served.client.get("/login", params={"next": target})
        answer = await entered(served.client, "ann", next=target)

    assert 'name="next" value="/"' in page.text
    assert answer.headers["location"] == "/"


async def test_guesses_are_limited(opening: Opening) -> None:
    """Of each address, as the requests of a key are."""
    async with opening(keys="ann", LIMIT_REQUESTS_PER_MINUTE="2") as served:
        answers = [await entered(served.client, "guessed") for _ in range(5)]

    assert {answer.status_code for answer in answers} == {401, 429}
    assert int(answers[-1].headers["retry-after"]) > 0


async def test_whoever_has_no_request_left_can_still_end_things(opening: Opening) -> None:
    """Log out, cancel, end a link: what is not to be ended, is not done."""
    async with opening(keys="ann", LIMIT_REQUESTS_PER_MINUTE="1") as served:
        await entered(served.client, "ann")
        word = await csrf(served.client)
        paths = ("/ask", "/ask", "/analyses/0/cancel", "/analyses/0/unshare", "/logout")
        answers = [await served.client.post(path, data={"csrf": word}) for path in paths]

    assert [answer.status_code for answer in answers] == [422, 429, 303, 303, 303]


async def test_a_link_elsewhere_finds_who_is_logged_in(opening: Opening) -> None:
    """Its first request comes without the cookie: the page goes on to itself, from here."""
    async with opening(keys="ann") as served:
        headers = {"Sec-Fetch-Site": "cross-site"}
        answer = await served.client.get("/analyses/0", headers=headers)

    assert answer.status_code == 200
    assert 'content="0; url=/analyses/0"' in answer.text


async def test_no_page_may_load_or_be_framed_by_others(served: Served) -> None:
    """By its policy, and by what older browsers read."""
    answer = await served.client.get("/")

    assert answer.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["cache-control"] == "private, no-store"


@pytest.mark.parametrize(
    ("path", "section"),
    [("/", "/"), ("/analyses/a1/chat", "/history"), ("/compare/between", "/compare"), ("/watches/w1", "/watches"),
     ("/login", ""), ("/shared/a1", "")],
)  # fmt: skip
def test_a_page_belongs_to_a_section_of_the_menu(path: str, section: str) -> None:
    """A report to the history; what everybody may see to none."""
    assert section_of(path) == section
