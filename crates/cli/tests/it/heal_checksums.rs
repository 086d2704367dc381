//! `pgclinic heal checksums` as a user runs it.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use pgclinic_model::document::{ChecksumsDocument, ChecksumsOutcome, DamagedPageChoice};
use pgclinic_servers::{Checksums, ConnectionTarget, StopMode};
use pgclinic_testkit::{TempCopy, copy_of, seed, server};

use crate::common::{self, SmallDisk, pgclinic, text};

fn copy() -> TempCopy {
    copy_of(&seed(&server(15), Checksums::Off))
}

fn document(out: &str) -> ChecksumsDocument {
    serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

fn heal(pgdata: &Path, words: &[&str]) -> common::Ran {
    let command = ["heal", "checksums", text(pgdata), "--format", "json"];
    pgclinic(&[&command[..], words].concat())
}

/// The file of `pg_description`, whose first page is damaged: `pd_lower` lies after `pd_upper`.
fn hurt(copy: &TempCopy) -> &'static str {
    let path = "base/1/2609";
    let file = fs::File::options().write(true).open(copy.pgdata.join(path));
    let file = file.expect("a file");
    file.write_all_at(&[0xFF, 0xFF], 12).expect("a write");
    path
}

#[test]
fn a_dry_run_writes_nothing_and_says_what_would_be_written() {
    let copy = copy();
    let before = common::files(&copy.pgdata);
    let planned = document(&heal(&copy.pgdata, &["--enable", "--dry-run"]).exits(0).out);
    assert_eq!(planned.outcome, ChecksumsOutcome::Planned);
    assert!(planned.pages > 0 && planned.pages_to_write == planned.pages);
    assert_eq!(planned.target.checksums, Some(false));
    assert_eq!(common::files(&copy.pgdata), before);
    let journal = PathBuf::from(format!("{}.checksums.journal", copy.pgdata.display()));
    assert!(!journal.exists(), "a dry run has no journal");
}

#[test]
fn enabled_then_disabled_then_verified() {
    let copy = copy();
    let off = pgclinic(&["heal", "checksums", text(&copy.pgdata), "--check"]).exits(2);
    assert!(off.err.contains("data checksums are off"), "{}", off.err);
    let enabled = document(&heal(&copy.pgdata, &["--enable", "--no-sync"]).exits(0).out);
    assert_eq!(enabled.outcome, ChecksumsOutcome::Done);
    assert_eq!(enabled.pages_written, enabled.pages);
    assert!(!enabled.synced && enabled.journal.is_some());
    let again = document(&heal(&copy.pgdata, &["--enable"]).exits(0).out);
    assert_eq!(again.outcome, ChecksumsOutcome::Unchanged);
    pgclinic(&["heal", "checksums", text(&copy.pgdata), "--check"]).exits(0);
    let disabled = document(&heal(&copy.pgdata, &["--disable"]).exits(0).out);
    assert_eq!(disabled.target.checksums, Some(false));
    let journal = disabled.journal.expect("a journal");
    let undone = pgclinic(&["heal", "checksums", "--undo", &journal]).exits(0);
    assert!(
        undone
            .first_line()
            .starts_with("UNDONE  data checksums are on")
    );
    pgclinic(&["heal", "checksums", text(&copy.pgdata), "--check"]).exits(0);
}

#[test]
fn a_damaged_page_gets_no_checksum_unless_it_is_named() {
    let copy = copy();
    let path = hurt(&copy);
    let before = common::files(&copy.pgdata);
    let refused = document(&heal(&copy.pgdata, &["--enable"]).exits(2).out);
    assert_eq!(refused.outcome, ChecksumsOutcome::Refused);
    assert_eq!(refused.damaged.len(), 1);
    assert_eq!(
        (refused.damaged[0].path.as_str(), refused.damaged[0].block),
        (path, 0)
    );
    assert_eq!(common::files(&copy.pgdata), before, "nothing was written");
    let wrong_page = format!("{path}:1");
    heal(&copy.pgdata, &["--enable", "--include", &wrong_page]).exits(2);

    let left = document(
        &heal(&copy.pgdata, &["--enable", "--leave-damaged"])
            .exits(0)
            .out,
    );
    assert_eq!(left.damaged[0].choice, DamagedPageChoice::Left);
    assert_eq!(left.pages_written + 1, left.pages_to_write);
    let found = common::check_json(&copy.pgdata, 1);
    let mut rules = found.findings.iter().map(|own| own.rule.as_str());
    assert!(
        rules.any(|rule| rule == "checksum-mismatch"),
        "{}",
        common::told(&found)
    );
    heal(&copy.pgdata, &["--disable"]).exits(0);

    let page = format!("{path}:0");
    let named = document(
        &heal(&copy.pgdata, &["--enable", "--include", &page])
            .exits(0)
            .out,
    );
    assert_eq!(named.damaged[0].choice, DamagedPageChoice::Included);
    assert_eq!((named.pages_to_write, named.pages_written), (1, 1));
}

