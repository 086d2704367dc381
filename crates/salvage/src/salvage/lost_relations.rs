//! Relations whose rows in `pg_class` are lost, and files that no relation names, in the plan and
//! in the account.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pgclinic_cluster::wal::Replay;
use pgclinic_cluster::{
    Catalog, Cluster, Column, Comparison, Death, ForkFiles, HeapScan, LostColumn, LostRelation,
    Persistence, RelKind, Relation, RowState,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::oid::{DEFAULT_TABLESPACE, PG_CLASS};
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::wal::FileNumber;
use pgclinic_format::{Fork, Oid};
use pgclinic_model::document::NotChecked;
use pgclinic_model::verb_of;
use pgclinic_model::{Selection, plural};

use super::plan::{Plan, not_salvaged};
use super::without_catalogs::{self, Found};
use super::{DatabaseInputs, SalvageOptions};
use crate::schema::given::{GivenColumn, GivenTable};
use crate::shape::{MainForks, database_name};

/// What a table's account says of it.
pub(super) const REBUILT: &str = "its row in pg_class is lost: name, columns and files are those that indexes and other catalogs still have";

/// Relations whose rows in `pg_class` are lost.
pub(super) fn lost_rows(catalog: &Catalog) -> BTreeSet<Oid> {
    let lost = catalog.lost_relations.iter();
    lost.filter_map(|lost| lost.oid).collect()
}

/// Names every relation that is lost; those that a cluster is born with in one line.
pub(super) fn not_whole(catalog: &Catalog, selection: &Selection) -> Vec<NotChecked> {
    let database = database_name(catalog);
    let is_of_the_system =
        |lost: &&LostRelation| lost.oid.is_some_and(|oid| oid < FIRST_NORMAL_OID);
    let lost = || catalog.lost_relations.iter();
    let users = lost().filter(|lost| !is_of_the_system(lost) && is_named(lost, selection));
    let mut told: Vec<NotChecked> = users
        .map(|lost| {
            let relation = lost.oid.and_then(|oid| catalog.relations.get(&oid));
            let what = format!("{} {} of database {database}", kind(relation), lost.words());
            not_salvaged(&what, &why(lost, relation))
        })
        .collect();
    let system = lost().filter(is_of_the_system).count() as u64;
    if system > 0 {
        let system = plural(system, "relation");
        let what = format!("{system} of the system of database {database}");
        told.push(not_salvaged(&what, "their rows in pg_class are lost"));
    }
    told
}

/// Who names tables wants to hear of those; one whose name is lost may be any of them.
fn is_named(lost: &LostRelation, selection: &Selection) -> bool {
    match (&lost.schema, &lost.name) {
        (Some(schema), Some(name)) => selection.takes_name(schema, name),
        _ => true,
    }
}

fn kind(relation: Option<&Relation>) -> &'static str {
    match relation.map(|relation| relation.kind) {
        Some(RelKind::Table | RelKind::MaterializedView) => "table",
        Some(RelKind::Index) => "index",
        Some(RelKind::Sequence) => "sequence",
        Some(RelKind::Toast) => "TOAST relation",
        Some(RelKind::PartitionedTable) => "partitioned table",
        Some(RelKind::WithoutStorage) => "view, partitioned index or type",
        Some(RelKind::Unknown(_)) | None => "relation",
    }
}

fn why(lost: &LostRelation, relation: Option<&Relation>) -> String {
    let file = match &lost.path {
        Some(path) => format!("its file is {path}"),
        None if lost.filenode.is_some() => "its file is not there".into(),
        None => "no file of it is known".into(),
    };
    let is_table = relation.is_some_and(|relation| relation.kind == RelKind::Table);
    let columns = match relation.is_some_and(|relation| relation.columns.is_some()) {
        true if is_table => ", its columns are known, and its rows are written under its name",
        false if is_table => ", and its columns are not known",
        _ => "",
    };
    format!("its row in pg_class is lost: {file}{columns}")
}

