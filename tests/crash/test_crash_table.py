"""Cases of the crash table, and that the table would notice."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from crash_table import differences
from killed_work import Case, CrashBench, open_bench
from stored_rows import StoredRows, open_connection
from work_process import KillPoint, Work, WorkResult

UNDISTURBED: dict[Work, Case] = {}
"""By work; the same on both databases."""
SLICE = (
    Case("analysis", (KillPoint("request", 9),)),
    Case("analysis", (KillPoint("stored", 2),)),
    Case("watch", (KillPoint("notified", 1),)),
    Case("due watch", (KillPoint("recorded", 4),), again=False, by=signal.SIGTERM),
)


@pytest.fixture
def crash_bench(database_url: str, tmp_path: Path) -> Iterator[CrashBench]:
    """A sandbox, a receiver, and a database of each kind."""
    with open_bench(database_url, str(tmp_path)) as made:
        yield made


def undisturbed_cases(crash_bench: CrashBench, work: Work) -> Case:
    """The same work when nobody is killed."""
    if work not in UNDISTURBED:
        UNDISTURBED[work] = crash_bench.run(Case(work))
        assert list(differences(UNDISTURBED[work], UNDISTURBED[work])) == []
    return UNDISTURBED[work]


def test_a_killed_analysis_ends_as_undisturbed(tmp_path: Path) -> None:
    """The case of every day: one step is stored, and another process does the rest."""
    with open_bench(f"sqlite:///{tmp_path / 'killed.db'}", str(tmp_path)) as crash_bench:
        seen = crash_bench.run(Case("analysis", (KillPoint("recorded", 2),)))

        assert (seen.kills, seen.wrong) == (1, [])
        assert list(differences(seen, undisturbed_cases(crash_bench, "analysis"))) == []


@pytest.mark.nightly
def test_a_sample_of_the_table_ends_as_undisturbed(crash_bench: CrashBench) -> None:
    """Every work ends, paid once more for each kill at most, told and booked once."""
    for case in SLICE:
        seen = crash_bench.run(replace(case, calls=Counter(), wrong=[]))

        assert (seen.kills, seen.wrong) == (len(case.kill_points), []), seen.name
        assert list(differences(seen, undisturbed_cases(crash_bench, case.work))) == [], seen.name


@pytest.mark.nightly
def test_work_of_a_key_that_was_revoked_meanwhile_ends(crash_bench: CrashBench) -> None:
    """Nobody could read its report; it says so, and nothing more is asked."""

    def revoke(case: Case) -> None:
        with open_connection(crash_bench.url) as connection:
            revoked = text("UPDATE keys SET revoked = true WHERE id = :id")
            connection.execute(revoked, {"id": case.tenant})

    case = crash_bench.run(Case("analysis", (KillPoint("recorded", 2),), again=False), revoke)

    assert case.result is not None
    assert [state for _, state in case.result.analyses] == ["failed"]
    assert case.rows is not None
    # what it may cost stays reserved: nobody knows what it has cost
    assert case.rows.leftovers == {"charges not settled": 2}
    assert case.rows.ledger["analyses"] == 1


@pytest.mark.nightly
def test_work_of_which_the_record_is_gone_has_failed(crash_bench: CrashBench) -> None:
    """An engine's database that was deleted hangs nobody; the reason is said."""

    def vanish(case: Case) -> None:
        with open_connection(crash_bench.url, engine=True) as connection:
            schema = "" if connection.dialect.name == "sqlite" else "dbos."
            connection.execute(text(f"DELETE FROM {schema}operation_outputs"))
            connection.execute(text(f"DELETE FROM {schema}workflow_status"))

    case = crash_bench.run(Case("analysis", (KillPoint("recorded", 2),), again=False), vanish)

    assert case.result is not None
    assert [state for _, state in case.result.analyses] == ["failed"]


@pytest.mark.nightly
def test_what_each_process_needs_is_loaded_before_it_is_forked() -> None:
    """A module that moved would be loaded by each process, which takes seconds."""
    assert import_module("process_template").LOADED


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"result": None}, "did not end"),
        ({"analysis_id": "another"}, "its id has changed"),
        ({"notified": ("a", "b")}, "messages"),
        ({"calls": Counter({"reddit search /r/all": 3}), "kills": 1}, "paid 2 times more"),
        ({"rows": StoredRows({"items": 1}, {}, {"usd": 2})}, "booked"),
        (
            {"rows": StoredRows({"items": 1}, {"items of no report": 1}, {"usd": 1})},
            "items of no report",
        ),
    ],
)
def test_what_is_wrong_is_noticed(trouble: dict[str, Any], words: str) -> None:
    """A table without this would be green for ever."""
    sound = ended_well()

    assert list(differences(sound, sound)) == []
    assert words in "; ".join(differences(replace(sound, **trouble), sound))


def ended_well() -> Case:
    """A run of a watch as it must be."""
    items = [{"key": "reddit:t3_1"}]
    report = {"id": "a1", "trace_id": "t1", "items": items, "decision": "full_report",
              "total_survived": 1, "cost": {"tokens": 5, "usd": 0.1}}  # fmt: skip
    result = WorkResult("done", (("a1", "done"),), report, (("r1", "baseline", True),), {}, {}, ())
    return Case(
        "watch", analysis_id="a1", traces=("t1",), result=result, notified=("r1",),
        calls=Counter({"reddit search /r/all": 1}), rows=StoredRows({"items": 1}, {}, {"usd": 1}),
    )  # fmt: skip
