//! Pages that were changed later than the last record in `pg_wal`: then WAL is missing, and the
//! pages are sound.
//!
//! The server flushes WAL before any page that it changed (`XLogFlush` in `FlushBuffer`,
//! `bufmgr.c`), so that a page whose LSN lies past the end of WAL proves that the end is none.
//! Pages of files that no committed row names are not asked: what fills a new file writes it before
//! its WAL.

use std::collections::BTreeSet;

use pgclinic_cluster::wal::{Recovery, Replay, StartKind, Stop};
use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::Lsn;
use pgclinic_format::wal::parse_lsn;
use pgclinic_model::document::{FileKind, Finding, NotChecked};
use pgclinic_model::plan::Safety;
use pgclinic_model::{Severity, plural};

use crate::consequences::{self, FETCH_WAL, LET_A_COPY_RECOVER, remedy};
use crate::findings::{Draft, Findings};
use crate::page::lsn_beyond_wal::LSN_BEYOND_WAL;
use crate::wal::breaks::Break;
use crate::walker::run_ledger::{Accuser, RunLedger};
use crate::walker::system_identifier;

/// Pages that must agree: fewer are rather wrong themselves, or were written past the buffers.
const PAGES_MIN: usize = 3;
/// An LSN so far past the end of WAL is no position that a server reached since.
const AHEAD_MAX: u64 = 1 << 40;

/// Rules that compare with what the end of WAL gave out, and with files that later WAL may have
/// made, truncated or removed.
const FOLLOWERS: &[&str] = &[
    "multixact-offset-out-of-range",
    "multixact-member-out-of-range",
    "missing-file",
    "missing-segment",
    "file-truncated",
];

/// What pages say of WAL past its end.
struct PagesBeyond {
    pages: usize,
    relations: usize,
    lsn_max: Lsn,
    rows: u64,
}

/// Tells that WAL is missing, and puts what was said of pages under it.
pub(super) fn accuse(cluster: &Cluster, books: &mut RunLedger) {
    if cluster.is_running() || !cluster.needs_recovery() {
        return;
    }
    let (Some(recovery), Some(replay)) = (cluster.recovery(), cluster.replay()) else {
        return;
    };
    let beyond = pages_beyond(&books.findings, replay);
    let broken = replay.stop != Stop::End;
    let beyond = beyond.filter(|beyond| beyond.pages >= PAGES_MIN);
    if let Some(beyond) = &beyond {
        let id = root(cluster, (recovery, replay), beyond, &mut books.findings);
        follow(&id, &mut books.findings);
        books.clear_pages_accused_by(Accuser::EndOfWal);
    } else if let Some(known) = break_at_end(&mut books.findings, replay) {
        fetch(known, recovery, replay, None);
    }
    if recovery.start.kind == StartKind::Crash && (broken || beyond.is_some()) {
        books.not_checked(NotChecked {
            what: "changes since the last checkpoint".into(),
            why: needed_words(replay),
            inherent: false,
        });
    }
}

/// In the words of a salvage.
fn needed_words(replay: &Replay) -> String {
    let (end, why) = (replay.end.record, replay.end.why.to_string());
    format!(
        "the write-ahead log ends at {end}: {why}; WAL from {end} on is needed, from an archive, a standby or a backup of pg_wal"
    )
}

/// The page is damaged only if the end of WAL is one.
pub(super) fn is_all(drafts: &[Draft]) -> bool {
    let damage = drafts.iter().filter(|own| own.severity == Severity::Damage);
    let mut rules = damage.map(|own| own.rule.name).peekable();
    rules.peek().is_some() && rules.all(consequences::is_of_the_future)
}

/// Of pages with no other damage, whose LSN a server can have reached.
fn pages_beyond(findings: &Findings, replay: &Replay) -> Option<PagesBeyond> {
    let page_of = |finding: &Finding| (finding.place.path.clone(), finding.place.block);
    let is_own = |finding: &Finding| consequences::is_of_the_future(&finding.rule);
    let damage = |finding: &&Finding| finding.severity == Severity::Damage;
    let kept = || findings.kept().filter(|own| own.place.block.is_some());
    let otherwise: BTreeSet<_> = kept()
        .filter(damage)
        .filter(|own| !is_own(own) && !own.links.compared)
        .map(page_of)
        .collect();
    let (mut pages, mut relations) = (BTreeSet::new(), BTreeSet::new());
    let (mut lsn_max, mut rows) = (Lsn(0), 0);
    let end = replay.end.record.0;
    for finding in kept().filter(|own| own.rule == LSN_BEYOND_WAL.name) {
        let lsn = finding.facts.get("lsn").and_then(|lsn| lsn.as_str());
        let lsn: Option<Lsn> = lsn.and_then(parse_lsn);
        let lsn = lsn.filter(|lsn| lsn.0.saturating_sub(end) < AHEAD_MAX);
        let page = page_of(finding);
        let Some(lsn) = lsn.filter(|_| !otherwise.contains(&page)) else {
            continue;
        };
        lsn_max = lsn_max.max(lsn);
        rows += finding.at_risk.rows.unwrap_or(0);
        pages.insert(page);
        relations.insert((finding.place.database_oid, finding.place.filenode));
    }
    (!pages.is_empty()).then_some(PagesBeyond {
        pages: pages.len(),
        relations: relations.len(),
        lsn_max,
        rows,
    })
}

