"""`listenpost chat`: questions, a pipe, and a person at a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from api.features.chat.chat_turn import SAMPLE
from api.sandbox.server import Sandbox
from tests.forked import COMMAND as FORKED
from tests.forked import Forked
from tests.interfaces.command import Ended, inside

ASKED = "What do people say about plaud.ai?"
UPSTREAMS = ("reddit", "youtube", "amazon")
SESSION = re.compile(r"session (\w+): `listenpost chat --session \1` continues it")
COMMAND = [sys.executable, "-c", "from api.interfaces.cli.main import run; run()", "chat"]


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    """One sandbox for all."""
    with Sandbox.start() as started:
        yield started


@pytest.fixture
def sandbox(shared: Sandbox) -> Iterator[Sandbox]:
    """Healthy, with an empty log."""
    shared.forget()
    yield shared
    shared.heal()


@pytest.fixture
def environment(sandbox: Sandbox, tmp_path: Path, root: Path) -> dict[str, str]:
    """Points a process at the sandbox, without Langfuse, and at a database of its own."""
    pointed = {k: v for k, v in sandbox.environment.items() if not k.startswith("LANGFUSE")}
    ours = {
        "LISTENPOST_MODE": "live",
        "LISTENPOST_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/chat.db",
        "PYTHONPATH": str(root),
        "TERM": "xterm-256color",
        "COLUMNS": "100",
    }
    return {**os.environ, **pointed, **ours}


def talk(environment: dict[str, str], *words: str, lines: str = "") -> Ended:
    """Run the command to its end."""
    return inside("chat", *words, env=environment, stdin=lines.encode())


def fetched(sandbox: Sandbox) -> int:
    """Requests that the sources were sent."""
    return sum(len(sandbox.requests(name)) for name in UPSTREAMS)


def test_a_long_question_is_not_repeated_whole(sandbox: Sandbox, environment: dict[str, str]) -> None:
    """A look-up's line names its beginning."""
    ended = talk(environment, f"is {'the plaud recorder ' * 24}good?")

    looked = [line for line in ended.err.splitlines() if line.startswith("fetch_")]
    assert looked
    assert max(map(len, looked)) < 150


def test_follow_ups_use_what_is_gathered(sandbox: Sandbox, environment: dict[str, str]) -> None:
    """A question, a follow-up that looks further, and one that makes no new fetch."""
    first = talk(environment, ASKED)
    session = SESSION.search(first.err)
    assert session is not None, first.err
    after_first = fetched(sandbox)
    second = talk(environment, "and its Zigbee?", "--session", session[1])
    after_second = fetched(sandbox)
    third = talk(environment, "and the battery?", "--session", session[1])

    assert [one.code for one in (first, third)] == [0, 0], third.err
    assert second.code == 0, second.err
    assert 0 < after_first < after_second == fetched(sandbox)
    assert "fetch_reddit: plaud.ai …" in first.err
    assert second.out.lower().startswith("no post that was found mentions zigbee.")
    assert "battery" in third.out.lower()
    cited = set(re.findall(r"^\[(E\d+)\] \S", third.out, re.MULTILINE))
    assert cited
    assert cited == set(re.findall(r"E\d+", third.out))
    assert third.out.count("     https://") == len(cited)
    assert re.search(r"^- Battery: “[^”]*battery", third.out, re.MULTILINE | re.IGNORECASE)
    # what the answer quotes is not repeated below it; where it was said stands there
    assert re.findall(r"^     “(.+)”$", third.out, re.MULTILINE) == []
    assert re.search(r"^\[E\d+\] \S.* - (?:Reddit|YouTube|Amazon)\b.*, \d{4}-\d\d-\d\d", third.out, re.MULTILINE)


def test_an_answer_is_rated_where_it_is_read(environment: dict[str, str]) -> None:
    """`/good` and `/bad` are about the last answer and no questions; before it there is none."""
    ended = talk(environment, lines=f"{ASKED}\n/bad that is another product\n/good\n")
    early = talk(environment, lines="/good\n")

    assert ended.code == 0
    assert ended.err.splitlines().count("kept") == 2
    assert ended.err.count("fetch_reddit: ") == 1
    assert early.code == 2
    assert "there is no answer yet" in early.err


