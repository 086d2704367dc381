//! Words about two copies of one cluster, for every format.

use pgclinic_format::Fork;
use pgclinic_model::document::{
    Copy, CopyPosition, DiffBlock, DiffDocument, DiffFile, DiffFork, DiffVerdict, Difference,
};

use crate::words::{self, bytes, count, plural};

/// `EXPLAINED`.
pub(crate) fn word(verdict: DiffVerdict) -> &'static str {
    match verdict {
        DiffVerdict::Same => "SAME",
        DiffVerdict::Explained => "EXPLAINED",
        DiffVerdict::Contradictory => "CONTRADICTORY",
        DiffVerdict::Parted => "PARTED",
        DiffVerdict::Incomplete => "INCOMPLETE",
    }
}

pub(crate) fn is_bad(verdict: DiffVerdict) -> bool {
    matches!(verdict, DiffVerdict::Contradictory | DiffVerdict::Parted)
}

pub(crate) fn is_good(verdict: DiffVerdict) -> bool {
    matches!(verdict, DiffVerdict::Same | DiffVerdict::Explained)
}

/// `12 of 5,432 blocks differ in 3 files; 7 blocks in hints or unused space only; B is older;
/// compared 42.4 MiB twice in 0.1 s`.
pub(crate) fn extent(document: &DiffDocument) -> String {
    let counts = document.counts();
    let differ = counts.iter().filter(|(way, _)| *way != Difference::Hints);
    let differ: u64 = differ.map(|(_, blocks)| blocks).sum();
    let files = document.forks.iter().filter(|fork| !fork.is_hints_only());
    let contradict = counts.iter().filter(|(way, _)| way.is_contradiction());
    let contradict: u64 = contradict.map(|(_, blocks)| blocks).sum();
    let mut parts = Vec::new();
    parts.extend(soundness(document));
    parts.push(match differ {
        0 => format!("{}, all equal", plural(document.coverage.blocks, "block")),
        _ => format!(
            "{} of {} {} in {}",
            count(differ),
            plural(document.coverage.blocks_in_all(), "block"),
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
    if !document.files.is_empty() {
        let differ = document.files.len() as u64;
        let verb = if differ == 1 { "differs" } else { "differ" };
        parts.push(format!(
            "{} beside the relations {verb}",
            plural(differ, "file")
        ));
    }
    parts.push(age(document));
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

/// Which copy may be relied on, where both contradict each other.
fn soundness(document: &DiffDocument) -> Option<String> {
    let own = document.sound?;
    let contradicts = document.verdict == DiffVerdict::Contradictory;
    contradicts.then(|| match (own.at_fault_a, own.at_fault_b, own.undecided) {
        (0, 0, _) => "nothing tells which copy is right".into(),
        (_, 0, 0) => "B is sound where they contradict, A is at fault".into(),
        (0, _, 0) => "A is sound where they contradict, B is at fault".into(),
        (_, 0, _) => "A is at fault, and of some blocks nothing tells which copy is right".into(),
        (0, _, _) => "B is at fault, and of some blocks nothing tells which copy is right".into(),
        _ => "each copy is at fault somewhere: take each block from the other".into(),
    })
}

/// Which copy is older.
fn age(document: &DiffDocument) -> String {
    match (document.older, &document.parted_at) {
        (Some(Copy::A), _) => "A is older".into(),
        (Some(Copy::B), _) => "B is older".into(),
        (None, Some(at)) => format!("they parted at {at}, and neither is older"),
        (None, None) if is_unknown(document) => "which is older cannot be determined".into(),
        (None, None) => "neither is older".into(),
    }
}

/// Timelines differ though nothing tells where the copies parted, or a copy has no position.
fn is_unknown(document: &DiffDocument) -> bool {
    let ends = [&document.position_a, &document.position_b];
    match ends.map(Option::as_ref) {
        [Some(a), Some(b)] => a.timeline != b.timeline,
        _ => true,
    }
}

/// `A on timeline 1 and B on timeline 2 parted at 0/1000000: …`; nothing of copies of one line.
pub(crate) fn parting(document: &DiffDocument) -> Option<String> {
    let at = document.parted_at.as_ref()?;
    let side = |name: &str, position: &Option<CopyPosition>| {
        let timeline = position.as_ref().and_then(|own| own.timeline);
        timeline.map_or_else(
            || name.to_owned(),
            |timeline| format!("{name} on timeline {timeline}"),
        )
    };
    let (a, b) = (
        side("A", &document.position_a),
        side("B", &document.position_b),
    );
    if let [Some(own_a), Some(own_b)] =
        [&document.position_a, &document.position_b].map(Option::as_ref)
        && own_a.timeline == own_b.timeline
    {
        return Some(format!(
            "{a} and {b} parted at {at} on one timeline: both were started from one copy, and each wrote WAL of its own from there. Replaying WAL of one in the other destroys it, and an archive that takes WAL of both serves neither"
        ));
    }
    Some(format!(
        "{a} and {b} parted at {at}: no replay leads from one to the other. pg_rewind makes one of them a copy of the other again, and gives up what it did after that place"
    ))
}

/// `2 files beside the relations differ` is followed by these: `pg_xact/0000  conflict, page 0`.
pub(crate) fn file(file: &DiffFile) -> String {
    let at_fault = match file.copy {
        Some(Copy::A) => " in A",
        Some(Copy::B) => " in B",
        None => "",
    };
    let pages: Vec<String> = file.pages.iter().map(u64::to_string).collect();
    let pages = match pages.len() {
        0 => String::new(),
        1 => format!(", page {}", pages.concat()),
        _ => format!(", pages {}", pages.join(", ")),
    };
    format!("{}{at_fault}{pages}", file.difference.name())
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
        Difference::Parted => "changed after they parted",
        Difference::Undecided => "of which nothing tells whether WAL explains it",
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
