"""Pages of watches: list, form, one watch with its runs, and its notifications."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.bootstrap import in_sandbox
from api.bootstrap.app_context import AppContext
from api.bootstrap.background_work import keep_watch, notifier_of, run_watch
from api.errors import UsageError
from api.features.analyses.api_keys import digest
from api.features.analyses.rejudging import with_chosen_sense
from api.features.analyses.share_links import open_feed
from api.features.watches.notification import result_of
from api.features.watches.trend import read_trend
from api.features.watches.unusual_changes import FEWEST_RUNS
from api.features.watches.watch import Target, Watch, with_rule
from api.features.watches.watch_run import NEWS, Delivery
from api.features.watches.watch_service import (
    changed_watch,
    find_watch,
    resend,
    run_to_resend,
    send_trial,
    undelivered_runs,
    undelivered_targets,
    utc_now,
)
from api.interfaces.http.access import OpenContext
from api.interfaces.http.event_stream import GONE, unless_gone
from api.interfaces.pages.ask_page import namesake_hint, price_of_runs
from api.interfaces.pages.forms import QuestionForm, faults, form_fields, texts_of
from api.interfaces.pages.history_charts import watch_figure
from api.interfaces.pages.screen import Ending, Filled, Guest, PageRoute, Submission, Visitor, page, server_of
from api.interfaces.shared import presentation
from api.interfaces.shared.chart_data import first_week
from api.interfaces.shared.watch_requests import WatchRequest
from api.interfaces.shared.watch_view import (
    clock_words,
    gap_words,
    meaning_words,
    requested_watch,
    schedule_words,
    target_words,
    watch_fields,
    watch_view,
)
from api.services.product import Ask, QuestionOptions, question_of
from api.sources import ALL_SOURCES, SOURCES


@dataclass(frozen=True, slots=True)
class WatchForm(QuestionForm):
    """The values of the fields in the form of a watch."""

    kept: Sequence[str] = ()
    """Marks of present receivers that are to stay."""
    offered: Sequence[str] = ()
    """Marks of the receivers that the form showed; others may have been added since."""
    rules: Mapping[str, str] = field(default_factory=dict)
    """The words of each receiver's rule, by its mark."""

    @classmethod
    def empty(cls, query: str) -> WatchForm:
        """The form of a watch that is to be added."""
        return cls.sent({"query": [query]})

    @classmethod
    def of_watch(cls, watch: Watch) -> WatchForm:
        """The watch as it is stored; addresses may hold secrets, so receivers are marks."""
        view = watch_view(watch)
        texts = {name: _typed(getattr(view, name)) for name in texts_of(WatchRequest, {})}
        rules = {mark: target.rule for mark, target in _marked(watch)}
        return cls(WatchRequest, {**texts, "notify": ""}, watch.sources, list(rules), rules=rules)

    @classmethod
    def sent(cls, fields: Mapping[str, Sequence[str]]) -> WatchForm:
        """The form as a person has sent it."""
        notify = {"notify": "".join(fields.get("notify", ())[:1])}
        texts = texts_of(WatchRequest, fields)
        if (often := "".join(fields.get("often", ())[:1])) and not any(fields.get("every", ())):
            texts |= {"every": often}
        sources, kept, offered = (fields.get(name, ()) for name in ("source", "kept", "offered"))
        rules = dict(zip(offered, fields.get("rule", ()), strict=False))
        return cls(WatchRequest, texts | notify, sources, kept, offered, rules)

    def watch_request(self, **more: object) -> WatchRequest:
        """The request, with what the form has no field for.

        Raises:
            UsageError: a field holds what none of ours offers.
        """
        question_of(QuestionOptions(self.texts["query"]))
        request: WatchRequest = self.request(
            notify=[text for text in _BETWEEN.split(self.texts["notify"].strip()) if text], **more
        )
        return request

    def changes(self, watch: Watch) -> dict[str, Any]:
        """The fields of a watch after the change.

        Raises:
            UsageError: a field holds what none of ours offers, or somebody is no address.
        """
        more: dict[str, object] = {"limit": watch.limit, "sandbox": watch.sandbox}
        if watch.began_at is not None:  # its first run is over, so the form does not ask
            more["tell_first"] = watch.tell_first
        fields = watch_fields(self.watch_request(**more))
        kept = [
            with_rule(target, self.rules.get(mark, target.rule))
            for mark, target in _marked(watch)
            if mark in self.kept or mark not in self.offered
        ]
        return fields | {"notify": (*kept, *fields["notify"])}


