//! Every place of a cluster that can be hurt: user relations of databases that are no templates, in
//! an order that the seed decides. Catalogs are left alone, since without them nothing has a name.

use std::collections::BTreeSet;

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Persistence, RelKind, Relation, read_block};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{BlockNo, Fork, Oid, Page, StatusLog};
use pgclinic_source::read_all;

mod wal;

use crate::injury::Wants;
use crate::injury_target::{InjuryTarget, InjuryTargetKind, TOAST_PAGE};

/// Blocks of one relation that are offered.
const BLOCKS_MAX: u32 = 256;
/// 32 pages of the largest size.
const SMALL_FILE_BYTES: u64 = 1024 * 1024;

/// Where to look.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Within {
    /// Only in this database.
    pub database: Option<String>,
    /// Only this relation, as `schema.name` or `name`; catalogs too. A table stands for its TOAST
    /// table where only pages of those can be hurt.
    pub relation: Option<String>,
    /// Only this block.
    pub block: Option<BlockNo>,
    /// Only this row.
    pub item: Option<u16>,
}

/// One place, not yet read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct InjuryTargetRef {
    database: usize,
    kind: InjuryTargetKind,
    relation: Oid,
    block: BlockNo,
    folder: String,
}

impl InjuryTargetRef {
    /// Kind of place.
    pub(crate) fn kind(&self) -> InjuryTargetKind {
        self.kind
    }

    /// Another block of the same fork.
    pub(crate) fn at_block(&self, block: BlockNo) -> Self {
        InjuryTargetRef {
            block,
            ..self.clone()
        }
    }
}

struct OpenDatabase {
    catalog: Catalog,
    forks: Vec<ForkFiles>,
    folder: String,
}

/// The databases of a cluster with catalogs and files, read once.
pub struct InjuryTargets<'a> {
    cluster: &'a Cluster,
    databases: Vec<OpenDatabase>,
}

impl<'a> InjuryTargets<'a> {
    /// Reads catalogs and lists files of every database that is no template.
    pub fn new(cluster: &'a Cluster) -> Self {
        let user = |database: &&pgclinic_cluster::Database| {
            let template = matches!(database.name.as_deref(), Some("template0" | "template1"));
            database.oid != 0 && !template && !database.invalid
        };
        let databases = cluster.databases.values().filter(user);
        let databases = databases.filter_map(|database| {
            let homes = || {
                cluster
                    .homes
                    .iter()
                    .filter(|home| home.database == database.oid)
            };
            let folder = homes().next()?.folder.clone();
            let forks = homes()
                .filter_map(|home| cluster.files(home).ok())
                .flatten()
                .collect();
            Some(OpenDatabase {
                catalog: cluster.catalog(database.oid),
                forks,
                folder,
            })
        });
        InjuryTargets {
            cluster,
            databases: databases.collect(),
        }
    }

