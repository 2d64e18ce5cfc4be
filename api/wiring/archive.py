"""The search over what a store holds, with the product's judges and its tracing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from api.errors import ModelError
from api.judges.embedding import embed
from api.services.archive.chunks import Chunk
from api.services.archive.searching import ArchiveSearch, Rerank, by_words
from api.services.archive.shelf import Archive
from api.services.keeping.keys import LOCAL, Tenant
from api.services.listening import Product
from api.services.ports import Grader
from api.services.schemas import Item, Question
from api.settings import Settings
from api.sources import ARCHIVE
from api.sources.archive import ArchiveSource


def archive_search(settings: Settings, product: Product, archive: Archive) -> ArchiveSearch:
    """A search that remembers its answers for a while: one for a product and a store."""
    return ArchiveSearch(
        archive,
        embed,
        settings.retrieval,
        settings.ranking,
        product.sample,
        product.observer,
        by_words if product.grader is None else graded(product.grader),
    )


def with_archive(
    product: Product, settings: Settings, archive: Archive, tenant: Tenant = LOCAL
) -> Product:
    """The product with what this tenant has stored as one more place, for one question.

    Everything else is the product's, which must stay open meanwhile and is closed by itself.
    """
    weight = settings.retrieval.vector_weight
    place = ArchiveSource(archive, tenant.id, embed, weight, sample=product.sample)
    watched = place if product.watched is None else product.watched(place)
    return replace(
        product,
        sources={**product.sources, ARCHIVE.name: watched},
        chosen=product.usual,
        closing=AsyncExitStack(),
    )


def graded(grader: Grader) -> Rerank:
    """A reranker that has the pieces graded from 1 to 5, by one call."""

    async def rerank(query: str, pieces: Sequence[Chunk]) -> list[float]:
        items = [
            Item(key=piece.key, id=piece.key, source="", title=piece.title, body=piece.text)
            for piece in pieces
        ]
        grades = await grader.grade(Question(query), items)
        if any(grade.defaulted for grade in grades.grades):
            raise ModelError("malformed", "not every piece was graded")
        return [float(grade.score) for grade in grades.grades]

    return rerank
