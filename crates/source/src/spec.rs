//! What a source is, as plain data that can travel to another machine.

use std::num::NonZeroU64;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
}

/// One change that an overlay shows without touching a file. Later ones see the result of earlier
/// ones.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum OverlayPatch {
    /// Replaces bytes. Past the end the file grows, a gap reads as zeros, and a file that is not
    /// there is created.
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
