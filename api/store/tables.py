"""Today's tables, for building statements, and column types that hold the same on both databases.

Only names and types stand here: keys, defaults and indexes are made by `migrations`, step by step.
An item's facts are stored once per tenant. An analysis keeps its report without the items, and one
`verdicts` row for each place where an item stood in it: which facts it shares with the item's row,
and its own fields (rank, score, explanation, and facts that were different then).

PostgreSQL refuses NUL in text, both refuse lone surrogates, and PostgreSQL's indexes refuse long
keys; with these types none of that is an error, whatever text a person or a site wrote.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic_core import from_json
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Date,
    DateTime,
    Dialect,
    Float,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    and_,
    text,
    type_coerce,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeDecorator, TypeEngine

T = TypeVar("T")
Conditions = Sequence[ColumnElement[bool]]
_log = logging.getLogger(__name__)
# What no database takes as text: NUL, and half of a UTF-16 pair such as the `\ud83d` of an emoji
# that was cut in two.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
# The same in JSON, where NUL is escaped already: a lone `\ud83d` becomes these letters.
_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST = 200
_BATCH = 400
_HASHED = "sha256:"


class Digest(str):
    """A digest in the place of a key, as the database holds it: compared as it is."""

    __slots__ = ()


def identity(text: str) -> str:
    """The text itself as a key, or its digest when it is long or cannot be stored."""
    if isinstance(text, Digest):
        return text
    if len(text) <= _LONGEST and not text.startswith(_HASHED) and _is_storable(text):
        return text
    return Digest(_HASHED + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest())


def _is_storable(text: str) -> bool:
    return (text.isascii() and text.isprintable()) or not _UNSTORABLE.search(text)


def batches(many: Iterable[T]) -> Iterator[list[T]]:
    """Few enough for one statement's parameters."""
    listed = list(many)
    return (listed[start : start + _BATCH] for start in range(0, len(listed), _BATCH))


def as_stored(column: Column[Any]) -> ColumnElement[str]:
    """A column of keys to compare with keys that were read: a digest would be digested again."""
    return type_coerce(column, Text)


# One for all: `json.dumps` would build one for each value.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def dumps(value: object) -> str:
    """JSON that any database can hold and `json.loads` reads back exactly."""
    text = _JSON.encode(value)
    if text.isascii():
        return text
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def loads(text: str) -> Any:
    """The value again; pydantic's reader is several times as fast, and takes no lone surrogate."""
    try:
        return from_json(text)
    except ValueError:
        return json.loads(text)


