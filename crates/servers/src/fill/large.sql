-- More than one segment of 1 GiB: three rows a page, 141,000 pages.

BEGIN;
CREATE TABLE public.large (id int NOT NULL, filler text NOT NULL);
ALTER TABLE public.large ALTER filler SET STORAGE PLAIN;
INSERT INTO public.large SELECT i, repeat(md5(i || '{seed}'), 80) FROM generate_series(1, 423000) AS i;
COMMIT;

VACUUM ANALYZE public.large;
