//! How the keys of a GIN index compare: by column, by kind of null, then as the operator class
//! says.
//!
//! Truth: `ginCompareAttEntries` in `src/backend/access/gin/ginutil.c`; the comparison of each
//! class in `pg_amproc.dat` under `gin/…`, else the default btree class of the key's type.

use std::borrow::Cow;
use std::cmp::Ordering;

use pgclinic_cluster::{Catalog, OpClass};
use pgclinic_format::datum::TypeInfo;
use pgclinic_format::gin::{Category, Key, KeyShape};
use pgclinic_format::order::{Order, default_order_of};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{ColumnLayout, Oid, varlena};

use crate::relation_check::RelationCx;

/// Bytes that a compressed key may unpack to; an entry is never longer than a page.
const UNPACKED_BYTES: u32 = 1 << 20;
const DEFAULT_COLLATION: Oid = 100;
const INT4: Oid = 23;
const TEXT: Oid = 25;
/// Classes of `btree_gin` whose order is that of the btree class of the same name.
const BTREE_GIN: [&str; 17] = [
    "bit_ops",
    "bytea_ops",
    "date_ops",
    "float4_ops",
    "float8_ops",
    "int2_ops",
    "int4_ops",
    "int8_ops",
    "interval_ops",
    "macaddr_ops",
    "oid_ops",
    "text_ops",
    "time_ops",
    "timestamp_ops",
    "timestamptz_ops",
    "timetz_ops",
    "varbit_ops",
];

/// How one column's keys compare.
enum Comparison {
    /// Byte by byte, the shorter one first.
    Bytes,
    /// By a btree class.
    Ordered(Box<Order>),
    /// Not known here.
    Unknown(String),
}

/// How the keys of an index compare.
pub(crate) struct KeyOrders<'a> {
    columns: &'a [ColumnLayout],
    comparisons: Vec<Comparison>,
}

impl<'a> KeyOrders<'a> {
    /// Of an index; nothing when its columns are unknown.
    pub(crate) fn of(relation: &RelationCx<'a>) -> Option<Self> {
        let columns = relation.fork.columns?;
        let index = relation.fork.relation?.index.as_ref();
        let classes = index
            .map(|index| index.classes.as_slice())
            .unwrap_or_default();
        let own = relation
            .fork
            .relation?
            .columns
            .as_deref()
            .unwrap_or_default();
        let comparison = |column: usize| {
            let class = classes.get(column).zip(own.get(column));
            let Some((class, column_of)) = class else {
                return Comparison::Unknown("its operator class is unknown".into());
            };
            let ty = relation.catalog.type_info(column_of.type_oid);
            let collation = index.and_then(|index| index.collations.get(column));
            comparison(class, &ty, *collation.unwrap_or(&0), relation.catalog)
        };
        let comparisons = (0..columns.len()).map(comparison).collect();
        Some(KeyOrders {
            columns,
            comparisons,
        })
    }

    /// How keys are laid out.
    pub(crate) fn shape(&self) -> KeyShape<'a> {
        KeyShape {
            columns: self.columns,
        }
    }

    /// Columns whose keys cannot be compared here, from 1, with the reason.
    pub(crate) fn unknown(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.comparisons.iter().zip(1..);
        numbered.filter_map(|(comparison, number)| match comparison {
            Comparison::Unknown(why) => Some((number, why.as_str())),
            _ => None,
        })
    }

    /// Nothing when that is not known here, or a key does not decode.
    pub(crate) fn compare(&self, a: &Key<'_>, b: &Key<'_>) -> Option<Ordering> {
        let place = a.column.cmp(&b.column).then(a.category.cmp(&b.category));
        if place != Ordering::Equal || a.category != Category::Key {
            return Some(place);
        }
        let index = usize::from(a.column).checked_sub(1)?;
        let layout = *self.columns.get(index)?;
        let comparison = self.comparisons.get(index)?;
        if let Comparison::Unknown(_) = comparison {
            return None;
        }
        let (a, b) = (payload(layout, a.bytes)?, payload(layout, b.bytes)?);
        match comparison {
            Comparison::Bytes => Some(a.cmp(&b)),
            Comparison::Ordered(order) => order.compare(&a, &b),
            Comparison::Unknown(_) => None,
        }
    }
}

/// A key without its varlena header, unpacked.
fn payload(layout: ColumnLayout, bytes: &[u8]) -> Option<Cow<'_, [u8]>> {
    varlena::payload(layout.attlen, bytes, UNPACKED_BYTES)
}

/// Whose keys are compared by the default btree class of their type: of the server itself, and of
/// `btree_gin`, `pg_trgm`, `intarray` and `hstore`.
fn comparison(class: &OpClass, ty: &TypeInfo, collation: Oid, catalog: &Catalog) -> Comparison {
    let built_in = class.oid < FIRST_NORMAL_OID;
    match class.name.as_str() {
        "tsvector_ops" | "jsonb_ops" if built_in => return Comparison::Bytes,
        "array_ops" | "jsonb_path_ops" if built_in => {}
        "gin_trgm_ops" | "gin__int_ops" if ty.oid == INT4 => {}
        "gin_hstore_ops" if ty.oid == TEXT => {}
        name if !built_in && BTREE_GIN.contains(&name) && class.key_type == 0 => {}
        name => return Comparison::Unknown(format!("operator class {name} is not built in")),
    }
    // Keys of a type with a collation that the column has not are compared by the database's own.
    let collation = if collation == 0 {
        DEFAULT_COLLATION
    } else {
        collation
    };
    match default_order_of(ty, collation, catalog) {
        Ok(order) => Comparison::Ordered(Box::new(order)),
        Err(why) => Comparison::Unknown(why.to_string()),
    }
}
