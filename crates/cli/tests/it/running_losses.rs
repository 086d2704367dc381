//! Pages that a table lost while its server runs: what indexes know, believed only where no change
//! waits in the server's memory.

use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_format::build::{put_u16, seal_page};
use pgclinic_model::{CheckDocument, Severity, Verdict};
use pgclinic_servers::{Checksums, Server, Session, StartOptions};
use pgclinic_testkit::{busy, catch_up, copy_of, seed, standby, started};

use crate::common::{pgclinic, text, told};

const PAGE: u64 = 8192;

/// Some tables of 172 blocks with 58 rows each.
fn filled(session: &mut Session, tables: &[&str]) {
    for table in tables {
        let make = format!("CREATE TABLE public.{table} (id int PRIMARY KEY, what text)");
        let fill = format!(
            "INSERT INTO public.{table} SELECT g, repeat('x', 100) FROM generate_series(1, 10000) AS g"
        );
        session.execute(&make).expect("a table");
        session.execute(&fill).expect("rows");
    }
}

fn file_of(session: &mut Session, pgdata: &Path, table: &str) -> std::fs::File {
    let sql = format!("SELECT pg_relation_filepath('public.{table}')");
    let path = session.query_value(&sql).expect("a path").expect("a file");
    let mut options = std::fs::File::options();
    options
        .read(true)
        .write(true)
        .open(pgdata.join(path))
        .expect("its file")
}

fn zero(file: &std::fs::File, block: u64) {
    file.write_all_at(&[0; 8192], block * PAGE).expect("zeroed");
}

/// Takes all rows off the page; its checksum, where it has one, is right.
fn empty(file: &std::fs::File, block: u32) {
    let (mut page, at) = (vec![0; 8192], u64::from(block) * PAGE);
    file.read_exact_at(&mut page, at).expect("a page");
    page[24..].fill(0);
    put_u16(&mut page, 12, 24);
    put_u16(&mut page, 14, 8192);
    if page[8..10] != [0, 0] {
        seal_page(&mut page, block);
    }
    file.write_all_at(&page, at).expect("emptied");
}

fn checked(pgdata: &Path, more: &[&str]) -> CheckDocument {
    let words = ["check", text(pgdata), "--format", "json"];
    pgclinic(&[&words, more].concat()).document()
}

fn rules(document: &CheckDocument) -> Vec<(&str, &str, Option<u64>)> {
    let own = document.findings.iter();
    let own = own.map(|finding| {
        let relation = finding.place.relation.as_deref();
        (
            &*finding.rule,
            relation.unwrap_or_default(),
            finding.at_risk.rows,
        )
    });
    own.collect()
}

fn lost_pages_are_found(major: u16, checksums: Checksums) {
    let (copy, server) = started(major, checksums, &busy());
    let mut session = server.connect("clinic").expect("a session");
    filled(&mut session, &["emptied", "shorter", "zeroed", "whole"]);
    session.execute("CHECKPOINT").expect("a checkpoint");
    // Pages that VACUUM empties reach the disk before the index's.
    let delete = "DELETE FROM public.whole WHERE id % 400 < 300";
    session.execute(delete).expect("deleted");
    session.execute("VACUUM public.whole").expect("emptied");
    empty(&file_of(&mut session, &copy.pgdata, "emptied"), 100);
    zero(&file_of(&mut session, &copy.pgdata, "zeroed"), 100);
    let shorter = file_of(&mut session, &copy.pgdata, "shorter");
    shorter.set_len(PAGE * 150).expect("truncated");
    let document = checked(&copy.pgdata, &[]);
    let expected = [
        ("emptied-page", "emptied", Some(58)),
        ("file-truncated", "shorter", Some(10_000 - 150 * 58)),
        ("zeroed-page", "zeroed", Some(58)),
    ];
    let mut found = rules(&document);
    found.sort_unstable();
    assert_eq!(found, expected, "{}", told(&document));
    assert_eq!(document.verdict, Verdict::Damaged);
    // Not through the network either, where it reads the same files.
    let url = url_of(&server);
    let far = pgclinic(&["check", &url, "--level", "structure", "--format", "json"]).document();
    let mut found = rules(&far);
    found.sort_unstable();
    assert_eq!(found, expected, "{}", told(&far));
}

