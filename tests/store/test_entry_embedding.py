"""Vectors of a server beside the entries: made behind what stores them, of one model at a time, and gone on with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from api.errors import ModelError
from api.features.archive import embedding
from api.features.archive.embedding import ModelVectors, Waiting
from api.features.archive.imports import FileIdentity, ImportBatch, ImportPosition
from api.features.archive.search_values import ArchiveFilters, Matches
from api.store import SqlStore, open_store
from api.store.item_rows import facts_of
from tests.postgres import Postgres
from tests.store.made import counted, item, report, typed
from tests.store.meaning import embed


@dataclass
class Server:
    """Makes vectors of 320 dimensions in which some words share a direction; keeps what it was sent."""

    name: str = "some-model"
    dimensions: int | None = None
    size: int = 320
    sent: list[str] = field(default_factory=list)
    fails_from: int = 10**9
    """Number of the text from which on it fails."""
    closed: bool = False

    async def of_question(self, text: str) -> ModelVectors:
        """The vector of a question."""
        return ModelVectors(f"{self.name} {self.size}", tuple(v.ljust(self.size, b"\0") for v in embed([text])), 1)

    async def of_entries(self, texts: Sequence[str]) -> ModelVectors:
        """Vectors of entries; ten tokens each."""
        if len(self.sent) + len(texts) > self.fails_from:
            raise ModelError("rate_limited", "HTTP 429")
        self.sent += texts
        vectors = tuple(vector.ljust(self.size, b"\0") for vector in embed(texts))
        return ModelVectors(f"{self.name} {self.size}", vectors, 10 * len(texts))

    def usd(self, tokens: int) -> float | None:
        """Nothing."""
        return 0.0

    async def aclose(self) -> None:
        """Nothing is open."""
        self.closed = True


@pytest.fixture(params=["sqlite", "pgvector"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database that compares vectors, of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'listenpost.db'}"
        return
    server: Postgres = request.getfixturevalue("vector_postgres")
    made = server.create()
    yield made
    server.clear(made)


FEW = 300
"""Entries that take more than one step; ten times as many take ten times as long to index."""


@asynccontextmanager
async def opened(url: str, server: Server | None, most: int = embedding.MOST_UNASKED) -> AsyncIterator[SqlStore]:
    """A store with this server, which embeds at most so many entries unasked."""
    store = await open_store(url, embed, server, most)
    try:
        yield store
    finally:
        await store.aclose()


async def keep(store: SqlStore, id_: str, *bodies: str, tenant: str = "a", sample: bool = False) -> None:
    """Store items with these texts, and wait until they are embedded."""
    listed = [item(f"items:{id_}{n}", title="", body=body, comments=[]) for n, body in enumerate(bodies)]
    await store.finish(tenant, typed(report(id_, *listed, sample=sample)))
    if store.embedding is not None:
        await store.embedding.settle()


async def search(store: SqlStore, query: str, server: Server | None, most: int = 1) -> Matches:
    """The nearest alone, by the vectors of the server or by the word vectors."""
    made = ModelVectors("", tuple(embed([query]))) if server is None else await server.of_question(query)
    return await store.matches("a", (), made.vectors[0], ArchiveFilters(), most, made.model)


def texts(found: Matches) -> list[str]:
    """What is among the nearest."""
    return sorted(" ".join(match.tokens) for match in found.matches if match.by_vector)


async def test_entries_are_embedded_behind_what_stores_them_and_found_by_the_model(url: str) -> None:
    """Made-up ones are not sent; a question is one call; the word vectors stay beside."""
    server = Server()
    async with opened(url, server) as store:
        await keep(store, "x", "battery", "cover")
        await keep(store, "y", "battery sample", sample=True)
        assert server.sent == ["battery", "cover"]

        found = await search(store, "akku", server)
        assert (texts(found), found.vectors, found.unread) == (["battery"], True, 0)
        assert [len(match.vector or b"") for match in found.matches] == [320]
        assert texts(await search(store, "lid", None)) == ["cover"]
        assert store.embedding is not None
        assert await store.embedding.waiting("a") == Waiting(0, 0)
    assert server.closed
    assert await counted(url, "embeddings", "embedded") == [2, 1]


async def test_two_models_are_never_compared(url: str) -> None:
    """Of another name or other dimensions: each finds what it embedded, and says how much it did not."""
    first, second, longer = Server(), Server("another-model"), Server(size=384)
    async with opened(url, first) as store:
        await keep(store, "x", "battery")
    async with opened(url, None) as store:
        await keep(store, "y", "battery strap")
    for other in (second, longer):
        async with opened(url, other) as store:
            found = await search(store, "akku", other)
        assert (texts(found), found.vectors, found.unread) == ([], False, 2)
    async with opened(url, longer) as store:
        await keep(store, "z", "cover")
        assert len(longer.sent) > 3, "the first ones were sent again, since the dimensions became known"
        assert texts(await search(store, "akku", longer, 3)) == ["battery", "battery strap", "cover"]
        again = await search(store, "akku", first, 3)
        assert (texts(again), again.unread) == (["battery"], 2)
        assert {len(match.vector or b"") for match in again.matches} == {320}
    async with opened(url, first) as store:
        await keep(store, "w", "lid")
        assert first.sent[0] == "battery"
        assert first.sent[-3:] == ["battery strap", "cover", "lid"], "its own stay, others follow in order"


async def test_what_failed_is_gone_on_with(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """By the next that is stored, or by the command; nothing is sent twice, and the answer says what is missing."""
    server = Server(fails_from=1)
    async with opened(url, server) as store:
        await keep(store, "x", "battery")
        await keep(store, "y", "cover", "strap")
        assert "not embedded" in caplog.text
        found = await search(store, "lid", server)
        assert (texts(found), found.unread) == (["battery"], 2)
    server.fails_from = 10**9
    async with opened(url, server) as store:
        assert store.embedding is not None
        assert await store.embedding.tenants() == ["a"]
        assert await store.embedding.waiting("a") == Waiting(2, 4)
        heard: list[tuple[int, int]] = []
        await store.embedding.embed("a", lambda *step: heard.append(step))
        assert heard == [(2, 20)]
        assert texts(await search(store, "lid", server)) == ["cover"]
    assert sorted(server.sent) == ["battery", "cover", "strap"]


async def test_many_that_wait_are_left_to_the_command(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """So that an import of a dump, or a new model, costs nothing that was not said before."""
    count = FEW + 1
    facts = [facts_of(f"items:{n}", {"body": f"word{n}"}) for n in range(count)]
    server = Server()
    async with opened(url, server, FEW) as store:
        begun = await store.begin_import("a", FileIdentity("dump.jsonl", "jsonl", "d1"))
        batch = ImportBatch(tuple(filter(None, facts)), (), {}, ImportPosition(10, 10))
        await store.finish_import("a", await store.keep_batch("a", begun, batch))
        assert store.embedding is not None
        await store.embedding.settle()
        assert server.sent == []
        assert "`listenpost archive embed`" in caplog.text
        assert (await store.embedding.waiting("a")).entries == count


async def test_an_import_under_way_is_not_sent_unasked(url: str) -> None:
    """Where a report is stored in its midst, what was there then is embedded, and not what comes meanwhile."""
    facts = [facts_of(f"items:{n}", {"body": f"word{n}"}) for n in range(FEW)]

    @dataclass
    class Importing(Server):
        async def of_entries(self, texts: Sequence[str]) -> ModelVectors:
            if not self.sent:
                begun = await store.begin_import("a", FileIdentity("dump.jsonl", "jsonl", "d1"))
                batch = ImportBatch(tuple(filter(None, facts)), (), {}, ImportPosition(10, 10))
                await store.keep_batch("a", begun, batch)
            return await super().of_entries(texts)

    server = Importing()
    async with opened(url, server, FEW) as store:
        await keep(store, "x", "battery")
    assert server.sent == ["battery"]


async def test_a_server_that_alternates_is_not_paid_without_end(url: str) -> None:
    """Of two models behind one address each answer in turn has other dimensions."""

    @dataclass
    class Alternating(Server):
        async def of_entries(self, texts: Sequence[str]) -> ModelVectors:
            made = await super().of_entries(texts)
            self.size = 704 - self.size
            return made

    server = Alternating()
    async with opened(url, None) as store:
        await keep(store, "x", *(f"word{n}" for n in range(300)))
    async with opened(url, server) as store:
        assert store.embedding is not None
        with pytest.raises(ModelError, match="384 dimensions, and had others"):
            await store.embedding.embed("a", lambda *_: None)
    assert len(server.sent) == 256


async def test_entries_that_go_take_their_vectors_along(url: str) -> None:
    """And one that went while its vector was made has none."""

    @dataclass
    class Forgetting(Server):
        async def of_entries(self, texts: Sequence[str]) -> ModelVectors:
            if len(texts) > 1:
                await store.forget(["items:x0"])
            return await super().of_entries(texts)

    server = Forgetting()
    async with opened(url, server) as store:
        await keep(store, "x", "battery", "cover")
        assert await counted(url, "embeddings") == [1]
        assert texts(await search(store, "akku lid", server, 9)) == ["cover"]
        await store.delete("a", "x")
    assert await counted(url, "embeddings") == [0]


async def test_entry_with_new_text_is_embedded_anew(url: str) -> None:
    """Its comment that is new, and no more."""
    server = Server()
    async with opened(url, server) as store:
        begun = await store.begin_import("a", FileIdentity("dump.jsonl", "jsonl", "d1"))
        comment: dict[str, Any] = {"id": "c1", "body": "strap", "url": "", "created_at": None, "engagement": {}}
        for number, comments in enumerate([[], [comment]]):
            fact = facts_of("items:1", {"body": "battery", "comments": comments})
            assert fact is not None
            batch = ImportBatch((fact,), (), {}, ImportPosition(number + 1, number + 1))
            begun = await store.keep_batch("a", begun, batch)
            await store.finish_import("a", begun)
            assert store.embedding is not None
            await store.embedding.settle()
    assert server.sent == ["battery", "strap"]
