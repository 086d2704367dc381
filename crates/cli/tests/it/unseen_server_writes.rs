//! What writes to a data directory, or copies it to write to the copy, refuses one on which a
//! server works that cannot be seen from here: its `postmaster.pid` names a process that is none of
//! ours. (A server ends when it finds that out, so its postmaster stands still for that long; all
//! its other processes go on.)

use crate::common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Ran, pgclinic, text};
use pgclinic_servers::{Checksums, Server};
use pgclinic_surgery::mark_copy;
use pgclinic_testkit::{
    Load, TempCopy, busy, copy_of, execute, scratch, seed, server as installed, value,
};
use rustix::process::{Pid, Signal, kill_process};

const COMMITS: &str = "INSERT INTO public.ticks VALUES (1)";
const SEEN: &str = "no process of it can be seen from here, but";

/// A server as another pid namespace shows it, until this is dropped.
struct Elsewhere {
    postmaster: Pid,
    lock: PathBuf,
    lines: String,
}

impl Elsewhere {
    fn put(server: &Server, pgdata: &Path) -> Self {
        let number = i32::try_from(server.pid()).expect("a number");
        let postmaster = Pid::from_raw(number).expect("a process");
        let lock = pgdata.join("postmaster.pid");
        let lines = fs::read_to_string(&lock).expect("a server's file");
        kill_process(postmaster, Signal::STOP).expect("it stands still");
        let (_, rest) = lines.split_once('\n').expect("lines");
        fs::write(&lock, format!("{}\n{rest}", nobody())).expect("a file");
        Elsewhere {
            postmaster,
            lock,
            lines,
        }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        let back = fs::write(&self.lock, &self.lines);
        let goes_on = kill_process(self.postmaster, Signal::CONT);
        let done = back.is_ok() && goes_on.is_ok();
        assert!(done || std::thread::panicking(), "{back:?}, {goes_on:?}");
    }
}

/// The number of a process that has ended.
fn nobody() -> u32 {
    let mut child = Command::new("true").spawn().expect("a process");
    let number = child.id();
    child.wait().expect("it ends");
    number
}

fn injure(copy: &TempCopy, relation: &str, more: &[&str]) -> Ran {
    let words = ["injure", text(&copy.pgdata), "--injury", "flipped-bit"];
    let place = ["--database", "clinic", "--relation", relation];
    pgclinic(&[&words[..], &place[..], more].concat())
}

#[track_caller]
fn refused(ran: Ran) {
    let ran = ran.exits(2);
    assert_eq!(ran.out, "");
    assert!(ran.err.contains(SEEN), "{}", ran.err);
    assert!(ran.err.contains("nothing was written"), "{}", ran.err);
}

#[test]
fn nothing_is_written_under_a_server_that_cannot_be_seen() {
    let copy = copy_of(&seed(&installed(18), Checksums::On));
    let folder = scratch();
    let at = |name: &str| folder.path().join(name);
    let (first, second) = (at("first"), at("second"));
    mark_copy(&copy.pgdata).expect("a marker");
    injure(&copy, "public.frozen", &["--journal", text(&first)]).exits(0);

    let mut server = copy.start_with(&busy()).expect("a server");
    execute(&server, "CREATE TABLE public.ticks (tick int)");
    let path = value(&server, "SELECT pg_relation_filepath('public.frozen')");
    let hurt = || fs::read(copy.pgdata.join(&path)).expect("a file");
    let before = hurt();
    let load = Load::start(&server, &[COMMITS]);
    let elsewhere = Elsewhere::put(&server, &copy.pgdata);
    refused(injure(&copy, "public.docs", &["--journal", text(&second)]));
    refused(injure(
        &copy,
        "public.docs",
        &["--copy-to", text(&at("copy"))],
    ));
    refused(pgclinic(&["injure", "--undo", text(&first)]));
    let recover = ["salvage", text(&copy.pgdata), "--recover", "--no-sync"];
    let rows = ["--database", "clinic", "--relation", "public.frozen"];
    let salvage = |to: &Path| pgclinic(&[&recover[..], &rows, &["--to", text(to)]].concat());
    refused(salvage(&at("rows")));
    drop(elsewhere);
    assert!(load.stop() > 0, "it was running");
    assert!(before == hurt(), "nothing was written");
    assert!(!second.exists() && !at("copy").exists());

    // A crash leaves its file behind, and nobody writes any more: as before.
    server.kill();
    assert!(copy.pgdata.join("postmaster.pid").exists());
    let undone = pgclinic(&["injure", "--undo", text(&first)]).exits(0);
    assert!(undone.err.contains("for 5 s"), "{}", undone.err);
    assert!(before != hurt(), "the first bytes again");
    injure(&copy, "public.docs", &["--journal", text(&second)]).exits(0);
    pgclinic(&["injure", "--undo", text(&second)]).exits(0);
    salvage(&at("rows")).exits(0);
}

/// Without a file of a server nobody waits; one that shut down leaves none.
#[test]
fn a_stopped_cluster_is_written_to_at_once() {
    let copy = copy_of(&seed(&installed(18), Checksums::On));
    let folder = scratch();
    let journal = folder.path().join("journal");
    mark_copy(&copy.pgdata).expect("a marker");
    let injured = injure(&copy, "public.frozen", &["--journal", text(&journal)]).exits(0);
    assert_eq!(injured.err, "");
}
