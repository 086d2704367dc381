//! A measured cluster: tables with bloat, a TOAST table, indexes, the server's own.

use pgclinic_model::document::{Figure, MeasureDocument, Sections};
use pgclinic_model::{FigureKind, FigureKinds, FigureList, Unit};
use serde_json::{Value, json};

use super::{coverage, target};

/// The kinds of all figures of a document, each called by its key.
pub(crate) fn figure_kinds(document: &Value) -> FigureKinds {
    let document: MeasureDocument =
        serde_json::from_value(document.clone()).expect("a document of figures");
    let mut kinds = FigureKinds::default();
    for own in &document.relations {
        add(&mut kinds.of_relations, &own.sections);
        for column in &own.columns {
            add(&mut kinds.of_columns, &column.sections);
        }
    }
    for own in &document.databases {
        add(&mut kinds.of_databases, &own.sections);
    }
    kinds
}

fn add(kinds: &mut FigureList, sections: &Sections) {
    for (section, figures) in sections {
        for (name, figure) in figures {
            if kinds
                .iter()
                .any(|(known, kind)| known == section && kind.name == name)
            {
                continue;
            }
            let kind = FigureKind {
                name: name.clone().leak(),
                unit: match figure {
                    Some(Figure::Count(_)) if name.ends_with("bytes") => Unit::Bytes,
                    _ => Unit::Number,
                },
                summary: format!("what is called {name}").leak(),
            };
            kinds.push((section.clone().leak(), Box::leak(Box::new(kind))));
        }
    }
}

fn relation(schema: &str, name: &str, oid: u32, bytes: u64, more: Value) -> Value {
    let mut own = json!({
        "database": "shop", "schema": schema, "relation": name, "database_oid": 5,
        "relation_oid": oid, "filenode": oid, "path": format!("base/5/{oid}"), "kind": "table",
        "blocks": bytes / 8192, "bytes": bytes, "pages_not_measured": 0
    });
    if let (Some(own), Value::Object(more)) = (own.as_object_mut(), more) {
        own.extend(more);
    }
    own
}

fn table(gives_back: u64) -> Value {
    json!({"table": {"tuple_count": 1000, "tuple_percent": 61.5, "dead_tuple_percent": 12.5,
        "free_percent": 20.0, "rewrite_gives_back_bytes": gives_back, "live_bytes": 600,
        "row_lengths": {"minimum": 40, "maximum": 90, "mean": 60.0, "mode": 55,
            "histogram": [[40, 3], [55, 12], [90, 1]]},
        "attributes": {"minimum": 4, "maximum": 4, "mean": 4.0, "mode": 4, "histogram": [[4, 16]]}}})
}

fn btree(gives_back: u64) -> Value {
    json!({"kind": "index", "access_method": "btree",
        "index": {"row_count": 1000, "avg_leaf_density": 52.5, "reindex_gives_back_bytes": gives_back}})
}

/// Figures of a shop.
pub(crate) fn measured() -> Value {
    const MIB: u64 = 1 << 20;
    let mut relations = vec![
        relation("public", "order_items", 16_400, 40 * MIB, table(9 * MIB)),
        relation("public", "Order <notes>", 16_410, 12 * MIB, table(0)),
        relation(
            "pg_toast",
            "pg_toast_16410",
            16_413,
            30 * MIB,
            table(4 * MIB),
        ),
        relation("pg_toast", "pg_toast_16410_index", 16_414, MIB, btree(0)),
        relation(
            "public",
            "order_items_pkey",
            16_420,
            18 * MIB,
            btree(3 * MIB),
        ),
        relation("public", "order_items_order", 16_421, 6 * MIB, btree(MIB)),
    ];
    let servers = (0..60).map(|number| {
        let name = format!("pg_own_{number}");
        relation("pg_catalog", &name, 1200 + number, 16_384, table(8192))
    });
    relations.extend(servers);
    json!({
        "schema": "pgclinic.measure/1", "tool": {"name": "pgclinic", "version": "0.1.0"},
        "target": target(), "level": "structure", "coverage": coverage(), "relations": relations,
        "hints": [{"hint": "prefix-index", "database": "shop", "relation": "public.order_items_order",
            "other": "public.order_items_pkey", "bytes": 6 * MIB,
            "message": "public.order_items_pkey begins with the same columns"}],
        "elapsed_s": 1.5
    })
}
