INSERT INTO shop.customer SELECT i, 'customer ' || i, date '2000-01-01' FROM generate_series(14001, 15000) i;
UPDATE shop.invoice SET amount = amount + 1 WHERE id % 20 = 1;
DELETE FROM shop.plain WHERE a % 100 = 1;
CREATE TABLE shop.newest (id int PRIMARY KEY, word text);
INSERT INTO shop.newest SELECT i, 'newest ' || i FROM generate_series(1, 1000) i;
