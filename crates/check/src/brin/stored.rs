//! What a column of a BRIN index stores in each summary, by its operator class.
//!
//! Truth: the `…_opcinfo` functions in
//! `src/backend/access/brin/brin_{minmax,inclusion,bloom,minmax_multi}.c`.

use pgclinic_cluster::OpClass;
use pgclinic_format::ColumnLayout;
use pgclinic_format::types::FIRST_NORMAL_OID;

use crate::check::ForkCx;

const fn layout(attlen: i16, attalign: u8) -> ColumnLayout {
    ColumnLayout { attlen, attalign }
}

/// How a class sums up a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Family {
    /// Lowest and highest value.
    MinMax,
    /// A value that contains all others, and two marks.
    Inclusion,
    /// Bits that hashes of the values set.
    Bloom,
    /// Several ranges of values.
    MinMaxMulti,
}

/// One column of an index.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    /// How it sums up.
    pub(crate) family: Family,
    /// What it stores.
    pub(crate) layouts: Vec<ColumnLayout>,
}

impl Stored {
    /// The columns of the index, or the name of the class that is not built in.
    pub(crate) fn columns(fork: &ForkCx<'_>) -> Option<Result<Vec<Stored>, String>> {
        let columns = fork.columns?;
        let classes = &fork.relation?.index.as_ref()?.classes;
        (columns.len() == classes.len() && !columns.is_empty()).then_some(())?;
        let stored = classes.iter().zip(columns);
        Some(
            stored
                .map(|(class, column)| Stored::of(class, *column).ok_or_else(|| class.name.clone()))
                .collect(),
        )
    }

    fn of(class: &OpClass, column: ColumnLayout) -> Option<Stored> {
        (class.oid < FIRST_NORMAL_OID).then_some(())?;
        let name = class.name.as_str();
        let (family, layouts) = if name.ends_with("_minmax_multi_ops") {
            (Family::MinMaxMulti, vec![layout(-1, 4)])
        } else if name.ends_with("_minmax_ops") {
            (Family::MinMax, vec![column; 2])
        } else if name.ends_with("_bloom_ops") {
            (Family::Bloom, vec![layout(-1, 4)])
        } else if name.ends_with("_inclusion_ops") {
            (Family::Inclusion, vec![column, layout(1, 1), layout(1, 1)])
        } else {
            return None;
        };
        Some(Stored { family, layouts })
    }
}
