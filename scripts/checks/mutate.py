"""Whether tests notice a wrong program: `python scripts/checks/mutate.py [--seed 1] [--count 60]`.

Draws mutants of the folders in `PACKAGES`, each with one thing wrong: a comparison, a bound, a
condition, a number, `and` for `or`, nothing returned, a call left out, `min` for `max`. Each runs
in a copy of the checkout against the tests nearest to it, then against those of the whole product.
The same seed draws the same mutants of the same sources. A mutant takes seconds to minutes. Exits 1
when fewer than 95 % are killed.
"""

from __future__ import annotations

import argparse
import ast
import functools
import os
import queue
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from house import tracked
from package_tree import module_name

LOGIC = ("core", "pipeline", "reports", "services", "features")
"""Packages without sockets, whose tests run each other's code."""
PACKAGES = (*(f"api/{name}" for name in LOGIC), "api/sources", "api/models", "api/store")
PRODUCT_TESTS = ("tests/contract", "tests/cases", "tests/sources", "tests/models")
"""Tests of the whole product and of contracts; a mutant that its own tests let live meets them."""
REQUIRED_SHARE = 0.95
PYTEST = ("-m", "not nightly", "-q", "-rfE", "--no-header", "-p", "no:cacheprovider")
FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.M)
"""A failed test in pytest's summary: `FAILED tests/a.py::test_b[c d] - AssertionError`."""
SURVIVED = "SURVIVED"
_FLIPS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
"""Each comparison with the other side of its bound and with its opposite."""
_SWAPS = {"min": "max", "max": "min"}
_LOGGERS = frozenset({"_log", "log", "logger", "logging", "warnings"})


