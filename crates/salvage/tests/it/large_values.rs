//! Values larger than memory allows: each in a file of its own, whole, and told.

use pgclinic_cluster::Cluster;
use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_spill::MemoryPlan;

use crate::common;

use std::sync::Arc;

use common::{options, session};
use pgclinic_salvage::{Destination, Partial, salvage};
use pgclinic_servers::{Checksums, ConnectionTarget, Server, StopMode};
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch};
use pgclinic_testkit::{Quiet, copy_of, open, seed, server};

const MEMORY_BYTES: u64 = 24 << 20;
/// Each needs more than a third of that.
const TABLES: [(&str, &str, &str); 3] = [
    (
        "by_pglz",
        "SET STORAGE EXTENDED, ALTER body SET COMPRESSION pglz",
        "repeat(md5(n::text), 300)",
    ),
    (
        "by_lz4",
        "SET STORAGE EXTENDED, ALTER body SET COMPRESSION lz4",
        "repeat(md5(n::text), 300)",
    ),
    (
        "as_it_is",
        "SET STORAGE EXTERNAL",
        "repeat(md5(n::text), 300)",
    ),
];

#[test]
fn values_beyond_memory_stand_beside_the_table() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = session(&running, "postgres");
    let mut expected = Vec::new();
    for (table, storage, value) in TABLES {
        let sql = format!(
            "CREATE TABLE {table} (id int, body text, tail text); ALTER TABLE {table} ALTER body {storage}; \
             INSERT INTO {table} SELECT 1, string_agg({value}, ''), 'x' FROM generate_series(1, 1500) n; \
             INSERT INTO {table} SELECT 2, string_agg(md5(n::text), ''), 'y' FROM generate_series(1, 1000) n"
        );
        session.execute(&sql).expect("a table");
        let body = format!("SELECT body FROM {table} ORDER BY id");
        expected.push(session.query(&body).expect("values"));
    }
    drop(session);
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let cluster = open(&copy.pgdata);
    for form in ["copy", "parquet"] {
        let destination = folder.path().join(form);
        let mut options = options(&destination, form);
        options.memory = MemoryPlan::new(MEMORY_BYTES);
        let account = salvage(&cluster, &options, &Quiet).expect("a destination");
        assert_eq!(account.outcome, Outcome::Damaged);
        for ((table, ..), values) in TABLES.iter().zip(&expected) {
            let told = account
                .tables
                .iter()
                .find(|one| one.table == *table)
                .expect("a table");
            assert_eq!(
                (told.rows.written, told.rows.partial, told.places.len()),
                (2, 1, 1)
            );
            let place = told.places.first().expect("a place");
            let name = place.why.rsplit(' ').next().expect("a name");
            let file = format!("postgres/public.{table}.large_value.0.1.body");
            assert_eq!(
                (name, place.column.as_deref()),
                (file.as_str(), Some("body"))
            );
            let found = std::fs::read_to_string(destination.join(name)).expect("a file");
            let values: Vec<&str> = values
                .iter()
                .flatten()
                .flatten()
                .map(String::as_str)
                .collect();
            let [large, small] = values.as_slice() else {
                panic!("{} values", values.len());
            };
            assert!(
                found == *large,
                "{table}: {} of {} bytes",
                found.len(),
                large.len()
            );
            if form == "copy" {
                let rows = std::fs::read_to_string(
                    destination.join(format!("postgres/public.{table}.copy")),
                );
                assert_eq!(rows.expect("a file"), format!("2\t{small}\ty\n"));
                let stem = destination.join(format!("postgres/public.{table}"));
                let [(_, row)] = &common::suspects(&stem)[..] else {
                    panic!("one suspect row");
                };
                assert_eq!(row, "1,,x");
            }
        }
    }
}

/// One row a table: what stands in it, and how it is stored.
const INTO_A_SERVER: [(&str, &str, &str, &str); 7] = [
    (
        "pglz",
        "text",
        "SET COMPRESSION pglz",
        "string_agg(repeat(md5(n::text), 300), '')",
    ),
    (
        "lz4",
        "text",
        "SET COMPRESSION lz4",
        "string_agg(repeat(md5(n::text), 300), '')",
    ),
    // Characters of several bytes, of which any part may end in the middle.
    (
        "characters",
        "varchar",
        "SET STORAGE EXTERNAL",
        "string_agg(E'\\\\é\\t中🐘\\n' || repeat(md5(n::text) || 'x', 200), '')",
    ),
    (
        "bytes",
        "bytea",
        "SET STORAGE EXTERNAL",
        "decode(string_agg(repeat(md5(n::text), 300), ''), 'hex')",
    ),
    (
        "document",
        "json",
        "SET STORAGE EXTENDED",
        "json_agg(repeat(md5(n::text), 300))::json",
    ),
    // Not text byte for byte.
    (
        "parsed",
        "jsonb",
        "SET STORAGE EXTENDED",
        "jsonb_agg(repeat(md5(n::text), 300))",
    ),
    (
        "hurt",
        "text",
        "SET STORAGE EXTERNAL",
        "string_agg(repeat(md5(n::text), 300), '')",
    ),
];

/// Values by table, both of them, as sums.
fn sums(server: &Server, database: &str, table: &str) -> Vec<pgclinic_servers::TextRow> {
    let question = format!(
        "SELECT id, md5(body::text), md5(other::text), length(body::text), tail FROM public.{table} ORDER BY id"
    );
    session(server, database).query(&question).expect("rows")
}

fn told<'a>(account: &'a SalvageReport, table: &str) -> &'a pgclinic_model::document::TableAccount {
    let mut tables = account.tables.iter();
    tables.find(|one| one.table == table).expect("a table")
}

