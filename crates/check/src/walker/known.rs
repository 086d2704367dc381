//! What another run found: where this one looks again although nothing changed, and what it tells
//! as it was known.
//!
//! ```text
//! found in a page, which has changed since      looked at: it is found again, or gone
//! found in a page that has not changed          looked at all the same: somebody may have put its bytes right
//! found by comparing pages                      not looked for: carried on, unless its file or its root is gone
//! found by what this run does not ask           carried on in the same way (a deeper level; a cluster that needs recovery)
//! found in what is no page                      looked for in every run
//! not compared, or not judged                   told again: nothing that this run does makes up for it
//! not judged since recovery was due             told again once it is not: what a page says of others was left to recovery
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pgclinic_cluster::{Cluster, RelationFileName, fork_path};
use pgclinic_format::{Fork, Lsn};
use pgclinic_model::Severity;
use pgclinic_model::document::{
    FileKind, Finding, Level, NotChecked, Origin, Place, RelationSummary,
};
use pgclinic_source::Presence;

use crate::check::ForkCx;
use crate::register::{is_comparison, is_of_a_page, level_of};
use crate::run_state::{OpenGap, SavedBooks, SavedFinding};
use crate::walker::root_causes;
use crate::walker::run_ledger::{DamagedBlocks, RunLedger};

/// Steps from a finding to its root that are followed.
const STEPS_MAX: usize = 16;
/// In front of the reason for a gap of that run.
const LEFT_OPEN: &str =
    "an earlier run left it open, and only one without --since makes up for it: ";

/// The findings of an earlier run, and the places that are checked again because of them.
#[derive(Debug)]
pub(crate) struct PreviousRun {
    /// Where its run began.
    begin: Lsn,
    /// Blocks by the first file of their fork.
    pages: BTreeMap<String, DamagedBlocks>,
    groups: Vec<Group>,
    relations: Vec<RelationSummary>,
    open: Vec<OpenGap>,
}

/// Findings of one rule in one relation.
#[derive(Debug)]
struct Group {
    kept: Vec<Finding>,
    /// Those that were only counted.
    omitted: u64,
}

impl PreviousRun {
    /// By the books of a run that began at this LSN.
    pub(crate) fn of(begin: Lsn, books: &SavedBooks) -> Self {
        let lengths = books.findings.iter().map(|of| {
            let kept = of.kept.len();
            (kept, of.total.saturating_sub(kept as u64))
        });
        let lengths: Vec<(usize, u64)> = lengths.collect();
        let all = books.findings.iter().flat_map(|of| of.kept.iter().cloned());
        let mut all: Vec<Finding> = all.map(SavedFinding::restored).collect();
        root_causes::tell(&mut all);
        let pages = pages_of(&all, &books.relations);
        let mut all = all.into_iter();
        let groups = lengths.into_iter().map(|(len, omitted)| Group {
            kept: all.by_ref().take(len).collect(),
            omitted,
        });
        PreviousRun {
            begin,
            pages,
            groups: groups.collect(),
            relations: books.relations.clone(),
            open: books.open.clone(),
        }
    }

    /// Pages of the fork in which something was found.
    pub(crate) fn pages_of(&self, fork: &ForkCx<'_>) -> Option<&DamagedBlocks> {
        if self.pages.is_empty() {
            None
        } else {
            self.pages.get(&fork.files.path(0))
        }
    }

    /// Adds to the books what was known and not looked for, after everything that was.
    pub(crate) fn carry(&self, cluster: &Cluster, level: Level, books: &mut RunLedger) {
        let now = Now {
            cluster,
            level,
            fresh: books.findings.ids(),
            unchanged: books.unchanged.clone(),
        };
        let all = self.groups.iter().flat_map(|group| &group.kept);
        let by_id: HashMap<&str, &Finding> = all.map(|own| (own.id.as_str(), own)).collect();
        let mut damaged: BTreeMap<(String, Fork), DamagedBlocks> = BTreeMap::new();
        for group in &self.groups {
            let stays = |own: &&Finding| !now.fresh.contains(&own.id) && now.stands(own, &by_id);
            let mut last = None;
            for finding in group.kept.iter().filter(stays) {
                let mut finding = finding.clone();
                let begin = self.begin.to_string();
                finding.known_from.get_or_insert(begin);
                if let Some((key, block)) = damaged_block(&finding) {
                    damaged.entry(key).or_default().add(block);
                }
                books.findings.keep(finding.clone());
                books.carried += 1;
                last = Some(finding);
            }
            if let Some(like) = last.filter(|_| group.omitted > 0) {
                books.findings.count(&like, group.omitted);
                books.carried += group.omitted;
            }
        }
        for (key, blocks) in damaged {
            self.book_damage(key, &blocks, books);
        }
        for own in &self.open {
            let path = own.path.as_ref();
            let source = cluster.source().as_ref();
            if path.is_some_and(|path| Presence::of_file(source, path).is_missing()) {
                continue;
            }
            let gap = left_open(&own.gap);
            if !(own.unsettled && cluster.needs_recovery()) {
                books.not_checked(gap.clone());
            }
            books.leave_open(OpenGap { gap, ..own.clone() });
        }
    }

