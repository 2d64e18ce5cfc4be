"""Questions that are asked again and again: added, paused, run now, and what was new each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.errors import UsageError
from api.faces import outline
from api.faces.trends import UNHEARD, volume_svg
from api.faces.watches import watch_view
from api.faces.web.access import Opened
from api.faces.web.events import GONE, unless_gone
from api.faces.web.pages.access import Filled, Guest, Submission, Visitor
from api.faces.web.pages.fields import validated
from api.faces.web.pages.screen import PageRoute, page
from api.faces.web.watches import WatchRequest
from api.services.watching.deliveries import trial
from api.services.watching.run import Delivery
from api.services.watching.running import changed, utc_now, watch_of
from api.services.watching.telling import headline
from api.services.watching.trend import read_trend
from api.services.watching.watch import Watch
from api.settings import DepthName
from api.sources import SOURCES
from api.wiring.serving import House
from api.wiring.watching import keep_watch, notifier_of, run_watch

router = APIRouter(prefix="/watches", include_in_schema=False, route_class=PageRoute)
RUNS = 20
"""Runs of a watch on its page, the newest."""
_EMPTY = {
    "query": "", "about": "", "name": "", "every": "mon 08:00", "tz": "UTC",
    "depth": "standard", "notify": "", "only": "", "tell_first": "",
}  # fmt: skip


@router.get("")
async def watches_page(
    request: Request, visitor: Guest, house: Opened, query: str = ""
) -> Response:
    """All of them, oldest first, and a form for another."""
    return await _list(request, visitor, house, _EMPTY | {"query": query[:500]})


@router.post("")
async def add(request: Request, form: Filled, house: Opened) -> Response:
    """Watch a product; the secret by which webhooks are signed is shown this once."""
    visitor, fields = form.visitor, {name: form.text(name) for name in _EMPTY}
    sources = form.fields.get("source", [])
    try:
        wanted = validated(
            WatchRequest,
            fields | {"sources": sources, "notify": fields["notify"].split()},
        )
        watch = wanted.watch(visitor.tenant.id)
        await keep_watch(house.store, watch, new=True)
    except UsageError as error:
        return await _list(request, visitor, house, fields, sources, wrong=error.public)
    if any(target.kind == "webhook" for target in watch.notify):
        return page(
            request, visitor, "watch_added.html",
            title=f"Watching: {watch.name}", id=watch.id, secret=watch.secret,
        )  # fmt: skip
    return _shown(watch)


@router.get("/{watch_id}")
async def watch_page(request: Request, watch_id: str, visitor: Guest, house: Opened) -> Response:
    """What it asks and when, and its last runs."""
    watch = await watch_of(house.store, visitor.tenant.id, watch_id)
    return await _detail(request, visitor, house, watch)


@router.get("/{watch_id}/remove")
async def remove_page(request: Request, watch_id: str, visitor: Guest, house: Opened) -> Response:
    """Asks whether it shall go."""
    watch = await watch_of(house.store, visitor.tenant.id, watch_id)
    return page(request, visitor, "remove_watch.html", title=f"Remove: {watch.name}", id=watch.id)


@router.post("/{watch_id}/remove")
async def remove(watch_id: str, form: Filled, house: Opened) -> Response:
    """With its runs and what it has seen; its reports stay."""
    watch = await _watch(form, house, watch_id)
    await house.store.drop_watch(watch.tenant, watch.id)
    return RedirectResponse("/watches", 303)


@router.post("/{watch_id}/pause")
async def pause(watch_id: str, form: Filled, house: Opened) -> Response:
    """Run it no more, except by hand."""
    return await _paused(form, house, watch_id, paused=True)


@router.post("/{watch_id}/resume")
async def resume(watch_id: str, form: Filled, house: Opened) -> Response:
    """Run it again when it is due."""
    return await _paused(form, house, watch_id, paused=False)


@router.post("/{watch_id}/run")
async def run(request: Request, watch_id: str, form: Filled, house: Opened) -> Response:
    """Due or not; the page comes when it has ended, and who is to be told is told."""
    watch = await _watch(form, house, watch_id)
    ended = await unless_gone(request.receive, run_watch(house, watch))
    return Response(status_code=GONE) if ended is None else _shown(watch)


@router.post("/{watch_id}/try")
async def try_telling(request: Request, watch_id: str, form: Filled, house: Opened) -> Response:
    """Send a trial to everybody who is told, and say what became of it."""
    watch = await _watch(form, house, watch_id)
    sending = trial(notifier_of(house.settings).send, watch)
    deliveries = await unless_gone(request.receive, sending)
    if deliveries is None:
        return Response(status_code=GONE)
    return await _detail(request, form.visitor, house, watch, deliveries)


async def _detail(
    request: Request,
    visitor: Visitor,
    house: House,
    watch: Watch,
    tried: Sequence[Delivery] = (),
) -> Response:
    runs = await house.store.watch_runs(watch.tenant, watch.id, RUNS)
    trend = await read_trend(house.store, watch, utc_now())
    return page(
        request, visitor, "watch.html",
        title=watch.name,
        watch=watch_view(watch),
        runs=[(headline(watch, run), run) for run in runs],
        lines=trend.lines,
        volume_svg=volume_svg,
        unheard=UNHEARD,
        tried=tried,
    )  # fmt: skip


async def _paused(form: Submission, house: House, watch_id: str, *, paused: bool) -> Response:
    watch = changed(await _watch(form, house, watch_id), {"paused": paused})
    await keep_watch(house.store, watch, new=False)
    return _shown(watch)


async def _watch(form: Submission, house: House, watch_id: str) -> Watch:
    return await watch_of(house.store, form.visitor.tenant.id, watch_id)


def _shown(watch: Watch) -> Response:
    return RedirectResponse(f"/watches/{watch.id}", 303)


async def _list(
    request: Request,
    visitor: Visitor,
    house: House,
    fields: dict[str, str],
    sources: list[str] | None = None,
    wrong: str = "",
) -> Response:
    return page(
        request, visitor, "watches.html", 422 if wrong else 200,
        title="Watches",
        watches=[watch_view(watch) for watch in await house.store.watches(visitor.tenant.id)],
        form=fields,
        sources=sources or [],
        places=[(name, outline.source_title(name)) for name in SOURCES],
        depths=[(name, name) for name in get_args(DepthName)],
        wrong=wrong,
    )  # fmt: skip
