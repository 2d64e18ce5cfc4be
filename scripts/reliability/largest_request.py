"""The largest legal request of each route and tool, and how long `/healthz` waits meanwhile.

    python scripts/reliability/largest_request.py [--model] [--only WORDS]

A server and the sandbox are processes of their own; a thread asks `/healthz` all the time. Bodies are as large as
the server takes: 500 items, 1 MB. Without `--model` the server has no key, so that all work is its own. Exits 1
when a request is answered by a server error, or when `/healthz` waited longer than `--most` seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Any

import httpx

from api.choices import MAX_ABOUT_LENGTH, MAX_EXCLUSION_LENGTH, MAX_EXCLUSIONS, MAX_LIMIT, MAX_OWN_ITEMS

BODY_BYTES = 1_000_000
NAME = "Glow Lamp"
SENTENCES = (
    "The battery of my Glow Lamp dies after two hours and nobody answers.",
    "I love how bright it is, but the app crashes whenever it updates.",
    "Support said to wait; the subscription costs more than the lamp.",
    "After 300 minutes you hit a wall and have to pay again.",
    "My sister's Glow Lamp never connects to the phone.",
)
FORMS = ("text/markdown", "text/csv", "text/html", "application/json")


def prose(length: int) -> str:
    """Sentences about the product, as people write them."""
    text = ""
    for sentence in cycle(SENTENCES):
        if len(text) >= length:
            return text[:length]
        text += sentence + " "
    raise AssertionError


TEXTS: Mapping[str, Callable[[int], str]] = {
    "prose": prose,
    "one sentence without an end": lambda length: " ".join(
        islice(cycle(prose(400).replace(".", "").split()), length // 6)
    ),
    "quoted lines": lambda length: "".join(islice(cycle(f"> {s}\n" for s in SENTENCES), length // 70)),
    "one letter": lambda length: "Glow Lamp " + "a" * (length - 10),
    "combining signs": lambda length: "Glow Lamp " + "é" * ((length - 10) // 6),
    "digits and stops": lambda length: "Glow Lamp " + "1." * ((length - 10) // 2),
    "tags": lambda length: "Glow Lamp " + "<b><i>" * ((length - 10) // 6),
    "line ends": lambda length: "Glow Lamp" + "\n" * (length // 2 - 10) + "end",
    "headings of quotes": lambda length: "Glow Lamp\n" + "On Monday someone wrote:\n" * (length // 26),
}
"""What the items hold, by a name."""


@dataclass
class HealthWatcher:
    """Asks `/healthz` until it is stopped, and keeps the longest time an answer took."""

    url: str
    longest: float = 0.0
    answers: int = 0
    _stopped: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        """Ask again as soon as it has answered, at most every 20 ms."""
        with httpx.Client(base_url=self.url, timeout=120, trust_env=False) as client:
            while not self._stopped.wait(0.02):
                began = time.perf_counter()
                client.get("/healthz").raise_for_status()
                self.longest = max(self.longest, time.perf_counter() - began)
                self.answers += 1

    def stop(self) -> None:
        """After the answer that is under way."""
        self._stopped.set()


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its name in the table, method, path and body."""

    name: str
    method: str
    path: str
    body: Mapping[str, Any] | None = None
    accept: str = "application/json"


def items(text: Callable[[int], str], count: int) -> list[dict[str, Any]]:
    """So many items of one kind of text, together almost as large as a body may be."""
    length = BODY_BYTES // count - 160
    made = text(max(length, 20))
    while len(json.dumps(made)) > length and len(made) > 20:
        made = made[: int(len(made) * 0.9)]
    return [
        {"id": f"i{number}", "title": f"{NAME} {number}", "body": made, "author": f"a{number}"}
        for number in range(count)
    ]


def requests() -> Iterator[Request]:
    """The largest request of each route that takes a body, and then what reads the largest stored report."""
    for kind, text in TEXTS.items():
        for count in (MAX_OWN_ITEMS, 20):
            few = items(text, count)
            yield Request(
                f"relevance, {count} of {kind}",
                "POST",
                "/v1/relevance",
                {"query": NAME, "source": "reviews", "items": few},
            )
            yield Request(f"analyses, {count} of {kind}", "POST", "/v1/analyses", {"query": NAME, "items": few})
            yield Request(f"chat, {count} of {kind}", "POST", "/v1/chat", {"message": f"{NAME} battery", "items": few})
    yield Request("500 wrong items", "POST", "/v1/relevance", {"query": NAME, "items": [1] * MAX_OWN_ITEMS})
    about = prose(MAX_ABOUT_LENGTH)
    exclusions = [prose(MAX_EXCLUSION_LENGTH)] * MAX_EXCLUSIONS
    asked = {"about": about, "not_about": exclusions, "depth": "deep", "limit": MAX_LIMIT}
    yield Request("analyses, deep", "POST", "/v1/analyses", {"query": "Obsidian", **asked})
    for place in ("reddit", "hackernews", "youtube"):
        yield Request(f"fetch {place}, deep", "POST", f"/v1/fetch/{place}", {"query": "Obsidian", **asked})
    products = ["Oura", "Whoop", "Plaud", "Ember mug", "Obsidian"]
    yield Request(
        "comparisons, five, deep",
        "POST",
        "/v1/comparisons",
        {"products": products, "depth": "deep", "limit": MAX_LIMIT},
    )
    yield Request("watches", "POST", "/v1/watches", {"query": "Obsidian", "schedule": "daily", "name": "large"})
    yield Request("search", "GET", "/v1/search?k=50&query=" + "battery%20lamp%20" * 29)
    yield Request("list", "GET", "/v1/analyses?limit=100")
    yield Request("stats", "GET", "/v1/stats?since=all")


