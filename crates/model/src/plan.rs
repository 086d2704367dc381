//! What would be written to a cluster, as plain data: shown before, undone after.
//!
//! Only the crate `surgery` carries a patch out.

use serde::{Deserialize, Serialize};

/// How sure a cure is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Safety {
    /// Never applied by the tool.
    ShowOnly,
    /// May lose rows.
    Lossy,
    /// Provably restores what was there.
    Exact,
}

/// One change to one file. Paths are relative to the data directory.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Bytes replaced, without changing the file's length.
    Bytes {
        /// The file.
        path: String,
        /// Offset of the first byte in the file.
        offset: u64,
        /// What must be there, or nothing is written.
        #[serde(with = "crate::plan::base64_bytes")]
        before: Vec<u8>,
        /// What is written, as many bytes.
        #[serde(with = "crate::plan::base64_bytes")]
        after: Vec<u8>,
    },
    /// The file cut to a length; what was cut off is kept beside the journal.
    Cut {
        /// The file.
        path: String,
        /// Its length afterwards, in bytes.
        len: u64,
        /// File in the journal's folder that keeps the bytes.
        kept: String,
    },
    /// The file made longer, or made.
    Extend {
        /// The file.
        path: String,
        /// Its length before, in bytes; null where it is missing.
        before: Option<u64>,
        /// What is written after its end.
        #[serde(with = "crate::plan::base64_bytes")]
        after: Vec<u8>,
    },
    /// The file made longer, or made, with bytes that are too many for a journal.
    Append {
        /// The file.
        path: String,
        /// Its length before, in bytes; null where it is missing.
        before: Option<u64>,
        /// How many bytes are written after its end.
        len: u64,
        /// File beside the journal that holds them.
        from: String,
        /// Their BLAKE3, in hexadecimal.
        blake3: String,
    },
    /// The file removed; it is kept beside the journal.
    Remove {
        /// The file.
        path: String,
        /// File in the journal's folder that keeps the bytes.
        kept: String,
    },
    /// The file made, or made anew as a whole: these bytes, then zeros.
    Write {
        /// The file.
        path: String,
        /// What it begins with.
        #[serde(with = "crate::plan::base64_bytes")]
        bytes: Vec<u8>,
        /// Its length in bytes; zeros follow what it begins with.
        len: u64,
        /// File in the journal's folder that keeps what was there; absent where nothing was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kept: Option<String>,
    },
    /// A directory made.
    Directory {
        /// The directory.
        path: String,
    },
    /// An empty directory removed.
    RemoveDirectory {
        /// The directory.
        path: String,
    },
    /// Permission bits of a file or directory; `.` is the data directory.
    Mode {
        /// The file or directory.
        path: String,
        /// What they must be, or nothing is written.
        before: u32,
        /// What they become.
        after: u32,
    },
    /// A symbolic link made.
    Link {
        /// The link.
        path: String,
        /// Where it leads.
        target: String,
    },
}

impl Change {
    /// The file it changes.
    pub fn path(&self) -> &str {
        match self {
            Change::Bytes { path, .. }
            | Change::Cut { path, .. }
            | Change::Remove { path, .. }
            | Change::Extend { path, .. }
            | Change::Append { path, .. }
            | Change::Write { path, .. }
            | Change::Directory { path }
            | Change::RemoveDirectory { path }
            | Change::Mode { path, .. }
            | Change::Link { path, .. } => path,
        }
    }

    /// Of a change that makes the file longer: its length before, and how many bytes come behind
    /// that.
    pub fn growth(&self) -> Option<(Option<u64>, u64)> {
        match self {
            Change::Extend { before, after, .. } => Some((*before, after.len() as u64)),
            Change::Append { before, len, .. } => Some((*before, *len)),
            _ => None,
        }
    }

    /// File in the journal's folder that keeps what the change takes away.
    pub fn kept(&self) -> Option<&str> {
        match self {
            Change::Cut { kept, .. } | Change::Remove { kept, .. } => Some(kept),
            Change::Write { kept, .. } => kept.as_deref(),
            Change::Bytes { .. }
            | Change::Extend { .. }
            | Change::Append { .. }
            | Change::Directory { .. }
            | Change::RemoveDirectory { .. }
            | Change::Mode { .. }
            | Change::Link { .. } => None,
        }
    }
}

/// Changes that belong together, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Patch {
    /// In the order in which they are written; undone in the opposite order.
    pub changes: Vec<Change>,
}

/// Bytes as base64 text in JSON.
pub mod base64_bytes {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes base64.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    /// Reads base64.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}
