-- One table with an index of every kind, written by many sessions at once.
CREATE EXTENSION IF NOT EXISTS btree_gin;
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE TABLE mixed (
    k bigint PRIMARY KEY,
    word text NOT NULL,
    spot point NOT NULL,
    span int4range NOT NULL,
    tags int[] NOT NULL,
    body text,
    stamp timestamptz NOT NULL DEFAULT now(),
    amount numeric
) WITH (fillfactor = 90);
CREATE INDEX mixed_word ON mixed (word);
CREATE INDEX mixed_lower ON mixed (lower(word)) WHERE amount IS NOT NULL;
CREATE INDEX mixed_amount ON mixed (amount DESC NULLS LAST, k) INCLUDE (word);
CREATE INDEX mixed_hash ON mixed USING hash (word);
CREATE INDEX mixed_tags ON mixed USING gin (tags) WITH (gin_pending_list_limit = 64);
CREATE INDEX mixed_words ON mixed USING gin (to_tsvector('simple', word), k);
CREATE INDEX mixed_spot ON mixed USING gist (spot);
CREATE INDEX mixed_span ON mixed USING gist (span, k);
CREATE INDEX mixed_quad ON mixed USING spgist (spot);
CREATE INDEX mixed_radix ON mixed USING spgist (word);
CREATE INDEX mixed_stamp ON mixed USING brin (stamp) WITH (pages_per_range = 4, autosummarize = on);
-- No minmax_multi_ops: PostgreSQL 15.20 itself lost a row from such a summary under this load (docs/cases.md).
CREATE INDEX mixed_range ON mixed USING brin (span range_inclusion_ops, word text_bloom_ops) WITH (pages_per_range = 8);
CREATE UNLOGGED TABLE hasty (k bigint PRIMARY KEY, body text);
CREATE TABLE queue (id bigserial PRIMARY KEY, body text);
CREATE TABLE parent (id int PRIMARY KEY);
CREATE TABLE child (id bigserial, parent int NOT NULL REFERENCES parent);
INSERT INTO parent SELECT generate_series(1, 50);
INSERT INTO mixed (k, word, spot, span, tags, body, amount)
    SELECT i, md5((i % 5000)::text), point(i % 997, i % 991), int4range(i, i + i % 100), ARRAY[i % 10, i % 1000, i],
           CASE i % 50 WHEN 0 THEN repeat(md5(i::text), 200) WHEN 1 THEN (SELECT string_agg(md5((i * j)::text), '') FROM generate_series(1, 150) j) END,
           CASE WHEN i % 3 = 0 THEN i / 7.0 END
    FROM generate_series(1, 20000) i;
