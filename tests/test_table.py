"""Every figure of `scripts/table.py`, on trees small enough to count by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import counting
import table
from counting import Tree
from tests.loopback import Asked, Loopback, Reply


def grown(root: Path, files: dict[str, str]) -> Tree:
    """A tree with these files below `api/`."""
    for path, text in files.items():
        (root / "api" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / "api" / path).write_text(text, "utf-8")
    return Tree(root)


def test_files_and_lines_are_those_of_the_package(tmp_path: Path) -> None:
    """A file of a docstring alone is a file, but holds nothing."""
    tree = grown(
        tmp_path,
        {"__init__.py": "", "a.py": '"""Doc."""\n', "b/c.py": '"""Doc."""\n\nX = 1\n', "d.md": "d"},
    )
    (tmp_path / "outside.py").write_text("X = 1\n")

    assert counting.files(tree) == ["api/__init__.py", "api/a.py", "api/b/c.py"]
    assert counting.filled(tree) == ["api/b/c.py"]
    assert counting.lines(tree) == 4


def test_functions_are_counted_wherever_they_stand(tmp_path: Path) -> None:
    """Methods, nested and asynchronous ones too; a lambda is none."""
    text = "class A:\n def b(self):\n  async def c(): ...\nd = lambda: 1\n"

    assert counting.functions(grown(tmp_path, {"a.py": text})) == ["api/a.py:2 b", "api/a.py:3 c"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def _a(): ...\n_a()\n", ["_a"]),
        ("class B:\n def _a(self): ...\n def c(self): self._a()\n", ["_a"]),
        ("def _a(): ...\nTABLE = [_a]\n", ["_a"]),
        ("def _a(n): return n and _a(n - 1)\n_a(9)\n", ["_a"]),
        ("def _a(): ...\n_a()\n_a()\n", []),
        ("def _a(): ...\n", []),
        ("def a(): ...\na()\n", []),
        ("class B:\n def __a__(self): ...\nB.__a__\n", []),
    ],
    ids=[
        "function", "method", "reference", "recursion", "two callers", "no caller", "public",
        "magic",
    ],
)  # fmt: skip
def test_a_helper_used_once_is_private_and_referred_to_once(
    tmp_path: Path, text: str, names: list[str]
) -> None:
    """A name is looked for in the helper's own file only, since a private name belongs to it."""
    tree = grown(tmp_path, {"a.py": text, "b.py": "x._a, _a, y.a\n"})

    assert [line.split()[1] for line in counting.helpers_used_once(tree)] == names


def test_a_class_name_has_one_file(tmp_path: Path) -> None:
    """Two files with a name clash; twice in a file, or once private, does not."""
    tree = grown(
        tmp_path,
        {"a.py": "class Page: ...\nclass Asked: ...\nclass Asked: ...\n",
         "b.py": "def f():\n class Page: ...\nclass _Asked: ...\n"},
    )  # fmt: skip

    assert counting.shared_class_names(tree) == ["Page: api/a.py, api/b.py"]


def test_rooms_have_arrows_and_floors(tmp_path: Path) -> None:
    """A folder is one room; imports within it, and of other parts of the house, are no arrows."""
    tree = grown(
        tmp_path,
        {
            "services/__init__.py": '"""Services."""\n',
            "services/top.py": "def f():\n from api.services.gate.loop import x\nimport api\n",
            "services/gate/__init__.py": "",
            "services/gate/loop.py": "from api.services.gate.memory import y\n",
            "services/gate/memory.py": "import api.services.text\nfrom api.services import text\n",
            "services/text.py": "X = 1\n",
            "services/aside.py": "from api.services.text import X\n",
            "errors.py": "from api.services.top import z\n",
        },
    )
    rooms = counting.rooms(tree)

    assert sorted(rooms) == ["aside", "gate", "text", "top"]
    assert counting.arrows(rooms) == ["aside -> text", "gate -> text", "top -> gate"]
    assert counting.floors(rooms) == ["top", "gate", "text"]


