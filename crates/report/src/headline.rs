//! The first line: the verdict with its coverage.
//!
//! `DAMAGED  3 relations, 7 pages, 412 rows at risk; checked 100 % of 41.7 GiB in 12.3 s`

use std::fmt;

use pgclinic_model::Severity;
use pgclinic_model::document::{CheckDocument, FileKind, Verdict};

use crate::groups::{self, Group};
use crate::rows_at_risk::Rows;
use crate::words::{self, count_of, plural};

/// The first line in its parts, so that a format can colour or lay them out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Headline {
    /// `DAMAGED`.
    pub word: &'static str,
    /// `needs recovery`, `interrupted`: what stands beside the verdict.
    pub beside: Vec<&'static str>,
    /// `3 relations, 7 pages, 412 rows at risk`.
    pub extent: String,
    /// `checked 100 % of 41.7 GiB in 12.3 s`.
    pub coverage: String,
}

impl fmt::Display for Headline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word)?;
        if !self.beside.is_empty() {
            write!(f, " ({})", self.beside.join(", "))?;
        }
        write!(f, "  {}; {}", self.extent, self.coverage)
    }
}

/// A value that was overwritten by another one of its type looks as sound as any.
pub(crate) const UNVERIFIED: &str = "no data checksums: values cannot be verified";

/// The first line of a findings document.
pub fn headline(document: &CheckDocument) -> Headline {
    of_groups(document, &groups::groups(document))
}

pub(crate) fn of_groups(document: &CheckDocument, groups: &[Group<'_>]) -> Headline {
    let mut beside = Vec::new();
    beside.extend(document.needs_recovery.then_some("needs recovery"));
    beside.extend(document.target.is_running().then_some("running"));
    beside.extend(document.interrupted.then_some("interrupted"));
    let unverified = document.target.checksums == Some(false);
    let is_damaged = document.verdict == Verdict::Damaged;
    beside.extend((unverified && !is_damaged).then_some(UNVERIFIED));
    let word = match document.verdict {
        Verdict::Healthy => "HEALTHY",
        Verdict::Damaged => "DAMAGED",
        Verdict::Incomplete => "INCOMPLETE",
    };
    let extent = match document.verdict {
        Verdict::Damaged => damage(document, groups),
        Verdict::Healthy => soundness(document, "no damage in"),
        Verdict::Incomplete => soundness(document, "no damage seen in"),
    };
    Headline {
        word,
        beside,
        extent,
        coverage: if unverified && is_damaged {
            format!("{}; {UNVERIFIED}", coverage(document))
        } else {
            coverage(document)
        },
    }
}

fn damage(document: &CheckDocument, groups: &[Group<'_>]) -> String {
    let damaged: Vec<_> = groups
        .iter()
        .filter(|group| group.worst() == Some(Severity::Damage))
        .collect();
    let relations = damaged
        .iter()
        .filter(|group| is_relation(group.kind))
        .count();
    let files = damaged.len().saturating_sub(relations);
    let pages = damaged.iter().map(|group| group.damaged_blocks());
    let rows = damaged
        .iter()
        .map(|group| group.rows)
        .fold(Rows::default(), |sum, rows| Rows {
            known: sum.known.saturating_add(rows.known),
            open: sum.open || rows.open,
        });
    let refused = damaged.iter().filter(|group| group.is_refused());
    let refused = count_of(refused.count());
    let rows = Rows {
        open: rows.open || document.findings_omitted > 0,
        ..rows
    };
    let mut parts = Vec::new();
    if relations > 0 || files == 0 {
        parts.push(plural(count_of(relations), "relation"));
    }
    if files > 0 {
        parts.push(plural(count_of(files), "file"));
    }
    match pages.fold(0, u64::saturating_add) {
        0 => {}
        pages => parts.push(plural(pages, "page")),
    }
    parts.push(rows.words());
    if refused > 0 {
        parts.push(format!("{} refused as a whole", plural(refused, "table")));
    }
    parts.extend(ignored(document));
    parts.join(", ")
}

/// No file that the cluster has as a whole.
pub(crate) fn is_relation(kind: FileKind) -> bool {
    !matches!(
        kind,
        FileKind::ControlFile
            | FileKind::RelationMap
            | FileKind::Slru
            | FileKind::Wal
            | FileKind::File
    )
}

fn soundness(document: &CheckDocument, what: &str) -> String {
    let coverage = &document.coverage;
    let mut parts = vec![format!("{what} {}", plural(coverage.relations, "relation"))];
    parts.push(plural(coverage.pages, "page"));
    let warnings = document
        .findings
        .iter()
        .filter(|f| f.severity == Severity::Warning);
    match warnings.count() {
        0 => {}
        warnings => parts.push(plural(count_of(warnings), "warning")),
    }
    parts.extend(ignored(document));
    parts.join(", ")
}

/// Findings that no longer decide the exit code are counted all the same.
fn ignored(document: &CheckDocument) -> Option<String> {
    let ignored = document.findings.iter().filter(|own| own.ignored.is_some());
    match count_of(ignored.count()) {
        0 => None,
        ignored => Some(format!("{} ignored", plural(ignored, "finding"))),
    }
}

fn coverage(document: &CheckDocument) -> String {
    let coverage = &document.coverage;
    let time = words::seconds(document.elapsed_s);
    if coverage.bytes_seen == 0 {
        return format!("checked nothing in {time}");
    }
    // How much lies in what cannot be listed or opened is not known.
    let unreadable = coverage.directories_unreadable + coverage.relations_unreadable;
    let percent = match words::percent(coverage.bytes_checked, coverage.bytes_seen) {
        all if all == "100" && unreadable > 0 => "less than 100".into(),
        percent => percent,
    };
    let bytes = words::bytes(coverage.bytes_seen);
    // Of what passes by once, as a base backup does, nobody knows how much was still to come.
    if document.interrupted && percent == "100" {
        return format!("checked {bytes} in {time}, until it was interrupted");
    }
    match (&document.since, coverage.pages_unchanged) {
        (None, 0) => format!("checked {percent} % of {bytes} in {time}"),
        (None, _) => format!("checked {percent} % of the {bytes} that changed, in {time}"),
        (Some(since), 0) => {
            let lsn = words::clean(&since.lsn);
            format!("checked {percent} % of {bytes} in {time}, no page unchanged since {lsn}")
        }
        (Some(since), _) => {
            let lsn = words::clean(&since.lsn);
            format!("checked {percent} % of the {bytes} that changed since {lsn}, in {time}")
        }
    }
}
