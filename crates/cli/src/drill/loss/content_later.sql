INSERT INTO shop.customer SELECT i, 'customer ' || i, date '1990-01-01' FROM generate_series(12001, 14000) i;
UPDATE shop.customer SET name = 'renamed ' || id WHERE id % 10 = 3;
DELETE FROM shop.invoice WHERE id % 50 = 7;
INSERT INTO shop.plain SELECT i, md5(i::text) FROM generate_series(6001, 7000) i;
INSERT INTO shop.document SELECT i, repeat(md5(i::text), 150) FROM generate_series(301, 360) i;
CREATE TABLE shop.late (id int PRIMARY KEY, word text);
INSERT INTO shop.late SELECT i, 'late ' || i FROM generate_series(1, 2000) i;
SELECT lo_from_bytea(90100 + i, convert_to(repeat('later object ' || i || ' ', 500), 'UTF8')) FROM generate_series(1, 10) i;
INSERT INTO shop.letter SELECT i, repeat(md5(i::text), 100) FROM generate_series(401, 430) i;
