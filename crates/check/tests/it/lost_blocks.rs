//! Blocks of a table that are gone, or all zero, are missed by its indexes: on real servers, with
//! every kind of index, and with what is legal beside.

mod dead_entries;
mod emptied;
mod exchanged;
mod logged;
mod map_pages;
mod questions;
mod toasted;
mod unvouched;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use pgclinic_model::{CheckDocument, Finding, Level, Severity, Verdict};
use pgclinic_servers::{Checksums, Server, StartOptions, StopMode};
use pgclinic_testkit::{TempCopy, checked, copy_of, execute, open, seed, server, value};

const PAGE: u64 = 8192;

/// Some tables of 20 pages or more, with one kind of index each, and one without.
const TABLES: &str = "\
CREATE TABLE public.t_btree AS SELECT i AS id, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
CREATE UNIQUE INDEX t_btree_id ON public.t_btree (id);
CREATE INDEX t_btree_odd ON public.t_btree (what) WHERE id % 2 = 1;
CREATE TABLE public.t_hash AS SELECT i AS id, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
CREATE INDEX t_hash_id ON public.t_hash USING hash (id);
CREATE TABLE public.t_gist AS SELECT point(i, i) AS at, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
CREATE INDEX t_gist_at ON public.t_gist USING gist (at);
CREATE TABLE public.t_spgist AS SELECT point(i, i) AS at, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
CREATE INDEX t_spgist_at ON public.t_spgist USING spgist (at);
CREATE TABLE public.t_gin AS SELECT ARRAY[i % 7, i] AS parts, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
CREATE INDEX t_gin_parts ON public.t_gin USING gin (parts);
CREATE TABLE public.t_brin AS SELECT i AS id, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
CREATE INDEX t_brin_id ON public.t_brin USING brin (id);
CREATE TABLE public.t_bare AS SELECT i AS id, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
CREATE TABLE public.t_long (id int, what text);
ALTER TABLE public.t_long ALTER what SET STORAGE EXTERNAL;
INSERT INTO public.t_long SELECT i, repeat('x', 8000) FROM generate_series(1, 40) AS i";

/// A stopped cluster with these tables.
struct Clinic {
    copy: TempCopy,
    server: Option<Server>,
}

impl Clinic {
    fn with(sql: &str) -> Self {
        Clinic::of(Checksums::On, sql)
    }

    fn of(checksums: Checksums, sql: &str) -> Self {
        Clinic::on(18, checksums, sql)
    }

