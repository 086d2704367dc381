//! Records that end a transaction: its subtransactions, and the files that go with it.
//!
//! ```text
//! | time 8 | [xinfo 4] | [database 4, tablespace 4] | [count, subxids] | [count, files] | [statistics] | [messages] | [xid] | [name] | [position 8, time 8 at the origin]
//! ```
//!
//! Truth: `ParseCommitRecord`, `ParseAbortRecord` in `src/backend/access/rmgrdesc/xactdesc.c`.

use crate::bytes::{u32_at, u64_at};
use crate::types::Xid;
use crate::wal::block::FileNumber;
use crate::wal::event::Event;
use crate::wal::record::Record;

const HAS_INFO: u8 = 0x80;
const HAS_DATABASE: u32 = 1;
const HAS_SUBXACTS: u32 = 1 << 1;
const HAS_FILES: u32 = 1 << 2;
const HAS_MESSAGES: u32 = 1 << 3;
const HAS_TWOPHASE: u32 = 1 << 4;
const HAS_ORIGIN: u32 = 1 << 5;
const HAS_NAME: u32 = 1 << 7;
const HAS_STATISTICS: u32 = 1 << 8;

/// How a transaction ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is committed.
    Committed,
    /// It is rolled back.
    Aborted,
    /// It waits for its second phase.
    Prepared,
}

/// The end of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended<'a> {
    /// The transaction.
    pub xid: Xid,
    /// How.
    pub outcome: Outcome,
    /// When by the server's clock, in microseconds since 2000-01-01 00:00 UTC; nothing of one that
    /// waits for its second phase.
    pub at: Option<i64>,
    /// When it ended where it came from by logical replication.
    pub at_origin: Option<i64>,
    subxids: &'a [[u8; 4]],
    files: &'a [[u8; 12]],
}

impl<'a> Ended<'a> {
    /// Its subtransactions.
    pub fn subxids(&self) -> impl Iterator<Item = Xid> + use<'a> {
        self.subxids
            .iter()
            .map(|bytes| Xid(u32::from_le_bytes(*bytes)))
    }

    /// Files that are removed with it.
    pub fn files(&self) -> impl Iterator<Item = FileNumber> + use<'a> {
        self.files
            .iter()
            .filter_map(|bytes| FileNumber::at(bytes, 0))
    }
}

/// The record of a transaction's end; [`Event::Blocks`] for other records of transactions.
pub(crate) fn parse<'a>(record: &Record<'a>, major: u16) -> Option<Event<'a>> {
    let outcome = match record.header.operation() & 0x70 {
        0x00 | 0x30 => Outcome::Committed,
        0x20 | 0x40 => Outcome::Aborted,
        0x10 => Outcome::Prepared,
        _ => return Some(Event::Blocks),
    };
    let mut ended = Ended {
        xid: record.header.xid,
        outcome,
        at: None,
        at_origin: None,
        subxids: &[],
        files: &[],
    };
    if outcome == Outcome::Prepared {
        return Some(Event::Ended(ended));
    }
    ended.at = Some(u64_at(record.main, 0)?.cast_signed());
    let mut parts = Parts {
        rest: record.main.get(8..)?,
    };
    let info = match record.header.info & HAS_INFO {
        0 => 0,
        _ => parts.word()?,
    };
    let has = |bit: u32| info & bit != 0;
    if has(HAS_DATABASE) {
        parts.skip(8)?;
    }
    if has(HAS_SUBXACTS) {
        ended.subxids = parts.array()?;
    }
    if has(HAS_FILES) {
        ended.files = parts.array()?;
    }
    if has(HAS_STATISTICS) && major >= 18 {
        parts.array::<16>()?;
    } else if has(HAS_STATISTICS) && major >= 15 {
        parts.array::<12>()?;
    }
    if has(HAS_MESSAGES) && outcome == Outcome::Committed {
        parts.array::<16>()?;
    }
    if has(HAS_TWOPHASE) {
        ended.xid = Xid(parts.word()?);
        if has(HAS_NAME) {
            parts.name()?;
        }
    }
    if has(HAS_ORIGIN) {
        parts.skip(8)?;
        ended.at_origin = Some(u64_at(parts.rest, 0)?.cast_signed());
    }
    Some(Event::Ended(ended))
}

struct Parts<'a> {
    rest: &'a [u8],
}

impl<'a> Parts<'a> {
    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }

    fn word(&mut self) -> Option<u32> {
        let word = u32_at(self.rest, 0)?;
        self.skip(4)?;
        Some(word)
    }

    /// The name of a prepared transaction, up to its zero.
    fn name(&mut self) -> Option<()> {
        let zero = self.rest.iter().position(|byte| *byte == 0)?;
        self.skip(zero.checked_add(1)?)
    }

    /// A count and so many things of `N` bytes.
    fn array<const N: usize>(&mut self) -> Option<&'a [[u8; N]]> {
        let count = usize::try_from(self.word()?).ok()?;
        let (things, rest) = self.rest.split_at_checked(count.checked_mul(N)?)?;
        self.rest = rest;
        Some(things.as_chunks::<N>().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Lsn;
    use crate::wal::build::{main_data, sealed};

    fn ended(info: u8, time: i64) -> (Outcome, Option<i64>) {
        let main = [&time.to_le_bytes()[..], &[0; 8]].concat();
        let bytes = sealed(1, info, 9, Lsn(0), &main_data(&main));
        let record = Record::parse(&bytes, (Lsn(8), Lsn(80)), (18, 8192)).expect("a record");
        let Some(Event::Ended(ended)) = parse(&record, 18) else {
            panic!("it ends a transaction")
        };
        (ended.outcome, ended.at)
    }

    #[test]
    fn a_commit_and_an_abort_say_when_and_what_waits_does_not() {
        assert_eq!(ended(0x00, 77), (Outcome::Committed, Some(77)));
        // Before 2000, as the clock of a machine without a battery says it.
        assert_eq!(ended(0x20, -5), (Outcome::Aborted, Some(-5)));
        assert_eq!(ended(0x10, 77), (Outcome::Prepared, None));
    }
}
