//! Relation maps that records of WAL hold: each record has the whole map of a database, or of the
//! shared catalogs, so that the last one is the map whose file is lost.
//!
//! Truth: `relmap_redo` in `src/backend/utils/cache/relmapper.c`, `dbase_redo` in
//! `src/backend/commands/dbcommands.c`.

use std::collections::BTreeMap;

use pgclinic_format::wal::{Event, Record, WalReader};
use pgclinic_format::{Lsn, Oid};

use crate::cluster::Cluster;
use crate::wal::recovery::{Recovery, StartKind};
use crate::wal::replay::relation_map_in;

/// The map of a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedMap {
    /// Where the record stands.
    pub at: Lsn,
    /// The bytes of the file.
    pub bytes: Vec<u8>,
}

/// The last map of each database in `pg_wal`; 0 is that of the shared catalogs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedMaps {
    /// Why there is something to replay.
    pub kind: StartKind,
    /// Where recovery begins.
    pub redo: Lsn,
    /// Records hang together up to here.
    pub end: Lsn,
    before_redo: BTreeMap<Oid, LoggedMap>,
    since_redo: BTreeMap<Oid, LoggedMap>,
}

impl Cluster {
    /// Reads WAL from the first record after which it hangs together up to the checkpoint and
    /// beyond. `None` where it does not reach the checkpoint.
    pub fn logged_maps(&self) -> Option<LoggedMaps> {
        let recovery = self.recovery()?;
        if !recovery.timelines.is_known() {
            return None;
        }
        let shape = recovery.shape;
        let last = shape.segment_number(recovery.start.redo);
        let mut next = *recovery.files.segments.keys().next()?;
        // Each turn begins in a later segment.
        while next <= last {
            match self.maps_from(recovery, next) {
                Ok(maps) => return Some(maps),
                Err(broken_at) => {
                    let there = recovery.files.segments.range(next.max(broken_at) + 1..);
                    next = *there.map(|(number, _)| number).next()?;
                }
            }
        }
        None
    }

    /// The maps of records from this segment on; else the segment in which they break.
    fn maps_from(&self, recovery: &Recovery, segment: u64) -> Result<LoggedMaps, u64> {
        let begin = segment.saturating_mul(u64::from(recovery.shape.segment_bytes));
        let pages = recovery.pages(self.source.as_ref());
        let mut reader = WalReader::new(pages, recovery.shape, Lsn(begin));
        reader.find_first().map_err(|_| segment)?;
        let mut maps = LoggedMaps {
            kind: recovery.start.kind,
            redo: recovery.start.redo,
            end: Lsn(begin),
            before_redo: BTreeMap::new(),
            since_redo: BTreeMap::new(),
        };
        let (mut has_redo, mut has_checkpoint) = (false, false);
        while let Ok(record) = reader.read() {
            has_redo |= record.lsn == recovery.start.redo;
            has_checkpoint |= record.lsn == recovery.start.checkpoint;
            maps.end = record.end;
            maps.record(
                &record,
                recovery.shape.major,
                self.layout.relation_map_bytes,
            );
        }
        let is_whole = has_redo && has_checkpoint && reader.pages().troubles.is_empty();
        if is_whole {
            return Ok(maps);
        }
        Err(recovery.shape.segment_number(maps.end))
    }
}

impl LoggedMaps {
    /// The map with which a server starts: what recovery writes over it is right afterwards. Where
    /// nothing says how far recovery goes, that of before it begins.
    pub fn of(&self, database: Oid) -> Option<&LoggedMap> {
        let before = self.before_redo.get(&database);
        match self.kind {
            StartKind::Settled | StartKind::Crash => self.since_redo.get(&database).or(before),
            StartKind::Backup | StartKind::Archive => before,
        }
    }

    fn record(&mut self, record: &Record<'_>, major: u16, map_bytes: usize) {
        match Event::of(record, major) {
            Event::RelationMap { database } => {
                let bytes = relation_map_in(record).filter(|own| own.len() == map_bytes);
                let map = bytes.map(|bytes| LoggedMap {
                    at: record.lsn,
                    bytes: bytes.to_vec(),
                });
                self.replace(database, record.lsn, map);
            }
            // Files of another database are copied, with its map. Those of the same one are moved
            // to another tablespace, and keep theirs.
            Event::DatabaseCreated { database, .. } if copied_from(record) != Some(database) => {
                self.replace(database, record.lsn, None);
            }
            _ => {}
        }
    }

    fn replace(&mut self, database: Oid, at: Lsn, map: Option<LoggedMap>) {
        self.since_redo.remove(&database);
        let maps = if at < self.redo {
            &mut self.before_redo
        } else {
            &mut self.since_redo
        };
        match map {
            Some(map) => maps.insert(database, map),
            None => self.before_redo.remove(&database),
        };
    }
}

/// `src_db_id`, in records of files that are copied.
fn copied_from(record: &Record<'_>) -> Option<Oid> {
    const SOURCE_AT: usize = 8;
    let source = record.main.get(SOURCE_AT..)?.first_chunk()?;
    Some(u32::from_le_bytes(*source))
}
