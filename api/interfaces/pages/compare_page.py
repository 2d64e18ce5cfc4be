"""Products side by side: asked alike, or out of what was asked before, under an address."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from api.bootstrap.app_context import AppContext
from api.choices import MAX_PRODUCTS, MIN_PRODUCTS
from api.core.text import SHORT_ID
from api.errors import Conflict, LimitReached, NotFound, UsageError
from api.features.analyses.runner import side_by_side
from api.features.analyses.store_ports import StoredAnalysis
from api.features.comparisons.compare import check_count, check_products
from api.features.comparisons.comparison import Comparison
from api.interfaces.http.access import OpenContext
from api.interfaces.http.comparison_routes import left_running, shown_as
from api.interfaces.http.event_stream import GONE, unless_gone
from api.interfaces.pages.analysis_page import NO_ANALYSIS, possible_id
from api.interfaces.pages.ask_page import namesake_hint, price, usual_places
from api.interfaces.pages.forms import QuestionForm, faults, form_fields, texts_of
from api.interfaces.pages.report_values import as_file, comparison_values, kind_of
from api.interfaces.pages.screen import Filled, Guest, PageRoute, Submission, Visitor, page
from api.interfaces.pages.templates_rendering import plainly
from api.interfaces.shared import comparison_table, presentation
from api.interfaces.shared.requests import ComparisonRequest
from api.services.product import Ask
from api.sources import ALL_SOURCES, SOURCES, check_askable

router = APIRouter(prefix="/compare", include_in_schema=False, route_class=PageRoute)


@router.get("")
async def compare_page(request: Request, visitor: Guest, app_context: OpenContext) -> Response:
    """The form of a comparison, empty or as its address fills it in."""
    fields = request.query_params
    return await _form(request, app_context, Submission(visitor, {name: fields.getlist(name) for name in fields}))


@router.post("")
async def compare(request: Request, form: Filled, app_context: OpenContext) -> Response:
    """Show the price, or begin all analyses and redirect to the comparison, by the button that was pressed."""
    usual = usual_places(app_context)
    try:
        if form.text("step") == "estimate":
            _priced(form, usual)
            return await _form(request, app_context, form)
        asks = _request(form, usual).asks()
        if (hint := _namesakes(asks)) and form.text("sure") != _names(asks):
            return await _form(request, app_context, form, hint=hint)
        answer = await unless_gone(request.receive, _begin(form.visitor, app_context, asks))
    except (UsageError, LimitReached) as error:
        wrong = faults(error, form_fields(ComparisonRequest))
        return await _form(request, app_context, form, wrong, error.status)
    return answer or Response(status_code=GONE)


Ids = Annotated[Sequence[str], Query(alias="analysis")]
"""The analyses in an address, in its order."""


@router.get("/between")
async def between(request: Request, visitor: Guest, app_context: OpenContext, ids: Ids = ()) -> Response:
    """The comparison; while analyses run, and when none has a report, the state of each."""
    try:
        analyses = await _named(app_context, visitor, ids)
    except UsageError as error:
        wrong = plainly(error.public)
        return page(
            request, visitor, "not_compared.html", 422,
            title="This cannot be compared", wrong=wrong,
        )  # fmt: skip
    running = [kept.id for kept in analyses if kept.state == "running"]
    if running or not any(kept.report for kept in analyses):
        return page(
            request, visitor, "comparing.html",
            title="Comparing" if running else "Nothing to compare",
            analyses=analyses,
            running=running,
            query=_comparison_query(ids),
        )  # fmt: skip
    comparison = await asyncio.to_thread(side_by_side, analyses, ALL_SOURCES)
    return await asyncio.to_thread(
        lambda: page(
            request,
            visitor,
            "comparison.html",
            title=comparison_table.title(comparison),
            query=_comparison_query(ids),
            anew=_asked_anew(comparison),
            **comparison_values(comparison),
        )
    )


@router.get("/between/export/{form}")
async def export(form: str, visitor: Guest, app_context: OpenContext, ids: Ids = ()) -> Response:
    """The comparison as HTML, Markdown, CSV or JSON, to be saved."""
    kind = kind_of(form)
    analyses = await _named(app_context, visitor, ids)
    for kept in analyses:
        if kept.state == "running":
            raise Conflict(kept.why_none)
    if not any(kept.report for kept in analyses):
        raise Conflict("none of these analyses has a report, so there is nothing to take along")
    comparison = await asyncio.to_thread(side_by_side, analyses, ALL_SOURCES)
    answer = await asyncio.to_thread(shown_as, comparison, kind)
    return as_file(answer, f"comparison-{'-'.join(kept.id[:SHORT_ID] for kept in analyses)}", kind)


async def _named(app_context: AppContext, visitor: Visitor, ids: Sequence[str]) -> list[StoredAnalysis]:
    """The stored analyses of these ids.

    Raises:
        UsageError: too few or too many, or two that are about the same product.
        NotFound: the visitor has none of an id.
    """
    check_count(len(ids))
    analyses = []
    for analysis_id in ids:
        kept = await app_context.runner.kept(visitor.tenant.id, await possible_id(analysis_id))
        if kept is None:
            raise NotFound(NO_ANALYSIS)
        analyses.append(kept)
    check_products([kept.query for kept in analyses])
    return analyses


def _options(form: Submission, usual: tuple[str, ...] = ()) -> QuestionForm:
    """Options of the form; without boxes for the sources, the `usual` ones are ticked."""
    texts = texts_of(ComparisonRequest, form.fields)
    return QuestionForm(ComparisonRequest, texts, form.fields.get("source", usual))


def _request(form: Submission, usual: tuple[str, ...]) -> ComparisonRequest:
    """The request; each line has a product and its description, and empty lines are ignored.

    The usual sources are not named, so that the answers are shared with others.

    Raises:
        UsageError: a field holds what cannot be asked.
    """
    lines = [(name, about) for name, about in _lines(form) if name.strip()]
    check_count(len(lines))
    options = _options(form)
    sources = () if set(options.sources) == set(usual) else options.sources
    request: ComparisonRequest = replace(options, sources=sources).request(
        products=[name for name, _ in lines], about=[about for _, about in lines]
    )
    check_askable(request.sources)
    return request


def _lines(form: Submission) -> list[tuple[str, str]]:
    """Each product and what it is, as they were filled in."""
    products, abouts = (form.fields.get(name, []) for name in ("product", "about"))
    return list(zip_longest(products, abouts[: len(products)], fillvalue=""))


async def _form(
    request: Request,
    app_context: AppContext,
    form: Submission,
    wrong: Mapping[str, str] | None = None,
    status: int = 200,
    hint: str = "",
) -> Response:
    lines = _lines(form)[:MAX_PRODUCTS]
    return page(
        request, form.visitor, "compare.html", status,
        title="Compare products",
        lines=lines + [("", "")] * (MAX_PRODUCTS - len(lines)),
        fewest=MIN_PRODUCTS,
        form=_options(form, usual_places(app_context)),
        fields=form_fields(ComparisonRequest),
        places=[(name, presentation.source_title(name)) for name in SOURCES],
        price=await _price(app_context, form),
        priced=form.text("step") == "estimate" and not wrong,
        wrong=wrong or {},
        hint=hint,
        names=", ".join(name for name, _ in lines if name.strip()),
    )  # fmt: skip


async def _begin(visitor: Visitor, app_context: AppContext, asks: Sequence[Ask]) -> Response:
    """Begin an analysis of each question in the background and redirect; none runs where it raises `LimitReached`."""
    async with app_context.comparisons.begun(visitor.tenant, asks) as tasks:
        left_running(tasks)
    return RedirectResponse(f"/compare/between?{_comparison_query([each.id for each in tasks])}", 303)


def _comparison_query(ids: Sequence[str]) -> str:
    """The query of a comparison's address: `analysis=ID` for each analysis, in order."""
    return urlencode([("analysis", analysis_id) for analysis_id in ids])


