//! `BASE_BACKUP`: the files of a running server as tar archives, in one stream that only runs
//! forward (`protocol-replication` in PostgreSQL's manual; `src/backend/backup/basebackup.c`,
//! `basebackup_copy.c`).
//!
//! ```text
//! 13, 14   start │ tablespaces │ copy: archive │ copy: archive │ … │ copy: manifest │ end
//! 15 on    start │ tablespaces │ copy: n name, d bytes, d, …, n name, …, m, d bytes  │ end
//! ```
//!
//! The session must be one for replication: [`ConnectOptions::replicating`].

use std::collections::VecDeque;
use std::time::Duration;

use super::{ConnectOptions, Session, parse_row};
use crate::message::{Message, SqlError};
use crate::wire::Limit;

/// The checkpoint that a backup begins with may take long.
const CHECKPOINT: Duration = Duration::from_secs(3600);

/// What a backup is asked for.
#[derive(Debug, Clone, Default)]
pub struct BackupOptions {
    /// `LABEL`; a quote in it is doubled.
    pub label: String,
    /// The WAL that is written meanwhile comes too, behind all other files.
    pub wal: bool,
    /// The manifest comes last, as an archive of its own.
    pub manifest: bool,
    /// The server sends no faster, in kB a second; its limits are 32 and 1048576.
    pub max_rate: Option<u32>,
    /// The manifest of an earlier backup: only what changed since comes (17 and later, with
    /// `summarize_wal`).
    pub since: Option<Vec<u8>>,
}

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archive {
    /// The data directory.
    Base,
    /// The tablespace of this OID.
    Tablespace(u32),
    /// The bytes of `backup_manifest`; no archive.
    Manifest,
}

/// A backup that is under way. Dropped before its end it leaves the session unusable.
#[derive(Debug)]
pub struct BaseBackup<'s> {
    session: &'s mut Session,
    /// One copy holds all archives, since 15.
    in_one_copy: bool,
    /// Where it began in the WAL, as the server writes it.
    start: String,
    /// Archives that were announced, before 15.
    announced: VecDeque<Archive>,
    /// The archive whose begin was read.
    next: Option<Archive>,
    unread: Vec<u8>,
    used: usize,
    is_over: bool,
}

enum Piece {
    Begin(Archive),
    Bytes,
    EndOfArchive,
    EndOfAll,
}

impl ConnectOptions {
    /// For a session that is asked for a backup.
    #[must_use]
    pub fn replicating(mut self) -> Self {
        self.settings.push(("replication".into(), "true".into()));
        self
    }
}

impl Session {
    /// Begins a backup with a checkpoint. `major` is the server's.
    pub fn base_backup(
        &mut self,
        major: u16,
        options: &BackupOptions,
    ) -> Result<BaseBackup<'_>, SqlError> {
        if let Some(manifest) = &options.since {
            self.copy_in("UPLOAD_MANIFEST", manifest)?;
        }
        if self.is_over {
            return Err(SqlError::Gone);
        }
        let limit = Limit::from_now(CHECKPOINT);
        self.wire.send_text(b'Q', &command(major, options), limit)?;
        let mut backup = BaseBackup {
            session: self,
            in_one_copy: major >= 15,
            start: String::new(),
            announced: VecDeque::new(),
            next: None,
            unread: Vec::new(),
            used: 0,
            is_over: false,
        };
        backup.read_heads(limit)?;
        Ok(backup)
    }
}

/// The words in which each major takes the options.
fn command(major: u16, options: &BackupOptions) -> String {
    let label = options.label.replace('\'', "''");
    let manifest = if options.manifest { "yes" } else { "no" };
    let rate = options.max_rate.map(|rate| rate.clamp(32, 1 << 20));
    if major < 15 {
        let wal = if options.wal { " WAL" } else { "" };
        let rate = rate.map_or(String::new(), |rate| format!(" MAX_RATE {rate}"));
        return format!(
            "BASE_BACKUP LABEL '{label}' FAST{wal} NOWAIT{rate} NOVERIFY_CHECKSUMS MANIFEST '{manifest}'"
        );
    }
    let rate = rate.map_or(String::new(), |rate| format!(", MAX_RATE {rate}"));
    let incremental = if options.since.is_some() {
        ", INCREMENTAL"
    } else {
        ""
    };
    format!(
        "BASE_BACKUP (LABEL '{label}', CHECKPOINT 'fast', WAL {}, WAIT 0, VERIFY_CHECKSUMS 0, MANIFEST '{manifest}'{rate}{incremental})",
        u8::from(options.wal)
    )
}

