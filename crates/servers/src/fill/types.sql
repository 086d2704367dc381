-- One table with a column for every common type. Every seventh row is mostly null.

CREATE TYPE public.mood AS ENUM ('sad', 'ok', 'happy', 'näive');
CREATE DOMAIN public.percent AS int CHECK (VALUE BETWEEN 0 AND 100);
CREATE TYPE public.vitals AS (pulse int, note text, temperature numeric(4, 1));

CREATE TABLE public.all_types (
  id int PRIMARY KEY, c_bool bool, c_char "char", c_int2 int2, c_int4 int4, c_int8 int8, c_float4 float4, c_float8 float8,
  c_numeric numeric, c_numeric_scaled numeric(30, 12), c_money money, c_text text, c_varchar varchar(40), c_bpchar char(12),
  c_name name, c_bytea bytea, c_date date, c_time time, c_timetz timetz, c_timestamp timestamp, c_timestamptz timestamptz,
  c_interval interval, c_uuid uuid, c_inet inet, c_cidr cidr, c_macaddr macaddr, c_macaddr8 macaddr8, c_bit bit(11),
  c_varbit varbit, c_json json, c_jsonb jsonb, c_jsonpath jsonpath, c_int_array int[], c_text_array text[],
  c_bounds_array int[], c_matrix float8[][], c_int4range int4range, c_int8range int8range, c_numrange numrange,
  c_tsrange tsrange, c_tstzrange tstzrange, c_daterange daterange, c_vitals public.vitals, c_mood public.mood,
  c_percent public.percent, c_vitals_array public.vitals[], c_mood_array public.mood[], c_point point, c_line line,
  c_lseg lseg, c_box box, c_path path, c_polygon polygon, c_circle circle, c_tsvector tsvector, c_tsquery tsquery,
  c_pg_lsn pg_lsn, c_xid xid, c_xid8 xid8, c_cid cid, c_tid tid, c_snapshot pg_snapshot, c_oid oid, c_regclass regclass,
  c_regtype regtype, c_regproc regproc, c_oidvector oidvector, c_int2vector int2vector);
INSERT INTO public.all_types
SELECT i, i % 2 = 0, chr(65 + i % 26)::"char", (i * 327 % 65536 - 32768)::int2, i * 7654321 - 1000000000, i * 92233720368547::int8,
  (CASE i % 50 WHEN 11 THEN 'NaN' WHEN 12 THEN 'Infinity' WHEN 13 THEN '-Infinity' ELSE (i / 7.0)::text END)::float4,
  (CASE i % 50 WHEN 11 THEN 'NaN' WHEN 12 THEN 'Infinity' WHEN 13 THEN '-0' ELSE (i * 1e100 / 3)::text END)::float8,
  (CASE i % 20 WHEN 1 THEN 'NaN' WHEN 2 THEN '1' || repeat('0', i) WHEN 3 THEN '-0.' || repeat('0', i) || '7'
     WHEN 4 THEN '0' ELSE (i * 12345678901.987654321)::text END)::numeric,
  (i * 123456.789012345678 - 5000000)::numeric(30, 12), (i * 1.37)::numeric::money, 'text ' || i || repeat(' äß€', i % 9),
  left(md5(i::text), i % 40), md5(i::text)::char(9), ('name_' || i)::name, decode(md5(i || '{seed}'), 'hex'),
  CASE i % 30 WHEN 5 THEN 'infinity' WHEN 6 THEN '-infinity' WHEN 8 THEN '4713-01-01 BC' ELSE date '1970-01-01' + i * 99 END,
  time '00:00:00.000001' + i * interval '431.7 s', (time '23:59:59' - i * interval '7 s') AT TIME ZONE interval '03:30',
  CASE i % 30 WHEN 5 THEN 'infinity' WHEN 6 THEN '-infinity' ELSE timestamp '1999-12-31 23:59:59.999999' + i * interval '1 day 7 us' END,
  timestamptz '2020-02-29 12:00:00+00' + i * interval '1 month', i * interval '1 year -3 days 4.5 s',
  md5(i || '{seed}')::uuid,
  CASE i % 3 WHEN 0 THEN '2001:db8::' || to_hex(i) || '/64' ELSE '10.0.' || i % 256 || '.1/24' END::inet,
  ('10.' || i % 256 || '.0.0/16')::cidr, ('08:00:2b:01:02:' || lpad(to_hex(i % 256), 2, '0'))::macaddr,
  ('08:00:2b:01:02:03:04:' || lpad(to_hex(i % 256), 2, '0'))::macaddr8, (i % 2048)::bit(11), (i::bit(20))::varbit || B'1',
  json_build_object('i', i, 'list', json_build_array(1, 'two', null)),
  jsonb_build_object('i', i, 'n', i / 3.0, 'deep', jsonb_build_object('t', true, 'a', jsonb_build_array(i, md5(i::text), null))),
  '$.deep.a[*] ? (@ > 3)', ARRAY[i, NULL, i * 2], ARRAY['a' || i, NULL, '', 'quo"te,'],
  format('[-2:0]={%s,%s,%s}', i, i + 1, i + 2)::int[], ARRAY[[i, 1.5::float8], ['NaN'::float8, -1]], int4range(i, i + 10),
  CASE i % 4 WHEN 0 THEN 'empty' WHEN 1 THEN '(,)' ELSE '[5,' || 6 + i || ')' END::int8range,
  numrange(i / 3.0, NULL, '()'), tsrange(timestamp '2000-01-01', timestamp '2000-01-01' + i * interval '1 h'),
  tstzrange(NULL, timestamptz '2000-01-01 00:00:00+00' + i * interval '1 h', '(]'), daterange(date '2000-01-01', date '2000-01-02' + i),
  ROW(i, CASE WHEN i % 5 > 0 THEN 'note, ' || i END, 36.6)::public.vitals, (enum_range(NULL::public.mood))[1 + i % 4], i % 101,
  ARRAY[ROW(i, 'x', 1)::public.vitals, NULL, ROW(NULL, NULL, NULL)::public.vitals], ARRAY['sad', 'happy']::public.mood[],
  point(i, -i), format('{1,%s,3}', i)::line, lseg(point(0, i), point(i, 0)), box(point(i, i), point(-i, -1)),
  format('[(0,0),(%s,1),(2,2)]', i)::path, format('((0,0),(%s,1),(2,9))', i)::polygon, circle(point(i, 1), i),
  to_tsvector('simple', 'the ' || i || ' quick brown fox ' || md5(i::text)), to_tsquery('simple', 'fox & !dog | q' || i || ':*'),
  ('1A/' || to_hex(i))::pg_lsn, i::text::xid, (4294967296 + i)::text::xid8, i::text::cid, format('(%s,%s)', i, 1 + i % 99)::tid,
  '10:20:10,14,15', i, 'pg_class'::regclass, 'int4'::regtype, 'pg_backend_pid'::regproc, format('%s %s', i, i + 1)::oidvector,
  '1 2 3'::int2vector
