"""A product and posts about it, for tests of the report without a model."""

from __future__ import annotations

from typing import Any

from api.core.domain import Question
from api.reports.exhibits import Exhibit
from tests.reports.unsupported import exhibits_of
from tests.services.kit import post

LAMP = Question("Glow Lamp", "a desk light")


def exhibits(*bodies: str, **fields: Any) -> tuple[Exhibit, ...]:
    """Posts about the lamp with these bodies."""
    return exhibits_of(*(post(n, title=f"Glow Lamp {n}", body=body, **fields) for n, body in enumerate(bodies)))