fn url_of(server: &Server) -> String {
    let socket = text(server.socket_folder());
    format!("postgres://postgres@:5432/postgres?host={socket}")
}

#[test]
fn lost_pages_are_found_on_13() {
    lost_pages_are_found(13, Checksums::Off);
}

#[test]
fn lost_pages_are_found_on_18() {
    lost_pages_are_found(18, Checksums::On);
}

/// A table without indexes has only its visibility map; what was written to a page since the last
/// checkpoint may wait in memory.
#[test]
fn the_visibility_map_is_a_witness_too() {
    let (copy, mut server) = started(15, Checksums::Off, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    for table in ["marked", "cut", "newer"] {
        let make = format!(
            "CREATE TABLE public.{table} AS SELECT g AS id, repeat('x', 100) AS what FROM generate_series(1, 10000) AS g"
        );
        session.execute(&make).expect("a table");
        let vacuum = format!("VACUUM public.{table}");
        session.execute(&vacuum).expect("marked");
    }
    session.execute("CHECKPOINT").expect("a checkpoint");
    zero(&file_of(&mut session, &copy.pgdata, "marked"), 100);
    let cut = file_of(&mut session, &copy.pgdata, "cut");
    cut.set_len(PAGE * 150).expect("truncated");
    let change = "UPDATE public.newer SET what = 'y' WHERE ctid = '(100,1)'";
    session.execute(change).expect("a change");
    zero(&file_of(&mut session, &copy.pgdata, "newer"), 100);
    let expected = [
        ("file-truncated", "cut"),
        ("zeroed-page-marked-visible", "marked"),
    ];
    let document = checked(&copy.pgdata, &[]);
    let mut found: Vec<_> = rules(&document)
        .into_iter()
        .map(|(rule, table, _)| (rule, table))
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected, "{}", told(&document));
    server.kill();
    let document = checked(&copy.pgdata, &[]);
    let found = rules(&document);
    for (rule, table) in expected {
        let is_found = found.iter().any(|own| (own.0, own.1) == (rule, table));
        assert!(is_found, "after a crash: {}", told(&document));
    }
    assert!(
        found.iter().all(|own| own.1 != "newer"),
        "{}",
        told(&document)
    );
}

