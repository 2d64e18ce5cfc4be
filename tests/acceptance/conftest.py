"""The product as people use it: the command in its own process, or built against a sandbox."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api import wiring
from api.sandbox.server import Sandbox
from api.sandbox.world import Options
from api.services import listening
from api.services.listening import Ask
from tests.services.kit import plain

COMMAND = str(Path(sys.executable).with_name("listenpost"))


@dataclass(frozen=True)
class Ended:
    """A command that has run."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed, as the one JSON object it must be."""
        return json.loads(self.out)


def listenpost(*words: str, env: dict[str, str] | None = None, stdin: str = "") -> Ended:
    """Run the command in an environment that holds nothing but `env`."""
    bare = {"PATH": os.environ["PATH"], "HOME": os.getcwd(), **(env or {})}
    done = subprocess.run(
        [COMMAND, *words], env=bare, input=stdin, capture_output=True, text=True, timeout=120
    )
    return Ended(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    """A sandbox of this test's own."""
    with Sandbox.start(options=Options(search_quota=10_000, reddit_limit=10_000)) as started:
        yield started


@pytest.fixture
async def built(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[wiring.Built]:
    """The product against that sandbox, configured through the environment as live."""
    for name, value in sandbox.environment.items():
        monkeypatch.setenv(name, value)
    product = wiring.build(wiring.load_settings())
    yield product
    await product.aclose()


async def analyzed(built: wiring.Built, query: str, **wanted: Any) -> dict[str, Any]:
    """The `analyze` object."""
    return plain(await listening.analyze(built.product, Ask(query, **wanted)))
