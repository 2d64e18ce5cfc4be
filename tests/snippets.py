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
from collections.abc import Mapping, Sequence
from inspect import CO_COROUTINE
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# `listenpost ...` or `.venv/bin/listenpost ...`, up to a comment
_COMMAND = re.compile(r"^(?:\.venv/bin/)?listenpost ?(.*?)(?: +#.*)?$", re.M)


def cells(page: str, heading: str = "") -> list[str]:
    """The Python of a page, or of the part below one of its headings."""
    text = (ROOT / page).read_text("utf-8")
    if heading:
        level = heading.split()[0]
        text = re.split(rf"^#{{1,{len(level)}}} ", text.partition(f"{heading}\n")[2], flags=re.M)[0]
    return _BLOCK.findall(text)


def blocks(page: str, *languages: str) -> list[str]:
    """The code of a page of `docs/` in these languages."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", text, re.M | re.S)


def commands(page: str) -> list[list[str]]:
    """The words of each command in a page's blocks of shell, without the program."""
    shell = re.findall(r"^```sh\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.M | re.S)
    return [shlex.split(words) for block in shell for words in _COMMAND.findall(block)]


def run(codes: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """What the cells print, in a process with these settings and no others."""
    done = subprocess.run(
        [sys.executable, __file__],
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