/// A guess of columns with what the catalogs still tell of them: names, and types where they are as
/// wide as what was guessed.
pub(super) fn with_known_columns(
    mut guess: GivenTable,
    catalog: &Catalog,
    relation: &Relation,
) -> GivenTable {
    if guess.columns.len() != usize::from(relation.relnatts) {
        return guess;
    }
    let known = catalog.partial_columns.get(&relation.oid);
    for column in known.into_iter().flatten() {
        let index = usize::from(column.attnum).wrapping_sub(1);
        let Some(guessed) = guess.columns.get_mut(index) else {
            continue;
        };
        guessed.name.clone_from(&column.name);
        guessed.dropped = column.dropped;
        let ty = catalog.type_info(column.type_oid);
        let is_alike = (ty.len, ty.align) == (guessed.ty.len, guessed.ty.align);
        if is_alike && !column.dropped {
            guessed.ty = ty;
        }
    }
    let lost = catalog.lost_columns.get(&relation.oid);
    for column in lost
        .into_iter()
        .flatten()
        .filter(|lost| lost.type_by.is_none())
    {
        let index = usize::from(column.attnum).wrapping_sub(1);
        if let (Some(name), Some(guessed)) = (&column.name, guess.columns.get_mut(index)) {
            guessed.name.clone_from(name);
            guessed.dropped = column.is_dropped();
        }
    }
    guess
}

/// What a person declares of a table, with the columns that catalogs still have in their places: a
/// declaration has no dropped columns, and may be older than the table; how wide a lost one of
/// those is, only the rows say. As it is, where the rest does not fill the gaps.
pub(super) fn declared_between_known(
    given: &GivenTable,
    catalog: &Catalog,
    relation: &Relation,
    guess: &dyn Fn() -> Option<GivenTable>,
) -> GivenTable {
    let known = catalog.partial_columns.get(&relation.oid);
    let known = known.map_or(&[][..], Vec::as_slice);
    let known_as = |name: &str| known.iter().any(|column| column.name == name);
    let mut declared: Vec<GivenColumn> = given.columns.clone();
    declared.retain(|column| column.dropped || !known_as(&column.name));
    let lost = catalog.lost_columns.get(&relation.oid);
    let lost = || lost.into_iter().flatten();
    let names: BTreeMap<u16, &str> = lost()
        .filter_map(|lost| Some((lost.attnum, lost.name.as_deref()?)))
        .collect();
    let dropped = lost().filter(|lost| lost.is_dropped());
    let dropped: BTreeSet<u16> = dropped.map(|lost| lost.attnum).collect();
    let guessed = (!dropped.is_empty()).then(guess).flatten();
    let guessed = guessed.map(|guess| guess.columns).unwrap_or_default();
    let mut columns = Vec::new();
    for number in 1..=relation.relnatts {
        let found = known.iter().find(|column| column.attnum == number);
        let guessed = guessed.get(usize::from(number) - 1);
        columns.push(
            match (found, guessed.filter(|_| dropped.contains(&number))) {
                (Some(column), _) => known_column(catalog, column),
                (None, Some(guessed)) => GivenColumn {
                    dropped: true,
                    ..guessed.clone()
                },
                (None, None) => match next_declared(&mut declared, names.get(&number).copied()) {
                    Some(column) => column,
                    None => return given.clone(),
                },
            },
        );
    }
    if (known.is_empty() && dropped.is_empty()) || !declared.is_empty() {
        return given.clone();
    }
    let mut merged = GivenTable {
        columns,
        ..given.clone()
    };
    if !known.is_empty() {
        merged.notes.push(format!(
            "{} of its columns are those that pg_attribute and other catalogs still have",
            known.len()
        ));
    }
    if !dropped.is_empty() {
        merged.notes.push(format!(
            "how wide its {} is guessed from its rows",
            plural(dropped.len(), "dropped column")
        ));
    }
    merged
}

fn known_column(catalog: &Catalog, column: &Column) -> GivenColumn {
    let mut ty = catalog.type_info(column.type_oid);
    if column.dropped {
        let ty = Arc::make_mut(&mut ty);
        (ty.len, ty.align) = (column.layout.attlen, column.layout.attalign);
    }
    GivenColumn {
        name: column.name.clone(),
        ty,
        dropped: column.dropped,
    }
}

/// The declared column of this name, else the first of those that are left.
fn next_declared(declared: &mut Vec<GivenColumn>, name: Option<&str>) -> Option<GivenColumn> {
    let named = declared
        .iter()
        .position(|column| Some(column.name.as_str()) == name);
    let at = named.unwrap_or(0);
    (at < declared.len()).then(|| declared.remove(at))
}

