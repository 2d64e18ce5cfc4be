"""Prints the size and shape of `api` beside what is aimed at; see `checks/package_figures.py`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().with_name("checks")))
runpy.run_module("package_figures", run_name="__main__")
