//! The members of all archives as one tree of files.

use std::collections::BTreeMap;

use pgclinic_format::tar::{MemberKind, SparseMap};

use crate::tar::described::Content;
use crate::tar::reader::Member;
use crate::{Entry, EntryKind, Result, SourceError, SourceErrorKind, path};

/// Longer names, and deeper ones, no backup has.
const NAME_BYTES_MAX: usize = 1024;
const DEPTH_MAX: usize = 32;

/// Where the bytes of a file are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FileExtent {
    /// Which archive.
    pub(crate) archive: usize,
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    File(FileExtent),
    /// Islands that lie there, by the map of this number.
    Holed(FileExtent, usize),
    Folder,
    /// A link or a device: its name, and nothing to read.
    Other,
    /// A file whose content cannot be had, for this reason: it is listed as a link is, and not
    /// missing.
    Lost(&'static str),
}

impl Node {
    fn is_file(self) -> bool {
        matches!(self, Node::File(_) | Node::Holed(..) | Node::Lost(_))
    }
}

/// Where a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found<'a> {
    /// As it is.
    Whole(FileExtent),
    /// Its islands, by a map.
    Holed(FileExtent, &'a SparseMap),
}

/// Folders with what lies in them.
#[derive(Debug)]
pub(crate) struct Tree {
    folders: BTreeMap<String, BTreeMap<String, Node>>,
    maps: Vec<SparseMap>,
}

impl Default for Tree {
    fn default() -> Self {
        let root = (String::new(), BTreeMap::new());
        Tree {
            folders: BTreeMap::from([root]),
            maps: Vec::new(),
        }
    }
}

impl Tree {
    /// Adds the members of an archive whose names are below `below`; what was left out, in words.
    pub(crate) fn add(&mut self, archive: usize, below: &str, members: Vec<Member>) -> Vec<String> {
        let top = if below.is_empty() {
            top_folder(&members).or_else(|| top_of_part(&members))
        } else {
            None
        };
        let placed = |name: &[u8]| {
            let name = clean(name)?;
            let name = match &top {
                Some(top) => below_top(&name, top).unwrap_or_default(),
                None => name.as_str(),
            };
            Some(if name.is_empty() {
                String::new()
            } else {
                format!("{below}{name}")
            })
        };
        let (mut strays, mut twice, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        for member in members {
            let Some(path) = placed(&member.name) else {
                strays.push(String::from_utf8_lossy(&member.name).into_owned());
                continue;
            };
            if path.is_empty() {
                continue;
            }
            let node = match member.kind {
                MemberKind::HardLink => self.target_of(placed(&member.link)),
                MemberKind::Folder => Node::Folder,
                MemberKind::File | MemberKind::Sparse => self.file_of(archive, member),
                // The server follows links, and its files may be anything; here nothing can be
                // followed.
                _ if is_of_relation(&path) => Node::Lost("a link or a device"),
                _ => Node::Other,
            };
            if matches!(node, Node::Lost(_)) {
                lost.push(path.clone());
            }
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
        let lost = told(
            lost,
            "members are links that lead to no file of the archive, or have holes that nothing sound tells of, and cannot be read",
        );
        strays.into_iter().chain(twice).chain(lost).collect()
    }

    /// A file by what is stored of it.
    fn file_of(&mut self, archive: usize, member: Member) -> Node {
        let place = FileExtent {
            archive,
            offset: member.offset,
            len: member.len,
        };
        match member.content {
            Content::Whole => Node::File(place),
            Content::Holed(mut map) => {
                map.cut_to(member.len);
                self.maps.push(map);
                Node::Holed(place, self.maps.len() - 1)
            }
            Content::Lost(why) => Node::Lost(why),
        }
    }

    /// What a hard link is another name of.
    fn target_of(&self, path: Option<String>) -> Node {
        let node = path.and_then(|path| self.node(&path));
        node.filter(|node| node.is_file())
            .unwrap_or(Node::Lost("a link to what is not in the archive"))
    }

    /// Adds a file of its own.
    pub(crate) fn add_file(&mut self, archive: usize, name: &str, len: u64) {
        let offset = 0;
        self.put(
            name,
            Node::File(FileExtent {
                archive,
                offset,
                len,
            }),
        );
    }

    /// Adds a file whose bytes are there.
    pub(crate) fn add_at(&mut self, path: &str, place: FileExtent) {
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
            (Some(Node::Folder), _) => return false,
            (Some(before), Node::Folder) if before.is_file() => return false,
            _ => names.insert(name.to_owned(), node),
        };
        if node == Node::Folder {
            self.folders.entry(path.to_owned()).or_default();
        }
        !before.is_some_and(Node::is_file)
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

    /// Where all of a file lies as it is.
    pub(crate) fn file(&self, path: &str) -> Result<FileExtent> {
        match self.find(path)? {
            Found::Whole(place) => Ok(place),
            Found::Holed(..) => Err(SourceError::not_regular(path, "stored without its holes")),
        }
    }

    /// Where a file lies.
    pub(crate) fn find(&self, path: &str) -> Result<Found<'_>> {
        match self.node(path) {
            Some(Node::File(place)) => Ok(Found::Whole(place)),
            Some(Node::Holed(place, map)) => match self.maps.get(map) {
                Some(map) => Ok(Found::Holed(place, map)),
                None => Err(SourceError::not_found(path)),
            },
            Some(Node::Folder) => Err(SourceError::not_regular(path, "a directory")),
            Some(Node::Other) => Err(SourceError::not_regular(path, "a link or a device")),
            Some(Node::Lost(why)) => Err(SourceError::new(path, SourceErrorKind::Io, why)),
            None => Err(SourceError::not_found(path)),
        }
    }

    /// Bytes of a file. One that is there and cannot be read has none that anybody could count on.
    pub(crate) fn len(&self, path: &str) -> Result<u64> {
        if let Some(Node::Lost(_)) = self.node(path) {
            return Ok(0);
        }
        Ok(match self.find(path)? {
            Found::Whole(place) => place.len,
            Found::Holed(_, map) => map.real_size(),
        })
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
                Node::File(_) | Node::Holed(..) => EntryKind::File,
                Node::Folder => EntryKind::Folder,
                Node::Other | Node::Lost(_) => EntryKind::Other,
            },
            len: match node {
                Node::File(place) => place.len,
                Node::Holed(_, map) => self.maps.get(*map).map_or(0, SparseMap::real_size),
                Node::Folder | Node::Other | Node::Lost(_) => 0,
            },
        };
        Ok(names.iter().map(entry).collect())
    }
}

