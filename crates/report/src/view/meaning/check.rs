//! A check: may the cluster be relied on, and are rows at stake.

use pgclinic_format::Fork;
use pgclinic_model::document::{
    CheckDocument, FileKind, Finding, Level, Place, ROWS_MAY_BE_LOST, Target, Verdict,
};
use pgclinic_model::{Severity, shell_word};

use super::Meaning;
use crate::groups::Group;
use crate::headline::is_relation;
use crate::view::next::{self, Next};
use crate::words::{count_of, plural};

/// A file without its cluster: no level asks more of it than its pages.
const ONE_FILE: &str = "relation-file";

pub(crate) fn check(document: &CheckDocument, groups: &[Group<'_>]) -> Meaning {
    let mut sentence = match document.verdict {
        Verdict::Damaged => damaged(document, groups),
        _ if document.interrupted => {
            "The run was stopped before its end: no damage was seen up to there, and of the rest nothing is known".to_owned()
        }
        Verdict::Healthy => healthy(document).to_owned(),
        Verdict::Incomplete => incomplete(document).to_owned(),
    };
    let mut all = document.findings.iter();
    let has_warnings = all.any(|finding| finding.severity == Severity::Warning);
    if document.verdict != Verdict::Damaged && has_warnings {
        sentence.push_str("; the warnings below are legal states, and dangerous ones");
    }
    sentence.push('.');
    Meaning::of(sentence, commands(document, groups))
}

fn healthy(document: &CheckDocument) -> &'static str {
    if document.target.kind == ONE_FILE {
        return "Every page that was read is sound as far as a page alone shows; what other files say of this one was not asked";
    }
    match (document.level, document.target.checksums) {
        (Level::Pages, Some(true)) => {
            "Every page that was read has its right checksum and a sound header; whether what stands on the pages fits together was not asked"
        }
        (Level::Pages, _) => {
            "Every page that was read has a sound header; without data checksums, what else changed on a page was not noticed"
        }
        (Level::Structure, _) => {
            "Every page that was read is sound in itself, and so are indexes and catalogs; whether rows, index entries, TOASTed values and older WAL fit each other was not asked"
        }
        (Level::Full, _) => {
            "Every page that was read is sound, and all that was compared is right: rows, index entries and TOASTed values fit each other"
        }
    }
}

fn incomplete(document: &CheckDocument) -> &'static str {
    if is_recovery_alone(document) {
        of_recovery_alone(&document.target)
    } else {
        "No damage was seen in what could be read; what stands under NOT CHECKED was not examined, and may be damaged"
    }
}

/// Nothing is missing but the recovery, and what that is due to.
fn of_recovery_alone(target: &Target) -> &'static str {
    let state = target.state.as_deref().unwrap_or_default();
    let is_backup = target.kind.ends_with("backup") || target.kind == "backup-chain";
    if is_backup {
        "No damage was seen, and nothing else is missing: as every backup of a running server, it becomes consistent by the recovery of its first start, and what that changes can be judged only after it, on a copy"
    } else if target.is_running() {
        "No damage was seen, and nothing else is missing: what the running server has in its write-ahead log alone can be judged when it is in its files"
    } else if state.contains("recovery") {
        "No damage was seen, and nothing else is missing: it is a standby, or was stopped in the middle of a recovery, and what that still changes can be judged only after it, on a copy"
    } else {
        "No damage was seen, and nothing else is missing; but its server did not shut down: what its recovery changes can be judged only after it, on a copy"
    }
}

