//! A live server as the destination: the schema is made, rows are loaded by COPY, then indexes and
//! constraints.
//!
//! Nothing is loaded into a schema that holds something. A run that was cut off can be given again:
//! the ledger in the destination tells how far it came.

mod described;
mod ledger;
mod loads;
mod objects;
mod stored;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use pgclinic_cluster::{Catalog, Cluster};
use pgclinic_format::Oid;
use pgclinic_model::Progress;
use pgclinic_model::document::{NotChecked, SalvageReport, TableAccount};
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Message, Session, SqlError};

use super::database_job::DatabaseJob;
use super::error::SalvageError;
use super::plan::{Plan, Planned, not_salvaged};
use super::row_sink::RowSink;
use super::staging::{QUOTING, STAGE, column_names, quoted};
use super::{
    DatabaseInputs, Replaying, SalvageOptions, catalog_of, charset_of, described_columns, is_own,
    large_objects, loss_search, lost_relations, plan_of, room_of, sequences, style_of,
};
use crate::formats::form_named;
use crate::schema::{Catalogs, Ddl, SESSION, Step, question_for_full_schemas};
use crate::shape::{MainForks, Table, database_name};
use crate::text_settings::TextStyle;
use ledger::{Stage, StageReport};
use loads::LoadTable;
pub(crate) use loads::{GiveRow, Loads, Streamed};
use stored::Stagings;

/// One batch may take long on a busy server.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Things that an earlier run made: a schema, a table or type, a function, anything else.
const IS_THERE: [&str; 5] = ["42P06", "42P07", "42723", "42710", "42P16"];

