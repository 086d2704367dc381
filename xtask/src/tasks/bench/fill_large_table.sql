-- The cluster of `cargo xtask bench memory`: one table of :rows rows, every fiftieth with a long value.
\set ON_ERROR_STOP on

BEGIN;
CREATE TABLE events (
    id   bigint      NOT NULL,
    seen timestamptz NOT NULL,
    kind integer     NOT NULL,
    note text,
    body text
);
ALTER TABLE events ALTER COLUMN body SET STORAGE EXTERNAL;
INSERT INTO events
SELECT n, timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second', n % 1000, md5(n::text),
       CASE WHEN n % 50 = 0 THEN repeat(md5(n::text), 70) END
FROM generate_series(1, :rows) AS n;
ALTER TABLE events ADD PRIMARY KEY (id);
CREATE INDEX events_note ON events (note);
COMMIT;

-- Rows that are gone but not forgotten: their entries stay.
DELETE FROM events WHERE id % 40 = 0;
UPDATE events SET kind = kind + 1 WHERE id % 97 = 0;
CHECKPOINT;