/// A member's name as a path of the backup, without `./` in front and `/` behind; `""` is the root.
/// Nothing for a name that leads out of the backup or is no text.
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

/// The file of a relation has such a path: a number in a folder of relations.
pub(super) fn is_of_relation(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut parts = folder.split('/');
    let is_home = match (parts.next(), parts.next(), parts.next()) {
        (Some("global"), None, _) | (Some("base"), Some(_), None) => true,
        (Some("pg_tblspc"), Some(_), Some(version)) => version.starts_with("PG_"),
        _ => false,
    };
    is_home && name.starts_with(|letter: char| letter.is_ascii_digit())
}

/// The folder in which a data directory lies, where an archive holds one and nothing else: all
/// members lie in it or lead to it, as `tar czf x.tgz data` makes it.
fn top_folder(members: &[Member]) -> Option<String> {
    let versions = members
        .iter()
        .filter(|member| member.name.ends_with(b"PG_VERSION"))
        .filter_map(|member| clean(&member.name));
    // Each database has one as well, further down.
    let highest = versions.min_by_key(|name| name.split('/').count())?;
    let top = highest.strip_suffix("/PG_VERSION")?.to_owned();
    let control = format!("{top}/global/");
    let mut holds_control = false;
    for name in members.iter().filter_map(|member| clean(&member.name)) {
        let leads_to_it = name.is_empty() || is_below(&top, &name);
        if !leads_to_it && below_top(&name, &top).is_none() {
            return None;
        }
        holds_control |= name.starts_with(&control);
    }
    holds_control.then_some(top)
}

/// The same of an archive that was cut in front of the folder's `PG_VERSION`, by the folders that
/// only a data directory has.
fn top_of_part(members: &[Member]) -> Option<String> {
    let names = || members.iter().filter_map(|member| clean(&member.name));
    let top = names().find_map(|name| {
        let homes = ["/base/", "/global/"].iter();
        let at = homes.filter_map(|home| name.find(home)).min()?;
        name.get(..at).map(str::to_owned)
    })?;
    let holds_all = names().all(|name| {
        let leads_to_it = name.is_empty() || is_below(&top, &name);
        leads_to_it || is_below(&name, &top)
    });
    holds_all.then_some(top)
}

/// The rest of a path in `top`; `""` for `top` itself.
pub(super) fn below_top<'a>(name: &'a str, top: &str) -> Option<&'a str> {
    let rest = name.strip_prefix(top)?;
    if rest.is_empty() {
        Some(rest)
    } else {
        rest.strip_prefix('/')
    }
}

