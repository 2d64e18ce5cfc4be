"""The largest legal request of each route, tool and command, and how long `/healthz` waits meanwhile.

    python scripts/reliability/largest_request.py [--model] [--only WORDS]

A server and the sandbox are processes of their own; a thread asks `/healthz` all the time. Bodies are as large as
the server takes: 500 items, 1 MB. First come requests of many kinds of text, then each route, form and tool with
the largest values that its schema allows, then commands over the same database. Without `--model` the server has
no key, so that all work is its own. Exits 1 when a request is answered by a server error, a command ends with a
defect, or `/healthz` waited longer than `--most` seconds.
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
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import httpx

from api.choices import MAX_ABOUT_LENGTH, MAX_EXCLUSION_LENGTH, MAX_EXCLUSIONS, MAX_LIMIT, MAX_OWN_ITEMS
from largest_operations import FORM_PAGES, Call, form_calls, mcp_call, route_calls, tool_calls

BODY_BYTES = 1_000_000
NAME = "Glow Lamp"
SENTENCES = (
    "The battery of my Glow Lamp dies after two hours and nobody answers.",
    "I love how bright it is, but the app crashes whenever it updates.",
    "Support said to wait; the subscription costs more than the lamp.",
    "After 300 minutes you hit a wall and have to pay again.",
    "My sister's Glow Lamp never connects to the phone.",
)
FILE_BYTES = 60_000_000
"""Bytes of the file that commands read; `--items` takes 64 MB."""
OWN_FILE = "items.jsonl"
"""A person's own items, which commands read as a file or from stdin."""
DEFECTS = (1, -6, -9, -11)
"""Exit codes of a command that ended by a defect or a signal."""
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


def items(text: Callable[[int], str], count: int, most: int = BODY_BYTES) -> list[dict[str, Any]]:
    """So many items of one kind of text, together almost as large as a body may be."""
    length = most // count - 160
    made = text(max(length, 20))
    while len(json.dumps(made)) > length and len(made) > 20:
        made = made[: int(len(made) * 0.9)]
    return [
        {"id": f"i{number}", "title": f"{NAME} {number}", "body": made, "author": f"a{number}"}
        for number in range(count)
    ]


def requests() -> Iterator[Call]:
    """The largest request of each route that takes a body, and then what reads the largest stored report."""
    for kind, text in TEXTS.items():
        for count in (MAX_OWN_ITEMS, 20):
            few = items(text, count)
            yield Call.of(
                f"relevance, {count} of {kind}",
                "POST",
                "/v1/relevance",
                {"query": NAME, "source": "reviews", "items": few},
            )
            yield Call.of(f"analyses, {count} of {kind}", "POST", "/v1/analyses", {"query": NAME, "items": few})
            yield Call.of(f"chat, {count} of {kind}", "POST", "/v1/chat", {"message": f"{NAME} battery", "items": few})
    yield Call.of("500 wrong items", "POST", "/v1/relevance", {"query": NAME, "items": [1] * MAX_OWN_ITEMS})
    about = prose(MAX_ABOUT_LENGTH)
    exclusions = [prose(MAX_EXCLUSION_LENGTH)] * MAX_EXCLUSIONS
    asked = {"about": about, "not_about": exclusions, "depth": "deep", "limit": MAX_LIMIT}
    yield Call.of("analyses, deep", "POST", "/v1/analyses", {"query": "Obsidian", **asked})
    for place in ("reddit", "hackernews", "youtube"):
        yield Call.of(f"fetch {place}, deep", "POST", f"/v1/fetch/{place}", {"query": "Obsidian", **asked})
    products = ["Oura", "Whoop", "Plaud", "Ember mug", "Obsidian"]
    yield Call.of(
        "comparisons, five, deep",
        "POST",
        "/v1/comparisons",
        {"products": products, "depth": "deep", "limit": MAX_LIMIT},
    )
    yield Call.of("watches", "POST", "/v1/watches", {"query": "Obsidian", "every": "daily 08:00", "name": "large"})
    yield Call.of("search", "GET", "/v1/search?k=50&query=" + "battery%20lamp%20" * 29)
    yield Call.of("list", "GET", "/v1/analyses?limit=100")
    yield Call.of("stats", "GET", "/v1/stats?since=all")


def reading(analysis_id: str) -> Iterator[Call]:
    """Whatever reads or judges again a stored report."""
    for accept in FORMS:
        yield Call.of(f"read as {accept}", "GET", f"/v1/analyses/{analysis_id}", accept=accept)
    for page in ("", "/evidence", "/chat"):
        yield Call.of(f"page {page or 'report'}", "GET", f"/analyses/{analysis_id}{page}", accept="text/html")
    yield Call.of("judge again", "POST", f"/v1/analyses/{analysis_id}/again", {})


