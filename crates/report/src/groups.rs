//! Findings by relation, worst first; followers under their roots; runs of one rule together.

use std::cmp::Reverse;
use std::collections::HashMap;

use pgclinic_model::Severity;
use pgclinic_model::document::{
    CheckDocument, FileKind, Finding, OmittedFindings, Place, RelationSummary,
};

use crate::rows_at_risk::{Rows, rows_at_risk};
use crate::view::permalinks;
use crate::words;

/// Longest chain of `caused_by` that is followed; a longer one is a circle.
const CHAIN_LIMIT: usize = 64;
/// More findings of one rule in one relation are folded.
const RUN_LIMIT: usize = 8;
/// So many of a folded run are still shown in full.
const RUN_SHOWN: usize = 3;

/// All that is known of one relation or file.
pub(crate) struct Group<'a> {
    /// Name, `schema.relation`, or the path of a file without a name.
    pub(crate) name: String,
    /// Name of the database.
    pub(crate) database: Option<&'a str>,
    /// Where a page tells of it.
    pub(crate) place: String,
    /// Kind.
    pub(crate) kind: FileKind,
    /// First file.
    pub(crate) path: &'a str,
    /// Its forks with findings.
    pub(crate) forks: Vec<&'a RelationSummary>,
    /// Findings that follow from nothing else, worst first, those of one rule side by side.
    pub(crate) roots: Vec<Root<'a>>,
    /// Further findings of it, counted and not kept.
    pub(crate) omitted: u64,
    /// How many of its findings stand under a root in another group.
    pub(crate) following_elsewhere: u64,
    /// All its findings, followers too.
    pub(crate) own: Vec<&'a Finding>,
    /// Rows at risk.
    pub(crate) rows: Rows,
}

/// Where the cures of findings stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cures {
    /// Under each of them, in a document without a plan.
    Each,
    /// In one plan for all of them, instead of lines that repeat.
    InPlan,
}

impl Cures {
    /// Those of this document.
    pub(crate) fn of(document: &CheckDocument) -> Self {
        if document.plan.is_empty() {
            Cures::Each
        } else {
            Cures::InPlan
        }
    }
}

/// A finding and what follows from it.
pub(crate) struct Root<'a> {
    /// The finding.
    pub(crate) finding: &'a Finding,
    /// Its followers, in document order.
    pub(crate) followers: Vec<&'a Finding>,
    /// Further ones, counted and not kept, by rule.
    pub(crate) omitted: Vec<(&'a str, u64)>,
    /// Further findings of its own rule in its relation, counted and not kept.
    pub(crate) omitted_like: u64,
}

/// Root findings of one rule in one relation: some in full, the rest only counted.
pub(crate) struct Run<'r, 'a> {
    /// The rule.
    pub(crate) rule: &'a str,
    /// In full.
    pub(crate) shown: &'r [Root<'a>],
    /// Only counted.
    pub(crate) folded: &'r [Root<'a>],
    /// Further ones, of which the document has only the number.
    pub(crate) omitted: u64,
}

impl<'a> Group<'a> {
    fn new(
        name: String,
        database: Option<&'a str>,
        place: String,
        kind: FileKind,
        path: &'a str,
    ) -> Self {
        Group {
            name,
            database,
            place,
            kind,
            path,
            forks: Vec::new(),
            roots: Vec::new(),
            omitted: 0,
            following_elsewhere: 0,
            own: Vec::new(),
            rows: Rows::default(),
        }
    }

    /// Severity of its worst finding.
    pub(crate) fn worst(&self) -> Option<Severity> {
        self.own.iter().map(|finding| finding.severity).min()
    }

    /// The server gives no row of it, as a scan stops at some of them.
    pub(crate) fn is_refused(&self) -> bool {
        self.own.iter().any(|finding| finding.at_risk.whole_table)
    }

    fn rank(&self) -> u8 {
        match self.worst() {
            Some(Severity::Damage) => 0,
            Some(Severity::Warning) => 1,
            Some(Severity::Note) => 2,
            None => 3,
        }
    }

    /// Blocks with damage in all forks.
    pub(crate) fn damaged_blocks(&self) -> u64 {
        let ranges = self.forks.iter().flat_map(|fork| &fork.damaged);
        let each = ranges.map(|[start, end]| end.saturating_sub(*start));
        each.fold(0, u64::saturating_add)
    }