/// Makes the schema of one database on the server, and loads its rows.
pub(super) fn load(
    cluster: &Cluster,
    database: Oid,
    target: &ConnectionTarget,
    options: &SalvageOptions,
    progress: &dyn Progress,
    replaying: &Replaying<'_>,
    account: &mut SalvageReport,
) -> Result<(), SalvageError> {
    let mut options = options.clone();
    // The server computes them.
    options.generated = false;
    options.form = form_named("copy").expect("a form of the register");
    options.text = TextStyle::for_a_server();
    let catalog = catalog_of(cluster, database, &options);
    let shared = cluster.catalog(0);
    let described = described_columns(cluster, &catalog, &options.given);
    let room = room_of(&options);
    let catalogs = Catalogs::read_with(cluster, (&catalog, &shared), &room, &described);
    let ddl = Ddl::of_catalogs(&catalogs);
    let refused = ddl.refused.iter();
    account
        .not_salvaged
        .extend(refused.map(|refused| not_salvaged(&refused.what, &refused.why)));
    account
        .not_salvaged
        .extend(ddl.gaps(&database_name(&catalog)));
    if catalog.is_blind() {
        let why = "the catalogs of the database cannot be read, so that there is no schema to be made on a server: salvage into a directory";
        return Err(SalvageError::Unsuitable(why.into()));
    }
    let mut session = open_session(target)?;
    let source = source_of(cluster, database);
    let Begun {
        stage,
        whole,
        told,
        objects,
    } = begin(&mut session, &schemas_of(&catalog, &ddl), &source)?;
    let is_resumed = stage != Stage::Schema || !whole.is_empty();
    let before = objects::Before {
        loaded: objects,
        left: told.objects_left,
    };
    account.not_salvaged.extend(told.not_salvaged);
    account.tables.extend(told.tables);
    account.large_objects.extend(told.large_objects);

    if stage == Stage::Schema {
        let known = account.not_salvaged.len();
        let steps = ddl.steps.iter().filter(|step| !step.is_after_data);
        run_steps(&mut session, steps, &options.spill_folder, account)?;
        let told = StageReport {
            not_salvaged: since(known, account),
            ..StageReport::default()
        };
        enter(&mut session, Stage::Rows, &told)?;
    }
    if stage <= Stage::Rows {
        let known = account.not_salvaged.len();
        let mut plan = plan_of(cluster, &catalog, "", &options);
        plan.count_not_replayed(replaying.not_applied);
        account.not_salvaged.append(&mut plan.not_salvaged);
        account.tables.append(&mut plan.unread);
        let mut tables = plan.tables;
        let mut unclaimed = unclaimed(cluster, &catalog, &options);
        unclaimed.count_not_replayed(replaying.not_applied);
        account.not_salvaged.append(&mut unclaimed.not_salvaged);
        tables.append(&mut unclaimed.tables);
        // Materialised views are filled by their own queries, if those are known.
        tables.retain(|planned| {
            !planned.table.is_materialized_view || ddl.made_tables.contains(&planned.table.oid)
        });
        tables.retain(|planned| !whole.contains_key(&quoted(&planned.table)));
        described::make(&mut session, &catalogs, &mut tables, is_resumed, account)?;
        let stagings = stored::prepare(&mut session, &catalogs, &mut tables, account)?;
        drop(catalogs);
        if is_resumed {
            empty(&mut session, &tables, &stagings)?;
        }
        let charset = charset_of(cluster, database, &options);
        let style = style_of(cluster, &catalog, &options, &tables);
        let crew = DatabaseJob::new(cluster, &options, progress, tables, charset, |tables| {
            RowSink::Server(Loads::new(
                target,
                tables
                    .iter()
                    .map(|table| load_table(table, &stagings))
                    .collect(),
            ))
        });
        let tables = crew.styled(style).run()?;
        let mut told = StageReport::default();
        let is_open = |table: &&TableAccount| table.file.is_none();
        told.tables.extend(tables.iter().filter(is_open).cloned());
        account.tables.extend(tables);
        if progress.is_interrupted() {
            account.interrupted = true;
            account.tables.extend(whole.into_values());
            return Ok(());
        }
        load_objects(
            cluster,
            &catalog,
            replaying,
            &options,
            before,
            progress,
            (&mut session, account),
        )?;
        if account.interrupted {
            account.tables.extend(whole.into_values());
            return Ok(());
        }
        told.not_salvaged = since(known, account);
        told.large_objects.clone_from(&account.large_objects);
        enter(&mut session, Stage::Constraints, &told)?;
    }
    account.tables.extend(whole.into_values());
    search_losses(cluster, &catalog, &options, progress, replaying, account)?;
    let refused = ddl.refused.iter();
    let refused: Vec<NotChecked> = refused
        .map(|refused| not_salvaged(&refused.what, &refused.why))
        .filter(|refused| is_own(refused, &options, account))
        .collect();
    account.not_salvaged.extend(refused);
    set_sequences(cluster, &catalog, &options, &mut session, account)?;
    let steps = ddl.steps.iter().filter(|step| step.is_after_data);
    run_steps(&mut session, steps, &options.spill_folder, account)
}

/// Asks the indexes of the source for rows that were not there.
fn search_losses(
    cluster: &Cluster,
    catalog: &Catalog,
    options: &SalvageOptions,
    progress: &dyn Progress,
    replaying: &Replaying<'_>,
    account: &mut SalvageReport,
) -> Result<(), SalvageError> {
    let files = MainForks::of_database(cluster, catalog.database);
    let place = DatabaseInputs::without_folder(catalog, &files);
    let search = loss_search(cluster, &place, replaying, options, progress);
    // What nothing names has no index that could be asked.
    let (nameless, mut tables): (Vec<_>, Vec<_>) = std::mem::take(&mut account.tables)
        .into_iter()
        .partition(|table| is_nameless(catalog, table));
    let gaps = search.of_tables(&mut tables)?;
    account.tables.extend(tables);
    account.tables.extend(nameless);
    account.not_salvaged.extend(gaps);
    Ok(())
}

fn is_nameless(catalog: &Catalog, table: &TableAccount) -> bool {
    table.schema == described::UNCLAIMED && !catalog.relations.contains_key(&table.oid)
}

