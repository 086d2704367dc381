//! Values of every type that a btree can index, with all the oddities of each.

/// One table with one index.
pub(crate) struct Case {
    /// The table's name.
    pub(crate) name: &'static str,
    /// The column's type.
    pub(crate) ty: &'static str,
    /// The index's operator class.
    pub(crate) class: &'static str,
    /// The class's "less than".
    pub(crate) less: &'static str,
    /// The column has a collation, and it is to be "C".
    pub(crate) collate: bool,
    /// The first major that has all of this.
    pub(crate) since: u16,
    /// SQL to run before the values come.
    pub(crate) before: &'static str,
    /// Expressions; one that gives a set gives several values.
    pub(crate) values: &'static [&'static str],
}

const fn case(
    name: &'static str,
    ty: &'static str,
    class: &'static str,
    values: &'static [&'static str],
) -> Case {
    Case {
        name,
        ty,
        class,
        less: "<",
        collate: false,
        since: 13,
        before: "",
        values,
    }
}

const fn text(
    name: &'static str,
    ty: &'static str,
    class: &'static str,
    values: &'static [&'static str],
) -> Case {
    Case {
        collate: true,
        ..case(name, ty, class, values)
    }
}

/// Operator classes that we do not compare, with the reason.
pub(crate) const UNCOMPARED: &[(&str, &str)] = &[];

/// Types of our own, and an index under collations that only a library knows.
pub(crate) const SETUP: &str = r#"
CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
ALTER TYPE mood ADD VALUE 'glad' BEFORE 'happy';
ALTER TYPE mood ADD VALUE 'meh' BEFORE 'ok';
ALTER TYPE mood ADD VALUE 'first' BEFORE 'sad';
ALTER TYPE mood ADD VALUE 'last';
CREATE TYPE pair AS (a int4, gone text, b text COLLATE "C", c numeric);
CREATE TYPE wide AS (a bool, b int8, c float4, d name, e int4[], f text, g mood, h inet);
CREATE TYPE textrange AS RANGE (subtype = text, collation = "C");
CREATE TYPE floatrange AS RANGE (subtype = float8);
CREATE DOMAIN posint AS int4 CHECK (VALUE > 0);
CREATE TABLE "foreign" (a text COLLATE "en-x-icu", b text);
CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE INDEX foreign_v ON "foreign" (a, b COLLATE loose);
"#;

const TEXTS: &[&str] = &[
    "''",
    "' '",
    "'a'",
    "'a '",
    "'a  '",
    "'A'",
    "'b'",
    "'aa'",
    "'ab'",
    "'ä'",
    "'ö'",
    "'z'",
    "'Z'",
    "'~'",
    "'a' || chr(1)",
    "'a' || chr(31)",
    "'a' || chr(9)",
    "'a' || chr(65533)",
    "'日本'",
    "'😀'",
    "repeat('x', 200)",
    "repeat('x', 199) || 'y'",
    "'a'",
    "''",
    "md5(generate_series(1, 30)::text)",
];

const NUMERICS: &[&str] = &[
    "'0'",
    "'0.00'",
    "'-0.0'",
    "'1'",
    "'1.0'",
    "'1.000000'",
    "'-1'",
    "'9999'",
    "'10000'",
    "'10001'",
    "'99990000'",
    "'0.0001'",
    "'0.00010'",
    "'0.00001'",
    "'-0.00001'",
    "'1e100'",
    "'1e-100'",
    "'-1e100'",
    "'1e300'",
    "'-1e-300'",
    "'NaN'",
    "'NaN'",
    "'12345678901234567890.123456789'",
    "'12345678901234567890.12345678'",
    "'1e1000'",
    "'1e-1000'",
    "'1e1000' + '1e-500'::numeric",
    "(hashint4(generate_series(1, 30))::numeric / 1000)",
    "(hashint4(generate_series(1, 20))::numeric * 100000000)",
];

