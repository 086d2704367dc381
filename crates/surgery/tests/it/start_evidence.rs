//! What a plan for a start rests on: pages that lie far ahead, the status of transactions, relation
//! maps, tablespaces. On real servers, which then show what was there.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

use pgclinic_format::Lsn;
use pgclinic_format::build::{put_bytes, seal_page};
use pgclinic_model::plan::Safety;
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_surgery::start_again::StartPlan;
use pgclinic_surgery::undo;
use pgclinic_testkit::{TempCopy, copy_of, execute, run_as, seed, server, value};

use crate::start_again::{carry_out, contents, plan};

const PAGE: usize = 8192;
/// 3 TiB of WAL.
const FAR: u64 = 3 << 40;

/// A cluster with a table, after a shutdown; and the path of the table.
fn stopped(checksums: Checksums, sql: &[&str]) -> (TempCopy, String) {
    let copy = copy_of(&seed(&server(15), checksums));
    let mut running = copy.start().expect("a server");
    execute(
        &running,
        "CREATE TABLE plain AS SELECT g AS id, repeat('x', 90) AS body FROM generate_series(1, 3000) g",
    );
    sql.iter().for_each(|sql| execute(&running, sql));
    let path = value(&running, "SELECT pg_relation_filepath('plain')");
    running.stop(StopMode::Fast).expect("an end");
    (copy, path)
}

fn remove_wal(pgdata: &Path) {
    let entries = fs::read_dir(pgdata.join("pg_wal")).expect("a directory");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.filter(|path| path.is_file());
    files.for_each(|path| fs::remove_file(path).expect("a segment"));
}

fn opened(path: &Path) -> fs::File {
    let mut options = fs::OpenOptions::new();
    let file = options.read(true).write(true).open(path);
    file.expect("a table")
}

/// The LSN of some pages, with the checksum that fits; or without it.
fn change_lsn(pgdata: &Path, path: &str, blocks: &[u32], lsn: u64, checksums: Checksums) {
    let file = opened(&pgdata.join(path));
    for block in blocks {
        let at = u64::from(*block) * PAGE as u64;
        let mut page = [0; PAGE];
        file.read_exact_at(&mut page, at).expect("a page");
        let words = [
            ((lsn >> 32) as u32).to_le_bytes(),
            (lsn as u32).to_le_bytes(),
        ];
        put_bytes(&mut page, 0, &words.concat());
        if checksums == Checksums::On {
            seal_page(&mut page, *block);
        }
        file.write_all_at(&page, at).expect("written");
    }
}

/// Everything that the plan says, in one text.
fn words(plan: &StartPlan) -> String {
    let cures = plan.cures.iter();
    let all = cures.flat_map(|cure| cure.evidence.iter().chain(&cure.warnings).cloned());
    all.collect::<Vec<_>>().join("\n")
}

fn carried_out(pgdata: &Path) -> (StartPlan, tempfile::TempDir) {
    let plan = plan(pgdata).expect("a plan");
    let journals = tempfile::tempdir().expect("a directory");
    carry_out(pgdata, &plan, &journals.path().join("journal"));
    (plan, journals)
}

#[test]
fn a_page_far_ahead_whose_checksum_is_right_moves_the_new_wal() {
    let (copy, path) = stopped(Checksums::On, &[]);
    change_lsn(&copy.pgdata, &path, &[3], FAR, Checksums::On);
    remove_wal(&copy.pgdata);
    let (plan, _journals) = carried_out(&copy.pgdata);
    assert_eq!(
        plan.cures[0].safety,
        Safety::Lossy,
        "a page is younger than the checkpoint"
    );
    let said = words(&plan);
    let place = format!("after the largest LSN of a page, {} at {path}:3", Lsn(FAR));
    assert!(said.contains(&place), "{said}");
    let mut running = copy.start().expect("a server");
    execute(&running, "UPDATE plain SET body = ''");
    execute(&running, "CHECKPOINT");
    assert_eq!(value(&running, "SELECT count(*) FROM plain"), "3000");
    running.stop(StopMode::Fast).expect("an end");
}

#[test]
fn a_damaged_lsn_is_named_and_does_not_move_the_new_wal() {
    for checksums in [Checksums::On, Checksums::Off] {
        let (copy, path) = stopped(checksums, &[]);
        change_lsn(&copy.pgdata, &path, &[3, 5], FAR, Checksums::Off);
        remove_wal(&copy.pgdata);
        let plan = plan(&copy.pgdata).expect("a plan");
        let said = words(&plan);
        let named = format!(
            "2 pages carry an LSN more than 1 TiB after all WAL that is known, the first at {path}:3"
        );
        assert!(said.contains(&named), "{said}");
        assert!(!said.contains(&Lsn(FAR).to_string()), "{said}");
        assert_eq!(plan.cures[0].safety, Safety::Lossy);
    }
}

