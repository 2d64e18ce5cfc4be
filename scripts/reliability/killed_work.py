"""One piece of work whose processes are killed, and what became of it."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import re
import secrets
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from typing import Any

from api.features.analyses.api_keys import Keys
from api.features.watches.watch import Target, new_watch
from api.sandbox.server import Sandbox
from api.sandbox.world import Journal, LoggedRequest, Options
from api.services.product import Ask
from api.store import open_store
from fault_matrix import small, sure
from stored_rows import Remains, emptied, remains_of
from tests.loopback import Asked, Loopback, Reply
from work_process import Ended, Orders, Place, Where, Work, live

LIFE_SECONDS = 60
"""By then a process has ended, or been killed."""
MOST_LIVES = 6
UNKNOWN = 255
"""How a process ended of which `multiprocessing` missed how it did."""
ASK = Ask("plaud note")
# a fence's `<q-1f0c92ab>`, another one in each prompt
_NONCE = re.compile(r"q-[0-9a-f]{8}")


@dataclass(slots=True)
class Trap:
    """Kills a process at its place, as far as that can be seen from outside of it."""

    place: Place | None = None
    victim: BaseProcess | None = None
    by: signal.Signals = signal.SIGKILL
    counts: Counter[Where] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def set(self, orders: Orders | None = None, victim: BaseProcess | None = None) -> None:
        """From now on; without orders it kills nobody."""
        with self._lock:
            self.place, self.victim = (orders.place if orders else None), victim
            self.by = orders.by if orders else signal.SIGKILL
            self.counts.clear()

    def pass_by(self, where: Where) -> None:
        """One more of them."""
        with self._lock:
            self.counts[where] += 1
            if self.victim is not None and self.place == Place(where, self.counts[where]):
                kill(self.victim, self.by)


def kill(process: BaseProcess, by: signal.Signals = signal.SIGKILL) -> None:
    """As a machine does that has no memory left, or, by SIGTERM, one that is switched off."""
    if process.pid is not None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, by)


class TrappedJournal(Journal):
    """A journal that passes by a trap with each request of a place or model."""

    def __init__(self, trap: Trap) -> None:
        super().__init__()
        self._trap = trap

    def start(
        self, upstream: str, endpoint: str, method: str, path: str, query: str, body: Any = None
    ) -> LoggedRequest:
        """The request is there, and not answered."""
        request = super().start(upstream, endpoint, method, path, query, body)
        if upstream != "langfuse":
            self._trap.pass_by("request")
        return request

    def end(self, request: LoggedRequest, status: int, fault: str | None = None) -> None:
        """The answer is ready."""
        super().end(request, status, fault)
        if request.upstream != "langfuse":
            self._trap.pass_by("answered")


def paid(requests: Sequence[LoggedRequest]) -> Counter[str]:
    """What places and models were asked, by what makes two requests the same; no tokens."""
    calls: Counter[str] = Counter()
    for request in requests:
        if request.upstream == "langfuse" or request.endpoint == "token":
            continue
        body = _NONCE.sub("q-", json.dumps(request.body, sort_keys=True, default=str))
        about = f" {hash(body):x}" if request.upstream == "openai" else ""
        calls[f"{request.upstream} {request.endpoint} {request.path}{about}"] += 1
    return calls


@dataclass(slots=True)
class Case:
    """One piece of work, the places where its processes were killed, and what followed."""

    work: Work
    places: tuple[Place, ...] = ()
    again: bool = True
    """Whoever asked asks again in the next process; else that only goes on."""
    by: signal.Signals = signal.SIGKILL
    """What kills them."""
    kills: int = 0
    lives: int = 0
    tenant: str = ""
    key: str = ""
    """By which whoever asks asks again."""
    began: str = ""
    """The analysis as it was announced to whoever asked first."""
    traces: tuple[str, ...] = ()
    """Of those who asked until it was announced: it belongs to that of one of them."""
    ended: Ended | None = None
    passed: Mapping[Where, int] = field(default_factory=dict)
    """What could be a place, as far as it is seen from outside."""
    calls: Counter[str] = field(default_factory=Counter)
    told: tuple[str, ...] = ()
    """Ids of runs as the receiver saw them."""
    remains: Remains | None = None
    wrong: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """One line."""
        places = ", then ".join(f"{place.where} {place.number}" for place in self.places)
        asked = "" if self.again else ", not asked again"
        return f"{self.work}{asked}, {self.by.name}: {places or 'undisturbed'}"


@dataclass(slots=True)
class ExperimentRun:
    """A database, a sandbox and a receiver of its own, used by one case after the other."""

    url: str
    context: ForkServerContext
    sandbox: Sandbox
    trap: Trap
    receiver: Loopback
    environment: Mapping[str, str]
    told: list[str]

    def run(self, case: Case, between: Callable[[Case], None] = lambda case: None) -> Case:
        """Let it happen; `between` is done when a process has been killed."""
        self.sandbox.forget()
        self.told.clear()
        case.tenant, case.key = asyncio.run(self._tenant(case.work)), secrets.token_hex(8)
        while self.killed(case) and case.lives < MOST_LIVES:
            between(case)
        case.calls, case.told = paid(self.sandbox.log), tuple(self.told)
        case.remains = remains_of(self.url, case.tenant)
        return case

    def orders(self, case: Case) -> Orders:
        """What its next process does."""
        place = case.places[case.lives] if case.lives < len(case.places) else None
        again = case.again or not case.lives or (case.work == "analysis" and not case.began)
        trace_id = secrets.token_hex(16)
        return Orders(
            self.environment, case.work, ASK, case.tenant, case.key, trace_id, place, again, case.by
        )

    def killed(self, case: Case) -> bool:
        """Whether its next process is killed, else that has done the work."""
        orders = self.orders(case)
        here, there = self.context.Pipe(duplex=False)
        process = self.context.Process(target=live, args=(orders, there), daemon=True)
        self.trap.set()
        process.start()
        there.close()
        self.trap.set(orders, process)
        process.join(LIFE_SECONDS)
        case.traces += () if case.began else (orders.trace_id,)
        case.passed = dict(self.trap.counts)
        self.trap.set()
        case.lives += 1
        if process.exitcode is None:
            case.wrong.append(f"its process had not ended after {LIFE_SECONDS} s")
            kill(process)
            process.join()
            return False
        if process.exitcode not in {0, -signal.SIGKILL, UNKNOWN}:
            case.wrong.append(f"its process ended with {process.exitcode}")
        with suppress(EOFError):
            while here.poll():
                message = here.recv()
                if isinstance(message, Ended):
                    case.ended = message
                else:
                    case.began = case.began or message
        here.close()
        killed = case.ended is None
        case.kills += killed
        return killed

    async def _tenant(self, work: Work) -> str:
        """A tenant of its own, with the watch that it has; nothing is remembered of places."""
        store = await open_store(self.url)
        key, _ = await Keys((), store).add(secrets.token_hex(8))
        if work != "analysis":
            now = datetime.now(UTC)
            target = Target("webhook", f"{self.receiver.url}/hook")
            due_at = now if work == "due watch" else now + timedelta(days=1)
            # not due again while other cases run: those would pay for it
            watch = new_watch(key.id, ASK.query, "every 700h", now)
            watch = replace(watch, notify=(target,), tell_first=True, due_at=due_at)
            await store.add_watch(watch, 10)
        await store.aclose()
        emptied(self.url, "pages")
        return key.id


def _template() -> ForkServerContext:
    """What forks lives from a process that has loaded everything; of these there is one."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["template"])
    usual = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # it does not know where this one imports
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if usual is not None:
            os.environ["PYTHONPATH"] = usual
    return context


@contextmanager
def bench(url: str, folder: str) -> Iterator[ExperimentRun]:
    """One over a database that is empty, or that another case has used."""
    context = _template()
    trap, told = Trap(), list[str]()

    def answer(asked: Asked) -> Reply:
        told.append(asked.headers["listenpost-run"])
        trap.pass_by("told")
        return Reply()

    journal = TrappedJournal(trap)
    with (
        Sandbox.start(small(), options=Options.endless(), judge=sure, journal=journal) as sandbox,
        Loopback(answer) as receiver,
    ):
        environment = {
            "PATH": os.environ.get("PATH", ""), "HOME": folder, "XDG_DATA_HOME": folder,
            **sandbox.environment, "LISTENPOST_SOURCES": "reddit,youtube,amazon",
            "LISTENPOST_DATABASE_URL": url, "LISTENPOST_NOTIFY_PRIVATE": "true",
        }  # fmt: skip
        yield ExperimentRun(url, context, sandbox, trap, receiver, environment, told)