def test_sample_data_is_marked_where_the_answer_is(environment: dict[str, str]) -> None:
    """On stdout, so that a file holds it too, without addresses; live data is not marked."""
    sample = talk(environment | {"LISTENPOST_MODE": "sandbox"}, ASKED)
    live = talk(environment, "hello")

    assert f"({SAMPLE})" in sample.out.splitlines()
    assert re.search(r"^\[E\d+\] \S", sample.out, re.MULTILINE)
    assert "://" not in sample.out
    assert SAMPLE not in live.out


def test_a_talk_begins_over_a_report(sandbox: Sandbox, environment: dict[str, str]) -> None:
    """Its items are cited and nothing is asked; with a session, or without a report, it ends."""
    done = inside("analyze", "plaud.ai", "--format", "json", env=environment)
    report = json.loads(done.out)
    asked = fetched(sandbox)

    first = talk(environment, "what about its battery?", "--report", report["id"])
    session = SESSION.search(first.err)
    assert session is not None, first.err
    again = talk(environment, "and the price?", "--session", session[1])
    both = talk(environment, "mug", "--report", report["id"], "--session", session[1])
    unknown = talk(environment, "mug", "--report", "nope")
    before = talk(environment, "--list", "--report", "nope")
    talk(environment, "hello, how are you?")
    every, over = (talk(environment, "--list", *words) for words in ((), ("--report", report["id"])))
    asking = talk(environment, "--list", "mug")

    assert fetched(sandbox) == asked
    assert over.out.splitlines()[1] == f"    listenpost chat --session {session[1]}"
    assert re.fullmatch(r"20\d\d-.*  2 questions: what about its battery\?", over.out.splitlines()[0])
    assert over.out in every.out
    assert (before.code, before.out) == (2, "")
    assert (asking.code, "`--list` asks nothing" in asking.err) == (2, True)
    assert (first.code, again.code) == (0, 0), first.err
    assert "\n[E" in first.out
    assert [both.code, unknown.code] == [2, 2]
    assert "`--report` begins a session" in both.err
    assert "there is no report `nope`" in unknown.err


def test_a_pipe_asks_a_question_a_line(sandbox: Sandbox, environment: dict[str, str]) -> None:
    """In one session; blank lines are none; the last answer's code counts."""
    done = talk(environment, lines=f"{ASKED}\n\nand the battery?\nhello\n")

    assert done.code == 3
    assert len(sandbox.requests("reddit", "search")) <= 2
    assert done.out.count("\n\n[E") == 2
    assert done.out.rstrip().endswith("for example `standing desk wobble` or `plaud.ai`.")
    assert "\x1b" not in done.out


def test_small_talk_asks_nobody(sandbox: Sandbox, environment: dict[str, str]) -> None:
    """Guidance on stdout and code 3."""
    done = talk(environment, "hey this is a test message")

    assert done.code == 3
    assert "for example" in done.out
    assert sandbox.log == ()


def test_no_source_that_answers_is_code_4(sandbox: Sandbox, environment: dict[str, str]) -> None:
    """And the reasons are told."""
    sandbox.fault("reddit=500", "youtube=quota", "amazon=captcha")

    done = talk(environment, "plaud.ai")

    assert done.code == 4
    assert "could not be asked" in done.out


def test_an_unknown_session_is_a_mistake(sandbox: Sandbox, environment: dict[str, str]) -> None:
    """Code 2, one line, nothing asked."""
    done = talk(environment, "plaud.ai", "--session", "nope")

    assert (done.code, done.out) == (2, "")
    assert "there is no chat session `nope`" in done.err
    assert sandbox.log == ()


