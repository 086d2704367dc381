//! The files of a running server, read through it: `pg_read_binary_file`, `pg_ls_dir`,
//! `pg_stat_file` (`src/backend/utils/adt/genfile.c`).
//!
//! These read the files and not shared buffers, so that a page which the server refuses comes as it
//! lies on disk, and nothing is left in the server's memory.

use std::sync::{Mutex, PoisonError};

use pgclinic_format::page::HEADER_BYTES;
use pgclinic_servers::{ConnectOptions, ConnectionTarget, Session, SqlError, TextRow};
use pgclinic_source::{
    AccessLog, Entry, EntryKind, Result, Source, SourceError, SourceErrorKind, SourceSpec,
    check_path,
};

use super::{RESTART, careful_session, locks};
use crate::salvage::running_losses::VacantPage;

/// Bytes of one question: they travel as text of twice the length.
const READ_BYTES: usize = 4 << 20;
/// From here on a system may refuse to seek (`s_maxbytes` of its file system), so that the length
/// is asked for first.
const FAR: u64 = 1 << 40;
/// What a role must be allowed to execute; with these a path in the data directory can be read by
/// any role.
const FUNCTIONS: [&str; 3] = [
    "pg_catalog.pg_read_binary_file(text,bigint,bigint)",
    "pg_catalog.pg_ls_dir(text)",
    "pg_catalog.pg_stat_file(text,boolean)",
];

/// Where `pd_lower` stands on a page, `src/include/storage/bufpage.h`.
const PD_LOWER_AT: u64 = 12;

/// A running server's files, as a source.
pub struct ServerSource {
    spec: SourceSpec,
    target: ConnectionTarget,
    connect: ConnectOptions,
    line: Mutex<Line>,
    log: AccessLog,
}

/// The connection.
struct Line {
    session: Session,
    /// Why the server did not come back. It is not waited for again.
    gone: Option<String>,
}

impl ServerSource {
    /// The session's role must be allowed to read files of the server;
    /// [`ServerSource::missing_rights`] tells.
    pub fn new(session: Session, target: &ConnectionTarget, connect: &ConnectOptions) -> Self {
        ServerSource {
            spec: SourceSpec::Server {
                url: target.to_string(),
            },
            target: target.clone(),
            connect: connect.clone(),
            line: Mutex::new(Line {
                session,
                gone: None,
            }),
            log: AccessLog::default(),
        }
    }

    /// The functions, with the types of their arguments, that the session's role would need to be
    /// allowed to execute.
    pub fn missing_rights(session: &mut Session) -> std::result::Result<Vec<String>, SqlError> {
        let asked: Vec<String> = FUNCTIONS.iter().map(|name| path_literal(name)).collect();
        let sql = format!(
            "SELECT f FROM pg_catalog.unnest(ARRAY[{}]) f WHERE NOT pg_catalog.has_function_privilege(f, 'EXECUTE')",
            asked.join(", ")
        );
        let rows = session.query(&sql)?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// Asks the server something that is not about a file.
    pub(super) fn query(&self, sql: &str) -> Result<Vec<TextRow>> {
        self.ask("", sql)
    }

    /// Blocks of a file whose pages have no line pointer, with whether `pd_lower` is 0 as on a page
    /// of zeros. The server looks at two bytes of each page, and these pages alone are named.
    pub(super) fn vacant_pages(
        &self,
        path: &str,
        blocks: u64,
        page_bytes: u32,
    ) -> Result<Vec<(u64, VacantPage)>> {
        let path_of = path_literal(path);
        let zeroed = "0000";
        let empty = format!("{HEADER_BYTES:02x}00");
        let sql = format!(
            "SELECT b, lower FROM (SELECT b, pg_catalog.encode(pg_catalog.pg_read_binary_file(\
             {path_of}, b * {page_bytes} + {PD_LOWER_AT}, 2), 'hex') AS lower \
             FROM pg_catalog.generate_series(0, {blocks}::bigint - 1) b OFFSET 0) pages \
             WHERE lower IN ('{zeroed}', '{empty}')"
        );
        let rows = self.log.note(self.ask(path, &sql))?;
        let page = |row: TextRow| match row.as_slice() {
            [Some(block), Some(lower)] => {
                let state = if lower == zeroed {
                    VacantPage::Zeroed
                } else {
                    VacantPage::Empty
                };
                Some((block.parse().ok()?, state))
            }
            _ => None,
        };
        Ok(rows.into_iter().filter_map(page).collect())
    }

    fn ask(&self, path: &str, sql: &str) -> Result<Vec<TextRow>> {
        self.answer(path, sql)?
            .map_err(|error| self.failure(path, &error))
    }

    /// What the server says; an error where it is gone.
    fn answer(&self, path: &str, sql: &str) -> Result<std::result::Result<Vec<TextRow>, SqlError>> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(why) = &line.gone {
            return Err(SourceError::new(path, SourceErrorKind::Io, why.as_str()));
        }
        let answer = locks::insist(|| line.session.query(sql));
        if !line.session.is_over() {
            return Ok(answer);
        }
        // The server went down under another statement: it is asked once more when it is back.
        match careful_session(&self.target, &self.connect, RESTART, |_| Ok(())) {
            Ok(session) => {
                line.session = session;
                Ok(line.session.query(sql))
            }
            Err(error) => {
                let why = format!("the server is gone: {error}");
                line.gone = Some(why.clone());
                Err(SourceError::new(path, SourceErrorKind::Io, why))
            }
        }
    }

