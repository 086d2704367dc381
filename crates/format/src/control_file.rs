//! `global/pg_control`: the cluster's state, build options and last checkpoint.
//!
//! ```text
//! 0        8         12        16      24     32           40                128 … 208     216 …
//! | sysid  | control | catalog | state | time | checkPoint | checkPointCopy | …   | 1234567.0 | build options |
//! ```
//!
//! The places are the same in 13 to 18 up to the checksum version; 18 adds one byte behind it.
//! Truth: `src/include/catalog/pg_control.h`.

mod bytes;

use std::fmt;

use crate::bytes::{u32_at, u64_at};
use crate::types::{Lsn, MultiXactId, Oid, Xid};

pub use bytes::{CHECKPOINT_STRUCT_BYTES, CheckpointRest, places};

/// `PG_CONTROL_FILE_SIZE` in bytes.
pub const FILE_BYTES: usize = 8192;
/// Bytes of a checkpoint up to `newestCommitTsXid`.
const CHECKPOINT_BYTES: usize = 80;
/// Where the double 1234567.0 stands.
const FLOAT_FORMAT_AT: usize = 208;
/// Where `data_checksum_version` stands.
pub const CHECKSUM_VERSION_AT: usize = 252;

/// `DBState`: what the server was doing when it last wrote the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// `DB_STARTUP`.
    StartingUp,
    /// `DB_SHUTDOWNED`: everything is on disk.
    ShutDown,
    /// `DB_SHUTDOWNED_IN_RECOVERY`: a standby that was stopped.
    ShutDownInRecovery,
    /// `DB_SHUTDOWNING`.
    ShuttingDown,
    /// `DB_IN_CRASH_RECOVERY`.
    InCrashRecovery,
    /// `DB_IN_ARCHIVE_RECOVERY`.
    InArchiveRecovery,
    /// `DB_IN_PRODUCTION`: running, or crashed.
    InProduction,
    /// A number no PostgreSQL writes.
    Unknown(u32),
}

impl State {
    fn from_number(number: u32) -> Self {
        match number {
            0 => State::StartingUp,
            1 => State::ShutDown,
            2 => State::ShutDownInRecovery,
            3 => State::ShuttingDown,
            4 => State::InCrashRecovery,
            5 => State::InArchiveRecovery,
            6 => State::InProduction,
            other => State::Unknown(other),
        }
    }

    /// The words of `pg_controldata`.
    pub fn words(self) -> &'static str {
        match self {
            State::StartingUp => "starting up",
            State::ShutDown => "shut down",
            State::ShutDownInRecovery => "shut down in recovery",
            State::ShuttingDown => "shutting down",
            State::InCrashRecovery => "in crash recovery",
            State::InArchiveRecovery => "in archive recovery",
            State::InProduction => "in production",
            State::Unknown(_) => "unrecognized status code",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

/// The last checkpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Checkpoint {
    /// Where replay would begin.
    pub redo: Lsn,
    /// Timeline.
    pub timeline: u32,
    /// The timeline before, which is the same one unless this checkpoint ended a recovery.
    pub prev_timeline: u32,
    /// Next transaction number, with its epoch in the upper half.
    pub next_full_xid: u64,
    /// Next object identifier.
    pub next_oid: Oid,
    /// Next multixact number.
    pub next_multi: MultiXactId,
    /// Next offset among the members of multixacts.
    pub next_multi_offset: u32,
    /// Oldest transaction number still in use anywhere.
    pub oldest_xid: Xid,
    /// Oldest multixact still in use anywhere.
    pub oldest_multi: MultiXactId,
    /// Seconds since 1970.
    pub time: i64,
    /// Oldest transaction with a commit time stamp.
    pub oldest_commit_ts_xid: Xid,
    /// Newest transaction with a commit time stamp.
    pub newest_commit_ts_xid: Xid,
    /// Oldest transaction that was under way when the checkpoint began; 0 in that of a shutdown,
    /// and where `wal_level` is `minimal`.
    pub oldest_active_xid: Xid,
}

impl Checkpoint {
    /// Reads it from the beginning of `bytes`, as it stands in the control file and in the record
    /// of a checkpoint.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        bytes.get(..CHECKPOINT_BYTES)?;
        Some(Fields { bytes }.checkpoint(0))
    }

    /// The next transaction number without its epoch.
    pub fn next_xid(&self) -> Xid {
        Xid((self.next_full_xid & 0xFFFF_FFFF) as u32)
    }
}

