//! Rows that are missing from pages which hold others, files that are another relation's, and large
//! objects: the entries of an index know. On healthy tables of every kind they say nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pgclinic_model::document::{Outcome, SalvageReport, TableAccount};
use pgclinic_servers::{Checksums, Installation, Server, Session, StopMode};
use pgclinic_spill::MemoryPlan;
use pgclinic_testkit::{TempCopy, all_majors, copy_of, seed, server};

use crate::common::{options, salvaged, session};

const PAGE: usize = 8192;

/// Every way in which line pointers and entries come to differ on a healthy cluster.
const CHURN: &[&str] = &[
    "CREATE SCHEMA w",
    "CREATE TABLE w.hot (id int PRIMARY KEY, n int, pad text) WITH (fillfactor = 70, autovacuum_enabled = off)",
    "INSERT INTO w.hot SELECT i, 0, repeat('x', 60) FROM generate_series(1, 4000) i",
    "UPDATE w.hot SET n = n + 1 WHERE id % 3 = 0",
    "UPDATE w.hot SET n = n + 1 WHERE id % 3 = 0",
    "SELECT count(*) FROM w.hot",
    "UPDATE w.hot SET n = n + 1 WHERE id % 5 = 0",
    "CREATE TABLE w.dead (id int PRIMARY KEY, u text UNIQUE) WITH (autovacuum_enabled = off, vacuum_index_cleanup = off)",
    "INSERT INTO w.dead SELECT i, md5(i::text) FROM generate_series(1, 5000) i",
    "DELETE FROM w.dead WHERE id % 4 = 0",
    "VACUUM w.dead",
    "UPDATE w.dead SET id = id + 100000 WHERE id % 7 = 0",
    "CREATE TABLE w.holes (id int PRIMARY KEY, word text) WITH (autovacuum_enabled = off)",
    "INSERT INTO w.holes SELECT i, repeat('y', i % 90) FROM generate_series(1, 6000) i",
    "DELETE FROM w.holes WHERE id % 3 = 1",
    "VACUUM w.holes",
    "INSERT INTO w.holes SELECT i, 'back' FROM generate_series(10001, 10500) i",
    "BEGIN; INSERT INTO w.holes SELECT i, 'never' FROM generate_series(20001, 20700) i; ROLLBACK",
    "DO $$ BEGIN FOR i IN 1..50 LOOP BEGIN INSERT INTO w.holes VALUES (2, 'refused'); EXCEPTION WHEN unique_violation THEN NULL; END; END LOOP; END $$",
    "INSERT INTO w.holes SELECT i % 40, 'conflict' FROM generate_series(1, 200) i ON CONFLICT DO NOTHING",
    "CREATE TABLE w.posting (k int, flag bool) WITH (autovacuum_enabled = off)",
    "CREATE INDEX posting_k ON w.posting (k)",
    "INSERT INTO w.posting SELECT i % 20, i % 2 = 0 FROM generate_series(1, 9000) i",
    "CREATE INDEX posting_odd ON w.posting (k) WHERE flag",
    "CREATE INDEX posting_half ON w.posting ((k / 2))",
    "DELETE FROM w.posting WHERE k = 3",
    "UPDATE w.posting SET k = k + 1 WHERE k > 15",
    "CREATE TABLE w.killed (id int PRIMARY KEY) WITH (autovacuum_enabled = off)",
    "INSERT INTO w.killed SELECT generate_series(1, 5000)",
    "DELETE FROM w.killed WHERE id BETWEEN 1000 AND 2000",
    "SET enable_seqscan = off; SELECT count(*) FROM w.killed WHERE id < 3000; SELECT count(*) FROM w.killed WHERE id < 3000",
    "CREATE TABLE w.partial (id int, word text) WITH (autovacuum_enabled = off)",
    "CREATE INDEX partial_id ON w.partial (id) WHERE id % 2 = 0",
    "INSERT INTO w.partial SELECT i, md5(i::text) FROM generate_series(1, 4000) i",
    "DELETE FROM w.partial WHERE id % 10 = 0",
    "VACUUM w.partial",
    "UPDATE w.partial SET word = 'new' WHERE id % 6 = 0",
    "CREATE TABLE w.hashed (word text) WITH (autovacuum_enabled = off); CREATE INDEX hashed_word ON w.hashed USING hash (word)",
    "CREATE TABLE w.placed (at point) WITH (autovacuum_enabled = off); CREATE INDEX placed_at ON w.placed USING gist (at)",
    "CREATE TABLE w.spaced (word text) WITH (autovacuum_enabled = off); CREATE INDEX spaced_word ON w.spaced USING spgist (word)",
    "CREATE TABLE w.tagged (tags int[]) WITH (autovacuum_enabled = off); CREATE INDEX tagged_tags ON w.tagged USING gin (tags)",
    "INSERT INTO w.hashed SELECT md5(i::text) FROM generate_series(1, 5000) i",
    "INSERT INTO w.placed SELECT point(i % 300, i / 7) FROM generate_series(1, 5000) i",
    "INSERT INTO w.spaced SELECT md5(i::text) FROM generate_series(1, 5000) i",
    "INSERT INTO w.tagged SELECT ARRAY[i, i % 9] FROM generate_series(1, 5000) i",
    "DELETE FROM w.hashed WHERE ctid::text LIKE '%3)'; DELETE FROM w.placed WHERE at[0] < 90; DELETE FROM w.spaced WHERE word < '4'; DELETE FROM w.tagged WHERE tags[1] < 2000",
    "VACUUM w.hashed",
    "VACUUM w.placed",
    "VACUUM w.spaced",
    "VACUUM w.tagged",
    "INSERT INTO w.hashed SELECT md5(i::text) FROM generate_series(7001, 8000) i; INSERT INTO w.placed SELECT point(i, i) FROM generate_series(1, 900) i",
    "INSERT INTO w.spaced SELECT md5(i::text) FROM generate_series(7001, 8000) i; DELETE FROM w.tagged WHERE tags[2] = 4",
    "CREATE TABLE w.invalid (id int, u int) WITH (autovacuum_enabled = off)",
    "INSERT INTO w.invalid SELECT i, i % 50 FROM generate_series(1, 2000) i",
    "CREATE INDEX CONCURRENTLY invalid_id ON w.invalid (id)",
    "CREATE TABLE w.typed (name name PRIMARY KEY, price numeric, at timestamptz, body text)",
    "INSERT INTO w.typed SELECT 'n' || i, i / 7.0, now(), repeat(md5(i::text), 20) FROM generate_series(1, 1500) i",
    "CREATE INDEX typed_more ON w.typed (price DESC, at) INCLUDE (body)",
    "ALTER TABLE w.typed ADD COLUMN later int DEFAULT 7; CREATE INDEX typed_later ON w.typed (later)",
    "CREATE TABLE w.empty (id int PRIMARY KEY)",
    "SELECT lo_from_bytea(0, convert_to(repeat('x', 9000 + i), 'UTF8')) FROM generate_series(1, 30) i",
    "SELECT lo_create(0); SELECT lo_unlink(min(oid)) FROM pg_largeobject_metadata",
];

