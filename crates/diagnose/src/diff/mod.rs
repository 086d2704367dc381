//! Two copies of one cluster, compared block by block: which blocks differ, which copy is sound, which is older, and whether
//! its WAL explains it.

mod again;
mod judge;
mod mask;
mod pairs;
mod pass;
mod position;

use std::fmt;
use std::num::NonZeroUsize;

use pgclinic_cluster::Cluster;

use crate::document::{
    Copy, DIFF_SCHEMA, DiffCoverage, DiffDocument, DiffVerdict, Difference, NotChecked, Tool,
};
use crate::walker::{Bystander, Progress, Selection, target_of};
use judge::Side;
use position::Position;

/// Bytes that a shutdown checkpoint takes in the WAL at most, page headers included.
const CHECKPOINT_BYTES: u64 = 256;

/// What is compared.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// Threads that read and compare.
    pub threads: NonZeroUsize,
    /// What part of the clusters.
    pub selection: Selection,
    /// How the person named the first.
    pub spec_a: String,
    /// How the person named the second.
    pub spec_b: String,
}

/// Why two clusters cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoCopies {
    /// They were made by two runs of `initdb`.
    OtherCluster {
        /// System identifier of the first.
        a: u64,
        /// Of the second.
        b: u64,
    },
    /// They are of two majors.
    OtherMajor {
        /// Major of the first.
        a: u16,
        /// Of the second.
        b: u16,
    },
    /// Pages or segments have another size.
    OtherBuild,
}

impl fmt::Display for NoCopies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoCopies::OtherCluster { a, b } => write!(
                f,
                "these are no copies of one cluster: their system identifiers are {a} and {b}"
            ),
            NoCopies::OtherMajor { a, b } => write!(
                f,
                "these are no copies of one cluster: one is of PostgreSQL {a}, the other of {b}"
            ),
            NoCopies::OtherBuild => f.write_str(
                "these are no copies of one cluster: their pages or segments differ in size",
            ),
        }
    }
}

impl std::error::Error for NoCopies {}

/// Compares two copies. Where a server is at work on one of them, blocks that seem to contradict each other are looked at again
/// while the bystander waits. `elapsed_s` is left at 0: the clock is the caller's.
pub fn diff_clusters(
    a: &Cluster,
    b: &Cluster,
    options: &DiffOptions,
    progress: &dyn Progress,
    bystander: &dyn Bystander,
) -> Result<DiffDocument, NoCopies> {
    must_be_copies(a, b)?;
    let steady = [a, b].map(|copy| copy.is_running().then(|| copy.steady().ok()).flatten());
    let [now_a, now_b] = &steady;
    let (a, b) = (now_a.as_ref().unwrap_or(a), now_b.as_ref().unwrap_or(b));
    let sides = (side(a), side(b));
    let (position_a, position_b) = (sides.0.position, sides.1.position);
    let mut document = DiffDocument {
        schema: DIFF_SCHEMA.into(),
        tool: Tool::this(),
        a: target_of(a, &options.spec_a),
        b: target_of(b, &options.spec_b),
        position_a: position_a.map(Position::told),
        position_b: position_b.map(Position::told),
        older: older(position_a, position_b),
        verdict: DiffVerdict::Same,
        coverage: DiffCoverage::default(),
        forks: Vec::new(),
        interrupted: false,
        elapsed_s: 0.0,
    };
    for (name, cluster) in [("A", a), ("B", b)] {
        tell_troubles(name, cluster, &mut document.coverage);
        if cluster.is_running() {
            document.coverage.not_checked.push(beside_a_server(name));
        }
    }
    let databases = a.databases.keys().chain(b.databases.keys());
    let databases: std::collections::BTreeSet<u32> = databases.copied().chain([0]).collect();
    for database in databases {
        let asked = [a, b]
            .into_iter()
            .any(|copy| options.selection.takes_database(copy, database));
        if asked && !progress.is_interrupted() {
            let people = (progress, bystander);
            pass::compare_database(sides, database, options, people, &mut document);
        }
    }
    document.interrupted = progress.is_interrupted();
    let maps = NotChecked {
        what: "maps of free space and visibility, unlogged and temporary relations".into(),
        why: "two copies may differ there at any time".into(),
        inherent: true,
    };
    document.coverage.not_checked.push(maps);
    document.verdict = verdict(&document);
    // Contradictions first, then by place.
    document.forks.sort_by_key(|fork| !fork.contradicts());
    Ok(document)
}

/// What a copy's files do not show while a server works with them.
fn beside_a_server(name: &str) -> NotChecked {
    NotChecked {
        what: format!("what the server of {name} has in its memory only"),
        why: "it is at work: each block is compared as its file had it when it was read".into(),
        inherent: true,
    }
}

fn must_be_copies(a: &Cluster, b: &Cluster) -> Result<(), NoCopies> {
    if a.layout.major != b.layout.major {
        return Err(NoCopies::OtherMajor {
            a: a.layout.major,
            b: b.layout.major,
        });
    }
    if let (Some(own_a), Some(own_b)) = (a.control.trusted(), b.control.trusted())
        && own_a.system_identifier != own_b.system_identifier
    {
        return Err(NoCopies::OtherCluster {
            a: own_a.system_identifier,
            b: own_b.system_identifier,
        });
    }
    let same =
        a.build.block_size == b.build.block_size && a.build.segment_bytes == b.build.segment_bytes;
    same.then_some(()).ok_or(NoCopies::OtherBuild)
}

pub(crate) fn side(cluster: &Cluster) -> Side<'_> {
    Side {
        cluster,
        position: Position::of(cluster),
    }
}

fn older(a: Option<Position>, b: Option<Position>) -> Option<Copy> {
    let (a, b) = (a?.end, b?.end);
    (a != b).then_some(if a < b { Copy::A } else { Copy::B })
}

fn tell_troubles(name: &str, cluster: &Cluster, coverage: &mut DiffCoverage) {
    let mut tell = |what: String, why: String| {
        let what = format!("{what} of {name}");
        coverage.not_checked.push(NotChecked {
            what,
            why,
            inherent: false,
        });
    };
    if cluster.control.trusted().is_none() {
        let why =
            "the control file cannot be trusted, so that nothing tells where this copy stands";
        tell("the position".into(), why.into());
    }
    for trouble in &cluster.troubles {
        tell(trouble.what.clone(), trouble.why.clone());
    }
}

fn verdict(document: &DiffDocument) -> DiffVerdict {
    let counts = document.counts();
    let gaps = document
        .coverage
        .not_checked
        .iter()
        .any(|gap| !gap.inherent);
    let unread = counts.iter().any(|(way, _)| *way == Difference::Unreadable);
    if counts.iter().any(|(way, _)| way.is_contradiction()) {
        DiffVerdict::Contradictory
    } else if gaps || unread || document.interrupted {
        DiffVerdict::Incomplete
    } else if counts.iter().any(|(way, _)| *way != Difference::Hints) {
        DiffVerdict::Explained
    } else {
        DiffVerdict::Same
    }
}