const JSON: &[&str] = &[
    "'null'",
    "'\"\"'",
    "'\"a\"'",
    "'\"ab\"'",
    "'\"b\"'",
    "'0'",
    "'0.0'",
    "'1'",
    "'-1'",
    "'1e400'",
    "'12.5'",
    "'12.50'",
    "'true'",
    "'false'",
    "'[]'",
    "'{}'",
    "'[null]'",
    "'[1]'",
    "'[1, 2]'",
    "'[2]'",
    "'[[]]'",
    "'[{}]'",
    "'[\"a\"]'",
    "'[true]'",
    "'[false]'",
    "'[[1, 2], 3]'",
    "'[[1, 3], 3]'",
    "'[[1], 3]'",
    "'{\"a\": 1}'",
    "'{\"a\": 2}'",
    "'{\"a\": 1.0}'",
    "'{\"b\": 1}'",
    "'{\"aa\": 1}'",
    "'{\"a\": 1, \"b\": 2}'",
    "'{\"a\": {\"b\": [1, {\"c\": null}]}}'",
    "'{\"a\": {\"b\": [1, {\"c\": false}]}}'",
    "'{\"a\": []}'",
    "'{\"a\": {}}'",
    "'{\"a\": null}'",
    "'{\"a\": \"x\", \"longer\": [1, 2.5, \"y\"], \"c\": true}'",
    "'{\"a\": \"x\", \"longer\": [1, 2.5, \"z\"], \"c\": true}'",
    "(SELECT jsonb_agg(i) FROM generate_series(1, 40) i)",
    "(SELECT jsonb_agg(i::text) FROM generate_series(1, 40) i)",
    "(SELECT jsonb_object_agg('k' || i, i) FROM generate_series(1, 40) i)",
    "(SELECT jsonb_object_agg('k' || i, i + i / 40) FROM generate_series(1, 40) i)",
    "(SELECT jsonb_agg(jsonb_build_object('n', i)) FROM generate_series(1, 40) i)",
];

const INTERVALS: &[&str] = &[
    "'0'",
    "'1 day'",
    "'24 hours'",
    "'1 month'",
    "'30 days'",
    "'1 year'",
    "'360 days'",
    "'365 days'",
    "'-1 day'",
    "'-24 hours'",
    "'1 month -30 days'",
    "'178000000 years'",
    "'-178000000 years'",
    "'2147483647 months 2147483647 days'",
    "'1 day -1 second'",
    "'0.000001 s'",
    "'-0.000001 s'",
];

const RECORDS: &[&str] = &[
    "'(1,a,2)'",
    "'(1,a,2.0)'",
    "'(1,a,)'",
    "'(1,,2)'",
    "'(,a,2)'",
    "'(,,)'",
    "'(2,a,2)'",
    "'(-1,a,2)'",
    "'(1,b,2)'",
    "'(1,aa,2)'",
    "'(256,a,2)'",
    "'(1,a,3)'",
    "'(1,a,NaN)'",
];

const WIDE: &[&str] = &[
    "'(t,1,1.5,x,\"{1,2}\",y,ok,10.0.0.1)'",
    "'(t,1,1.5,x,\"{1,2}\",y,ok,10.0.0.1)'",
    "'(f,1,1.5,x,\"{1,2}\",y,ok,10.0.0.1)'",
    "'(t,-1,1.5,x,\"{1,2}\",y,ok,10.0.0.1)'",
    "'(t,1,-1.5,x,\"{1,2}\",y,ok,10.0.0.1)'",
    "'(t,1,NaN,x,\"{1,2}\",y,ok,10.0.0.1)'",
    "'(t,1,1.5,xx,\"{1,2}\",y,ok,10.0.0.1)'",
    "'(t,1,1.5,x,\"{1,3}\",y,ok,10.0.0.1)'",
    "'(t,1,1.5,x,\"{1}\",y,ok,10.0.0.1)'",
    "'(t,1,1.5,x,\"{1,2}\",yy,ok,10.0.0.1)'",
    "'(t,1,1.5,x,\"{1,2}\",y,meh,10.0.0.1)'",
    "'(t,1,1.5,x,\"{1,2}\",y,glad,10.0.0.1)'",
    "'(t,1,1.5,x,\"{1,2}\",y,ok,10.0.0.0/8)'",
    "'(t,1,1.5,x,,y,ok,)'",
    "'(t,,,,,,,)'",
    "'(t,1,1.5,x,\"{1,2}\",y,,10.0.0.1)'",
    "'(t,256,1.5,x,\"{1,2}\",y,,10.0.0.1)'",
];

