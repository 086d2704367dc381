//! The chunks of a TOAST relation as runs: chunks of one value that follow each other.

use std::io;

use pgclinic_cluster::{Cluster, RowState, Visibility};
use pgclinic_format::{BlockNo, Oid, Varlena, Xid};
use pgclinic_spill::{SortedRecords, SortedRuns};

use crate::relation_check::RelationCx;
use crate::toast::chunks::chunks;

/// Chunks of one value that follow each other in the file and in their numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) value: Oid,
    pub(crate) first_seq: u32,
    pub(crate) last_seq: u32,
    /// Bytes of their data.
    pub(crate) bytes: u64,
    /// All but the last are of full size.
    pub(crate) full: bool,
    /// The last one is of full size too.
    pub(crate) last_full: bool,
    /// Every new transaction sees all of them, beyond doubt.
    pub(crate) live: bool,
    /// Who wrote the first one.
    pub(crate) xmin: Xid,
    /// Where the first one stands.
    pub(crate) block: BlockNo,
    pub(crate) item: u16,
}

const VALUE_BYTES: usize = 24;

impl Run {
    fn key(&self) -> [u8; 8] {
        let mut key = [0; 8];
        key[..4].copy_from_slice(&self.value.to_be_bytes());
        key[4..].copy_from_slice(&self.first_seq.to_be_bytes());
        key
    }

    fn record(&self) -> [u8; VALUE_BYTES] {
        let mut record = [0; VALUE_BYTES];
        record[..4].copy_from_slice(&self.last_seq.to_le_bytes());
        record[4..12].copy_from_slice(&self.bytes.to_le_bytes());
        record[12..16].copy_from_slice(&self.block.to_le_bytes());
        record[16..18].copy_from_slice(&self.item.to_le_bytes());
        record[18] = u8::from(self.full) | u8::from(self.last_full) << 1 | u8::from(self.live) << 2;
        record[20..24].copy_from_slice(&self.xmin.0.to_le_bytes());
        record
    }

    fn parse(key: &[u8], record: &[u8]) -> Option<Run> {
        let (value, first) = key.split_first_chunk()?;
        let flags = *record.get(18)?;
        Some(Run {
            value: Oid::from_be_bytes(*value),
            first_seq: u32::from_be_bytes(*first.first_chunk()?),
            last_seq: u32::from_le_bytes(*record.first_chunk()?),
            bytes: u64::from_le_bytes(*record.get(4..)?.first_chunk()?),
            full: flags & 1 != 0,
            last_full: flags & 2 != 0,
            live: flags & 4 != 0,
            xmin: Xid(u32::from_le_bytes(*record.get(20..)?.first_chunk()?)),
            block: BlockNo::from_le_bytes(*record.get(12..)?.first_chunk()?),
            item: u16::from_le_bytes(*record.get(16..)?.first_chunk()?),
        })
    }
}

/// All runs by value and first number.
pub(crate) struct Runs {
    records: SortedRecords,
    next: Option<Run>,
}

impl Runs {
    fn new(sorted: SortedRuns) -> io::Result<Runs> {
        let mut runs = Runs {
            records: sorted.finish()?,
            next: None,
        };
        runs.advance()?;
        Ok(runs)
    }

    fn advance(&mut self) -> io::Result<()> {
        let record = self.records.next().transpose()?;
        self.next = record.and_then(|(key, record)| Run::parse(&key, &record));
        Ok(())
    }

    /// The next value.
    pub(crate) fn value(&self) -> Option<Oid> {
        self.next.map(|run| run.value)
    }

    /// Takes the runs of this value, which is the next one or none. Of more than `most` runs the
    /// first are kept, and one more.
    pub(crate) fn take(&mut self, value: Oid, most: usize, into: &mut Vec<Run>) -> io::Result<()> {
        into.clear();
        while let Some(run) = self.next.filter(|run| run.value == value) {
            if into.len() <= most {
                into.push(run);
            }
            self.advance()?;
        }
        Ok(())
    }
}

/// Reads every live chunk of the TOAST relation.
pub(crate) fn collect_runs(
    relation: &RelationCx<'_>,
    cluster: &Cluster,
    memory_bytes: usize,
) -> io::Result<Runs> {
    let full = usize::try_from(relation.fork.build.toast_chunk).unwrap_or(usize::MAX);
    let mut sorted = SortedRuns::new(memory_bytes, relation.spill_folder)?;
    let mut open: Option<Run> = None;
    let mut pages = relation.pages();
    let visibility = Visibility::new(cluster);
    for block in 0..BlockNo::try_from(relation.fork.blocks).unwrap_or(BlockNo::MAX) {
        if relation.is_interrupted() {
            break;
        }
        let Some(page) = pages.page(block) else {
            continue;
        };
        for chunk in chunks(page) {
            let (Some(value), Some(seq)) = (chunk.chunk_id, chunk.chunk_seq) else {
                continue;
            };
            let state = visibility.state(chunk.stored.tuple);
            let (Ok(seq), true) = (u32::try_from(seq), state.may_count()) else {
                continue;
            };
            let live = state == RowState::Visible;
            let bytes = match chunk.chunk_data {
                Some((Varlena::Short(data) | Varlena::Plain(data), _)) => data.len(),
                _ => 0,
            };
            match &mut open {
                Some(run) if run.value == value && seq == run.last_seq.wrapping_add(1) => {
                    run.full &= run.last_full;
                    run.last_full = bytes == full;
                    run.last_seq = seq;
                    run.live &= live;
                    run.bytes += bytes as u64;
                }
                other => {
                    if let Some(run) = other.take() {
                        sorted.push(&run.key(), &run.record())?;
                    }
                    *other = Some(Run {
                        value,
                        first_seq: seq,
                        last_seq: seq,
                        bytes: bytes as u64,
                        full: true,
                        last_full: bytes == full,
                        live,
                        xmin: chunk.stored.tuple.t_xmin(),
                        block,
                        item: chunk.stored.number,
                    });
                }
            }
        }
    }
    if let Some(run) = open {
        sorted.push(&run.key(), &run.record())?;
    }
    Runs::new(sorted)
}
