//! Indexes that are older than their table, as one is that was restored by itself: rows that VACUUM
//! took since are not lost.

use pgclinic_model::document::{Outcome, SalvageReport, TableAccount};
use pgclinic_salvage::salvage;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{Quiet, copy_of, execute, open, seed, server, value};

use crate::common::options;

const TABLES: &str = "\
CREATE TABLE public.old_gist (id int, at point, word text) WITH (autovacuum_enabled = off);
CREATE TABLE public.old_hash (id int, at point, word text) WITH (autovacuum_enabled = off);
CREATE TABLE public.old_btree (id int, at point, word text) WITH (autovacuum_enabled = off);
INSERT INTO public.old_gist SELECT n, point(n, n), md5(n::text) FROM generate_series(1, 3000) n;
INSERT INTO public.old_hash SELECT * FROM public.old_gist; INSERT INTO public.old_btree SELECT * FROM public.old_gist;
CREATE INDEX by_gist ON public.old_gist USING gist (at); CREATE INDEX by_hash ON public.old_hash USING hash (id);
CREATE INDEX by_btree ON public.old_btree (id)";

const INDEXES: [(&str, &str); 3] = [
    ("old_gist", "public.by_gist"),
    ("old_hash", "public.by_hash"),
    ("old_btree", "public.by_btree"),
];

/// Rows among others, all rows of some pages, and those of the last pages.
fn changes() -> String {
    let of = |(table, _): (&str, &str)| {
        format!(
            "DELETE FROM public.{table} WHERE id % 10 = 3 OR id BETWEEN 500 AND 800 OR id > 2500; VACUUM public.{table};"
        )
    };
    INDEXES.map(of).concat()
}

fn told<'a>(account: &'a SalvageReport, name: &str) -> &'a TableAccount {
    let mut tables = account.tables.iter();
    let own = tables.find(|table| table.table == name);
    own.unwrap_or_else(|| panic!("{name}: {account:#?}"))
}

#[test]
fn rows_that_vacuum_took_after_an_old_index_are_not_lost() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(&running, TABLES);
    execute(&running, "CHECKPOINT");
    let old = INDEXES.map(|(_, index)| {
        let path = value(&running, &format!("SELECT pg_relation_filepath('{index}')"));
        let path = copy.pgdata.join(path);
        let bytes = std::fs::read(&path).expect("an index");
        (path, bytes)
    });
    for statement in changes().split_inclusive(';') {
        execute(&running, statement);
    }
    let rows = INDEXES.map(|(table, _)| {
        let count = value(&running, &format!("SELECT count(*) FROM public.{table}"));
        count.parse::<u64>().expect("a number")
    });
    running.stop(StopMode::Fast).expect("it stops");
    let sound = salvaged(&copy.pgdata);
    assert_eq!(sound.outcome, Outcome::Whole, "{sound:#?}");

    for (path, bytes) in &old {
        std::fs::write(path, bytes).expect("restored");
    }
    let account = salvaged(&copy.pgdata);
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    for ((name, index), rows) in INDEXES.iter().zip(rows) {
        let table = told(&account, name);
        let counts = (table.rows.written, table.rows.lost, table.damaged_pages);
        assert_eq!(counts, (rows, 0, 0), "{table:#?}");
        let mut gaps = account.not_salvaged.iter();
        let gap = gaps.find(|gap| gap.what.contains(&format!("public.{name} ")));
        let gap = gap.unwrap_or_else(|| panic!("{name}: {:#?}", account.not_salvaged));
        let is_told = gap.why.contains(index) && gap.why.contains("may be older than its table");
        assert!(is_told && !gap.inherent, "{gap:?}");
    }
}

fn salvaged(pgdata: &std::path::Path) -> SalvageReport {
    let folder = tempfile::tempdir().expect("a directory");
    let mut options = options(&folder.path().join("out"), "csv");
    options.selection.relations = vec![pgclinic_model::Glob::new("public.old_*")];
    salvage(&open(pgdata), &options, &Quiet).expect("a destination")
}
