"""The archive as a source: stored items by words and meaning, without the network."""

from __future__ import annotations

from collections.abc import Mapping

from api.core.domain import FetchPlan
from api.core.items import Batch, Item
from api.core.ports import Probe
from api.core.text import clean_query
from api.core.words import index_tokens
from api.errors import StoreUnavailable, Unreachable
from api.features.archive.embedding import Embedder, question_vector
from api.features.archive.search_ranking import combine_scores, score_matches
from api.features.archive.search_values import Archive, ArchiveFilters, Embed
from api.sources import ARCHIVE, Price
from api.sources.own_items import LocalSource, separated
from api.sources.searched_source import window_start

PRICE = Price(entries=1_000, searches=0, quotes=False, threads=0)
# pieces to search for each wanted item: an item and its comments are several
_PIECES = 4


class ArchiveSource(LocalSource):
    """Stored items, ranked by their best piece, without score floors: the gate judges them."""

    name = ARCHIVE.name

    def __init__(
        self,
        archive: Archive,
        tenant: str,
        embed: Embed,
        weight: float,
        *,
        sample: bool = False,
        embedder: Embedder | None = None,
    ) -> None:
        """`weight` is the share of vector similarity, `sample` is for made-up items; see `ArchiveSearch.embedder`."""
        self._archive, self._tenant, self._embed, self._weight = archive, tenant, embed, weight
        self._sample, self._embedder = sample, embedder

    async def fetch(self, plan: FetchPlan) -> Batch:
        """The best items, with their comments."""
        query = clean_query(plan.query)
        filters = ArchiveFilters(since=window_start(plan.window), sample=self._sample)
        words = index_tokens(query)
        try:
            meaning, failed = await question_vector(query, self._embed, self._embedder)
            vector, model = (meaning.vectors[0], meaning.model) if meaning else (None, "")
            most = plan.limit * _PIECES
            matches = await self._archive.matches(self._tenant, words, vector, filters, most, model)
            entries = score_matches(matches, words, vector)
            line = combine_scores(entries, self._weight, vectors=matches.vectors)
            keys = list(dict.fromkeys(entry.id[0] for entry in line))
            facts = await self._archive.facts(self._tenant, keys[: plan.limit])
        except StoreUnavailable as error:
            raise Unreachable(self.name, error.public) from None
        best = {entry.id[:2]: at for at, entry in reversed(list(enumerate(line)))}
        items = [post for key in keys[: plan.limit] if key in facts for post in _posts(facts[key], best)]
        why = f"the server of embeddings gave no vector ({failed})" if failed else "there are no word vectors here"
        if matches.unread and not failed:
            why = "their vectors are still being made"
        notes = () if matches.vectors else (f"found by words alone: {why}",)
        full = max(len(keys), len(items)) > plan.limit
        return Batch(plan, tuple(items[: plan.limit]), full=full, notes=notes)

    async def probe(self) -> Probe:
        """Return `ok` without a request."""
        return Probe("ok")


def _posts(item: Item, best: Mapping[tuple[str, str], int]) -> list[Item]:
    """The item, or the comments of a stub: first those that were found, in their order."""
    posts = separated(item)
    if len(posts) < 2:
        return posts
    places = [best.get((item.key, str(number)), len(best)) for number in range(1, len(posts) + 1)]
    return [post for _, post in sorted(zip(places, posts, strict=True), key=lambda pair: pair[0])]
