"""One suite over the archive: on SQLite, and on PostgreSQL without and with the extension."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from api.core.words import index_tokens
from api.features.archive.index_words import chunked
from api.features.archive.search import ArchiveSearch
from api.features.archive.search_values import EVERYTHING, ArchiveFilters, Match, Matches
from api.settings import RankingSettings, RetrievalSettings
from api.store import SqlStore, open_store
from api.store.database import Database, engine_url
from api.store.item_rows import tenant_token
from api.store.tables import items
from tests.postgres import Postgres
from tests.store.made import ODD, counted, dropped, item, report, typed
from tests.store.meaning import embed

VERSIONS = Path(__file__).parents[1] / "store" / "versions"
REAL = ArchiveFilters()


def has_vector(server: Postgres) -> bool:
    """Whether a server has the extension."""
    control = server.psql.parent.parent
    return any(control.rglob("vector.control")) or any(Path("/usr/share/postgresql").rglob("vector.control"))


@pytest.fixture(params=["sqlite", "postgresql", "pgvector"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database, of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'listenpost.db'}"
        return
    name = "postgres" if request.param == "postgresql" else "vector_postgres"
    server: Postgres = request.getfixturevalue(name)
    if request.param == "postgresql" and has_vector(server):
        pytest.skip("this machine's PostgreSQL has the extension `vector`")
    url = server.create()
    yield url
    server.clear(url)


@pytest.fixture
def nearest(request: pytest.FixtureRequest) -> bool:
    """Whether this kind of database looks for the nearest."""
    return "postgresql" not in request.node.callspec.params.values()


@pytest.fixture
async def store(url: str) -> AsyncIterator[SqlStore]:
    """An empty store with vectors."""
    opened = await open_store(url, embed)
    yield opened
    await opened.aclose()


async def keep(store: SqlStore, tenant: str, id_: str, *listed: dict[str, Any], **more: Any) -> None:
    """Store a report that kept these items."""
    await store.finish(tenant, typed(report(id_, *listed, **more)))


def post(key: str, body: str, *comments: str, **more: Any) -> dict[str, Any]:
    """A kept item without words but these."""
    written: list[dict[str, Any]] = [
        {"id": f"c{number}", "body": words, "url": "", "created_at": None, "engagement": {}}
        for number, words in enumerate(comments, 1)
    ]
    return item(key, **{"title": "", "body": body, "comments": written, **more})


async def search(
    store: SqlStore, query: str, filters: ArchiveFilters = REAL, tenant: str = "a", most: int = 50
) -> Matches:
    """Both searches."""
    (vector,) = embed([query])
    return await store.matches(tenant, index_tokens(query), vector, filters, most)


def by_words(found: Matches) -> list[str]:
    """What was found by words, as `id` or `id/number of the comment`."""
    return [_name(match) for match in found.matches if match.by_words]


def by_vector(found: Matches) -> list[str]:
    """What is among the nearest and like the question at all."""
    return [_name(match) for match in found.matches if match.by_vector]


def _name(match: Match) -> str:
    key, comment, _ = match.id
    return key.partition(":")[2][:9] + (f"/{comment}" if comment else "")


async def test_item_and_comments_are_found_each_by_its_own_words(store: SqlStore) -> None:
    """And those of the title; in either form; not by a part of a word."""
    await keep(store, "a", "r1",
               post("reddit:t3_1", "The batteries died.", "My lid leaks", "所以小米手环很好",
                    title="Ember"),
               post("reddit:t3_2", "A BATTERY of tests"))  # fmt: skip

    assert by_words(await search(store, "battery")) == ["t3_1", "t3_2"]
    assert by_words(await search(store, "lids")) == ["t3_1/1"]
    assert by_words(await search(store, "小米")) == ["t3_1/2"]
    assert by_words(await search(store, "手环")) == ["t3_1/2"]
    assert by_words(await search(store, "ember")) == ["t3_1", "t3_1/1", "t3_1/2"]
    for nothing in ("batter", "米小", "的", "the", "", "emb"):
        assert by_words(await search(store, nothing)) == []


async def test_entry_is_found_by_its_meaning(store: SqlStore, nearest: bool) -> None:
    """The nearest first; without the extension words are all there is, and the answer says so."""
    await keep(store, "a", "r1", post("reddit:t3_1", "battery", "cover"), post("reddit:t3_2", "xyz"))

    found = await search(store, "akku", most=1)

    assert (found.vectors, by_words(found)) == (nearest, [])
    assert by_vector(found) == (["t3_1"] if nearest else [])
    assert by_vector(await search(store, "lid", most=1)) == (["t3_1/1"] if nearest else [])
    assert [match.vector for match in found.matches] == embed(["akku"] * len(found.matches))


async def test_both_searches_say_which_found_an_entry(store: SqlStore, nearest: bool) -> None:
    """Each is bounded by itself; an entry stands there once, in the order of its id."""
    await keep(store, "a", "r1", post("reddit:t3_2", "lid lid"), post("reddit:t3_1", "cover"))

    found = await search(store, "lid", most=2)

    assert [(m.id[0], m.by_words, m.by_vector) for m in found.matches] == (
        [("reddit:t3_1", False, True), ("reddit:t3_2", True, True)] if nearest else [("reddit:t3_2", True, False)]
    )
    assert [m.tokens for m in found.matches][-1] == ("lid", "lid")


async def test_words_are_ranked_alike_everywhere(store: SqlStore) -> None:
    """Which are found, how often and among how many does not depend on the database."""
    bodies = ["ember mug", "ember lid lid", "mug mug mug", "nothing here", "ember " * 30, "lid"]
    listed = [post(f"reddit:t3_{n}", body) for n, body in enumerate(bodies)]
    await keep(store, "a", "r1", *listed)

    found = await search(store, "ember mug lid")

    assert dict(found.frequencies) == {"ember": 3, "mug": 2, "lid": 2}
    assert found.entries == 6
    assert by_words(found) == ["t3_0", "t3_1", "t3_2", "t3_4", "t3_5"]
    # the rarer and the shorter first: two words of three, then one
    assert by_words(await search(store, "ember mug lid", most=2)) == ["t3_0", "t3_1"]


async def test_report_and_its_entries_are_stored_together_or_not_at_all(url: str) -> None:
    """What goes wrong while it is indexed undoes the report."""

    def failing(texts: Sequence[str]) -> list[bytes]:
        if any("battery" in text for text in texts):
            raise MemoryError
        return embed(texts)

    store = await open_store(url, failing)
    with pytest.raises(MemoryError):
        await keep(store, "a", "r1", post("reddit:t3_1", "battery"))
    assert await counted(url, "analyses", "items", "verdicts", "chunks") == [0, 0, 0, 0]
    await keep(store, "a", "r1", post("reddit:t3_1", "lid"))
    assert by_words(await search(store, "lid")) == ["t3_1"]
    await store.aclose()


async def test_entries_go_with_the_last_analysis_that_holds_their_item(store: SqlStore, url: str) -> None:
    """Not before; not those of another tenant."""
    shared = post("reddit:t3_1", "battery", "lid")
    await keep(store, "a", "r1", shared, post("reddit:t3_2", "battery"))
    await keep(store, "a", "r2", shared)
    await keep(store, "b", "r1", shared)

    assert await store.delete("a", "r1")
    assert by_words(await search(store, "battery lid")) == ["t3_1", "t3_1/1"]
    assert await store.delete("a", "r2")
    assert by_words(await search(store, "battery lid")) == []
    assert by_vector(await search(store, "battery lid")) == []
    assert by_words(await search(store, "battery", tenant="b")) == ["t3_1"]
    assert await counted(url, "items", "chunks") == [1, 2]


async def test_report_that_takes_the_place_of_another_takes_its_entries_along(
    store: SqlStore,
) -> None:
    """Of the first only what the second holds is found."""
    await keep(store, "a", "r1", post("reddit:t3_1", "battery"), post("reddit:t3_2", "battery"))
    await keep(store, "a", "r1", post("reddit:t3_2", "battery"))

    assert by_words(await search(store, "battery")) == ["t3_2"]


async def test_what_its_source_deleted_is_found_by_nobody(store: SqlStore, url: str) -> None:
    """Gone from every tenant, by words and meaning, with its comments."""
    for tenant in ("a", "b"):
        gone, left = post("reddit:t3_1", "battery", "battery"), post("reddit:t3_2", "battery")
        await keep(store, tenant, "r1", gone, left)
    await search(store, "battery")

    assert await store.forget(["reddit:t3_1"]) == 1
    for tenant in ("a", "b"):
        found = await search(store, "battery", tenant=tenant)
        assert [m.id[0] for m in found.matches] == ["reddit:t3_2"]
        assert await store.facts(tenant, ["reddit:t3_1"]) == {}
    assert await counted(url, "items", "chunks") == [2, 2]


async def test_answer_that_is_remembered_forgets_with_the_store(store: SqlStore) -> None:
    """A search asked twice shows nothing that was deleted in between."""
    await keep(store, "a", "r1", post("reddit:t3_1", "The ember battery died."))
    archive = ArchiveSearch(store, embed, RetrievalSettings(), RankingSettings())

    first = await archive.search("a", "ember battery died")
    again = await archive.search("a", "ember battery died")
    await store.forget(["reddit:t3_1"])
    gone = await archive.search("a", "ember battery died")

    assert [hit.passage for hit in first.hits] == ["The ember battery died."]
    assert again.retrieval.cacheHit
    assert gone.hits == ()


async def test_tenants_do_not_find_each_other(store: SqlStore) -> None:
    """Also when a text holds what marks another's entries."""
    marks = [tenant_token(tenant, sample=sample) for tenant in "ab" for sample in (True, False)]
    await keep(store, "a", "r1", post("reddit:t3_1", "secret battery"))
    await keep(store, "b", "r1", post("reddit:t3_2", " ".join(["secret", *marks]), *marks))

    assert by_words(await search(store, "secret")) == ["t3_1"]
    assert by_words(await search(store, "secret", tenant="b")) == ["t3_2"]
    for one_mark in marks:
        assert not set(by_words(await search(store, f"{one_mark} secret"))) - {"t3_1"}
    assert not (await search(store, "secret", tenant="c")).matches
    assert await store.facts("b", ["reddit:t3_1"]) == {}
    assert await store.queries("c", 9) == ()


