//! Rows of many pages against one file of the commit log: then the file is wrong, and the pages are
//! sound.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::status::StatusPages;
use pgclinic_cluster::{Cluster, file_place};
use pgclinic_format::StatusLog;
use pgclinic_format::slru::PAGES_PER_SEGMENT;
use pgclinic_model::document::{FileKind, Finding};
use pgclinic_model::{Severity, plural};

use crate::consequences;
use crate::findings::{Draft, Findings};
use crate::heap::hint_bits::TRANSACTION_STATUS_CONTRADICTED;
use crate::walker::run_ledger::{Accuser, RunLedger};
use crate::walker::system_identifier;

/// Pages of one relation that must agree against the log; of different relations two do. Fewer are
/// rather wrong themselves.
const PAGES_OF_ONE_RELATION: u64 = 3;
const PAGES_OF_SEVERAL: u64 = 2;
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
    relations: BTreeMap<RelationKey, Denials>,
}

/// OID of the database and number of the file.
type RelationKey = (Option<u32>, Option<u32>);
/// Path and block.
type PageKey = (String, Option<u32>);

/// What rows of one relation deny.
#[derive(Default)]
struct Denials {
    /// Rows and pages that stand in findings; a row may deny it twice.
    rows: BTreeSet<(PageKey, Option<u16>)>,
    pages: BTreeSet<PageKey>,
    /// Rows that were only counted, and all pages whose damage rests on the log alone.
    more_rows: u64,
    accused_pages: u64,
}

impl Contradiction {
    fn is_proof(&self) -> bool {
        let needed = match self.relations.len() {
            ..=1 => PAGES_OF_ONE_RELATION,
            _ => PAGES_OF_SEVERAL,
        };
        self.pages() >= needed
    }

    fn rows(&self) -> u64 {
        let own = self.relations.values();
        own.map(|own| own.rows.len() as u64 + own.more_rows).sum()
    }

    fn pages(&self) -> u64 {
        self.relations.values().map(Denials::pages).sum()
    }

    fn draft(&self, pages: &StatusPages<'_>, segment: u64) -> Option<Draft> {
        let (rows, pages_denying) = (self.rows(), self.pages());
        let relations = self.relations.len();
        let message = format!(
            "{} on {} of {} {} what it says of {}, {}",
            plural(rows, "row"),
            plural(pages_denying, "page"),
            plural(relations as u64, "relation"),
            if rows == 1 { "denies" } else { "deny" },
            plural(self.xids.len() as u64, "transaction"),
            range(&self.xids),
        );
        let draft = draft_at_bytes(pages, segment, &self.xids, message)?;
        let draft = draft
            .fact("rows", rows)
            .fact("pages", pages_denying)
            .fact("relations", relations);
        Some(draft.rows(rows))
    }
}

impl Denials {
    fn pages(&self) -> u64 {
        let kept = self.pages.len() as u64;
        if self.more_rows > 0 {
            kept.max(self.accused_pages)
        } else {
            kept
        }
    }
}

fn relation_of(finding: &Finding) -> RelationKey {
    (finding.place.database_oid, finding.place.filenode)
}

fn page_of(finding: &Finding) -> PageKey {
    (finding.place.path.clone(), finding.place.block)
}

/// Accuses files of the log, and puts what was said of pages under it.
pub(super) fn accuse(cluster: &Cluster, books: &mut RunLedger) {
    let Ok(pages) = StatusPages::open(cluster, StatusLog::Xact) else {
        return;
    };
    let segment_of = |xid: u32| pages.page_of(xid) / PAGES_PER_SEGMENT;
    let by_rows = contradictions(books, segment_of).into_iter();
    let by_rows = by_rows.filter(|(_, own)| own.is_proof());
    let mut drafts: BTreeMap<u64, Draft> = by_rows
        .filter_map(|(segment, own)| Some((segment, own.draft(&pages, segment)?)))
        .collect();
    for (segment, xids) in denied_by_wal(cluster, segment_of) {
        // Rows name more of its transactions than the WAL that is left.
        if let (Entry::Vacant(own), Some(draft)) =
            (drafts.entry(segment), draft_by_wal(&pages, segment, &xids))
        {
            own.insert(draft);
        }
    }
    let mut proven: BTreeMap<u64, String> = BTreeMap::new();
    for (segment, draft) in drafts {
        let path = pages.path_of(segment);
        proven.insert(segment, root(cluster, &path, draft, &mut books.findings));
    }
    let Some(any) = proven.values().next().cloned() else {
        return;
    };
    let roots_otherwise = roots_otherwise(&books.findings);
    for finding in books.findings.kept_mut() {
        let own = finding.links.contradicts;
        let root = own.and_then(|xid| proven.get(&segment_of(xid)));
        let others = || {
            let rule = finding.rule.as_str();
            let by_log = rests_on_status(rule) || OF_CATALOGS.contains(&rule);
            let is_caused = |id: &String| roots_otherwise.contains(id);
            let is_open = !finding.caused_by.as_ref().is_some_and(is_caused);
            (by_log && own.is_none() && is_open).then_some(&any)
        };
        if let Some(root) = root.or_else(others) {
            finding.caused_by = Some(root.clone());
            // The root counts the rows.
            finding.at_risk.rows = Some(0);
        }
    }
    books.clear_pages_accused_by(Accuser::CommitLog);
}