    /// The blocks are damaged still, in the map of their relation too.
    fn book_damage(
        &self,
        (path, fork): (String, Fork),
        blocks: &DamagedBlocks,
        books: &mut RunLedger,
    ) {
        let is_own = |one: &RelationSummary| one.path == path && one.fork == fork;
        if let Some(own) = books.relations.iter_mut().find(|one| is_own(one)) {
            let mut both = DamagedBlocks::of(&own.damaged);
            both.absorb(blocks);
            own.damaged = both.ranges();
        } else if let Some(own) = self.relations.iter().find(|one| is_own(one)) {
            books.relations.push(RelationSummary {
                damaged: blocks.ranges(),
                ..own.clone()
            });
        }
    }
}

/// The gap as a later run tells it.
fn left_open(gap: &NotChecked) -> NotChecked {
    let why = if gap.why.starts_with(LEFT_OPEN) {
        gap.why.clone()
    } else {
        format!("{LEFT_OPEN}{}", gap.why)
    };
    NotChecked { why, ..gap.clone() }
}

/// What this run has seen and asked.
struct Now<'a> {
    cluster: &'a Cluster,
    level: Level,
    /// Findings of this run, by id.
    fresh: BTreeSet<String>,
    unchanged: BTreeSet<(String, u32)>,
}

impl Now<'_> {
    /// Nothing of this run says that the finding, or what it follows from, is no longer so.
    fn stands(&self, finding: &Finding, known: &HashMap<&str, &Finding>) -> bool {
        let mut at = finding;
        for _ in 0..STEPS_MAX {
            if self.fresh.contains(&at.id) {
                return true;
            }
            if !self.is_there(at) || self.was_asked(at) {
                return false;
            }
            let root = at.caused_by.as_deref().and_then(|root| known.get(root));
            match root {
                Some(root) => at = root,
                None => return true,
            }
        }
        true
    }

    /// This run would have found it.
    fn was_asked(&self, finding: &Finding) -> bool {
        let rule = &finding.rule;
        if finding.links.compared && is_comparison(rule) {
            return false;
        }
        let level = level_of(rule);
        if level.is_some_and(|own| own > self.level) {
            return false;
        }
        // What a page says of transactions, maps and lengths waits for recovery; what is wrong with
        // it alone does not.
        let leans_on_others = level > Some(Level::Pages) && is_of_a_page(rule);
        !(leans_on_others && self.cluster.needs_recovery() && self.is_unchanged(&finding.place))
    }

    fn is_unchanged(&self, place: &Place) -> bool {
        let page = place.block.map(|block| (place.path.clone(), block));
        page.is_some_and(|page| self.unchanged.contains(&page))
    }

    /// The files that it speaks of are, with its block.
    fn is_there(&self, finding: &Finding) -> bool {
        let place = &finding.place;
        if place.filenode.is_none() && place.kind != FileKind::Wal {
            return true;
        }
        let len = match Presence::of_file(self.cluster.source().as_ref(), &place.path) {
            Presence::There(len) => len,
            Presence::Missing => return false,
            // Nobody can know that it is gone.
            Presence::Unreadable(_) => return true,
        };
        let build = self.cluster.build;
        let inside = place.block.filter(|_| place.filenode.is_some());
        let inside = inside.is_none_or(|block| {
            let at = u64::from(block) % build.segment_blocks().max(1);
            (at + 1).saturating_mul(u64::from(build.block_size)) <= len
        });
        let mut others = finding.links.follows.iter();
        inside && others.all(|other| self.has_file(other))
    }

    /// In one of the tablespaces.
    fn has_file(&self, of: &Origin) -> bool {
        let homes = self.cluster.homes.iter();
        let mut homes = homes.filter(|home| home.database == of.database);
        homes.any(|home| {
            let path = fork_path(&home.folder, of.filenode, of.fork, 0);
            !Presence::of_file(self.cluster.source().as_ref(), &path).is_missing()
        })
    }
}

fn pages_of(
    findings: &[Finding],
    relations: &[RelationSummary],
) -> BTreeMap<String, DamagedBlocks> {
    let mut pages: BTreeMap<String, DamagedBlocks> = BTreeMap::new();
    for relation in relations {
        let blocks = pages.entry(relation.path.clone()).or_default();
        blocks.absorb(&DamagedBlocks::of(&relation.damaged));
    }
    for place in findings.iter().map(|finding| &finding.place) {
        if let (Some(block), Some(path)) = (place.block, first_file(place)) {
            pages.entry(path).or_default().add(u64::from(block));
        }
    }
    pages
}

fn damaged_block(finding: &Finding) -> Option<((String, Fork), u64)> {
    let place = &finding.place;
    let (block, fork) = (place.block?, place.fork?);
    let is_damage = finding.severity == Severity::Damage;
    is_damage.then_some(((first_file(place)?, fork), u64::from(block)))
}

/// The first file of the fork that the place is in.
fn first_file(place: &Place) -> Option<String> {
    let (folder, name) = place.path.rsplit_once('/')?;
    RelationFileName::parse(name).filter(|_| place.filenode.is_some())?;
    let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
    Some(format!("{folder}/{stem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_knows_the_first_file_of_its_fork() {
        let first = |path: &str, filenode| {
            first_file(&Place {
                path: path.into(),
                filenode,
                ..Place::default()
            })
        };
        assert_eq!(
            first("base/5/16384_vm.12", Some(16384)).as_deref(),
            Some("base/5/16384_vm")
        );
        assert_eq!(
            first("global/1260", Some(1260)).as_deref(),
            Some("global/1260")
        );
        assert_eq!(first("pg_xact/0000", None), None);
    }
}