async def test_what_others_store_moves_no_score(store: SqlStore) -> None:
    """How many entries there are and how many hold a word are a tenant's own."""
    await keep(store, "a", "r1", post("reddit:t3_1", "battery"))
    alone = await search(store, "battery")
    await keep(store, "b", "r1", *(post(f"reddit:t3_{n}", "battery") for n in range(30)))
    await keep(store, "a", "r2", post("reddit:t3_9", "battery"), sample=True)

    assert await search(store, "battery") == alone
    assert (alone.entries, dict(alone.frequencies)) == (1, {"battery": 1})


async def test_what_is_made_up_is_found_by_itself(store: SqlStore) -> None:
    """Never together with what was heard."""
    await keep(store, "a", "r1", post("reddit:t3_1", "battery"))
    await keep(store, "a", "r2", post("reddit:t3_2", "battery"), sample=True)

    for sample, name in ((False, "t3_1"), (True, "t3_2")):
        found = await search(store, "battery", ArchiveFilters(sample=sample))
        assert [m.id[0].partition(":")[2] for m in found.matches] == [name]


FILTERED: tuple[tuple[dict[str, Any], list[str]], ...] = (
    ({"source": "youtube"}, ["v1"]),
    ({"source": "amazon"}, []),
    ({"since": datetime(2026, 11, 10, tzinfo=UTC)}, ["t3_1", "t3_1/1"]),
    ({"since": datetime(2026, 11, 12, tzinfo=UTC)}, ["t3_1/1"]),
    ({"until": datetime(2026, 11, 10, tzinfo=UTC)}, ["v1"]),
    (
        {
            "since": datetime(2026, 11, 9, tzinfo=UTC),
            "until": datetime(2026, 11, 11, tzinfo=UTC),
        },
        ["t3_1", "v1"],
    ),
    ({"kept": True}, ["t3_1", "t3_1/1", "v1"]),
    ({"kept": False}, ["t3_2", "x"]),
    ({"product": "ПЛАУД note"}, ["t3_1", "t3_1/1", "t3_2", "v1"]),
    ({"product": "other"}, ["t3_2", "v1"]),
    ({"product": "plaud"}, []),
    ({"product": "other", "kept": False, "source": "reddit"}, ["t3_2"]),
    ({}, ["t3_1", "t3_1/1", "t3_2", "v1", "x"]),
)


