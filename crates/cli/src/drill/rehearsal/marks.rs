//! Which findings belong to which injury, and which to none.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_check::is_comparison;
use pgclinic_cluster::{Cluster, RelKind};
use pgclinic_format::Oid;
use pgclinic_model::Severity;
use pgclinic_model::document::{
    FalseAlarm, FileKind, Finding, InjuryState, Place, RehearsalInjury,
};
use pgclinic_model::plan::Change;
use pgclinic_surgery::Chosen;
use serde::{Deserialize, Serialize};

use super::rows::TableName;

/// It says that bytes changed, and not what is wrong with them.
const CHECKSUM: &str = "checksum-mismatch";

const BEHIND_ANOTHER: &str = "a check does not get so far in this index, which is damaged elsewhere: REINDEX builds it again as a whole";

/// An injury of the copy, with all that is needed to mark it.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct KnownInjury {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) words: String,
    pub(crate) must: Vec<String>,
    pub(crate) blind: Option<String>,
    pub(crate) recovery_advice: String,
    pub(crate) changes: Vec<Change>,
}

impl KnownInjury {
    /// What is known of a planned injury; `changes` are its part of the patch that was written.
    pub(crate) fn of((injury, planned): &Chosen, changes: &[Change]) -> Self {
        let damage = &planned.damage;
        KnownInjury {
            name: injury.name.into(),
            place: planned.place.clone(),
            words: damage.words.clone(),
            must: damage.must.iter().map(|rule| (*rule).to_owned()).collect(),
            blind: damage.blind.map(str::to_owned),
            recovery_advice: injury.recovery_advice.into(),
            changes: changes.to_vec(),
        }
    }

    fn is_in_file_of(&self, place: &Place) -> bool {
        let same = self.place.database_oid == place.database_oid
            && self.place.filenode.is_some()
            && self.place.filenode == place.filenode;
        same || self.place.path == place.path
    }

    /// The finding stands at its place, or says that it follows from it.
    fn has(&self, finding: &Finding) -> bool {
        let place = &finding.place;
        let own = self.place.block;
        let here = self.is_in_file_of(place)
            && (own.is_none() || place.block.is_none() || own == place.block);
        let follows = finding.links.follows.iter().any(|origin| {
            Some(origin.database) == self.place.database_oid
                && Some(origin.filenode) == self.place.filenode
                && (origin.block.is_none() || own.is_none() || origin.block == own)
        });
        here || follows
    }
}

/// The table of each relation: of its TOAST table, of their indexes, and of itself. By database and
/// relation.
pub(crate) struct Families {
    table_of: BTreeMap<(Oid, Oid), Oid>,
    names: BTreeMap<(Oid, Oid), TableName>,
    /// Numbers of files, by database.
    files: BTreeSet<(Oid, Oid)>,
}

