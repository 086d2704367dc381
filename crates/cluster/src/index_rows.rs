//! Indexes and operator classes from rows of `pg_index`, `pg_opclass` and `pg_amproc`.
//!
//! Truth: `src/include/catalog/{pg_index,pg_opclass,pg_amproc}.h`.

use pgclinic_format::Oid;

use crate::columns::ColumnNames;
use crate::heap_scan::RawRow;
use crate::index::{Index, OpClass};

/// `BTEQUALIMAGE_PROC`.
const EQUAL_IMAGE: i16 = 4;

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
}

/// From a row of `pg_amproc`: family and type of a btree's class, and its function that tells
/// whether equal values look alike.
pub(crate) fn equal_image_of_row(
    names: &ColumnNames,
    row: &RawRow<'_>,
) -> Option<((Oid, Oid), Oid)> {
    let oid = |name| row.u32(names.index(name));
    let (left, right) = (oid("amproclefttype")?, oid("amprocrighttype")?);
    let wanted = row.i16(names.index("amprocnum"))? == EQUAL_IMAGE && left == right;
    wanted.then_some(((oid("amprocfamily")?, left), oid("amproc")?))
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
            equal_image: None,
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
