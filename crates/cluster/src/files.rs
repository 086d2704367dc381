//! What lies on disk: every fork of every relation with its segments.

use std::collections::BTreeMap;

use pgclinic_format::oid::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
use pgclinic_format::page::is_never_begun;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_source::{EntryKind, Presence, Source, SourceError};

use crate::build::Build;
use crate::cluster::Cluster;
use crate::error::ReadGap;
use crate::file_name::{RelationFileName, fork_path, segment_path};
use crate::state::State;

/// A folder that holds relation files.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DatabaseDirectory {
    /// OID of the tablespace: `pg_default`, `pg_global`, or a link in `pg_tblspc`.
    pub tablespace: Oid,
    /// OID of the database; 0 for shared relations.
    pub database: Oid,
    /// `base/5`, `global` or `pg_tblspc/16385/PG_18_202506291/5`.
    pub folder: String,
}

impl DatabaseDirectory {
    /// That of the shared relations.
    pub(crate) fn global() -> Self {
        DatabaseDirectory {
            tablespace: GLOBAL_TABLESPACE,
            database: 0,
            folder: "global".into(),
        }
    }
}

/// One file of a fork.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// From 0.
    pub number: u32,
    /// Bytes.
    pub len: u64,
}

/// A fork with its segments in order of their numbers; there may be gaps.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForkFiles {
    /// Where.
    pub home: DatabaseDirectory,
    /// Number in the files' names.
    pub filenode: Oid,
    /// Fork.
    pub fork: Fork,
    /// The files are a temporary relation's, with this name in front.
    pub temporary: Option<String>,
    /// Its files; none where the name leads to a link, a folder or anything else but a file.
    pub segments: Vec<Segment>,
}

impl ForkFiles {
    /// The relation's files, as WAL names them.
    pub fn number(&self) -> FileNumber {
        FileNumber {
            tablespace: self.home.tablespace,
            database: self.home.database,
            filenode: self.filenode,
        }
    }

    /// The path of a segment, from the root of the data directory.
    pub fn path(&self, segment: u32) -> String {
        match &self.temporary {
            None => fork_path(&self.home.folder, self.filenode, self.fork, segment),
            Some(stem) => segment_path(&self.home.folder, stem, segment),
        }
    }

    /// Where nothing of the fork can be read it stays without segments.
    fn add_others(&mut self, source: &dyn Source, others: &[u32], segment_bytes: u64) {
        if !self.segments.is_empty() {
            for number in others {
                let len = match Presence::of_file(source, &self.path(*number)) {
                    Presence::There(len) => len,
                    Presence::Missing | Presence::Unreadable(_) => segment_bytes,
                };
                self.segments.push(Segment {
                    number: *number,
                    len,
                });
            }
        }
        self.segments.sort_by_key(|segment| segment.number);
    }

    /// Bytes in all segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len).sum()
    }

    /// The whole blocks of the fork up to the first segment that is missing or not full.
    pub fn blocks(&self, block_size: u32, segment_bytes: u64) -> u64 {
        let mut blocks = 0;
        for (segment, expected) in self.segments.iter().zip(0..) {
            if segment.number != expected {
                break;
            }
            blocks += segment.len.min(segment_bytes) / u64::from(block_size);
            if segment.len < segment_bytes {
                break;
            }
        }
        blocks
    }

    /// What is missing before each segment that is there, and what would come behind the last one.
    pub fn missing_blocks(&self, build: Build) -> Vec<MissingBlocks> {
        let block = |block: u64| BlockNo::try_from(block).unwrap_or(BlockNo::MAX);
        let (mut missing, mut next) = (Vec::new(), 0);
        for segment in self.segments.iter().filter(|own| own.len > 0) {
            let start = u64::from(segment.number).saturating_mul(build.segment_blocks());
            if start > next {
                missing.push(MissingBlocks {
                    first: block(next),
                    gap_end: Some(block(start)),
                });
            }
            next = start.saturating_add(segment.len / u64::from(build.block_size).max(1));
        }
        missing.push(MissingBlocks {
            first: block(next),
            gap_end: None,
        });
        missing
    }
}

/// Blocks of a fork that are missing in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissingBlocks {
    /// The first one that is not there as a whole.
    pub first: BlockNo,
    /// Where the next segment begins, if one is there behind them; else the fork ends here, and
    /// nobody says that any are missing.
    pub gap_end: Option<BlockNo>,
}

/// Segments of a fork that were listed, and the numbers of those that are no regular files.
#[derive(Default)]
struct Listed {
    segments: Vec<Segment>,
    others: Vec<u32>,
}

/// The files of one folder, sorted by filenode and fork. Beside segments that can be read, one that
/// is no regular file counts with the length of a full one: it is there, and who reads it learns
/// why it cannot be.
pub(crate) fn list_folder(
    source: &dyn Source,
    home: &DatabaseDirectory,
    segment_bytes: u64,
) -> Result<Vec<ForkFiles>, SourceError> {
    let mut forks: BTreeMap<(Oid, Fork, Option<String>), Listed> = BTreeMap::new();
    for entry in source.list(&home.folder)? {
        let Some(name) = RelationFileName::parse(&entry.name) else {
            continue;
        };
        let stem = entry.name.split('.').next().unwrap_or_default();
        let temporary = name.temporary.then(|| stem.to_owned());
        let number = name.segment;
        let key = (name.filenode, name.fork, temporary);
        let listed = forks.entry(key).or_default();
        match entry.kind {
            EntryKind::File => listed.segments.push(Segment {
                number,
                len: entry.len,
            }),
            EntryKind::Folder | EntryKind::Other => listed.others.push(number),
        }
    }
    let files = forks
        .into_iter()
        .map(|((filenode, fork, temporary), listed)| {
            let mut files = ForkFiles {
                home: home.clone(),
                filenode,
                fork,
                temporary,
                segments: listed.segments,
            };
            files.add_others(source, &listed.others, segment_bytes);
            files
        });
    Ok(files.collect())
}