@dataclass(frozen=True, slots=True)
class Mutant:
    """One thing wrong in one file."""

    path: str
    line: int
    start: int
    """Bytes of the file that are replaced, from here to `end`."""
    end: int
    before: str
    after: str

    def of(self, source: str) -> str:
        """The source with the mistake in it."""
        data = source.encode()
        return (data[: self.start] + self.after.encode() + data[self.end :]).decode()

    def __str__(self) -> str:
        before, after = (_short(text) for text in (self.before, self.after))
        return f"{self.path}:{self.line}: `{before}` -> `{after}`"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Which test noticed a mutant, if any."""

    mutant: Mutant
    killer: str
    """The first test that failed, `timeout`, or `SURVIVED`."""

    @property
    def killed(self) -> bool:
        """Whether a test noticed."""
        return self.killer != SURVIVED


def mutants(path: str, source: str) -> Iterator[Mutant]:
    """Every mutant of a file, from top to bottom."""
    data, starts = source.encode(), [0]
    for text in data.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    for node in _executed(ast.parse(source)):
        for place, after in _replacements(node):
            start = starts[place.lineno - 1] + place.col_offset
            end = starts[(place.end_lineno or 1) - 1] + (place.end_col_offset or 0)
            yield Mutant(path, place.lineno, start, end, data[start:end].decode(), after)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes below that run; no annotations, decorators, assertions, log lines or f-strings."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _is_silent(child):
                yield child
                yield from _executed(child)


def _is_silent(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr() | ast.Assert() | ast.If(test=ast.Name("TYPE_CHECKING")):
            return True
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(owner)))):
            return owner in _LOGGERS
    return False


def _replacements(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """A node and its wrong replacement; an expression comes in parentheses."""
    match node:
        case ast.Compare(left, [operator], [right]):
            for flipped in _FLIPS[type(operator)]:
                yield node, f"({ast.unparse(ast.Compare(left, [flipped()], [right]))})"
        case ast.BoolOp(joined, values):
            other = ast.Or() if isinstance(joined, ast.And) else ast.And()
            yield node, f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.UnaryOp(ast.Not(), operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.If(test) | ast.While(test) | ast.IfExp(test) | ast.comprehension(ifs=[test]):
            if not isinstance(test, (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Constant)):
                yield test, f"({ast.unparse(ast.UnaryOp(ast.Not(), test))})"
        case ast.Constant(bool(truth)):
            yield node, str(not truth)
        case ast.Constant(int(number) | float(number)):
            yield from ((node, f"({number + step!r})") for step in (1, -1))
        case ast.Return(ast.expr() as value) if not _is_nothing(value):
            yield node, "return None"
        case ast.Expr(ast.Call() | ast.Await(ast.Call())):
            yield node, "pass"
        case ast.Call(ast.Name(name), arguments, keywords) if name in _SWAPS:
            yield node, ast.unparse(ast.Call(ast.Name(_SWAPS[name]), arguments, keywords))


def _is_nothing(value: ast.expr) -> bool:
    """`None` or `False`: a caller that asks `if` cannot tell them apart."""
    return isinstance(value, ast.Constant) and value.value in (None, False)


@dataclass(frozen=True, slots=True)
class Suite:
    """The test files of a checkout, and which modules each imports."""

    imports: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, root: Path) -> Suite:
        """Read the imports of every test file."""
        files = (path for path in tracked(root) if re.fullmatch(r"tests/.*/test_\w+\.py", path))
        return cls({path: frozenset(_imported((root / path).read_text("utf-8"))) for path in files})

    def near(self, path: str) -> list[str]:
        """Tests named after a module, tests that import it, tests in the folder of its tests."""
        name, folder = Path(path).stem, "tests/" + Path(path).parent.as_posix().partition("/")[2]
        mirror = [test for test in self.imports if Path(test).parent.as_posix() == folder]
        named = [test for test in mirror if Path(test).stem.startswith(f"test_{name}")]
        module = module_name(path)
        importing = [test for test, modules in self.imports.items() if module in modules]
        return list(dict.fromkeys([*named, *importing, *mirror]))

    def far(self, path: str) -> list[str]:
        """The other tests of its package, and those of the whole product."""
        package = path.split("/")[1]
        packages = LOGIC if package in LOGIC else (package,)
        prefixes = (*(f"tests/{name}/" for name in packages), *PRODUCT_TESTS)
        near = self.near(path)
        return [test for test in self.imports if test.startswith(prefixes) and test not in near]


def _imported(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the checkout, in which one file at a time is wrong."""

    root: Path
    seconds: float
    """Longest time of a run; a longer one counts as hanging."""
    failing: Sequence[str] = ()
    """Tests that fail without any mutant, and so prove nothing."""

    @classmethod
    def of(cls, root: Path, folder: Path, seconds: float) -> Copy:
        """A copy of what git tracks, with uncommitted changes."""
        for path in tracked(root):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / path, folder / path)
        return cls(folder, seconds)

    @contextmanager
    def applied(self, mutant: Mutant) -> Iterator[None]:
        """Write the mutant, and remove byte code of the file; write the file back in the end."""
        source = (self.root / mutant.path).read_text("utf-8")
        self._write(mutant.path, mutant.of(source))
        try:
            yield
        finally:
            self._write(mutant.path, source)

    def _write(self, path: str, source: str) -> None:
        target = self.root / path
        target.write_text(source, "utf-8")
        for stale in target.parent.glob(f"__pycache__/{target.stem}.*.pyc"):
            stale.unlink()

    def failures(self, files: Sequence[str], *options: str) -> list[str]:
        """The tests that fail; `timeout` alone when the run has no end.

        Raises:
            RuntimeError: pytest could not be used, or somebody else ended it.
        """
        if not files:
            return []
        left_out = (f"--deselect={test}" for test in self.failing)
        command = [sys.executable, "-m", "pytest", *options, *PYTEST, *left_out, *files]
        with subprocess.Popen(
            command, cwd=self.root, env=os.environ | {"PYTHONPATH": str(self.root)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                shown, _ = process.communicate(timeout=self.seconds)
            except subprocess.TimeoutExpired:
                return ["timeout"]
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode in (0, 5):
            return []
        if process.returncode in (3, 4, -signal.SIGTERM, -signal.SIGKILL):
            raise RuntimeError(f"pytest ended with {process.returncode}: {shown[-2000:]}")
        return FAILED.findall(shown) or [f"exit code {process.returncode}"]


def outcome_of(mutant: Mutant, suite: Suite, failures: Callable[..., list[str]]) -> Outcome:
    """Run the tests near it, and where those pass, those far away."""
    for tests in (suite.near(mutant.path), suite.far(mutant.path)):
        if failed := failures(tests, "-x"):
            return Outcome(mutant, failed[0])
    return Outcome(mutant, SURVIVED)


def run_all(
    chosen: Iterable[Mutant],
    run: Callable[[Mutant], Outcome],
    write: Callable[[str], None],
    jobs: int,
) -> int:
    """Run each mutant, print every outcome and the share; 1 when too many survive."""
    outcomes = []
    with ThreadPoolExecutor(jobs) as pool:
        for outcome in pool.map(run, chosen):
            outcomes.append(outcome)
            write(f"{'killed' if outcome.killed else SURVIVED:8}  {outcome.mutant}  {outcome.killer}")
    killed = sum(outcome.killed for outcome in outcomes)
    share = killed / max(len(outcomes), 1)
    write(f"{killed} of {len(outcomes)} killed, {share:.1%}; {REQUIRED_SHARE:.0%} wanted")
    return int(killed < REQUIRED_SHARE * len(outcomes) or not outcomes)


def draw(root: Path, only: Sequence[str], seed: int, count: int) -> list[Mutant]:
    """`count` mutants of the files below these folders, in the order of the files."""
    below = tuple(f"{place.removesuffix('/')}/" for place in only)
    files = [path for path in tracked(root) if path.endswith(".py") and f"{path}/".startswith(below)]
    every = [mutant for path in files for mutant in mutants(path, (root / path).read_text("utf-8"))]
    numbers = sorted(random.Random(seed).sample(range(len(every)), min(count, len(every))))
    return [every[number] for number in numbers]


def main(arguments: Sequence[str]) -> int:
    """Draw mutants, leave out tests that fail without one, and run every mutant."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--only", action="append", metavar="PATH", help="file or folder; repeatable")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds for one run of tests")
    wanted = parser.parse_args(arguments)
    root = Path(__file__).resolve().parents[2]
    chosen = draw(root, wanted.only or PACKAGES, wanted.seed, wanted.count)
    suite = Suite.of(root)
    write = functools.partial(print, flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copied = [Copy.of(root, Path(scratch) / str(number), wanted.timeout) for number in range(wanted.jobs)]
        paths = dict.fromkeys(mutant.path for mutant in chosen)
        needed = dict.fromkeys(t for path in paths for t in suite.near(path) + suite.far(path))
        write(f"{len(chosen)} mutants, seed {wanted.seed}; {len(needed)} test files without one ...")
        failing = replace(copied[0], seconds=10 * wanted.timeout).failures(list(needed))
        for test in failing:
            write(f"fails without a mutant, so it is left out: {test}")
        copies: queue.Queue[Copy] = queue.Queue()
        for copy in copied:
            copies.put(replace(copy, failing=failing))

        def run(mutant: Mutant) -> Outcome:
            copy = copies.get()
            try:
                with copy.applied(mutant):
                    return outcome_of(mutant, suite, copy.failures)
            finally:
                copies.put(copy)

        return run_all(chosen, run, write, wanted.jobs)


def _short(text: str) -> str:
    """At most 60 characters, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 60 else f"{flat[:57]}..."


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
