//! The control file with another `data_checksum_version`.

use std::path::Path;

use pgclinic_format::ControlFile;
use pgclinic_format::build::put_u32;
use pgclinic_format::control_file::{CHECKSUM_VERSION_AT, FILE_BYTES, State, seal};

use super::Durability;
use crate::error::{Error, Result};
use crate::storage::{Disk, Storage};

pub(super) const CONTROL_FILE: &str = "global/pg_control";
/// `PG_DATA_CHECKSUM_OFF`.
const OFF: u32 = 0;
/// `PG_DATA_CHECKSUM_VERSION`.
const ON: u32 = 1;

/// What the control file says of data checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChecksumsState {
    /// Pages have none.
    Off,
    /// Pages have them.
    On,
}

impl ChecksumsState {
    fn version(self) -> u32 {
        match self {
            ChecksumsState::Off => OFF,
            ChecksumsState::On => ON,
        }
    }
}

/// The control file of a cluster whose data checksums may be changed.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct StoppedControl {
    pub(super) bytes: Vec<u8>,
    pub(super) file: ControlFile,
    pub(super) checksums: ChecksumsState,
}

impl StoppedControl {
    /// Reads it, and refuses a cluster that was not shut down in good order, or whose checksums are
    /// between on and off.
    pub(super) fn read(pgdata: &Path) -> Result<Self> {
        let bytes = read(pgdata)?;
        let refused = |why: String| Error::NotShutDown {
            pgdata: pgdata.to_owned(),
            why,
        };
        let file = ControlFile::parse(&bytes).map_err(|fault| refused(fault.to_string()))?;
        if !file.crc_is_right() {
            return Err(refused("its control file is damaged".into()));
        }
        if !matches!(file.state, State::ShutDown | State::ShutDownInRecovery) {
            let why = format!(
                "its control file says \"{}\": start the server and stop it in good order first",
                file.state
            );
            return Err(refused(why));
        }
        let checksums = match file.data_checksum_version {
            OFF => ChecksumsState::Off,
            ON => ChecksumsState::On,
            other => return Err(refused(between(other))),
        };
        Ok(StoppedControl {
            bytes,
            file,
            checksums,
        })
    }

    /// The same file that says something else of checksums.
    pub(super) fn with(&self, checksums: ChecksumsState) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        put_u32(&mut bytes, CHECKSUM_VERSION_AT, checksums.version());
        let is_sealed = seal(&mut bytes);
        assert!(is_sealed, "a control file that was parsed can be sealed");
        bytes
    }
}

/// The numbers of `ChecksumStateType` in PostgreSQL 19 (`src/include/storage/checksum.h`) beside on
/// and off.
fn between(version: u32) -> String {
    let (state, done) = match version {
        2 => ("inprogress-off", "disabled"),
        3 => ("inprogress-on", "enabled"),
        other => {
            return format!(
                "its control file has data_checksum_version {other}, which is not known here"
            );
        }
    };
    format!(
        "its data checksums are being {done} ({state}): let a server of PostgreSQL 19 or newer end that, with pg_enable_data_checksums() or pg_disable_data_checksums()"
    )
}

/// The file as it is now.
pub(super) fn read(pgdata: &Path) -> Result<Vec<u8>> {
    let path = pgdata.join(CONTROL_FILE);
    let mut bytes = vec![0; FILE_BYTES];
    let read = Disk.read_at(&path, 0, &mut bytes);
    bytes.truncate(read.map_err(Error::io("read", &path))?);
    Ok(bytes)
}

/// It can be opened for writing: before a journal is made that would only say that it cannot.
pub(super) fn may_write(pgdata: &Path) -> Result<()> {
    let path = pgdata.join(CONTROL_FILE);
    Disk.may_write(&path)
        .map_err(Error::io("open for writing", &path))
}

/// Replaces one control file by the other, in one write: what differs lies within a sector.
pub(super) fn replace(pgdata: &Path, from: &[u8], to: &[u8], durability: Durability) -> Result<()> {
    let path = pgdata.join(CONTROL_FILE);
    if read(pgdata)? != from {
        return Err(moved("begin again"));
    }
    let differs = |(one, other): (&u8, &u8)| one != other;
    let first = from.iter().zip(to).position(differs);
    let last = from.iter().zip(to).rposition(differs);
    let (Some(first), Some(last)) = (first, last) else {
        return Ok(());
    };
    let bytes = to.get(first..=last).unwrap_or_default();
    Disk.write_at(&path, first as u64, bytes)
        .map_err(Error::io("write", &path))?;
    if durability == Durability::Synced {
        Disk.sync(&path).map_err(Error::io("sync", &path))?;
    }
    if read(pgdata)? == to {
        return Ok(());
    }
    Err(Error::Foreign {
        path: CONTROL_FILE.into(),
        why: "what was written is not what is read back; undo it with the journal".into(),
    })
}

/// The control file is another one than it was.
pub(super) fn moved(advice: &str) -> Error {
    Error::ControlMoved {
        advice: advice.to_owned(),
    }
}
