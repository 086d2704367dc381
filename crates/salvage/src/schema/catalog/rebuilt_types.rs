//! Rows of `pg_type` that are lost, of types whose make other catalogs tell: enumerations, ranges,
//! row types, domains with a check, and arrays of known types. Defaults, NOT NULL and rights stood
//! in the rows alone.

use std::collections::HashMap;

use pgclinic_cluster::LostType;
use pgclinic_format::Oid;
use pgclinic_format::datum::TypeKind;
use pgclinic_format::oid::PG_TYPE;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::{noun_of, plural, verb_of};

use super::rebuilt_rows::Values;
use super::{Catalogs, Row, named_some};

/// `BTREE_AM_OID`.
const BTREE: Oid = 403;
/// `DEFAULT_COLLATION_OID`.
const DEFAULT_COLLATION: Oid = 100;

impl Catalogs<'_> {
    /// Puts the rows that are lost among those of `pg_type`. What could not be found stays lost,
    /// with its name.
    pub(super) fn add_rebuilt_types(&mut self) {
        let lost: Vec<LostType> = self.catalog.lost_types.clone();
        let lost: Vec<LostType> = lost
            .into_iter()
            .filter(|lost| lost.oid >= FIRST_NORMAL_OID && self.row("pg_type", lost.oid).is_none())
            .collect();
        if !lost.is_empty() {
            self.add_types(&lost);
        }
        self.add_rebuilt_ranges();
    }

    fn add_types(&mut self, lost: &[LostType]) {
        let (relations, arrays) = (self.relations_by_name(), self.arrays());
        let (mut rows, mut unknown) = (Vec::new(), Vec::new());
        for lost in lost {
            let name = (lost.namespace, lost.name.clone());
            let relation = relations.get(&name).copied();
            let array = arrays.get(&lost.oid).copied().unwrap_or(0);
            match self.values_of_type(lost, relation, array) {
                Some(row) => rows.push(row),
                None => unknown.push(lost.name.clone()),
            }
        }
        self.add_rows("pg_type", &rows);
        if !rows.is_empty() {
            self.troubles.push(format!(
                "pg_type: {rows} {are} put together from other catalogs: defaults, NOT NULL and rights of these types are lost",
                are = verb_of(rows.len(), "are"),
                rows = plural(rows.len(), "row"),
            ));
        }
        if !unknown.is_empty() {
            self.troubles.push(format!(
                "pg_type: the {noun} of {names} {are} lost, and no other catalog says what they are made of",
                are = verb_of(unknown.len(), "are"),
                noun = noun_of(unknown.len() as u64, "row"),
                names = named_some(&unknown),
            ));
        }
    }

    fn values_of_type(
        &self,
        lost: &LostType,
        relation_of_name: Option<Oid>,
        array: Oid,
    ) -> Option<Values> {
        let ty = self.catalog.type_info(lost.oid);
        let number = |value: Oid| value.to_le_bytes().to_vec();
        let (mut relation, mut element, mut base, mut collation) = (0, 0, 0, 0);
        let typtype = match &ty.kind {
            TypeKind::Enum(_) => b'e',
            TypeKind::Range(_) => b'r',
            TypeKind::Multirange(_) => b'm',
            TypeKind::Composite(_) => {
                relation = relation_of_name?;
                b'c'
            }
            TypeKind::Domain(inner) => {
                base = inner.oid;
                let row = self.row("pg_type", base);
                collation = row.map_or(0, |row| row.oid("typcollation"));
                b'd'
            }
            TypeKind::Array(inner) => {
                element = inner.oid;
                let row = self.row("pg_type", element);
                let is_collated = row.is_some_and(|row| row.oid("typcollation") != 0);
                collation = if is_collated { DEFAULT_COLLATION } else { 0 };
                b'b'
            }
            TypeKind::Base | TypeKind::Bytes | TypeKind::Unknown => return None,
        };
        let category = match typtype {
            b'b' => b'A',
            b'e' => b'E',
            b'c' => b'C',
            b'r' | b'm' => b'R',
            _ => b'U',
        };
        let align = match ty.align {
            1 => b'c',
            2 => b's',
            4 => b'i',
            _ => b'd',
        };
        let storage = if ty.len == -1 { b'x' } else { b'p' };
        Some(vec![
            ("oid", number(lost.oid)),
            ("typname", self.words.bytes(&lost.name)?),
            ("typnamespace", number(lost.namespace)),
            ("typowner", number(self.owner_of(PG_TYPE, lost.oid))),
            ("typlen", ty.len.to_le_bytes().into()),
            ("typbyval", vec![u8::from(ty.byval)]),
            ("typtype", vec![typtype]),
            ("typcategory", vec![category]),
            ("typisdefined", vec![1]),
            ("typdelim", vec![b',']),
            ("typrelid", number(relation)),
            ("typelem", number(element)),
            ("typarray", number(array)),
            ("typalign", vec![align]),
            ("typstorage", vec![storage]),
            ("typbasetype", number(base)),
            ("typtypmod", (-1i32).to_le_bytes().into()),
            ("typcollation", number(collation)),
        ])
    }

    /// Rows of `pg_range` by the functions that make ranges. What only the rows had, functions for
    /// differences and canonical forms, is lost.
    fn add_rebuilt_ranges(&mut self) {
        let types = self.table("pg_type").iter();
        let lost = types.filter(|ty| {
            let is_range = ty.letter("typtype") == 'r' && ty.id() >= FIRST_NORMAL_OID;
            is_range && self.one("pg_range", "rngtypid", ty.id()).is_none()
        });
        let rows: Vec<Values> = lost.filter_map(|ty| self.values_of_range(ty)).collect();
        self.add_rows("pg_range", &rows);
        if !rows.is_empty() {
            self.troubles.push(format!(
                "pg_range: {rows} {are} put together from other catalogs: canonical forms and functions for differences are lost",
                are = verb_of(rows.len(), "are"),
                rows = plural(rows.len(), "row"),
            ));
        }
    }

    fn values_of_range(&self, ty: Row<'_>) -> Option<Values> {
        let info = self.catalog.type_info(ty.id());
        let TypeKind::Range(subtype) = &info.kind else {
            return None;
        };
        let number = |value: Oid| value.to_le_bytes().to_vec();
        let base = self.base_type(subtype.oid);
        let mut classes = self.table("pg_opclass").iter();
        let class = classes.find(|class| {
            class.oid("opcmethod") == BTREE
                && class.oid("opcintype") == base
                && class.flag("opcdefault")
        })?;
        let row = self.row("pg_type", subtype.oid);
        let name = ty.name("typname");
        let multirange = if name.contains("range") {
            name.replacen("range", "multirange", 1)
        } else {
            format!("{name}_multirange")
        };
        let mut types = self.table("pg_type").iter();
        let multirange = types.find(|own| {
            own.letter("typtype") == 'm'
                && own.name("typname") == multirange
                && own.oid("typnamespace") == ty.oid("typnamespace")
        });
        Some(vec![
            ("rngtypid", number(ty.id())),
            ("rngsubtype", number(subtype.oid)),
            (
                "rngmultitypid",
                number(multirange.map_or(0, |own| own.id())),
            ),
            (
                "rngcollation",
                number(row.map_or(0, |row| row.oid("typcollation"))),
            ),
            ("rngsubopc", number(class.id())),
        ])
    }

    /// Relations that have row types, which are called as they are, by schema and name.
    fn relations_by_name(&self) -> HashMap<(Oid, String), Oid> {
        let named = |kind: char| !matches!(kind, 'i' | 'I' | 't');
        let relations = self.table("pg_class").iter();
        relations
            .filter(|row| named(row.letter("relkind")))
            .map(|row| ((row.oid("relnamespace"), row.name("relname")), row.id()))
            .collect()
    }

    /// Arrays by the type of their elements, lost ones too.
    fn arrays(&self) -> HashMap<Oid, Oid> {
        let lost = self.catalog.lost_types.iter().filter_map(|lost| {
            match &self.catalog.type_info(lost.oid).kind {
                TypeKind::Array(inner) => Some((inner.oid, lost.oid)),
                _ => None,
            }
        });
        let types = self.table("pg_type").iter();
        let known = types.map(|row| (row.oid("typelem"), row.id()));
        let known = known.filter(|(element, _)| *element != 0);
        lost.chain(known).collect()
    }
}
