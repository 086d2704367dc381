-- For Unicode only.
INSERT INTO words (word, short, padded, name) SELECT w, w, w, w FROM unnest(ARRAY['日本語', '日本', '中文', 'Ελλάδα', 'ελλάδα', 'Привет', 'привет', 'עברית', 'العربية', '🙂', '🙃🙂', 'a' || chr(769), 'á', chr(65279), chr(8203) || 'x', 'ß', 'ẞ', 'ı', 'İ', 'ﬁ', 'fi', '𝒜', chr(57344), chr(1114109)]) w;
CREATE INDEX words_unicode ON words (word COLLATE "unicode");
CREATE INDEX words_ucs_basic ON words (word COLLATE "ucs_basic");
CREATE INDEX words_root ON words (word COLLATE "und-x-icu", short COLLATE "de-x-icu" DESC);
CREATE COLLATION caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION numbers (provider = icu, locale = 'en-u-kn-true');
CREATE INDEX words_numbers ON words (word COLLATE numbers);
CREATE TABLE distinct_words (word text COLLATE caseless UNIQUE);
INSERT INTO distinct_words SELECT word FROM words WHERE word IS NOT NULL ON CONFLICT DO NOTHING;
CREATE INDEX distinct_words_hash ON distinct_words USING hash (word);
CREATE INDEX words_english ON words (word COLLATE "en_US.utf8");
