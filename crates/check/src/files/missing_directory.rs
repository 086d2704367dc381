//! A directory that `initdb` makes and the server expects is not there.
//!
//! Truth: `subdirs` in `src/bin/initdb/initdb.c`, and what servers of 15 and 18 did without each.

use pgclinic_cluster::{Cluster, Comparison, file_place};
use pgclinic_model::document::{FileKind, Level};
use pgclinic_model::plan::Safety;
use pgclinic_model::{Rule, Severity};
use pgclinic_source::Presence;

use crate::check::ClusterCheck;
use crate::findings::{Draft, Findings};

/// The rule.
pub static MISSING_DIRECTORY: Rule =
    Rule::from_page(include_str!("../../rules/missing-directory.md"));

/// See [`MISSING_DIRECTORY`].
pub struct MissingDirectory;

/// What a server does without a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    /// It does not start: it lists the directory first.
    CannotList,
    /// It does not start, with these words.
    CannotStart(&'static str),
    /// It does not start, or ends soon after, with words that depend on what it looks for.
    Stops,
    /// It starts, and no checkpoint succeeds.
    CannotCheckpoint,
    /// It works, but for what needs the directory.
    Misses(&'static str),
}

use Without::{CannotCheckpoint, CannotList, CannotStart, Misses, Stops};

/// Without those that the server makes again (`pg_wal/archive_status`, `pg_wal/summaries`), and
/// `base` and `global`, whose files others miss.
const DIRECTORIES: [(&str, Without); 17] = [
    (
        "pg_wal",
        CannotStart("required WAL directory \"pg_wal\" does not exist"),
    ),
    ("pg_xact", Stops),
    ("pg_multixact/offsets", Stops),
    ("pg_multixact/members", Stops),
    ("pg_commit_ts", CannotList),
    ("pg_notify", CannotList),
    ("pg_replslot", CannotList),
    ("pg_twophase", CannotList),
    ("pg_logical/mappings", CannotCheckpoint),
    ("pg_logical/snapshots", CannotCheckpoint),
    ("pg_subtrans", CannotCheckpoint),
    ("pg_tblspc", Misses("tablespaces and base backups")),
    (
        "pg_stat",
        Misses("statistics, which are lost at each restart"),
    ),
    (
        "pg_stat_tmp",
        Misses("statistics, those of extensions from 15 on"),
    ),
    ("pg_serial", Misses("many serializable transactions")),
    ("pg_snapshots", Misses("exported snapshots")),
    ("pg_dynshmem", Misses("dynamic_shared_memory_type = mmap")),
];

/// Those that are missing, in the order in which the server asks for them.
pub fn missing_directories(cluster: &Cluster) -> Vec<&'static str> {
    if !cluster.may_compare(Comparison::DirectoriesWithLayout) {
        return Vec::new();
    }
    let source = cluster.source().as_ref();
    let all = DIRECTORIES.iter().map(|(path, _)| *path);
    all.filter(|path| Presence::of_directory(source, path).is_missing())
        .collect()
}

impl ClusterCheck for MissingDirectory {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&MISSING_DIRECTORY] }
    }

    fn level(&self) -> Level {
        Level::Pages
    }

    fn check(&self, cluster: &Cluster, out: &mut Findings) {
        let missing = missing_directories(cluster);
        for (path, without) in DIRECTORIES {
            if missing.contains(&path) {
                out.add(draft_of(path, without));
            }
        }
    }
}

fn draft_of(path: &str, without: Without) -> Draft {
    let message = match without {
        Misses(what) => format!("the directory {path} is missing; it serves {what}"),
        CannotCheckpoint => {
            format!("the directory {path} is missing; without it no checkpoint succeeds")
        }
        CannotList | CannotStart(_) | Stops => format!("the directory {path} is missing"),
    };
    let absent = || format!("could not open directory \"{path}\": No such file or directory");
    let words = match without {
        CannotList => Some(format!("FATAL:  {}", absent())),
        CannotStart(words) => Some(format!("FATAL:  {words}")),
        // The server names a file in it.
        CannotCheckpoint if path == "pg_subtrans" => None,
        CannotCheckpoint => Some(format!("ERROR:  {}", absent())),
        Stops | Misses(_) => None,
    };
    let draft = Draft::new(&MISSING_DIRECTORY, message)
        .rows(0)
        .place(file_place(path, FileKind::File))
        .remedy("make-directory", Safety::ShowOnly, cure_of(path));
    let draft = match without {
        Misses(_) => draft.severity(Severity::Warning),
        _ => draft,
    };
    match words {
        Some(words) => draft.server_says(words),
        None => draft,
    }
}

fn cure_of(path: &str) -> String {
    match path {
        "pg_wal" | "pg_xact" | "pg_multixact/offsets" | "pg_multixact/members" => {
            format!("take {path} with its files from a backup or standby of this cluster")
        }
        "pg_twophase" | "pg_replslot" => format!(
            "mkdir -m 700 {path} in the data directory, as its owner; prepared transactions and replication slots that it held come only from a copy"
        ),
        _ => format!("mkdir -m 700 {path} in the data directory, as its owner"),
    }
}
