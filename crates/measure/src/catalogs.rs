//! The catalogs of a database in all; each of them stands among the relations too.

use std::collections::BTreeMap;

use pgclinic_model::FigureKind;
use pgclinic_model::document::{Figure, MeasuredRelation};

use super::{bytes, number};

/// The section of these figures.
pub(super) const SECTION: &str = "catalogs";

/// What is said of a database's catalogs.
pub(super) const FIGURES: &[FigureKind] = &[
    bytes("bytes", "catalogs and their indexes"),
    number("rows", "rows that are live"),
    number("dead_rows", "dead row versions"),
    bytes("dead_bytes", "their bytes"),
    bytes(
        "rewrite_gives_back_bytes",
        "what VACUUM FULL of the catalogs gives back, about",
    ),
];

/// Adds the catalogs up.
pub(super) fn measure(measured: &[MeasuredRelation]) -> BTreeMap<String, Option<Figure>> {
    let own = || {
        measured
            .iter()
            .filter(|own| own.schema.as_deref() == Some("pg_catalog"))
    };
    let sum = |name: &str| {
        own()
            .filter_map(|own| own.count("table", name))
            .sum::<u64>()
    };
    let values = [
        own().map(|own| own.bytes).sum(),
        sum("tuple_count"),
        sum("dead_tuple_count"),
        sum("dead_tuple_len"),
        sum("rewrite_gives_back_bytes"),
    ];
    let named = FIGURES.iter().zip(values);
    named
        .map(|(kind, value)| (kind.name.to_owned(), Some(Figure::Count(value))))
        .collect()
}
