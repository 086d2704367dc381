//! What cannot be worked on: one sentence on stderr, exit code 2, and the target as it was.

use pgclinic_model::Verdict;

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ran, SecondPath, check_json, files, pgclinic, text, told};
use pgclinic_servers::Checksums;
use pgclinic_testkit::{TempCopy, all_majors, copy_of, scratch, seed};

fn newest_copy() -> TempCopy {
    let installation = all_majors().pop().expect("the newest");
    copy_of(&seed(&installation, Checksums::On))
}

/// Exit 2, nothing on stdout, and one paragraph on stderr that begins with our name and holds
/// `words`.
#[track_caller]
fn refused(ran: Ran, words: &str) {
    let ran = ran.exits(2);
    assert_eq!(ran.out, "");
    assert!(ran.err.starts_with("pgclinic: "), "{}", ran.err);
    assert_eq!(ran.err.lines().count(), 1, "{}", ran.err);
    assert!(ran.err.contains(words), "{words:?} is not in {}", ran.err);
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
}

/// A folder with a version and the control file of a real cluster.
fn shell(parent: &Path, name: &str, version: &str, control: &[u8]) -> PathBuf {
    let pgdata = parent.join(name);
    fs::create_dir_all(pgdata.join("global")).expect("a directory");
    fs::create_dir_all(pgdata.join("base")).expect("a directory");
    fs::write(pgdata.join("PG_VERSION"), version).expect("a file");
    fs::write(pgdata.join("global/pg_control"), control).expect("a file");
    pgdata
}

#[test]
fn what_is_no_cluster_of_ours() {
    let folder = scratch();
    let at = folder.path();
    let installation = all_majors().pop().expect("the newest");
    let control = fs::read(
        seed(&installation, Checksums::On)
            .pgdata
            .join("global/pg_control"),
    )
    .expect("a file");
    let mut swapped = control.clone();
    for at in [0..8, 8..12, 12..16] {
        swapped[at].reverse();
    }
    let zeros = vec![0; 8192];
    fs::create_dir(at.join("empty")).expect("a directory");
    fs::write(at.join("text"), "hello\n").expect("a file");
    fs::write(at.join("nothing"), "").expect("a file");
    let table = [
        (
            at.join("empty"),
            "this is no data directory: PG_VERSION is missing",
        ),
        (at.join("absent"), "No such file or directory"),
        (
            shell(at, "old", "12\n", &zeros),
            "this cluster is of version 12; PostgreSQL 13 to 18 can be read",
        ),
        (
            shell(at, "new", "19\n", &zeros),
            "this cluster is of version 19; PostgreSQL 13 to 18 can be read",
        ),
        (
            shell(at, "older", "9.6\n", &control),
            "this cluster is of version 9.6",
        ),
        (
            shell(at, "odd", "seventeen\n", &zeros),
            "an unknown version",
        ),
        (
            shell(at, "other", "17\n", &control),
            "PG_VERSION says 17 and the control file 18",
        ),
        (shell(at, "big", "18\n", &swapped), "big-endian"),
    ];
    let before = files(at);
    for (target, words) in &table {
        refused(pgclinic(&["check", text(target)]), words);
        refused(pgclinic(&["check", text(target)]), text(target));
        refused(
            pgclinic(&["inspect", text(target), "--relation", "public.docs"]),
            words,
        );
        refused(
            pgclinic(&[
                "explain",
                "invalid page in block 1 of relation base/5/1",
                text(target),
            ]),
            words,
        );
        refused(
            pgclinic(&["injure", text(target), "--injury", "flipped-bit"]),
            "",
        );
    }
    assert!(before == files(at), "nothing was written");
    for target in ["/dev/null", text(&at.join("text"))] {
        let injure = ["injure", target, "--injury", "flipped-bit"];
        refused(pgclinic(&injure), "is no data directory");
        let explain = [
            "explain",
            "invalid page in block 1 of relation base/5/1",
            target,
        ];
        refused(pgclinic(&explain), "is no data directory");
    }
    let device = "/dev/null is neither a data directory nor a relation file";
    refused(pgclinic(&["check", "/dev/null"]), device);
}