impl BaseBackup<'_> {
    /// Where recovery would begin.
    pub fn start(&self) -> &str {
        &self.start
    }

    /// Archives end with zeros, as `tar` has it; before 15 it is the client that adds them.
    pub fn has_end_marks(&self) -> bool {
        self.in_one_copy
    }

    /// The next archive; what is left of the one at hand is passed over. Nothing at the end.
    pub fn next_archive(&mut self) -> Result<Option<Archive>, SqlError> {
        loop {
            if let Some(next) = self.next.take() {
                return Ok(Some(next));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.piece()? {
                Piece::Begin(archive) => return Ok(Some(archive)),
                Piece::Bytes | Piece::EndOfArchive => {}
                Piece::EndOfAll => self.is_over = true,
            }
        }
    }

    /// The next bytes of the archive at hand; 0 at its end.
    pub fn read(&mut self, buf: &mut [u8]) -> Result<usize, SqlError> {
        while self.used == self.unread.len() {
            if self.next.is_some() || self.is_over {
                return Ok(0);
            }
            match self.piece()? {
                Piece::Bytes => {}
                Piece::EndOfArchive => return Ok(0),
                Piece::Begin(archive) => self.next = Some(archive),
                Piece::EndOfAll => self.is_over = true,
            }
        }
        let rest = self.unread.get(self.used..).unwrap_or_default();
        let count = rest.len().min(buf.len());
        if let (Some(to), Some(from)) = (buf.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.used += count;
        Ok(count)
    }

    /// Where it begins, and which tablespaces there are.
    fn read_heads(&mut self, limit: Limit) -> Result<(), SqlError> {
        let mut results = 0;
        while results < 2 {
            let (kind, row) = self.frame(limit)?;
            match (kind, row) {
                (b'D', Some(row)) if results == 0 => {
                    self.start = row.into_iter().flatten().next().unwrap_or_default();
                }
                (b'D', Some(row)) => {
                    let oid = row.into_iter().next().flatten();
                    let oid = oid.and_then(|oid| oid.parse().ok());
                    self.announced
                        .push_back(oid.map_or(Archive::Base, Archive::Tablespace));
                }
                (b'C', _) => results += 1,
                (b'T' | b'N' | b'S', _) => {}
                (other, _) => return Err(self.odd(other)),
            }
        }
        Ok(())
    }

    /// A frame of the heads, with its row.
    fn frame(&mut self, limit: Limit) -> Result<(u8, Option<super::TextRow>), SqlError> {
        let frame = self.session.wire.receive(limit);
        let (kind, body) = frame.inspect_err(|_| self.session.is_over = true)?;
        if kind == b'E' {
            let message = Message::parse(body);
            self.session.is_over = true;
            return Err(SqlError::Server(Box::new(message)));
        }
        Ok((kind, if kind == b'D' { parse_row(body) } else { None }))
    }

    /// Reads on to what matters. Bytes are left in `unread`.
    fn piece(&mut self) -> Result<Piece, SqlError> {
        self.unread.clear();
        self.used = 0;
        loop {
            let limit = Limit::from_now(self.session.wall_limit);
            let frame = self.session.wire.receive(limit);
            let (kind, body) = frame.inspect_err(|_| self.session.is_over = true)?;
            match kind {
                b'd' if self.in_one_copy => match body.split_first() {
                    Some((b'd', bytes)) => {
                        self.unread.extend_from_slice(bytes);
                        return Ok(Piece::Bytes);
                    }
                    Some((b'n', name)) => return Ok(Piece::Begin(archive(name))),
                    Some((b'm', _)) => return Ok(Piece::Begin(Archive::Manifest)),
                    // How far it has come.
                    _ => {}
                },
                b'd' => {
                    self.unread.extend_from_slice(body);
                    return Ok(Piece::Bytes);
                }
                b'H' if !self.in_one_copy => {
                    let next = self.announced.pop_front();
                    return Ok(Piece::Begin(next.unwrap_or(Archive::Manifest)));
                }
                b'c' => return Ok(Piece::EndOfArchive),
                b'Z' => return Ok(Piece::EndOfAll),
                b'E' => {
                    let message = Message::parse(body);
                    self.session.is_over = true;
                    return Err(SqlError::Server(Box::new(message)));
                }
                // Where it ended, notices, settings.
                b'H' | b'T' | b'D' | b'C' | b'N' | b'S' => {}
                other => return Err(self.odd(other)),
            }
        }
    }

    fn odd(&mut self, kind: u8) -> SqlError {
        self.session.is_over = true;
        SqlError::Protocol(format!("a frame of kind {kind} in a backup"))
    }
}

/// By its name: `base.tar`, or the tablespace's OID.
fn archive(name: &[u8]) -> Archive {
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let stem = name.split(|byte| *byte == b'.').next().unwrap_or_default();
    let oid = std::str::from_utf8(stem)
        .ok()
        .and_then(|stem| stem.parse().ok());
    oid.map_or(Archive::Base, Archive::Tablespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_major_is_asked_in_its_words() {
        let options = BackupOptions {
            label: "it's".into(),
            wal: true,
            ..BackupOptions::default()
        };
        assert_eq!(
            command(14, &options),
            "BASE_BACKUP LABEL 'it''s' FAST WAL NOWAIT NOVERIFY_CHECKSUMS MANIFEST 'no'"
        );
        let new = command(17, &options);
        assert!(
            new.starts_with("BASE_BACKUP (LABEL 'it''s', CHECKPOINT 'fast', WAL 1,"),
            "{new}"
        );
        assert!(!new.contains("INCREMENTAL") && !new.contains("RATE"));
        let slow = BackupOptions {
            max_rate: Some(5),
            ..options.clone()
        };
        assert!(
            command(14, &slow).contains(" MAX_RATE 32 "),
            "the least there is"
        );
        assert!(command(18, &slow).contains(", MAX_RATE 32"));
        let since = BackupOptions {
            since: Some(Vec::new()),
            manifest: true,
            ..options
        };
        assert!(command(17, &since).ends_with("MANIFEST 'yes', INCREMENTAL)"));
    }

    #[test]
    fn archives_are_known_by_their_names() {
        assert_eq!(archive(b"base.tar\0\0"), Archive::Base);
        assert_eq!(
            archive(b"16385.tar.gz\0/srv/annex\0"),
            Archive::Tablespace(16385)
        );
    }
}
