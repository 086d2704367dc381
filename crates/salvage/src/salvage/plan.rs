//! Which tables of a database are salvaged, and under which names.

use std::collections::{BTreeMap, BTreeSet};

use pgclinic_cluster::{
    Catalog, Charset, Cluster, ForkFiles, Persistence, ReadGap, RelKind, Relation,
};
use pgclinic_format::Oid;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_format::wal::FileNumber;
use pgclinic_model::Selection;
use pgclinic_model::document::{ColumnAs, Estimate, LossPlace, NotChecked, TableAccount};
use pgclinic_source::Presence;

use super::sampling::guessed_table;
use super::witnesses::page_rows_max;
use super::{encoding_of, fitting, lost_relations};
use crate::file_names::FileNames;
use crate::schema::DescribedColumns;
use crate::schema::given::GivenTable;
use crate::shape::{ColumnChoice, ColumnEncoding, MainForks, Table, database_name};
use crate::texts::Refusal;

/// A table with the name of its file, without extension, and what is known of its losses before a
/// page is read.
#[derive(Clone)]
pub(crate) struct Planned {
    pub(crate) table: Table,
    pub(crate) file: String,
    pub(crate) account: TableAccount,
    /// Its columns are guessed, or a person gave them: no catalog makes the table again.
    pub(crate) is_described: bool,
}

impl Planned {
    /// The same with columns that hold what was refused.
    pub(crate) fn holding(mut self, refusals: Vec<Refusal>) -> Self {
        for refusal in refusals {
            let Some(column) = self.table.columns.get_mut(refusal.column) else {
                continue;
            };
            column.holding = refusal.holding;
            let written_as = match refusal.holding {
                ColumnEncoding::Bytes => "binary",
                ColumnEncoding::Nearest | ColumnEncoding::Text => "text",
            };
            let columns = &mut self.account.columns_as;
            columns.retain(|before| before.column != column.name);
            columns.push(ColumnAs {
                column: column.name.clone(),
                written_as: written_as.into(),
                why: format!("it holds {}", refusal.why),
            });
        }
        self
    }
}

/// A description without a schema is of `public`, or of a table whose schema's name is lost.
fn is_of(given: &GivenTable, relation: &Relation) -> bool {
    let schema = given.schema.as_deref().unwrap_or("public");
    let schema_is_lost = relation.schema.parse::<u32>().is_ok();
    given.name == relation.name && (schema == relation.schema || schema_is_lost)
}

/// How the names of gaps begin that are of catalogs which tell of types alone.
const CATALOGS_OF_TYPES: [&str; 3] = ["catalog pg_type ", "catalog pg_enum ", "catalog pg_range "];

/// What is to be done in one database.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) tables: Vec<Planned>,
    pub(crate) not_salvaged: Vec<NotChecked>,
    /// Tables that cannot be read, each with its reason there, and those of them of whose rows
    /// something is known.
    refused: usize,
    pub(crate) unread: Vec<TableAccount>,
    /// What a person says of tables whose columns are lost.
    given: Vec<GivenTable>,
    /// Relations whose rows in `pg_class` are lost.
    lost: BTreeSet<Oid>,
}

impl Plan {
    /// For the database in `folder`.
    pub(crate) fn of(
        cluster: &Cluster,
        catalog: &Catalog,
        files: &MainForks,
        folder: &str,
        selection: &Selection,
        choice: ColumnChoice,
        given: &[GivenTable],
    ) -> Self {
        let mut plan = Plan {
            given: given.to_vec(),
            lost: lost_relations::lost_rows(catalog),
            ..Plan::default()
        };
        plan.not_salvaged
            .extend(lost_relations::not_whole(catalog, selection));
        let wanted: Vec<&Relation> = catalog
            .relations
            .values()
            .filter(|relation| is_wanted(relation, selection))
            .collect();
        let parts: Vec<[&str; 2]> = wanted
            .iter()
            .map(|relation| [relation.schema.as_str(), relation.name.as_str()])
            .collect();
        let names = FileNames::of(parts.iter().map(|parts| parts.as_slice()));
        let selected = wanted.len();
        for relation in wanted {
            let name = names.name(&[&relation.schema, &relation.name], relation.oid);
            plan.add(
                catalog,
                relation,
                files,
                format!("{folder}/{name}"),
                choice,
                cluster,
            );
        }
        let is_concerned = |gap: &&ReadGap| plan.is_concerned_by(gap, selection);
        let troubles = catalog.troubles.iter().chain(&files.troubles);
        let troubles = troubles.filter(is_concerned);
        let troubles = troubles.map(|trouble| not_salvaged(&trouble.what, &trouble.why));
        let troubles: Vec<NotChecked> = troubles.collect();
        plan.not_salvaged.splice(0..0, troubles);
        assert_eq!(
            selected,
            plan.tables.len() + plan.refused,
            "every table of the selection is planned, or its reason is reported"
        );
        plan
    }

