//! Completes a patch, from wherever its writing stopped.
//!
//! As an undo does, it looks at every change before it writes one: what is neither from before nor
//! from after was written by somebody else.

use std::path::Path;

use crate::error::Result;
use crate::journal::{JournalFolder, State};
use crate::new_files;
use crate::storage::Storage;
use crate::target::targets;
use crate::undo::{check_identity, examine};
use crate::writer::{check_after, check_source, is_written, make_last, write};

/// Writes what is missing of the journal's patch on the cluster in `pgdata`; gives how many changes
/// that were.
pub(crate) fn complete(
    storage: &mut dyn Storage,
    folder: &JournalFolder,
    pgdata: &Path,
) -> Result<u64> {
    let mut journal = folder.read(storage)?;
    if journal.state == State::Undone {
        return Err(folder.unusable("it was undone: make the plan again"));
    }
    let patch = journal.patch.clone();
    let targets = targets(&patch, pgdata)?;
    check_identity(storage, folder, &journal, pgdata)?;
    let (mut missing, mut written) = (Vec::new(), Vec::new());
    for target in &targets {
        examine(storage, folder, &journal, target)?;
        if is_written(storage, target)? {
            written.push(target);
        } else {
            check_source(storage, folder, target)?;
            missing.push(target);
        }
    }
    // Backwards, since directories come before what lies in them.
    for target in targets.iter().rev() {
        new_files::clear_unfinished(storage, target)?;
    }
    for target in &written {
        make_last(storage, target)?;
    }
    for target in &missing {
        write(storage, folder, target)?;
    }
    for target in &targets {
        check_after(storage, target)?;
    }
    if journal.state != State::Applied {
        journal.state = State::Applied;
        folder.write(storage, &journal)?;
    }
    Ok(missing.len() as u64)
}
