//! Rows of many pages against one file of the commit log: then the file is wrong, and the pages are
//! sound.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::status::StatusPages;
use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::StatusLog;
use pgclinic_format::slru::PAGES_PER_SEGMENT;
use pgclinic_model::Severity;
use pgclinic_model::document::{FileKind, Finding};

use crate::consequences;
use crate::findings::{Draft, Findings};
use crate::heap::hint_bits::TRANSACTION_STATUS_CONTRADICTED;
use crate::walker::run_ledger::{Accuser, RunLedger};
use crate::walker::system_identifier;

/// Pages of one relation that must agree against the log; of different relations two do. Fewer are
/// rather wrong themselves.
const PAGES_OF_ONE_RELATION: usize = 3;
const PAGES_OF_SEVERAL: usize = 2;
/// Transactions of one byte of the log.
const PER_BYTE: usize = 4;

/// Rules of pages that judge rows by the commit log.
const OF_PAGES: &[&str] = &[
    "xmin-hint-wrong",
    "xmax-hint-wrong",
    "multixact-flags",
    "update-outlives-row",
    "update-half-done",
    "heap-only-without-chain",
    "update-chains-meet",
    "hot-flags-disagree",
    "page-not-all-visible",
];
/// Rules of catalogs, whose rows are the visible ones.
const OF_CATALOGS: &[&str] = &[
    "catalog-reference-missing",
    "catalog-attributes-missing",
    "catalog-key-duplicate",
    "relhasindex-false-with-index",
];

/// The page is damaged only if the commit log is right.
pub(super) fn is_all(drafts: &[Draft]) -> bool {
    let mut damage = drafts
        .iter()
        .filter(|draft| draft.severity == Severity::Damage);
    let denied = drafts.iter().any(|draft| draft.links.contradicts.is_some());
    denied && damage.all(|draft| rests_on_status(draft.rule.name))
}

/// The rule judges rows of a page by the commit log.
fn rests_on_status(rule: &str) -> bool {
    OF_PAGES.contains(&rule)
}

/// What speaks against one file of the log.
#[derive(Default)]
struct Contradiction {
    xids: BTreeSet<u32>,
    tuples: u64,
    pages: BTreeSet<(String, Option<u32>)>,
    relations: BTreeSet<(Option<u32>, Option<u32>)>,
}

impl Contradiction {
    fn is_proof(&self) -> bool {
        let needed = match self.relations.len() {
            ..=1 => PAGES_OF_ONE_RELATION,
            _ => PAGES_OF_SEVERAL,
        };
        self.pages.len() >= needed
    }
}

/// Accuses files of the log, and puts what was said of pages under it.
pub(super) fn accuse(cluster: &Cluster, books: &mut RunLedger) {
    let Ok(pages) = StatusPages::open(cluster, StatusLog::Xact) else {
        return;
    };
    let segment_of = |xid: u32| pages.page_of(xid) / PAGES_PER_SEGMENT;
    let mut proven: BTreeMap<u64, String> = BTreeMap::new();
    for (segment, contradiction) in contradictions(&books.findings, segment_of) {
        if contradiction.is_proof() {
            let id = root(
                cluster,
                &pages,
                segment,
                &contradiction,
                &mut books.findings,
            );
            proven.extend(id.map(|id| (segment, id)));
        }
    }
    let Some(any) = proven.values().next().cloned() else {
        return;
    };
    for finding in books.findings.kept_mut() {
        let own = finding.links.contradicts;
        let root = own.and_then(|xid| proven.get(&segment_of(xid)));
        let others = || {
            let rule = finding.rule.as_str();
            let by_log = rests_on_status(rule) || OF_CATALOGS.contains(&rule);
            (by_log && own.is_none() && finding.caused_by.is_none()).then_some(&any)
        };
        if let Some(root) = root.or_else(others) {
            finding.caused_by = Some(root.clone());
            // The root counts the rows.
            finding.at_risk.rows = Some(0);
        }
    }
    books.clear_pages_accused_by(Accuser::CommitLog);
}

/// By file of the log. Pages with other damage prove nothing.
fn contradictions(
    findings: &Findings,
    segment_of: impl Fn(u32) -> u64,
) -> BTreeMap<u64, Contradiction> {
    let page_of = |finding: &Finding| (finding.place.path.clone(), finding.place.block);
    let damage = || {
        findings
            .kept()
            .filter(|own| own.severity == Severity::Damage)
    };
    let otherwise: BTreeSet<_> = damage()
        .filter(|own| own.place.block.is_some() && !rests_on_status(&own.rule))
        .map(page_of)
        .collect();
    let mut found: BTreeMap<u64, Contradiction> = BTreeMap::new();
    for finding in damage() {
        let page = page_of(finding);
        let Some(xid) = finding
            .links
            .contradicts
            .filter(|_| !otherwise.contains(&page))
        else {
            continue;
        };
        let own = found.entry(segment_of(xid)).or_default();
        own.xids.insert(xid);
        own.tuples += 1;
        own.pages.insert(page);
        let place = &finding.place;
        own.relations.insert((place.database_oid, place.filenode));
    }
    found
}

/// The finding that the others follow from: one that is there about the same file, or a new one.
fn root(
    cluster: &Cluster,
    pages: &StatusPages<'_>,
    segment: u64,
    contradiction: &Contradiction,
    findings: &mut Findings,
) -> Option<String> {
    let path = pages.path_of(segment);
    let of_file = |own: &&Finding| {
        own.severity == Severity::Damage
            && own.place.kind == FileKind::Slru
            && own.place.path == path
    };
    if let Some(known) = findings.kept().find(of_file) {
        return Some(known.id.clone());
    }
    let (first, last) = (contradiction.xids.first()?, contradiction.xids.last()?);
    let message = format!(
        "{} rows on {} pages of {} relations deny what it says of {} transactions, {first} to {last}",
        contradiction.tuples,
        contradiction.pages.len(),
        contradiction.relations.len(),
        contradiction.xids.len(),
    );
    let mut draft = Draft::new(&TRANSACTION_STATUS_CONTRADICTED, message)
        .fact("first_transaction", *first)
        .fact("last_transaction", *last)
        .fact("transactions", contradiction.xids.len())
        .fact("rows", contradiction.tuples)
        .fact("pages", contradiction.pages.len())
        .fact("relations", contradiction.relations.len())
        .rows(contradiction.tuples);
    let (begin, end) = (byte_of(pages, *first), byte_of(pages, *last) + 1);
    draft = if pages.page_of(*first) == pages.page_of(*last) {
        draft
            .place(pages.place(pages.page_of(*first)))
            .bytes(begin, end)
    } else {
        draft.place(file_place(path, FileKind::Slru))
    };
    consequences::complete_file(&mut draft);
    let finding = draft.finish(&file_place("", FileKind::Slru), system_identifier(cluster));
    let id = finding.id.clone();
    findings.keep(finding);
    Some(id)
}

/// On its page.
fn byte_of(pages: &StatusPages<'_>, xid: u32) -> usize {
    pages.entry_of(xid) / PER_BYTE
}
