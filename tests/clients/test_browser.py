"""The front ends of `docs/agents.md` as they stand there: type-checked, and used in Chromium.

A Vite server on another port has the pages; the servers are ours, over the sandbox.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from tests.clients.environments import chromium, node_client
from tests.interfaces.http.process import ROOT, threaded
from tests.usual import USUAL

ADDRESS = "http://127.0.0.1:8420"
ASKED = "What do people say about plaud.ai?"
VITE_NEEDS = 20, 19
Seen = dict[str, Any]


def example(language: str) -> str:
    """The page's only code in this language."""
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)
    assert ADDRESS in code
    return str(code)


@dataclass(frozen=True, slots=True)
class Servers:
    """Where they listen."""

    live: str
    """Says that its data is live."""
    slow: str
    """The same, and takes half a minute to judge: nothing that is stopped there was over."""
    sample: str
    """Says that its data is made up."""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Three, each over a sandbox."""
    folder: Path = tmp_path_factory.mktemp("served")
    with ExitStack() as stack:

        def served(name: str, variables: Mapping[str, str]) -> str:
            database = f"sqlite:///{folder / name}.db"
            return stack.enter_context(threaded({"LISTENPOST_DATABASE_URL": database, **variables}))

        def live(name: str, latency: str) -> str:
            sandbox = stack.enter_context(Sandbox.start())
            sandbox.latency(f"openai.judge={latency}")
            pointed = {k: v for k, v in sandbox.environment.items() if not k.startswith("LANGFUSE")}
            return served(name, {**USUAL, **pointed, "LISTENPOST_MODE": "live"})

        sample = served("sample", USUAL)
        yield Servers(live("live", "0s"), live("slow", "30s"), sample)


@pytest.fixture(scope="module")
def pages(servers: Servers) -> Path:
    """Where the examples stand, with the servers' addresses; each page also for the older `ai`."""
    folder = node_client("browser")
    node = subprocess.run(["node", "--version"], stdout=subprocess.PIPE, text=True).stdout
    if tuple(map(int, node.strip("v\n").split(".")[:2])) < VITE_NEEDS:
        pytest.skip(f"Vite needs a later node than {node}")
    page, program = example("tsx"), example("ts")
    older = page.replace("'ai'", "'ai-6'").replace("'@ai-sdk/react'", "'@ai-sdk/react-6'")
    assert older.count("-6'") == 2
    made = folder / "made"
    made.mkdir(exist_ok=True)
    for name, code, address in (
        ("seven.tsx", page, servers.live),
        ("six.tsx", older, servers.live),
        ("seven-slow.tsx", page, servers.slow),
        ("six-slow.tsx", older, servers.slow),
        ("sample.tsx", page, servers.sample),
        ("agui.ts", program, servers.live),
        ("none.ts", "export {};", servers.live),
    ):
        (made / name).write_text(code.replace(ADDRESS, address), "utf-8")
    return folder


@pytest.fixture(scope="module")
def seen(servers: Servers, pages: Path) -> Seen:
    """What the browser showed."""
    command = ["node", "drive.mjs", chromium(), servers.live, servers.slow]
    done = subprocess.run(command, cwd=pages, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    shown: Seen = json.loads(done.stdout)
    return shown


def test_the_examples_are_of_the_types_they_say(pages: Path) -> None:
    """Under `strict`, for both versions."""
    compiler = pages / "node_modules" / ".bin" / "tsc"
    done = subprocess.run([compiler], cwd=pages, stdout=subprocess.PIPE, text=True)

    assert done.stdout == ""
    assert done.returncode == 0
    assert '"strict": true' in (pages / "tsconfig.json").read_text("utf-8")


@pytest.mark.parametrize("version", ["seven", "six"])
def test_a_page_holds_a_conversation(seen: Seen, version: str) -> None:
    """Look-ups, Markdown and sources are shown; what was said is there again after a reload."""
    talked = seen[version]["talked"]
    first, reloaded, after = (talked[step] for step in ("first", "reloaded", "after"))

    assert first["questions"] == [ASKED]
    assert {line.partition(":")[0] for line in first["lookups"]} == {"Reddit", "YouTube", "Amazon"}
    assert len(first["points"]) > 1
    assert all(re.match(r"E\d+: .", title) for title, _ in first["sources"])
    assert all(url.startswith("https://") for _, url in first["sources"])
    assert (first["marks"], first["alert"], first["notes"]) == ([], [], [])
    assert {**reloaded, "lookups": first["lookups"]} == first
    assert after["questions"] == [ASKED, "and its battery?"]
    assert len(after["points"]) > len(reloaded["points"])
    assert talked["complaints"] == []


@pytest.mark.parametrize("version", ["seven", "six"])
def test_a_stopped_turn_is_there_again(seen: Seen, version: str) -> None:
    """Its question and that it was stopped; stopping is no error."""
    stopped = seen[version]["stopped"]

    assert stopped["first"]["questions"] == stopped["reloaded"]["questions"] == [ASKED]
    assert stopped["first"]["alert"] == stopped["reloaded"]["alert"] == []
    assert (stopped["first"]["sources"], stopped["reloaded"]["notes"]) == ([], ["stopped"])
    assert stopped["complaints"] == []


@pytest.mark.parametrize("version", ["seven", "six"])
def test_errors_are_shown_in_the_server_s_words(seen: Seen, version: str) -> None:
    """Those of a request that is refused; no server at all is the browser's to say."""
    (refused,) = seen[version]["refused"]
    assert refused.startswith("`id` must be text of ")
    assert seen["unreachable"] == ["Failed to fetch"]


@pytest.mark.parametrize("version", ["seven", "six"])
def test_a_hostile_answer_does_nothing(seen: Seen, version: str) -> None:
    """Emphasis is shown; no element, no request and no script comes out of the text."""
    attacked = seen[version]["attacked"]

    assert attacked["bold"] == "bold"
    assert attacked["alert"] == "<b>internal error</b>"
    assert (attacked["hurt"], attacked["elements"], attacked["evil"]) == (None, 0, [])


def test_sample_data_is_marked(seen: Seen) -> None:
    """And its addresses are not offered, also of a conversation that is there again."""
    for step in ("first", "reloaded"):
        shown = seen["sample"][step]
        assert shown["marks"] == ["sample"]
        assert shown["sources"]
        assert {url for _, url in shown["sources"]} == {None}
    assert seen["sample"]["first"]["notes"][0].startswith("sample data: ")
    assert seen["sample"]["complaints"] == []


def test_the_ag_ui_program_prints_an_answer(seen: Seen) -> None:
    """Look-ups, the text as it comes, and last the turn."""
    *pieces, (citations, notes, sample) = seen["agui"]["printed"]

    lines = [piece for (piece,) in pieces]
    assert sum("were about it" in piece for piece in lines) == 3
    assert citations[0]["label"] in "".join(lines)
    assert (notes, sample) == ([], False)
    assert seen["agui"]["complaints"] == []


def test_pages_of_this_machine_may_call_and_others_may_not(seen: Seen) -> None:
    """Every route, errors and headers included; another site's page is let at nothing."""
    fetched = seen["fetched"]

    begun, deleted, mcp = fetched["own"]["statuses"]
    assert (begun, deleted, fetched["own"]["error"]) == (202, 404, "not_found")
    assert mcp >= 400
    assert fetched["own"]["location"].startswith("/v1/analyses/")
    assert fetched["foreign"] == ["rejected", "rejected"]


def test_the_clients_take_204_for_nothing_to_resume(seen: Seen) -> None:
    """Both versions of the transport."""
    assert seen["resumed"] == [None, None]
