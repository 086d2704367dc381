//! Which folders may hold temporary files: none of a cluster.

use std::fs::File;
use std::io;
use std::path::Path;

/// A file without a name in `folder`, for reading and writing; it is gone when it is closed. A
/// folder inside a data directory is refused.
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    check(folder)?;
    tempfile::tempfile_in(folder)
}

/// Refuses a folder that cannot be used or that lies inside a data directory, links followed.
pub(crate) fn check(folder: &Path) -> io::Result<()> {
    let real = folder.canonicalize().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!(
                "cannot use {} for temporary files: {error}",
                folder.display()
            ),
        )
    })?;
    match real
        .ancestors()
        .find(|above| above.join("global/pg_control").exists() || above.join("PG_VERSION").exists())
    {
        None => Ok(()),
        Some(cluster) => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "{} lies inside the cluster {}; name another directory for temporary files",
                folder.display(),
                cluster.display()
            ),
        )),
    }
}
