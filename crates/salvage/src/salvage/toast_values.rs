//! Live TOASTed values to which no row points: what they prove of lost rows.

use pgclinic_cluster::{Catalog, Cluster, KILLED_BY_HAND_MAX, rows_with_values};
use pgclinic_format::HeapTuple;
use pgclinic_format::heap_tuple::HEAP_HASEXTERNAL;
use pgclinic_format::toast::pointers_of;
use pgclinic_model::document::{NotChecked, PageNotes, TOAST_VALUES, TableAccount};
use pgclinic_model::{plural, verb_of};

use super::lost_keys::is_hurt;
use super::plan::not_salvaged;
use crate::shape::Table;

/// Notes the pointers of a row that may be live.
pub(super) fn note_pointers(tuple: HeapTuple<'_>, table: &Table, pages: &mut PageNotes) {
    let Some((toast, _)) = table.toast.as_ref().filter(|_| tuple.has(HEAP_HASEXTERNAL)) else {
        return;
    };
    pages.lacks_columns |= usize::from(tuple.attribute_count()) > table.layouts.len();
    let own = pointers_of(tuple, &table.layouts).filter(|(_, own)| own.va_toastrelid == *toast);
    pages.toast_pointers += own.count() as u64;
}

/// Counts rows that are lost by the values that they had, where nobody counts more; or says what
/// such values leave open.
pub(super) fn count(
    table: &mut TableAccount,
    cluster: &Cluster,
    catalog: &Catalog,
) -> Option<NotChecked> {
    let own = catalog.relations.get(&table.oid)?;
    let toast = catalog.relations.get(&own.toast)?;
    let is_known = !table.pages.lacks_columns && !table.out_of_reach && !table.unsettled;
    if !is_known || !cluster.has_first_file(own) || !cluster.has_first_file(toast) {
        return None;
    }
    let values = table.pages.toast_values;
    let lost = values.saturating_sub(table.pages.toast_pointers);
    let rows = rows_with_values(lost, own.layouts.as_deref().unwrap_or_default());
    if lost > KILLED_BY_HAND_MAX || (lost > 0 && is_hurt(table)) {
        table.count_at_least(TOAST_VALUES, rows);
        table.notes.push(format!(
            "{} of its TOAST table {} to no row: their rows are lost",
            plural(lost, "live value"),
            verb_of(lost, "belong"),
        ));
        return None;
    }
    (lost > 0).then(|| {
        let name = format!("{}.{} of database {}", table.schema, table.table, table.database);
        let why = format!(
            "{} of its TOAST table {} to no row and nothing else is missed: pg_surgery or a lossy cure may have killed them, or a backup or a standby shows what stood there",
            plural(lost, "live value"),
            verb_of(lost, "belong"),
        );
        not_salvaged(&format!("rows of table {name} that may be lost"), &why)
    })
}