/// The live part of the file. Nothing is promised about the sense of its fields; the checksum
/// says whether the server wrote them.
#[derive(Clone, PartialEq, Debug)]
pub struct ControlFile {
    /// Number that tells this cluster from others.
    pub system_identifier: u64,
    /// `PG_CONTROL_VERSION`.
    pub pg_control_version: u32,
    /// `CATALOG_VERSION_NO`.
    pub catalog_version_no: u32,
    /// What the server was doing.
    pub state: State,
    /// Place of the last checkpoint record.
    pub checkpoint_lsn: Lsn,
    /// That record.
    pub checkpoint: Checkpoint,
    /// End of recovery that must be reached before the cluster is consistent.
    pub min_recovery_point: Lsn,
    /// `max_connections`, as the server last ran.
    pub max_connections: u32,
    /// `max_worker_processes`, likewise.
    pub max_worker_processes: u32,
    /// `max_prepared_transactions`, likewise.
    pub max_prepared_transactions: u32,
    /// `wal_level`, as the server last ran: 0 is `minimal`.
    pub wal_level: u32,
    /// `track_commit_timestamp`, as the server last ran.
    pub track_commit_timestamp: bool,
    /// The timeline of that place.
    pub min_recovery_timeline: u32,
    /// Redo point of the base backup whose recovery has begun and not reached its end; 0 otherwise.
    pub backup_start: Lsn,
    /// Bytes in a page, BLCKSZ.
    pub blcksz: u32,
    /// Blocks in a segment, RELSEG_SIZE.
    pub relseg_size: u32,
    /// Bytes in a WAL page.
    pub xlog_blcksz: u32,
    /// Bytes in a WAL segment.
    pub xlog_seg_size: u32,
    /// NAMEDATALEN.
    pub name_data_len: u32,
    /// INDEX_MAX_KEYS.
    pub index_max_keys: u32,
    /// TOAST_MAX_CHUNK_SIZE in bytes.
    pub toast_max_chunk_size: u32,
    /// Bytes in a page of a large object.
    pub loblksize: u32,
    /// MAXIMUM_ALIGNOF.
    pub max_align: u32,
    /// An open number: 0 is off, 1 is on, others are not known here.
    pub data_checksum_version: u32,
    /// Whether `char` is signed, from 18 on.
    pub default_char_signedness: Option<bool>,
    /// The stored checksum.
    pub crc_stored: u32,
    /// The checksum of the bytes as they are.
    pub crc_computed: u32,
    /// Offset of the stored checksum.
    pub crc_at: usize,
}

/// Why a file is no control file that can be read here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ControlFault {
    /// Fewer bytes than the live part has.
    Short {
        /// Bytes there are.
        bytes: usize,
    },
    /// Written by a machine of the other byte order.
    BigEndian,
    /// `pg_control_version` of a PostgreSQL outside 13-18, or damage.
    Version {
        /// The number found.
        pg_control_version: u32,
    },
    /// The test number 1234567.0 is not where it must be.
    FloatFormat,
}

impl fmt::Display for ControlFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControlFault::Short { bytes } => write!(
                f,
                "the control file has {bytes} bytes, fewer than its live part"
            ),
            ControlFault::BigEndian => f.write_str(
                "the cluster was written by a big-endian machine, which is not supported",
            ),
            ControlFault::Version { pg_control_version } => {
                write!(
                    f,
                    "pg_control version {pg_control_version} is not one of PostgreSQL 13-18"
                )
            }
            ControlFault::FloatFormat => {
                f.write_str("the test number 1234567.0 is missing at byte 208 of the control file")
            }
        }
    }
}

/// Where the checksum stands in a file of this `pg_control_version`.
pub fn crc_place(pg_control_version: u32) -> Option<usize> {
    match pg_control_version {
        1300 | 1700 => Some(288),
        1800 => Some(292),
        _ => None,
    }
}

