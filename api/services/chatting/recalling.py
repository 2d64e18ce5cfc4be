"""What is stored, as a chat turn uses it: asked before any place where the product was heard of."""

from __future__ import annotations

from uuid import uuid4

from api.services.archive.searching import ArchiveSearch
from api.services.archive.shelf import ArchiveFilters
from api.services.chatting.lookups import ChatDesk
from api.services.chatting.subjects import named_in, names_in
from api.services.chatting.turns import LookupEnded, LookupStarted
from api.services.containment import Failure, contained
from api.services.reporting.composing import item_of
from api.services.schemas import Assessed, Verdict

TOOL, _NAME = "search_archive", "archive"
KEPT = ArchiveFilters(kept=True)
"""What a gate let pass, or a person brought in: an answer may rest on it."""
_QUERIES = 200
"""Latest queries that tell what was heard of."""
ENOUGH = 3
"""Stored entries from which on no place need be asked."""


async def recall_first(desk: ChatDesk) -> None:
    """Search what is stored when the question names a product that was asked about before.

    Only in the place of look-ups: not when the session knows something to cite already. A person is
    told. Fewer than `ENOUGH` entries are no answer, and the places are asked.
    """
    archive = desk.archive
    if archive is None or desk.citable:
        return
    tenant = desk.session.tenant
    queries = await contained(archive.archive.queries(tenant, _QUERIES), "the archive")
    if isinstance(queries, Failure):
        return
    heard_of = [name for query in queries for name in names_in(query)]
    if not named_in(desk.question, heard_of):
        return
    call = uuid4().hex
    desk.emit(LookupStarted(call, TOOL, {"query": desk.question}))
    await search_stored(desk, archive, desk.question, ENOUGH)
    desk.emit(LookupEnded(call, TOOL, desk.lines[_NAME]))
    if not desk.citable:
        del desk.lines[_NAME]  # an answer rests on nothing yet


async def search_stored(desk: ChatDesk, archive: ArchiveSearch, query: str, least: int = 1) -> str:
    """Search what is stored; what the model reads. With fewer than `least` hits nothing is known.

    Failures are words too.
    """
    session = desk.session
    desk.queries.append(query)
    answer = await contained(archive.search(session.tenant, query, KEPT), "the archive")
    if isinstance(answer, Failure):
        return desk.answered(_NAME, f"The archive could not be searched: {answer.message}", ())
    line = f"The archive: {answer.guidance or answer.text}".rstrip(".")
    keys = list(dict.fromkeys(hit.key for hit in answer.hits))
    stored = await contained(archive.archive.facts(session.tenant, keys), "the archive")
    if isinstance(stored, Failure) or len(answer.hits) < least:
        return desk.answered(_NAME, line, ())
    kept = [Assessed(item_of(stored[key]), Verdict(True)) for key in keys if key in stored]
    return desk.answered(_NAME, line, desk.numbered(query, kept))
