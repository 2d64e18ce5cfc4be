"""Data on stdout, words on stderr, and nobody there to read either."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from api.sandbox.server import Sandbox
from api.sources import SOURCES
from tests.forked import COMMAND as FORKED
from tests.forked import Forked
from tests.interfaces.command import COMMAND, Ended, Here, bare, process

LINES = "".join(
    json.dumps({"title": f"Plaud Note, week {week}", "body": "battery and transcripts " * 40}) + "\n"
    for week in range(200)
)
"""Own items: an answer about them is longer than a pipe holds."""
NOBODY = {"LISTENPOST_JUDGE": "openai"}
"""Without a key nobody judges: everything is kept, and the exit code is 3."""
UNJUDGED = 3
PATIENT = {f"LISTENPOST_{name}_TIMEOUT": "3600" for name in ("SOURCE", "CRAWL", "SCORING", "REPORT")}
"""No deadline of the product's own ends what hangs."""


@pytest.fixture(autouse=True)
def _own() -> None:
    Path("own.jsonl").write_text(LINES)


def shell(script: str) -> Ended:
    """A line of bash with the command as `$1`."""
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script, "bash", COMMAND],
        env=bare(NOBODY), capture_output=True, timeout=120,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout, done.stderr.decode())


def test_a_closed_stderr_puts_nothing_on_stdout() -> None:
    """`2>&-`: the answer alone, as if somebody listened."""
    ended = shell('"$1" analyze plaud --items own.jsonl --verbose --format json 2>&-')

    assert ended.code == UNJUDGED
    assert ended.json["items"]


def test_a_closed_stdout_is_nobody_listening() -> None:
    """`>&-`: the exit code still tells what became of it."""
    ended = shell('"$1" analyze plaud --items own.jsonl >&-')

    assert (ended.code, ended.out) == (UNJUDGED, "")
    assert "Traceback" not in ended.err


def test_closed_streams_are_no_place_for_other_files() -> None:
    """All three closed: a filter without input runs to its end."""
    assert shell('"$1" filter plaud --source reddit <&- >&- 2>&-').code == 0


@pytest.mark.parametrize("reader", ["true", "head -c 1"])
def test_a_reader_that_leaves_is_no_error(reader: str) -> None:
    """Gone before the first byte or after it: no traceback, the answer's own exit code."""
    ended = shell(f'"$1" analyze plaud --items own.jsonl --format json | {reader}')

    assert ended.code == UNJUDGED
    assert ended.out in {"", "{"}
    assert ended.err.startswith("Your items: kept 200 of 200 results; relevance could not")
    assert [line.partition(" ")[0] for line in ended.err.splitlines()] == ["Your", "kept"]


