"""Hundreds of asynchronous analyses at once, over servers that share one SQLite file.

    python scripts/reliability/many_at_once.py [--analyses 200] [--servers 2]

Each server is a process with its own sandbox. Prints how long the answers with 202 took, and how the analyses ended;
exits 1 when one was refused or has failed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx

PATH = "/v1/analyses"
KEY = "a-key-of-a-measurement"
COMMAND = (sys.executable, "-c", "from api.interfaces.cli.main import run; run()", "serve")
SETTINGS = {
    "LISTENPOST_MODE": "sandbox",
    "LISTENPOST_API_KEYS": KEY,
    **{f"LISTENPOST_LIMIT_{name}": "0" for name in ("REQUESTS_PER_MINUTE", "ANALYSES_PER_DAY", "USD_PER_DAY")},
}
PAUSE = 2.0
"""Seconds between two looks at what still runs."""


@contextmanager
def servers(count: int, folder: str) -> Iterator[list[str]]:
    """The addresses of servers over one file; they are terminated at the end."""
    variables = {**os.environ, **SETTINGS, "LISTENPOST_DATABASE_URL": f"sqlite:///{folder}/listenpost.db"}
    processes, addresses = list[subprocess.Popen[bytes]](), list[str]()
    try:
        for _ in range(count):
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            words = (*COMMAND, "--port", str(port))
            processes.append(subprocess.Popen(words, env=variables, stderr=subprocess.DEVNULL))
            addresses.append(f"http://127.0.0.1:{port}")
        yield addresses
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)


async def ready(client: httpx.AsyncClient, address: str) -> None:
    """Wait until it answers, and have it answer one question, which loads everything."""
    for _ in range(600):
        try:
            await client.get(f"{address}/healthz")
            break
        except httpx.TransportError:
            await asyncio.sleep(0.1)
    await client.post(f"{address}/v1/analyses", json={"query": "plaud.ai", "depth": "quick"})


async def posted(address: str, body: bytes) -> tuple[int, bytes]:
    """Status and body of the answer; a client library takes 6 ms of the processor, nearly as much as the server."""
    url = urlsplit(address)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    head = f"POST {PATH} HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {KEY}\r\nPrefer: respond-async\r\n"
    kind = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    writer.write(f"{head}{kind}".encode() + body)
    start, _, content = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    return int(start.split(b" ")[1]), content


async def begun(addresses: Sequence[str], count: int) -> tuple[list[str], list[float]]:
    """All at once: the ids of what was accepted, and the seconds of each answer."""
    refused: Counter[str] = Counter()

    async def begin(number: int) -> tuple[str, float]:
        body = json.dumps({"query": f"plaud.ai number {number}", "depth": "quick"}).encode()
        since = time.perf_counter()
        status, answer = await posted(addresses[number % len(addresses)], body)
        took = time.perf_counter() - since
        if status != 202:
            refused[f"{status} {answer[:100]!r}"] += 1
        return json.loads(answer).get("id", "") if status == 202 else "", took

    answers = await asyncio.gather(*map(begin, range(count)))
    for words, many in refused.items():
        print(f"refused: {many} x {words}")
    return [analysis_id for analysis_id, _ in answers if analysis_id], sorted(took for _, took in answers)


async def ended(client: httpx.AsyncClient, address: str, ids: Sequence[str], seconds: float) -> Counter[str]:
    """How many are in which state, with the reason of a failure, once none runs or the time is over."""
    running, states = set(ids), Counter[str]()
    until = time.perf_counter() + seconds
    while running and time.perf_counter() < until:
        await asyncio.sleep(PAUSE)
        for analysis_id in sorted(running):
            answer = (await client.get(f"{address}/v1/analyses/{analysis_id}")).json()
            state = answer.get("state") or ("done" if "decision" in answer else "failed")
            if state != "running":
                running.discard(analysis_id)
                states["done" if state == "done" else f"{state}: {answer.get('reason') or answer.get('error')}"] += 1
    states["running"] = len(running)
    return +states


async def main() -> int:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--analyses", type=int, default=200)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1_200.0, help="After which what still runs is counted so.")
    options = parser.parse_args()
    limits = httpx.Limits(max_connections=None)
    with tempfile.TemporaryDirectory() as folder, servers(options.servers, folder) as addresses:
        async with httpx.AsyncClient(timeout=600, limits=limits, headers={"Authorization": f"Bearer {KEY}"}) as client:
            for address in addresses:
                await ready(client, address)
            since = time.perf_counter()
            ids, seconds = await begun(addresses, options.analyses)
            at = [seconds[min(len(seconds) - 1, int(len(seconds) * share))] for share in (0.5, 0.95, 1.0)]
            words = f"{at[0]:.2f} in the median, {at[1]:.2f} at the 95th percentile, {at[2]:.2f} at most"
            print(f"202 in seconds: {words}", flush=True)
            states = await ended(client, addresses[0], ids, options.seconds)
    print(f"{', '.join(f'{many} {state}' for state, many in states.items())} after {time.perf_counter() - since:.0f} s")
    return 0 if states == {"done": options.analyses} else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
