//! What `pg_type`, `pg_enum` and `pg_range` say, put together for the datum printer.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pgclinic_format::Oid;
use pgclinic_format::datum::{Field, TypeInfo, TypeKind};
use pgclinic_format::oid::{PG_ENUM, PG_RANGE, PG_TYPE};

use crate::columns::ColumnNames;
use crate::heap_scan::RawRow;
use crate::relation::Relation;

/// The function that prints arrays.
const ARRAY_OUT: Oid = 751;
/// Types inside types deeper than this are not followed.
const DEPTH_MAX: u8 = 16;
/// Types that one type may be put together from; catalogs that ask for more are damaged.
const PARTS_MAX: u32 = 20_000;

/// A row of `pg_type`.
#[derive(Clone, Debug)]
struct TypeRow {
    name: String,
    namespace: Oid,
    len: i16,
    byval: bool,
    align: u8,
    typtype: u8,
    relation: Oid,
    element: Oid,
    output: Oid,
    base: Oid,
}

/// A row of `pg_range`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RangeRow {
    subtype: Oid,
    /// `rngsubopc`.
    pub(crate) class: Oid,
    /// `rngcollation`, 0 for none.
    pub(crate) collation: Oid,
}

/// The types of a database.
#[derive(Default)]
pub(crate) struct TypeRows {
    types: HashMap<Oid, TypeRow>,
    /// OID and label by enum type, in their order.
    labels: HashMap<Oid, Vec<(u32, Vec<u8>)>>,
    /// What `pg_range` says, by range or multirange type.
    ranges: HashMap<Oid, RangeRow>,
}

/// How far the putting together of one type has come.
#[derive(Clone, Copy)]
struct Way<'a> {
    depth: u8,
    parts: &'a Cell<u32>,
    relations: &'a BTreeMap<Oid, Relation>,
}

impl Way<'_> {
    fn deeper(self) -> Self {
        Way {
            depth: self.depth + 1,
            ..self
        }
    }
}