/// Damage that explains what else is found on its page, and does not rest on the log itself.
fn roots_otherwise(findings: &Findings) -> BTreeSet<String> {
    let all = findings.kept();
    all.filter(|own| own.severity == Severity::Damage && !rests_on_status(&own.rule))
        .map(|own| own.id.clone())
        .collect()
}

/// By file of the log. Pages with other damage prove nothing.
fn contradictions(
    books: &RunLedger,
    segment_of: impl Fn(u32) -> u64,
) -> BTreeMap<u64, Contradiction> {
    let findings = &books.findings;
    let damage = || {
        findings
            .kept()
            .filter(|own| own.severity == Severity::Damage)
    };
    let otherwise: BTreeSet<_> = damage()
        .filter(|own| own.place.block.is_some() && !rests_on_status(&own.rule))
        .map(page_of)
        .collect();
    let denied_by = |own: &Finding| own.links.contradicts.map(&segment_of);
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
        let own = own.relations.entry(relation_of(finding)).or_default();
        own.rows.insert((page.clone(), finding.place.item));
        own.pages.insert(page);
    }
    // What was only counted denies what those of its rule and relation deny that were kept, where
    // these deny one file alone.
    for (mut kept, more) in findings.surplus() {
        let Some(first) = kept.next() else { continue };
        let segment = denied_by(first);
        let own = segment.and_then(|segment| found.get_mut(&segment));
        let own = own.and_then(|own| own.relations.get_mut(&relation_of(first)));
        if let Some(own) = own.filter(|_| kept.all(|other| denied_by(other) == segment)) {
            own.more_rows = own.more_rows.max(more);
        }
    }
    for (relation, pages) in books.pages_accused_by(Accuser::CommitLog) {
        let denials = found
            .values_mut()
            .filter_map(|own| own.relations.get_mut(&relation));
        denials.for_each(|own| own.accused_pages += pages);
    }
    found
}

/// By file of the log, what WAL from before the last checkpoint has of it.
fn denied_by_wal(
    cluster: &Cluster,
    segment_of: impl Fn(u32) -> u64,
) -> BTreeMap<u64, BTreeSet<u32>> {
    let mut found: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    for xid in cluster.statuses_denied_by_wal() {
        found.entry(segment_of(xid.0)).or_default().insert(xid.0);
    }
    found
}

fn draft_by_wal(pages: &StatusPages<'_>, segment: u64, xids: &BTreeSet<u32>) -> Option<Draft> {
    let message = format!(
        "records of pg_wal deny what it says of {}, {}",
        plural(xids.len() as u64, "transaction"),
        range(xids)
    );
    draft_at_bytes(pages, segment, xids, message)
}

/// `720`, `720 to 828`.
fn range(xids: &BTreeSet<u32>) -> String {
    match (xids.first(), xids.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (first, _) => first.map(u32::to_string).unwrap_or_default(),
    }
}

/// At the bytes of these transactions.
fn draft_at_bytes(
    pages: &StatusPages<'_>,
    segment: u64,
    xids: &BTreeSet<u32>,
    message: String,
) -> Option<Draft> {
    let (first, last) = (xids.first()?, xids.last()?);
    let draft = Draft::new(&TRANSACTION_STATUS_CONTRADICTED, message)
        .fact("first_transaction", *first)
        .fact("last_transaction", *last)
        .fact("transactions", xids.len());
    let (begin, end) = (byte_of(pages, *first), byte_of(pages, *last) + 1);
    Some(if pages.page_of(*first) == pages.page_of(*last) {
        draft
            .place(pages.place(pages.page_of(*first)))
            .bytes(begin, end)
    } else {
        draft.place(file_place(pages.path_of(segment), FileKind::Slru))
    })
}

/// The finding that the others follow from: one that is there about the same file, or a new one.
fn root(cluster: &Cluster, path: &str, mut draft: Draft, findings: &mut Findings) -> String {
    let of_file = |own: &&Finding| {
        own.severity == Severity::Damage
            && own.place.kind == FileKind::Slru
            && own.place.path == path
    };
    if let Some(known) = findings.kept().find(of_file) {
        return known.id.clone();
    }
    consequences::complete_file(&mut draft);
    let finding = draft.finish(&file_place("", FileKind::Slru), system_identifier(cluster));
    let id = finding.id.clone();
    findings.keep(finding);
    id
}

/// On its page.
fn byte_of(pages: &StatusPages<'_>, xid: u32) -> usize {
    pages.entry_of(xid) / PER_BYTE
}
