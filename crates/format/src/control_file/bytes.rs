//! A control file written from its fields, for a cluster that has lost its own.
//!
//! Truth: `WriteControlFile` in `src/backend/access/transam/xlog.c`, `RewriteControlFile` in
//! `src/bin/pg_resetwal/pg_resetwal.c`.

use super::{
    CHECKSUM_VERSION_AT, Checkpoint, ControlFile, FILE_BYTES, FLOAT_FORMAT_AT, State, seal,
};
use crate::build::put_bytes;
use crate::types::Oid;

/// `sizeof(CheckPoint)` in bytes, in 13 to 18.
pub const CHECKPOINT_STRUCT_BYTES: usize = 88;

/// `XLOG_CHECKPOINT_SHUTDOWN`'s data, but for what [`Checkpoint`] says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CheckpointRest {
    /// The database with `oldestXid`.
    pub oldest_xid_database: Oid,
    /// The database with `oldestMulti`.
    pub oldest_multi_database: Oid,
}

impl State {
    fn number(self) -> u32 {
        match self {
            State::StartingUp => 0,
            State::ShutDown => 1,
            State::ShutDownInRecovery => 2,
            State::ShuttingDown => 3,
            State::InCrashRecovery => 4,
            State::InArchiveRecovery => 5,
            State::InProduction => 6,
            State::Unknown(other) => other,
        }
    }
}

impl Checkpoint {
    /// As it stands in the control file and in the record of a checkpoint. Full images of pages are
    /// on, and 18's `wal_level` is minimal, as `pg_resetwal` writes them.
    pub fn to_bytes(&self, rest: CheckpointRest) -> Vec<u8> {
        let mut out = Writer::new(vec![0; CHECKPOINT_STRUCT_BYTES]);
        out.u64(0, self.redo.0);
        out.u32(8, self.timeline);
        out.u32(12, self.prev_timeline);
        out.put(16, &[1]);
        out.u64(24, self.next_full_xid);
        out.u32(32, self.next_oid);
        out.u32(36, self.next_multi.0);
        out.u32(40, self.next_multi_offset);
        out.u32(44, self.oldest_xid.0);
        out.u32(48, rest.oldest_xid_database);
        out.u32(52, self.oldest_multi.0);
        out.u32(56, rest.oldest_multi_database);
        out.u64(64, self.time.cast_unsigned());
        out.u32(72, self.oldest_commit_ts_xid.0);
        out.u32(76, self.newest_commit_ts_xid.0);
        out.u32(80, self.oldest_active_xid.0);
        out.bytes
    }
}

impl ControlFile {
    /// The whole file with a right checksum; `checkpoint` is the copy of the checkpoint's record.
    /// What this type does not know of is taken from `base`, the bytes of a file that could be
    /// trusted, or is zero.
    pub fn to_bytes(&self, checkpoint: &[u8], base: &[u8]) -> Vec<u8> {
        let mut bytes = base.to_vec();
        bytes.resize(FILE_BYTES, 0);
        let mut out = Writer::new(bytes);
        out.u64(0, self.system_identifier);
        out.u32(8, self.pg_control_version);
        out.u32(12, self.catalog_version_no);
        out.u32(16, self.state.number());
        out.u64(24, self.checkpoint.time.cast_unsigned());
        out.u64(32, self.checkpoint_lsn.0);
        out.put(
            40,
            checkpoint
                .get(..CHECKPOINT_STRUCT_BYTES)
                .unwrap_or(checkpoint),
        );
        out.u64(136, self.min_recovery_point.0);
        out.u32(144, self.min_recovery_timeline);
        out.u64(152, self.backup_start.0);
        out.u32(172, self.wal_level);
        out.u32(180, self.max_connections);
        out.u32(184, self.max_worker_processes);
        out.u32(192, self.max_prepared_transactions);
        out.put(200, &[u8::from(self.track_commit_timestamp)]);
        out.u32(204, self.max_align);
        out.put(FLOAT_FORMAT_AT, &1_234_567.0f64.to_le_bytes());
        self.put_build(&mut out);
        seal(&mut out.bytes);
        out.bytes
    }

    fn put_build(&self, out: &mut Writer) {
        out.u32(216, self.blcksz);
        out.u32(220, self.relseg_size);
        out.u32(224, self.xlog_blcksz);
        out.u32(228, self.xlog_seg_size);
        out.u32(232, self.name_data_len);
        out.u32(236, self.index_max_keys);
        out.u32(240, self.toast_max_chunk_size);
        out.u32(244, self.loblksize);
        // float8ByVal: every build with 8-byte pointers.
        out.put(248, &[1]);
        out.u32(CHECKSUM_VERSION_AT, self.data_checksum_version);
        if let Some(signed) = self.default_char_signedness {
            out.put(256, &[u8::from(signed)]);
        }
    }
}

/// Places of the file that [`ControlFile`] has no fields for.
pub mod places {
    /// `unloggedLSN`.
    pub const UNLOGGED_LSN: usize = 128;
    /// `backupEndPoint`.
    pub const BACKUP_END: usize = 160;
    /// `backupEndRequired`.
    pub const BACKUP_END_REQUIRED: usize = 168;
    /// `wal_level`.
    pub const WAL_LEVEL: usize = 172;
    /// `wal_log_hints`.
    pub const WAL_LOG_HINTS: usize = 176;
    /// `max_wal_senders`.
    pub const MAX_WAL_SENDERS: usize = 188;
    /// `max_locks_per_xact`.
    pub const MAX_LOCKS_PER_XACT: usize = 196;
}

/// Little-endian fields at fixed places.
struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    fn new(bytes: Vec<u8>) -> Self {
        Writer { bytes }
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        put_bytes(&mut self.bytes, at, value);
    }

    fn u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_le_bytes());
    }

    fn u64(&mut self, at: usize, value: u64) {
        self.put(at, &value.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::sound_control_file;

    #[test]
    fn a_file_written_from_its_fields_reads_the_same() {
        let bytes = sound_control_file(8192);
        let control = ControlFile::parse(&bytes).expect("a control file");
        let rest = CheckpointRest {
            oldest_xid_database: 1,
            oldest_multi_database: 1,
        };
        let checkpoint = control.checkpoint.to_bytes(rest);
        assert_eq!(
            Checkpoint::parse(&checkpoint),
            Some(control.checkpoint.clone())
        );
        let written = ControlFile::parse(&control.to_bytes(&checkpoint, &[])).expect("a file");
        assert!(written.crc_is_right());
        let expected = ControlFile {
            crc_stored: written.crc_stored,
            crc_computed: written.crc_computed,
            ..control
        };
        assert_eq!(written, expected);
    }
}
