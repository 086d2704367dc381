//! Types whose rows in `pg_type` are lost: other catalogs tell what they are made of, and another
//! database has those of the system.

use std::fs::OpenOptions;

use pgclinic_model::document::Outcome;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{copy_of, seed, server};

use crate::common::again::{again, shop, zero};
use crate::common::{options, salvaged, session};

const PAGE: u64 = 8192;
const TYPED: &[&str] = &[
    "CREATE SCHEMA other",
    "CREATE TYPE floats AS RANGE (subtype = float8, subtype_diff = float8mi)",
    "CREATE TYPE other.mood AS ENUM ('sad', 'ok', 'happy')",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE DOMAIN positive AS int CHECK (VALUE > 0)",
    "CREATE TABLE typed (id int PRIMARY KEY, range floats, mood other.mood, pair pair, number positive, \
     ranges floats[], moods other.mood[], pairs pair[], many floats_multirange)",
    "INSERT INTO typed SELECT n, floats(n, n + 1.5), 'ok', row(n, 'x' || n)::pair, n, array[floats(n, n + 2)], \
     '{sad,happy}', array[row(1, 'a')::pair], floats_multirange(floats(n, n + 1)) FROM generate_series(1, 100) n",
    "CREATE TABLE plain (id int PRIMARY KEY, words text, at timestamptz, list int[], amount numeric(7, 2))",
    "INSERT INTO plain SELECT n, 't' || n, '2020-01-01', array[n], n / 3.0 FROM generate_series(1, 100) n",
    "VACUUM pg_type",
];
/// The pages of the user's types, and the first one, with those that everything needs.
const TYPES: &str = "SELECT DISTINCT pg_relation_filepath('pg_type'), (ctid::text::point)[0]::int FROM pg_type \
     WHERE oid >= 16384 OR typname IN ('int4', 'text', '_int4')";
/// The first pages of catalogs that say what types are made of, what is called how, and who owns
/// it.
const MAKES: &str = "SELECT pg_relation_filepath(oid), 0 FROM pg_class WHERE oid IN \
     ('pg_enum'::regclass, 'pg_range'::regclass, 'pg_namespace'::regclass, 'pg_attribute'::regclass, \
      'pg_authid'::regclass, 'pg_index'::regclass, 'pg_proc'::regclass)";

/// Zeroes these pages, salvages, loads what was written, and compares it with what was there.
fn is_loaded_again(pages: &str) {
    let Some(tool) = server(15).tool("psql") else {
        // A fetched server comes without client programs; an installed one has them.
        return;
    };
    let shop = shop(TYPED, pages);
    for page in &shop.answer {
        let block = page[1].parse().expect("a block");
        zero(&shop.copy.pgdata, &page[0], block);
    }
    let again = again(&shop, &tool);
    let report = &again.report;
    assert_eq!(report.outcome, Outcome::Incomplete, "{report:#?}");
    assert_eq!(report.totals.partial, 0, "{:#?}", report.tables);
    assert!(
        again.said.is_empty(),
        "{}\n{:#?}",
        again.said,
        report.not_salvaged
    );
    assert!(again.found == shop.truth, "{:?}", again.found);
}

#[test]
fn types_come_from_other_catalogs_and_those_of_the_system_from_another_database() {
    is_loaded_again(TYPES);
}

#[test]
fn labels_bounds_schemas_and_roles_come_from_indexes_and_functions() {
    is_loaded_again(MAKES);
}

/// Half a page is neither a page nor nothing.
#[test]
fn a_catalog_that_ends_within_a_page_is_not_whole() {
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let mut running = copy.start().expect("a server");
    let path = session(&running, "clinic").query_value("SELECT pg_relation_filepath('pg_trigger')");
    let path = copy.pgdata.join(path.expect("a path").expect("a file"));
    running.stop(StopMode::Fast).expect("stopped");
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| file.set_len(PAGE / 2)).expect("cut");
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "copy");
    options.ddl = Some(folder.path().join("schema.sql"));
    let report = salvaged(&copy.pgdata, &options);
    let gaps = format!("{:?}", report.not_salvaged);
    assert!(
        gaps.contains("pg_trigger: its file ends within a page"),
        "{gaps}"
    );
    assert_eq!(report.outcome, Outcome::Incomplete);
}
