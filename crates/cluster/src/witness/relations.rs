//! Relations whose rows in `pg_class` are lost, named by the entries that its three indexes still
//! have.
//!
//! ```text
//! pg_class_oid_index                 oid                            ─┐
//! pg_class_relname_nsp_index         relname, relnamespace           ├─ joined by TID ─► a lost row
//! pg_class_tblspc_relfilenode_index  reltablespace, relfilenode     ─┘
//! ```
//!
//! The columns of the indexes never change within a HOT chain, so that all entries of one TID are
//! of one row. Entries of dead rows stay until VACUUM comes: what they name counts only with its
//! file, or with rows of `pg_attribute`, which go in the same transaction as those of `pg_class`.
//!
//! Truth: `src/include/catalog/pg_class.h`, `src/backend/catalog/heap.c`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use pgclinic_format::oid::{
    GLOBAL_TABLESPACE, PG_CLASS_OID_INDEX, PG_CLASS_RELNAME_NSP_INDEX,
    PG_CLASS_TBLSPC_RELFILENODE_INDEX,
};
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, Fork, Oid, RelationMap};

use super::entries::{NAME, WORD, each_entry};
use crate::catalog_encoding::CatalogEncoding;
use crate::cluster::Cluster;
use crate::comparison::Comparison;
use crate::file_name::fork_path;
use crate::files::DatabaseDirectory;
use crate::relation::{Column, Relation};
use crate::row_places::{PlaceState, RowPlaces};

/// A relation whose row in `pg_class` is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LostRelation {
    /// Its OID; nothing where only its name or its file is known.
    pub oid: Option<Oid>,
    /// Schema, or its OID as text when its name cannot be read; nothing where nobody tells.
    pub schema: Option<String>,
    /// Name.
    pub name: Option<String>,
    /// Number of its files; nothing where it has none, or nobody tells.
    pub filenode: Option<Oid>,
    /// OID of the tablespace that holds them.
    pub tablespace: Oid,
    /// The first segment of its main fork, from the root of the data directory, where that is
    /// there.
    pub path: Option<String>,
    /// Where its row stood.
    pub row: Option<Tid>,
    /// `pg_attribute` has columns of it.
    pub has_columns: bool,
    /// Catalogs that mention it, where nothing else does.
    pub mentioned_by: Vec<&'static str>,
    /// The page of its row could not be read: nobody knows whether the row is lost.
    pub is_unread: bool,
}

impl LostRelation {
    /// `schema.name`, as far as it is known, with the OID where the name is lost.
    pub fn words(&self) -> String {
        match (&self.schema, &self.name, self.oid, &self.path) {
            (Some(schema), Some(name), ..) => format!("{schema}.{name}"),
            (None, Some(name), ..) => name.clone(),
            (_, None, Some(oid), _) => format!("with OID {oid}"),
            (_, None, None, Some(path)) => format!("of file {path}"),
            (_, None, None, None) => "without a name".into(),
        }
    }
}

/// What is known while a database's catalogs are read.
pub(crate) struct ClassWitness<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) home: &'a DatabaseDirectory,
    pub(crate) words: CatalogEncoding,
    /// Where the rows of `pg_class` stand.
    pub(crate) places: &'a RowPlaces,
    pub(crate) relations: &'a BTreeMap<Oid, Relation>,
    /// What `pg_attribute` has, by relation; nothing where it was not read.
    pub(crate) columns: &'a BTreeMap<Oid, Vec<Column>>,
    /// No page of `pg_attribute` is bad or all zero: a relation without rows there is none, and its
    /// file a leftover.
    pub(crate) columns_are_whole: bool,
    /// Those columns are known to be in use: where the status of transactions is lost, they may be
    /// of a relation that was dropped.
    pub(crate) columns_are_live: bool,
}

/// What the indexes of `pg_class` say.
#[derive(Default)]
pub(crate) struct LostRelations {
    pub(crate) relations: Vec<LostRelation>,
    /// Entries that lead to pages which are lost, and those pages.
    pub(crate) entries_without_page: u64,
    pub(crate) lost_pages: BTreeSet<BlockNo>,
    /// Some index had all of its leaves.
    pub(crate) was_asked: bool,
}

/// What the entries of one TID say.
#[derive(Clone, Default)]
struct Candidate {
    oid: Option<Oid>,
    name: Option<Vec<u8>>,
    namespace: Option<Oid>,
    /// `reltablespace` and `relfilenode` as they stand.
    file: Option<(Oid, Oid)>,
}

/// Reads the indexes and keeps what is certainly lost.
pub(crate) fn lost_relations(class: &ClassWitness<'_>) -> LostRelations {
    let mut found = LostRelations::default();
    let mut candidates = BTreeMap::new();
    let whole = class.read_oids(&mut candidates, &mut found);
    found.was_asked = whole;
    if candidates.is_empty() && (whole || class.is_whole_without_index()) {
        class.add_described_with_files(&mut found.relations);
        return found;
    }
    found.was_asked |= class.read_names(&mut candidates, whole);
    found.was_asked |= class.read_files(&mut candidates, whole);
    found.relations = class.counted(candidates);
    if class.may_lack_rows(&found) {
        class.add_described_alone(&mut found.relations);
    } else {
        class.add_described_with_files(&mut found.relations);
    }
    found
}