#[test]
fn without_checksums_pages_of_several_relations_that_agree_are_believed() {
    let (copy, path) = stopped(
        Checksums::Off,
        &[
            "CREATE TABLE one AS SELECT * FROM plain",
            "CREATE TABLE two AS SELECT * FROM plain",
        ],
    );
    let mut running = copy.start().expect("a server");
    let paths = ["one", "two"]
        .map(|name| value(&running, &format!("SELECT pg_relation_filepath('{name}')")));
    running.stop(StopMode::Fast).expect("an end");
    for path in paths.iter().chain([&path]) {
        change_lsn(&copy.pgdata, path, &[1, 2, 3], FAR, Checksums::Off);
    }
    remove_wal(&copy.pgdata);
    let plan = plan(&copy.pgdata).expect("a plan");
    assert!(
        words(&plan).contains(&Lsn(FAR).to_string()),
        "{}",
        words(&plan)
    );
}

/// A cluster with five thousand transactions, every fifth rolled back, whose rows are read so that
/// they carry hint bits.
fn with_transactions(checksums: Checksums) -> (TempCopy, String) {
    let (copy, path) = stopped(checksums, &["CREATE TABLE told (id int)"]);
    let mut running = copy.start().expect("a server");
    let database = value(&running, "SELECT current_database()");
    let mut session = running.connect(&database).expect("a session");
    for sql in [
        "DO $$ BEGIN FOR i IN 1..5000 LOOP
            BEGIN INSERT INTO told VALUES (i); IF i % 5 = 0 THEN RAISE 'no'; END IF;
            EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$",
        "SELECT count(*) FROM told",
        "SELECT count(*) FROM plain",
    ] {
        session.execute(sql).expect("a statement");
    }
    drop(session);
    running.stop(StopMode::Fast).expect("an end");
    (copy, path)
}

#[test]
fn zeroed_sectors_of_pg_xact_come_back_from_hint_bits() {
    let (copy, _) = with_transactions(Checksums::On);
    let path = copy.pgdata.join("pg_xact/0000");
    let whole = fs::read(&path).expect("the log");
    let mut hurt = whole.clone();
    hurt[512..1024].fill(0);
    assert_ne!(hurt, whole);
    fs::write(&path, &hurt).expect("written");
    let before = contents(&copy.pgdata);
    let (plan, journals) = carried_out(&copy.pgdata);
    let names: Vec<&str> = plan.cures.iter().map(|cure| cure.name.as_str()).collect();
    assert_eq!(names, ["fill-status-files"]);
    let said = words(&plan);
    assert!(said.contains("was overwritten with zeros"), "{said}");
    let healed = fs::read(&path).expect("the log");
    assert!(
        healed == whole,
        "each of these transactions has a row that tells"
    );
    undo(&journals.path().join("journal"), None).expect("an undo");
    assert_eq!(contents(&copy.pgdata), before);
}

#[test]
fn hint_bits_that_contradict_each_other_tell_nothing() {
    let (copy, path) = with_transactions(Checksums::Off);
    let log = copy.pgdata.join("pg_xact/0000");
    let mut hurt = fs::read(&log).expect("the log");
    hurt[512..1024].fill(0);
    fs::write(&log, &hurt).expect("written");
    // Two rows of plain get the transaction 3000 as xmin: one says committed, one rolled back.
    let table = opened(&copy.pgdata.join(&path));
    let mut page = [0; PAGE];
    table.read_exact_at(&mut page, 0).expect("a page");
    for (item, bits) in [(0, 0x0100u16), (1, 0x0200)] {
        let pointer =
            u32::from_le_bytes(page[24 + item * 4..28 + item * 4].try_into().expect("four"));
        let at = (pointer & 0x7FFF) as usize;
        page[at..at + 4].copy_from_slice(&3000u32.to_le_bytes());
        let mask = u16::from_le_bytes([page[at + 20], page[at + 21]]) & !0x0300 | bits;
        page[at + 20..at + 22].copy_from_slice(&mask.to_le_bytes());
    }
    table.write_all_at(&page, 0).expect("written");
    let (plan, _journals) = carried_out(&copy.pgdata);
    let said = words(&plan);
    assert!(
        said.contains("hint bits of 1 transaction contradict each other"),
        "{said}"
    );
    let healed = fs::read(&log).expect("the log");
    assert_eq!(healed[3000 / 4] & 3, 0, "nothing is written of it");
}

