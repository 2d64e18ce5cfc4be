"""Analyses over HTTP: their address, their events and their end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx

URL = "/v1/analyses"

CLARIFY = {"query": "hey this is a test message"}


def events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Kind and data of each server-sent event."""
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        found.append((fields["event"], json.loads(fields["data"])))
    return found


async def ended(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    """An analysis that runs no more."""
    async with asyncio.timeout(120):
        while (shown := (await client.get(address)).json())["state"] == "running":
            continue
    return dict(shown)
