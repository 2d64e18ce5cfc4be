"""`/v1/search`: what is stored about a question, without asking anybody."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import fastapi
from fastapi import APIRouter
from pydantic import Field

from api.faces.web.access import Asker, Opened
from api.faces.web.errors import documented
from api.faces.web.schemas import Back, PlaceName, Query, RequestBody
from api.services.archive.answers import ArchiveAnswer
from api.services.archive.asking import filters_of
from api.services.archive.shelf import ArchiveFilters
from api.services.keeping.summing import since_of
from api.sources import PLACES

router = APIRouter(prefix="/v1", tags=["search"])


class SearchRequest(RequestBody):
    """A question to what is stored."""

    query: Query
    since: Back = "all"
    source: Annotated[PlaceName | None, Field(description="Only what it holds.")] = None
    about: Annotated[
        str, Field(max_length=500, description="Only what was heard on this product.")
    ] = ""
    language: Annotated[
        str | None,
        Field(max_length=20, description="Only what may be in this language: its code, `de`."),
    ] = None
    kept: Annotated[
        bool | None, Field(description="Only what a report kept or an import brought, or not.")
    ] = None
    k: Annotated[int | None, Field(ge=1, le=50, description="Hits at most.")] = None
    sandbox: Annotated[bool, Field(description="What was heard in the sample world.")] = False

    def filters(self) -> ArchiveFilters:
        """As the archive takes them.

        Raises:
            UsageError: `since` is no time.
        """
        since = since_of(self.since, datetime.now(UTC))
        return filters_of(self.source, since, self.about, PLACES, self.language, self.kept)


@router.get(
    "/search",
    responses=documented(401, 403, 422, 429, 500, 503),
    summary="Search what is stored",
)
async def search_archive(
    tenant: Asker, house: Opened, query: Annotated[SearchRequest, fastapi.Query()]
) -> ArchiveAnswer:
    """The entries that your analyses and imports brought, the best first; no place is asked."""
    return await house.search(tenant, query.query, query.filters(), query.k, sandbox=query.sandbox)
