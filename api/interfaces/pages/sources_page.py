"""The state of each source, and the feeds that questions read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.bootstrap.app_context import AppContext
from api.errors import UsageError
from api.features.watches.followed_feeds import unfollow_feed
from api.interfaces.http.access import OpenContext
from api.interfaces.http.event_stream import GONE, unless_gone
from api.interfaces.http.feed_routes import add_feed, list_feeds
from api.interfaces.pages.ask_page import places_of
from api.interfaces.pages.forms import faults, form_fields, texts_of, validated
from api.interfaces.pages.screen import Ending, Filled, Guest, PageRoute, Visitor, page
from api.interfaces.shared.doctor import Upstream, check_upstreams
from api.interfaces.shared.listing_requests import FeedRequest

router = APIRouter(prefix="/sources", include_in_schema=False, route_class=PageRoute)


@router.get("")
async def sources_page(request: Request, visitor: Guest, app_context: OpenContext) -> Response:
    """Requirements of each source, and the followed feeds; sends no request."""
    return await _shown(request, visitor, app_context)


@router.post("")
async def probe(request: Request, form: Filled, app_context: OpenContext) -> Response:
    """What each place, the model and Langfuse answer to the cheapest question there is."""

    async def work() -> Sequence[Upstream]:
        return await check_upstreams(app_context.settings, await app_context.product())

    answers = await unless_gone(request.receive, work())
    if answers is None:
        return Response(status_code=GONE)
    if form.visitor.keyed:  # what is left would show one key whether another watches the same
        hidden = (replace(each, detail="", quota_left=None) for each in answers)
        answers = [
            less if each.outcome == "ok" and each.is_source else each
            for each, less in zip(answers, hidden, strict=True)
        ]
    return await _shown(request, form.visitor, app_context, answers)


@router.post("/feeds")
async def follow(request: Request, form: Filled, app_context: OpenContext) -> Response:
    """Follow a feed, which is read at once."""
    texts = texts_of(FeedRequest, form.fields)
    try:
        feed = validated(FeedRequest, texts)
        if await unless_gone(request.receive, add_feed(feed, form.visitor.tenant, app_context)) is None:
            return Response(status_code=GONE)
    except UsageError as error:
        return await _shown(request, form.visitor, app_context, texts=texts, error=error)
    return RedirectResponse("/sources#feeds", 303)


@router.post("/feeds/remove")
async def unfollow(form: Ending, app_context: OpenContext) -> Response:
    """Follow a feed no longer."""
    await unfollow_feed(app_context.store, form.visitor.tenant.id, form.text("address"))
    return RedirectResponse("/sources#feeds", 303)


async def _shown(
    request: Request,
    visitor: Visitor,
    app_context: AppContext,
    answers: Sequence[Upstream] = (),
    *,
    texts: Mapping[str, str] | None = None,
    error: UsageError | None = None,
) -> Response:
    fields = form_fields(FeedRequest)
    feeds = None if app_context.sample else (await list_feeds(visitor.tenant, app_context)).feeds
    return page(
        request, visitor, "sources.html", status=200 if error is None else 422,
        title="Sources", places=await places_of(app_context, visitor), answers=answers, feeds=feeds, fields=fields,
        texts=texts or dict.fromkeys(fields, ""), wrong={} if error is None else faults(error, fields),
    )  # fmt: skip
