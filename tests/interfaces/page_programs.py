"""Runs the programs that the documentation shows."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import textwrap
from contextlib import redirect_stdout
from pathlib import Path

from tests.interfaces.command import environment
from tests.interfaces.http.process import ROOT
from tests.snippets import blocks

ADDRESS = "http://127.0.0.1:8420"


def awaiting(*code: str) -> str:
    """A program of code that awaits at its top level."""
    body = textwrap.indent("\n".join(code), "    ")
    return f"import asyncio\n\nasync def main():\n{body}\n\nasyncio.run(main())\n"


def python(*code: str, **variables: str) -> str:
    """What such a program printed; our command stands in its path."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with (
        environment({**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), **variables}),
        redirect_stdout(io.StringIO()) as printed,
    ):
        exec(awaiting(*code), {"__name__": "example"})
    return printed.getvalue()


def started() -> list[tuple[list[str], dict[str, str]]]:
    """Every command of the page that starts the server, and its environment."""
    servers = [
        server
        for block in blocks("mcp.md", "json")
        for servers in json.loads(block).values()
        for server in servers.values()
    ]
    commands = [([s["command"], *s["args"]], s["env"]) for s in servers if "command" in s]
    (line,) = (block for block in blocks("mcp.md", "sh") if block.startswith("claude"))
    options, _, command = line.partition(" -- ")
    variable, _, value = shlex.split(options)[4].partition("=")
    return [*commands, (shlex.split(command), {variable: value})]
