//! Collects findings: keeps the first thousand per rule and relation in the order of their
//! places, whatever the order in which pages were looked at, and counts the rest.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{ForkContext, ForkFiles};
use pgclinic_format::{BlockNo, Fork, Xid};
use pgclinic_model::document::{
    AtRisk, AttributePlace, Cause, CauseLinks, FileKind, Finding, NotChecked, OmittedFindings,
    Origin, Owner, Place, Remedy,
};
use pgclinic_model::plan::Safety;
use pgclinic_model::{Rule, Severity};
use serde_json::{Map, Value};

use crate::run_state::{SavedFinding, SavedFindings};

/// Findings kept of one rule in one relation.
pub const KEPT_PER_RULE: usize = 1000;
/// Drafts of one rule in one file that a comparison of whole relations holds; the rest is counted.
const DRAFTS_PER_RULE: u64 = 3_000;

/// A finding without its place; what stays `None` is filled in from the page.
#[derive(Clone, Debug)]
pub struct Draft {
    pub(crate) rule: &'static Rule,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) item: Option<u16>,
    pub(crate) attribute: Option<AttributePlace>,
    pub(crate) bytes: Option<[u64; 2]>,
    pub(crate) facts: Map<String, Value>,
    pub(crate) server_says: Option<String>,
    pub(crate) rows: Option<u64>,
    pub(crate) remedies: Vec<Remedy>,
    pub(crate) cause: Option<Cause>,
    pub(crate) place: Option<Place>,
    pub(crate) links: CauseLinks,
}

impl Draft {
    /// Of this rule, with what was seen.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Draft {
            rule,
            severity: rule.severity,
            message: message.into(),
            item: None,
            attribute: None,
            bytes: None,
            facts: Map::new(),
            server_says: None,
            rows: None,
            remedies: Vec::new(),
            cause: None,
            place: None,
            links: CauseLinks::default(),
        }
    }

    /// At this line pointer.
    pub fn item(mut self, number: u16) -> Self {
        self.item = Some(number);
        self
    }

    /// In this column, from 1.
    pub fn attribute(mut self, number: u16) -> Self {
        self.attribute = Some(AttributePlace { number, name: None });
        self
    }

    /// At these half-open offsets of the page, or of the file where there is no page.
    pub fn bytes(mut self, start: usize, end: usize) -> Self {
        self.bytes = Some([start as u64, end as u64]);
        self
    }

    /// With a number or word to go with the message.
    pub fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.into(), value.into());
        self
    }

    /// The server's own words about it.
    pub fn server_says(mut self, words: impl Into<String>) -> Self {
        self.server_says = Some(words.into());
        self
    }

    /// Rows at risk, when it is not what the page suggests.
    pub fn rows(mut self, rows: u64) -> Self {
        self.rows = Some(rows);
        self
    }

    /// A way out, before those that fit every finding of its kind.
    pub fn remedy(mut self, name: &str, safety: Safety, command: impl Into<String>) -> Self {
        self.remedies.push(Remedy {
            name: name.into(),
            safety,
            command: command.into(),
        });
        self
    }

    /// Less severe here than its rule.
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Explained by damage on this block of the fork, if there is any.
    pub fn follows(self, fork: &ForkContext<'_>, block: BlockNo) -> Self {
        self.follows_from(fork, Some(block))
    }

    /// Explained by damage anywhere in the fork, if there is any.
    pub fn follows_fork(self, fork: &ForkContext<'_>) -> Self {
        self.follows_from(fork, None)
    }

    fn follows_from(mut self, fork: &ForkContext<'_>, block: Option<BlockNo>) -> Self {
        self.links.follows.push(Origin {
            database: fork.files.home.database,
            filenode: fork.files.filenode,
            fork: fork.fork(),
            block,
        });
        self
    }

    /// Other findings of its page follow from it, or, without a block, of its fork.
    pub(crate) fn rooted(mut self) -> Self {
        self.links.root = true;
        self
    }

    /// The row and the commit log tell the end of this transaction differently.
    pub(crate) fn contradicts(mut self, xid: Xid) -> Self {
        self.links.contradicts = Some(xid.0);
        self
    }

    /// Explained by what is wrong with the fork with these files as a whole, if anything is.
    pub(crate) fn follows_files(mut self, files: &ForkFiles, fork: Fork) -> Self {
        self.links.follows.push(Origin {
            database: files.home.database,
            filenode: files.filenode,
            fork,
            block: None,
        });
        self
    }

    /// The likely cause.
    pub(crate) fn cause(mut self, cause: Cause) -> Self {
        self.cause = Some(cause);
        self
    }

    /// At another place than the one at hand.
    pub fn place(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }
}

/// The key that findings are kept and sorted by within one relation.
type Position = (
    Fork,
    Option<BlockNo>,
    Option<u16>,
    Option<u16>,
    Option<[u64; 2]>,
    String,
);

#[derive(Default, Debug)]
struct Kept {
    findings: BTreeMap<Position, Finding>,
    total: u64,
}

