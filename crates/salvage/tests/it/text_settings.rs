//! What is salvaged under other settings is what the server prints under the same ones; names of
//! objects are its names.

use crate::common;

use common::{compare, copied_in, options, salvaged, session_with};
use pgclinic_format::datum::{MoneyFormat, Zone};
use pgclinic_salvage::{SalvageOptions, TextSettings, TextStyle};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

/// DateStyle, IntervalStyle, TimeZone, bytea_output, extra_float_digits, search_path.
const SETTINGS: [[&str; 6]; 5] = [
    [
        "SQL, DMY",
        "postgres_verbose",
        "Europe/Berlin",
        "escape",
        "0",
        "public",
    ],
    [
        "Postgres, MDY",
        "sql_standard",
        "America/New_York",
        "hex",
        "-3",
        "sales, public",
    ],
    [
        "German",
        "iso_8601",
        "Australia/Lord_Howe",
        "escape",
        "-15",
        "public",
    ],
    [
        "Postgres, DMY",
        "postgres",
        "Asia/Kathmandu",
        "hex",
        "3",
        "public",
    ],
    [
        "ISO",
        "postgres",
        "<+05:30>-5:30",
        "hex",
        "-14",
        "\"odd näme\"",
    ],
];

fn style_of([date, interval, zone, bytea, digits, path]: [&str; 6]) -> TextStyle {
    let settings = TextSettings {
        date_style: date.into(),
        interval_style: interval.into(),
        time_zone: zone.into(),
        bytea_output: bytea.into(),
        extra_float_digits: digits.parse().expect("a number"),
        lc_monetary: "C".into(),
        search_path: path
            .split(", ")
            .map(|name| name.trim_matches('"').into())
            .collect(),
    };
    let file = std::fs::read(format!("/usr/share/zoneinfo/{zone}"));
    let zone = match &file {
        Ok(bytes) => Zone::of_file(bytes),
        Err(_) => Zone::of_rule(zone),
    };
    TextStyle::new(settings, zone.expect("a zone"), MoneyFormat::C).expect("a style")
}

/// Moments around every change of the clocks for a while, and far from all of them; numbers of all
/// sizes; odd intervals.
const VALUES: &str = "CREATE TABLE moments AS SELECT t, t::timestamp AS bare, t::date AS d FROM (
    SELECT generate_series('1883-01-01'::timestamptz, '2060-01-01', '19 days 5 hours 7 minutes 13.5 seconds') UNION ALL
    SELECT unnest('{4713-01-01 00:00:00+00 BC, 0001-12-31 23:59:59.999999+00 BC, 0099-03-01 12:00:00+00, infinity, -infinity,
      9999-07-01 00:00:00+00, 294276-12-31 00:00:00+00, 2024-03-31 00:59:59+00, 2024-03-31 01:00:00+00, 2024-10-27 00:59:59.5+00,
      2024-10-27 01:00:00+00}'::timestamptz[])) v(t);
  CREATE TABLE spans AS SELECT i, tstzrange('2024-03-01', '2024-04-01') AS r, ARRAY['2024-03-01'::timestamptz, NULL] AS a FROM (
    SELECT make_interval(y, m, 0, d, h, n, s) FROM unnest('{0,1,-2}'::int[]) y, unnest('{0,1,-3}'::int[]) m,
      unnest('{0,1,-10}'::int[]) d, unnest('{0,-1,30}'::int[]) h, unnest('{0,2}'::int[]) n, unnest('{0,1,-0.5,59.000001}'::float8[]) s) v(i);
  CREATE TABLE floats AS SELECT f, f::float4 AS small, point(f, -f) AS p FROM (
    SELECT (random() - 0.5) * pow(10, (random() * 60 - 30)::int) FROM generate_series(1, 300) UNION ALL
    SELECT unnest('{0,-0,NaN,Infinity,-Infinity,0.5,1.5,2.5,3.5,0.25,0.125,1e15,123456,999999.5,1e-4,1e-5,0.00012345}'::float8[])) v(f);
  CREATE TABLE raw AS SELECT set_byte('\\x415c00', 2, b) AS b FROM generate_series(0, 255) b";

