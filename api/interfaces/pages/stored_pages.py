"""Pages of what is stored: earlier analyses, search in the archive, and the gate's statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.bootstrap.app_context import AppContext
from api.choices import STATISTICS_SINCE
from api.core.text import fold, quantity
from api.errors import NotFound, UsageError
from api.features.analyses.statistics import since_of
from api.features.analyses.store_ports import AnalysisSummary, Filters
from api.features.archive.search import hit_title
from api.features.archive.search_values import ArchiveAnswer
from api.interfaces.http.access import OpenContext
from api.interfaces.http.gate_routes import stats_for
from api.interfaces.http.schemas import ListedAnalysis
from api.interfaces.pages.analysis_page import NO_ANALYSIS, AnalysisId
from api.interfaces.pages.ask_page import recent_questions
from api.interfaces.pages.forms import SPANS, blaming, faults, validated
from api.interfaces.pages.history_charts import gate_figure, places_figure
from api.interfaces.pages.screen import Filled, Guest, PageRoute, Visitor, page
from api.interfaces.shared import presentation, statistics_text
from api.interfaces.shared.listing_requests import ListingRequest, SearchRequest, StatsRequest
from api.settings import Settings
from api.sources import ITEM_SOURCES

router = APIRouter(prefix="/history", include_in_schema=False, route_class=PageRoute)
# Places of an analysis that are named; of more their number stands.
_NAMED_PLACES = 3
SHOWN, MOST_READ = 20, 1_000
"""Analyses of a page at least, while there are more; and those that a text is looked for in."""


@router.get("")
async def history_page(
    request: Request,
    visitor: Guest,
    app_context: OpenContext,
    text: str = "",
    decision: str = "",
    source: str = "",
    since: str = "",
    until: str = "",
    cursor: str = "",
) -> Response:
    """The newest first, those alone that are looked for."""
    chosen = {
        "text": text[:200],
        "decision": decision,
        "source": source,
        "since": since,
        "until": until,
    }
    listed: list[AnalysisSummary] = []
    further, wrong = None, {}
    try:
        narrow = {"decision": decision, "source": source, "cursor": cursor}
        wanted = validated(ListingRequest, narrow)
        moments = _moment("since", since), _moment("until", until)
        filters = Filters(wanted.decision, wanted.source, *moments)
        listed, further = await _listed(app_context, visitor, filters, chosen["text"], wanted.cursor)
    except UsageError as error:
        wrong = faults(error, chosen)
    kept = {name: value for name, value in chosen.items() if value}
    return page(
        request, visitor, "history.html", 422 if wrong else 200,
        title="History",
        analyses=[ListedAnalysis.of(each) for each in listed],
        purposes=await app_context.store.purposes(
            visitor.tenant.id, {each.id: each.created_at for each in listed}
        ),
        places_of={each.id: _places_words(_places(each)) for each in listed},
        chosen=chosen,
        decisions=list(presentation.DECISIONS.items()),
        places=[(name, presentation.source_title(name)) for name in ITEM_SOURCES],
        further=further and "/history?" + urlencode({**kept, "cursor": further}),
        narrowed=bool(kept) or bool(cursor),
        filtered=_filtered(chosen),
        most_read=MOST_READ,
        wrong=wrong,
    )  # fmt: skip


@router.get("/{analysis_id}/delete")
async def delete_page(request: Request, analysis_id: AnalysisId, visitor: Guest, app_context: OpenContext) -> Response:
    """Asks to confirm that an analysis is deleted."""
    kept = await app_context.runner.kept(visitor.tenant.id, analysis_id)
    if kept is None:
        raise NotFound(NO_ANALYSIS)
    title = presentation.shortened(kept.query, presentation.LONGEST_HEADING)
    return page(request, visitor, "delete_analysis.html", title=f"Delete: {title}", id=kept.id)


@router.post("/{analysis_id}/delete")
async def delete(analysis_id: AnalysisId, form: Filled, app_context: OpenContext) -> Response:
    """Delete an analysis with every post that only it has; a running one is cancelled first."""
    if not await app_context.runner.delete(form.visitor.tenant, analysis_id):
        raise NotFound(NO_ANALYSIS)
    return RedirectResponse("/history", 303)


def _moment(field: str, date: str) -> datetime | None:
    """The time of a date in a field; None when the field is empty."""
    try:
        return since_of(date or "all", datetime.now(UTC))
    except UsageError:
        raise UsageError("this needs a day, such as `2026-03-01`", field=field) from None


def _filtered(chosen: Mapping[str, str]) -> list[str]:
    """The conditions in words, shown above the list."""
    result = next((words for name, words in presentation.DECISIONS.items() if name == chosen["decision"]), "")
    names = (
        f"“{chosen['text']}”" * bool(chosen["text"]),
        result,
        presentation.source_title(chosen["source"]),
        f"from {chosen['since']}" * bool(chosen["since"]),
        f"before {chosen['until']}" * bool(chosen["until"]),
    )
    return [name for name in names if name]


def _places_words(titles: Sequence[str]) -> str:
    """The places, or how many there are where the list would be long."""
    return ", ".join(titles) if len(titles) <= _NAMED_PLACES else quantity(len(titles), "place")


def _places(listed: AnalysisSummary) -> list[str]:
    """The places that were asked."""
    sources = listed.summary.sources if listed.summary else {}
    return [
        presentation.source_title(name) for name, source in sources.items() if source.outcome not in presentation.UNSENT
    ]


async def _listed(
    app_context: AppContext, visitor: Visitor, filters: Filters, text: str, cursor: str | None
) -> tuple[list[AnalysisSummary], str | None]:
    """Analyses whose question has the text, and the cursor of the next page."""
    listed: list[AnalysisSummary] = []
    step, wanted = (100 if text else SHOWN), fold(text)
    for _ in range(MOST_READ // step):
        part = await app_context.store.listing(visitor.tenant.id, filters, step, cursor)
        listed += [each for each in part.analyses if wanted in fold(each.query)]
        cursor = part.cursor
        if cursor is None or len(listed) >= SHOWN:
            break
    return listed, cursor


search_page_router = APIRouter(include_in_schema=False, route_class=PageRoute)
MOST = 20
"""Most hits of a search on one page."""
# Questions that are offered as the product of a search, the newest.
_PRODUCTS = 25


@search_page_router.get("/search")
async def search_page(
    request: Request,
    visitor: Guest,
    app_context: OpenContext,
    q: str = "",
    since: str = "all",
    source: str = "",
    about: str = "",
) -> Response:
    """An empty form, or the hits, the best first."""
    answer: ArchiveAnswer | None = None
    fields, wrong = {"query": q, "since": since, "source": source, "about": about}, {}
    if q.strip():
        try:
            wanted = validated(SearchRequest, fields)
            with blaming("since"):
                filters = wanted.filters()
            answer = await app_context.search(visitor.tenant, wanted.query, filters, MOST, sandbox=False)
        except UsageError as error:
            wrong = faults(error, fields)
    keys = {hit.key for hit in answer.hits} if answer else set()
    return page(
        request, visitor, "search.html", 422 if wrong else 200,
        title="Search stored posts",
        q=q, since=since, source=source, about=about,
        products=await recent_questions(app_context, visitor, _PRODUCTS),
        reports=await app_context.store.reports_with(visitor.tenant.id, keys) if keys else {},
        spans=SPANS,
        places=[(name, presentation.source_title(name)) for name in ITEM_SOURCES],
        answer=answer,
        wrong=wrong,
        heading_of=hit_title,
        most=MOST,
    )  # fmt: skip


gate_page_router = APIRouter(include_in_schema=False, route_class=PageRoute)
TRACED = 20
"""Analyses of which the trace is linked, the newest."""
_HOW = "tick the box to count them"


@gate_page_router.get("/gate")
async def gate_page(
    request: Request,
    visitor: Guest,
    app_context: OpenContext,
    since: str = STATISTICS_SINCE,
    sample: str = "",
) -> Response:
    """Over the analyses of this time; made-up ones where somebody wants them."""
    wanted = validated(StatsRequest, {"since": since, "sample": bool(sample) or app_context.sample})
    stats = await stats_for(app_context, visitor.tenant, wanted)
    kept = await app_context.store.listing(visitor.tenant.id, Filters(since=stats.since), TRACED)
    root = trace_root(app_context.settings)
    return page(
        request, visitor, "gate.html",
        title="Relevance of found posts",
        stats=stats,
        statistics=statistics_text,
        places_figure=places_figure,
        min_yield=app_context.settings.adaptive.min_yield,
        gate_figure=gate_figure,
        how=_HOW,
        since=since,
        spans=SPANS,
        traces=[
            # an address of Langfuse that leads on to the project which holds the trace
            (each.query, each.created_at, f"{root}/trace/{each.summary.trace_id}")
            for each in kept.analyses
            if root and each.summary is not None and each.summary.trace_id
        ],
    )  # fmt: skip


def trace_root(settings: Settings) -> str:
    """Address of the traces in Langfuse; empty when none are sent."""
    tracing = settings.tracing
    sent = tracing.langfuse_public_key and tracing.langfuse_secret_key
    if not sent or not tracing.langfuse_tracing_enabled:
        return ""
    return tracing.langfuse_base_url.rstrip("/")
