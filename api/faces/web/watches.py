"""`/v1/watches`: questions that are asked again and again, and what has changed meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from api.faces.watches import WatchView, watch_view
from api.faces.web.access import Asker, Opened
from api.faces.web.analyses import COMMON
from api.faces.web.errors import WRONG_LIMIT, documented
from api.faces.web.events import GONE, unless_gone
from api.faces.web.schemas import About, RequestBody, SourceName
from api.faces.web.schemas import Query as Question
from api.services.listening import MAX_LIMIT
from api.services.watching.run import WatchRun
from api.services.watching.running import changed, utc_now, watch_of
from api.services.watching.watch import (
    MOST_TARGETS,
    Only,
    Watch,
    name_of_query,
    new_watch,
    target_of,
)
from api.settings import DepthName
from api.wiring.watching import keep_watch
from api.wiring.watching import run_watch as ran_now

router = APIRouter(prefix="/v1/watches", tags=["watches"])
_COMMON = (422, *COMMON)
Every = Annotated[
    str,
    Field(max_length=60, description="`mon,thu 08:00`, `daily 08:00`, `hourly`, `every 15 min`."),
]
Zone = Annotated[str, Field(max_length=60, description="Whose clock: `Europe/Berlin`.")]
Places = Annotated[tuple[SourceName, ...], Field(max_length=20, description="Empty: all.")]
OnlyTold = Annotated[Only | None, Field(description="Tell nothing else.")]
Targets = Annotated[
    tuple[Annotated[str, Field(max_length=2_000)], ...],
    Field(
        max_length=MOST_TARGETS,
        description="`https://...`, `slack:https://...` or `mailto:ann@example.org`.",
    ),
]
Name = Annotated[str, Field(max_length=100, description="Empty: as it asks.")]


def _of_watch(given: Mapping[str, Any]) -> dict[str, Any]:
    """These fields by the names that a watch has for them; nobody's files are written over HTTP.

    Raises:
        UsageError: somebody who is to be told is no address.
    """
    fields = {{"tz": "zone"}.get(name, name): value for name, value in given.items()}
    if "notify" in fields:
        fields["notify"] = tuple(target_of(text, files=False) for text in fields["notify"])
    return fields


class WatchRequest(RequestBody):
    """What to watch, when, and who is to be told."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "plaud.ai", "every": "mon 08:00", "tz": "Europe/Berlin"}]
        }
    )
    query: Question
    every: Every = "mon 08:00"
    tz: Zone = "UTC"
    about: About = ""
    sources: Places = ()
    depth: DepthName = "standard"
    limit: Annotated[int | None, Field(ge=1, le=MAX_LIMIT)] = None
    only: OnlyTold = None
    notify: Targets = ()
    tell_first: Annotated[bool, Field(description="Tell of the first run, too.")] = False
    name: Name = ""
    sandbox: Annotated[
        bool, Field(strict=True, description="Made-up data, on a server that is live too.")
    ] = False

    def fields(self) -> dict[str, Any]:
        """By the names that a watch has for them.

        Raises:
            UsageError: somebody who is to be told is no address.
        """
        fields = _of_watch(self.model_dump())
        return fields | {"name": self.name or name_of_query(self.query)}

    def watch(self, tenant: str) -> Watch:
        """A new one.

        Raises:
            UsageError: somebody who is to be told is no address.
        """
        return replace(new_watch(tenant, self.query, self.every, utc_now()), **self.fields())


class WatchPatch(RequestBody):
    """What to change; what is left out, or null, stays; `only` is taken away by null."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"paused": True}]})
    paused: bool | None = None
    query: Question | None = None
    about: About | None = None
    sources: Places | None = None
    depth: DepthName | None = None
    every: Every | None = None
    tz: Zone | None = None
    only: OnlyTold = None
    notify: Annotated[Targets | None, Field(description="All who are told, anew.")] = None
    name: Name | None = None

    def fields(self) -> dict[str, Any]:
        """By the names that a watch has for them.

        Raises:
            UsageError: somebody who is to be told is no address.
        """
        given = self.model_dump(exclude_none=True)
        return _of_watch(given | ({"only": self.only} if "only" in self.model_fields_set else {}))


class NewWatch(WatchView):
    """A watch that was added, with the secret that signs its webhooks: shown this once."""

    secret: str


class WatchList(BaseModel):
    """Watches, oldest first."""

    watches: list[WatchView]


class RunsQuery(RequestBody):
    """How many."""

    limit: Annotated[int, Field(ge=1, le=100)] = 20


class RunList(BaseModel):
    """Runs, newest first."""

    runs: list[WatchRun]


@router.post("", status_code=201, responses=documented(413, *_COMMON), summary="Watch a product")
async def add_watch(body: WatchRequest, tenant: Asker, house: Opened) -> NewWatch:
    """It is due at once; its first run is what later ones are compared with."""
    watch = body.watch(tenant.id)
    await keep_watch(house.store, watch, new=True)
    return NewWatch(**dict(watch_view(watch)), secret=watch.secret)


@router.get("", responses=documented(*_COMMON), summary="List watches")
async def list_watches(tenant: Asker, house: Opened) -> WatchList:
    """Yours only."""
    return WatchList(watches=list(map(watch_view, await house.store.watches(tenant.id))))


@router.get("/{watch_id}", responses=documented(404, *_COMMON), summary="Read a watch")
async def read_watch(watch_id: str, tenant: Asker, house: Opened) -> WatchView:
    """By its id or its name."""
    return watch_view(await watch_of(house.store, tenant.id, watch_id))


@router.patch("/{watch_id}", responses=documented(404, 413, *_COMMON), summary="Change a watch")
async def change_watch(watch_id: str, body: WatchPatch, tenant: Asker, house: Opened) -> WatchView:
    """Pause it, let it go on, or ask otherwise from the next run on.

    What was dropped by another `query`, `about` or `sources` is judged anew.
    """
    watch = changed(await watch_of(house.store, tenant.id, watch_id), body.fields())
    await keep_watch(house.store, watch, new=False)
    return watch_view(watch)


@router.delete(
    "/{watch_id}", status_code=204, responses=documented(404, *_COMMON), summary="Remove a watch"
)
async def remove_watch(watch_id: str, tenant: Asker, house: Opened) -> None:
    """With its runs and what it has seen; its reports stay."""
    watch = await watch_of(house.store, tenant.id, watch_id)
    await house.store.drop_watch(tenant.id, watch.id)


@router.post(
    "/{watch_id}/run",
    responses=documented(404, 409, *_COMMON),
    response_model=WatchRun,
    summary="Run a watch now",
)
async def run_watch(
    request: Request, watch_id: str, tenant: Asker, house: Opened
) -> WatchRun | Response:
    """Due or not, within your limits like any analysis; who is to be told is told."""
    watch = await watch_of(house.store, tenant.id, watch_id)
    running = ran_now(house, watch)
    return await unless_gone(request.receive, running) or Response(status_code=GONE)


@router.get(
    "/{watch_id}/runs",
    responses=documented(404, *_COMMON, wrong=WRONG_LIMIT),
    summary="List the runs of a watch",
)
async def list_runs(
    watch_id: str, tenant: Asker, house: Opened, query: Annotated[RunsQuery, Query()]
) -> RunList:
    """Each with what changed, and whether those who are told could be reached."""
    watch = await watch_of(house.store, tenant.id, watch_id)
    runs = await house.store.watch_runs(tenant.id, watch.id, query.limit)
    return RunList(runs=list(runs))
