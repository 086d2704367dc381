//! What `pg_check_visible` and `pg_check_frozen` find, we find in the same block: on single rows
//! that were hurt, and on a table that changed after its visibility map was saved.

use std::collections::BTreeSet;
use std::fs::{read, write};
use std::path::Path;

use pgclinic_model::{Level, Severity};
use pgclinic_servers::{Checksums, Session, StartOptions, StopMode};
use pgclinic_testkit::{TempCopy, checked, copy_of, open, seed, server};

use crate::parity::hurt::hurt_pages;

const ROWS: &[&str] = &[
    "frozen-row-thawed",
    "xmin-hint-invalid",
    "xmax-in-the-future",
    "line-pointer-dead",
    "all-visible-flag-set",
    "all-visible-flag-cleared",
];

const FILL: &str = "CREATE EXTENSION IF NOT EXISTS pg_visibility SCHEMA ext; \
     CREATE TABLE public.mapped AS SELECT i FROM generate_series(1, 2000) i";

/// Relations and blocks with damage.
fn ours(pgdata: &Path) -> BTreeSet<(u32, u32)> {
    checked(&open(pgdata), Level::Structure)
        .findings
        .into_iter()
        .filter(|finding| finding.severity == Severity::Damage)
        .filter_map(|finding| Some((finding.place.relation_oid?, finding.place.block?)))
        .collect()
}

/// Makes a table, maps it, deletes from it, and brings back the map of before.
fn bring_back_old_map(copy: &TempCopy) {
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    session.execute(FILL).expect("the table");
    session
        .execute("VACUUM (FREEZE) public.mapped")
        .expect("a vacuum");
    session.execute("CHECKPOINT").expect("a checkpoint");
    let path = session.query_value("SELECT pg_relation_filepath('public.mapped') || '_vm'");
    let path = path.expect("an answer").expect("a path");
    let map = read(copy.pgdata.join(&path)).expect("a map");
    session
        .execute("DELETE FROM public.mapped WHERE i % 100 = 0")
        .expect("a deletion");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    write(copy.pgdata.join(path), map).expect("a write");
}

/// Relations and blocks of the rows that the extension lists.
fn theirs(session: &mut Session, function: &str) -> BTreeSet<(u32, u32)> {
    let sql = format!(
        "SELECT c.oid, (regexp_match(t.t_ctid::text, '\\d+'))[1] FROM pg_class c, ext.{function}(c.oid) t \
         WHERE c.relkind IN ('r', 'm', 't') AND c.relpersistence = 'p' AND c.oid >= 16384"
    );
    let number = |text: &Option<String>| text.as_deref().and_then(|text| text.parse().ok());
    let rows = session.query(&sql).expect("an answer");
    rows.iter()
        .map(|row| {
            (
                number(&row[0]).expect("an oid"),
                number(&row[1]).expect("a block"),
            )
        })
        .collect()
}

#[test]
fn rows_that_the_map_denies() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    bring_back_old_map(&copy);
    assert!(hurt_pages(&copy, ROWS, 6) >= 12);
    let ours = ours(&copy.pgdata);
    let server = copy
        .start_with(&StartOptions::default().with("autovacuum", "off"))
        .expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    for function in ["pg_check_visible", "pg_check_frozen"] {
        let theirs = theirs(&mut session, function);
        let missed: Vec<_> = theirs.difference(&ours).collect();
        assert!(theirs.len() >= 8, "{function} finds {theirs:?}");
        assert!(missed.is_empty(), "{function} alone finds {missed:?}");
    }
}