type EachRow<'a> = &'a mut dyn FnMut(&ColumnNames, RawRow<'_>);

impl TypeRows {
    pub(crate) fn read(
        relations: &BTreeMap<Oid, Relation>,
        mut rows_of: impl FnMut(&Relation, EachRow<'_>),
    ) -> Self {
        let mut types = TypeRows::default();
        if let Some(relation) = relations.get(&PG_TYPE) {
            rows_of(relation, &mut |names, row| types.take_type(names, &row));
        }
        if let Some(relation) = relations.get(&PG_ENUM) {
            let mut labels = Vec::new();
            rows_of(relation, &mut |names, row| {
                labels.extend(label_row(names, &row));
            });
            types.take_labels(labels);
        }
        if let Some(relation) = relations.get(&PG_RANGE) {
            rows_of(relation, &mut |names, row| types.take_range(names, &row));
        }
        types
    }

    fn take_type(&mut self, names: &ColumnNames, row: &RawRow<'_>) {
        let read = || {
            let align = match row.u8(names.index("typalign"))? {
                b'c' => 1,
                b's' => 2,
                b'i' => 4,
                _ => 8,
            };
            let type_row = TypeRow {
                name: row.name(names.index("typname"))?,
                namespace: row.u32(names.index("typnamespace"))?,
                len: row.i16(names.index("typlen"))?,
                byval: row.bool(names.index("typbyval"))?,
                align,
                typtype: row.u8(names.index("typtype"))?,
                relation: row.u32(names.index("typrelid"))?,
                element: row.u32(names.index("typelem"))?,
                output: row.u32(names.index("typoutput"))?,
                base: row.u32(names.index("typbasetype"))?,
            };
            Some((row.u32(names.index("oid"))?, type_row))
        };
        self.types.extend(read());
    }

    fn take_labels(&mut self, mut labels: Vec<LabelRow>) {
        labels.sort_by(|a, b| a.position.total_cmp(&b.position));
        for row in labels {
            let of = self.labels.entry(row.of).or_default();
            of.push((row.oid, row.label));
        }
    }

    fn take_range(&mut self, names: &ColumnNames, row: &RawRow<'_>) {
        let read = || {
            Some(RangeRow {
                subtype: row.u32(names.index("rngsubtype"))?,
                class: row.u32(names.index("rngsubopc"))?,
                collation: row.u32(names.index("rngcollation"))?,
            })
        };
        let Some(facts) = read() else {
            return;
        };
        for column in ["rngtypid", "rngmultitypid"] {
            self.ranges
                .extend(row.u32(names.index(column)).map(|range| (range, facts)));
        }
    }

    /// Name and schema of the relations that have row types: their types are called as they are.
    pub(crate) fn relations(&self) -> impl Iterator<Item = (Oid, &str, Oid)> {
        let composite = self.types.values().filter(|row| row.relation != 0);
        composite.map(|row| (row.relation, row.name.as_str(), row.namespace))
    }

    /// The `pg_range` row of a range or multirange type.
    pub(crate) fn range(&self, oid: Oid) -> Option<RangeRow> {
        self.ranges.get(&oid).copied()
    }
}

/// A row of `pg_enum`.
struct LabelRow {
    of: Oid,
    position: f32,
    oid: Oid,
    label: Vec<u8>,
}

fn label_row(names: &ColumnNames, row: &RawRow<'_>) -> Option<LabelRow> {
    Some(LabelRow {
        of: row.u32(names.index("enumtypid"))?,
        position: f32::from_bits(row.u32(names.index("enumsortorder"))?),
        oid: row.u32(names.index("oid"))?,
        label: row.name_bytes(names.index("enumlabel"))?.to_vec(),
    })
}

impl TypeRows {
    /// The type with this OID: from the catalogs, else built in, else of unknown make. The fields
    /// of a composite type are the columns of its relation.
    pub(crate) fn info(&self, oid: Oid, relations: &BTreeMap<Oid, Relation>) -> Arc<TypeInfo> {
        let way = Way {
            depth: 0,
            parts: &Cell::new(0),
            relations,
        };
        Arc::new(self.type_to_depth(oid, way))
    }

    fn type_to_depth(&self, oid: Oid, way: Way<'_>) -> TypeInfo {
        way.parts.set(way.parts.get().saturating_add(1));
        let built_in = pgclinic_format::datum::builtin(oid);
        let Some(row) = self.types.get(&oid) else {
            return built_in.unwrap_or_else(|| unknown(oid));
        };
        if let Some(info) = built_in {
            return info;
        }
        let kind = if way.parts.get() >= PARTS_MAX {
            TypeKind::Unknown
        } else if way.depth >= DEPTH_MAX {
            // Nothing of it is lost, and nobody prints it.
            TypeKind::Base
        } else {
            self.kind_of(oid, row, way.deeper())
        };
        TypeInfo {
            oid,
            name: row.name.clone(),
            len: row.len,
            byval: row.byval,
            align: row.align,
            kind,
        }
    }

    fn kind_of(&self, oid: Oid, row: &TypeRow, way: Way<'_>) -> TypeKind {
        let inner = |oid| Arc::new(self.type_to_depth(oid, way));
        let subtype = || self.range(oid).map(|row| row.subtype);
        match row.typtype {
            // A base type may have elements for subscripts without being an array.
            b'b' if row.element != 0 && row.len == -1 && row.output == ARRAY_OUT => {
                TypeKind::Array(inner(row.element))
            }
            b'b' => TypeKind::Base,
            b'd' => TypeKind::Domain(inner(row.base)),
            b'e' => TypeKind::Enum(self.labels.get(&oid).cloned().unwrap_or_default()),
            b'r' => subtype().map_or(TypeKind::Unknown, |subtype| TypeKind::Range(inner(subtype))),
            b'm' => subtype().map_or(TypeKind::Unknown, |subtype| {
                TypeKind::Multirange(inner(subtype))
            }),
            b'c' => self
                .fields_of(row.relation, way)
                .map_or(TypeKind::Unknown, TypeKind::Composite),
            _ => TypeKind::Unknown,
        }
    }

    fn fields_of(&self, relation: Oid, way: Way<'_>) -> Option<Vec<Field>> {
        let columns = way.relations.get(&relation)?.columns.as_ref()?;
        let fields = columns.iter().map(|column| {
            let ty = if column.dropped {
                dropped(column)
            } else {
                self.type_to_depth(column.type_oid, way)
            };
            Field {
                name: column.name.clone(),
                ty: Arc::new(ty),
                collation: column.collation,
                dropped: column.dropped,
            }
        });
        Some(fields.collect())
    }
}

fn unknown(oid: Oid) -> TypeInfo {
    TypeInfo {
        oid,
        name: format!("type {oid}"),
        len: -1,
        byval: false,
        align: 4,
        kind: TypeKind::Unknown,
    }
}

fn dropped(column: &crate::relation::Column) -> TypeInfo {
    let layout = column.layout;
    TypeInfo {
        len: layout.attlen,
        align: layout.attalign,
        ..unknown(0)
    }
}
