//! `pg_filenode.map`: which file holds which mapped catalog. A catalog keeps the number that it was
//! born with until VACUUM FULL, CLUSTER or REINDEX writes it anew under another one, and then the
//! file of its first number is emptied, and goes with the next checkpoint.
//!
//! Truth: `src/backend/utils/cache/relmapper.c`.

use std::cell::LazyCell;
use std::collections::BTreeMap;

use pgclinic_cluster::wal::{LoggedMaps, ReplaySpace, StartKind};
use pgclinic_cluster::{Cluster, Comparison, DatabaseDirectory, ReadGap, RelKind, Relation};
use pgclinic_format::build::put_u32;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::oid::{PG_AUTHID, PG_DATABASE, PG_TABLESPACE};
use pgclinic_format::relation_map::{MAGIC, seal};
use pgclinic_format::{ColumnLayout, HeapTuple, LpFlags, Oid, Page, RelationMap};
use pgclinic_model::plan::Safety;
use pgclinic_model::plural;
use pgclinic_source::EntryKind;
use pgclinic_spill::{MemoryPlan, Part};

use super::databases::is_first_home;
use super::logged_map::logged;
use super::map_evidence::Rewritten;
use super::{Draft, Found, StartOptions, Stops, with_drafts, write};
use crate::error::Result;

pub(super) const NAME: &str = "relation-map-from-files";

/// Without rows in them no server starts.
pub(super) const NEVER_EMPTY: [Oid; 3] = [PG_DATABASE, PG_AUTHID, PG_TABLESPACE];
const NO_OTHERS: &str = "every other file of the directory is that of a relation";
/// Files that are named.
const FILES_NAMED: usize = 5;

/// What becomes of each map that cannot be read. Which databases there are, only the map of the
/// shared catalogs tells: it comes first.
pub(super) fn found(cluster: &Cluster, options: &StartOptions<'_>) -> Result<Found> {
    let logged = LazyCell::new(|| cluster.logged_maps());
    let shared = cluster.homes.iter().filter(|home| home.database == 0);
    let mut found = Found::default();
    for home in shared.filter(|home| right_map(cluster, home).is_none()) {
        let map = map_of_home(cluster, home, logged.as_ref(), options)?;
        found.add(became(cluster, home, Stops::Start, map));
    }
    let mapped = with_drafts(cluster, &found.drafts)?;
    let cluster = mapped.as_ref().unwrap_or(cluster);
    let own = cluster.homes.iter().filter(|home| home.database != 0);
    let own = own.filter(|home| is_first_home(cluster, home));
    for home in own.filter(|home| right_map(cluster, home).is_none()) {
        let map = map_of_home(cluster, home, logged.as_ref(), options)?;
        found.add(became(cluster, home, Stops::Other, map));
    }
    Ok(found)
}

/// What becomes of the map of a directory.
fn became(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    stops: Stops,
    map: std::result::Result<Map, String>,
) -> Found {
    let path = format!("{}/pg_filenode.map", home.folder);
    let mut found = Found::default();
    match map {
        Ok(map) => found.drafts.push(draft(cluster, &path, map)),
        Err(why) => found.leave_open(&path, stops, why),
    }
    found
}

/// By WAL, else by the files of the directory.
fn map_of_home(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    maps: Option<&LoggedMaps>,
    options: &StartOptions<'_>,
) -> Result<std::result::Result<Map, String>> {
    let catalogs = mapped_catalogs(cluster, home);
    let mapped = catalogs.as_ref().map(|own| own.mapped.as_slice());
    if let Some(map) = logged(cluster, home, maps, mapped) {
        return Ok(Ok(map));
    }
    Ok(match catalogs {
        Some(catalogs) => match born(cluster, home, &catalogs)? {
            Err(why) => {
                let rewritten = rewritten(cluster, home, &catalogs, options)?;
                rewritten.map_err(|reason| format!("{why}: {reason}"))
            }
            born => born,
        },
        None => Err("no other map that can be read says which catalogs it holds".into()),
    })
}

fn right_map(cluster: &Cluster, home: &DatabaseDirectory) -> Option<RelationMap> {
    let map = cluster.relation_map(home).ok()?;
    map.is_right().then_some(map)
}