/// Objects that hide others or are hidden, and everything that the catalogs know by its name.
const NAMES: &str = "CREATE SCHEMA \"odd näme\";
  CREATE TABLE pg_class (a int); CREATE TABLE \"odd näme\".\"Täble\" (a int); CREATE TABLE \"odd näme\".moments (a int);
  CREATE FUNCTION abs(int) RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
  CREATE FUNCTION twice(text, \"char\"[]) RETURNS int LANGUAGE sql AS 'SELECT 1';
  CREATE FUNCTION \"odd näme\".twice(int) RETURNS int LANGUAGE sql AS 'SELECT 1';
  CREATE FUNCTION once(character, bit, timestamptz) RETURNS int LANGUAGE sql AS 'SELECT 1';
  CREATE OPERATOR <+> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4pl);
  CREATE OPERATOR \"odd näme\".<+> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4pl);
  CREATE DOMAIN \"odd näme\".\"Grad\" AS int; CREATE ROLE \"odd röle\"; CREATE ROLE plain_role; GRANT SELECT ON pg_class TO \"odd röle\", plain_role;
  CREATE TABLE n_class AS SELECT oid::regclass AS n, relacl FROM pg_catalog.pg_class WHERE relfilenode <> 0 OR relkind = 'v';
  CREATE TABLE n_proc AS SELECT oid::regproc AS n, oid::regprocedure AS p FROM pg_proc;
  CREATE TABLE n_oper AS SELECT oid::regoper AS n, oid::regoperator AS p FROM pg_operator;
  CREATE TABLE n_type AS SELECT oid::regtype AS n, ARRAY[oid::regtype] AS a FROM pg_type;
  CREATE TABLE n_text AS SELECT oid::oid::regconfig AS n FROM pg_ts_config;
  CREATE TABLE n_dict AS SELECT oid::oid::regdictionary AS n FROM pg_ts_dict;
  CREATE TABLE n_collation AS SELECT oid::oid::regcollation AS n FROM pg_collation WHERE collencoding IN (-1, 6);
  CREATE TABLE n_role AS SELECT oid::oid::regrole AS n FROM pg_authid;
  CREATE TABLE n_space AS SELECT oid::oid::regnamespace AS n FROM pg_namespace;
  CREATE TABLE n_none AS SELECT 0::oid::regclass AS a, 0::oid::regproc AS b, 0::oid::regoper AS c, 0::oid::regoperator AS d, 0::oid::regtype AS e,
    0::oid::regrole AS f, 4242424242::oid::regclass AS g, 4242424242::oid::regoperator AS h, 4242424242::oid::regtype AS i";

fn settings_give_what_the_server_gives(major: u16) {
    let copy = copy_of(&seed(&server(major), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = common::session(&running, "clinic");
    for statements in [VALUES, NAMES] {
        session.execute(statements).expect("values");
    }
    let given = SETTINGS.map(|[date, interval, zone, bytea, digits, path]| {
        let settings = [
            ("DateStyle", date),
            ("IntervalStyle", interval),
            ("TimeZone", zone),
            ("bytea_output", bytea),
            ("extra_float_digits", digits),
            ("lc_monetary", "C"),
            ("search_path", path),
        ];
        let mut session = session_with(&running, "clinic", &settings);
        copied_in(&mut session, "clinic", "")
    });
    drop(session);
    running.stop(StopMode::Fast).expect("stopped");
    for (settings, expected) in SETTINGS.into_iter().zip(given) {
        let folder = tempfile::tempdir().expect("a directory");
        let destination = folder.path().join("out");
        let options = SalvageOptions {
            text: style_of(settings),
            ..options(&destination, "copy")
        };
        salvaged(&copy.pgdata, &options);
        compare(&destination, "copy", &expected);
    }
}

#[test]
fn of_13() {
    settings_give_what_the_server_gives(13);
}

#[test]
fn of_15() {
    settings_give_what_the_server_gives(15);
}

#[test]
fn of_18() {
    settings_give_what_the_server_gives(18);
}