    fn on(major: u16, checksums: Checksums, sql: &str) -> Self {
        let copy = copy_of(&seed(&server(major), checksums));
        let options = StartOptions::default().with("autovacuum", "off");
        let server = copy.start_with(&options).expect("a server");
        execute(&server, sql);
        Clinic {
            copy,
            server: Some(server),
        }
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    /// Leaves no record of what was written so far.
    fn forget_wal(&self) {
        for sql in ["SELECT pg_switch_wal()", "CHECKPOINT"] {
            execute(self.server(), sql);
        }
    }

    fn stop(&mut self) {
        let mut server = self.server.take().expect("it runs");
        server.stop(StopMode::Fast).expect("it stops");
    }

    fn path(&self, relation: &str) -> PathBuf {
        let sql = format!("SELECT pg_relation_filepath('{relation}')");
        self.copy.pgdata.join(value(self.server(), &sql))
    }

    fn check(&self, level: Level) -> CheckDocument {
        checked(&open(&self.copy.pgdata), level)
    }
}

fn zero(path: &Path, block: u64) {
    let file = File::options().write(true).open(path).expect("a file");
    file.write_all_at(&[0; PAGE as usize], block * PAGE)
        .expect("a write");
}

fn truncate(path: &Path, blocks: u64) {
    let file = File::options().write(true).open(path).expect("a file");
    file.set_len(blocks * PAGE).expect("it shrinks");
}

/// Roots of damage.
fn roots(document: &CheckDocument) -> Vec<&Finding> {
    let damage = document
        .findings
        .iter()
        .filter(|own| own.severity == Severity::Damage);
    damage.filter(|own| own.caused_by.is_none()).collect()
}

/// What was not checked and could be, but for what every cluster that needs recovery leaves open.
fn open_questions(document: &CheckDocument) -> Vec<String> {
    let gaps = document.coverage.not_checked.iter();
    let is_own = |why: &str| !why.starts_with("the cluster needs recovery");
    let open = gaps.filter(|gap| !gap.inherent && is_own(&gap.why));
    open.map(|gap| gap.what.clone()).collect()
}

/// Rule, relation, block and rows of each root.
fn told(document: &CheckDocument) -> Vec<(String, String, Option<u32>, Option<u64>)> {
    let one = |own: &&Finding| {
        let relation = own.place.relation.clone().unwrap_or_default();
        (
            own.rule.clone(),
            relation,
            own.place.block,
            own.at_risk.rows,
        )
    };
    let mut told: Vec<_> = roots(document).iter().map(one).collect();
    told.sort();
    told
}

#[test]
fn zeroed_pages_are_missed_by_the_indexes_that_name_rows_there() {
    let mut clinic = Clinic::with(TABLES);
    let tables = [
        "t_btree", "t_hash", "t_gist", "t_spgist", "t_gin", "t_brin", "t_bare",
    ];
    let paths: Vec<_> = tables
        .iter()
        .map(|table| clinic.path(&format!("public.{table}")))
        .collect();
    let toast = value(
        clinic.server(),
        "SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = 'public.t_long'::regclass",
    );
    let toast_path = clinic.path(&toast);
    clinic.stop();
    assert_eq!(told(&clinic.check(Level::Full)), [], "nothing is wrong yet");
    paths.iter().for_each(|path| zero(path, 3));
    zero(&toast_path, 5);
    for level in [Level::Structure, Level::Full] {
        let document = clinic.check(level);
        let told = told(&document);
        // Of tables without a witness WAL may still know what was written last.
        let is_of_wal = |name: &str| name == "t_bare" || name == "t_brin";
        let told: Vec<_> = told.into_iter().filter(|own| !is_of_wal(&own.1)).collect();
        let zeroed = told.iter().filter(|own| own.0 == "zeroed-page");
        let zeroed: Vec<_> = zeroed.map(|own| (own.1.as_str(), own.2)).collect();
        let toast = toast.rsplit('.').next().expect("a name");
        assert_eq!(
            zeroed,
            [
                (toast, Some(5)),
                ("t_btree", Some(3)),
                ("t_gin", Some(3)),
                ("t_gist", Some(3)),
                ("t_hash", Some(3)),
                ("t_spgist", Some(3))
            ],
            "{level:?}: a BRIN index and a bare table know of no row"
        );
        assert_eq!(
            told.len(),
            zeroed.len(),
            "{level:?}: all else follows: {told:?}"
        );
        let of_btree = told
            .iter()
            .find(|own| own.1 == "t_btree")
            .expect("a finding");
        assert_eq!(of_btree.3, Some(34), "as many as a page of such rows has");
    }
}

#[test]
fn a_truncated_table_is_one_finding() {
    let mut clinic = Clinic::with(TABLES);
    let tables = ["t_btree", "t_hash", "t_gist", "t_spgist", "t_gin", "t_bare"];
    let paths: Vec<_> = tables
        .iter()
        .map(|table| clinic.path(&format!("public.{table}")))
        .collect();
    execute(clinic.server(), "VACUUM public.t_bare");
    clinic.stop();
    paths.iter().for_each(|path| truncate(path, 20));
    for level in [Level::Structure, Level::Full] {
        let document = clinic.check(level);
        let told = told(&document);
        let tables: Vec<_> = told
            .iter()
            .map(|own| (own.0.as_str(), own.1.as_str()))
            .collect();
        let expected = ["t_bare", "t_btree", "t_gin", "t_gist", "t_hash", "t_spgist"];
        assert_eq!(
            tables,
            expected.map(|table| ("file-truncated", table)),
            "{level:?}"
        );
        assert_eq!(
            told[1].3,
            Some(1000 - 20 * 34),
            "counted by the unique index"
        );
        assert_eq!(
            told[0].3,
            Some(333),
            "by the map and the catalog's estimate"
        );
    }
}

#[test]
fn an_emptied_table_is_truncated_too() {
    let mut clinic = Clinic::with(TABLES);
    let path = clinic.path("public.t_btree");
    clinic.stop();
    truncate(&path, 0);
    let document = clinic.check(Level::Structure);
    let expected = ("file-truncated".into(), "t_btree".into(), None, Some(1000));
    assert_eq!(told(&document), [expected]);
}

/// A GIN or SP-GiST index of an empty table has its root pages too.
#[test]
fn an_index_without_its_root_pages_is_damaged() {
    let mut clinic = Clinic::with(TABLES);
    let paths = ["public.t_spgist_at", "public.t_gin_parts"].map(|own| clinic.path(own));
    clinic.stop();
    for path in &paths {
        truncate(path, 1);
    }
    let document = clinic.check(Level::Structure);
    assert_eq!(document.verdict, Verdict::Damaged);
    let found = document.findings.iter();
    let found = found.filter(|own| own.rule == "empty-index");
    assert_eq!(found.count(), 2, "{:?}", told(&document));
}

#[test]
fn a_single_entry_that_leads_astray_is_accused_itself() {
    let mut clinic = Clinic::with(TABLES);
    let path = clinic.path("public.t_btree_id");
    let spare = clinic.path("public.t_hash_id");
    clinic.stop();
    assert!(spare.exists());
    let file = File::options()
        .read(true)
        .write(true)
        .open(&path)
        .expect("a file");
    let mut page = [0; PAGE as usize];
    file.read_exact_at(&mut page, PAGE).expect("the first leaf");
    // The second data item: the high key stands first.
    let pointer = u32::from_le_bytes(page[24 + 8..24 + 12].try_into().expect("four bytes"));
    let at = usize::try_from(pointer & 0x7FFF).expect("an offset");
    page[at + 2..at + 4].copy_from_slice(&5000_u16.to_le_bytes());
    let sum = pgclinic_format::checksum::page_checksum(&page, 1);
    page[8..10].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&page, PAGE).expect("a write");
    let document = clinic.check(Level::Structure);
    let roots = roots(&document);
    let [finding] = roots.as_slice() else {
        panic!("{roots:?}");
    };
    assert_eq!(finding.rule, "index-entry-without-row");
    let place = (
        finding.place.relation.as_deref(),
        finding.place.block,
        finding.place.item,
    );
    assert_eq!(
        place,
        (Some("t_btree_id"), Some(1), Some(3)),
        "leaf and item"
    );
}

