"""What there is in a Langfuse project, all of it read before anything is written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from api.dashboards.client import Server
from api.dashboards.definitions import COMMITTED, LABEL, Kind
from api.errors import ConfigurationError
from api.services.prompts import Prompt

Row = Mapping[str, Any]
OLDEST = (4, 59)
"""The first version with dashboards and scores as this package sends them."""
PATHS: Mapping[Kind, str] = {
    Kind.SCORE: "/score-configs",
    Kind.DATASET: "/v2/datasets",
    Kind.WIDGET: "/unstable/dashboard-widgets",
    Kind.DASHBOARD: "/unstable/dashboards",
}
PROMPTS = "/v2/prompts"


@dataclass(frozen=True, slots=True)
class Project:
    """The project that the keys belong to."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Pushed:
    """One prompt as it is there."""

    text: str | None = None
    """Of the version with our label; None: there is no such version."""
    labels: tuple[str, ...] = ()
    """Of that version."""
    in_production: bool = False
    """Some version is."""


@dataclass(frozen=True, slots=True)
class Stock:
    """What there is, whoever made it."""

    project: Project
    rows: Mapping[Kind, tuple[Row, ...]]
    """The oldest first."""
    prompts: Mapping[str, Pushed]


def read_stock(server: Server, prompts: Iterable[Prompt]) -> Stock:
    """Everything, by reading alone.

    Raises:
        ConfigurationError: the keys, the address or the version of the server do not fit.
        LangfuseError: it does not answer.
    """
    project = read_project(server)
    return Stock(
        project,
        {kind: read_rows(server, kind) for kind in Kind},
        {prompt.title: read_prompt(server, prompt.title) for prompt in prompts},
    )


def read_project(server: Server) -> Project:
    """The project of the keys, when the server is new enough; raises as `read_stock`."""
    health = server.get("/health")
    version = health.get("version") if isinstance(health, Mapping) else None
    numbers = re.match(r"v?(\d+)\.(\d+)", str(version))  # `4.59.0`, `v4.59.0-rc.1`
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST:
        raise ConfigurationError(
            f"Langfuse at `{server.host}` has version {numbers[0]}; dashboards need "
            f"{OLDEST[0]}.{OLDEST[1]} or newer: update the server"
        )
    projects = server.get("/projects")
    rows = projects.get("data") if isinstance(projects, Mapping) else None
    first = rows[0] if isinstance(rows, list) and rows else None
    if not isinstance(first, Mapping) or not first.get("id"):
        raise ConfigurationError(
            f"the keys belong to no project of Langfuse at `{server.host}`; make keys in the "
            "project's settings and set `LANGFUSE_PUBLIC_KEY` and `LANGFUSE_SECRET_KEY`"
        )
    return Project(str(first["id"]), str(first.get("name") or first["id"]))


def read_rows(server: Server, kind: Kind) -> tuple[Row, ...]:
    """Every row of one kind, the oldest first."""
    rows = server.pages(PATHS[kind])
    return tuple(sorted(rows, key=lambda row: (str(row.get("createdAt")), str(row.get("id")))))


def read_prompt(server: Server, name: str) -> Pushed:
    """The version of a prompt with our label, and whether any is in production."""
    path = prompt_path(name)
    ours = server.find(path, label=LABEL)
    if ours is not None:
        return Pushed(_text(ours), tuple(map(str, ours.get("labels") or ())), True)
    return Pushed(in_production=server.find(path, label="production") is not None)


def read_versions(server: Server, name: str) -> list[int]:
    """Versions of a prompt that this package pushed."""
    rows = server.pages(PROMPTS, name=name)
    numbers = [number for row in rows if row.get("name") == name for number in row["versions"]]
    versions = ((number, server.find(prompt_path(name), version=number)) for number in numbers)
    return [number for number, row in versions if row and row.get("commitMessage") == COMMITTED]


def prompt_path(name: str) -> str:
    """The path of a prompt; the slash of a folder is part of its name."""
    return f"{PROMPTS}/{quote(name, safe='')}"


def _text(row: Row) -> str | None:
    text = row.get("prompt")
    return text if isinstance(text, str) else None