/// The tables among the files that no relation names, where names are missing, and that `is_wanted`
/// takes: they go into `unclaimed/`.
pub(super) fn unclaimed(
    cluster: &Cluster,
    place: &DatabaseInputs<'_>,
    options: &SalvageOptions,
    is_wanted: &dyn Fn(&ForkFiles) -> bool,
) -> Plan {
    let (catalog, folder) = (place.catalog, place.name);
    let selection = &options.selection;
    let database = catalog.database;
    let why = if are_unclaimed(catalog, selection) {
        "rows of pg_class are lost, and nothing names them"
    } else if selection.relations.is_empty() && lacks_a_file(cluster, place) {
        "a table has no file where its row in pg_class says, and no row names these"
    } else {
        return Plan::default();
    };
    let is_unclaimed = |files: &ForkFiles| is_nameless(catalog, files) && is_wanted(files);
    let found = Found::among(cluster, database, selection, &is_unclaimed);
    let mut plan = without_catalogs::plan_of(cluster, database, folder, options, &found);
    let leftovers = leftovers(cluster, catalog);
    let mut known = 0_u64;
    for planned in &mut plan.tables {
        let files = &planned.table.files;
        let left_over = leftovers.get(&(files.home.tablespace, files.filenode));
        known += u64::from(left_over.is_some());
        let words = leftover_words(catalog, left_over);
        planned.table.notes.push(words.clone());
        planned.account.notes.push(words);
        let filenode = planned.table.files.filenode;
        planned.table.schema = "unclaimed".into();
        planned.account.schema = "unclaimed".into();
        planned.file = format!("{folder}/unclaimed/{filenode}");
        // The number of a file may be the OID of another relation.
        if catalog.relations.contains_key(&filenode) {
            (planned.table.oid, planned.account.oid) = (0, 0);
        }
    }
    if !plan.tables.is_empty() {
        let what = format!(
            "to which tables {} of database {} {}",
            plural(plan.tables.len(), "file"),
            database_name(catalog),
            verb_of(plan.tables.len(), "belong")
        );
        let place = match place.folder {
            Some(_) => "unclaimed/",
            None => "the schema unclaimed",
        };
        let why = format!(
            "{why}: what they hold is in {place}, with columns that are guessed. {which} left over from a rewrite that a crash interrupted: such rows stand in another table too",
            which = match known {
                0 => "Each of them may be".to_owned(),
                known => format!(
                    "By rows of pg_class that count no more {known} of them {}",
                    verb_of(known, "are")
                ),
            }
        );
        plan.not_salvaged.push(not_salvaged(&what, &why));
    }
    plan
}

/// Names are missing, so that a file without one may be somebody's. Where every entry of `pg_class`
/// met its row such a file is a leftover, and nobody's.
fn are_unclaimed(catalog: &Catalog, selection: &Selection) -> bool {
    !catalog.names_are_complete() && selection.relations.is_empty()
}

/// The row of a table names a file that is not there: a file that no row names may be its own.
fn lacks_a_file(cluster: &Cluster, place: &DatabaseInputs<'_>) -> bool {
    if !cluster.may_compare(Comparison::FilesWithCatalogs) {
        return false;
    }
    let DatabaseInputs { catalog, files, .. } = *place;
    let mut tables = catalog.relations.values().filter(|own| {
        own.persistence == Persistence::Permanent
            && own.kind.has_storage()
            && own.page_method() == Some(AccessMethod::Heap)
    });
    tables.any(|own| files.of(catalog, own).segments.is_empty())
}

fn is_nameless(catalog: &Catalog, files: &ForkFiles) -> bool {
    let named = catalog.by_file(files.home.tablespace, files.filenode);
    named.is_none()
}

/// Files of a running server that no relation names, where names are missing.
#[derive(Default)]
pub(super) struct NamelessFiles {
    /// They were there before its last checkpoint, and no transaction that is at work makes them.
    pub(super) unclaimed: BTreeSet<FileNumber>,
    /// They were made since, or by a transaction that has not ended: they are not yet anybody's.
    pub(super) not_yet: BTreeSet<FileNumber>,
}