def _words(value: object) -> str | None:
    """A text as it is read: SQLite keeps anything in any column of a damaged or foreign file."""
    return value if value is None or isinstance(value, str) else ascii(value)


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time; None when the stored value is damaged."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """SQLite has no zones: what it holds is UTC."""
        if value is None:
            return None
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """Read a value; a damaged one raises no error, which would hide the other rows."""
        read = super().result_processor(dialect, coltype)

        def guarded(value: Any) -> Any:
            try:
                return read(value) if read else value
            except (ValueError, TypeError):
                _log.warning("a stored time is damaged and is left out")
                return None

        return guarded

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The moment, aware of UTC as before."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Identity(TypeDecorator[str]):
    """A key: compared, never shown."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """See `identity`."""
        return None if value is None else identity(value)

    def process_result_value(self, value: object, dialect: Dialect) -> str | None:
        """The stored value as text, whatever its type."""
        words = _words(value)
        return Digest(words) if words is not None and words.startswith(_HASHED) else words


class Prose(TypeDecorator[str]):
    """Text for people; characters that no database accepts become U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Replace NUL and lone surrogates."""
        return value if value is None or _is_storable(value) else _UNSTORABLE.sub("\ufffd", value)

    def process_result_value(self, value: object, dialect: Dialect) -> str | None:
        """The stored value as text, whatever its type."""
        return _words(value)


class Document(TypeDecorator[Any]):
    """A JSON value, read back exactly; a text too, which then is kept to the last character."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """Write it as JSON."""
        return None if value is None else dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """The parsed JSON; None when it is damaged, so that other rows can be read."""
        if value is None:
            return None
        try:
            return loads(value)
        except (ValueError, TypeError, RecursionError) as error:
            _log.warning("a stored document is no JSON and is left out: %s", type(error).__name__)
            return None


METADATA = MetaData()


def _table(
    name: str,
    key: str,
    /,
    *constraints: SchemaItem,
    optional: str = "",
    **columns: type[TypeEngine[Any]],
) -> Table:
    """A table; `key` names the columns of its primary key, `optional` those that may be NULL."""
    nullable = optional.split()
    listed = (
        Column(column, kind, nullable=column in nullable, autoincrement=False) for column, kind in columns.items()
    )
    return Table(name, METADATA, *listed, PrimaryKeyConstraint(*key.split()), *constraints)


def _of(table: Table, column: str, *, cascade: bool = True) -> ForeignKeyConstraint:
    """Refers by `tenant` and `column` to a row; with `cascade` it is deleted with that row."""
    ondelete = "CASCADE" if cascade else None
    return ForeignKeyConstraint(["tenant", column], [*table.primary_key], ondelete=ondelete)


def _index(name: str, columns: str, *, where: str = "", unique: bool = False, prefix: str = "") -> Index:
    """`prefix` is a column that is also looked up by a beginning, see `begins`."""
    only, ordered = text(where) if where else None, {prefix: "text_pattern_ops"} if prefix else {}
    return Index(
        name, *columns.split(), unique=unique, sqlite_where=only, postgresql_where=only, postgresql_ops=ordered
    )


def begins(column: Column[Any], beginning: str, *, sqlite: bool) -> ColumnElement[bool]:
    """Whether a key begins so, by the column's index: `LIKE` looks through the whole table."""
    end = beginning[:-1] + chr(ord(beginning[-1]) + 1)
    if sqlite:
        return and_(column >= beginning, column < end)
    return and_(column.op("~>=~", is_comparison=True)(beginning), column.op("~<~", is_comparison=True)(end))


schema_version = _table("schema_version", "version", version=Integer, applied_at=UtcDateTime)

runs = _table("runs", "id", id=Text, place=Prose, pid=BigInteger, started=Text, seen_at=UtcDateTime)
"""Processes that run analyses; `place` is host, boot and process namespace."""

analyses = _table(
    "analyses", "tenant id",
    _index("analyses_newest", "tenant created_at id"),
    _index("analyses_running", "run_id", where="state = 'running'"),
    _index("analyses_by_digest", "tenant digest", where="state = 'running'"),
    _index("analyses_by_link", "link", unique=True),
    tenant=Identity, id=Identity, state=Text, run_id=Text, work_id=Text, digest=Text,
    created_at=UtcDateTime, query=Prose, reason=Prose, decision=Identity, report_version=Integer,
    summary=Document, tally=Document, body=Document, link=Identity,
    optional="run_id work_id digest reason decision report_version summary tally body link",
)  # fmt: skip
"""`link` is the SHA-256 digest of the token that opens the report without a key."""
analysis_sources = _table(
    "analysis_sources", "tenant analysis_id source", _of(analyses, "analysis_id"),
    tenant=Identity, analysis_id=Identity, source=Identity,
)  # fmt: skip
items = _table(
    "items", "tenant key", _index("items_by_key", "key", prefix="key"),
    tenant=Identity, key=Identity, facts=Document, seen_at=UtcDateTime,
)  # fmt: skip
verdicts = _table(
    "verdicts", "tenant analysis_id part position",
    _of(analyses, "analysis_id"),
    _of(items, "key", cascade=False),
    _index("verdicts_of_item", "key tenant"),
    tenant=Identity, analysis_id=Identity, part=Identity, position=Integer, key=Identity,
    shared=Document, own=Document,
)  # fmt: skip
replies = _table(
    "replies", "tenant key reply",
    _of(items, "key"),
    _index("replies_by_reply", "reply", prefix="reply"),
    tenant=Identity, key=Identity, reply=Identity,
)  # fmt: skip
"""Comments that are themselves posts of a stream, by their keys in it: when the stream reports one as deleted, the
comment is deleted too."""
chunks = Table(
    "chunks", METADATA,
    # SQLite numbers rows by itself in a column of the type INTEGER alone
    Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("tenant", Identity, nullable=False),
    Column("key", Identity, nullable=False),
    Column("comment", Identity, nullable=False),
    Column("part", Integer, nullable=False),
    Column("source", Identity, nullable=False),
    Column("thread", Identity, nullable=False),
    Column("sample", Boolean, nullable=False),
    Column("created_at", UtcDateTime),
    Column("tokens", Text, nullable=False),
    Column("vector", LargeBinary),
    _of(items, "key"),
    _index("chunks_of_item", "tenant key comment part", unique=True),
    _index("chunks_of_tenant", "tenant sample number"),
    _index("chunks_unread", "tenant", where="vector IS NULL"),
    sqlite_autoincrement=True,
)  # fmt: skip
"""Entries that the archive searches. `comment` is empty for the item's own text, `tokens` begin
with a `mark`. Their words are indexed beside them, see `migrations`."""

