//! Catalogs of a running server: a page of zeros in one of them is never taken for nothing, and a
//! server that makes, alters and drops meanwhile loses nothing.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use pgclinic_cluster::{Cluster, OpenOptions as ClusterOptions};
use pgclinic_model::Glob;
use pgclinic_model::document::{Outcome, SalvageReport};
use pgclinic_salvage::{SalvageOptions, salvage};
use pgclinic_servers::{Checksums, Server, Session, StartOptions};
use pgclinic_source::DataDirectory;
use pgclinic_testkit::{Quiet, TempCopy, copy_of, seed};

use crate::common::{Lines, copied_in, lines, options, session, suspects};

const PAGE: u64 = 8192;

/// A server that writes nothing by itself.
fn still() -> StartOptions {
    let roomy = StartOptions::default().with("shared_buffers", "64MB");
    roomy
        .with("autovacuum", "off")
        .with("bgwriter_lru_maxpages", "0")
}

const MAKE: &str = "\
DROP TABLE public.scratchpad; \
CREATE SCHEMA own; \
CREATE TYPE own.mood AS ENUM ('low', 'high'); \
CREATE TYPE own.pair AS (a int, b text); \
CREATE TABLE own.typed (id int PRIMARY KEY, mood own.mood, pair own.pair); \
INSERT INTO own.typed SELECT i, CASE WHEN i % 10 > 0 THEN 'high'::own.mood END, \
  CASE WHEN i % 10 > 0 THEN ROW(i, 'x')::own.pair END FROM generate_series(1, 1000) i; \
CREATE TABLE own.plain (id int PRIMARY KEY, what text NOT NULL); \
INSERT INTO own.plain SELECT i, repeat('x', i % 50) FROM generate_series(1, 3000) i";

/// A running server, and what COPY gives of its tables.
struct Running {
    copy: TempCopy,
    server: Server,
    tables: BTreeMap<String, Lines>,
}

impl Running {
    fn new(major: u16) -> Self {
        let copy = copy_of(&seed(&pgclinic_testkit::server(major), Checksums::On));
        let server = copy.start_with(&still()).expect("a server");
        let mut clinic = session(&server, "clinic");
        for sql in MAKE.split("; ") {
            clinic.execute(sql).expect(sql);
        }
        let mut tables = copied_in(&mut clinic, "clinic", "");
        tables.retain(|name, _| name.starts_with("clinic/own"));
        clinic.execute("CHECKPOINT").expect("a checkpoint");
        Running {
            copy,
            server,
            tables,
        }
    }

    /// Does something while a page of a catalog is zeros: the one with the row that `of` finds.
    fn without<T>(&self, catalog: &str, of: &str, work: impl FnOnce() -> T) -> T {
        let mut clinic = session(&self.server, "clinic");
        let value = |clinic: &mut Session, sql: &str| {
            let found = clinic.query_value(sql).expect(sql);
            found.unwrap_or_else(|| panic!("{sql}"))
        };
        let block = format!("SELECT (ctid::text::point)[0]::int FROM {catalog} WHERE {of} LIMIT 1");
        let block: u64 = value(&mut clinic, &block).parse().expect("a block");
        let path = value(
            &mut clinic,
            &format!("SELECT pg_relation_filepath('{catalog}')"),
        );
        clinic.execute("CHECKPOINT").expect("a checkpoint");
        let path = self.copy.pgdata.join(path);
        let file = OpenOptions::new().read(true).write(true).open(path);
        let file = file.expect("a file");
        let mut page = [0; PAGE as usize];
        file.read_exact_at(&mut page, block * PAGE).expect("a page");
        file.write_all_at(&[0; PAGE as usize], block * PAGE)
            .expect("zeroed");
        let done = work();
        file.write_all_at(&page, block * PAGE).expect("as it was");
        done
    }
}

fn salvaged(pgdata: &Path, options: &SalvageOptions) -> SalvageReport {
    let source = DataDirectory::open_beside_a_server(pgdata).expect("a directory");
    let cluster = Cluster::open(ClusterOptions::of(Arc::new(source)).running()).expect("a cluster");
    salvage(&cluster, options, &Quiet).expect("a destination")
}

