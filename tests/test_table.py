"""Every figure of `scripts/table.py`, on trees small enough to count by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import package_figures
import package_tree
from package_tree import Tree
from tests.loopback import Asked, Loopback, Reply

pytestmark = pytest.mark.nightly


def tree_of(root: Path, files: dict[str, str]) -> Tree:
    """A tree with these files below `api/`."""
    for path, text in files.items():
        (root / "api" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "api" / path).write_text(text, "utf-8")
    return Tree(root)


def test_files_and_lines_are_those_of_the_package(tmp_path: Path) -> None:
    """Blank lines count; other kinds of files and other folders do not."""
    tree = tree_of(tmp_path, {"__init__.py": "", "b/c.py": '"""Doc."""\n\nX = 1\n', "d.md": "d\n"})
    (tmp_path / "outside.py").write_text("X = 1\n")

    assert list(tree.sources) == ["api/__init__.py", "api/b/c.py"]
    assert package_tree.lines(tree) == 3


def test_an_import_has_all_its_lines(tmp_path: Path) -> None:
    """Wherever it stands, for type checkers too."""
    text = "import a\nfrom b import (\n    c,\n    d,\n)\nif TYPE_CHECKING:\n    import e\n"

    assert package_tree.import_lines(tree_of(tmp_path, {"a.py": text})) == 6


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("# why\nx = 1  # because\n", 2),
        ("x = '# no'\n", 0),
        ("x = 1  # noqa: E501\ny = 2  # type: ignore[misc]\nz = 3  # fmt: skip\n", 0),
    ],
)
def test_a_comment_is_for_people(tmp_path: Path, text: str, count: int) -> None:
    """What tools read is none."""
    assert package_tree.comment_lines(tree_of(tmp_path, {"a.py": text})) == count


def test_a_file_name_stands_in_one_folder(tmp_path: Path) -> None:
    """But for the names that Python gives a meaning."""
    tree = tree_of(tmp_path, dict.fromkeys(("a/x.py", "b/x.py", "y.py", "a/__init__.py", "b/__init__.py"), ""))

    assert package_tree.shared_file_names(tree) == ["x.py: api/a/x.py, api/b/x.py"]


def test_short_docstrings_are_found_wherever_they_stand(tmp_path: Path) -> None:
    """Of a module, class, method and attribute; other texts are none."""
    text = (
        '"""A module."""\nclass A:\n    """A class."""\n'
        '    b: int = 1\n    """At least 4 words."""\n'
        '    c = 1\n    """Of a `-` kind."""\n    def d(self):\n        """See `A`."""\n'
        '        print()\n        """Nothing."""\n'
    )

    assert package_tree.short_docstrings(tree_of(tmp_path, {"a.py": text})) == [
        "api/a.py:1 A module.",
        "api/a.py:3 A class.",
        "api/a.py:7 Of a `-` kind.",
        "api/a.py:9 See `A`.",
    ]


def test_folders_of_pipeline_and_features_have_arrows(tmp_path: Path) -> None:
    """One for each pair, however many imports; other packages have none."""
    tree = tree_of(
        tmp_path,
        {
            "core/text.py": "from api.features.chat.turn import x\n",
            "pipeline/gate/loop.py": "from api.pipeline.gate import memory\nimport api.core.text\n",
            "pipeline/gate/memory.py": "",
            "features/chat/turn.py": "def f():\n    from api.pipeline.gate import loop\n",
            "features/chat/more.py": "from api.pipeline.gate.memory import y\n",
        },
    )

    assert package_tree.arrows(tree) == ["features/chat -> pipeline/gate"]


def test_a_circle_holds_all_that_import_one_another(tmp_path: Path) -> None:
    """Imports in functions and for type checkers count; what leads to a circle is not in it."""
    tree = tree_of(
        tmp_path,
        {
            "a.py": "if TYPE_CHECKING:\n    from api.b import x\n",
            "b.py": "def f():\n    import api.c\n",
            "c.py": "from api import a\nfrom api.below import y\n",
            "below.py": "",
            "above.py": "from api.a import z\n",
        },
    )

    assert package_tree.circles(tree) == ["api.a, api.b, api.c"]


PRODUCT = {
    "__init__.py": "",
    "interfaces/__init__.py": "",
    "interfaces/cli/__init__.py": "",
    "interfaces/cli/main.py": """
import asyncio
from api.interfaces.cli import commands
def run(words):
    asyncio.run(commands.fetch()) if words[0] == "fetch" else commands.serve(int(words[2]))
    raise SystemExit(0)
""",
    "interfaces/cli/commands.py": """
import asyncio
from http.server import BaseHTTPRequestHandler, HTTPServer
from api import aside, loop
async def fetch():
    aside.look()
    await asyncio.gather(aside.wait(), loop.gather())
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        aside.look()
        self.send_response(200)
        self.end_headers()
    def do_POST(self):
        from api import lazy
        lazy.answer()
        self.do_GET()
    def log_message(self, *words): ...
def serve(port):
    HTTPServer(("127.0.0.1", port), Handler).serve_forever()
""",
    "loop.py": """
import asyncio
from api import client, thread
async def gather():
    await asyncio.create_task(attempt())
async def attempt():
    await thread.run(client.search)
""",
    "thread.py": """
