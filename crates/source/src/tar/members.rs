//! The members of all archives as one tree of files.

use std::collections::BTreeMap;

use pgclinic_format::tar::MemberKind;

use crate::tar::reader::Member;
use crate::{Entry, EntryKind, Result, SourceError, path};

/// Longer names, and deeper ones, no backup has.
const NAME_BYTES_MAX: usize = 1024;
const DEPTH_MAX: usize = 32;

/// Where the bytes of a file are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Which archive.
    pub(crate) archive: usize,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    File(Place),
    Folder,
    /// A link or a device: its name, and nothing to read.
    Other,
}

/// Folders with what lies in them.
#[derive(Debug)]
pub(crate) struct Tree {
    folders: BTreeMap<String, BTreeMap<String, Node>>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = (String::new(), BTreeMap::new());
        Tree {
            folders: BTreeMap::from([root]),
        }
    }
}

impl Tree {
    /// Adds the members of an archive whose names are below `below`; what was left out, in words.
    pub(crate) fn add(&mut self, archive: usize, below: &str, members: Vec<Member>) -> Vec<String> {
        let (mut strays, mut twice) = (Vec::new(), Vec::new());
        for member in members {
            let Some(name) = clean(&member.name) else {
                strays.push(String::from_utf8_lossy(&member.name).into_owned());
                continue;
            };
            if name.is_empty() {
                continue;
            }
            let path = format!("{below}{name}");
            let node = match member.kind {
                MemberKind::File => Node::File(Place {
                    archive,
                    offset: member.offset,
                    len: member.len,
                }),
                MemberKind::Folder => Node::Folder,
                _ => Node::Other,
            };
            if !self.put(&path, node) {
                twice.push(path);
            }
        }
        let told = |names: Vec<String>, what: &str| {
            let first = names.first()?;
            Some(format!("{} {what}, such as {first:?}", names.len()))
        };
        let strays = told(
            strays,
            "members have names that lead out of the backup or that no backup has, and are left out",
        );
        let twice = told(
            twice,
            "members have a name that another member has, or lie in a file",
        );
        strays.into_iter().chain(twice).collect()
    }

    /// Adds a file of its own.
    pub(crate) fn add_file(&mut self, archive: usize, name: &str, len: u64) {
        let offset = 0;
        self.put(
            name,
            Node::File(Place {
                archive,
                offset,
                len,
            }),
        );
    }

    /// Adds a file whose bytes are there.
    pub(crate) fn add_at(&mut self, path: &str, place: Place) {
        self.put(path, Node::File(place));
    }

    /// Adds a folder with nothing in it.
    pub(crate) fn add_folder(&mut self, path: &str) {
        self.put(path, Node::Folder);
    }

    /// The later one counts, as for a restore; says whether the name was free.
    fn put(&mut self, path: &str, node: Node) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if !self.make_folder(folder) {
            return false;
        }
        let Some(names) = self.folders.get_mut(folder) else {
            return false;
        };
        let before = names.get(name).copied();
        match (before, node) {
            // An archive of a tablespace fills the folder that is a link in the other one.
            (Some(Node::Folder), Node::Folder | Node::Other) => return true,
            (Some(Node::Folder), Node::File(_)) | (Some(Node::File(_)), Node::Folder) => {
                return false;
            }
            _ => names.insert(name.to_owned(), node),
        };
        if node == Node::Folder {
            self.folders.entry(path.to_owned()).or_default();
        }
        !matches!(before, Some(Node::File(_)))
    }

    /// Makes a folder and those above it; says whether no file stands in the way.
    fn make_folder(&mut self, folder: &str) -> bool {
        if self.folders.contains_key(folder) {
            return true;
        }
        self.put(folder, Node::Folder) && self.folders.contains_key(folder)
    }

    /// What has this path.
    fn node(&self, path: &str) -> Option<Node> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        match path {
            "" => Some(Node::Folder),
            _ => self.folders.get(folder)?.get(name).copied(),
        }
    }

    pub(crate) fn file(&self, path: &str) -> Result<Place> {
        match self.node(path) {
            Some(Node::File(place)) => Ok(place),
            Some(Node::Folder) => Err(SourceError::not_regular(path, "a folder")),
            Some(Node::Other) => Err(SourceError::not_regular(path, "a link or a device")),
            None => Err(SourceError::not_found(path)),
        }
    }

    pub(crate) fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        let names = match (self.folders.get(folder), self.node(folder)) {
            (Some(names), _) => names,
            (None, Some(_)) => return Err(SourceError::not_folder(folder)),
            (None, None) => return Err(SourceError::not_found(folder)),
        };
        let entry = |(name, node): (&String, &Node)| Entry {
            name: name.clone(),
            kind: match node {
                Node::File(_) => EntryKind::File,
                Node::Folder => EntryKind::Folder,
                Node::Other => EntryKind::Other,
            },
            len: match node {
                Node::File(place) => place.len,
                Node::Folder | Node::Other => 0,
            },
        };
        Ok(names.iter().map(entry).collect())
    }
}