impl Families {
    /// Reads the catalogs of every database.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let mut families = Families {
            table_of: BTreeMap::new(),
            names: BTreeMap::new(),
            files: BTreeSet::new(),
        };
        let shared = cluster.catalog(0);
        let numbers = shared.relations.values().map(|own| (0, own.filenode));
        families.files.extend(numbers);
        for database in cluster.databases.values() {
            let Some(name) = &database.name else { continue };
            let catalog = cluster.catalog(database.oid);
            let owner_of_toast: BTreeMap<Oid, Oid> = catalog
                .relations
                .values()
                .filter(|relation| relation.toast != 0)
                .map(|relation| (relation.toast, relation.oid))
                .collect();
            let table_of = |oid: Oid| owner_of_toast.get(&oid).copied().unwrap_or(oid);
            for relation in catalog.relations.values() {
                let indexed = relation.index.as_ref().map(|index| index.table);
                let table = table_of(indexed.unwrap_or(relation.oid));
                let key = (database.oid, relation.oid);
                families.table_of.insert(key, table);
                families.files.insert((database.oid, relation.filenode));
                if matches!(relation.kind, RelKind::Table | RelKind::MaterializedView) {
                    let name = TableName {
                        database: name.clone(),
                        schema: relation.schema.clone(),
                        table: relation.name.clone(),
                    };
                    families.names.insert(key, name);
                }
            }
        }
        families
    }

    fn family(&self, place: &Place) -> Option<(Oid, Oid)> {
        let (database, relation) = (place.database_oid?, place.relation_oid?);
        let table = self.table_of.get(&(database, relation)).copied();
        Some((database, table.unwrap_or(relation)))
    }

    /// `public.docs` of a place in its TOAST table or in an index of that.
    fn toast_owner(&self, place: &Place) -> Option<String> {
        let is_toast = place.schema.as_deref() == Some("pg_toast");
        let family = self.family(place).filter(|_| is_toast)?;
        let name = self.names.get(&family)?;
        Some(format!("{}.{}", name.schema, name.table))
    }

    /// A relation has its pages in the file of this place, as far as catalogs know it.
    pub(crate) fn need_file_of(&self, place: &Place) -> bool {
        let file = place.database_oid.zip(place.filenode);
        file.is_none_or(|file| self.files.contains(&file))
    }

    /// The tables whose rows or TOASTed values were hurt.
    pub(crate) fn hurt_tables(&self, injuries: &[KnownInjury]) -> Vec<TableName> {
        let families = injuries
            .iter()
            .filter_map(|injury| self.family(&injury.place));
        let names = families.filter_map(|family| self.names.get(&family));
        let names: BTreeSet<&TableName> = names.collect();
        names.into_iter().cloned().collect()
    }
}

/// The injuries with what was found of them, and what was found beside them.
pub(crate) struct Marked {
    pub(crate) injuries: Vec<RehearsalInjury>,
    pub(crate) false_alarms: Vec<FalseAlarm>,
}

/// Puts findings that the undamaged copy does not have to the injuries.
pub(crate) fn mark(injuries: &[KnownInjury], findings: &[Finding], families: &Families) -> Marked {
    let hurt_families: Vec<Option<(Oid, Oid)>> = injuries
        .iter()
        .map(|injury| families.family(&injury.place))
        .collect();
    let count_of = |family| {
        hurt_families
            .iter()
            .filter(|own| **own == Some(family))
            .count()
    };
    let compares = |finding: &Finding| is_comparison(&finding.rule);
    let mut belongs: BTreeSet<&str> = BTreeSet::new();
    let mut marked = Vec::new();
    for (injury, family) in injuries.iter().zip(&hurt_families) {
        // A comparison stands where it was made. With one injury, it is that one's.
        let alone = family.filter(|family| count_of(*family) == 1);
        let own = |finding: &&Finding| {
            let is_of_family = || alone.is_some() && families.family(&finding.place) == alone;
            injury.has(finding) || compares(finding) && is_of_family()
        };
        let own: Vec<&Finding> = findings.iter().filter(own).collect();
        belongs.extend(own.iter().map(|finding| finding.id.as_str()));
        marked.push(RehearsalInjury {
            toast_of: families.toast_owner(&injury.place),
            ..marked_injury(injury, &own)
        });
    }
    behind_others(&mut marked);
    let is_alarm = |finding: &&Finding| {
        let caused = finding.caused_by.as_deref();
        let explained = belongs.contains(finding.id.as_str())
            || caused.is_some_and(|id| belongs.contains(id))
            || compares(finding) && hurt_families.contains(&families.family(&finding.place));
        finding.severity != Severity::Note && !explained
    };
    let alarm = |finding: &Finding| FalseAlarm {
        rule: finding.rule.clone(),
        place: finding.place.clone(),
        message: finding.message.clone(),
    };
    Marked {
        injuries: marked,
        false_alarms: findings.iter().filter(is_alarm).map(alarm).collect(),
    }
}

