//! Every place of a cluster that can be hurt: user relations of databases that are no templates, in an
//! order that the seed decides. Catalogs are left alone, since without them nothing has a name.

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Persistence, RelKind, Relation, read_block};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{BlockNo, Fork, Oid, Page, StatusLog};
use pgclinic_source::read_all;

mod wal;

use crate::injury::SiteWants;
use crate::site::{Site, SiteKind};

/// Blocks of one relation that are offered.
const BLOCKS_MAX: u32 = 256;
/// 32 pages of the largest size.
const SMALL_FILE_BYTES: u64 = 1024 * 1024;

/// Where to look.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Within {
    /// Only in this database.
    pub database: Option<String>,
    /// Only this relation, as `schema.name` or `name`; catalogs too.
    pub relation: Option<String>,
    /// Only this block.
    pub block: Option<BlockNo>,
    /// Only this row.
    pub item: Option<u16>,
}

/// One place, not yet read.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SiteRef {
    database: usize,
    kind: SiteKind,
    relation: Oid,
    block: BlockNo,
    folder: String,
}

struct OpenDatabase {
    catalog: Catalog,
    forks: Vec<ForkFiles>,
    folder: String,
}

/// The databases of a cluster with catalogs and files, read once.
pub struct Sites<'a> {
    cluster: &'a Cluster,
    databases: Vec<OpenDatabase>,
}