/// Pages that a crash, a rollback or several sessions left, dead entries, truncation by VACUUM, and
/// indexes that broke off.
const LEGAL: &str = "\
CREATE TABLE public.bulk (id int PRIMARY KEY, what text);
INSERT INTO public.bulk SELECT i, repeat('x', 500) FROM generate_series(1, 2000) AS i;
BEGIN;
INSERT INTO public.bulk SELECT i, repeat('x', 500) FROM generate_series(2001, 9000) AS i;
ROLLBACK;
DELETE FROM public.bulk WHERE id > 1500;
SELECT count(*) FROM public.bulk WHERE id > 1400;
CREATE TABLE public.shrunk (id int PRIMARY KEY, what text);
INSERT INTO public.shrunk SELECT i, repeat('x', 500) FROM generate_series(1, 2000) AS i;
CREATE INDEX shrunk_what ON public.shrunk USING brin (id);
DELETE FROM public.shrunk WHERE id > 100;
VACUUM public.shrunk;
CREATE TABLE public.doubled (id int);
INSERT INTO public.doubled VALUES (1), (1);
CREATE TABLE public.copied_frozen (id int PRIMARY KEY);
BEGIN;
TRUNCATE public.copied_frozen;
COPY public.copied_frozen FROM PROGRAM 'seq 1 5000' WITH (FREEZE);
COMMIT";

#[test]
fn what_is_legal_is_silent() {
    let mut clinic = Clinic::with(LEGAL);
    let broken = "CREATE UNIQUE INDEX CONCURRENTLY doubled_id ON public.doubled (id)";
    let session = clinic
        .server()
        .connect("clinic")
        .expect("a session")
        .execute(broken);
    assert!(session.is_err(), "an invalid index is left");
    let path = clinic.path("public.doubled");
    let bulk = clinic.path("public.bulk");
    clinic.stop();
    // What bulk extension leaves behind the last row, as a crash in the middle of it does.
    let file = File::options().append(true).open(&bulk).expect("a file");
    std::io::Write::write_all(&mut &file, &[0; 16 * PAGE as usize]).expect("zeros");
    assert!(path.exists());
    let document = clinic.check(Level::Full);
    let loud = document
        .findings
        .iter()
        .filter(|own| own.severity != Severity::Note);
    assert_eq!(loud.collect::<Vec<_>>(), Vec::<&Finding>::new());
    assert_eq!(document.verdict, Verdict::Healthy);
}

