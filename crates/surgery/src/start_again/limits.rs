//! The numbers with which a cluster goes on whose WAL is lost, each from evidence in its files.
//!
//! ```text
//! control file ─┐
//! WAL records  ─┤
//! pages        ─┼─► the highest of each kind ─► checkpoint, position
//! status files ─┤
//! names        ─┘
//! ```

use pgclinic_format::control_file::{Checkpoint, CheckpointRest};
use pgclinic_format::{ControlFile, Lsn, Xid};
use pgclinic_model::{plural, verb_of};

use super::ground::Ground;
use super::numbers::Numbers;
use super::page_counters::PageCounters;
use super::status_ends::time_stamps;
use crate::error::Result;

/// The numbers to go on with.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Limits {
    pub(super) control: ControlFile,
    /// The data of the checkpoint's record.
    pub(super) checkpoint: Vec<u8>,
    /// The begin of the new segment.
    pub(super) segment: Lsn,
    /// Name, value and its reason, in the order of `pg_controldata`.
    pub(super) reasons: Vec<(&'static str, String, String)>,
    pub(super) unlogged_lsn: Lsn,
    /// WAL has no later checkpoint than the control file.
    pub(super) is_control_last: bool,
    pub(super) warnings: Vec<String>,
}

/// Where each number comes from.
struct Whys {
    identifier: String,
    position: String,
    timeline: String,
    next_xid: String,
    next_oid: String,
    next_multi: String,
    checksums: String,
}

impl Ground<'_> {
    /// The numbers that follow from all evidence.
    pub(super) fn limits(&self, pages: &PageCounters) -> Result<Limits> {
        let numbers = pages.numbers();
        let next_xid = self.next_xid(&numbers);
        let (full, epoch_why) = self.with_epoch(next_xid.value);
        let next_multi = self.next_multi(&numbers);
        let next_oid = self.next_oid(&numbers);
        let timeline = self.timeline();
        let position = self.position(&numbers);
        let segment = self.segment_after(position.value)?;
        let (oldest_ts, newest_ts) =
            time_stamps(self.cluster, self.oldest_xid.value).unwrap_or((Xid(0), Xid(0)));
        let at = Lsn(segment.0.saturating_add(LONG_HEADER_BYTES));
        let checkpoint = Checkpoint {
            redo: at,
            timeline: timeline.value,
            prev_timeline: timeline.value,
            next_full_xid: full,
            next_oid: next_oid.value,
            next_multi: next_multi.value.0,
            next_multi_offset: next_multi.value.1,
            oldest_xid: self.oldest_xid.value,
            oldest_multi: self.oldest_multi.value,
            time: self.last_checkpoint().map_or(0, |own| own.time),
            oldest_commit_ts_xid: oldest_ts,
            newest_commit_ts_xid: newest_ts,
            // A shutdown leaves none.
            oldest_active_xid: Xid(0),
        };
        let bytes = checkpoint.to_bytes(CheckpointRest {
            oldest_xid_database: self.oldest_xid_database,
            oldest_multi_database: self.oldest_multi_database,
        });
        let (control, identifier) = self.new_control(checkpoint, pages);
        let whys = Whys {
            identifier,
            position: position.why,
            timeline: timeline.why,
            next_xid: format!("{}; {epoch_why}", next_xid.why),
            next_oid: next_oid.why,
            next_multi: next_multi.why,
            checksums: self.checksum_why(pages),
        };
        let reasons = self.reasons(&control, whys);
        let unlogged = numbers
            .unlogged_lsn
            .as_ref()
            .map_or(Lsn(0), |own| own.value);
        Ok(Limits {
            control,
            checkpoint: bytes,
            segment,
            reasons,
            unlogged_lsn: Lsn(unlogged.0.max(FIRST_UNLOGGED_LSN).saturating_add(1)),
            is_control_last: self.is_control_last(),
            warnings: self.warnings(&numbers, pages),
        })
    }

    fn reasons(&self, control: &ControlFile, whys: Whys) -> Vec<(&'static str, String, String)> {
        let of_time_stamps = || "the files of pg_commit_ts".to_owned();
        let checkpoint = &control.checkpoint;
        let epoch = checkpoint.next_full_xid >> 32;
        vec![
            (
                "Database system identifier",
                control.system_identifier.to_string(),
                whys.identifier,
            ),
            (
                "Latest checkpoint's REDO location",
                checkpoint.redo.to_string(),
                whys.position,
            ),
            (
                "Latest checkpoint's TimeLineID",
                checkpoint.timeline.to_string(),
                whys.timeline,
            ),
            (
                "Latest checkpoint's NextXID",
                format!("{epoch}:{}", checkpoint.next_xid().0),
                whys.next_xid,
            ),
            (
                "Latest checkpoint's NextOID",
                checkpoint.next_oid.to_string(),
                whys.next_oid,
            ),
            (
                "Latest checkpoint's NextMultiXactId",
                checkpoint.next_multi.to_string(),
                whys.next_multi.clone(),
            ),
            (
                "Latest checkpoint's NextMultiOffset",
                checkpoint.next_multi_offset.to_string(),
                whys.next_multi,
            ),
            (
                "Latest checkpoint's oldestXID",
                checkpoint.oldest_xid.0.to_string(),
                self.oldest_xid.why.clone(),
            ),
            (
                "Latest checkpoint's oldestMultiXid",
                checkpoint.oldest_multi.to_string(),
                self.oldest_multi.why.clone(),
            ),
            (
                "Latest checkpoint's oldestCommitTsXid",
                checkpoint.oldest_commit_ts_xid.0.to_string(),
                of_time_stamps(),
            ),
            (
                "Latest checkpoint's newestCommitTsXid",
                checkpoint.newest_commit_ts_xid.0.to_string(),
                of_time_stamps(),
            ),
            (
                "Data page checksum version",
                control.data_checksum_version.to_string(),
                whys.checksums,
            ),
        ]
    }

    fn warnings(&self, numbers: &Numbers, pages: &PageCounters) -> Vec<String> {
        let far = pages.far();
        let mut warnings: Vec<String> = far.warning().into_iter().collect();
        if let Some(one) = &numbers.one_beyond {
            let xid = self.oldest_xid.value.0.wrapping_add(one.value);
            warnings.push(format!(
                "{} transaction numbers of rows lie farther than pg_xact and WAL reach and are not believed, among them {xid} at {}",
                numbers.beyond, one.at
            ));
        }
        let mut younger = numbers.younger_pages;
        if self.last_checkpoint().is_some() {
            younger = younger.saturating_add(far.believed_pages);
        }
        if younger > 0 {
            warnings.push(format!(
                "{younger} {were} changed after the redo point of the last known checkpoint: what else was changed then, and did not reach the files, is lost and cannot be counted", younger = plural(younger, "page"), were = verb_of(younger, "were")));
        }
        warnings
    }
}

/// Bytes before the first record of a segment.
const LONG_HEADER_BYTES: u64 = 40;
/// `FirstNormalUnloggedLSN`.
const FIRST_UNLOGGED_LSN: u64 = 1000;