impl NamelessFiles {
    pub(super) fn of(
        cluster: &Cluster,
        catalog: &Catalog,
        selection: &Selection,
        replay: &Replay,
    ) -> Self {
        let mut found = NamelessFiles::default();
        if !are_unclaimed(catalog, selection) {
            return found;
        }
        let unfinished = unfinished_files(cluster, catalog);
        let homes = cluster.homes.iter();
        let homes = homes.filter(|home| home.database == catalog.database);
        for files in homes.flat_map(|home| cluster.files(home).unwrap_or_default()) {
            let is_own = files.fork == Fork::Main && files.temporary.is_none();
            if !is_own || files.bytes() == 0 || !is_nameless(catalog, &files) {
                continue;
            }
            let number = files.number();
            let own = (files.home.tablespace, files.filenode);
            if replay.creates(number) || unfinished.contains(&own) {
                found.not_yet.insert(number);
            } else {
                found.unclaimed.insert(number);
            }
        }
        found
    }
}

/// Tablespace and number of a file.
type FileOfTable = (Oid, Oid);

/// Files that rows of `pg_class` name whose transactions have not ended.
fn unfinished_files(cluster: &Cluster, catalog: &Catalog) -> BTreeSet<FileOfTable> {
    let mut found = BTreeSet::new();
    each_file_named(cluster, catalog, &mut |file, state, _| {
        if matches!(state, RowState::Dead(Death::InProgress)) {
            found.insert(file);
        }
    });
    found
}

/// Files that no row of `pg_class` names but such as count no more, with the relation that each was
/// of: an earlier file of a table, or a new one that a transaction did not come to commit.
fn leftovers(cluster: &Cluster, catalog: &Catalog) -> BTreeMap<FileOfTable, String> {
    let mut found = BTreeMap::new();
    each_file_named(cluster, catalog, &mut |file, state, name| {
        if matches!(state, RowState::Dead(_)) {
            found.insert(file, name);
        }
    });
    found
}

/// Every file that a row of `pg_class` names, whatever became of the row, with its name.
fn each_file_named(
    cluster: &Cluster,
    catalog: &Catalog,
    each: &mut dyn FnMut(FileOfTable, RowState, String),
) {
    let Some(relation) = catalog.relations.get(&PG_CLASS) else {
        return;
    };
    let (Some(columns), Some(layouts)) = (&relation.columns, &relation.layouts) else {
        return;
    };
    let index = |name: &str| columns.iter().position(|column| column.name == name);
    let (Some(filenode), Some(tablespace), Some(name)) = (
        index("relfilenode"),
        index("reltablespace"),
        index("relname"),
    ) else {
        return;
    };
    let files = MainForks::of_database(cluster, catalog.database);
    let files = files.of(catalog, relation);
    let default = cluster.databases.get(&catalog.database);
    let default = default.map_or(DEFAULT_TABLESPACE, |database| database.tablespace);
    HeapScan::new(cluster, &files, layouts).each_row(|row| {
        let own = row.u32(tablespace).filter(|own| *own != 0);
        if let Some(file) = row.u32(filenode) {
            let name = row.name(name).unwrap_or_default();
            each((own.unwrap_or(default), file), row.state, name);
        }
    });
}

/// What an account says of a file that no relation names: it may be a copy of rows that stand in
/// another table too.
fn leftover_words(catalog: &Catalog, name: Option<&String>) -> String {
    let Some(name) = name else {
        return "it may be left over from a CLUSTER, VACUUM FULL, CREATE TABLE or TRUNCATE that a crash interrupted: its rows may stand in another table too".into();
    };
    // The new file of a table that is being rewritten has the table's number in its name.
    let of = name
        .strip_prefix("pg_temp_")
        .and_then(|oid| oid.parse().ok());
    let of = of.and_then(|oid: Oid| catalog.relations.get(&oid));
    match of {
        Some(table) => format!(
            "it is left over from a CLUSTER, VACUUM FULL or ALTER TABLE of {} that did not commit: a copy of rows that stand in that table",
            table.qualified_name()
        ),
        None => format!(
            "it is left over: its row in pg_class, {name}, counts no more, as the relation has another file, was dropped, or was never committed"
        ),
    }
}

/// Columns that were found in the indexes of `pg_attribute`, each with who gave its type.
pub(super) fn note_columns(catalog: &Catalog, relation: &Relation) -> Option<String> {
    let lost = catalog.lost_columns.get(&relation.oid)?;
    let words = |column: &LostColumn| {
        let told = |by: &str| format!("type by {by}");
        let how = column.type_by.map_or_else(|| "type unknown".into(), told);
        format!("{} ({how})", column.words())
    };
    let columns: Vec<String> = lost.iter().map(words).collect();
    Some(format!(
        "the rows of pg_attribute for columns {} are lost: their names are those of its indexes",
        columns.join(", ")
    ))
}
