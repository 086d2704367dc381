//! What of a relation stands in other rows than its own: columns, and whose TOAST relation it is.

use std::collections::BTreeMap;

use pgclinic_format::Oid;

use crate::relation::{Column, Relation};

/// The element of a one-dimensional array of one element, with its header where it has one.
pub(crate) fn only_element(array: &[u8], attlen: i16) -> Option<Vec<u8>> {
    /// Dimensions, offset of the data, element type, then length and lower bound.
    const HEADER: usize = 20;
    let element = array.get(HEADER..)?;
    let len = match usize::try_from(attlen) {
        Ok(len) => len,
        Err(_) if attlen == -1 => pgclinic_format::varlena::total_len(element).ok()?,
        Err(_) => element.iter().position(|byte| *byte == 0)? + 1,
    };
    Some(element.get(..len)?.to_vec())
}

/// Columns count only when none is missing: a walk with a gap would read nonsense. Gives back those
/// that do not count.
pub(crate) fn attach_columns(
    relations: &mut BTreeMap<Oid, Relation>,
    mut columns: BTreeMap<Oid, Vec<Column>>,
) -> BTreeMap<Oid, Vec<Column>> {
    let mut partial = BTreeMap::new();
    for relation in relations.values_mut() {
        let mut own = columns.remove(&relation.oid).unwrap_or_default();
        sort_columns(&mut own);
        if is_gapless(&own) && own.len() == usize::from(relation.relnatts) {
            relation.take_columns(own);
        } else if !own.is_empty() {
            partial.insert(relation.oid, own);
        }
    }
    partial
}

pub(crate) fn sort_columns(columns: &mut Vec<Column>) {
    columns.sort_by_key(|column| column.attnum);
    columns.dedup_by_key(|column| column.attnum);
}

pub(crate) fn is_gapless(columns: &[Column]) -> bool {
    let mut numbered = columns.iter().zip(1..);
    numbered.all(|(column, number): (_, u16)| column.attnum == number)
}

pub(crate) fn attach_toast_owners(relations: &mut BTreeMap<Oid, Relation>) {
    let owners: Vec<(Oid, Oid)> = relations
        .values()
        .filter(|relation| relation.toast != 0)
        .map(|relation| (relation.toast, relation.oid))
        .collect();
    for (toast, owner) in owners {
        if let Some(relation) = relations.get_mut(&toast) {
            relation.toast_of = owner;
        }
    }
}