/// A catalog or index that a map holds.
pub(super) struct Mapped {
    pub(super) oid: Oid,
    /// It may have no rows, and a file without bytes.
    pub(super) may_be_empty: bool,
    /// Columns, where they are known.
    natts: Option<u16>,
    pub(super) layouts: Option<Vec<ColumnLayout>>,
    /// Of an index, its table.
    pub(super) table: Option<Oid>,
    /// Its columns in the table, counted from 1.
    pub(super) keys: Vec<i16>,
    /// Of a TOAST table, the table whose values it has.
    pub(super) owner: Option<Oid>,
}

impl Mapped {
    fn of(oid: Oid, may_be_empty: bool, relation: Option<&Relation>) -> Self {
        let index = relation.and_then(|own| own.index.as_ref());
        let toast = relation.filter(|own| own.kind == RelKind::Toast);
        Mapped {
            oid,
            may_be_empty,
            natts: relation.map(|own| own.relnatts),
            layouts: relation.and_then(|own| own.layouts.clone()),
            table: index.map(|own| own.table),
            keys: index.map_or_else(Vec::new, |own| own.keys.clone()),
            owner: toast.map(|own| own.toast_of),
        }
    }

    /// The file that it was born with is not there, or cannot be it.
    pub(super) fn lacks_its_file(&self, files: &BTreeMap<Oid, u64>) -> bool {
        match files.get(&self.oid) {
            Some(0) => !self.may_be_empty,
            Some(_) => false,
            None => true,
        }
    }
}

/// The catalogs of a map, and who says so.
struct Catalogs {
    mapped: Vec<Mapped>,
    why: String,
}

/// All that a map must hold: shared catalogs are named by `pg_class` of every database, those of a
/// database by the map of another one.
fn mapped_catalogs(cluster: &Cluster, home: &DatabaseDirectory) -> Option<Catalogs> {
    let others = cluster.homes.iter();
    let mut others = others.filter(|other| other.database != 0 && other.database != home.database);
    let (other, map) = others.find_map(|other| Some((other, right_map(cluster, other)?)))?;
    if home.database == 0 {
        let catalog = cluster.catalog(0);
        let shared = catalog.relations.values();
        let shared = shared.filter(|own| own.kind.has_storage());
        let mapped: Vec<Mapped> = shared
            .map(|own| {
                let may_be_empty = own.kind != RelKind::Index && !NEVER_EMPTY.contains(&own.oid);
                Mapped::of(own.oid, may_be_empty, Some(own))
            })
            .collect();
        let why = "pg_class of a database names the shared catalogs".to_owned();
        let is_whole = NEVER_EMPTY
            .iter()
            .all(|oid| mapped.iter().any(|own| own.oid == *oid));
        let is_read = |trouble: &ReadGap| !trouble.what.contains("catalog pg_class ");
        let is_whole = is_whole && catalog.troubles.iter().all(is_read);
        return is_whole.then_some(Catalogs { mapped, why });
    }
    let catalog = cluster.catalog(other.database);
    let mapped = map.mappings.iter().map(|(oid, _)| {
        let relation = catalog.relations.get(oid);
        let may_be_empty = relation.is_some_and(|own| own.kind == RelKind::Toast);
        Mapped::of(*oid, may_be_empty, relation)
    });
    Some(Catalogs {
        mapped: mapped.collect(),
        why: format!("the map in {} names the mapped catalogs", other.folder),
    })
}

/// A map that was made, and how sure it is.
pub(super) struct Map {
    pub(super) bytes: Vec<u8>,
    pub(super) why: Vec<String>,
    /// Files that belong to nothing.
    pub(super) nobodys: Vec<String>,
}