#[test]
fn a_map_is_not_made_where_a_file_may_be_a_catalog_that_was_written_anew() {
    let (copy, _) = stopped(Checksums::On, &[]);
    let mut running = copy.start().expect("a server");
    let database = value(
        &running,
        "SELECT oid FROM pg_database WHERE datname = 'postgres'",
    );
    let toast = value(
        &running,
        "SELECT pg_relation_filepath(reltoastrelid::regclass) FROM pg_class WHERE relname = 'pg_proc'",
    );
    running.stop(StopMode::Fast).expect("an end");
    let home = copy.pgdata.join(format!("base/{database}"));
    fs::remove_file(home.join("pg_filenode.map")).expect("a map");
    let exact = plan(&copy.pgdata).expect("a plan");
    assert_eq!(exact.cures[0].safety, Safety::Exact, "{}", words(&exact));
    // A copy of the TOAST table of pg_proc under another number, as VACUUM FULL leaves it.
    let (toast, other) = (copy.pgdata.join(toast), home.join("99999"));
    fs::copy(&toast, &other).expect("a copy");
    if fs::metadata(&toast).expect("a file").len() == 0 {
        fs::write(&other, toast_page()).expect("a file");
    }
    fs::write(&toast, b"").expect("emptied");
    run_as().own(&other).expect("the server's");
    let open = plan(&copy.pgdata);
    assert_eq!(
        open, None,
        "nobody knows whose it is, and the server starts"
    );
    fs::write(&other, b"").expect("emptied");
    let doubted = plan(&copy.pgdata).expect("a plan");
    assert_eq!(doubted.cures[0].safety, Safety::Lossy);
    assert!(words(&doubted).contains("99999"), "{}", words(&doubted));
}

/// A page with one chunk of a value.
fn toast_page() -> Vec<u8> {
    let mut page = vec![0; PAGE];
    let at = PAGE - 48;
    let words: [(usize, u16); 4] = [(12, 28), (14, at as u16), (16, PAGE as u16), (18, 0x2004)];
    for (place, word) in words {
        put_bytes(&mut page, place, &word.to_le_bytes());
    }
    put_bytes(
        &mut page,
        24,
        &(at as u32 | 1 << 15 | 48 << 17).to_le_bytes(),
    );
    put_bytes(&mut page, at, &700u32.to_le_bytes());
    put_bytes(&mut page, at + 18, &3u16.to_le_bytes());
    page[at + 22] = 24;
    seal_page(&mut page, 0);
    page
}

#[test]
fn three_wounds_with_the_shared_map_among_them_lead_to_no_reset() {
    let (copy, _) = stopped(Checksums::On, &[]);
    remove_wal(&copy.pgdata);
    for path in ["global/pg_control", "global/pg_filenode.map"] {
        fs::remove_file(copy.pgdata.join(path)).expect("a file");
    }
    let plan = plan(&copy.pgdata).expect("an answer");
    assert_eq!(plan.cures, []);
    let open: Vec<&str> = plan
        .not_healed
        .iter()
        .map(|own| own.path.as_str())
        .collect();
    assert_eq!(open, ["global/pg_filenode.map", "global/pg_control"]);
}

#[test]
fn tablespaces_of_a_map_are_linked_where_their_files_are_this_clusters() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let space = tempfile::tempdir_in(copy.pgdata.parent().expect("a directory")).expect("a space");
    run_as().own(space.path()).expect("the server's");
    let mut running = copy.start().expect("a server");
    execute(
        &running,
        &format!(
            "CREATE TABLESPACE space LOCATION '{}'",
            space.path().display()
        ),
    );
    execute(
        &running,
        "CREATE TABLE away (id int PRIMARY KEY USING INDEX TABLESPACE space) TABLESPACE space",
    );
    execute(&running, "INSERT INTO away SELECT generate_series(1, 500)");
    let oid = value(
        &running,
        "SELECT oid FROM pg_tablespace WHERE spcname = 'space'",
    );
    running.stop(StopMode::Fast).expect("an end");
    let link = copy.pgdata.join(format!("pg_tblspc/{oid}"));
    fs::remove_file(&link).expect("a link");
    remove_wal(&copy.pgdata);
    let label = b"START WAL LOCATION: here\n";
    let map = format!("{oid} {}\n", space.path().display());
    for (name, text) in [
        ("backup_label", &label[..]),
        ("tablespace_map", map.as_bytes()),
    ] {
        fs::write(copy.pgdata.join(name), text).expect("a file");
        run_as().own(&copy.pgdata.join(name)).expect("the server's");
    }
    let hurt = contents(&copy.pgdata);
    let (plan, journals) = carried_out(&copy.pgdata);
    let names: Vec<&str> = plan.cures.iter().map(|cure| cure.name.as_str()).collect();
    assert_eq!(names, ["link-tablespaces", "reset-wal"]);
    undo(&journals.path().join("journal"), None).expect("an undo");
    assert!(fs::symlink_metadata(&link).is_err());
    assert_eq!(contents(&copy.pgdata), hurt);
    let (_, _journals) = carried_out(&copy.pgdata);
    let mut running = copy.start().expect("a server");
    assert_eq!(value(&running, "SELECT count(*) FROM away"), "500");
    running.stop(StopMode::Fast).expect("an end");
}