/// An index that is damaged elsewhere is not walked to its end, and made again as a whole.
fn behind_others(injuries: &mut [RehearsalInjury]) {
    let is_found = |injury: &&RehearsalInjury| !injury.found_by.is_empty();
    let file = |injury: &RehearsalInjury| (injury.place.database_oid, injury.place.filenode);
    let found: BTreeSet<_> = injuries.iter().filter(is_found).map(file).collect();
    for injury in injuries {
        let is_index = injury.place.kind == FileKind::Index;
        if is_index && injury.found_by.is_empty() && found.contains(&file(injury)) {
            injury.blind = Some(BEHIND_ANOTHER.into());
        }
    }
}

fn marked_injury(injury: &KnownInjury, found: &[&Finding]) -> RehearsalInjury {
    let is_own = |finding: &Finding| injury.must.contains(&finding.rule);
    let counts = |finding: &&&Finding| finding.severity != Severity::Note || is_own(finding);
    let mut found: Vec<&&Finding> = found.iter().filter(counts).collect();
    // What the injury is about comes first, and of that what names it.
    found.sort_by_key(|finding| (!is_own(finding), finding.rule == CHECKSUM));
    let mut rules: Vec<String> = Vec::new();
    for finding in &found {
        if !rules.contains(&finding.rule) {
            rules.push(finding.rule.clone());
        }
    }
    let is_about_checksum = injury.must == [CHECKSUM] && injury.name == "page-checksum";
    let explained = rules
        .iter()
        .any(|rule| rule != CHECKSUM || is_about_checksum);
    let mut remedies = found.iter().flat_map(|finding| &finding.remedies);
    let way_out = remedies.next().map(|remedy| remedy.command.clone());
    RehearsalInjury {
        injury: injury.name.clone(),
        place: injury.place.clone(),
        toast_of: None,
        damage: injury.words.clone(),
        message: found.first().map(|finding| finding.message.clone()),
        explained,
        server_says: found.iter().find_map(|finding| finding.server_says.clone()),
        way_out: way_out.or_else(|| Some(injury.recovery_advice.clone())),
        blind: injury.blind.clone().filter(|_| rules.is_empty()),
        found_by: rules,
        state: None,
    }
}

/// What became of an injury by its bytes, and by what a check finds there.
pub(crate) fn state_of(
    injury: &KnownInjury,
    is_found: bool,
    read: &dyn Fn(&Change) -> Option<Bytes>,
) -> InjuryState {
    let bytes: Vec<Option<Bytes>> = injury.changes.iter().map(read).collect();
    let all = |wanted| bytes.iter().all(|own| *own == Some(wanted));
    match is_found {
        _ if all(Bytes::AsBefore) => InjuryState::Restored,
        _ if all(Bytes::AsHurt) => InjuryState::Untouched,
        true => InjuryState::Changed,
        false => InjuryState::Mended,
    }
}

/// The bytes at a place of an injury.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bytes {
    /// Those of the original.
    AsBefore,
    /// Those that were written over them.
    AsHurt,
    /// Neither.
    Others,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn injury() -> KnownInjury {
        let change = |at: u64| Change::Bytes {
            path: "base/5/16384".into(),
            offset: at,
            before: vec![1],
            after: vec![2],
        };
        KnownInjury {
            name: "flipped-bit".into(),
            place: Place::default(),
            words: String::new(),
            must: Vec::new(),
            blind: None,
            recovery_advice: "Restore it.".into(),
            changes: vec![change(0), change(8)],
        }
    }

    #[test]
    fn the_bytes_tell_what_became_of_an_injury_and_the_check_whether_others_will_do() {
        let state = |found, first: Bytes, second: Bytes| {
            let read = |change: &Change| match change {
                Change::Bytes { offset: 0, .. } => Some(first),
                _ => Some(second),
            };
            state_of(&injury(), found, &read)
        };
        use Bytes::{AsBefore, AsHurt, Others};
        assert_eq!(state(false, AsBefore, AsBefore), InjuryState::Restored);
        assert_eq!(state(true, AsHurt, AsHurt), InjuryState::Untouched);
        assert_eq!(state(false, AsHurt, AsHurt), InjuryState::Untouched);
        assert_eq!(state(true, AsBefore, AsHurt), InjuryState::Changed);
        assert_eq!(state(false, AsBefore, Others), InjuryState::Mended);
    }
}