def test_a_way_passes_all_rooms_of_a_ring() -> None:
    """A ring saves no floor."""
    assert counting.floors({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == list("abcd")
    assert counting.floors({}) == []


@pytest.mark.parametrize(
    ("code", "reads"),
    [
        ("report['sources']", 1),
        ("report['sources']['reddit']", 2),
        ("report.get('figures', {})", 1),
        ("report['sources'] = 1", 0),
        ("report[name], report[0], report.get(name), report.figures, report.pop('a')", 0),
        ("request.headers.get('accept'), headers['accept']", 0),
        ("os.environ.get('DISPLAY'), environ['DISPLAY']", 0),
        ("router.get('/{id}'), router.get('')", 0),
        ("x: Literal['a']", 0),
    ],
)
def test_string_keys_are_reads_of_a_dictionary(tmp_path: Path, code: str, reads: int) -> None:
    """Both forms count, wherever in faces they stand, and not elsewhere."""
    tree = grown(
        tmp_path,
        {"interfaces/web/page.py": code, "interfaces/cli/live.py": code, "services/a.py": code},
    )

    assert len(counting.string_key_reads(tree)) == 2 * reads
    assert len(counting.report_reads(tree)) == reads


PRODUCT = {
    "__init__.py": "",
    "interfaces/__init__.py": "",
    "interfaces/cli/__init__.py": "",
    "interfaces/cli/main.py": """
import asyncio
from api.interfaces.cli import door
def run(words):
    asyncio.run(door.fetch()) if words[0] == "fetch" else door.serve(int(words[2]))
    raise SystemExit(0)
""",
    "interfaces/cli/door.py": """
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
from api import thread, wire
async def gather():
    await asyncio.create_task(attempt())
async def attempt():
    await thread.run(wire.search)
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
    "wire.py": """
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
"""A product of one search and one answer, with what only looks as if it were on the way."""


def follow(what: str, tree: Tree, host: str = "") -> list[str]:
    """What `following.py` sees in a tree."""
    target = tree.root / "seen.json"
    script = Path(table.__file__).with_name("following.py")
    subprocess.run(
        [sys.executable, script, what, target],
        env={**os.environ, "PYTHONPATH": str(tree.root), "HOST": host},
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    files: list[str] = json.loads(target.read_text())
    return files


def test_the_way_to_the_wire_leads_through_tasks_and_threads(tmp_path: Path) -> None:
    """What was called and has returned, or runs beside it, is not on the way."""

    def answer(asked: Asked) -> Reply:
        return Reply()

    with Loopback(answer) as server:
        files = follow("wire", grown(tmp_path, PRODUCT), urlsplit(server.url).netloc)

    assert [asked.path for asked in server.asked] == ["/youtube/v3/search"]
    assert files == [
        f"api/{name}.py"
        for name in ("interfaces/cli/main", "interfaces/cli/door", "loop", "thread", "wire")
    ]  # fmt: skip


def test_a_post_passes_files_whose_functions_run(tmp_path: Path) -> None:
    """What ran before it, or only because it was imported, does not count."""
    files = follow("post", grown(tmp_path, PRODUCT))

    assert files == ["api/aside.py", "api/interfaces/cli/door.py", "api/lazy.py"]


@pytest.mark.parametrize(
    ("what", "broken"),
    [("wire", {"wire.py": "def search(): ...\n"}), ("post", {"lazy.py": "def answer(): 1 / 0\n"})],
)
def test_a_question_without_an_answer_is_no_figure(
    tmp_path: Path, what: str, broken: dict[str, str]
) -> None:
    """A product that fails passes few files, which would look like a good house."""
    with pytest.raises(subprocess.CalledProcessError):
        follow(what, grown(tmp_path, PRODUCT | broken))


def test_the_table_holds_a_commit_beside_the_checkout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then is what was committed, now what lies there."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    grown(tmp_path, {"a.py": "def _a(): ...\n_a()\n"})
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "One"], ["tag", "one"]):
        subprocess.run([*git, *words], check=True)
    grown(tmp_path, {"b.py": "def b(): ...\n"})

    table.main(["--root", str(tmp_path), "--then", "one", "--static"])
    rows = [row.strip("| ").split(" | ") for row in capsys.readouterr().out.splitlines()]

    assert rows[0][:2] == ["figure", "then (one)"]
    assert ["files", "1", "2", "150"] in rows
    assert ["lines", "2", "3", "23000"] in rows
    assert ["helpers used once, share", "100.0 %", "50.0 %", "15.0 %"] in rows
    assert not [row for row in rows if row[0].startswith("files from door")]


def test_a_list_names_what_a_figure_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One a line."""
    grown(tmp_path, {"a.py": "def _a(): ...\n_a()\n"})

    table.main(["--root", str(tmp_path), "--list", "helpers used once"])

    assert capsys.readouterr().out == "api/a.py:1 _a\n"