# Between receivers; a rule behind one names none: `mailto:ann@example.org digest 08:00`.
_BETWEEN = re.compile(r"(?<!\s)\s+(?=[a-z]+:)", re.IGNORECASE)


def _typed(value: object) -> str:
    """Value of an option as text of its field; a list has one entry per line."""
    return "\n".join(value) if isinstance(value, tuple) else str(value or "")


def receivers_of(watch: Watch) -> list[tuple[str, str]]:
    """The mark of each receiver, and its kind and server in words."""
    return [(mark, target_words(target.shown)) for mark, target in _marked(watch)]


def _marked(watch: Watch) -> Iterator[tuple[str, Target]]:
    for target in watch.notify:
        yield digest(f"{watch.id} {target.kind} {target.address} {target.rule}".rstrip()), target


router = APIRouter(prefix="/watches", include_in_schema=False, route_class=PageRoute)
RUNS = 20
"""Runs of a watch on its page, the newest."""


@router.get("")
async def watches_page(request: Request, visitor: Guest, app_context: OpenContext, query: str = "") -> Response:
    """All of them, oldest first, and a form for another."""
    return await _list(request, visitor, app_context, WatchForm.empty(query[:500]))


@router.post("")
async def add(request: Request, form: Filled, app_context: OpenContext) -> Response:
    """Add a watch; the secret that signs webhook messages is shown only once."""
    filled = WatchForm.sent(form.fields)
    try:
        requested = requested_watch(filled.watch_request(), form.visitor.tenant.id)
        watch = await with_chosen_sense(app_context.store, requested.tenant, requested)
        hint = namesake_hint(watch.query, watch.about)
        if hint and form.text("sure") != watch.query:
            return await _list(request, form.visitor, app_context, filled, hint=hint)
        await keep_watch(app_context.store, watch, new=True)
    except UsageError as error:
        return await _list(request, form.visitor, app_context, filled, error)
    return _kept(request, form.visitor, watch, secret=watch.is_signed)


@router.get("/{watch_id}")
async def watch_page(request: Request, watch_id: str, visitor: Guest, app_context: OpenContext) -> Response:
    """What it asks and when, and its last runs."""
    watch = await find_watch(app_context.store, visitor.tenant.id, watch_id)
    return await watch_screen(request, visitor, app_context, watch)


@router.get("/{watch_id}/edit")
async def edit_page(request: Request, watch_id: str, visitor: Guest, app_context: OpenContext) -> Response:
    """What it asks, when, and its receivers, to be written anew."""
    watch = await find_watch(app_context.store, visitor.tenant.id, watch_id)
    return await _edit(request, visitor, app_context, watch, WatchForm.of_watch(watch))


@router.post("/{watch_id}/edit")
async def edit(request: Request, watch_id: str, form: Filled, app_context: OpenContext) -> Response:
    """Change a watch from its next run on; when the first webhook is added, its secret is shown."""
    watch, filled = await submitted_watch(form, app_context, watch_id), WatchForm.sent(form.fields)
    try:
        new = changed_watch(watch, filled.changes(watch))
        await keep_watch(app_context.store, new, new=False)
    except UsageError as error:
        return await _edit(request, form.visitor, app_context, watch, filled, error)
    return _kept(request, form.visitor, new, secret=new.is_signed and not watch.is_signed)


