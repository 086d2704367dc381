//! What a run that was asked for a part of a cluster leaves out: comparisons with what is not in
//! it.

use std::collections::BTreeSet;

use pgclinic_cluster::{Catalog, RelKind, Relation};
use pgclinic_format::{Fork, Oid};
use pgclinic_model::document::{Level, NotChecked};

use crate::check::ForkCx;
use crate::walker::CheckOptions;
use crate::walker::run_ledger::RunLedger;

/// Tells what is not compared because nobody asked for its other half.
pub(crate) fn tell(
    jobs: &[ForkCx<'_>],
    catalog: &Catalog,
    options: &CheckOptions,
    books: &mut RunLedger,
) {
    let main = || jobs.iter().filter(|job| job.fork() == Fork::Main);
    if options.level < Level::Structure || options.selection.is_everything() {
        return;
    }
    if options.selection.blocks.is_some() && main().next().is_some() {
        let why = "only some of their blocks were asked for";
        return not_compared(
            books,
            "how the pages of relations hang together".into(),
            why,
        );
    }
    let selection = &options.selection;
    let whole = selection.relations.is_empty() && selection.filenodes.is_empty();
    if options.level < Level::Full || whole {
        return;
    }
    let own: BTreeSet<Oid> = main().filter_map(|job| Some(job.relation?.oid)).collect();
    let relations = own.iter().filter_map(|oid| catalog.relations.get(oid));
    for relation in relations {
        if let Some((what, other)) = owner_of(relation, catalog)
            && !own.contains(&other.oid)
        {
            let what = format!("{what} of {}", relation.qualified_name());
            let why = format!("its table {} was not asked for", other.qualified_name());
            not_compared(books, what, &why);
        }
    }
    // What belongs to a table is taken along by its name, and not by the number of its file.
    let others = catalog.relations.values();
    let others = others.filter(|_| !selection.filenodes.is_empty());
    for other in others.filter(|other| other.kind.has_storage() && !own.contains(&other.oid)) {
        if let Some((what, owner)) = owner_of(other, catalog)
            && own.contains(&owner.oid)
        {
            let what = format!("{what} of {}", other.qualified_name());
            let why = format!("only its table {} was asked for", owner.qualified_name());
            not_compared(books, what, &why);
        }
    }
}

/// The table that an index or long values belong to, and what is compared with it.
fn owner_of<'a>(relation: &Relation, catalog: &'a Catalog) -> Option<(&'static str, &'a Relation)> {
    match (&relation.index, relation.kind) {
        (Some(index), RelKind::Index) => {
            Some(("entries against rows", catalog.relations.get(&index.table)?))
        }
        (_, RelKind::Toast) => Some((
            "values against their pointers",
            catalog.relations.get(&relation.toast_of)?,
        )),
        _ => None,
    }
}

/// The person left it out, so that it does not make the run incomplete.
fn not_compared(books: &mut RunLedger, what: String, why: &str) {
    books.not_checked(NotChecked {
        what,
        why: why.into(),
        inherent: true,
    });
}
