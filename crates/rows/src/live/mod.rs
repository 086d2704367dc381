//! The rows out of a server that runs and is hurt: table by table over SQL, and past what it refuses by our own reader.
//!
//! ```text
//! the table as a whole ─► ranges of blocks, halved ─► one block ─► row by ctid ─► value by value
//!                                                        └─ the server refuses the page ─► its files, our reader
//! ```
//!
//! `ignore_checksum_failure` and `zero_damaged_pages` are never used, and are switched off where somebody left them on: what
//! one session reads under them stays in shared buffers for all others, and can be written back with a right checksum.

mod bad_blocks;
mod server_source;
mod table_file;
mod tables;

pub use server_source::ServerSource;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pgclinic_diagnose::Progress;
use pgclinic_diagnose::document::Target as TargetDocument;
use pgclinic_servers::{ConnectOptions, Session, SqlError, Target};

use crate::file_names::FileNames;
use crate::forms::csv_header;
use crate::salvage::{
    Account, Destination, Folder, RowCounts, SalvageError, SalvageOptions, TableAccount,
    new_account, not_salvaged,
};
use crate::text_settings::TextStyle;
use bad_blocks::Files;
use table_file::{Stop, TableFile};
use tables::{LiveTable, RangeWay};

/// One statement may read a very large table.
const STATEMENT: Duration = Duration::from_secs(7 * 24 * 3600);
/// A server that crashed is waited for so long.
const RESTART: Duration = Duration::from_secs(120);
/// A table under which the server went away so often is left as far as it came.
const CRASHES_MAX: u32 = 64;

/// What all threads share.
struct Live<'a> {
    target: &'a Target,
    connect: &'a ConnectOptions,
    options: &'a SalvageOptions,
    progress: &'a dyn Progress,
    folder: Folder,
    files: Files<'a>,
    tables: Vec<(LiveTable, String)>,
    next: AtomicUsize,
    way: RangeWay,
    done: Mutex<Done>,
}

#[derive(Default)]
struct Done {
    accounts: Vec<TableAccount>,
    failure: Option<SalvageError>,
}

/// Writes the rows of the database that `target` names.
pub fn salvage_live(
    target: &Target,
    options: &SalvageOptions,
    progress: &dyn Progress,
) -> Result<Account, SalvageError> {
    let Destination::Folder(path) = &options.destination else {
        let why = "from one server into another: salvage into a folder first, and load that";
        return Err(SalvageError::Unsuitable(why.into()));
    };
    if !matches!(options.form.name(), "copy" | "csv") || options.rows == crate::Rows::All {
        let why = "a running server gives its live rows as csv or copy: for other forms salvage its files";
        return Err(SalvageError::Unsuitable(why.into()));
    }
    let connect = connect_options(&options.text);
    let failed = |source| SalvageError::server("read from the server", source);
    let mut session = careful_session(target, &connect, Duration::ZERO).map_err(failed)?;
    let found =
        tables::read(&mut session, &options.selection, options.generated).map_err(failed)?;
    let document = describe(&mut session, options).map_err(failed)?;
    let way = match document.major.is_some_and(|major| major >= 14) {
        true => RangeWay::Scan,
        false => RangeWay::Each,
    };
    let mut account = new_account(document, options);
    if found.is_empty() {
        return Err(SalvageError::NothingSelected);
    }
    let live = Live {
        target,
        connect: &connect,
        options,
        progress,
        folder: Folder::prepare(path, options.durability)?,
        files: Files::new(target, &connect),
        tables: with_files(found, &target.database, options),
        next: AtomicUsize::new(0),
        way,
        done: Mutex::default(),
    };
    for (table, _) in &live.tables {
        progress.expect(u64::from(table.blocks) * 8192);
    }
    std::thread::scope(|scope| {
        for _ in 1..options.threads.get().min(live.tables.len()) {
            scope.spawn(|| live.work());
        }
        live.work();
    });
    let done = live
        .done
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    if let Some(failure) = done.failure {
        return Err(failure);
    }
    account.tables = done.accounts;
    account.interrupted = progress.is_interrupted();
    let why = "pgclinic salvage of the stopped data directory writes them";
    let mut beside = not_salvaged("large objects, sequences and the schema", why);
    beside.inherent = true;
    account.not_salvaged.push(beside);
    account.close();
    Ok(account)
}

fn connect_options(text: &TextStyle) -> ConnectOptions {
    let settings = [
        ("row_security", "off"),
        ("default_transaction_read_only", "on"),
        ("synchronize_seqscans", "off"),
        ("max_parallel_workers_per_gather", "0"),
        ("enable_indexscan", "off"),
        ("enable_indexonlyscan", "off"),
        ("enable_bitmapscan", "off"),
    ];
    let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
    ConnectOptions {
        settings: [text.of_session(), settings.to_vec()].concat(),
        wall_limit: STATEMENT,
        ..ConnectOptions::default()
    }
}

