-- The cluster of `cargo xtask bench check`: small rows with two btrees, wide rows in TOAST.
-- :rows small rows of 96 bytes with their header, :docs values of 2,048 random bytes kept out of line.
\set ON_ERROR_STOP on
CREATE EXTENSION amcheck;

BEGIN;
CREATE TABLE readings (
    id      bigint      NOT NULL,
    taken   timestamptz NOT NULL,
    sensor  integer     NOT NULL,
    state   smallint    NOT NULL,
    amount  numeric(10, 2),
    note    text
);
INSERT INTO readings
SELECT n, timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second', (n::bigint * 7919 % 100003)::integer, n % 7,
       (n % 1000000)::numeric / 100, CASE WHEN n % 11 > 0 THEN md5(n::text) END
FROM generate_series(1, :rows) AS n;
ALTER TABLE readings ADD PRIMARY KEY (id);
CREATE INDEX readings_sensor_taken ON readings (sensor, taken);
COMMIT;

BEGIN;
CREATE TABLE documents (id integer NOT NULL, title text, body text);
ALTER TABLE documents ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO documents
SELECT n, 'document ' || n,
       (SELECT string_agg(md5((n * 64 + part)::text), '') FROM generate_series(1, 64) AS part)
FROM generate_series(1, :docs) AS n;
COMMIT;

VACUUM (ANALYZE) readings;
VACUUM (ANALYZE) documents;
CHECKPOINT;
