//! Whether two copies stand at one checkpoint, so that files without an LSN can be compared.

use pgclinic_cluster::wal::LabelState;
use pgclinic_format::ControlFile;
use pgclinic_format::control_file::State;

use crate::page_comparison::Side;
use crate::timelines::Kinship;

/// How the checkpoints of two copies compare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// Both are the folder of one server as it left it: equal to the byte.
    OneFolder,
    /// Two servers came to the same shutdown checkpoint, one at least by replay: equal in what
    /// transactions left.
    OneCheckpoint,
    /// One is older, or what its files miss is still in its WAL; or both are standbys.
    Apart,
}

/// How both copies stand to each other.
pub(crate) fn standing((a, b): (Side<'_>, Side<'_>)) -> Standing {
    let (Some(own_a), Some(own_b)) = (at_rest(a), at_rest(b)) else {
        return Standing::Apart;
    };
    let is_one =
        own_a.checkpoint_lsn == own_b.checkpoint_lsn && own_a.checkpoint == own_b.checkpoint;
    if !is_one || a.kinship != Kinship::Line {
        return Standing::Apart;
    }
    match (own_a.state, own_b.state) {
        (State::ShutDown, State::ShutDown) => Standing::OneFolder,
        (State::ShutDown, _) | (_, State::ShutDown) => Standing::OneCheckpoint,
        // Which numbers may still be asked for, only the server that gives them out has noted.
        _ => Standing::Apart,
    }
}

/// The control file of a copy that was shut down and has nothing behind its last checkpoint, which
/// was a shutdown.
fn at_rest(side: Side<'_>) -> Option<&ControlFile> {
    let control = side.cluster.control.trusted()?;
    let (position, recovery) = (side.position?, side.cluster.recovery()?);
    let ends_there = position.end.0
        <= control
            .checkpoint_lsn
            .0
            .saturating_add(pgclinic_cluster::CHECKPOINT_BYTES);
    let is_shutdown = control.checkpoint.redo == control.checkpoint_lsn;
    let is_shut = matches!(control.state, State::ShutDown | State::ShutDownInRecovery);
    let is_whole = recovery.label == LabelState::None && !position.elsewhere;
    (is_shut && !side.cluster.is_running() && is_whole && is_shutdown && ends_there)
        .then_some(control)
}
