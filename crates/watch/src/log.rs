//! The server's log, as far as it can be read: what was added since the sample before, from the
//! file where the server is surely on this machine, else through the server.
//!
//! Whatever format it has (stderr, csvlog, jsonlog), entries and their meaning come from the
//! textbook. Of a log that grows faster than it is read a part is passed over, and counted.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Instant;

use pgclinic_explain::server_messages::Match;
use pgclinic_explain::server_messages::log::{LogEntries, LogEntry, explained};
use pgclinic_model::document::LoggedMessage;
use pgclinic_servers::{Session, SqlError};

use crate::scrub::ServerOnDisk;

/// Read of a file at one sample.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Read through the server at one sample, which it has to print in hexadecimal.
const SQL_BYTES_MAX: u64 = 256 << 10;
/// Read of what stood there before.
const BEFORE_BYTES: u64 = 1 << 20;
/// Of an entry that is shown.
const EXAMPLE_BYTES: usize = 300;
/// SQLSTATEs of damaged data, and of a disk that does not give it.
const OF_DAMAGE: [&str; 3] = ["XX001", "XX002", "58030"];

/// The severity of what a server logs in the ordinary course of things.
const NORMAL: &str = "LOG";

/// What lets a role read a log that is not on this machine, or not readable there.
const GRANT: &str = "GRANT EXECUTE ON FUNCTION pg_current_logfile(), pg_ls_logdir(), \
    pg_read_binary_file(text, bigint, bigint, boolean) TO it";

const WHERE: &str = "SELECT pg_current_logfile()";
const SIZE: &str =
    "SELECT size FROM pg_ls_logdir() WHERE name = regexp_replace(pg_current_logfile(), '^.*/', '')";

/// What was read of a log.
#[derive(Debug, Default)]
pub(crate) struct ServerLog {
    /// As the server names it.
    file: Option<String>,
    position: u64,
    kinds: BTreeMap<&'static str, LoggedMessage>,
    /// By class, damage first, since the log is read.
    counts: [u64; 2],
    /// How much the counts grew at the last sample, and over how many seconds.
    pub(crate) growth: Option<([u64; 2], f64)>,
    /// How much of it was passed over then.
    pub(crate) unread_growth: u64,
    read_at: Option<Instant>,
    /// Passed over, since the log is read.
    pub(crate) unread_bytes: u64,
    /// Why it cannot be read.
    pub(crate) refused: Option<String>,
}

/// Whether what is read was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Age {
    Before,
    Added,
}

/// Where bytes of a log come from.
enum Reach<'a> {
    File(PathBuf),
    Server(&'a mut Session),
}

impl ServerLog {
    /// Reads what was added. `Err` is for what ended the session.
    pub(crate) fn read(
        &mut self,
        session: &mut Session,
        server: &ServerOnDisk,
    ) -> Result<(), SqlError> {
        let ended = self.read_added(session, server);
        if session.is_over() {
            return ended.map_err(|why| match why {
                Refused::Sql(error) => error,
                Refused::Words(words) => SqlError::Protocol(words),
            });
        }
        self.refused = ended.err().map(Refused::words);
        Ok(())
    }

    /// Kinds, the worst first.
    pub(crate) fn kinds(&self) -> Vec<LoggedMessage> {
        let mut kinds: Vec<LoggedMessage> = self.kinds.values().cloned().collect();
        kinds.sort_by_key(|own| std::cmp::Reverse((own.is_damage, own.count, own.before)));
        kinds
    }

    /// Entries of damage, and others.
    pub(crate) fn counts(&self) -> [u64; 2] {
        self.counts
    }

    fn read_added(&mut self, session: &mut Session, server: &ServerOnDisk) -> Result<(), Refused> {
        let Some(now) = session.query_value(WHERE).map_err(Refused::Sql)? else {
            return Err(Refused::Words(
                "the server writes no log file of its own: logging_collector is off".to_owned(),
            ));
        };
        let (counts, unread) = (self.counts, self.unread_bytes);
        match self.file.clone() {
            None => self.begin(&now, session, server)?,
            Some(before) => {
                // What was written to the old file until the server took another one.
                let rest = self.take_added(&before, session, server);
                if before == now {
                    rest?;
                } else {
                    self.position = 0;
                    self.file = Some(now.clone());
                    self.take_added(&now, session, server)?;
                }
            }
        }
        let grown = [0, 1].map(|class: usize| {
            let of = |counts: [u64; 2]| counts.get(class).copied().unwrap_or(0);
            of(self.counts) - of(counts)
        });
        self.unread_growth = self.unread_bytes - unread;
        let at = self.read_at.replace(Instant::now());
        self.growth = at.map(|at| (grown, at.elapsed().as_secs_f64()));
        Ok(())
    }

