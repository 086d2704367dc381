//! Rows that a running server takes for none that ever were: a page of zeros, the end of a file.
//! Its indexes and visibility maps know them, in the files that it lets be read.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_salvage::salvage_live;
use pgclinic_servers::{Checksums, ConnectionTarget, Server, Session, StartOptions, StopMode};
use pgclinic_testkit::{Quiet, TempCopy, copy_of, seed, server};

use crate::common::{options, session};

const PAGE: u64 = 8192;

/// A server that keeps in memory what it has changed until a checkpoint.
fn roomy() -> StartOptions {
    let roomy = StartOptions::default().with("shared_buffers", "64MB");
    roomy
        .with("autovacuum", "off")
        .with("bgwriter_lru_maxpages", "0")
}

/// Tables of 172 blocks with 58 rows each; those with `_heap` in their names have no index.
fn fill(session: &mut Session, tables: &[&str]) {
    for table in tables {
        let key = if table.contains("_heap") {
            ""
        } else {
            "PRIMARY KEY"
        };
        let statements = format!(
            "CREATE TABLE public.{table} (id int {key}, what text);\
             INSERT INTO public.{table} SELECT g, repeat('x', 100) FROM generate_series(1, 10000) AS g;\
             VACUUM public.{table}"
        );
        for sql in statements.split(';') {
            session.execute(sql).expect(sql);
        }
    }
}

fn file_of(session: &mut Session, copy: &TempCopy, table: &str) -> std::path::PathBuf {
    let sql = format!("SELECT pg_relation_filepath('public.{table}')");
    let path = session.query_value(&sql).expect("a path").expect("a file");
    copy.pgdata.join(path)
}

fn salvaged(server: &Server, out: &Path, user: &str) -> SalvageReport {
    let mut options = options(out, "csv");
    options.selection.relations = vec![Glob::new("public.own_*")];
    let mut target = ConnectionTarget::of(server, "clinic");
    target.user = user.into();
    salvage_live(&target, &options, &Quiet).expect("a salvage")
}

/// Tables with rows that were written and rows that are lost.
fn lost(account: &SalvageReport) -> Vec<(&str, u64, u64)> {
    let tables = account.tables.iter();
    let tables = tables.map(|table| (&*table.table, table.rows.written, table.rows.lost));
    tables.collect()
}

fn losses_are_known(major: u16, checksums: Checksums) {
    let copy = copy_of(&seed(&server(major), checksums));
    let mut running = copy.start_with(&roomy()).expect("a server");
    let mut clinic = session(&running, "clinic");
    let tables = [
        "own_emptied",
        "own_heap_cut",
        "own_heap_zeroed",
        "own_shorter",
        "own_whole",
        "own_zeroed",
    ];
    fill(&mut clinic, &tables);
    let paths = tables.map(|table| file_of(&mut clinic, &copy, table));
    drop(clinic);
    running.stop(StopMode::Fast).expect("stopped");
    for (table, path) in tables.iter().zip(paths) {
        let file = OpenOptions::new().write(true).open(path).expect("a file");
        let hurt = match *table {
            "own_emptied" => file.set_len(0),
            "own_shorter" | "own_heap_cut" => file.set_len(150 * PAGE),
            "own_whole" => Ok(()),
            _ => file.write_all_at(&[0; 8192], 100 * PAGE),
        };
        hurt.expect("hurt");
    }
    let running = copy.start_with(&roomy()).expect("a server");
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&running, &folder.path().join("out"), "postgres");
    let cut = 10_000 - 150 * 58;
    let expected = [
        ("own_emptied", 0, 10_000),
        ("own_heap_cut", 150 * 58, cut),
        ("own_heap_zeroed", 10_000 - 58, 58),
        ("own_shorter", 150 * 58, cut),
        ("own_whole", 10_000, 0),
        ("own_zeroed", 10_000 - 58, 58),
    ];
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    assert_eq!(lost(&account), expected, "{account:#?}");
    let keys = folder.path().join("out/clinic");
    let lists = std::fs::read_dir(keys).expect("a directory").flatten();
    let lists = lists.filter(|file| file.file_name().to_string_lossy().contains("lost_keys"));
    assert_eq!(lists.count(), 3, "of the tables with keys");
}

#[test]
fn of_13() {
    losses_are_known(13, Checksums::Off);
}

#[test]
fn of_18() {
    losses_are_known(18, Checksums::On);
}

/// Rows that the server holds in its memory, and pages that VACUUM emptied or gave back, are no
/// losses.
#[test]
fn what_waits_in_memory_is_no_loss() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start_with(&roomy()).expect("a server");
    let mut clinic = session(&running, "clinic");
    fill(
        &mut clinic,
        &["own_emptied", "own_given_back", "own_heap_marked"],
    );
    clinic.execute("CHECKPOINT").expect("a checkpoint");
    fill(&mut clinic, &["own_fresh", "own_heap_fresh"]);
    for sql in [
        "DELETE FROM public.own_emptied WHERE id BETWEEN 2000 AND 6000",
        "VACUUM public.own_emptied",
        "DELETE FROM public.own_given_back WHERE id > 5000",
        "VACUUM public.own_given_back",
        "DELETE FROM public.own_heap_marked WHERE id > 5000",
        "VACUUM public.own_heap_marked",
    ] {
        clinic.execute(sql).expect(sql);
    }
    // What waits in memory is not in the files.
    let path = file_of(&mut clinic, &copy, "own_fresh");
    let file = OpenOptions::new().write(true).open(path).expect("a file");
    file.write_all_at(&[0; 8192], 100 * PAGE).expect("zeroed");
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&running, &folder.path().join("out"), "postgres");
    let expected = [
        ("own_emptied", 10_000 - 4001, 0),
        ("own_fresh", 10_000, 0),
        ("own_given_back", 5000, 0),
        ("own_heap_fresh", 10_000, 0),
        ("own_heap_marked", 5000, 0),
    ];
    assert_eq!(lost(&account), expected, "{account:#?}");
    assert_eq!(account.outcome, Outcome::Whole, "{account:#?}");
}

