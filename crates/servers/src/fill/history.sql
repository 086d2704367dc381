-- What happens to rows: HOT and other updates, deletes, aborts, locks, freezing. Autovacuum is off, so it stays on disk.

UPDATE sales.orders SET status = 'paid' WHERE id % 3 = 0;

UPDATE sales.orders SET customer = customer + 1 WHERE id % 10 = 0;

DELETE FROM sales.orders WHERE id % 25 = 0;

UPDATE public.docs SET body = body || 'changed' WHERE id % 20 = 1;

DELETE FROM public.docs WHERE id % 33 = 0;

VACUUM ANALYZE sales.orders, sales.order_lines, public.docs;

REFRESH MATERIALIZED VIEW sales.per_customer;

CREATE TABLE public.chains (id int PRIMARY KEY, n int, what text) WITH (fillfactor = 60);
INSERT INTO public.chains SELECT i, 0, md5(i::text) FROM generate_series(1, 600) AS i;

UPDATE public.chains SET n = 1 WHERE id % 4 = 0;

UPDATE public.chains SET n = 2 WHERE id % 8 = 0;

-- Redirects and unused pointers come from VACUUM, dead ones stay when it leaves the indexes alone.
CREATE TABLE public.pruned (id int PRIMARY KEY, n int, what text) WITH (fillfactor = 70);
INSERT INTO public.pruned SELECT i, 0, md5(i::text) FROM generate_series(1, 900) AS i;

UPDATE public.pruned SET n = n + 1 WHERE id % 5 = 0;

DELETE FROM public.pruned WHERE id % 7 = 0;

VACUUM public.pruned;

DELETE FROM public.pruned WHERE id % 11 = 0;

VACUUM (INDEX_CLEANUP OFF) public.pruned;

CREATE TABLE public.aborted (id int PRIMARY KEY, what text);
INSERT INTO public.aborted SELECT i, 'stays ' || i FROM generate_series(1, 200) AS i;

BEGIN;
INSERT INTO public.aborted SELECT i, 'never was ' || i FROM generate_series(201, 400) AS i;
UPDATE public.aborted SET what = 'never so' WHERE id % 3 = 0;
DELETE FROM public.aborted WHERE id % 5 = 0;
ROLLBACK;

BEGIN;
INSERT INTO public.aborted VALUES (1001, 'in the transaction');
SAVEPOINT a;
INSERT INTO public.aborted VALUES (1002, 'in a subtransaction that is undone');
ROLLBACK TO a;
SAVEPOINT b;
INSERT INTO public.aborted VALUES (1003, 'in a subtransaction that stays');
COMMIT;

CREATE TABLE public.locked (id int PRIMARY KEY, n int, what text);
INSERT INTO public.locked SELECT i, 0, 'row ' || i FROM generate_series(1, 300) AS i;

BEGIN;
SELECT id FROM public.locked WHERE id BETWEEN 1 AND 60 FOR KEY SHARE;
SELECT id FROM public.locked WHERE id BETWEEN 61 AND 90 FOR SHARE;
SELECT id FROM public.locked WHERE id BETWEEN 91 AND 120 FOR UPDATE;

-- second session
BEGIN;
SELECT id FROM public.locked WHERE id BETWEEN 1 AND 30 FOR KEY SHARE;
UPDATE public.locked SET n = 1 WHERE id BETWEEN 31 AND 60;
SELECT id FROM public.locked WHERE id BETWEEN 61 AND 90 FOR KEY SHARE;
SELECT id FROM public.locked WHERE id BETWEEN 121 AND 150 FOR NO KEY UPDATE;

COMMIT;

-- second session
COMMIT;

BEGIN;
SELECT id FROM public.locked WHERE id BETWEEN 200 AND 220 FOR KEY SHARE;
SAVEPOINT a;
UPDATE public.locked SET n = 2 WHERE id BETWEEN 200 AND 210;
DELETE FROM public.locked WHERE id BETWEEN 211 AND 215;
COMMIT;

-- Reading sets the hint bits.
SELECT count(*) FROM public.aborted;

SELECT count(*) FROM public.locked WHERE n = 0;

SELECT count(*) FROM public.chains;

VACUUM (FREEZE, ANALYZE) public.frozen;

VACUUM ANALYZE public.settled, public.measurements, public.all_types, public.altered, public.wide, public.annexed;

VACUUM ANALYZE sales.events, sales.events_2023, sales.events_rest, public.person, public.doctor, sales.bookings, sales.per_customer;

ANALYZE;