/// Rows in the main file are those of the server, or the table is named as one that is not whole.
fn a_page_of_a_catalog_is_missed(major: u16) {
    let running = Running::new(major);
    let wounds = [
        ("pg_class", "relname = 'plain'"),
        ("pg_attribute", "attrelid = 'own.plain'::regclass"),
        ("pg_type", "oid = 'own.mood'::regtype"),
        ("pg_index", "indrelid = 'own.plain'::regclass"),
        ("pg_namespace", "nspname = 'own'"),
        ("pg_database", "datname = 'clinic'"),
    ];
    for (catalog, row) in wounds {
        let folder = tempfile::tempdir().expect("a directory");
        let out = folder.path().join("out");
        let account = running.without(catalog, row, || {
            salvaged(&running.copy.pgdata, &options(&out, "copy"))
        });
        assert_ne!(
            account.outcome,
            Outcome::Whole,
            "{major} {catalog}: {account:#?}"
        );
        for (name, expected) in &running.tables {
            let stem = out.join(name);
            let bytes = std::fs::read(out.join(format!("{name}.copy")));
            let bytes = bytes.unwrap_or_else(|error| panic!("{major} {catalog} {name}: {error}"));
            let mut found = lines(&bytes);
            let doubtful = suspects(&stem).len();
            let total = found.len() + doubtful;
            assert_eq!(
                total,
                expected.len(),
                "{major} {catalog} {name}: {account:#?}"
            );
            found.retain(|line| !expected.contains(line));
            let odd: Vec<_> = found
                .iter()
                .map(|line| String::from_utf8_lossy(line))
                .collect();
            assert_eq!(odd, [""; 0], "{major} {catalog} {name}");
            // pg_enum has the labels of a type whose row is lost.
            if catalog == "pg_type" && name.contains("typed") {
                assert_eq!(doubtful, 0, "{major} {catalog} {name}: rows with a value");
            }
        }
    }
}

#[test]
fn of_15() {
    a_page_of_a_catalog_is_missed(15);
}

#[test]
fn of_18() {
    a_page_of_a_catalog_is_missed(18);
}

/// Neither `pg_class` nor its indexes name the file of a table that was rewritten once: its rows
/// are written all the same, and those of a transaction that has not ended are nobody's yet.
#[test]
fn a_file_that_nothing_names_is_unclaimed() {
    let running = Running::new(15);
    let mut clinic = session(&running.server, "clinic");
    clinic.execute("VACUUM FULL own.plain").expect("rewritten");
    let file = "SELECT pg_relation_filenode('own.plain')";
    let file = clinic.query_value(file).expect("a number").expect("a file");
    let mut unfinished = session(&running.server, "clinic");
    unfinished.execute("BEGIN").expect("a transaction");
    let make = "CREATE TABLE own.unborn AS SELECT * FROM own.plain";
    unfinished.execute(make).expect(make);
    let unborn = "SELECT pg_relation_filenode('own.unborn')";
    let unborn = unfinished.query_value(unborn).expect("a number");
    let unborn = unborn.expect("a file");
    clinic.execute("CHECKPOINT").expect("a checkpoint");
    let indexes = "SELECT pg_relation_filepath(indexrelid) FROM pg_index WHERE indrelid = 'pg_class'::regclass";
    let indexes = clinic.query(indexes).expect("indexes");
    let indexes: Vec<_> = indexes.into_iter().flatten().flatten().collect();
    assert_eq!(indexes.len(), 3);
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let account = running.without("pg_class", "relname = 'plain'", || {
        let paths = indexes.iter().map(|index| running.copy.pgdata.join(index));
        let whole: Vec<_> = paths
            .map(|path| (std::fs::read(&path).expect("a file"), path))
            .collect();
        for (_, path) in &whole {
            std::fs::write(path, b"").expect("emptied");
        }
        let account = salvaged(&running.copy.pgdata, &options(&out, "copy"));
        for (bytes, path) in whole {
            std::fs::write(path, bytes).expect("as it was");
        }
        account
    });
    assert_ne!(account.outcome, Outcome::Whole, "{account:#?}");
    let rows = |file: &str| {
        let path = out.join(format!("clinic/unclaimed/{file}.copy"));
        std::fs::read(path).map_or(0, |bytes| lines(&bytes).len())
    };
    assert_eq!(rows(&file), 3000, "{account:#?}");
    assert_eq!(rows(&unborn), 0, "{account:#?}");
}