/// What a crash leaves of work after the last checkpoint.
const MORE: &[&str] = &[
    "CHECKPOINT",
    "INSERT INTO w.hot SELECT i, 0, 'z' FROM generate_series(5001, 5400) i",
    "UPDATE w.hot SET n = n + 1 WHERE id % 4 = 0",
    "DELETE FROM w.holes WHERE id % 5 = 0",
    "VACUUM w.holes",
    "INSERT INTO w.holes SELECT i, 'more' FROM generate_series(30001, 30900) i",
    "DELETE FROM w.posting WHERE k % 4 = 1; VACUUM w.posting",
    "DELETE FROM w.killed WHERE id > 4000; VACUUM w.killed",
    "DELETE FROM w.hashed WHERE word > 'b'; VACUUM w.hashed",
    "DELETE FROM w.placed WHERE at[0] > 250; VACUUM w.placed",
    "INSERT INTO w.spaced SELECT md5(i::text) FROM generate_series(9001, 9900) i",
    "INSERT INTO w.partial SELECT i, 'p' FROM generate_series(5001, 5900) i; DELETE FROM w.partial WHERE id < 900; VACUUM w.partial",
    "SELECT lo_from_bytea(0, convert_to(repeat('y', 5000), 'UTF8')) FROM generate_series(1, 10)",
    "BEGIN; INSERT INTO w.empty SELECT generate_series(1, 100); ROLLBACK; INSERT INTO w.empty VALUES (1)",
    // No record that a server has begun crosses into a file that it has not made yet.
    "SELECT pg_switch_wal()",
];