#[test]
fn a_server_that_runs_or_was_killed_is_refused_by_name() {
    let copy = copy();
    let mut server = copy.start().expect("a server");
    let running = heal(&copy.pgdata, &["--enable"]).exits(2);
    assert!(
        running.err.contains("a server is running"),
        "{}",
        running.err
    );
    server.stop(StopMode::Immediate).expect("a stop");
    drop(server);
    let crashed = heal(&copy.pgdata, &["--enable"]).exits(2);
    assert!(crashed.err.contains("in production"), "{}", crashed.err);
}

#[test]
fn states_between_on_and_off_are_refused_by_name() {
    let copy = copy();
    let path = copy.pgdata.join("global/pg_control");
    for (version, name) in [
        (2, "inprogress-off"),
        (3, "inprogress-on"),
        (9, "data_checksum_version 9"),
    ] {
        let mut bytes = fs::read(&path).expect("a control file");
        pgclinic_format::build::put_u32(
            &mut bytes,
            pgclinic_format::control_file::CHECKSUM_VERSION_AT,
            version,
        );
        assert!(pgclinic_format::control_file::seal(&mut bytes));
        fs::write(&path, &bytes).expect("a write");
        for action in ["--enable", "--disable"] {
            let refused = heal(&copy.pgdata, &[action]).exits(2);
            assert!(refused.err.contains(name), "{}", refused.err);
        }
        assert_eq!(fs::read(&path).expect("a control file"), bytes);
    }
}

#[test]
fn pages_that_cannot_be_read_stop_it_before_anything_is_written() {
    let copy = copy();
    let path = copy.pgdata.join("base/1/1259");
    fs::remove_file(&path).expect("a file");
    let before = common::files(&copy.pgdata);
    std::os::unix::fs::symlink("1259", &path).expect("a loop of links");
    let ran = heal(&copy.pgdata, &["--enable"]).exits(3);
    let document = document(&ran.out);
    assert_eq!(document.outcome, ChecksumsOutcome::Incomplete);
    assert!(!document.not_checked.is_empty());
    fs::remove_file(&path).expect("the link");
    assert_eq!(common::files(&copy.pgdata), before);
}

#[test]
fn a_full_disk_while_the_record_is_written_leaves_the_cluster_alone() {
    let Some(disk) = SmallDisk::new("4k") else {
        return;
    };
    let copy = copy();
    let before = common::files(&copy.pgdata);
    let journal = disk.path.join("journal");
    let full = heal(&copy.pgdata, &["--enable", "--journal", text(&journal)]).exits(2);
    assert!(full.err.contains("No space left on device"), "{}", full.err);
    assert_eq!(common::files(&copy.pgdata), before);
}

#[test]
fn a_journal_inside_the_cluster_is_refused() {
    let copy = copy();
    let inside = copy.pgdata.join("journal");
    let refused = heal(&copy.pgdata, &["--enable", "--journal", text(&inside)]).exits(2);
    assert!(
        refused.err.contains("inside the data directory"),
        "{}",
        refused.err
    );
}

