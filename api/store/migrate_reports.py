"""Reports of older versions, made into today's when they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from api.services.reporting.report import VERSION

Step = Callable[[dict[str, Any]], dict[str, Any]]


def version_of(report: Mapping[str, Any]) -> int:
    """The version a report says it has; 1 when it says nothing."""
    said = report.get("version")
    return said if isinstance(said, int) and said >= 1 else 1


@dataclass(frozen=True, slots=True)
class Upgrades:
    """How a report gets from the version it was written in to `to`."""

    steps: Mapping[int, Step]
    """Version -> what makes the next one of it; a step need not write `version` itself."""
    to: int

    def __call__(self, report: Mapping[str, Any]) -> dict[str, Any]:
        """The report as version `to`; one of a newer program is left as it is."""
        now = dict(report)
        for version in range(version_of(report), self.to):
            now = {**self.steps[version](now), "version": version + 1}
        return now


TODAY = Upgrades(MappingProxyType({}), VERSION)
"""Every step there is; a version that is raised adds one here."""