fn run_all(session: &mut Session, work: &[&str]) {
    for sql in work {
        if sql.starts_with("VACUUM") || sql.contains("CONCURRENTLY") || !sql.contains("; VACUUM") {
            session
                .execute(sql)
                .unwrap_or_else(|error| panic!("{sql}: {error}"));
        } else {
            let (before, vacuum) = sql.rsplit_once("; ").expect("two statements");
            session
                .execute(before)
                .unwrap_or_else(|error| panic!("{before}: {error}"));
            session
                .execute(vacuum)
                .unwrap_or_else(|error| panic!("{vacuum}: {error}"));
        }
    }
}

/// A cluster, its files by relation, and how many rows its tables have.
struct Ward {
    copy: TempCopy,
    files: BTreeMap<String, String>,
    rows: BTreeMap<String, u64>,
}

const FILES: &str = "SELECT relname, pg_relation_filepath(oid) FROM pg_class \
    WHERE relkind IN ('r', 'i') AND (relnamespace = 'w'::regnamespace OR relname LIKE 'pg_largeobject%')";

impl Ward {
    fn new(
        installation: &Installation,
        checksums: Checksums,
        work: &[&str],
        stop: StopMode,
    ) -> Self {
        let copy = copy_of(&seed(installation, checksums));
        let mut running = copy.start().expect("a server");
        let mut ward = Ward {
            copy,
            files: BTreeMap::new(),
            rows: BTreeMap::new(),
        };
        ward.work(&running, work);
        running.stop(stop).expect("stopped");
        ward
    }

    fn work(&mut self, running: &Server, work: &[&str]) {
        let mut session = session(running, "postgres");
        run_all(&mut session, work);
        // An index that was given up while it was built.
        if work.iter().any(|sql| sql.contains("w.invalid")) {
            let build = "CREATE UNIQUE INDEX CONCURRENTLY invalid_u ON w.invalid (u)";
            assert!(session.execute(build).is_err());
        }
        for row in session.query(FILES).expect("files") {
            let [Some(name), Some(path)] = row.as_slice() else {
                panic!("{row:?}");
            };
            self.files.insert(name.clone(), path.clone());
        }
        for table in [
            "hot", "dead", "holes", "posting", "killed", "partial", "typed", "one", "two",
        ] {
            if self.files.contains_key(table) {
                let count = session.query_value(&format!("SELECT count(*) FROM w.{table}"));
                let count = count.expect("a count").expect("a count");
                self.rows
                    .insert(table.into(), count.parse().expect("a number"));
            }
        }
    }

    fn path(&self, relation: &str) -> PathBuf {
        self.copy
            .pgdata
            .join(self.files.get(relation).expect("a file"))
    }

    fn salvaged(&self) -> SalvageReport {
        self.salvaged_within(MemoryPlan::default())
    }

    fn salvaged_within(&self, memory: MemoryPlan) -> SalvageReport {
        let folder = tempfile::tempdir().expect("a directory");
        let mut options = options(&folder.path().join("out"), "csv");
        options.selection.databases = vec![pgclinic_model::Glob::new("postgres")];
        options.memory = memory;
        salvaged(&self.copy.pgdata, &options)
    }
}

fn table<'a>(account: &'a SalvageReport, name: &str) -> &'a TableAccount {
    let found = account.tables.iter().find(|table| table.table == name);
    found.unwrap_or_else(|| panic!("{name} in {account:#?}"))
}

/// A page as it was when it had so many line pointers less.
fn make_older(path: &Path, block: usize, fewer: usize) {
    let mut bytes = std::fs::read(path).expect("a file");
    let page = &mut bytes[block * PAGE..(block + 1) * PAGE];
    let lower = usize::from(u16::from_le_bytes([page[12], page[13]]));
    let items = (lower - 24) / 4 - fewer;
    let offset = |page: &[u8], item: usize| {
        let at = 24 + 4 * item;
        usize::from(u16::from_le_bytes([page[at], page[at + 1]]) & 0x7fff)
    };
    let upper = (0..items)
        .map(|item| offset(page, item))
        .min()
        .expect("items");
    page[24 + 4 * items..upper].fill(0);
    let new_lower = u16::try_from(24 + 4 * items).expect("small");
    page[12..14].copy_from_slice(&new_lower.to_le_bytes());
    page[14..16].copy_from_slice(&u16::try_from(upper).expect("small").to_le_bytes());
    std::fs::write(path, bytes).expect("written");
}

