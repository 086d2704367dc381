//! Words about two copies of one cluster, for every format.

use pgclinic_diagnose::document::{
    Copy, DiffBlock, DiffDocument, DiffFork, DiffVerdict, Difference,
};
use pgclinic_format::Fork;

use crate::words::{self, bytes, count, plural};

/// `EXPLAINED`.
pub(crate) fn word(verdict: DiffVerdict) -> &'static str {
    match verdict {
        DiffVerdict::Same => "SAME",
        DiffVerdict::Explained => "EXPLAINED",
        DiffVerdict::Contradictory => "CONTRADICTORY",
        DiffVerdict::Incomplete => "INCOMPLETE",
    }
}

pub(crate) fn is_bad(verdict: DiffVerdict) -> bool {
    verdict == DiffVerdict::Contradictory
}

pub(crate) fn is_good(verdict: DiffVerdict) -> bool {
    matches!(verdict, DiffVerdict::Same | DiffVerdict::Explained)
}

/// `12 of 5,432 blocks differ in 3 files; 7 blocks in hints or unused space only; B is older; compared 42.4 MiB twice in 0.1 s`.
pub(crate) fn extent(document: &DiffDocument) -> String {
    let counts = document.counts();
    let differ = counts.iter().filter(|(way, _)| *way != Difference::Hints);
    let differ: u64 = differ.map(|(_, blocks)| blocks).sum();
    let files = document.forks.iter().filter(|fork| !fork.is_hints_only());
    let contradict = counts.iter().filter(|(way, _)| way.is_contradiction());
    let contradict: u64 = contradict.map(|(_, blocks)| blocks).sum();
    let mut parts = Vec::new();
    parts.push(match differ {
        0 => format!("{}, all equal", plural(document.coverage.blocks, "block")),
        _ => format!(
            "{} of {} {} in {}",
            count(differ),
            plural(document.coverage.blocks, "block"),
            if differ == 1 { "differs" } else { "differ" },
            plural(files.count() as u64, "file")
        ),
    });
    let hints = counts.iter().find(|(way, _)| *way == Difference::Hints);
    if let Some((way, blocks)) = hints {
        parts.push(format!("{} {}", plural(*blocks, "block"), phrase(*way)));
    }
    if contradict > 0 {
        let verb = if contradict == 1 {
            "contradicts"
        } else {
            "contradict"
        };
        parts.push(format!("{} {verb} the other copy", count(contradict)));
    }
    parts.push(match document.older {
        Some(Copy::A) => "A is older".into(),
        Some(Copy::B) => "B is older".into(),
        None => "neither is older".into(),
    });
    let read = bytes(document.coverage.bytes_read);
    parts.push(format!(
        "read {read} in {}",
        words::seconds(document.elapsed_s)
    ));
    if document.interrupted {
        parts.push("interrupted".into());
    }
    parts.join("; ")
}

/// What the count of a way is followed by.
pub(crate) fn phrase(way: Difference) -> &'static str {
    match way {
        Difference::Hints => "in hints or unused space only",
        Difference::Replayed => "that replay brings to the later version",
        Difference::Later => "changed after the older copy",
        Difference::Stale => "stale",
        Difference::Conflict => "in conflict",
        Difference::Unsound => "unsound in one copy",
        Difference::BothUnsound => "unsound in both copies",
        Difference::Missing => "in one copy only",
        Difference::Lost => "lost in one copy",
        Difference::Unreadable => "unreadable",
    }
}

/// `3 blocks stale, 7 blocks changed after the older copy`.
pub(crate) fn ways(fork: &DiffFork) -> String {
    let ways = fork
        .counts
        .iter()
        .map(|(way, blocks)| format!("{} {}", plural(*blocks, "block"), phrase(*way)));
    ways.collect::<Vec<_>>().join(", ")
}

/// `table, database clinic, base/16384/17238, 50 blocks in A, 52 in B`.
pub(crate) fn about(fork: &DiffFork) -> String {
    let mut parts = vec![fork.kind.words().to_owned()];
    parts.extend(
        fork.database
            .as_ref()
            .map(|name| format!("database {name}")),
    );
    if fork.name() != fork.path {
        parts.push(fork.path.clone());
    }
    if fork.fork != Fork::Main {
        parts.push(format!("fork {}", fork.fork));
    }
    parts.push(match (fork.blocks_a, fork.blocks_b) {
        (Some(a), Some(b)) if a == b => plural(a, "block"),
        (Some(a), Some(b)) => format!("{} in A, {} in B", plural(a, "block"), count(b)),
        (Some(a), None) => format!("{} in A, no such file in B", plural(a, "block")),
        (None, b) => format!(
            "no such file in A, {} in B",
            plural(b.unwrap_or(0), "block")
        ),
    });
    parts.join(", ")
}

/// `, A 0/3000060, B 0/2000028`.
pub(crate) fn lsns(block: &DiffBlock) -> String {
    let one = |name: &str, lsn: &Option<String>| {
        lsn.as_ref()
            .map_or_else(String::new, |lsn| format!(", {name} {lsn}"))
    };
    format!("{}{}", one("A", &block.lsn_a), one("B", &block.lsn_b))
}
