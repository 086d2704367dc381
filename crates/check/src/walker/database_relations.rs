//! The relations of one database side by side: found by number, tables with their indexes, and what
//! the pass over the pages kept of each.

use std::collections::{BTreeSet, HashMap};

use pgclinic_cluster::unreachable::OutOfReach;
use pgclinic_format::{Fork, Oid};

use crate::btree::AllLeafSummaries;
use crate::check::ForkCx;
use crate::entries::named_blocks::NamedBlocks;
use crate::walker::pass_records::{DamagedBlocks, PassRecords, VacantBlocks};

/// The forks of a database that a run looks at.
pub struct DatabaseRelations<'a> {
    forks: &'a [ForkCx<'a>],
    main: HashMap<Oid, usize>,
    indexes: HashMap<Oid, Vec<usize>>,
    records: PassRecords,
    /// Forks, by place, of which some page could not be read.
    out_of_reach: BTreeSet<usize>,
}

impl<'a> DatabaseRelations<'a> {
    /// `records` by the place of the fork in `forks`.
    pub(crate) fn new(forks: &'a [ForkCx<'a>], records: PassRecords) -> Self {
        let mut main = HashMap::new();
        let mut indexes: HashMap<Oid, Vec<usize>> = HashMap::new();
        for (place, fork) in forks.iter().enumerate() {
            let Some(relation) = fork.relation.filter(|_| fork.fork() == Fork::Main) else {
                continue;
            };
            main.entry(relation.oid).or_insert(place);
            if let Some(index) = &relation.index {
                indexes.entry(index.table).or_default().push(place);
            }
        }
        let oid = |place: &usize| {
            let relation = forks.get(*place).and_then(|fork| fork.relation);
            relation.map(|relation| relation.oid)
        };
        indexes.values_mut().for_each(|own| own.sort_by_key(oid));
        DatabaseRelations {
            forks,
            main,
            indexes,
            records,
            out_of_reach: BTreeSet::new(),
        }
    }

    /// Without forks of which some page could not be read: nothing is compared with them, as with
    /// those that nobody asked for.
    pub(crate) fn without(mut self, out_of_reach: &OutOfReach) -> Self {
        let places = self.forks.iter().enumerate();
        let lost = places.filter(|(_, fork)| out_of_reach.holds(fork.files));
        self.out_of_reach = lost.map(|(place, _)| place).collect();
        let lost = &self.out_of_reach;
        self.main.retain(|_, place| !lost.contains(place));
        for own in self.indexes.values_mut() {
            own.retain(|place| !lost.contains(place));
        }
        self
    }

    /// All pages of the fork at this place could be read.
    pub(crate) fn is_in_reach(&self, place: usize) -> bool {
        !self.out_of_reach.contains(&place)
    }

    /// All of them.
    pub(crate) fn forks(&self) -> &'a [ForkCx<'a>] {
        self.forks
    }

    /// The main fork of a relation.
    pub fn main_fork_of(&self, relation: Oid) -> Option<&'a ForkCx<'a>> {
        self.forks.get(*self.main.get(&relation)?)
    }

    /// The main forks of a table's indexes, in order of their OIDs.
    pub fn indexes_of(&self, table: Oid) -> impl Iterator<Item = &'a ForkCx<'a>> {
        let places = self.indexes.get(&table).map_or(&[][..], Vec::as_slice);
        places.iter().filter_map(|place| self.forks.get(*place))
    }

    /// What was kept of the leaves of an index.
    pub(crate) fn faces_of(&self, fork: &ForkCx<'a>) -> Option<&AllLeafSummaries> {
        self.records.faces.get(&self.forks.element_offset(fork)?)
    }

    /// The blocks of its table that the entries of an index name.
    pub(crate) fn named_by(&self, index: &ForkCx<'a>) -> Option<&NamedBlocks> {
        self.records.named.get(&self.forks.element_offset(index)?)
    }

    /// The pages of a table that are all zero.
    pub(crate) fn zeroed_in(&self, fork: &ForkCx<'a>) -> Option<&VacantBlocks> {
        self.records.zeroed.get(&self.forks.element_offset(fork)?)
    }

    /// The sound pages of a table that have no line pointer in use.
    pub(crate) fn emptied_in(&self, fork: &ForkCx<'a>) -> Option<&VacantBlocks> {
        self.records.emptied.get(&self.forks.element_offset(fork)?)
    }

    /// The pages of a fork in which the pass found damage.
    pub(crate) fn damaged_in(&self, fork: &ForkCx<'a>) -> Option<&DamagedBlocks> {
        self.records.damaged.get(&self.forks.element_offset(fork)?)
    }

    /// Another fork of the same relation.
    pub(crate) fn beside(&self, fork: &ForkCx<'a>, kind: Fork) -> Option<&'a ForkCx<'a>> {
        let is_own = |other: &&ForkCx<'_>| {
            other.files.filenode == fork.files.filenode && other.files.home == fork.files.home
        };
        // Forks of one relation stand side by side, the main one first.
        let own = self.forks.element_offset(fork)?;
        let behind = self.forks.get(own..)?.iter();
        behind.take_while(is_own).find(|other| other.fork() == kind)
    }
}
