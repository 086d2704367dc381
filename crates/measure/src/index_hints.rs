//! Indexes whose work another one does too.

use std::collections::HashMap;

use pgclinic_cluster::{Catalog, Index, Relation};
use pgclinic_format::Oid;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_model::document::{MeasureHint, MeasuredRelation};

/// Hints of one database, the largest index first.
pub(super) fn hints(catalog: &Catalog, measured: &[MeasuredRelation]) -> Vec<MeasureHint> {
    let sizes: HashMap<Oid, u64> = measured
        .iter()
        .filter_map(|own| Some((own.relation_oid?, own.bytes)))
        .collect();
    let mut by_table: HashMap<Oid, Vec<(&Relation, &Index)>> = HashMap::new();
    for relation in catalog.relations.values() {
        let index = relation
            .index
            .as_ref()
            .filter(|index| is_plain(relation, index));
        if let Some(index) = index.filter(|_| sizes.contains_key(&relation.oid)) {
            by_table
                .entry(index.table)
                .or_default()
                .push((relation, index));
        }
    }
    let mut hints = Vec::new();
    for indexes in by_table.values() {
        for (own, index) in indexes {
            let others = indexes.iter().filter(|(other, _)| other.oid != own.oid);
            let found =
                others.filter_map(|other| Some((other.0, stands_in(*other, (own, index))?)));
            // One that is not made needless itself, where there is a choice.
            if let Some((other, hint)) = found.max_by_key(|(other, _)| {
                (
                    other.columns.as_ref().map_or(0, Vec::len),
                    std::cmp::Reverse(other.oid),
                )
            }) {
                let bytes = sizes.get(&own.oid).copied().unwrap_or(0);
                hints.push(hint_of(catalog, own, other, hint, bytes));
            }
        }
    }
    hints.sort_by(|a, b| (b.bytes, &a.relation).cmp(&(a.bytes, &b.relation)));
    hints
}

/// A valid btree of plain columns over all rows of a user's table.
fn is_plain(relation: &Relation, index: &Index) -> bool {
    relation.page_method() == Some(AccessMethod::Btree)
        && relation.oid >= 16384
        && relation.schema != "pg_toast"
        && index.valid
        && !index.exclusion
        && !index.has_expressions
        && !index.has_predicate
        && !index.classes.is_empty()
}

/// What `own` is to `other`: the same, or a shorter form of it.
fn stands_in(other: (&Relation, &Index), own: (&Relation, &Index)) -> Option<&'static str> {
    let (theirs, ours) = (columns(other.1), columns(own.1));
    theirs.starts_with(&ours).then_some(())?;
    let is_same = theirs.len() == ours.len() && other.1.keys.len() == own.1.keys.len();
    if !is_same {
        // What keeps rows apart is not needless, and neither are columns that queries read from the
        // index alone.
        let is_needed = own.1.unique || own.1.keys.len() > ours.len();
        return (!is_needed).then_some("prefix-index");
    }
    let keeps_more = own.1.unique && !other.1.unique;
    let is_later = own.0.oid > other.0.oid || (!own.1.unique && other.1.unique);
    (!keeps_more && is_later && own.1.keys == other.1.keys).then_some("duplicate-index")
}

/// Key columns with their operator class, collation and direction.
fn columns(index: &Index) -> Vec<(i16, Oid, Oid, i16)> {
    let keys = index.keys.iter().take(usize::from(index.key_count));
    let keys = keys
        .zip(&index.classes)
        .zip(&index.collations)
        .zip(&index.options);
    keys.map(|(((key, class), collation), option)| (*key, class.oid, *collation, *option))
        .collect()
}

fn hint_of(
    catalog: &Catalog,
    own: &Relation,
    other: &Relation,
    hint: &str,
    bytes: u64,
) -> MeasureHint {
    let message = match hint {
        "duplicate-index" => "has the same columns in the same order; one of the two is enough",
        _ => "begins with the same columns, and serves the same queries",
    };
    MeasureHint {
        hint: hint.into(),
        database: catalog.database_name.clone().unwrap_or_default(),
        relation: own.qualified_name(),
        other: other.qualified_name(),
        bytes,
        message: format!("{} {message}", other.qualified_name()),
    }
}