/// What is committed after the last checkpoint of a cluster that crashes: pages of any age lie on
/// disk.
const WORK: &str = "\
INSERT INTO public.t_btree SELECT i, repeat('y', 200) FROM generate_series(2001, 4000) AS i;
UPDATE public.t_btree SET what = repeat('z', 200) WHERE ctid = '(29,1)';
DELETE FROM public.t_hash WHERE id > 300;
VACUUM public.t_hash;
CREATE TABLE public.t_new (id int PRIMARY KEY);
INSERT INTO public.t_new SELECT generate_series(1, 3000);
UPDATE public.t_gist SET what = 'short' WHERE at[0] < 100";

#[test]
fn after_a_crash_only_what_recovery_leaves_alone_is_damage() {
    let mut clinic = Clinic::with(TABLES);
    execute(clinic.server(), "CHECKPOINT");
    let (old, new) = (
        clinic.path("public.t_spgist"),
        clinic.path("public.t_btree"),
    );
    execute(clinic.server(), WORK);
    clinic.server.take().expect("it runs").kill();
    let document = clinic.check(Level::Full);
    assert!(document.needs_recovery);
    let loud = document
        .findings
        .iter()
        .filter(|own| own.severity != Severity::Note);
    assert_eq!(
        loud.collect::<Vec<_>>(),
        Vec::<&Finding>::new(),
        "recovery sets all right"
    );
    zero(&old, 3);
    // The last page before the checkpoint was written again since, as a whole.
    zero(&new, 29);
    let document = clinic.check(Level::Structure);
    let told = told(&document);
    let expected = ("zeroed-page".into(), "t_spgist".into(), Some(3), Some(32));
    assert_eq!(told, [expected], "WAL knows nothing of that page");
    truncate(&old, 10);
    let document = clinic.check(Level::Structure);
    assert_eq!(self::told(&document)[0].0, "file-truncated");
    assert_eq!(document.verdict, Verdict::Damaged);
}

/// A table whose key has a single leaf, which a record since the checkpoint changes.
const ONE_LEAF: &str = "\
CREATE TABLE public.one_leaf (id int PRIMARY KEY, what text);
INSERT INTO public.one_leaf SELECT i, repeat('v', 300) || i FROM generate_series(1, 300) AS i;
CHECKPOINT;
INSERT INTO public.one_leaf VALUES (5000, 'new')";

#[test]
fn after_a_crash_a_page_of_zeros_that_only_a_changed_leaf_names_is_not_checked() {
    let mut clinic = Clinic::of(Checksums::Off, ONE_LEAF);
    let path = clinic.path("public.one_leaf");
    clinic.server.take().expect("it runs").kill();
    let is_open = |document: &CheckDocument| {
        let mut open = document.coverage.not_checked.iter();
        open.any(|one| one.what.contains("block 3, which is all zeros") && !one.inherent)
    };
    assert!(!is_open(&clinic.check(Level::Structure)));
    zero(&path, 3);
    let document = clinic.check(Level::Structure);
    assert!(is_open(&document), "{:?}", document.coverage.not_checked);
    assert_ne!(document.verdict, Verdict::Healthy);
}

/// A table that grows after the checkpoint, with so few buffers that leaves which name new blocks
/// are in their file.
const GROWN: &str = "\
CREATE TABLE public.grown (id int PRIMARY KEY, what text);
INSERT INTO public.grown SELECT i, repeat('v', 300) || i FROM generate_series(1, 300) AS i;
CHECKPOINT;
INSERT INTO public.grown SELECT i, repeat('w', 300) || i FROM generate_series(301, 9000) AS i;
SELECT count(*) FROM public.t_bare";

