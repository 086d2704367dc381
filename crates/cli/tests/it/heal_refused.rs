//! What `pgclinic heal` refuses, with the reason, and the cluster as it was.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use crate::common;
use crate::heal::{Ward, document, refused};

use common::{ReadOnlyMount, SmallDisk, files, pgclinic, text};
use pgclinic_model::document::HealDocument;
use pgclinic_servers::StopMode;
use pgclinic_testkit::{execute, run_as, scratch, value};

#[test]
fn what_cannot_be_healed_is_refused_with_its_reason() {
    let ward = Ward::of(15, &["DELETE FROM healed WHERE id = 30", "VACUUM healed"]);
    let heal = |at: &str, cure: &str| pgclinic(&["heal", ward.pgdata(), "--at", at, cure]);
    let here = |place: &str| ward.at(place);
    refused(
        heal(&here("9999:1"), "--kill"),
        "the relation has 1 block, from 0",
    );
    refused(
        heal(&here("0:400"), "--kill"),
        "the page has 50 line pointers, from 1",
    );
    refused(
        heal(&here("0:0"), "--kill"),
        "the page has 50 line pointers, from 1",
    );
    refused(
        heal(&here("0:30"), "--kill"),
        "is LP_UNUSED: there is no row to kill",
    );
    refused(
        heal(&here("0:30"), "--freeze"),
        "is LP_UNUSED: it has no row",
    );
    refused(heal(&here("0"), "--kill"), "--kill is for one row");
    refused(
        heal(&here("0:1"), "--zero-page"),
        "--zero-page is for a whole page",
    );
    refused(
        heal("base/5/nothing:0:1", "--kill"),
        "it is not the name of a relation file",
    );
    refused(
        heal("../base/5/1:0:1", "--kill"),
        "is not a directory of a database",
    );
    refused(heal("base/1/999999:0:1", "--kill"), "the file is not there");
    refused(
        heal(&format!("{}_vm:0:1", ward.path), "--kill"),
        "it is not the main fork",
    );
    refused(
        heal(&format!("{}.1:0:1", ward.path), "--kill"),
        "blocks count through the whole fork",
    );
    let mut server = ward.start();
    let index = value(&server, "SELECT pg_relation_filepath('healed_pkey')");
    server.stop(StopMode::Fast).expect("a stop");
    refused(
        heal(&format!("{index}:1:1"), "--kill"),
        "REINDEX INDEX public.healed_pkey;",
    );
}

#[test]
fn a_cluster_that_is_not_at_rest_is_refused() {
    let ward = Ward::of(15, &[]);
    let plan = ward.plan("0:7", &["--kill"]);
    let accept = ["--accept", plan.cures[0].id.as_str()];
    // Somebody else writes to it at this moment.
    let other = File::open(&ward.copy.pgdata).expect("the directory");
    other.lock().expect("a lock");
    refused(
        ward.heal("0:7", &["--kill"], &accept),
        "another pgclinic is writing",
    );
    drop(other);
    let mut server = ward.start();
    refused(ward.heal("0:7", &["--kill"], &accept), "is running on");
    execute(&server, "CHECKPOINT");
    server.kill();
    let ran = ward
        .heal("0:7", &["--kill"], &["--format", "json"])
        .exits(2);
    let crashed = document(&ran);
    assert!(
        crashed.obstacles[0].contains("not shut down in good order"),
        "{crashed:?}"
    );
    let id = crashed.cures[0].id.clone();
    refused(
        ward.heal("0:7", &["--kill"], &["--accept", &id]),
        "not shut down in good order",
    );
}

#[test]
fn a_journal_that_cannot_be_written_leaves_the_cluster_as_it_was() {
    let ward = Ward::of(15, &[]);
    let before = files(&ward.copy.pgdata);
    let plan = ward.plan("0:7", &["--kill"]);
    let accept = ["--accept", plan.cures[0].id.as_str()];
    let with_journal = |journal: &Path| {
        let more = [&accept[..], &["--journal", text(journal)]].concat();
        ward.heal("0:7", &["--kill"], &more)
    };
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("a file");
    refused(with_journal(&file.join("journal")), "cannot ");
    refused(
        with_journal(&ward.copy.pgdata.join("journal")),
        "inside the data directory",
    );
    let taken = folder.path().join("taken");
    fs::create_dir(&taken).expect("a directory");
    fs::write(taken.join("journal.json"), "{}").expect("a file");
    refused(with_journal(&taken), "it is there already");
    if let Some(disk) = SmallDisk::new("16k") {
        fs::write(disk.path.join("filler"), vec![1; 12 << 10]).expect("a file");
        let journal = disk.path.join("journal");
        refused(with_journal(&journal), "cannot ");
        assert!(!journal.exists(), "what could not be written is gone");
    }
    assert_eq!(files(&ward.copy.pgdata), before);
}

/// The cluster can be read and planned for; that it cannot be written to shows before a journal is
/// made.
#[test]
fn a_read_only_mount_is_planned_for_and_not_written_to() {
    let ward = Ward::of(15, &[]);
    let Some(mount) = ReadOnlyMount::of(&ward.copy.pgdata) else {
        return;
    };
    let before = files(&ward.copy.pgdata);
    let at = ward.at("0:7");
    let heal = |more: &[&str]| {
        let line = ["heal", text(mount.path()), "--at", &at, "--kill"];
        pgclinic(&[&line[..], more].concat())
    };
    let plan = document(&heal(&["--format", "json"]).exits(3));
    let folder = tempfile::tempdir().expect("a directory");
    let journal = folder.path().join("journal");
    let accept = [
        "--accept",
        plan.cures[0].id.as_str(),
        "--journal",
        text(&journal),
    ];
    refused(
        heal(&accept),
        "is on a file system that is mounted read-only",
    );
    assert!(!journal.exists(), "no journal of what was not begun");
    assert_eq!(files(&ward.copy.pgdata), before);
}

