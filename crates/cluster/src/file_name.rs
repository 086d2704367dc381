//! Names of relation files: `filenode[_fork][.segment]`, to the letter.
//!
//! Truth: `parse_filename_for_nontemp_relation` in `src/backend/storage/file/reinit.c`,
//! `looks_like_temp_rel_name` in `src/backend/storage/file/fd.c`.

use pgclinic_format::oid::{DEFAULT_TABLESPACE, GLOBAL_TABLESPACE};
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{Fork, Layout, Oid};

/// What a relation file's name says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RelationFileName {
    /// The number in front.
    pub filenode: Oid,
    /// The fork.
    pub fork: Fork,
    /// The segment, from 0.
    pub segment: u32,
    /// `tN_…`: belongs to a temporary relation of some backend.
    pub temporary: bool,
}

impl RelationFileName {
    /// Reads a name; anything that does not match the pattern to the letter is no relation file.
    pub fn parse(name: &str) -> Option<Self> {
        let (temporary, rest) = match name.strip_prefix('t') {
            Some(rest) => {
                let (backend, rest) = rest.split_once('_')?;
                number(backend)?;
                (true, rest)
            }
            None => (false, name),
        };
        let (stem, segment) = match rest.split_once('.') {
            Some((stem, segment)) => (stem, number(segment).filter(|segment| *segment > 0)?),
            None => (rest, 0),
        };
        let (digits, fork) = split_fork(stem)?;
        let filenode = number(digits).filter(|filenode| *filenode > 0)?;
        Some(RelationFileName {
            filenode,
            fork,
            segment,
            temporary,
        })
    }
}

fn split_fork(stem: &str) -> Option<(&str, Fork)> {
    let Some((digits, suffix)) = stem.split_once('_') else {
        return Some((stem, Fork::Main));
    };
    let fork = [Fork::Fsm, Fork::Vm, Fork::Init]
        .into_iter()
        .find(|fork| fork.name() == suffix)?;
    Some((digits, fork))
}

/// A number as PostgreSQL prints it: digits only, no leading zero, within 32 bits.
fn number(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let padded = digits.len() > 1 && digits.starts_with('0');
    (plain && !padded).then_some(())?;
    digits.parse().ok()
}

/// `folder/filenode_fork` and, from segment 1 on, `.segment`.
pub fn fork_path(folder: &str, filenode: Oid, fork: Fork, segment: u32) -> String {
    let stem = format!("{filenode}{}", fork.suffix());
    segment_path(folder, &stem, segment)
}

/// The directory that WAL means by a tablespace and a database.
pub(crate) fn directory_of(layout: &Layout, tablespace: Oid, database: Oid) -> String {
    match tablespace {
        GLOBAL_TABLESPACE => "global".to_owned(),
        DEFAULT_TABLESPACE => format!("base/{database}"),
        other => format!(
            "pg_tblspc/{other}/PG_{}_{}/{database}",
            layout.major, layout.catalog_version
        ),
    }
}

/// The file that holds a segment of a fork of the relation that WAL calls `file`.
pub(crate) fn relation_path(layout: &Layout, file: FileNumber, fork: Fork, segment: u32) -> String {
    let directory = directory_of(layout, file.tablespace, file.database);
    fork_path(&directory, file.filenode, fork, segment)
}

/// A segment of the file of this name; a bare file lies in the folder without a name.
pub(crate) fn segment_path(folder: &str, stem: &str, segment: u32) -> String {
    let slash = if folder.is_empty() { "" } else { "/" };
    match segment {
        0 => format!("{folder}{slash}{stem}"),
        _ => format!("{folder}{slash}{stem}.{segment}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_matched_to_the_letter() {
        let parsed = RelationFileName::parse("16384_vm.2").expect("a relation file");
        assert_eq!(
            (parsed.filenode, parsed.fork, parsed.segment),
            (16384, Fork::Vm, 2)
        );
        assert!(
            RelationFileName::parse("t3_16390")
                .expect("temporary")
                .temporary
        );
        for odd in [
            "16384_VM",
            "16384.0",
            "016384",
            "16384.01",
            "16384_fsm_vm",
            "pg_internal.init",
            "16384.1x",
            "t_1",
            "0",
            "",
            "4294967296",
        ] {
            assert_eq!(RelationFileName::parse(odd), None, "{odd}");
        }
    }
}
