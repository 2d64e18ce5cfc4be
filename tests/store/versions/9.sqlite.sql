BEGIN TRANSACTION;
CREATE TABLE analyses (
            tenant TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, run_id TEXT,
            created_at DATETIME NOT NULL, query TEXT NOT NULL, reason TEXT, decision TEXT,
            report_version INTEGER, summary TEXT, body TEXT, tally TEXT,
            PRIMARY KEY (tenant, id)
        );
INSERT INTO "analyses" VALUES('a','r1','done',NULL,'2026-11-27 10:00:00.000000','plaud note',NULL,'full_report',1,'{"id":"r1","version":1,"query":"plaud note","about":"","depth":"standard","decision":"full_report","decision_rationale":"4 of 7","disclaimer":null,"total_scored":2,"total_survived":2,"topic":"Plaud","sample":false,"cost":{"usd":null,"tokens":0,"upstream_calls":3},"trace_id":null,"created_at":"2026-11-27T10:00:00Z","sources":{"reddit":{"outcome":"ok","reason":null,"fetched":3,"kept":2,"yield_ratio":0.5},"youtube":{"outcome":"ok","reason":null,"fetched":0,"kept":0,"yield_ratio":0.5}}}','{"id":"r1","version":1,"query":"plaud note","about":"","rewritten_queries":[],"depth":"standard","decision":"full_report","decision_rationale":"4 of 7","disclaimer":null,"explanation_text":null,"total_scored":2,"total_survived":2,"quality_notes":[],"grading":"on","topic":"Plaud","summary":"People like it.","findings":[{"text":"Finding on reddit:t3_1","kind":"praise","cites":["reddit:t3_1"]},{"text":"Finding on youtube:v1","kind":"praise","cites":["youtube:v1"]}],"figures":{"aspects":[{"aspect":"battery","count":2,"positive":0,"negative":2,"cites":["reddit:t3_1","youtube:v1"]}]},"quotes":[{"text":"Quote of reddit:t3_1","key":"reddit:t3_1","url":""},{"text":"Quote of youtube:v1","key":"youtube:v1","url":""}],"sources":{"reddit":{"query":"mug","source":"reddit","outcome":"ok","reason":null,"retry_at":null,"gate":{"status":"ok","reason":null,"model":"local-1"},"attempts":[],"fetched":3,"kept":2,"yield_ratio":0.5,"refetched":false,"refetch_gain":0,"upstream_calls":1,"notes":[],"dropped":1,"sample":false,"trace_id":null},"youtube":{"query":"mug","source":"reddit","outcome":"ok","reason":null,"retry_at":null,"gate":{"status":"ok","reason":null,"model":"local-1"},"attempts":[],"fetched":0,"kept":0,"yield_ratio":0.5,"refetched":false,"refetch_gain":0,"upstream_calls":1,"notes":[],"dropped":0,"sample":false,"trace_id":null}},"coverage":"All were asked.","suggestions":[],"items":2,"dropped":1,"sample":false,"cost":{"usd":null,"tokens":0,"upstream_calls":3},"timings_ms":{"crawl":5},"trace_id":null,"created_at":"2026-11-27T10:00:00Z"}','{"decision":"full_report","sample":false,"cost":{"usd":null,"tokens":0,"upstream_calls":3},"support":{"status":"skipped","reason":null,"model":null,"pairs":0,"supported":0},"sources":{"reddit":{"outcome":"ok","gate":{"status":"ok","reason":null,"model":"local-1"},"attempts":[],"fetched":3,"fit":null,"kept":2,"yield_ratio":0.5,"refetched":false,"refetch_gain":0,"upstream_calls":1},"youtube":{"outcome":"ok","gate":{"status":"ok","reason":null,"model":"local-1"},"attempts":[],"fetched":0,"fit":null,"kept":0,"yield_ratio":0.5,"refetched":false,"refetch_gain":0,"upstream_calls":1}},"items":2,"cited":2}');
INSERT INTO "analyses" VALUES('a','r2','running','9d9e8e7913951140','2026-11-27 10:00:00.000000','lost',NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "analyses" VALUES('b','r1','failed','9d9e8e7913951140','2026-11-27 10:00:00.000000','mug','no model',NULL,NULL,NULL,NULL,NULL);
CREATE TABLE analysis_sources (
            tenant TEXT NOT NULL, analysis_id TEXT NOT NULL, source TEXT NOT NULL,
            PRIMARY KEY (tenant, analysis_id, source),
            FOREIGN KEY (tenant, analysis_id) REFERENCES analyses (tenant, id) ON DELETE CASCADE
        );
INSERT INTO "analysis_sources" VALUES('a','r1','reddit');
INSERT INTO "analysis_sources" VALUES('a','r1','youtube');
CREATE TABLE feedback (
            tenant TEXT NOT NULL, analysis_id TEXT NOT NULL, author TEXT NOT NULL,
            subject TEXT NOT NULL, target TEXT NOT NULL, item_key TEXT, rating TEXT NOT NULL,
            comment TEXT NOT NULL, created_at DATETIME NOT NULL,
            PRIMARY KEY (tenant, analysis_id, subject, target, author),
            FOREIGN KEY (tenant, analysis_id) REFERENCES analyses (tenant, id) ON DELETE CASCADE
        );
INSERT INTO "feedback" VALUES('a','r1','0123456789abcdef','item','reddit:t3_1','"reddit:t3_1"','down','It''s "so" 小','2026-11-27 10:00:00.000000');
CREATE TABLE idempotency (
            tenant TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL,
            analysis_id TEXT NOT NULL, claimed_at DATETIME NOT NULL,
            PRIMARY KEY (tenant, key)
        );
INSERT INTO "idempotency" VALUES('a','k','d','r1','2026-11-27 10:00:00.000000');
CREATE TABLE items (
            tenant TEXT NOT NULL, key TEXT NOT NULL, facts TEXT NOT NULL, seen_at DATETIME NOT NULL,
            PRIMARY KEY (tenant, key)
        );
INSERT INTO "items" VALUES('a','reddit:t3_1','{"key":"reddit:t3_1","id":"t3_1","source":"reddit","title":"It''s \"Плауд\" 小米 \\u0041","body":"Body t3_1","url":"https://example.org/t3_1","created_at":"2026-11-20T10:00:00Z","engagement":{"votes":12,"share":0.875,"views":null},"place":"mugs","places":["mugs"],"comments":[{"id":"c1","body":"Me too","url":"","created_at":null,"engagement":{}}],"notes":[]}','2026-11-27 10:00:00.000000');
INSERT INTO "items" VALUES('a','youtube:v1','{"key":"youtube:v1","id":"v1","source":"youtube","title":"Title v1","body":"line\nline","url":"https://example.org/v1","created_at":"2026-11-20T10:00:00Z","engagement":{"votes":12,"share":0.875,"views":null},"place":"mugs","places":["mugs"],"comments":[{"id":"c1","body":"Me too","url":"","created_at":null,"engagement":{}}],"notes":[]}','2026-11-27 10:00:00.000000');
INSERT INTO "items" VALUES('a','reddit:t3_2','{"key":"reddit:t3_2","title":"Title reddit:t3_2","url":""}','2026-11-27 10:00:00.000000');
CREATE TABLE keys (
            id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, digest TEXT NOT NULL UNIQUE,
            created_at DATETIME NOT NULL, revoked BOOLEAN NOT NULL
        );
INSERT INTO "keys" VALUES('key_9d2c24bf7fe1','mine','d1','2026-11-27 10:00:00.000000',0);
INSERT INTO "keys" VALUES('key_1cdb3cc97c82','old','d2','2026-11-27 10:00:00.000000',1);
CREATE TABLE ledger (
            scope TEXT NOT NULL, day DATE NOT NULL, units BIGINT NOT NULL,
            PRIMARY KEY (scope, day)
        );
INSERT INTO "ledger" VALUES('youtube.search','2026-11-27',42);
CREATE TABLE pages (key TEXT PRIMARY KEY, text TEXT NOT NULL, stored_at DATETIME NOT NULL);
INSERT INTO "pages" VALUES('k','"{\"slots\":[]}"','2026-11-27 10:00:00.000000');
CREATE TABLE runs (
            id TEXT PRIMARY KEY, place TEXT NOT NULL, pid BIGINT NOT NULL, started TEXT NOT NULL,
            seen_at DATETIME NOT NULL
        );
INSERT INTO "runs" VALUES('9d9e8e7913951140','a host',1,'1','2026-11-27 10:00:00.000000');
CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY, applied_at DATETIME NOT NULL
);
INSERT INTO "schema_version" VALUES(1,'2026-11-27 10:00:00.000000');
INSERT INTO "schema_version" VALUES(2,'2026-11-27 10:00:00.000000');
INSERT INTO "schema_version" VALUES(3,'2026-11-27 10:00:00.000000');
CREATE TABLE sessions (
            tenant TEXT NOT NULL, id TEXT NOT NULL, text TEXT NOT NULL, saved_at DATETIME NOT NULL,
            PRIMARY KEY (tenant, id)
        );
