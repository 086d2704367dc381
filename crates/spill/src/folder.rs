//! Which folders may hold temporary files: none of a cluster.

use std::io;
use std::path::Path;

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
                "{} lies inside the cluster {}; name another folder for temporary files",
                folder.display(),
                cluster.display()
            ),
        )),
    }
}