FROM generate_series(1, 150) AS i;
INSERT INTO public.all_types (id, c_text, c_circle) SELECT i, NULLIF('sparse ' || i, 'sparse 154'), NULL FROM generate_series(151, 175) AS i;

-- since 14
CREATE TABLE public.all_types_14 (id int PRIMARY KEY, c_infinite numeric, c_int4multirange int4multirange, c_datemultirange datemultirange);
INSERT INTO public.all_types_14 SELECT i, CASE i % 3 WHEN 0 THEN 'Infinity' WHEN 1 THEN '-Infinity' ELSE i::text END::numeric,
  format('{[1,%s),[%s,%s)}', i + 1, i + 5, i + 9)::int4multirange, '{}' FROM generate_series(1, 40) AS i;

-- since 17
CREATE TABLE public.all_types_17 (id int PRIMARY KEY, c_interval interval, c_interval_array interval[]);
INSERT INTO public.all_types_17 SELECT i, CASE i % 3 WHEN 0 THEN 'infinity' WHEN 1 THEN '-infinity' ELSE i || ' days' END::interval,
  ARRAY['infinity', '-infinity', '1 month'::interval] FROM generate_series(1, 40) AS i;

-- with xml
CREATE TABLE public.types_xml (id int PRIMARY KEY, c_xml xml);
INSERT INTO public.types_xml SELECT i, format('<r id="%s"><v>&lt;%s</v></r>', i, md5(i::text))::xml FROM generate_series(1, 40) AS i;

-- with hstore
CREATE EXTENSION hstore SCHEMA ext;
CREATE TABLE public.types_hstore (id int PRIMARY KEY, c_hstore ext.hstore);
INSERT INTO public.types_hstore SELECT i, format('a=>%s, "b c"=>NULL', i)::ext.hstore FROM generate_series(1, 40) AS i;

-- with citext
CREATE EXTENSION citext SCHEMA ext;
CREATE TABLE public.types_citext (id int PRIMARY KEY, c_citext ext.citext);
INSERT INTO public.types_citext SELECT i, 'MiXed ' || i FROM generate_series(1, 40) AS i;

-- with ltree
CREATE EXTENSION ltree SCHEMA ext;
CREATE TABLE public.types_ltree (id int PRIMARY KEY, c_ltree ext.ltree);
INSERT INTO public.types_ltree SELECT i, ('top.n' || i || '.leaf')::ext.ltree FROM generate_series(1, 40) AS i;

-- with cube
CREATE EXTENSION cube SCHEMA ext;
CREATE TABLE public.types_cube (id int PRIMARY KEY, c_cube ext.cube);
INSERT INTO public.types_cube SELECT i, format('(%s,1),(2,%s)', i, i)::ext.cube FROM generate_series(1, 40) AS i;
