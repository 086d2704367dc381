//! Relations whose rows in `pg_class` are lost are named by its indexes, and their rows are written
//! all the same.

use pgclinic_model::Level;
use pgclinic_model::document::{Outcome, SalvageReport};

use crate::common;

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use common::{Lines, copied, lines, options, salvaged};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{TempCopy, checked, copy_of, execute, open, seed, server};

const PAGE: usize = 8192;

/// A stopped cluster, what COPY gave of its tables, and the file of a catalog.
struct Hurt {
    copy: TempCopy,
    tables: BTreeMap<String, Lines>,
    whole: Vec<u8>,
    path: String,
}

impl Hurt {
    fn new(catalog: &str, more: &str) -> Self {
        let copy = copy_of(&seed(&server(15), Checksums::On));
        let mut running = copy.start().expect("a server");
        let mut session = running.connect("clinic").expect("a session");
        for statement in more.split("; ").filter(|statement| !statement.is_empty()) {
            session.execute(statement).expect(statement);
        }
        let path = session
            .query_value(&format!("SELECT pg_relation_filepath('{catalog}')"))
            .expect("a path")
            .expect("a file");
        let tables = copied(&running, "clinic", "");
        running.stop(StopMode::Fast).expect("stopped");
        let whole = std::fs::read(copy.pgdata.join(&path)).expect("a file");
        Hurt {
            copy,
            tables,
            whole,
            path,
        }
    }

    fn blocks(&self) -> usize {
        self.whole.len() / PAGE
    }

    fn write(&self, block: usize, bytes: &[u8]) {
        let path = self.copy.pgdata.join(&self.path);
        let file = OpenOptions::new().write(true).open(path).expect("a file");
        file.write_all_at(bytes, (block * PAGE) as u64)
            .expect("written");
    }

    fn heal(&self, block: usize) {
        let page = self.whole.get(block * PAGE..(block + 1) * PAGE);
        self.write(block, page.expect("a page"));
    }

    fn is_zeroed(&self, block: usize) -> bool {
        let page = self.whole.get(block * PAGE..(block + 1) * PAGE);
        page.expect("a page").iter().all(|byte| *byte == 0)
    }

    /// What was written adds up to what the server had: a table is there with all of its rows, or
    /// it is named.
    fn salvage(&self, what: &str) -> SalvageReport {
        let folder = tempfile::tempdir().expect("a directory");
        let out = folder.path().join("out");
        let account = salvaged(&self.copy.pgdata, &options(&out, "copy"));
        for (file, rows) in &self.tables {
            let bytes = std::fs::read(out.join(format!("{file}.copy")));
            let found = bytes.map(|bytes| lines(&bytes)).unwrap_or_default();
            // Values are printed as numbers or stored bytes where the catalog that names them, or
            // their type, is hurt.
            let prints_otherwise = found.len() == rows.len() && account.outcome != Outcome::Whole;
            if found == *rows || prints_otherwise {
                continue;
            }
            let name = file
                .rsplit_once('/')
                .map_or(file.as_str(), |(_, name)| name);
            let mut told = account.not_salvaged.iter();
            assert!(
                told.any(|told| told.what.contains(name)) || is_hurt(&account, name),
                "{what}: {name} is missing: {:#?}",
                account.not_salvaged
            );
        }
        account
    }
}

/// The table stands in the account, not as a whole one.
fn is_hurt(account: &SalvageReport, name: &str) -> bool {
    let mut tables = account.tables.iter();
    tables.any(|table| format!("{}.{}", table.schema, table.table) == name && !table.is_whole())
}

fn verdict(pgdata: &Path) -> (String, Vec<String>) {
    let document = checked(&open(pgdata), Level::Structure);
    let rules = document.findings.iter();
    let rules = rules.filter(|finding| finding.severity.name() == "damage");
    let mut rules: Vec<String> = rules.map(|finding| finding.rule.to_string()).collect();
    rules.dedup();
    (document.verdict.name().to_owned(), rules)
}

fn written(account: &SalvageReport) -> u64 {
    account.tables.iter().map(|table| table.rows.written).sum()
}

