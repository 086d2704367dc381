//! What checks of heap pages may ask beside the page, made when the first of them asks.

use std::sync::{Arc, OnceLock};

use pgclinic_cluster::{Catalog, Cluster, Comparison, ForkFiles, MapPositions};

use crate::heap::stored_values::StoredValues;
use crate::heap::visibility_bits::VisibilityBits;

/// Helpers of one fork; those of a fork that is no heap's main fork give nothing.
#[derive(Default)]
pub struct HeapContext<'a> {
    catalog: Option<&'a Catalog>,
    visibility: Option<VisibilityBits<'a>>,
    values: OnceLock<StoredValues>,
    map_positions: Option<Arc<MapPositions>>,
}

impl<'a> HeapContext<'a> {
    /// For the main fork of a heap, with its visibility map if it has one. What compares the two is
    /// left out in a cluster that needs recovery, since they reach the disk apart, and in one that
    /// is not whole.
    pub fn new(cluster: &'a Cluster, catalog: &'a Catalog, map: Option<&'a ForkFiles>) -> Self {
        let settled = cluster.may_compare(Comparison::ForksOfRelation);
        let bits = |files| {
            let summed = cluster.checksums() == Some(true);
            VisibilityBits::new(cluster.source().as_ref(), files, cluster.build, summed)
        };
        HeapContext {
            catalog: Some(catalog),
            visibility: map.filter(|_| settled).map(bits),
            values: OnceLock::new(),
            map_positions: None,
        }
    }

    /// The same with the LSNs of all visibility maps of the database.
    pub(crate) fn beside_maps(self, positions: &Arc<MapPositions>) -> Self {
        HeapContext {
            map_positions: Some(Arc::clone(positions)),
            ..self
        }
    }

    /// The LSNs of the visibility maps of all tables, where nothing changes them.
    pub(crate) fn map_positions(&self) -> Option<&MapPositions> {
        self.map_positions.as_deref()
    }

    /// The visibility map, where it is to be compared with the pages.
    pub fn visibility(&self) -> Option<&VisibilityBits<'a>> {
        self.visibility.as_ref()
    }

    /// The database's catalogs.
    pub fn catalog(&self) -> Option<&'a Catalog> {
        self.catalog
    }

    pub(crate) fn values(&self, make: impl FnOnce() -> StoredValues) -> &StoredValues {
        self.values.get_or_init(make)
    }
}