embeddings = Table(
    "embeddings", METADATA,
    Column("chunk", BigInteger().with_variant(Integer, "sqlite"), nullable=False),
    Column("model", Identity, nullable=False),
    Column("vector", LargeBinary, nullable=False),
    PrimaryKeyConstraint("chunk", "model"),
    ForeignKeyConstraint(["chunk"], [chunks.c.number], ondelete="CASCADE"),
)  # fmt: skip
"""Vectors of entries by a server of embeddings; `model` is its name and its dimensions."""
embedded = _table("embedded", "tenant model", tenant=Identity, model=Identity, number=BigInteger)
"""Number of the last entry of a tenant that has a vector of a model; sample entries are not counted."""

imports = _table(
    "imports", "tenant id", tenant=Identity, id=Identity, name=Prose, form=Text, digest=Identity,
    offset=BigInteger, line=BigInteger, intake=Document, created_at=UtcDateTime,
    finished_at=UtcDateTime, optional="finished_at",
)  # fmt: skip
"""Files that were imported; `offset` and `line` are how far one is stored."""
imported = _table(
    "imported", "tenant import_id key",
    _of(imports, "import_id"),
    _of(items, "key"),
    _index("imported_of_item", "key tenant"),
    tenant=Identity, import_id=Identity, key=Identity, comments=Document,
)  # fmt: skip
"""Which items an import holds, and which of their comments it brought."""
refusals = _table(
    "refusals", "tenant import_id number", _of(imports, "import_id"),
    tenant=Identity, import_id=Identity, number=BigInteger, line=BigInteger, reason=Prose,
    start=Prose,
)  # fmt: skip
"""Lines of imports that could not be read."""

ledger = _table("ledger", "scope day", scope=Identity, day=Date, units=BigInteger)
charges = _table(
    "charges", "work_id scope",
    work_id=Text, scope=Identity, day=Date, units=BigInteger, settled=Boolean,
)  # fmt: skip
"""What a piece of work has taken from the ledger, so that no process takes it again."""
pages = _table("pages", "key", _index("pages_by_age", "stored_at"), key=Identity, text=Document, stored_at=UtcDateTime)
"""Pages of sources, and answers that scheduled runs share."""
asking = _table("asking", "key", key=Identity, asker=Text, until=UtcDateTime)
"""Which process alone requests the page of this key, and until when."""
paces = _table(
    "paces", "scope",
    scope=Identity, counts=Document, paused_until=UtcDateTime, spent=Boolean, used_at=UtcDateTime,
    optional="paused_until",
)  # fmt: skip
"""Recent requests of all processes to a source, and when its pause ends; `spent`: its daily quota is used up."""
keys = _table(
    "keys", "id", UniqueConstraint("name"), UniqueConstraint("digest"),
    id=Identity, name=Prose, digest=Identity, created_at=UtcDateTime, revoked=Boolean,
)  # fmt: skip
logins = _table("logins", "digest", digest=Identity, tenant=Identity, until=UtcDateTime)
sessions = _table(
    "sessions", "tenant id",
    _index("sessions_of_report", "tenant report_id saved_at"),
    tenant=Identity, id=Identity, text=Document, saved_at=UtcDateTime, report_id=Identity, optional="report_id",
)  # fmt: skip
"""`report_id` is the report that a conversation began over; NULL without one, or from before version 12."""
idempotency = _table(
    "idempotency", "tenant key",
    tenant=Identity, key=Identity, digest=Identity, analysis_id=Identity, claimed_at=UtcDateTime,
)  # fmt: skip
feedback = _table(
    "feedback", "tenant analysis_id subject target author",
    _of(analyses, "analysis_id"),
    _index("feedback_on_item", "target", where="subject = 'item'"),
    tenant=Identity, analysis_id=Identity, author=Identity, subject=Text, target=Identity,
    item_key=Document, rating=Text, comment=Prose, created_at=UtcDateTime, optional="item_key",
)  # fmt: skip
"""`target` is the number of a finding or the key of an item, empty for a whole report."""