type Candidates = BTreeMap<Tid, Candidate>;

impl ClassWitness<'_> {
    /// No page of `pg_class` gives reason to doubt that all of its rows are there.
    fn is_whole_without_index(&self) -> bool {
        self.places.is_sound() && !self.places.has_zeroed()
    }

    /// Rows may be lost that no entry names. An index that a server splits while it is read is
    /// no reason to think so.
    fn may_lack_rows(&self, found: &LostRelations) -> bool {
        let is_unheard = !found.was_asked && !self.places.are_on_their_way();
        is_unheard || found.entries_without_page > 0 || !self.places.is_sound()
    }

    fn read_oids(&self, candidates: &mut Candidates, found: &mut LostRelations) -> bool {
        each_entry(
            self.cluster,
            self.home,
            PG_CLASS_OID_INDEX,
            &[WORD],
            &mut |tid, keys| {
                let state = self.places.state(tid);
                if state.is_without_page() {
                    found.entries_without_page += 1;
                    found.lost_pages.insert(tid.block);
                }
                let Some(oid) = keys.oid(0) else {
                    return;
                };
                let is_known = self.relations.contains_key(&oid);
                // While a server writes, an entry leads to rows of another moment.
                let is_described = || !self.places.are_on_their_way() && self.describes(oid);
                if !is_known && (state != PlaceState::Row || is_described()) {
                    candidates.entry(tid).or_default().oid = Some(oid);
                }
            },
        )
    }

    fn read_names(&self, candidates: &mut Candidates, oids: bool) -> bool {
        let layouts = [NAME, WORD];
        each_entry(
            self.cluster,
            self.home,
            PG_CLASS_RELNAME_NSP_INDEX,
            &layouts,
            &mut |tid, keys| {
                let Some(candidate) = self.candidate(candidates, tid, oids) else {
                    return;
                };
                candidate.name = Some(keys.name(0).to_vec());
                candidate.namespace = keys.oid(1);
            },
        )
    }

    fn read_files(&self, candidates: &mut Candidates, oids: bool) -> bool {
        let layouts = [WORD, WORD];
        each_entry(
            self.cluster,
            self.home,
            PG_CLASS_TBLSPC_RELFILENODE_INDEX,
            &layouts,
            &mut |tid, keys| {
                let Some(candidate) = self.candidate(candidates, tid, oids) else {
                    return;
                };
                candidate.file = keys.oid(0).zip(keys.oid(1));
            },
        )
    }

    /// The candidate of a row; where not all OIDs could be asked for, any row of a page that is
    /// lost is one.
    fn candidate<'c>(
        &self,
        candidates: &'c mut Candidates,
        tid: Tid,
        oids: bool,
    ) -> Option<&'c mut Candidate> {
        if !oids && self.places.state(tid).is_without_page() {
            return Some(candidates.entry(tid).or_default());
        }
        candidates.get_mut(&tid)
    }

    /// The best candidate for each OID, where its file or its columns are there.
    fn counted(&self, candidates: Candidates) -> Vec<LostRelation> {
        let claimed: HashSet<(Oid, Oid)> = self
            .relations
            .values()
            .map(|relation| (relation.tablespace, relation.filenode))
            .collect();
        let maps = Maps::read(self.cluster, self.home);
        let mut best: BTreeMap<(Option<Oid>, Option<Tid>), LostRelation> = BTreeMap::new();
        for (tid, candidate) in candidates {
            let lost = self.lost(tid, candidate, &maps);
            let file = lost.filenode.map(|filenode| (lost.tablespace, filenode));
            let is_taken = file.is_some_and(|file| claimed.contains(&file));
            let state = self.places.state(tid);
            let is_without_row = state.is_without_page() || state == PlaceState::NoRow;
            let by_file = is_without_row && !self.columns_are_whole;
            let counts = lost.has_columns || (by_file && lost.path.is_some());
            if !counts || (is_taken && !lost.has_columns) {
                continue;
            }
            // Without an OID each row stands for itself.
            let key = (lost.oid, lost.row.filter(|_| lost.oid.is_none()));
            let is_better = |known: &LostRelation| {
                (lost.path.is_some(), lost.row) > (known.path.is_some(), known.row)
            };
            if best.get(&key).is_none_or(is_better) {
                best.insert(key, lost);
            }
        }
        best.into_values().collect()
    }

    fn lost(&self, tid: Tid, candidate: Candidate, maps: &Maps) -> LostRelation {
        let tablespace = match candidate.file {
            Some((0, _)) | None => self.home.tablespace,
            Some((tablespace, _)) => tablespace,
        };
        let filenode = match candidate.file {
            Some((_, 0)) => candidate.oid.and_then(|oid| maps.filenode(tablespace, oid)),
            Some((_, filenode)) => Some(filenode),
            // Nobody tells: most files still have the number of their relation.
            None => candidate.oid,
        };
        let path = filenode.and_then(|filenode| self.path_of(tablespace, filenode));
        // Where the index by OID cannot be asked, the number of the file may be the OID.
        let born = filenode.filter(|oid| self.is_described_alone(*oid));
        let oid = candidate.oid.or(born);
        let name = candidate.name.as_deref();
        LostRelation {
            oid,
            schema: candidate.namespace.map(|oid| oid.to_string()),
            name: name.map(|name| self.words.readable(name)),
            filenode: filenode.filter(|_| candidate.file.is_some() || path.is_some()),
            tablespace,
            path,
            row: Some(tid),
            has_columns: oid.is_some_and(|oid| self.describes(oid)),
            mentioned_by: Vec::new(),
            is_unread: self.places.state(tid) == PlaceState::Unread,
        }
    }

    /// `pg_attribute` has columns of the relation.
    fn describes(&self, oid: Oid) -> bool {
        self.columns_are_live && self.columns.contains_key(&oid)
    }

    fn is_described_alone(&self, oid: Oid) -> bool {
        self.describes(oid) && !self.relations.contains_key(&oid)
    }

    /// Relations that nothing but `pg_attribute` knows. Where every row of `pg_class` is met by its
    /// entry, that is for others to judge; here the row may well be among those that are lost.
    fn add_described_alone(&self, lost: &mut Vec<LostRelation>) {
        let named: HashSet<Oid> = lost.iter().filter_map(|lost| lost.oid).collect();
        let alone = self.columns.keys().copied();
        let alone = alone.filter(|oid| self.is_described_alone(*oid) && !named.contains(oid));
        lost.extend(alone.map(|oid| {
            let tablespace = self.home.tablespace;
            let path = self.path_of(tablespace, oid);
            LostRelation {
                oid: Some(oid),
                schema: None,
                name: None,
                filenode: path.as_ref().map(|_| oid),
                tablespace,
                path,
                row: None,
                has_columns: true,
                mentioned_by: Vec::new(),
                is_unread: self.places.has_unread(),
            }
        }));
    }

    /// The same where the file that the relation was born with is there, and nobody's: its row went
    /// with all entries that named it, as in an older copy of `pg_class` and its indexes.
    fn add_described_with_files(&self, lost: &mut Vec<LostRelation>) {
        if !self.cluster.may_compare(Comparison::FilesWithCatalogs) {
            return;
        }
        let mut described = Vec::new();
        self.add_described_alone(&mut described);
        let named: HashSet<Oid> = lost.iter().filter_map(|lost| lost.oid).collect();
        let files = self.relations.values();
        let claimed: HashSet<Oid> = files.map(|relation| relation.filenode).collect();
        lost.extend(described.into_iter().filter(|own| {
            let is_free = |filenode: &Oid| !claimed.contains(filenode);
            let is_new = own.oid.is_some_and(|oid| !named.contains(&oid));
            is_new && own.filenode.as_ref().is_some_and(is_free)
        }));
    }

    /// The first segment of a main fork, if it is there.
    fn path_of(&self, tablespace: Oid, filenode: Oid) -> Option<String> {
        let home = self.home_of(tablespace)?;
        let path = fork_path(&home.folder, filenode, Fork::Main, 0);
        self.cluster.source.len(&path).is_ok().then_some(path)
    }

    /// The directory of this database's files in a tablespace, or `global`.
    fn home_of(&self, tablespace: Oid) -> Option<&DatabaseDirectory> {
        let database = match tablespace {
            GLOBAL_TABLESPACE => 0,
            _ => self.home.database,
        };
        let mut homes = self.cluster.homes.iter();
        homes.find(|home| home.tablespace == tablespace && home.database == database)
    }
}

/// The relation maps of the database and of the shared relations.
struct Maps {
    local: Option<RelationMap>,
    shared: Option<RelationMap>,
}

impl Maps {
    fn read(cluster: &Cluster, home: &DatabaseDirectory) -> Self {
        let map = |home: &DatabaseDirectory| {
            cluster
                .relation_map(home)
                .ok()
                .filter(RelationMap::is_right)
        };
        let global = cluster
            .homes
            .iter()
            .find(|home| home.tablespace == GLOBAL_TABLESPACE);
        Maps {
            local: map(home),
            shared: global.and_then(map),
        }
    }

    /// Relations without files are in no map; without a map those of the system keep the number
    /// they were born with.
    fn filenode(&self, tablespace: Oid, oid: Oid) -> Option<Oid> {
        let map = match tablespace {
            GLOBAL_TABLESPACE => &self.shared,
            _ => &self.local,
        };
        map.as_ref().and_then(|map| map.filenode(oid))
    }
}
