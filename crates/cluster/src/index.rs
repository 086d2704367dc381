//! What `pg_index` and `pg_opclass` say of an index.
//!
//! Truth: `src/include/catalog/{pg_index,pg_opclass}.h`.

use std::collections::HashMap;

use pgclinic_format::Oid;

use crate::columns::ColumnNames;
use crate::heap_rows::RawRow;

/// How one key column of an index is ordered or hashed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpClass {
    /// OID in `pg_opclass`.
    pub oid: Oid,
    /// `opcname`.
    pub name: String,
    /// `opcfamily`.
    pub family: Oid,
    /// `opcmethod`: OID of the access method.
    pub method: Oid,
    /// `opcintype`: the type it takes.
    pub input_type: Oid,
    /// `opckeytype`: the type it keeps, 0 for the input type.
    pub key_type: Oid,
}

/// What `pg_index` says of an index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Index {
    /// OID of its table.
    pub table: Oid,
    /// `indisunique`.
    pub unique: bool,
    /// `indisexclusion`.
    pub exclusion: bool,
    /// `indimmediate`: uniqueness is not deferred.
    pub immediate: bool,
    /// `indisvalid`: complete, and used by queries.
    pub valid: bool,
    /// `indisready`: inserts go into it.
    pub ready: bool,
    /// `indislive`: not being dropped.
    pub live: bool,
    /// `indnullsnotdistinct`, 15 and later.
    pub nulls_not_distinct: bool,
    /// `indnkeyatts`.
    pub key_count: u16,
    /// `indkey`: column numbers of the table, 0 for an expression; included columns too.
    pub keys: Vec<i16>,
    /// `indcollation`, one a key column, 0 where values have no collation.
    pub collations: Vec<Oid>,
    /// `indoption`, one a key column: bit 0 descending, bit 1 nulls first.
    pub options: Vec<i16>,
    /// `indclass` with what `pg_opclass` says, one a key column; empty when a class is unknown.
    pub classes: Vec<OpClass>,
    /// Some key is an expression.
    pub has_expressions: bool,
    /// Only rows that fulfil a condition are in it.
    pub has_predicate: bool,
    /// `indclass` as it stands.
    pub(crate) class_oids: Vec<Oid>,
}

impl Index {
    /// From a row of `pg_index`, without its operator classes.
    pub(crate) fn of_row(names: &ColumnNames, row: &RawRow<'_>) -> Option<Index> {
        let truth = |name: &str| row.bool(names.index(name));
        let is_there = |name: &str| row.bytes(names.index(name)).is_some();
        Some(Index {
            table: row.u32(names.index("indrelid"))?,
            unique: truth("indisunique")?,
            exclusion: truth("indisexclusion")?,
            immediate: truth("indimmediate")?,
            valid: truth("indisvalid")?,
            ready: truth("indisready")?,
            live: truth("indislive")?,
            nulls_not_distinct: truth("indnullsnotdistinct").unwrap_or(false),
            key_count: u16::try_from(row.i16(names.index("indnkeyatts"))?).ok()?,
            keys: int2_vector(row, names.index("indkey"))?,
            collations: oid_vector(row, names.index("indcollation"))?,
            options: int2_vector(row, names.index("indoption"))?,
            classes: Vec::new(),
            has_expressions: is_there("indexprs"),
            has_predicate: is_there("indpred"),
            class_oids: oid_vector(row, names.index("indclass"))?,
        })
    }

    /// Looks its operator classes up; all or none.
    pub(crate) fn resolve(&mut self, classes: &HashMap<Oid, OpClass>) {
        let found: Option<Vec<OpClass>> = self
            .class_oids
            .iter()
            .map(|oid| classes.get(oid).cloned())
            .collect();
        self.classes = found.unwrap_or_default();
    }
}

impl OpClass {
    /// From a row of `pg_opclass`.
    pub(crate) fn of_row(names: &ColumnNames, row: &RawRow<'_>) -> Option<OpClass> {
        Some(OpClass {
            oid: row.u32(names.index("oid"))?,
            name: row.name(names.index("opcname"))?,
            family: row.u32(names.index("opcfamily"))?,
            method: row.u32(names.index("opcmethod"))?,
            input_type: row.u32(names.index("opcintype"))?,
            key_type: row.u32(names.index("opckeytype"))?,
        })
    }
}

/// Bytes of the header of a one-dimensional array behind its varlena header.
const VECTOR_HEADER: usize = 20;

fn int2_vector(row: &RawRow<'_>, column: usize) -> Option<Vec<i16>> {
    let elements = row.payload(column)?.get(VECTOR_HEADER..)?;
    let (elements, _) = elements.as_chunks::<2>();
    Some(
        elements
            .iter()
            .map(|raw| i16::from_le_bytes(*raw))
            .collect(),
    )
}

fn oid_vector(row: &RawRow<'_>, column: usize) -> Option<Vec<Oid>> {
    let elements = row.payload(column)?.get(VECTOR_HEADER..)?;
    let (elements, _) = elements.as_chunks::<4>();
    Some(
        elements
            .iter()
            .map(|raw| Oid::from_le_bytes(*raw))
            .collect(),
    )
}