corrections = _table(
    "corrections", "tenant question key",
    _index("corrections_by_key", "key", prefix="key"),
    tenant=Identity, question=Identity, key=Identity, item_key=Document, relevant=Boolean,
    title=Prose, body=Prose, place=Prose, source=Identity, query=Prose, about=Prose,
    created_at=UtcDateTime,
)  # fmt: skip
"""A person's verdicts; `question` is the digest of product, description and aim."""
agreement_samples = _table(
    "agreement_samples", "tenant question digest",
    _index("agreement_samples_newest", "tenant question stored_at"),
    _index("agreement_samples_by_age", "stored_at"),
    tenant=Identity, question=Text, digest=Text, sureness=Float, agrees=Boolean, stored_at=UtcDateTime,
)  # fmt: skip
"""What two judges said of posts; question and post are digests."""
senses = _table(
    "senses", "tenant question",
    tenant=Identity, question=Identity, about=Prose, not_about=Document, created_at=UtcDateTime,
)  # fmt: skip
"""The sense of a name that a tenant chose; `question` is the digest of the name."""

feeds = _table(
    "feeds", "address",
    address=Identity, state=Document, next_at=UtcDateTime, asked_at=UtcDateTime, optional="next_at",
)  # fmt: skip
"""State of a feed for all tenants; it is not requested before `next_at`, and never when that is NULL."""
feed_entries = Table(
    "feed_entries", METADATA,
    Column("address", Identity, nullable=False),
    Column("key", Identity, nullable=False),
    Column("entry", Document, nullable=False),
    Column("moment", UtcDateTime, nullable=False),
    Column("seen_at", UtcDateTime, nullable=False),
    PrimaryKeyConstraint("address", "key"),
    ForeignKeyConstraint(["address"], ["feeds.address"], ondelete="CASCADE"),
    Column("came_at", UtcDateTime),
    _index("feed_entries_newest", "address moment"),
    _index("feed_entries_came", "came_at"),
)  # fmt: skip
"""`moment` is when an entry was written, else first seen; `seen_at` when its feed last held it; `came_at` when it was
first stored, NULL of what its feed held when that was first read."""
followed_feeds = _table(
    "followed_feeds", "tenant address",
    tenant=Identity, address=Identity, written=Document, name=Prose, since=UtcDateTime,
)  # fmt: skip
"""`written` is the address, of which a long one is kept as its digest beside it."""