    /// Runs of one rule, long ones folded.
    pub(crate) fn runs(&self) -> Vec<Run<'_, 'a>> {
        let same = |a: &Root<'_>, b: &Root<'_>| a.finding.rule == b.finding.rule;
        let chunks = self.roots.chunk_by(same);
        chunks
            .filter_map(|chunk| {
                let shown = if chunk.len() > RUN_LIMIT {
                    RUN_SHOWN
                } else {
                    chunk.len()
                };
                let omitted = chunk.iter().map(|root| root.omitted_like).sum();
                let (shown, folded) = chunk.split_at_checked(shown)?;
                let rule = shown.first()?.finding.rule.as_str();
                Some(Run {
                    rule,
                    shown,
                    folded,
                    omitted,
                })
            })
            .collect()
    }
}

/// How many followers of each rule, in order of first appearance, and how many of them were not
/// kept.
pub(crate) fn count_by_rule<'a>(root: &Root<'a>) -> Vec<(&'a str, u64, u64)> {
    let kept = root.followers.iter();
    let kept = kept.map(|finding| (finding.rule.as_str(), 1, 0));
    let omitted = root.omitted.iter();
    let omitted = omitted.map(|(rule, findings)| (*rule, *findings, *findings));
    let mut counts: Vec<(&str, u64, u64)> = Vec::new();
    for (rule, findings, omitted) in kept.chain(omitted) {
        match counts.iter_mut().find(|(known, ..)| *known == rule) {
            Some((_, all, not_kept)) => {
                *all += findings;
                *not_kept += omitted;
            }
            None => counts.push((rule, findings, omitted)),
        }
    }
    counts
}

/// Blocks of findings as ranges.
pub(crate) fn blocks_of<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<[u64; 2]> {
    let mut blocks: Vec<u64> = findings
        .filter_map(|f| f.place.block)
        .map(u64::from)
        .collect();
    blocks.sort_unstable();
    words::to_ranges(blocks)
}

/// The findings of a document as groups.
pub(crate) fn groups(document: &CheckDocument) -> Vec<Group<'_>> {
    let mut groups = of_findings(&document.relations, &document.findings);
    add_omitted(&mut groups, &document.omitted);
    groups
}

/// Puts what was only counted under the root of the last finding like it that was kept.
fn add_omitted<'a>(groups: &mut [Group<'a>], omitted: &'a [OmittedFindings]) {
    let wanted = omitted
        .iter()
        .map(|own| (own.rule.as_str(), Key::of_omitted(own)));
    let mut homes: HashMap<(&str, Key<'_>), Option<(usize, usize)>> =
        wanted.map(|like| (like, None)).collect();
    for (at, group) in groups.iter().enumerate() {
        for (number, root) in group.roots.iter().enumerate() {
            for finding in root.followers.iter().copied().chain([root.finding]) {
                let like = (finding.rule.as_str(), Key::of_place(&finding.place));
                if let Some(home) = homes.get_mut(&like) {
                    *home = Some((at, number));
                }
            }
        }
    }
    for own in omitted {
        let key = Key::of_omitted(own);
        let home = homes.get(&(own.rule.as_str(), Key::of_omitted(own)));
        let Some((at, number)) = home.copied().flatten() else {
            continue;
        };
        let is_of = |group: &Group<'_>| {
            let mut all = group.own.iter();
            all.any(|finding| Key::of_place(&finding.place) == key)
        };
        let mut is_elsewhere = true;
        if let Some(group) = groups.get_mut(at) {
            is_elsewhere = !is_of(group);
            if let Some(root) = group.roots.get_mut(number) {
                root.add_omitted(own, !is_elsewhere);
            }
        }
        if let Some(group) = groups.iter_mut().find(|group| is_of(group)) {
            group.omitted = group.omitted.saturating_add(own.findings);
            if is_elsewhere {
                group.following_elsewhere += own.findings;
            }
        }
    }
}

impl<'a> Root<'a> {
    fn add_omitted(&mut self, own: &'a OmittedFindings, is_of_its_relation: bool) {
        if is_of_its_relation && self.finding.rule == own.rule {
            self.omitted_like += own.findings;
        } else {
            self.omitted.push((own.rule.as_str(), own.findings));
        }
    }

    /// How many follow from it, kept or not.
    pub(crate) fn follower_count(&self) -> u64 {
        let omitted = self.omitted.iter().map(|(_, findings)| findings);
        let kept = u64::try_from(self.followers.len()).unwrap_or(u64::MAX);
        omitted.fold(kept, |all, more| all.saturating_add(*more))
    }
}

