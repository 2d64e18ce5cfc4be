"""A person at the pages, without a browser: forms are sent with what stands in them."""

from __future__ import annotations

import re
from typing import Any

import httpx

from api.features.analyses.store_ports import Filters, StoredAnalysis
from api.reports.report import Report
from tests.interfaces.http.conftest import Served
from tests.interfaces.http.hostile_report import Tags, hostile

CSRF = re.compile(r'name="csrf" value="([^"]+)"')
QUICK = {"query": "plaud.ai", "depth": "quick"}


async def csrf(client: httpx.AsyncClient, path: str = "/") -> str:
    """What stands in the forms of a page."""
    match = CSRF.search((await client.get(path)).text)
    assert match is not None
    return match[1]


async def submit(client: httpx.AsyncClient, path: str, **fields: Any) -> httpx.Response:
    """Send a form of a page of ours."""
    return await client.post(path, data={"csrf": await csrf(client), **fields})


async def finished(served: Served) -> Report:
    """The report of a question that was asked on the page."""
    answer = await submit(served.client, "/ask", **QUICK)
    analysis = await served.app_context.store.get("local", answer.headers["location"].rpartition("/")[2])
    assert isinstance(analysis, StoredAnalysis)
    return await served.app_context.runner.outcome(analysis)


async def poisoned(served: Served) -> Report:
    """A stored report in which every word is of the worst strangers."""
    report = await finished(served)
    plain = report.model_dump(mode="json") | {"sample": False}
    evil = Report.model_validate(hostile(plain) | {"id": report.id})
    await served.app_context.store.finish("local", evil)
    return evil


def assert_harmless(answer: httpx.Response) -> None:
    """A page with no element and no attribute of strangers, and of their links those to the web."""
    tags = Tags(answer.text)
    names = [name for name, _ in tags.tags]

    assert answer.status_code == 200
    assert not {"img", "iframe", "style", "b"} & set(names)
    assert names.count("script") == 1
    assert "\x1b" not in answer.text
    for tag, attributes in tags.tags:
        assert not any(name.startswith("on") or name == "style" for name in attributes), tag
        href = attributes.get("href") or "#"
        assert href.startswith(("#", "/", "data:image/svg+xml,", "https://", "http://")), href
        if href.startswith("http"):
            assert attributes["rel"] == "noopener noreferrer nofollow ugc"


async def begun(served: Served) -> int:
    """How many analyses there are: requests of an earlier test may still reach the sandbox."""
    return len((await served.app_context.store.listing("local", Filters(), 100)).analyses)


async def entered(client: httpx.AsyncClient, key: str, **fields: str) -> httpx.Response:
    """Log in."""
    return await client.post("/login", data={"key": key, **fields})


ADDRESS = re.compile(r'readonly value="http://localhost([^"]*/shared/[^"]+)"')


def link_in(answer: httpx.Response) -> str:
    """The address that a page shows."""
    match = ADDRESS.search(answer.text)
    assert match is not None
    return match[1]