#[test]
fn wrong_words_on_the_command_line() {
    let installation = all_majors().pop().expect("the newest");
    let pgdata = seed(&installation, Checksums::On).pgdata;
    let pgdata = text(&pgdata);
    let usage: [&[&str]; 9] = [
        &["check"],
        &["check", pgdata, "--blocks", "5..5"],
        &["check", pgdata, "--blocks", "x"],
        &["check", pgdata, "--level", "everything"],
        &["check", pgdata, "--rate", "fast"],
        &["check", pgdata, "--jobs", "0"],
        &["check", pgdata, "--format", "xml"],
        &["check", pgdata, "--nonsense"],
        &["operate", pgdata],
    ];
    for line in usage {
        let ran = pgclinic(line).exits(2);
        assert_eq!(ran.out, "", "{line:?}");
        assert!(ran.err.starts_with("error: "), "{line:?}: {}", ran.err);
    }
    let nothing = "matches nothing that holds bytes";
    refused(
        pgclinic(&["check", pgdata, "--relation", "no.such"]),
        nothing,
    );
    refused(
        pgclinic(&["check", pgdata, "--database", "nowhere"]),
        nothing,
    );
    refused(
        pgclinic(&["check", pgdata, "--filenode", "4294967295"]),
        nothing,
    );
    refused(
        pgclinic(&[
            "check",
            pgdata,
            "--relation",
            "public.visits",
            "--blocks",
            "100000..",
        ]),
        nothing,
    );
    refused(pgclinic(&["inspect", pgdata]), "name a relation");
    refused(pgclinic(&["inspect", pgdata, "--relation", "no.such"]), "");
    refused(
        pgclinic(&[
            "inspect",
            pgdata,
            "--relation",
            "public.visits",
            "--block",
            "99999",
        ]),
        "",
    );
    refused(
        pgclinic(&["injure", pgdata, "--injury", "bruise"]),
        "bruise",
    );
    refused(pgclinic(&["report", pgdata]), "");
    refused(pgclinic(&["report", &format!("{pgdata}/PG_VERSION")]), "");
}

/// What every command prints, help too, says where it could not be written.
#[test]
fn a_full_disk_below_stdout_is_named() {
    for words in ["demo", "--help", "man", "lab list", "completions bash"] {
        let full = fs::File::options().write(true).open("/dev/full");
        let ran = Command::new(env!("CARGO_BIN_EXE_pgclinic"))
            .args(words.split(' '))
            .stdout(full.expect("a device that is always full"))
            .output()
            .expect("a run");
        let err = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(2), "{words}: {err}");
        let why = "pgclinic: cannot write to stdout: ";
        assert!(err.starts_with(why), "{words}: {err}");
    }
}

/// A report that does not fit is no report: the old one stays, no half of the new one is left.
#[test]
fn a_report_that_cannot_be_written() {
    let installation = all_majors().pop().expect("the newest");
    let pgdata = seed(&installation, Checksums::On).pgdata;
    let check = [
        "check",
        text(&pgdata),
        "--relation",
        "public.visits",
        "--output",
    ];
    let to = |path: &str| pgclinic(&[&check[..], &[path]].concat());
    refused(to("/dev/full"), "cannot write the report /dev/full");
    refused(to("/nowhere/report.txt"), "cannot write the report");
    refused(to("/proc/report.txt"), "cannot write the report");
    let folder = scratch();
    let old = folder.path().join("report.txt");
    fs::write(&old, "the old one").expect("a file");
    to(text(&old)).exits(0);
    assert!(
        fs::read_to_string(&old)
            .expect("a file")
            .starts_with("HEALTHY")
    );
    let names = fs::read_dir(folder.path()).expect("a directory").count();
    // The marker of the scratch folder, and the report.
    assert_eq!(names, 2);
}

