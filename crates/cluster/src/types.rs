//! What `pg_type`, `pg_enum` and `pg_range` say, put together for the datum printer.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use pgclinic_format::Oid;
use pgclinic_format::datum::{Field, TypeInfo, TypeKind};
use pgclinic_format::oid::{PG_ENUM, PG_RANGE, PG_TYPE};

use crate::columns::ColumnNames;
use crate::heap_scan::RawRow;
use crate::relation::Relation;
use crate::witness::LostType;

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
    /// The same by schema and name, once some are looked for.
    by_name: HashMap<(Oid, String), Oid>,
    /// OID and label by enum type, in their order.
    labels: HashMap<Oid, Vec<(u32, Vec<u8>)>>,
    label_rows: Vec<LabelRow>,
    label_oids: HashSet<Oid>,
    /// What `pg_range` says, by range or multirange type.
    ranges: HashMap<Oid, RangeRow>,
    multiranges: HashSet<Oid>,
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
            types.add_labels(labels);
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

    /// Labels of enumerations, which are put in order among those that are known.
    pub(crate) fn add_labels(&mut self, labels: Vec<LabelRow>) {
        self.label_rows.extend(labels);
        self.label_rows
            .sort_by(|a, b| a.position.total_cmp(&b.position));
        self.labels.clear();
        self.label_oids = self.label_rows.iter().map(|row| row.oid).collect();
        for row in &self.label_rows {
            let of = self.labels.entry(row.of).or_default();
            of.push((row.oid, row.label.clone()));
        }
    }

    /// The label with this OID has a row.
    pub(crate) fn has_label(&self, oid: Oid) -> bool {
        self.label_oids.contains(&oid)
    }

    /// Enumerations, ranges and multiranges of which no other catalog says anything.
    pub(crate) fn bare_types(&self) -> HashSet<Oid> {
        let bare = self.types.iter().filter(|(oid, row)| match row.typtype {
            b'e' => !self.labels.contains_key(oid),
            b'r' | b'm' => !self.ranges.contains_key(oid),
            _ => false,
        });
        bare.map(|(oid, _)| *oid).collect()
    }

    /// A range whose row in `pg_range` is lost, by the type of its bounds; a multirange by its
    /// range.
    pub(crate) fn add_range(&mut self, oid: Oid, argument: Oid) {
        let known = self.types.get(&oid).map(|row| row.typtype);
        let of_bounds = RangeRow {
            subtype: argument,
            class: 0,
            collation: 0,
        };
        match known {
            Some(b'r') => drop(self.ranges.insert(oid, of_bounds)),
            Some(b'm') => {
                let own = self.ranges.get(&argument).copied();
                self.ranges.extend(own.map(|own| (oid, own)));
            }
            _ => {}
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
        let multirange = row.u32(names.index("rngmultitypid"));
        let both = row
            .u32(names.index("rngtypid"))
            .into_iter()
            .chain(multirange);
        self.ranges.extend(both.map(|range| (range, facts)));
        self.multiranges.extend(multirange);
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

impl TypeRows {
    pub(crate) fn has_row(&self, oid: Oid) -> bool {
        self.types.contains_key(&oid)
    }

    /// A type that no row describes: of a column, or that another type is made of.
    pub(crate) fn lacks_some(&self, relations: &BTreeMap<Oid, Relation>) -> bool {
        let columns = relations
            .values()
            .flat_map(|relation| relation.columns.iter().flatten());
        let of_columns = columns
            .filter(|column| !column.dropped)
            .map(|column| column.type_oid);
        let of_types = self.types.values().flat_map(|row| [row.element, row.base]);
        let of_ranges = self
            .ranges
            .iter()
            .flat_map(|(range, row)| [*range, row.subtype]);
        let mut used = of_columns.chain(of_types).chain(of_ranges);
        used.any(|oid| oid != 0 && !self.has_row(oid))
    }

    /// Makes types findable by schema and name.
    pub(crate) fn index_names(&mut self) {
        let named = self.types.iter();
        self.by_name = named
            .map(|(oid, row)| ((row.namespace, row.name.clone()), *oid))
            .collect();
    }

    /// Takes a type whose row is lost, as far as other catalogs tell what it is made of: `relation`
    /// is the one of its name, `base` that of a domain. Whether they do.
    pub(crate) fn take_lost(
        &mut self,
        lost: &LostType,
        relation: Option<Oid>,
        base: Option<Oid>,
    ) -> bool {
        let row = self.row_of_lost(lost, relation, base);
        let is_known = row.is_some();
        if let Some(row) = row {
            let name = (row.namespace, row.name.clone());
            self.by_name.insert(name, lost.oid);
            self.types.insert(lost.oid, row);
        }
        is_known
    }

    fn row_of_lost(
        &self,
        lost: &LostType,
        relation: Option<Oid>,
        base: Option<Oid>,
    ) -> Option<TypeRow> {
        let made = |typtype: u8, (len, byval, align): (i16, bool, u8)| TypeRow {
            name: lost.name.clone(),
            namespace: lost.namespace,
            len,
            byval,
            align,
            typtype,
            relation: 0,
            element: 0,
            output: 0,
            base: 0,
        };
        if self.labels.contains_key(&lost.oid) {
            return Some(made(b'e', (4, true, 4)));
        }
        if let Some(range) = self.ranges.get(&lost.oid) {
            let is_multirange = self.multiranges.contains(&lost.oid);
            let typtype = if is_multirange { b'm' } else { b'r' };
            return Some(made(typtype, self.layout_around(range.subtype)?));
        }
        if let Some(base) = base {
            let base_layout = self.layout_of(base)?;
            return Some(TypeRow {
                base,
                ..made(b'd', base_layout)
            });
        }
        if let Some(relation) = relation {
            return Some(TypeRow {
                relation,
                ..made(b'c', (-1, false, 8))
            });
        }
        let element = lost.name.strip_prefix('_')?;
        let element = *self.by_name.get(&(lost.namespace, element.to_owned()))?;
        Some(TypeRow {
            element,
            output: ARRAY_OUT,
            ..made(b'b', self.layout_around(element)?)
        })
    }

    /// Length, whether it is passed by value, alignment.
    fn layout_of(&self, oid: Oid) -> Option<(i16, bool, u8)> {
        let own = self.types.get(&oid);
        let own = own.map(|row| (row.len, row.byval, row.align));
        let built_in = || pgclinic_format::datum::builtin(oid);
        own.or_else(|| built_in().map(|info| (info.len, info.byval, info.align)))
    }

    /// Arrays and ranges stand at 8 bytes where what is in them does, else at 4.
    fn layout_around(&self, inner: Oid) -> Option<(i16, bool, u8)> {
        let (_, _, align) = self.layout_of(inner)?;
        Some((-1, false, if align == 8 { 8 } else { 4 }))
    }
}

/// A row of `pg_enum`.
pub(crate) struct LabelRow {
    /// `enumtypid`.
    pub(crate) of: Oid,
    /// `enumsortorder`.
    pub(crate) position: f32,
    pub(crate) oid: Oid,
    pub(crate) label: Vec<u8>,
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
