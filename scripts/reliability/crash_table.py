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

from killed_work import Case, ExperimentRun, bench
from killed_workers import race
from tests.postgres import running
from work_process import Place, Where, Work

AT_ONCE = 4
"""Cases under way at the same time, each over a database and a sandbox of its own."""
WORDS: Mapping[Where, str] = {
    "request": "a place or model is asked",
    "answered": "it has answered",
    "event": "an event is told",
    "unrecorded": "a step is done, not committed",
    "recorded": "a step is committed",
    "unstored": "the store writes, not committed",
    "stored": "the store has written",
    "told": "a notification has arrived",
}
_EACH: tuple[Where, ...] = ("unrecorded", "recorded", "told")
"""Of these every one is a place of the draw; of the others, some."""
_SECOND, _SILENT, _STOPPED = 5, 3, 10
"""So many cases to one whose second process is killed too, to one that nobody asks again, and to
one whose processes are asked to stop."""
Database = Literal["sqlite", "postgresql"]


def undisturbed(over: ExperimentRun) -> dict[Work, Case]:
    """What each kind of work is when nobody is killed."""
    usual = {work: over.run(Case(work)) for work in get_args(Work)}
    for case in usual.values():
        case.wrong += examined(case, case)
    return usual


def drawn(usual: Mapping[Work, Case], kills: int, seed: int) -> list[Case]:
    """Cases that amount to so many kills, always the same: each step of each work, then any."""
    chance = random.Random(seed)
    places = {work: _places(case) for work, case in usual.items()}
    first = [
        (work, place) for work, known in places.items() for place in known if place.where in _EACH
    ]
    chance.shuffle(first)
    cases: list[Case] = []
    while sum(len(case.places) for case in cases) < kills:
        work, place = first.pop() if first else (chance.choice(get_args(Work)), None)
        where: tuple[Place, ...] = () if place is None else (place,)
        wanted = 2 if len(cases) % _SECOND == _SECOND - 1 else 1
        while len(where) < wanted:
            kind = chance.choice([kind for kind in get_args(Where) if kind != "told"])
            where += (chance.choice([known for known in places[work] if known.where == kind]),)
        number = len(cases)
        by = signal.SIGKILL if number % _STOPPED else signal.SIGTERM
        cases.append(Case(work, where, again=number % _SILENT > 0, by=by))
    return cases


def _places(case: Case) -> list[Place]:
    assert case.ended is not None
    counts: dict[Where, int] = {**case.ended.counts, **case.passed}
    return [Place(where, number + 1) for where in counts for number in range(counts[where])]


def examined(case: Case, usual: Case) -> Iterator[str]:
    """What is not as it must be."""
    ended, expected, remains = case.ended, usual.ended, case.remains
    if ended is None or expected is None or remains is None or usual.remains is None:
        yield f"it did not end in {case.lives} processes"
        return
    if ended.report is None or expected.report is None:
        yield f"it is {ended.state}, without a report"
        return
    if len(ended.analyses) != 1:
        yield f"there are {len(ended.analyses)} analyses"
    if case.began and case.began != ended.report["id"]:
        yield "its id has changed"
    if case.began and ended.report["trace_id"] not in case.traces:
        yield "its trace has changed"
    for name in ("decision", "total_survived"):
        if ended.report[name] != expected.report[name]:
            yield f"`{name}` is {ended.report[name]}, undisturbed {expected.report[name]}"
    for name in ("tokens", "usd"):  # requests that the first process sent may be cached by now
        if ended.report["cost"][name] != expected.report["cost"][name]:
            yield f"`{name}` is {ended.report['cost'][name]}"
    if sorted(_keys(ended.report)) != sorted(_keys(expected.report)):
        yield "its items are others"
    if ended.kinds and ended.kinds != expected.kinds:
        yield f"told {dict(ended.kinds)}, undisturbed {dict(expected.kinds)}"
    for call, many in (case.calls - usual.calls).items():
        if many > case.kills:
            yield f"paid {many} times more: {call[:100]}"
    if len(set(case.told)) != len(set(usual.told)) or len(case.told) > len(usual.told) + case.kills:
        yield f"its receiver saw {len(case.told)} messages of {len(set(case.told))} runs"
    if case.work != "analysis":
        if [run[1:] for run in ended.runs] != [run[1:] for run in expected.runs]:
            yield f"its runs are {ended.runs}"
        elif {run[0] for run in ended.runs} != set(case.told):
            yield "its receiver saw another run"
    if remains.ledger != usual.remains.ledger:
        yield f"booked {dict(remains.ledger)}, undisturbed {dict(usual.remains.ledger)}"
    if remains.kept != usual.remains.kept:
        yield f"stored {dict(remains.kept)}, undisturbed {dict(usual.remains.kept)}"
    yield from (f"{many} {name}" for name, many in remains.lost.items())