#[test]
fn only_what_was_given_away_is_injured() {
    let copy = newest_copy();
    let (folder, pgdata) = (scratch(), text(&copy.pgdata));
    let before = files(&copy.pgdata);
    let journal = folder.path().join("journal");
    let wound = [
        "injure",
        pgdata,
        "--injury",
        "flipped-bit",
        "--journal",
        text(&journal),
    ];
    refused(pgclinic(&wound), "is not a marked copy");
    let typed = [&wound[..], &["--this-is-not-production", "12345"]].concat();
    refused(pgclinic(&typed), "the system identifier 12345 was typed");
    let inside = format!("{pgdata}/journal");
    let identifier = check_json(&copy.pgdata, 0)
        .target
        .system_identifier
        .expect("a number");
    let consent = ["--this-is-not-production", &identifier];
    let within = [&wound[..4], &["--journal", &inside], &consent].concat();
    refused(pgclinic(&within), "inside the data directory");
    let there = [
        "injure",
        pgdata,
        "--injury",
        "flipped-bit",
        "--copy-to",
        text(folder.path()),
    ];
    refused(pgclinic(&there), "it is there already");
    assert!(before == files(&copy.pgdata), "nothing was written");
    assert!(!journal.exists());

    // The journal of one cluster is not taken back in another.
    let other = copy_of(&seed(&all_majors()[0], Checksums::On));
    pgclinic(&[&wound[..], &consent].concat()).exits(0);
    let hurt = files(&other.pgdata);
    let undo = ["injure", text(&other.pgdata), "--undo", text(&journal)];
    refused(pgclinic(&undo), "");
    assert!(hurt == files(&other.pgdata), "nothing was written");
    refused(pgclinic(&["injure", "--undo", "/nowhere/journal.json"]), "");
    pgclinic(&["injure", "--undo", text(&journal)]).exits(0);
    assert!(before == files(&copy.pgdata), "every file is as it was");
}

#[test]
fn a_running_server_is_left_alone() {
    let copy = newest_copy();
    let server = copy.start().expect("a server");
    let (folder, pgdata) = (scratch(), text(&copy.pgdata));
    let running = format!("the server with process {} is running on", server.pid());
    let to = folder.path().join("copy");
    let map = fs::read(copy.pgdata.join("global/pg_filenode.map")).expect("a file");
    pgclinic(&["measure", pgdata]).exits(0);
    let rows = folder.path().join("rows");
    // Of its unlogged tables the server may have rows that no file has.
    let salvaged = pgclinic(&["salvage", pgdata, "--to", text(&rows)]).exits(3);
    assert!(
        salvaged.out.contains("rows of the unlogged table"),
        "{}",
        salvaged.out
    );
    let page = ["inspect", pgdata, "--relation", "public.visits"];
    pgclinic(&page).exits(0);
    refused(
        pgclinic(&["injure", pgdata, "--injury", "relation-map-magic"]),
        &running,
    );
    refused(
        pgclinic(&[
            "injure",
            pgdata,
            "--injury",
            "relation-map-magic",
            "--copy-to",
            text(&to),
        ]),
        &running,
    );
    assert!(!to.exists());
    assert!(map == fs::read(copy.pgdata.join("global/pg_filenode.map")).expect("a file"));
    let mut session = server.connect("clinic").expect("a session");
    let rows = session
        .query_value("SELECT count(*) FROM public.frozen")
        .expect("an answer");
    assert_eq!(rows.as_deref(), Some("1500"), "the server did not notice");
}

