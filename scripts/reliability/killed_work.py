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
from fault_matrix import few_posts, judge_all
from stored_rows import StoredRows, empty_table, stored_rows_of
from tests.loopback import Asked, Loopback, Reply
from work_process import KillPoint, Moment, Work, WorkOrder, WorkResult, run_process

PROCESS_SECONDS = 60
"""Longest time of one process."""
MOST_PROCESSES = 6
UNKNOWN = 255
"""Exit code when `multiprocessing` missed the real one."""
ASK = Ask("plaud note")
# a fence's `<q-1f0c92ab>`, another one in each prompt
_NONCE = re.compile(r"q-[0-9a-f]{8}")
# how far back a run asks: `2026-11-29T19:30:00Z`, in URLs with `%3A`, or seconds since 1970
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d(?:(?::|%3A)\d\d)+(?:\.\d+)?Z?)?|(?<!\d)\d{10}(?!\d)")


@dataclass(slots=True)
class KillTrap:
    """Kills a process at moments that are seen from outside of it."""

    kill_point: KillPoint | None = None
    victim: BaseProcess | None = None
    by: signal.Signals = signal.SIGKILL
    counts: Counter[Moment] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def set(self, order: WorkOrder | None = None, victim: BaseProcess | None = None) -> None:
        """Wait for the moment of this order; without one it kills nothing."""
        with self._lock:
            self.kill_point, self.victim = (order.kill_point if order else None), victim
            self.by = order.by if order else signal.SIGKILL
            self.counts.clear()

    def count_moment(self, moment: Moment) -> None:
        """Count one more, and kill the process when it is the one."""
        with self._lock:
            self.counts[moment] += 1
            if self.victim is not None and self.kill_point == KillPoint(moment, self.counts[moment]):
                kill(self.victim, self.by)


def kill(process: BaseProcess, by: signal.Signals = signal.SIGKILL) -> None:
    """Kill a process as a machine without memory does, or, by SIGTERM, one that is shut down."""
    if process.pid is not None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, by)


class KillJournal(Journal):
    """A journal that reports each request of a source or model to a trap."""

    def __init__(self, trap: KillTrap) -> None:
        super().__init__()
        self._trap = trap

    def start(
        self, upstream: str, endpoint: str, method: str, path: str, query: str, body: Any = None
    ) -> LoggedRequest:
        """The request has arrived, and is not answered."""
        request = super().start(upstream, endpoint, method, path, query, body)
        if upstream != "langfuse":
            self._trap.count_moment("request")
        return request

    def end(self, request: LoggedRequest, status: int, fault: str | None = None) -> None:
        """The answer is ready."""
        super().end(request, status, fault)
        if request.upstream != "langfuse":
            self._trap.count_moment("answered")


def count_calls(requests: Sequence[LoggedRequest]) -> Counter[str]:
    """Requests to sources and models, counted by what makes two the same; no token requests."""
    calls: Counter[str] = Counter()
    for request in requests:
        if request.upstream == "langfuse" or request.endpoint == "token":
            continue
        body = _NONCE.sub("q-", json.dumps(request.body, sort_keys=True, default=str))
        about = f" {hash(body):x}" if request.upstream == "openai" else ""
        path = _TIME.sub("TIME", request.path)  # else a run of the next quarter of an hour asks something else
        calls[f"{request.upstream} {request.endpoint} {path}{about}"] += 1
    return calls


@dataclass(slots=True)
class Case:
    """One piece of work, where its processes were killed, and the result."""

    work: Work
    kill_points: tuple[KillPoint, ...] = ()
    again: bool = True
    """The question is repeated in the next process; else that only continues."""
    by: signal.Signals = signal.SIGKILL
    """Signal that ends them."""
    kills: int = 0
    processes: int = 0
    tenant: str = ""
    key: str = ""
    """Idempotency key with which the question is repeated."""
    analysis_id: str = ""
    """Id of the analysis as it was first announced; empty until then."""
    traces: tuple[str, ...] = ()
    """Trace ids of the questions until then: the analysis belongs to one of them."""
    result: WorkResult | None = None
    passed: Mapping[Moment, int] = field(default_factory=dict)
    """Moments that are seen from outside, counted."""
    calls: Counter[str] = field(default_factory=Counter)
    notified: tuple[str, ...] = ()
    """Ids of runs as the receiver saw them."""
    rows: StoredRows | None = None
    wrong: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """One line that names the case."""
        kill_points = ", then ".join(f"{kill_point.moment} {kill_point.number}" for kill_point in self.kill_points)
        asked = "" if self.again else ", not asked again"
        return f"{self.work}{asked}, {self.by.name}: {kill_points or 'undisturbed'}"


