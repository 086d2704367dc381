//! What is there and cannot be read is neither damage nor health: every thing, in every way of
//! being out of reach, with the exit code of every verb that looks at it.

use pgclinic_model::Verdict;

use crate::common;

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{check_json, pgclinic, text, told};
use pgclinic_servers::{Checksums, Scratch};
use pgclinic_testkit::{TempCopy, clinic, copy_of, open, scratch, seed, server};

/// A way of being there and out of reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    Directory,
    Fifo,
    Socket,
    LinkLoop,
    Dangling,
}

const ALL: [Way; 5] = [
    Way::Directory,
    Way::Fifo,
    Way::Socket,
    Way::LinkLoop,
    Way::Dangling,
];

impl Way {
    fn put(self, path: &Path) {
        match self {
            Way::Directory => fs::create_dir(path).expect("a directory"),
            Way::Fifo => {
                let made = Command::new("mkfifo").arg(path).status();
                assert!(made.is_ok_and(|status| status.success()), "mkfifo");
            }
            Way::Socket => drop(UnixListener::bind(path).expect("a socket")),
            Way::LinkLoop => {
                let name = path.file_name().expect("a name");
                symlink(name, path).expect("a link");
            }
            Way::Dangling => symlink("/no/such/file", path).expect("a link"),
        }
    }
}

/// Takes the place of a file or directory, and gives it back.
struct InPlaceOf {
    path: PathBuf,
    kept: Option<PathBuf>,
}

impl InPlaceOf {
    fn put(pgdata: &Path, path: &str, way: Way, scratch: &Scratch) -> Self {
        let path = pgdata.join(path);
        let kept = scratch.path().join("kept");
        let was_there = fs::symlink_metadata(&path).is_ok();
        if was_there {
            fs::rename(&path, &kept).expect("on one file system");
        }
        way.put(&path);
        InPlaceOf {
            path,
            kept: was_there.then_some(kept),
        }
    }
}

impl Drop for InPlaceOf {
    fn drop(&mut self) {
        let is_directory = fs::symlink_metadata(&self.path).is_ok_and(|own| own.is_dir());
        let gone = if is_directory {
            fs::remove_dir(&self.path)
        } else {
            fs::remove_file(&self.path)
        };
        assert!(gone.is_ok() || std::thread::panicking(), "{gone:?}");
        if let Some(kept) = &self.kept {
            let back = fs::rename(kept, &self.path);
            assert!(back.is_ok() || std::thread::panicking(), "{back:?}");
        }
    }
}

/// Exit codes of `check`, `salvage` and `measure`; `None` where a verb has no need of the thing.
type Codes = [Option<u8>; 3];

/// What each verb that is asked exits with, where it is not what it should be.
fn unmet(pgdata: &Path, scratch: &Scratch, expected: Codes) -> Vec<String> {
    let to = scratch.path().join("rows");
    let _absent = fs::remove_dir_all(&to);
    let (target, to) = (text(pgdata), text(&to));
    let verbs: [&[&str]; 3] = [
        &["check", target],
        &["salvage", target, "--to", to],
        &["measure", target],
    ];
    let asked = verbs.iter().zip(expected);
    let asked = asked.filter_map(|(arguments, expected)| Some((arguments, expected?)));
    let answers = asked.map(|(arguments, expected)| (pgclinic(arguments), arguments[0], expected));
    let unmet = answers.filter(|(ran, _, expected)| ran.exit != *expected);
    unmet
        .map(|(ran, verb, expected)| {
            format!("{verb} {} not {expected}: {}", ran.exit, ran.first_line())
        })
        .collect()
}

fn copy() -> TempCopy {
    copy_of(&seed(&server(15), Checksums::On))
}

fn first_wal_segment(pgdata: &Path) -> String {
    let control = open(pgdata).control.trusted().cloned();
    let control = control.expect("a sound control file");
    let number = control.checkpoint_lsn.0 / u64::from(control.xlog_seg_size);
    let per_log = (1u64 << 32) / u64::from(control.xlog_seg_size);
    let timeline = control.checkpoint.timeline;
    let (log, segment) = (number / per_log, number % per_log);
    format!("pg_wal/{timeline:08X}{log:08X}{segment:08X}")
}