/// A rule, and the file that a draft is about.
type RuleInFile = (&'static str, Option<u32>);

/// How many drafts there were, and one of those that are only counted.
#[derive(Default, Debug)]
struct DraftCount {
    count: u64,
    surplus: Option<Draft>,
}

/// Drafts of the page at hand, and everything found so far.
#[derive(Default, Debug)]
pub struct Findings {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) not_checked: Vec<NotChecked>,
    told: Option<BTreeMap<RuleInFile, DraftCount>>,
    kept: BTreeMap<(String, String), Kept>,
}

impl Findings {
    /// For a comparison that looks at whole relations before anybody takes its drafts.
    pub(crate) fn of_relation() -> Self {
        Findings {
            told: Some(BTreeMap::new()),
            ..Findings::default()
        }
    }

    /// Tells of a defect at the place at hand.
    pub fn add(&mut self, draft: Draft) {
        if let Some(told) = &mut self.told {
            let file = draft.place.as_ref().and_then(|place| place.filenode);
            let told = told.entry((draft.rule.name, file)).or_default();
            told.count += 1;
            if told.count > DRAFTS_PER_RULE {
                told.surplus = Some(draft);
                return;
            }
        }
        self.drafts.push(draft);
    }

    /// What was told beyond the drafts: one of each rule and file, and how many there were.
    pub(crate) fn take_surplus(&mut self) -> Vec<(Draft, u64)> {
        let told = self.told.take().unwrap_or_default().into_values();
        told.filter_map(|told| Some((told.surplus?, told.count.saturating_sub(DRAFTS_PER_RULE))))
            .collect()
    }

    /// Tells what could not be looked at, once.
    pub fn not_checked(&mut self, entry: NotChecked) {
        if !self.not_checked.contains(&entry) {
            self.not_checked.push(entry);
        }
    }

    /// The drafts since the last page, in the order in which they were told.
    pub fn take_drafts(&mut self) -> Vec<Draft> {
        std::mem::take(&mut self.drafts)
    }

    /// Nothing was told since the last page.
    pub fn is_quiet(&self) -> bool {
        self.drafts.is_empty()
    }

    /// Keeps a finding with its place, or only counts it.
    pub(crate) fn keep(&mut self, finding: Finding) {
        let kept = self.kept_like(&finding);
        kept.total += 1;
        kept.insert(finding);
    }

    /// Counts findings of the rule and relation of this one.
    pub(crate) fn count(&mut self, like: &Finding, more: u64) {
        self.kept_like(like).total += more;
    }

    fn kept_like(&mut self, finding: &Finding) -> &mut Kept {
        let place = &finding.place;
        let relation = match place.filenode {
            Some(filenode) => format!(
                "{} {filenode}",
                place.path.rsplit_once('/').map_or("", |(folder, _)| folder)
            ),
            None => place.path.clone(),
        };
        self.kept
            .entry((relation, finding.rule.clone()))
            .or_default()
    }

    /// Joins what another thread found.
    pub(crate) fn absorb(&mut self, other: Findings) {
        other
            .not_checked
            .into_iter()
            .for_each(|entry| self.not_checked(entry));
        for (key, theirs) in other.kept {
            let ours = self.kept.entry(key).or_default();
            ours.total += theirs.total;
            for finding in theirs.findings.into_values() {
                ours.insert(finding);
            }
        }
    }

    /// Everything found so far, as plain data.
    pub(crate) fn saved(&self) -> Vec<SavedFindings> {
        let saved = |((relation, rule), kept): (&(String, String), &Kept)| SavedFindings {
            relation: relation.clone(),
            rule: rule.clone(),
            total: kept.total,
            kept: kept.findings.values().map(SavedFinding::of).collect(),
        };
        self.kept.iter().map(saved).collect()
    }

    /// From what was saved.
    pub(crate) fn restored(saved: Vec<SavedFindings>) -> Self {
        let mut findings = Findings::default();
        for saved in saved {
            let kept = findings
                .kept
                .entry((saved.relation, saved.rule))
                .or_default();
            kept.total = saved.total;
            saved
                .kept
                .into_iter()
                .for_each(|one| kept.insert(one.restored()));
        }
        findings
    }

    /// Says of indexes and long values which table they belong to, where `owner_of` knows it.
    pub(crate) fn name_owners(&mut self, owner_of: impl Fn(&Place) -> Option<Owner>) {
        let kept = self.kept.values_mut();
        let all = kept.flat_map(|kept| kept.findings.values_mut());
        for finding in all.filter(|finding| finding.links.owner.is_none()) {
            finding.links.owner = owner_of(&finding.place);
        }
    }

    /// The ids of all kept findings.
    pub(crate) fn ids(&self) -> BTreeSet<String> {
        let kept = self.kept.values().flat_map(|kept| kept.findings.values());
        kept.map(|finding| finding.id.clone()).collect()
    }

    /// Keeps what another run found and this one does not know.
    pub(crate) fn keep_unknown(&mut self, other: Findings) {
        let known = self.ids();
        let all = other.kept.into_values();
        let all = all.flat_map(|kept| kept.findings.into_values());
        for finding in all.filter(|finding| !known.contains(&finding.id)) {
            self.keep(finding);
        }
    }

