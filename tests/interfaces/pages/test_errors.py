"""What a browser shows where no screen answers; whoever wants JSON gets it as documented."""

from __future__ import annotations

import pytest
from fastapi import APIRouter

from api.interfaces.http.app import ROUTERS, create_app
from api.interfaces.http.errors_json import LARGEST
from tests.interfaces.http.conftest import Served

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
broken = APIRouter()


@broken.get("/broken")
async def fault() -> None:
    """A route with a fault of ours."""
    raise ZeroDivisionError("secret detail")


@pytest.mark.parametrize(
    ("method", "path", "status", "words"),
    [
        ("GET", "/nowhere", 404, "There is nothing here"),
        ("GET", "/analyses/a1/nowhere", 404, "There is nothing here"),
        ("GET", "/analyses/x", 404, "There is nothing here"),
        ("GET", "/watches/a1/pause", 405, "This cannot be done here"),
        ("POST", "/ask", 413, "This is too much at once"),
        ("GET", "/broken", 500, "Something went wrong"),
    ],
)
async def test_an_error_is_a_page_in_a_browser(served: Served, method: str, path: str, status: int, words: str) -> None:
    """In the layout, in words of people, under the policy of the pages."""
    app = create_app(served.app_context, (*ROUTERS, broken))
    content = b"x" * (LARGEST + 1) if status == 413 else b""
    async with Served(app, served.app_context, served.client, served.sandbox).calling() as client:
        answer = await client.request(method, path, headers=BROWSER, content=content)

    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert f"<h1>{words}</h1>" in answer.text
    assert "secret" not in answer.text
    assert "`" not in answer.text
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, text/html;q=0.5"])
async def test_whoever_wants_json_gets_it(served: Served, accept: str) -> None:
    """Whether the path is the API's or not."""
    for path in ("/nowhere", "/v1/nowhere"):
        answer = await served.client.get(path, headers={"Accept": accept})
        assert answer.json()["error"]["code"] == "not_found"
