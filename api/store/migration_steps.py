"""The steps of the tables, each in the words of both databases.

A step that was released is never edited: a change is a new step.
"""

from __future__ import annotations

SQLITE = {
    "moment": "DATETIME",
    "bytes": "BLOB",
    "serial": "INTEGER PRIMARY KEY AUTOINCREMENT",
    "words": """
        CREATE VIRTUAL TABLE chunk_words USING fts5 (
            tokens, content='chunks', content_rowid='number',
            tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
        )
        """,
    "words_index": "",
    "words_added": """
        CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN
            INSERT INTO chunk_words (rowid, tokens) VALUES (new.number, new.tokens);
        END
        """,
    "words_removed": """
        CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN
            INSERT INTO chunk_words (chunk_words, rowid, tokens)
            VALUES ('delete', old.number, old.tokens);
        END
        """,
}
POSTGRESQL = {
    "moment": "TIMESTAMP WITH TIME ZONE",
    "bytes": "BYTEA",
    "serial": "BIGSERIAL PRIMARY KEY",
    "words": "ALTER TABLE chunks ADD COLUMN words TSVECTOR",
    # without `fastupdate`: what waits to be put in its place is read whole by every search
    "words_index": "CREATE INDEX chunks_by_words ON chunks USING gin (words) WITH (fastupdate=off)",
    "words_added": "",
    "words_removed": "",
}
"""What the two databases write differently."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (  # 1: analyses, their items and verdicts, the ledger, pages
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY, place TEXT NOT NULL, pid BIGINT NOT NULL, started TEXT NOT NULL,
            seen_at {moment} NOT NULL
        )
        """,
        """
        CREATE TABLE analyses (
            tenant TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, run_id TEXT,
            created_at {moment} NOT NULL, query TEXT NOT NULL, reason TEXT, decision TEXT,
            report_version INTEGER, summary TEXT, body TEXT,
            PRIMARY KEY (tenant, id)
        )
        """,
        "CREATE INDEX analyses_newest ON analyses (tenant, created_at, id)",
        "CREATE INDEX analyses_running ON analyses (run_id) WHERE state = 'running'",
        """
        CREATE TABLE analysis_sources (
            tenant TEXT NOT NULL, analysis_id TEXT NOT NULL, source TEXT NOT NULL,
            PRIMARY KEY (tenant, analysis_id, source),
            FOREIGN KEY (tenant, analysis_id) REFERENCES analyses (tenant, id) ON DELETE CASCADE
        )
        """,
        """
        CREATE TABLE items (
            tenant TEXT NOT NULL, key TEXT NOT NULL, facts TEXT NOT NULL, seen_at {moment} NOT NULL,
            PRIMARY KEY (tenant, key)
        )
        """,
        """
        CREATE TABLE verdicts (
            tenant TEXT NOT NULL, analysis_id TEXT NOT NULL, part TEXT NOT NULL,
            position INTEGER NOT NULL, key TEXT NOT NULL, shared TEXT NOT NULL, own TEXT NOT NULL,
            PRIMARY KEY (tenant, analysis_id, part, position),
            FOREIGN KEY (tenant, analysis_id) REFERENCES analyses (tenant, id) ON DELETE CASCADE,
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key)
        )
        """,
        "CREATE INDEX verdicts_of_item ON verdicts (key, tenant)",
        """
        CREATE TABLE ledger (
            scope TEXT NOT NULL, day DATE NOT NULL, units BIGINT NOT NULL,
            PRIMARY KEY (scope, day)
        )
        """,
        """
        CREATE TABLE pages (key TEXT PRIMARY KEY, text TEXT NOT NULL, stored_at {moment} NOT NULL)
        """,
    ),
    (  # 2: API keys, chat sessions, idempotency keys
        """
        CREATE TABLE keys (
            id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, digest TEXT NOT NULL UNIQUE,
            created_at {moment} NOT NULL, revoked BOOLEAN NOT NULL
        )
        """,
        """
        CREATE TABLE sessions (
            tenant TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, saved_at {moment} NOT NULL,
            PRIMARY KEY (tenant, id)
        )
        """,
        """
        CREATE TABLE idempotency (
            tenant TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL,
            analysis_id TEXT NOT NULL, claimed_at {moment} NOT NULL,
            PRIMARY KEY (tenant, key)
        )
        """,
    ),
    (  # 3: what is counted of a report, and what people thought of it
        "ALTER TABLE analyses ADD COLUMN tally TEXT",
        """
        CREATE TABLE feedback (
            tenant TEXT NOT NULL, analysis_id TEXT NOT NULL, author TEXT NOT NULL,
            subject TEXT NOT NULL, target TEXT NOT NULL, item_key TEXT, rating TEXT NOT NULL,
            comment TEXT NOT NULL, created_at {moment} NOT NULL,
            PRIMARY KEY (tenant, analysis_id, subject, target, author),
            FOREIGN KEY (tenant, analysis_id) REFERENCES analyses (tenant, id) ON DELETE CASCADE
        )
        """,
        "CREATE INDEX feedback_on_item ON feedback (target) WHERE subject = 'item'",
    ),
    (  # 4: the archive; `words` is a virtual table on SQLite and a column on PostgreSQL
        """
        CREATE TABLE chunks (
            number {serial}, tenant TEXT NOT NULL, key TEXT NOT NULL,
            comment TEXT NOT NULL, part INTEGER NOT NULL, source TEXT NOT NULL,
            thread TEXT NOT NULL, sample BOOLEAN NOT NULL, created_at {moment},
            tokens TEXT NOT NULL, vector {bytes},
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key) ON DELETE CASCADE
        )
        """,
        "CREATE UNIQUE INDEX chunks_of_item ON chunks (tenant, key, comment, part)",
        "CREATE INDEX chunks_of_tenant ON chunks (tenant, sample, number)",
        "CREATE INDEX chunks_unread ON chunks (tenant) WHERE vector IS NULL",
        "{words}",
        "{words_index}",
        "{words_added}",
        "{words_removed}",
        # what is there already is read by the first search, see `ArchivePart`
        """
        INSERT INTO chunks (tenant, key, comment, part, source, thread, sample, tokens)
        SELECT tenant, key, '', 0, '', key, FALSE, '' FROM items
        """,
    ),
    (  # 5: what was brought in from files
        """
        CREATE TABLE imports (
            tenant TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, form TEXT NOT NULL,
            digest TEXT NOT NULL, "offset" BIGINT NOT NULL, line BIGINT NOT NULL,
            intake TEXT NOT NULL, created_at {moment} NOT NULL, finished_at {moment},
            PRIMARY KEY (tenant, id)
        )
        """,
        """
        CREATE TABLE imported (
            tenant TEXT NOT NULL, import_id TEXT NOT NULL, key TEXT NOT NULL,
            comments TEXT NOT NULL,
            PRIMARY KEY (tenant, import_id, key),
            FOREIGN KEY (tenant, import_id) REFERENCES imports (tenant, id) ON DELETE CASCADE,
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key) ON DELETE CASCADE
        )
        """,
        "CREATE INDEX imported_of_item ON imported (key, tenant)",
        """
        CREATE TABLE refusals (
            tenant TEXT NOT NULL, import_id TEXT NOT NULL, number BIGINT NOT NULL,
            line BIGINT NOT NULL, reason TEXT NOT NULL, start TEXT NOT NULL,
            PRIMARY KEY (tenant, import_id, number),
            FOREIGN KEY (tenant, import_id) REFERENCES imports (tenant, id) ON DELETE CASCADE
        )
        """,
    ),
    (  # 6: watches, their runs, what they have seen
        """
        CREATE TABLE watches (
            tenant TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
            paused BOOLEAN NOT NULL, created_at {moment} NOT NULL, due_at {moment} NOT NULL,
            began_at {moment}, claim TEXT, claimed_until {moment},
            PRIMARY KEY (tenant, id)
        )
        """,
        "CREATE UNIQUE INDEX watches_by_name ON watches (tenant, name)",
        "CREATE INDEX watches_due ON watches (due_at) WHERE NOT paused",
        """
        CREATE TABLE watch_runs (
            tenant TEXT NOT NULL, watch_id TEXT NOT NULL, id TEXT NOT NULL, rule TEXT NOT NULL,
            counts TEXT, body TEXT NOT NULL, created_at {moment} NOT NULL,
            PRIMARY KEY (tenant, watch_id, id),
            FOREIGN KEY (tenant, watch_id) REFERENCES watches (tenant, id) ON DELETE CASCADE
        )
        """,
        "CREATE INDEX watch_runs_newest ON watch_runs (tenant, watch_id, created_at)",
        """
        CREATE TABLE watch_items (
            tenant TEXT NOT NULL, watch_id TEXT NOT NULL, key TEXT NOT NULL,
            dropped_by TEXT NOT NULL, facts TEXT, seen_at {moment} NOT NULL,
            PRIMARY KEY (tenant, watch_id, key),
            FOREIGN KEY (tenant, watch_id) REFERENCES watches (tenant, id) ON DELETE CASCADE
        )
        """,
        "CREATE INDEX watch_items_by_key ON watch_items (key)",
    ),
    (  # 7: work that another process goes on with
        "ALTER TABLE analyses ADD COLUMN work_id TEXT",
        "ALTER TABLE analyses ADD COLUMN digest TEXT",
        "CREATE INDEX analyses_by_digest ON analyses (tenant, digest) WHERE state = 'running'",
        """
        CREATE TABLE charges (
            work_id TEXT NOT NULL, scope TEXT NOT NULL, day DATE NOT NULL, units BIGINT NOT NULL,
            settled BOOLEAN NOT NULL,
            PRIMARY KEY (work_id, scope)
        )
        """,
    ),
    (  # 8: feeds of watches, and which of their runs were worth telling
        "ALTER TABLE watches ADD COLUMN feed TEXT",
        "CREATE UNIQUE INDEX watches_by_feed ON watches (feed)",
        "ALTER TABLE watch_runs ADD COLUMN news BOOLEAN NOT NULL DEFAULT FALSE",
    ),
    (  # 9: links to reports, and logins of the pages
        "ALTER TABLE analyses ADD COLUMN link TEXT",
        "CREATE UNIQUE INDEX analyses_by_link ON analyses (link)",
        """
        CREATE TABLE logins (
            digest TEXT PRIMARY KEY, tenant TEXT NOT NULL, until {moment} NOT NULL
        )
        """,
    ),
)
