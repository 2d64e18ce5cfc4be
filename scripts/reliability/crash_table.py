"""Kills processes at each step of their work and checks what remains.

    python scripts/reliability/crash_table.py [--kills N] [--database sqlite|postgresql]

Processes of analyses and of watch runs get SIGKILL at each of their steps and within them. The
sandbox runs in this process, which therefore knows which calls were paid. What became of each piece
of work is compared with the same work undisturbed. Prints a table; exits 1 when a row fails.

`--workers N [--analyses N]` instead lets workers share the queue of one PostgreSQL while one of
them is killed every few seconds.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from queue import SimpleQueue
from typing import Literal, get_args

from killed_work import Case, CrashBench, open_bench
from killed_workers import run_workers
from tests.postgres import running
from work_process import KillPoint, Moment, Work

AT_ONCE = 4
"""Cases at the same time, each over its own database and sandbox."""
WORDS: Mapping[Moment, str] = {
    "request": "a source or model is asked",
    "answered": "it has answered",
    "event": "an event is reported",
    "unrecorded": "a step is done, not committed",
    "recorded": "a step is committed",
    "unstored": "the store writes, not committed",
    "stored": "the store has written",
    "notified": "a notification has arrived",
}
_EACH: tuple[Moment, ...] = ("unrecorded", "recorded", "notified")
"""Every one of these moments is in the draw; of the others, some."""
_SECOND, _SILENT, _STOPPED = 5, 3, 10
"""Every fifth case kills its second process too, every third is not repeated, and the processes of
every tenth are asked to stop."""
Database = Literal["sqlite", "postgresql"]


def run_undisturbed(crash_bench: CrashBench) -> dict[Work, Case]:
    """Each kind of work without kills."""
    undisturbed_cases = {work: crash_bench.run(Case(work)) for work in get_args(Work)}
    for case in undisturbed_cases.values():
        case.wrong += differences(case, case)
    return undisturbed_cases


def draw(undisturbed_cases: Mapping[Work, Case], kills: int, seed: int) -> list[Case]:
    """Cases with so many kills, the same for a seed: each step of each work, then any moment."""
    random_draw = random.Random(seed)
    kill_points = {work: _kill_points(case) for work, case in undisturbed_cases.items()}
    first = [
        (work, kill_point) for work, known in kill_points.items() for kill_point in known if kill_point.moment in _EACH
    ]
    random_draw.shuffle(first)
    cases: list[Case] = []
    while sum(len(case.kill_points) for case in cases) < kills:
        work, kill_point = first.pop() if first else (random_draw.choice(get_args(Work)), None)
        moment: tuple[KillPoint, ...] = () if kill_point is None else (kill_point,)
        wanted = 2 if len(cases) % _SECOND == _SECOND - 1 else 1
        while len(moment) < wanted:
            kind = random_draw.choice([kind for kind in get_args(Moment) if kind != "notified"])
            moment += (random_draw.choice([known for known in kill_points[work] if known.moment == kind]),)
        number = len(cases)
        by = signal.SIGKILL if number % _STOPPED else signal.SIGTERM
        cases.append(Case(work, moment, again=number % _SILENT > 0, by=by))
    return cases


def _kill_points(case: Case) -> list[KillPoint]:
    assert case.result is not None
    counts: dict[Moment, int] = {**case.result.counts, **case.passed}
    return [KillPoint(moment, number + 1) for moment in counts for number in range(counts[moment])]


def differences(case: Case, undisturbed_cases: Case) -> Iterator[str]:
    """Differences from the undisturbed work that must not be."""
    result, expected, rows = case.result, undisturbed_cases.result, case.rows
    if result is None or expected is None or rows is None or undisturbed_cases.rows is None:
        yield f"it did not end in {case.processes} processes"
        return
    if result.report is None or expected.report is None:
        yield f"it is {result.state}, without a report"
        return
    if len(result.analyses) != 1:
        yield f"there are {len(result.analyses)} analyses"
    if case.analysis_id and case.analysis_id != result.report["id"]:
        yield "its id has changed"
    if case.analysis_id and result.report["trace_id"] not in case.traces:
        yield "its trace has changed"
    for name in ("decision", "total_survived"):
        if result.report[name] != expected.report[name]:
            yield f"`{name}` is {result.report[name]}, undisturbed {expected.report[name]}"
    for name in ("tokens", "usd"):  # requests that the first process sent may be cached by now
        if result.report["cost"][name] != expected.report["cost"][name]:
            yield f"`{name}` is {result.report['cost'][name]}"
    if sorted(_keys(result.report)) != sorted(_keys(expected.report)):
        yield "its items are others"
    if result.kinds and result.kinds != expected.kinds:
        yield f"told {dict(result.kinds)}, undisturbed {dict(expected.kinds)}"
    for call, many in (case.calls - undisturbed_cases.calls).items():
        if many > case.kills:
            yield f"paid {many} times more: {call[:100]}"
    if (
        len(set(case.notified)) != len(set(undisturbed_cases.notified))
        or len(case.notified) > len(undisturbed_cases.notified) + case.kills
    ):
        yield f"its receiver saw {len(case.notified)} messages of {len(set(case.notified))} runs"
    if case.work != "analysis":
        if [run[1:] for run in result.runs] != [run[1:] for run in expected.runs]:
            yield f"its runs are {result.runs}"
        elif {run[0] for run in result.runs} != set(case.notified):
            yield "its receiver saw another run"
    if rows.ledger != undisturbed_cases.rows.ledger:
        yield f"booked {dict(rows.ledger)}, undisturbed {dict(undisturbed_cases.rows.ledger)}"
    if rows.kept != undisturbed_cases.rows.kept:
        yield f"stored {dict(rows.kept)}, undisturbed {dict(undisturbed_cases.rows.kept)}"
    yield from (f"{many} {name}" for name, many in rows.leftovers.items())


def _keys(report: Mapping[str, object]) -> list[str]:
    items = report["items"]
    assert isinstance(items, list)
    return [item["key"] for item in items]


def table(cases: Sequence[Case], undisturbed_cases: Mapping[Work, Case]) -> Iterator[str]:
    """Figures by work and moment, in Markdown."""
    yield "| work | killed when | cases | kills | done | calls paid again | told again | wrong |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for work in get_args(Work):
        for moment in get_args(Moment):
            mine = [case for case in cases if (case.work, case.kill_points[0].moment) == (work, moment)]
            if mine:
                yield _row(work, WORDS[moment], mine, undisturbed_cases)
    yield _row("all", "", cases, undisturbed_cases)


def _row(work: str, words: str, cases: Sequence[Case], undisturbed_cases: Mapping[Work, Case]) -> str:
    figures = (
        len(cases),
        sum(case.kills for case in cases),
        sum(case.result is not None and case.result.state == "done" for case in cases),
        sum((case.calls - undisturbed_cases[case.work].calls).total() for case in cases),
        sum(len(case.notified) - len(set(case.notified)) for case in cases),
        sum(bool(case.wrong) for case in cases),
    )
    return f"| {work} | {words} | {' | '.join(map(str, figures))} |"


def run_cases(kind: Database, kills: int, seed: int, at_once: int = AT_ONCE) -> tuple[list[Case], dict[Work, Case]]:
    """The cases of a draw, some at a time, and each kind of work undisturbed."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lp-crash-"))
        urls = [f"sqlite:///{folder}/{number}.db" for number in range(at_once)]
        if kind == "postgresql":
            server = stack.enter_context(running())
            urls = [server.create() for _ in urls]
        benches = [stack.enter_context(open_bench(url, folder)) for url in urls]
        free: SimpleQueue[CrashBench] = SimpleQueue()
        for ready in benches:
            free.put(ready)
        undisturbed_cases = run_undisturbed(benches[0])
        with ThreadPoolExecutor(at_once) as pool:
            cases = list(pool.map(partial(_case, free, undisturbed_cases), draw(undisturbed_cases, kills, seed)))
    return cases, undisturbed_cases


