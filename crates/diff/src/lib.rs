//! Two copies of one cluster, compared block by block: which blocks differ, which copy is sound,
//! which is older, and whether its WAL explains it.
#![forbid(unsafe_code)]

mod clones;
mod mask;
mod page_comparison;
mod pairs;
mod pass;
mod position;
mod prepared;
mod recheck;
mod relation_maps;
mod standing;
mod status;
mod tail;
mod timelines;
mod version_files;

use std::collections::BTreeSet;
use std::fmt;
use std::num::NonZeroUsize;

pub use mask::are_alike;
use page_comparison::{Side, on_its_timeline, sides};
use pgclinic_cluster::{Cluster, selected, target_of};
use pgclinic_model::document::{
    Copy, DIFF_SCHEMA, DiffCoverage, DiffDocument, DiffVerdict, Difference, NotChecked, Soundness,
    Tool,
};
use pgclinic_model::{Progress, Selection};
use pgclinic_scan::live::{FreshView, LiveServer};
use position::Position;
use timelines::Kinship;

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

/// Compares two copies. Where a server is at work on one of them, blocks that seem to contradict
/// each other are looked at again while it gets on. `elapsed_s` is left at 0: the clock is the
/// caller's.
pub fn diff_clusters(
    a: &Cluster,
    b: &Cluster,
    options: &DiffOptions,
    progress: &dyn Progress,
    server: &dyn LiveServer,
) -> Result<DiffDocument, NoCopies> {
    must_be_copies(a, b)?;
    let [now_a, now_b] = [a, b].map(|copy| recheck::newer(copy, server));
    let a = now_a.as_ref().map_or(a, FreshView::cluster);
    let b = now_b.as_ref().map_or(b, FreshView::cluster);
    let sides = sides(a, b);
    let (position_a, position_b) = (sides.0.position, sides.1.position);
    let mut document = DiffDocument {
        schema: DIFF_SCHEMA.into(),
        tool: Tool::this(),
        a: target_of(a, &options.spec_a),
        b: target_of(b, &options.spec_b),
        position_a: position_a.map(Position::told),
        position_b: position_b.map(Position::told),
        older: older(sides),
        parted_at: match sides.0.kinship {
            Kinship::Parted(at) => Some(at.to_string()),
            Kinship::Line | Kinship::Unknown => None,
        },
        verdict: DiffVerdict::Same,
        sound: None,
        coverage: DiffCoverage::default(),
        forks: Vec::new(),
        files: Vec::new(),
        interrupted: false,
        elapsed_s: 0.0,
    };
    for (name, cluster) in [("A", a), ("B", b)] {
        tell_troubles(name, cluster, &mut document.coverage);
        if cluster.is_running() {
            document.coverage.not_checked.push(beside_a_server(name));
        }
    }
    if sides.0.kinship == Kinship::Unknown {
        document
            .coverage
            .not_checked
            .push(of_unknown_kinship(sides));
    }
    let databases = a.databases.keys().chain(b.databases.keys());
    let databases: BTreeSet<u32> = databases.copied().chain([0]).collect();
    for database in databases {
        let asked = [a, b]
            .into_iter()
            .any(|copy| selected::database(&options.selection, copy, database));
        if asked && !progress.is_interrupted() {
            let people = (progress, server);
            pass::compare_database(sides, database, options, people, &mut document);
        }
    }
    if options.selection.is_everything() && !progress.is_interrupted() {
        relation_maps::compare(sides, (progress, server), &mut document);
        status::compare(sides, &mut document);
        prepared::compare(sides, &mut document);
        version_files::compare(sides, &mut document);
    }
    for (name, cluster) in [("A", a), ("B", b)] {
        tell_unreadable(name, cluster, &mut document.coverage);
    }
    document.interrupted = progress.is_interrupted();
    assert!(
        document.is_balanced(),
        "the blocks do not add up: {:?}",
        document.coverage
    );
    tell_the_rest(&mut document.coverage);
    document.verdict = verdict(&document);
    document.sound = Some(sound(&document));
    // Contradictions first, then by place.
    document
        .forks
        .sort_by_key(|fork| (!fork.contradicts(), !fork.has(Difference::Parted)));
    Ok(document)
}

