//! Large objects: how many and how large, whose, whether any column refers to them, and what they
//! cost `pg_dump`.
//!
//! Truth: `getLOs` and `dumpLOs` in `src/bin/pg_dump/pg_dump.c`, `_StartLO` in
//! `pg_backup_directory.c`; who is an orphan is what `contrib/vacuumlo` says.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{DatabaseContext, RelKind};
use pgclinic_format::Oid;
use pgclinic_format::oid::{PG_LARGEOBJECT, PG_LARGEOBJECT_METADATA};
use pgclinic_model::FigureKind;
use pgclinic_model::document::Figure;

use super::catalog_rows::{each_row, place};
use super::{bytes, number};

/// The section of these figures.
pub(super) const SECTION: &str = "large_objects";

/// What is said of a database's large objects.
pub(super) const FIGURES: &[FigureKind] = &[
    number("count", "large objects"),
    bytes("bytes", "their bytes"),
    number("empty_count", "objects without a byte"),
    number("owner_count", "roles that own some"),
    number(
        "orphan_count",
        "objects that no column of type oid or lo refers to",
    ),
    bytes("orphan_bytes", "their bytes"),
    number(
        "dump_entries_to_16",
        "entries in the catalogue of pg_dump 16 and before",
    ),
    bytes(
        "dump_catalogue_bytes_to_16",
        "their bytes in toc.dat, about",
    ),
    number("dump_entries_from_17", "entries of pg_dump 17 and later"),
    bytes(
        "dump_catalogue_bytes_from_17",
        "their bytes in toc.dat, about",
    ),
    number(
        "directory_files_to_16",
        "files for them in the directory format of pg_dump 16 and before",
    ),
    number("directory_files_from_17", "files of pg_dump 17 and later"),
];

const OID_TYPE: Oid = 26;
/// Since 17 so many objects of one owner with equal rights are one entry
/// (`MAX_BLOBS_PER_ARCHIVE_ENTRY`).
const PER_ENTRY: u64 = 1000;
/// An entry of one object in `toc.dat`, measured with a million of them.
const ENTRY_BYTES: u64 = 185;
/// An object's share of an entry of many: its number and a line break, and of the entry's own
/// bytes.
const LISTED_BYTES: u64 = 7;

/// What is known of an object.
#[derive(Default)]
struct Object {
    owner: Oid,
    /// A hash of nothing but its bytes would do: objects with equal rights share an entry.
    rights: Option<Vec<u8>>,
    bytes: u64,
}

/// Figures of a database; nothing where it has no large objects, or its catalogs cannot be read.
pub(super) fn measure(view: &DatabaseContext<'_>) -> Option<BTreeMap<String, Option<Figure>>> {
    let objects = objects(view)?;
    (!objects.is_empty()).then_some(())?;
    let referred = referred(view, &objects);
    let orphans = || objects.iter().filter(|(oid, _)| !referred.contains(oid));
    let count = objects.len() as u64;
    let owners: BTreeSet<Oid> = objects.values().map(|object| object.owner).collect();
    let mut groups: BTreeMap<(Oid, Option<&[u8]>), u64> = BTreeMap::new();
    for object in objects.values() {
        *groups
            .entry((object.owner, object.rights.as_deref()))
            .or_default() += 1;
    }
    let granted = objects
        .values()
        .filter(|object| object.rights.is_some())
        .count() as u64;
    let granted_groups: u64 = groups
        .iter()
        .filter(|((_, rights), _)| rights.is_some())
        .map(|(_, objects)| objects.div_ceil(PER_ENTRY))
        .sum();
    let entries: u64 = groups
        .values()
        .map(|objects| objects.div_ceil(PER_ENTRY))
        .sum();
    let values = [
        count,
        objects.values().map(|object| object.bytes).sum(),
        objects.values().filter(|object| object.bytes == 0).count() as u64,
        owners.len() as u64,
        orphans().count() as u64,
        orphans().map(|(_, object)| object.bytes).sum(),
        count + granted + 1,
        (count + granted) * ENTRY_BYTES,
        // Each group has an entry for itself and one for its data.
        2 * entries + granted_groups,
        count * LISTED_BYTES,
        // One list of all objects.
        count + 1,
        // One list for each group.
        count + entries,
    ];
    let named = FIGURES.iter().zip(values);
    Some(
        named
            .map(|(kind, value)| (kind.name.to_owned(), Some(Figure::Count(value))))
            .collect(),
    )
}

fn objects(view: &DatabaseContext<'_>) -> Option<BTreeMap<Oid, Object>> {
    let mut objects: BTreeMap<Oid, Object> = BTreeMap::new();
    let metadata = view.catalog.relations.get(&PG_LARGEOBJECT_METADATA)?;
    let (oid, owner) = (place(metadata, "oid")?, place(metadata, "lomowner")?);
    let rights = place(metadata, "lomacl")?;
    each_row(view, metadata, &mut |row| {
        if let (Some(oid), Some(owner)) = (row.u32(oid), row.u32(owner)) {
            let object = objects.entry(oid).or_default();
            object.owner = owner;
            object.rights = row.unpacked(rights).map(std::borrow::Cow::into_owned);
        }
    });
    (!objects.is_empty()).then_some(())?;
    let pages = view.catalog.relations.get(&PG_LARGEOBJECT)?;
    let (oid, number) = (place(pages, "loid")?, place(pages, "pageno")?);
    let data = place(pages, "data")?;
    let page_bytes = u64::from(view.cluster.build.block_size / 4);
    each_row(view, pages, &mut |row| {
        if let (Some(oid), Some(number)) = (row.u32(oid), row.u32(number)) {
            let len = row.unpacked(data).map_or(0, |data| data.len() as u64);
            let object = objects.entry(oid).or_default();
            object.bytes = object.bytes.max(u64::from(number) * page_bytes + len);
        }
    });
    Some(objects)
}

/// The objects that a user's table names.
fn referred(view: &DatabaseContext<'_>, objects: &BTreeMap<Oid, Object>) -> BTreeSet<Oid> {
    let mut referred = BTreeSet::new();
    for relation in view.catalog.relations.values() {
        let is_table = matches!(relation.kind, RelKind::Table | RelKind::MaterializedView);
        if !is_table || relation.schema.starts_with("pg_") {
            continue;
        }
        let columns = relation.columns.as_deref().unwrap_or_default();
        let names =
            |type_oid: Oid| type_oid == OID_TYPE || view.catalog.type_info(type_oid).name == "lo";
        let wanted: Vec<usize> = (0..)
            .zip(columns)
            .filter(|(_, column)| {
                !column.dropped && column.layout.attlen == 4 && names(column.type_oid)
            })
            .map(|(index, _)| index)
            .collect();
        if !wanted.is_empty() {
            each_row(view, relation, &mut |row| {
                let named = wanted.iter().filter_map(|index| row.u32(*index));
                referred.extend(named.filter(|oid| objects.contains_key(oid)));
            });
        }
    }
    referred
}