    fn failure(&self, path: &str, error: &SqlError) -> SourceError {
        let message = error.message();
        let kind = match message.map_or("", |message| message.sqlstate.as_str()) {
            "58P01" => SourceErrorKind::NotFound,
            "42501" => SourceErrorKind::Denied,
            // A folder where a file was asked for, a file in place of a folder, or a file on the
            // way to it.
            "42809" => match self.answer(path, &stat(path)) {
                Ok(Ok(rows)) if !is_missing(&rows) => SourceErrorKind::NotRegular,
                _ => SourceErrorKind::NotFound,
            },
            _ => SourceErrorKind::Io,
        };
        SourceError::new(path, kind, error.to_string())
    }

    fn read_part(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let sql = format!(
            "SELECT CASE WHEN (pg_catalog.pg_stat_file({0}, true)).size IS NOT NULL THEN \
             pg_catalog.encode(pg_catalog.pg_read_binary_file({0}, {offset}, {1}), 'hex') END",
            path_literal(path),
            buf.len()
        );
        let rows = self.ask(path, &sql)?;
        let text = rows.into_iter().flatten().flatten().next();
        let text = text.ok_or_else(|| not_there(path))?.into_bytes();
        let (pairs, _) = text.as_chunks::<2>();
        for (byte, pair) in buf.iter_mut().zip(pairs) {
            *byte = hex(pair[0]) << 4 | hex(pair[1]);
        }
        Ok(pairs.len().min(buf.len()))
    }
}

/// The path in the data directory as a literal.
fn path_literal(path: &str) -> String {
    literal(if path.is_empty() { "." } else { path })
}

/// A string constant, whatever `standard_conforming_strings` is.
pub(super) fn literal(text: &str) -> String {
    format!("E'{}'", text.replace('\\', r"\\").replace('\'', "''"))
}

/// Asks for size and kind of what has this name. An error would stand in the server's log, where it
/// looks like damage, and most of what is asked for is missing in good order.
fn stat(path: &str) -> String {
    let path = path_literal(path);
    format!("SELECT size, isdir FROM pg_catalog.pg_stat_file({path}, true)")
}

fn is_missing(rows: &[TextRow]) -> bool {
    rows.iter().flatten().all(Option::is_none)
}

fn not_there(path: &str) -> SourceError {
    let why = "the server has no such file";
    SourceError::new(path, SourceErrorKind::NotFound, why)
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => 0,
    }
}

impl Source for ServerSource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        check_path(folder)?;
        let sql = format!(
            "SELECT name, s.isdir, s.size FROM pg_catalog.pg_ls_dir({0}) name, \
             LATERAL pg_catalog.pg_stat_file({0} || '/' || name, true) s WHERE s.isdir IS NOT NULL",
            path_literal(folder)
        );
        let rows = self.log.note(self.ask(folder, &sql))?;
        let mut entries: Vec<Entry> = rows.into_iter().filter_map(entry).collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn len(&self, path: &str) -> Result<u64> {
        check_path(path)?;
        let rows = self.log.note(self.ask(path, &stat(path)))?;
        if is_missing(&rows) {
            return Err(not_there(path));
        }
        let found = rows.into_iter().next().unwrap_or_default();
        let size = match found.as_slice() {
            [Some(size), Some(is_folder)] if is_folder != "t" => size.parse().ok(),
            _ => None,
        };
        size.ok_or_else(|| SourceError::new(path, SourceErrorKind::NotRegular, "it is not a file"))
    }

    fn unreadable(&self) -> Vec<SourceError> {
        self.log.failures()
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        check_path(path)?;
        if offset >= FAR && offset >= self.len(path)? {
            return Ok(0);
        }
        let mut filled = 0;
        while filled < buf.len() {
            let end = buf.len().min(filled + READ_BYTES);
            let part = buf.get_mut(filled..end).unwrap_or_default();
            let asked = part.len();
            let at = offset.saturating_add(filled as u64);
            let read = self.log.note(self.read_part(path, at, part))?;
            filled += read;
            if read < asked {
                break;
            }
        }
        Ok(filled)
    }
}

fn entry(row: TextRow) -> Option<Entry> {
    let [Some(name), Some(is_folder), size] = row.as_slice() else {
        return None;
    };
    let is_folder = is_folder == "t";
    Some(Entry {
        name: name.clone(),
        kind: if is_folder {
            EntryKind::Folder
        } else {
            EntryKind::File
        },
        len: if is_folder {
            0
        } else {
            size.as_ref()?.parse().ok()?
        },
    })
}