#[test]
fn a_lost_link_is_made_to_where_wal_says_that_the_tablespace_was_made() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let space = tempfile::tempdir_in(copy.pgdata.parent().expect("a directory")).expect("a space");
    run_as().own(space.path()).expect("the server's");
    let mut running = copy.start().expect("a server");
    let path = space.path().display().to_string();
    execute(
        &running,
        &format!("CREATE TABLESPACE space LOCATION '{path}'"),
    );
    execute(&running, "CREATE TABLE away (id int) TABLESPACE space");
    execute(&running, "INSERT INTO away SELECT generate_series(1, 500)");
    execute(&running, "CHECKPOINT");
    execute(&running, "INSERT INTO away VALUES (501)");
    let oid = value(
        &running,
        "SELECT oid FROM pg_tablespace WHERE spcname = 'space'",
    );
    running.stop(StopMode::Immediate).expect("an end");
    let link = copy.pgdata.join(format!("pg_tblspc/{oid}"));
    fs::remove_file(&link).expect("a link");
    let (plan, _journals) = carried_out(&copy.pgdata);
    let names: Vec<&str> = plan.cures.iter().map(|cure| cure.name.as_str()).collect();
    assert_eq!(names, ["link-tablespaces"]);
    assert!(
        words(&plan).contains("CREATE TABLESPACE"),
        "{}",
        words(&plan)
    );
    assert_eq!(fs::read_link(&link).expect("a link"), space.path());
    let mut running = copy.start().expect("a server");
    assert_eq!(value(&running, "SELECT count(*) FROM away"), "501");
    running.stop(StopMode::Fast).expect("an end");
}

#[test]
fn a_standby_without_wal_may_give_it_up_and_is_told_to_look_for_it_first() {
    let (copy, _) = stopped(Checksums::On, &[]);
    remove_wal(&copy.pgdata);
    let settings = copy.pgdata.join("postgresql.auto.conf");
    let text = "restore_command = 'false'\n";
    fs::write(&settings, text).expect("settings");
    let signal = copy.pgdata.join("standby.signal");
    fs::write(&signal, "").expect("a signal");
    run_as().own(&signal).expect("the server's");
    let (plan, _journals) = carried_out(&copy.pgdata);
    assert_eq!(plan.cures.len(), 1);
    assert_eq!(plan.cures[0].safety, Safety::Lossy);
    assert!(plan.cures[0].warnings[0].contains("--wal"), "{plan:?}");
    assert!(!signal.exists());
    let mut running = copy.start().expect("a server");
    assert_eq!(value(&running, "SELECT count(*) FROM plain"), "3000");
    running.stop(StopMode::Fast).expect("an end");
}

#[test]
fn a_tablespace_without_this_clusters_files_is_not_linked() {
    let (copy, _) = stopped(Checksums::On, &[]);
    let space = tempfile::tempdir().expect("a space");
    fs::create_dir_all(space.path().join("PG_15_202209061/99999")).expect("a directory");
    remove_wal(&copy.pgdata);
    let map = format!("77777 {}\n", space.path().display());
    fs::write(copy.pgdata.join("tablespace_map"), map).expect("a map");
    fs::write(
        copy.pgdata.join("backup_label"),
        b"START WAL LOCATION: here\n",
    )
    .expect("a label");
    let plan = plan(&copy.pgdata).expect("a plan");
    let names: Vec<&str> = plan.cures.iter().map(|cure| cure.name.as_str()).collect();
    assert_eq!(names, ["reset-wal"]);
    assert!(
        words(&plan).contains("links in pg_tblspc are not there (77777)"),
        "{}",
        words(&plan)
    );
}
