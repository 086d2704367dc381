//! Where a journal goes that nobody named: beside the data directory, since it must not lie in what
//! it protects.

use std::path::{Path, PathBuf};

/// `PGDATA.WHAT.journal`, with a number where that is taken.
pub(crate) fn journal_beside(pgdata: &Path, what: &str) -> PathBuf {
    let full = pgdata
        .canonicalize()
        .unwrap_or_else(|_| pgdata.to_path_buf());
    let stem = format!("{}.{what}", full.display());
    let numbered = (2..u32::MAX).map(|number| PathBuf::from(format!("{stem}.{number}.journal")));
    let mut names = std::iter::once(PathBuf::from(format!("{stem}.journal"))).chain(numbered);
    names
        .find(|path| !path.exists())
        .unwrap_or_else(|| PathBuf::from(format!("{stem}.journal")))
}