fn zero(path: &Path, block: usize) {
    let mut bytes = std::fs::read(path).expect("a file");
    bytes[block * PAGE..(block + 1) * PAGE].fill(0);
    std::fs::write(path, bytes).expect("written");
}

fn is_whole(ward: &Ward, what: &str) {
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Whole, "{what} {account:#?}");
    for (name, rows) in &ward.rows {
        assert_eq!(table(&account, name).rows.written, *rows, "{what} {name}");
    }
    let [objects] = account.large_objects.as_slice() else {
        panic!("{:?}", account.large_objects);
    };
    assert_eq!((objects.lost_objects, objects.lost_pages), (0, 0), "{what}");
}

#[test]
fn healthy_tables_of_every_kind_are_whole_stopped_and_crashed() {
    for installation in all_majors() {
        for checksums in [Checksums::On, Checksums::Off] {
            let what = format!("{} {checksums:?}", installation.major);
            let ward = Ward::new(&installation, checksums, CHURN, StopMode::Fast);
            is_whole(&ward, &what);
            let work = [CHURN, MORE].concat();
            let ward = Ward::new(&installation, checksums, &work, StopMode::Immediate);
            is_whole(&ward, &format!("{what} crashed"));
        }
    }
}

const SIMPLE: &[&str] = &[
    "CREATE SCHEMA w",
    "CREATE TABLE w.one (id int PRIMARY KEY, word text) WITH (autovacuum_enabled = off)",
    "INSERT INTO w.one SELECT i, md5(i::text) FROM generate_series(1, 2000) i",
    "CREATE TABLE w.two (id int PRIMARY KEY, word text) WITH (autovacuum_enabled = off)",
    "INSERT INTO w.two SELECT i, md5(i::text) FROM generate_series(50001, 53000) i",
    "CREATE TABLE w.listed (k int, word text) WITH (autovacuum_enabled = off); CREATE INDEX listed_k ON w.listed (k)",
    "INSERT INTO w.listed SELECT i % 30, md5(i::text) FROM generate_series(1, 2000) i",
    "CREATE TABLE w.hashed (word text) WITH (autovacuum_enabled = off); CREATE INDEX hashed_word ON w.hashed USING hash (word)",
    "INSERT INTO w.hashed SELECT md5(i::text) FROM generate_series(1, 2000) i",
    "CREATE TABLE w.placed (at point) WITH (autovacuum_enabled = off); CREATE INDEX placed_at ON w.placed USING gist (at)",
    "INSERT INTO w.placed SELECT point(i, i) FROM generate_series(1, 2000) i",
    "CREATE TABLE w.spaced (word text) WITH (autovacuum_enabled = off); CREATE INDEX spaced_word ON w.spaced USING spgist (word)",
    "INSERT INTO w.spaced SELECT md5(i::text) FROM generate_series(1, 2000) i",
    "SELECT lo_from_bytea(1000 + i, convert_to(repeat('x', 9000), 'UTF8')) FROM generate_series(1, 20) i",
    "CREATE TABLE w.empty (id int PRIMARY KEY)",
    "VACUUM ANALYZE",
];

fn simple() -> Ward {
    Ward::new(&server(15), Checksums::Off, SIMPLE, StopMode::Fast)
}

#[test]
fn rows_missing_from_a_page_that_holds_others_are_counted_by_the_key() {
    let ward = simple();
    make_older(&ward.path("one"), 1, 50);
    make_older(&ward.path("listed"), 0, 20);
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    let one = table(&account, "one");
    assert_eq!((one.rows.written, one.rows.lost), (1950, 50), "{one:#?}");
    let by = one.lost_by.first().expect("a witness");
    assert_eq!((by.witness.as_str(), by.exact), ("index-keys", true));
    assert_eq!(one.lost_keys.first().expect("a list").keys, 50);
    let listed = table(&account, "listed");
    assert_eq!(
        (listed.rows.written, listed.rows.lost),
        (1980, 20),
        "{listed:#?}"
    );
    assert!(table(&account, "two").is_whole());
}

