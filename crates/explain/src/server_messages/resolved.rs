//! What a cluster knows of the things that a message names.

use pgclinic_cluster::{
    Catalog, Cluster, DatabaseDirectory, ForkFiles, RelKind, Relation, RelationFileName,
};
use pgclinic_format::{BlockNo, Fork, Oid};
use pgclinic_model::document::FileKind;
use pgclinic_model::plural;
use pgclinic_source::SourceSpec;

use super::facts::Facts;
use super::rows_at_risk::{RowsAtRisk, rows_at_risk};
use super::status_files;

/// Databases whose catalogs are searched for a name.
const DATABASES_MAX: usize = 64;

/// A relation by name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// `public.docs`, as `--relation` wants it.
    pub name: String,
    /// As SQL wants it.
    pub sql_name: String,
    /// What it is.
    pub kind: FileKind,
}

/// What was found of a message's place.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Resolved {
    /// The data directory, as it was opened.
    pub pgdata: Option<String>,
    /// Name of the database; shared relations have none.
    pub database: Option<String>,
    /// The relation.
    pub relation: Option<Named>,
    /// The table behind a TOAST relation or an index.
    pub owner: Option<Named>,
    /// File that holds the block, with its segment.
    pub path: Option<String>,
    /// Number in the file's name.
    pub filenode: Option<Oid>,
    /// Fork.
    pub fork: Option<Fork>,
    /// Block through all segments of the fork.
    pub block: Option<BlockNo>,
    /// Half-open range of bytes of the block in `path`.
    pub bytes: Option<[u64; 2]>,
    /// Blocks of the fork.
    pub blocks: Option<u64>,
    /// Rows on the named block or blocks.
    pub rows: Option<RowsAtRisk>,
    /// What else the files say, as sentences.
    pub notes: Vec<String>,
}

/// Looks up what a message names. What cannot be found stands in `notes`.
pub fn resolve(cluster: &Cluster, facts: &Facts) -> Resolved {
    let mut resolved = Resolved {
        pgdata: folder_of(cluster.source().spec()),
        ..Resolved::default()
    };
    match &facts.relation_path {
        Some(path) => resolve_path(cluster, facts, path, &mut resolved),
        None => resolve_name(cluster, facts, &mut resolved),
    }
    status_files::notes(cluster, facts, &mut resolved.notes);
    resolved
}

fn folder_of(spec: &SourceSpec) -> Option<String> {
    match spec {
        SourceSpec::DataDirectory { path } => Some(path.display().to_string()),
        SourceSpec::Overlay { under, .. }
        | SourceSpec::Replayed { under }
        | SourceSpec::Limit { under, .. } => folder_of(under),
        SourceSpec::SingleFile { .. }
        | SourceSpec::TarBackup { .. }
        | SourceSpec::Chain { .. }
        | SourceSpec::Memory { .. }
        | SourceSpec::Server { .. } => None,
    }
}

/// `base/16384/28751_vm.1`, also with the data directory in front.
fn place_of<'a>(
    cluster: &'a Cluster,
    path: &str,
) -> Option<(&'a DatabaseDirectory, RelationFileName)> {
    let (folder, file) = path.rsplit_once('/')?;
    let file = RelationFileName::parse(file)?;
    let is_home = |home: &&DatabaseDirectory| {
        folder == home.folder || folder.ends_with(&format!("/{}", home.folder))
    };
    cluster.homes.iter().find(is_home).map(|home| (home, file))
}

fn resolve_path(cluster: &Cluster, facts: &Facts, path: &str, resolved: &mut Resolved) {
    let Some((home, file)) = place_of(cluster, path) else {
        let note = format!(
            "{path} does not lie in any directory of relation files of this cluster: is this the right cluster?"
        );
        return resolved.notes.push(note);
    };
    let catalog = cluster.catalog(home.database);
    resolved.database = catalog.database_name.clone();
    match catalog.by_file(home.tablespace, file.filenode) {
        Some(relation) => name_relation(&catalog, relation, resolved),
        None => resolved.notes.push(format!(
            "no relation of this cluster has the file number {} now: the relation was dropped or rewritten since \
             (VACUUM FULL, CLUSTER, TRUNCATE, REINDEX), or its row in pg_class is damaged",
            file.filenode
        )),
    }
    let relation = catalog.by_file(home.tablespace, file.filenode);
    let fork = ForkFile {
        home,
        filenode: file.filenode,
        fork: file.fork,
        segment: file.segment,
    };
    fork.resolve(cluster, facts, relation, resolved);
}

fn name_relation(catalog: &Catalog, relation: &Relation, resolved: &mut Resolved) {
    let owner = match relation.kind {
        RelKind::Toast => catalog.relations.get(&relation.toast_of),
        RelKind::Index => relation
            .index
            .as_ref()
            .and_then(|index| catalog.relations.get(&index.table)),
        _ => None,
    };
    resolved.relation = Some(named(relation));
    resolved.owner = owner.map(named);
}

