//! Whether the columns that a person gives are those of the rows in a file, asked before anything
//! is written.

use pgclinic_cluster::{Charset, Cluster};
use pgclinic_format::attribute::Attribute;
use pgclinic_format::datum::Limits;
use pgclinic_format::types::Tid;
use pgclinic_format::{Attributes, HeapTuple};

use super::error::SalvageError;
use super::sampling::each_row;
use crate::readable::Readable;
use crate::shape::Table;

/// What was seen of the rows.
#[derive(Default)]
struct Sample {
    rows: u64,
    misfits: u64,
    first: Option<(Tid, String)>,
}

/// An error where more rows contradict the columns than fit them.
pub(super) fn hold(cluster: &Cluster, table: &Table, charset: Charset) -> Result<(), SalvageError> {
    let limits = Limits {
        major: cluster.layout.major,
        ..Limits::default()
    };
    let mut readable = Readable::new(table, limits, charset);
    let mut sample = Sample::default();
    each_row(cluster, &table.files, &mut |tuple, place| {
        sample.rows += 1;
        if let Some(why) = misfit(tuple, table, &mut readable) {
            sample.misfits += 1;
            sample.first.get_or_insert((place, why));
        }
    });
    match sample.first {
        Some((place, why)) if sample.misfits * 2 > sample.rows => {
            Err(SalvageError::ColumnsDoNotFit {
                table: format!("{}.{}", table.schema, table.name),
                rows: sample.rows,
                misfits: sample.misfits,
                place,
                why,
            })
        }
        _ => Ok(()),
    }
}

/// What in a row contradicts the columns.
fn misfit(tuple: HeapTuple<'_>, table: &Table, readable: &mut Readable) -> Option<String> {
    let (stored, given) = (usize::from(tuple.attribute_count()), table.layouts.len());
    if stored > given {
        return Some(format!("it has {stored} columns where {given} are given"));
    }
    let name = |index: usize| match table.name_of_attribute(index) {
        Some(name) => format!("column {name}"),
        None => format!("column {}", index + 1),
    };
    let mut walk = Attributes::new(tuple, &table.layouts);
    for index in 0..given {
        match walk.next()? {
            Ok(Attribute::Value(range)) => {
                let bytes = tuple.bytes().get(range).unwrap_or_default();
                if !readable.fits(index, bytes) {
                    return Some(format!(
                        "{} holds bytes that are none of its type",
                        name(index)
                    ));
                }
            }
            Ok(Attribute::Null | Attribute::Missing) => {}
            Err(_) => return Some(format!("{} would end after the row", name(index))),
        }
    }
    let (end, len) = (walk.end(), tuple.bytes().len());
    (end != len)
        .then(|| format!("the columns that are given end at byte {end} of a row of {len} bytes"))
}
