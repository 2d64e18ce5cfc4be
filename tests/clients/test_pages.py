"""The pages in Chromium: asked, watched and read, wide and narrow, with and without script."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.sandbox.server import Sandbox
from tests.clients.environments import chromium, node_client
from tests.clients.stripping_proxy import below
from tests.interfaces.http.process import ROOT, serving
from tests.usual import USUAL

KEY = "a-key-of-the-environment"
PATH = "/tools/listenpost"
Seen = dict[str, Any]
SCREENS = ("ask", "live", "report", "drawer", "evidence", "gate")
"""Of which the docs have pictures."""


@dataclass(frozen=True, slots=True)
class Doors:
    """Where the servers are reached, two of them behind a proxy that removes a path."""

    sample: str
    slow: str
    """Says that its data is live, and takes a second to judge."""
    keyed: str


@contextmanager
def doors(folder: Path) -> Iterator[Doors]:
    """Three servers, each a process: the browser uses them at the same time."""
    with ExitStack() as stack:

        def served(name: str, **variables: str) -> str:
            database = f"sqlite:///{folder / name}.db"
            settings = {**USUAL, "LISTENPOST_DATABASE_URL": database, **variables}
            address = stack.enter_context(serving(folder, settings)).url
            root = variables.get("LISTENPOST_ROOT_PATH")
            return stack.enter_context(below(root, address)) if root else address

        sandbox = stack.enter_context(Sandbox.start())
        sandbox.latency("openai.judge=1s")
        pointed = {k: v for k, v in sandbox.environment.items() if not k.startswith("LANGFUSE")}
        pointed["LISTENPOST_MODE"] = "live"
        yield Doors(
            served("sample", LISTENPOST_ROOT_PATH=PATH),
            served("slow", **pointed),
            served("keyed", LISTENPOST_API_KEYS=KEY, LISTENPOST_ROOT_PATH=PATH),
        )


NO_ANSWER = 3
"""Exit code of the driver when the browser stopped answering: seen once in eight runs, with no request left open."""


def driven(folder: Path, servers: Path, pictures: Path | None) -> subprocess.CompletedProcess[str]:
    """A run of the driver over three new servers, with pictures where they are to be."""
    with doors(servers) as addresses:
        command = ["node", "drive.mjs", chromium(), addresses.sample, addresses.slow, addresses.keyed, KEY]
        command += [str(pictures)] if pictures else []
        return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=False, timeout=1_200)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What the browser showed; another browser is started once where the first one stopped answering."""
    folder = node_client("pages")
    folder_of_docs = os.environ.get("LISTENPOST_TEST_SCREENS")
    pictures = tmp_path_factory.mktemp("pictures") if folder_of_docs else None
    done = driven(folder, tmp_path_factory.mktemp("pages"), pictures)
    if done.returncode == NO_ANSWER:
        done = driven(folder, tmp_path_factory.mktemp("pages"), pictures)
    done.check_returncode()
    if folder_of_docs and pictures:
        for name in SCREENS:
            shutil.copy(pictures / f"{name}-1280.png", Path(folder_of_docs) / f"{name}.png")
        (Path(folder_of_docs) / "inputs.txt").write_text(drawn_from(), "utf-8")
    shown: Seen = json.loads(done.stdout)
    return shown


def drawn_from() -> str:
    """What the pictures of the docs are made of, as a digest a line."""
    pages = ROOT / "api/interfaces/pages"
    files = sorted([*pages.glob("templates/*.html"), *pages.glob("static/*")])
    files += sorted(pages.glob("*.py"))
    shared = ("chart_data", "presentation", "statistics_text")
    files += [ROOT / f"api/interfaces/shared/{name}.py" for name in shared]
    files.append(Path(__file__).with_name("pages") / "drive.mjs")
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()[:16]} {file.relative_to(ROOT)}\n" for file in files)


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_a_question_is_asked_watched_and_read(seen: Seen, width: str) -> None:
    """Without an error, a broken policy, another origin, or what some people cannot use."""
    used = seen[width]

    assert used["complaints"] == []
    assert used["before"] != used["fewer"]
    assert used["cost"] == f"Depth quick, 2 places: {used['fewer']}"
    assert used["wrong"] == "Choose at least one place."
    assert used["small"] == 0
    assert used["lanes"] == used["same"] == ["Reddit", "YouTube", "Amazon"]
    assert used["file"].endswith(".html")
    assert used["fold"] >= 3, "claims that are seen without scrolling"
    assert used["paint"] > 0