/// They are loaded in parts, two of them in one row too; what is no text byte for byte, and what is
/// hurt, is null and told.
#[test]
fn values_beyond_memory_go_into_a_server() {
    let source = copy_of(&seed(&server(15), Checksums::On));
    let mut running = source.start().expect("a server");
    session(&running, "postgres")
        .execute("CREATE DATABASE big TEMPLATE template0")
        .expect("a database");
    let mut big = session(&running, "big");
    for (table, ty, storage, value) in INTO_A_SERVER {
        let sql = format!(
            "CREATE TABLE {table} (id int, body {ty}, tail text, other {ty}); \
             ALTER TABLE {table} ALTER body {storage}, ALTER other {storage}; \
             INSERT INTO {table} SELECT 1, {value}, E'x\\t', {value} FROM generate_series(1, 1500) n; \
             INSERT INTO {table} SELECT 2, {value}, 'y', NULL FROM generate_series(1, 3) n"
        );
        big.execute(&sql)
            .unwrap_or_else(|error| panic!("{table}: {error}"));
    }
    let place = "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = 'hurt'";
    let place = big.query_value(place).expect("a path").expect("a file");
    drop(big);
    let names = INTO_A_SERVER.map(|(table, ..)| table);
    let expected = names.map(|table| sums(&running, "big", table));
    running.stop(StopMode::Fast).expect("stopped");
    let gone = OverlayPatch::Bytes {
        path: place,
        offset: 1000 * 8192,
        bytes: vec![0; 8192],
    };
    let directory = DataDirectory::open(&source.pgdata).expect("a directory");
    let hurt = Overlay::new(Arc::new(directory), vec![gone]).expect("plain paths");
    let cluster = Cluster::open(Arc::new(hurt)).expect("a cluster");

    let destination = copy_of(&seed(&server(15), Checksums::On));
    let running = destination.start().expect("a server");
    for partial in [Partial::Null, Partial::Kept] {
        let name = format!("again_{partial:?}").to_lowercase();
        session(&running, "postgres")
            .execute(&format!("CREATE DATABASE {name} TEMPLATE template0"))
            .expect("a database");
        let mut options = options(std::path::Path::new("/nowhere"), "copy");
        options.destination = Destination::Server(Box::new(ConnectionTarget::of(&running, &name)));
        options.selection.databases = vec![Glob::new("big")];
        options.memory = MemoryPlan::new(MEMORY_BYTES);
        options.partial = partial;
        let account = salvage(&cluster, &options, &Quiet).expect("loaded");
        for (table, expected) in names.iter().zip(&expected) {
            let (found, told) = (sums(&running, &name, table), told(&account, table));
            assert_eq!((told.rows.written, told.rows.lost), (2, 0), "{told:?}");
            assert_eq!(found[1], expected[1], "{table}");
            let why: Vec<&str> = told.places.iter().map(|place| place.why.as_str()).collect();
            match *table {
                "parsed" => {
                    assert_eq!(&found[0][1..4], &[None, None, None], "{why:?}");
                    assert!(
                        why.len() == 2 && why[0].contains("do not come in parts"),
                        "{why:?}"
                    );
                }
                "hurt" => {
                    assert_eq!(why.len(), 1, "{why:?}");
                    let broken = match partial {
                        Partial::Null => "is missing in TOAST",
                        Partial::Kept => "of its bytes stand in the row",
                    };
                    assert!(why[0].contains(broken), "{why:?}");
                    assert_eq!(found[0][1].is_some(), partial == Partial::Kept);
                    // The other value of the row is whole.
                    assert_eq!(found[0][2], expected[0][2]);
                }
                _ => assert_eq!((&found, why.len()), (expected, 0), "{table}: {why:?}"),
            }
            assert_eq!(found[0][4], expected[0][4], "{table}");
        }
    }
}

/// Two values of one row in columns that are equal but for case, beside a table with a long name.
#[test]
fn files_of_values_have_names_that_disks_take() {
    let table = "ä".repeat(31);
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut own = session(&running, "postgres");
    let value = "string_agg(repeat(md5(n::text), 300), '')";
    own.execute(&format!(
        "CREATE TABLE \"{table}\" (\"{table}\" text, \"Body\" text, body text); \
         INSERT INTO \"{table}\" SELECT {value}, {value} || 'B', {value} || 'b' FROM generate_series(1, 1500) n"
    ))
    .expect("a table");
    let sums = own.query(&format!(
        "SELECT length(\"{table}\"), length(\"Body\"), length(body) FROM \"{table}\""
    ));
    let sums = sums.expect("sums");
    drop(own);
    running.stop(StopMode::Fast).expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "copy");
    options.memory = MemoryPlan::new(MEMORY_BYTES);
    let account = salvage(&open(&copy.pgdata), &options, &Quiet).expect("a destination");
    let hurt = account.tables.iter().find(|one| one.table == table);
    let places = &hurt.expect("the table").places;
    let names: Vec<&str> = places
        .iter()
        .map(|place| place.why.rsplit(' ').next().expect("a name"))
        .collect();
    assert_eq!(names.len(), 3);
    let endings = ["~1", ".Body~2", ".body~3"];
    for ((name, ending), length) in names.iter().zip(endings).zip(sums.iter().flatten()) {
        assert!(name.ends_with(ending) && name.len() < 260, "{name}");
        let found = std::fs::read(folder.path().join("out").join(name)).expect("a file");
        assert_eq!(Some(found.len().to_string()), *length, "{name}");
    }
}
