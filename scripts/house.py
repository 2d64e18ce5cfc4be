"""Runs `checks/house.py`, which moved there."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().with_name("checks")))
runpy.run_module("house", run_name="__main__")
