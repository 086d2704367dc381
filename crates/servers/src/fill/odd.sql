-- A database with an odd name: odd schema, table and column names, and mapped catalogs that have moved.

CREATE SCHEMA "Odd.Schema näme";

CREATE TABLE "Odd.Schema näme"."Ta""ble.1" ("Spalte ä" int PRIMARY KEY, "with ""quotes""" text, "select" date);
INSERT INTO "Odd.Schema näme"."Ta""ble.1" SELECT i, 'Zeile ' || i, date '2001-01-01' + i FROM generate_series(1, 300) AS i;
CREATE INDEX "in.dex ü" ON "Odd.Schema näme"."Ta""ble.1" ("with ""quotes""", "select" DESC);

VACUUM ANALYZE "Odd.Schema näme"."Ta""ble.1";

-- The database's map gets other file numbers, and the old rows of pg_class are gone.
VACUUM FULL pg_class;

VACUUM FULL pg_attribute;
