//! A salvage into a server takes the tables that one into a directory takes, and moves sequences on
//! whose values are lost.

use pgclinic_model::Glob;
use pgclinic_model::document::{LossPlace, Outcome, SalvageReport};

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

const TABLES: [&str; 7] = [
    "CREATE SCHEMA stock; CREATE TYPE stock.mood AS ENUM ('good', 'bad'); CREATE TYPE stock.pair AS (a int, b text)",
    "CREATE TABLE stock.bare AS SELECT n AS id, md5(n::text) AS word FROM generate_series(1, 500) n",
    "CREATE TABLE stock.keyed (id serial PRIMARY KEY, mood stock.mood, pair stock.pair, up text GENERATED ALWAYS AS (id::text) STORED, CHECK (id > 0)); \
     INSERT INTO stock.keyed (mood, pair) SELECT 'bad', row(n, 'x')::stock.pair FROM generate_series(1, 300) n; CREATE INDEX words ON stock.keyed (mood, id)",
    "CREATE TABLE stock.parts (id int, word text) PARTITION BY RANGE (id); CREATE TABLE stock.low PARTITION OF stock.parts FOR VALUES FROM (0) TO (100); \
     CREATE TABLE stock.high PARTITION OF stock.parts FOR VALUES FROM (100) TO (1000); INSERT INTO stock.parts SELECT n, 'part ' || n FROM generate_series(1, 400) n",
    "CREATE TABLE stock.parent (a int); CREATE TABLE stock.child (b text) INHERITS (stock.parent); INSERT INTO stock.child SELECT n, 'child' FROM generate_series(1, 90) n",
    "CREATE VIEW stock.seen AS SELECT id FROM stock.bare; CREATE UNLOGGED TABLE stock.quick AS SELECT 1 AS n",
    "CHECKPOINT",
];

/// Each page of `pg_class` but those that describe the system alone.
#[test]
fn tables_whose_rows_in_pg_class_are_lost_are_loaded_too() {
    let source = Source::new(&TABLES, &["pg_class"]);
    let [path] = source.paths.as_slice() else {
        panic!("one path");
    };
    let whole = std::fs::read(path).expect("a file");
    let destination = copy_of(&seed(&server(15), Checksums::Off));
    let running = destination.start().expect("a server");
    let names = ["bare", "keyed", "low", "parent", "words"];
    let holds = |page: &[u8]| {
        names.iter().any(|name| {
            let name = format!("{name}\0");
            page.windows(name.len())
                .any(|bytes| bytes == name.as_bytes())
        })
    };
    let pages = whole.chunks(PAGE).enumerate();
    let own: Vec<usize> = pages
        .filter(|(_, page)| holds(page))
        .map(|(block, _)| block)
        .collect();
    assert!(!own.is_empty());
    for block in own {
        zero(path, block);
        let options = into(&running, &format!("again_{block}"));
        let account = salvaged(&source.copy.pgdata, &options);
        let found = rows(&running, &format!("again_{block}"));
        for (name, lines) in &source.rows {
            assert_eq!(
                found.get(name),
                Some(lines),
                "{name}: {:#?}",
                account.not_salvaged
            );
        }
        assert_ne!(account.outcome, Outcome::Whole, "block {block}");
        std::fs::write(path, &whole).expect("as before");
    }
}

/// Without the rows and without the indexes that name them, files are nobody's.
#[test]
fn what_nothing_names_is_loaded_under_the_number_of_its_file() {
    let relations = [
        "stock.bare",
        "pg_class",
        "pg_class_oid_index",
        "pg_class_relname_nsp_index",
        "pg_class_tblspc_relfilenode_index",
        "pg_attribute",
    ];
    let source = Source::new(&TABLES[..2], &relations);
    let [bare, pg_class, indexes @ .., _] = source.paths.as_slice() else {
        panic!("paths");
    };
    let whole = std::fs::read(pg_class).expect("a file");
    let mut pages = whole.chunks(PAGE);
    let block = pages.position(|page| page.windows(5).any(|bytes| bytes == b"bare\0"));
    zero(pg_class, block.expect("a page"));
    for index in indexes {
        let pages = std::fs::read(index).expect("an index").len() / PAGE;
        (0..pages).for_each(|block| zero(index, block));
    }
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "copy");
    options.selection.databases = vec![Glob::new("shop")];
    let account = salvaged(&source.copy.pgdata, &options);
    let of_files = |account: &SalvageReport| {
        let tables = account.tables.iter();
        let written = tables.map(|table| {
            (
                table.schema.clone(),
                table.table.clone(),
                table.rows.written,
            )
        });
        written.collect::<Vec<_>>()
    };
    let in_directory = of_files(&account);
    let destination = copy_of(&seed(&server(15), Checksums::Off));
    let running = destination.start().expect("a server");
    let account = salvaged(&source.copy.pgdata, &into(&running, "again"));
    assert_eq!(
        of_files(&account),
        in_directory,
        "{:#?}",
        account.not_salvaged
    );
    assert_ne!(account.outcome, Outcome::Whole);
    let file = bare.file_name().expect("a name").display().to_string();
    let found = rows(&running, "again");
    let found = found
        .get(&format!("unclaimed.{file}"))
        .or(found.get("stock.bare"));
    assert_eq!(
        found,
        source.rows.get("stock.bare"),
        "{:#?}",
        account.not_salvaged
    );
}

