-- SQL_ASCII takes any byte but zero.
INSERT INTO words (word, short, padded, name) SELECT w, w, w, w FROM (SELECT convert_from(decode(x, 'hex'), 'SQL_ASCII') AS w FROM unnest(ARRAY['80', 'ff', 'c3a9', 'c328', 'e9', 'fffe', '61ff', '6180', 'a0a1', 'f0288cbc']) x) y;
