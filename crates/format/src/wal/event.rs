//! What a record tells beyond its blocks: checkpoints, limits, transactions, files.
//!
//! Truth: `src/backend/access/rmgrdesc/*.c` and the redo functions beside them.

use crate::bytes::{u32_at, u64_at};
use crate::control_file::Checkpoint;
use crate::types::{Fork, Lsn, MultiXactId, Oid, Xid};
use crate::wal::block::{FileNumber, fork_of_number};
use crate::wal::record::Record;
use crate::wal::transaction::{self, Ended};

const XLOG: u8 = 0;
const TRANSACTION: u8 = 1;
const STORAGE: u8 = 2;
const CLOG: u8 = 3;
const DATABASE: u8 = 4;
const TABLESPACE: u8 = 5;
const MULTIXACT: u8 = 6;
const RELMAP: u8 = 7;
const STANDBY: u8 = 8;
const COMMIT_TS: u8 = 18;
/// `SMGR_TRUNCATE_HEAP`; `pg_truncate_visibility_map` cuts the map alone.
const TRUNCATES_MAIN_FORK: u32 = 1;
/// Behind six numbers and `wal_log_hints` in `xl_parameter_change`.
const TRACK_COMMIT_TIMESTAMP_AT: usize = 25;

/// A fork of a relation, by its files.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ForkOf {
    /// The files.
    pub file: FileNumber,
    /// The fork.
    pub fork: Fork,
}

/// What a record is about. Everything that only changes blocks is [`Event::Blocks`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event<'a> {
    /// A checkpoint record.
    Checkpoint {
        /// The server was shut down with it.
        shutdown: bool,
        /// What it says.
        checkpoint: Checkpoint,
        /// `PrevTimeLineID`.
        previous_timeline: u32,
    },
    /// Where an online checkpoint began, from 17 on.
    CheckpointRedo,
    /// Object identifiers below this one are taken.
    NextOid(Oid),
    /// The rest of the segment is empty.
    Switch,
    /// A base backup ended that began at this redo point.
    BackupEnd(Lsn),
    /// A server began with other settings that recovery must know.
    ParametersChanged {
        /// `track_commit_timestamp`.
        tracks_commit_time: bool,
    },
    /// `full_page_writes` was changed to this.
    FullPageWrites(bool),
    /// Recovery ended; a timeline may have begun.
    EndOfRecovery {
        /// The new one.
        timeline: u32,
        /// The one before.
        previous: u32,
    },
    /// The record that began there was given up.
    Overwritten(Lsn),
    /// A transaction ended, or was prepared.
    Ended(Ended<'a>),
    /// A multixact was made.
    MultiXact {
        /// Its number.
        multi: MultiXactId,
        /// The offset of its first member.
        offset: u32,
        /// Members.
        count: u32,
        /// The newest transaction among them.
        newest: Xid,
    },
    /// A page of `pg_xact` was made.
    XactPage(u64),
    /// `pg_xact` was cut off before this page.
    XactTruncate {
        /// The page.
        page: u64,
        /// The oldest transaction that is left.
        oldest: Xid,
    },
    /// A page of `pg_multixact/offsets` was made.
    OffsetsPage(u64),
    /// A page of `pg_multixact/members` was made.
    MembersPage(u64),
    /// A page of `pg_commit_ts` was made.
    CommitTsPage(u64),
    /// `pg_multixact` was cut off.
    MultiXactTruncate {
        /// The oldest multixact that is left.
        oldest: MultiXactId,
        /// The offset of its first member.
        offset: u32,
    },
    /// A fork got a file.
    Created(ForkOf),
    /// Forks of a relation were cut.
    Truncated {
        /// The files.
        file: FileNumber,
        /// Blocks that are left of the main fork; nothing where only its maps were cut.
        blocks: Option<u32>,
    },
    /// A database got files that WAL does not hold: replay copies or makes its folder.
    DatabaseCreated {
        /// OID.
        database: Oid,
        /// OID of the tablespace.
        tablespace: Oid,
    },
    /// A database's folders were removed.
    DatabaseDropped {
        /// OID.
        database: Oid,
    },
    /// A tablespace was removed.
    TablespaceDropped(Oid),
    /// A relation map was written.
    RelationMap {
        /// OID of the database, 0 for the shared one.
        database: Oid,
    },
    /// `nextXid` of a list of running transactions.
    Running {
        /// Every transaction there is comes before it.
        next: Xid,
    },
    /// Nothing but its blocks.
    Blocks,
    /// A record of a kind that is known, which is too short for what it should say.
    Short,
}

