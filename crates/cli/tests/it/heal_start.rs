//! `pgclinic heal` where a server does not start, or starts on a commit log that rows deny.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::common::{files, pgclinic, text};
use crate::heal::{document, refused};
use pgclinic_model::document::{CureOutcome, HealOutcome};
use pgclinic_servers::{Checksums, StopMode};
use pgclinic_testkit::{TempCopy, as_primary, copy_of, execute, plain_backup, seed, server, value};

/// A cluster after a shutdown, with these statements done.
fn stopped(sql: &[&str]) -> TempCopy {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut running = copy.start().expect("a server");
    sql.iter().for_each(|sql| execute(&running, sql));
    running.stop(StopMode::Fast).expect("an end");
    copy
}

#[test]
fn what_nothing_brings_back_is_damage_that_remains() {
    let copy = stopped(&[]);
    let wal = fs::read_dir(copy.pgdata.join("pg_wal")).expect("a directory");
    let paths = wal.map(|entry| entry.expect("an entry").path());
    let segments = paths.filter(|path| path.is_file());
    segments.for_each(|path| fs::remove_file(path).expect("a segment"));
    for path in ["global/pg_control", "global/pg_filenode.map"] {
        fs::remove_file(copy.pgdata.join(path)).expect("a file");
    }
    let before = files(&copy.pgdata);
    let ran = pgclinic(&["heal", text(&copy.pgdata)]).exits(1);
    assert!(
        ran.first_line().starts_with("DAMAGE REMAINS"),
        "{}",
        ran.out
    );
    let ran = pgclinic(&["heal", text(&copy.pgdata), "--format", "json"]).exits(1);
    let document = document(&ran);
    assert_eq!(document.cures, []);
    let why: Vec<&String> = document
        .not_healed
        .iter()
        .flat_map(|own| &own.why)
        .collect();
    assert_eq!(why.len(), 2, "{why:?}");
    assert!(why[1].contains("the WAL is not given up"), "{why:?}");
    assert_eq!(files(&copy.pgdata), before, "nothing is written");
}

/// A cluster that was shut down with all of its WAL, and a base backup of it that has none.
fn with_backup_without_wal() -> (TempCopy, PathBuf) {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let kept = as_primary().with("wal_keep_size", "512MB");
    let mut running = copy.start_with(&kept).expect("a server");
    let folder = copy.pgdata.with_extension("backup");
    plain_backup(&copy, &running, &folder, &["--wal-method=none"]);
    execute(&running, "CREATE TABLE later (id int)");
    running.stop(StopMode::Fast).expect("an end");
    (copy, folder)
}

#[test]
fn a_standby_gets_the_wal_that_it_lacks_from_an_archive() {
    let (copy, folder) = with_backup_without_wal();
    let signal = folder.join("standby.signal");
    fs::write(&signal, "").expect("a signal");
    let wal = copy.pgdata.join("pg_wal");
    let line = ["heal", text(&folder), "--wal", text(&wal)];
    let planned = pgclinic(&[&line[..], &["--format", "json"]].concat()).exits(3);
    let planned = document(&planned);
    let names = planned.cures.iter().map(|cure| cure.name.as_str());
    let names: BTreeSet<&str> = names.collect();
    assert_eq!(names, BTreeSet::from(["restore-wal-segment"]));
    let without = document(&pgclinic(&["heal", text(&folder), "--format", "json"]).exits(3));
    assert_eq!(without.cures[0].name, "reset-wal");
}

/// The server would begin at the checkpoint of the control file, and leave pages torn.
#[test]
fn a_backup_without_its_label_gets_its_wal_and_then_the_label() {
    let (copy, folder) = with_backup_without_wal();
    fs::remove_file(folder.join("backup_label")).expect("a label");
    let alone = pgclinic(&["heal", text(&folder), "--format", "json"]);
    let alone = document(&alone.exits(1));
    assert_eq!(alone.cures, [], "no WAL is given up");
    assert_eq!(alone.not_healed[0].path, "backup_label");

    let wal = copy.pgdata.join("pg_wal");
    let line = [
        "heal",
        text(&folder),
        "--wal",
        text(&wal),
        "--format",
        "json",
    ];
    let planned = document(&pgclinic(&line).exits(3));
    let names = planned.cures.iter().map(|cure| cure.name.as_str());
    let names: BTreeSet<&str> = names.collect();
    assert_eq!(names, BTreeSet::from(["restore-wal-segment"]));
    let first = &planned.not_checked[0];
    assert!(first.why.contains("start no server before"), "{first:?}");
    for request in &planned.request {
        let name = request.path.trim_start_matches("pg_wal/");
        fs::copy(wal.join(name), folder.join(&request.path)).expect("a segment");
    }
    let planned = document(&pgclinic(&line).exits(3));
    assert_eq!(planned.cures[0].name, "make-backup-label");
}

