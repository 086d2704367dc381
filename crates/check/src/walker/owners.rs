//! Which table the index or the long values of a finding belong to, and whether this run has read
//! all of it.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{Catalog, Relation};
use pgclinic_format::{Fork, Oid};
use pgclinic_model::document::{FileKind, Owner, Place};

use crate::check::ForkCx;
use crate::walker::CheckOptions;
use crate::walker::run_ledger::RunLedger;

/// Names the owners among these forks: a table comes in one round with its indexes and its long
/// values. For those in `unvouched` nothing vouches but their own pages.
pub(super) fn name(
    catalog: &Catalog,
    jobs: &[ForkCx<'_>],
    unvouched: &BTreeSet<Oid>,
    options: &CheckOptions,
    books: &mut RunLedger,
) {
    if books.findings.total() == 0 {
        return;
    }
    let main = jobs.iter().filter(|job| job.fork() == Fork::Main);
    let read: BTreeMap<Oid, &ForkCx<'_>> = main
        .filter_map(|job| Some((job.relation?.oid, job)))
        .collect();
    let unread = &books.unread;
    let takes_all = options.selection.blocks.is_none();
    let is_examined = |job: &ForkCx<'_>| {
        let segments = job.files.segments.iter();
        let mut files = segments.map(|segment| job.files.path(segment.number));
        takes_all && !files.any(|path| unread.contains(&path))
    };
    books.findings.name_owners(|place| {
        let table = table_of(place, catalog)?;
        // Else another round may read it.
        let job = read.get(&table.oid)?;
        Some(Owner {
            oid: table.oid,
            name: table.sql_name(),
            qualified_name: table.qualified_name(),
            is_examined: is_examined(job),
            is_unvouched: unvouched.contains(&table.oid),
        })
    });
}

fn table_of<'a>(place: &Place, catalog: &'a Catalog) -> Option<&'a Relation> {
    let is_here = place.database_oid == Some(catalog.database);
    let own = catalog
        .relations
        .get(&place.relation_oid.filter(|_| is_here)?)?;
    let table = match place.kind {
        FileKind::Index => own.index.as_ref()?.table,
        FileKind::Toast => own.toast_of,
        _ => return None,
    };
    catalog.relations.get(&table)
}
