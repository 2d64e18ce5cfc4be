"""Questions and items that were written to break a search."""

from __future__ import annotations

import pytest

from api.core.words import index_tokens
from api.features.archive.index_words import LONGEST_CHUNK, MOST_CHUNKS, TITLE, chunked
from api.features.archive.search import ArchiveSearch
from api.settings import RankingSettings, RetrievalSettings
from tests.features.archive.made import NEAREST, ArchiveOf, comment, embed, facts, match, page

TEXTS = {
    "a hundred thousand letters": "x" * 100_000,
    "a hundred thousand words": "mug " * 25_000,
    "a hundred thousand letters without blanks": "杯" * 100_000,
    "punctuation": "?!.,;:-_()[]{}",
    "NUL": "ember\x00mug\x00battery\x00",
    "half of a pair": "ember \ud83d mug \udc00 battery",
    "FTS5": '"ember" * NEAR(mug lid) OR -battery AND NOT tokens:x ^a {b}',
    "tsquery": "'ember' & \\ mug:* | !battery <-> 'lid''s",
    "SQL": "'; DROP TABLE chunks; --",
    "brackets": "(" * 400,
    "combining marks": "a" + "\u0301" * 400,
    "right to left": "\u202eember mug battery",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_question_is_answered_or_guided(text: str) -> None:
    """Whatever it is, words alone reach the archive, and no more than a question may have."""
    archive = ArchiveOf(page(match("x:a", 5, NEAREST)), {"x:a": facts("x:a")})
    search = ArchiveSearch(archive, embed, RetrievalSettings(evidence_floor=0), RankingSettings())

    answer = await search.search("a", text)

    assert bool(answer.guidance) != bool(archive.searches)
    answer.model_dump_json().encode("utf-8")
    for _, words, _ in archive.searches:
        assert words
        assert all(set(word).isdisjoint("\"'*:&|!-\\()<> \x00") for word in words)
        assert sum(map(len, words)) <= 1000


async def test_any_text_may_be_searched_without_a_gate() -> None:
    """A least number of 0 lets a question without an index word through: it finds by meaning."""
    archive = ArchiveOf(page(match("x:a", 0, NEAREST)), {"x:a": facts("x:a")})
    search = ArchiveSearch(archive, embed, RetrievalSettings(min_content_tokens=0), RankingSettings())

    answer = await search.search("a", "the")

    assert archive.searches[0][1] == ()
    assert (answer.retrieval.keywordMax, answer.retrieval.combinedTop) == (None, 0.65)


@pytest.mark.parametrize("letter", ["mug ", "杯", "\x00", "\ud83d", "\n", "a.", "\u0301", "👨\u200d👩"])
async def test_body_of_a_hundred_thousand_tokens_is_searched_and_quoted(letter: str) -> None:
    """Up to the bounds of pieces, without an error."""
    text = letter * 100_000
    item = facts("x:a", title=text, body=text, comments=(comment(text), comment(text)))
    chunks = chunked(item)

    assert len(chunks) <= 3 * MOST_CHUNKS
    assert all(len(c.text) <= LONGEST_CHUNK and len(c.title) <= TITLE for c in chunks)
    assert all(len(index_tokens(c.full_text)) <= LONGEST_CHUNK + TITLE for c in chunks)
    archive = ArchiveOf(page(*(match("x:a", 5, NEAREST, id=c.id) for c in chunks)), {"x:a": item})
    search = ArchiveSearch(archive, embed, RetrievalSettings(evidence_floor=0), RankingSettings())
    answer = await search.search("a", "ember mug battery")
    assert len(answer.hits) == min(len(chunks), 8)


async def test_item_without_fields_is_shown_as_it_is() -> None:
    """No title, text, place or date."""
    item = facts("x:a", title="", body="", url="", place=None, comments=(comment("Hm", ""),))
    archive = ArchiveOf(page(match("x:a", 5, NEAREST, id=("x:a", "1", 0))), {"x:a": item})
    search = ArchiveSearch(archive, embed, RetrievalSettings(evidence_floor=0), RankingSettings())

    (hit,) = (await search.search("a", "ember mug battery")).hits

    assert (hit.title, hit.passage, hit.url, hit.comment_id) == ("", "Hm", "", "")
