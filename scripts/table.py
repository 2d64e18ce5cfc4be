"""The size and shape of `api/` then and now: `python scripts/table.py [--then COMMIT]`.

Prints a Markdown table of the figures that `counting.py` counts in a tree and `following.py` sees
by running it; both say what each figure means. Then is a commit, read with `git archive` into a
temporary folder; now is this checkout, with what is not committed yet.

Each tree runs against its own sandbox, with three sources and a model and without Langfuse, whose
wrappers would add a file to the way and eight to a POST.

`--list FIGURE` prints what one figure of this checkout counts, `--static` leaves out what has to
run.
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

import counting
from counting import Tree

ROOT = Path(__file__).resolve().parent.parent
AIMS = {
    "files": "150",
    "files with more than a docstring": "",
    "lines": "23000",
    "functions": "",
    "helpers used once": "",
    "helpers used once, share": "15.0 %",
    "files from door to wire": "10",
    "files in one POST": "50",
    "rooms of services": "12",
    "arrows of services": "46",
    "floors of services": "8",
    "classes with two meanings": "0",
    "string-key reads of the report in faces": "0",
    "string-key reads in faces": "",
}
"""Every figure, in the table's order, with the most that is aimed at."""
OURS = ("LISTENPOST_", "LANGFUSE_", "OPENAI_", "OTEL_", "REDDIT_", "YOUTUBE_", "AMAZON_")
RUN_SECONDS = 300


def counted(tree: Tree) -> dict[str, list[str]]:
    """What the figures count that a tree shows without running, by figure."""
    rooms = counting.rooms(tree)
    return {
        "files": counting.files(tree),
        "files with more than a docstring": counting.filled(tree),
        "functions": counting.functions(tree),
        "helpers used once": counting.helpers_used_once(tree),
        "rooms of services": sorted(rooms),
        "arrows of services": counting.arrows(rooms),
        "floors of services": counting.floors(rooms),
        "classes with two meanings": counting.shared_class_names(tree),
        "string-key reads of the report in faces": counting.report_reads(tree),
        "string-key reads in faces": counting.string_key_reads(tree),
    }


def followed(root: Path) -> dict[str, list[str]]:
    """What one question passes in the tree below `root`, by figure.

    Raises:
        subprocess.SubprocessError: the tree cannot be run, or not in `RUN_SECONDS`.
    """
    with TemporaryDirectory() as folder, sandbox(root, Path(folder)) as environment:
        return {
            "files from door to wire": follow("wire", root, Path(folder), environment),
            "files in one POST": follow("post", root, Path(folder), environment),
        }


def follow(what: str, root: Path, folder: Path, environment: Mapping[str, str]) -> list[str]:
    """The files of one way through the tree, seen from a process and with a store of its own.

    Raises:
        subprocess.SubprocessError: the process did not say, or not in `RUN_SECONDS`.
    """
    script, target = Path(__file__).with_name("following.py"), folder / f"{what}.json"
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
    with subprocess.Popen(
        command, env=clean(root), cwd=folder, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        variables = {}
        for line in process.stdout:
            name, _, value = line.strip().removeprefix("export ").partition("=")
            variables[name] = value
            if name == "LANGFUSE_SECRET_KEY":
                break
        try:
            yield {k: v for k, v in variables.items() if not k.startswith("LANGFUSE_")}
        finally:
            process.terminate()


def clean(root: Path) -> dict[str, str]:
    """This environment without settings of the product, with the tree as the first to import."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
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


def figures(root: Path, static: bool) -> dict[str, str]:
    """Every figure of one tree, as the table shows it."""
    tree = Tree(root)
    lists = counted(tree) | ({} if static else followed(root))
    sizes = {name: len(items) for name, items in lists.items()}
    share = sizes["helpers used once"] / max(1, sizes["functions"])
    return {
        **{name: str(size) for name, size in sizes.items()},
        "lines": str(counting.lines(tree)),
        "helpers used once, share": f"{share:.1%}".replace("%", " %"),
    }


def table(then: Mapping[str, str], now: Mapping[str, str], names: tuple[str, str]) -> str:
    """Both as Markdown; a figure that was not measured has no row."""
    rows = [("figure", f"then ({names[0]})", f"now ({names[1]})", "aimed at")]
    rows += [("---", "---:", "---:", "---:")]
    rows += [(name, then[name], now[name], aim) for name, aim in AIMS.items() if name in now]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(words: Sequence[str] | None = None) -> None:
    """Print the table, or one list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--then", default="8cb29ba", help="a commit")
    parser.add_argument("--static", action="store_true", help="only what needs no running")
    parser.add_argument("--list", choices=AIMS, metavar="FIGURE", help="what it counts, now")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout")
    wanted = parser.parse_args(words)
    if wanted.list:
        lists = counted(Tree(wanted.root))
        if wanted.list not in lists and not wanted.static:
            lists |= followed(wanted.root)
        print("\n".join(lists.get(wanted.list, [])))
        return
    now = figures(wanted.root, wanted.static)
    with extracted(wanted.root, wanted.then) as root:
        then = figures(root, wanted.static)
    described = git(wanted.root, "describe", "--always", "--dirty=, changed").decode().strip()
    print(table(then, now, (wanted.then, described)))


if __name__ == "__main__":
    main()
