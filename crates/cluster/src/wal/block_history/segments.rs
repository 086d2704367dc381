//! Segments that `pg_wal` lacks between the redo point and the end, and an archive has: the records
//! through them must hang together.
//!
//! ```text
//! redo point ── checkpoint of the control file ── segment of an archive ── own segment ── end
//! ```
//!
//! Where the cluster has a segment of its own, that one counts. Truth: `XLogFileReadAnyTLI` in
//! `src/backend/access/transam/xlogrecovery.c`.

use std::io::Read;

use pgclinic_format::backup_manifest::WalRange;
use pgclinic_format::wal::{Event, Shape, WalEnd, WalReader, WholeRecord};
use pgclinic_format::{ControlFile, Lsn};
use pgclinic_source::decompressed;

use super::copied_pages::CopiedPages;
use super::goal::is_checkpoint_of;
use super::one_history::{HistorySearch, OneHistory};
use super::wal_copies::{SegmentCopy, WalCopies};
use super::{Evidence, all_copies};
use crate::cluster::Cluster;
use crate::wal::files::Timelines;
use crate::wal::replay::goes_on;
use crate::wal::{LabelState, Recovery, StartKind};

/// More bytes would make a journal that is too long to be read again.
const BYTES_MAX: u64 = 128 << 20;

/// A segment that comes back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundSegment {
    /// Where it belongs, from the root of the data directory.
    pub path: String,
    /// All of it.
    pub bytes: Vec<u8>,
    /// The file, and where it lies.
    pub found_in: String,
}

/// All of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundSegments {
    /// In the order of their numbers.
    pub segments: Vec<FoundSegment>,
    /// Records were read from here …
    pub from: Lsn,
    /// … to here.
    pub end: Lsn,
    /// The last record is in a segment of the cluster's own, or is the checkpoint with which the
    /// server was shut down: nothing came after it.
    pub is_whole: bool,
    /// They are for a base backup whose label is lost, which is to be made before a server starts.
    pub label_is_lost: bool,
}

/// What of the WAL that the server reads when it starts is missing in `pg_wal` and is found; `None`
/// where nothing is missing. A backup or standby needs WAL up to where it is consistent.
///
/// # Errors
///
/// Why what was found does not lead from the redo point to the end.
pub fn missing_segments(
    cluster: &Cluster,
    evidence: &Evidence<'_>,
) -> Result<Option<FoundSegments>, String> {
    let (Some(control), Some(recovery)) = (cluster.control.trusted(), cluster.recovery()) else {
        return Ok(None);
    };
    let is_settled = recovery.start.kind == StartKind::Settled;
    if cluster.is_running() || cluster.is_partial() || recovery.files.is_unreadable {
        return Ok(None);
    }
    let shape = recovery.shape;
    let mut copies = all_copies(cluster, evidence, recovery);
    copies.prefer_own();
    let target = recovery.timelines.target();
    let timelines = Timelines::to(target, &copies.histories, &shape);
    let lost_label = cluster.lost_label();
    let begin = recovery.start.redo.min(recovery.start.checkpoint);
    let from = lost_label.map_or(begin, |backup| begin.min(backup.start));
    let chain = ChainSearch {
        cluster,
        control,
        recovery,
        lost_label,
        copies: &copies,
        timelines: &timelines,
        from,
        is_settled,
    };
    let mut history = OneHistory::default();
    // Each round leaves out more copies, or is the last one.
    loop {
        let (pages, broken, outcome) = chain.read(&history);
        let next = chain.decide(broken);
        if let Some(open) = &next.open {
            return Err(open.why().to_string());
        }
        if next.left_out_count() <= history.left_out_count() {
            let last = outcome?;
            let found = found(&copies, &pages, &shape, (from, last), is_settled)?;
            return Ok(found.map(|found| FoundSegments {
                label_is_lost: lost_label.is_some(),
                ..found
            }));
        }
        history = next;
    }
}

/// The records from the redo point on, in whichever copies they lie.
struct ChainSearch<'a> {
    cluster: &'a Cluster,
    control: &'a ControlFile,
    recovery: &'a Recovery,
    /// What a backup without its label needs.
    lost_label: Option<WalRange>,
    copies: &'a WalCopies,
    timelines: &'a Timelines,
    from: Lsn,
    is_settled: bool,
}

impl<'a> ChainSearch<'a> {
    /// Which copies count of the segments up to `end`.
    fn decide(&self, end: Lsn) -> OneHistory {
        let shape = self.recovery.shape;
        let checkpoint = self.control.checkpoint_lsn;
        let limit = if self.is_settled {
            checkpoint.0.saturating_add(1)
        } else {
            u64::MAX
        };
        let search = HistorySearch {
            cluster: self.cluster,
            control: self.control,
            shape,
            copies: self.copies,
            timelines: self.timelines,
            limit: Lsn(limit),
        };
        let last = shape.segment_number(Lsn(end.0.saturating_sub(1)));
        search.decide(shape.segment_number(self.from)..=last)
    }

    /// Up to where the server needs WAL before it lets anybody in, where that is farther than the
    /// checkpoint.
    fn consistent_from(&self) -> Option<Lsn> {
        let is_from_standby =
            matches!(&self.recovery.label, LabelState::Read(label) if label.from_standby);
        let is_by_control = self.recovery.start.kind == StartKind::Archive || is_from_standby;
        let by_control = is_by_control.then_some(self.control.min_recovery_point);
        by_control.max(self.lost_label.map(|backup| backup.end))
    }

    /// The end of the backup is waited for.
    fn awaits_backup_end(&self) -> bool {
        self.recovery.start.kind == StartKind::Backup && self.consistent_from().is_none()
    }