/// Blocks that were added ahead of rows when the server went down: of some rows stand in WAL alone,
/// and in leaves that were written.
#[test]
fn after_a_crash_blocks_that_were_added_ahead_of_rows_are_legal() {
    for checksums in [Checksums::On, Checksums::Off] {
        let copy = copy_of(&seed(&server(18), checksums));
        let options = StartOptions::default().with("shared_buffers", "256kB");
        let options = options.with("autovacuum", "off");
        let mut server = copy.start_with(&options).expect("a server");
        execute(&server, TABLES);
        execute(&server, GROWN);
        let path = value(&server, "SELECT pg_relation_filepath('public.grown')");
        server.kill();
        let path = copy.pgdata.join(path);
        let file = File::options().write(true).open(path).expect("a file");
        let old = 300_u64.div_ceil(24) + 1;
        let blocks = file.metadata().expect("a length").len() / PAGE;
        file.set_len(old * PAGE).expect("as at the checkpoint");
        file.set_len((blocks + 16) * PAGE).expect("and zeros");
        let document = checked(&open(&copy.pgdata), Level::Structure);
        assert_eq!(told(&document), []);
        assert_eq!(open_questions(&document), Vec::<String>::new());
    }
}

#[test]
fn rows_of_many_pages_accuse_the_commit_log_and_one_page_itself() {
    let mut clinic = Clinic::with(TABLES);
    let statements = "SELECT count(*) FROM public.t_btree; SELECT count(*) FROM public.t_bare";
    execute(clinic.server(), statements);
    let xid = |table: &str| {
        let sql = format!("SELECT min(xmin::text::bigint) FROM public.{table}");
        value(clinic.server(), &sql)
            .parse::<u64>()
            .expect("a number")
    };
    let (first, last) = (xid("t_btree"), xid("t_bare"));
    assert!(first < last);
    clinic.stop();
    let path = clinic.copy.pgdata.join("pg_xact/0000");
    let mut log = std::fs::read(&path).expect("the log");
    // Both rolled back.
    for xid in [first, last] {
        let (at, shift) = (usize::try_from(xid / 4).expect("a byte"), xid % 4 * 2);
        log[at] = log[at] & !(3 << shift) | 2 << shift;
    }
    std::fs::write(&path, log).expect("a write");
    let document = clinic.check(Level::Structure);
    let roots = roots(&document);
    let [root] = roots.as_slice() else {
        panic!("{roots:?}");
    };
    assert_eq!(root.rule, "transaction-status-contradicted");
    assert_eq!(root.place.path, "pg_xact/0000");
    assert_eq!(root.place.bytes, Some([first / 4, last / 4 + 1]));
    assert!(
        document.relations.is_empty(),
        "no page is damaged: {:?}",
        document.relations
    );
}

/// Changes one table; the others, with their indexes and sequences, are as the checkpoint left
/// them.
const ELSEWHERE: &str =
    "INSERT INTO public.t_btree SELECT i, repeat('y', 200) FROM generate_series(2001, 4000) AS i";

/// Rule and relation of each damage.
fn damage(clinic: &Clinic, level: Level) -> Vec<(String, String)> {
    let findings = clinic.check(level).findings.into_iter();
    let loud = findings.filter(|finding| finding.severity != Severity::Note);
    loud.map(|own| (own.rule, own.place.relation.unwrap_or_default()))
        .collect()
}

#[test]
fn indexes_and_sequences_that_recovery_leaves_alone_are_as_in_a_stopped_cluster() {
    let mut clinic = Clinic::with(TABLES);
    execute(clinic.server(), "CREATE SEQUENCE public.counter");
    execute(clinic.server(), "CHECKPOINT");
    let names = ["t_hash_id", "t_gist_at", "t_brin_id", "counter"];
    let paths = names.map(|name| clinic.path(&format!("public.{name}")));
    let emptied = clinic.path("public.t_gin_parts");
    let changed = clinic.path("public.t_btree_id");
    execute(clinic.server(), ELSEWHERE);
    clinic.server.take().expect("it runs").kill();
    assert_eq!(damage(&clinic, Level::Full), [], "a crash is no damage");
    paths.iter().for_each(|path| zero(path, 0));
    truncate(&emptied, 0);
    // The last leaf is written again by recovery.
    zero(&changed, 4);
    let found = damage(&clinic, Level::Structure);
    let is_found = |name: &str| found.iter().any(|own| own.1 == name);
    assert!(names.iter().all(|name| is_found(name)), "{found:?}");
    assert!(is_found("t_gin_parts"), "{found:?}");
}

