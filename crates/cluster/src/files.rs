//! What lies on disk: every fork of every relation with its segments.

use std::collections::BTreeMap;

use pgclinic_format::wal::FileNumber;
use pgclinic_format::{Fork, Oid};
use pgclinic_source::{EntryKind, Source, SourceError};

use crate::error::Trouble;
use crate::file_name::{RelationFileName, fork_path, segment_path};

/// A folder that holds relation files.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Home {
    /// OID of the tablespace: 1663 `pg_default`, 1664 `pg_global`, or a link in `pg_tblspc`.
    pub tablespace: Oid,
    /// OID of the database; 0 for shared relations.
    pub database: Oid,
    /// `base/5`, `global` or `pg_tblspc/16385/PG_18_202506291/5`.
    pub folder: String,
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
    pub home: Home,
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
}

/// The files of one folder, sorted by filenode and fork.
pub(crate) fn list_folder(source: &dyn Source, home: &Home) -> Result<Vec<ForkFiles>, SourceError> {
    let mut forks: BTreeMap<(Oid, Fork, Option<String>), Vec<Segment>> = BTreeMap::new();
    for entry in source.list(&home.folder)? {
        let Some(name) = RelationFileName::parse(&entry.name) else {
            continue;
        };
        let stem = entry.name.split('.').next().unwrap_or_default();
        let temporary = name.temporary.then(|| stem.to_owned());
        let segment = Segment {
            number: name.segment,
            len: entry.len,
        };
        let segments = forks
            .entry((name.filenode, name.fork, temporary))
            .or_default();
        if entry.kind == EntryKind::File {
            segments.push(segment);
        }
    }
    let files = forks
        .into_iter()
        .map(|((filenode, fork, temporary), mut segments)| {
            segments.sort_by_key(|segment| segment.number);
            ForkFiles {
                home: home.clone(),
                filenode,
                fork,
                temporary,
                segments,
            }
        });
    Ok(files.collect())
}

/// Every folder with relation files: `global`, the databases, and their parts in tablespaces of
/// this version. Folders that cannot be listed are told in `troubles`.
pub(crate) fn homes(
    source: &dyn Source,
    version_folder: &str,
    troubles: &mut Vec<Trouble>,
) -> Vec<Home> {
    let mut homes = vec![Home {
        tablespace: 1664,
        database: 0,
        folder: "global".into(),
    }];
    for database in numbered_folders(source, "base", troubles) {
        homes.push(Home {
            tablespace: 1663,
            database,
            folder: format!("base/{database}"),
        });
    }
    for tablespace in numbered_folders(source, "pg_tblspc", troubles) {
        let root = format!("pg_tblspc/{tablespace}/{version_folder}");
        for database in numbered_folders(source, &root, troubles) {
            homes.push(Home {
                tablespace,
                database,
                folder: format!("{root}/{database}"),
            });
        }
    }
    homes
}

fn numbered_folders(source: &dyn Source, folder: &str, troubles: &mut Vec<Trouble>) -> Vec<Oid> {
    let entries = match source.list(folder) {
        Ok(entries) => entries,
        Err(error) => {
            troubles.push(Trouble::new(folder, error));
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
            EntryKind::Other => {
                troubles.push(Trouble::new(
                    format!("{folder}/{number}"),
                    "the link leads nowhere",
                ));
            }
            EntryKind::File => {}
        }
    }
    numbers.sort_unstable();
    numbers
}
