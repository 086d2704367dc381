//! What the catalogs must tell of collations and ranges before values can be ordered.

use crate::types::Oid;

/// `C_COLLATION_OID` and `POSIX_COLLATION_OID`.
const BYTE_COLLATIONS: [Oid; 2] = [950, 951];

/// How text under a collation is ordered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TextOrder {
    /// By its bytes: `C`, `POSIX`, and all locales of the built-in provider.
    Bytes,
    /// By a library's rules, which change with its version.
    Foreign(ForeignCollation),
    /// The catalogs do not tell.
    Unknown,
}

/// A collation whose rules belong to a library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignCollation {
    /// OID in `pg_collation`; 100 is the database's own.
    pub oid: Oid,
    /// `collname`.
    pub name: String,
    /// Who has the rules, for people: `libc`, `ICU`.
    pub library: &'static str,
    /// The library's own name of the locale.
    pub locale: String,
    /// Equal means equal bytes.
    pub deterministic: bool,
}

/// What `pg_range` says of a range type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeFacts {
    /// Family of the subtype's operator class.
    pub family: Oid,
    /// Input type of that class.
    pub input_type: Oid,
    /// `rngcollation`, 0 where the subtype has none.
    pub collation: Oid,
}

/// Answers out of the catalogs.
pub trait Facts {
    /// How text under this collation is ordered; 100 is the database's own.
    fn collation(&self, collation: Oid) -> TextOrder;
    /// The `pg_range` row of a range or multirange type; without one, the subtype's default class
    /// and the database's collation count.
    fn range(&self, range: Oid) -> Option<RangeFacts>;
}

/// What is known without catalogs.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInFacts;

impl Facts for BuiltInFacts {
    fn collation(&self, collation: Oid) -> TextOrder {
        if BYTE_COLLATIONS.contains(&collation) {
            TextOrder::Bytes
        } else {
            TextOrder::Unknown
        }
    }

    fn range(&self, _range: Oid) -> Option<RangeFacts> {
        None
    }
}
