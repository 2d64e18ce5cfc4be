"""What a tree of `api` shows without running: `Tree(root)` and one function per figure.

A figure is the list of what it counts, so that whoever doubts the number can read it; lines are
counted as numbers.

files: every `.py` file below `api/`.
lines: newlines of those files, blank lines and comments included.
import lines: lines from the first to the last of each `import` statement, wherever it stands.
comment lines: lines with a `#` comment that is for people; `noqa`, `type:` and `fmt:` are not.
file names with two meanings: names that stand in more than one folder, but for `__init__.py` and
    `__main__.py`.
short docstrings: fewer than four words, of modules, classes, functions and attributes (a text
    directly below an assignment). A word holds a letter or digit.
arrows: a folder of `api/pipeline/` or `api/features/` that imports another one of them. Imports in
    functions and for type checkers count, here and for circles.
circles: groups of modules that import one another, directly or through others.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

LEAST_WORDS = 4
LAYERS = ("pipeline", "features")
"""Packages whose folders have arrows."""
_REPEATED = {"__init__.py", "__main__.py"}
# words that tools read: `noqa: E501`, `type: ignore[arg-type]`, `fmt: skip`
_FOR_TOOLS = re.compile(r"#\s*(?:noqa|type:|fmt:|pragma:|ruff:|mypy:)")
_WORD = re.compile(r"\S*\w\S*")
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Tree:
    """The package `api` as it stands below `root`."""

    root: Path

    @cached_property
    def sources(self) -> dict[str, str]:
        """Text of every Python file, by path: `api/errors.py`."""
        paths = sorted((self.root / "api").rglob("*.py"))
        return {path.relative_to(self.root).as_posix(): path.read_text("utf-8") for path in paths}

    @cached_property
    def parsed(self) -> dict[str, ast.Module]:
        """Syntax tree of every file, by path."""
        return {path: ast.parse(source, path) for path, source in self.sources.items()}

    @cached_property
    def imports(self) -> dict[str, set[str]]:
        """Modules of `api` that each module imports, both dotted: `api.errors`."""
        names = {module_name(path): path for path in self.sources}
        return {
            name: {_module_of(target, names) for target in _targets(self.parsed[path])} - {name, ""}
            for name, path in names.items()
        }


def module_name(path: str) -> str:
    """Dotted name of a file: `api.sources` for `api/sources/__init__.py`."""
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def lines(tree: Tree) -> int:
    """Lines of all files."""
    return sum(source.count("\n") for source in tree.sources.values())


def import_lines(tree: Tree) -> int:
    """Lines of all import statements."""
    return sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for parsed in tree.parsed.values()
        for node in ast.walk(parsed)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def comment_lines(tree: Tree) -> int:
    """Lines with a comment for people."""
    return sum(
        token.type == tokenize.COMMENT and not _FOR_TOOLS.match(token.string)
        for source in tree.sources.values()
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
    )


def shared_file_names(tree: Tree) -> list[str]:
    """Names that several folders have a file of, with its paths."""
    paths: defaultdict[str, list[str]] = defaultdict(list)
    for path in tree.sources:
        paths[Path(path).name].append(path)
    return [
        f"{name}: {', '.join(same)}" for name, same in sorted(paths.items()) if len(same) > 1 and name not in _REPEATED
    ]


def short_docstrings(tree: Tree) -> list[str]:
    """Docstrings of fewer than `LEAST_WORDS` words, as `path:line text`."""
    return [
        f"{path}:{line} {text}"
        for path, parsed in tree.parsed.items()
        for line, text in _docstrings(parsed)
        if len(_WORD.findall(text)) < LEAST_WORDS
    ]


def arrows(tree: Tree) -> list[str]:
    """Imports of one folder of the `LAYERS` by another."""
    pairs = {(_folder(name), _folder(target)) for name, targets in tree.imports.items() for target in targets}
    return sorted(f"{folder} -> {target}" for folder, target in pairs if folder and target and folder != target)


def circles(tree: Tree) -> list[str]:
    """Groups of modules that import one another, each as its names in order."""
    reached = {name: _reached(name, tree.imports) for name in tree.imports}
    groups = {
        tuple(sorted({name, *(other for other in reached[name] if name in reached[other])}))
        for name in tree.imports
        if name in reached[name]
    }
    return [", ".join(group) for group in sorted(groups)]


def _reached(name: str, imports: Mapping[str, set[str]]) -> set[str]:
    """Every module that a module imports, directly or through others."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        new = imports[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return found


def _folder(name: str) -> str:
    """The folder of a module in one of the `LAYERS`: `pipeline/gate`; empty for any other."""
    parts = name.split(".")
    return "/".join(parts[1:3]) if len(parts) > 2 and parts[1] in LAYERS else ""


def _docstrings(parsed: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(parsed):
        if not isinstance(node, _Documented):
            continue
        text = ast.get_docstring(node)
        if text is not None:
            yield node.body[0].lineno, text
        for before, after in zip(node.body, node.body[1:], strict=False):
            if isinstance(before, ast.Assign | ast.AnnAssign) and isinstance(after, ast.Expr):
                value = after.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield after.lineno, value.value


def _targets(parsed: ast.Module) -> Iterator[str]:
    """Everything imported, dotted: `api.errors.UsageError`."""
    for node in ast.walk(parsed):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _module_of(target: str, names: Mapping[str, str]) -> str:
    """The module that an import loads: the target, or the one that holds it; else empty."""
    if target in names:
        return target
    holder = target.rpartition(".")[0]
    return holder if holder in names else ""