#[test]
fn entries_of_other_access_methods_count_rows_that_are_missing() {
    let ward = simple();
    make_older(&ward.path("hashed"), 0, 10);
    make_older(&ward.path("placed"), 1, 11);
    make_older(&ward.path("spaced"), 2, 12);
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    for (name, lost) in [("hashed", 10), ("placed", 11), ("spaced", 12)] {
        let own = table(&account, name);
        assert_eq!(
            (own.rows.written, own.rows.lost),
            (2000 - lost, lost),
            "{own:#?}"
        );
    }
}

#[test]
fn a_line_pointer_that_is_free_is_no_place_for_an_entry() {
    let ward = simple();
    let path = ward.path("two");
    let mut bytes = std::fs::read(&path).expect("a file");
    // LP_UNUSED has no length and no offset.
    bytes[2 * PAGE + 24 + 4 * 5..2 * PAGE + 24 + 4 * 8].fill(0);
    std::fs::write(&path, bytes).expect("written");
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    let two = table(&account, "two");
    assert_eq!(two.rows.written + two.rows.lost, 3000, "{two:#?}");
}

#[test]
fn a_copy_of_another_tables_file_is_named_and_its_own_rows_are_lost() {
    let ward = simple();
    std::fs::copy(ward.path("two"), ward.path("one")).expect("copied");
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    let one = table(&account, "one");
    assert_eq!((one.rows.written, one.rows.lost), (3000, 2000), "{one:#?}");
    let [place] = one.places.as_slice() else {
        panic!("{one:#?}");
    };
    assert!(
        place.why.contains("is a copy of that of w.two"),
        "{place:?}"
    );
    assert!(table(&account, "two").is_whole());
}

#[test]
fn files_that_were_exchanged_leave_the_question() {
    let ward = simple();
    let [one, two] = ["one", "two"].map(|name| ward.path(name));
    let bytes = std::fs::read(&one).expect("a file");
    std::fs::copy(&two, &one).expect("copied");
    std::fs::write(&two, bytes).expect("written");
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    for index in ["w.one_pkey", "w.two_pkey"] {
        let words = format!("entries of {index} have other keys than the rows");
        assert!(is_told(&account, &words), "{account:#?}");
    }
    assert!(!is_told(&account, "can be read whole"), "{account:#?}");
}

#[test]
fn an_index_of_another_table_does_not_accuse_a_sound_one() {
    let ward = simple();
    std::fs::copy(ward.path("two_pkey"), ward.path("one_pkey")).expect("copied");
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    let one = table(&account, "one");
    assert!(one.is_whole() && one.rows.lost == 0, "{one:#?}");
    let words = "the file of w.one_pkey is a copy of that of w.two_pkey";
    assert!(is_told(&account, words), "{account:#?}");
}

fn is_told(account: &SalvageReport, words: &str) -> bool {
    account
        .not_salvaged
        .iter()
        .any(|gap| gap.why.contains(words))
}

#[test]
fn a_page_of_zeros_that_no_index_can_be_asked_about_is_incomplete() {
    let work = [
        "CREATE SCHEMA w",
        "CREATE TABLE w.one (id int PRIMARY KEY, word text)",
        "INSERT INTO w.one SELECT i, repeat('v', 300) || i FROM generate_series(1, 300) i",
        "CHECKPOINT",
        "INSERT INTO w.one VALUES (5000, 'new')",
    ];
    let ward = Ward::new(&server(15), Checksums::Off, &work, StopMode::Immediate);
    assert_eq!(ward.salvaged().outcome, Outcome::Whole);
    zero(&ward.path("one"), 3);
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    assert!(
        account
            .not_salvaged
            .iter()
            .any(|gap| gap.why.contains("block 3 is all zeros"))
    );
}