/// Every catalog in the file that has its own number, where nothing says that one was written anew.
fn born(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    catalogs: &Catalogs,
) -> Result<std::result::Result<Map, String>> {
    let files = files(cluster, &home.folder);
    let mut all = catalogs.mapped.iter();
    if let Some(first) = all.find(|own| own.lacks_its_file(&files)) {
        return Ok(Err(format!(
            "{}/{} is not there, or is empty: that catalog was rewritten, and nothing says under which number",
            home.folder, first.oid
        )));
    }
    let oids: Vec<Oid> = catalogs.mapped.iter().map(|own| own.oid).collect();
    let pairs: Vec<(Oid, Oid)> = oids.iter().map(|oid| (*oid, *oid)).collect();
    let Some(bytes) = map_of(cluster.layout.relation_map_bytes, &pairs) else {
        return Ok(Err("so many mappings have no room in a map".into()));
    };
    let nobodys = nobodys(cluster, home, (&files, &oids), &bytes)?;
    let empty = catalogs.mapped.iter();
    let empty = empty.filter(|own| files.get(&own.oid) == Some(&0));
    let empty: Vec<&Mapped> = empty.collect();
    let may_be_one = |(number, bytes): &(&Oid, &u64)| {
        **bytes > 0 && may_be_one_of(cluster, &format!("{}/{number}", home.folder), &empty)
    };
    if let Some((number, _)) = nobodys.iter().find(may_be_one) {
        return Ok(Err(format!(
            "{}/{number} belongs to nothing that is known, and may be a catalog that was rewritten",
            home.folder
        )));
    }
    let names = nobodys.keys().take(FILES_NAMED);
    let names = names.map(|number| format!("{}/{number}", home.folder));
    let born = format!(
        "the files of all {} catalogs and indexes are there under the numbers that they were born with, which they lose when they are rewritten",
        oids.len()
    );
    let mut why = vec![catalogs.why.clone(), born];
    why.extend(nobodys.is_empty().then(|| NO_OTHERS.to_owned()));
    Ok(Ok(Map {
        bytes,
        why,
        nobodys: names.collect(),
    }))
}

/// Catalogs that were written anew, where their rows and indexes tell which files they have.
fn rewritten(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    catalogs: &Catalogs,
    options: &StartOptions<'_>,
) -> Result<std::result::Result<Map, String>> {
    let mut replayed = None;
    if !cluster.may_compare(Comparison::ForksOfRelation) {
        replayed = self::replayed(cluster, options);
        if replayed.is_none() {
            let why = "tables and indexes are of different moments until a recovery ran, and not all WAL for it is there";
            return Ok(Err(why.into()));
        }
    }
    let cluster = replayed.as_ref().unwrap_or(cluster);
    let files = files(cluster, &home.folder);
    let rewritten = Rewritten {
        cluster,
        home,
        catalogs: &catalogs.mapped,
        files: &files,
        options,
    };
    let map = match rewritten.map()? {
        Ok(map) => map,
        Err(why) => return Ok(Err(why)),
    };
    let pairs: Vec<(Oid, Oid)> = map.into_iter().collect();
    let moved = pairs.iter().filter(|(oid, number)| oid != number);
    let moved: Vec<String> = moved
        .map(|(oid, number)| format!("{oid} in {number}"))
        .collect();
    let bytes = map_of(cluster.layout.relation_map_bytes, &pairs);
    let (as_left, proof) = if replayed.is_some() {
        let proof = "every file of the directory is accounted for, and so are the";
        ("as recovery leaves them, ", proof)
    } else {
        ("", "the full check finds no damage in the")
    };
    let evidence = format!(
        "rewritten were {}: {as_left}no other file has rows of these columns, and entries of no other index name rows that have their keys; {proof} {} of this map",
        moved.join(", "),
        plural(pairs.len(), "file")
    );
    let map = bytes.map(|bytes| Map {
        bytes,
        why: vec![catalogs.why.clone(), evidence, NO_OTHERS.to_owned()],
        nobodys: Vec::new(),
    });
    Ok(map.ok_or_else(|| "so many mappings have no room in a map".into()))
}

/// The cluster as a recovery leaves it that reads all of its WAL.
fn replayed(cluster: &Cluster, options: &StartOptions<'_>) -> Option<Cluster> {
    let is_crash = cluster.recovery()?.start.kind == StartKind::Crash;
    let memory = MemoryPlan::default();
    let space = ReplaySpace {
        memory: memory.part(Part::ReplayedPages),
        spill_folder: Some(options.temp_folder),
    };
    let (replayed, what) = cluster.replayed(&space).filter(|_| is_crash)?;
    what.is_complete.then_some(replayed)
}