/// Rows that came since stand where lost ones stood: how many are lost is said with its bounds.
#[test]
fn rows_on_blocks_that_were_filled_again_are_within_the_bounds() {
    let copy = copy_of(&seed(&server(15), Checksums::Off));
    let mut running = copy.start_with(&roomy()).expect("a server");
    let mut clinic = session(&running, "clinic");
    fill(&mut clinic, &["own_refilled"]);
    let path = file_of(&mut clinic, &copy, "own_refilled");
    drop(clinic);
    running.stop(StopMode::Fast).expect("stopped");
    let file = OpenOptions::new().write(true).open(path).expect("a file");
    file.set_len(150 * PAGE).expect("truncated");
    let running = copy.start_with(&roomy()).expect("a server");
    let mut clinic = session(&running, "clinic");
    let more = "INSERT INTO public.own_refilled SELECT g, repeat('y', 100) FROM generate_series(20001, 20100) AS g";
    clinic.execute(more).expect(more);
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&running, &folder.path().join("out"), "postgres");
    let [table] = account.tables.as_slice() else {
        panic!("{account:#?}");
    };
    assert_eq!(table.rows.written, 150 * 58 + 100);
    let truth = 10_000 - 150 * 58;
    let bound: u64 = table.lost_by.iter().filter_map(|by| by.at_most).sum();
    assert!(table.rows.lost < truth && truth <= bound, "{table:#?}");
    assert!(bound <= truth + 100, "{table:#?}");
}

/// The server opens every index of a table for a plan: rows that need none come from it all the
/// same, and nothing is counted that only an index lacks.
#[test]
fn emptied_indexes_do_not_keep_the_rows_of_their_tables_back() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start_with(&roomy()).expect("a server");
    let mut clinic = session(&running, "clinic");
    fill(&mut clinic, &["own_emptied", "own_long", "own_zeroed"]);
    let long = [
        "ALTER TABLE own_long ALTER what SET STORAGE EXTERNAL",
        "UPDATE own_long SET what = repeat('long', 1000) WHERE id < 50",
    ];
    for sql in long {
        clinic.execute(sql).expect(sql);
    }
    let index = "SELECT pg_relation_filepath(i.indexrelid) FROM pg_class c JOIN pg_index i ON i.indrelid = c.reltoastrelid \
                 WHERE c.oid = 'public.own_long'::regclass";
    let index = clinic.query_value(index).expect(index).expect("a path");
    let of_keys = ["own_emptied_pkey", "own_zeroed_pkey"];
    let mut paths: Vec<_> = of_keys.map(|name| file_of(&mut clinic, &copy, name)).into();
    paths.push(copy.pgdata.join(index));
    let emptied = file_of(&mut clinic, &copy, "own_emptied");
    let zeroed = file_of(&mut clinic, &copy, "own_zeroed");
    drop(clinic);
    running.stop(StopMode::Fast).expect("stopped");
    for path in &paths {
        std::fs::write(path, "").expect("emptied");
    }
    std::fs::write(&emptied, "").expect("emptied");
    let file = OpenOptions::new().write(true).open(zeroed).expect("a file");
    file.write_all_at(&[0; 8192], 100 * PAGE).expect("zeroed");
    let running = copy.start_with(&roomy()).expect("a server");
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&running, &folder.path().join("out"), "postgres");
    let expected = [
        ("own_emptied", 0, 10_000),
        ("own_long", 10_000, 0),
        ("own_zeroed", 10_000 - 58, 58),
    ];
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    assert_eq!(lost(&account), expected, "{account:#?}");
    let long = account
        .tables
        .iter()
        .find(|table| table.table == "own_long");
    assert!(long.expect("a table").is_whole(), "{long:#?}");
}

/// Who may not read the files of the server gets the rows, and learns that nobody was asked.
#[test]
fn a_role_without_rights_is_told_that_nobody_was_asked() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let running = copy.start_with(&roomy()).expect("a server");
    let mut clinic = session(&running, "clinic");
    fill(&mut clinic, &["own_whole"]);
    for sql in [
        "CREATE ROLE visitor LOGIN",
        "GRANT USAGE ON SCHEMA public TO visitor",
        "GRANT SELECT ON public.own_whole TO visitor",
    ] {
        clinic.execute(sql).expect(sql);
    }
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&running, &folder.path().join("out"), "visitor");
    assert_eq!(lost(&account), [("own_whole", 10_000, 0)]);
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    let mut gaps = account.not_salvaged.iter();
    let is_told = gaps.any(|gap| {
        gap.what
            .starts_with("whether rows are missing that indexes")
            && gap.why.contains("pg_read_binary_file")
    });
    assert!(is_told, "{:?}", account.not_salvaged);
}
