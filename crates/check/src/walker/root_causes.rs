//! One damaged page that breaks twenty invariants reads as one links: what a comparison found is
//! put under the damage that explains it.

use std::collections::HashMap;

use pgclinic_model::Severity;
use pgclinic_model::document::{FileKind, Finding, Origin};

use crate::files::relation_lost::RELATION_LOST;

/// The first finding of damage of a page, and of a fork.
#[derive(Default)]
struct Roots(HashMap<Origin, String>);

impl Roots {
    fn add(&mut self, finding: &Finding) {
        for origin in own_origins(finding) {
            self.0.entry(origin).or_insert_with(|| finding.id.clone());
        }
    }

    fn absorb(&mut self, later: Roots) {
        for (origin, root) in later.0 {
            self.0.entry(origin).or_insert(root);
        }
    }

    fn of(&self, finding: &Finding) -> Option<String> {
        let own = own_origins(finding)
            .into_iter()
            .filter(|origin| origin.block.is_some());
        let mut origins = own.chain(finding.links.follows.iter().cloned());
        origins
            .find_map(|origin| self.0.get(&origin).filter(|root| **root != finding.id))
            .cloned()
    }
}

/// The page it is on and its fork.
fn own_origins(finding: &Finding) -> Vec<Origin> {
    let place = &finding.place;
    let (Some(database), Some(filenode), Some(fork)) =
        (place.database_oid, place.filenode, place.fork)
    else {
        return Vec::new();
    };
    let origin = |block| Origin {
        database,
        filenode,
        fork,
        block,
    };
    let mut origins = vec![origin(None)];
    origins.extend(place.block.map(|block| origin(Some(block))));
    origins
}

/// What comparisons find rests on which rows are live, and that on the status files.
fn lost_status(findings: &[Finding]) -> Option<String> {
    let of_status = |finding: &&Finding| {
        finding.severity == Severity::Damage && finding.place.kind == FileKind::Slru
    };
    findings
        .iter()
        .find(of_status)
        .map(|finding| finding.id.clone())
}

/// Findings that explain whatever else is found on their page or in their fork: those of a fork
/// first.
fn plain_roots(findings: &[Finding]) -> Roots {
    let mut roots = Roots::default();
    let plain = |finding: &&Finding| finding.severity == Severity::Damage && finding.links.root;
    for is_of_fork in [true, false] {
        let of_kind = |finding: &&Finding| finding.place.block.is_none() == is_of_fork;
        let ours = findings.iter().filter(plain).filter(of_kind);
        ours.for_each(|finding| roots.add(finding));
    }
    roots
}

/// Sets `caused_by` of what comparisons found. Findings of single pages have theirs already, unless
/// a comparison found out what became of the whole page or file.
pub(crate) fn tell(findings: &mut [Finding]) {
    let mut roots = plain_roots(findings);
    let lost_status = lost_status(findings);
    let others = |finding: &&mut Finding| {
        finding.severity == Severity::Damage && !finding.links.root && !finding.links.compared
    };
    // What no page of its own explains, but one of another file may, is never the root of that.
    let is_near = |finding: &&mut Finding| !follows_another_file(finding);
    let mut pages = Roots::default();
    for finding in findings.iter_mut().filter(others).filter(is_near) {
        if finding.caused_by.is_none() {
            finding.caused_by = roots.of(finding);
            // The root counts the rows.
            if finding.caused_by.is_some() {
                finding.at_risk.rows.get_or_insert(0);
            }
        }
        // Where a relation has no file, this stands where its row stood, and explains no other.
        if finding.caused_by.is_none() && finding.rule != RELATION_LOST.name {
            pages.add(finding);
        }
    }
    roots.absorb(pages);
    // A relation whose row is lost has rows of its own at risk, and the server's words about it
    // stay: the page that lost its row is another's.
    for finding in findings.iter_mut().filter(others) {
        if !is_near(&finding) && finding.caused_by.is_none() {
            finding.caused_by = roots.of(finding);
        }
    }
    for rank in [Rank::OwnPage, Rank::OwnFork, Rank::Elsewhere] {
        let of_rank = |finding: &&mut Finding| {
            finding.severity == Severity::Damage
                && finding.links.compared
                && !finding.links.root
                && rank_of(finding) == rank
        };
        for finding in findings.iter_mut().filter(of_rank) {
            finding.caused_by = roots.of(finding).or_else(|| lost_status.clone());
            match finding.caused_by {
                // The server stumbles over the root first, and in other words.
                Some(_) => finding.server_says = None,
                None => roots.add(finding),
            }
        }
    }
}

/// What a comparison looked at: the nearer, the likelier it is the root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rank {
    OwnPage,
    OwnFork,
    Elsewhere,
}

fn follows_another_file(finding: &Finding) -> bool {
    let other = |origin: &Origin| Some(origin.filenode) != finding.place.filenode;
    finding.links.follows.iter().any(other)
}

fn rank_of(finding: &Finding) -> Rank {
    if follows_another_file(finding) {
        Rank::Elsewhere
    } else if finding.place.block.is_none() {
        Rank::OwnFork
    } else {
        Rank::OwnPage
    }
}

/// Steps from a finding to its root that are followed.
const STEPS_MAX: usize = 16;

/// The finding, or one that it follows from, is of a rule that was to be expected: for drills.
pub fn is_expected(
    finding: &Finding,
    findings: &[Finding],
    expected: impl Fn(&str) -> bool,
) -> bool {
    let mut at = finding;
    for _ in 0..STEPS_MAX {
        if expected(&at.rule) {
            return true;
        }
        let cause = |other: &&Finding| at.caused_by.as_ref() == Some(&other.id);
        let Some(next) = findings.iter().find(cause) else {
            return false;
        };
        at = next;
    }
    false
}