fn is_below(name: &str, folder: &str) -> bool {
    below_top(name, folder).is_some()
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
            content: Content::Whole,
            link: Vec::new(),
        }
    }

    fn link(name: &str, to: &str) -> Member {
        Member {
            link: to.as_bytes().to_vec(),
            ..member(name, MemberKind::HardLink)
        }
    }

    fn tree(members: Vec<Member>) -> (Tree, Vec<String>) {
        let mut tree = Tree::default();
        let told = tree.add(0, "", members);
        (tree, told)
    }

    #[test]
    fn a_hard_link_takes_the_place_of_its_target() {
        let (tree, told) = tree(vec![
            member("base/5/1", MemberKind::File),
            link("base/5/2", "./base/5/1"),
            link("base/5/3", "base/5/2"),
        ]);
        assert_eq!(told, Vec::<String>::new());
        for name in ["base/5/2", "base/5/3"] {
            assert_eq!(tree.file(name), tree.file("base/5/1"), "{name}");
        }
    }

    #[test]
    fn what_cannot_be_followed_is_told_and_is_not_missing() {
        let (tree, told) = tree(vec![
            link("base/5/1", "base/5/7"),
            link("base/5/2", "../../x"),
            member("base/5/3", MemberKind::SymbolicLink),
            Member {
                content: Content::Lost("no map"),
                ..member("base/5/4", MemberKind::Sparse)
            },
            member("pg_wal", MemberKind::SymbolicLink),
        ]);
        assert_eq!(told.len(), 1, "{told:?}");
        let words = "4 members are links that lead to no file of the archive";
        assert!(
            told[0].starts_with(words) && told[0].contains("base/5/1"),
            "{told:?}"
        );
        let entries = tree.list("base/5").expect("a directory");
        assert!(entries.iter().all(|entry| entry.kind == EntryKind::Other));
        for entry in entries {
            let path = format!("base/5/{}", entry.name);
            assert_eq!(tree.len(&path), Ok(0), "it is there");
            assert!(tree.find(&path).is_err(), "and cannot be read");
        }
        assert!(
            tree.len("pg_wal").is_err(),
            "the link may be one to a directory"
        );
    }

    #[test]
    fn a_folder_that_holds_the_whole_cluster_is_left_out_of_names() {
        for top in ["d", "./d", "var/lib/15/main"] {
            let named = |name: &str, kind| member(&format!("{top}/{name}"), kind);
            let (tree, told) = tree(vec![
                named("", MemberKind::Folder),
                named("base/5/PG_VERSION", MemberKind::File),
                named("base/5/1", MemberKind::File),
                link(&format!("{top}/base/5/2"), &format!("{top}/base/5/1")),
                named("global/pg_control", MemberKind::File),
                named("PG_VERSION", MemberKind::File),
            ]);
            assert_eq!(told, Vec::<String>::new(), "{top}");
            for path in ["PG_VERSION", "global/pg_control", "base/5/1", "base/5/2"] {
                assert!(tree.file(path).is_ok(), "{top}: {path}");
            }
        }
    }

    #[test]
    fn so_is_one_that_holds_what_is_left_of_it() {
        for top in ["d", "var/lib/15/main"] {
            let named = |name: &str| member(&format!("{top}/{name}"), MemberKind::File);
            let (tree, told) = tree(vec![
                member(top, MemberKind::Folder),
                named("pg_xact/0000"),
                named("base/5/PG_VERSION"),
                named("base/5/1"),
            ]);
            assert_eq!(told, Vec::<String>::new(), "{top}");
            for path in ["pg_xact/0000", "base/5/PG_VERSION", "base/5/1"] {
                assert!(tree.file(path).is_ok(), "{top}: {path}");
            }
        }
    }

    #[test]
    fn a_folder_beside_others_stays_where_it_is() {
        let files = |names: &[&str]| {
            let files = names.iter().map(|name| member(name, MemberKind::File));
            tree(files.collect()).0
        };
        let beside = files(&["d/PG_VERSION", "d/global/pg_control", "e"]);
        assert!(beside.file("d/PG_VERSION").is_ok());
        let own = files(&["PG_VERSION", "base/1/PG_VERSION", "global/pg_control"]);
        assert!(own.file("base/1/PG_VERSION").is_ok());
        let database = files(&["base/1/PG_VERSION", "base/1/1259"]);
        assert!(database.file("base/1/1259").is_ok());
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