#[rustfmt::skip]
pub(crate) const CASES: &[Case] = &[
    case("c_bool", "bool", "bool_ops", &["true", "false", "true"]),
    case("c_char", "\"char\"", "char_ops", &["'a'", "'A'", "'z'", "''", "'~'", "'\\377'", "'ä'"]),
    case("c_int2", "int2", "int2_ops", &["0", "1", "-1", "256", "-256", "32767", "-32768", "1"]),
    case("c_int4", "int4", "int4_ops", &["0", "-1", "2147483647", "-2147483648", "65536", "hashint4(generate_series(1, 40))"]),
    case("c_posint", "posint", "int4_ops", &["1", "2", "256", "2147483647", "2"]),
    case("c_int8", "int8", "int8_ops", &["0", "-1", "9223372036854775807", "-9223372036854775808", "4294967296", "hashint8extended(generate_series(1, 40), 1)"]),
    case("c_oid", "oid", "oid_ops", &["0", "1", "4294967295", "2147483648", "256", "1"]),
    case("c_regclass", "regclass", "oid_ops", &["0", "'pg_class'", "'pg_type'", "'pg_class'"]),
    case("c_xid8", "xid8", "xid8_ops", &["'0'", "'1'", "'18446744073709551615'", "'9223372036854775808'"]),
    case("c_lsn", "pg_lsn", "pg_lsn_ops", &["'0/0'", "'0/1'", "'1/0'", "'FFFFFFFF/FFFFFFFF'", "'80000000/0'"]),
    case("c_tid", "tid", "tid_ops", &["'(0,0)'", "'(0,1)'", "'(1,0)'", "'(65536,1)'", "'(65535,2)'", "'(4294967295,65535)'", "'(256,256)'"]),
    case("c_money", "money", "money_ops", &["0", "1", "-1", "'-92233720368547758.08'", "'92233720368547758.07'", "256"]),
    case("c_float4", "float4", "float4_ops", &["0", "'-0'", "1", "-1", "'NaN'", "'NaN'", "'Infinity'", "'-Infinity'", "1e38", "-1e-38", "1.5"]),
    case("c_float8", "float8", "float8_ops", &["0", "'-0'", "1", "-1", "'NaN'", "'Infinity'", "'-Infinity'", "1e300", "'-1e-300'", "'4e-324'", "1.5", "hashint4(generate_series(1, 20))"]),
    case("c_numeric", "numeric", "numeric_ops", NUMERICS),
    Case { since: 14, ..case("c_numeric_infinity", "numeric", "numeric_ops", &["'Infinity'", "'-Infinity'", "'NaN'", "'1e1000'", "'-1e1000'", "0", "'inf'"]) },
    case("c_date", "date", "date_ops", &["'2000-01-01'", "'1999-12-31'", "'infinity'", "'-infinity'", "'4713-01-01 BC'", "'5874897-01-01'", "'2000-01-01'"]),
    case("c_time", "time", "time_ops", &["'00:00'", "'24:00'", "'12:34:56.789'", "'12:34:56.788999'", "'00:00'"]),
    case("c_timetz", "timetz", "timetz_ops", &["'12:00+00'", "'13:00+01'", "'11:00-01'", "'12:00+01'", "'00:00+15:59'", "'24:00-15:59'", "'12:00:00.000001+00'", "'13:00+01'"]),
    case("c_timestamp", "timestamp", "timestamp_ops", &["'2000-01-01'", "'1999-12-31 23:59:59.999999'", "'infinity'", "'-infinity'", "'294276-12-31'", "'4713-01-01 BC'"]),
    case("c_timestamptz", "timestamptz", "timestamptz_ops", &["'2000-01-01 00:00+00'", "'2000-01-01 01:00+01'", "'infinity'", "'-infinity'", "'1900-01-01'"]),
    case("c_interval", "interval", "interval_ops", INTERVALS),
    Case { since: 17, ..case("c_interval_infinity", "interval", "interval_ops", &["'infinity'", "'-infinity'", "'178000000 years'", "'-178000000 years'", "0::text", "'infinity'"]) },
    case("c_uuid", "uuid", "uuid_ops", &["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'", "'00000000-0000-0000-0000-000000000001'", "'01000000-0000-0000-0000-000000000000'", "md5(generate_series(1, 20)::text)"]),
    case("c_macaddr", "macaddr", "macaddr_ops", &["'00:00:00:00:00:00'", "'ff:00:00:00:00:00'", "'00:00:00:00:00:ff'", "'00:00:01:00:00:00'", "'00:00:00:01:00:00'"]),
    case("c_macaddr8", "macaddr8", "macaddr8_ops", &["'00:00:00:00:00:00:00:00'", "'ff:00:00:00:00:00:00:00'", "'00:00:00:00:00:00:00:ff'", "'08:00:2b:01:02:03'", "'00:00:00:00:01:00:00:00'"]),
    case("c_inet", "inet", "inet_ops", &["'10.0.0.1'", "'10.0.0.1/8'", "'10.0.0.0/8'", "'10.0.0.1/32'", "'10.1.0.0/16'", "'10.128.0.0/9'", "'10.127.0.0/9'", "'0.0.0.0/0'", "'255.255.255.255'", "'::'", "'::/0'", "'::1'", "'fe80::/10'", "'fe80::1/10'", "'fe80::1/11'", "'ffff::'", "'10.0.0.1/31'", "'10.0.0.0/31'", "'1.2.3.4/0'"]),
    case("c_cidr", "cidr", "cidr_ops", &["'10.0.0.0/8'", "'10.0.0.0/9'", "'10.1.0.0/16'", "'11.0.0.0/8'", "'::/0'", "'0.0.0.0/0'", "'fe80::/64'", "'10.0.0.0/8'"]),
    case("c_bit", "bit(12)", "bit_ops", &["B'000000000000'", "B'111111111111'", "B'000000000001'", "B'100000000000'", "B'000000010000'"]),
    case("c_varbit", "varbit", "varbit_ops", &["B''", "B'0'", "B'1'", "B'00'", "B'01'", "B'10'", "B'00000000'", "B'000000000'", "B'0000000'", "B'11111111'", "B'111111111'", "B'10'"]),
    case("c_bytea", "bytea", "bytea_ops", &["''", "'\\x00'", "'\\x0000'", "'\\xff'", "'\\x80'", "'\\x7f'", "'\\x7fff'", "'\\x00'", "sha256(generate_series(1, 20)::text::bytea)"]),
    text("c_text", "text", "text_ops", TEXTS),
    text("c_varchar", "varchar", "varchar_ops", TEXTS),
    text("c_bpchar", "bpchar", "bpchar_ops", TEXTS),
    text("c_char_12", "char(12)", "bpchar_ops", &["''", "'a'", "'a '", "'a' || chr(9)", "'ab'", "'a b'", "'Z'", "'é'"]),
    text("c_name", "name", "name_ops", &["''", "'a'", "'A'", "'aa'", "'ä'", "'a '", "repeat('x', 63)", "repeat('x', 62)", "'a'"]),
    Case { less: "~<~", ..case("c_text_pattern", "text", "text_pattern_ops", TEXTS) },
    Case { less: "~<~", ..case("c_varchar_pattern", "varchar", "varchar_pattern_ops", TEXTS) },
    Case { less: "~<~", ..case("c_bpchar_pattern", "bpchar", "bpchar_pattern_ops", TEXTS) },
    case("c_oidvector", "oidvector", "oidvector_ops", &["''", "'1'", "'1 2'", "'2'", "'0 0 0'", "'4294967295'", "'2147483648 1'", "'1 2'"]),
    case("c_int4s", "int4[]", "array_ops", &["'{}'", "'{1}'", "'{1,2}'", "'{NULL}'", "'{1,NULL}'", "'{NULL,1}'", "'{2}'", "'{-1}'", "'{{1,2},{3,4}}'", "'{1,2,3,4}'", "'{{1},{2},{3},{4}}'", "'{{{1,2},{3,4}}}'", "'[0:1]={1,2}'", "'[2:3]={1,2}'", "'{{1,2,3,4}}'", "'{1,2}'"]),
    text("c_texts", "text[]", "array_ops", &["'{}'", "'{a}'", "'{a,b}'", "'{\"\"}'", "'{NULL}'", "'{aa}'", "'{A}'", "'{a,NULL}'", "ARRAY[repeat('x', 150)]", "ARRAY[repeat('x', 150), 'y']"]),
    text("c_bpchars", "char(3)[]", "array_ops", &["'{}'", "'{a,b}'", "'{\"a \",b}'", "'{ab}'"]),
    text("c_varchars", "varchar[]", "array_ops", &["'{b}'", "'{a,b}'", "'{}'"]),
    case("c_numerics", "numeric[]", "array_ops", &["'{1,2}'", "'{1.0,2.00}'", "'{NaN}'", "'{1e100}'", "'{}'", "'{-1}'"]),
    case("c_moods", "mood[]", "array_ops", &["'{sad}'", "'{meh}'", "'{glad,ok}'", "'{}'", "'{happy}'", "'{first,last}'"]),
    case("c_pairs", "wide[]", "array_ops", &["'{}'", "ARRAY['(t,1,1.5,x,\"{1,2}\",y,ok,10.0.0.1)'::wide]", "ARRAY['(t,1,1.5,x,\"{1,3}\",y,ok,10.0.0.1)'::wide]", "ARRAY['(t,,,,,,,)'::wide, '(f,,,,,,,)'::wide]"]),
    case("c_int2vector", "int2vector", "array_ops", &["'1 2'", "'1'", "'-1'", "'1 2 3'", "''"]),
    case("c_boxes", "posint[]", "array_ops", &["'{1,2}'", "'{3}'", "'{}'"]),
    case("c_mood", "mood", "enum_ops", &["'sad'", "'ok'", "'happy'", "'glad'", "'meh'", "'first'", "'last'", "'ok'"]),
    case("c_int4range", "int4range", "range_ops", &["'empty'", "'[1,2]'", "'[1,3)'", "'(0,3)'", "'(,)'", "'(,3)'", "'[1,)'", "'[-5,5)'", "'[1,5)'", "'empty'"]),
    case("c_numrange", "numrange", "range_ops", &["'empty'", "'[1,2]'", "'(1,2]'", "'[1,2)'", "'(1,2)'", "'[1.0,2.00]'", "'(,2)'", "'(,2]'", "'[1,)'", "'(1,)'", "'(,)'", "'[1,1]'", "'[NaN,NaN]'"]),
    case("c_tsrange", "tsrange", "range_ops", &["'empty'", "'[2000-01-01,2001-01-01)'", "'(2000-01-01,2001-01-01)'", "'[-infinity,infinity]'", "'(,infinity)'", "'(,)'"]),
    case("c_textrange", "textrange", "range_ops", &["'empty'", "'[a,b]'", "'[a,b)'", "'(a,b]'", "'[A,b]'", "'[,b]'", "'[\"\",b]'", "'[aa,b]'", "textrange(repeat('x', 150), repeat('y', 160))", "textrange(repeat('x', 150), NULL)", "textrange('x', repeat('y', 160))"]),
    case("c_floatrange", "floatrange", "range_ops", &["'empty'", "'[1,2]'", "'[-0,0]'", "'[0,0]'", "'[1,NaN]'", "'[-Infinity,2]'"]),
    Case { since: 14, ..case("c_int4multirange", "int4multirange", "multirange_ops", &["'{}'", "'{[1,2]}'", "'{[1,3)}'", "'{[1,2],[4,5]}'", "'{[1,2],[4,6]}'", "'{(,)}'", "'{(,3)}'", "'{[1,)}'", "'{(,0),[4,6],[9,)}'", "'{}'", "'{[1,2],[4,5],[7,8],[10,11],[13,14],[16,17]}'"]) },
    Case { since: 14, ..case("c_nummultirange", "nummultirange", "multirange_ops", &["'{}'", "'{[1,2]}'", "'{[1.0,2.00]}'", "'{(1,2]}'", "'{[1,2),(2,3]}'", "'{[1,2),(2,4]}'", "'{[1e100,1e200],[1e300,)}'"]) },
    Case { since: 14, ..case("c_textmultirange", "textmultirange", "multirange_ops", &["'{}'", "'{[a,b]}'", "'{[a,b],[c,d]}'", "'{[aa,b],[c,d]}'", "'{(,b],[bb,dddddd)}'", "textmultirange(textrange(repeat('x', 150), repeat('y', 160)), textrange('z', NULL))"]) },
    case("c_jsonb", "jsonb", "jsonb_ops", JSON),
    case("c_tsvector", "tsvector", "tsvector_ops", &["''", "'a'", "'b'", "'a b'", "'a c'", "'aa'", "'a:1'", "'a:2'", "'a:1A'", "'a:1B'", "'a:1,2'", "'a:1,3'", "'a:1 b'", "'a b:1'", "'a:1A,2B c:3'", "'a:1A,2C c:3'", "'a b'", "'''a b'' c'", "to_tsvector('simple', 'the quick brown fox')"]),
    case("c_tsquery", "tsquery", "tsquery_ops", &["''", "'a'", "'b'", "'a:*'", "'a:A'", "'!a'", "'!b'", "'a & b'", "'b & a'", "'a | b'", "'a <-> b'", "'a <2> b'", "'a <3> b'", "'a & b & c'", "'a & (b | c)'", "'(a <-> b) <2> c'", "'(a <2> b) <-> c'", "'a <-> (b <2> c)'", "'!(a & b)'", "'!a & b'", "'a & b'", "'aa'", "'(a <2> b) & c'", "'(a <3> b) & c'", "'(a <3> b) & d'"]),
    Case { before: "INSERT INTO c_record (v) VALUES ('(1,x,a,2)'), ('(1,,b,2)'), ('(1,,a,2)'); ALTER TYPE pair DROP ATTRIBUTE gone;", ..case("c_record", "pair", "record_ops", RECORDS) },
    case("c_wide", "wide", "record_ops", WIDE),
    Case { less: "*<", ..case("c_record_image", "pair", "record_image_ops", RECORDS) },
    Case { less: "*<", ..case("c_wide_image", "wide", "record_image_ops", WIDE) },
];