impl<'a> Sites<'a> {
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
        Sites {
            cluster,
            databases: databases.collect(),
        }
    }

    /// The cluster.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// The places that fit, in an order by the seed.
    pub fn find(&self, wants: SiteWants, within: &Within, seed: u64) -> Vec<SiteRef> {
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

    #[allow(clippy::too_many_arguments)]
    fn find_kind(
        &self,
        index: usize,
        database: &OpenDatabase,
        kind: SiteKind,
        wants: SiteWants,
        within: &Within,
        random: &mut fastrand::Rng,
        found: &mut Vec<SiteRef>,
    ) {
        let site = |relation, block, folder: &str| SiteRef {
            database: index,
            kind,
            relation,
            block,
            folder: folder.into(),
        };
        match kind {
            SiteKind::ControlFile => found.push(SiteRef {
                database: 0,
                ..site(0, 0, "global")
            }),
            SiteKind::WalCheckpoint | SiteKind::WalHead | SiteKind::WalOlder => {
                let pages = wal::pages(self.cluster, kind);
                found.extend(pages.into_iter().map(|page| SiteRef {
                    database: 0,
                    ..site(0, page, "pg_wal")
                }));
            }
            SiteKind::VersionFile | SiteKind::RelationMap => {
                found.push(site(0, 0, &database.folder))
            }
            _ if is_of_cluster(kind) => {
                let of_cluster = |path: String| SiteRef {
                    database: 0,
                    ..site(0, 0, &path)
                };
                found.extend(self.cluster_files(kind).into_iter().map(of_cluster));
            }
            _ => {
                for relation in relations_of(&database.catalog, kind, within) {
                    let Some(files) = fork_of(database, relation, kind) else {
                        continue;
                    };
                    if wants.needs_large && files.segments.len() < 2 {
                        continue;
                    }
                    for block in self.blocks_of(files, kind, within, random) {
                        found.push(site(relation.oid, block, &files.home.folder));
                    }
                }
            }
        }
    }

    fn blocks_of(
        &self,
        files: &ForkFiles,
        kind: SiteKind,
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
    pub fn open(&self, at: &SiteRef, item: Option<u16>) -> Option<Site<'_>> {
        let database = self.databases.get(at.database)?;
        let relation = database.catalog.relations.get(&at.relation);
        let files = relation.and_then(|relation| fork_of(database, relation, at.kind));
        let mut site = Site {
            sites: self,
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
            site.offset = u64::from(at.block).checked_rem(build.segment_blocks())?
                * u64::from(build.block_size);
            site.path = files?.path(u32::try_from(segment).ok()?);
            site.bytes = self.read_page(files?, at.block)?;
            return is_healthy(&site.bytes).then_some(site);
        }
        match at.kind {
            SiteKind::ControlFile => site.path = "global/pg_control".into(),
            SiteKind::VersionFile => site.path = format!("{}/PG_VERSION", at.folder),
            SiteKind::RelationMap => site.path = format!("{}/pg_filenode.map", at.folder),
            SiteKind::WalCheckpoint | SiteKind::WalHead | SiteKind::WalOlder => {
                (site.path, site.offset, site.bytes) = wal::read(self.cluster, at.block)?;
                return Some(site);
            }
            _ if is_of_cluster(at.kind) => site.path.clone_from(&at.folder),
            _ => {
                site.path = files?.path(0);
                return Some(site);
            }
        }
        site.bytes = read_all(self.cluster.source().as_ref(), &site.path, SMALL_FILE_BYTES).ok()?;
        Some(site)
    }

    /// The files of a kind that belong to no database.
    fn cluster_files(&self, kind: SiteKind) -> Vec<String> {
        if let Some(log) = status_log(kind) {
            let files = self.cluster.status_files(log).unwrap_or_default();
            return files.into_iter().map(|file| file.path).collect();
        }
        let (folder, file) = match kind {
            SiteKind::PreparedTransaction => ("pg_twophase", ""),
            SiteKind::ReplicationSlot => ("pg_replslot", "/state"),
            SiteKind::ReplicationOrigins => {
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

    fn database_of(&self, site: &Site<'_>) -> Option<&OpenDatabase> {
        let oid = site.catalog?.database;
        self.databases
            .iter()
            .find(|database| database.catalog.database == oid)
    }

    /// Another fork of the site's relation.
    pub(crate) fn sibling(&self, site: &Site<'_>, fork: Fork) -> Option<&ForkFiles> {
        let own = site.files?;
        let same = |files: &&ForkFiles| {
            files.home == own.home
                && files.filenode == own.filenode
                && files.fork == fork
                && files.temporary.is_none()
        };
        self.database_of(site)?.forks.iter().find(same)
    }

    /// One healthy page of each other relation of the site's database that fits.
    pub(crate) fn donors(
        &self,
        site: &Site<'_>,
        seed: u64,
        fits: impl Fn(&Relation) -> bool,
    ) -> Vec<(&Relation, BlockNo, Vec<u8>)> {
        let mut random = fastrand::Rng::with_seed(seed);
        let Some(database) = self.database_of(site) else {
            return Vec::new();
        };
        let own = site.relation.map(|relation| relation.oid);
        let build = self.cluster.build;
        let others = database.catalog.relations.values();
        let others =
            others.filter(|relation| relation.oid >= FIRST_NORMAL_OID && Some(relation.oid) != own);
        let mut donors = Vec::new();
        for relation in others.filter(|relation| fits(relation)) {
            let Some(files) = fork_of(database, relation, SiteKind::HeapPage) else {
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

pub(crate) fn is_page(kind: SiteKind) -> bool {
    let own = [SiteKind::CatalogPage, SiteKind::FreeSpacePage];
    crate::site::ANY_PAGE.contains(&kind) || own.contains(&kind)
}

/// Files that belong to no database.
pub(crate) fn is_of_cluster(kind: SiteKind) -> bool {
    status_log(kind).is_some()
        || matches!(
            kind,
            SiteKind::PreparedTransaction
                | SiteKind::ReplicationSlot
                | SiteKind::ReplicationOrigins
        )
}

fn status_log(kind: SiteKind) -> Option<StatusLog> {
    match kind {
        SiteKind::TransactionLog => Some(StatusLog::Xact),
        SiteKind::MultixactOffsets => Some(StatusLog::MultiOffsets),
        SiteKind::MultixactMembers => Some(StatusLog::MultiMembers),
        _ => None,
    }
}

fn is_healthy(bytes: &[u8]) -> bool {
    Page::parse(bytes).is_some_and(|page| !page.is_new() && page.header_is_sane_to_the_server())
}

/// Relations that have the kind of place. Rows of unlogged ones may be garbage after a crash.
fn relations_of<'a>(
    catalog: &'a Catalog,
    kind: SiteKind,
    within: &'a Within,
) -> impl Iterator<Item = &'a Relation> {
    catalog.relations.values().filter(move |relation| {
        let asked_for = match &within.relation {
            Some(name) => *name == relation.name || *name == relation.qualified_name(),
            None => (relation.oid >= FIRST_NORMAL_OID) != (kind == SiteKind::CatalogPage),
        };
        let wanted = match kind {
            SiteKind::InitFile => Persistence::Unlogged,
            _ => Persistence::Permanent,
        };
        asked_for && relation.persistence == wanted && is_kind(relation.kind, kind)
    })
}

fn is_kind(relation: RelKind, kind: SiteKind) -> bool {
    match kind {
        SiteKind::CatalogPage => relation == RelKind::Table,
        SiteKind::HeapPage | SiteKind::HeapFile | SiteKind::FreeSpacePage => {
            matches!(relation, RelKind::Table | RelKind::MaterializedView)
        }
        SiteKind::ToastPage => relation == RelKind::Toast,
        SiteKind::IndexPage | SiteKind::IndexFile => relation == RelKind::Index,
        SiteKind::SequencePage | SiteKind::SequenceFile => relation == RelKind::Sequence,
        SiteKind::InitFile => matches!(relation, RelKind::Table | RelKind::Index | RelKind::Toast),
        SiteKind::VersionFile
        | SiteKind::ControlFile
        | SiteKind::RelationMap
        | SiteKind::TransactionLog
        | SiteKind::MultixactOffsets
        | SiteKind::MultixactMembers
        | SiteKind::PreparedTransaction
        | SiteKind::ReplicationSlot
        | SiteKind::ReplicationOrigins
        | SiteKind::WalCheckpoint
        | SiteKind::WalHead
        | SiteKind::WalOlder => false,
    }
}

fn fork_of<'a>(
    database: &'a OpenDatabase,
    relation: &Relation,
    kind: SiteKind,
) -> Option<&'a ForkFiles> {
    let fork = match kind {
        SiteKind::InitFile => Fork::Init,
        SiteKind::FreeSpacePage => Fork::Fsm,
        _ => Fork::Main,
    };
    database.forks.iter().find(|files| {
        files.filenode == relation.filenode
            && files.home.tablespace == relation.tablespace
            && files.fork == fork
            && files.temporary.is_none()
    })
}