/// A member's name as a path of the backup, without `./` in front and `/` behind; `""` is the root. Nothing for a name
/// that leads out of the backup or is no text.
pub(crate) fn clean(name: &[u8]) -> Option<String> {
    let mut name = std::str::from_utf8(name).ok()?;
    while let Some(rest) = name.strip_prefix("./") {
        name = rest.trim_start_matches('/');
    }
    let name = name.strip_suffix('/').unwrap_or(name);
    let name = if name == "." { "" } else { name };
    let short = name.len() <= NAME_BYTES_MAX && name.split('/').count() <= DEPTH_MAX;
    (short && path::check(name).is_ok()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, kind: MemberKind) -> Member {
        Member {
            name: name.as_bytes().to_vec(),
            kind,
            offset: 512,
            len: 7,
        }
    }

    #[test]
    fn names_that_lead_out_are_left_out() {
        for name in ["/etc/passwd", "../x", "base/../../x", "a\0b", "a//b"] {
            assert_eq!(clean(name.as_bytes()), None, "{name:?}");
        }
        assert_eq!(clean(b"./base/5/"), Some("base/5".into()));
        assert_eq!(clean(b"./"), Some(String::new()));
        assert_eq!(
            clean("a/".repeat(40).as_bytes()),
            None,
            "nobody nests as deep"
        );
        let mut tree = Tree::default();
        let told = tree.add(
            0,
            "",
            vec![
                member("../x", MemberKind::File),
                member("a", MemberKind::File),
            ],
        );
        assert_eq!(told.len(), 1);
        assert_eq!(tree.list("").map(|entries| entries.len()), Ok(1));
    }

    #[test]
    fn a_link_in_the_base_is_a_folder_where_its_archive_is_there() {
        let mut tree = Tree::default();
        let told = tree.add(
            0,
            "",
            vec![member("pg_tblspc/16385", MemberKind::SymbolicLink)],
        );
        assert_eq!(told, Vec::<String>::new());
        assert!(tree.list("pg_tblspc/16385").is_err());
        let told = tree.add(
            1,
            "pg_tblspc/16385/",
            vec![member("PG_18/5/1", MemberKind::File)],
        );
        assert_eq!(told, Vec::<String>::new());
        assert_eq!(
            tree.file("pg_tblspc/16385/PG_18/5/1")
                .map(|place| place.archive),
            Ok(1)
        );
    }

    #[test]
    fn a_file_is_never_a_folder_as_well() {
        let mut tree = Tree::default();
        let told = tree.add(
            0,
            "",
            vec![
                member("a", MemberKind::File),
                member("a/b", MemberKind::File),
            ],
        );
        assert_eq!(told.len(), 1);
        assert!(tree.file("a").is_ok() && tree.file("a/b").is_err());
        let told = tree.add(
            0,
            "",
            vec![
                member("c/d", MemberKind::File),
                member("c", MemberKind::File),
            ],
        );
        assert_eq!(told.len(), 1);
        assert!(tree.file("c/d").is_ok());
    }
}
