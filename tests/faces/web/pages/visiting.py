"""A person at the pages, without a browser: forms are sent with what stands in them."""

from __future__ import annotations

import re
from typing import Any

import httpx

from api.services.keeping.storage import Kept
from api.services.reporting.findings import Finding, Passage
from api.services.reporting.report import Report
from tests.faces.web.conftest import Served
from tests.faces.web.test_export import hostile

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
    analysis = await served.house.store.get("local", answer.headers["location"].split("/")[2])
    assert isinstance(analysis, Kept)
    return await served.house.runner.outcome(analysis)


async def poisoned(served: Served) -> Report:
    """A stored report in which every word is of the worst strangers."""
    report = await finished(served)
    plain = report.model_dump(mode="json") | {"sample": False}
    evil = Report.model_validate(hostile(plain) | {"id": report.id})
    await served.house.store.finish("local", evil)
    return evil


def of_a_hundred(report: Report) -> Report:
    """The report with a hundred posts, each like one that it has, of which every fifth is cited."""
    items = [
        report.items[number % len(report.items)].model_copy(
            update={"key": f"reddit:many{number}", "id": f"many{number}", "rank": number + 1}
        )
        for number in range(100)
    ]
    findings = tuple(
        Finding.resting(
            f"So it is said, {item.rank}.",
            "praise",
            [Passage(item.key, " ".join(item.body.split()[:8]) or item.title)],
            "counted",
        )
        for item in items[::5]
    )
    update = {"items": tuple(items), "findings": findings, "quotes": ()}
    return report.model_copy(update=update)