    /// The cluster.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// The places that fit, in an order by the seed.
    pub fn find(&self, wants: Wants, within: &Within, seed: u64) -> Vec<InjuryTargetRef> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut found = Vec::new();
        for (index, database) in self.databases.iter().enumerate() {
            let name = database.catalog.database_name.as_deref();
            if within.database.is_some() && within.database.as_deref() != name {
                continue;
            }
            for kind in wants.kinds {
                self.find_kind(
                    index,
                    database,
                    *kind,
                    wants,
                    within,
                    &mut random,
                    &mut found,
                );
            }
        }
        found.sort();
        found.dedup();
        random.shuffle(&mut found);
        found
    }

    /// The forks whose pages fit, their first blocks as places, and how many blocks they have; in
    /// the order of databases, kinds and relations.
    pub(crate) fn forks(
        &self,
        wants: Wants,
        within: &Within,
    ) -> Vec<(&ForkFiles, InjuryTargetRef, BlockNo)> {
        let build = self.cluster.build;
        let mut found = Vec::new();
        for (index, database) in self.databases.iter().enumerate() {
            let name = database.catalog.database_name.as_deref();
            if within.database.is_some() && within.database.as_deref() != name {
                continue;
            }
            for &kind in wants.kinds {
                for relation in relations_of(&database.catalog, kind, wants, within) {
                    let Some(files) = fork_of(database, relation, kind) else {
                        continue;
                    };
                    let blocks = files.blocks(build.block_size, build.segment_bytes);
                    let at = InjuryTargetRef {
                        database: index,
                        kind,
                        relation: relation.oid,
                        block: 0,
                        folder: files.home.folder.clone(),
                    };
                    found.push((files, at, BlockNo::try_from(blocks).unwrap_or(BlockNo::MAX)));
                }
            }
        }
        found
    }

    #[allow(clippy::too_many_arguments)]
    fn find_kind(
        &self,
        index: usize,
        database: &OpenDatabase,
        kind: InjuryTargetKind,
        wants: Wants,
        within: &Within,
        random: &mut fastrand::Rng,
        found: &mut Vec<InjuryTargetRef>,
    ) {
        let target = |relation, block, folder: &str| InjuryTargetRef {
            database: index,
            kind,
            relation,
            block,
            folder: folder.into(),
        };
        match kind {
            InjuryTargetKind::ControlFile => found.push(InjuryTargetRef {
                database: 0,
                ..target(0, 0, "global")
            }),
            InjuryTargetKind::WalCheckpoint
            | InjuryTargetKind::WalHead
            | InjuryTargetKind::WalOlder => {
                let pages = wal::pages(self.cluster, kind);
                found.extend(pages.into_iter().map(|page| InjuryTargetRef {
                    database: 0,
                    ..target(0, page, "pg_wal")
                }));
            }
            InjuryTargetKind::VersionFile | InjuryTargetKind::RelationMap => {
                found.push(target(0, 0, &database.folder))
            }
            _ if is_of_cluster(kind) => {
                let of_cluster = |path: String| InjuryTargetRef {
                    database: 0,
                    ..target(0, 0, &path)
                };
                found.extend(self.cluster_files(kind).into_iter().map(of_cluster));
            }
            _ => {
                for relation in relations_of(&database.catalog, kind, wants, within) {
                    let Some(files) = fork_of(database, relation, kind) else {
                        continue;
                    };
                    if wants.needs_large && files.segments.len() < 2 {
                        continue;
                    }
                    for block in self.blocks_of(files, kind, within, random) {
                        found.push(target(relation.oid, block, &files.home.folder));
                    }
                }
            }
        }
    }

    fn blocks_of(
        &self,
        files: &ForkFiles,
        kind: InjuryTargetKind,
        within: &Within,
        random: &mut fastrand::Rng,
    ) -> Vec<BlockNo> {
        if !is_page(kind) {
            return vec![0];
        }
        let build = self.cluster.build;
        let blocks = files.blocks(build.block_size, build.segment_bytes);
        let blocks = BlockNo::try_from(blocks).unwrap_or(BlockNo::MAX);
        match within.block {
            Some(block) => Vec::from_iter((block < blocks).then_some(block)),
            None if blocks <= BLOCKS_MAX => (0..blocks).collect(),
            None => (0..BLOCKS_MAX).map(|_| random.u32(0..blocks)).collect(),
        }
    }

    /// Reads a place; nothing for pages of zeros, damaged ones, and what cannot be read.
    pub fn open(&self, at: &InjuryTargetRef, item: Option<u16>) -> Option<InjuryTarget<'_>> {
        let database = self.databases.get(at.database)?;
        let relation = database.catalog.relations.get(&at.relation);
        let files = relation.and_then(|relation| fork_of(database, relation, at.kind));
        let mut target = InjuryTarget {
            targets: self,
            cluster: self.cluster,
            catalog: Some(&database.catalog),
            relation,
            files,
            kind: at.kind,
            block: at.block,
            path: String::new(),
            offset: 0,
            bytes: Vec::new(),
            item,
        };
        if is_page(at.kind) {
            let build = self.cluster.build;
            let segment = u64::from(at.block).checked_div(build.segment_blocks())?;
            target.offset = u64::from(at.block).checked_rem(build.segment_blocks())?
                * u64::from(build.block_size);
            target.path = files?.path(u32::try_from(segment).ok()?);
            target.bytes = self.read_page(files?, at.block)?;
            return is_healthy(&target.bytes).then_some(target);
        }
        match at.kind {
            InjuryTargetKind::ControlFile => target.path = "global/pg_control".into(),
            InjuryTargetKind::VersionFile => target.path = format!("{}/PG_VERSION", at.folder),
            InjuryTargetKind::RelationMap => target.path = format!("{}/pg_filenode.map", at.folder),
            InjuryTargetKind::WalCheckpoint
            | InjuryTargetKind::WalHead
            | InjuryTargetKind::WalOlder => {
                (target.path, target.offset, target.bytes) = wal::read(self.cluster, at.block)?;
                return Some(target);
            }
            _ if is_of_cluster(at.kind) => target.path.clone_from(&at.folder),
            _ => {
                target.path = files?.path(0);
                return Some(target);
            }
        }
        target.bytes = read_all(
            self.cluster.source().as_ref(),
            &target.path,
            SMALL_FILE_BYTES,
        )
        .ok()?;
        Some(target)
    }

    /// The files of a kind that belong to no database.
    fn cluster_files(&self, kind: InjuryTargetKind) -> Vec<String> {
        if let Some(log) = status_log(kind) {
            let files = self.cluster.status_files(log).unwrap_or_default();
            return files.into_iter().map(|file| file.path).collect();
        }
        let (folder, file) = match kind {
            InjuryTargetKind::PreparedTransaction => ("pg_twophase", ""),
            InjuryTargetKind::ReplicationSlot => ("pg_replslot", "/state"),
            InjuryTargetKind::ReplicationOrigins => {
                return vec!["pg_logical/replorigin_checkpoint".into()];
            }
            _ => return Vec::new(),
        };
        let entries = self.cluster.source().list(folder).unwrap_or_default();
        let path = |entry: pgclinic_source::Entry| format!("{folder}/{}{file}", entry.name);
        entries.into_iter().map(path).collect()
    }

    pub(crate) fn read_page(&self, files: &ForkFiles, block: BlockNo) -> Option<Vec<u8>> {
        read_block(
            self.cluster.source().as_ref(),
            files,
            self.cluster.build,
            block,
        )
    }

    fn database_of(&self, target: &InjuryTarget<'_>) -> Option<&OpenDatabase> {
        let oid = target.catalog?.database;
        self.databases
            .iter()
            .find(|database| database.catalog.database == oid)
    }

    /// Another fork of the target's relation.
    pub(crate) fn sibling(&self, target: &InjuryTarget<'_>, fork: Fork) -> Option<&ForkFiles> {
        let own = target.files?;
        let same = |files: &&ForkFiles| {
            files.home == own.home
                && files.filenode == own.filenode
                && files.fork == fork
                && files.temporary.is_none()
        };
        self.database_of(target)?.forks.iter().find(same)
    }

    /// One healthy page of each other relation of the target's database that fits.
    pub(crate) fn donors(
        &self,
        target: &InjuryTarget<'_>,
        seed: u64,
        fits: impl Fn(&Relation) -> bool,
    ) -> Vec<(&Relation, BlockNo, Vec<u8>)> {
        let mut random = fastrand::Rng::with_seed(seed);
        let Some(database) = self.database_of(target) else {
            return Vec::new();
        };
        let own = target.relation.map(|relation| relation.oid);
        let build = self.cluster.build;
        let others = database.catalog.relations.values();
        let others =
            others.filter(|relation| relation.oid >= FIRST_NORMAL_OID && Some(relation.oid) != own);
        let mut donors = Vec::new();
        for relation in others.filter(|relation| fits(relation)) {
            let Some(files) = fork_of(database, relation, InjuryTargetKind::HeapPage) else {
                continue;
            };
            let blocks = BlockNo::try_from(files.blocks(build.block_size, build.segment_bytes))
                .unwrap_or(BlockNo::MAX);
            if blocks < 2 {
                continue;
            }
            let block = random.u32(1..blocks);
            if let Some(page) = self.read_page(files, block).filter(|page| is_healthy(page)) {
                donors.push((relation, block, page));
            }
        }
        random.shuffle(&mut donors);
        donors
    }
}