@pytest.mark.parametrize("width", ["wide", "narrow"])
def test_a_citation_opens_its_post(seen: Seen, width: str) -> None:
    """By the keyboard, beside the report where there is room; the cited words stand out, the focus is where it was."""
    used = seen[width]

    words, mark = used["words"].strip('“”"'), " ".join(used["mark"].split())
    assert words in mark or mark.rstrip(".") in words
    assert used["back"] == "cite"
    assert set(used["stages"]) == {"Not about it"}


def test_without_script_all_but_live_progress_works(seen: Seen) -> None:
    """The page looks again by itself, and a citation leads to its post."""
    plain = seen["plain"]

    assert plain["complaints"] == []
    assert "made up" in plain["banner"]
    assert len(plain["samples"]) == 3
    assert plain["decision"]
    assert plain["target"] == 1


@pytest.mark.parametrize("width", [0, 1], ids=["wide", "narrow"])
def test_a_key_is_asked_for(seen: Seen, width: int) -> None:
    """The wrong one is refused; the cookie of the right one is no key, and no script reads it."""
    entered = seen["entered"][width]

    assert entered["complaints"] == []
    assert entered["wrong"] == "This key is not valid."
    assert entered["cookie"] == {"httpOnly": True, "sameSite": "Strict", "path": PATH}
    assert not entered["held"]
    assert entered["script"] == ""
    assert entered["out"] == f"{PATH}/login"


def test_a_stream_that_ends_badly_is_looked_at_again(seen: Seen) -> None:
    """The page comes to the report, which an `EventSource` by itself would not."""
    recovered = seen["recovered"]

    assert recovered["complaints"] == []
    assert recovered["refused"] >= 1


def test_a_report_is_shared_by_a_link(seen: Seen) -> None:
    """Whoever has it reads, by the drawer too, and does nothing else; until it is ended."""
    shared = seen["shared"]

    assert shared["complaints"] == []
    assert shared["decision"]
    assert (shared["menu"], shared["ended"]) == (0, 404)


@pytest.mark.parametrize("manner", [0, 1, 2], ids=["wide", "narrow", "without script"])
def test_a_report_is_asked_on(seen: Seen, manner: int) -> None:
    """By a question that is offered; the answer quotes, and what it cites stands below with place and day."""
    chat = seen["chats"][manner]

    assert chat["complaints"] == []
    assert len(set(chat["examples"])) == 3
    assert "“" in chat["answer"]
    assert chat["words"]
    assert all(chat["words"])
    assert chat["target"] == 1


def test_without_script_a_turn_is_waited_for(seen: Seen) -> None:
    """And guidance stands on the page that was sent."""
    assert "for example" in seen["chats"][2]["guidance"]


@pytest.mark.parametrize("width", [0, 1], ids=["wide", "narrow"])
def test_a_turn_is_watched_and_stopped(seen: Seen, width: int) -> None:
    """One that is stopped is kept as that, and what was typed stays when the connection is lost."""
    chat = seen["chats"][width]

    assert chat["lookup"].startswith("Looks on Reddit for “Ember mug”")
    assert "Stopped before it was complete." in chat["stopped"]
    assert chat["typed"] == "and compare it with the Oura ring"
    assert chat["after"].startswith(chat["typed"])
    assert "Stopped before it was complete." in chat["after"]
    assert chat["lost"][0].startswith("The connection was lost")
    assert chat["lost"][1] == "and the lid?"


def test_a_login_that_ended_is_said_beside_the_question(seen: Seen) -> None:
    """What was typed is there again after the next one, and can be asked."""
    ended = seen["ended"]

    assert ended["complaints"] == []
    assert ended["wrong"] == "this login has ended"
    assert ended["typed"] == "and the battery?"