    /// Who names tables wants to hear of those: types that none of them has may be lost.
    fn is_concerned_by(&self, gap: &ReadGap, selection: &Selection) -> bool {
        let is_of_types = CATALOGS_OF_TYPES
            .iter()
            .any(|catalog| gap.what.starts_with(catalog));
        let has_types = |planned: &Planned| {
            let mut columns = planned.table.columns.iter();
            columns.all(|column| column.lost_type().is_none())
        };
        selection.relations.is_empty()
            || !is_of_types
            || self.refused > 0
            || !self.tables.iter().all(has_types)
    }

    /// Notes which files would have been changed by records that could not be applied.
    pub(crate) fn count_not_replayed(&mut self, by_file: &BTreeMap<FileNumber, u64>) {
        for planned in &mut self.tables {
            let toast = planned.table.toast.iter().map(|(_, files)| files);
            let files = std::iter::once(&planned.table.files).chain(toast);
            let counts = files.filter_map(|files| by_file.get(&files.number()));
            planned.account.not_replayed = counts.sum();
        }
    }

    fn add(
        &mut self,
        catalog: &Catalog,
        relation: &Relation,
        files: &MainForks,
        file: String,
        choice: ColumnChoice,
        cluster: &Cluster,
    ) {
        let described = self.description(catalog, relation, files, cluster);
        let is_given = |given: &GivenTable| given.confidence.is_none();
        let (is_described, is_given) = (
            described.is_some(),
            described.as_ref().is_some_and(is_given),
        );
        let mut table = match described {
            Some(given) => Table::of_given(files, catalog, relation, choice, &given),
            None => Table::of(files, catalog, relation, choice),
        };
        if is_given {
            let charset = Charset::to_utf8(encoding_of(cluster, catalog.database));
            table = table.and_then(|table| match fitting::hold(cluster, &table, charset) {
                Ok(()) => Ok(table),
                Err(error) => Err(error.to_string()),
            });
        }
        match table {
            Ok(mut table) => {
                if self.lost.contains(&relation.oid) {
                    table.notes.push(lost_relations::REBUILT.into());
                }
                table
                    .notes
                    .extend(lost_relations::note_columns(catalog, relation));
                let unlogged = relation.persistence == Persistence::Unlogged;
                let left_out = files.leave_out(cluster, catalog, relation);
                if left_out {
                    table.notes.push(left_out_by(cluster).into());
                } else if unlogged && cluster.is_running() {
                    self.not_salvaged.extend(in_shared_buffers(&table));
                } else if unlogged && cluster.is_replayed() {
                    let note = "unlogged: a server empties it after a crash; its rows were taken as they lie there";
                    table.notes.push(note.into());
                }
                let mut account = account_of(&table, cluster);
                if left_out {
                    account.places.clear();
                    account.damaged_pages = 0;
                }
                if let Some(why) = files.unseen(relation) {
                    // Nobody knows what is there: that is no loss, and not whole.
                    account.places.retain(|place| place.in_toast);
                    let what = format!("rows of table {}", table.full_name());
                    self.not_salvaged.push(not_salvaged(&what, &why));
                }
                self.tables.push(Planned {
                    account,
                    table,
                    file,
                    is_described,
                });
            }
            Err(why) => {
                let what = format!(
                    "table {} of database {}",
                    relation.qualified_name(),
                    catalog.database
                );
                self.not_salvaged.push(not_salvaged(&what, &why));
                self.refused += 1;
                // Rows of a table whose file is not known may stand in unclaimed/.
                let has_file = !files.of(catalog, relation).segments.is_empty();
                if has_file && relation.page_method() == Some(AccessMethod::Heap) {
                    let page_rows_max = page_rows_max(cluster.build.block_size);
                    let unread = unread(catalog, relation, files, (page_rows_max, why));
                    self.unread.push(unread);
                }
            }
        }
    }
}

