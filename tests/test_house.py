"""Each house rule can fail, and passes what stands just inside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from house import check, main

pytestmark = pytest.mark.nightly

HOME = "/ho" + "me/someone/listenpost"
REGISTRY = "https://py" + "pi.org/simple"
BROAD = "try:\n    run()\nexcept {}:\n    pass\n"


def function(lines: int) -> str:
    """A function of that many lines."""
    return "def run() -> None:\n" + "    print()\n" * (lines - 1)


def checkout(root: Path, files: dict[str, str]) -> Path:
    """A checkout with these files."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, "utf-8")
    return root


BAD: dict[str, tuple[str, dict[str, str]]] = {
    "a long file": ("size", {"api/a.py": "\n" * 501}),
    "a long function": ("size", {"api/a.py": function(61)}),
    "a long method": (
        "size",
        {"api/a.py": "class A:\n" + "".join(f"    {x}\n" for x in function(61).splitlines())},
    ),
    "a bare except": ("except", {"api/a.py": BROAD.format("").replace(" :", ":")}),
    "except Exception": ("except", {"api/a.py": BROAD.format("Exception")}),
    "a broad except in a tuple": ("except", {"api/a.py": BROAD.format("(OSError, Exception)")}),
    "an interface's second broad except": (
        "except",
        {"api/interfaces/cli/a.py": 2 * BROAD.format("Exception")},
    ),
    "two where everything is contained": (
        "except",
        {"api/core/work.py": 2 * BROAD.format("Exception")},
    ),
    "one elsewhere in the product": (
        "except",
        {"api/services/tools.py": BROAD.format("Exception")},
    ),
    "a circle": (
        "circle",
        {"api/a.py": "from api.b import x\n", "api/b.py": "def f():\n    from api import a\n"},
    ),
    "a circle for type checkers": (
        "circle",
        {
            "api/a.py": "if TYPE_CHECKING:\n    from api.b import x\n",
            "api/b.py": "from api.a import y\n",
        },
    ),
    "a file of another folder's name": ("name", {"api/a/c.py": "\n", "api/b/c.py": "\n"}),
    "many short docstrings": (
        "docstring",
        {"api/__init__.py": 'X = 1\n"""Of three words."""\n' * 231},
    ),
    "a client in two files": (
        "client",
        {"api/a.py": "import praw\n", "api/b.py": "from praw.models import Submission\n"},
    ),
    "a class of another file's name": (
        "name",
        {"api/a.py": "class Item: ...\n", "api/b.py": "def f():\n    class Item: ...\n"},
    ),
    "a file with a vague name": ("name", {"api/told.py": "\n"}),
    "a vague name in a loop": ("name", {"api/a.py": "for one in items:\n    print(one)\n"}),
    "a vague name in a comprehension": ("name", {"api/a.py": "[one for one in items]\n"}),
    "a vague name for a parameter": (
        "name",
        {"api/a.py": "def show(*, found: str) -> None: ...\n"},
    ),
    "a vague name for a lambda's parameter": ("name", {"api/a.py": "key = lambda one: 1\n"}),
    "a vague name for a field": ("name", {"api/a.py": "class A:\n    asked: int\n"}),
    "a vague name for an attribute": ("name", {"api/a.py": "self._asked = 1\n"}),
    "a vague name for a function": ("name", {"api/a.py": "async def _told() -> None: ...\n"}),
    "a vague name for a method": ("name", {"api/a.py": "class A:\n    def said(self): ...\n"}),
    "a vague name for a class": ("name", {"api/a.py": "class Asked: ...\n"}),
    "a vague name after a walrus": ("name", {"api/a.py": "(found := run())\n"}),
    "a vague name after `as`": ("name", {"api/a.py": "with run() as absent: ...\n"}),
    "a vague name for an import": ("name", {"api/a.py": "import json as one\n"}),
    "a vague name for an error": ("name", {"api/a.py": "try: ...\nexcept OSError as told: ...\n"}),
    "a vague name in a pattern": (
        "name",
        {"api/a.py": "match run():\n    case [_, *apart]: ...\n    case str(_): ...\n"},
    ),
    "a vague name for a constant": ("name", {"api/a.py": "_PASSING = 1\n"}),
    "the name that stored sessions have, elsewhere": ("name", {"api/a.py": "asked = 1\n"}),
    "a mock": ("patch", {"tests/test_a.py": "from unittest.mock import Mock\n"}),
    "a mock module": ("patch", {"tests/test_a.py": "from unittest import mock\n"}),
    "monkeypatch.setattr": ("patch", {"tests/a.py": "def f(m): m.setattr(x, 'y', 1)\n"}),
    "monkeypatch.setitem": ("patch", {"tests/a.py": "def f(m): m.setitem(x, 'y', 1)\n"}),
    "setattr": ("patch", {"tests/a.py": "setattr(x, 'y', 1)\n"}),
    "a home folder": ("machine", {"docs/a.md": f"see {HOME}/README\n"}),
    "a registry": ("machine", {"requirements.lock": f"--index-url {REGISTRY}\n"}),
}


