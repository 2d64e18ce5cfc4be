"""Cases of the crash table, and that the table would notice."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from crash_table import examined
from killed_work import Case, ExperimentRun, bench
from stored_rows import Remains, connected
from work_process import Ended, Place, Work

UNDISTURBED: dict[Work, Case] = {}
"""By work; the same on both databases."""
SLICE = (
    Case("analysis", (Place("request", 9),)),
    Case("analysis", (Place("stored", 2),)),
    Case("watch", (Place("told", 1),)),
    Case("due watch", (Place("recorded", 4),), again=False, by=signal.SIGTERM),
)


@pytest.fixture
def over(database_url: str, tmp_path: Path) -> Iterator[ExperimentRun]:
    """A sandbox, a receiver, and a database of each kind."""
    with bench(database_url, str(tmp_path)) as made:
        yield made


def usual(over: ExperimentRun, work: Work) -> Case:
    """The same work when nobody is killed."""
    if work not in UNDISTURBED:
        UNDISTURBED[work] = over.run(Case(work))
        assert list(examined(UNDISTURBED[work], UNDISTURBED[work])) == []
    return UNDISTURBED[work]


def test_a_killed_analysis_ends_as_undisturbed(tmp_path: Path) -> None:
    """The case of every day: one step is stored, and another process does the rest."""
    with bench(f"sqlite:///{tmp_path / 'killed.db'}", str(tmp_path)) as over:
        seen = over.run(Case("analysis", (Place("recorded", 2),)))

        assert (seen.kills, seen.wrong) == (1, [])
        assert list(examined(seen, usual(over, "analysis"))) == []


@pytest.mark.nightly
def test_a_sample_of_the_table_ends_as_undisturbed(over: ExperimentRun) -> None:
    """Every work ends, paid once more for each kill at most, told and booked once."""
    for case in SLICE:
        seen = over.run(replace(case, calls=Counter(), wrong=[]))

        assert (seen.kills, seen.wrong) == (len(case.places), []), seen.name
        assert list(examined(seen, usual(over, case.work))) == [], seen.name


@pytest.mark.nightly
def test_work_of_a_key_that_was_revoked_meanwhile_ends(over: ExperimentRun) -> None:
    """Nobody could read its report; it says so, and nothing more is asked."""

    def revoke(case: Case) -> None:
        with connected(over.url) as connection:
            revoked = text("UPDATE keys SET revoked = true WHERE id = :id")
            connection.execute(revoked, {"id": case.tenant})

    case = over.run(Case("analysis", (Place("recorded", 2),), again=False), revoke)

    assert case.ended is not None
    assert [state for _, state in case.ended.analyses] == ["failed"]
    assert case.remains is not None
    # what it may cost stays reserved: nobody knows what it has cost
    assert case.remains.lost == {"charges not settled": 2}
    assert case.remains.ledger["analyses"] == 1


@pytest.mark.nightly
def test_work_of_which_the_record_is_gone_has_failed(over: ExperimentRun) -> None:
    """An engine's database that was deleted hangs nobody; the reason is said."""

    def vanish(case: Case) -> None:
        with connected(over.url, engine=True) as connection:
            schema = "" if connection.dialect.name == "sqlite" else "dbos."
            connection.execute(text(f"DELETE FROM {schema}operation_outputs"))
            connection.execute(text(f"DELETE FROM {schema}workflow_status"))

    case = over.run(Case("analysis", (Place("recorded", 2),), again=False), vanish)

    assert case.ended is not None
    assert [state for _, state in case.ended.analyses] == ["failed"]


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ({"ended": None}, "did not end"),
        ({"began": "another"}, "its id has changed"),
        ({"told": ("a", "b")}, "messages"),
        ({"calls": Counter({"reddit search /r/all": 3}), "kills": 1}, "paid 2 times more"),
        ({"remains": Remains({"items": 1}, {}, {"usd": 2})}, "booked"),
        (
            {"remains": Remains({"items": 1}, {"items of no report": 1}, {"usd": 1})},
            "items of no report",
        ),
    ],
)
def test_what_is_wrong_is_noticed(trouble: dict[str, Any], words: str) -> None:
    """A table without this would be green for ever."""
    sound = ended_well()

    assert list(examined(sound, sound)) == []
    assert words in "; ".join(examined(replace(sound, **trouble), sound))


def ended_well() -> Case:
    """A run of a watch as it must be."""
    items = [{"key": "reddit:t3_1"}]
    report = {"id": "a1", "trace_id": "t1", "items": items, "decision": "full_report",
              "total_survived": 1, "cost": {"tokens": 5, "usd": 0.1}}  # fmt: skip
    ended = Ended("done", (("a1", "done"),), report, (("r1", "baseline", True),), {}, {}, ())
    return Case(
        "watch", began="a1", traces=("t1",), ended=ended, told=("r1",),
        calls=Counter({"reddit search /r/all": 1}), remains=Remains({"items": 1}, {}, {"usd": 1}),
    )  # fmt: skip
