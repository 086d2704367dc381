//! Directories that the server expects.

use pgclinic_check::missing_directories;
use pgclinic_cluster::Cluster;
use pgclinic_model::plan::{Change, Safety};
use pgclinic_source::Presence;

use super::Draft;

pub(super) const NAME: &str = "make-directories";

/// Made with the WAL that goes into it.
const PG_WAL: &str = "pg_wal";

/// What may have been in one, and is lost with it.
const HELD: [(&str, &str); 9] = [
    (
        "pg_xact",
        "what became of transactions is gone but for what hint bits of rows say",
    ),
    (
        "pg_multixact/offsets",
        "who locked or changed rows together with others is gone",
    ),
    (
        "pg_multixact/members",
        "who locked or changed rows together with others is gone",
    ),
    ("pg_replslot", "replication slots that it held are gone"),
    (
        "pg_twophase",
        "prepared transactions that it held count as rolled back",
    ),
    ("pg_commit_ts", "commit time stamps that it held are gone"),
    (
        "pg_logical/snapshots",
        "logical slots that needed its snapshots cannot go on",
    ),
    (
        "pg_logical/mappings",
        "logical slots that needed its mappings cannot go on",
    ),
    (
        "pg_tblspc",
        "links to tablespaces that it held are gone, and have to be made again",
    ),
];

/// All that are missing, in one cure: exact where nothing that lasts was in them.
pub(super) fn draft(cluster: &Cluster) -> Option<Draft> {
    let missing = missing_directories(cluster);
    let own: Vec<&str> = missing.into_iter().filter(|path| *path != PG_WAL).collect();
    let first = own.first()?;
    let lost: Vec<&str> = HELD
        .iter()
        .filter(|(path, _)| own.contains(path))
        .map(|(_, what)| *what)
        .collect();
    let safety = if lost.is_empty() {
        Safety::Exact
    } else {
        Safety::Lossy
    };
    let mut draft = Draft::new(
        NAME,
        safety,
        first,
        "directories that the server needs are made",
    );
    for change in with_parents(cluster, &own) {
        draft = draft.change("made, empty", change);
    }
    for what in &lost {
        draft = draft.warn(*what);
    }
    if lost.is_empty() {
        draft = draft.because("nothing that lasts was in them");
    }
    Some(draft)
}

/// Each directory once, after those that it lies in.
pub(super) fn with_parents(cluster: &Cluster, paths: &[&str]) -> Vec<Change> {
    let source = cluster.source().as_ref();
    let mut made: Vec<String> = Vec::new();
    for path in paths {
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let own = path.get(..end).unwrap_or(path).to_owned();
            if Presence::of_directory(source, &own).is_missing() && !made.contains(&own) {
                made.push(own);
            }
        }
    }
    let directory = |path| Change::Directory { path };
    made.into_iter().map(directory).collect()
}