/// Relations, and findings in them or elsewhere, as groups.
pub(crate) fn of_findings<'a>(
    relations: &'a [RelationSummary],
    findings: &'a [Finding],
) -> Vec<Group<'a>> {
    let mut shelf = Shelf::default();
    for fork in relations {
        shelf.of_fork(fork).forks.push(fork);
    }
    let roots = root_of_each(findings);
    let mut followers: HashMap<&str, Vec<&Finding>> = HashMap::new();
    for (finding, root) in findings.iter().zip(&roots) {
        if finding.id != root.id {
            followers.entry(root.id.as_str()).or_default().push(finding);
        }
    }
    for (finding, root) in findings.iter().zip(&roots) {
        let group = shelf.of_place(&finding.place);
        group.own.push(finding);
        if finding.id == root.id {
            let followers = followers.remove(finding.id.as_str()).unwrap_or_default();
            group.roots.push(Root {
                finding,
                followers,
                omitted: Vec::new(),
                omitted_like: 0,
            });
        } else if Key::of_place(&finding.place) != Key::of_place(&root.place) {
            group.following_elsewhere += 1;
        }
    }
    shelf.part_namesakes();
    let mut groups = shelf.groups;
    for group in &mut groups {
        order_roots(&mut group.roots);
        group.rows = rows_at_risk(&group.own);
    }
    groups.sort_by_cached_key(|group| {
        let rows = Reverse(group.rows.known);
        (
            group.rank(),
            rows,
            group.roots.is_empty(),
            Reverse(group.own.len()),
            group.name.clone(),
        )
    });
    groups
}

/// What makes two findings be about the same thing.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Relation(u32, u32),
    Filenode(u32, u32),
    Path(&'a str),
}

impl<'a> Key<'a> {
    fn new(
        database: Option<u32>,
        relation: Option<u32>,
        filenode: Option<u32>,
        path: &'a str,
    ) -> Self {
        match (database.unwrap_or_default(), relation, filenode) {
            (database, Some(relation), _) => Key::Relation(database, relation),
            (database, None, Some(filenode)) => Key::Filenode(database, filenode),
            (_, None, None) => Key::Path(path),
        }
    }

    /// `~5/16384`; a file is named by its path.
    fn numbers(&self) -> Option<String> {
        match self {
            Key::Relation(database, number) | Key::Filenode(database, number) => {
                Some(format!("~{database}/{number}"))
            }
            Key::Path(_) => None,
        }
    }

    fn of_place(place: &'a Place) -> Self {
        Key::new(
            place.database_oid,
            place.relation_oid,
            place.filenode,
            &place.path,
        )
    }

    fn of_omitted(own: &'a OmittedFindings) -> Self {
        Key::new(own.database_oid, own.relation_oid, own.filenode, &own.path)
    }

    fn of_fork(fork: &'a RelationSummary) -> Self {
        Key::new(
            fork.database_oid,
            fork.relation_oid,
            fork.filenode,
            &fork.path,
        )
    }
}

#[derive(Default)]
struct Shelf<'a> {
    groups: Vec<Group<'a>>,
    index: HashMap<Key<'a>, usize>,
}