@router.get("/{watch_id}/remove")
async def remove_page(request: Request, watch_id: str, visitor: Guest, app_context: OpenContext) -> Response:
    """Asks to confirm that a watch is removed."""
    watch = await find_watch(app_context.store, visitor.tenant.id, watch_id)
    return page(request, visitor, "remove_watch.html", title=f"Remove: {watch.name}", id=watch.id)


@router.post("/{watch_id}/remove")
async def remove(watch_id: str, form: Filled, app_context: OpenContext) -> Response:
    """Delete a watch with its runs and the posts it has seen; its reports stay."""
    watch = await submitted_watch(form, app_context, watch_id)
    await app_context.store.drop_watch(watch.tenant, watch.id)
    return RedirectResponse("/watches", 303)


@router.post("/{watch_id}/pause")
async def pause(watch_id: str, form: Ending, app_context: OpenContext) -> Response:
    """Run it no more, except by hand."""
    return await _paused(form, app_context, watch_id, paused=True)


@router.post("/{watch_id}/resume")
async def resume(watch_id: str, form: Filled, app_context: OpenContext) -> Response:
    """Run it again when it is due."""
    return await _paused(form, app_context, watch_id, paused=False)


@router.post("/{watch_id}/run")
async def run(request: Request, watch_id: str, form: Filled, app_context: OpenContext) -> Response:
    """Run a watch now and show its page when the run has ended; its receivers are notified."""
    watch = await submitted_watch(form, app_context, watch_id)
    ended = await unless_gone(request.receive, run_watch(app_context, watch))
    return Response(status_code=GONE) if ended is None else shown_watch(watch)


async def submitted_watch(form: Submission, app_context: AppContext, watch_id: str) -> Watch:
    """The watch of the person who has sent a form.

    Raises:
        NotFound: it is not theirs, or gone.
    """
    return await find_watch(app_context.store, form.visitor.tenant.id, watch_id)


def shown_watch(watch: Watch) -> Response:
    """Redirect to the watch's page."""
    return RedirectResponse(f"/watches/{watch.id}", 303)