fn file_of_docs(pgdata: &Path) -> (String, String) {
    let cluster = open(pgdata);
    let catalog = clinic(&cluster);
    let docs = catalog
        .by_name("public", "docs")
        .expect("a table of the seed");
    let directory = format!("base/{}", catalog.database);
    let file = format!("{directory}/{}", docs.filenode);
    (directory, file)
}

fn first_tablespace(pgdata: &Path) -> String {
    let links = fs::read_dir(pgdata.join("pg_tblspc")).expect("a directory");
    let name = links.filter_map(Result::ok).next().expect("a tablespace");
    format!("pg_tblspc/{}", name.file_name().to_string_lossy())
}

#[test]
fn nothing_out_of_reach_is_damage_or_health() {
    let (copy, scratch) = (copy(), scratch());
    let pgdata = &copy.pgdata;
    let (directory, docs) = file_of_docs(pgdata);
    let in_database = |name: &str| format!("{directory}/{name}");
    let every = [Some(3); 3];
    let only_check = [Some(3), None, None];
    let things: [(String, Codes); 12] = [
        ("global/pg_control".into(), every),
        ("global/pg_filenode.map".into(), every),
        ("PG_VERSION".into(), every),
        (in_database("PG_VERSION"), only_check),
        (in_database("pg_filenode.map"), every),
        (docs.clone(), every),
        ("backup_label".into(), every),
        ("pg_xact/0000".into(), every),
        ("pg_multixact/offsets/0000".into(), only_check),
        ("pg_multixact/members/0000".into(), only_check),
        ("pg_twophase/00000300".into(), only_check),
        (first_wal_segment(pgdata), only_check),
    ];
    let directories: [(String, Codes); 5] = [
        (directory.clone(), every),
        (first_tablespace(pgdata), every),
        ("pg_multixact".into(), only_check),
        ("pg_twophase".into(), only_check),
        ("pg_wal".into(), only_check),
    ];
    // Each thing is met by one way, and each way by several things: every pair would take minutes.
    let of_files = things.iter().zip(ALL.into_iter().cycle());
    // A directory that leads nowhere is absent to the server too, and so is one where another
    // stands in its place.
    let ways = [Way::Fifo, Way::Socket, Way::LinkLoop];
    let of_directories = directories.iter().zip(ways.into_iter().cycle());
    let mut wrong = Vec::new();
    for ((path, expected), way) in of_files.chain(of_directories) {
        let _put = InPlaceOf::put(pgdata, path, way, &scratch);
        for unmet in unmet(pgdata, &scratch, *expected) {
            wrong.push(format!("{path} as {way:?}: {unmet}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let healthy = unmet(pgdata, &scratch, [Some(0); 3]);
    assert_eq!(healthy, [""; 0], "everything was put back");
}

#[test]
fn a_gap_names_its_path_and_its_reason() {
    let (copy, scratch) = (copy(), scratch());
    let pgdata = &copy.pgdata;
    let segment = first_wal_segment(pgdata);
    for (path, way, why) in [
        ("pg_multixact/offsets/0000", Way::Fifo, "it is a FIFO"),
        ("global/pg_filenode.map", Way::LinkLoop, "in a circle"),
        (segment.as_str(), Way::Directory, "it is a directory"),
        ("pg_twophase", Way::Socket, "not a directory"),
        ("backup_label", Way::Dangling, "leads nowhere"),
    ] {
        let _put = InPlaceOf::put(pgdata, path, way, &scratch);
        let document = check_json(pgdata, 3);
        assert_eq!(document.verdict, Verdict::Incomplete);
        let mut gaps = document.coverage.not_checked.iter();
        let gap = gaps.find(|gap| gap.what == path && !gap.inherent);
        assert!(
            gap.is_some_and(|gap| gap.why.contains(why)),
            "{path}: {}",
            told(&document)
        );
    }
}

#[test]
fn a_directory_of_a_database_out_of_reach_lowers_what_was_checked() {
    let (copy, scratch) = (copy(), scratch());
    let (directory, _) = file_of_docs(&copy.pgdata);
    let _put = InPlaceOf::put(&copy.pgdata, &directory, Way::LinkLoop, &scratch);
    checked_in_part(&copy.pgdata, &directory);
}

/// The server follows such a link; whose file that is, nobody knows here.
#[test]
fn a_relation_that_is_a_link_lowers_what_was_checked() {
    let (copy, scratch) = (copy(), scratch());
    let (_, file) = file_of_docs(&copy.pgdata);
    let (own, elsewhere) = (copy.pgdata.join(&file), scratch.path().join("docs"));
    fs::copy(&own, &elsewhere).expect("a copy");
    fs::remove_file(&own).expect("removed");
    symlink(elsewhere, own).expect("a link");
    checked_in_part(&copy.pgdata, &file);
}

#[track_caller]
fn checked_in_part(pgdata: &Path, hidden: &str) {
    let ran = pgclinic(&["check", text(pgdata)]).exits(3);
    let first = ran.first_line();
    assert!(first.starts_with("INCOMPLETE"), "{}", ran.out);
    assert!(first.contains("checked less than 100 %"), "{}", ran.out);
    assert!(ran.out.contains(hidden), "{}", ran.out);
}

#[test]
fn relations_of_a_tablespace_out_of_reach_are_counted() {
    let (copy, scratch) = (copy(), scratch());
    let pgdata = &copy.pgdata;
    let tablespace = first_tablespace(pgdata);
    let _put = InPlaceOf::put(pgdata, &tablespace, Way::LinkLoop, &scratch);
    let document = check_json(pgdata, 3);
    let mut gaps = document.coverage.not_checked.iter();
    let counted = gaps.any(|gap| gap.what.contains(" relations in pg_tblspc/"));
    assert!(counted, "{}", told(&document));
}

#[test]
fn a_missing_file_is_a_gap_of_a_measurement() {
    let copy = copy();
    let (_, docs) = file_of_docs(&copy.pgdata);
    fs::remove_file(copy.pgdata.join(&docs)).expect("a file");
    let ran = pgclinic(&["measure", text(&copy.pgdata)]).exits(3);
    assert!(ran.out.contains(&docs), "{}", ran.out);
}

#[test]
fn few_open_files_are_a_limit_and_no_damage() {
    let (copy, scratch) = (copy(), scratch());
    let pgdata = text(&copy.pgdata);
    let to = scratch.path().join("few");
    let verbs: [&[&str]; 3] = [
        &["check", pgdata, "--level", "full"],
        &["salvage", pgdata, "--to", text(&to)],
        &["measure", pgdata],
    ];
    for arguments in verbs {
        let mut limited = Command::new("prlimit");
        limited.args(["--nofile=20:20", env!("CARGO_BIN_EXE_pgclinic")]);
        let ran = limited.args(arguments).output().expect("prlimit runs");
        let out = String::from_utf8_lossy(&ran.stdout).into_owned();
        let err = String::from_utf8_lossy(&ran.stderr).into_owned();
        let code = ran.status.code();
        assert_eq!(code, Some(0), "{arguments:?}: {out}{err}");
    }
}

#[test]
fn a_directory_out_of_reach_beside_a_running_server_is_a_gap() {
    let (copy, scratch) = (copy(), scratch());
    let (directory, _) = file_of_docs(&copy.pgdata);
    let server = copy.start().expect("a server");
    let put = InPlaceOf::put(&copy.pgdata, &directory, Way::LinkLoop, &scratch);
    let ran = pgclinic(&["check", text(&copy.pgdata)]);
    let measured = pgclinic(&["measure", text(&copy.pgdata)]);
    drop(put);
    drop(server);
    assert_eq!(ran.exit, 3, "{}", ran.out);
    assert!(ran.first_line().contains("less than 100 %"), "{}", ran.out);
    assert!(ran.out.contains(&directory), "{}", ran.out);
    assert_eq!(measured.exit, 3, "{}", measured.out);
}
