//! Where tablespaces lie, by the records of `CREATE TABLESPACE` that `pg_wal` still has, and which
//! were dropped.
//!
//! Truth: `xl_tblspc_create_rec` and `xl_tblspc_drop_rec` in `src/include/commands/tablespace.h`.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_format::wal::Record;
use pgclinic_format::{Lsn, Oid};

use crate::cluster::Cluster;
use crate::wal::last_checkpoint::Search;

/// `RM_TBLSPC_ID`.
const MANAGER: u8 = 5;
/// `XLOG_TBLSPC_CREATE`.
const CREATE: u8 = 0x00;
/// `XLOG_TBLSPC_DROP`.
const DROP: u8 = 0x10;
/// The path follows the OID, and ends with a zero.
const PATH_AT: usize = 4;

/// Where a tablespace was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedTablespace {
    /// Where the record stands.
    pub at: Lsn,
    /// The directory that its link leads to.
    pub path: String,
}

/// What WAL says of tablespaces.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LoggedTablespaces {
    /// By OID, the last record of each.
    pub made: BTreeMap<Oid, LoggedTablespace>,
    /// Those with a record of `DROP TABLESPACE`: no OID is given twice.
    pub dropped: BTreeSet<Oid>,
}

impl Cluster {
    /// Every segment is read.
    pub fn logged_tablespaces(&self) -> LoggedTablespaces {
        let mut logged = LoggedTablespaces::default();
        let shape = self.recovery().map(|recovery| recovery.shape);
        let search = shape.and_then(|shape| Search::new(self.source.as_ref(), shape));
        let Some(search) = search else { return logged };
        for number in search.files.segments.keys() {
            search.each_record(*number, |record| {
                logged.made.extend(tablespace(record));
                logged.dropped.extend(dropped(record));
                true
            });
        }
        logged
    }
}

fn tablespace(record: &Record<'_>) -> Option<(Oid, LoggedTablespace)> {
    let header = record.header;
    if header.manager != MANAGER || header.operation() != CREATE {
        return None;
    }
    let (oid, path) = record.main.split_at_checked(PATH_AT)?;
    let end = path.iter().position(|byte| *byte == 0)?;
    let path = String::from_utf8(path.get(..end)?.to_vec()).ok()?;
    let at = record.lsn;
    Some((
        u32::from_le_bytes(*oid.first_chunk()?),
        LoggedTablespace { at, path },
    ))
}

fn dropped(record: &Record<'_>) -> Option<Oid> {
    let header = record.header;
    let is_drop = header.manager == MANAGER && header.operation() == DROP;
    let oid = record.main.first_chunk().filter(|_| is_drop)?;
    Some(u32::from_le_bytes(*oid))
}
