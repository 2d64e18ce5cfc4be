"""Stored reports made into today's when they are read; one that cannot be read says so.

The JSON of older versions goes through the steps between; that of a newer program is tried as it
is, since unknown fields are carried along.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from api.services.evidence.figures import Timeline, periods
from api.services.published import Published
from api.services.reporting.report import VERSION, Report, Summary

Step = Callable[[dict[str, Any]], dict[str, Any]]
P = TypeVar("P", bound=Published)


class Unreadable(Exception):
    """A stored report that this program cannot read; the text says where, not what is there."""


def version_of(document: Mapping[str, Any]) -> int:
    """The version a report says it has; 1 when it says nothing."""
    version = document.get("version")
    return version if isinstance(version, int) and version >= 1 else 1


@dataclass(frozen=True, slots=True)
class Upgrades:
    """How a report gets from the version it was written in to `to`."""

    steps: Mapping[int, Step]
    """Version -> what makes the next one of it; a step need not write `version` itself."""
    to: int

    def __call__(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """The report's JSON as version `to`; that of a newer program as it is.

        Raises:
            Unreadable: a step found something else than its version has.
        """
        now = dict(document)
        for version in range(version_of(document), self.to):
            try:
                now = {**self.steps[version](now), "version": version + 1}
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise Unreadable(f"its version {version} cannot be upgraded") from error
        return now

    def report(self, document: Mapping[str, Any]) -> Report:
        """The report of today's version.

        Raises:
            Unreadable: it is none, or one of a newer program that changed too much.
        """
        return _read(Report, self(document))

    def summary(self, document: Mapping[str, Any]) -> Summary:
        """What a listing shows of it, whatever else it holds.

        Raises:
            Unreadable: see `report`.
        """
        return _read(Summary, self(document))


def _read(shape: type[P], document: Mapping[str, Any]) -> P:
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors(include_input=False)[0]["loc"])
        raise Unreadable(f"version {version_of(document)}, at `{where}`") from error


def _second(report: dict[str, Any]) -> dict[str, Any]:
    """Version 2: findings show the passages that carry them; those of version 1 kept none.

    And a timeline holds its empty periods, which version 1 left out.
    """
    unshown = {"evidence": [], "support": "unverified"}
    findings = [{**finding, **unshown} for finding in report["findings"]]
    figures = dict(report["figures"])
    if "timeline" in figures:
        short = Timeline.model_validate(figures["timeline"])
        points = periods(short.unit, {period.start: period.count for period in short.points})
        figures["timeline"] = short.model_copy(update={"points": points}).model_dump(mode="json")
    return {**report, "findings": findings, "figures": figures}


TODAY = Upgrades(MappingProxyType({1: _second}), VERSION)
"""Every step there is; a version that is raised adds one here."""