def published(client: httpx.Client, report: Mapping[str, Any]) -> Iterator[Call]:
    """Each route, tool and form that the server publishes, with the largest values of its schema."""
    watch = client.get("/v1/watches").json()["watches"][0]
    known: Mapping[str, Any] = {
        "analysis_id": report["id"], "report_id": report["id"], "watch_id": watch["id"], "query": "Obsidian",
        "key": report["items"][0]["key"], "item_key": report["items"][0]["key"], "source": "reddit", "sources": [],
        "products": ["Oura", "Whoop", "Plaud", "Ember mug", "Obsidian"], "message": "Obsidian battery", "depth": "deep",
        "items": items(prose, MAX_OWN_ITEMS, BODY_BYTES - 200_000), "sandbox": False, "since": "all", "cursor": None,
        "messages": [], "language": "en", "name": "largest",
        "every": "daily 08:00", "tz": "UTC", "session_id": "large", "notify": [], "as_it_happens": False,
    }  # fmt: skip
    yield from route_calls(client.get("/openapi.json").json(), known, BODY_BYTES)
    listing = mcp_call("tools/list", "tools/list", {})
    listed = client.post(listing.path, content=listing.body, headers=listing.headers).json()["result"]["tools"]
    yield from (listing, *tool_calls(listed, known, BODY_BYTES))
    pages = {path: client.get(path, headers={"accept": "text/html"}).text for path in FORM_PAGES}
    yield from form_calls(pages, BODY_BYTES)


def commands(folder: str, analysis_id: str) -> Iterator[tuple[str, Sequence[str]]]:
    """Commands over the same database with the largest input of each: a name, and the words."""
    file = Path(folder, OWN_FILE)
    rows = items(prose, MAX_OWN_ITEMS, FILE_BYTES)
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    deep = "--depth", "deep", "--limit", str(MAX_LIMIT)
    yield "analyze --items FILE", ("analyze", NAME, "--items", str(file))
    yield "filter < FILE", ("filter", NAME, "--source", "reviews")
    yield "import FILE", ("import", str(file))
    yield "import list", ("import", "list")
    yield "chat --report ID", ("chat", f"{NAME} battery", "--report", analysis_id, "--depth", "deep")
    yield "fetch reddit, deep", ("fetch", "reddit", "Obsidian", *deep)
    yield "compare, five, deep", ("compare", "Oura", "Whoop", "Plaud", "Ember mug", "Obsidian", *deep)
    yield "search", ("search", "battery lamp " * 30)
    yield "stats --since all", ("stats", "--since", "all")
    yield "review ID", ("review", analysis_id)
    yield "reports list", ("reports", "list")
    yield "reports show ID", ("reports", "show", analysis_id)
    yield "reports export ID", ("reports", "export", analysis_id)
    yield "corrections", ("corrections",)
    yield "watch list", ("watch", "list")
    yield "watch add", ("watch", "add", "Obsidian", "--name", "of commands", "--about", prose(MAX_ABOUT_LENGTH))
    yield "watch run", ("watch", "run", "of commands")


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


def measured(url: str, work: Callable[[], int]) -> tuple[int, float, float]:
    """What the work returns, its seconds, and the longest that `/healthz` took meanwhile."""
    watcher = HealthWatcher(url)
    thread = threading.Thread(target=watcher.run)
    thread.start()
    began = time.perf_counter()
    try:
        status = work()
    finally:
        seconds = time.perf_counter() - began
        watcher.stop()
        thread.join()
    return status, seconds, watcher.longest


def answered(client: httpx.Client, call: Call) -> int:
    """Status of the answer to a call."""
    return client.request(call.method, call.path, content=call.body, headers=call.headers).status_code


def ended(variables: Mapping[str, str], folder: str, words: Sequence[str]) -> int:
    """Exit code of a command."""
    command = [sys.executable, "-c", "from api.interfaces.cli.main import run; run()", *words]
    with Path(folder, OWN_FILE).open("rb") as file:
        return subprocess.run(
            command, env={**os.environ, **variables}, cwd=folder, stdin=file, capture_output=True, timeout=900
        ).returncode


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
                wrong = run_all(client, variables, folder, options.only, options.most)
    sys.exit(1 if wrong else 0)


def run_all(client: httpx.Client, variables: Mapping[str, str], folder: str, only: str, most: float) -> Sequence[str]:
    """Names of the requests and commands that went wrong."""
    wrong, url = [], str(client.base_url)
    for path in ("analyses", "watches"):  # what ids are needed of, whichever requests are chosen
        client.post(f"/v1/{path}", json={"query": "Obsidian", "depth": "quick"}).raise_for_status()
    print("| request | status | seconds | longest wait of /healthz |\n| --- | ---: | ---: | ---: |")

    def measure(name: str, work: Callable[[], int], defect: Callable[[int], bool]) -> None:
        if only not in name:
            return
        status, seconds, longest = measured(url, work)
        print(f"| {name} | {status} | {seconds:.2f} | {longest:.2f} |", flush=True)
        if defect(status) or longest > most:
            wrong.append(name)

    def report() -> dict[str, Any]:
        stored: dict[str, Any] = client.get(f"/v1/analyses/{largest_stored(client)}").json()
        return stored

    for make in (requests, lambda: reading(report()["id"]), lambda: published(client, report())):
        for call in make():
            measure(call.name, partial(answered, client, call), lambda status: status >= 500)
    for name, words in commands(folder, report()["id"]):
        measure(f"`listenpost {name}`", partial(ended, variables, folder, words), lambda code: code in DEFECTS)
    return wrong


if __name__ == "__main__":
    main()
