"""Forms as a browser sends them from a page of ours."""

from __future__ import annotations

import httpx

from tests.faces.web.conftest import Served


async def sent(served: Served, path: str, **fields: str | list[str]) -> httpx.Response:
    """The answer to a form, sent by whoever sits at this machine."""
    word = served.app.state.visits.local
    return await served.client.post(path, data={"csrf": word, **fields})
