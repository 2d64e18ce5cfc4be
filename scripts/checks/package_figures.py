"""The size and shape of `api`: `python scripts/table.py [--list FIGURE] [--option COMMIT]`.

Prints a Markdown table of figures with what is aimed at. `package_tree.py` counts what a tree shows
without running, `traced_files.py` runs it; both say what each figure means. The tree is this
checkout, with what is not committed yet.

It runs against its own sandbox, with three sources and a model, and without Langfuse, whose
wrappers would add a file to the way to the socket and eight to a POST.

`--then COMMIT` adds a column for a commit. `--list FIGURE` prints what one figure counts,
`--static` leaves out what has to run. `--option COMMIT` counts the files of `api/` in a commit that
adds an option.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import package_tree
from package_tree import Tree

ROOT = Path(__file__).resolve().parents[2]
FILES = "files"
LINES = "lines"
IMPORTS = "lines of imports, %"
SOCKET = "files from command to socket"
POST = "files in one POST, without sources"
FILE_NAMES = "file names with two meanings"
DOCSTRINGS = "docstrings of fewer than four words"
ARROWS = "arrows among folders of pipeline and features"
CIRCLES = "circles of imports"
COMMENTS = "lines with a comment, %"
OPTION = "files that a new option touches"
AIMS = {
    FILES: "<= 285",
    LINES: "<= 54,000",
    IMPORTS: "< 7",
    SOCKET: "<= 10",
    POST: "<= 75",
    FILE_NAMES: "0",
    DOCSTRINGS: "<= 60",
    ARROWS: "<= 15",
    CIRCLES: "0",
    COMMENTS: ">= 2",
    OPTION: "<= 3",
}
"""Every figure with what is aimed at, in the table's order."""
PREFIXES = ("LISTENPOST_", "LANGFUSE_", "OPENAI_", "OTEL_", "REDDIT_", "YOUTUBE_", "AMAZON_")
"""Beginnings of the variables that settings of the product have."""
RUN_SECONDS = 300


def counted(tree: Tree) -> dict[str, list[str]]:
    """What the figures list that a tree shows without running, by figure."""
    return {
        FILES: list(tree.sources),
        FILE_NAMES: package_tree.shared_file_names(tree),
        DOCSTRINGS: package_tree.short_docstrings(tree),
        ARROWS: package_tree.arrows(tree),
        CIRCLES: package_tree.circles(tree),
    }


def traced(root: Path) -> dict[str, list[str]]:
    """The files that one question runs in the tree below `root`, by figure.

    Raises:
        subprocess.SubprocessError: the tree cannot be run, or not in `RUN_SECONDS`.
    """
    with TemporaryDirectory() as folder, sandbox(root, Path(folder)) as environment:
        post = trace("post", root, Path(folder), environment)
        return {
            SOCKET: trace("socket", root, Path(folder), environment),
            POST: [path for path in post if not path.startswith("api/sources/")],
        }


def trace(what: str, root: Path, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """What `traced_files.py` sees in a process that has a store of its own.

    Raises:
        subprocess.SubprocessError: the process failed, or not in `RUN_SECONDS`.
    """
    script, target = Path(__file__).with_name("traced_files.py"), folder / f"{what}.json"
    subprocess.run(
        [sys.executable, script, what, target],
        env={**clean(root), **environment, "XDG_DATA_HOME": str(folder / what)},
        cwd=folder, capture_output=True, check=True, timeout=RUN_SECONDS,
    )  # fmt: skip
    files: list[str] = json.loads(target.read_text())
    return files


@contextmanager
def sandbox(root: Path, folder: Path) -> Iterator[dict[str, str]]:
    """The tree's own sandbox as a process; yields the variables that point at it."""
    command = [sys.executable, "-m", "api", "sandbox", "--port", "0"]
    with subprocess.Popen(command, env=clean(root), cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        variables = {}
        for line in process.stdout:
            name, _, value = line.strip().removeprefix("export ").partition("=")
            variables[name] = value
            if name == "LANGFUSE_SECRET_KEY":  # the last line that it prints
                break
        try:
            yield {k: v for k, v in variables.items() if not k.startswith("LANGFUSE_")}
        finally:
            process.terminate()


def clean(root: Path) -> dict[str, str]:
    """This environment without settings of the product, with the tree as the first to import."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PREFIXES)}
    return {**kept, "PYTHONPATH": str(root)}


@contextmanager
def extracted(checkout: Path, commit: str) -> Iterator[Path]:
    """A folder with `api/` as it was at a commit.

    Raises:
        subprocess.CalledProcessError: there is no such commit.
    """
    archive = git(checkout, "archive", commit, "api")
    with TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        # Python 3.11 before 3.11.4 has no filters
        tar.extraction_filter = getattr(tarfile, "data_filter", None)
        tar.extractall(folder)
        yield Path(folder)


def git(checkout: Path, *words: str) -> bytes:
    """What git prints."""
    return subprocess.run(["git", "-C", checkout, *words], check=True, capture_output=True).stdout


def option_files(checkout: Path, commit: str) -> list[str]:
    """Files of `api/` that a commit adds, changes or removes."""
    changed = git(checkout, "show", "--format=", "--name-only", commit, "--", "api")
    return changed.decode().split("\n")[:-1]


def figures(root: Path, static: bool) -> dict[str, str]:
    """Every figure of one tree, as the table shows it."""
    tree = Tree(root)
    lists = counted(tree) | ({} if static else traced(root))
    total = package_tree.lines(tree)
    return {
        **{name: str(len(items)) for name, items in lists.items()},
        LINES: f"{total:,}",
        IMPORTS: f"{package_tree.import_lines(tree) / max(1, total):.1%}".removesuffix("%"),
        COMMENTS: f"{package_tree.comment_lines(tree) / max(1, total):.1%}".removesuffix("%"),
    }


def table(columns: Mapping[str, Mapping[str, str]]) -> str:
    """The figures of each column's tree in Markdown; one that no tree has gets no row."""
    rows = [("figure", *columns, "aimed at"), ("---", *(["---:"] * len(columns)), "---:")]
    rows += [
        (name, *(values.get(name, "") for values in columns.values()), aim)
        for name, aim in AIMS.items()
        if any(name in values for values in columns.values())
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table, or one list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--then", metavar="COMMIT", help="add a column for this commit")
    parser.add_argument("--option", metavar="COMMIT", help="a commit that adds an option")
    parser.add_argument("--static", action="store_true", help="only what needs no running")
    parser.add_argument("--list", choices=AIMS, metavar="FIGURE", help="what one figure counts")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    wanted = parser.parse_args(words)
    option = option_files(wanted.root, wanted.option) if wanted.option else []
    if wanted.list:
        lists = {**counted(Tree(wanted.root)), OPTION: option}
        if wanted.list in {SOCKET, POST}:
            lists |= traced(wanted.root)
        print("\n".join(lists.get(wanted.list, [])))
        return
    now = git(wanted.root, "describe", "--always", "--dirty=, changed").decode().strip()
    columns = {now: figures(wanted.root, wanted.static)}
    if wanted.option:
        columns[now][OPTION] = str(len(option))
    if wanted.then:
        with extracted(wanted.root, wanted.then) as root:
            columns = {wanted.then: figures(root, wanted.static), **columns}
    print(table(columns))


if __name__ == "__main__":
    main()
