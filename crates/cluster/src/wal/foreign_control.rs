//! A control file of another cluster: its system identifier is not that of `pg_wal`, and the pages
//! follow the records of `pg_wal`.
//!
//! Which of the two was brought from elsewhere only a third witness tells: a page carries as LSN
//! the end of the record that changed it last. Where some blocks carry those of records in
//! `pg_wal` that name them, WAL and pages are of one cluster, and the control file is of another.

use std::collections::BTreeMap;

use pgclinic_format::wal::{FileNumber, WalReader};
use pgclinic_format::{BlockNo, ControlFile, Fork, Layout, Lsn, Page};
use pgclinic_source::Source;

use crate::build::Build;
use crate::control_state::ControlState;
use crate::wal::last_checkpoint::{Search, first_identifier, shape_of};

/// Blocks that carry the LSN of their last record: so many are no chance.
pub(super) const BLOCKS_NEEDED: usize = 3;
/// Newest segments in which they are looked for.
pub(super) const SEGMENTS_MAX: usize = 64;
/// Blocks of one segment that are asked.
pub(super) const BLOCKS_MAX: usize = 100_000;
/// `pg_default` and `pg_global`.
const DEFAULT_TABLESPACE: u32 = 1663;
const GLOBAL_TABLESPACE: u32 = 1664;
/// Bytes of the smallest page that there is.
const HEAD_BYTES: usize = 1024;

/// The control file as it is, or named as that of another cluster.
pub(crate) fn judge(source: &dyn Source, layout: &Layout, control: ControlState) -> ControlState {
    match control {
        ControlState::Right(control) => match identifier_of_wal(source, layout, &control) {
            Some(of_wal) => ControlState::Foreign { control, of_wal },
            None => ControlState::Right(control),
        },
        other => other,
    }
}

/// The system identifier of WAL that pages follow and the control file does not.
fn identifier_of_wal(source: &dyn Source, layout: &Layout, control: &ControlFile) -> Option<u64> {
    let own = control.system_identifier;
    first_identifier(source, layout).filter(|first| *first != own)?;
    let build = Build::of(control)?;
    let shape = shape_of(source, layout, build)?;
    let of_wal = shape.system_identifier.filter(|of_wal| *of_wal != own)?;
    let search = Search::new(source, shape)?;
    (!names_a_checkpoint(&search, control) && pages_follow(source, &search, build))
        .then_some(of_wal)
}

/// The checkpoint that the control file names stands there: the heads of segments are wrong.
fn names_a_checkpoint(search: &Search<'_>, control: &ControlFile) -> bool {
    let found = search.checkpoint_at(control.checkpoint_lsn);
    found.is_some_and(|found| {
        let own = &control.checkpoint;
        (found.redo, found.time, found.next_oid) == (own.redo, own.time, own.next_oid)
    })
}

/// Enough blocks carry the LSN of the last record about them.
fn pages_follow(source: &dyn Source, search: &Search<'_>, build: Build) -> bool {
    let mut found = 0;
    for number in search.newest_first().take(SEGMENTS_MAX) {
        let last = last_records(search, number).unwrap_or_default();
        let follows = |((file, block), lsn): &(&(FileNumber, BlockNo), &Lsn)| {
            lsn_of(source, build, *file, *block) == Some(**lsn)
        };
        found += last.iter().filter(follows).take(BLOCKS_NEEDED).count();
        if found >= BLOCKS_NEEDED {
            return true;
        }
    }
    false
}

/// Where the last record about each block ends, of those that begin in a segment.
fn last_records(search: &Search<'_>, number: u64) -> Option<BTreeMap<(FileNumber, BlockNo), Lsn>> {
    let shape = search.shape();
    let size = u64::from(shape.segment_bytes);
    let begin = number.checked_mul(size)?;
    let mut reader = WalReader::new(search.pages(), shape, Lsn(begin));
    reader.find_first().ok()?;
    let mut last = BTreeMap::new();
    while let Ok(record) = reader.read() {
        if record.lsn.0 >= begin.saturating_add(size) || last.len() >= BLOCKS_MAX {
            break;
        }
        let main = record.blocks.iter().filter(|own| own.fork == Fork::Main);
        last.extend(main.map(|own| ((own.file, own.block), record.end)));
    }
    Some(last)
}

/// The LSN of a page as its file has it.
pub(super) fn lsn_of(
    source: &dyn Source,
    build: Build,
    file: FileNumber,
    block: BlockNo,
) -> Option<Lsn> {
    let directory = match file.tablespace {
        DEFAULT_TABLESPACE => format!("base/{}", file.database),
        GLOBAL_TABLESPACE => "global".to_owned(),
        _ => return None,
    };
    let (block, whole) = (u64::from(block), build.segment_blocks().max(1));
    let path = match block / whole {
        0 => format!("{directory}/{}", file.filenode),
        segment => format!("{directory}/{}.{segment}", file.filenode),
    };
    let mut head = [0; HEAD_BYTES];
    let at = (block % whole) * u64::from(build.block_size);
    let read = source.read_at(&path, at, &mut head).ok()?;
    (read == HEAD_BYTES).then(|| Page::parse(&head).map(Page::pd_lsn))?
}
