//! Collations from rows of `pg_collation` and `pg_database`.
//!
//! Truth: `src/include/catalog/{pg_collation,pg_database}.h`.

use crate::collation::{Collation, CollationProvider, DEFAULT_COLLATION};
use crate::columns::ColumnNames;
use crate::heap_scan::RawRow;

impl Collation {
    /// From a row of `pg_collation`; the columns moved between majors.
    pub(crate) fn of_row(names: &ColumnNames, row: &RawRow<'_>) -> Option<Collation> {
        let provider = CollationProvider::from_letter(row.u8(names.index("collprovider"))?);
        let libc = words(names, row, "collcollate");
        let other = words(names, row, "colllocale").or_else(|| words(names, row, "colliculocale"));
        Some(Collation {
            oid: row.u32(names.index("oid"))?,
            name: row.name(names.index("collname"))?,
            deterministic: row.bool(names.index("collisdeterministic"))?,
            locale: if provider == CollationProvider::Libc {
                libc
            } else {
                other.or(libc)
            },
            version: words(names, row, "collversion"),
            has_rules: row.bytes(names.index("collicurules")).is_some(),
            provider,
        })
    }

    /// The database's own one, from its row of `pg_database`.
    pub(crate) fn of_database(names: &ColumnNames, row: &RawRow<'_>) -> Option<Collation> {
        let letter = row.u8(names.index("datlocprovider")).unwrap_or(b'c');
        let provider = CollationProvider::from_letter(letter);
        let libc = words(names, row, "datcollate");
        let other = words(names, row, "datlocale").or_else(|| words(names, row, "daticulocale"));
        Some(Collation {
            oid: DEFAULT_COLLATION,
            name: "default".into(),
            deterministic: true,
            locale: if provider == CollationProvider::Libc {
                libc
            } else {
                other
            },
            version: words(names, row, "datcollversion"),
            has_rules: row.bytes(names.index("daticurules")).is_some(),
            provider,
        })
    }
}

/// A column that is a `name` in some majors and a `text` in others.
fn words(names: &ColumnNames, row: &RawRow<'_>, column: &str) -> Option<String> {
    let index = names.index(column);
    match names.layouts.get(index)?.attlen {
        -1 => row.text(index),
        _ => row.name(index),
    }
}
