"""House rules that no linter knows, checked over a checkout: `python scripts/house.py [ROOT]`.

Each rule is a generator of findings. Sizes, broad excepts, cycles, shared client libraries
and names concern `api`; patches concern `tests`; machine paths and registry hosts concern every
tracked file.

The limit on a function is where reading certainly ends, not what to cut for. The rule is: a private
helper has two callers or a name worth reading, and a function reads top down on one level; lines
that only one place uses stand in that place.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

FILE_LINES = 500
FUNCTION_LINES = 60
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
RIDDLES = frozenset(
    "told said one found asked apart absent unaided charged passing listening".split()
)
"""Words that are no names: a name is a noun of the field, as `item`, `verdict`, `passage` are."""
FIXED = frozenset(
    {
        ("api/features/chat/session.py", "asked"),
    }
)
"""Those that others hold by now: the documented module, and a field of stored sessions."""
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
    modules = [_module(root, path) for path in files if path.endswith(".py")]
    package = [module for module in modules if module.path.startswith("api/")]
    found = [
        *(finding for module in package for finding in sizes(module)),
        *broad_excepts(package),
        *cycles(package),
        *shared_clients(package),
        *(finding for module in package for finding in riddles(module)),
        *homonyms(package),
        *(f for module in modules if module.path.startswith("tests/") for f in patches(module)),
        *(f for path in files for f in machine_words(root, path)),
    ]
    return sorted(found, key=lambda finding: (finding.path, finding.line, finding.rule))


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
"""Where what nobody foresaw is contained, for every tool, source and model step, and for what a
library's constructor raises."""


def broad_excepts(modules: list[Module]) -> Iterator[Finding]:
    """Handlers of everything; one for each interface and one in each file of `CONTAINMENT`."""
    doors: set[str] = set()
    for module in modules:
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ExceptHandler) or not _is_broad(node.type):
                continue
            door = ".".join(module.name.split(".")[:3])
            allowed = door.startswith("api.interfaces.") or module.path in CONTAINMENT
            if allowed and door not in doors:
                doors.add(door)
            else:
                yield Finding(module.path, node.lineno, "except", "catch what you can name")


def cycles(modules: list[Module]) -> Iterator[Finding]:
    """Modules that import each other in a ring, imports inside functions included."""
    names = {module.name: module for module in modules}
    graph = {
        module.name: {_known(target, names) for target, _ in _imports(module)} - {module.name, ""}
        for module in modules
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        ring = [str(name) for name in reversed(error.args[1])]
        yield Finding(names[ring[0]].path, 1, "cycle", " -> ".join(ring))


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


def riddles(module: Module) -> Iterator[Finding]:
    """Names of files, classes, functions, parameters, fields and variables that say nothing."""
    for line, name in [(1, Path(module.path).stem), *_bound(module.tree)]:
        if name.strip("_").lower() in RIDDLES and (module.path, name) not in FIXED:
            yield Finding(module.path, line, "name", f"`{name}` is a riddle: say what it holds")


def homonyms(modules: list[Module]) -> Iterator[Finding]:
    """Classes that another file has a class of the same name for."""
    first: dict[str, str] = {}
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and first.setdefault(node.name, module.path) != (
                module.path
            ):
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
    """Words of one machine: home folders, this checkout's own place, registry hosts."""
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
    name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return Module(path, name, source, ast.parse(source, path))


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


def _known(target: str, names: Mapping[str, Module]) -> str:
    """The module a dotted import means: itself, or the one that holds the name."""
    if target in names:
        return target
    holder = target.rpartition(".")[0]
    return holder if holder in names else ""


def main(arguments: list[str]) -> int:
    """Print every finding; 1 when there is one."""
    root = Path(arguments[0] if arguments else Path(__file__).parent.parent).resolve()
    found = check(root)
    print("\n".join(str(finding) for finding in found) or "house: no findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
