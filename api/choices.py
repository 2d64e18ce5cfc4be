"""Values that callers and settings choose among, and the bounds of what a caller may send.

It imports nothing, so that the help of a command shows them without loading a library.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

DepthName = Literal["quick", "standard", "deep"]
Window = Literal["day", "week", "month", "year", "all"]
Aim = Literal["about", "mention"]
WINDOW_DAYS: Mapping[Window, int] = MappingProxyType(
    {"day": 1, "week": 7, "month": 31, "year": 366}
)
"""How many days back a window reaches, the shortest first; `all` is not among them."""
