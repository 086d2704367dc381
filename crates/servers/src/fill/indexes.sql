-- Indexes of all six access methods, and of every shape that a btree has.

CREATE INDEX measurements_dedup ON public.measurements (a);
CREATE INDEX measurements_partial ON public.measurements (b) WHERE flag;
CREATE INDEX measurements_expression ON public.measurements (lower(code), (a % 10));
CREATE INDEX measurements_include ON public.measurements (taken DESC NULLS LAST) INCLUDE (a, code);
CREATE INDEX measurements_hash ON public.measurements USING hash (code);
CREATE INDEX measurements_brin ON public.measurements USING brin (id, taken) WITH (pages_per_range = 8);
CREATE UNIQUE INDEX docs_title ON public.docs (title);
CREATE INDEX docs_gin_json ON public.docs USING gin (extra jsonb_path_ops);
CREATE INDEX docs_gin_words ON public.docs USING gin (words) WITH (fastupdate = on);
-- Tens of keys with their rows beside them, and one with a tree of rows of its own.
CREATE INDEX measurements_gin ON public.measurements USING gin ((ARRAY[code, 'all']));
CREATE INDEX docs_spgist_text ON public.docs USING spgist (title);
CREATE INDEX all_types_gin_array ON public.all_types USING gin (c_text_array);
CREATE INDEX all_types_gist_point ON public.all_types USING gist (c_point);
CREATE INDEX all_types_gist_range ON public.all_types USING gist (c_int4range);
CREATE INDEX all_types_gist_words ON public.all_types USING gist (c_tsvector);
CREATE INDEX all_types_spgist_point ON public.all_types USING spgist (c_point);
CREATE INDEX all_types_spgist_inet ON public.all_types USING spgist (c_inet);
CREATE INDEX all_types_hash_uuid ON public.all_types USING hash (c_uuid);
CREATE INDEX all_types_brin_box ON public.all_types USING brin (c_box box_inclusion_ops);
CREATE INDEX all_types_many ON public.all_types (c_mood, c_numeric DESC, c_text);
CREATE INDEX scratchpad_what ON public.scratchpad (what);
CREATE INDEX orders_customer ON sales.orders (customer);
CREATE INDEX order_lines_article ON sales.order_lines (article) TABLESPACE annex;

CREATE TABLE sales.bookings (room int, during tsrange, EXCLUDE USING gist (during WITH &&));
INSERT INTO sales.bookings SELECT i, tsrange(timestamp '2024-01-01' + i * interval '1 h', timestamp '2024-01-01' + (i + 1) * interval '1 h') FROM generate_series(1, 400) AS i;

-- since 14
CREATE INDEX measurements_brin_multi ON public.measurements USING brin (a int4_minmax_multi_ops, code text_bloom_ops);

-- since 15
CREATE TABLE public.one_null (id int, what text, UNIQUE NULLS NOT DISTINCT (what));
INSERT INTO public.one_null SELECT i, NULLIF('n' || i, 'n7') FROM generate_series(1, 50) AS i;

-- since 18
CREATE TABLE public.computed (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) VIRTUAL, what text);
INSERT INTO public.computed (id, what) SELECT i, 'w' || i FROM generate_series(1, 100) AS i;

-- The pending list of a GIN index and the unsummarised tail of a BRIN index.
INSERT INTO public.docs (id, title, words) SELECT i, 'late ' || i, to_tsvector('simple', 'late ' || i) FROM generate_series(401, 420) AS i;

-- Entries that still wait in the list of a GIN index, those of one row on several pages.
CREATE TABLE public.waiting (id int, words text[]);
CREATE INDEX waiting_words ON public.waiting USING gin (words) WITH (fastupdate = on);
INSERT INTO public.waiting SELECT i, ARRAY['w' || i % 50, 'all'] FROM generate_series(1, 300) AS i;
INSERT INTO public.waiting SELECT 301, array_agg('x' || i) FROM generate_series(1, 900) AS i;
INSERT INTO public.waiting SELECT i, ARRAY['w' || i % 50, 'last'] FROM generate_series(302, 320) AS i;

-- Trees of more than one level, built and inserted into.
CREATE TABLE public.places (id int, at point, area box, label text);
INSERT INTO public.places SELECT i, point(i * 7919 % 1009, i * 104729 % 997), box(point(i % 997, i % 89), point(i % 997 + 2, i % 89 + 1)), repeat('place ', i % 3) || i % 400 FROM generate_series(1, 1200) AS i;
CREATE INDEX places_gist_at ON public.places USING gist (at);
CREATE INDEX places_gist_area ON public.places USING gist (area);
CREATE INDEX places_spgist_at ON public.places USING spgist (at);
CREATE INDEX places_spgist_line ON public.places USING spgist (at kd_point_ops);
CREATE INDEX places_spgist_label ON public.places USING spgist (label);
INSERT INTO public.places SELECT i, point(i % 31, i % 37), box(point(i, i), point(i + 1, i + 1)), 'place ' || i % 50 FROM generate_series(1201, 1800) AS i;
INSERT INTO public.places (id) SELECT i FROM generate_series(1801, 1820) AS i;