def _keys(report: Mapping[str, object]) -> list[str]:
    items = report["items"]
    assert isinstance(items, list)
    return [item["key"] for item in items]


def table(cases: Sequence[Case], usual: Mapping[Work, Case]) -> Iterator[str]:
    """What came of them, by work and place, in Markdown."""
    yield "| work | killed when | cases | kills | done | calls paid again | told again | wrong |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for work in get_args(Work):
        for where in get_args(Where):
            mine = [case for case in cases if (case.work, case.places[0].where) == (work, where)]
            if mine:
                yield _row(work, WORDS[where], mine, usual)
    yield _row("all", "", cases, usual)


def _row(work: str, words: str, cases: Sequence[Case], usual: Mapping[Work, Case]) -> str:
    figures = (
        len(cases),
        sum(case.kills for case in cases),
        sum(case.ended is not None and case.ended.state == "done" for case in cases),
        sum((case.calls - usual[case.work].calls).total() for case in cases),
        sum(len(case.told) - len(set(case.told)) for case in cases),
        sum(bool(case.wrong) for case in cases),
    )
    return f"| {work} | {words} | {' | '.join(map(str, figures))} |"


def crash(
    kind: Database, kills: int, seed: int, at_once: int = AT_ONCE
) -> tuple[list[Case], dict[Work, Case]]:
    """The cases of a draw, some at a time, and the same work undisturbed."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="lp-crash-"))
        urls = [f"sqlite:///{folder}/{number}.db" for number in range(at_once)]
        if kind == "postgresql":
            server = stack.enter_context(running())
            urls = [server.create() for _ in urls]
        benches = [stack.enter_context(bench(url, folder)) for url in urls]
        free: SimpleQueue[ExperimentRun] = SimpleQueue()
        for ready in benches:
            free.put(ready)
        usual = undisturbed(benches[0])
        with ThreadPoolExecutor(at_once) as pool:
            cases = list(pool.map(partial(_case, free, usual), drawn(usual, kills, seed)))
    return cases, usual


def _case(free: SimpleQueue[ExperimentRun], usual: Mapping[Work, Case], case: Case) -> Case:
    over = free.get()
    try:
        over.run(case)
    finally:
        free.put(over)
    case.wrong += examined(case, usual[case.work])
    print(f"{case.name}: {'; '.join(case.wrong) or 'as undisturbed'}", file=sys.stderr, flush=True)
    return case


def main() -> int:
    """Run it; 1 when a line fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--database", choices=get_args(Database), default="sqlite")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--workers", type=int, default=0, help="on one PostgreSQL; no table")
    parser.add_argument("--analyses", type=int, default=300, help="that they share")
    parser.add_argument("--pause", type=float, default=4.0, help="seconds between two kills")
    arguments = parser.parse_args()
    if arguments.workers:
        outcome = race(arguments.workers, arguments.analyses, arguments.pause, seed=arguments.seed)
        print(outcome)
        return 1 if outcome.wrong else 0
    began = time.monotonic()
    cases, usual = crash(arguments.database, arguments.kills, arguments.seed)
    print(*table(cases, usual), sep="\n")
    unmet = sum(case.kills < len(case.places) for case in cases)
    wrong = [case for case in (*usual.values(), *cases) if case.wrong]
    print(
        f"\n{arguments.database}, seed {arguments.seed}: {sum(case.kills for case in cases)} kills "
        f"in {time.monotonic() - began:.0f} s; {unmet} cases ended before their last place; "
        f"{len(wrong)} wrong"
    )
    for case in wrong:
        print(f"- {case.name}: {'; '.join(case.wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
