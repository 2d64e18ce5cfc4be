"""The front ends of `docs/agents.md` as they stand there: type-checked, and used in Chromium.

A Vite server on another port has the pages; the servers are ours, over the sandbox.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from tests.clients.environments import chromium, node_client
from tests.faces.web.process import ROOT, threaded

ADDRESS = "http://127.0.0.1:8420"
ASKED = "What do people say about plaud.ai?"
MUG = "What about the ember mug?"
Seen = dict[str, Any]


def example(language: str) -> str:
    """The page's only code in this language."""
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    (code,) = re.findall(rf"^```{language}\n(.*?)^```", page, re.M | re.S)
    assert ADDRESS in code
    return str(code)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """One as if live, slow enough to be stopped, and one that says that it has sample data."""
    folder: Path = tmp_path_factory.mktemp("served")
    with ExitStack() as stack:
        sandbox = stack.enter_context(Sandbox.start())
        sandbox.latency("openai.judge=1s")
        pointed = {
            name: value
            for name, value in sandbox.environment.items()
            if not name.startswith("LANGFUSE")
        }
        live = threaded(
            {
                **pointed,
                "LISTENPOST_MODE": "live",
                "LISTENPOST_DATABASE_URL": f"sqlite:///{folder / 'live.db'}",
            }
        )
        sample = threaded(
            {
                "LISTENPOST_MODE": "sandbox",
                "LISTENPOST_DATABASE_URL": f"sqlite:///{folder / 'sample.db'}",
            }
        )
        yield stack.enter_context(live), stack.enter_context(sample)


@pytest.fixture(scope="module")
def pages(servers: tuple[str, str]) -> Path:
    """Where the examples stand, with these servers' addresses; one also for the older `ai`."""
    folder = node_client("browser")
    live, sample = servers
    page, program = example("tsx"), example("ts")
    older = page.replace("'ai'", "'ai-6'").replace("'@ai-sdk/react'", "'@ai-sdk/react-6'")
    assert older.count("-6'") == 2
    made = folder / "made"
    made.mkdir(exist_ok=True)
    for name, code, address in (
        ("seven.tsx", page, live),
        ("six.tsx", older, live),
        ("sample.tsx", page, sample),
        ("agui.ts", program, live),
        ("none.ts", "export {};", live),
    ):
        (made / name).write_text(code.replace(ADDRESS, address), "utf-8")
    return folder


@pytest.fixture(scope="module")
def seen(servers: tuple[str, str], pages: Path) -> Seen:
    """What the browser showed."""
    command = ["node", "drive.mjs", chromium(), *servers]
    done = subprocess.run(
        command, cwd=pages, stdout=subprocess.PIPE, text=True, check=True, timeout=300
    )
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
    first, reloaded, after = (seen[version][step] for step in ("first", "reloaded", "after"))

    assert first["questions"] == [ASKED]
    assert {line.partition(":")[0] for line in first["lookups"]} == {"Reddit", "YouTube", "Amazon"}
    assert len(first["points"]) > 1
    assert all(re.match(r"E\d+: .", title) for title, _ in first["sources"])
    assert all(url.startswith("https://") for _, url in first["sources"])
    assert (first["marks"], first["alert"], first["notes"]) == ([], [], [])
    assert reloaded["points"] == first["points"]
    assert reloaded["sources"][: len(first["sources"])] == first["sources"]
    assert after["questions"] == [ASKED, MUG, "and its battery?"]
    assert len(after["points"]) > len(reloaded["points"])
    assert seen[version]["complaints"] == []


@pytest.mark.parametrize("version", ["seven", "six"])
def test_a_stopped_turn_is_there_again(seen: Seen, version: str) -> None:
    """Its question and that it was stopped; stopping is no error."""
    stopped, reloaded = seen[version]["stopped"], seen[version]["reloaded"]

    assert stopped["questions"] == reloaded["questions"] == [ASKED, MUG]
    assert stopped["alert"] == reloaded["alert"] == []
    assert reloaded["notes"] == ["stopped"]


@pytest.mark.parametrize("version", ["seven", "six"])
def test_errors_are_shown_in_the_server_s_words(seen: Seen, version: str) -> None:
    """Those of a request that is refused; no server at all is the browser's to say."""
    (refused,) = seen[version]["refused"]
    assert refused.startswith("`body.")
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

    told = [piece for (piece,) in pieces]
    assert sum("were about it" in piece for piece in told) == 3
    assert citations[0]["label"] in "".join(told)
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
