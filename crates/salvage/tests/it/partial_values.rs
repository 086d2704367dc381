//! Of a long value with missing chunks its beginning is given, also where it is compressed.

use pgclinic_cluster::Cluster;
use pgclinic_model::document::Outcome;

use crate::common;

use std::sync::Arc;

use common::options;
use pgclinic_salvage::{Partial, salvage};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::{DataDirectory, Overlay, OverlayPatch};
use pgclinic_testkit::{Quiet, copy_of, seed, server};

const PAGE_BYTES: usize = 8192;
/// Of the TOAST relation; a page holds four chunks, and each value fills more than this many pages.
const HURT_BLOCK: u64 = 10;
const PLACE: &str = "SELECT pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = ";

/// One row a table, so that the hurt page is in the middle of its value.
const TABLES: [(&str, &str); 3] = [
    (
        "by_pglz",
        "SET STORAGE EXTENDED, ALTER body SET COMPRESSION pglz",
    ),
    (
        "by_lz4",
        "SET STORAGE EXTENDED, ALTER body SET COMPRESSION lz4",
    ),
    ("as_it_is", "SET STORAGE EXTERNAL"),
];

#[test]
fn the_beginning_up_to_the_missing_chunk_is_given() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = common::session(&running, "postgres");
    let mut patches = Vec::new();
    let mut expected = Vec::new();
    for (table, storage) in TABLES {
        let sql = format!(
            "CREATE TABLE {table} (id int, body text); ALTER TABLE {table} ALTER body {storage}; \
             INSERT INTO {table} SELECT 1, string_agg(md5(n::text) || repeat('-', 40), '') FROM generate_series(1, 8000) n"
        );
        session.execute(&sql).expect("a table");
        let place = session
            .query_value(&format!("{PLACE}'{table}'"))
            .expect("a file");
        patches.push(OverlayPatch::Bytes {
            path: place.expect("a file"),
            offset: HURT_BLOCK * PAGE_BYTES as u64,
            bytes: vec![0; PAGE_BYTES],
        });
        let body = session.query_value(&format!("SELECT body FROM {table}"));
        expected.push(body.expect("a value").expect("a value"));
    }
    drop(session);
    running.stop(StopMode::Fast).expect("stopped");

    let directory = DataDirectory::open(&copy.pgdata).expect("a directory");
    let hurt = Overlay::new(Arc::new(directory), patches).expect("plain paths");
    let hurt = Arc::new(hurt);
    let cluster = Cluster::open(hurt).expect("a cluster");
    let folder = tempfile::tempdir().expect("a directory");
    for (partial, name) in [(Partial::Kept, "kept"), (Partial::Null, "null")] {
        let mut options = options(&folder.path().join(name), "copy");
        options.partial = partial;
        let account = salvage(&cluster, &options, &Quiet).expect("a destination");
        assert_eq!(account.outcome, Outcome::Damaged);
        for ((table, _), whole) in TABLES.iter().zip(&expected) {
            let stem = folder
                .path()
                .join(format!("{name}/postgres/public.{table}"));
            let whole_rows = std::fs::read_to_string(common::with_ending(&stem, "copy"));
            assert_eq!(whole_rows.expect("a file"), "");
            let suspects = common::suspects(&stem);
            let (_, row) = suspects.first().expect("a suspect row");
            let found = row.strip_prefix("1,").expect("the row");
            let told = account
                .tables
                .iter()
                .find(|one| one.table == *table)
                .expect("a table");
            let why = told.places.iter().find(|place| place.column.is_some());
            let why = &why.expect("a place").why;
            assert_eq!((told.rows.partial, told.rows.written), (1, 1));
            match partial {
                Partial::Null => assert_eq!(found, ""),
                Partial::Kept => {
                    // Forty chunks of some two thousand bytes stand before the hurt page.
                    assert!(
                        whole.starts_with(found) && found.len() > 75_000,
                        "{table}: {}",
                        found.len()
                    );
                    assert!(
                        why.ends_with("chunk 40 is missing; what is left was written"),
                        "{why}"
                    );
                }
            }
        }
    }
}