    /// The end of what stands there already tells what happened before.
    fn begin(
        &mut self,
        file: &str,
        session: &mut Session,
        server: &ServerOnDisk,
    ) -> Result<(), Refused> {
        let mut reach = reach(file, session, server)?;
        let length = reach.length()?;
        let first = length.saturating_sub(BEFORE_BYTES.min(reach.bytes_max()));
        let bytes = reach.bytes(file, first, length - first)?;
        let begin = if first == 0 { 0 } else { after_line(&bytes) };
        self.take(bytes.get(begin..).unwrap_or_default(), Age::Before);
        self.file = Some(file.to_owned());
        self.position = first + whole_lines(&bytes);
        Ok(())
    }

    fn take_added(
        &mut self,
        file: &str,
        session: &mut Session,
        server: &ServerOnDisk,
    ) -> Result<(), Refused> {
        let mut reach = reach(file, session, server)?;
        let limit = reach.bytes_max();
        if let Reach::File(_) = &reach {
            let length = reach.length()?;
            if length < self.position {
                // Somebody made it empty.
                self.position = 0;
            }
            let too_much = (length - self.position).saturating_sub(limit);
            self.unread_bytes += too_much;
            self.position += too_much;
        }
        let bytes = reach.bytes(file, self.position, limit)?;
        let mut read = whole_lines(&bytes);
        let read_all = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if read == 0 && read_all == limit {
            // A line without an end is no entry.
            (read, self.unread_bytes) = (read_all, self.unread_bytes + read_all);
        } else {
            let end = usize::try_from(read).unwrap_or(bytes.len());
            self.take(bytes.get(..end).unwrap_or_default(), Age::Added);
        }
        self.position += read;
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], age: Age) {
        let mut entries = LogEntries::new(bytes);
        // Bytes in memory cannot fail to be read.
        while let Ok(Some(entry)) = entries.next_entry() {
            if let Some(found) = explained(&entry) {
                self.note(&found, &entry, age);
            }
        }
    }

    fn note(&mut self, found: &Match, entry: &LogEntry, age: Age) {
        let page = found.message;
        // Where WAL ends is logged with words of damage, at every end of a recovery.
        let is_damage =
            entry.severity != NORMAL && page.sqlstates.iter().any(|own| OF_DAMAGE.contains(own));
        let own = self
            .kinds
            .entry(page.name)
            .or_insert_with(|| LoggedMessage {
                message: page.name.to_owned(),
                is_damage,
                meaning: in_short(page.meaning),
                command: format!("pgclinic explain {}", page.name),
                ..LoggedMessage::default()
            });
        own.is_damage |= is_damage;
        match age {
            Age::Before => own.before += 1,
            Age::Added => {
                own.count += 1;
                let [damage, others] = &mut self.counts;
                *(if is_damage { damage } else { others }) += 1;
            }
        }
        let facts = &found.facts;
        own.last_time.clone_from(&entry.time);
        own.database.clone_from(&entry.database);
        own.path = facts.relation_path.clone().or_else(|| facts.file.clone());
        own.block = facts.block.or(facts.block_in_file);
        own.example = example(entry);
    }
}

/// Why nothing was read.
enum Refused {
    Sql(SqlError),
    Words(String),
}

impl Refused {
    fn words(self) -> String {
        match self {
            Refused::Words(words) => words,
            Refused::Sql(error) => {
                let why = error.message().map(|own| own.message.clone());
                let why = why.unwrap_or_else(|| error.to_string());
                format!("{why}: {GRANT}")
            }
        }
    }
}

/// The file, where this process may read it and it is surely that of the server.
fn reach<'a>(
    file: &str,
    session: &'a mut Session,
    server: &ServerOnDisk,
) -> Result<Reach<'a>, Refused> {
    let directory = server.data_directory.as_ref();
    let directory = directory.filter(|own| server.runs_on(own).is_ok());
    let path = directory.map(|own| own.join(Path::new(file)));
    Ok(match path.filter(|path| File::open(path).is_ok()) {
        Some(path) => Reach::File(path),
        None => Reach::Server(session),
    })
}