/// Nulls instead of what is lost would make another row of it, and a good one.
#[test]
fn a_torn_row_is_not_loaded() {
    let tables = [
        "CREATE TABLE public.torn AS SELECT n AS id, 'word ' || n AS word, n * 2 AS twice FROM generate_series(1, 100) n",
        "CHECKPOINT",
    ];
    let source = Source::new(&tables, &["public.torn"]);
    let [path] = source.paths.as_slice() else {
        panic!("one path");
    };
    let mut page = std::fs::read(path).expect("a file");
    let pointer = u32::from_le_bytes(*page[24..].first_chunk().expect("a pointer"));
    // The text stands behind the header of the row and a number.
    let word = (pointer & 0x7fff) as usize + 24 + 4;
    page[word..word + 4].copy_from_slice(&0xFFFF_FFFCu32.to_le_bytes());
    std::fs::write(path, page).expect("hurt");
    let destination = copy_of(&seed(&server(15), Checksums::Off));
    let running = destination.start().expect("a server");
    let account = salvaged(&source.copy.pgdata, &into(&running, "again"));
    assert_eq!(account.outcome, Outcome::Damaged);
    let table = account.tables.first().expect("the table");
    assert_eq!(
        (table.rows.written, table.rows.withheld),
        (99, 1),
        "{table:#?}"
    );
    let place = table.places.first().expect("a place");
    assert_eq!((place.block, place.item), (0, Some(1)));
    assert!(place.why.ends_with("the row was not loaded"), "{place:?}");
    let found = rows(&running, "again");
    let found = found.get("public.torn").expect("loaded");
    let expected = source.rows.get("public.torn").expect("copied");
    assert_eq!(found.len(), 99);
    assert!(found.iter().all(|row| expected.contains(row)), "{found:?}");
}

/// A row that was found where no line pointer leads is not among the good ones.
#[test]
fn a_suspect_row_is_not_loaded() {
    let tables = [
        "CREATE TABLE public.cut AS SELECT n AS id, 'word ' || n AS word FROM generate_series(1, 100) n",
        "CHECKPOINT",
    ];
    let source = Source::new(&tables, &["public.cut"]);
    let [path] = source.paths.as_slice() else {
        panic!("one path");
    };
    let mut page = std::fs::read(path).expect("a file");
    let lower = u16::from_le_bytes(*page[12..].first_chunk().expect("pd_lower"));
    page[12..14].copy_from_slice(&(lower - 8).to_le_bytes());
    std::fs::write(path, page).expect("hurt");
    let destination = copy_of(&seed(&server(15), Checksums::Off));
    let running = destination.start().expect("a server");
    let expected = source.rows.get("public.cut").expect("copied");
    let account = salvaged(&source.copy.pgdata, &into(&running, "again"));
    assert_eq!(account.outcome, Outcome::Damaged);
    let table = account.tables.first().expect("the table");
    let counts = (table.rows.carved, table.rows.withheld, table.rows.written);
    assert_eq!(counts, (2, 2, 98), "{table:#?}");
    let left_out = |place: &&LossPlace| {
        let carved = place.why.starts_with("carved: ");
        carved && place.why.ends_with(": the row was not loaded")
    };
    assert_eq!(table.places.iter().filter(left_out).count(), 2);
    let found = rows(&running, "again");
    let found = found.get("public.cut").expect("loaded");
    assert_eq!(found.len(), 98);
    assert!(found.iter().all(|row| expected.contains(row)), "{found:?}");
}
