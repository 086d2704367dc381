//! The rows out of a server that runs and is hurt: table by table over SQL, and past what it
//! refuses by our own reader.
//!
//! ```text
//! the table as a whole ─► ranges of blocks, halved ─► one block ─► row by ctid
//!                             └─ the server refuses the page, or a row of it ─► its files, our reader
//!                                    └─ nobody may read the files ─► row by ctid, value by value
//! ```
//!
//! `ignore_checksum_failure` and `zero_damaged_pages` are never used, and are switched off where
//! somebody left them on: what one session reads under them stays in shared buffers for all others,
//! and can be written back with a right checksum.

mod denied;
mod files;
mod locks;
mod objects;
mod rows_out;
mod sequences;
mod server_source;
mod snapshots;
mod table_file;
mod table_rows;
mod tables;
mod witnesses;

pub use server_source::ServerSource;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pgclinic_model::Progress;
use pgclinic_model::document::{
    LossPlace, NotChecked, RowCounts, SalvageReport, TableAccount, Target as TargetDocument,
};
use pgclinic_model::plural;
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session, SqlError};

use crate::file_names::FileNames;
use crate::salvage::{
    Destination, Encoding, FinishedTables, Folder, Piece, SalvageError, SalvageOptions, TakeRows,
    described_columns, new_account, not_salvaged, sequences::script, suspects::suspect_file,
    tell_interruption, write_text,
};
use crate::schema::{CatalogRoom, Quoting, SchemaFile};
use crate::text_settings::TextStyle;
use files::Files;
use rows_out::RowsOut;
use snapshots::{Reader, Snapshots};
use table_file::{Stop, TableFile};
use table_rows::TableRows;
use tables::{LiveTable, RangeWay};

/// One statement may read a very large table.
const STATEMENT: Duration = Duration::from_secs(7 * 24 * 3600);
/// A server that crashed is waited for so long.
const RESTART: Duration = Duration::from_secs(120);
/// A table under which the server went away so often is left as far as it came.
const CRASHES_MAX: u32 = 64;
/// A question under which the server went away so often is not asked again.
const TRIES: u32 = 3;

/// What all threads share.
struct Live<'a> {
    target: &'a ConnectionTarget,
    options: &'a SalvageOptions,
    progress: &'a dyn Progress,
    snapshots: &'a Snapshots<'a>,
    folder: Folder,
    finished: &'a FinishedTables<'a>,
    files: Files<'a>,
    tables: Vec<(LiveTable, String)>,
    next: AtomicUsize,
    way: RangeWay,
    rows: RowsOut,
    done: Mutex<Done>,
    /// Sessions that read tables: what they read stays locked until witnesses were asked.
    readers: Mutex<Vec<Reader<'a>>>,
}

#[derive(Default)]
struct Done {
    accounts: Vec<TableAccount>,
    failure: Option<SalvageError>,
}

