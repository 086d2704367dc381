//! Why values cannot be ordered here.

use std::fmt;

use super::text_order::ForeignCollation;
use crate::types::Oid;

/// Why there is no order; none of these accuses the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unordered {
    /// Text is ordered by a library's rules.
    Collation(ForeignCollation),
    /// The catalogs do not tell how this collation orders.
    UnknownCollation(Oid),
    /// Not a built-in operator class.
    OperatorClass {
        /// `opcfamily`.
        family: Oid,
        /// `opcintype`.
        input_type: Oid,
    },
    /// Values of this type, perhaps inside the column's, have no built-in order, or nothing is
    /// known of the type.
    Type(String),
}

impl fmt::Display for Unordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unordered::Collation(collation) => {
                let ForeignCollation {
                    name,
                    library,
                    locale,
                    ..
                } = collation;
                write!(
                    f,
                    "the order of collation \"{name}\" is that of {library}'s locale \"{locale}\", \
                     which only the library itself knows"
                )
            }
            Unordered::UnknownCollation(oid) => {
                write!(
                    f,
                    "the catalogs do not tell how collation {oid} orders text"
                )
            }
            Unordered::OperatorClass { family, input_type } => write!(
                f,
                "the operator class (family {family}, type {input_type}) is not a built-in one"
            ),
            Unordered::Type(name) => write!(f, "type {name} has no built-in order"),
        }
    }
}

impl std::error::Error for Unordered {}
