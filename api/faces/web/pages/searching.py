"""What is stored about a question, with its words marked; no place is asked."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from api.errors import UsageError
from api.faces import outline
from api.faces.web.access import Opened
from api.faces.web.pages.access import Guest
from api.faces.web.pages.fields import SPANS, faults, read_from, validated
from api.faces.web.pages.screen import PageRoute, page
from api.faces.web.searching import SearchRequest
from api.services.archive.answers import ArchiveAnswer
from api.services.archive.describing import heading
from api.sources import PLACES

router = APIRouter(include_in_schema=False, route_class=PageRoute)
MOST = 20
"""Hits on the page."""


@router.get("/search")
async def search_page(
    request: Request,
    visitor: Guest,
    house: Opened,
    q: str = "",
    since: str = "all",
    source: str = "",
) -> Response:
    """An empty form, or the hits, the best first."""
    answer: ArchiveAnswer | None = None
    fields, wrong = {"query": q, "since": since, "source": source}, {}
    if q.strip():
        try:
            wanted = validated(SearchRequest, fields)
            with read_from("since"):
                filters = wanted.filters()
            answer = await house.search(visitor.tenant, wanted.query, filters, MOST, sandbox=False)
        except UsageError as error:
            wrong = faults(error, fields)
    return page(
        request, visitor, "search.html", 422 if wrong else 200,
        title="Search what is stored",
        q=q, since=since, source=source,
        spans=SPANS,
        places=[(name, outline.source_title(name)) for name in PLACES],
        answer=answer,
        wrong=wrong,
        heading_of=heading,
        most=MOST,
    )  # fmt: skip