/// Whether a change waits in memory stands in WAL that is not there.
#[test]
fn a_loss_under_missing_wal_is_open() {
    let (copy, server) = started(15, Checksums::On, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    filled(&mut session, &["unknown"]);
    session.execute("CHECKPOINT").expect("a checkpoint");
    zero(&file_of(&mut session, &copy.pgdata, "unknown"), 100);
    let name = "SELECT pg_walfile_name(redo_lsn) FROM pg_control_checkpoint()";
    let name = session.query_value(name).expect("a name").expect("a file");
    let segment = copy.pgdata.join("pg_wal").join(name);
    let elsewhere = copy.pgdata.with_extension("segment");
    std::fs::rename(&segment, &elsewhere).expect("moved");
    let document = checked(&copy.pgdata, &[]);
    std::fs::rename(&elsewhere, &segment).expect("moved back");
    assert_ne!(document.verdict, Verdict::Healthy, "{}", told(&document));
    let gaps = &document.coverage.not_checked;
    let is_open = gaps
        .iter()
        .any(|gap| gap.what.contains("pages are missing") && !gap.inherent);
    assert!(is_open, "{gaps:?} {}", told(&document));
}

/// A server that keeps in memory what it has changed until a checkpoint.
fn roomy() -> StartOptions {
    let roomy = StartOptions::default().with("shared_buffers", "64MB");
    roomy
        .with("autovacuum", "off")
        .with("bgwriter_lru_maxpages", "0")
}

/// The content of a page that was made since the last checkpoint stands in WAL: a recovery brings
/// it.
#[test]
fn pages_that_wait_in_memory_are_no_loss() {
    let (copy, server) = started(17, Checksums::On, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    session.execute("CHECKPOINT").expect("a checkpoint");
    filled(&mut session, &["fresh"]);
    zero(&file_of(&mut session, &copy.pgdata, "fresh"), 3);
    let document = checked(&copy.pgdata, &[]);
    assert_eq!(rules(&document), [], "{}", told(&document));
}

/// All entries that lead to the page were written again since the checkpoint: only another
/// checkpoint tells.
#[test]
fn a_loss_that_memory_may_hide_is_open_until_a_checkpoint() {
    let (copy, server) = started(16, Checksums::On, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    filled(&mut session, &["hidden"]);
    session.execute("CHECKPOINT").expect("a checkpoint");
    // Every leaf gets an entry, and block 100 keeps its rows.
    let touch = "UPDATE public.hidden SET what = 'y' WHERE id % 20 = 0 AND ctid NOT IN \
                 (SELECT ctid FROM public.hidden WHERE ctid >= '(100,0)' AND ctid < '(101,0)')";
    session.execute(touch).expect(touch);
    zero(&file_of(&mut session, &copy.pgdata, "hidden"), 100);
    let document = checked(&copy.pgdata, &[]);
    assert_eq!(rules(&document), [], "{}", told(&document));
    assert_eq!(document.verdict, Verdict::Incomplete, "{}", told(&document));
    let gaps = &document.coverage.not_checked;
    let is_open = gaps
        .iter()
        .any(|gap| gap.what.contains("block 100 is all zero") && !gap.inherent);
    assert!(is_open, "{gaps:?}");
    let refused = pgclinic(&["check", text(&copy.pgdata), "--checkpoint"]);
    assert_eq!(refused.exit, 2, "{}", refused.err);
    let url = url_of(&server);
    let settled = checked(&copy.pgdata, &["--server", &url, "--checkpoint"]);
    // The server had the page in memory, and the checkpoint has written it.
    assert_eq!(rules(&settled), [], "{}", told(&settled));
    assert_eq!(settled.verdict, Verdict::Healthy, "{}", told(&settled));
    let sql = "SELECT count(*) FROM public.hidden";
    let rows = session.query_value(sql).expect("all of them");
    assert_eq!(rows.as_deref(), Some("10000"));
}

/// VACUUM gives blocks back at once, while the cleaned leaves of the index wait in memory: what
/// lies on the disk still leads to the blocks.
#[test]
fn blocks_that_vacuum_gave_back_are_no_loss() {
    let (copy, server) = started(15, Checksums::On, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    filled(&mut session, &["given_back", "grown_again"]);
    session.execute("CHECKPOINT").expect("a checkpoint");
    for table in ["given_back", "grown_again"] {
        let delete = format!("DELETE FROM public.{table} WHERE id > 5000");
        session.execute(&delete).expect("deleted");
        let vacuum = format!("VACUUM public.{table}");
        session.execute(&vacuum).expect("shorter");
    }
    let again = "INSERT INTO public.grown_again SELECT g, repeat('z', 100) FROM generate_series(6000, 8000) AS g";
    session.execute(again).expect("longer again");
    for level in ["structure", "full"] {
        let document = checked(&copy.pgdata, &["--level", level]);
        assert_eq!(rules(&document), [], "{level}: {}", told(&document));
        assert_eq!(document.verdict, Verdict::Healthy, "{}", told(&document));
    }
    // Records tell how far both files reach since.
    for (table, blocks) in [("given_back", 70), ("grown_again", 95)] {
        let file = file_of(&mut session, &copy.pgdata, table);
        file.set_len(PAGE * blocks).expect("truncated");
        let document = checked(&copy.pgdata, &[]);
        assert_ne!(document.verdict, Verdict::Healthy, "{}", told(&document));
        let mut told_of = rules(&document).into_iter().map(|own| own.1);
        let gaps = &document.coverage.not_checked;
        let is_open = gaps.iter().any(|gap| gap.what.contains("are missing"));
        assert!(told_of.any(|own| own == table) || is_open, "{gaps:?}");
        file.set_len(PAGE * 170).expect("longer");
    }
}

/// Takes the first row of block 100 away, as a flipped page write would: its index entry stays.
fn take_a_row(file: &std::fs::File) {
    let first_line_pointer = 100 * PAGE + 24;
    file.write_all_at(&[0; 4], first_line_pointer)
        .expect("a line pointer zeroed");
}

/// Rows and index entries of a table that no record since the last checkpoint touches agree with
/// each other.
#[test]
fn a_row_that_only_its_index_knows_is_found_at_full() {
    let (copy, server) = started(15, Checksums::Off, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    filled(&mut session, &["robbed", "whole"]);
    session.execute("CHECKPOINT").expect("a checkpoint");
    take_a_row(&file_of(&mut session, &copy.pgdata, "robbed"));
    let document = checked(&copy.pgdata, &["--level", "full"]);
    let expected = [("index-entry-without-row", "robbed_pkey", Some(1))];
    assert_eq!(rules(&document), expected, "{}", told(&document));
    assert_eq!(document.verdict, Verdict::Damaged);
}

/// The server changed the table: what its files lack may be in memory, until a checkpoint has
/// written it.
#[test]
fn rows_that_wait_in_memory_are_not_compared() {
    let (copy, server) = started(18, Checksums::Off, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    filled(&mut session, &["pending"]);
    session.execute("CHECKPOINT").expect("a checkpoint");
    let change = "UPDATE public.pending SET id = -id WHERE ctid >= '(100,0)' AND ctid < '(101,0)'";
    session.execute(change).expect(change);
    take_a_row(&file_of(&mut session, &copy.pgdata, "pending"));
    let document = checked(&copy.pgdata, &["--level", "full"]);
    assert_eq!(rules(&document), [], "{}", told(&document));
    let gaps = &document.coverage.not_checked;
    let is_named = |gap: &pgclinic_model::document::NotChecked| {
        gap.what.starts_with("rows against index entries") && gap.what.contains(" of ")
    };
    assert!(gaps.iter().any(is_named), "{gaps:?}");
    let more = [
        "--level",
        "full",
        "--server",
        &url_of(&server),
        "--checkpoint",
    ];
    let settled = checked(&copy.pgdata, &more);
    assert_eq!(rules(&settled), [], "{}", told(&settled));
    assert_eq!(settled.verdict, Verdict::Healthy, "{}", told(&settled));
}

/// The file of an unlogged table is made with it, though no checkpoint writes its pages; on a
/// standby there never is one.
#[test]
fn the_missing_file_of_an_unlogged_table_is_damage_but_on_a_standby() {
    let options = busy()
        .with("wal_level", "replica")
        .with("max_wal_senders", "4");
    let (copy, server) = started(15, Checksums::Off, &options);
    let mut session = server.connect("clinic").expect("a session");
    let make = "CREATE UNLOGGED TABLE public.fleeting AS SELECT generate_series(1, 3000) AS id";
    session.execute(make).expect("a table");
    let follower = copy_of(&seed(&pgclinic_testkit::server(15), Checksums::Off));
    let standby = standby(&follower, &server, busy());
    catch_up(&mut session, &standby);
    for level in ["structure", "full"] {
        let document = checked(standby.pgdata(), &["--level", level]);
        assert_eq!(rules(&document), [], "{}", told(&document));
        let document = checked(&copy.pgdata, &["--level", level]);
        assert_eq!(rules(&document), [], "{}", told(&document));
    }
    let sql = "SELECT pg_relation_filepath('public.fleeting')";
    let path = session.query_value(sql).expect("a path").expect("a file");
    std::fs::remove_file(copy.pgdata.join(path)).expect("removed");
    for level in ["structure", "full"] {
        let document = checked(&copy.pgdata, &["--level", level]);
        let expected = [("missing-file", "fleeting", None)];
        assert_eq!(rules(&document), expected, "{}", told(&document));
        assert_eq!(document.verdict, Verdict::Damaged);
    }
}

/// The row of a new database waits in the server's memory, and stands in WAL.
#[test]
fn the_text_of_a_database_without_a_checkpoint_is_judged() {
    let (copy, server) = started(15, Checksums::On, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    let make = "CREATE DATABASE shop STRATEGY wal_log";
    session.execute(make).expect(make);
    let mut shop = server.connect("shop").expect("a session");
    filled(&mut shop, &["sold"]);
    let document = checked(&copy.pgdata, &["--level", "full"]);
    let gaps = &document.coverage.not_checked;
    let is_unknown = gaps.iter().any(|gap| gap.what.starts_with("text of"));
    assert!(!is_unknown, "{gaps:?}");
    assert_eq!(document.verdict, Verdict::Healthy, "{}", told(&document));
}

/// Indexes of all kinds over rows enough for some pages each.
const INDEXED: &str = "\
CREATE TABLE public.indexed AS SELECT i AS id, point(i, i) AS at, ARRAY[i % 7, i] AS parts FROM generate_series(1, 20000) AS i;
CREATE INDEX i_btree ON public.indexed (id);
CREATE INDEX i_hash ON public.indexed USING hash (id);
CREATE INDEX i_gist ON public.indexed USING gist (at);
CREATE INDEX i_spgist ON public.indexed USING spgist (at);
CREATE INDEX i_gin ON public.indexed USING gin (parts);
CREATE INDEX i_brin ON public.indexed USING brin (id) WITH (pages_per_range = 1);
CREATE SEQUENCE public.counter";

/// The relations in which a look at their structure finds damage.
fn found_at_structure(pgdata: &Path) -> Vec<String> {
    let document = checked(pgdata, &["--level", "structure"]);
    let damage = document.findings.iter();
    let damage = damage.filter(|finding| finding.severity == Severity::Damage);
    let mut names: Vec<String> = damage
        .map(|own| own.place.relation.clone().unwrap_or_default())
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Pages of indexes and sequences that no record since the last checkpoint touches are in their
/// files as the server knows them.
#[test]
fn pages_that_indexes_and_sequences_lost_are_found_at_structure() {
    let (copy, server) = started(15, Checksums::Off, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    for statement in INDEXED.split(';') {
        session.execute(statement).expect(statement);
    }
    session.execute("CHECKPOINT").expect("a checkpoint");
    assert_eq!(found_at_structure(&copy.pgdata), [""; 0]);
    let hurt = [
        ("i_btree", 4),
        ("i_hash", 3),
        ("i_gist", 2),
        ("i_spgist", 1),
        ("i_gin", 3),
        ("i_brin", 1),
        ("counter", 0),
    ];
    for (relation, block) in hurt {
        zero(&file_of(&mut session, &copy.pgdata, relation), block);
    }
    let found = found_at_structure(&copy.pgdata);
    for (relation, _) in hurt {
        let is_found = found.iter().any(|own| own == relation);
        assert!(is_found, "{relation}: {found:?}");
    }
}

#[test]
fn indexes_that_are_too_short_are_found_at_structure() {
    let (copy, server) = started(15, Checksums::Off, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    for statement in INDEXED.split(';') {
        session.execute(statement).expect(statement);
    }
    session.execute("CHECKPOINT").expect("a checkpoint");
    let hurt = [
        ("i_btree", 5),
        ("i_spgist", 10),
        ("i_gist", 5),
        ("i_gin", 0),
        ("i_hash", 0),
        ("counter", 0),
    ];
    for (relation, blocks) in hurt {
        let file = file_of(&mut session, &copy.pgdata, relation);
        file.set_len(blocks * PAGE).expect("truncated");
    }
    let found = found_at_structure(&copy.pgdata);
    for (relation, _) in hurt {
        let is_found = found.iter().any(|own| own == relation);
        assert!(is_found, "{relation}: {found:?}");
    }
}

/// New pages of an index may be zero until they are written.
#[test]
fn new_pages_of_indexes_wait_in_memory() {
    let (copy, server) = started(17, Checksums::On, &roomy());
    let mut session = server.connect("clinic").expect("a session");
    for statement in INDEXED.split(';') {
        session.execute(statement).expect(statement);
    }
    session.execute("CHECKPOINT").expect("a checkpoint");
    let more = "INSERT INTO public.indexed SELECT i, point(i, i), ARRAY[i % 7, i] FROM generate_series(20001, 40000) AS i";
    session.execute(more).expect("more rows");
    session
        .execute("SELECT nextval('public.counter')")
        .expect("a number");
    let document = checked(&copy.pgdata, &["--level", "structure"]);
    assert_eq!(rules(&document), [], "{}", told(&document));
    assert_eq!(document.verdict, Verdict::Healthy, "{}", told(&document));
}
