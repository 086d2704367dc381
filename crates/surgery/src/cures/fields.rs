//! Which fields of a page get another value: two anatomies beside each other.

use std::sync::Arc;

use pgclinic_cluster::{DatabaseContext, Relation};
use pgclinic_explain::anatomy::{AnatomyCx, PageKind, page_anatomy};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::document::{Field, FieldChange, ItemAnatomy, PageAnatomy, ValueAnatomy};
use pgclinic_model::plural;

/// Longest value that a plan shows, in bytes.
const VALUE_BYTES_MAX: usize = 200;

/// A page of a table taken apart.
pub(super) fn anatomy_of(
    bytes: &[u8],
    block: BlockNo,
    relation: Option<&Relation>,
    database: &DatabaseContext<'_>,
) -> Option<PageAnatomy> {
    let cluster = database.cluster;
    let own = cluster.databases.get(&database.catalog.database);
    let types = |oid| -> Arc<_> { database.catalog.type_info(oid) };
    let cx = AnatomyCx {
        major: cluster.layout.major,
        block,
        kind: PageKind::Method(AccessMethod::Heap),
        checksums: cluster.checksums(),
        columns: relation.and_then(|relation| relation.columns.as_deref()),
        types: &types,
        cluster: Some(cluster),
        encoding: own.and_then(|own| own.encoding),
        value_bytes_max: VALUE_BYTES_MAX,
    };
    Page::parse(bytes).map(|page| page_anatomy(page, &cx))
}

/// Everything that reads differently.
pub(super) fn changes(before: &PageAnatomy, after: &PageAnatomy) -> Vec<FieldChange> {
    if after.page_kind == "new" {
        return vec![FieldChange {
            of: "page".into(),
            name: "bytes".into(),
            before: format!("a page with {}", plural(before.items.len(), "line pointer")),
            after: "zeros".into(),
        }];
    }
    let mut found = of_fields("page header", &before.header, &after.header);
    for item in &after.items {
        let old = before.items.iter().find(|old| old.item == item.item);
        if let Some(old) = old.filter(|old| *old != item) {
            found.extend(of_item(old, item));
        }
    }
    found
}

fn of_item(before: &ItemAnatomy, after: &ItemAnatomy) -> Vec<FieldChange> {
    let pointer = |own: &ItemAnatomy| {
        [
            ("lp_flags", own.lp_flags.clone()),
            ("lp_off", own.lp_off.to_string()),
            ("lp_len", own.lp_len.to_string()),
        ]
    };
    let of = format!("line pointer {}", after.item);
    let pairs = pointer(before).into_iter().zip(pointer(after));
    let changed = pairs.filter(|((_, old), (_, new))| old != new);
    let mut found: Vec<FieldChange> = changed
        .map(|((name, before), (_, after))| FieldChange {
            of: of.clone(),
            name: name.into(),
            before,
            after,
        })
        .collect();
    let of = format!("tuple {}", after.item);
    found.extend(of_fields(&of, &before.header, &after.header));
    found.extend(of_values(&of, &before.values, &after.values));
    found
}

/// Fields that one side lacks do not count: what is no longer there was told by its line pointer.
fn of_fields(of: &str, before: &[Field], after: &[Field]) -> Vec<FieldChange> {
    let mut found = Vec::new();
    for field in after {
        let old = before.iter().find(|old| old.name == field.name);
        if let Some(old) = old.filter(|old| old.value != field.value) {
            found.push(FieldChange {
                of: of.into(),
                name: field.name.clone(),
                before: words_of(old),
                after: words_of(field),
            });
        }
    }
    found
}

fn words_of(field: &Field) -> String {
    match field.meaning.join(", ") {
        meaning if meaning.is_empty() => field.value.clone(),
        meaning => format!("{} ({meaning})", field.value),
    }
}

fn of_values(of: &str, before: &[ValueAnatomy], after: &[ValueAnatomy]) -> Vec<FieldChange> {
    let pairs = before.iter().zip(after);
    let changed = pairs.filter(|(old, new)| (&old.state, &old.value) != (&new.state, &new.value));
    let change = |(old, new): (&ValueAnatomy, &ValueAnatomy)| FieldChange {
        of: of.into(),
        name: format!("column {}", new.name.as_deref().unwrap_or_default()),
        before: value_words(old),
        after: value_words(new),
    };
    changed.map(change).collect()
}

/// A value, or what there is instead of one.
fn value_words(value: &ValueAnatomy) -> String {
    match (&value.value, &value.note) {
        (Some(text), _) => format!("{} {text:?}", value.state),
        (None, Some(note)) => format!("{} ({note})", value.state),
        (None, None) => value.state.clone(),
    }
}