impl Plan {
    /// Says so where columns are guessed.
    fn description(
        &mut self,
        catalog: &Catalog,
        relation: &Relation,
        files: &MainForks,
        cluster: &Cluster,
    ) -> Option<GivenTable> {
        let described = described(catalog, relation, files, cluster, &self.given)?;
        if described.confidence.is_some() {
            let what = format!(
                "columns of table {} of database {}",
                relation.qualified_name(),
                catalog.database
            );
            let why = "pg_attribute does not give all of them: they are guessed from its rows, and --schema takes what they are";
            self.not_salvaged.push(not_salvaged(&what, why));
        }
        Some(described)
    }
}

/// What a person says of columns that the catalogs do not give, else what the rows say.
fn described(
    catalog: &Catalog,
    relation: &Relation,
    files: &MainForks,
    cluster: &Cluster,
    given: &[GivenTable],
) -> Option<GivenTable> {
    if relation.columns.is_some() {
        return None;
    }
    let guess = || {
        let own = files.of(catalog, relation);
        let (table, _) = guessed_table(cluster, &own, &relation.name)?;
        Some(table)
    };
    if let Some(given) = given.iter().find(|given| is_of(given, relation)) {
        let known = lost_relations::declared_between_known;
        return Some(known(given, catalog, relation, &guess));
    }
    let table = guess()?;
    Some(lost_relations::with_known_columns(table, catalog, relation))
}

/// The columns of all tables of a database that its catalogs do not give, for its schema: those by
/// which the rows are read.
pub(crate) fn described_columns(
    cluster: &Cluster,
    catalog: &Catalog,
    given: &[GivenTable],
) -> DescribedColumns {
    let relations = catalog.relations.values();
    let mut nameless = relations
        .filter(|relation| relation.columns.is_none() && relation.oid >= FIRST_NORMAL_OID)
        .peekable();
    if nameless.peek().is_none() {
        return DescribedColumns::new();
    }
    let files = MainForks::of_database(cluster, catalog.database);
    nameless
        .filter_map(|relation| {
            let described = described(catalog, relation, &files, cluster, given)?;
            Some((relation.oid, described))
        })
        .collect()
}

/// Why an unlogged table has no rows.
fn left_out_by(cluster: &Cluster) -> &'static str {
    if cluster.leaves_unlogged_out() {
        "unlogged: a base backup leaves its rows out"
    } else {
        "unlogged: a standby has none of its rows"
    }
}

/// No checkpoint writes pages of unlogged tables, but the one of a shutdown: a server that runs may
/// have any of them in its memory. A file without blocks has no rows anywhere, as it grows before
/// its pages are filled.
fn in_shared_buffers(table: &Table) -> Option<NotChecked> {
    (table.files.bytes() > 0).then_some(())?;
    let what = format!("rows of the unlogged table {}", table.full_name());
    let why = "the server may have them in its memory only: it writes unlogged pages to files when it shuts down (19 also at CHECKPOINT (FLUSH_UNLOGGED)). salvage postgres://… asks the server for them";
    Some(not_salvaged(&what, why))
}

pub(crate) fn not_salvaged(what: &str, why: &str) -> NotChecked {
    NotChecked {
        what: what.to_owned(),
        why: why.to_owned(),
        inherent: false,
    }
}

/// A relation that every database has, or one of the server's own making: TOAST, temporary. What
/// somebody put into a schema of the system is his.
pub(crate) fn is_of_the_system(oid: Oid, schema: &str) -> bool {
    let is_built_in = oid < FIRST_NORMAL_OID;
    let of_initdb = schema.starts_with("pg_") || schema == "information_schema";
    let of_sessions = schema.starts_with("pg_temp_") || schema.starts_with("pg_toast");
    of_sessions || (is_built_in && of_initdb)
}

/// The same of a relation, by what it is: a table that lasts is nobody's but its user's, whichever
/// schema its row or that of its schema says that it is in.
pub(crate) fn is_relation_of_the_system(relation: &Relation) -> bool {
    let is_made_by_the_server =
        relation.kind == RelKind::Toast || relation.persistence == Persistence::Temporary;
    let is_of_a_user = relation.oid >= FIRST_NORMAL_OID && !is_made_by_the_server;
    !is_of_a_user && is_of_the_system(relation.oid, &relation.schema)
}

/// Tables and materialised views that fit the selection; those of the system only when their schema
/// is named.
fn is_wanted(relation: &Relation, selection: &Selection) -> bool {
    if !matches!(relation.kind, RelKind::Table | RelKind::MaterializedView) {
        return false;
    }
    let (schema, name) = (relation.schema.as_str(), relation.name.as_str());
    let of_the_system = is_relation_of_the_system(relation);
    let by_number =
        selection.filenodes.is_empty() || selection.filenodes.contains(&relation.filenode);
    by_number
        && if of_the_system {
            selection.names_schema_of(schema, name)
        } else {
            selection.takes_name(schema, name)
        }
}