impl Reach<'_> {
    fn bytes_max(&self) -> u64 {
        match self {
            Reach::File(_) => FILE_BYTES_MAX,
            Reach::Server(_) => SQL_BYTES_MAX,
        }
    }

    /// Of the file that is written now.
    fn length(&mut self) -> Result<u64, Refused> {
        match self {
            Reach::File(path) => {
                let own = path.metadata().map_err(|error| unreadable(path, &error))?;
                Ok(own.len())
            }
            Reach::Server(session) => {
                let size = session.query_value(SIZE).map_err(Refused::Sql)?;
                let size = size.and_then(|size| size.parse().ok());
                size.ok_or_else(|| {
                    Refused::Words("the server does not show the size of its log".to_owned())
                })
            }
        }
    }

    fn bytes(&mut self, file: &str, first: u64, length: u64) -> Result<Vec<u8>, Refused> {
        match self {
            Reach::File(path) => {
                part_of(path, first, length).map_err(|error| unreadable(path, &error))
            }
            Reach::Server(session) => {
                let file = file.replace('\'', "''");
                let sql = format!(
                    "SELECT encode(pg_read_binary_file('{file}', {first}, {length}, true), 'hex')"
                );
                let text = session.query_value(&sql).map_err(Refused::Sql)?;
                Ok(from_hex(&text.unwrap_or_default()))
            }
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Refused {
    Refused::Words(format!("cannot read {}: {error}", path.display()))
}

fn part_of(path: &Path, first: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(first))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .and_then(|own| u8::try_from(own).ok())
    };
    let pairs = text.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| Some(digit(*pair.first()?)? * 16 + digit(*pair.last()?)?);
    pairs.filter_map(byte).collect()
}

/// Up to the end of the last line.
fn whole_lines(bytes: &[u8]) -> u64 {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    u64::try_from(end.map_or(0, |end| end + 1)).unwrap_or(0)
}

/// From the begin of the second line.
fn after_line(bytes: &[u8]) -> usize {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    end.map_or(bytes.len(), |end| end + 1)
}

/// The first paragraph of a page, without its marks.
fn in_short(meaning: &str) -> String {
    let first = meaning.split("\n\n").next().unwrap_or_default();
    first.trim().replace(['`', '*'], "").replace('\n', " ")
}

fn example(entry: &LogEntry) -> String {
    let text = format!("{}: {}", entry.severity, entry.message.replace('\n', " "));
    let text = text.strip_prefix(": ").unwrap_or(&text);
    let end = text.floor_char_boundary(EXAMPLE_BYTES);
    text.get(..end).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_counted_by_what_they_mean() {
        let mut log = ServerLog::default();
        let old = b"2026-11-27 10:00:00.000 UTC [7] ERROR:  could not read block 9 in file \"base/5/16384\": Input/output error\n";
        log.take(old, Age::Before);
        let new = b"2026-11-27 10:00:01.000 UTC [7] WARNING:  page verification failed, calculated checksum 1 but expected 2\n\
            2026-11-27 10:00:01.000 UTC [7] ERROR:  invalid page in block 3 of relation base/5/16384\n\
            2026-11-27 10:00:02.000 UTC [7] ERROR:  invalid page in block 4 of relation base/5/16384\n\
            2026-11-27 10:00:02.000 UTC [7] LOG:  statement: SELECT 'invalid page in block 5 of relation base/5/1'\n";
        log.take(new, Age::Added);
        assert_eq!(log.counts(), [3, 0]);
        let kinds = log.kinds();
        let first = kinds.first().expect("a kind");
        assert_eq!((first.message.as_str(), first.count), ("invalid-page", 2));
        assert_eq!(
            (first.path.as_deref(), first.block),
            (Some("base/5/16384"), Some(4))
        );
        let disk = kinds
            .iter()
            .find(|own| own.before == 1)
            .expect("the old one");
        assert!(disk.is_damage && disk.count == 0, "{disk:?}");
    }

    #[test]
    fn a_line_that_is_being_written_waits() {
        assert_eq!(whole_lines(b"one\ntwo"), 4);
        assert_eq!(whole_lines(b"one"), 0);
        assert_eq!(after_line(b"one\ntwo"), 4);
        assert_eq!(from_hex("4a0aff0"), [0x4a, 0x0a, 0xff]);
    }
}