/// What stands in files that no relation names, where names are missing.
fn unclaimed(cluster: &Cluster, catalog: &Catalog, options: &SalvageOptions) -> Plan {
    let files = MainForks::of_database(cluster, catalog.database);
    let place = DatabaseInputs::without_folder(catalog, &files);
    lost_relations::unclaimed(cluster, &place, options, &|_| true)
}

/// The account of a whole load is written: the destination holds no work any more that could be
/// gone on with.
pub(super) fn end(target: &ConnectionTarget) -> Result<(), SalvageError> {
    let mut session = open_session(target)?;
    ledger::end(&mut session).map_err(|source| SalvageError::server("end the work", source))
}

/// An error if somebody asks for what has no place on a server.
pub(super) fn suitable(options: &SalvageOptions) -> Result<(), SalvageError> {
    let why = if options.rows == super::Rows::All {
        "dead rows have no place in a table: --rows all writes to files only"
    } else if options.dropped {
        "dropped columns have no place in a table that is made again: --dropped writes to files only"
    } else if options.encoding == super::Encoding::Raw {
        "a server converts text by itself: --encoding raw writes to files only"
    } else {
        return Ok(());
    };
    Err(SalvageError::Unsuitable(why.into()))
}

/// What was told since there were so many entries.
fn since(known: usize, account: &SalvageReport) -> Vec<NotChecked> {
    account
        .not_salvaged
        .get(known..)
        .unwrap_or_default()
        .to_vec()
}

/// Large objects with all that is said of them. A person who names tables wants those alone.
fn load_objects(
    cluster: &Cluster,
    catalog: &Catalog,
    replaying: &Replaying<'_>,
    options: &SalvageOptions,
    before: objects::Before,
    progress: &dyn Progress,
    (session, account): (&mut Session, &mut SalvageReport),
) -> Result<(), SalvageError> {
    if !options.selection.relations.is_empty() || !options.selection.filenodes.is_empty() {
        return Ok(());
    }
    let files = MainForks::of_database(cluster, catalog.database);
    let place = DatabaseInputs::without_folder(catalog, &files);
    let search = loss_search(cluster, &place, replaying, options, progress);
    let found = large_objects::of_database(&search, options)?;
    account.not_salvaged.extend(found.gaps);
    let Some(found) = found.objects else {
        return Ok(());
    };
    let name = database_name(catalog);
    let Some(left) = objects::load(found, name, session, before, progress, account)? else {
        account.interrupted = true;
        return Ok(());
    };
    let of = (cluster, catalog.database);
    objects::describe(of, &room_of(options), &left, session, account)
}