/// The finding about the place where reading ends.
fn break_at_end<'a>(findings: &'a mut Findings, replay: &Replay) -> Option<&'a mut Finding> {
    let end = replay.end.record.to_string();
    findings.kept_mut().find(|own| {
        let at = own.facts.get("lsn").and_then(|lsn| lsn.as_str());
        own.place.kind == FileKind::Wal && at == Some(&end) && own.severity != Severity::Note
    })
}

/// The finding that the others follow from: that of the break, or a new one.
fn root(
    cluster: &Cluster,
    (recovery, replay): (&Recovery, &Replay),
    beyond: &PagesBeyond,
    findings: &mut Findings,
) -> String {
    let proof = format!(
        "{} of {} {} changed later, up to {}: WAL from {} on is missing",
        plural(beyond.pages as u64, "page"),
        plural(beyond.relations as u64, "relation"),
        if beyond.pages == 1 { "was" } else { "were" },
        beyond.lsn_max,
        replay.end.record
    );
    match break_at_end(findings, replay) {
        Some(known) => known.message = format!("{}; {proof}", known.message),
        None => {
            let found = Break {
                end: replay.end,
                severity: Severity::Damage,
                meaning: proof,
            };
            let draft = found.draft(found.teller().rule(), recovery);
            let nowhere = file_place("", FileKind::Wal);
            findings.keep(draft.finish(&nowhere, system_identifier(cluster)));
        }
    }
    let known = break_at_end(findings, replay).expect("it was kept a moment ago");
    known.severity = Severity::Damage;
    known.at_risk.rows = Some(beyond.rows);
    let facts = [
        ("pages", beyond.pages.into()),
        ("relations", beyond.relations.into()),
        ("lsn_max", beyond.lsn_max.to_string().into()),
    ];
    known
        .facts
        .extend(facts.map(|(name, value)| (name.into(), value)));
    fetch(known, recovery, replay, Some(beyond.lsn_max));
    known.id.clone()
}

/// Names the WAL to fetch: up to where sound WAL goes on, else up to what pages have seen.
fn fetch(known: &mut Finding, recovery: &Recovery, replay: &Replay, lsn_max: Option<Lsn>) {
    let from = replay.end.record;
    let until = match replay.stop {
        Stop::GoesOn { page } => Some(page),
        _ => lsn_max,
    };
    let shape = &recovery.shape;
    let name = |at: Lsn| {
        let number = shape.segment_number(at);
        let timeline = recovery.timelines.expected(number);
        shape.segment_name(timeline.unwrap_or(replay.timeline), number)
    };
    known
        .facts
        .insert("wal_from".into(), from.to_string().into());
    known
        .facts
        .insert("first_segment".into(), name(replay.end.at.max(from)).into());
    let mut words = format!("WAL from {from} on, segment {}", name(from));
    if let Some(until) = until {
        let last = Lsn(until.0.saturating_sub(1).max(from.0));
        known
            .facts
            .insert("wal_to".into(), until.to_string().into());
        known.facts.insert("last_segment".into(), name(last).into());
        words = format!(
            "WAL from {from} to {until} at least, segments {} to {}",
            name(from),
            name(last)
        );
    }
    let command = format!(
        "fetch {words}, from the archive, a standby or a backup of pg_wal, before it is removed there; put it into pg_wal of a copy of the cluster and check the copy again"
    );
    known.remedies = vec![remedy(FETCH_WAL, Safety::ShowOnly, command)];
}

/// What compares with the end of WAL follows from it.
fn follow(id: &str, findings: &mut Findings) {
    for finding in findings.kept_mut() {
        let rule = finding.rule.as_str();
        let of_end = consequences::is_of_the_future(rule) || FOLLOWERS.contains(&rule);
        // A recovery would stop before it reaches the page.
        finding
            .remedies
            .retain(|own| !(of_end && own.name == LET_A_COPY_RECOVER));
        if of_end && finding.caused_by.is_none() && finding.severity == Severity::Damage {
            finding.caused_by = Some(id.to_owned());
            if consequences::is_of_the_future(finding.rule.as_str()) {
                // The root counts the rows.
                finding.at_risk.rows = Some(0);
            }
        }
    }
}