/// By whatever path: the process works in the same folder.
#[test]
fn a_running_server_is_seen_through_another_path() {
    let copy = newest_copy();
    let server = copy.start().expect("a server");
    let Some(second) = SecondPath::of(&copy.pgdata) else {
        return;
    };
    let pgdata = text(&second.path);
    let map = fs::read(copy.pgdata.join("global/pg_filenode.map")).expect("a file");
    let ran = pgclinic(&["check", pgdata, "--format", "json"]).exits(0);
    let state = ran.document().target.state.unwrap_or_default();
    assert!(state.starts_with("running"), "{state}");
    refused(
        pgclinic(&["injure", pgdata, "--injury", "relation-map-magic"]),
        &format!("the server with process {} is running on", server.pid()),
    );
    assert!(map == fs::read(copy.pgdata.join("global/pg_filenode.map")).expect("a file"));

    // The number of a process that works elsewhere is left from before.
    let stale = newest_copy();
    let file = copy.pgdata.join("postmaster.pid");
    fs::copy(file, stale.pgdata.join("postmaster.pid")).expect("a file");
    let ran = pgclinic(&["check", text(&stale.pgdata), "--format", "json"]).exits(0);
    let state = ran.document().target.state.unwrap_or_default();
    assert!(!state.starts_with("running"), "{state}");
}

/// Things between the relation files that are none: nobody waits for them, and what they hide is
/// told.
#[test]
fn strange_files_between_the_relations() {
    let copy = newest_copy();
    let made = Command::new("mkfifo")
        .arg(copy.pgdata.join("base/1/7777777"))
        .status();
    assert!(made.expect("mkfifo").success());
    fs::create_dir(copy.pgdata.join("base/1/7777778")).expect("a directory");
    std::os::unix::fs::symlink("/dev/zero", copy.pgdata.join("base/1/7777779")).expect("a link");
    std::os::unix::fs::symlink("nowhere", copy.pgdata.join("base/1/7777780")).expect("a link");
    let ran = pgclinic(&["check", text(&copy.pgdata), "--format", "json"]);
    let document = ran.document();
    assert!([0, 3].contains(&ran.exit), "{}", told(&document));
    assert_ne!(document.verdict, Verdict::Damaged, "{}", told(&document));

    // In the place of a relation's file it is out of reach: nobody can know that it is missing.
    let copy = newest_copy();
    let visits = copy
        .pgdata
        .join("base/5")
        .join(filenode(&copy.pgdata, "public.visits"));
    fs::remove_file(&visits).expect("removed");
    assert!(
        Command::new("mkfifo")
            .arg(&visits)
            .status()
            .expect("mkfifo")
            .success()
    );
    let document = check_json(&copy.pgdata, 3);
    assert_eq!(document.verdict, Verdict::Incomplete, "{}", told(&document));
    let name = visits.file_name().expect("a name").to_string_lossy();
    let mut gaps = document.coverage.not_checked.iter();
    assert!(
        gaps.any(|gap| gap.what.ends_with(&*name) && !gap.inherent),
        "{}",
        told(&document)
    );
    refused(
        pgclinic(&["check", text(&visits)]),
        "neither a data directory nor a relation file",
    );
}

/// The number in the name of a relation's file.
fn filenode(pgdata: &Path, relation: &str) -> String {
    let at = [
        "inspect",
        text(pgdata),
        "--relation",
        relation,
        "--format",
        "json",
    ];
    let page: serde_json::Value = serde_json::from_str(&pgclinic(&at).exits(0).out).expect("JSON");
    page.pointer("/place/filenode")
        .expect("a number")
        .to_string()
}

/// The real program as a user who may not read the folder.
#[test]
fn no_permission() {
    let scratch = scratch();
    let home = scratch.path().join("closed");
    fs::create_dir(&home).expect("a directory");
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    fs::set_permissions(&home, closed).expect("closed");
    refused(
        as_somebody_else(scratch.path(), &["check", text(&home)]),
        "ermission denied",
    );
}