/// A session that reads what the salvage prints.
fn open_session(target: &ConnectionTarget) -> Result<Session, SalvageError> {
    let settings = [
        ("DateStyle", "ISO"),
        ("IntervalStyle", "postgres"),
        ("TimeZone", "UTC"),
        ("lc_monetary", "C"),
        ("search_path", ""),
        ("statement_timeout", "0"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let options = ConnectOptions {
        settings: settings.to_vec(),
        wall_limit: PATIENCE,
        ..ConnectOptions::default()
    };
    let connected = Session::open(target, &options);
    connected.map_err(|source| SalvageError::server("connect", source))
}

/// What tells one source from another.
fn source_of(cluster: &Cluster, database: Oid) -> String {
    let control = cluster.control.trusted();
    let system = control.map_or(0, |control| control.system_identifier);
    format!("{system}/{database}")
}

/// Where the work begins.
struct Begun {
    stage: Stage,
    /// Tables that are loaded.
    whole: BTreeMap<String, TableAccount>,
    /// What the stages that are done told beside them.
    told: StageReport,
    /// The last large object that is loaded.
    objects: Option<Oid>,
}

/// Where to begin: with nothing, or where an earlier run with the same source ended.
fn begin(
    session: &mut Session,
    schemas: &BTreeSet<String>,
    source: &str,
) -> Result<Begun, SalvageError> {
    let failed = |source| SalvageError::server("examine the destination", source);
    if let Some(found) = ledger::find(session).map_err(failed)? {
        if found.source != source {
            let why = "an unfinished salvage of another database lies there: drop its schemas and pgclinic_salvage first";
            return Err(SalvageError::Unsuitable(why.into()));
        }
        return Ok(Begun {
            stage: found.stage,
            whole: found.whole,
            told: found.told,
            objects: found.objects,
        });
    }
    let full = full_schemas(session, schemas).map_err(failed)?;
    if !full.is_empty() {
        return Err(SalvageError::SchemaHoldsSomething(full));
    }
    ledger::begin(session, source).map_err(failed)?;
    Ok(Begun {
        stage: Stage::Schema,
        whole: BTreeMap::new(),
        told: StageReport::default(),
        objects: None,
    })
}

/// Those of the schemas in which something is to be made that hold something in the destination.
fn full_schemas(
    session: &mut Session,
    schemas: &BTreeSet<String>,
) -> Result<Vec<String>, SqlError> {
    let full = session.query(&question_for_full_schemas())?;
    let full = full.into_iter().flatten().flatten();
    Ok(full.filter(|name| schemas.contains(name)).collect())
}

/// Schemas of a database that hold something, as far as its catalogs tell.
fn schemas_of(catalog: &Catalog, ddl: &Ddl) -> BTreeSet<String> {
    let of_relations = catalog.relations.values().map(|relation| &relation.schema);
    let made =
        of_relations.filter(|schema| !schema.starts_with("pg_") && *schema != "information_schema");
    made.chain(&ddl.schemas).cloned().collect()
}

/// Runs statements one by one; what fails is told, and the rest goes on.
fn run_steps<'s>(
    session: &mut Session,
    steps: impl Iterator<Item = &'s Step>,
    spill_folder: &Path,
    account: &mut SalvageReport,
) -> Result<(), SalvageError> {
    let prepared = session.execute(SESSION);
    prepared.map_err(|source| SalvageError::server("prepare the session", source))?;
    for step in steps {
        let sql = step
            .sql
            .text()
            .map_err(|source| SalvageError::destination(spill_folder, "read", source))?;
        let Err(error) = run_step(session, &sql, account) else {
            continue;
        };
        let Some(message) = error.message().filter(|_| !session.is_over()) else {
            return Err(SalvageError::server(&step.what, error));
        };
        if is_of_the_server(message) {
            return Err(SalvageError::server(&step.what, error));
        }
        let is_there = IS_THERE.contains(&message.sqlstate.as_str());
        if !is_there {
            account
                .not_salvaged
                .push(not_salvaged(&step.what, &message.message));
        }
    }
    Ok(())
}

/// The server wants room, memory or somebody's hand: the same statement may pass later, so that the
/// work is to be gone on with. Classes of SQLSTATE: 53 is resources, 57 and 58 the server itself.
fn is_of_the_server(message: &Message) -> bool {
    let class = message.sqlstate.get(..2);
    class.is_some_and(|class| matches!(class, "53" | "57" | "58"))
}

/// What stood in a tablespace that is not there stands in the usual one.
fn run_step(session: &mut Session, sql: &str, account: &mut SalvageReport) -> Result<(), SqlError> {
    let mut sql = sql.to_owned();
    // A statement names few tablespaces.
    for _ in 0..8 {
        let error = match session.execute(&sql) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        let missing = error
            .message()
            .and_then(|message| missing_tablespace(&message.message));
        let Some(name) = missing else {
            return Err(error);
        };
        let what = format!("tablespace {name}");
        if !account.not_salvaged.iter().any(|told| told.what == what) {
            let why = "it is not there: what stood in it is in the usual one";
            let mut told = not_salvaged(&what, why);
            told.inherent = true;
            account.not_salvaged.push(told);
        }
        let without = without_tablespace(&sql, name);
        if without == sql {
            return Err(error);
        }
        sql = without;
    }
    session.execute(&sql)
}

/// The name in `tablespace "annex" does not exist`.
fn missing_tablespace(message: &str) -> Option<&str> {
    let name = message.strip_prefix("tablespace \"")?;
    name.strip_suffix("\" does not exist")
}

fn without_tablespace(sql: &str, name: &str) -> String {
    let name = QUOTING.name(name);
    let mut sql = sql.to_owned();
    for clause in ["USING INDEX TABLESPACE", "TABLESPACE"] {
        for end in [";", "\n", " "] {
            for space in [" ", "\n"] {
                sql = sql.replace(&format!("{space}{clause} {name}{end}"), end);
            }
        }
    }
    sql
}

fn enter(session: &mut Session, stage: Stage, told: &StageReport) -> Result<(), SalvageError> {
    ledger::enter(session, stage, told)
        .map_err(|source| SalvageError::server("note the stage", source))
}

/// Takes away the rows of tables that an earlier run did not finish.
fn empty(
    session: &mut Session,
    tables: &[Planned],
    stagings: &Stagings,
) -> Result<(), SalvageError> {
    for planned in tables {
        let staging = stagings.get(&planned.table.oid);
        let own_way = staging.and_then(|staging| staging.empty.clone());
        let usual = || format!("TRUNCATE ONLY {}", quoted(&planned.table));
        let truncate = own_way.unwrap_or_else(usual);
        match session.execute(&truncate) {
            Err(error) if error.message().is_none_or(is_of_the_server) => {
                return Err(SalvageError::server("empty a table", error));
            }
            // A table that is not there is told when its rows are refused.
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn load_table((table, pieces): &(&Table, u64), stagings: &Stagings) -> LoadTable {
    let columns = column_names(table);
    let name = quoted(table);
    let list = if columns.is_empty() {
        String::new()
    } else {
        format!(" ({})", columns.join(", "))
    };
    let staging = stagings.get(&table.oid).cloned();
    let place = staging.as_ref().map_or(name.as_str(), |_| STAGE);
    LoadTable {
        copy: format!("COPY {place}{list} FROM STDIN"),
        staging,
        name,
        left: *pieces,
    }
}

fn set_sequences(
    cluster: &Cluster,
    catalog: &Catalog,
    options: &SalvageOptions,
    session: &mut Session,
    account: &mut SalvageReport,
) -> Result<(), SalvageError> {
    let files = MainForks::of_database(cluster, catalog.database);
    let all = sequences::read_all(cluster, catalog, &files, &options.selection);
    for sequence in &all.found {
        if let Err(error) = session.execute(&all.script_of(sequence)) {
            let why = refusal_of(error)?;
            let what = format!("sequence {}.{}", sequence.schema, sequence.sequence);
            account.not_salvaged.push(not_salvaged(&what, &why));
        }
    }
    for sequence in &all.lost {
        let more = match all
            .statement_of_lost(sequence)
            .map(|own| session.query_value(own))
        {
            None => String::new(),
            Some(Ok(Some(value))) => format!(", which is {value}"),
            Some(Ok(None)) => ", and no row has one: it starts again".into(),
            Some(Err(error)) => format!(", which the server refuses: {}", refusal_of(error)?),
        };
        let why = format!("{}{more}", sequence.why);
        account
            .not_salvaged
            .push(not_salvaged(&sequence.what, &why));
    }
    account.sequences.extend(all.found);
    Ok(())
}

/// What the server does not take of a sequence; an error where the server itself is the matter.
fn refusal_of(error: SqlError) -> Result<String, SalvageError> {
    match error.message() {
        Some(message) if !is_of_the_server(message) => Ok(message.message.clone()),
        _ => Err(SalvageError::server("set sequences", error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tablespace_is_left_out() {
        let name = missing_tablespace("tablespace \"annex\" does not exist");
        assert_eq!(name, Some("annex"));
        let sql = "CREATE TABLE t (id int) TABLESPACE annex;\nALTER TABLE t ADD PRIMARY KEY (id) USING INDEX TABLESPACE annex;";
        let expected = "CREATE TABLE t (id int);\nALTER TABLE t ADD PRIMARY KEY (id);";
        assert_eq!(without_tablespace(sql, "annex"), expected);
        assert_eq!(without_tablespace(sql, "other"), sql);
    }
}
