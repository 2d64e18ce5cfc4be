"""The largest legal requests: how much processor time the event loop gives to one turn meanwhile."""

from __future__ import annotations

import asyncio
import json
import time

import httpx
import pytest

from api import bootstrap
from api.bootstrap.app_context import open_app_context
from api.interfaces.http.app import create_app
from api.sandbox.server import Sandbox
from largest_request import Request, reading, requests

MOST_SECONDS = 0.5
DAILY = ("20 of prose", "500 wrong items")
NIGHTLY = ("500 of prose", "20 of quoted lines", "20 of headings of quotes", "20 of line ends", ", deep")


class MeasuredLoop(asyncio.SelectorEventLoop):
    """A loop that keeps the longest processor time of its thread between two looks at the sockets."""

    longest = 0.0

    def _run_once(self) -> None:
        began = time.thread_time()
        super()._run_once()  # type: ignore[misc]
        self.longest = max(self.longest, time.thread_time() - began)


async def sent(client: httpx.AsyncClient, loop: MeasuredLoop, request: Request) -> tuple[int, float]:
    """Status, and the longest turn of the loop until the answer was there."""
    loop.longest = 0.0
    content = None if request.body is None else json.dumps(request.body).encode()
    headers = {"accept": request.accept, "content-type": "application/json"}
    answer = await client.request(request.method, request.path, content=content, headers=headers)
    return answer.status_code, loop.longest


async def all_sent(loop: MeasuredLoop, kinds: tuple[str, ...]) -> dict[str, tuple[int, float]]:
    """Status and longest turn of each request, by its name."""
    app_context = await open_app_context(bootstrap.load_settings())
    await app_context.product()  # what is loaded once is loaded in threads, beside which a turn costs more
    transport = httpx.ASGITransport(create_app(app_context))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=300) as client:
        listed = [request for request in requests() if request.name.endswith(kinds)]
        answers = {request.name: await sent(client, loop, request) for request in listed}
        newest = (await client.get("/v1/analyses?limit=100")).json()["analyses"]
        for request in reading(str(newest[-1]["id"])):
            answers[request.name] = await sent(client, loop, request)
    await app_context.aclose()
    return answers


@pytest.mark.parametrize("kinds", [DAILY, pytest.param(NIGHTLY, marks=pytest.mark.nightly)])
def test_no_request_holds_the_event_loop(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]
) -> None:
    """By processor time of the loop's thread, which no other process of the machine changes."""
    monkeypatch.delenv("OPENAI_API_KEY")
    loop = MeasuredLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        answers = runner.run(all_sent(loop, kinds))

    assert len(answers) > len(kinds)
    assert {name: status for name, (status, _) in answers.items() if status >= 500} == {}
    assert {name: seconds for name, (_, seconds) in answers.items() if seconds > MOST_SECONDS} == {}