#[test]
fn tables_of_a_zeroed_page_of_pg_class_are_named_and_written() {
    let hurt = Hurt::new("pg_class", "");
    let truth = hurt.salvage("whole");
    assert_eq!(truth.outcome, Outcome::Whole);
    assert_eq!(verdict(&hurt.copy.pgdata).0, "healthy");
    let mut found = 0;
    for block in 0..hurt.blocks() {
        if hurt.is_zeroed(block) {
            continue;
        }
        hurt.write(block, &[0; PAGE]);
        let (verdict, rules) = verdict(&hurt.copy.pgdata);
        let is_lost = rules.iter().any(|rule| rule == "relation-lost");
        found += usize::from(is_lost);
        let account = hurt.salvage(&format!("block {block} zeroed"));
        // A page of dead rows alone takes nothing with it.
        assert_ne!(verdict, "healthy", "block {block}");
        assert!(
            !is_lost || account.outcome != Outcome::Whole,
            "block {block}"
        );
        assert_eq!(written(&account), written(&truth), "block {block}");
        hurt.heal(block);
    }
    assert!(found > 1, "{found} of {} blocks", hurt.blocks());
    assert_eq!(verdict(&hurt.copy.pgdata).0, "healthy");
}

#[test]
fn garbage_over_a_page_of_pg_class_does_not_pass_for_health() {
    let hurt = Hurt::new("pg_class", "");
    for block in 0..hurt.blocks() {
        let garbage: Vec<u8> = (0..PAGE).map(|at| (at * 31 + block * 7) as u8).collect();
        hurt.write(block, &garbage);
        assert_eq!(verdict(&hurt.copy.pgdata).0, "damaged", "block {block}");
        let account = hurt.salvage(&format!("block {block} overwritten"));
        assert_ne!(account.outcome, Outcome::Whole, "block {block}");
        hurt.heal(block);
    }
}

#[test]
fn a_zeroed_page_of_pg_attribute_or_pg_type_does_not_pass_for_health() {
    for catalog in ["pg_attribute", "pg_type"] {
        let hurt = Hurt::new(catalog, "");
        for block in 0..hurt.blocks() {
            if hurt.is_zeroed(block) {
                continue;
            }
            hurt.write(block, &[0; PAGE]);
            let account = hurt.salvage(&format!("{catalog} block {block} zeroed"));
            assert_ne!(account.outcome, Outcome::Whole, "{catalog} block {block}");
            hurt.heal(block);
        }
    }
}

/// The file of a table that its row does not name any more holds its rows all the same.
#[test]
fn a_file_without_an_owner_is_written_where_a_table_has_none() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(
        &running,
        "CREATE TABLE public.astray AS SELECT g, 'row ' || g AS what FROM generate_series(1, 500) g",
    );
    let change = "UPDATE pg_class SET relfilenode = 99999 WHERE oid = 'public.astray'::regclass";
    execute(&running, change);
    running.stop(StopMode::Fast).expect("a stop");
    let folder = tempfile::tempdir().expect("a directory");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "csv"));
    assert_eq!(account.outcome, Outcome::Damaged);
    assert!(is_hurt(&account, "public.astray"));
    let mut unclaimed = account
        .tables
        .iter()
        .filter(|own| own.schema == "unclaimed");
    assert!(
        unclaimed.any(|own| own.rows.written == 500),
        "{:#?}",
        account.tables
    );
}

/// An older copy of a file is sound in itself: its rows are from before the freeze that the catalog
/// knows of.
#[test]
fn rows_from_before_the_last_freeze_do_not_pass_for_the_table() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    execute(
        &running,
        "CREATE TABLE public.aged AS SELECT g AS n FROM generate_series(1, 400) g; CHECKPOINT",
    );
    let path = "SELECT pg_relation_filepath('public.aged')";
    let mut session = running.connect("clinic").expect("a session");
    let path = session.query_value(path).expect(path).expect("a path");
    let path = copy.pgdata.join(path);
    let old = std::fs::read(&path).expect("a file");
    let later = [
        "UPDATE public.aged SET n = n + 1000",
        "VACUUM (FREEZE) public.aged",
    ];
    for sql in later {
        session.execute(sql).expect(sql);
    }
    drop(session);
    running.stop(StopMode::Fast).expect("a stop");
    let folder = tempfile::tempdir().expect("a directory");
    let whole = salvaged(&copy.pgdata, &options(&folder.path().join("whole"), "csv"));
    assert_eq!(whole.outcome, Outcome::Whole, "{:#?}", whole.not_salvaged);
    std::fs::write(&path, old).expect("an older file");
    // A map of later would contradict it as well.
    let map = path.with_file_name(format!(
        "{}_vm",
        path.file_name().expect("a name").display()
    ));
    std::fs::remove_file(map).expect("removed");
    let account = salvaged(&copy.pgdata, &options(&folder.path().join("out"), "csv"));
    assert_ne!(account.outcome, Outcome::Whole);
    let mut gaps = account.not_salvaged.iter();
    assert!(
        gaps.any(|gap| gap.what.contains("400 row versions of table public.aged")),
        "{:#?}",
        account.not_salvaged
    );
}