@pytest.mark.parametrize(("rule", "files"), BAD.values(), ids=BAD)
def test_a_broken_rule_is_found_once(tmp_path: Path, rule: str, files: dict[str, str]) -> None:
    """Every rule names the file and nothing else is reported."""
    found = check(checkout(tmp_path, files))

    assert [finding.rule for finding in found] == [rule]
    assert found[0].path in files


GOOD: dict[str, dict[str, str]] = {
    "exactly as long as allowed": {"api/a.py": "\n" * 440 + function(60)},
    "sizes outside the package": {"tests/test_a.py": "\n" * 400 + function(90)},
    "one broad except where everything is contained": {
        "api/core/work.py": BROAD.format("Exception"),
    },
    "one broad except per interface": {
        "api/interfaces/cli/main.py": BROAD.format("Exception"),
        "api/interfaces/web/app.py": BROAD.format("Exception"),
    },
    "vague names outside the package": {"tests/a.py": "told = [one for one in found]\n"},
    "vague names that are part of a name, or read": {
        "api/a.py": "found_items = one_line(row.one(), asked)\n",
    },
    "vague names that users and stored data hold": {
        "api/services/product.py": "\n",
        "api/features/chat/session.py": "class Saved:\n    asked: list[str]\n",
    },
    "a named except": {"api/a.py": BROAD.format("(OSError, ValueError)")},
    "imports for types only": {
        "api/a.py": "if TYPE_CHECKING:\n    import praw\n",
        "api/b.py": "import praw\n",
    },
    "a shared library": {"api/a.py": "import pydantic\n", "api/b.py": "import pydantic\n"},
    "the environment in tests": {"tests/a.py": "def f(m): m.setenv('A', 'b'), m.chdir('c')\n"},
    "a path in a URL": {"docs/a.md": "https://example.org" + HOME + "\n"},
    "no text": {"docs/a.bin": ""},
}


@pytest.mark.parametrize("files", GOOD.values(), ids=GOOD)
def test_what_is_allowed_passes(tmp_path: Path, files: dict[str, str]) -> None:
    """The rules have edges, and the inside of each is free."""
    assert check(checkout(tmp_path, files)) == []


def test_bytes_that_are_no_text_are_passed_over(tmp_path: Path) -> None:
    """A picture in the checkout does not stop the check."""
    (tmp_path / "logo.png").write_bytes(b"\x89PNG\xff" + HOME.encode())

    assert check(tmp_path) == []


def test_this_checkout_s_own_place_is_found(tmp_path: Path) -> None:
    """Wherever the checkout stands, no file may say so."""
    found = check(checkout(tmp_path, {"docs/a.md": f"run {tmp_path}/scripts/test\n"}))

    assert [finding.rule for finding in found] == ["machine"]


def test_a_finding_fails_the_run_and_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1 and the line says file, line, rule and number."""
    code = main([str(checkout(tmp_path, {"api/a.py": "\n" + function(61)}))])

    assert code == 1
    assert capsys.readouterr().out == "api/a.py:2: size: `run` has 61 lines (60 at most)\n"


def test_no_finding_passes_the_run(tmp_path: Path) -> None:
    """An empty checkout is fine."""
    assert main([str(tmp_path)]) == 0