impl<'a> Event<'a> {
    /// What `record` tells, in WAL of this major.
    pub fn of(record: &Record<'a>, major: u16) -> Event<'a> {
        let (main, operation) = (record.main, record.header.operation());
        let event = match record.header.manager {
            XLOG => xlog(main, operation),
            TRANSACTION => transaction::parse(record, major),
            STORAGE => storage(main, operation),
            CLOG => clog(main, operation, major),
            DATABASE => database(main, operation, major),
            TABLESPACE if operation == 0x10 => u32_at(main, 0).map(Event::TablespaceDropped),
            MULTIXACT => multixact(main, operation, major),
            COMMIT_TS if operation == 0x00 => {
                page_number(main, major).map(|(page, _)| Event::CommitTsPage(page))
            }
            RELMAP => u32_at(main, 0).map(|database| Event::RelationMap { database }),
            STANDBY if operation == 0x10 => {
                u32_at(main, 12).map(|next| Event::Running { next: Xid(next) })
            }
            _ => Some(Event::Blocks),
        };
        event.unwrap_or(Event::Short)
    }
}

fn xlog(main: &[u8], operation: u8) -> Option<Event<'static>> {
    Some(match operation {
        0x00 | 0x10 => Event::Checkpoint {
            shutdown: operation == 0,
            checkpoint: Checkpoint::parse(main)?,
            previous_timeline: u32_at(main, 12)?,
        },
        0x30 => Event::NextOid(u32_at(main, 0)?),
        0x40 => Event::Switch,
        0x50 => Event::BackupEnd(Lsn(u64_at(main, 0)?)),
        0x60 => Event::ParametersChanged {
            tracks_commit_time: *main.get(TRACK_COMMIT_TIMESTAMP_AT)? != 0,
        },
        0x80 => Event::FullPageWrites(*main.first()? != 0),
        0x90 => Event::EndOfRecovery {
            timeline: u32_at(main, 8)?,
            previous: u32_at(main, 12)?,
        },
        0xD0 => Event::Overwritten(Lsn(u64_at(main, 0)?)),
        0xE0 => Event::CheckpointRedo,
        _ => Event::Blocks,
    })
}

fn storage(main: &[u8], operation: u8) -> Option<Event<'static>> {
    Some(match operation {
        0x10 => Event::Created(ForkOf {
            file: FileNumber::at(main, 0)?,
            fork: fork_of_number(u32_at(main, 12)?)?,
        }),
        0x20 => {
            let is_of_main = u32_at(main, 16)? & TRUNCATES_MAIN_FORK != 0;
            let blocks = u32_at(main, 0)?;
            Event::Truncated {
                blocks: is_of_main.then_some(blocks),
                file: FileNumber::at(main, 4)?,
            }
        }
        _ => Event::Blocks,
    })
}

/// Page numbers of status files have 8 bytes from 17 on.
fn page_number(main: &[u8], major: u16) -> Option<(u64, usize)> {
    match major {
        ..=16 => Some((u64::from(u32_at(main, 0)?), 4)),
        _ => Some((u64_at(main, 0)?, 8)),
    }
}

fn clog(main: &[u8], operation: u8, major: u16) -> Option<Event<'static>> {
    let (page, behind) = page_number(main, major)?;
    Some(match operation {
        0x00 => Event::XactPage(page),
        0x10 => Event::XactTruncate {
            page,
            oldest: Xid(u32_at(main, behind)?),
        },
        _ => Event::Blocks,
    })
}

fn database(main: &[u8], operation: u8, major: u16) -> Option<Event<'static>> {
    let created = || {
        Some(Event::DatabaseCreated {
            database: u32_at(main, 0)?,
            tablespace: u32_at(main, 4)?,
        })
    };
    let dropped = || {
        Some(Event::DatabaseDropped {
            database: u32_at(main, 0)?,
        })
    };
    match (operation, major) {
        (0x00, _) => created(),
        (0x10, ..=14) => dropped(),
        (0x10, _) => created(),
        (0x20, 15..) => dropped(),
        _ => Some(Event::Blocks),
    }
}

fn multixact(main: &[u8], operation: u8, major: u16) -> Option<Event<'static>> {
    Some(match operation {
        0x00 => Event::OffsetsPage(page_number(main, major)?.0),
        0x10 => Event::MembersPage(page_number(main, major)?.0),
        0x20 => {
            let (members, _) = main.get(12..)?.as_chunks::<8>();
            let xids = members.iter().filter_map(|member| u32_at(member, 0));
            let newer = |a: Xid, b: Xid| if a.precedes(b) { b } else { a };
            Event::MultiXact {
                multi: MultiXactId(u32_at(main, 0)?),
                offset: u32_at(main, 4)?,
                count: u32_at(main, 8)?,
                newest: xids.map(Xid).fold(Xid::INVALID, newer),
            }
        }
        0x30 => Event::MultiXactTruncate {
            oldest: MultiXactId(u32_at(main, 8)?),
            offset: u32_at(main, 16)?,
        },
        _ => Event::Blocks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `xl_smgr_truncate`: blocks, tablespace, database, file number, flags.
    fn truncation(flags: u32) -> Event<'static> {
        let words = [150, 1663, 5, 16384, flags];
        let main: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        storage(&main, 0x20).expect("a truncation")
    }

    #[test]
    fn only_flags_tell_which_forks_are_cut() {
        let left = |flags| match truncation(flags) {
            Event::Truncated { file, blocks } => {
                assert_eq!((file.database, file.filenode), (5, 16384));
                blocks
            }
            other => panic!("{other:?}"),
        };
        let (heap, visibility_map, free_space_map) = (1, 2, 4);
        assert_eq!(left(heap | visibility_map | free_space_map), Some(150));
        assert_eq!(left(heap), Some(150));
        assert_eq!(left(visibility_map), None);
        assert_eq!(left(free_space_map), None);
    }
}
