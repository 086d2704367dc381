//! The control file of a cluster whose WAL begins anew.

use pgclinic_cluster::Cluster;
use pgclinic_format::control_file::{Checkpoint, State};
use pgclinic_format::{ControlFile, Lsn};
use pgclinic_model::{plural, verb_of};

use super::ground::Ground;
use super::page_counters::PageCounters;

impl Ground<'_> {
    /// As after a shutdown, with the settings that `pg_resetwal` notes; the server notes its own
    /// when it starts.
    pub(super) fn new_control(
        &self,
        checkpoint: Checkpoint,
        pages: &PageCounters,
    ) -> (ControlFile, String) {
        let (cluster, shape) = (self.cluster, &self.wal.shape);
        let layout = cluster.layout;
        let (identifier, why) = self.identifier();
        let own = self.control();
        let checksums = own.map_or(u32::from(pages.has_checksums()), |control| {
            control.data_checksum_version
        });
        let segment_blocks = u32::try_from(cluster.build.segment_blocks()).unwrap_or(u32::MAX);
        let control = ControlFile {
            system_identifier: identifier,
            pg_control_version: layout.control_version,
            catalog_version_no: layout.catalog_version,
            state: State::ShutDown,
            checkpoint_lsn: checkpoint.redo,
            checkpoint,
            min_recovery_point: Lsn(0),
            max_connections: 100,
            max_worker_processes: 8,
            max_prepared_transactions: 0,
            wal_level: 0,
            track_commit_timestamp: self.keeps_time_stamps(),
            min_recovery_timeline: 0,
            backup_start: Lsn(0),
            blcksz: cluster.build.block_size,
            relseg_size: segment_blocks,
            xlog_blcksz: shape.page_bytes,
            xlog_seg_size: shape.segment_bytes,
            name_data_len: own.map_or(64, |control| control.name_data_len),
            index_max_keys: own.map_or(32, |control| control.index_max_keys),
            toast_max_chunk_size: cluster.build.toast_chunk,
            loblksize: cluster.build.block_size / 4,
            max_align: 8,
            data_checksum_version: checksums,
            // 18 notes whether `char` is signed; it is on x86.
            default_char_signedness: (layout.major >= 18)
                .then(|| own.and_then(|control| control.default_char_signedness))
                .map(|own| own.unwrap_or(true)),
            crc_stored: 0,
            crc_computed: 0,
            crc_at: 0,
        };
        (control, why)
    }

    /// The server removes time stamps when it starts and this says that none were kept.
    fn keeps_time_stamps(&self) -> bool {
        let noted = self.control().is_some_and(|own| own.track_commit_timestamp);
        noted || keeps_time_stamps(self.cluster)
    }

    fn identifier(&self) -> (u64, String) {
        if let Some(control) = self.control() {
            return (control.system_identifier, "the control file".into());
        }
        if let Some(identifier) = self.wal.shape.system_identifier {
            return (identifier, "the heads of WAL segments".into());
        }
        let manifest = self.cluster.manifest();
        if let Some(identifier) = manifest.and_then(|own| own.system_identifier) {
            return (identifier, "backup_manifest".into());
        }
        // Any number will do as long as no other cluster has it by chance.
        let names = self.cluster.databases.values().map(|own| own.name.clone());
        let text = format!("{:?}{:?}", names.collect::<Vec<_>>(), self.oldest_xid);
        let hash = blake3::hash(text.as_bytes());
        let number = hash
            .as_bytes()
            .first_chunk()
            .map_or(1, |own| u64::from_le_bytes(*own));
        (number >> 1, "made up: nothing that is left says".into())
    }

    pub(super) fn checksum_why(&self, pages: &PageCounters) -> String {
        match self.control() {
            Some(_) => "the control file".into(),
            None => format!(
                "{} of {} {} a right checksum",
                pages.checksums_right,
                plural(pages.pages, "page"),
                verb_of(pages.checksums_right, "carry")
            ),
        }
    }
}

/// The settings of the cluster keep time stamps of commits.
pub(super) fn keeps_time_stamps(cluster: &Cluster) -> bool {
    let setting = cluster.setting("track_commit_timestamp");
    setting.is_some_and(|value| matches!(value.as_str(), "on" | "true" | "yes" | "1"))
}
