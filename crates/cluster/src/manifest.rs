//! Whether a folder is a base backup, and what its manifest says.
//!
//! The first start of a restored backup renames `backup_label` and leaves the manifest, which then means nothing any more.

use pgclinic_format::backup_manifest::BackupManifest;
use pgclinic_source::{Presence, Source, SourceErrorKind, read_all};

use crate::cluster::Cluster;

/// The manifest's name.
pub const MANIFEST: &str = "backup_manifest";

/// Bytes of a manifest that are read: some two million files.
pub const MANIFEST_BYTES: u64 = 256 << 20;

/// `backup_manifest`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ManifestState {
    /// Read.
    Read(BackupManifest),
    /// It is there and no manifest.
    Wrong(String),
    /// It cannot be read.
    Unreadable(String),
}

impl ManifestState {
    /// The manifest of a backup that no server has started on; `None` for anything else.
    pub(crate) fn read(source: &dyn Source, labelled: bool) -> Option<Self> {
        if !labelled {
            return None;
        }
        let bytes = match read_all(source, MANIFEST, MANIFEST_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == SourceErrorKind::NotFound => return None,
            Err(error) => return Some(ManifestState::Unreadable(error.why)),
        };
        Some(match BackupManifest::parse(&bytes) {
            Ok(manifest) => ManifestState::Read(manifest),
            Err(why) => ManifestState::Wrong(why),
        })
    }
}

impl Cluster {
    /// A base backup on which no server has started: `backup_manifest` and `backup_label` lie side by side.
    pub fn is_base_backup(&self) -> bool {
        self.labelled && !Presence::of_file(self.source.as_ref(), MANIFEST).is_missing()
    }

    /// The files come from a base backup, with a manifest or without: main forks of unlogged relations are not among them.
    pub fn leaves_unlogged_out(&self) -> bool {
        self.labelled
    }

    /// What the manifest of a base backup says, read once.
    pub fn manifest(&self) -> Option<&BackupManifest> {
        match self.manifest_state()? {
            ManifestState::Read(manifest) => Some(manifest),
            ManifestState::Wrong(_) | ManifestState::Unreadable(_) => None,
        }
    }

    /// The manifest of a base backup, or what is wrong with it.
    pub fn manifest_state(&self) -> Option<&ManifestState> {
        let read = || ManifestState::read(self.source.as_ref(), self.labelled);
        self.manifest.get_or_init(read).as_ref()
    }
}