def test_a_reader_of_the_progress_that_leaves_costs_no_answer() -> None:
    """Stderr into a pipe that nobody reads: stdout has everything."""
    words = "analyze plaud --items own.jsonl --verbose --format json"
    ended = shell(f'exec 3>&1; "$1" {words} 2>&1 >&3 3>&- | true')

    assert ended.code == UNJUDGED
    assert ended.json["items"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full device")
def test_a_full_disk_is_told() -> None:
    """The answer is lost, so the command fails."""
    ended = shell('"$1" filter plaud --source reddit < own.jsonl > /dev/full')

    assert ended.code == 2
    assert "listenpost: error: the answer cannot be printed: No space left on device" in ended.err
    assert "Traceback" not in ended.err


def test_a_terminal_without_unicode_gets_what_it_can_show() -> None:
    """Text with signs replaced, JSON escaped, and no error."""
    env = {"PYTHONIOENCODING": "ascii", **NOBODY}
    line = json.dumps({"title": "小米 SU7", "body": "电池"}).encode()
    Path("own.jsonl").write_bytes(line)
    text = process("analyze", "小米", "--items", "own.jsonl", env=env)
    told = process("filter", "小米", "--source", "x", "--format", "json", env=env, stdin=line)

    assert "[1] ?? SU7" in text.out
    assert told.out.isascii()
    assert told.json["relevant"] == [{"title": "小米 SU7", "body": "电池"}]


@contextmanager
def begun(upstream: Sandbox, *words: str, ready: Callable[[], object]) -> Iterator[subprocess.Popen[str]]:
    """The command under way, as far as `ready` wants it."""
    with Forked[str](
        [FORKED, *words], env=bare({**upstream.environment, **PATIENT}), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        _until(ready)
        yield running


def _until(ready: Callable[[], object]) -> None:
    """Wait for something that must happen."""
    until = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < until
        threading.Event().wait(0.02)


@pytest.mark.parametrize(
    ("endpoint", "sign", "code"),
    [("openai.judge", signal.SIGINT, 130), ("openai.agent", signal.SIGTERM, 143)],
)
def test_an_analysis_that_is_stopped_ends_at_once(
    upstream: Sandbox, endpoint: str, sign: signal.Signals, code: int
) -> None:
    """Wherever it hangs, for an hour if it likes: its exit code, no half answer, no traceback."""
    upstream.fault(f"{endpoint}=hang")
    ready = lambda: upstream.requests(*endpoint.split("."))  # noqa: E731
    words = ("analyze", "plaud.ai", "--depth", "quick", "--format", "json")
    with begun(upstream, *words, ready=ready) as running:
        running.send_signal(sign)
        out, err = running.communicate(timeout=60)

    assert (running.returncode, out) == (code, "")
    assert err.splitlines()[-1] == "listenpost: interrupted"
    assert "Traceback" not in err


def test_who_presses_twice_waits_for_nothing(upstream: Sandbox) -> None:
    """The first Ctrl-C hands over the last traces, which takes a while; the second ends that."""
    upstream.fault("reddit.search=hang", "langfuse=hang")
    upstream_env = {**upstream.environment, "LISTENPOST_TRACE_FLUSH_TIMEOUT": "60"}
    with Forked[str](
        [FORKED, "fetch", "reddit", "plaud.ai"], env=bare(upstream_env), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        _until(lambda: upstream.requests("reddit", "search"))
        running.send_signal(signal.SIGINT)
        _until(lambda: upstream.requests("langfuse"))
        assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=120)

    assert running.returncode == 130
    assert "Traceback" not in err


def test_a_filter_that_waits_for_its_input_can_be_stopped() -> None:
    """Ctrl-C before the end of stdin."""
    with Forked[bytes](
        [FORKED, "filter", "plaud", "--source", "reddit"], env=bare(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        assert running.stdin is not None
        running.stdin.write(LINES.encode())  # more than a pipe holds: it is being read
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=120)

    assert (running.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def _drained(terminal: int, until: Callable[[str], bool], seconds: float = 60.0) -> str:
    """What a terminal shows, up to a moment or its end."""
    seen, end = b"", time.monotonic() + seconds
    while not until(seen.decode("utf-8", "replace")) and time.monotonic() < end:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            part = os.read(terminal, 65_536)
        except OSError:
            break
        if not part:
            break
        seen += part
    return seen.decode("utf-8", "replace")


@contextmanager
def on_a_terminal(*words: str, env: dict[str, str]) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The command with its stderr on a terminal of 80 columns, and its stdout in `answer`."""
    outer, inner = pty.openpty()
    with (
        Path("answer").open("wb") as answer,
        Forked[bytes](
            [FORKED, *words], env=bare({"TERM": "xterm-256color", "COLUMNS": "80", **env}),
            stdin=inner, stdout=answer, stderr=inner, start_new_session=True,
        ) as running,
    ):  # fmt: skip
        os.close(inner)
        try:
            yield running, outer
        finally:
            os.close(outer)


def test_a_terminal_shows_a_table_that_follows() -> None:
    """Every source has its line with a mark, the cursor comes back, stdout stays clean."""
    with on_a_terminal("analyze", "plaud.ai", "--format", "json", env={}) as (_, terminal):
        shown = _drained(terminal, lambda seen: False)

    assert json.loads(Path("answer").read_bytes())["findings"]
    assert shown.startswith("Loading …\r         \rSample data: everything below is made up")
    last = shown[shown.rindex("\x1b[?25l") :]
    for name in ("Reddit", "YouTube", "Amazon", "Report"):
        assert name in last
    assert "✓" in last
    assert "grading what was kept …" in shown
    assert last.rindex("\x1b[?25h") > last.rindex("Report")
    assert "\x1b[?25h" in shown


def test_a_command_on_a_terminal_shows_that_it_loads() -> None:
    """And takes it away before its first line, on whichever stream that is."""
    with on_a_terminal("reports", "list", env={}) as (_, terminal):
        shown = _drained(terminal, lambda seen: False)
    with on_a_terminal("keys", "--help", env={}) as (_, terminal):
        helped = _drained(terminal, lambda seen: False)

    assert shown.startswith("Loading …\r         \rnothing is kept yet")
    assert "Loading" not in helped


def test_ctrl_c_leaves_the_terminal_as_it_was(upstream: Sandbox) -> None:
    """The cursor is back and a line of its own says what happened."""
    upstream.fault("reddit.search=hang")
    words = ("analyze", "plaud.ai", "--source", "reddit")
    with on_a_terminal(*words, env=dict(upstream.environment)) as (running, terminal):
        shown = _drained(terminal, lambda seen: "asking for" in seen and "\x1b[?25l" in seen)
        running.send_signal(signal.SIGINT)
        shown += _drained(terminal, lambda seen: False)
        running.wait(timeout=120)

    assert running.returncode == 130
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", shown)
    assert plain.splitlines()[-1] == "listenpost: interrupted"
    assert "✗ Reddit" in plain
    assert "Traceback" not in shown


def test_a_terminal_that_goes_away_takes_no_answer_along(upstream: Sandbox) -> None:
    """Closed while the sources are asked: stdout still has everything."""
    upstream.latency("reddit=300ms")
    words = ("analyze", "plaud.ai", "--depth", "quick", "--verbose", "--format", "json")
    outer, inner = pty.openpty()
    with Forked[bytes](
        [FORKED, *words], env=bare({"TERM": "xterm", **upstream.environment}),
        stdin=inner, stdout=subprocess.PIPE, stderr=inner, start_new_session=True,
    ) as running:  # fmt: skip
        os.close(inner)
        _drained(outer, lambda seen: "asking for" in seen)
        os.close(outer)
        out, _ = running.communicate(timeout=60)

    assert running.returncode == 0
    assert json.loads(out)["items"]


@pytest.mark.parametrize(
    ("words", "places"),
    [
        (("fetch", "hackernews", "obsidian"), "Hacker News"),
        (("analyze", "obsidian"), "Hacker News, Stack Exchange, GitHub, Lemmy"),
        (("chat", "obsidian"), "Hacker News, Stack Exchange, GitHub, Lemmy"),
    ],
)
def test_the_first_question_is_told_where_it_goes(words: tuple[str, ...], places: str) -> None:
    """To the places that are really asked, and how to change that; the next one is not."""
    live = {"LISTENPOST_MODE": "live", "LISTENPOST_SOURCES": "", "TERM": "dumb"}
    env = live | {spec.address: "http://127.0.0.1:1" for spec in SOURCES.values()}
    del env["DISCOURSE_FORUMS"], env["FEEDS"]

    def said() -> str:
        with on_a_terminal(*words, env=env) as (_, terminal):
            return " ".join(_drained(terminal, lambda seen: False).split())

    told = f"Your question is sent to {places}. `LISTENPOST_SOURCES` or `--source` choose others"
    assert told in said()
    assert "is sent to" not in said()


def test_a_terminal_that_cannot_move_its_cursor_gets_lines() -> None:
    """Plain lines, without a single escape."""
    words = ("analyze", "plaud", "--items", "own.jsonl")
    with on_a_terminal(*words, env={"TERM": "dumb", **NOBODY}) as (_, terminal):
        shown = _drained(terminal, lambda seen: False)

    assert "Your items: kept 200 of 200" in shown
    assert "\x1b" not in shown


def test_no_colour_when_it_is_not_wanted() -> None:
    """`NO_COLOR`: the table moves, but has no colour; without it, it has."""
    words = ("analyze", "plaud", "--items", "own.jsonl")
    shown = []
    for env in ({"NO_COLOR": "1"}, {}):
        with on_a_terminal(*words, env=env) as (_, terminal):
            shown.append(_drained(terminal, lambda seen: False))

    coloured = [bool(re.search(r"\x1b\[(?:\d+;)*3[0-7]m", seen)) for seen in shown]
    assert all("Your items" in seen for seen in shown)
    assert coloured == [False, True]


def test_a_file_gets_no_escapes_whatever_the_environment_says(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """`FORCE_COLOR` is for terminals."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")

    ended = here("fetch", "reddit", "plaud.ai")

    assert "\x1b" not in ended.out + ended.err
