//! The live rows of a catalog, or of any table whose columns are known.

use pgclinic_cluster::{DatabaseContext, ForkFiles, HeapScan, RawRow, Relation, RowState};
use pgclinic_format::Fork;

/// Where a column stands in a row.
pub(crate) fn place(relation: &Relation, name: &str) -> Option<usize> {
    let columns = relation.columns.as_ref()?;
    columns.iter().position(|column| column.name == name)
}

/// Whether all of a relation could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reading {
    Whole,
    /// A row that was not given may be there.
    Partial,
}

/// Gives the live rows of a relation.
pub(crate) fn each_row(
    view: &DatabaseContext<'_>,
    relation: &Relation,
    each: &mut dyn FnMut(&RawRow<'_>),
) -> Reading {
    let is_own = |files: &&ForkFiles| {
        files.fork == Fork::Main
            && files.temporary.is_none()
            && files.filenode == relation.filenode
            && files.home.tablespace == relation.tablespace
    };
    let (Some(files), Some(layouts)) = (view.forks.iter().find(is_own), &relation.layouts) else {
        return Reading::Partial;
    };
    let mut scan = HeapScan::new(view.cluster, files, layouts);
    scan.each_row(|row| {
        if row.state == RowState::Visible {
            each(&row);
        }
    });
    if scan.is_whole() {
        Reading::Whole
    } else {
        Reading::Partial
    }
}
