//! What a background scrub of a server's files says of itself. The program reads the files; signs
//! are made of what it says.

use std::path::PathBuf;

use pgclinic_model::document::DamagedPage;

/// A server as far as its files have to be found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerOnDisk {
    /// `data_directory`, where the role may know it.
    pub data_directory: Option<PathBuf>,
    /// Of the cluster, where the role may know it.
    pub system_identifier: Option<String>,
    /// When the server started, in seconds since 1970 by its own clock.
    pub started: f64,
}

/// How a scrub stands.
#[derive(Debug, Clone, Default)]
pub struct ScrubStatus {
    /// Now, by the clock that all moments here are of.
    pub clock: f64,
    /// Since when scrubs of these files are asked for, over restarts.
    pub asked_since: f64,
    /// When the last complete one ended.
    pub complete_at: Option<f64>,
    /// One is reading now.
    pub is_reading: bool,
    /// How much is done of what was left when it began or went on, 0 to 1.
    pub progress: Option<f64>,
    /// Pages checked: by the last complete one, and by the one that is reading.
    pub pages: Vec<(&'static str, u64)>,
    /// Bytes that the last complete one could not read, or passed over.
    pub unread_bytes: Option<u64>,
    /// Findings of damage by rule.
    pub damage: Vec<(String, u64)>,
    /// Damaged pages by relation.
    pub damaged_pages: Vec<(String, u64)>,
    /// Which they are.
    pub places: Vec<DamagedPage>,
    /// Those that are not listed.
    pub places_omitted: u64,
    /// Why none can read.
    pub stopped: Option<String>,
}

/// Gives the status of the scrub of one server, and lets it go on.
pub struct ScrubSource(pub Box<dyn FnMut(&ServerOnDisk) -> ScrubStatus + Send>);

impl std::fmt::Debug for ScrubSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ScrubSource")
    }
}
