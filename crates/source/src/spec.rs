//! What a source is, as plain data that can travel to another machine.

use std::num::NonZeroU64;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{
    BackupChain, ChainShape, Clock, DataDirectory, Limit, Overlay, Result, SingleFile, Source,
    SourceError, SourceErrorKind, TarBackup,
};

/// Enough to rebuild a source where the same files can be reached.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SourceSpec {
    /// A data directory, or any folder.
    DataDirectory {
        /// As it was given; relative ones depend on the working directory.
        path: PathBuf,
    },
    /// One relation file with its segments and forks.
    SingleFile {
        /// The first segment of the main fork, or whatever file was given.
        path: PathBuf,
    },
    /// A base backup as tar archives.
    TarBackup {
        /// `base.tar`, packed or not, or any other archive.
        path: PathBuf,
        /// Where what comes out of packed archives is kept.
        spill_folder: PathBuf,
    },
    /// A full backup and the incremental ones on it.
    Chain {
        /// In order, the full one first.
        links: Vec<SourceSpec>,
        /// Bytes of a block.
        block_bytes: u32,
        /// Blocks of a full segment.
        segment_blocks: u32,
    },
    /// Files in memory; only the process that filled it has them.
    Memory {
        /// A name for messages.
        name: String,
    },
    /// The files of a running server, read through it; only the process that is connected has them.
    Server {
        /// Its URL, without a password.
        url: String,
    },
    /// Another source with changes laid over it.
    Overlay {
        /// What lies below.
        under: Box<SourceSpec>,
        /// Applied in this order.
        patches: Vec<OverlayPatch>,
    },
    /// Another source after a recovery in memory; only the process that did it has the result.
    Replayed {
        /// What lies below.
        under: Box<SourceSpec>,
    },
    /// Another source at a bounded rate.
    Limit {
        /// What lies below.
        under: Box<SourceSpec>,
        /// The rate over time; short bursts go beyond it.
        bytes_per_second: NonZeroU64,
    },
}

impl SourceSpec {
    /// The bytes come out of tar archives.
    pub fn is_tar(&self) -> bool {
        match self {
            Self::TarBackup { .. } => true,
            Self::Overlay { under, .. } | Self::Replayed { under } | Self::Limit { under, .. } => {
                under.is_tar()
            }
            Self::DataDirectory { .. }
            | Self::SingleFile { .. }
            | Self::Chain { .. }
            | Self::Memory { .. }
            | Self::Server { .. } => false,
        }
    }

    /// The bytes come from a running server, through itself.
    pub fn is_server(&self) -> bool {
        match self {
            Self::Server { .. } => true,
            Self::Overlay { under, .. } | Self::Replayed { under } | Self::Limit { under, .. } => {
                under.is_server()
            }
            Self::DataDirectory { .. }
            | Self::SingleFile { .. }
            | Self::TarBackup { .. }
            | Self::Chain { .. }
            | Self::Memory { .. } => false,
        }
    }

    /// Builds the source again. One in memory cannot be: its bytes are not part of the spec.
    pub fn open(&self, clock: &Arc<dyn Clock>) -> Result<Arc<dyn Source>> {
        Ok(match self {
            Self::DataDirectory { path } => Arc::new(DataDirectory::open(path)?),
            Self::SingleFile { path } => Arc::new(SingleFile::open(path)?),
            Self::TarBackup { path, spill_folder } => {
                let mut go_on = |_| ControlFlow::Continue(());
                Arc::new(TarBackup::open(path, spill_folder, &mut go_on)?)
            }
            Self::Chain {
                links,
                block_bytes,
                segment_blocks,
            } => {
                let links: Result<Vec<_>> = links.iter().map(|link| link.open(clock)).collect();
                let shape = ChainShape {
                    block_bytes: *block_bytes,
                    segment_blocks: *segment_blocks,
                };
                Arc::new(BackupChain::new(links?, shape)?)
            }
            Self::Memory { name } => {
                let why = "a source in memory exists only in the process that filled it";
                return Err(SourceError::new(name, SourceErrorKind::Refused, why));
            }
            Self::Server { url } => {
                let why = "only the process that is connected to a server reads its files";
                return Err(SourceError::new(url, SourceErrorKind::Refused, why));
            }
            Self::Overlay { under, patches } => {
                Arc::new(Overlay::new(under.open(clock)?, patches.clone())?)
            }
            Self::Replayed { under } => {
                let why = "a recovery in memory exists only in the process that did it";
                let name = format!("{under:?}");
                return Err(SourceError::new(&name, SourceErrorKind::Refused, why));
            }
            Self::Limit {
                under,
                bytes_per_second,
            } => Arc::new(Limit::new(
                under.open(clock)?,
                *bytes_per_second,
                Arc::clone(clock),
            )),
        })
    }
}

/// One change that an overlay shows without touching a file. Later ones see the result of earlier ones.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum OverlayPatch {
    /// Replaces bytes. Past the end the file grows, a gap reads as zeros, and a file that is not there is created.
    Bytes {
        /// The file.
        path: String,
        /// First byte that changes.
        offset: u64,
        /// What is there now.
        bytes: Vec<u8>,
    },
    /// Ends the file after `len` bytes; a shorter file stays as it is.
    Cut {
        /// The file.
        path: String,
        /// Bytes that remain.
        len: u64,
    },
    /// Lengthens the file with zeros to `len` bytes; a longer file stays as it is.
    Grow {
        /// The file.
        path: String,
        /// Bytes that it has then.
        len: u64,
    },
    /// Takes the file away.
    Remove {
        /// The file.
        path: String,
    },
}

impl OverlayPatch {
    /// The file that the change concerns.
    pub fn path(&self) -> &str {
        match self {
            Self::Bytes { path, .. }
            | Self::Cut { path, .. }
            | Self::Grow { path, .. }
            | Self::Remove { path } => path,
        }
    }
}
