//! The WAL of a cluster read for what it tells of a table: the last of it, as far as it is without
//! a gap.

use pgclinic_cluster::Cluster;
use pgclinic_cluster::wal::Recovery;
use pgclinic_format::Lsn;
use pgclinic_format::wal::{FileNumber, WalEnd, WalPages, WalReader};

use super::counting::Counting;
use super::rates::{Rates, Writing};

/// Bytes of WAL that are read: the last of it.
const WAL_BYTES_MAX: u64 = 4 << 30;

/// What the WAL of a cluster tells of the table with these files; `classes` are those of `pg_class`
/// in its database.
pub(super) fn writing(cluster: &Cluster, table: FileNumber, classes: FileNumber) -> Writing {
    match read(cluster, table, classes) {
        Ok(rates) => Writing::Counted(rates),
        Err(why) => Writing::Unknown { why },
    }
}

fn read(cluster: &Cluster, table: FileNumber, classes: FileNumber) -> Result<Rates, String> {
    let recovery = cluster
        .recovery()
        .ok_or("global/pg_control, which says where WAL ends, cannot be trusted")?;
    if let Some(trouble) = recovery.files.troubles.first()
        && recovery.files.is_unreadable
    {
        return Err(format!("{}: {}", trouble.what, trouble.why));
    }
    if recovery.files.segments.is_empty() {
        return Err("pg_wal holds no WAL".to_owned());
    }
    let newest = newest(cluster, recovery);
    let (begin, cut) = begin(cluster, recovery, newest);
    let mut reading = Reading {
        cluster,
        recovery,
        newest,
        counting: Counting::of(table, classes),
        notes: cut.into_iter().collect(),
    };
    reading.go_through(begin);
    reading.counting.rates(reading.notes)
}

/// The last place that is known to hold a record.
fn newest(cluster: &Cluster, recovery: &Recovery) -> Lsn {
    let replayed = cluster.replay().map(|replay| replay.end.record);
    let start = recovery.start;
    start
        .redo
        .max(start.checkpoint)
        .max(replayed.unwrap_or(Lsn(0)))
}

/// The first segment of the last WAL without a gap, and words where only the end of it is read.
fn begin(cluster: &Cluster, recovery: &Recovery, newest: Lsn) -> (Lsn, Option<String>) {
    let shape = &recovery.shape;
    let oldest = cluster.wal_survey().map_or(0, |survey| survey.oldest);
    let oldest = Lsn(oldest.saturating_mul(u64::from(shape.segment_bytes)));
    let floor = shape.segment_of(Lsn(newest.0.saturating_sub(WAL_BYTES_MAX)));
    let cut = format!("only its last {} GiB were read", WAL_BYTES_MAX >> 30);
    (oldest.max(floor), (floor > oldest).then_some(cut))
}

/// Goes through WAL.
struct Reading<'a> {
    cluster: &'a Cluster,
    recovery: &'a Recovery,
    newest: Lsn,
    counting: Counting,
    notes: Vec<String>,
}

impl Reading<'_> {
    /// Reads from the segment at `begin` to the newest record. Where records break, only what
    /// stands behind the break counts.
    fn go_through(&mut self, begin: Lsn) {
        let shape = self.recovery.shape;
        let mut at = begin;
        let mut broken = None;
        // Each turn moves on by a segment at least, and all of them together are bounded in bytes.
        while at <= self.newest {
            let Some(end) = self.stretch(at) else { break };
            let number = shape.segment_number(end.at.max(end.record).max(at));
            let next = number.saturating_add(1);
            if next > shape.segment_number(self.newest) {
                broken = Some(format!("what stands after a break does not count: {end}"));
                break;
            }
            broken = Some(format!("what stands before a break does not count: {end}"));
            self.counting = self.counting.anew();
            at = Lsn(next.saturating_mul(u64::from(shape.segment_bytes)));
        }
        self.notes.extend(broken);
    }

    /// Reads from a segment on; the place where the records break before the newest.
    fn stretch(&mut self, at: Lsn) -> Option<WalEnd> {
        let pages = self.recovery.pages(self.cluster.source().as_ref());
        let mut reader = WalReader::new(pages, self.recovery.shape, at);
        let broken = match reader.find_first() {
            Ok(_) => self.follow(&mut reader),
            Err(end) => Some(end),
        };
        for trouble in &reader.pages().troubles {
            self.notes
                .push(format!("{}: {}", trouble.what, trouble.why));
        }
        broken
    }

    fn follow(&mut self, reader: &mut WalReader<impl WalPages>) -> Option<WalEnd> {
        while reader.position() <= self.newest {
            match reader.read() {
                Ok(record) => self.counting.record(&record, self.recovery.shape.major),
                Err(end) if end.record >= self.newest => return None,
                Err(end) => return Some(end),
            }
        }
        None
    }
}
