//! What measured relations are called: a TOAST table carries the name of its owner.

use std::collections::HashMap;

use pgclinic_model::document::{MeasureDocument, MeasuredRelation};

/// The relations of a document by database and OID.
pub(super) struct RelationNames<'a>(HashMap<(u32, u32), &'a MeasuredRelation>);

impl<'a> RelationNames<'a> {
    /// Of all relations that were measured.
    pub(super) fn of(document: &'a MeasureDocument) -> Self {
        let relations = document.relations.iter();
        let known = relations.filter_map(|own| Some(((own.database_oid, own.relation_oid?), own)));
        RelationNames(known.collect())
    }

    /// `public.docs`, `TOAST of public.docs`, `TOAST index of public.docs`.
    pub(super) fn name(&self, own: &MeasuredRelation) -> String {
        match self.owner(own) {
            Some(owner) if is_toast_index(own) => format!("TOAST index of {}", owner.name()),
            Some(owner) => format!("TOAST of {}", owner.name()),
            None => own.name(),
        }
    }

    /// The table whose long values it holds.
    pub(super) fn owner(&self, own: &MeasuredRelation) -> Option<&'a MeasuredRelation> {
        if own.schema.as_deref() != Some("pg_toast") {
            return None;
        }
        let name = own.relation.as_deref()?.strip_prefix("pg_toast_")?;
        let number = name.strip_suffix("_index").unwrap_or(name);
        self.0
            .get(&(own.database_oid, number.parse().ok()?))
            .copied()
    }
}

fn is_toast_index(own: &MeasuredRelation) -> bool {
    own.access_method.as_deref() == Some("btree")
}
