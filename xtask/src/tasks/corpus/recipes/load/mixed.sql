\set k random(1, 40000)
\set n random(1, 100000)
\set p random(1, 50)
\set dice random(1, 100)
BEGIN;
INSERT INTO mixed (k, word, spot, span, tags, amount) VALUES (:k, md5(:n::text), point(:n % 997, :k % 991), int4range(:k, :k + :n % 100), ARRAY[:n % 10, :n % 1000, :n], :n / 7.0) ON CONFLICT (k) DO UPDATE SET word = excluded.word, tags = excluded.tags, stamp = now();
SAVEPOINT s;
UPDATE mixed SET amount = amount + 1 WHERE k BETWEEN :k AND :k + 5;
\if :dice < 30
ROLLBACK TO s;
\endif
SELECT count(*) FROM (SELECT 1 FROM parent WHERE id = :p FOR KEY SHARE) x;
INSERT INTO child (parent) VALUES (:p);
INSERT INTO queue (body) SELECT repeat('x', :dice * 50);
INSERT INTO hasty VALUES (:k, repeat('y', :dice)) ON CONFLICT DO NOTHING;
\if :dice > 80
DELETE FROM mixed WHERE k BETWEEN :n AND :n + 20;
DELETE FROM queue WHERE id < (SELECT max(id) - 2000 FROM queue);
UPDATE mixed SET body = (SELECT string_agg(md5((:k * j)::text), '') FROM generate_series(1, 100) j) WHERE k = :k;
\endif
\if :dice > 95
ROLLBACK;
\else
COMMIT;
\endif
