"""Questions that are asked again and again: added, changed, paused, run now, and what was new."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.errors import UsageError
from api.faces import outline
from api.faces.trends import first_week
from api.faces.watches import (
    clock_words,
    gap_words,
    schedule_words,
    target_words,
    watch_view,
)
from api.faces.web.access import Opened
from api.faces.web.events import GONE, unless_gone
from api.faces.web.pages.access import Ending, Filled, Guest, Submission
from api.faces.web.pages.asking import namesake_hint
from api.faces.web.pages.fields import faults
from api.faces.web.pages.pricing import price_of_runs
from api.faces.web.pages.screen import PageRoute, Visitor, page
from api.faces.web.pages.watch_form import FIELDS, WatchForm, receivers_of
from api.faces.web.timelines import watch_figure
from api.services.listening import Ask
from api.services.watching.changes import FEWEST_RUNS
from api.services.watching.deliveries import still_to_tell, undelivered
from api.services.watching.run import Delivery
from api.services.watching.running import changed, utc_now, watch_of
from api.services.watching.telling import result_of
from api.services.watching.trend import read_trend
from api.services.watching.watch import Watch
from api.settings import DepthName
from api.sources import SOURCES
from api.wiring import in_sandbox
from api.wiring.serving import House
from api.wiring.watching import keep_watch, run_watch

router = APIRouter(prefix="/watches", include_in_schema=False, route_class=PageRoute)
RUNS = 20
"""Runs of a watch on its page, the newest."""


@router.get("")
async def watches_page(
    request: Request, visitor: Guest, house: Opened, query: str = ""
) -> Response:
    """All of them, oldest first, and a form for another."""
    return await _list(request, visitor, house, WatchForm.empty(query[:500]))


@router.post("")
async def add(request: Request, form: Filled, house: Opened) -> Response:
    """Watch a product; the secret by which webhooks are signed is shown this once."""
    filled = WatchForm.sent(form)
    try:
        watch = filled.request().watch(form.visitor.tenant.id)
        hint = namesake_hint(watch.query, watch.about)
        if hint and form.text("sure") != watch.query:
            return await _list(request, form.visitor, house, filled, hint=hint)
        await keep_watch(house.store, watch, new=True)
    except UsageError as error:
        return await _list(request, form.visitor, house, filled, error)
    return _kept(request, form.visitor, watch, secret=watch.is_signed)


@router.get("/{watch_id}")
async def watch_page(request: Request, watch_id: str, visitor: Guest, house: Opened) -> Response:
    """What it asks and when, and its last runs."""
    watch = await watch_of(house.store, visitor.tenant.id, watch_id)
    return await watch_screen(request, visitor, house, watch)


@router.get("/{watch_id}/edit")
async def edit_page(request: Request, watch_id: str, visitor: Guest, house: Opened) -> Response:
    """What it asks, when, and who is told, to be written anew."""
    watch = await watch_of(house.store, visitor.tenant.id, watch_id)
    return await _edit(request, visitor, house, watch, WatchForm.of_watch(watch))


@router.post("/{watch_id}/edit")
async def edit(request: Request, watch_id: str, form: Filled, house: Opened) -> Response:
    """Ask otherwise from the next run on; whoever adds the first webhook is shown its secret."""
    watch, filled = await submitted_watch(form, house, watch_id), WatchForm.sent(form)
    try:
        new = changed(watch, filled.changes(watch))
        await keep_watch(house.store, new, new=False)
    except UsageError as error:
        return await _edit(request, form.visitor, house, watch, filled, error)
    return _kept(request, form.visitor, new, secret=new.is_signed and not watch.is_signed)


@router.get("/{watch_id}/remove")
async def remove_page(request: Request, watch_id: str, visitor: Guest, house: Opened) -> Response:
    """Asks whether it shall go."""
    watch = await watch_of(house.store, visitor.tenant.id, watch_id)
    return page(request, visitor, "remove_watch.html", title=f"Remove: {watch.name}", id=watch.id)


@router.post("/{watch_id}/remove")
async def remove(watch_id: str, form: Filled, house: Opened) -> Response:
    """With its runs and what it has seen; its reports stay."""
    watch = await submitted_watch(form, house, watch_id)
    await house.store.drop_watch(watch.tenant, watch.id)
    return RedirectResponse("/watches", 303)


@router.post("/{watch_id}/pause")
async def pause(watch_id: str, form: Ending, house: Opened) -> Response:
    """Run it no more, except by hand."""
    return await _paused(form, house, watch_id, paused=True)


@router.post("/{watch_id}/resume")
async def resume(watch_id: str, form: Filled, house: Opened) -> Response:
    """Run it again when it is due."""
    return await _paused(form, house, watch_id, paused=False)


@router.post("/{watch_id}/run")
async def run(request: Request, watch_id: str, form: Filled, house: Opened) -> Response:
    """Due or not; the page comes when it has ended, and who is to be told is told."""
    watch = await submitted_watch(form, house, watch_id)
    ended = await unless_gone(request.receive, run_watch(house, watch))
    return Response(status_code=GONE) if ended is None else shown_watch(watch)


async def submitted_watch(form: Submission, house: House, watch_id: str) -> Watch:
    """That of whoever has sent a form.

    Raises:
        NotFound: it is not theirs, or gone.
    """
    return await watch_of(house.store, form.visitor.tenant.id, watch_id)


def shown_watch(watch: Watch) -> Response:
    """On to its page."""
    return RedirectResponse(f"/watches/{watch.id}", 303)


async def watch_screen(
    request: Request,
    visitor: Visitor,
    house: House,
    watch: Watch,
    deliveries: Sequence[Delivery] = (),
    feed: str = "",
) -> Response:
    """Its page; with what came back of a message, or the new address of its feed."""
    runs = list(await house.store.watch_runs(watch.tenant, watch.id, RUNS))
    older = [run for run in await undelivered(house.store, watch) if run not in runs]
    missed = [run for run in older if still_to_tell(watch, run)]
    trend = await read_trend(house.store, watch, utc_now())
    dated = partial(clock_words, zone=watch.zone)
    return page(
        request, visitor, "watch.html",
        title=watch.name,
        watch=watch_view(watch),
        price=await _price(house, watch),
        runs=[
            (_sentence(result_of(watch, run, dated)), run, bool(still_to_tell(watch, run)))
            for run in [*runs, *missed[:RUNS]]
        ],
        lines=trend.lines,
        first_week=first_week,
        watch_figure=watch_figure,
        fewest=FEWEST_RUNS,
        deliveries=deliveries,
        feed=feed,
        gap_words=gap_words,
        target=target_words,
        **_clock(),
    )  # fmt: skip


async def _paused(form: Submission, house: House, watch_id: str, *, paused: bool) -> Response:
    watch = changed(await submitted_watch(form, house, watch_id), {"paused": paused})
    await keep_watch(house.store, watch, new=False)
    return shown_watch(watch)


def _kept(request: Request, visitor: Visitor, watch: Watch, *, secret: bool) -> Response:
    if not secret:
        return shown_watch(watch)
    return page(
        request, visitor, "watch_secret.html",
        title=f"Watching: {watch.name}", id=watch.id, secret=watch.secret,
    )  # fmt: skip


async def _list(
    request: Request,
    visitor: Visitor,
    house: House,
    form: WatchForm,
    error: UsageError | None = None,
    hint: str = "",
) -> Response:
    kept = await house.store.watches(visitor.tenant.id)
    return page(
        request, visitor, "watches.html", 422 if error else 200,
        title="Watches", watches=[watch_view(watch) for watch in kept],
        hint=hint, price=await _price_of_form(house, visitor, form),
        **_fields(form, error), **_clock(),
    )  # fmt: skip


async def _edit(
    request: Request,
    visitor: Visitor,
    house: House,
    watch: Watch,
    form: WatchForm,
    error: UsageError | None = None,
) -> Response:
    return page(
        request, visitor, "edit_watch.html", 422 if error else 200,
        title=f"Change: {watch.name}", id=watch.id, begun=watch.began_at is not None,
        receivers=receivers_of(watch), price=await _price_of_form(house, visitor, form),
        **_fields(form, error),
    )  # fmt: skip


async def _price_of_form(house: House, visitor: Visitor, form: WatchForm) -> str:
    """Of what stands in it; "" where that cannot be asked."""
    try:
        return await _price(house, form.draft(visitor.tenant.id))
    except UsageError:
        return ""


async def _price(house: House, watch: Watch) -> str:
    """What its runs cost; "" while libraries load, for which nobody shall wait."""
    if not house.loaded:
        return ""
    settings = in_sandbox(house.settings) if watch.sandbox else house.settings
    ask = Ask(watch.query, watch.depth, watch.sources, "all", watch.limit, watch.about)
    return await asyncio.to_thread(price_of_runs, settings, ask, watch.schedule)


def _sentence(phrase: str) -> str:
    return f"{phrase[:1].upper()}{phrase[1:]}"


def _clock() -> dict[str, Any]:
    """What the templates need to say when a watch runs."""
    return {"now": utc_now(), "clock": clock_words, "schedule": schedule_words}


def _fields(form: WatchForm, error: UsageError | None) -> dict[str, Any]:
    """What the template of the form needs; a message stands beside its field, or above all."""
    return {
        "form": form,
        "places": [(name, outline.source_title(name)) for name in SOURCES],
        "depths": [(name, name) for name in get_args(DepthName)],
        "wrong": faults(error, FIELDS) if error else {},
    }
