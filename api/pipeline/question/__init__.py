"""The question: its product, its scope, and which queries may be sent."""

from __future__ import annotations

from dataclasses import dataclass

from api.choices import DepthName
from api.core.domain import Question
from api.settings import Depth


@dataclass(frozen=True, slots=True)
class Scope:
    """One question with the limits of its answer, except the time window."""

    question: Question
    depth_name: DepthName
    depth: Depth
    sources: tuple[str, ...]
    limit: int
    """Items that are asked of each source at first."""
