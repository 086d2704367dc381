-- Tables of many shapes: long values, narrow rows, foreign keys, partitions, dropped and added columns.

CREATE SCHEMA sales;

-- Bodies are out of line as they are, extras out of line and compressed or compressed in the row, notes stay in the row.
CREATE TABLE public.docs (id bigint PRIMARY KEY, title text NOT NULL, body text, extra jsonb, note text, words tsvector);
ALTER TABLE public.docs ALTER body SET STORAGE EXTERNAL, ALTER note SET STORAGE MAIN;
INSERT INTO public.docs
SELECT i, 'document ' || i,
  CASE WHEN i % 5 > 0 THEN (SELECT string_agg(md5(i * 1000 + j || '{seed}'), '') FROM generate_series(1, 1 + i * 37 % 400) AS j) END,
  jsonb_build_object('id', i, 'again', repeat(md5(i::text) || ' ', 30 * (i % 4)), 'list',
    (SELECT jsonb_agg(md5(i || ' ' || j || '{seed}')) FROM generate_series(1, i * 13 % 150) AS j)),
  repeat('note ' || i || ' ', i % 300), to_tsvector('simple', 'document ' || i || ' about ' || left(md5(i::text), 3))
FROM generate_series(1, 400) AS i;

-- with lz4
CREATE TABLE public.docs_lz4 (id int PRIMARY KEY, body text COMPRESSION lz4);
INSERT INTO public.docs_lz4 SELECT i, repeat(md5(i::text), i * 10) || (SELECT string_agg(md5(i * 1000 + j || ''), '') FROM generate_series(1, i * 3) AS j)
FROM generate_series(1, 60) AS i;

CREATE TABLE public.measurements (id int PRIMARY KEY, a int NOT NULL, b float8, taken timestamp, flag bool, code text);
INSERT INTO public.measurements SELECT i, ('x' || left(md5(i || '{seed}'), 7))::bit(28)::int % 1000, i / 3.0,
  timestamp '2024-01-01' + i * interval '1 min', NULLIF(i % 3, 2) = 0, CASE WHEN i % 10 > 0 THEN 'c' || i % 40 END
FROM generate_series(1, 20000) AS i;

CREATE TABLE sales.orders (id serial PRIMARY KEY, customer int NOT NULL, placed date NOT NULL, status text, total numeric(10, 2));
CREATE TABLE sales.order_lines (order_id int NOT NULL REFERENCES sales.orders ON DELETE CASCADE, line int NOT NULL, article text NOT NULL,
  amount int NOT NULL DEFAULT 1, price numeric(10, 2), total numeric GENERATED ALWAYS AS (amount * price) STORED, PRIMARY KEY (order_id, line));
INSERT INTO sales.orders (customer, placed, status, total) SELECT i % 200, date '2024-01-01' + i % 365, 'new', i * 1.25 FROM generate_series(1, 3000) AS i;
INSERT INTO sales.order_lines SELECT i, j, 'article ' || (i * 7 + j) % 90, 1 + i % 5, j * 9.99 FROM generate_series(1, 3000) AS i, generate_series(1, 1 + i % 4) AS j;

CREATE TABLE public.altered (id int PRIMARY KEY, gone_text text, kept int, gone_int int);
INSERT INTO public.altered SELECT i, md5(i::text), i * 2, i FROM generate_series(1, 500) AS i;

ALTER TABLE public.altered DROP gone_text;

ALTER TABLE public.altered ADD added text NOT NULL DEFAULT 'fast default', ADD added_number numeric DEFAULT 42.5, DROP gone_int;

INSERT INTO public.altered (id, kept, added) SELECT i, i, 'after ' || i FROM generate_series(501, 700) AS i;
UPDATE public.altered SET kept = -1 WHERE id % 50 = 0;

CREATE TABLE sales.events (id int, day date NOT NULL, what text) PARTITION BY RANGE (day);
CREATE TABLE sales.events_2023 PARTITION OF sales.events FOR VALUES FROM ('2023-01-01') TO ('2024-01-01');
CREATE TABLE sales.events_2024 PARTITION OF sales.events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01') PARTITION BY HASH (id);
CREATE TABLE sales.events_2024_0 PARTITION OF sales.events_2024 FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE sales.events_2024_1 PARTITION OF sales.events_2024 FOR VALUES WITH (MODULUS 2, REMAINDER 1) TABLESPACE annex;
CREATE TABLE sales.events_rest PARTITION OF sales.events DEFAULT;
CREATE INDEX events_day ON sales.events (day, id);
INSERT INTO sales.events SELECT i, date '2022-10-01' + i, 'event ' || i FROM generate_series(1, 1000) AS i;

CREATE TABLE public.person (id int PRIMARY KEY, name text);
CREATE TABLE public.doctor (room int) INHERITS (public.person);
INSERT INTO public.person SELECT i, 'person ' || i FROM generate_series(1, 100) AS i;
INSERT INTO public.doctor SELECT i, 'doctor ' || i, i % 9 FROM generate_series(101, 150) AS i;

CREATE MATERIALIZED VIEW sales.per_customer AS SELECT customer, count(*) AS orders, sum(total) AS total FROM sales.orders GROUP BY customer ORDER BY customer;
CREATE UNIQUE INDEX per_customer_key ON sales.per_customer (customer);
CREATE VIEW sales.open_orders AS SELECT * FROM sales.orders WHERE status = 'new';

CREATE UNLOGGED TABLE public.scratchpad (id int PRIMARY KEY GENERATED ALWAYS AS IDENTITY, what text);
INSERT INTO public.scratchpad (what) SELECT md5(i::text) FROM generate_series(1, 300) AS i;

CREATE SEQUENCE public.countdown AS smallint INCREMENT -5 MAXVALUE 1000 MINVALUE -1000 START 1000 CACHE 3 CYCLE;
CREATE SEQUENCE sales.untouched;
SELECT nextval('public.countdown') FROM generate_series(1, 10);

CREATE TABLE public.wide (id int PRIMARY KEY);
DO $$BEGIN
  FOR i IN 1..120 LOOP EXECUTE format('ALTER TABLE public.wide ADD c%s %s', i, (ARRAY['int2', 'text', 'float8', 'bool', 'date'])[1 + i % 5]); END LOOP;
END$$;
INSERT INTO public.wide (id, c1, c5, c7, c60, c118) SELECT i, md5(i::text), i, i / 2.0, i, i % 2 = 0 FROM generate_series(1, 200) AS i;

CREATE TABLE public.empty (id int PRIMARY KEY, what text);
CREATE TABLE public.columnless ();
INSERT INTO public.columnless DEFAULT VALUES;

CREATE TABLE public.annexed (id int PRIMARY KEY USING INDEX TABLESPACE annex, what text) TABLESPACE annex;
INSERT INTO public.annexed SELECT i, repeat(md5(i::text), 1 + i % 200) FROM generate_series(1, 200) AS i;

CREATE TABLE public.frozen (id int PRIMARY KEY, what text);
CREATE TABLE public.settled (id int PRIMARY KEY, what text);
INSERT INTO public.frozen SELECT i, md5(i::text) FROM generate_series(1, 1500) AS i;
INSERT INTO public.settled SELECT i, md5(i::text) FROM generate_series(1, 1500) AS i;

SELECT lo_from_bytea(70000 + i::oid::int, decode(repeat(md5(i || '{seed}'), 100 * i), 'hex')) FROM generate_series(1, 12) AS i;