def _asked_anew(comparison: Comparison) -> str:
    """The query of the form's address, filled in with these products and how they were asked."""
    products = [pair for each in comparison.products for pair in (("product", each.query), ("about", each.about))]
    sources = [("source", name) for name in comparison.sources]
    return urlencode([*products, ("depth", comparison.depth), ("since", comparison.since), *sources])


def _namesakes(asks: Sequence[Ask]) -> str:
    """Hint naming the products whose names are everyday words; empty without any."""
    return " ".join(filter(None, (namesake_hint(ask.query, ask.about) for ask in asks)))


def _names(asks: Sequence[Ask]) -> str:
    """Names of the products, which the form sends back once the hint has been seen."""
    return ", ".join(ask.query for ask in asks)


async def _price(app_context: AppContext, form: Submission) -> str:
    """Price of the form's question; empty when it is invalid.

    "" where that cannot be asked. For the price of an empty form nobody waits while libraries load.
    """
    if not app_context.loaded and not _lines(form):
        return ""
    try:
        asks = _priced(form, usual_places(app_context))
    except UsageError:
        return ""
    return await asyncio.to_thread(price, app_context.settings, asks)


def _priced(form: Submission, usual: tuple[str, ...]) -> Sequence[Ask]:
    """The questions to price; placeholders complete the names that a comparison needs.

    Raises:
        UsageError: a field holds what cannot be asked.
    """
    names = [name for name, _ in _lines(form) if name.strip()]
    named = [*names, *("a product", "another one")[len(names) :]]
    return _request(replace(form, fields={**form.fields, "product": named}), usual).asks()