pub(crate) fn is_page(kind: InjuryTargetKind) -> bool {
    let own = [
        InjuryTargetKind::CatalogPage,
        InjuryTargetKind::FreeSpacePage,
    ];
    crate::injury_target::ANY_PAGE.contains(&kind) || own.contains(&kind)
}

/// Files that belong to no database.
pub(crate) fn is_of_cluster(kind: InjuryTargetKind) -> bool {
    status_log(kind).is_some()
        || matches!(
            kind,
            InjuryTargetKind::PreparedTransaction
                | InjuryTargetKind::ReplicationSlot
                | InjuryTargetKind::ReplicationOrigins
        )
}

fn status_log(kind: InjuryTargetKind) -> Option<StatusLog> {
    match kind {
        InjuryTargetKind::TransactionLog => Some(StatusLog::Xact),
        InjuryTargetKind::MultixactOffsets => Some(StatusLog::MultiOffsets),
        InjuryTargetKind::MultixactMembers => Some(StatusLog::MultiMembers),
        _ => None,
    }
}

fn is_healthy(bytes: &[u8]) -> bool {
    Page::parse(bytes).is_some_and(|page| !page.is_new() && page.header_is_sane_to_the_server())
}

/// Relations that have the kind of place. Rows of unlogged ones may be garbage after a crash.
fn relations_of<'a>(
    catalog: &'a Catalog,
    kind: InjuryTargetKind,
    wants: Wants,
    within: &'a Within,
) -> impl Iterator<Item = &'a Relation> {
    let toast = match &within.relation {
        Some(name) if wants.kinds == TOAST_PAGE => toast_tables_of(catalog, name),
        _ => BTreeSet::new(),
    };
    catalog.relations.values().filter(move |relation| {
        let asked_for = match &within.relation {
            Some(name) => is_named(relation, name) || toast.contains(&relation.oid),
            None => (relation.oid >= FIRST_NORMAL_OID) != (kind == InjuryTargetKind::CatalogPage),
        };
        let wanted = match kind {
            InjuryTargetKind::InitFile => Persistence::Unlogged,
            _ => Persistence::Permanent,
        };
        asked_for && relation.persistence == wanted && is_kind(relation.kind, kind)
    })
}