def test_without_a_database_it_talks_all_the_same(environment: dict[str, str]) -> None:
    """With a warning; going on with a session is then impossible."""
    broken = environment | {"LISTENPOST_DATABASE_URL": "postgresql://127.0.0.1:9/none"}

    done = talk(broken, "hello")
    again = talk(broken, "hello", "--session", "s1")

    assert done.code == 3
    assert "warning: the session is not kept" in done.err
    assert again.code == 2


def test_an_empty_pipe_is_no_question(environment: dict[str, str]) -> None:
    """Code 0, nothing said."""
    done = talk(environment, lines="\n")

    assert (done.code, done.out) == (0, "")


@dataclass
class Terminal:
    """The command with a person before it."""

    environment: dict[str, str]
    seen: str = ""
    _pid: int = 0
    _master: int = 0
    _unread: str = ""

    def __enter__(self) -> Terminal:
        self._pid, self._master = pty.fork()
        if self._pid == 0:
            os.execve(COMMAND[0], COMMAND, self.environment)
        return self

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def until(self, words: str, seconds: float = 180) -> str:
        """What the screen shows from the last wait on, up to these words."""
        end = time.monotonic() + seconds
        while words not in self._unread:
            assert time.monotonic() < end, (words, self.seen[-2000:])
            assert self._read(), (words, self.seen[-2000:])
        came, _, self._unread = self._unread.partition(words)
        return came

    def forget_line(self) -> None:
        """Press Ctrl-C, again after 2 s: readline misses one that comes just before it waits."""
        waits = 0
        while "> " not in self._unread:
            assert waits < 900, self.seen[-2000:]
            if waits % 10 == 0:
                self.type("\x03")
            waits += 1
            self._read()
        self._unread = ""

    def _read(self) -> bool:
        """Take what there is; False when the command has ended."""
        ready, _, _ = select.select([self._master], [], [], 0.2)
        try:
            came = os.read(self._master, 65536).decode("utf-8", "replace") if ready else ""
        except OSError:
            return False
        self.seen += came
        self._unread += came
        return True

    def code(self) -> int:
        """Its exit code, once it has ended."""
        while self._read():
            continue
        _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        return os.waitstatus_to_exitcode(status)

    def __exit__(self, *_: object) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._master)


def test_a_person_talks(sandbox: Sandbox, environment: dict[str, str]) -> None:
    """Markdown on the screen; Ctrl-C ends a turn or forgets the line, Ctrl-D leaves."""
    with Terminal(environment) as terminal:
        terminal.until("> ")
        terminal.type(f"{ASKED}\n")
        answer = terminal.until("     https://")
        terminal.until("> ")
        sandbox.latency("openai.judge=30s")
        terminal.type("What do people say about the Oura Ring?\n")
        terminal.until("fetch_reddit: ")
        terminal.type("\x03")
        terminal.until("stopped; Ctrl-D leaves")
        sandbox.heal()
        terminal.until("> ")
        terminal.type("never mind")
        terminal.until("never mind")
        terminal.forget_line()
        terminal.type("\n")
        terminal.until("> ")
        terminal.type("and the battery?\n")
        again = terminal.until("     https://")
        terminal.until("> ")
        terminal.type("\x04")
        code = terminal.code()

    assert code == 0
    assert "•" in answer, "a list in markdown"
    assert "battery" in again
    assert SESSION.search(terminal.seen)
    assert "Traceback" not in terminal.seen


def test_ctrl_c_ends_a_single_question(sandbox: Sandbox, environment: dict[str, str]) -> None:
    """Code 130, no traceback, and the session goes on: it knows what was asked."""
    sandbox.latency("openai.judge=30s")
    with Forked[str](
        [FORKED, "chat", ASKED], env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        told = iter(process.stderr.readline, "")
        assert any(line.startswith("fetch_reddit: ") for line in told)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)

    assert process.returncode == 130
    assert "Traceback" not in out + err
    sandbox.heal()
    session = SESSION.search(err)
    assert session is not None, err
    assert "battery" in talk(environment, "and its battery?", "--session", session[1]).out.lower()