import asyncio, contextvars, threading
async def run(job):
    context, done = contextvars.copy_context(), asyncio.Event()
    loop = asyncio.get_running_loop()
    def work():
        context.run(job)
        loop.call_soon_threadsafe(done.set)
    threading.Thread(target=work).start()
    await done.wait()
""",
    "client.py": """
import http.client, os
def search():
    connection = http.client.HTTPConnection(os.environ["HOST"])
    connection.request("GET", "/youtube/v3/search?q=1")
    connection.getresponse().read()
    connection.close()
""",
    "aside.py": "import asyncio\nlook = lambda: 1\nasync def wait(): await asyncio.sleep(0)\n",
    "lazy.py": "from api import imported\nclass A: ...\ndef answer(): ...\n",
    "imported.py": "def decorated(f): return f\n@decorated\ndef g(): ...\n",
}
"""A product of one search and one answer, and files that only seem to take part."""


def traced(what: str, tree: Tree, host: str = "") -> list[str]:
    """The files that `traced_files.py` sees in a tree."""
    target = tree.root / "seen.json"
    script = Path(package_figures.__file__).with_name("traced_files.py")
    subprocess.run(
        [sys.executable, script, what, target],
        env={**os.environ, "PYTHONPATH": str(tree.root), "HOST": host},
        cwd=tree.root,
        check=True,
        capture_output=True,
        timeout=60,
    )
    files: list[str] = json.loads(target.read_text())
    return files


def test_the_stack_of_the_search_leads_through_tasks_and_threads(tmp_path: Path) -> None:
    """Files that called and have returned are not on it, and each file counts once."""

    def answer(asked: Asked) -> Reply:
        return Reply(200, {"items": []})

    with Loopback(answer) as server:
        files = traced("socket", tree_of(tmp_path, PRODUCT), urlsplit(server.url).netloc)

    assert files == [
        "api/interfaces/cli/main.py",
        "api/interfaces/cli/commands.py",
        "api/loop.py",
        "api/thread.py",
        "api/client.py",
    ]


def test_a_post_runs_files_whose_functions_run(tmp_path: Path) -> None:
    """What ran before it, or only because it was imported, does not count."""
    files = traced("post", tree_of(tmp_path, PRODUCT))

    assert files == ["api/aside.py", "api/interfaces/cli/commands.py", "api/lazy.py"]


@pytest.mark.parametrize(
    ("what", "broken"),
    [
        ("socket", {"client.py": "def search(): ...\n"}),
        ("post", {"lazy.py": "def answer(): 1 / 0\n"}),
    ],
)
def test_a_question_without_an_answer_is_no_figure(tmp_path: Path, what: str, broken: dict[str, str]) -> None:
    """A product that fails runs few files, which would look good."""
    with pytest.raises(subprocess.CalledProcessError):
        traced(what, tree_of(tmp_path, PRODUCT | broken))


def committed(root: Path, message: str) -> str:
    """The hash of a commit of all that is there."""
    git = ["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@localhost"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", message], check=True)
    return package_figures.git(root, "rev-parse", "HEAD").decode().strip()


def test_the_table_holds_a_commit_beside_the_checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every figure that needs no running has a row, with what is aimed at."""
    tree_of(tmp_path, {"a.py": "import b\n"})
    then = committed(tmp_path, "then")
    tree_of(tmp_path, {"a.py": "# why\nimport b\n", "c.py": "\n\n"})

    package_figures.main(["--static", "--then", then, "--root", str(tmp_path)])

    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == f"| figure | {then} | {then[:7]}, changed | aimed at |"
    assert "| files | 1 | 2 | <= 285 |" in rows
    assert "| lines | 1 | 4 | <= 54,000 |" in rows
    assert "| lines of imports, % | 100.0 | 25.0 | < 7 |" in rows
    assert "| lines with a comment, % | 0.0 | 25.0 | >= 2 |" in rows
    assert len(rows) == 2 + len(package_figures.AIMS) - 3


def test_an_option_touches_the_files_of_its_commit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tests and pages that change with it are not counted."""
    tree_of(tmp_path, {"a.py": "", "b.py": ""})
    committed(tmp_path, "before")
    tree_of(tmp_path, {"a.py": "X = 1\n"})
    (tmp_path / "README.md").write_text("option")
    commit = committed(tmp_path, "an option")

    package_figures.main(["--static", "--option", commit, "--root", str(tmp_path)])
    assert "| files that a new option touches | 1 | <= 3 |" in capsys.readouterr().out

    figure = "files that a new option touches"
    package_figures.main(["--list", figure, "--option", commit, "--root", str(tmp_path)])
    assert capsys.readouterr().out == "api/a.py\n"


def test_a_list_names_what_a_figure_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line each."""
    tree_of(tmp_path, {"a.py": "", "b.py": ""})
    package_figures.main(["--list", "files", "--root", str(tmp_path)])

    assert capsys.readouterr().out == "api/a.py\napi/b.py\n"


def test_the_alias_is_a_program(root: Path, tmp_path: Path) -> None:
    """`python scripts/table.py` prints the table."""
    tree_of(tmp_path, {"a.py": ""})
    command: list[str | Path] = [sys.executable, root / "scripts" / "table.py"]

    command += ["--list", "files", "--root", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout == "api/a.py\n"