impl<'a> Shelf<'a> {
    fn of_fork(&mut self, fork: &'a RelationSummary) -> &mut Group<'a> {
        let name = fork.title();
        let database = fork.database.as_deref();
        let (schema, relation) = (fork.schema.as_deref(), fork.relation.as_deref());
        let at = permalinks::of_relation(database, schema, relation, &fork.path);
        let new = Group::new(name, database, at, fork.kind, &fork.path);
        self.find(Key::of_fork(fork), new)
    }

    fn of_place(&mut self, place: &'a Place) -> &mut Group<'a> {
        let name = place.relation_name();
        let database = place.database.as_deref();
        let (schema, relation) = (place.schema.as_deref(), place.relation.as_deref());
        let at = permalinks::of_relation(database, schema, relation, &place.path);
        let new = Group::new(name, database, at, place.kind, &place.path);
        self.find(Key::of_place(place), new)
    }

    /// Relations of one name, of a damaged catalog or of databases without a name, are told apart
    /// by their numbers.
    fn part_namesakes(&mut self) {
        let mut namesakes: HashMap<String, usize> = HashMap::new();
        for group in &self.groups {
            *namesakes.entry(group.place.clone()).or_default() += 1;
        }
        for (key, at) in &self.index {
            if let (Some(group), Some(numbers)) = (self.groups.get_mut(*at), key.numbers())
                && namesakes
                    .get(&group.place)
                    .is_some_and(|number| *number > 1)
            {
                group.place.push_str(&numbers);
            }
        }
    }

    fn find(&mut self, key: Key<'a>, new: Group<'a>) -> &mut Group<'a> {
        let at = *self.index.entry(key).or_insert(self.groups.len());
        if at == self.groups.len() {
            self.groups.push(new);
        }
        let group = self.groups.get_mut(at);
        group.expect("the index names groups that stand on the shelf")
    }
}

/// The root of each finding: itself, unless `caused_by` leads to another one that was kept.
fn root_of_each(findings: &[Finding]) -> Vec<&Finding> {
    let by_id: HashMap<&str, &Finding> = findings.iter().map(|f| (f.id.as_str(), f)).collect();
    findings
        .iter()
        .map(|finding| root_of(finding, &by_id))
        .collect()
}

fn root_of<'a>(finding: &'a Finding, by_id: &HashMap<&str, &'a Finding>) -> &'a Finding {
    let mut root = finding;
    for _ in 0..CHAIN_LIMIT {
        let cause = root
            .caused_by
            .as_deref()
            .and_then(|id| by_id.get(id).copied());
        match cause {
            Some(cause) => root = cause,
            None => return root,
        }
    }
    finding
}

fn order_roots(roots: &mut [Root<'_>]) {
    let mut rules: HashMap<String, usize> = HashMap::new();
    for root in roots.iter() {
        let next = rules.len();
        rules.entry(root.finding.rule.clone()).or_insert(next);
    }
    roots.sort_by_key(|root| {
        (
            root.finding.severity,
            rules.get(&root.finding.rule).copied(),
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_of_one_name_are_told_apart_by_their_numbers() {
        let fork = |database: u32, relation: u32| -> RelationSummary {
            let fork = serde_json::json!({
                "schema": "public", "relation": "docs", "database_oid": database,
                "relation_oid": relation, "path": "base/5/1", "kind": "table", "fork": "main",
                "blocks": 1, "damaged": []
            });
            serde_json::from_value(fork).expect("a fork")
        };
        let forks = [fork(5, 16_384), fork(16_400, 16_384), fork(5, 16_390)];
        let places = |forks: &[RelationSummary]| {
            let mut places: Vec<String> = of_findings(forks, &[])
                .into_iter()
                .map(|group| group.place)
                .collect();
            places.sort();
            places
        };
        let told = [
            "public.docs~16400/16384",
            "public.docs~5/16384",
            "public.docs~5/16390",
        ];
        assert_eq!(places(&forks), told);
        assert_eq!(places(&forks[..1]), ["public.docs"]);
    }

    fn finding(id: &str, caused_by: Option<&str>, block: u32, rows: Option<u64>) -> Finding {
        let place = serde_json::json!({"path": "base/5/1", "kind": "table", "block": block});
        let finding = serde_json::json!({
            "id": id, "cause": null, "caused_by": caused_by, "rule": "r", "severity": "damage",
            "place": place, "message": "m", "facts": {}, "server_says": null,
            "at_risk": {"rows": rows}, "remedies": []
        });
        serde_json::from_value(finding).expect("a finding")
    }

    #[test]
    fn what_was_only_counted_stands_under_the_root_of_its_kin() {
        let findings = [
            finding("a", None, 0, None),
            finding("b", Some("a"), 1, None),
        ];
        let mut groups = of_findings(&[], &findings);
        let omitted = |rule: &str| OmittedFindings {
            rule: rule.into(),
            database_oid: None,
            relation_oid: None,
            filenode: None,
            path: "base/5/1".into(),
            findings: 19_000,
        };
        let omitted = [omitted("r"), omitted("of nobody")];
        add_omitted(&mut groups, &omitted);
        let root = groups
            .first()
            .and_then(|group| group.roots.first())
            .expect("a root");
        assert_eq!((root.omitted_like, root.follower_count()), (19_000, 1));
    }

    #[test]
    fn a_circle_of_causes_hides_nothing() {
        let findings = [
            finding("a", Some("b"), 0, None),
            finding("b", Some("a"), 1, None),
        ];
        let roots: Vec<_> = root_of_each(&findings)
            .iter()
            .map(|root| root.id.clone())
            .collect();
        assert_eq!(roots, ["a", "b"]);
    }

    #[test]
    fn a_follower_whose_root_was_not_kept_stands_alone() {
        let findings = [finding("a", Some("gone"), 0, None)];
        assert_eq!(
            root_of_each(&findings).first().map(|root| root.id.as_str()),
            Some("a")
        );
    }
}