/// Killed where chance has it, the cluster starts as before or with everything in place, and the
/// journal goes on from there.
#[test]
fn a_run_that_is_killed_goes_on() {
    let copy = copy();
    let journals = tempfile::tempdir().expect("a directory");
    for number in 0..6_u32 {
        let journal = journals.path().join(number.to_string());
        let mut child = Command::new(env!("CARGO_BIN_EXE_pgclinic"))
            .args([
                "heal",
                "checksums",
                text(&copy.pgdata),
                "--enable",
                "--journal",
            ])
            .arg(&journal)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a process");
        // The journal is there for some time before the control file changes.
        while !journal.join("checksums.bin").exists()
            && child.try_wait().expect("a state").is_none()
        {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        for _ in 0..number * 4000 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let _ended_already = child.kill();
        child.wait().expect("an end");
        let is_on = document(&heal(&copy.pgdata, &["--enable", "--dry-run"]).out).outcome
            == ChecksumsOutcome::Unchanged;
        if journal.join("checksums.json").exists() {
            if !is_on {
                pgclinic(&["heal", "checksums", "--resume", text(&journal)]).exits(0);
            }
            pgclinic(&["heal", "checksums", text(&copy.pgdata), "--check"]).exits(0);
            pgclinic(&["heal", "checksums", "--undo", text(&journal)]).exits(0);
        } else {
            assert!(!is_on, "nothing is written before the journal");
        }
    }
}

#[test]
fn nodes_that_differ_are_named_with_what_to_do() {
    let (primary, standby) = (copy(), copy());
    let node = text(&standby.pgdata);
    let compared = heal(&primary.pgdata, &["--compare", "--standby", node]).exits(0);
    assert_eq!(document(&compared.out).outcome, ChecksumsOutcome::Same);
    let enabled = heal(&primary.pgdata, &["--enable", "--standby", node]).exits(0);
    let enabled = document(&enabled.out);
    assert_eq!(enabled.nodes[0].matches, Some(false));
    let commands: Vec<&String> = enabled
        .plan
        .iter()
        .flat_map(|step| &step.commands)
        .collect();
    let expected = format!("pgclinic heal checksums {node} --enable");
    assert!(commands.contains(&&expected), "{commands:?}");
    let compared = heal(&primary.pgdata, &["--compare", "--standby", node]).exits(1);
    assert_eq!(document(&compared.out).outcome, ChecksumsOutcome::Differs);

    let server = standby.start().expect("a server");
    let url = ConnectionTarget::of(&server, "postgres").to_string();
    let compared = heal(&primary.pgdata, &["--compare", "--standby", &url]).exits(1);
    let compared = document(&compared.out);
    assert_eq!(compared.nodes[0].target.checksums, Some(false));
    assert_eq!(
        compared.nodes[0].target.system_identifier,
        compared.target.system_identifier
    );
}

#[test]
fn an_upgrade_names_the_side_that_does_not_match_and_both_ways_out() {
    let old = copy();
    let differs = heal(&old.pgdata, &["--for-upgrade", "18"]).exits(1);
    let differs = document(&differs.out);
    let why = differs.why.expect("a reason");
    assert!(
        why.contains("off in the old cluster and on in the new one"),
        "{why}"
    );
    let names: Vec<&str> = differs.plan.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(
        names,
        ["change-the-old-cluster", "make-the-new-cluster-again"]
    );
    heal(&old.pgdata, &["--for-upgrade", "17"]).exits(0);
    let new = copy_of(&seed(&server(18), Checksums::On));
    heal(&old.pgdata, &["--for-upgrade", text(&new.pgdata)]).exits(1);
    heal(&old.pgdata, &["--enable", "--no-sync"]).exits(0);
    heal(&old.pgdata, &["--for-upgrade", text(&new.pgdata)]).exits(0);
    heal(&new.pgdata, &["--for-upgrade", text(&old.pgdata)]).exits(2);
}

/// The numbers of the table in the guide.
fn counters_of_the_guide() -> Vec<String> {
    let page = fs::read_to_string("../../docs/guide/checksums.md").expect("the page");
    let (_, table) = page.split_once("|---|--:|\n").expect("its table");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let last = rows.map(|row| {
        row.trim_end_matches('|')
            .rsplit('|')
            .next()
            .unwrap_or_default()
    });
    last.map(|cell| cell.trim().to_owned()).collect()
}

#[test]
fn the_counters_of_a_server_are_those_of_the_guide() {
    let copy = copy_of(&seed(&server(15), Checksums::On));
    let mut server = copy.start().expect("a server");
    let mut session = server.connect("clinic").expect("a session");
    session
        .execute("CREATE TABLE public.counted AS SELECT i FROM generate_series(1, 1000) AS i")
        .expect("a table");
    let path = session
        .query_value("SELECT pg_relation_filepath('public.counted')")
        .expect("an answer")
        .expect("a path");
    drop(session);
    server.stop(StopMode::Fast).expect("a stop");
    drop(server);
    let file = fs::File::options().write(true).open(copy.pgdata.join(path));
    file.expect("a file")
        .write_all_at(&[0xA5; 2], 8000)
        .expect("a write");

    let mut server = copy.start().expect("a server");
    let failures = |server: &pgclinic_servers::Server| {
        let mut session = server.connect("postgres").expect("a session");
        let sql = "SELECT checksum_failures FROM pg_stat_database WHERE datname = 'clinic'";
        session
            .query_value(sql)
            .expect("an answer")
            .expect("a number")
    };
    let read = |server: &pgclinic_servers::Server| {
        let mut session = server.connect("clinic").expect("a session");
        let refused = session.query_value("SELECT count(*) FROM public.counted");
        refused.expect_err("the page is damaged");
    };
    let mut seen = vec![failures(&server)];
    read(&server);
    read(&server);
    seen.push(failures(&server));
    pgclinic(&["check", text(&copy.pgdata), "--level", "pages"]).exits(1);
    seen.push(failures(&server));
    let mut session = server.connect("clinic").expect("a session");
    session.execute("SELECT pg_stat_reset()").expect("a reset");
    drop(session);
    seen.push(failures(&server));
    read(&server);
    assert_eq!(failures(&server), "1", "one more read");
    server.stop(StopMode::Immediate).expect("a stop");
    drop(server);
    let server = copy.start().expect("a server");
    seen.push(failures(&server));
    assert_eq!(seen, counters_of_the_guide());
}

/// Whoever has a journal need not know which command wrote it.
#[test]
fn a_journal_of_checksums_is_undone_by_heal_too() {
    let copy = copy();
    let before = common::files(&copy.pgdata);
    let enabled = document(&heal(&copy.pgdata, &["--enable", "--no-sync"]).exits(0).out);
    let journal = enabled.journal.expect("a journal");
    let journal = Path::new(&journal).parent().expect("a directory");
    let undone = pgclinic(&["heal", "--undo", text(journal), "--format", "json"]).exits(0);
    assert_eq!(document(&undone.out).outcome, ChecksumsOutcome::Done);
    assert!(common::files(&copy.pgdata) == before, "the first bytes");
}
