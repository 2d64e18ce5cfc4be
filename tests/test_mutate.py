"""The mutation run: what it gets wrong on purpose, whom it asks, and when it is content."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from mutate import SURVIVED, Copy, Mutant, Outcome, Suite, draw, mutants, outcome_of, run_all

pytestmark = pytest.mark.nightly

SOURCE = '''"""A module."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    NEVER = 1 < 2


def chosen(numbers: list[int], most: int = 3) -> "int | None":
    """Doubles é."""
    assert most > 0
    numbers.sort(reverse=True)
    _log.warning("%d", 7)
    if numbers and not most:
        return None
    kept = [number for number in numbers if number]
    while kept:
        return min(kept) if len(kept) <= most else f"{most + 1}"
    return False
'''


def wrong(source: str) -> set[tuple[str, str]]:
    """Each replacement as its text before and after."""
    return {(found.before, found.after) for found in mutants("a.py", source)}


def test_each_kind_of_mistake_is_made() -> None:
    """Bounds, opposites, connections, conditions, numbers, answers and calls; nothing silent."""
    assert wrong(SOURCE) == {
        ("3", "(4)"),
        ("3", "(2)"),
        ("numbers.sort(reverse=True)", "pass"),
        ("True", "False"),
        ("numbers and not most", "(numbers or not most)"),
        ("not most", "(most)"),
        ("number", "(not number)"),
        ("kept", "(not kept)"),
        ('return min(kept) if len(kept) <= most else f"{most + 1}"', "return None"),
        ("len(kept) <= most", "(len(kept) < most)"),
        ("len(kept) <= most", "(len(kept) > most)"),
        ("min(kept)", "max(kept)"),
        ("False", "True"),
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a == b", "(a != b)"),
        ("a is not b", "(a is b)"),
        ("a in b", "(a not in b)"),
        ("a or b", "(a and b)"),
        ("0.5", "(-0.5)"),
    ],
)
def test_other_comparisons_and_numbers(before: str, after: str) -> None:
    """Each has its opposite."""
    assert (before, after) in wrong(f"x = {before}\n")


def test_every_mutant_of_the_product_compiles_and_differs(root: Path) -> None:
    """None of the sample is the program that it was, and the same seed draws the same."""
    sample = draw(root, ["api/services", "api/store/"], seed=7, count=100)

    assert len(sample) == 100
    assert sample == draw(root, ["api/services", "api/store/"], seed=7, count=100)
    assert sample != draw(root, ["api/services", "api/store/"], seed=8, count=100)
    for mutant in sample:
        source = (root / mutant.path).read_text("utf-8")
        tree = ast.parse(mutant.of(source))
        compile(tree, mutant.path, "exec")
        assert ast.dump(tree) != ast.dump(ast.parse(source))


def test_the_nearest_tests_come_first() -> None:
    """Tests of its name, tests that import it, its folder; then its package and the product."""
    suite = Suite(
        {
            "tests/cases/test_all.py": frozenset(),
            "tests/services/test_other.py": frozenset({"api.pipeline.gate.loop"}),
            "tests/pipeline/gate/test_a.py": frozenset(),
            "tests/pipeline/gate/test_loop_ends.py": frozenset(),
            "tests/services/test_far.py": frozenset(),
            "tests/web/test_b.py": frozenset(),
        }
    )

    assert suite.near("api/pipeline/gate/loop.py") == [
        "tests/pipeline/gate/test_loop_ends.py",
        "tests/services/test_other.py",
        "tests/pipeline/gate/test_a.py",
    ]
    assert suite.far("api/pipeline/gate/loop.py") == [
        "tests/cases/test_all.py",
        "tests/services/test_far.py",
    ]


@pytest.mark.parametrize(("killed", "code"), [(20, 0), (19, 0), (18, 1), (0, 1)])
def test_too_many_that_live_are_a_failure(killed: int, code: int) -> None:
    """95 % of twenty are nineteen; who lives is named."""
    drawn_ones = [Mutant("a.py", number, 0, 1, "1", "2") for number in range(20)]
    lines: list[str] = []

    def ask(mutant: Mutant) -> Outcome:
        return Outcome(mutant, "tests/test_a.py::test" if mutant.line < killed else SURVIVED)

    assert run_all(drawn_ones, ask, lines.append, jobs=2) == code
    assert lines[-1].startswith(f"{killed} of 20 killed, {killed * 5}.0%")
    assert sum(line.startswith("SURVIVED  a.py:") for line in lines) == 20 - killed


def test_nothing_drawn_is_a_failure() -> None:
    """A mistyped path proves nothing."""
    assert run_all([], lambda mutant: Outcome(mutant, "x"), lambda line: None, jobs=1) == 1


def test_a_copy_is_asked_and_stays_as_it_was(tmp_path: Path) -> None:
    """Killed by the test that notices or by having no end; alive when none does."""
    source = "def more(n: int) -> int:\n    while n < 3:\n        n += 1\n    return n\n"
    test = "from api.more import more\n\ndef test_it():\n    assert more(5) == 5\n"
    checkout = tmp_path / "checkout"
    for path, text in {
        "api/__init__.py": "",
        "api/more.py": source,
        "tests/api/test_more.py": test,
    }.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    copy = Copy.of(checkout, tmp_path / "copy", 120.0)
    suite = Suite({"tests/api/test_more.py": frozenset({"api.more"})})
    outcomes = {}
    for mutant in mutants("api/more.py", source):
        if mutant.after in ("return None", "(n <= 3)", "(n >= 3)"):
            patient = replace(copy, seconds=5.0) if ">" in mutant.after else copy
            with copy.applied(mutant):
                outcomes[mutant.after] = outcome_of(mutant, suite, patient.failures).killer

    assert outcomes == {
        "return None": "tests/api/test_more.py::test_it",
        "(n <= 3)": SURVIVED,
        "(n >= 3)": "timeout",
    }
    assert (copy.root / "api" / "more.py").read_text() == source
