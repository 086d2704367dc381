CREATE FUNCTION row_of(i int) RETURNS TABLE (id int, b box, p polygon, c circle, pt point, r int4range, tr tsrange, i inet, v tsvector, q tsquery, t text)
LANGUAGE sql VOLATILE AS $$
  SELECT $1, box(point(x, y), point(x + 1, y + 1)), polygon(box(point(x, y), point(x + 2, y + 1))), circle(point(x, y), 1),
    CASE WHEN $1 % 97 = 0 THEN NULL ELSE point(x, y) END,
    CASE WHEN $1 % 53 = 0 THEN 'empty' WHEN $1 % 59 = 0 THEN int4range(NULL, $1) ELSE int4range($1, $1 + 7) END,
    tsrange(timestamp '2020-01-01' + $1 * interval '1 min', timestamp '2020-01-01' + ($1 + 5) * interval '1 min'),
    CASE WHEN $1 % 11 = 0 THEN ('2001:db8::' || to_hex($1 % 65536))::inet ELSE inet '10.0.0.0' + $1 * 3 END,
    to_tsvector('simple', 'w' || $1 % 977 || ' v' || $1 % 31 || ' u' || $1), to_tsquery('simple', 'w' || $1 % 977 || ' & x' || $1),
    CASE WHEN $1 % 41 = 0 THEN NULL WHEN $1 % 7 = 0 THEN 'same' ELSE md5(($1 / 3)::text) || repeat('z', $1 % 40) END
  FROM (SELECT (($1::bigint * 7919) % 10007)::float8 / 10 AS x, (($1::bigint * 104729) % 9973)::float8 / 10 AS y) AS place
$$

CREATE TABLE trees (id int, b box, p polygon, c circle, pt point, r int4range, tr tsrange, i inet, v tsvector, q tsquery, t text)

INSERT INTO trees SELECT f.* FROM generate_series(1, 12000) AS i, row_of(i) AS f

CREATE INDEX gist_b ON trees USING gist (b)

CREATE INDEX gist_p ON trees USING gist (p)

CREATE INDEX gist_c ON trees USING gist (c)

CREATE INDEX gist_pt ON trees USING gist (pt)

CREATE INDEX gist_pt_buffered ON trees USING gist (pt) WITH (buffering = on, fillfactor = 50)

CREATE INDEX gist_r ON trees USING gist (r)

CREATE INDEX gist_tr ON trees USING gist (tr)

CREATE INDEX gist_i ON trees USING gist (i inet_ops)

CREATE INDEX gist_v ON trees USING gist (v)

CREATE INDEX gist_v_short ON trees USING gist (v tsvector_ops (siglen = 32))

CREATE INDEX gist_q ON trees USING gist (q)

CREATE INDEX gist_two ON trees USING gist (pt, r)

CREATE INDEX gist_include ON trees USING gist (pt) INCLUDE (id, t)

CREATE INDEX gist_partial ON trees USING gist (box(pt, pt)) WHERE id % 2 = 0

CREATE INDEX spgist_pt ON trees USING spgist (pt)

CREATE INDEX spgist_kd ON trees USING spgist (pt kd_point_ops)

CREATE INDEX spgist_t ON trees USING spgist (t)

CREATE INDEX spgist_r ON trees USING spgist (r)

CREATE INDEX spgist_i ON trees USING spgist (i inet_ops)

CREATE INDEX spgist_b ON trees USING spgist (b)

CREATE INDEX spgist_p ON trees USING spgist (p)

-- since 14
CREATE INDEX spgist_include ON trees USING spgist (t) INCLUDE (id, pt)

-- since 14
CREATE TABLE many_ranges (m int4multirange)

-- since 14
INSERT INTO many_ranges SELECT int4multirange(int4range(i, i + 3), int4range(i + 10, i + 20)) FROM generate_series(1, 5000) AS i

-- since 14
CREATE INDEX gist_m ON many_ranges USING gist (m)

INSERT INTO trees SELECT f.* FROM generate_series(12001, 24000) AS i, row_of(i) AS f

CREATE TABLE booked (room int, during tsrange, EXCLUDE USING gist (during WITH &&))

INSERT INTO booked SELECT i, tsrange(timestamp '2024-01-01' + i * interval '1 h', timestamp '2024-01-01' + (i + 1) * interval '1 h') FROM generate_series(1, 3000) AS i

CREATE INDEX gist_tr_late ON trees USING gist (tr)

CREATE UNLOGGED TABLE loose (pt point)

CREATE INDEX gist_loose ON loose USING gist (pt)

CREATE INDEX spgist_loose ON loose USING spgist (pt)

INSERT INTO loose SELECT pt FROM trees

DELETE FROM trees WHERE id % 3 = 0

VACUUM trees

DELETE FROM trees WHERE id BETWEEN 4000 AND 14000

VACUUM trees

INSERT INTO trees SELECT f.* FROM generate_series(30001, 34000) AS i, row_of(i) AS f

UPDATE trees SET pt = point(id, id), t = 'q' || id WHERE id % 19 = 0

VACUUM trees

INSERT INTO trees SELECT f.* FROM generate_series(40001, 43000) AS i, row_of(i) AS f

DELETE FROM trees WHERE id % 23 = 0

CREATE EXTENSION IF NOT EXISTS btree_gist

CREATE EXTENSION IF NOT EXISTS pg_trgm

CREATE EXTENSION IF NOT EXISTS intarray

CREATE INDEX gist_btree ON trees USING gist (id, t, (id::numeric), ((id % 1000)::int2), (i::cidr), (timestamp '2020-01-01' + id * interval '1 h'))

CREATE INDEX gist_trgm ON trees USING gist (t gist_trgm_ops)

CREATE INDEX gist_int ON trees USING gist ((ARRAY[id, id + 5, 7]) gist__int_ops, (ARRAY[id]) gist__intbig_ops) WHERE id % 4 = 0

INSERT INTO trees SELECT f.* FROM generate_series(50001, 51000) AS i, row_of(i) AS f
