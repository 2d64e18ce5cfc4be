"""The page on Python in a real Jupyter notebook, whose kernel has a loop that never ends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.environments import python_client
from tests.snippets import ROOT, cells
from tests.usual import USUAL


@pytest.mark.nightly
def test_the_page_in_jupyter(tmp_path: Path) -> None:
    """Every cell runs and prints what it says; no cell prints a warning."""
    python = python_client("notebook")
    codes = [code for code in cells("docs/python.md") if "asyncio.run(" not in code]
    fields: dict[str, object] = {"metadata": {}, "outputs": [], "execution_count": None}
    written = [
        {"cell_type": "code", "id": f"cell-{number}", "source": code, **fields} for number, code in enumerate(codes)
    ]
    book = {"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = tmp_path / "listenpost.ipynb"
    path.write_text(json.dumps(book), "utf-8")

    done = subprocess.run(
        [python.with_name("jupyter-execute"), "--inplace", path],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            **USUAL,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
        },
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outputs = [cell["outputs"] for cell in json.loads(path.read_text("utf-8"))["cells"]]
    printed = ["".join(output["text"]) for (output,) in outputs]

    assert {output["name"] for (output,) in outputs} == {"stdout"}
    assert "Subscription, for example: “" in printed[0]
    assert printed[1].startswith("ok ")
    assert "Say which product" in printed[2]
    assert printed[3] == "1 0.5 ok 0.0\n"
