-- What belongs to the whole cluster: databases, a tablespace, shared comments and settings.

CREATE DATABASE clinic;

CREATE DATABASE "od""d näme" TEMPLATE template0;

CREATE TABLESPACE annex LOCATION '{tablespace}';

CREATE ROLE nurse;

COMMENT ON DATABASE clinic IS 'cases of every kind';

ALTER DATABASE "od""d näme" SET work_mem = '8MB';

CREATE TABLE public.visits (id int PRIMARY KEY, who text NOT NULL, note text);
INSERT INTO public.visits SELECT i, 'patient ' || i, md5(i || '{seed}') FROM generate_series(1, 500) AS i;

VACUUM ANALYZE public.visits;

-- The shared map gets another file number for pg_database.
VACUUM FULL pg_database;
