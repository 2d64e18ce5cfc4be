CREATE TABLE public.analyses (
    tenant text NOT NULL,
    id text NOT NULL,
    state text NOT NULL,
    run_id text,
    created_at timestamp with time zone NOT NULL,
    query text NOT NULL,
    reason text,
    decision text,
    report_version integer,
    summary text,
    body text,
    tally text
);

CREATE TABLE public.analysis_sources (
    tenant text NOT NULL,
    analysis_id text NOT NULL,
    source text NOT NULL
);

CREATE TABLE public.feedback (
    tenant text NOT NULL,
    analysis_id text NOT NULL,
    author text NOT NULL,
    subject text NOT NULL,
    target text NOT NULL,
    item_key text,
    rating text NOT NULL,
    comment text NOT NULL,
    created_at timestamp with time zone NOT NULL
);

CREATE TABLE public.idempotency (
    tenant text NOT NULL,
    key text NOT NULL,
    digest text NOT NULL,
    analysis_id text NOT NULL,
    claimed_at timestamp with time zone NOT NULL
);

CREATE TABLE public.items (
    tenant text NOT NULL,
    key text NOT NULL,
    facts text NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

CREATE TABLE public.keys (
    id text NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    revoked boolean NOT NULL
);

CREATE TABLE public.ledger (
    scope text NOT NULL,
    day date NOT NULL,
    units bigint NOT NULL
);

CREATE TABLE public.pages (
    key text NOT NULL,
    text text NOT NULL,
    stored_at timestamp with time zone NOT NULL
);

CREATE TABLE public.runs (
    id text NOT NULL,
    place text NOT NULL,
    pid bigint NOT NULL,
    started text NOT NULL,
    seen_at timestamp with time zone NOT NULL
);

CREATE TABLE public.schema_version (
    version integer NOT NULL,
    applied_at timestamp with time zone NOT NULL
);

CREATE TABLE public.sessions (
    tenant text NOT NULL,
    id text NOT NULL,
    text text NOT NULL,
    saved_at timestamp with time zone NOT NULL
);

CREATE TABLE public.verdicts (
    tenant text NOT NULL,
    analysis_id text NOT NULL,
    part text NOT NULL,
    "position" integer NOT NULL,
    key text NOT NULL,
    shared text NOT NULL,
    own text NOT NULL
);

INSERT INTO public.analyses VALUES ('a', 'r1', 'done', NULL, '2026-11-27 10:00:00+00', 'plaud note', NULL, 'full_report', 1, '{"id":"r1","version":1,"query":"plaud note","about":"","depth":"standard","decision":"full_report","decision_rationale":"4 of 7","disclaimer":null,"total_scored":2,"total_survived":2,"topic":"Plaud","sample":false,"cost":{"usd":null,"tokens":0,"upstream_calls":3},"trace_id":null,"created_at":"2026-11-27T10:00:00Z","sources":{"reddit":{"outcome":"ok","reason":null,"fetched":3,"kept":2,"yield_ratio":0.5},"youtube":{"outcome":"ok","reason":null,"fetched":0,"kept":0,"yield_ratio":0.5}}}', '{"id":"r1","version":1,"query":"plaud note","about":"","rewritten_queries":[],"depth":"standard","decision":"full_report","decision_rationale":"4 of 7","disclaimer":null,"explanation_text":null,"total_scored":2,"total_survived":2,"quality_notes":[],"grading":"on","topic":"Plaud","summary":"People like it.","findings":[{"text":"Finding on reddit:t3_1","kind":"praise","cites":["reddit:t3_1"]},{"text":"Finding on youtube:v1","kind":"praise","cites":["youtube:v1"]}],"figures":{"aspects":[{"aspect":"battery","count":2,"positive":0,"negative":2,"cites":["reddit:t3_1","youtube:v1"]}]},"quotes":[{"text":"Quote of reddit:t3_1","key":"reddit:t3_1","url":""},{"text":"Quote of youtube:v1","key":"youtube:v1","url":""}],"sources":{"reddit":{"query":"mug","source":"reddit","outcome":"ok","reason":null,"retry_at":null,"gate":{"status":"ok","reason":null,"model":"local-1"},"attempts":[],"fetched":3,"kept":2,"yield_ratio":0.5,"refetched":false,"refetch_gain":0,"upstream_calls":1,"notes":[],"dropped":1,"sample":false,"trace_id":null},"youtube":{"query":"mug","source":"reddit","outcome":"ok","reason":null,"retry_at":null,"gate":{"status":"ok","reason":null,"model":"local-1"},"attempts":[],"fetched":0,"kept":0,"yield_ratio":0.5,"refetched":false,"refetch_gain":0,"upstream_calls":1,"notes":[],"dropped":0,"sample":false,"trace_id":null}},"coverage":"All were asked.","suggestions":[],"items":2,"dropped":1,"sample":false,"cost":{"usd":null,"tokens":0,"upstream_calls":3},"timings_ms":{"crawl":5},"trace_id":null,"created_at":"2026-11-27T10:00:00Z"}', '{"decision":"full_report","sample":false,"cost":{"usd":null,"tokens":0,"upstream_calls":3},"support":{"status":"skipped","reason":null,"model":null,"pairs":0,"supported":0},"sources":{"reddit":{"outcome":"ok","gate":{"status":"ok","reason":null,"model":"local-1"},"attempts":[],"fetched":3,"fit":null,"kept":2,"yield_ratio":0.5,"refetched":false,"refetch_gain":0,"upstream_calls":1},"youtube":{"outcome":"ok","gate":{"status":"ok","reason":null,"model":"local-1"},"attempts":[],"fetched":0,"fit":null,"kept":0,"yield_ratio":0.5,"refetched":false,"refetch_gain":0,"upstream_calls":1}},"items":2,"cited":2}');
INSERT INTO public.analyses VALUES ('a', 'r2', 'running', '6de8b595ef271313', '2026-11-27 10:00:00+00', 'lost', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.analyses VALUES ('b', 'r1', 'failed', '6de8b595ef271313', '2026-11-27 10:00:00+00', 'mug', 'no model', NULL, NULL, NULL, NULL, NULL);

INSERT INTO public.analysis_sources VALUES ('a', 'r1', 'reddit');
INSERT INTO public.analysis_sources VALUES ('a', 'r1', 'youtube');

INSERT INTO public.feedback VALUES ('a', 'r1', '0123456789abcdef', 'item', 'reddit:t3_1', '"reddit:t3_1"', 'down', 'It''s "so" 小', '2026-11-27 10:00:00+00');

INSERT INTO public.idempotency VALUES ('a', 'k', 'd', 'r1', '2026-11-27 10:00:00+00');

INSERT INTO public.items VALUES ('a', 'reddit:t3_1', '{"key":"reddit:t3_1","id":"t3_1","source":"reddit","title":"It''s \"Плауд\" 小米 \\u0041","body":"Body t3_1","url":"https://example.org/t3_1","created_at":"2026-11-20T10:00:00Z","engagement":{"votes":12,"share":0.875,"views":null},"place":"mugs","places":["mugs"],"comments":[{"id":"c1","body":"Me too","url":"","created_at":null,"engagement":{}}],"notes":[]}', '2026-11-27 10:00:00+00');
INSERT INTO public.items VALUES ('a', 'youtube:v1', '{"key":"youtube:v1","id":"v1","source":"youtube","title":"Title v1","body":"line\nline","url":"https://example.org/v1","created_at":"2026-11-20T10:00:00Z","engagement":{"votes":12,"share":0.875,"views":null},"place":"mugs","places":["mugs"],"comments":[{"id":"c1","body":"Me too","url":"","created_at":null,"engagement":{}}],"notes":[]}', '2026-11-27 10:00:00+00');
INSERT INTO public.items VALUES ('a', 'reddit:t3_2', '{"key":"reddit:t3_2","title":"Title reddit:t3_2","url":""}', '2026-11-27 10:00:00+00');

INSERT INTO public.keys VALUES ('key_f4441c8d18f2', 'mine', 'd1', '2026-11-27 10:00:00+00', false);
INSERT INTO public.keys VALUES ('key_b646e16df6d8', 'old', 'd2', '2026-11-27 10:00:00+00', true);

INSERT INTO public.ledger VALUES ('youtube.search', '2026-11-27', 42);

INSERT INTO public.pages VALUES ('k', '"{\"slots\":[]}"', '2026-11-27 10:00:00+00');

INSERT INTO public.runs VALUES ('6de8b595ef271313', 'a host', 1, '1', '2026-11-27 10:00:00+00');

INSERT INTO public.schema_version VALUES (1, '2026-11-27 10:00:00+00');
INSERT INTO public.schema_version VALUES (2, '2026-11-27 10:00:00+00');
INSERT INTO public.schema_version VALUES (3, '2026-11-27 10:00:00+00');

INSERT INTO public.sessions VALUES ('a', 's', '"{\"said\":\"hi\"}"', '2026-11-27 10:00:00+00');

INSERT INTO public.verdicts VALUES ('a', 'r1', 'items', 0, 'reddit:t3_1', '["key","id","source","title","body","url","created_at","engagement","place","places","comments","notes"]', '{"verdict":true,"judge":"local-1","probability":0.30000000000000004,"score":4,"explanation":"speaks of it","sentiment":-1,"aspects":["battery"],"relevance":0.75,"defaulted":false,"low_relevance":false,"disputed":false,"rank":1,"dropped_by":null}');
INSERT INTO public.verdicts VALUES ('a', 'r1', 'items', 1, 'youtube:v1', '["key","id","source","title","body","url","created_at","engagement","place","places","comments","notes"]', '{"verdict":true,"judge":"local-1","probability":0.30000000000000004,"score":4,"explanation":"speaks of it","sentiment":-1,"aspects":["battery"],"relevance":0.75,"defaulted":false,"low_relevance":false,"disputed":false,"rank":1,"dropped_by":null}');
INSERT INTO public.verdicts VALUES ('a', 'r1', 'dropped', 0, 'reddit:t3_2', '["key","title","url"]', '{"reason":"about another product","verdict":false,"judge":"local-1","probability":0.30000000000000004,"score":null,"explanation":"speaks of it","sentiment":-1,"aspects":["battery"],"relevance":0.75,"defaulted":false,"low_relevance":false,"disputed":false,"rank":null,"dropped_by":"gate"}');
INSERT INTO public.verdicts VALUES ('a', 'r1', ':reddit', 0, 'reddit:t3_2', '["key","title","url"]', '{"reason":"about another product","verdict":false,"judge":"local-1","probability":0.30000000000000004,"score":null,"explanation":"speaks of it","sentiment":-1,"aspects":["battery"],"relevance":0.75,"defaulted":false,"low_relevance":false,"disputed":false,"rank":null,"dropped_by":"gate"}');

ALTER TABLE ONLY public.analyses
    ADD CONSTRAINT analyses_pkey PRIMARY KEY (tenant, id);

ALTER TABLE ONLY public.analysis_sources
    ADD CONSTRAINT analysis_sources_pkey PRIMARY KEY (tenant, analysis_id, source);

ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_pkey PRIMARY KEY (tenant, analysis_id, subject, target, author);

ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (tenant, key);

ALTER TABLE ONLY public.items
    ADD CONSTRAINT items_pkey PRIMARY KEY (tenant, key);

ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_digest_key UNIQUE (digest);

ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_name_key UNIQUE (name);

ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.ledger
    ADD CONSTRAINT ledger_pkey PRIMARY KEY (scope, day);

ALTER TABLE ONLY public.pages
    ADD CONSTRAINT pages_pkey PRIMARY KEY (key);

ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.schema_version
    ADD CONSTRAINT schema_version_pkey PRIMARY KEY (version);

ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (tenant, id);

ALTER TABLE ONLY public.verdicts
    ADD CONSTRAINT verdicts_pkey PRIMARY KEY (tenant, analysis_id, part, "position");

CREATE INDEX analyses_newest ON public.analyses USING btree (tenant, created_at, id);

CREATE INDEX analyses_running ON public.analyses USING btree (run_id) WHERE (state = 'running'::text);

CREATE INDEX feedback_on_item ON public.feedback USING btree (target) WHERE (subject = 'item'::text);

CREATE INDEX verdicts_of_item ON public.verdicts USING btree (key, tenant);

ALTER TABLE ONLY public.analysis_sources
    ADD CONSTRAINT analysis_sources_tenant_analysis_id_fkey FOREIGN KEY (tenant, analysis_id) REFERENCES public.analyses(tenant, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.feedback
    ADD CONSTRAINT feedback_tenant_analysis_id_fkey FOREIGN KEY (tenant, analysis_id) REFERENCES public.analyses(tenant, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.verdicts
    ADD CONSTRAINT verdicts_tenant_analysis_id_fkey FOREIGN KEY (tenant, analysis_id) REFERENCES public.analyses(tenant, id) ON DELETE CASCADE;

ALTER TABLE ONLY public.verdicts
    ADD CONSTRAINT verdicts_tenant_key_fkey FOREIGN KEY (tenant, key) REFERENCES public.items(tenant, key);
CREATE TABLE chunks (
            number BIGSERIAL PRIMARY KEY, tenant TEXT NOT NULL, key TEXT NOT NULL,
            comment TEXT NOT NULL, part INTEGER NOT NULL, source TEXT NOT NULL,
            thread TEXT NOT NULL, sample BOOLEAN NOT NULL, created_at TIMESTAMP WITH TIME ZONE,
            tokens TEXT NOT NULL, vector BYTEA,
            FOREIGN KEY (tenant, key) REFERENCES items (tenant, key) ON DELETE CASCADE
        );
CREATE UNIQUE INDEX chunks_of_item ON chunks (tenant, key, comment, part);
CREATE INDEX chunks_of_tenant ON chunks (tenant, sample, number);
CREATE INDEX chunks_unread ON chunks (tenant) WHERE vector IS NULL;
ALTER TABLE chunks ADD COLUMN words TSVECTOR;
CREATE INDEX chunks_by_words ON chunks USING gin (words) WITH (fastupdate=off);
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector, words) VALUES (4, 'a', 'reddit:t3_1', '', 0, 'reddit', 'reddit:t3_1', FALSE, '2026-11-20 10:00:00.000000+00', 'heardca978112ca1bbdca плауд 小米 u0041 body t3 1', NULL, '''heardca978112ca1bbdca'':1 ''плауд'':2 ''小米'':3 ''u0041'':4 ''body'':5 ''t3'':6 ''1'':7');
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector, words) VALUES (5, 'a', 'reddit:t3_1', 'c1', 0, 'reddit', 'reddit:t3_1', FALSE, '2026-11-20 10:00:00.000000+00', 'heardca978112ca1bbdca плауд 小米 u0041', NULL, '''heardca978112ca1bbdca'':1 ''плауд'':2 ''小米'':3 ''u0041'':4');
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector, words) VALUES (6, 'a', 'reddit:t3_2', '', 0, 'reddit', 'reddit:t3_2', FALSE, NULL, 'heardca978112ca1bbdca title reddit t3 2', NULL, '''heardca978112ca1bbdca'':1 ''title'':2 ''reddit'':3 ''t3'':4 ''2'':5');
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector, words) VALUES (7, 'a', 'youtube:v1', '', 0, 'youtube', 'youtube:v1', FALSE, '2026-11-20 10:00:00.000000+00', 'heardca978112ca1bbdca title v1 line line', NULL, '''heardca978112ca1bbdca'':1 ''title'':2 ''v1'':3 ''line'':4,5');
INSERT INTO chunks (number, tenant, key, comment, part, source, thread, sample, created_at, tokens, vector, words) VALUES (8, 'a', 'youtube:v1', 'c1', 0, 'youtube', 'youtube:v1', FALSE, '2026-11-20 10:00:00.000000+00', 'heardca978112ca1bbdca title v1', NULL, '''heardca978112ca1bbdca'':1 ''title'':2 ''v1'':3');
SELECT setval('chunks_number_seq', 8);
INSERT INTO schema_version VALUES (4, '2026-11-28 10:00:00+00');
        CREATE TABLE imports (
            tenant TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, form TEXT NOT NULL,
            digest TEXT NOT NULL, "offset" BIGINT NOT NULL, line BIGINT NOT NULL,
            intake TEXT NOT NULL, created_at TIMESTAMP WITH TIME ZONE NOT NULL, finished_at TIMESTAMP WITH TIME ZONE,
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
INSERT INTO imports (tenant, id, name, form, digest, "offset", line, intake, created_at, finished_at) VALUES ('a', 'imp_1', 'dump "小".jsonl', 'reddit', 'd1', 4000000000, 7, '{"items":1,"comments":2,"merged":1,"over":0,"refused":1,"left_out":{"written by a bot":3}}', '2026-11-28 10:00:00+00', NULL);
INSERT INTO imported (tenant, import_id, key, comments) VALUES ('a', 'imp_1', 'reddit:t3_1', '["c1"]');
INSERT INTO refusals (tenant, import_id, number, line, reason, start) VALUES ('a', 'imp_1', 0, 3, 'it is no JSON object', '{"it''s');
INSERT INTO schema_version VALUES (5, '2026-11-28 10:00:00+00');
        CREATE TABLE watches (
            tenant TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
            paused BOOLEAN NOT NULL, created_at TIMESTAMP WITH TIME ZONE NOT NULL, due_at TIMESTAMP WITH TIME ZONE NOT NULL,
            began_at TIMESTAMP WITH TIME ZONE, claim TEXT, claimed_until TIMESTAMP WITH TIME ZONE,
            PRIMARY KEY (tenant, id)
        );
CREATE UNIQUE INDEX watches_by_name ON watches (tenant, name);
CREATE INDEX watches_due ON watches (due_at) WHERE NOT paused;
        CREATE TABLE watch_runs (
            tenant TEXT NOT NULL, watch_id TEXT NOT NULL, id TEXT NOT NULL, rule TEXT NOT NULL,
            counts TEXT, body TEXT NOT NULL, created_at TIMESTAMP WITH TIME ZONE NOT NULL,
            PRIMARY KEY (tenant, watch_id, id),
            FOREIGN KEY (tenant, watch_id) REFERENCES watches (tenant, id) ON DELETE CASCADE
        );
CREATE INDEX watch_runs_newest ON watch_runs (tenant, watch_id, created_at);
        CREATE TABLE watch_items (
            tenant TEXT NOT NULL, watch_id TEXT NOT NULL, key TEXT NOT NULL,
            dropped_by TEXT NOT NULL, facts TEXT, seen_at TIMESTAMP WITH TIME ZONE NOT NULL,
            PRIMARY KEY (tenant, watch_id, key),
            FOREIGN KEY (tenant, watch_id) REFERENCES watches (tenant, id) ON DELETE CASCADE
        );
CREATE INDEX watch_items_by_key ON watch_items (key);
INSERT INTO watches (tenant, id, name, body, paused, created_at, due_at, began_at, claim, claimed_until) VALUES ('a', 'w1', 'mug "小"', '{"id":"w1","tenant":"a","name":"mug \"小\"","query":"mug","about":"","sources":["reddit"],"depth":"quick","limit":null,"sandbox":false,"every":"mon 08:00","zone":"Europe/Berlin","only":"complaints","notify":[{"kind":"webhook","address":"https://example.org/hook"}],"secret":"s","tell_first":false,"created_at":"2026-11-27T10:00:00Z"}', FALSE, '2026-11-27 10:00:00+00', '2026-11-30 10:00:00+00', '2026-11-27 10:00:00+00', 'run_2', '2026-11-27 10:00:00+00');
INSERT INTO watch_runs (tenant, watch_id, id, rule, counts, body, created_at) VALUES ('a', 'w1', 'run_1', 'old', '{"since":"2026-11-20T10:00:00Z","until":"2026-11-27T10:00:00Z","sources":{"reddit":{"posts":2,"capped":false,"fresh":2,"graded":0,"tallies":{"mentions:battery":1}}}}', '{"version":1,"id":"run_1","watch_id":"w1","state":"changed","reason":null,"report_id":"r1","counts":{"since":"2026-11-20T10:00:00Z","until":"2026-11-27T10:00:00Z","sources":{"reddit":{"posts":2,"capped":false,"fresh":2,"graded":0,"tallies":{"mentions:battery":1}}}},"new":[],"kept":2,"unusual":[],"looked_at":0,"new_aspects":[],"gaps":[],"sample":false,"created_at":"2026-11-27T10:00:00Z","deliveries":[]}', '2026-11-27 10:00:00+00');
INSERT INTO watch_items (tenant, watch_id, key, dropped_by, facts, seen_at) VALUES ('a', 'w1', 'reddit:t3_1', '', '{"key":"reddit:t3_1","id":"t3_1","source":"reddit","title":"T"}', '2026-11-27 10:00:00+00');
INSERT INTO watch_items (tenant, watch_id, key, dropped_by, facts, seen_at) VALUES ('a', 'w1', 'reddit:t3_9', 'old', NULL, '2026-11-27 10:00:00+00');
INSERT INTO schema_version VALUES (6, '2026-11-28 10:00:00+00');
ALTER TABLE public.analyses ADD COLUMN work_id TEXT;
ALTER TABLE public.analyses ADD COLUMN digest TEXT;
CREATE INDEX analyses_by_digest ON public.analyses (tenant, digest) WHERE state = 'running';
CREATE TABLE public.charges (
            work_id TEXT NOT NULL, scope TEXT NOT NULL, day DATE NOT NULL, units BIGINT NOT NULL,
            settled BOOLEAN NOT NULL,
            PRIMARY KEY (work_id, scope)
        );
INSERT INTO public.charges VALUES ('r2.1', 'key:a:analyses', '2026-11-27', 1, false);
INSERT INTO public.schema_version VALUES (7, '2026-11-29 03:00:00+00');
ALTER TABLE watches ADD COLUMN feed TEXT;
CREATE UNIQUE INDEX watches_by_feed ON watches (feed);
ALTER TABLE watch_runs ADD COLUMN news BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE watches SET feed = 'feed-digest' WHERE id = 'w1';
UPDATE watch_runs SET news = TRUE WHERE id = 'run_1';
INSERT INTO schema_version VALUES (8, '2026-11-28 10:00:00+00');
ALTER TABLE analyses ADD COLUMN link TEXT;
CREATE UNIQUE INDEX analyses_by_link ON analyses (link);
CREATE TABLE logins (
            digest TEXT PRIMARY KEY, tenant TEXT NOT NULL, until TIMESTAMPTZ NOT NULL
        );
UPDATE analyses SET link = 'link-digest' WHERE tenant = 'a' AND id = 'r1';
INSERT INTO logins VALUES ('login-digest', 'a', '2126-11-29 10:00:00+00');
INSERT INTO schema_version VALUES (9, '2026-11-29 10:00:00+00');