/// Every folder with relation files: `global`, the databases, and their parts in tablespaces of
/// this version. Folders that cannot be listed are told in `troubles`.
pub(crate) fn homes(
    source: &dyn Source,
    version_folder: &str,
    troubles: &mut Vec<ReadGap>,
) -> Vec<DatabaseDirectory> {
    let mut homes = vec![DatabaseDirectory::global()];
    for database in numbered_folders(source, "base", troubles) {
        homes.push(DatabaseDirectory {
            tablespace: DEFAULT_TABLESPACE,
            database,
            folder: format!("base/{database}"),
        });
    }
    for tablespace in numbered_folders(source, "pg_tblspc", troubles) {
        let root = format!("pg_tblspc/{tablespace}/{version_folder}");
        for database in numbered_folders(source, &root, troubles) {
            homes.push(DatabaseDirectory {
                tablespace,
                database,
                folder: format!("{root}/{database}"),
            });
        }
    }
    homes
}

/// Of a name that is there and no directory.
fn why_no_directory(source: &dyn Source, path: &str) -> String {
    match Presence::of_directory(source, path) {
        Presence::Unreadable(error) => error.to_string(),
        Presence::Missing | Presence::There(_) => "the link leads nowhere".into(),
    }
}

fn numbered_folders(source: &dyn Source, folder: &str, troubles: &mut Vec<ReadGap>) -> Vec<Oid> {
    let entries = match source.list(folder) {
        Ok(entries) => entries,
        Err(error) => {
            troubles.push(ReadGap::new(folder, error));
            return Vec::new();
        }
    };
    let mut numbers = Vec::new();
    for entry in entries {
        let Ok(number) = entry.name.parse::<Oid>() else {
            continue;
        };
        match entry.kind {
            EntryKind::Folder => numbers.push(number),
            EntryKind::Other | EntryKind::File => {
                let path = format!("{folder}/{number}");
                let why = why_no_directory(source, &path);
                troubles.push(ReadGap::new(path, why));
            }
        }
    }
    numbers.sort_unstable();
    numbers
}

impl Cluster {
    /// One of the files ends within a page that somebody began.
    pub fn is_cut(&self, files: &ForkFiles) -> bool {
        let page = u64::from(self.build.block_size.max(1));
        let mut segments = files.segments.iter();
        segments.any(|own| own.len % page != 0 && !self.ends_in_room(files, *own))
    }

    /// Behind the last whole page of the file no page was begun. Of files that passed by nobody
    /// knows: they are shown as zeros.
    pub fn ends_in_room(&self, files: &ForkFiles, segment: Segment) -> bool {
        if matches!(self.state(), State::Streamed(_)) {
            return false;
        }
        let rest = segment.len % u64::from(self.build.block_size.max(1));
        let mut bytes = vec![0; usize::try_from(rest).unwrap_or_default()];
        let path = files.path(segment.number);
        let read = self.source().read_at(&path, segment.len - rest, &mut bytes);
        read == Ok(bytes.len()) && is_never_begun(&bytes)
    }
}

/// One block of a fork.
pub fn read_block(
    source: &dyn Source,
    files: &ForkFiles,
    build: Build,
    block: BlockNo,
) -> Option<Vec<u8>> {
    let per_segment = build.segment_blocks();
    let segment = u32::try_from(u64::from(block).checked_div(per_segment)?).ok()?;
    let offset = u64::from(block).checked_rem(per_segment)? * u64::from(build.block_size);
    let mut page = vec![0; usize::try_from(build.block_size).ok()?];
    let read = source
        .read_at(&files.path(segment), offset, &mut page)
        .ok()?;
    (read == page.len()).then_some(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of four blocks of 8 kB.
    fn fork(segments: &[(u32, u64)]) -> Vec<(BlockNo, Option<BlockNo>)> {
        let build = Build {
            segment_bytes: 4 * 8192,
            ..Build::USUAL
        };
        let segments = segments.iter();
        let files = ForkFiles {
            home: DatabaseDirectory {
                tablespace: DEFAULT_TABLESPACE,
                database: 5,
                folder: "base/5".into(),
            },
            filenode: 16384,
            fork: Fork::Main,
            temporary: None,
            segments: segments
                .map(|(number, blocks)| Segment {
                    number: *number,
                    len: blocks * 8192,
                })
                .collect(),
        };
        let missing = files.missing_blocks(build).into_iter();
        missing.map(|own| (own.first, own.gap_end)).collect()
    }

    #[test]
    fn blocks_are_missing_before_segments_that_are_there_and_behind_the_last() {
        assert_eq!(fork(&[]), [(0, None)]);
        assert_eq!(fork(&[(0, 3)]), [(3, None)]);
        assert_eq!(fork(&[(0, 4), (2, 1)]), [(4, Some(8)), (9, None)]);
        assert_eq!(fork(&[(1, 4)]), [(0, Some(4)), (8, None)]);
        assert_eq!(fork(&[(0, 2), (1, 2)]), [(2, Some(4)), (6, None)]);
        assert_eq!(fork(&[(0, 4), (1, 4), (2, 0)]), [(8, None)]);
    }
}
