//! The folder in which a data directory lies, as `tar czf x.tgz data` makes it, told by what passes
//! by first.
//!
//! A first member that is a folder, and none of those that a data directory has, is taken for it.
//! Where the rest does not lie in it, or the data directory turns out to lie in another one, that
//! is a trouble: who can read the archive twice knows better.

use pgclinic_format::tar::MemberKind;

use super::members::below_top;

/// Folders that may stand in the root of a data directory.
const OWN: [&str; 19] = [
    "base",
    "global",
    "log",
    "pg_commit_ts",
    "pg_dynshmem",
    "pg_log",
    "pg_logical",
    "pg_multixact",
    "pg_notify",
    "pg_replslot",
    "pg_serial",
    "pg_snapshots",
    "pg_stat",
    "pg_stat_tmp",
    "pg_subtrans",
    "pg_tblspc",
    "pg_twophase",
    "pg_wal",
    "pg_xact",
];

/// The directory inside an archive that holds the data directory, if there is one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct RootPrefix {
    folder: Option<String>,
    has_begun: bool,
    /// Members that do not lie in the folder.
    has_others: bool,
    has_version: bool,
    /// A control file lies further down than it may.
    has_deep_control: bool,
}

impl RootPrefix {
    /// The name of the next member in the data directory; `""` for its root and what leads to it.
    pub(super) fn placed(&mut self, name: String, kind: MemberKind) -> String {
        if !self.has_begun {
            self.has_begun = true;
            let first = name.split('/').next().unwrap_or_default();
            let is_top = kind == MemberKind::Folder && !name.is_empty() && !OWN.contains(&first);
            self.folder = is_top.then(|| name.clone());
        }
        let placed = match self.folder.as_deref().map(|top| below_top(&name, top)) {
            None => name,
            Some(Some(rest)) => rest.to_owned(),
            Some(None) => {
                self.has_others |= !name.is_empty();
                name
            }
        };
        self.has_version |= placed == "PG_VERSION";
        self.has_deep_control |= placed.ends_with("/global/pg_control");
        placed
    }

    /// Why the names may be wrong, at the end.
    pub(super) fn trouble(&self) -> Option<&'static str> {
        if self.has_others {
            return Some("its first directory does not hold all of it");
        }
        let is_deeper = !self.has_version && self.has_deep_control;
        is_deeper
            .then_some("the data directory lies in a directory that was not known at its begin")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(names: &[&str]) -> (Vec<String>, Option<&'static str>) {
        let mut top = RootPrefix::default();
        let mut placed = Vec::new();
        for name in names {
            let (kind, name) = match name.strip_suffix('/') {
                Some(folder) => (MemberKind::Folder, folder),
                None => (MemberKind::File, *name),
            };
            placed.push(top.placed(name.to_owned(), kind));
        }
        (placed, top.trouble())
    }

    #[test]
    fn the_first_folder_is_left_out_of_names_where_all_lies_in_it() {
        for top in ["d", "var/lib/main"] {
            let names = [
                "/",
                "/base/",
                "/base/1",
                "/global/pg_control",
                "/PG_VERSION",
            ];
            let names = names.map(|name| format!("{top}{name}"));
            let (placed, trouble) = placed(&names.each_ref().map(String::as_str));
            assert_eq!(
                placed,
                ["", "base", "base/1", "global/pg_control", "PG_VERSION"]
            );
            assert_eq!(trouble, None, "{top}");
        }
    }

    #[test]
    fn folders_of_the_data_directory_stay() {
        for first in ["", "base/", "pg_wal/", "backup_label"] {
            let names = [first, "base/1", "global/pg_control", "PG_VERSION"];
            let (placed, trouble) = placed(&names);
            assert_eq!(placed[0], first.trim_end_matches('/'));
            assert_eq!(&placed[1..], &names[1..]);
            assert_eq!(trouble, None, "{first}");
        }
        assert_eq!(placed(&["base/", "base/1"]).1, None, "cut");
    }

    #[test]
    fn what_turns_out_otherwise_is_told() {
        let (_, trouble) = placed(&["conf.d/", "conf.d/a", "global/pg_control", "PG_VERSION"]);
        assert!(trouble.is_some_and(|why| why.contains("not hold all")));
        let (_, trouble) = placed(&["d/global/pg_control", "d/PG_VERSION"]);
        assert!(trouble.is_some_and(|why| why.contains("not known")));
        let (_, trouble) = placed(&["var/", "var/d/", "var/d/global/pg_control"]);
        assert!(trouble.is_some_and(|why| why.contains("not known")));
    }
}
