//! Who can order text under the collations of a library: a server, asked in batches.

use std::cmp::Ordering;

use crate::collation::Collation;

/// Knows the order of collations that [`pgclinic_format::order`] leaves to their library. The
/// database's encoding, as `pg_database` numbers it, tells how text is stored.
pub trait Collator: Send + Sync {
    /// The version of the collation's library here, as the server records it; nothing when it
    /// has none or cannot be told.
    fn version(&self, encoding: i32, collation: &Collation) -> Option<String>;

    /// The order of each pair of texts, given as the payloads of `text` values; nothing when a text
    /// does not decode or the collation is not to be had here.
    fn compare(
        &self,
        encoding: i32,
        collation: &Collation,
        pairs: &[(Vec<u8>, Vec<u8>)],
    ) -> Option<Vec<Ordering>>;
}