@pytest.mark.parametrize("width", [0, 1], ids=["wide", "narrow"])
def test_one_group_of_an_ambiguous_name_is_taken(seen: Seen, width: int) -> None:
    """They stand ahead of the first finding; the report on one names its words and no groups."""
    corrected = seen["corrected"][width]

    assert corrected["complaints"] == []
    assert 2 <= len(corrected["groups"]) <= 4
    assert corrected["ahead"]
    heads = [group.partition(":")[0] for group in corrected["groups"]]  # `web browser (browser, tabs)`
    words = [head.removesuffix(")").replace(" (", "; ") for head in heads]
    not_meant = ", ".join(f"“{others}”" for others in words[1:])
    assert corrected["taken"]["described"] == (f"Described as “{words[0]}”; not meant: {not_meant}.")
    assert corrected["taken"]["groups"] == 0


@pytest.mark.parametrize("width", [0, 1], ids=["wide", "narrow"])
def test_a_post_is_corrected_and_judged_again(seen: Seen, width: int) -> None:
    """By one button, to whose post the page comes back; the next report has dropped it."""
    corrected = seen["corrected"][width]

    assert corrected["back"][0] == corrected["back"][1]
    assert corrected["inView"]
    assert (corrected["kept"], corrected["dropped"]) == (0, 1)
    assert corrected["small"] == 0


def test_without_script_group_and_correction_are_remembered(seen: Seen) -> None:
    """The same name shows no groups again; the correction still stands, and can be undone."""
    remembered = seen["remembered"]

    assert remembered["complaints"] == []
    assert remembered["groups"] == 0
    assert remembered["described"] == seen["corrected"][0]["taken"]["described"]
    assert (remembered["before"], remembered["after"]) == (1, 0)


@pytest.mark.parametrize("manner", [0, 1, 2], ids=["wide", "narrow", "without script"])
def test_the_other_screens_are_used(seen: Seen, manner: int) -> None:
    """Compared, looked up, watched, measured, tried and deleted, by what the pages offer."""
    around = seen["around"][manner]

    assert around["complaints"] == []
    assert "posts found" in around["table"]
    assert around["ticked"] == "Whoop and Oura, compared"
    assert around["file"].startswith("comparison-")
    assert around["file"].endswith(".md")
    assert set(around["history"]) == {"Whoop"}
    assert {mark.lower() for mark in around["marks"]} == {"battery", "oura"}
    assert "The first run found" in around["run"]
    assert "every day at 07:30 (UTC time)" in around["due"]
    assert around["feed"].startswith("application/atom+xml")
    assert "searched again" in around["gate"]
    assert {"Reddit", "Model", "Langfuse"} <= set(around["answers"])
    assert around["gone"] == f"{PATH}/history"


@pytest.mark.parametrize("manner", [0, 1, 2], ids=["wide", "narrow", "without script"])
def test_a_report_is_judged_again_beside_itself(seen: Seen, manner: int) -> None:
    """After its price, with what was changed on one side alone; the report stays."""
    replayed = seen["replayed"][manner]

    assert replayed["complaints"] == []
    assert replayed["price"] == "With this choice: free with sample data."
    assert replayed["typed"] == "a heated mug"
    assert "newly dropped" in replayed["summary"]
    assert {"Posts kept", "Claims"} <= set(replayed["rows"])
    assert replayed["sides"].split("\t")[1:] == ["not said", "a heated mug"]


@pytest.mark.parametrize("manner", [0, 1, 2], ids=["wide", "narrow", "without script"])
def test_the_inbox_is_worked_off(seen: Seen, manner: int) -> None:
    """By the keyboard, or by its buttons; the next entry has the focus, and the last change is taken back."""
    inbox = seen["inbox"][manner]

    assert inbox["complaints"] == []
    many = inbox["counts"][0]
    assert many >= len(inbox["ids"]) >= 2
    assert (inbox["counts"][1], inbox["counts"][2], inbox["counts"][-1]) == (many, many - 1, many)
    assert inbox["focused"] == inbox["ids"][1]
    assert inbox["small"] == 0
    assert inbox["draft"] == ("" if manner == 2 else "not saved yet")
    assert inbox["stayed"] == ("" if manner == 2 else inbox["ids"][0])  # with the keys switched off


def test_the_pictures_of_the_docs_are_current() -> None:
    """Made of today's pages; `LISTENPOST_TEST_SCREENS=docs/screens` before this file's tests makes
    them anew.
    """
    folder = ROOT / "docs/screens"
    assert {file.stem for file in folder.glob("*.png")} == set(SCREENS)
    assert (folder / "inputs.txt").read_text("utf-8") == drawn_from()