/// The program without the rights of root, from a directory that it may enter.
fn as_somebody_else(folder: &Path, words: &[&str]) -> Ran {
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder, open).expect("open");
    let program = folder.join("pgclinic");
    // By `cp`: a file that this process writes stays open in whatever another test forks meanwhile,
    // and cannot be run.
    let copied = Command::new("cp")
        .args([env!("CARGO_BIN_EXE_pgclinic"), text(&program)])
        .status();
    assert!(
        copied.is_ok_and(|status| status.success()),
        "a copy that everybody may run"
    );
    let mut command = Command::new(&program);
    if rustix::process::geteuid().is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, 65534);
    }
    let output = command.args(words).output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran {
        exit: output
            .status
            .code()
            .map_or(255, |code| code.to_le_bytes()[0]),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// The server has to open it, whatever its length.
#[test]
fn an_empty_file_without_permission_is_not_healthy() {
    let copy = newest_copy();
    // Tablespaces, too.
    let open = Command::new("find")
        .args([
            "-L",
            text(&copy.pgdata),
            "-exec",
            "chmod",
            "a+rX",
            "{}",
            "+",
        ])
        .status();
    assert!(open.is_ok_and(|status| status.success()));
    let parents = copy.pgdata.ancestors().skip(1).take(2);
    for parent in parents {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(parent, open).expect("open");
    }
    let base = fs::read_dir(copy.pgdata.join("base/1")).expect("a database");
    let empty = base
        .map(|entry| entry.expect("an entry").path())
        .find(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            let is_main = name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
            is_main && path.metadata().is_ok_and(|file| file.len() == 0)
        });
    let empty = empty.expect("an empty relation");
    let scratch = scratch();
    let sound = as_somebody_else(scratch.path(), &["check", text(&copy.pgdata)]);
    assert_eq!(sound.exit, 0, "{} {}", sound.out, sound.err);
    let closed = std::os::unix::fs::PermissionsExt::from_mode(0o000);
    fs::set_permissions(&empty, closed).expect("closed");
    let ran = as_somebody_else(scratch.path(), &["check", text(&copy.pgdata)]);
    assert_eq!(ran.exit, 3, "{} {}", ran.out, ran.err);
    assert!(ran.out.contains("permission denied"), "{}", ran.out);
}

/// With mounts of its own, which end with it: the script gets the program and a cluster.
fn in_own_mounts(script: &str, pgdata: &Path, at: &Path) -> Option<Ran> {
    let probe = Command::new("unshare").args(["-m", "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return None;
    }
    let line = [
        "-m",
        "sh",
        "-c",
        script,
        "sh",
        env!("CARGO_BIN_EXE_pgclinic"),
        text(pgdata),
        text(at),
    ];
    let output = Command::new("unshare")
        .args(line)
        .output()
        .expect("unshare");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let exit = output
        .status
        .code()
        .map_or(255, |code| code.to_le_bytes()[0]);
    Some(Ran {
        exit,
        out: text(&output.stdout),
        err: text(&output.stderr),
    })
}

const READ_ONLY: &str = r#"mount --bind "$2" "$2" && mount -o remount,bind,ro "$2" || exit 99; "#;

#[test]
fn a_read_only_mount_is_read_and_not_injured() {
    let (copy, folder) = (newest_copy(), scratch());
    pgclinic_surgery::mark_copy(&copy.pgdata).expect("a marker");
    let before = files(&copy.pgdata);
    let check = format!(r#"{READ_ONLY} exec "$1" check "$2""#);
    let Some(checked) = in_own_mounts(&check, &copy.pgdata, folder.path()) else {
        return;
    };
    assert!(checked.exits(0).first_line().starts_with("HEALTHY"));
    let injure =
        format!(r#"{READ_ONLY} exec "$1" injure "$2" --injury flipped-bit --journal "$3/journal""#);
    let ran = in_own_mounts(&injure, &copy.pgdata, folder.path()).expect("as before");
    refused(
        ran,
        "is on a file system that is mounted read-only: nothing was written",
    );
    assert!(before == files(&copy.pgdata), "nothing was written");
}

#[test]
fn a_full_file_system_keeps_no_half_of_a_report() {
    let (copy, folder) = (newest_copy(), scratch());
    let script = r#"mount -t tmpfs -o size=4k none "$3" || exit 99
"$1" check "$2" --format html --output "$3/report.html"; code=$?; ls -A "$3"; exit $code"#;
    let Some(ran) = in_own_mounts(script, &copy.pgdata, folder.path()) else {
        return;
    };
    refused(ran, "No space left on device");
}