INSERT INTO "sessions" VALUES('a','s','"{\"said\":\"hi\"}"','2026-11-27 10:00:00.000000');
CREATE TABLE verdicts (
            tenant TEXT NOT NULL, analysis_id TEXT NOT NULL, part TEXT NOT NULL,
            position INTEGER NOT NULL, key TEXT NOT NULL, shared TEXT NOT NULL, own TEXT NOT NULL,
            PRIMARY KEY (tenant, analysis_id, part, position),
            FOREIGN KEY (tenant, analysis_id) REFERENCES analyses (tenant, id) ON DELETE CASCADE,
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key)
        );
INSERT INTO "verdicts" VALUES('a','r1','items',0,'reddit:t3_1','["key","id","source","title","body","url","created_at","engagement","place","places","comments","notes"]','{"verdict":true,"judge":"local-1","probability":0.30000000000000004,"score":4,"explanation":"speaks of it","sentiment":-1,"aspects":["battery"],"relevance":0.75,"defaulted":false,"low_relevance":false,"disputed":false,"rank":1,"dropped_by":null}');
INSERT INTO "verdicts" VALUES('a','r1','items',1,'youtube:v1','["key","id","source","title","body","url","created_at","engagement","place","places","comments","notes"]','{"verdict":true,"judge":"local-1","probability":0.30000000000000004,"score":4,"explanation":"speaks of it","sentiment":-1,"aspects":["battery"],"relevance":0.75,"defaulted":false,"low_relevance":false,"disputed":false,"rank":1,"dropped_by":null}');
INSERT INTO "verdicts" VALUES('a','r1','dropped',0,'reddit:t3_2','["key","title","url"]','{"reason":"about another product","verdict":false,"judge":"local-1","probability":0.30000000000000004,"score":null,"explanation":"speaks of it","sentiment":-1,"aspects":["battery"],"relevance":0.75,"defaulted":false,"low_relevance":false,"disputed":false,"rank":null,"dropped_by":"gate"}');
INSERT INTO "verdicts" VALUES('a','r1',':reddit',0,'reddit:t3_2','["key","title","url"]','{"reason":"about another product","verdict":false,"judge":"local-1","probability":0.30000000000000004,"score":null,"explanation":"speaks of it","sentiment":-1,"aspects":["battery"],"relevance":0.75,"defaulted":false,"low_relevance":false,"disputed":false,"rank":null,"dropped_by":"gate"}');
CREATE INDEX analyses_newest ON analyses (tenant, created_at, id);
CREATE INDEX analyses_running ON analyses (run_id) WHERE state = 'running';
CREATE INDEX verdicts_of_item ON verdicts (key, tenant);
CREATE INDEX feedback_on_item ON feedback (target) WHERE subject = 'item';
CREATE TABLE chunks (
            number INTEGER PRIMARY KEY AUTOINCREMENT, tenant TEXT NOT NULL, key TEXT NOT NULL,
            comment TEXT NOT NULL, part INTEGER NOT NULL, source TEXT NOT NULL,
            thread TEXT NOT NULL, sample BOOLEAN NOT NULL, created_at DATETIME,
            tokens TEXT NOT NULL, vector BLOB,
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key) ON DELETE CASCADE
        );
