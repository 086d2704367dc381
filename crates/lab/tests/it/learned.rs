//! A table is looked at without a server, the server makes a copy of its shape, and the copy is
//! looked at: they are alike.

use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::Cluster;
use pgclinic_lab::table_profile::{TableShape, look, statements};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

const ROWS: u64 = 3_000;

/// Rising and random keys, long values half of which can be compressed, some nulls.
const FILL: &str = "CREATE TABLE own (id bigint, key uuid, body text, note text); \
    INSERT INTO own SELECT i, gen_random_uuid(), \
      repeat('-', 1200) || \
        (SELECT string_agg(encode(sha256((random()::text || i || g)::bytea), 'base64'), '') FROM generate_series(1, 20 + i % 20) g), \
      CASE WHEN i % 4 > 0 THEN repeat('ab', 1 + (i % 30)::integer) END \
    FROM generate_series(1, 3000) i; CHECKPOINT";

fn run(copy: &TempCopy, sql: &[String]) {
    let mut server = copy.start().expect("the copy starts");
    let mut session = server.connect("postgres").expect("a session");
    for statement in sql {
        session
            .execute(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    drop(session);
    server.stop(StopMode::Fast).expect("a clean stop");
}

fn shape(pgdata: &Path, table: &str) -> TableShape {
    let source = DataDirectory::open(pgdata).expect("a data directory");
    let cluster = Cluster::open(Arc::new(source)).expect("a cluster");
    look(&cluster, Some("postgres"), table).expect("a table with rows")
}

fn assert_close(one: f64, other: f64, within: f64, what: &str) {
    assert!((one - other).abs() <= within, "{what}: {one} and {other}");
}

#[test]
fn a_copy_of_a_shape_has_that_shape() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    run(&copy, &[FILL.to_owned()]);
    let own = shape(&copy.pgdata, "own");
    let [id, key, body, note] = own.columns.as_slice() else {
        panic!("four columns: {own}")
    };
    assert!(id.rises > Some(0.95) && key.rises < Some(0.6), "{own}");
    assert!(body.kept > 0.3 && body.kept < 0.65, "{own}");
    assert_close(note.nulls, 0.25, 0.02, "nulls");
    assert_close(own.rows as f64, ROWS as f64, 60.0, "rows");

    run(&copy, &statements(&own, "made", own.rows));
    let made = shape(&copy.pgdata, "made");
    for (own, made) in own.columns.iter().zip(&made.columns) {
        assert_eq!(own.type_name, made.type_name);
        assert_close(own.nulls, made.nulls, 0.03, &own.name);
        assert_close(
            own.bytes[2] as f64,
            made.bytes[2] as f64,
            0.1 * own.bytes[2] as f64,
            &own.name,
        );
        assert_close(
            own.rises.unwrap_or(2.0),
            made.rises.unwrap_or(2.0),
            0.1,
            &own.name,
        );
        if own.bytes[2] > 500 {
            assert_close(own.kept, made.kept, 0.12, &own.name);
        }
    }
    assert_close(
        own.blocks as f64,
        made.blocks as f64,
        0.25 * own.blocks as f64,
        "pages",
    );
    assert!(
        !format!("{:?}", statements(&own, "made", 10)).contains("abab"),
        "no value leaves the table"
    );
}

#[test]
fn what_is_no_table_is_told() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let source = DataDirectory::open(&copy.pgdata).expect("a data directory");
    let cluster = Cluster::open(Arc::new(source)).expect("a cluster");
    let refusal = look(&cluster, None, "nowhere.nothing").expect_err("no such table");
    assert_eq!(
        refusal.to_string(),
        "no database has a table nowhere.nothing"
    );
}
