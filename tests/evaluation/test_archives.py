"""The sample data as an archive, and the plain searches beside the product's."""

from __future__ import annotations

from collections.abc import Sequence

from api.evaluation.search_scores import (
    DEPTH,
    TENANT,
    LabelledQuestion,
    checked_search,
    plain_searches,
    product_search,
    sample_archive,
    sample_reports,
)
from api.features.archive.embedding import ModelVectors
from api.features.archive.search_values import DIMENSIONS
from api.models.local.word_vectors import embed
from api.sandbox import corpus
from api.settings import RankingSettings, RetrievalSettings

BATTERY = "Ember mug battery after two years"
QUESTIONS = (
    BATTERY,
    "Oura or Whoop for lifting weights",
    "小米SU7冬天续航会掉多少",
    "which gadgets do people regret having bought",
    "Does the Roomba j9 drive round a cat's litter box?",
)
MUG = "reddit:t3_1baopti"


async def test_the_sample_world_is_searched_in_four_ways() -> None:
    """Without guardrails the product is the plain hybrid; with them it can say nothing.

    Without vectors nothing is near, and both ways together are words.
    """
    async with sample_archive() as archive:
        plain, ranking = plain_searches(archive), RankingSettings()
        bare = product_search(archive, RetrievalSettings(guardrails_enable=False), ranking)
        for question in QUESTIONS:
            hybrid = await plain["hybrid"](question)
            assert len(hybrid) == DEPTH
            assert await bare(question) == hybrid

        product = product_search(archive, RetrievalSettings(), ranking)
        for search in (*plain.values(), product):
            assert MUG in {key for key, _ in await search(BATTERY)}
        assert await product(QUESTIONS[-1]) == []
        reviews = await plain["words"]("Coffee stays at 136 through three meetings, spoiled")
        assert reviews[0] == ("amazon:B06TNLH621", "RJD19UAIWVRB0L")

        alone = plain_searches(archive, lambda texts: None)
        assert await alone["vectors"](BATTERY) == []
        assert await alone["hybrid"](BATTERY) == await alone["words"](BATTERY) != []
        queries = {report.query for report in sample_reports()}
        assert set(await archive.queries(TENANT, 50)) == queries


class WordVectors:
    """The word vectors, as a server would give them."""

    name, dimensions, tokens = "words", DIMENSIONS, 0

    async def of_question(self, text: str) -> ModelVectors:
        return await self.of_entries([text])

    async def of_entries(self, texts: Sequence[str]) -> ModelVectors:
        self.tokens += len(texts)
        return ModelVectors(f"words {DIMENSIONS}", tuple(embed(texts) or ()))

    def usd(self, tokens: int) -> float | None:
        return None

    async def aclose(self) -> None:
        pass


async def test_the_vectors_of_a_server_and_a_check_that_is_always_right() -> None:
    """Each entry is embedded once; the check opens an answer that shares too few words with its question."""
    words = "solicitor wonders whether confidential conversations stay on premises"
    answer = ("reddit:t3_14lycg3", None)
    question = LabelledQuestion("q", "paraphrase", "dev", words, {answer: 2})
    settings, server = (RetrievalSettings(), RankingSettings()), WordVectors()
    async with sample_archive(server) as archive:
        product = product_search(archive, *settings, server)
        embedded = server.tokens
        found = await product(BATTERY)
        silent, opened = await product(words), await checked_search(archive, *settings, [question], server)(words)

    assert MUG in {key for key, _ in found}
    assert (silent, opened) == ([], [answer])
    assert server.tokens == embedded + 3  # the three questions


def test_what_is_gone_there_is_in_no_report() -> None:
    """Neither deleted posts nor deleted comments."""
    kept = {item.key: item for report in sample_reports() for item in report.items}
    posts = [*corpus.load(), *corpus.keyless()]

    assert kept.keys() == {post.key for post in posts if not post.deleted}
    comments = {comment.id: comment.body for item in kept.values() for comment in item.comments}
    assert comments.keys().isdisjoint(r.id for post in posts for r in post.comments if r.deleted)
    assert {"[deleted]", "[removed]", ""}.isdisjoint(comments.values())