CREATE UNIQUE INDEX chunks_of_item ON chunks (tenant, key, comment, part);
CREATE INDEX chunks_of_tenant ON chunks (tenant, sample, number);
CREATE INDEX chunks_unread ON chunks (tenant) WHERE vector IS NULL;
CREATE VIRTUAL TABLE chunk_words USING fts5 (
            tokens, content='chunks', content_rowid='number',
            tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* Co'"
        );
CREATE TRIGGER chunks_added AFTER INSERT ON chunks BEGIN
            INSERT INTO chunk_words (rowid, tokens) VALUES (new.number, new.tokens);
        END;
CREATE TRIGGER chunks_removed AFTER DELETE ON chunks BEGIN
            INSERT INTO chunk_words (chunk_words, rowid, tokens)
            VALUES ('delete', old.number, old.tokens);
        END;
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector) VALUES (4, 'a', 'reddit:t3_1', '', 0, 'reddit', 'reddit:t3_1', FALSE, '2026-11-20 10:00:00.000000', 'heardca978112ca1bbdca плауд 小米 u0041 body t3 1', NULL);
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector) VALUES (5, 'a', 'reddit:t3_1', 'c1', 0, 'reddit', 'reddit:t3_1', FALSE, '2026-11-20 10:00:00.000000', 'heardca978112ca1bbdca плауд 小米 u0041', NULL);
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector) VALUES (6, 'a', 'reddit:t3_2', '', 0, 'reddit', 'reddit:t3_2', FALSE, NULL, 'heardca978112ca1bbdca title reddit t3 2', NULL);
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector) VALUES (7, 'a', 'youtube:v1', '', 0, 'youtube', 'youtube:v1', FALSE, '2026-11-20 10:00:00.000000', 'heardca978112ca1bbdca title v1 line line', NULL);
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector) VALUES (8, 'a', 'youtube:v1', 'c1', 0, 'youtube', 'youtube:v1', FALSE, '2026-11-20 10:00:00.000000', 'heardca978112ca1bbdca title v1', NULL);
INSERT INTO schema_version VALUES (4, '2026-11-28 10:00:00.000000');
        CREATE TABLE imports (
            tenant TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, form TEXT NOT NULL,
            digest TEXT NOT NULL, "offset" BIGINT NOT NULL, line BIGINT NOT NULL,
            intake TEXT NOT NULL, created_at DATETIME NOT NULL, finished_at DATETIME,
            PRIMARY KEY (tenant, id)
        );
        CREATE TABLE imported (
            tenant TEXT NOT NULL, import_id TEXT NOT NULL, key TEXT NOT NULL,
            comments TEXT NOT NULL,
            PRIMARY KEY (tenant, import_id, key),
            FOREIGN KEY (tenant, import_id) REFERENCES imports (tenant, id) ON DELETE CASCADE,
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key) ON DELETE CASCADE
        );