impl ControlFile {
    /// Reads the live part, whether or not its checksum is right: compare `crc_stored` with
    /// `crc_computed`.
    pub fn parse(bytes: &[u8]) -> Result<Self, ControlFault> {
        let version = u32_at(bytes, 8).ok_or(ControlFault::Short { bytes: bytes.len() })?;
        if crc_place(version.swap_bytes()).is_some() {
            return Err(ControlFault::BigEndian);
        }
        let crc_at = crc_place(version).ok_or(ControlFault::Version {
            pg_control_version: version,
        })?;
        if bytes.len() < crc_at + 4 {
            return Err(ControlFault::Short { bytes: bytes.len() });
        }
        let fields = Fields { bytes };
        let control = fields.control_file(version, crc_at);
        if fields.u64(FLOAT_FORMAT_AT) != 1_234_567.0f64.to_bits() {
            return Err(ControlFault::FloatFormat);
        }
        Ok(control)
    }

    /// The checksum is right.
    pub fn crc_is_right(&self) -> bool {
        self.crc_stored == self.crc_computed
    }

    /// Data checksums are on, in any version of them.
    pub fn checksums(&self) -> bool {
        self.data_checksum_version != 0
    }

    /// Bytes in a segment of a relation.
    pub fn segment_bytes(&self) -> u64 {
        u64::from(self.blcksz) * u64::from(self.relseg_size)
    }

    /// The cluster was stopped in good order and has nothing to replay.
    pub fn is_shut_down(&self) -> bool {
        self.state == State::ShutDown
    }
}

/// Writes the right checksum into an edited control file; `false` when it is too short or of
/// an unknown version.
pub fn seal(bytes: &mut [u8]) -> bool {
    let place = u32_at(bytes, 8).and_then(crc_place);
    let Some((live, crc)) = place.and_then(|at| bytes.split_at_mut_checked(at)) else {
        return false;
    };
    let Some(slot) = crc.first_chunk_mut::<4>() else {
        return false;
    };
    *slot = crc32c::crc32c(live).to_le_bytes();
    true
}

struct Fields<'a> {
    bytes: &'a [u8],
}

impl Fields<'_> {
    fn u32(&self, at: usize) -> u32 {
        u32_at(self.bytes, at).unwrap_or_default()
    }

    fn u64(&self, at: usize) -> u64 {
        u64_at(self.bytes, at).unwrap_or_default()
    }

    fn checkpoint(&self, at: usize) -> Checkpoint {
        Checkpoint {
            redo: Lsn(self.u64(at)),
            timeline: self.u32(at + 8),
            prev_timeline: self.u32(at + 12),
            next_full_xid: self.u64(at + 24),
            next_oid: self.u32(at + 32),
            next_multi: MultiXactId(self.u32(at + 36)),
            next_multi_offset: self.u32(at + 40),
            oldest_xid: Xid(self.u32(at + 44)),
            oldest_multi: MultiXactId(self.u32(at + 52)),
            time: self.u64(at + 64).cast_signed(),
            oldest_commit_ts_xid: Xid(self.u32(at + 72)),
            newest_commit_ts_xid: Xid(self.u32(at + 76)),
            oldest_active_xid: Xid(self.u32(at + 80)),
        }
    }

    fn control_file(&self, version: u32, crc_at: usize) -> ControlFile {
        let signedness =
            (version >= 1800).then(|| self.bytes.get(256).is_some_and(|byte| *byte != 0));
        ControlFile {
            system_identifier: self.u64(0),
            pg_control_version: version,
            catalog_version_no: self.u32(12),
            state: State::from_number(self.u32(16)),
            checkpoint_lsn: Lsn(self.u64(32)),
            checkpoint: self.checkpoint(40),
            min_recovery_point: Lsn(self.u64(136)),
            max_connections: self.u32(180),
            max_worker_processes: self.u32(184),
            max_prepared_transactions: self.u32(192),
            wal_level: self.u32(172),
            track_commit_timestamp: self.bytes.get(200).is_some_and(|byte| *byte != 0),
            min_recovery_timeline: self.u32(144),
            backup_start: Lsn(self.u64(152)),
            max_align: self.u32(204),
            blcksz: self.u32(216),
            relseg_size: self.u32(220),
            xlog_blcksz: self.u32(224),
            xlog_seg_size: self.u32(228),
            name_data_len: self.u32(232),
            index_max_keys: self.u32(236),
            toast_max_chunk_size: self.u32(240),
            loblksize: self.u32(244),
            data_checksum_version: self.u32(CHECKSUM_VERSION_AT),
            default_char_signedness: signedness,
            crc_stored: self.u32(crc_at),
            crc_computed: crc32c::crc32c(self.bytes.get(..crc_at).unwrap_or_default()),
            crc_at,
        }
    }
}
