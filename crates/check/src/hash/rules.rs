//! The rules of [`crate::hash::chains`]: what pages of a hash index can say against each other.

use pgclinic_model::Rule;

/// A page of the wrong type or bucket.
pub static HASH_PAGE_MISPLACED: Rule =
    Rule::from_page(include_str!("../../rules/hash-page-misplaced.md"));

/// A link that leads nowhere.
pub static HASH_CHAIN_BROKEN: Rule =
    Rule::from_page(include_str!("../../rules/hash-chain-broken.md"));

/// A code in a foreign bucket.
pub static HASH_BUCKET_WRONG: Rule =
    Rule::from_page(include_str!("../../rules/hash-bucket-wrong.md"));

/// Ends of a split that do not know of each other.
pub static HASH_SPLIT_STATE: Rule =
    Rule::from_page(include_str!("../../rules/hash-split-state.md"));

/// A bit that lies.
pub static HASH_BITMAP_WRONG: Rule =
    Rule::from_page(include_str!("../../rules/hash-bitmap-wrong.md"));