/// A session that reads pages as they are, whatever somebody has set for the server, the database or the role; a server
/// that is starting again is waited for.
fn careful_session(
    target: &Target,
    connect: &ConnectOptions,
    patience: Duration,
) -> Result<Session, SqlError> {
    Session::open_when_ready(target, connect, patience, |session| {
        for setting in ["zero_damaged_pages", "ignore_checksum_failure"] {
            let is_on = session.query_value(&format!("SHOW {setting}"))?;
            if is_on.as_deref() == Some("on") {
                session.execute(&format!("SET {setting} = off"))?;
            }
        }
        Ok(())
    })
}

fn describe(session: &mut Session, options: &SalvageOptions) -> Result<TargetDocument, SqlError> {
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

impl Live<'_> {
    fn work(&self) {
        let mut session = None;
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some((table, file)) = self.tables.get(number) else {
                return;
            };
            if self.progress.is_interrupted() || self.lock().failure.is_some() {
                return;
            }
            let account = self.table(table, file, &mut session);
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

    fn table(
        &self,
        table: &LiveTable,
        name: &str,
        kept: &mut Option<Session>,
    ) -> Result<TableAccount, SalvageError> {
        let with = match self.options.form.name() {
            "csv" => " (FORMAT csv)",
            _ => "",
        };
        let mut file = self.folder.begin(name)?;
        if self.options.form.name() == "csv" {
            let mut line = Vec::new();
            csv_header(table.column_names.iter().map(String::as_str), &mut line);
            file.write(&line)?;
        }
        let mut work = TableFile::new(file, self.open_account(table), self.way, with);
        let mut crashes = 0;
        let mut is_whole = true;
        loop {
            let session = match kept {
                Some(session) => session,
                None => kept.insert(self.session()?),
            };
            match work.work(session, table) {
                Ok(()) => break,
                Err(Stop::Failed(failure)) => return Err(failure),
                Err(Stop::Gone(error)) => {
                    *kept = None;
                    crashes += 1;
                    if crashes >= CRASHES_MAX {
                        is_whole = false;
                        work.account.notes.push(format!("given up: {error}"));
                        break;
                    }
                }
            }
        }
        if crashes > 0 {
            let note = format!("the connection was lost {crashes} times while the table was read");
            work.account.notes.push(note);
        }
        self.refused_blocks(table, &mut work)?;
        if !work.log.is_empty() {
            let mut log = self.folder.begin(&format!("{name}.errors.log"))?;
            log.write(work.log.as_bytes())?;
            log.finish()?;
        }
        let mut account = work.account;
        if is_whole {
            account.file_bytes = work.file.finish()?;
            account.file = Some(name.to_owned());
        }
        Ok(account)
    }

    /// A new session.
    fn session(&self) -> Result<Session, SalvageError> {
        let session = careful_session(self.target, self.connect, RESTART);
        session.map_err(|source| SalvageError::server("reach the server again", source))
    }

    fn open_account(&self, table: &LiveTable) -> TableAccount {
        TableAccount {
            database: self.target.database.clone(),
            schema: table.schema.clone(),
            table: table.name.clone(),
            oid: table.oid,
            kind: match table.is_materialized_view {
                true => "materialized-view".into(),
                false => "table".into(),
            },
            columns: table.column_names.clone(),
            ..TableAccount::default()
        }
    }

    /// What of the blocks that the server refuses our own reader finds.
    fn refused_blocks(&self, table: &LiveTable, work: &mut TableFile) -> Result<(), SalvageError> {
        if work.bad_blocks.is_empty() {
            return Ok(());
        }
        work.account.damaged_pages += work.bad_blocks.len() as u64;
        let found = self
            .files
            .rows(table, &work.bad_blocks, self.options, self.progress);
        let before = work.account.rows;
        match found {
            Ok((text, found)) => {
                work.file.write(&text)?;
                let mut rows: RowCounts = before;
                rows.add(&found.rows);
                work.account.rows = rows;
                work.account.places.extend(found.places);
                work.account.notes.push(format!(
                    "the server refuses {} pages: their rows were read from its files",
                    work.bad_blocks.len()
                ));
            }
            Err(why) => {
                let why = format!(
                    "the server refuses the page, and its files cannot be read through it: {why}"
                );
                let places = work.bad_blocks.iter();
                work.account
                    .places
                    .extend(places.map(|block| crate::LossPlace::page(*block, &why)));
                let name = table.full_name();
                work.account
                    .notes
                    .push(format!("rows of refused pages of {name} are lost"));
            }
        }
        Ok(())
    }
}
