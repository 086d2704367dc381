//! Exact figures of a server's files, which the program measures from time to time.

use serde::{Deserialize, Serialize};

/// What a measurement gave: the worst of each figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MeasuredFigures {
    /// Of what was measured.
    pub system_identifier: Option<String>,
    /// Bytes of dead row versions by relation, the most first.
    pub dead_bytes: Vec<(String, u64)>,
    /// Bytes that new items may take, by relation, the most first.
    pub free_bytes: Vec<(String, u64)>,
    /// How full the leaves are, 0 to 1, by index, the emptiest first.
    pub index_density: Vec<(String, f64)>,
    /// System catalogs with their bytes and those of dead row versions, the largest first.
    pub catalogs: Vec<(String, u64, u64)>,
    /// Bytes of values that may be compressed or moved out, by what was done with them.
    #[serde(default)]
    pub toast_bytes: Vec<(String, u64)>,
    /// Large objects and their bytes, and those that no column refers to, by database.
    #[serde(default)]
    pub large_objects: Vec<LargeObjects>,
}

/// The large objects of a database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeObjects {
    /// Its name.
    pub database: String,
    /// All of them.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those that no column of type `oid` or `lo` refers to.
    pub orphans: u64,
    /// Their bytes.
    pub orphan_bytes: u64,
}

/// How measurements stand.
#[derive(Debug, Clone, Default)]
pub struct MeasuredStatus {
    /// Now, by the clock that all moments here are of.
    pub clock: f64,
    /// Since when measurements are asked for, over restarts.
    pub asked_since: f64,
    /// When the last complete one ended.
    pub ended_at: Option<f64>,
    /// When the files were written last, where no server writes them.
    pub files_at: Option<f64>,
    /// What it gave.
    pub figures: MeasuredFigures,
    /// Why none can be made.
    pub stopped: Option<String>,
}
