//! A salvage into a server takes the tables that one into a directory takes, and moves sequences on
//! whose values are lost.

use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport};

use crate::common;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use common::{Lines, copied, options, salvaged, session};
use pgclinic_salvage::{Destination, SalvageOptions};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StopMode};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

const PAGE: usize = 8192;

/// A stopped cluster with a database of these statements, what its tables hold, and where these
/// relations stand.
struct Source {
    copy: TempCopy,
    rows: BTreeMap<String, Lines>,
    paths: Vec<PathBuf>,
}

impl Source {
    fn new(statements: &[&str], relations: &[&str]) -> Self {
        let copy = copy_of(&seed(&server(15), Checksums::Off));
        let mut running = copy.start().expect("a server");
        session(&running, "postgres")
            .execute("CREATE DATABASE shop TEMPLATE template0")
            .expect("a database");
        let mut shop = session(&running, "shop");
        for sql in statements {
            shop.execute(sql).expect(sql);
        }
        let paths = relations.iter().map(|relation| {
            let path = shop.query_value(&format!("SELECT pg_relation_filepath('{relation}')"));
            copy.pgdata.join(path.expect("a path").expect("a file"))
        });
        let paths = paths.collect();
        let rows = rows(&running, "shop");
        drop(shop);
        running.stop(StopMode::Fast).expect("stopped");
        Source { copy, rows, paths }
    }
}

/// The rows of all tables, by schema and name.
fn rows(server: &Server, database: &str) -> BTreeMap<String, Lines> {
    let found = copied(server, database, "").into_iter();
    let plain = |name: String| {
        name.split_once('/')
            .map_or(String::new(), |(_, name)| name.to_owned())
    };
    found.map(|(name, lines)| (plain(name), lines)).collect()
}

fn zero(path: &Path, block: usize) {
    let file = OpenOptions::new().write(true).open(path).expect("a file");
    file.write_all_at(&[0; PAGE], (block * PAGE) as u64)
        .expect("zeroed");
}

fn into(server: &Server, database: &str) -> SalvageOptions {
    session(server, "postgres")
        .execute(&format!("CREATE DATABASE {database} TEMPLATE template0"))
        .expect("a database");
    let mut options = options(Path::new("/nowhere"), "copy");
    options.destination = Destination::Server(Box::new(ConnectionTarget::of(server, database)));
    options.selection.databases = vec![Glob::new("shop")];
    options
}

/// What the account says of a thing that was not salvaged.
fn why<'a>(account: &'a SalvageReport, what: &str) -> &'a str {
    let mut gaps = account.not_salvaged.iter();
    let gap = gaps.find(|gap| gap.what.contains(what));
    let gap = gap.unwrap_or_else(|| panic!("{what}: {:#?}", account.not_salvaged));
    &gap.why
}

const SEQUENCES: [&str; 7] = [
    "CREATE TABLE public.by_serial (id serial PRIMARY KEY, word text); INSERT INTO public.by_serial (word) SELECT n FROM generate_series(1, 40) n",
    "CREATE TABLE public.by_identity (id int GENERATED ALWAYS AS IDENTITY, word text); INSERT INTO public.by_identity (word) SELECT n FROM generate_series(1, 50) n",
    "CREATE SEQUENCE public.fives INCREMENT 5; CREATE TABLE public.by_default (id bigint DEFAULT nextval('public.fives')); INSERT INTO public.by_default SELECT nextval('public.fives') FROM generate_series(1, 60)",
    "CREATE SEQUENCE public.down INCREMENT -1; CREATE TABLE public.by_down (id int DEFAULT nextval('public.down')); INSERT INTO public.by_down SELECT nextval('public.down') FROM generate_series(1, 70)",
    "CREATE SEQUENCE public.alone; SELECT nextval('public.alone') FROM generate_series(1, 80)",
    "CREATE SEQUENCE public.empty; CREATE TABLE public.by_empty (id int DEFAULT nextval('public.empty'))",
    "CREATE SEQUENCE public.whole; CREATE TABLE public.by_whole (id int DEFAULT nextval('public.whole')); INSERT INTO public.by_whole VALUES (1000)",
];

/// What the next value of each sequence is, without a trace.
fn next_values(server: &Server, database: &str) -> Vec<i64> {
    let mut session = session(server, database);
    let names = [
        "by_serial_id_seq",
        "by_identity_id_seq",
        "fives",
        "down",
        "alone",
        "empty",
        "whole",
    ];
    let next = names.iter().map(|name| {
        let value = session.query_value(&format!("SELECT nextval('public.{name}')"));
        value
            .expect(name)
            .expect("a value")
            .parse()
            .expect("a number")
    });
    next.collect()
}

#[test]
fn a_sequence_whose_value_is_lost_goes_on_behind_its_column() {
    let relations = [
        "public.by_serial_id_seq",
        "public.by_identity_id_seq",
        "public.fives",
        "public.down",
        "public.alone",
        "public.empty",
    ];
    let source = Source::new(&SEQUENCES, &relations);
    for (number, path) in source.paths.iter().enumerate() {
        if number % 2 == 0 {
            std::fs::remove_file(path).expect("removed");
        } else {
            zero(path, 0);
        }
    }
    let destination = copy_of(&seed(&server(15), Checksums::Off));
    let running = destination.start().expect("a server");
    let options = into(&running, "again");
    let account = salvaged(&source.copy.pgdata, &options);
    assert_eq!(account.outcome, Outcome::Incomplete);
    let words = [
        (
            "by_serial_id_seq",
            "of public.by_serial.id that is loaded, which is 40",
        ),
        (
            "by_identity_id_seq",
            "of public.by_identity.id that is loaded, which is 50",
        ),
        (
            "fives",
            "of public.by_default.id that is loaded, which is 296",
        ),
        ("down", "of public.by_down.id that is loaded, which is -70"),
        (
            "alone",
            "no column is known to take its values, so that it starts again",
        ),
        ("empty", "and no row has one: it starts again"),
    ];
    for (name, words) in words {
        let why = why(&account, &format!("sequence public.{name} "));
        assert!(why.ends_with(words), "{name}: {why}");
    }
    // A value that its own page tells is taken as it is.
    let expected = [41, 51, 301, -71, 1, 1, 1];
    assert_eq!(next_values(&running, "again"), expected);

    // The script beside files does the same, once the rows are there.
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = common::options(&folder.path().join("out"), "copy");
    options.selection.databases = vec![Glob::new("shop")];
    let account = salvaged(&source.copy.pgdata, &options);
    assert_eq!(account.outcome, Outcome::Incomplete);
    let told = why(&account, "sequence public.by_serial_id_seq ");
    assert!(
        told.contains("goes on after the last value of public.by_serial.id"),
        "{told}"
    );
    let mut again = session(&running, "again");
    for relation in relations.iter().chain(&["public.whole"]) {
        let restart = format!("ALTER SEQUENCE {relation} RESTART");
        again.execute(&restart).expect("restarted");
    }
    for file in ["shop/sequences.sql", "load.sql"] {
        let script = std::fs::read_to_string(folder.path().join("out").join(file));
        let script = script.expect(file);
        assert_eq!(script.matches("pg_catalog.setval(").count(), 6, "{script}");
    }
    let script = std::fs::read_to_string(folder.path().join("out/shop/sequences.sql"));
    again.execute(&script.expect("a script")).expect("run");
    assert_eq!(next_values(&running, "again"), expected);
}
