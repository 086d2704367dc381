//! What all records of `pg_wal` that can be read say of the numbers that a server counts up,
//! whether or not recovery would reach them.

use pgclinic_format::control_file::Checkpoint;
use pgclinic_format::wal::{Event, Record, Shape};
use pgclinic_format::{Lsn, MultiXactId, Oid, Xid};

use crate::cluster::Cluster;
use crate::wal::files::WalFiles;
use crate::wal::last_checkpoint::{Search, shape_of};

/// Bytes of a page of WAL, where nothing tells otherwise.
const USUAL_PAGE_BYTES: u32 = 8192;
/// Likewise of a segment.
const USUAL_SEGMENT_BYTES: u32 = 16 << 20;
/// `initdb` sets `min_wal_size` to so many segments.
const SEGMENTS_OF_MINIMUM: u64 = 5;

/// The numbers.
#[derive(Clone, PartialEq, Debug)]
pub struct WalCounters {
    /// Sizes and identifier, by the control file or by the heads of most segments; else the usual
    /// ones.
    pub shape: Shape,
    /// Records that were read.
    pub records: u64,
    /// Where the last of them ends.
    pub end: Option<Lsn>,
    /// The highest number in the name of a segment.
    pub last_segment: Option<u64>,
    /// The highest timeline in the name of a segment or a history.
    pub timeline: Option<u32>,
    /// The last checkpoint record, with its place.
    pub checkpoint: Option<(Lsn, Checkpoint)>,
    /// After every transaction that wrote a record.
    pub next_xid: Option<Xid>,
    /// After every OID that was reserved.
    pub next_oid: Oid,
    /// After every multixact that was made, and after its last member.
    pub next_multi: Option<(MultiXactId, u32)>,
}

impl Cluster {
    /// Reads every segment of `pg_wal`, each by itself. `None` where its sizes make no sense.
    pub fn wal_counters(&self) -> Option<WalCounters> {
        let source = self.source.as_ref();
        let by_control = self.control.trusted().and_then(|control| {
            Shape::new(
                self.layout,
                Some(control.system_identifier),
                control.xlog_blcksz,
                control.xlog_seg_size,
                control.blcksz,
            )
        });
        let shape = by_control
            .or_else(|| shape_of(source, self.layout, self.build))
            .or_else(|| {
                let segment = self.segment_bytes_by_settings();
                let page = USUAL_PAGE_BYTES;
                Shape::new(self.layout, None, page, segment, self.build.block_size)
            })?;
        let files = WalFiles::list(source, &shape);
        let names = files.segments.values().flatten().map(|file| file.timeline);
        let mut counters = WalCounters {
            shape,
            records: 0,
            end: None,
            last_segment: files.segments.keys().next_back().copied(),
            timeline: names.chain(files.histories.keys().copied()).max(),
            checkpoint: None,
            next_xid: None,
            next_oid: 0,
            next_multi: None,
        };
        if let Some(search) = Search::new(source, shape) {
            for number in search.files.segments.keys() {
                search.each_record(*number, |record| {
                    counters.record(record);
                    true
                });
            }
        }
        Some(counters)
    }
}

impl Cluster {
    /// What `min_wal_size` tells of the size with which `initdb` made the cluster. The server
    /// refuses a minimum of less than two segments.
    fn segment_bytes_by_settings(&self) -> u32 {
        let minimum = self.setting("min_wal_size").and_then(|own| bytes_of(&own));
        let Some(minimum) = minimum else {
            return USUAL_SEGMENT_BYTES;
        };
        let by_initdb = minimum / SEGMENTS_OF_MINIMUM;
        let is_a_size = |bytes: &u64| bytes.is_power_of_two() && *bytes >= 1 << 20;
        let segment = u32::try_from(by_initdb).ok();
        let segment = segment.filter(|own| is_a_size(&u64::from(*own)));
        segment.unwrap_or_else(|| {
            let sizes = (20..=24u32).rev().map(|power| 1u32 << power);
            let mut fitting = sizes.filter(|own| u64::from(*own).saturating_mul(2) <= minimum);
            fitting.next().unwrap_or(1 << 20)
        })
    }
}

/// A setting of sizes, such as `80mb`; a number alone is megabytes.
fn bytes_of(setting: &str) -> Option<u64> {
    let digits = setting.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match setting.get(digits.len()..)? {
        "kb" => 1 << 10,
        "" | "mb" => 1 << 20,
        "gb" => 1 << 30,
        "tb" => 1u64 << 40,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(factor)
}

impl WalCounters {
    fn record(&mut self, record: &Record<'_>) {
        self.records += 1;
        self.end = self.end.max(Some(record.end));
        if record.header.xid.is_normal() {
            self.used(record.header.xid);
        }
        match Event::of(record, self.shape.major) {
            Event::Checkpoint { checkpoint, .. } => {
                self.next_oid = self.next_oid.max(checkpoint.next_oid);
                self.multi(checkpoint.next_multi, checkpoint.next_multi_offset);
                self.checkpoint = Some((record.lsn, checkpoint));
            }
            Event::NextOid(oid) => self.next_oid = self.next_oid.max(oid),
            Event::MultiXact {
                multi,
                offset,
                count,
                newest,
            } => {
                self.multi(multi.next(), offset.wrapping_add(count));
                self.used(newest);
            }
            Event::Ended(ended) => {
                self.used(ended.xid);
                ended.subxids().for_each(|xid| self.used(xid));
            }
            _ => {}
        }
    }

    fn used(&mut self, xid: Xid) {
        if !xid.is_normal() {
            return;
        }
        let next = xid.next();
        if self.next_xid.is_none_or(|own| own.precedes(next)) {
            self.next_xid = Some(next);
        }
    }

    fn multi(&mut self, next: MultiXactId, offset: u32) {
        if self.next_multi.is_none_or(|(own, _)| own.precedes(next)) {
            self.next_multi = Some((next, offset));
        }
    }
}
