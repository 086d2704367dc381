-- Words of one encoding under every collation that the database knows, in every index that takes text.
CREATE TABLE words (id serial PRIMARY KEY, word text, short varchar(60), padded char(40), name name, bytes bytea);
INSERT INTO words (word, short, padded, name, bytes)
    SELECT w, left(w, 60), left(w, 40), left(w, 20), w::bytea FROM (
        SELECT stem || tail AS w FROM
            unnest(ARRAY['', ' ', 'a', 'A', 'aa', 'Aa', 'aA', 'b', 'B', 'z', 'Z', 'zebra', 'Zebra', 'co-op', 'coop', 'co op', 'CO-OP', '_x', '-x', '10', '9', '1.5', '#', '~', '''', '"', 'naive', 'resume', 'Resume']) stem,
            unnest(ARRAY['', ' ', '-', '.', 's', 'S', '0', 'zz']) tail
        UNION ALL SELECT md5(i::text) FROM generate_series(1, 1500) i
        UNION ALL SELECT repeat(chr(97 + i % 26), i * 9) FROM generate_series(1, 200) i
    ) x WHERE octet_length(w) < 2000;
INSERT INTO words (word) VALUES (NULL), (NULL);
CREATE INDEX words_word ON words (word);
CREATE INDEX words_short ON words (short DESC NULLS FIRST);
CREATE INDEX words_padded ON words (padded, id);
CREATE INDEX words_name ON words (name);
CREATE INDEX words_c ON words (word COLLATE "C" DESC);
CREATE INDEX words_posix ON words (word COLLATE "POSIX");
CREATE INDEX words_pattern ON words (word text_pattern_ops);
CREATE INDEX words_padded_pattern ON words (padded bpchar_pattern_ops);
CREATE INDEX words_lower ON words (lower(word), upper(short));
CREATE INDEX words_hash ON words USING hash (word);
CREATE INDEX words_hash_padded ON words USING hash (padded);
CREATE INDEX words_radix ON words USING spgist (word);
CREATE INDEX words_terms ON words USING gin (to_tsvector('simple', coalesce(word, '')));
CREATE INDEX words_minmax ON words USING brin (word, short, padded, name) WITH (pages_per_range = 1);
CREATE INDEX words_bloom ON words USING brin (word text_bloom_ops, padded bpchar_bloom_ops) WITH (pages_per_range = 1);
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE INDEX words_trigrams ON words USING gin (word gin_trgm_ops);
CREATE INDEX words_trigrams_gist ON words USING gist (word gist_trgm_ops);
CREATE EXTENSION IF NOT EXISTS citext;
CREATE TABLE caseless (word citext);
INSERT INTO caseless SELECT DISTINCT ON (lower(word)) word FROM words WHERE word IS NOT NULL;
CREATE UNIQUE INDEX caseless_word ON caseless (word);
CREATE TABLE parts (word text, n int) PARTITION BY RANGE (word);
CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (MINVALUE) TO ('m');
CREATE TABLE parts_high PARTITION OF parts FOR VALUES FROM ('m') TO (MAXVALUE);
INSERT INTO parts SELECT word, id FROM words WHERE word IS NOT NULL;
CREATE INDEX parts_word ON parts (word, n);
