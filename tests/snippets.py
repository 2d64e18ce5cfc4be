"""The commands of a page, and its Python as a notebook runs it: cell after cell, in one loop.

As a program it reads the cells from stdin, as JSON.
"""

from __future__ import annotations

import ast
import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from inspect import CO_COROUTINE
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# a fence with its language, also in a list, where it is indented: "   ```sh"
_BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.M | re.S)
# how a command begins: "listenpost eval ...", ".venv/bin/listenpost", "$ curl ...", "scripts/demo"
_COMMAND = re.compile(
    r"^(?:\$ )?(?:(?:\.venv/bin/)?listenpost|uvx?|npx?|pipx?|python3?|curl|docker|git|claude|export"
    r"|openapi-[\w-]+|scripts/\w+)(?: (?! )|$)"
)


def shown(text: str) -> list[tuple[str, str]]:
    """The blocks of a page's text: language, empty where none is named, and code."""
    return [(language, textwrap.dedent(code)) for _, language, code in _BLOCK.findall(text)]


def cells(page: str, heading: str = "") -> list[str]:
    """The Python of a page, or of the part below one of its headings."""
    text = (ROOT / page).read_text("utf-8")
    if heading:
        level = heading.split()[0]
        text = re.split(rf"^#{{1,{len(level)}}} ", text.partition(f"{heading}\n")[2], flags=re.M)[0]
    return [code for language, code in shown(text) if language == "python"]


def blocks(page: str, *languages: str) -> list[str]:
    """The code of a page of `docs/` in these languages."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return [code for language, code in shown(text) if language in languages]


def commands(page: str, program: str = "listenpost") -> list[list[str]]:
    """The words of each call of a program in a page's blocks of shell, without the program."""
    line = re.compile(rf"^(?:\.venv/bin/)?{program} (.*)$", re.M)
    return [
        shlex.split(words, comments=True)
        for language, code in shown((ROOT / page).read_text("utf-8"))
        if language in {"sh", "bash"}
        for words in line.findall(code)
    ]


def commands_in(code: str) -> list[str]:
    """The lines of a block that call what pages call, whatever its language is named."""
    return [line for line in code.splitlines() if _COMMAND.match(line)]


def run(codes: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """What the cells print, in a process with these settings and no others."""
    done = subprocess.run(
        [sys.executable, "-P", __file__],  # not beside `tests/langfuse`
        input=json.dumps(codes),
        env={**os.environ, "PYTHONPATH": str(ROOT), **(variables or {})},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def _notebook(codes: Sequence[str]) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, code in enumerate(codes):
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compiled = compile(code, f"cell {number}", "exec", flags, dont_inherit=True)
        if "asyncio.run(" in code:  # a program of its own, not for a notebook
            await asyncio.to_thread(exec, compiled, names)
        elif compiled.co_flags & CO_COROUTINE:
            await eval(compiled, names)
        else:
            exec(compiled, names)


if __name__ == "__main__":
    asyncio.run(_notebook(json.load(sys.stdin)))