@dataclass(slots=True)
class CrashBench:
    """A database, a sandbox and a receiver of notifications, used by one case after another."""

    url: str
    context: ForkServerContext
    sandbox: Sandbox
    trap: KillTrap
    receiver: Loopback
    environment: Mapping[str, str]
    notified: list[str]

    def run(self, case: Case, between: Callable[[Case], None] = lambda case: None) -> Case:
        """Do the work of a case; `between` is called when a process was killed."""
        self.sandbox.forget()
        self.notified.clear()
        case.tenant, case.key = asyncio.run(self._tenant(case.work)), secrets.token_hex(8)
        while self.killed(case) and case.processes < MOST_PROCESSES:
            between(case)
        case.calls, case.notified = count_calls(self.sandbox.log), tuple(self.notified)
        case.rows = stored_rows_of(self.url, case.tenant)
        return case

    def order(self, case: Case) -> WorkOrder:
        """The order of the case's next process."""
        kill_point = case.kill_points[case.processes] if case.processes < len(case.kill_points) else None
        again = case.again or not case.processes or (case.work == "analysis" and not case.analysis_id)
        trace_id = secrets.token_hex(16)
        return WorkOrder(
            self.environment,
            case.work,
            ASK,
            case.tenant,
            case.key,
            trace_id,
            kill_point,
            again,
            case.by,
        )

    def killed(self, case: Case) -> bool:
        """Start the next process; whether it was killed before the work was done."""
        order = self.order(case)
        here, there = self.context.Pipe(duplex=False)
        process = self.context.Process(target=run_process, args=(order, there), daemon=True)
        self.trap.set()
        process.start()
        there.close()
        self.trap.set(order, process)
        process.join(PROCESS_SECONDS)
        case.traces += () if case.analysis_id else (order.trace_id,)
        case.passed = dict(self.trap.counts)
        self.trap.set()
        case.processes += 1
        if process.exitcode is None:
            case.wrong.append(f"its process had not ended after {PROCESS_SECONDS} s")
            kill(process)
            process.join()
            return False
        if process.exitcode not in {0, -signal.SIGKILL, UNKNOWN}:
            case.wrong.append(f"its process ended with {process.exitcode}")
        with suppress(EOFError):
            while here.poll():
                message = here.recv()
                if isinstance(message, WorkResult):
                    case.result = message
                else:
                    case.analysis_id = case.analysis_id or message
        here.close()
        killed = case.result is None
        case.kills += killed
        return killed

    async def _tenant(self, work: Work) -> str:
        """A new tenant with the watch of the work; remembered pages of sources are deleted."""
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
        empty_table(self.url, "pages")
        return key.id


def _template() -> ForkServerContext:
    """Forks processes from the one that has loaded everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["process_template"])
    undisturbed_cases = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # it does not know where this one imports
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if undisturbed_cases is not None:
            os.environ["PYTHONPATH"] = undisturbed_cases
    return context


@contextmanager
def open_bench(url: str, folder: str) -> Iterator[CrashBench]:
    """A bench over a database that is empty, or that another case has used."""
    context = _template()
    trap, notified = KillTrap(), list[str]()

    def answer(asked: Asked) -> Reply:
        notified.append(asked.headers["listenpost-run"])
        trap.count_moment("notified")
        return Reply()

    journal = KillJournal(trap)
    with (
        Sandbox.start(few_posts(), options=Options.endless(), judge=judge_all, journal=journal) as sandbox,
        Loopback(answer) as receiver,
    ):
        environment = {
            "PATH": os.environ.get("PATH", ""), "HOME": folder, "XDG_DATA_HOME": folder,
            **sandbox.environment, "LISTENPOST_SOURCES": "reddit,youtube,amazon",
            "LISTENPOST_DATABASE_URL": url, "LISTENPOST_NOTIFY_PRIVATE": "true",
        }  # fmt: skip
        yield CrashBench(url, context, sandbox, trap, receiver, environment, notified)