    /// Reads them as far as they hang together; where that ends, and whether it is their end.
    fn read<'h>(&self, history: &'h OneHistory) -> (CopiedPages<'h>, Lsn, Result<Lsn, String>)
    where
        'a: 'h,
    {
        let shape = self.recovery.shape;
        let pages = CopiedPages::new(shape, self.copies, self.timelines, history);
        let mut reader = WalReader::new(pages, shape, self.from);
        let at = self.control.checkpoint_lsn;
        let (mut is_met, mut awaits_end) = (false, self.awaits_backup_end());
        let end = loop {
            let broken = match reader.read_whole() {
                Ok(record) if awaits_end && self.is_backup_end(&record) => {
                    awaits_end = false;
                    continue;
                }
                Ok(record) if record.lsn == at => {
                    let own = record.parse();
                    is_met = own.is_ok_and(|own| is_checkpoint_of(&own, shape.major, self.control));
                    if self.is_settled {
                        break Ok(record.end);
                    }
                    continue;
                }
                Ok(_) => continue,
                Err(end) => end,
            };
            if !reader.pages_mut().try_another_copy(broken.record) {
                break Err(broken);
            }
        };
        let reached = end.unwrap_or_else(|end| end.record);
        let outcome = match end {
            Ok(end) if is_met => Ok(end),
            Err(end) if is_met && awaits_end => Err(format!(
                "WAL is found up to {}, before the end of the backup",
                end.record
            )),
            Err(end) if is_met => self.last_record(end),
            Ok(_) => Err("it is not the one that the control file has".to_owned()),
            Err(end) => Err(end.to_string()),
        };
        let outcome = outcome.map_err(|why| {
            if is_met {
                return why;
            }
            format!("the checkpoint record at {at} is not found: {why}")
        });
        (reader.into_pages(), reached, outcome)
    }

    /// The record with which the backup of the label ended.
    fn is_backup_end(&self, record: &WholeRecord<'_>) -> bool {
        let major = self.recovery.shape.major;
        let start = self.recovery.start.redo;
        let own = record.parse();
        own.is_ok_and(|own| Event::of(&own, major) == Event::BackupEnd(start))
    }

    /// Where WAL ends by itself, and is not broken off.
    fn last_record(&self, end: WalEnd) -> Result<Lsn, String> {
        if let Some(needed) = self.consistent_from().filter(|needed| end.record < *needed) {
            return Err(format!(
                "WAL is found up to {}, and the server needs it up to {needed}",
                end.record
            ));
        }
        let number = self.recovery.shape.segment_number(end.at);
        let is_cut = end.at > end.record && !self.copies.has(number, self.timelines);
        if is_cut {
            return Err(format!(
                "no directory has the WAL at {}, in which a record goes on",
                end.at
            ));
        }
        let source = self.cluster.source().as_ref();
        let is_crash = self.recovery.start.kind == StartKind::Crash;
        if let Some(page) = goes_on(source, self.recovery, end).filter(|_| is_crash) {
            return Err(format!(
                "WAL goes on at {page}, and no directory has all from {} on",
                end.record
            ));
        }
        Ok(end.record)
    }
}

/// The segments of the chain that are not the cluster's own.
fn found(
    copies: &WalCopies,
    pages: &CopiedPages<'_>,
    shape: &Shape,
    (from, end): (Lsn, Lsn),
    is_settled: bool,
) -> Result<Option<FoundSegments>, String> {
    let last = shape.segment_number(Lsn(end.0.saturating_sub(1)));
    let numbers = shape.segment_number(from)..=last;
    let chosen = numbers.filter_map(|number| Some((number, pages.chosen(number)?)));
    let missing: Vec<(u64, &SegmentCopy)> = chosen.filter(|(_, copy)| !copy.is_own()).collect();
    let bytes = u64::from(shape.segment_bytes).saturating_mul(missing.len() as u64);
    if bytes > BYTES_MAX {
        let files: Vec<String> = missing.iter().map(|(_, copy)| copies.words(copy)).collect();
        return Err(format!(
            "{} segments are missing, {bytes} bytes, and one plan puts {BYTES_MAX} at most in place: copy them to pg_wal by hand, decompressed ({})",
            missing.len(),
            files.join(", ")
        ));
    }
    let segments: Result<Vec<FoundSegment>, String> = missing
        .iter()
        .map(|(number, copy)| {
            let name = shape.segment_name(copy.timeline, *number);
            let found_in = copies.words(copy);
            let bytes = whole_segment(copies, copy, shape)
                .ok_or_else(|| format!("{found_in} cannot be read whole"))?;
            Ok(FoundSegment {
                path: format!("pg_wal/{name}"),
                bytes,
                found_in,
            })
        })
        .collect();
    let segments = segments?;
    let ends_in_own = missing.iter().all(|(number, _)| *number != last);
    Ok((!segments.is_empty()).then_some(FoundSegments {
        segments,
        from,
        end,
        is_whole: is_settled || ends_in_own,
        label_is_lost: false,
    }))
}

fn whole_segment(copies: &WalCopies, copy: &SegmentCopy, shape: &Shape) -> Option<Vec<u8>> {
    let directory = copies.directory_of(copy)?;
    let file = decompressed(&directory.source, &copy.path).ok()?;
    let mut bytes = Vec::new();
    let expected = u64::from(shape.segment_bytes);
    let read = file
        .take(expected.saturating_add(1))
        .read_to_end(&mut bytes);
    (read.ok()? as u64 == expected).then_some(bytes)
}