#[test]
fn pages_of_large_objects_are_missed_by_their_index() {
    let of = |ward: &Ward| {
        let account = ward.salvaged();
        assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
        let objects = account.large_objects.first().expect("objects").clone();
        // A hundred keys have no room there at once.
        let small = ward.salvaged_within(MemoryPlan::new(16 << 10));
        let counted = small.large_objects.first().expect("objects");
        let lost = (objects.lost_objects, objects.lost_pages);
        assert_eq!((counted.lost_objects, counted.lost_pages), lost);
        lost
    };
    let ward = simple();
    let file = ward.path("pg_largeobject");
    let bytes = std::fs::read(&file).expect("a file");
    // 9,000 bytes are five pages of 2,048.
    std::fs::write(&file, "").expect("emptied");
    assert_eq!(of(&ward), (20, 100));
    std::fs::remove_file(&file).expect("removed");
    assert_eq!(of(&ward), (20, 100));
    std::fs::write(&file, &bytes).expect("written");
    make_older(&file, 0, 1);
    assert_eq!(of(&ward), (1, 1));
    std::fs::write(&file, &bytes).expect("written");
    let metadata = ward.path("pg_largeobject_metadata");
    let rows = std::fs::read(&metadata).expect("a file");
    std::fs::write(&metadata, "").expect("emptied");
    assert_eq!(of(&ward), (20, 0));
    std::fs::write(&metadata, rows).expect("written");
    assert_eq!(ward.salvaged().outcome, Outcome::Whole);
    std::fs::remove_file(&file).expect("removed");
    std::fs::create_dir(&file).expect("a directory in its place");
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
}

/// An index that nobody filled is as empty as a table that lost everything, and says nothing of it.
#[test]
fn what_is_emptied_together_with_its_index_is_no_empty_table() {
    let emptied = |table: &str, index: &str| {
        let ward = simple();
        std::fs::write(ward.path(table), "").expect("emptied");
        std::fs::copy(ward.path("empty_pkey"), ward.path(index)).expect("a copy");
        ward
    };
    let ward = emptied("one", "one_pkey");
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    assert!(table(&account, "one").rows.lost > 1000, "{account:#?}");
    // Without the map, the pages that pg_class counts of the index are left.
    std::fs::remove_file(format!("{}_vm", ward.path("one").display())).expect("a map");
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Incomplete, "{account:#?}");
    let account = emptied("pg_largeobject", "pg_largeobject_loid_pn_index").salvaged();
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
}

/// The header says that the page is empty; all its bytes are there.
fn empty_header(path: &Path, block: usize) {
    let mut bytes = std::fs::read(path).expect("a file");
    let at = block * PAGE;
    bytes[at + 12..at + 14].copy_from_slice(&24u16.to_le_bytes());
    bytes[at + 14..at + 16].copy_from_slice(&8192u16.to_le_bytes());
    std::fs::write(path, bytes).expect("written");
}

#[test]
fn rows_of_a_page_that_says_it_is_empty_are_found_by_their_structure() {
    let work = [
        "CREATE SCHEMA w",
        "CREATE TABLE w.one (id int, word text) WITH (autovacuum_enabled = off)",
        "INSERT INTO w.one SELECT i, md5(i::text) FROM generate_series(1, 2000) i",
        "CREATE TABLE w.two (id int PRIMARY KEY, word text) WITH (autovacuum_enabled = off)",
        "INSERT INTO w.two SELECT i, md5(i::text) FROM generate_series(1, 2000) i",
        // Pages on which nothing lives, with all that VACUUM leaves of rows on them.
        "CREATE TABLE w.dead (id int, word text) WITH (autovacuum_enabled = off)",
        "INSERT INTO w.dead SELECT i, md5(i::text) FROM generate_series(1, 2000) i",
        "DELETE FROM w.dead WHERE id < 1900; VACUUM w.dead",
    ];
    let ward = Ward::new(&server(15), Checksums::Off, &work, StopMode::Fast);
    assert_eq!(ward.salvaged().outcome, Outcome::Whole);
    empty_header(&ward.path("one"), 2);
    empty_header(&ward.path("two"), 3);
    let account = ward.salvaged();
    assert_eq!(account.outcome, Outcome::Damaged, "{account:#?}");
    for name in ["one", "two"] {
        let own = table(&account, name);
        let rows = &own.rows;
        assert_eq!((rows.written, rows.lost), (2000, 0), "{own:#?}");
        assert!(rows.carved > 100 && rows.suspect == rows.carved, "{own:#?}");
    }
    assert!(table(&account, "dead").is_whole());
}
