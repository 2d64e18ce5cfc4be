"""Products side by side: asked alike at one moment, set beside each other once all have ended."""

from __future__ import annotations

import secrets
from typing import get_args

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.errors import UsageError
from api.faces import comparisons, outline
from api.faces.web.access import Opened
from api.faces.web.comparisons import ComparisonRequest, comparisons_of, left_running
from api.faces.web.events import GONE, unless_gone
from api.faces.web.pages.access import Filled, Guest, Submission, Visitor
from api.faces.web.pages.asking import WINDOWS
from api.faces.web.pages.composing import comparison_values
from api.faces.web.pages.fields import validated
from api.faces.web.pages.screen import PageRoute, page
from api.services.comparing.asking import MOST
from api.services.comparing.composing import comparison_of
from api.settings import DepthName
from api.sources import EVERYWHERE, SOURCES
from api.wiring.serving import House

router = APIRouter(prefix="/compare", include_in_schema=False, route_class=PageRoute)


@router.get("")
async def compare_page(request: Request, visitor: Guest) -> Response:
    """An empty form."""
    return _form(request, visitor, Submission(visitor, {}))


@router.post("")
async def compare(request: Request, form: Filled, house: Opened) -> Response:
    """Begin an analysis for each; those that run are shown, and asked for again by the same form.

    With `step=wait` the page comes once all have ended.
    """
    try:
        answer = await unless_gone(request.receive, _compared(request, form, house))
    except UsageError as error:
        return _form(request, form.visitor, form, wrong=error.public)
    return answer or Response(status_code=GONE)


async def _compared(request: Request, form: Submission, house: House) -> Response:
    asks, key = _request(form).asks(), form.text("key")[:64] or secrets.token_hex(16)
    side_by_side = comparisons_of(house)
    async with side_by_side.begun(form.visitor.tenant, asks, f"page:{key}") as flights:
        running = left_running(flights)
        if running and form.text("step") != "wait":
            return page(
                request, form.visitor, "comparing.html",
                title="Comparing",
                running=running,
                fields=[
                    (name, value)
                    for name in ("product", "depth", "since", "source")
                    for value in form.fields.get(name, ())
                ],
                key=key,
            )  # fmt: skip
        answers = await side_by_side.answers(asks, flights)
    comparison = comparison_of(asks, answers, EVERYWHERE)
    return page(
        request, form.visitor, "comparison.html",
        title=comparisons.title(comparison), **comparison_values(comparison),
    )  # fmt: skip


def _request(form: Submission) -> ComparisonRequest:
    """As the API takes it.

    Raises:
        UsageError: a field holds what cannot be asked.
    """
    fields: dict[str, object] = {
        "products": [name for name in form.fields.get("product", ()) if name.strip()],
        "depth": form.text("depth", "standard"),
        "since": form.text("since", "all"),
        "sources": form.fields.get("source", ()),
    }
    return validated(ComparisonRequest, fields)


def _form(request: Request, visitor: Visitor, form: Submission, wrong: str = "") -> Response:
    products = form.fields.get("product", [])[:MOST]
    return page(
        request, visitor, "compare.html", 422 if wrong else 200,
        title="Compare products",
        products=products + [""] * (MOST - len(products)),
        depth=form.text("depth", "standard"),
        since=form.text("since", "all"),
        sources=form.fields.get("source", []),
        depths=[(name, name) for name in get_args(DepthName)],
        windows=list(WINDOWS.items()),
        places=[(name, outline.source_title(name)) for name in SOURCES],
        key=secrets.token_hex(16),  # what was refused may have used up the other
        wrong=wrong,
    )  # fmt: skip
