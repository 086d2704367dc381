-- What a scenario hurts: a table, long values, a sequence that a column owns, their indexes and catalogs.
-- Nothing is vacuumed, so that a scan asks about every row, and autovacuum has something to do.
CREATE SCHEMA ext;
CREATE EXTENSION pageinspect SCHEMA ext;
CREATE EXTENSION amcheck SCHEMA ext;
CREATE EXTENSION pg_surgery SCHEMA ext;

CREATE TABLE public.patients (id int PRIMARY KEY, name text NOT NULL, note text);
INSERT INTO public.patients SELECT i, 'patient ' || i, md5(i::text) || md5((i + 1)::text) FROM generate_series(1, 2000) AS i;
CREATE INDEX patients_name ON public.patients (name);

CREATE TABLE public.letters (id int PRIMARY KEY, body text NOT NULL);
ALTER TABLE public.letters ALTER body SET STORAGE EXTERNAL;
INSERT INTO public.letters SELECT i, (SELECT string_agg(md5((i * 1000 + j)::text), '') FROM generate_series(1, 300) AS j) FROM generate_series(1, 60) AS i;

CREATE TABLE public.invoices (id serial PRIMARY KEY, patient int NOT NULL);
INSERT INTO public.invoices (patient) SELECT i FROM generate_series(1, 500) AS i;
