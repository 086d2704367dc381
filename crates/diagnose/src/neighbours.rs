//! The relations of one database side by side: found by number, tables with their indexes, and what
//! the pass over the pages kept of each.

use std::collections::{BTreeMap, HashMap};

use pgclinic_format::{Fork, Oid};

use crate::btree::AllFaces;
use crate::check::ForkCx;

/// The forks of a database that a run looks at.
pub struct Neighbours<'a> {
    forks: &'a [ForkCx<'a>],
    main: HashMap<Oid, usize>,
    indexes: HashMap<Oid, Vec<usize>>,
    faces: BTreeMap<usize, AllFaces>,
}

impl<'a> Neighbours<'a> {
    /// `faces` by the place of the index in `forks`.
    pub(crate) fn new(forks: &'a [ForkCx<'a>], faces: BTreeMap<usize, AllFaces>) -> Self {
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
        Neighbours {
            forks,
            main,
            indexes,
            faces,
        }
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
    pub(crate) fn faces_of(&self, fork: &ForkCx<'a>) -> Option<&AllFaces> {
        self.faces.get(&self.forks.element_offset(fork)?)
    }
}
