//! A relation as its lost row in `pg_class` must have described it, as far as its file, its name
//! and other catalogs tell.

use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::oid::GLOBAL_TABLESPACE;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::{Fork, MultiXactId, Oid, Xid};

use super::relations::LostRelation;
use crate::cluster::Cluster;
use crate::file_name::fork_path;
use crate::files::DatabaseDirectory;
use crate::relation::{Column, Persistence, RelKind, Relation};

/// `PG_TOAST_NAMESPACE`.
const PG_TOAST: &str = "99";

/// The table whose TOAST relation has this name.
pub(crate) fn owner_by_toast_name(name: &str) -> Option<Oid> {
    name.strip_prefix("pg_toast_")?.parse().ok()
}

/// `MaxHeapAttributeNumber`, where nothing tells how many there are.
const COLUMNS_MAX: u16 = 1600;
/// The columns of a TOAST relation.
const TOAST_COLUMNS: [&str; 3] = ["chunk_id", "chunk_seq", "chunk_data"];
/// The schema of a relation that a cluster is born with, where nothing tells: `pg_catalog`.
const PG_CATALOG: &str = "11";

/// The relation, with the columns that `pg_attribute` has of it. What only its row could tell is
/// left at nothing: estimates, freeze limits.
pub(crate) fn rebuilt(
    cluster: &Cluster,
    lost: &LostRelation,
    columns: Option<&[Column]>,
) -> Option<Relation> {
    let oid = lost.oid?;
    let name = lost.name.clone();
    let schema = if oid < FIRST_NORMAL_OID {
        PG_CATALOG
    } else {
        ""
    };
    let relnatts = columns.map(|columns| columns.iter().map(|column| column.attnum).max());
    let columns = columns.unwrap_or_default();
    let mut relation = Relation {
        oid,
        schema: lost.schema.clone().unwrap_or_else(|| schema.to_owned()),
        name: name.unwrap_or_else(|| format!("relation_{oid}")),
        kind: RelKind::WithoutStorage,
        persistence: Persistence::Permanent,
        access_method: None,
        filenode: lost.filenode.unwrap_or(0),
        tablespace: lost.tablespace,
        shared: lost.tablespace == GLOBAL_TABLESPACE,
        relpages: 0,
        relallvisible: 0,
        reltuples: None,
        relfrozenxid: Xid::INVALID,
        relminmxid: MultiXactId(0),
        toast: 0,
        toast_of: 0,
        relnatts: relnatts.map_or(COLUMNS_MAX, Option::unwrap_or_default),
        populated: true,
        columns: None,
        layouts: None,
        index: None,
        being_built: false,
        foreign_method: None,
    };
    if let (Some(filenode), Some(home)) = (lost.filenode, home_of(cluster, lost)) {
        let files = cluster.fork_files(home, filenode, Fork::Main);
        let init = fork_path(&home.folder, filenode, Fork::Init, 0);
        if cluster.source.len(&init).is_ok() {
            relation.persistence = Persistence::Unlogged;
        }
        let mut names = columns.iter().map(|column| column.name.as_str());
        let has_chunks = columns.len() == 3 && names.all(|name| TOAST_COLUMNS.contains(&name));
        let is_named = relation.schema == PG_TOAST && owner_by_toast_name(&relation.name).is_some();
        let is_toast = is_named || (lost.name.is_none() && has_chunks);
        set_kind(&mut relation, cluster.method_of_content(&files), is_toast);
    }
    Some(relation)
}

/// By what its pages look like; a file without pages is taken for a table's until `pg_index` says
/// otherwise.
fn set_kind(relation: &mut Relation, method: Option<AccessMethod>, is_toast: bool) {
    relation.kind = match method {
        Some(AccessMethod::Sequence) => RelKind::Sequence,
        Some(AccessMethod::Heap) | None if is_toast => RelKind::Toast,
        Some(AccessMethod::Heap) | None => RelKind::Table,
        Some(_) => RelKind::Index,
    };
    relation.access_method = match relation.kind {
        RelKind::Sequence => None,
        RelKind::Table | RelKind::Toast => Some(AccessMethod::Heap),
        _ => method,
    };
}

/// What `pg_index` and operator classes say of a relation that was taken for a table.
pub(crate) fn settle_kind(relation: &mut Relation) {
    let Some(index) = &relation.index else {
        return;
    };
    if relation.kind == RelKind::Table {
        let class = index.classes.first();
        relation.kind = RelKind::Index;
        relation.access_method = class.and_then(|class| AccessMethod::from_oid(class.method));
    }
}

fn home_of<'c>(cluster: &'c Cluster, lost: &LostRelation) -> Option<&'c DatabaseDirectory> {
    let path = lost.path.as_deref()?;
    let mut homes = cluster.homes.iter();
    homes.find(|home| {
        path.rsplit_once('/')
            .is_some_and(|(folder, _)| folder == home.folder)
    })
}
