"""What is stored, as a place that a question can be put to: nothing is asked over a network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from api.core.domain import Batch, Commented, FetchPlan, Item
from api.core.ports import Probe
from api.core.text import clean_query
from api.core.words import index_tokens
from api.errors import StoreUnavailable, Unreachable
from api.features.archive.entries import Archive, ArchiveFilters, Embed
from api.features.archive.search_ranking import combined, scored
from api.reports.composition import item_of
from api.sources import ARCHIVE
from api.sources.paging import window_start
from api.sources.source_specs import Price

PRICE = Price(entries=1_000, searches=0, quotes=False, threads=0)
"""Nobody is asked."""
# Pieces that are looked for to one wanted item: an item and its comments are several.
_PIECES = 4


class ArchiveSource:
    """Stored items by words and meaning, the best piece of each deciding; see `Source`.

    The floors of a search are not used here, since the gate judges what comes.
    """

    name = ARCHIVE.name

    def __init__(
        self, archive: Archive, tenant: str, embed: Embed, weight: float, *, sample: bool = False
    ) -> None:
        """Search what one tenant has stored, or in the sandbox what is made up of it.

        `weight` is the share of meaning.
        """
        self._archive, self._tenant, self._embed, self._weight = archive, tenant, embed, weight
        self._sample = sample

    async def fetch(self, plan: FetchPlan) -> Batch:
        """The best items, with their comments; a wider plan digs deeper."""
        query = clean_query(plan.query)
        filters = ArchiveFilters(since=window_start(plan.window), sample=self._sample)
        words = index_tokens(query)
        try:
            vectors = await asyncio.to_thread(self._embed, [query])
            vector = vectors[0] if vectors else None
            matches = await self._archive.matches(
                self._tenant, words, vector, filters, plan.limit * _PIECES
            )
            entries = scored(matches, words, vector)
            line = combined(entries, self._weight, vectors=matches.vectors)
            keys = list(dict.fromkeys(entry.id[0] for entry in line))
            facts = await self._archive.facts(self._tenant, keys[: plan.limit])
        except StoreUnavailable as error:
            raise Unreachable(self.name, error.public) from None
        items = tuple(item_of(facts[key]) for key in keys[: plan.limit] if key in facts)
        notes = () if matches.vectors else ("found by words alone: there are no word vectors here",)
        return Batch(plan, items, full=len(keys) > plan.limit, notes=notes)

    async def comments(self, items: Sequence[Item]) -> Commented:
        """They came with their comments."""
        return Commented(tuple(items))

    async def with_best_comments(self, item: Item) -> None:
        """Nothing: they are judged once, as they are stored."""

    async def probe(self) -> Probe:
        """Always there."""
        return Probe("ok")

    async def aclose(self) -> None:
        """The store is its owner's."""
