"""`listenpost langfuse`: what it says, what it does, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from tests.interfaces.command import Here
from tests.loopback import free_port
from tests.snippets import commands

BOARDS = "/api/public/unstable/dashboards"
WIDGETS = "/api/public/unstable/dashboard-widgets"
KEYS = ("pk-lf-sandbox", "sk-lf-sandbox")


@pytest.fixture
def langfuse() -> Iterator[Sandbox]:
    """A server with an empty project."""
    with Sandbox.start([]) as sandbox:
        yield sandbox


def named(sandbox: Sandbox) -> dict[str, str]:
    """An environment that names this Langfuse and nothing else."""
    return {k: v for k, v in sandbox.environment.items() if k.startswith("LANGFUSE_")}


def writes(sandbox: Sandbox) -> list[str]:
    """Methods of what wrote, in order."""
    return [entry.method for entry in sandbox.requests("langfuse") if entry.method != "GET"]


def edit(sandbox: Sandbox, path: str, title: str, **fields: Any) -> None:
    """Change what bears a name, by hand."""
    rows = httpx.get(f"{sandbox.url}{path}", params={"limit": 100}, auth=KEYS).json()["data"]
    (row,) = [row for row in rows if row["name"] == title]
    url = f"{sandbox.url}{path}/{row['id']}"
    httpx.patch(url, json=fields, auth=KEYS).raise_for_status()


def test_a_dry_run_says_what_would_be_done(langfuse: Sandbox, here: Here) -> None:
    """It reads alone, and the run after it does exactly what it said."""
    env = named(langfuse)
    would = here("langfuse", "apply", "--dry-run", env=env)
    assert writes(langfuse) == []
    done = here("langfuse", "apply", env=env)

    assert (would.code, done.code) == (0, 0)
    lines = would.out.splitlines()
    assert "would create dashboard `Listenpost: the gate`" in lines
    assert "would create widget `Yield by source` (gate)" in lines
    assert "would push prompt `listenpost/relevance`" in lines
    words = {"would create": "created", "would push": "pushed"}
    expected = [line.replace(verb, past) for line in lines for verb, past in words.items() if verb in line]
    assert done.out.splitlines() == expected
    assert len(writes(langfuse)) == len(lines)
    assert f"Langfuse project `sandbox` at `{langfuse.url[7:]}`: {len(lines)} to do, 0 as" in would.err


def test_a_second_run_writes_nothing(langfuse: Sandbox, here: Here) -> None:
    """And says that all is as it should be."""
    env = named(langfuse)
    first = here("langfuse", "apply", env=env)
    langfuse.forget()

    second = here("langfuse", "apply", "--diff", env=env)

    assert (second.code, second.out, writes(langfuse)) == (0, "", [])
    assert f"0 done, {len(first.out.splitlines())} as they should be" in second.err


def test_differences_are_readable(langfuse: Sandbox, here: Here) -> None:
    """Each field with what is there and what should be; then they are mended."""
    env = named(langfuse)
    here("langfuse", "apply", env=env)
    edit(langfuse, WIDGETS, "Yield by source", description="Mine.\n\nlistenpost:gate.yield")
    edit(langfuse, BOARDS, "Listenpost: reports", name="Reports\x1b[31m of mine")
    edit(langfuse, BOARDS, "Listenpost: the gate", definition={"widgets": []})

    diff = here("langfuse", "apply", "--diff", "--dry-run", env=env)
    again = here("langfuse", "apply", env=env)

    lines = diff.out.splitlines()
    assert lines[:2] == ["would change widget `Yield by source` (gate)", "    description:"]
    assert lines[2] == "    -Mine."
    assert lines[3].startswith("    +Relevant / judged, a line per source.")
    assert "    -Reports of mine" in [line.replace("[31m", "") for line in lines]
    assert "    +Listenpost: reports" in lines
    at = lines.index("    definition listenpost-gate.yield:")
    assert lines[at + 1] == '    +{"height": 5, "width": 6, "x": 0, "y": 3}'
    assert "\x1b" not in diff.out
    assert [line for line in again.out.splitlines() if line.startswith("changed")] == [
        "changed widget `Yield by source` (gate)",
        "changed dashboard `Listenpost: the gate`",
        "changed dashboard `Listenpost: reports`",
    ]


def test_open_prints_addresses(langfuse: Sandbox, here: Here) -> None:
    """One line per dashboard; before there is one, what creates them."""
    env = named(langfuse)
    before = here("langfuse", "open", env=env)
    here("langfuse", "apply", env=env)
    after = here("langfuse", "open", env=env)

    assert (before.code, before.out) == (3, "")
    assert "`listenpost langfuse apply` creates them" in before.err
    gate, reports = (line.split("  ") for line in after.out.splitlines())
    assert (gate[1], reports[1]) == ("Listenpost: the gate", "Listenpost: reports")
    assert gate[0].startswith(f"{langfuse.url}/project/sandbox/dashboards/c")


def test_remove_takes_everything_away(langfuse: Sandbox, here: Here) -> None:
    """After a dry run that wrote nothing; then there is nothing to open."""
    env = named(langfuse)
    here("langfuse", "apply", env=env)
    langfuse.forget()
    would = here("langfuse", "remove", "--dry-run", env=env)
    assert writes(langfuse) == []
    done = here("langfuse", "remove", env=env)

    assert (would.code, done.code) == (0, 0)
    assert len(would.out.splitlines()) == len(done.out.splitlines()) == len(writes(langfuse))
    assert "would archive score config `decision`" in would.out
    assert "deleted prompt `listenpost/chat` version 1" in done.out
    assert here("langfuse", "open", env=env).code == 3


def test_a_widget_that_must_stay_is_told(langfuse: Sandbox, here: Here) -> None:
    """The others go, and the code says that something is left."""
    env = named(langfuse)
    here("langfuse", "apply", env=env)
    rows = httpx.get(f"{langfuse.url}{WIDGETS}", params={"limit": 100}, auth=KEYS).json()["data"]
    place = {
        "type": "widget", "id": "a", "widgetId": rows[0]["id"], "x": 0, "y": 0, "width": 1,
        "height": 1,
    }  # fmt: skip
    board = {"name": "Mine", "definition": {"widgets": [place]}}
    httpx.post(f"{langfuse.url}{BOARDS}", json=board, auth=KEYS).raise_for_status()

    removed = here("langfuse", "remove", env=env)

    assert removed.code == 4
    (kept,) = [line for line in removed.out.splitlines() if line.startswith("kept")]
    assert "on a dashboard that is not ours; take it off there" in kept


@pytest.mark.parametrize("command", ["apply", "remove", "open"])
def test_without_keys_the_variables_are_named(here: Here, command: str) -> None:
    """One line, and the code of a configuration."""
    ended = here("langfuse", command, env={"LANGFUSE_PUBLIC_KEY": "pk-lf-x"})

    assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
    for name in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_BASE_URL"):
        assert f"`{name}`" in ended.err


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        ("langfuse=401", 2, "refuses the keys; check `LANGFUSE_PUBLIC_KEY`"),
        ("langfuse.projects=403", 2, "take the keys of a project, not of an organisation"),
        ("langfuse=no_project", 2, "the keys belong to no project"),
        ("langfuse.widgets=404html", 2, "it is older than 4.59 (update it)"),
        ("langfuse=notjson", 2, "is no Langfuse; check `LANGFUSE_BASE_URL`"),
        ("langfuse.widgets=409@2", 4, "widget `Share that is relevant` (gate) with HTTP 409"),
        ("langfuse.widgets=422@2", 4, "refuses widget `Share that is relevant` (gate) (HTTP 422)"),
        ("langfuse.dashboards=500@2", 4, "failed (HTTP 500); run this again"),
        ("langfuse.dashboards=503", 4, "failed (HTTP 503); run this again"),
    ],
)
def test_each_failure_is_one_line_with_its_remedy(
    langfuse: Sandbox, here: Here, fault: str, code: int, words: str
) -> None:
    """No traceback, no key, and the code says whose turn it is."""
    langfuse.fault(fault)

    ended = here("langfuse", "apply", env=named(langfuse))

    assert ended.code == code
    assert words in ended.err
    assert ended.err.count("\n") == 1
    assert not {key for key in KEYS if key in ended.err + ended.out}


def test_an_old_server_is_told_to_be_updated(here: Here) -> None:
    """By its version, before anything else is asked."""
    with Sandbox.start([], options=Options(langfuse_version="4.16.0")) as old:
        ended = here("langfuse", "apply", env=named(old))

        assert (ended.code, ended.out, writes(old)) == (2, "", [])
        assert "has version 4.16; dashboards need 4.59 or newer: update the server" in ended.err


def test_nobody_there_is_another_code(here: Here) -> None:
    """Nothing is wrong with the settings, as far as can be known."""
    env = {
        "LANGFUSE_PUBLIC_KEY": KEYS[0], "LANGFUSE_SECRET_KEY": KEYS[1],
        "LANGFUSE_BASE_URL": f"http://127.0.0.1:{free_port()}",
    }  # fmt: skip
    ended = here("langfuse", "open", env=env)

    assert (ended.code, ended.err.count("\n")) == (4, 1)
    assert "cannot be reached: no connection (it was refused)" in ended.err


def test_the_commands_of_the_page(langfuse: Sandbox, here: Here) -> None:
    """In their order: would be made, is made, and where it is."""
    ended = [here(*words, env=named(langfuse)) for words in commands("docs/langfuse.md")]

    assert [done.code for done in ended] == [0] * len(ended)
    assert [done.out.split()[0] for done in ended[:2]] == ["would", "created"]
    assert ended[2].out.count(langfuse.url) == 2
