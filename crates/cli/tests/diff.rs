//! Two copies of one cluster against each other.

mod common;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use common::{files, pgclinic, text};
use pgclinic_diagnose::document::{Copy, DiffDocument, DiffVerdict, Difference};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{TempCopy, as_primary, base_backup, copy_of, seed, server};

#[track_caller]
fn diff(a: &Path, b: &Path, exit: u8) -> DiffDocument {
    let ran = pgclinic(&["diff", text(a), text(b), "--format", "json"]).exits(exit);
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

fn stop(copy: &TempCopy, sql: &str) -> String {
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    for statement in sql.split(';') {
        session.execute(statement).expect(statement);
    }
    let path = "SELECT pg_relation_filepath('public.docs')";
    let path = session.query_value(path).expect(path).expect("a path");
    server.stop(StopMode::Fast).expect("a stop");
    path
}

fn block(pgdata: &Path, path: &str, number: u64) -> Vec<u8> {
    let mut page = vec![0; 8192];
    let file = File::open(pgdata.join(path)).expect("a file");
    file.read_exact_at(&mut page, number * 8192)
        .expect("a block");
    page
}

fn put(pgdata: &Path, path: &str, number: u64, page: &[u8]) {
    let file = File::options().write(true).open(pgdata.join(path));
    file.expect("a file")
        .write_all_at(page, number * 8192)
        .expect("a block");
}

fn ways(document: &DiffDocument) -> Vec<Difference> {
    let counts = document.counts().into_iter().map(|(way, _)| way);
    counts.filter(|way| *way != Difference::Hints).collect()
}

#[test]
fn copies_are_told_apart_by_their_wal() {
    let seeded = seed(&server(15), Checksums::On);
    let (a, b) = (copy_of(&seeded), copy_of(&seeded));
    let same = diff(&a.pgdata, &b.pgdata, 0);
    assert_eq!((same.verdict, same.older), (DiffVerdict::Same, None));
    assert!(same.coverage.blocks > 1000 && same.coverage.blocks == same.coverage.blocks_equal);

    // B lives on: rows change, a table comes, one goes, one is written anew.
    let docs = stop(
        &b,
        "UPDATE public.docs SET id = id; CREATE TABLE public.late AS SELECT 1 AS one; DROP TABLE public.chains;
         VACUUM FULL public.pruned; CHECKPOINT; UPDATE public.docs SET id = id",
    );
    let before = (files(&a.pgdata), files(&b.pgdata));
    let later = diff(&a.pgdata, &b.pgdata, 0);
    assert_eq!(
        (files(&a.pgdata), files(&b.pgdata)),
        before,
        "nothing was written"
    );
    assert_eq!(
        (later.verdict, later.older),
        (DiffVerdict::Explained, Some(Copy::A))
    );
    assert_eq!(ways(&later), [Difference::Missing, Difference::Later]);
    let mirrored = diff(&b.pgdata, &a.pgdata, 0);
    assert_eq!(
        (mirrored.older, mirrored.counts()),
        (Some(Copy::B), later.counts())
    );

    // An old page put back is stale, a hurt one unsound, and both are told with their copy.
    let old = block(&a.pgdata, &docs, 0);
    let new = block(&b.pgdata, &docs, 0);
    put(&b.pgdata, &docs, 0, &old);
    let stale = diff(&a.pgdata, &b.pgdata, 0);
    assert_eq!(
        stale.verdict,
        DiffVerdict::Explained,
        "with the older copy alone nobody can tell"
    );
    let c = copy_of(&pgclinic_testkit::Seeded {
        pgdata: b.pgdata.clone(),
        ..seeded.clone()
    });
    put(&c.pgdata, &docs, 0, &new);
    let stale = diff(&c.pgdata, &b.pgdata, 1);
    let docs_fork = stale.forks.first().expect("a fork");
    let told = docs_fork.blocks.first().expect("a block");
    assert_eq!(
        (told.block, told.difference, told.copy),
        (0, Difference::Stale, Some(Copy::B))
    );
    assert_eq!(docs_fork.relation.as_deref(), Some("docs"));

    let mut hurt = new.clone();
    hurt[5000] ^= 0x40;
    put(&b.pgdata, &docs, 0, &hurt);
    let unsound = diff(&c.pgdata, &b.pgdata, 1);
    let told = &unsound.forks.first().expect("a fork").blocks[0];
    assert_eq!(
        (told.difference, told.copy),
        (Difference::Unsound, Some(Copy::B))
    );
    let words = pgclinic(&["diff", text(&c.pgdata), text(&b.pgdata)]).exits(1);
    assert!(words.out.starts_with("CONTRADICTORY  "), "{}", words.out);
    assert!(words.out.contains("block 0  unsound in B"), "{}", words.out);
    let html = pgclinic(&["diff", text(&c.pgdata), text(&b.pgdata), "--format", "html"]).exits(1);
    assert!(html.out.contains("<h1>CONTRADICTORY</h1>"));
}

/// What a server changes beside WAL (hints, sequences, pages of an index build) contradicts nobody.
#[test]
fn a_backup_that_was_taken_under_way_is_explained() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut primary = copy.start_with(&as_primary()).expect("a server");
    let mut session = primary.connect("clinic").expect("a session");
    let changes = "CREATE SEQUENCE numbers; SELECT nextval('numbers'); DELETE FROM public.docs WHERE id % 3 = 0;
        CREATE TABLE spots AS SELECT point(n, n * 7 % 100) AS p, n, ARRAY[n, n % 10] AS v FROM generate_series(1, 3000) n;
        CREATE INDEX ON spots USING gist (p); CREATE INDEX ON spots USING spgist (p); CREATE INDEX ON spots USING gin (v);
        CREATE INDEX ON spots USING hash (n); CREATE INDEX ON spots USING brin (n); CREATE INDEX ON spots (n)";
    session.execute(changes).expect("changes");
    let folder = copy.pgdata.with_file_name("backup");
    base_backup(&primary, &folder, &["--format=tar", "--wal-method=stream"]);
    let later = "SELECT nextval('numbers'); SET enable_seqscan = off; SELECT count(*) FROM spots WHERE n > 10;
        DELETE FROM spots WHERE n % 7 = 0; VACUUM spots; SELECT count(*) FROM spots; CREATE INDEX ON spots USING gist (p)";
    for statement in later.split(';') {
        session.execute(statement).expect(statement);
    }
    primary.stop(StopMode::Fast).expect("a stop");
    let document = diff(&copy.pgdata, &folder, 0);
    assert_eq!(
        (document.verdict, document.older),
        (DiffVerdict::Explained, Some(Copy::B))
    );
}

#[test]
fn two_clusters_are_no_copies() {
    let summed = copy_of(&seed(&server(15), Checksums::On));
    let other = copy_of(&seed(&server(15), Checksums::Off));
    let refused = pgclinic(&["diff", text(&summed.pgdata), text(&other.pgdata)]).exits(2);
    assert!(
        refused.err.contains("no copies of one cluster"),
        "{}",
        refused.err
    );
    let nothing = [
        "diff",
        text(&summed.pgdata),
        text(&summed.pgdata),
        "--relation",
        "no.such",
    ];
    let refused = pgclinic(&nothing).exits(2);
    assert!(refused.err.contains("matches nothing"), "{}", refused.err);
}