/// Writes the rows of the database that `target` names.
pub fn salvage_live(
    target: &ConnectionTarget,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<SalvageReport, SalvageError> {
    let Destination::Folder(path) = &options.destination else {
        let why = "rows of a running server go into a directory: salvage them there first";
        return Err(SalvageError::Unsuitable(why.into()));
    };
    let rows = way_of_rows(options)?;
    let connect = connect_options(&options.text, options.lock_wait);
    let files = Files::new(target, &connect);
    files.connect();
    let snapshots = Snapshots::new(target, &connect);
    let failed = |source| SalvageError::server("read from the server", source);
    let begun = begin(&snapshots, &target.database, options);
    let Begun {
        reader,
        document,
        found,
        empty_here,
    } = match begun {
        Ok(begun) => begun,
        Err(error) if locks::is_held_up(&error) => return Ok(held_up(target, options, &error)),
        Err(error) => return Err(failed(error)),
    };
    let mut kept = Some(reader);
    let way = if document.major.is_some_and(|major| major >= 14) {
        RangeWay::Scan
    } else {
        RangeWay::Each
    };
    let mut account = new_account(document, options);
    account.not_salvaged.extend(without_rows(&empty_here));
    let mut tables = with_files(found, &target.database, options);
    let folder = if options.resume {
        Folder::resume(path, options.durability)?
    } else {
        Folder::prepare(path, options.durability)?
    };
    let work = work_of(kept.as_mut(), options);
    let finished = FinishedTables::open(&folder, &work)?;
    tables.retain(|(table, _)| !finished.holds(&table.shape));
    let live = Live {
        target,
        options,
        progress,
        snapshots: &snapshots,
        folder: folder.clone(),
        finished: &finished,
        files,
        tables,
        next: AtomicUsize::new(0),
        way,
        rows,
        done: Mutex::default(),
        readers: Mutex::default(),
    };
    live.all_tables(&mut kept);
    live.keep(kept);
    let before = finished.of_name(&target.database).into_iter();
    let before = before.map(of_an_earlier_run).collect();
    account.tables = live.with_losses(before, &mut account)?;
    let quoting = Quoting {
        major: account.target.major.unwrap_or_default(),
    };
    let denied = denied::gap(&account.tables, &target.user, quoting);
    account.not_salvaged.splice(0..0, denied);
    live.beside_tables(None, &mut account)?;
    account.interrupted = progress.is_interrupted();
    drop(live);
    let (taken, refused) = snapshots.into_account();
    account.snapshots = taken;
    if let Some(why) = refused {
        let mut told = not_salvaged("one snapshot for all tables", &why);
        told.inherent = true;
        account.not_salvaged.push(told);
    }
    let is_found = options.selection.is_of_whole_databases() || !empty_here.is_empty();
    if account.is_empty() && !is_found && !account.interrupted {
        return Err(SalvageError::NothingSelected);
    }
    tell_interruption(&mut account, &options.destination);
    account.close();
    Ok(account)
}

/// The first session, and what it said.
struct Begun<'a> {
    reader: Reader<'a>,
    document: TargetDocument,
    found: Vec<LiveTable>,
    /// Unlogged tables of a standby.
    empty_here: Vec<LiveTable>,
}

/// Unlogged tables: a standby refuses to read them, and has none of their rows.
fn without_rows(tables: &[LiveTable]) -> Option<NotChecked> {
    let names: Vec<String> = tables
        .iter()
        .map(|table| format!("{}.{}", table.schema, table.name))
        .collect();
    let what = format!("rows of unlogged tables: {}", names.join(", "));
    let why = "they are unlogged: a standby has none of their rows, the primary may";
    (!names.is_empty()).then(|| NotChecked {
        inherent: true,
        ..not_salvaged(&what, why)
    })
}

fn begin<'a>(
    snapshots: &'a Snapshots<'a>,
    database: &str,
    options: &SalvageOptions,
) -> Result<Begun<'a>, SqlError> {
    let mut reader = snapshots.reader(Duration::ZERO)?;
    let document = describe(&mut reader, options)?;
    let found = tables::read(&mut reader, database, options)?;
    let standby = reader.query_value("SELECT pg_catalog.pg_is_in_recovery()")?;
    let is_standby = standby.as_deref() == Some("t");
    let is_empty = |table: &LiveTable| is_standby && table.is_unlogged;
    let (empty_here, found) = found.into_iter().partition(is_empty);
    Ok(Begun {
        reader,
        document,
        found,
        empty_here,
    })
}

/// Others hold the catalogs: nothing could be asked.
fn held_up(target: &ConnectionTarget, options: &SalvageOptions, error: &SqlError) -> SalvageReport {
    let document = TargetDocument {
        spec: options.spec.clone(),
        kind: "server".into(),
        state: Some("running".into()),
        ..TargetDocument::default()
    };
    let mut account = new_account(document, options);
    let what = format!("database {}", target.database);
    let gap = not_salvaged(&what, &locks::why(error));
    account.not_salvaged.push(gap);
    account.close();
    account
}

/// What must be the same for a second run to go on after a first one.
fn work_of(reader: Option<&mut Reader<'_>>, options: &SalvageOptions) -> String {
    let identifier = "SELECT system_identifier FROM pg_catalog.pg_control_system()";
    // A role that may not ask for it has the name of the server in its place.
    let identifier = reader.and_then(|reader| reader.query_value(identifier).ok()?);
    let system = identifier.unwrap_or_else(|| options.spec.clone());
    options.resume_key(&format!("a running server, {system}"))
}