def reading(analysis_id: str) -> Iterator[Request]:
    """Whatever reads or judges again a stored report."""
    for accept in FORMS:
        yield Request(f"read as {accept}", "GET", f"/v1/analyses/{analysis_id}", accept=accept)
    for page in ("", "/evidence", "/chat"):
        yield Request(f"page {page or 'report'}", "GET", f"/analyses/{analysis_id}{page}", accept="text/html")
    yield Request("judge again", "POST", f"/v1/analyses/{analysis_id}/again", {})


def largest_stored(client: httpx.Client) -> str:
    """Id of the report that holds most."""
    newest = client.get("/v1/analyses?limit=100").json()["analyses"]
    return str(max(newest, key=lambda entry: len(client.get(f"/v1/analyses/{entry['id']}").content))["id"])


@contextmanager
def listenpost(variables: Mapping[str, str], *words: str) -> Iterator[subprocess.Popen[str]]:
    """A command as a process of its own, whose output is read."""
    command = [sys.executable, "-c", "from api.interfaces.cli.main import run; run()", *words, "--port", "0"]
    with subprocess.Popen(
        command, env={**os.environ, **variables}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


def first(process: subprocess.Popen[str], word: str) -> list[str]:
    """Its lines up to the one that holds the word; what comes later is read and dropped."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.strip())
        if word in line:
            break
    threading.Thread(target=deque, args=(process.stdout, 0), daemon=True).start()
    return lines


def measured(client: httpx.Client, request: Request) -> tuple[int, float, float]:
    """Status, seconds of the answer, and the longest that `/healthz` took meanwhile."""
    watcher = HealthWatcher(str(client.base_url))
    thread = threading.Thread(target=watcher.run)
    content = None if request.body is None else json.dumps(request.body).encode()
    thread.start()
    began = time.perf_counter()
    headers = {"accept": request.accept, "content-type": "application/json"}
    answer = client.request(request.method, request.path, content=content, headers=headers)
    seconds = time.perf_counter() - began
    watcher.stop()
    thread.join()
    return answer.status_code, seconds, watcher.longest


def main() -> None:
    """Print a line for each request as soon as it is answered."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="store_true", help="with the sandbox's model server")
    parser.add_argument("--only", default="", help="only requests whose name holds these words")
    parser.add_argument("--most", type=float, default=0.5, help="seconds that /healthz may wait (default 0.5)")
    options = parser.parse_args()
    with listenpost({}, "sandbox") as places, tempfile.TemporaryDirectory() as folder:
        lines = first(places, "LANGFUSE_SECRET_KEY")
        exports = dict(line.removeprefix("export ").split("=", 1) for line in lines if line.startswith("export "))
        variables = {
            **exports, "LISTENPOST_LIMIT_USD_PER_DAY": "0", "LISTENPOST_DATABASE_URL": f"sqlite:///{folder}/large.db",
            "LANGFUSE_SECRET_KEY": "", "LANGFUSE_PUBLIC_KEY": "", **({} if options.model else {"OPENAI_API_KEY": ""}),
        }  # fmt: skip
        with listenpost(variables, "serve") as process:
            url = first(process, "Listenpost on http")[-1].split()[2]
            with httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
                wrong = run_all(client, options.only, options.most)
    sys.exit(1 if wrong else 0)


def run_all(client: httpx.Client, only: str, most: float) -> Sequence[str]:
    """Names of the requests that went wrong."""
    wrong = []
    print("| request | status | seconds | longest wait of /healthz |\n| --- | ---: | ---: | ---: |")
    for make in (requests, lambda: reading(largest_stored(client))):
        for request in make():
            if only not in request.name:
                continue
            status, seconds, longest = measured(client, request)
            print(f"| {request.name} | {status} | {seconds:.2f} | {longest:.2f} |", flush=True)
            if status >= 500 or longest > most:
                wrong.append(request.name)
    return wrong


if __name__ == "__main__":
    main()
