BEGIN;
UPDATE shop.pledge SET word = 'not yet ' || id WHERE id % 10 = 1;
PREPARE TRANSACTION 'pledged';
