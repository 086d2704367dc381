//! What tells the version of a cluster: `PG_VERSION` and the control file.

use pgclinic_format::control_file::{ControlFault, FILE_BYTES};
use pgclinic_format::{ControlFile, Layout, Lsn};
use pgclinic_source::{Presence, Source, SourceErrorKind, read_all};

use crate::error::OpenError;
use crate::major::major_of_databases;

const CONTROL_FILE: &str = "global/pg_control";

/// What could be made of `global/pg_control`.
#[derive(Clone, PartialEq, Debug)]
pub enum ControlState {
    /// Read, with a right checksum.
    Right(ControlFile),
    /// Read, but its checksum is wrong: its fields are not to be trusted.
    WrongCrc(ControlFile),
    /// Read, and that of another cluster: its fields are not to be trusted.
    Foreign {
        /// What it says.
        control: ControlFile,
        /// The system identifier of the cluster, by its WAL.
        of_wal: u64,
    },
    /// Read, and older than the cluster: its checkpoint is not where recovery begins.
    Older {
        /// What it says.
        control: ControlFile,
        /// The last checkpoint in `pg_wal`.
        checkpoint: Lsn,
    },
    /// It makes no sense.
    Fault(ControlFault),
    /// It cannot be read.
    Unreadable(String),
}

impl ControlState {
    /// The file, if its checksum is right.
    pub fn trusted(&self) -> Option<&ControlFile> {
        match self {
            ControlState::Right(control) => Some(control),
            _ => None,
        }
    }

    /// What was read, before it was held against `pg_wal`.
    pub(crate) fn before_judged(self) -> Self {
        match self {
            ControlState::Foreign { control, .. } | ControlState::Older { control, .. } => {
                ControlState::Right(control)
            }
            other => other,
        }
    }
}

pub(crate) fn read_version(source: &dyn Source) -> Result<Option<u16>, OpenError> {
    let text = match read_all(source, "PG_VERSION", 64) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).trim().to_owned(),
        Err(error) if error.kind == SourceErrorKind::NotFound => {
            return match Presence::of_file(source, CONTROL_FILE) {
                Presence::There(_) => Ok(None),
                Presence::Missing if major_of_databases(source).is_some() => Ok(None),
                Presence::Missing => Err(OpenError::NoCluster {
                    missing: "PG_VERSION",
                }),
                Presence::Unreadable(error) => Err(error.into()),
            };
        }
        // The control file tells the major as well.
        Err(error) => {
            return match Presence::of_file(source, CONTROL_FILE) {
                Presence::There(_) => Ok(None),
                _ => Err(error.into()),
            };
        }
    };
    match text.parse::<u16>() {
        Ok(major) if Layout::of_major(major).is_some() => Ok(Some(major)),
        _ if text.parse::<f32>().is_ok() => Err(OpenError::Version { found: text }),
        _ => Ok(None),
    }
}

pub(crate) fn read_control(source: &dyn Source) -> Result<ControlState, OpenError> {
    let bytes = match read_all(source, CONTROL_FILE, FILE_BYTES as u64 * 2) {
        Ok(bytes) => bytes,
        Err(error) if error.kind == SourceErrorKind::NotFound => {
            return match Presence::of_directory(source, "base") {
                Presence::There(_) | Presence::Unreadable(_) => {
                    Ok(ControlState::Unreadable(error.to_string()))
                }
                Presence::Missing => Err(OpenError::NoCluster {
                    missing: "global/pg_control",
                }),
            };
        }
        Err(error) => return Ok(ControlState::Unreadable(error.to_string())),
    };
    match ControlFile::parse(&bytes) {
        Ok(control) if control.crc_is_right() => Ok(ControlState::Right(control)),
        Ok(control) => Ok(ControlState::WrongCrc(control)),
        Err(ControlFault::BigEndian) => Err(OpenError::ByteOrder),
        Err(fault) => Ok(ControlState::Fault(fault)),
    }
}

/// A build with longer or shorter names is legal, and every catalog looks different there. Lengths
/// that no build has are left to the checks.
pub(crate) fn refuse_other_names(control: &ControlState) -> Result<(), OpenError> {
    let bytes = control.trusted().map(|control| control.name_data_len);
    let other = bytes
        .filter(|bytes| *bytes != 64 && (16..=8192).contains(bytes) && bytes.is_multiple_of(4));
    other.map_or(Ok(()), |bytes| Err(OpenError::NameLength { bytes }))
}

/// A right control file decides; without one, `PG_VERSION` does.
pub(crate) fn choose_layout(
    major: Option<u16>,
    control: &ControlState,
) -> Result<&'static Layout, OpenError> {
    let by_version = major.and_then(Layout::of_major);
    let by_control = control
        .trusted()
        .and_then(|control| Layout::of_catalog_version(control.catalog_version_no));
    if let (Some(version), Some(control)) = (by_version, by_control)
        && version.major != control.major
    {
        let why = format!(
            "PG_VERSION says {} and the control file {}, and PG_VERSION of the databases and WAL do not settle it: one of them is from another cluster. Bring back the one that is not of this cluster, from a backup",
            version.major, control.major
        );
        return Err(OpenError::Contradiction { why });
    }
    by_control.or(by_version).ok_or_else(|| OpenError::Version {
        found: "an unknown version: PG_VERSION and the control file are both unreadable".into(),
    })
}