/// Rows against index entries, as of a stopped cluster.
#[test]
fn a_table_that_recovery_leaves_alone_is_compared_with_its_index() {
    let mut clinic = Clinic::with(TABLES);
    execute(
        clinic.server(),
        "CREATE INDEX t_long_id ON public.t_long (id)",
    );
    execute(clinic.server(), "CHECKPOINT");
    let resting = clinic.path("public.t_long");
    let changed = clinic.path("public.t_btree");
    execute(clinic.server(), ELSEWHERE);
    clinic.server.take().expect("it runs").kill();
    assert_eq!(damage(&clinic, Level::Full), [], "a crash is no damage");
    for path in [resting, changed] {
        // The first line pointer: its row is gone, and its index entry stays.
        let file = File::options().write(true).open(path).expect("its file");
        file.write_all_at(&[0; 4], 24)
            .expect("a line pointer zeroed");
    }
    let found = damage(&clinic, Level::Full);
    let of = |rule: &str, name: &str| found.contains(&(rule.into(), name.into()));
    assert!(of("index-entry-without-row", "t_long_id"), "{found:?}");
    assert!(
        !found.iter().any(|own| own.1.starts_with("t_btree_")),
        "{found:?}"
    );
}

/// The map of a table without an index is its only witness: `pg_class` says that there was one.
#[test]
fn a_map_that_is_gone_leaves_open_what_it_would_prove() {
    // From 18 on `pg_class` may hold restored statistics of a table that has no map yet.
    let mut clinic = Clinic::on(17, Checksums::On, TABLES);
    execute(clinic.server(), "VACUUM ANALYZE");
    // WAL that would know is gone.
    execute(clinic.server(), "SELECT pg_switch_wal()");
    execute(clinic.server(), "CHECKPOINT");
    let bare = clinic.path("public.t_bare");
    clinic.stop();
    let map = PathBuf::from(format!("{}_vm", bare.display()));
    std::fs::remove_file(map).expect("a map");
    let open_questions = |document: &CheckDocument| {
        let entries = document.coverage.not_checked.iter();
        let open = entries.filter(|own| !own.inherent && own.why.contains("the map is missing"));
        open.map(|own| own.what.clone()).collect::<Vec<_>>()
    };
    let sound = clinic.check(Level::Structure);
    assert_eq!(sound.verdict, Verdict::Healthy, "{:?}", told(&sound));
    zero(&bare, 3);
    let zeroed = clinic.check(Level::Structure);
    assert_eq!(zeroed.verdict, Verdict::Incomplete);
    assert_eq!(
        open_questions(&zeroed),
        ["1 all-zero pages of public.t_bare"]
    );
    truncate(&bare, 2);
    let truncated = clinic.check(Level::Structure);
    assert_eq!(truncated.verdict, Verdict::Incomplete);
    assert_eq!(
        open_questions(&truncated),
        ["blocks past the end, 2, of public.t_bare"]
    );
}

/// The index is the culprit, and not the table whose blocks it misses.
#[test]
fn an_index_file_of_another_index_accuses_itself() {
    let mut clinic = Clinic::with(
        "CREATE TABLE public.short AS SELECT i AS id, repeat('x', 200) AS what FROM generate_series(1, 1000) AS i;
         CREATE UNIQUE INDEX short_id ON public.short (id);
         CREATE TABLE public.long AS SELECT i * 7 + 3 AS id, repeat('x', 200) AS what FROM generate_series(1, 9000) AS i;
         CREATE UNIQUE INDEX long_id ON public.long (id)",
    );
    execute(clinic.server(), "VACUUM ANALYZE");
    let (short, long) = (
        clinic.path("public.short_id"),
        clinic.path("public.long_id"),
    );
    clinic.stop();
    std::fs::copy(long, short).expect("a copy");
    for level in [Level::Structure, Level::Full] {
        let document = clinic.check(level);
        let roots = roots(&document);
        let tables = roots
            .iter()
            .filter(|own| own.place.relation.as_deref() == Some("short"));
        assert_eq!(tables.count(), 0, "{roots:#?}");
        let names = |own: &&&Finding| own.rule == "index-entry-of-other-key";
        let index = roots.iter().find(names).expect("the index");
        assert_eq!(index.place.relation.as_deref(), Some("short_id"));
        let cures = document
            .plan
            .iter()
            .filter(|step| !step.relations.is_empty());
        let first = cures.map(|step| step.name.as_str()).next();
        assert_eq!(first, Some("reindex"), "{:#?}", document.plan);
    }
}
