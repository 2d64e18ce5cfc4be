"""The server of the page on MCP as `uvx` starts it: nothing of it is installed before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from api.settings import SourceSettings
from api.sources import default_sources
from tests.clients.environments import python_client
from tests.interfaces.page_programs import started
from tests.snippets import ROOT

PLACES = default_sources(SourceSettings())
"""Sources that are switched on by default: each has a tool."""


@pytest.fixture
def server(tmp_path: Path) -> StdioServerParameters:
    """What the page configures, run once by hand, as it says; then nothing is left to install."""
    uvx = python_client("uv").with_name("uvx")
    ((command, environment),) = (entry for entry in started() if entry[0][0] == "uvx")
    option, checkout, program, *words = command[1:]
    assert (option, checkout) == ("--from", "/path/to/listenpost[mcp]")
    variables = {
        **os.environ,  # the registry is asked as this machine asks it
        "UV_CACHE_DIR": str(uvx.parents[1] / "cache"),
        "UV_PYTHON": sys.executable,
        "UV_SYSTEM_CERTS": "1",  # as pip trusts
        "LISTENPOST_DATABASE_URL": f"sqlite+aiosqlite:///{tmp_path}/mcp.db",
        **environment,
    }

    done = subprocess.run(
        [uvx, option, f"{ROOT}[mcp]", program, "--version"],
        env=variables, cwd=tmp_path, capture_output=True, text=True, timeout=120,
    )  # fmt: skip

    if "Failed to fetch" in done.stderr:  # it does not read how pip reaches its registry
        pytest.skip(f"uv reaches no package registry: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("listenpost ")
    return StdioServerParameters(
        command=str(uvx),
        args=[option, f"{ROOT}[mcp]", program, *words],
        env={**variables, "UV_OFFLINE": "1"},
        cwd=tmp_path,
    )


@pytest.mark.nightly
async def test_a_checkout_is_served_without_an_installation(server: StdioServerParameters) -> None:
    """A client starts it and hears what it hears of an installed one."""
    async with Client(stdio_client(server)) as client:
        tools = (await client.list_tools()).tools
        answer = await client.call_tool("fetch_reddit", {"query": "plaud.ai"})

    assert len(tools) == len(PLACES) + 8
    assert "sample data" in str(answer.content)
