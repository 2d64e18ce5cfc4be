"""Rules of this project that no linter knows: `python scripts/checks/house.py [ROOT]`.

Each rule is a generator of findings. Sizes, broad excepts, circles of imports, shared client
libraries, names and short docstrings concern `api`; patches concern `tests`; machine paths and
registry hosts concern every tracked file.

The limit on a function is no reason to split one. The rule is: a private helper has two callers or
a name worth reading, and a function reads top down on one level; lines that only one function uses
stand in that function.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import package_tree
from package_tree import Tree, module_name

FILE_LINES = 500
FUNCTION_LINES = 60
SHORT_DOCSTRINGS = 230
"""Docstrings of fewer than four words in the whole package; `scripts/table.py` lists them."""
SHARED = frozenset(
    {
        "fastapi",
        "httpx",
        "mcp",
        "mcp_types",
        "pydantic",
        "pydantic_ai",
        "pydantic_settings",
        "regex",
        "requests",
        "rich",
        "selectolax",
        "sqlalchemy",
        "starlette",
        "typer",
        "typing_extensions",
        "uvicorn",
    }
)
"""Libraries that several files may import; any other belongs to one file."""
PATCHES = frozenset({"setattr", "delattr", "setitem", "delitem"})
BROAD = frozenset({"Exception", "BaseException"})
MACHINE = re.compile(
    r"(?<![\w.])/(?:hom[e]|User[s]|roo[t]|wor[k]|far[m])/[\w.-]+"
    r"|\b(?:pyp[i]\.org|pythonhoste[d]|npmj[s]\.org|deb\.debia[n])"
)
VAGUE = frozenset("told said one found asked apart absent unaided charged passing listening".split())
"""Words that are no names: a name is a noun of the field, such as `item`, `verdict`, `passage`."""
FIXED = frozenset(
    {
        ("api/features/chat/session.py", "asked"),
    }
)
"""Files and the vague names that they may have: a field of stored sessions."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Finding:
    """One place that breaks a rule."""

    path: str
    line: int
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.message}"


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file of the checkout."""

    path: str
    name: str
    """Dotted, for example `api.sources.reddit`."""
    source: str
    tree: ast.Module


def check(root: Path) -> list[Finding]:
    """Every finding in a checkout, by file and line."""
    files = tracked(root)
    tree = Tree(root)
    package = [Module(path, module_name(path), source, tree.parsed[path]) for path, source in tree.sources.items()]
    tests = [_module(root, path) for path in files if path.endswith(".py") and path.startswith("tests/")]
    findings = [
        *(finding for module in package for finding in sizes(module)),
        *broad_excepts(package),
        *circles(tree),
        *shared_clients(package),
        *(finding for module in package for finding in vague_names(module)),
        *shared_class_names(package),
        *shared_file_names(tree),
        *short_docstrings(tree),
        *(finding for module in tests for finding in patches(module)),
        *(finding for path in files for finding in machine_words(root, path)),
    ]
    return sorted(findings, key=lambda finding: (finding.path, finding.line, finding.rule))


def sizes(module: Module) -> Iterator[Finding]:
    """Long files, and functions that are long from `def` to their last line."""
    lines = module.source.count("\n")
    if lines > FILE_LINES:
        yield Finding(module.path, 1, "size", f"{lines} lines ({FILE_LINES} at most)")
    for node in ast.walk(module.tree):
        if isinstance(node, Function):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                message = f"`{node.name}` has {length} lines ({FUNCTION_LINES} at most)"
                yield Finding(module.path, node.lineno, "size", message)


CONTAINMENT = frozenset({"api/core/work.py", "api/errors.py"})
"""Files that handle errors which nobody foresaw: of every tool, source and model step, and of the
constructors of libraries."""


def broad_excepts(modules: list[Module]) -> Iterator[Finding]:
    """Handlers of everything; one for each interface and one in each file of `CONTAINMENT`."""
    handled: set[str] = set()
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ExceptHandler) or not _is_broad(node.type):
                continue
            interface = ".".join(module.name.split(".")[:3])
            allowed = interface.startswith("api.interfaces.") or module.path in CONTAINMENT
            if allowed and interface not in handled:
                handled.add(interface)
            else:
                yield Finding(module.path, node.lineno, "except", "catch what you can name")


def circles(tree: Tree) -> Iterator[Finding]:
    """Modules that import one another, imports in functions and for type checkers included."""
    for group in package_tree.circles(tree):
        first = group.partition(",")[0]
        path = next(path for path in tree.sources if module_name(path) == first)
        yield Finding(path, 1, "circle", f"import one another: {group}")


def shared_file_names(tree: Tree) -> Iterator[Finding]:
    """Files of one name in several folders."""
    for line in package_tree.shared_file_names(tree):
        name, _, paths = line.partition(": ")
        first, *others = paths.split(", ")
        message = f"`{name}` is a file of {', '.join(others)} too"
        yield Finding(first, 1, "name", message)


def short_docstrings(tree: Tree) -> Iterator[Finding]:
    """One finding when the package has more of them than it may have."""
    count = len(package_tree.short_docstrings(tree))
    if count > SHORT_DOCSTRINGS:
        message = f"{count} docstrings of fewer than four words ({SHORT_DOCSTRINGS} at most)"
        yield Finding("api/__init__.py", 1, "docstring", message)


def shared_clients(modules: list[Module]) -> Iterator[Finding]:
    """A third-party library imported by more than one file."""
    first: dict[str, Module] = {}
    for module in modules:
        for target, line in _imports(module):
            library = target.partition(".")[0]
            if library == "api" or library in SHARED or library in sys.stdlib_module_names:
                continue
            owner = first.setdefault(library, module)
            if owner is not module:
                message = f"`{library}` belongs to {owner.path}"
                yield Finding(module.path, line, "client", message)


def vague_names(module: Module) -> Iterator[Finding]:
    """Names of files, classes, functions, parameters, fields and variables that are too vague."""
    for line, name in [(1, Path(module.path).stem), *_bound(module.tree)]:
        if name.strip("_").lower() in VAGUE and (module.path, name) not in FIXED:
            yield Finding(module.path, line, "name", f"`{name}` is vague: say what it holds")


def shared_class_names(modules: list[Module]) -> Iterator[Finding]:
    """Classes that another file has a class of the same name for."""
    first: dict[str, str] = {}
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and first.setdefault(node.name, module.path) != (module.path):
                message = f"`{node.name}` is a class of {first[node.name]} too"
                yield Finding(module.path, node.lineno, "name", message)


def patches(module: Module) -> Iterator[Finding]:
    """Tests that replace attributes instead of passing a collaborator."""
    mocks = {"mock", "unittest.mock", "pytest_mock"}
    for target, line in _imports(module):
        if target in mocks or target.rpartition(".")[0] in mocks:
            yield Finding(module.path, line, "patch", f"`{target}`: pass a fake instead")
    for node in ast.walk(module.tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        method = isinstance(called, ast.Attribute) and called.attr in PATCHES
        if method or (isinstance(called, ast.Name) and called.id in {"setattr", "delattr"}):
            yield Finding(module.path, node.lineno, "patch", "pass a fake instead of patching")


def machine_words(root: Path, path: str) -> Iterator[Finding]:
    """Words of one machine: home folders, the folder of this checkout, registry hosts."""
    try:
        text = (root / path).read_text("utf-8")
    except UnicodeDecodeError:
        return
    here = str(root) + "/" if len(root.parts) > 2 else None
    for number, line in enumerate(text.split("\n"), 1):
        if MACHINE.search(line) or (here and here in line):
            yield Finding(path, number, "machine", "names a machine's path or a registry host")


def tracked(root: Path) -> list[str]:
    """What git tracks; without git, what is not hidden."""
    command = ["git", "-C", str(root), "ls-files", "-z"]
    try:
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        paths = [path for path in listed.split("\0") if path]
    except (FileNotFoundError, subprocess.CalledProcessError):
        every = (path.relative_to(root).as_posix() for path in sorted(root.rglob("*")))
        paths = [path for path in every if not re.search(r"(^|/)(\.|__pycache__)", path)]
    return [path for path in paths if (root / path).is_file()]


def _module(root: Path, path: str) -> Module:
    source = (root / path).read_text("utf-8")
    return Module(path, module_name(path), source, ast.parse(source, path))


def _is_broad(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_is_broad(part) for part in caught.elts)
    return caught is None or (isinstance(caught, ast.Name) and caught.id in BROAD)


def _imports(module: Module) -> Iterator[tuple[str, int]]:
    """Everything imported at run time, dotted, with its line."""
    for node in _running(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below, without what stands under `if TYPE_CHECKING:`."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            yield child
            yield from _running(child)


def _bound(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name that a file gives to something, with its line."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.Name(id=str(name), ctx=ast.Store())
                | ast.Attribute(attr=str(name), ctx=ast.Store())
                | ast.arg(arg=str(name))
                | ast.FunctionDef(name=str(name))
                | ast.AsyncFunctionDef(name=str(name))
                | ast.ClassDef(name=str(name))
                | ast.alias(asname=str(name))
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield node.lineno, name


def main(arguments: list[str]) -> int:
    """Print every finding; 1 when there is one."""
    root = Path(arguments[0] if arguments else Path(__file__).parents[2]).resolve()
    findings = check(root)
    print("\n".join(str(finding) for finding in findings) or "house: no findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