CREATE INDEX imported_of_item ON imported (key, tenant);
        CREATE TABLE refusals (
            tenant TEXT NOT NULL, import_id TEXT NOT NULL, number BIGINT NOT NULL,
            line BIGINT NOT NULL, reason TEXT NOT NULL, start TEXT NOT NULL,
            PRIMARY KEY (tenant, import_id, number),
            FOREIGN KEY (tenant, import_id) REFERENCES imports (tenant, id) ON DELETE CASCADE
        );
INSERT INTO imports (tenant, id, name, form, digest, "offset", line, intake, created_at, finished_at) VALUES ('a', 'imp_1', 'dump "小".jsonl', 'reddit', 'd1', 4000000000, 7, '{"items":1,"comments":2,"merged":1,"over":0,"refused":1,"left_out":{"written by a bot":3}}', '2026-11-28 10:00:00.000000', NULL);
INSERT INTO imported (tenant, import_id, key, comments) VALUES ('a', 'imp_1', 'reddit:t3_1', '["c1"]');
INSERT INTO refusals (tenant, import_id, number, line, reason, start) VALUES ('a', 'imp_1', 0, 3, 'it is no JSON object', '{"it''s');
INSERT INTO schema_version VALUES (5, '2026-11-28 10:00:00.000000');
        CREATE TABLE watches (
            tenant TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
            paused BOOLEAN NOT NULL, created_at DATETIME NOT NULL, due_at DATETIME NOT NULL,
            began_at DATETIME, claim TEXT, claimed_until DATETIME,
            PRIMARY KEY (tenant, id)
        );
CREATE UNIQUE INDEX watches_by_name ON watches (tenant, name);
CREATE INDEX watches_due ON watches (due_at) WHERE NOT paused;
        CREATE TABLE watch_runs (
            tenant TEXT NOT NULL, watch_id TEXT NOT NULL, id TEXT NOT NULL, rule TEXT NOT NULL,
            counts TEXT, body TEXT NOT NULL, created_at DATETIME NOT NULL,
            PRIMARY KEY (tenant, watch_id, id),
            FOREIGN KEY (tenant, watch_id) REFERENCES watches (tenant, id) ON DELETE CASCADE
        );
CREATE INDEX watch_runs_newest ON watch_runs (tenant, watch_id, created_at);
        CREATE TABLE watch_items (
            tenant TEXT NOT NULL, watch_id TEXT NOT NULL, key TEXT NOT NULL,
            dropped_by TEXT NOT NULL, facts TEXT, seen_at DATETIME NOT NULL,
            PRIMARY KEY (tenant, watch_id, key),
            FOREIGN KEY (tenant, watch_id) REFERENCES watches (tenant, id) ON DELETE CASCADE
        );