/// The worst that the damage may do.
fn damaged(document: &CheckDocument, groups: &[Group<'_>]) -> String {
    let damaged = || {
        let all = groups.iter();
        all.filter(|group| group.worst() == Some(Severity::Damage))
    };
    let is_backup =
        document.target.kind.ends_with("backup") || document.target.kind == "backup-chain";
    if is_backup {
        return "This backup is damaged, and so is a cluster that is restored from it: keep the older ones, and check the cluster that it was taken of".into();
    }
    if damaged().any(|group| !is_relation(group.kind)) {
        return "Files are damaged by which the server starts or knows which rows there are: it may refuse to start, or give wrong rows without an error".into();
    }
    let is_catalog = |group: &Group<'_>| group.name.starts_with("pg_catalog.");
    if damaged().any(|group| is_catalog(group) && is_at_stake(group)) {
        return "The catalogs are damaged, by which the server knows its relations and their columns: it refuses or misses whole tables, whose own files may be sound".into();
    }
    let tables = damaged().filter(|group| is_at_stake(group));
    let tables: Vec<String> = tables.map(table_name).collect();
    match tables.as_slice() {
        [] if damaged().any(|group| group.kind == FileKind::Sequence) => {
            "No row of a table is at risk, but a sequence is damaged: it fails, or gives numbers again that were given before".into()
        }
        [] if may_have_lost_rows(document) => {
            "No row is known to be at risk, but rows may be missing: nothing that can be read vouches for those of the tables that stand under NOT CHECKED".into()
        }
        [] if damaged().any(|group| group.rows.known > 0 || group.rows.open) => {
            "No table is damaged as far as this run sees, but queries may miss rows or find others by way of what is: it is made from tables and can be made again".into()
        }
        [] => {
            "No row is at risk as far as this run sees: what is damaged is made from tables and can be made again, but queries that use it may fail or miss rows".into()
        }
        [one] => format!(
            "Rows of {one} are lost or cannot be relied on: the server stops at them with an error, or gives wrong ones without; no damage was seen in tables that are not named here"
        ),
        more => format!(
            "Rows of {} are lost or cannot be relied on: the server stops at them with an error, or gives wrong ones without; no damage was seen in tables that are not named here",
            plural(count_of(more.len()), "table")
        ),
    }
}

fn may_have_lost_rows(document: &CheckDocument) -> bool {
    let mut gaps = document.coverage.not_checked.iter();
    gaps.any(|gap| gap.what.starts_with(ROWS_MAY_BE_LOST))
}

fn is_at_stake(group: &Group<'_>) -> bool {
    let holds_rows = matches!(
        group.kind,
        FileKind::Table | FileKind::Toast | FileKind::MaterializedView | FileKind::Unknown
    );
    // A row whose entry proves that it is wrong stands with its index.
    let accuses_rows = group.own.iter().any(|finding| {
        let flipped = finding.facts.get("flipped").and_then(|side| side.as_str());
        flipped == Some("row")
    });
    accuses_rows || (holds_rows && (group.rows.known > 0 || group.rows.open))
}

fn table_name(group: &Group<'_>) -> String {
    match group.kind {
        FileKind::Index => format!("the table of {}", group.name),
        _ => group.name.clone(),
    }
}

/// The first of the plan, the first damaged page, the deepest look.
fn commands(document: &CheckDocument, groups: &[Group<'_>]) -> Next {
    let target = &document.target;
    let mut next = Next::default().and_plan(&document.plan);
    if document.interrupted {
        let level = document.level.name();
        let again = format!("pgclinic check {} --level {level}", target.as_arguments());
        return next.and("run it again, to its end", again);
    }
    if document.verdict == Verdict::Incomplete && is_recovery_alone(document) {
        return recovered_copy(target, next);
    }
    if document.verdict == Verdict::Damaged {
        let page = first_page(groups).and_then(|place| next::inspect(target, place));
        next = next.and_maybe("see the first damaged page, byte by byte", page);
    }
    let is_asked = document.level == Level::Full && document.verdict != Verdict::Incomplete;
    if is_asked || target.kind == ONE_FILE {
        return next;
    }
    let why = match (document.verdict, document.level) {
        (Verdict::Incomplete, _) => "look again when what is missing can be read",
        (Verdict::Damaged, _) => "ask all that files can show, as soon as the copy is safe",
        _ => {
            "ask the rest as well: rows against index entries, TOASTed values, references of catalogs"
        }
    };
    next.and(why, next::check_in_full(target))
}

fn is_recovery_alone(document: &CheckDocument) -> bool {
    document.needs_recovery && !document.has_gaps_beyond_recovery()
}

/// Only a directory can be copied and started.
fn recovered_copy(target: &Target, next: Next) -> Next {
    if !matches!(target.kind.as_str(), "data-directory" | "base-backup") {
        return next;
    }
    let copy = format!("{}.copy", target.spec);
    let copied = shell_word(&copy);
    next.and(
        "copy all of it while no server runs, then start and stop a server on the copy: it recovers",
        format!("cp -a {} {copied}", target.as_arguments()),
    )
    .and(
        "check the copy, once it has recovered",
        format!("pgclinic check {copied} --level {}", Level::Full.name()),
    )
}

/// Of the worst relation; one beyond the end of its file is no page to be seen.
fn first_page<'a>(groups: &[Group<'a>]) -> Option<&'a Place> {
    let roots = groups.iter().flat_map(|group| {
        let roots = group.roots.iter().map(|root| root.finding);
        let there = roots.filter(|finding| is_there(group, finding));
        there.map(|finding| &finding.place)
    });
    let mut roots = roots;
    roots.next()
}

fn is_there(group: &Group<'_>, finding: &Finding) -> bool {
    let place = &finding.place;
    let Some(block) = place.block else {
        return false;
    };
    let fork = place.fork.unwrap_or(Fork::Main);
    let mut forks = group.forks.iter().filter(|own| own.fork == fork);
    finding.severity == Severity::Damage && forks.any(|own| u64::from(block) < own.blocks)
}
