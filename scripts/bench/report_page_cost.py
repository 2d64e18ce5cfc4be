"""Size of a report's page, its time beside that of the JSON, and its first contentful paint.

    python scripts/bench/report_page_cost.py [RUNS]

A report with a hundred posts is read from the store again and again: in turn as JSON, as a page, as
its evidence and as a file. The ratios are of medians in one process. Where `LISTENPOST_TEST_CLIENTS` names a folder
and there are node and Chromium, a browser loads the page from a server on loopback, and says when it first painted.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tempfile
import time
from statistics import median

import httpx
import pytest

from api import bootstrap
from api.bootstrap.app_context import open_app_context
from api.features.analyses.api_keys import LOCAL
from api.interfaces.http.app import create_app
from api.reports.report import Finding, Passage, Report
from api.services.product import Ask
from tests.clients.environments import chromium, node_client
from tests.interfaces.http.process import threaded

POSTS, CITED_EVERY = 100, 5


def of_many(report: Report) -> Report:
    """The report with a hundred posts, each like one that it has; every fifth is cited."""
    items = [
        report.items[number % len(report.items)].model_copy(
            update={"key": f"reddit:many{number}", "id": f"many{number}", "rank": number + 1}
        )
        for number in range(POSTS)
    ]
    findings = tuple(
        Finding.resting(
            f"So it is said, {item.rank}.",
            "praise",
            [Passage(item.key, " ".join(item.body.split()[:8]) or item.title)],
            "counted",
        )
        for item in items[::CITED_EVERY]
    )
    update = {"items": tuple(items), "findings": findings, "quotes": ()}
    return report.model_copy(update=update)


async def measured(runs: int) -> str:
    """Print a line for each form, and give the path of the page."""
    app_context = await open_app_context(bootstrap.load_settings())
    report = of_many(await app_context.runner.run(LOCAL, Ask("plaud.ai", "quick")))
    await app_context.store.finish(LOCAL.id, report)
    transport = httpx.ASGITransport(create_app(app_context))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        forms = {
            "JSON": f"/v1/analyses/{report.id}",
            "page": f"/analyses/{report.id}",
            "evidence": f"/analyses/{report.id}/evidence",
            "file": f"/v1/analyses/{report.id}?format=html",
        }
        times: dict[str, list[float]] = {name: [] for name in forms}
        pages: dict[str, str] = {}
        for _ in range(runs):
            for name, path in forms.items():
                began = time.perf_counter()
                pages[name] = (await client.get(path)).text
                times[name].append(time.perf_counter() - began)
        for name, page in pages.items():
            files = [(await client.get(path)).content for path in _files(page)]
            size = len(page.encode()) + sum(map(len, files))
            ratio = median(times[name]) / median(times["JSON"])
            print(f"{name:<8} {size:>7} bytes  {ratio:.2f} times the JSON")
    await app_context.aclose()
    return forms["page"]


def painted(path: str) -> str:
    """When a browser first painted the page: the median of five loads; or why that is not known."""
    try:
        folder, browser = node_client("pages"), chromium()
    except pytest.skip.Exception as reason:
        return f"not measured: {reason}"
    with threaded({}) as address:
        command = ["node", "paint.mjs", browser, f"{address}{path}"]
        paints = [int(subprocess.check_output(command, cwd=folder, text=True)) for _ in range(5)]
    return f"{median(paints)} ms at 1280 x 900"


def _files(page: str) -> list[str]:
    """What a page loads: `/static/page.css?1f2e`."""
    return re.findall(r'"(/static/[^"]+)"', page)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {
            "LISTENPOST_MODE": "sandbox",
            "LISTENPOST_DATABASE_URL": f"sqlite:///{folder}/bench.db",
        }
        page_path = asyncio.run(measured(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
        print(f"first contentful paint of the page: {painted(page_path)}")