fn is_named(relation: &Relation, name: &str) -> bool {
    *name == relation.name || *name == relation.qualified_name()
}

/// The TOAST tables of the tables of this name.
fn toast_tables_of(catalog: &Catalog, name: &str) -> BTreeSet<Oid> {
    let named = catalog.relations.values();
    let named = named.filter(|relation| is_named(relation, name));
    named.map(|relation| relation.toast).collect()
}

fn is_kind(relation: RelKind, kind: InjuryTargetKind) -> bool {
    match kind {
        InjuryTargetKind::CatalogPage => relation == RelKind::Table,
        InjuryTargetKind::HeapPage
        | InjuryTargetKind::HeapFile
        | InjuryTargetKind::FreeSpacePage => {
            matches!(relation, RelKind::Table | RelKind::MaterializedView)
        }
        InjuryTargetKind::ToastPage => relation == RelKind::Toast,
        InjuryTargetKind::IndexPage | InjuryTargetKind::IndexFile => relation == RelKind::Index,
        InjuryTargetKind::SequencePage | InjuryTargetKind::SequenceFile => {
            relation == RelKind::Sequence
        }
        InjuryTargetKind::InitFile => {
            matches!(relation, RelKind::Table | RelKind::Index | RelKind::Toast)
        }
        InjuryTargetKind::VersionFile
        | InjuryTargetKind::ControlFile
        | InjuryTargetKind::RelationMap
        | InjuryTargetKind::TransactionLog
        | InjuryTargetKind::MultixactOffsets
        | InjuryTargetKind::MultixactMembers
        | InjuryTargetKind::PreparedTransaction
        | InjuryTargetKind::ReplicationSlot
        | InjuryTargetKind::ReplicationOrigins
        | InjuryTargetKind::WalCheckpoint
        | InjuryTargetKind::WalHead
        | InjuryTargetKind::WalOlder => false,
    }
}

fn fork_of<'a>(
    database: &'a OpenDatabase,
    relation: &Relation,
    kind: InjuryTargetKind,
) -> Option<&'a ForkFiles> {
    let fork = match kind {
        InjuryTargetKind::InitFile => Fork::Init,
        InjuryTargetKind::FreeSpacePage => Fork::Fsm,
        _ => Fork::Main,
    };
    database.forks.iter().find(|files| {
        files.filenode == relation.filenode
            && files.home.tablespace == relation.tablespace
            && files.fork == fork
            && files.temporary.is_none()
    })
}