/// Snapshots of an earlier run are none of this one.
fn of_an_earlier_run(mut table: TableAccount) -> TableAccount {
    table.snapshots.clear();
    let note = "read by an earlier run, in a snapshot of its own";
    table.notes.push(note.into());
    table
}

/// How the rows come, for options that a running server can serve.
fn way_of_rows(options: &SalvageOptions) -> Result<RowsOut, SalvageError> {
    let unsuitable = |why: &str| SalvageError::Unsuitable(why.into());
    if options.rows == crate::Rows::All {
        let why = "a running server gives its live rows only: for the dead ones salvage its files";
        return Err(unsuitable(why));
    }
    if options.encoding == Encoding::Raw {
        let why = "a running server gives its texts as UTF-8: for the raw bytes salvage its files";
        return Err(unsuitable(why));
    }
    RowsOut::of(options.form).ok_or_else(|| {
        let why = "a running server gives no rows in this form: take csv, copy, binary, jsonl or sql, or salvage its files";
        unsuitable(why)
    })
}

fn connect_options(text: &TextStyle, lock_wait: Duration) -> ConnectOptions {
    let lock_timeout = locks::milliseconds(lock_wait);
    let settings = [
        ("lock_timeout", lock_timeout.as_str()),
        ("row_security", "off"),
        ("default_transaction_read_only", "on"),
        ("synchronize_seqscans", "off"),
        ("max_parallel_workers_per_gather", "0"),
        ("enable_indexscan", "off"),
        ("enable_indexonlyscan", "off"),
        ("enable_bitmapscan", "off"),
        ("idle_in_transaction_session_timeout", "0"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ConnectOptions {
        settings: [text.of_session(), settings.to_vec()].concat(),
        wall_limit: STATEMENT,
        open_limit: Some(locks::open_limit(lock_wait)),
        ..ConnectOptions::default()
    }
}

/// A session that reads pages as they are, whatever somebody has set for the server, the database
/// or the role; a server that is starting again is waited for. `prepare` is done in it.
fn careful_session(
    target: &ConnectionTarget,
    connect: &ConnectOptions,
    patience: Duration,
    prepare: impl Fn(&mut Session) -> Result<(), SqlError>,
) -> Result<Session, SqlError> {
    Session::open_when_ready(target, connect, patience, |session| {
        for setting in ["zero_damaged_pages", "ignore_checksum_failure"] {
            let is_on = session.query_value(&format!("SHOW {setting}"))?;
            if is_on.as_deref() == Some("on") {
                session.execute(&format!("SET {setting} = off"))?;
            }
        }
        prepare(session)
    })
}

fn describe(
    session: &mut Reader<'_>,
    options: &SalvageOptions,
) -> Result<TargetDocument, SqlError> {
    let version = session.query_value("SHOW server_version_num")?;
    let version: Option<u32> = version.and_then(|version| version.parse().ok());
    let checksums = session.query_value("SHOW data_checksums")?;
    Ok(TargetDocument {
        spec: options.spec.clone(),
        kind: "server".into(),
        major: version.and_then(|version| u16::try_from(version / 10_000).ok()),
        checksums: checksums.map(|checksums| checksums == "on"),
        state: Some("running".into()),
        ..TargetDocument::default()
    })
}

/// Each table with the name of its file, without `.part`.
fn with_files(
    tables: Vec<LiveTable>,
    database: &str,
    options: &SalvageOptions,
) -> Vec<(LiveTable, String)> {
    let parts: Vec<[&str; 2]> = tables
        .iter()
        .map(|table| [table.schema.as_str(), table.name.as_str()])
        .collect();
    let names = FileNames::of(parts.iter().map(|parts| parts.as_slice()));
    let folder = crate::encoded(database);
    let extension = options.form.extension();
    let files: Vec<String> = tables
        .iter()
        .map(|table| {
            let name = names.name(&[&table.schema, &table.name], table.oid);
            format!("{folder}/{name}.{extension}")
        })
        .collect();
    tables.into_iter().zip(files).collect()
}

/// Of a table that others hold nothing is known: its file is taken away, and no witness is asked.
fn leave_locked(account: &mut TableAccount, why: &str) {
    account.rows = RowCounts::default();
    account.out_of_reach = true;
    account.is_counted = true;
    account.places.clear();
    account.places.push(LossPlace::page(0, why));
}

/// The number of the table's files, which stays as long as the session that has read it: CLUSTER
/// may have rewritten it since it was listed.
fn filenode_of(table: &LiveTable, kept: &mut Option<Reader<'_>>) -> Option<u32> {
    let sql = format!("SELECT pg_catalog.pg_relation_filenode({})", table.oid);
    let number = kept.as_mut()?.query_value(&sql).ok().flatten();
    number?.parse().ok()
}

/// A part of the work on one table.
type PartOfWork<'p, 'a> = &'p dyn Fn(&mut TableFile<'_>, &mut Reader<'a>) -> Result<(), Stop>;

impl<'a> Live<'a> {
    /// Reads all tables, each in a thread; the first with the session that is there.
    fn all_tables(&self, first: &mut Option<Reader<'a>>) {
        for (table, _) in &self.tables {
            self.progress.expect(u64::from(table.blocks) * 8192);
        }
        std::thread::scope(|scope| {
            for _ in 1..self.options.threads.get().min(self.tables.len()) {
                scope.spawn(|| self.work_beside());
            }
            self.read_tables(first);
        });
    }

    /// Reads tables in a session of its own. Where none can begin the others read them.
    fn work_beside(&self) {
        let Ok(reader) = self.snapshots.reader(RESTART) else {
            return;
        };
        let mut session = Some(reader);
        self.read_tables(&mut session);
        self.keep(session);
    }

    /// Keeps a session that has read tables.
    fn keep(&self, session: Option<Reader<'a>>) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.extend(session);
    }

    fn read_tables(&self, session: &mut Option<Reader<'a>>) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((table, file)) = self.tables.get(number) else {
                return;
            };
            if self.progress.is_interrupted() || self.lock().failure.is_some() {
                return;
            }
            let account = self.table(table, file, session);
            self.progress.advance(u64::from(table.blocks) * 8192);
            match account {
                Ok(account) => self.lock().accounts.push(account),
                Err(failure) => {
                    self.lock().failure.get_or_insert(failure);
                }
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Done> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tables of this run and of an earlier one, with what witnesses know of their losses; or
    /// why the work on them ended.
    fn with_losses(
        &self,
        before: Vec<TableAccount>,
        account: &mut SalvageReport,
    ) -> Result<Vec<TableAccount>, SalvageError> {
        if let Some(failure) = self.lock().failure.take() {
            return Err(failure);
        }
        let own = std::mem::take(&mut self.lock().accounts);
        let tables = [own, before].concat();
        let tables = witnesses::ask(self, tables, account)?;
        self.readers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        Ok(tables)
    }

    /// One of the sessions that have read tables.
    fn spare_reader(&self) -> Option<Reader<'a>> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.pop()
    }

    /// Sequences, large objects and the schema.
    fn beside_tables(
        &self,
        mut kept: Option<Reader<'a>>,
        account: &mut SalvageReport,
    ) -> Result<(), SalvageError> {
        if self.progress.is_interrupted() {
            return Ok(());
        }
        let (found, mut lost) = sequences::read(self, &mut kept)?;
        account.not_salvaged.append(&mut lost);
        if !found.is_empty() {
            let folder = crate::encoded(&self.target.database);
            let mut file = self.folder.begin(&format!("{folder}/sequences.sql"))?;
            file.write(script(&found).as_bytes())?;
            file.finish()?;
            account.sequences = found;
        }
        let selection = &self.options.selection;
        // A person who names tables wants those.
        if selection.relations.is_empty() && selection.filenodes.is_empty() {
            let objects = objects::salvage(self, &mut kept, &mut account.not_salvaged)?;
            account.large_objects.extend(objects);
        }
        self.schema(account)?;
        if let Some(why) = self.files.stale() {
            let what = "what the server did not write to its files yet";
            account.not_salvaged.push(not_salvaged(what, why));
        }
        Ok(())
    }

    /// The schema, from the catalogs in the files of the server.
    fn schema(&self, account: &mut SalvageReport) -> Result<(), SalvageError> {
        let Some(path) = &self.options.ddl else {
            return Ok(());
        };
        let written = self.files.with(|cluster, catalog| {
            let mut schema = SchemaFile::default();
            let room = CatalogRoom::of(&self.options.memory, &self.options.spill_folder);
            let described = described_columns(cluster, catalog, &self.options.given);
            schema.add(cluster, catalog.database, &room, &described);
            schema
        });
        match written {
            Ok(mut schema) => {
                write_text(path, &schema.text(), self.options.durability)?;
                account.not_salvaged.append(&mut schema.not_written);
            }
            Err(why) => {
                let why = format!(
                    "it is read from the catalogs' files, and the server does not give them \
                     (a superuser, or a member of pg_read_server_files with EXECUTE on pg_read_binary_file, pg_ls_dir and pg_stat_file): {why}"
                );
                account.not_salvaged.push(not_salvaged("the schema", &why));
            }
        }
        Ok(())
    }

    /// Asks once more when the server goes down under a question; what it says to it at last.
    fn ask<T>(
        &self,
        kept: &mut Option<Reader<'a>>,
        question: &dyn Fn(&mut Reader<'a>) -> Result<T, SqlError>,
    ) -> Result<Result<T, SqlError>, SalvageError> {
        let mut tries = 0;
        loop {
            let reader = self.reader(kept)?;
            let answer = question(reader);
            if !reader.is_over() {
                return Ok(answer);
            }
            *kept = None;
            tries += 1;
            if answer.is_ok() || tries >= TRIES {
                return Ok(answer);
            }
        }
    }

    /// The session that is kept, or a new one.
    fn reader<'k>(
        &self,
        kept: &'k mut Option<Reader<'a>>,
    ) -> Result<&'k mut Reader<'a>, SalvageError> {
        match kept {
            Some(reader) => Ok(reader),
            None => {
                let reader = self.snapshots.reader(RESTART);
                let reader = reader
                    .map_err(|source| SalvageError::server("reach the server again", source))?;
                Ok(kept.insert(reader))
            }
        }
    }

    fn table(
        &self,
        table: &LiveTable,
        name: &str,
        kept: &mut Option<Reader<'a>>,
    ) -> Result<TableAccount, SalvageError> {
        let mut file = self.folder.begin(name)?;
        let mut ends = Vec::new();
        self.options.form.head(&table.shape, &mut ends);
        file.write(&ends)?;
        let suspects = suspect_file(name, &table.shape);
        let files = TableRows::apart(file, &self.folder, suspects);
        let mut work = TableFile::new(files, self.open_account(table), self.way, self.rows);
        let is_whole = self.read_rows(table, &mut work, self.options, kept)?;
        if let Some(filenode) = filenode_of(table, kept) {
            work.account.filenode = filenode;
        }
        self.write_log(name, &work.log)?;
        let mut account = work.account;
        if let Some(error) = &work.locked {
            leave_locked(&mut account, &locks::why(error));
        }
        if let [_, _, ..] = account.snapshots.as_slice() {
            let numbers: Vec<String> = account.snapshots.iter().map(u32::to_string).collect();
            let note = format!(
                "its rows come from the snapshots {}: what changed between them may be there twice, or not at all",
                numbers.join(" and ")
            );
            account.notes.push(note);
        }
        if is_whole {
            ends.clear();
            self.options.form.tail(&mut ends);
            work.files.write(&ends)?;
            (account.file_bytes, account.suspect_file) = work.files.finish()?;
            account.file = Some(name.to_owned());
            self.finished.add(&account)?;
        }
        Ok(account)
    }

    /// Reads a table to its end, also past what the server refuses and when it goes down meanwhile;
    /// false where it was given up.
    fn read_rows(
        &self,
        table: &LiveTable,
        work: &mut TableFile<'_>,
        options: &SalvageOptions,
        kept: &mut Option<Reader<'a>>,
    ) -> Result<bool, SalvageError> {
        let mut crashes = 0;
        let mut is_whole = self.tries(work, kept, &mut crashes, &|work, reader| {
            work.work(reader, table)
        })?;
        if work.is_absent() && self.is_dropped(table) {
            // Nobody is asked what it had: its indexes went with it.
            work.account.is_counted = true;
            work.account.notes.push("dropped meanwhile".into());
            return Ok(is_whole);
        } else if work.is_absent() {
            work.refuse_whole(table);
        }
        if let Some(why) = self.refused_blocks(table, work, options)? {
            is_whole &= self.tries(work, kept, &mut crashes, &|work, reader| {
                work.rest(reader, table)
            })?;
            work.lose(&why);
        }
        // Nothing is counted of a part: the file is taken away.
        is_whole &= work.locked.is_none();
        if crashes > 0 {
            let note = format!(
                "the connection was lost {crashes} while the table was read",
                crashes = plural(crashes, "time")
            );
            work.account.notes.push(note);
        }
        // Our own reader stops where it is when somebody interrupts.
        let is_cut = !work.bad_blocks.is_empty() && self.progress.is_interrupted();
        Ok(is_whole && !is_cut)
    }

    /// No row of `pg_class` names the table any more, whatever its indexes say: the server takes a
    /// table for dropped as well whose entries there are lost.
    fn is_dropped(&self, table: &LiveTable) -> bool {
        let sql = format!(
            "SELECT pg_catalog.count(*) FROM pg_catalog.pg_class WHERE oid::bigint = {}",
            table.oid
        );
        let rows = self.files.ask(&sql).unwrap_or_default();
        rows.into_iter()
            .flatten()
            .flatten()
            .any(|count| count == "0")
    }

    /// Does a part of the work on a table, and goes on with it when the server is there again;
    /// false where it is given up.
    fn tries(
        &self,
        work: &mut TableFile<'_>,
        kept: &mut Option<Reader<'a>>,
        crashes: &mut u32,
        part: PartOfWork<'_, 'a>,
    ) -> Result<bool, SalvageError> {
        while *crashes < CRASHES_MAX {
            let reader = self.reader(kept)?;
            match part(work, reader) {
                Ok(()) => return Ok(true),
                Err(Stop::Failed(failure)) => return Err(failure),
                Err(Stop::Gone(error)) => {
                    *kept = None;
                    *crashes += 1;
                    if *crashes >= CRASHES_MAX {
                        work.give_up(&error);
                    }
                }
            }
        }
        Ok(false)
    }

    /// What the server refused stands beside the file.
    fn write_log(&self, name: &str, log: &str) -> Result<(), SalvageError> {
        if log.is_empty() {
            return Ok(());
        }
        let mut file = self.folder.begin(&format!("{name}.errors.log"))?;
        file.write(log.as_bytes())?;
        file.finish().map(|_| ())
    }

    fn open_account(&self, table: &LiveTable) -> TableAccount {
        TableAccount {
            database: self.target.database.clone(),
            schema: table.schema.clone(),
            table: table.name.clone(),
            oid: table.oid,
            filenode: table.filenode,
            kind: if table.is_materialized_view {
                "materialized-view".into()
            } else {
                "table".into()
            },
            columns: table.column_names.clone(),
            ..TableAccount::default()
        }
    }

    /// What of the blocks that the server refuses our own reader finds; why it cannot look at them,
    /// otherwise.
    fn refused_blocks(
        &self,
        table: &LiveTable,
        work: &mut TableFile<'_>,
        options: &SalvageOptions,
    ) -> Result<Option<String>, SalvageError> {
        let count = work.bad_blocks.len();
        if count == 0 {
            return Ok(None);
        }
        let mark = work.files.written();
        let parts_suspects = work.files.parts_suspects();
        let (files, mut failed) = (&mut work.files, None);
        let mut take = |printed: &Piece| match files.write_printed(printed) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        };
        let take = TakeRows {
            parts_suspects,
            take: &mut take,
        };
        let blocks = &work.bad_blocks;
        let read = self.files.rows(table, blocks, options, self.progress, take);
        if let Some(failed) = failed {
            return Err(failed);
        }
        let found = match read {
            Ok(found) => found,
            Err(why) => {
                work.files.back_to(mark)?;
                if work.refused_whole.is_none() {
                    work.account.damaged_pages += count as u64;
                }
                return Ok(Some(why));
            }
        };
        let account = &mut work.account;
        account.rows.add(&found.rows);
        account.damaged_pages += found.damaged_pages;
        account.pages.add(found.pages);
        account.places.extend(found.places);
        account.places_omitted += found.places_omitted;
        account.notes.extend(found.notes);
        account.notes.push(format!(
            "the server refuses {count}, or a row of them: their rows were read from its files",
            count = plural(count, "page")
        ));
        Ok(None)
    }
}