async def test_filters_leave_what_they_name(store: SqlStore, nearest: bool) -> None:
    """Place, time, what was decided and what was asked, for both searches.

    What has no date is neither since nor until.
    """
    first = post("reddit:t3_1", "battery", "battery", created_at="2026-11-10T00:00:00Z")
    first["comments"][0]["created_at"] = "2026-11-20T00:00:00Z"
    video = post("youtube:v1", "battery", created_at="2026-11-09T23:59:59Z")
    out = dropped("reddit:t3_2") | {"title": "battery"}
    other = dropped("items:x") | {"title": "battery"}
    await keep(store, "a", "r1", first, video, out=[out], query="Плауд Note")
    await keep(store, "a", "r2", video, out=[out], query="Other")
    await keep(store, "a", "r3", out=[other], query="third")
    await keep(store, "b", "r1", post("items:x", "battery"), query="plaud")

    for filters, names in FILTERED:
        found = await search(store, "battery", ArchiveFilters(**filters))
        assert (filters, sorted(by_words(found))) == (filters, names)
        assert (filters, sorted(by_vector(found))) == (filters, names if nearest else [])


async def test_few_that_are_wanted_are_found_among_many_that_are_not(store: SqlStore, nearest: bool) -> None:
    """A filter that leaves one of hundreds, all as near, still finds it; so does the last one."""
    many = [post(f"reddit:t3_{n}", "battery") for n in range(300)]
    await keep(store, "a", "r1", *many)
    await keep(store, "a", "r2", post("youtube:v1", "battery xyz"))

    assert by_vector(await search(store, "akku", ArchiveFilters(source="youtube"), most=5)) == (
        ["v1"] if nearest else []
    )
    await store.delete("a", "r1")
    found = await search(store, "akku", most=5)
    assert by_vector(found) == (["v1"] if nearest else [])


