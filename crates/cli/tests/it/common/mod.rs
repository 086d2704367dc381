//! Running the program inside the test, and what most of these tests ask of its answers.
#![allow(dead_code, reason = "each test file takes what it needs")]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::time::SystemTime;

use pgclinic_cli::{Env, Terminal, run};
use pgclinic_model::{CheckDocument, Severity};
use pgclinic_servers::{ConnectionDefaults, ConnectionTarget, Scratch, Server};
use pgclinic_testkit::scratch;

/// What a run gave.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) exit: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `pgclinic` with these arguments in this process.
pub(crate) fn pgclinic(arguments: &[&str]) -> Ran {
    ran(arguments, Around::default())
}

/// The same with this text on stdin.
pub(crate) fn pgclinic_reading(arguments: &[&str], stdin: &str) -> Ran {
    let around = Around {
        stdin,
        ..Around::default()
    };
    ran(arguments, around)
}

/// The same of somebody whose environment names this data directory.
pub(crate) fn pgclinic_in(arguments: &[&str], pgdata: &Path) -> Ran {
    let around = Around {
        pgdata: Some(pgdata),
        ..Around::default()
    };
    ran(arguments, around)
}

/// The same of somebody whose environment says what URLs leave out.
pub(crate) fn pgclinic_from(arguments: &[&str], server_defaults: ConnectionDefaults) -> Ran {
    let around = Around {
        server_defaults,
        ..Around::default()
    };
    ran(arguments, around)
}

/// The same on a machine with these files of options.
pub(crate) fn pgclinic_with_config(arguments: &[&str], config_files: &[&Path]) -> Ran {
    let around = Around {
        config_files: config_files.iter().map(PathBuf::from).collect(),
        ..Around::default()
    };
    ran(arguments, around)
}

/// The same of somebody who changed their mind before it began.
pub(crate) fn pgclinic_stopped(arguments: &[&str]) -> Ran {
    let around = Around {
        interrupted: Arc::new(AtomicBool::new(true)),
        ..Around::default()
    };
    ran(arguments, around)
}

/// The same of somebody who reads each line of stderr as it comes.
pub(crate) fn pgclinic_saying(arguments: &[&str], said: Sender<String>) -> Ran {
    let around = Around {
        said: Some(said),
        ..Around::default()
    };
    ran(arguments, around)
}

/// Sends what is written, and keeps it.
struct Heard {
    said: Option<Sender<String>>,
    bytes: Vec<u8>,
}

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        if let Some(said) = &self.said
            && self.bytes.ends_with(b"\n")
        {
            let text = String::from_utf8_lossy(&self.bytes).into_owned();
            let _nobody_listens = said.send(text);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What is around a run.
#[derive(Default)]
struct Around<'a> {
    said: Option<Sender<String>>,
    stdin: &'a str,
    interrupted: Arc<AtomicBool>,
    pgdata: Option<&'a Path>,
    server_defaults: ConnectionDefaults,
    config_files: Vec<PathBuf>,
}

fn ran(arguments: &[&str], around: Around<'_>) -> Ran {
    let mut out = Vec::new();
    let mut err = Heard {
        said: around.said,
        bytes: Vec::new(),
    };
    let terminal = Terminal {
        stdin: false,
        stdout: false,
        stderr: false,
        width: 100,
        height: 24,
        no_color: true,
        is_dumb: true,
    };
    let mut world = Env {
        stdin: &mut around.stdin.as_bytes(),
        stdout: &mut out,
        stderr: &mut err,
        terminal,
        started: SystemTime::UNIX_EPOCH,
        host: Some("bedside".into()),
        temp_folder: std::env::temp_dir(),
        pgdata: around.pgdata.map(|path| path.as_os_str().to_owned()),
        config_files: around.config_files,
        server_defaults: around.server_defaults,
        passwords: pgclinic_servers::Passwords::default(),
        interrupted: around.interrupted,
        program: Some(env!("CARGO_BIN_EXE_pgclinic").into()),
        state_directory: None,
        has_own_process: false,
    };
    let line = std::iter::once("pgclinic").chain(arguments.iter().copied());
    let exit = run(line.map(OsString::from).collect(), &mut world).code();
    let text = |bytes| String::from_utf8(bytes).expect("the program writes UTF-8");
    Ran {
        exit,
        out: text(out),
        err: text(err.bytes),
    }
}

impl Ran {
    /// The same, after holding it to its exit code.
    #[track_caller]
    pub(crate) fn exits(self, code: u8) -> Self {
        assert_eq!(
            self.exit, code,
            "stdout: {}\nstderr: {}",
            self.out, self.err
        );
        self
    }

    pub(crate) fn document(&self) -> CheckDocument {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {} {}", self.out, self.err))
    }

    pub(crate) fn first_line(&self) -> &str {
        self.out.lines().next().unwrap_or_default()
    }
}

/// `check --format json` with its exit code.
#[track_caller]
pub(crate) fn check_json(pgdata: &Path, exit: u8) -> CheckDocument {
    let ran = pgclinic(&["check", text(pgdata), "--format", "json"]);
    let document = ran.document();
    assert_eq!(ran.exit, exit, "{}\n{}", told(&document), ran.err);
    hold_ledger(&document);
    document
}