/// A table none of whose rows can be read: as many are lost as `pg_class` counts.
fn unread(
    catalog: &Catalog,
    relation: &Relation,
    files: &MainForks,
    (page_rows_max, why): (u64, String),
) -> TableAccount {
    let pages = u64::try_from(relation.relpages).unwrap_or(0).max(1);
    let mut account = TableAccount {
        database: database_name(catalog),
        schema: relation.schema.clone(),
        table: relation.name.clone(),
        oid: relation.oid,
        filenode: files.of(catalog, relation).filenode,
        kind: kind(relation.kind == RelKind::MaterializedView).into(),
        ..TableAccount::default()
    };
    account.places.push(LossPlace::page(0, why));
    account.pages.unread = pages;
    let rows = relation.reltuples.unwrap_or(0);
    let estimate = Estimate {
        pages,
        rows,
        page_rows_max,
        pages_short: 0,
    };
    account.count_losses(None, estimate);
    account
}

fn kind(is_materialized_view: bool) -> &'static str {
    if is_materialized_view {
        "materialized-view"
    } else {
        "table"
    }
}

pub(crate) fn account_of(table: &Table, cluster: &Cluster) -> TableAccount {
    let mut account = TableAccount {
        database: table.database.clone(),
        schema: table.schema.clone(),
        table: table.name.clone(),
        oid: table.oid,
        filenode: table.files.filenode,
        kind: kind(table.is_materialized_view).into(),
        columns: table
            .columns
            .iter()
            .map(|column| column.name.clone())
            .collect(),
        notes: table.notes.clone(),
        ..TableAccount::default()
    };
    lost_segments(&table.files, cluster, false, &mut account);
    // Of a file alone it is not known whether there is a TOAST relation.
    let known =
        |(oid, files): &&(Oid, ForkFiles)| *oid != Table::ANY_TOAST || !files.segments.is_empty();
    if let Some((_, toast)) = table.toast.as_ref().filter(known) {
        lost_segments(toast, cluster, true, &mut account);
    }
    account
}

/// Files that must be there and are not. Segments past the end stay as empty files where a table
/// was truncated (`mdtruncate` in `src/backend/storage/smgr/md.c`).
fn lost_segments(files: &ForkFiles, cluster: &Cluster, in_toast: bool, account: &mut TableAccount) {
    let in_use = files.segments.iter().filter(|segment| segment.len > 0);
    let last = in_use.map(|segment| segment.number).max().unwrap_or(0);
    let is_there = |number: u32| {
        files
            .segments
            .iter()
            .any(|segment| segment.number == number)
    };
    let whole = cluster.build.segment_blocks();
    for number in (0..=last).filter(|number| !is_there(*number)) {
        let block = u32::try_from(u64::from(number) * whole).unwrap_or(u32::MAX);
        let path = files.path(number);
        let presence = Presence::of_file(cluster.source().as_ref(), &path);
        account.out_of_reach |= !presence.is_missing();
        if !in_toast && number < last && presence.is_missing() {
            account.pages.unread += whole;
        }
        let why = match presence {
            Presence::Missing => format!("the file {path} is missing"),
            Presence::There(_) => format!("{path} was not there when its directory was listed"),
            Presence::Unreadable(error) => error.to_string(),
        };
        account.places.push(LossPlace {
            in_toast,
            ..LossPlace::page(block, why)
        });
    }
    account.out_of_reach |= files.segments.iter().any(|segment| {
        let read = cluster
            .source()
            .read_at(&files.path(segment.number), 0, &mut [0]);
        read.is_err_and(|error| error.is_out_of_reach())
    });
    let short = files
        .segments
        .iter()
        .filter(|segment| segment.number < last && segment.len < cluster.build.segment_bytes);
    for segment in short {
        let there = segment.len / u64::from(cluster.build.block_size);
        account.damaged_pages += whole.saturating_sub(there);
        if !in_toast {
            account.pages.unread += whole.saturating_sub(there);
        }
        let block = u32::try_from(u64::from(segment.number) * whole + there).unwrap_or(u32::MAX);
        account.places.push(LossPlace {
            in_toast,
            ..LossPlace::page(
                block,
                format!(
                    "the file {} ends before its segment does",
                    files.path(segment.number)
                ),
            )
        });
    }
}