watches = _table(
    "watches", "tenant id",
    _index("watches_by_name", "tenant name", unique=True),
    _index("watches_due", "due_at id", where="NOT paused"),
    _index("watches_by_feed", "feed", unique=True),
    _index("watches_streamed", "streamed_at"),
    _index("watches_without_history", "created_at", where="history_due IS NOT NULL"),
    _index("watches_with_digest", "digest_at"),
    tenant=Identity, id=Identity, name=Identity, body=Document, paused=Boolean,
    created_at=UtcDateTime, due_at=UtcDateTime, began_at=UtcDateTime, claim=Text,
    claimed_until=UtcDateTime, feed=Identity, streamed_at=UtcDateTime,
    history_due=Boolean, judged_from=UtcDateTime, unjudged=Integer,
    digest_at=UtcDateTime, digest_until=UtcDateTime, digest_runs=Document,
    optional="began_at claim claimed_until feed streamed_at history_due judged_from unjudged "
    "digest_at digest_until digest_runs",
)  # fmt: skip
"""`claim` is the run that a process does until `claimed_until`; then another may take it over.
`feed` is the SHA-256 digest of the token that reads its feed. `streamed_at` is when one that follows streams was
changed last; NULL where it does not, or is paused. `history_due` is NULL once receivers were notified of earlier posts.
Before `judged_from` none of its waiting posts is judged; `unjudged` were dropped since its last run of a stream.
At `digest_at` some receiver gets its digest; `digest_runs` are those that a process gathered for it, which sends them
until `digest_until`: another that takes over sends the same ones."""
watch_runs = _table(
    "watch_runs", "tenant watch_id id",
    _of(watches, "watch_id"),
    _index("watch_runs_newest", "tenant watch_id created_at"),
    _index("watch_runs_held", "tenant watch_id created_at", where="held IS NOT NULL"),
    tenant=Identity, watch_id=Identity, id=Identity, rule=Text, counts=Document, body=Document,
    created_at=UtcDateTime, news=Boolean, held=Boolean, optional="counts held",
)  # fmt: skip
"""`held` is true while a run waits for the digest of some receiver, else NULL."""
watch_items = _table(
    "watch_items", "tenant watch_id key",
    _of(watches, "watch_id"),
    _index("watch_items_by_key", "key", prefix="key"),
    tenant=Identity, watch_id=Identity, key=Identity, dropped_by=Text, facts=Document,
    seen_at=UtcDateTime, optional="facts",
)  # fmt: skip
"""What a watch has seen; `dropped_by` is the rule by which it was dropped, empty where it was kept,
`facts` are the words by which a copy is recognised."""
inbox = _table(
    "inbox", "tenant id",
    _index("inbox_of_watch", "tenant watch_id key", unique=True),
    _index("inbox_unread", "tenant id", where="read_at IS NULL"),
    _index("inbox_by_key", "key", prefix="key"),
    tenant=Identity, id=Text, watch_id=Identity, key=Identity, watch=Prose, source=Identity, site=Identity,
    complains=Boolean, folded=Prose, body=Document, came_at=UtcDateTime,
    read_at=UtcDateTime, starred=Boolean, note=Prose, not_about=Boolean, assigned=Prose,
    optional="read_at assigned",
)  # fmt: skip
"""New posts of watches, one row for each watch; `folded` are the texts in which a search looks, `assigned` is the name
of whoever shall deal with it, or NULL. It refers to no watch: an entry with a star, a note or such a name stays when
its watch is removed."""
inbox_settings = _table(
    "inbox_settings", "tenant",
    _index("inbox_settings_by_feed", "feed", unique=True),
    tenant=Identity, body=Document, feed=Identity, optional="feed",
)  # fmt: skip
"""`feed` is the SHA-256 digest of the token that reads the inbox as a feed."""

streams = _table(
    "streams", "name",
    name=Identity, cursor=Text, read_until=UtcDateTime, reader=Text, claimed_until=UtcDateTime,
    optional="cursor read_until reader claimed_until",
)  # fmt: skip
"""Position of each stream, and the process that alone reads it until `claimed_until`."""
stream_posts = _table(
    "stream_posts", "tenant watch_id key",
    _of(watches, "watch_id"),
    _index("stream_posts_by_key", "key", prefix="key"),
    _index("stream_posts_waiting", "came_at"),
    tenant=Identity, watch_id=Identity, key=Identity, facts=Document, came_at=UtcDateTime,
)  # fmt: skip
"""Posts of streams that hold the name of a watch, until its gate has judged them."""