/// Nothing was looked at without being counted.
#[track_caller]
pub(crate) fn hold_ledger(document: &CheckDocument) {
    let coverage = &document.coverage;
    assert_eq!(document.schema, "pgclinic.check/1");
    assert!(coverage.is_balanced(), "{coverage:?}");
    assert!(
        coverage.bytes_seen > 0 && coverage.pages > 0,
        "{coverage:?}"
    );
}

/// Findings and gaps in lines, for messages.
pub(crate) fn told(document: &CheckDocument) -> String {
    let findings = document.findings.iter().map(|finding| {
        let severity = finding.severity.name();
        format!(
            "{severity} {}: {}: {}",
            finding.rule, finding.place, finding.message
        )
    });
    let gaps = document.coverage.not_checked.iter();
    let gaps = gaps.map(|gap| format!("not checked: {}: {} ({})", gap.what, gap.why, gap.inherent));
    let lines: Vec<String> = findings.take(40).chain(gaps.take(40)).collect();
    format!("{:?}\n{}", document.verdict, lines.join("\n"))
}

/// How many findings are of this severity.
pub(crate) fn count(document: &CheckDocument, severity: Severity) -> usize {
    let of = |finding: &&pgclinic_model::Finding| finding.severity == severity;
    document.findings.iter().filter(of).count()
}

pub(crate) type Seen = BTreeSet<(String, String, Option<u32>, Option<String>)>;

/// Rule, file, block and relation of what is more than a note.
pub(crate) fn seen(document: &CheckDocument) -> Seen {
    let worth = document.findings.iter();
    let worth = worth.filter(|finding| finding.severity != Severity::Note);
    let key = |finding: &pgclinic_model::Finding| {
        let place = &finding.place;
        (
            finding.rule.clone(),
            place.path.clone(),
            place.block,
            place.relation.clone(),
        )
    };
    worth.map(key).collect()
}

/// The same without what speaks of manifests, which only backups have.
pub(crate) fn apart_from_manifests(document: &CheckDocument) -> Seen {
    let mut seen = seen(document);
    seen.retain(|(rule, ..)| !rule.starts_with("backup-"));
    seen
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str()
        .expect("directories of tests have plain names")
}

/// The files below a folder with their bytes; links are followed into folders.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut left = vec![folder.to_path_buf()];
    while let Some(path) = left.pop() {
        let kind = path.metadata().expect("a file or a directory").file_type();
        if kind.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a directory");
            left.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if kind.is_file() {
            let bytes = std::fs::read(&path).expect("a file");
            found.insert(path, bytes);
        }
    }
    found
}

/// The page of the account that a salvage left in this folder.
pub(crate) fn account_page(out: &Path) -> String {
    let account = out.join("salvage.json");
    let ran = pgclinic(&["report", text(&account), "--format", "html"]);
    ran.exits(0).out
}

/// A file system in memory of some size, gone on drop.
pub(crate) struct SmallDisk {
    _folder: Scratch,
    pub(crate) path: PathBuf,
}

impl SmallDisk {
    /// Nothing where nobody may mount.
    pub(crate) fn new(size: &str) -> Option<Self> {
        // The user of the servers comes here too.
        let folder = scratch();
        let path = folder.path().join("disk");
        std::fs::create_dir(&path).expect("a directory");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(&path)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SmallDisk {
                _folder: folder,
                path,
            }),
            // A container often may not mount.
            _ => None,
        }
    }

    pub(crate) fn grow(&self, size: &str) {
        let grown = Command::new("mount")
            .args(["-o", &format!("remount,size={size}")])
            .arg(&self.path)
            .status();
        assert!(grown.is_ok_and(|status| status.success()));
    }
}

/// A directory as it cannot be written to, under a second path.
pub(crate) struct ReadOnlyMount(SecondPath);

impl ReadOnlyMount {
    /// Nothing where nobody may mount.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let mount = SecondPath::of(folder)?;
        let status = Command::new("mount")
            .args(["-o", "remount,bind,ro"])
            .arg(&mount.path)
            .status();
        status
            .is_ok_and(|status| status.success())
            .then_some(ReadOnlyMount(mount))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }
}

/// A folder under a second path, gone on drop.
pub(crate) struct SecondPath {
    _folder: Scratch,
    pub(crate) path: PathBuf,
}

impl SecondPath {
    /// Nothing where nobody may mount.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let home = scratch();
        let path = home.path().join("same");
        std::fs::create_dir(&path).expect("a directory");
        let mounted = Command::new("mount")
            .arg("--bind")
            .args([folder, &path])
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(SecondPath {
                _folder: home,
                path,
            }),
            // A container often may not mount.
            _ => None,
        }
    }
}

/// The address of the test database on this server, as this user.
pub(crate) fn url(server: &Server, user: &str) -> String {
    let target = ConnectionTarget {
        user: user.into(),
        ..ConnectionTarget::of(server, "clinic")
    };
    target.to_string()
}

/// Says that a test could not be run, past what the harness keeps back of a test that passes.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
