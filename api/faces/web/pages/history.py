"""What has been asked before: looked through, taken along and deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from api.errors import NotFound, UsageError
from api.faces import outline
from api.faces.web.access import Opened
from api.faces.web.pages.access import Filled, Guest
from api.faces.web.pages.fields import faults, validated
from api.faces.web.pages.reading import NO_ANALYSIS, AnalysisId
from api.faces.web.pages.screen import PageRoute, Visitor, page
from api.faces.web.schemas import ListedAnalysis, ListingQuery
from api.services.keeping.storage import Filters, Listed
from api.services.keeping.summing import since_of
from api.services.text import fold
from api.sources import PLACES
from api.wiring.serving import House

router = APIRouter(prefix="/history", include_in_schema=False, route_class=PageRoute)
SHOWN, MOST_READ = 20, 1_000
"""Analyses of a page at least, while there are more; and those that a text is looked for in."""


@router.get("")
async def history_page(
    request: Request,
    visitor: Guest,
    house: Opened,
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
    listed: list[Listed] = []
    further, wrong = None, {}
    try:
        narrow = {"decision": decision, "source": source, "cursor": cursor}
        wanted = validated(ListingQuery, narrow)
        moments = _moment("since", since), _moment("until", until)
        filters = Filters(wanted.decision, wanted.source, *moments)
        listed, further = await _listed(house, visitor, filters, chosen["text"], wanted.cursor)
    except UsageError as error:
        wrong = faults(error, chosen)
    kept = {name: value for name, value in chosen.items() if value}
    return page(
        request, visitor, "history.html", 422 if wrong else 200,
        title="History",
        analyses=[ListedAnalysis.of(each) for each in listed],
        purposes=await house.store.purposes(
            visitor.tenant.id, {each.id: each.created_at for each in listed}
        ),
        places_of={each.id: ", ".join(_places(each)) for each in listed},
        chosen=chosen,
        decisions=list(outline.DECISIONS.items()),
        places=[(name, outline.source_title(name)) for name in PLACES],
        further=further and "/history?" + urlencode({**kept, "cursor": further}),
        narrowed=bool(kept) or bool(cursor),
        most_read=MOST_READ,
        wrong=wrong,
    )  # fmt: skip


@router.get("/{analysis_id}/delete")
async def delete_page(
    request: Request, analysis_id: AnalysisId, visitor: Guest, house: Opened
) -> Response:
    """Asks whether it shall go."""
    kept = await house.runner.kept(visitor.tenant.id, analysis_id)
    if kept is None:
        raise NotFound(NO_ANALYSIS)
    title = outline.shortened(kept.query, outline.LONGEST_HEADING)
    return page(request, visitor, "delete_analysis.html", title=f"Delete: {title}", id=kept.id)


@router.post("/{analysis_id}/delete")
async def delete(analysis_id: AnalysisId, form: Filled, house: Opened) -> Response:
    """With every post that only it held; one that runs is cancelled first."""
    if not await house.runner.delete(form.visitor.tenant, analysis_id):
        raise NotFound(NO_ANALYSIS)
    return RedirectResponse("/history", 303)


def _moment(field: str, date: str) -> datetime | None:
    """What a day is written as; None where none is named."""
    try:
        return since_of(date or "all", datetime.now(UTC))
    except UsageError:
        raise UsageError("this needs a day, such as `2026-03-01`", field=field) from None


def _places(listed: Listed) -> list[str]:
    """The places that were asked."""
    sources = listed.summary.sources if listed.summary else {}
    return [
        outline.source_title(name)
        for name, source in sources.items()
        if source.outcome not in outline.UNSENT
    ]


async def _listed(
    house: House, visitor: Visitor, filters: Filters, text: str, cursor: str | None
) -> tuple[list[Listed], str | None]:
    """Those whose question holds the text, and where the next ones begin."""
    listed: list[Listed] = []
    step, wanted = (100 if text else SHOWN), fold(text)
    for _ in range(MOST_READ // step):
        part = await house.store.listing(visitor.tenant.id, filters, step, cursor)
        listed += [each for each in part.analyses if wanted in fold(each.query)]
        cursor = part.cursor
        if cursor is None or len(listed) >= SHOWN:
            break
    return listed, cursor
