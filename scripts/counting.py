"""What can be counted in a tree without running it: `Tree(root)` and one function per figure.

A figure is the list of what it counts, so that whoever doubts the number can read it.

files: every `.py` file below `api/`; `filled` are those with more than a docstring.
lines: newlines of those files, blank lines and comments included.
functions: every `def` and `async def`, methods and nested functions included.
helpers used once: functions named `_like_this` (not `__this__`) whose name is referred to exactly
    once in their own file, outside their own body. A private name belongs to its file, so two
    files with a `_page` each are two helpers. A method that a framework calls, such as a
    validator, is referred to nowhere and not counted.
classes with two meanings: class names that more than one file of `api/` defines, exactly as
    written: `_Page` and `Page` are two names.
rooms of services: the direct children of `api/services/` that hold code: a folder is one room, a
    file is one. An arrow leads from a room to another that it imports, imports within functions
    and for types included. Floors are the rooms on the longest way down; of rooms that import each
    other in a ring, which no order fits, a way passes all.
string-key reads in faces: `value["key"]` where it is read and `value.get("key")`, in
    `api/interfaces/`, for keys that are Python identifiers; `headers`, `os.environ` and the
    `Literal` of type hints
    are left out.
    Of the report: without the files of `OTHER_SUBJECTS`.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
OTHER_SUBJECTS = {
    "an evaluation's result": ("evaluate", "evaluated", "plot", "corpus", "figures"),
    "what `doctor` found": ("doctor",),
    "progress on the way to a report": ("live", "server", "events"),
    "JSON schemas that are published": ("arguments", "tools", "refusals"),
    "messages of a chat": ("chat", "chatting", "streams"),
    "messages of ASGI and of validation": (
        "errors",
        "over_http",
        "over_stdio",
        "origins",
        "methods",
        "connections",
        "messages",
    ),
    "what a question may take, and a dashboard's plan": ("resources", "langfuse"),
    "groups of a pattern": ("captions",),
}
"""Files of faces whose dictionaries are not the report, by what they are."""


@dataclass(frozen=True)
class Tree:
    """The package of one commit, on disk below `root`."""

    root: Path

    @cached_property
    def sources(self) -> dict[str, str]:
        """Text of every Python file below `api/`, by path."""
        paths = sorted((self.root / "api").rglob("*.py"))
        return {path.relative_to(self.root).as_posix(): path.read_text("utf-8") for path in paths}

    @cached_property
    def modules(self) -> dict[str, ast.Module]:
        """The same, parsed."""
        return {path: ast.parse(source, path) for path, source in self.sources.items()}


def files(tree: Tree) -> list[str]:
    """Every Python file."""
    return list(tree.sources)


def filled(tree: Tree) -> list[str]:
    """Files with more than a docstring."""
    return [
        path
        for path, module in tree.modules.items()
        if len(module.body) > (ast.get_docstring(module) is not None)
    ]


def lines(tree: Tree) -> int:
    """Of all files together."""
    return sum(source.count("\n") for source in tree.sources.values())


def functions(tree: Tree) -> list[str]:
    """Every function, as `path:line name`."""
    return [f"{path}:{node.lineno} {node.name}" for path, node in _functions(tree)]


def helpers_used_once(tree: Tree) -> list[str]:
    """Private functions that their file refers to once, as `path:line name`."""
    references = {path: _references(module) for path, module in tree.modules.items()}
    return [
        f"{path}:{node.lineno} {node.name}"
        for path, node in _functions(tree)
        if node.name.startswith("_") and not node.name.startswith("__")
        if references[path][node.name] - _references(node)[node.name] == 1
    ]


def shared_class_names(tree: Tree) -> list[str]:
    """Class names with more than one file, each with its files."""
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for path, module in tree.modules.items():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                homes[node.name].add(path)
    return [f"{name}: {', '.join(sorted(at))}" for name, at in sorted(homes.items()) if len(at) > 1]


def rooms(tree: Tree) -> dict[str, set[str]]:
    """Rooms of `api/services/`, each with the rooms it imports."""
    homes = {path: Path(path).relative_to("api/services").parts[0].removesuffix(".py")
             for path in filled(tree) if path.startswith("api/services/")}  # fmt: skip
    arrows: dict[str, set[str]] = {room: set() for room in homes.values()}
    for path, room in homes.items():
        for target in _imports(tree.modules[path]):
            head, _, rest = target.partition("api.services.")
            below = rest.partition(".")[0]
            if not head and below in arrows and below != room:
                arrows[room].add(below)
    return arrows


def arrows(rooms: dict[str, set[str]]) -> list[str]:
    """Every import of a room by another."""
    return [f"{room} -> {below}" for room in sorted(rooms) for below in sorted(rooms[room])]


def floors(rooms: dict[str, set[str]]) -> list[str]:
    """The rooms on the longest way down, a ring's beside one another."""
    reached = {room: _reached(room, rooms) for room in rooms}
    rings = {
        room: tuple(sorted({room, *(on for on in reached[room] if room in reached[on])}))
        for room in rooms
    }
    ways: dict[tuple[str, ...], list[str]] = {}

    def way(ring: tuple[str, ...]) -> list[str]:
        if ring not in ways:
            below = {rings[target] for room in ring for target in rooms[room]} - {ring}
            ways[ring] = [*ring, *max(map(way, sorted(below)), key=len, default=[])]
        return ways[ring]

    return max(map(way, sorted(rings.values())), key=len, default=[])


def string_key_reads(tree: Tree) -> list[str]:
    """All of them in `api/interfaces/`, as `path:line code`."""
    return [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, module in tree.modules.items()
        if path.startswith("api/interfaces/")
        for node in ast.walk(module)
        if isinstance(node, ast.expr) and _reads_string_key(node)
    ]


def report_reads(tree: Tree) -> list[str]:
    """Those of the report."""
    others = {name for names in OTHER_SUBJECTS.values() for name in names}
    return [
        read for read in string_key_reads(tree) if Path(read.partition(":")[0]).stem not in others
    ]


def _functions(tree: Tree) -> Iterator[tuple[str, Function]]:
    for path, module in tree.modules.items():
        for node in ast.walk(module):
            if isinstance(node, Function):
                yield path, node


def _references(node: ast.AST) -> Counter[str]:
    """How often each name is read below a node, bare or as an attribute."""
    return Counter(
        below.id if isinstance(below, ast.Name) else below.attr
        for below in ast.walk(node)
        if isinstance(below, ast.Name | ast.Attribute)
    )


def _imports(module: ast.Module) -> Iterator[str]:
    """Everything imported, dotted."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _reached(room: str, rooms: dict[str, set[str]]) -> set[str]:
    """Every room some way of arrows leads to."""
    reached: set[str] = set()
    ahead = [room]
    while ahead:
        new = rooms[ahead.pop()] - reached
        reached |= new
        ahead += new
    return reached


def _reads_string_key(node: ast.expr) -> bool:
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        value, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        value, key = node.func.value, node.args[0]
        if node.func.attr != "get":
            return False
    else:
        return False
    if ast.unparse(value).rpartition(".")[2] in {"environ", "headers", "Literal"}:
        return False
    return isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier()
