"""What a person asks: where and how far to look, the query gate, the guard of queries."""

from __future__ import annotations

from dataclasses import dataclass

from api.choices import DepthName
from api.core.domain import Question
from api.settings import Depth


@dataclass(frozen=True, slots=True)
class Scope:
    """One question with everything that bounds its answer, but the time window."""

    question: Question
    depth_name: DepthName
    depth: Depth
    sources: tuple[str, ...]
    limit: int
    """Items per source at first."""