async def test_item_that_gained_fields_is_found_by_them(store: SqlStore) -> None:
    """Dropped with a title alone at first, then kept with text and comments."""
    await keep(store, "a", "r1", out=[dropped("reddit:t3_1") | {"title": "Ember"}])
    before = await search(store, "battery")
    await keep(store, "a", "r2", post("reddit:t3_1", "battery", "lid", title="Ember mug"))

    assert by_words(before) == []
    assert by_words(await search(store, "battery")) == ["t3_1"]
    assert by_words(await search(store, "lid")) == ["t3_1/1"]
    assert by_words(await search(store, "ember")) == ["t3_1", "t3_1/1"]
    facts = await store.facts("a", ["reddit:t3_1"])
    assert [c.body for c in facts["reddit:t3_1"].comments] == ["lid"]


async def test_vectors_that_are_missing_come_later(url: str, nearest: bool) -> None:
    """Stored where there were none, found by meaning as soon as there are, and by words always."""
    bare = await open_store(url)
    await keep(bare, "a", "r1", post("reddit:t3_1", "battery"), post("reddit:t3_2", "xyz"))
    found = await bare.matches("a", ["battery"], None, REAL, 9)
    assert (found.vectors, by_words(found)) == (False, ["t3_1"])
    assert [match.vector for match in found.matches] == [None]
    await bare.aclose()

    store = await open_store(url, embed)
    found = await search(store, "akku", most=1)
    assert by_vector(found) == (["t3_1"] if nearest else [])
    assert by_words(await search(store, "battery")) == ["t3_1"]
    await store.aclose()


