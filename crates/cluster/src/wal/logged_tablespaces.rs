//! Where tablespaces lie, by the records of `CREATE TABLESPACE` that `pg_wal` still has.
//!
//! Truth: `xl_tblspc_create_rec` in `src/include/commands/tablespace.h`.

use std::collections::BTreeMap;

use pgclinic_format::wal::Record;
use pgclinic_format::{Lsn, Oid};

use crate::cluster::Cluster;
use crate::wal::last_checkpoint::Search;

/// `RM_TBLSPC_ID`.
const MANAGER: u8 = 5;
/// `XLOG_TBLSPC_CREATE`.
const CREATE: u8 = 0x00;
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

impl Cluster {
    /// By OID, the last record of each. Every segment is read.
    pub fn logged_tablespaces(&self) -> BTreeMap<Oid, LoggedTablespace> {
        let mut made = BTreeMap::new();
        let shape = self.recovery().map(|recovery| recovery.shape);
        let search = shape.and_then(|shape| Search::new(self.source.as_ref(), shape));
        let Some(search) = search else { return made };
        for number in search.files.segments.keys() {
            search.each_record(*number, |record| {
                made.extend(tablespace(record));
                true
            });
        }
        made
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