async def watch_screen(
    request: Request,
    visitor: Visitor,
    app_context: AppContext,
    watch: Watch,
    deliveries: Sequence[Delivery] = (),
    feed: str = "",
) -> Response:
    """The page of a watch; with what came back from receivers of a message, or with the new address of its feed."""
    runs = list(await app_context.store.watch_runs(watch.tenant, watch.id, RUNS))
    older = [run for run in await undelivered_runs(app_context.store, watch) if run not in runs]
    missed = [run for run in older if undelivered_targets(watch, run)]
    trend = await read_trend(app_context.store, watch, utc_now())
    dated = partial(clock_words, zone=watch.zone)
    return page(
        request, visitor, "watch.html",
        title=f"Watch: {watch.name}",
        watch=watch_view(watch),
        meaning=meaning_words(watch),
        news=NEWS[watch.only].label,
        price=await _price(app_context, watch),
        runs=[
            (_sentence(result_of(watch, run, dated)), run, bool(undelivered_targets(watch, run)))
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


async def _paused(form: Submission, app_context: AppContext, watch_id: str, *, paused: bool) -> Response:
    watch = changed_watch(await submitted_watch(form, app_context, watch_id), {"paused": paused})
    await keep_watch(app_context.store, watch, new=False)
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
    app_context: AppContext,
    form: WatchForm,
    error: UsageError | None = None,
    hint: str = "",
) -> Response:
    kept = await app_context.store.watches(visitor.tenant.id)
    return page(
        request, visitor, "watches.html", 422 if error else 200,
        title="Watches", watches=[watch_view(watch) for watch in kept],
        hint=hint, price=await _price_of_form(app_context, visitor, form),
        **{**_fields(form, error), **_clock()},
    )  # fmt: skip


async def _edit(
    request: Request,
    visitor: Visitor,
    app_context: AppContext,
    watch: Watch,
    form: WatchForm,
    error: UsageError | None = None,
) -> Response:
    return page(
        request, visitor, "edit_watch.html", 422 if error else 200,
        title=f"Change: {watch.name}", id=watch.id, begun=watch.began_at is not None,
        receivers=receivers_of(watch), price=await _price_of_form(app_context, visitor, form),
        **_fields(form, error),
    )  # fmt: skip


async def _price_of_form(app_context: AppContext, visitor: Visitor, form: WatchForm) -> str:
    """What the watch would cost, whose question may be missing yet; "" where it cannot be asked."""
    texts = {**form.texts, "query": form.texts["query"] or "a product"}
    try:
        request = replace(form, texts=texts).watch_request()
        return await _price(app_context, requested_watch(request, visitor.tenant.id))
    except UsageError:
        return ""


async def _price(app_context: AppContext, watch: Watch) -> str:
    """What the runs of a watch cost; "" while libraries load, since a page does not wait for them."""
    if not app_context.loaded:
        return ""
    settings = in_sandbox(app_context.settings) if watch.sandbox else app_context.settings
    return await asyncio.to_thread(price_of_runs, settings, Ask.of(watch), watch.schedule)


def _sentence(phrase: str) -> str:
    return f"{phrase[:1].upper()}{phrase[1:]}"


def _clock() -> dict[str, Any]:
    """What the templates need to say when a watch runs."""
    return {"now": utc_now(), "clock": clock_words, "schedule": schedule_words}


def _fields(form: WatchForm, error: UsageError | None) -> dict[str, Any]:
    """Template values of the form; a message stands beside its field, or above all fields."""
    return {
        "form": form,
        "schedule": schedule_words,
        "fields": form_fields(WatchRequest),
        "places": [(name, presentation.source_title(name)) for name in SOURCES],
        "wrong": faults(error, WatchRequest.model_fields) if error else {},
    }


notification_page_router = APIRouter(prefix="/watches/{watch_id}", include_in_schema=False, route_class=PageRoute)


@notification_page_router.post("/try")
async def try_telling(request: Request, watch_id: str, form: Filled, app_context: OpenContext) -> Response:
    """Send a trial to every receiver, and say what became of it."""
    watch = await submitted_watch(form, app_context, watch_id)
    sending = send_trial(notifier_of(app_context.settings).send, watch)
    return await _answered(request, form, app_context, watch, sending)


@notification_page_router.post("/runs/{run_id}/tell")
async def tell_once_more(
    request: Request, watch_id: str, run_id: str, form: Filled, app_context: OpenContext
) -> Response:
    """Tell those of a run who were not reached, and say what became of it."""
    watch = await submitted_watch(form, app_context, watch_id)
    run = await run_to_resend(app_context.store, watch, run_id)
    send = notifier_of(app_context.settings).send

    async def sending() -> Sequence[Delivery]:
        return (await resend(app_context.store, send, ALL_SOURCES, watch, run)).deliveries

    return await _answered(request, form, app_context, watch, sending())


@notification_page_router.post("/feed")
async def make_feed(request: Request, watch_id: str, form: Filled, app_context: OpenContext) -> Response:
    """Give it a feed, or its feed another address, which is shown this once."""
    watch = await submitted_watch(form, app_context, watch_id)
    address = server_of(request) + await open_feed(app_context.store, watch)
    watch = await submitted_watch(form, app_context, watch_id)
    return await watch_screen(request, form.visitor, app_context, watch, feed=address)


@notification_page_router.post("/feed/close")
async def close_feed(watch_id: str, form: Ending, app_context: OpenContext) -> Response:
    """Remove the feed's address; the watch stays."""
    watch = await submitted_watch(form, app_context, watch_id)
    await app_context.store.set_feed(watch, None)
    return shown_watch(watch)


async def _answered(
    request: Request,
    form: Submission,
    app_context: AppContext,
    watch: Watch,
    sending: Coroutine[Any, Any, Sequence[Delivery]],
) -> Response:
    deliveries = await unless_gone(request.receive, sending)
    if deliveries is None:
        return Response(status_code=GONE)
    return await watch_screen(request, form.visitor, app_context, watch, deliveries)