/// Rows of the file have as many columns as one of these catalogs, or nobody knows how many.
fn may_be_one_of(cluster: &Cluster, path: &str, catalogs: &[&Mapped]) -> bool {
    if catalogs.is_empty() {
        return false;
    }
    let len = usize::try_from(cluster.build.block_size).unwrap_or_default();
    let mut bytes = vec![0; len];
    let read = cluster.source().read_at(path, 0, &mut bytes);
    let page = read.ok().and_then(|_| Page::parse(&bytes));
    let Some(page) = page.filter(|page| !page.is_new()) else {
        return true;
    };
    if AccessMethod::guess(page) != Some(AccessMethod::Heap) {
        return false;
    }
    let rows = page.line_pointers();
    let rows = rows.filter(|(_, pointer)| pointer.flags() == LpFlags::Normal);
    let mut rows = rows.filter_map(|(_, pointer)| HeapTuple::parse(page.item(pointer)?));
    let columns = rows.next().map(|row| row.attribute_count());
    columns.is_none_or(|columns| {
        let natts = catalogs.iter().map(|own| own.natts);
        natts
            .into_iter()
            .any(|own| own.is_none_or(|own| own == columns))
    })
}

/// Files that are no mapped catalog's and no other relation's, with this map.
fn nobodys(
    cluster: &Cluster,
    home: &DatabaseDirectory,
    (files, oids): (&BTreeMap<Oid, u64>, &[Oid]),
    map: &[u8],
) -> Result<BTreeMap<Oid, u64>> {
    let path = format!("{}/pg_filenode.map", home.folder);
    let draft = draft_of(cluster, &path, map.to_vec());
    let with_map = with_drafts(cluster, std::slice::from_ref(&draft))?;
    let cluster = with_map.as_ref().unwrap_or(cluster);
    let catalog = (home.database != 0).then(|| cluster.catalog(home.database));
    let is_known = |number: &Oid| {
        let catalog = catalog.as_ref();
        let relation = catalog.and_then(|own| own.by_file(home.tablespace, *number));
        oids.contains(number) || relation.is_some()
    };
    let own = files.iter().filter(|(number, _)| !is_known(number));
    Ok(own.map(|(number, bytes)| (*number, *bytes)).collect())
}

pub(super) fn draft_of(cluster: &Cluster, path: &str, bytes: Vec<u8>) -> Draft {
    let len = bytes.len() as u64;
    let summary = "the map is written again: which file holds which mapped catalog";
    let change = write(cluster, path, bytes, len);
    Draft::new(NAME, Safety::Exact, path, summary).change("written again", change)
}

fn draft(cluster: &Cluster, path: &str, map: Map) -> Draft {
    let draft = draft_of(cluster, path, map.bytes);
    let draft = map.why.into_iter().fold(draft, Draft::because);
    if map.nobodys.is_empty() {
        return draft;
    }
    let draft = Draft {
        safety: Safety::Lossy,
        ..draft
    };
    draft.warn(format!(
        "files that belong to no relation are there, such as {}: right unless one of them is a catalog that was being rewritten",
        map.nobodys.join(", ")
    ))
}

/// Relations with files in a directory, by number, with the bytes of their first segment.
pub(super) fn files(cluster: &Cluster, directory: &str) -> BTreeMap<Oid, u64> {
    let source = cluster.source().as_ref();
    let entries = source.list(directory).unwrap_or_default().into_iter();
    let files = entries.filter(|entry| entry.kind == EntryKind::File);
    files
        .filter_map(|entry| {
            let number: Oid = entry.name.parse().ok()?;
            Some((number, source.len(&format!("{directory}/{number}")).ok()?))
        })
        .collect()
}

pub(super) fn map_of(len: usize, pairs: &[(Oid, Oid)]) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    put_u32(&mut bytes, 0, MAGIC);
    put_u32(&mut bytes, 4, u32::try_from(pairs.len()).ok()?);
    for (index, (oid, number)) in pairs.iter().enumerate() {
        let at = index.checked_mul(8)?.checked_add(8)?;
        put_u32(&mut bytes, at, *oid);
        put_u32(&mut bytes, at.checked_add(4)?, *number);
    }
    let map = seal(&mut bytes)
        .then(|| RelationMap::parse(&bytes).ok())
        .flatten();
    map.is_some_and(|map| map.is_right()).then_some(bytes)
}