def _case(free: SimpleQueue[CrashBench], undisturbed_cases: Mapping[Work, Case], case: Case) -> Case:
    crash_bench = free.get()
    try:
        crash_bench.run(case)
    finally:
        free.put(crash_bench)
    case.wrong += differences(case, undisturbed_cases[case.work])
    print(f"{case.name}: {'; '.join(case.wrong) or 'as undisturbed'}", file=sys.stderr, flush=True)
    return case


def main() -> int:
    """Print the table; 1 when a row fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--database", choices=get_args(Database), default="sqlite")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--workers", type=int, default=0, help="on one PostgreSQL; no table")
    parser.add_argument("--analyses", type=int, default=300, help="that they share")
    parser.add_argument("--pause", type=float, default=4.0, help="seconds between two kills")
    arguments = parser.parse_args()
    if arguments.workers:
        outcome = run_workers(arguments.workers, arguments.analyses, arguments.pause, seed=arguments.seed)
        print(outcome)
        return 1 if outcome.wrong else 0
    analysis_id = time.monotonic()
    cases, undisturbed_cases = run_cases(arguments.database, arguments.kills, arguments.seed)
    print(*table(cases, undisturbed_cases), sep="\n")
    unmet = sum(case.kills < len(case.kill_points) for case in cases)
    wrong = [case for case in (*undisturbed_cases.values(), *cases) if case.wrong]
    print(
        f"\n{arguments.database}, seed {arguments.seed}: {sum(case.kills for case in cases)} kills "
        f"in {time.monotonic() - analysis_id:.0f} s; {unmet} cases ended before their last place; "
        f"{len(wrong)} wrong"
    )
    for case in wrong:
        print(f"- {case.name}: {'; '.join(case.wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
