//! Values larger than memory allows: each in a file of its own, whole, and told.

mod common;

use common::{options, session};
use pgclinic_rows::{Outcome, salvage};
use pgclinic_servers::{Checksums, StopMode};
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

    let folder = tempfile::tempdir().expect("a folder");
    let cluster = open(&copy.pgdata);
    for form in ["copy", "parquet"] {
        let destination = folder.path().join(form);
        let mut options = options(&destination, form);
        options.memory_bytes = MEMORY_BYTES;
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
                assert_eq!(rows.expect("a file"), format!("1\t\\N\tx\n2\t{small}\ty\n"));
            }
        }
    }
}
