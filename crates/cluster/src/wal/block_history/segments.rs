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

use pgclinic_format::Lsn;
use pgclinic_format::wal::{Shape, WalReader};
use pgclinic_source::decompressed;

use super::copied_pages::CopiedPages;
use super::goal::is_checkpoint_of;
use super::wal_copies::{SegmentCopy, WalCopies};
use super::{Evidence, directories};
use crate::cluster::Cluster;
use crate::wal::StartKind;
use crate::wal::files::Timelines;
use crate::wal::replay::goes_on;

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
}

/// What of the WAL that the server reads when it starts is missing in `pg_wal` and is found; `None`
/// where nothing is missing, or where WAL comes from elsewhere.
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
    let is_settled = match recovery.start.kind {
        StartKind::Settled => true,
        StartKind::Crash => false,
        StartKind::Backup | StartKind::Archive => return Ok(None),
    };
    if cluster.is_running() || cluster.is_partial() || recovery.files.is_unreadable {
        return Ok(None);
    }
    let shape = recovery.shape;
    let mut copies = WalCopies::list(directories(cluster, evidence), &shape);
    copies.prefer_own();
    let target = recovery.timelines.target();
    let timelines = Timelines::to(target, &copies.histories, &shape);
    let pages = CopiedPages::new(shape, &copies, &timelines);
    let from = recovery.start.redo.min(recovery.start.checkpoint);
    let mut reader = WalReader::new(pages, shape, from);
    let (major, mut is_met) = (cluster.layout.major, false);
    let end = loop {
        let broken = match reader.read_whole() {
            Ok(record) if record.lsn == control.checkpoint_lsn => {
                let own = record.parse();
                is_met = own.is_ok_and(|own| is_checkpoint_of(&own, major, control));
                if is_settled {
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
    let pages = reader.into_pages();
    let at = control.checkpoint_lsn;
    if !is_met {
        let why = end.err().map_or(
            "it is not the one that the control file has".to_owned(),
            |end| end.to_string(),
        );
        return Err(format!("the checkpoint record at {at} is not found: {why}"));
    }
    let last = match end {
        Ok(end) => end,
        Err(end) => {
            let is_cut =
                end.at > end.record && !copies.has(shape.segment_number(end.at), &timelines);
            if is_cut {
                return Err(format!(
                    "no directory has the WAL at {}, in which a record goes on",
                    end.at
                ));
            }
            if let Some(page) = goes_on(cluster.source().as_ref(), recovery, end) {
                return Err(format!(
                    "WAL goes on at {page}, and no directory has all from {} on",
                    end.record
                ));
            }
            end.record
        }
    };
    found(&copies, &pages, &shape, (from, last), is_settled)
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