async def test_extension_that_is_made_later_finds_what_was_stored_before(url: str, nearest: bool) -> None:
    """An administrator installs it: no entry stays unfound."""
    if url.startswith("sqlite"):
        pytest.skip("SQLite needs no extension")
    store = await open_store(url, embed)
    await keep(store, "a", "r1", post("reddit:t3_1", "battery"))
    await store.aclose()
    database = Database(engine_url(url))
    async with database.writing() as connection:  # as it was without it
        await connection.execute(text("ALTER TABLE chunks DROP COLUMN IF EXISTS embedding"))
    await database.aclose()

    store = await open_store(url, embed)
    assert by_vector(await search(store, "akku")) == (["t3_1"] if nearest else [])
    await store.aclose()


async def test_queries_are_the_newest_of_a_tenant_each_once(store: SqlStore) -> None:
    """Of reports, running and failed analyses alike."""
    for number, query in enumerate(("mug", "lid", "mug", "cup")):
        when = f"2026-11-2{number}T10:00:00Z"
        await keep(store, "a", f"r{number}", query=query, created_at=when)
    await keep(store, "b", "r1", query="other")
    await store.begin("a", "running", "newest")

    assert await store.queries("a", 9) == ("newest", "cup", "mug", "lid")
    assert await store.queries("a", 2) == ("newest", "cup")


async def test_facts_are_those_of_the_keys_that_were_asked_for(store: SqlStore) -> None:
    """Without what is not there; more than one statement takes at once."""
    await keep(store, "a", "r1", *(post(f"reddit:t3_{n}", "x") for n in range(3)))
    await keep(store, "a", "r2", out=[dropped("reddit:bare")])

    facts = await store.facts("a", [f"reddit:t3_{n}" for n in range(1000)] + ["reddit:bare"])

    assert sorted(facts) == ["reddit:bare", "reddit:t3_0", "reddit:t3_1", "reddit:t3_2"]
    bare = facts["reddit:bare"]
    assert (bare.title, bare.source, bare.comments) == ("Title reddit:bare", "reddit", ())
    assert await store.facts("a", []) == {}


async def test_odd_items_are_stored_found_shown_and_forgotten(store: SqlStore, url: str) -> None:
    """Keys that no index takes, comments with one id or none, NULs, half emoji, huge texts."""
    key = f"items:{ODD}{'x' * 3000}"
    odd = post(key, f"battery {ODD}", "lid", "lid", title=ODD)
    odd["comments"][0]["id"] = odd["comments"][1]["id"] = f"{ODD}{'y' * 3000}"
    huge = post("items:huge", "杯 mug " * 50_000, title="t" * 100_000)
    empty = post("items:empty", "")
    await keep(store, "a", "r1", odd, huge, empty, post("items:sign", "''' \\ & :* ! <-> \" |"))
    archive = ArchiveSearch(store, embed, RetrievalSettings(min_content_tokens=0), RankingSettings(diversity_max=0))

    (hit,) = (await archive.search("a", "battery")).hits[:1]
    assert (hit.key, hit.comment_id) == (typed(report("r", odd)).items[0].key, None)
    assert [h.comment_id for h in (await archive.search("a", "lid")).hits[:2]] == [odd["comments"][0]["id"]] * 2
    assert (await archive.search("a", "battery")).retrieval.cacheHit
    assert len(by_words(await search(store, "杯"))) >= 20
    assert await store.forget([key]) == 1
    left = await archive.search("a", "battery")
    assert (left.retrieval.cacheHit, left.retrieval.keywordMax) == (False, None)
    assert hit.key not in {other.key for other in left.hits}
    assert await store.delete("a", "r1")
    assert await counted(url, "items", "chunks") == [0, 0]