/// A cluster with five thousand transactions in two tables, every fifth rolled back, whose rows are
/// read so that they carry hint bits.
fn with_transactions() -> TempCopy {
    let copy = stopped(&[
        "CREATE TABLE told (id int, body text)",
        "CREATE TABLE retold (id int)",
    ]);
    let mut running = copy.start().expect("a server");
    let database = value(&running, "SELECT current_database()");
    let mut session = running.connect(&database).expect("a session");
    for sql in [
        "DO $$ BEGIN FOR i IN 1..5000 LOOP
            BEGIN INSERT INTO told VALUES (i, repeat('x', 200)); INSERT INTO retold VALUES (i);
            IF i % 5 = 0 THEN RAISE 'no'; END IF;
            EXCEPTION WHEN OTHERS THEN NULL; END; END LOOP; END $$",
        "SELECT count(*) FROM told",
        "SELECT count(*) FROM retold",
    ] {
        session.execute(sql).expect("a statement");
    }
    drop(session);
    running.stop(StopMode::Fast).expect("an end");
    copy
}

#[test]
fn a_garbled_page_of_pg_xact_is_corrected_by_the_rows_that_deny_it() {
    let copy = with_transactions();
    let path = copy.pgdata.join("pg_xact/0000");
    let whole = fs::read(&path).expect("the log");
    let mut hurt = whole.clone();
    hurt[500..1000].iter_mut().for_each(|byte| *byte ^= 0xFF);
    fs::write(&path, &hurt).expect("written");
    let planned = pgclinic(&["heal", text(&copy.pgdata), "--format", "json"]).exits(3);
    let planned = document(&planned);
    let names: Vec<&str> = planned
        .cures
        .iter()
        .map(|cure| cure.name.as_str())
        .collect();
    assert_eq!(names, ["status-from-hint-bits"]);
    let id = planned.cures[0].id.clone();
    let accept = [
        "heal",
        text(&copy.pgdata),
        "--accept",
        &id,
        "--format",
        "json",
    ];
    let healed = document(&pgclinic(&accept).exits(3));
    assert_eq!(
        healed.outcome,
        HealOutcome::PartlyUndecided,
        "no server was started"
    );
    assert_eq!(healed.cures[0].outcome, CureOutcome::Healed);
    assert!(
        fs::read(&path).expect("the log") == whole,
        "each transaction has rows that tell"
    );
    let journal = format!("{}.heal.journal", text(&copy.pgdata));
    pgclinic(&["heal", "--undo", &journal]).exits(0);
    assert!(fs::read(&path).expect("the log") == hurt);
}

