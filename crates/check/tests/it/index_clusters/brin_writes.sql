INSERT INTO log SELECT i, timestamp '2032-01-01' + i * interval '1 min', repeat('after ' || i, 30), i, i, '172.16.0.1', int4range(i, i + 1), box(point(i, -i), point(i + 1, i / 2)), md5(i::text)::uuid, -i, 5, '2030-01-01', 'y', i, '1 year' FROM generate_series(50000, 55000) AS i;
SELECT brin_summarize_new_values('log_default');
SELECT brin_desummarize_range('log_one', 20);
UPDATE log SET t = repeat('much longer ' || id, 50), bi = -7 WHERE id % 300 = 0;
SELECT brin_summarize_range('log_one', 20);
INSERT INTO growing SELECT i, repeat(md5(i::text), 80) FROM generate_series(1, 3000) AS i;
