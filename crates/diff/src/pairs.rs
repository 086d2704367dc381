//! The forks of one database in both copies, each with its other half.

use std::collections::BTreeMap;

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Persistence, Relation, selected};
use pgclinic_format::{Fork, Oid};
use pgclinic_model::document::{Copy, DiffCoverage, NotChecked};

use crate::DiffOptions;
use crate::page_comparison::Side;
use crate::tail::Tail;

/// Folders of one copy that cannot be listed: what the other copy has below them, this one may have
/// too.
struct Hidden(Vec<String>);

impl Hidden {
    fn of(cluster: &Cluster) -> Self {
        let troubles = cluster.troubles.iter();
        Hidden(troubles.map(|trouble| trouble.what.clone()).collect())
    }

    fn has(&self, folder: &str) -> bool {
        let mut hidden = self.0.iter();
        hidden.any(|own| {
            let rest = folder.strip_prefix(own.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    }
}

/// The folder cannot be listed in one of the copies.
pub(crate) fn is_hidden(sides: (Side<'_>, Side<'_>), folder: &str) -> bool {
    [sides.0, sides.1]
        .iter()
        .any(|side| Hidden::of(side.cluster).has(folder))
}

/// A fork in A, in B, or in both.
#[derive(Default)]
pub(crate) struct Pair {
    pub(crate) a: Option<ForkFiles>,
    pub(crate) b: Option<ForkFiles>,
    pub(crate) tail_a: Tail,
    pub(crate) tail_b: Tail,
}

impl Pair {
    fn a(&self) -> Option<&ForkFiles> {
        self.a.as_ref()
    }

    fn b(&self) -> Option<&ForkFiles> {
        self.b.as_ref()
    }

    /// The files in this copy, and what comes after a place in them.
    pub(crate) fn of(&self, copy: Copy) -> (Option<&ForkFiles>, &Tail) {
        match copy {
            Copy::A => (self.a(), &self.tail_a),
            Copy::B => (self.b(), &self.tail_b),
        }
    }

    /// The files of one of them, for its names.
    pub(crate) fn any(&self) -> Option<&ForkFiles> {
        self.a.as_ref().or(self.b.as_ref())
    }
}

/// The catalogs of both copies.
pub(crate) struct Names {
    a: Catalog,
    b: Catalog,
}

impl Names {
    pub(crate) fn read(sides: (Side<'_>, Side<'_>), database: Oid) -> Self {
        Names {
            a: sides.0.cluster.catalog_names(database),
            b: sides.1.cluster.catalog_names(database),
        }
    }

    /// The relation that owns the files, by either copy.
    pub(crate) fn relation(&self, files: &ForkFiles) -> Option<&Relation> {
        let (tablespace, filenode) = (files.home.tablespace, files.filenode);
        let in_a = self.a.by_file(tablespace, filenode);
        in_a.or_else(|| self.b.by_file(tablespace, filenode))
    }

    /// This copy's own catalogs name the files.
    pub(crate) fn name(&self, copy: Copy, files: &ForkFiles) -> bool {
        self.own(copy, files).is_some()
    }

    /// `relpages` by the own catalogs of this copy of that major; none of a relation that was never
    /// vacuumed. It is 0 then; 13 knows no other sign of that, later ones have `reltuples` -1.
    pub(crate) fn relpages(&self, copy: Copy, files: &ForkFiles, major: u16) -> Option<u64> {
        let own = self.own(copy, files)?;
        let is_known = own.relpages > 0 || (major > 13 && own.reltuples.is_some());
        is_known.then(|| u64::try_from(own.relpages).ok())?
    }

    fn own(&self, copy: Copy, files: &ForkFiles) -> Option<&Relation> {
        let own = match copy {
            Copy::A => &self.a,
            Copy::B => &self.b,
        };
        own.by_file(files.home.tablespace, files.filenode)
    }

    /// The table of a TOAST table or of its index, `public.docs`, by either copy.
    pub(crate) fn toast_owner(&self, relation: &Relation) -> Option<String> {
        let owner = self.a.toast_owner(relation);
        let owner = owner.or_else(|| self.b.toast_owner(relation));
        owner.map(Relation::qualified_name)
    }

    pub(crate) fn database(&self) -> Option<&str> {
        let name = self.a.database_name.as_deref();
        name.or(self.b.database_name.as_deref())
    }
}

/// Main and init forks that were asked for, in the order of their files.
pub(crate) fn pairs(
    sides: (Side<'_>, Side<'_>),
    database: Oid,
    names: &Names,
    options: &DiffOptions,
    coverage: &mut DiffCoverage,
) -> Vec<Pair> {
    let mut all: BTreeMap<(String, Oid, Fork), Pair> = BTreeMap::new();
    let (mut hidden_a, mut hidden_b) = (Hidden::of(sides.0.cluster), Hidden::of(sides.1.cluster));
    for files in forks(sides.0.cluster, database, &mut hidden_a, coverage) {
        let pair = all.entry(key(&files)).or_default();
        pair.a = Some(files);
    }
    for files in forks(sides.1.cluster, database, &mut hidden_b, coverage) {
        let pair = all.entry(key(&files)).or_default();
        pair.b = Some(files);
    }
    let asked = |pair: &Pair| {
        pair.any().is_some_and(|files| {
            let relation = names.relation(files);
            let unlogged = relation.is_some_and(|own| own.persistence == Persistence::Unlogged);
            selected::fork(&options.selection, files, relation)
                && (files.fork == Fork::Init || (files.fork == Fork::Main && !unlogged))
        })
    };
    let can_be_compared = |pair: &Pair| {
        let folder = pair.any().map_or("", |files| &files.home.folder);
        match (&pair.a, &pair.b) {
            (None, _) => !hidden_a.has(folder),
            (_, None) => !hidden_b.has(folder),
            (Some(a), Some(b)) => !a.segments.is_empty() && !b.segments.is_empty(),
        }
    };
    for (name, side) in [
        ("A", Pair::a as fn(&Pair) -> Option<&ForkFiles>),
        ("B", Pair::b),
    ] {
        let own = all.values().filter(|pair| asked(pair)).filter_map(side);
        tell_no_files(name, own, coverage);
    }
    all.into_values()
        .filter(|pair| asked(pair) && can_be_compared(pair))
        .collect()
}

/// Forks of which a copy has the name and nothing that can be read.
fn tell_no_files<'f>(
    name: &str,
    forks: impl Iterator<Item = &'f ForkFiles>,
    coverage: &mut DiffCoverage,
) {
    for files in forks.filter(|files| files.segments.is_empty()) {
        coverage.not_checked.push(NotChecked {
            what: format!("{} of {name}", files.path(0)),
            why: "it is no regular file".into(),
            inherent: false,
        });
    }
}

fn key(files: &ForkFiles) -> (String, Oid, Fork) {
    (files.home.folder.clone(), files.filenode, files.fork)
}

fn forks(
    cluster: &Cluster,
    database: Oid,
    hidden: &mut Hidden,
    coverage: &mut DiffCoverage,
) -> Vec<ForkFiles> {
    let mut forks = Vec::new();
    let homes = cluster.homes.iter();
    for home in homes.filter(|home| home.database == database) {
        match cluster.files(home) {
            Ok(files) => forks.extend(files.into_iter().filter(|own| own.temporary.is_none())),
            Err(trouble) => {
                hidden.0.push(home.folder.clone());
                // A server at work drops databases; one that is there and out of reach is told at
                // the end.
                coverage.not_checked.push(NotChecked {
                    what: trouble.what,
                    why: trouble.why,
                    inherent: cluster.is_running(),
                });
            }
        }
    }
    forks
}