/// Takes the rows of a table from `pg_class` and `pg_attribute`, with the entries of their indexes.
const WITHOUT_ROWS: &str = "CREATE TABLE born (id int PRIMARY KEY, word text DEFAULT 'x', CHECK (id > 0)); \
     INSERT INTO born SELECT i, 'born ' || i FROM generate_series(1, 500) i; \
     CREATE TABLE rewritten (id int PRIMARY KEY, word text); \
     INSERT INTO rewritten SELECT i, 'rewritten ' || i FROM generate_series(1, 700) i; \
     VACUUM FULL rewritten; \
     CREATE TABLE dropped (id int PRIMARY KEY, word text); INSERT INTO dropped VALUES (1, 'gone'); \
     SET allow_system_table_mods = on; \
     CREATE TEMP TABLE gone AS SELECT oid FROM pg_class WHERE relname IN ('born', 'rewritten'); \
     DELETE FROM pg_attribute WHERE attrelid IN (SELECT oid FROM gone); \
     DELETE FROM pg_class WHERE oid IN (SELECT oid FROM gone); \
     DROP TABLE gone; VACUUM pg_class; VACUUM pg_attribute; CHECKPOINT";

#[test]
fn what_other_catalogs_mention_is_lost_and_what_was_dropped_is_not() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    let mut session = running.connect("clinic").expect("a session");
    for statement in WITHOUT_ROWS.split("; ") {
        session.execute(statement).expect(statement);
    }
    let path = "SELECT pg_relation_filepath('dropped')";
    let path = session.query_value(path).expect("a path").expect("a file");
    let of_dropped = std::fs::read(copy.pgdata.join(&path)).expect("a file");
    session.execute("DROP TABLE dropped").expect("dropped");
    running.stop(StopMode::Fast).expect("stopped");
    std::fs::write(copy.pgdata.join(&path), of_dropped).expect("a file that was left over");

    let document = checked(&open(&copy.pgdata), Level::Structure);
    let lost = document.findings.iter();
    let lost = lost.filter(|finding| finding.rule == "relation-lost");
    let mut lost: Vec<&str> = lost.map(|finding| finding.message.as_str()).collect();
    lost.sort_unstable();
    assert_eq!(lost.len(), 2, "{lost:#?}");
    assert!(
        lost[0].contains(
            "public.born (OID"
        ) && lost[0].ends_with(
            "pg_attrdef, pg_constraint, pg_index, pg_type and the name of its TOAST relation still mention it, and its file is there"
        ),
        "{lost:#?}"
    );
    assert!(lost[1].contains("public.rewritten (OID"), "{lost:#?}");

    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let account = salvaged(&copy.pgdata, &options(&out, "copy"));
    assert_eq!(account.outcome, Outcome::Incomplete);
    for name in ["public.born", "public.rewritten"] {
        let mut named = account.not_salvaged.iter();
        assert!(named.any(|gap| gap.what.contains(name)), "{name}");
    }
    let rows = |name: &str| {
        let mut tables = account.tables.iter();
        tables
            .find(|table| table.table == name)
            .map(|table| table.rows.written)
    };
    assert_eq!(rows("born"), Some(500));
    let unclaimed = account
        .tables
        .iter()
        .filter(|table| table.schema == "unclaimed");
    let unclaimed: u64 = unclaimed.map(|table| table.rows.written).sum();
    assert_eq!(unclaimed, 701, "rows of the two files that nobody names");
}