/// Statements that change catalogs in every way, once beside each look.
const DDL: &str = "\
CREATE TYPE own.fleeting AS ENUM ('a', 'b'); \
CREATE TABLE own.short_lived (id int PRIMARY KEY, what own.fleeting, more int DEFAULT 7); \
INSERT INTO own.short_lived SELECT i, 'a' FROM generate_series(1, 200) i; \
ALTER TYPE own.fleeting ADD VALUE 'c'; \
ALTER TYPE own.fleeting RENAME VALUE 'b' TO 'd'; \
ALTER TYPE own.pair ADD ATTRIBUTE c int CASCADE; \
ALTER TYPE own.pair DROP ATTRIBUTE c CASCADE; \
ALTER TABLE own.short_lived ALTER more TYPE bigint; \
ALTER TABLE own.short_lived ADD COLUMN late text DEFAULT 'late'; \
ALTER TABLE own.short_lived DROP COLUMN more; \
CLUSTER own.plain USING plain_pkey; \
CLUSTER own.short_lived USING short_lived_pkey; \
REINDEX TABLE own.plain; \
REINDEX INDEX CONCURRENTLY own.plain_pkey; \
REINDEX TABLE pg_catalog.pg_class; \
VACUUM FULL pg_catalog.pg_class; \
VACUUM FULL pg_catalog.pg_attribute; \
VACUUM FULL pg_catalog.pg_type; \
VACUUM FULL own.typed; \
CREATE MATERIALIZED VIEW own.seen AS SELECT count(*) FROM own.plain; \
REFRESH MATERIALIZED VIEW own.seen; \
TRUNCATE own.short_lived; \
DROP MATERIALIZED VIEW own.seen; \
DROP TABLE own.short_lived; \
DROP TYPE own.fleeting; \
VACUUM ANALYZE own.plain; \
CHECKPOINT";

/// The looks of a run in the test; by hand `PGCLINIC_LOOKS` gives more.
const LOOKS: u32 = 4;

fn a_server_under_ddl_is_whole(major: u16) {
    let running = Running::new(major);
    let looks = std::env::var("PGCLINIC_LOOKS").ok();
    let looks = looks.and_then(|looks| looks.parse().ok()).unwrap_or(LOOKS);
    let mut worker = session(&running.server, "clinic");
    let seen = (0..looks).map(|_| {
        std::thread::scope(|scope| {
            let load = scope.spawn(|| DDL.split("; ").try_for_each(|sql| worker.execute(sql)));
            let seen = look(&running);
            load.join().expect("the load").expect("its statements");
            seen
        })
    });
    let wrong: Vec<String> = seen.filter_map(Result::err).collect();
    let count = wrong.len();
    assert!(
        wrong.is_empty(),
        "{major}: {count} of {looks} looks: {wrong:#?}"
    );
}

/// One salvage beside the load: what is wrong with it, if anything.
fn look(running: &Running) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let mut options = options(&out, "copy");
    options.selection.databases = vec![Glob::new("clinic")];
    let account = salvaged(&running.copy.pgdata, &options);
    let hurt = account.tables.iter().filter(|table| !table.is_whole());
    let hurt: Vec<_> = hurt
        .map(|table| (&table.table, &table.places, &table.notes))
        .collect();
    let gaps = account.not_salvaged.iter().filter(|gap| !gap.inherent);
    let gaps: Vec<_> = gaps.collect();
    if account.outcome == Outcome::Damaged || !hurt.is_empty() {
        return Err(format!("{:?}: {hurt:?} {gaps:?}", account.outcome));
    }
    // What the server moved at every look, or wrote while it was read, is said.
    let may_move = |what: &str| {
        ["short_lived", "seen", "rows on"]
            .iter()
            .any(|own| what.contains(own))
    };
    if let Some(gap) = gaps.iter().find(|gap| !may_move(&gap.what)) {
        return Err(format!("{gap:?}"));
    }
    for (name, expected) in &running.tables {
        let bytes = std::fs::read(out.join(format!("{name}.copy"))).unwrap_or_default();
        if gaps.is_empty() && lines(&bytes).len() != expected.len() {
            return Err(format!(
                "{name}: {} of {} rows",
                lines(&bytes).len(),
                expected.len()
            ));
        }
    }
    Ok(())
}

#[test]
fn under_ddl_of_15() {
    a_server_under_ddl_is_whole(15);
}

#[test]
fn under_ddl_of_18() {
    a_server_under_ddl_is_whole(18);
}