/// Whoever comes second is refused or finds the work done; the rows are killed once.
#[test]
fn two_healers_at_once_do_not_meet() {
    let ward = Ward::of(15, &[]);
    let plan = ward.plan("0:7", &["--kill"]);
    let accept = ["--accept", plan.cures[0].id.as_str()];
    let both: Vec<u8> = std::thread::scope(|scope| {
        let heal = || ward.heal("0:7", &["--kill"], &accept).exit;
        let healers = [scope.spawn(heal), scope.spawn(heal)];
        let ends = healers.into_iter().map(|healer| healer.join());
        ends.map(|end| end.expect("an exit code")).collect()
    });
    assert!(both.contains(&0), "{both:?}");
    assert!(both.iter().all(|exit| [0, 2].contains(exit)), "{both:?}");
    assert_ne!(
        both,
        [0, 0],
        "the second one has no consent to the page as it is then"
    );
    let mut server = ward.start();
    assert_eq!(value(&server, "SELECT count(*) FROM healed"), "49");
    server.stop(StopMode::Fast).expect("a stop");
}

#[test]
fn a_version_in_the_middle_of_a_chain_is_not_healed_alone() {
    let ward = Ward::of(
        15,
        &[
            "BEGIN; UPDATE healed SET body = 'second' WHERE id = 20; UPDATE healed SET body = 'third' WHERE id = 20; COMMIT",
        ],
    );
    refused(ward.heal("0:51", &["--kill"], &[]), "Kill item 20 first");
    refused(
        ward.heal("0:51", &["--freeze"], &[]),
        "is found through it alone",
    );
    refused(ward.heal("0:52", &["--freeze"], &[]), "kill item 51 first");
    refused(
        ward.heal("0:20", &["--empty-line-pointer"], &[]),
        "--kill lets the index lead there",
    );
    refused(
        ward.heal("0:52", &["--empty-line-pointer"], &[]),
        "item 51 leads to it",
    );
}

#[test]
fn a_file_that_belongs_to_somebody_else_is_refused_before_anything_is_written() {
    let ward = Ward::of(15, &[]);
    let id = ward.plan("0:7", &["--kill"]).cures[0].id.clone();
    let table = ward.copy.pgdata.join(&ward.path);
    let before = fs::metadata(&table).expect("a file");
    if std::os::unix::fs::chown(&table, Some(0), Some(0)).is_err() || before.uid() == 0 {
        // Only root gives files away.
        return;
    }
    fs::set_permissions(&table, fs::Permissions::from_mode(0o644)).expect("a mode");
    let scratch = scratch();
    let program = scratch.path().join("pgclinic");
    fs::copy(env!("CARGO_BIN_EXE_pgclinic"), &program).expect("a copy");
    let bytes = files(&ward.copy.pgdata);
    let mut command = run_as().command(&program);
    command.args([
        "heal",
        ward.pgdata(),
        "--at",
        &ward.at("0:7"),
        "--kill",
        "--accept",
        &id,
    ]);
    let output = command.output().expect("the program");
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{words}");
    assert!(words.contains("cannot open for writing"), "{words}");
    assert_eq!(files(&ward.copy.pgdata), bytes);
    assert!(!ward.journal().exists());
}

#[test]
fn a_saved_plan_is_carried_out_only_for_the_bytes_it_was_made_for() {
    let ward = Ward::of(15, &[]);
    let folder = tempfile::tempdir().expect("a directory");
    let plan = folder.path().join("plan.json");
    ward.heal("0:7", &["--kill"], &["--save", text(&plan)])
        .exits(0);
    let saved: HealDocument =
        serde_json::from_slice(&fs::read(&plan).expect("a plan")).expect("JSON");
    let id = saved.cures[0].id.clone();
    let apply = |plan: &Path| {
        pgclinic(&[
            "heal",
            ward.pgdata(),
            "--apply",
            text(plan),
            "--accept",
            &id,
        ])
    };

    let written = fs::read_to_string(&plan).expect("a plan");
    let edits = [
        ("\"rows_lost\": 1", "\"rows_lost\": 0", "was edited"),
        (
            "\"safety\": \"lossy\"",
            "\"safety\": \"exact\"",
            "was edited",
        ),
        (
            "\"item\": 7",
            "\"item\": 8",
            "no cure of this plan has the id",
        ),
        (
            "\"schema\": \"pgclinic.heal/1\"",
            "\"schema\": \"pgclinic.heal/9\"",
            "cannot be used",
        ),
        (
            "\"control_file\": \"",
            "\"control_file\": \"0",
            "a server ran since",
        ),
    ];
    for (from, to, words) in edits {
        let edited = folder.path().join("edited.json");
        assert!(written.contains(from), "{from} stands in the plan");
        fs::write(&edited, written.replace(from, to)).expect("a plan");
        let ran = apply(&edited).exits(2);
        assert!(
            ran.err.contains(words) || ran.err.contains("was edited"),
            "{to}: {}",
            ran.err
        );
    }
    let mut broken = saved.clone();
    broken.cures[0].pages[0].before = "0".repeat(64);
    let edited = folder.path().join("page.json");
    fs::write(&edited, serde_json::to_vec(&broken).expect("JSON")).expect("a plan");
    refused(apply(&edited), "is not the page of the plan");

    let before = files(&ward.copy.pgdata);
    apply(&plan).exits(0);
    ward.undo();
    assert_eq!(files(&ward.copy.pgdata), before);
    let mut server = ward.start();
    server.stop(StopMode::Fast).expect("a stop");
    refused(apply(&plan), "a server ran since");
}
