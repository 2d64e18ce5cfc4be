"""What every client may expect of HTTP: HEAD, OPTIONS, Allow, gzip, and copies that stay good."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.interfaces.http.api_keys import ID, KEYED, OPEN
from tests.interfaces.http.conftest import QUESTION, Opening, Served
from tests.interfaces.http.process import threaded

PATHS = [*OPEN, *dict.fromkeys(path for _, path, _ in KEYED), "/mcp", "/mcp/"]
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
FORMATS = ("json", "html", "markdown", "csv")
MEDIA = ("application/json", "text/html", "text/markdown", "text/csv")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server on a real port, in the sandbox."""
    folder: Path = tmp_path_factory.mktemp("served")
    variables = {
        "LISTENPOST_DATABASE_URL": f"sqlite:///{folder}/listenpost.db",
        "LISTENPOST_MODE": "sandbox",
    }
    with threaded(variables) as address, httpx.Client(base_url=address, timeout=60) as made:
        yield made


@pytest.fixture(scope="module")
def report(client: httpx.Client) -> str:
    """Where a finished report is."""
    return str(client.post("/v1/analyses", json=QUESTION).headers["location"])


@pytest.mark.parametrize("path", PATHS)
def test_allow_lists_what_a_path_has(client: httpx.Client, path: str) -> None:
    """The same for OPTIONS and for a method that is not there; each that is listed is there."""
    options = client.options(path)
    allowed = options.headers["allow"].split(", ")
    refused = client.request("PATCH" if "PUT" in allowed else "PUT", path)
    with_body = [method for method in allowed if method in {"POST", "PUT", "DELETE"}]
    answered = [client.request(method, path).status_code for method in with_body]

    assert (options.status_code, options.content) == (204, b"")
    assert refused.status_code == 405
    assert refused.headers["allow"] == options.headers["allow"]
    assert ("HEAD" in allowed) == ("GET" in allowed)
    assert 405 not in answered
    for method in METHODS:
        if method not in allowed:
            assert client.request(method, path).status_code == 405, method


def test_a_path_that_is_not_there_has_no_methods(client: httpx.Client) -> None:
    """404, whatever is asked."""
    assert client.options("/v1/nothing").status_code == 404
    assert client.head("/v1/nothing").status_code == 404


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/v1/analyses", f"/v1/analyses/{ID}"])
def test_head_is_get_without_its_body(client: httpx.Client, path: str) -> None:
    """The same status and headers, also of an error."""
    got, head = client.get(path), client.head(path)

    assert head.status_code == got.status_code
    assert head.content == b""
    del got.headers["date"], head.headers["date"]
    assert head.headers == got.headers


def test_head_of_a_stream_ends(client: httpx.Client) -> None:
    """Who asks for the head of a stream does not wait for its end."""
    headers = {"Prefer": "respond-async"}
    began = client.post("/v1/analyses", json={**QUESTION, "depth": "deep"}, headers=headers)
    head = client.head(began.headers["location"], headers={"Accept": "text/event-stream"})

    assert head.status_code == 200
    assert head.headers["content-type"].startswith("text/event-stream")


def test_mcp_has_no_session_to_listen_to(client: httpx.Client) -> None:
    """405 for who asks for its events; an answer to a call, also behind a slash."""
    events = [client.get(path, headers={"Accept": "text/event-stream"}) for path in ("/mcp", "/mcp/")]
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accept = {"Accept": "application/json, text/event-stream"}
    first, second = [client.post(path, json=call, headers=accept) for path in ("/mcp", "/mcp/")]

    assert [(each.status_code, each.headers["allow"]) for each in events] == [(405, "POST, OPTIONS")] * 2
    assert (first.status_code, second.text) == (200, first.text)
    assert "fetch_reddit" in first.text


@pytest.mark.parametrize("form", FORMATS)
def test_a_report_that_a_client_has_is_not_sent_again(client: httpx.Client, report: str, form: str) -> None:
    """304 with the same validators; another tag, or another format's, is no copy of this."""
    place = f"{report}?format={form}"
    first, again = client.get(place), client.get(place)
    tag = first.headers["etag"]
    kept = [
        client.get(place, headers={"If-None-Match": names})
        for names in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*")
    ]
    stale = client.get(place, headers={"If-None-Match": 'W/"other"'})

    assert tag.startswith('W/"')
    assert again.headers["etag"] == tag
    assert again.content == first.content == stale.content
    for answer in kept:
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == tag
        assert "content-type" not in answer.headers
        assert answer.headers["cache-control"] == "private, no-cache"


def test_each_format_has_a_tag_of_its_own(client: httpx.Client, report: str) -> None:
    """By `format` and by `Accept` alike, and caches are told what decides."""
    named = [client.get(f"{report}?format={form}") for form in FORMATS]
    accepted = [client.get(report, headers={"Accept": media}) for media in MEDIA]

    assert [answer.headers["etag"] for answer in named] == [answer.headers["etag"] for answer in accepted]
    assert len({answer.headers["etag"] for answer in named}) == len(FORMATS)
    assert all("Accept" in answer.headers["vary"].split(", ") for answer in accepted)


async def test_what_may_still_change_has_no_tag(served: Served) -> None:
    """An analysis that failed is begun again under its id; a listing grows."""
    served.sandbox.latency("reddit=300ms")
    began = await served.client.post("/v1/analyses", json=QUESTION, headers={"Prefer": "respond-async"})
    running = await served.client.get(began.headers["location"])
    listed = await served.client.get("/v1/analyses")
    await served.client.post("/v1/analyses", json=QUESTION)  # waits for the same one

    assert running.json()["state"] == "running"
    assert "etag" not in running.headers
    assert "etag" not in listed.headers


async def test_a_deleted_report_is_gone_whatever_copy_there_is(opening: Opening) -> None:
    """A copy is no reason to say that it is still there."""
    async with opening() as served:
        place = (await served.client.post("/v1/analyses", json=QUESTION)).headers["location"]
        tag = (await served.client.get(place)).headers["etag"]
        await served.client.delete(place)
        after = await served.client.get(place, headers={"If-None-Match": tag})

    assert after.status_code == 404


def test_large_answers_are_compressed_for_who_can_read_that(client: httpx.Client, report: str) -> None:
    """The same text either way, and a fraction of its size on the wire."""
    plain = client.get(report, headers={"Accept-Encoding": "identity"})
    packed = client.get(report)

    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) * 2 < len(plain.content)
    assert {"Accept", "Accept-Encoding"} <= {*packed.headers["vary"].split(", ")}


def test_streams_are_not_compressed(client: httpx.Client) -> None:
    """An event is sent when it happens, not when a compressor has enough of them."""
    streamed = {"Accept": "text/event-stream", "Accept-Encoding": "gzip"}
    for path, body in (("/v1/analyses", QUESTION), ("/v1/chat", {"message": "plaud.ai"})):
        answer = client.post(path, json=body, headers=streamed)

        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in answer.headers