async def test_odd_item_without_vectors_is_indexed_again(url: str) -> None:
    """One with a key that only its digest stands for, and one that is damaged, which goes."""
    store = await open_store(url)
    key = f"items:{'x' * 3000}"
    await keep(store, "a", "r1", post(key, "battery", "lid"), post("items:broken", "battery"))
    database = Database(engine_url(url))
    async with database.writing() as connection:
        same = items.c.key == "items:broken"
        await connection.execute(update(items).where(same).values(facts="no facts"))
    await database.aclose()
    await store.aclose()

    store = await open_store(url, embed)
    found = await search(store, "battery")
    assert [m.tokens[0] for m in found.matches if m.by_words] == ["battery"]
    facts = await store.facts("a", [m.id[0] for m in found.matches])
    assert {item.key for item in facts.values()} == {key}
    assert await counted(url, "chunks") == [2]
    assert await store.delete("a", "r1")
    assert await counted(url, "items", "chunks") == [0, 0]
    await store.aclose()


HOSTILE = (
    "battery\x00", '"battery" OR *', "battery NEAR(lid)", "battery -lid", "battery'", "battery\\",
    "battery & lid:*", "!battery | ('lid' <-> x)", "battery; DROP TABLE chunks", "{battery}^2",
    "tokens:battery", "\ud83dbattery", "battery " * 100,
)  # fmt: skip


async def test_signs_of_a_search_language_are_none(store: SqlStore) -> None:
    """Only words reach an index."""
    await keep(store, "a", "r1", post("reddit:t3_1", "battery"), post("reddit:t3_2", "xyz"))

    for query in HOSTILE:
        assert (query, by_words(await search(store, query))) == (query, ["t3_1"])


async def test_question_of_very_many_words_is_answered(store: SqlStore) -> None:
    """As many as a question can have: five hundred letters of a script without blanks."""
    letters = "".join(chr(0x4E00 + number) for number in range(500))
    await keep(store, "a", "r1", post("reddit:t3_1", letters), post("reddit:t3_2", letters[-2:]))

    found = await search(store, letters)

    assert len(found.frequencies) == 499
    assert by_words(found) == ["t3_1", "t3_2"]


async def test_searches_and_reports_do_not_disturb_each_other(store: SqlStore) -> None:
    """Twenty of each at once: each search sees whole reports, and in the end all is found."""
    many = [keep(store, "a", f"r{n}", post(f"reddit:t3_{n}", "battery", "battery")) for n in range(20)]
    searches = [search(store, "battery akku") for _ in range(20)]

    done = await asyncio.gather(*many, *searches)

    for found in done[20:]:
        assert found is not None
        names = by_words(found)
        assert all(f"{name.partition('/')[0]}/1" in names for name in names)
    assert len(by_words(await search(store, "battery"))) == 40


async def test_every_piece_that_is_indexed_can_be_shown(store: SqlStore) -> None:
    """An entry's id is that of a piece of its item, whatever the item."""
    listed = [post(f"items:{n}", "word " * 600 * n, *["lid"] * n) for n in range(4)]
    await keep(store, "a", "r1", *listed)

    found = await search(store, "word lid")

    facts = await store.facts("a", {match.id[0] for match in found.matches})
    pieces = {piece.id: tuple(index_tokens(piece.full_text)) for f in facts.values() for piece in chunked(f)}
    assert {match.id: match.tokens for match in found.matches} == pieces
    assert found.entries == len(pieces)


async def test_nothing_is_found_in_an_empty_store(store: SqlStore, nearest: bool) -> None:
    """Nothing is an answer."""
    found = await search(store, "battery")

    assert found == Matches((), {"battery": 0}, 0, nearest)
    assert EVERYTHING == REAL
