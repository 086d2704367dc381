//! What a recipe is.

use std::path::Path;

use super::workshop::Workshop;

/// Clusters that are made together: one file and one line in `recipes/mod.rs`.
pub(super) struct Recipe {
    /// The word on the command line and the folder in the cache.
    pub(super) name: &'static str,
    /// One line for `--list`.
    pub(super) summary: &'static str,
    /// Part of `--quick`: made in at most a minute or so from an installed PostgreSQL.
    pub(super) quick: bool,
    /// Puts data directories right below the folder, which the servers' user owns.
    pub(super) make: fn(&Workshop, &Path) -> Result<(), Unmade>,
}

/// Why there are no clusters.
pub(super) enum Unmade {
    /// This machine lacks something: skipped.
    Lacking(String),
    /// Something went wrong: a failure.
    Failed(String),
}

impl From<String> for Unmade {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}