/// What a copy's files do not show while a server works with them.
fn beside_a_server(name: &str) -> NotChecked {
    NotChecked {
        what: format!("what the server of {name} has in its memory only"),
        why: "it is running: each block is compared as its file had it when it was read".into(),
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

/// Of copies of one line only: positions on two timelines cannot be compared. The WAL of a primary
/// that was shut down ends where its last checkpoint begins, that of its standby where that
/// checkpoint ends.
fn older((a, b): (Side<'_>, Side<'_>)) -> Option<Copy> {
    let at_one = standing::standing((a, b)) != standing::Standing::Apart;
    let is_told = a.kinship == Kinship::Line && !at_one;
    Position::older(a.position?, b.position?).filter(|_| is_told)
}

fn of_unknown_kinship((a, b): (Side<'_>, Side<'_>)) -> NotChecked {
    NotChecked {
        what: "which copy is older, and whether WAL explains what differs".into(),
        why: format!(
            "{}, {}, and no history in pg_wal tells where they parted",
            on_its_timeline("A", a),
            on_its_timeline("B", b)
        ),
        inherent: false,
    }
}

/// What is never compared.
fn tell_the_rest(coverage: &mut DiffCoverage) {
    let rest = [
        (
            "maps of free space and visibility, unlogged and temporary relations",
            "two copies may differ there at any time",
        ),
        (
            "pg_wal, pg_replslot, pg_logical, pg_stat, pg_subtrans, pg_notify, pg_serial, pg_snapshots, settings and logs",
            "they belong to each server by itself, or are made again when it starts",
        ),
    ];
    for (what, why) in rest {
        coverage.not_checked.push(NotChecked {
            what: what.into(),
            why: why.into(),
            inherent: true,
        });
    }
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

/// What was asked for on the way and could not be reached.
fn tell_unreadable(name: &str, cluster: &Cluster, coverage: &mut DiffCoverage) {
    for trouble in cluster.unreadable() {
        let own = format!("{} of {name}", trouble.what);
        let mut told = coverage.not_checked.iter();
        if !told.any(|gap| !gap.inherent && (gap.what == own || gap.what == trouble.what)) {
            coverage.not_checked.push(NotChecked {
                what: own,
                why: trouble.why,
                inherent: false,
            });
        }
    }
}

/// Which copy may be relied on, by who is at fault where both contradict each other. Of a fork with
/// more blocks than are kept, those that are kept speak for the others.
fn sound(document: &DiffDocument) -> Soundness {
    let blocks = document.forks.iter().flat_map(|fork| &fork.blocks);
    let of_blocks = blocks.map(|block| (block.difference, block.copy));
    let of_files = document
        .files
        .iter()
        .map(|file| (file.difference, file.copy));
    let mut faults = Soundness::default();
    for (difference, copy) in of_blocks.chain(of_files) {
        match (difference, copy) {
            (Difference::BothUnsound, _) => {
                faults.at_fault_a += 1;
                faults.at_fault_b += 1;
            }
            (way, Some(Copy::A)) if way.is_contradiction() => faults.at_fault_a += 1,
            (way, Some(Copy::B)) if way.is_contradiction() => faults.at_fault_b += 1,
            (way, None) if way.is_contradiction() => faults.undecided += 1,
            _ => {}
        }
    }
    faults
}

fn verdict(document: &DiffDocument) -> DiffVerdict {
    let counts = document.counts();
    let gaps = document
        .coverage
        .not_checked
        .iter()
        .any(|gap| !gap.inherent);
    let files = document.files.iter().map(|file| file.difference);
    let ways: BTreeSet<Difference> = counts.iter().map(|(way, _)| *way).chain(files).collect();
    let unread = ways.contains(&Difference::Unreadable) || ways.contains(&Difference::Undecided);
    if ways.iter().any(|way| way.is_contradiction()) {
        DiffVerdict::Contradictory
    } else if document.parted_at.is_some() || ways.contains(&Difference::Parted) {
        DiffVerdict::Parted
    } else if gaps || unread || document.interrupted {
        DiffVerdict::Incomplete
    } else if ways.iter().any(|way| *way != Difference::Hints) {
        DiffVerdict::Explained
    } else {
        DiffVerdict::Same
    }
}
