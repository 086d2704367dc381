//! Compares what an injury promised with what the checks and the server said.

use std::collections::BTreeSet;

use pgclinic_check::{is_comparison, is_expected};
use pgclinic_model::document::{FileKind, Finding, ServerAnswer};
use pgclinic_model::{CheckDocument, Severity};
use pgclinic_surgery::PlannedInjury;

use crate::drill::matrix::Ward;

/// Rules whose words fall when a scan comes to the page, not before.
const ON_SCANS: &[&str] = &[
    "brin-map-entry",
    "btree-link-beyond-end",
    "btree-sibling",
    "hash-chain-broken",
    "special-size-mismatch",
    "spgist-link",
];

/// Rules that stand at a file which a lost row named, not where the row stood.
const ELSEWHERE: &[&str] = &["relation-lost"];

/// What the checks said about a hurt copy, beyond what they say about the master.
pub(crate) struct NewFindings {
    pub(crate) findings: Vec<Finding>,
}

impl NewFindings {
    /// The findings that the healthy cluster does not have.
    pub(crate) fn new(document: CheckDocument, healthy: &CheckDocument) -> Self {
        let known: BTreeSet<&str> = healthy
            .findings
            .iter()
            .map(|finding| finding.id.as_str())
            .collect();
        NewFindings {
            findings: document
                .findings
                .into_iter()
                .filter(|finding| !known.contains(finding.id.as_str()))
                .collect(),
        }
    }

    /// Rules that fired, roots first.
    pub(crate) fn rules(&self) -> Vec<String> {
        let mut rules: Vec<String> = Vec::new();
        let (roots, followers): (Vec<&Finding>, Vec<&Finding>) = self
            .findings
            .iter()
            .partition(|finding| finding.caused_by.is_none());
        for finding in roots.into_iter().chain(followers) {
            if !rules.contains(&finding.rule) {
                rules.push(finding.rule.clone());
            }
        }
        rules
    }

    /// Rules that had to fire and did not, or fired elsewhere.
    pub(crate) fn missing(&self, planned: &PlannedInjury) -> Vec<String> {
        let place = &planned.place;
        let here = |finding: &&Finding| {
            let block = place.block.is_none()
                || finding.place.block.is_none()
                || finding.place.block == place.block;
            is_comparison(&finding.rule)
                || ELSEWHERE.contains(&finding.rule.as_str())
                || block
                    && (finding.place.filenode == place.filenode
                        || finding.place.filenode.is_none()
                        || place.filenode.is_none())
        };
        let fired: BTreeSet<&str> = self
            .findings
            .iter()
            .filter(here)
            .map(|finding| finding.rule.as_str())
            .collect();
        planned
            .damage
            .must
            .iter()
            .filter(|rule| !fired.contains(**rule))
            .map(|rule| (*rule).to_owned())
            .collect()
    }

    /// Rules that fired and neither were allowed to nor follow from one that was. Notes are always
    /// allowed, and so are comparisons: they may see any hurt.
    pub(crate) fn unexpected(&self, planned: &PlannedInjury) -> Vec<String> {
        let allowed = |rule: &str| {
            let damage = &planned.damage;
            damage.must.contains(&rule) || damage.may.contains(&rule) || is_comparison(rule)
        };
        let alarms = self
            .findings
            .iter()
            .filter(|finding| finding.severity != Severity::Note);
        let unexpected: BTreeSet<String> = alarms
            .filter(|finding| !is_expected(finding, &self.findings, allowed))
            .map(|finding| finding.rule.clone())
            .collect();
        unexpected.into_iter().collect()
    }

    /// Findings of damage that name no way out.
    pub(crate) fn helpless(&self) -> bool {
        let damage = |finding: &&Finding| {
            finding.severity == Severity::Damage && finding.caused_by.is_none()
        };
        self.findings
            .iter()
            .filter(damage)
            .any(|finding| finding.remedies.is_empty())
    }

    /// What was foretold that the server did not say, of what it was asked to read.
    pub(crate) fn false_prophecies(&self, answer: &ServerAnswer, ward: &Ward<'_>) -> Vec<String> {
        let scanned = |finding: &Finding| {
            let place = &finding.place;
            let part = |part: &Option<String>| part.clone().unwrap_or_default();
            let name = format!("{}.{}", part(&place.schema), part(&place.relation));
            ward.scanned.contains(&(part(&place.database), name))
        };
        let read = |finding: &&Finding| {
            let asked = !ON_SCANS.contains(&finding.rule.as_str()) || scanned(finding);
            finding.place.kind != FileKind::Index || ward.reads_indexes && asked
        };
        let foretold: BTreeSet<&String> = self
            .findings
            .iter()
            .filter(read)
            .filter_map(|finding| finding.server_says.as_ref())
            .collect();
        // While a session begins, every error ends it: the server then calls it fatal.
        let plain = |words: &str| {
            let line = words.lines().next().unwrap_or_default();
            line.replacen("FATAL:  ", "ERROR:  ", 1)
        };
        let said = |words: &&String| {
            let messages = answer.messages.iter();
            !messages
                .map(|message| plain(message))
                .any(|message| message == plain(words))
        };
        foretold.into_iter().filter(said).cloned().collect()
    }

    /// The first prophecy, for the scoreboard.
    pub(crate) fn prophecy(&self) -> Option<String> {
        self.findings
            .iter()
            .find_map(|finding| finding.server_says.clone())
    }
}