    /// How many were told, kept or not.
    pub(crate) fn total(&self) -> u64 {
        self.kept.values().map(|kept| kept.total).sum()
    }

    /// Relations of which this rule told something.
    pub(crate) fn relations_with(&self, rule: &Rule) -> u64 {
        self.kept.keys().filter(|(_, own)| own == rule.name).count() as u64
    }

    /// Of each rule and relation of which some were only counted: those that were kept, and how
    /// many more there were.
    pub(crate) fn surplus(&self) -> impl Iterator<Item = (impl Iterator<Item = &Finding>, u64)> {
        let of = |kept: &Kept| kept.total.saturating_sub(kept.findings.len() as u64);
        let kept = self.kept.values().filter(move |kept| of(kept) > 0);
        kept.map(move |kept| (kept.findings.values(), of(kept)))
    }

    /// How many were only counted, by rule and relation.
    pub(crate) fn omitted(&self) -> Vec<OmittedFindings> {
        let omitted = self.surplus().filter_map(|(kept, findings)| {
            let last = kept.last()?;
            let place = &last.place;
            Some(OmittedFindings {
                rule: last.rule.clone(),
                database_oid: place.database_oid,
                relation_oid: place.relation_oid,
                filenode: place.filenode,
                path: place.path.clone(),
                findings,
            })
        });
        omitted.collect()
    }

    /// All kept findings, in no order that means anything.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Finding> {
        let kept = self.kept.values();
        kept.flat_map(|kept| kept.findings.values())
    }

    /// The same to be changed; their places must stay.
    pub(crate) fn kept_mut(&mut self) -> impl Iterator<Item = &mut Finding> {
        let kept = self.kept.values_mut();
        kept.flat_map(|kept| kept.findings.values_mut())
    }

    /// All kept findings.
    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.kept
            .into_values()
            .flat_map(|kept| kept.findings.into_values())
            .collect()
    }
}

impl Kept {
    fn insert(&mut self, finding: Finding) {
        let place = &finding.place;
        let attribute = place.attribute.as_ref().map(|attribute| attribute.number);
        let fork = place.fork.unwrap_or(Fork::Main);
        let position = (
            fork,
            place.block,
            place.item,
            attribute,
            place.bytes,
            finding.message.clone(),
        );
        self.findings.insert(position, finding);
        if self.findings.len() > KEPT_PER_RULE {
            self.findings.pop_last();
        }
    }
}

impl Draft {
    /// The finding at `place`, whose id hashes cluster, rule and place.
    pub(crate) fn finish(self, place: &Place, system_identifier: u64) -> Finding {
        let mut place = self.place.unwrap_or_else(|| place.clone());
        place.item = self.item.or(place.item);
        place.attribute = self.attribute.or(place.attribute);
        place.bytes = self.bytes.or(place.bytes);
        let whole_table = self.severity == Severity::Damage
            && place.kind == FileKind::Table
            && self.server_says.as_deref().is_some_and(stops_a_scan);
        Finding {
            id: finding_id(system_identifier, self.rule.name, &place),
            cause: self.cause,
            caused_by: None,
            rule: self.rule.name.into(),
            severity: self.severity,
            place,
            message: self.message,
            facts: self.facts,
            server_says: self.server_says,
            at_risk: AtRisk {
                rows: self.rows,
                whole_table,
            },
            remedies: self.remedies,
            known_from: None,
            ignored: None,
            links: self.links,
        }
    }
}

/// With these words the server ends a scan that meets the row.
fn stops_a_scan(words: &str) -> bool {
    words.starts_with("ERROR:  could not access status of transaction")
}

/// Two runs over the same damage agree on this.
fn finding_id(system_identifier: u64, rule: &str, place: &Place) -> String {
    let attribute = place.attribute.as_ref().map(|attribute| attribute.number);
    let file = place.filenode.is_none().then_some(&place.path);
    let bytes = place.block.is_none().then_some(place.bytes).flatten();
    let key = format!(
        "{system_identifier} {rule} {:?} {:?} {:?} {:?} {:?} {attribute:?} {file:?} {bytes:?}",
        place.database_oid, place.filenode, place.fork, place.block, place.item
    );
    blake3::hash(key.as_bytes())
        .to_hex()
        .chars()
        .take(16)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::btree::unique_key_duplicate::UNIQUE_KEY_DUPLICATE;

    #[test]
    fn a_comparison_holds_so_many_drafts_and_counts_the_rest() {
        let mut findings = Findings::of_relation();
        for _ in 0..DRAFTS_PER_RULE + 7 {
            findings.add(Draft::new(&UNIQUE_KEY_DUPLICATE, "again"));
        }
        assert_eq!(findings.take_drafts().len() as u64, DRAFTS_PER_RULE);
        let surplus = findings.take_surplus();
        assert!(matches!(surplus.as_slice(), [(_, 7)]));
    }
}