CREATE INDEX watch_items_by_key ON watch_items (key);
INSERT INTO watches (tenant, id, name, body, paused, created_at, due_at, began_at, claim, claimed_until) VALUES ('a', 'w1', 'mug "小"', '{"id":"w1","tenant":"a","name":"mug \"小\"","query":"mug","about":"","sources":["reddit"],"depth":"quick","limit":null,"sandbox":false,"every":"mon 08:00","zone":"Europe/Berlin","only":"complaints","notify":[{"kind":"webhook","address":"https://example.org/hook"}],"secret":"s","tell_first":false,"created_at":"2026-11-27T10:00:00Z"}', FALSE, '2026-11-27 10:00:00.000000', '2026-11-30 10:00:00.000000', '2026-11-27 10:00:00.000000', 'run_2', '2026-11-27 10:00:00.000000');
INSERT INTO watch_runs (tenant, watch_id, id, rule, counts, body, created_at) VALUES ('a', 'w1', 'run_1', 'old', '{"since":"2026-11-20T10:00:00Z","until":"2026-11-27T10:00:00Z","sources":{"reddit":{"posts":2,"capped":false,"fresh":2,"graded":0,"tallies":{"mentions:battery":1}}}}', '{"version":1,"id":"run_1","watch_id":"w1","state":"changed","reason":null,"report_id":"r1","counts":{"since":"2026-11-20T10:00:00Z","until":"2026-11-27T10:00:00Z","sources":{"reddit":{"posts":2,"capped":false,"fresh":2,"graded":0,"tallies":{"mentions:battery":1}}}},"new":[],"kept":2,"unusual":[],"looked_at":0,"new_aspects":[],"gaps":[],"sample":false,"created_at":"2026-11-27T10:00:00Z","deliveries":[]}', '2026-11-27 10:00:00.000000');
INSERT INTO watch_items (tenant, watch_id, key, dropped_by, facts, seen_at) VALUES ('a', 'w1', 'reddit:t3_1', '', '{"key":"reddit:t3_1","id":"t3_1","source":"reddit","title":"T"}', '2026-11-27 10:00:00.000000');
INSERT INTO watch_items (tenant, watch_id, key, dropped_by, facts, seen_at) VALUES ('a', 'w1', 'reddit:t3_9', 'old', NULL, '2026-11-27 10:00:00.000000');
INSERT INTO schema_version VALUES (6, '2026-11-28 10:00:00.000000');
ALTER TABLE analyses ADD COLUMN work_id TEXT;
ALTER TABLE analyses ADD COLUMN digest TEXT;
CREATE INDEX analyses_by_digest ON analyses (tenant, digest) WHERE state = 'running';
CREATE TABLE charges (
            work_id TEXT NOT NULL, scope TEXT NOT NULL, day DATE NOT NULL, units BIGINT NOT NULL,
            settled BOOLEAN NOT NULL,
            PRIMARY KEY (work_id, scope)
        );
INSERT INTO charges VALUES ('r2.1', 'key:a:analyses', '2026-11-27', 1, 0);
INSERT INTO schema_version VALUES (7, '2026-11-29 03:00:00.000000');
ALTER TABLE watches ADD COLUMN feed TEXT;
CREATE UNIQUE INDEX watches_by_feed ON watches (feed);
ALTER TABLE watch_runs ADD COLUMN news BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE watches SET feed = 'feed-digest' WHERE id = 'w1';
UPDATE watch_runs SET news = TRUE WHERE id = 'run_1';
INSERT INTO schema_version VALUES (8, '2026-11-28 10:00:00.000000');
ALTER TABLE analyses ADD COLUMN link TEXT;
CREATE UNIQUE INDEX analyses_by_link ON analyses (link);
CREATE TABLE logins (
            digest TEXT PRIMARY KEY, tenant TEXT NOT NULL, until DATETIME NOT NULL
        );
UPDATE analyses SET link = 'link-digest' WHERE tenant = 'a' AND id = 'r1';
INSERT INTO logins VALUES ('login-digest', 'a', '2126-11-29 10:00:00.000000');
INSERT INTO schema_version VALUES (9, '2026-11-29 10:00:00.000000');
COMMIT;
