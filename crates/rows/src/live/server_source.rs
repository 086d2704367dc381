//! The files of a running server, read through it: `pg_read_binary_file`, `pg_ls_dir`, `pg_stat_file`.
//!
//! These read the files and not shared buffers, so that a page which the server refuses comes as it lies on disk, and nothing is
//! left in the server's memory.

use std::sync::{Mutex, PoisonError};

use pgclinic_servers::{ConnectOptions, Session, SqlError, Target, TextRow};
use pgclinic_source::{Entry, EntryKind, Result, Source, SourceError, SourceErrorKind, SourceSpec};

use super::{RESTART, careful_session};
use crate::schema::literal;

/// Bytes of one question: they travel as text of twice the length.
const READ_BYTES: usize = 4 << 20;

/// See the module.
pub struct ServerSource {
    spec: SourceSpec,
    target: Target,
    connect: ConnectOptions,
    session: Mutex<Session>,
}

impl ServerSource {
    /// The session's role must be allowed to read files of the server.
    pub fn new(session: Session, target: &Target, connect: &ConnectOptions) -> Self {
        ServerSource {
            spec: SourceSpec::Memory {
                name: "the files of a running server".into(),
            },
            target: target.clone(),
            connect: connect.clone(),
            session: Mutex::new(session),
        }
    }

    fn ask(&self, path: &str, sql: &str) -> Result<Vec<TextRow>> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = session.query(sql);
        if !session.is_over() {
            return answer.map_err(|error| failure(path, &error));
        }
        // The server went down under another statement: it is asked once more when it is back.
        let again = careful_session(&self.target, &self.connect, RESTART, |_| Ok(()));
        *session = again.map_err(|error| failure(path, &error))?;
        session.query(sql).map_err(|error| failure(path, &error))
    }

    fn read_part(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let sql = format!(
            "SELECT pg_catalog.encode(pg_catalog.pg_read_binary_file({}, {offset}, {}), 'hex')",
            literal(path),
            buf.len()
        );
        let rows = self.ask(path, &sql)?;
        let text = rows.into_iter().flatten().flatten().next();
        let text = text.unwrap_or_default().into_bytes();
        let (pairs, _) = text.as_chunks::<2>();
        for (byte, pair) in buf.iter_mut().zip(pairs) {
            *byte = hex(pair[0]) << 4 | hex(pair[1]);
        }
        Ok(pairs.len().min(buf.len()))
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => 0,
    }
}

fn failure(path: &str, error: &SqlError) -> SourceError {
    let is_missing = error
        .message()
        .is_some_and(|message| message.sqlstate == "58P01");
    let kind = match is_missing {
        true => SourceErrorKind::NotFound,
        false => SourceErrorKind::Io,
    };
    SourceError::new(path, kind, error.to_string())
}

impl Source for ServerSource {
    fn spec(&self) -> &SourceSpec {
        &self.spec
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        let shown = if folder.is_empty() { "." } else { folder };
        let sql = format!(
            "SELECT name, s.isdir, s.size FROM pg_catalog.pg_ls_dir({0}) name, \
             LATERAL pg_catalog.pg_stat_file({0} || '/' || name, true) s WHERE s.isdir IS NOT NULL",
            literal(shown)
        );
        let mut entries: Vec<Entry> = self
            .ask(folder, &sql)?
            .into_iter()
            .filter_map(entry)
            .collect();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn len(&self, path: &str) -> Result<u64> {
        let sql = format!(
            "SELECT size FROM pg_catalog.pg_stat_file({}) WHERE NOT isdir",
            literal(path)
        );
        let rows = self.ask(path, &sql)?;
        let size = rows.into_iter().flatten().flatten().next();
        let size = size.and_then(|size| size.parse().ok());
        size.ok_or_else(|| SourceError::new(path, SourceErrorKind::NotRegular, "it is no file"))
    }

    fn read_at(&self, path: &str, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < buf.len() {
            let end = buf.len().min(filled + READ_BYTES);
            let part = buf.get_mut(filled..end).unwrap_or_default();
            let asked = part.len();
            let read = self.read_part(path, offset + filled as u64, part)?;
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
        len: match is_folder {
            true => 0,
            false => size.as_ref()?.parse().ok()?,
        },
    })
}