fn named(relation: &Relation) -> Named {
    let kind = match relation.kind {
        RelKind::Table => FileKind::Table,
        RelKind::Index => FileKind::Index,
        RelKind::Sequence => FileKind::Sequence,
        RelKind::Toast => FileKind::Toast,
        RelKind::MaterializedView => FileKind::MaterializedView,
        RelKind::PartitionedTable | RelKind::WithoutStorage | RelKind::Unknown(_) => {
            FileKind::Unknown
        }
    };
    Named {
        name: relation.qualified_name(),
        sql_name: relation.sql_name(),
        kind,
    }
}

/// A fork on disk.
struct ForkFile<'a> {
    home: &'a DatabaseDirectory,
    filenode: Oid,
    fork: Fork,
    segment: u32,
}

impl ForkFile<'_> {
    fn resolve(
        &self,
        cluster: &Cluster,
        facts: &Facts,
        relation: Option<&Relation>,
        resolved: &mut Resolved,
    ) {
        resolved.filenode = Some(self.filenode);
        resolved.fork = Some(self.fork);
        let per_segment = cluster.build.segment_blocks().max(1);
        let in_file = facts
            .block_in_file
            .map(|block| u64::from(self.segment) * per_segment + u64::from(block));
        let block = in_file
            .or(facts.block.map(u64::from))
            .and_then(|block| BlockNo::try_from(block).ok());
        resolved.block = block;
        let Some(files) = self.files(cluster) else {
            let folder = &self.home.folder;
            return resolved.notes.push(format!(
                "{folder} holds no file {}{} now",
                self.filenode,
                self.fork.suffix()
            ));
        };
        let blocks = files.blocks(cluster.build.block_size, cluster.build.segment_bytes);
        resolved.blocks = Some(blocks);
        let Some(block) = block else {
            resolved.path = Some(files.path(self.segment));
            return;
        };
        let segment = u32::try_from(u64::from(block) / per_segment).unwrap_or(u32::MAX);
        let start = u64::from(block) % per_segment * u64::from(cluster.build.block_size);
        resolved.path = Some(files.path(segment));
        resolved.bytes = Some([start, start + u64::from(cluster.build.block_size)]);
        if u64::from(block) >= blocks {
            resolved.notes.push(format!(
                "the fork has {blocks} now: block {block} is not there",
                blocks = plural(blocks, "block")
            ));
        }
        let range = facts
            .blocks
            .unwrap_or([u64::from(block), u64::from(block) + 1]);
        resolved.rows =
            relation.and_then(|relation| rows_at_risk(cluster, &files, relation, range));
    }

    fn files(&self, cluster: &Cluster) -> Option<ForkFiles> {
        let forks = cluster.files(self.home).ok()?;
        let own = |files: &ForkFiles| {
            files.filenode == self.filenode && files.fork == self.fork && files.temporary.is_none()
        };
        forks.into_iter().find(own)
    }
}

/// The relation by the name that the message has, searched for in all databases.
fn resolve_name(cluster: &Cluster, facts: &Facts, resolved: &mut Resolved) {
    let name = [&facts.toast_relation, &facts.sequence, &facts.relation_name];
    let name = name.into_iter().flatten().next().map(String::as_str);
    if name.is_none() && facts.relation_oid.is_none() {
        return;
    }
    let wanted = |relation: &Relation| match name {
        Some(name) => name == relation.name || name == relation.qualified_name(),
        None => facts.relation_oid == Some(relation.oid) && relation.oid >= 16384,
    };
    let shown = name.map_or_else(
        || format!("OID {}", facts.relation_oid.unwrap_or_default()),
        str::to_owned,
    );
    let mut found = 0u32;
    for database in cluster.databases.keys().take(DATABASES_MAX) {
        let catalog = cluster.catalog(*database);
        let hits: Vec<&Relation> = catalog
            .relations
            .values()
            .filter(|relation| wanted(relation))
            .collect();
        let Some(relation) = hits
            .iter()
            .find(|hit| hit.schema != "pg_catalog")
            .or(hits.first())
        else {
            continue;
        };
        found += 1;
        if resolved.relation.is_none() {
            let first = Found {
                cluster,
                catalog: &catalog,
                relation,
            };
            first.resolve(facts, resolved);
            resolved.notes.extend((hits.len() > 1).then(|| {
                format!(
                    "{} relations of this database have the name {shown}; this is about {}",
                    hits.len(),
                    relation.qualified_name()
                )
            }));
        }
    }
    match found {
        0 => resolved.notes.push(format!(
            "no database of this cluster has a relation {shown} now"
        )),
        1 => {}
        more => resolved.notes.push(format!(
            "{more} databases have a relation {shown}; the first one is named here"
        )),
    }
}

/// A relation that was found by its name.
struct Found<'a> {
    cluster: &'a Cluster,
    catalog: &'a Catalog,
    relation: &'a Relation,
}

impl Found<'_> {
    fn resolve(&self, facts: &Facts, resolved: &mut Resolved) {
        resolved.database = self.catalog.database_name.clone();
        name_relation(self.catalog, self.relation, resolved);
        let in_database = |home: &&DatabaseDirectory| {
            home.tablespace == self.relation.tablespace && home.database == self.catalog.database
        };
        if let Some(home) = self.cluster.homes.iter().find(in_database) {
            let place = ForkFile {
                home,
                filenode: self.relation.filenode,
                fork: Fork::Main,
                segment: 0,
            };
            place.resolve(self.cluster, facts, Some(self.relation), resolved);
        }
    }
}