#[test]
fn a_copy_does_not_share_the_tablespaces_of_its_original() {
    let space = tempfile::tempdir().expect("a space");
    pgclinic_testkit::run_as()
        .own(space.path())
        .expect("the server's");
    fs::set_permissions(
        space.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .expect("permissions");
    let create = format!(
        "CREATE TABLESPACE space LOCATION '{}'",
        space.path().display()
    );
    let copy = stopped(&[&create, "CREATE TABLE away (id int) TABLESPACE space"]);
    let links = copy.pgdata.join("pg_tblspc");
    let link = fs::read_dir(&links)
        .expect("links")
        .next()
        .expect("a link")
        .expect("an entry");
    let oid = link.file_name().into_string().expect("a number");
    fs::remove_file(link.path()).expect("a link");
    let map = format!("{oid} {}\n", space.path().display());
    fs::write(copy.pgdata.join("tablespace_map"), map).expect("a map");
    fs::write(
        copy.pgdata.join("backup_label"),
        "START WAL LOCATION: here\n",
    )
    .expect("a label");
    let planned = document(&pgclinic(&["heal", text(&copy.pgdata), "--format", "json"]).exits(3));
    let own = planned
        .cures
        .iter()
        .find(|cure| cure.name == "link-tablespaces");
    let id = own.expect("the cure").id.clone();
    let to = format!("{}.copy", text(&copy.pgdata));
    let line = [
        "heal",
        text(&copy.pgdata),
        "--accept",
        &id,
        "--copy-to",
        &to,
    ];
    refused(pgclinic(&line), "would write to the same tablespaces");
    assert!(fs::metadata(&to).is_err());
}

/// A cluster whose relation map is lost, and of which two files may hold pg_class; the map's path.
fn without_a_map() -> (TempCopy, String) {
    let copy = stopped(&["VACUUM FULL pg_class"]);
    // Records of before are in no segment any more.
    let mut running = copy.start().expect("a server");
    for _ in 0..4 {
        execute(&running, "CREATE TABLE IF NOT EXISTS filler (id int)");
        execute(&running, "INSERT INTO filler VALUES (1)");
        execute(&running, "SELECT pg_switch_wal()");
        execute(&running, "CHECKPOINT");
    }
    let class = value(&running, "SELECT pg_relation_filepath('pg_class')");
    running.stop(StopMode::Fast).expect("an end");
    let path = copy.pgdata.join(&class);
    fs::copy(&path, path.with_file_name("99999")).expect("a copy");
    let (directory, _) = class.rsplit_once('/').expect("a path");
    let map = format!("{directory}/pg_filenode.map");
    fs::remove_file(copy.pgdata.join(&map)).expect("a map");
    (copy, map)
}

#[test]
fn the_first_of_two_heals_lists_the_maps_that_it_leaves_open() {
    let (copy, map) = without_a_map();
    fs::remove_file(copy.pgdata.join("global/pg_control")).expect("a control file");
    let line = ["heal", text(&copy.pgdata), "--format", "json"];
    let planned = document(&pgclinic(&line).exits(3));
    let ids = planned.cures.iter().map(|cure| cure.id.as_str());
    let accepted = ids.flat_map(|id| ["--accept", id]);
    let words: Vec<&str> = line.into_iter().chain(accepted).collect();
    let healed = document(&pgclinic(&words).exits(3));
    assert_eq!(healed.outcome, HealOutcome::PartlyUndecided);
    let [own] = healed.not_healed.as_slice() else {
        panic!("{:?}", healed.not_healed);
    };
    assert_eq!(own.path, map);
    assert!(own.why[0].contains("the rows of 2 files"), "{:?}", own.why);
}

#[test]
fn rows_that_only_the_lost_map_hides_are_one_entry() {
    let (copy, map) = without_a_map();
    let line = ["heal", text(&copy.pgdata), "--format", "json"];
    let planned = document(&pgclinic(&line).exits(3));
    let first = &planned.not_healed[0];
    assert_eq!(first.path, map);
    let is_folded = |why: &String| why.contains("other files are not listed");
    assert!(first.why.iter().any(is_folded), "{first:?}");
    let is_of_rows = |why: &String| why.starts_with("relation-lost");
    let mut rest = planned.not_healed.iter().skip(1);
    assert!(rest.all(|own| !own.why.iter().any(is_of_rows)));
}

#[test]
fn a_lost_link_is_told_and_made_by_the_map_of_a_backup() {
    let (copy, folder) = with_backup_without_wal();
    let links = fs::read_dir(copy.pgdata.join("pg_tblspc")).expect("links");
    let mut links = links.map(|link| link.expect("an entry").path());
    let link = links.next().expect("a link");
    let target = fs::read_link(&link).expect("a target");
    fs::remove_file(&link).expect("a link");
    let oid = link
        .file_name()
        .expect("a name")
        .to_str()
        .expect("a number");
    let line = ["heal", text(&copy.pgdata), "--format", "json"];
    let open = document(&pgclinic(&line).exits(3));
    let path = format!("pg_tblspc/{oid}");
    let own = open
        .not_healed
        .iter()
        .filter(|own| own.path.starts_with(&path));
    let own: Vec<_> = own.collect();
    assert_eq!(own.len(), 1, "{own:?}");
    assert!(own[0].commands[0].starts_with("ln -sfn"), "{own:?}");

    let map = format!("{oid} {}\n", target.display());
    fs::write(folder.join("tablespace_map"), map).expect("a map");
    let with_backup = [&line[..], &["--backup", text(&folder)]].concat();
    let planned = document(&pgclinic(&with_backup).exits(3));
    assert_eq!(planned.cures[0].name, "link-tablespaces");
    let accept = ["--accept", planned.cures[0].id.as_str()];
    let healed = document(&pgclinic(&[&with_backup[..], &accept].concat()).exits(3));
    assert_eq!(healed.not_healed, []);
    assert_eq!(fs::read_link(&link).expect("a link"), target);
}
