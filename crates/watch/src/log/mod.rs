//! The server's log, as far as it can be read: what was added since the sample before, from the
//! files where the server is surely on this machine, else through the server.
//!
//! Whatever format it has (stderr, csvlog, jsonlog), entries and their meaning come from the
//! textbook. Of a log that grows faster than it is read a part is passed over, and counted.
//!
//! Whoever may log in can have words written to the log. What a function raises is left out, and
//! a SQLSTATE decides where the log has one; words alone are reported as not verified.

mod files;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use pgclinic_explain::server_messages::Match;
use pgclinic_explain::server_messages::log::{LogEntries, LogEntry, explained};
use pgclinic_model::document::LoggedMessage;
use pgclinic_servers::{Session, SqlError};

use crate::facts::ServerFacts;
use crate::scrub::ServerOnDisk;
use files::{Added, ListedFile, LogFiles, Reuse};

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

/// Severities of what is no error: `LOG` is for the ordinary course of things, the others are sent
/// to clients, and logged where somebody wants it.
const NORMAL: [&str; 4] = ["LOG", "INFO", "NOTICE", "DEBUG"];
/// SQLSTATEs of what a function of a user raises by itself.
const RAISED: &str = "P0";
/// The file is not examined further; a directory of logs has hundreds.
const ENTRIES_MAX: usize = 10_000;
/// For how long a gap stands out.
const GAP_SHOWN: Duration = Duration::from_secs(3600);

/// What lets a role read a log that is not on this machine, or not readable there.
const GRANT: &str = "GRANT EXECUTE ON FUNCTION pg_current_logfile(), pg_ls_logdir(), \
    pg_read_binary_file(text, bigint, bigint, boolean) TO it";

const WHERE: &str = "SELECT pg_current_logfile()";
const LIST: &str = "SELECT name, size, extract(epoch FROM modification) FROM pg_ls_logdir() \
    ORDER BY 3 DESC, 1 LIMIT 1000";

/// What was read of a log.
#[derive(Debug, Default)]
pub(crate) struct ServerLog {
    /// As the server names the present one.
    file: Option<String>,
    files: Option<LogFiles>,
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
    /// What was truncated or removed before it was read, since the log is read.
    pub(crate) gaps: u64,
    last_gap: Option<(Instant, String)>,
    /// How many came at the last sample.
    pub(crate) gaps_growth: u64,
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
    /// The data directory, and the file that is written now.
    Files(PathBuf, PathBuf),
    Server(&'a mut Session),
}

impl ServerLog {
    /// Reads what was added. `Err` is for what ended the session.
    pub(crate) fn read(
        &mut self,
        session: &mut Session,
        server: &ServerOnDisk,
        facts: &ServerFacts,
    ) -> Result<(), SqlError> {
        let reuse = match facts.shown("log_truncate_on_rotation") {
            Some("off") => Reuse::Appends,
            _ => Reuse::StartsAgain,
        };
        let ended = self.read_added(session, server, reuse);
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

    /// A gap of the last hour, in words.
    pub(crate) fn recent_gap(&self) -> Option<&str> {
        let (at, words) = self.last_gap.as_ref()?;
        (at.elapsed() < GAP_SHOWN).then_some(words.as_str())
    }

    /// Each entry has its SQLSTATE, whatever the language of its words.
    pub(crate) fn has_sqlstates(&self) -> bool {
        let name = self.file.as_deref().unwrap_or_default();
        [".csv", ".json"].iter().any(|own| name.ends_with(own))
    }

    fn read_added(
        &mut self,
        session: &mut Session,
        server: &ServerOnDisk,
        reuse: Reuse,
    ) -> Result<(), Refused> {
        let Some(now) = session.query_value(WHERE).map_err(Refused::Sql)? else {
            return Err(Refused::Words(
                "the server writes no log file of its own: logging_collector is off".to_owned(),
            ));
        };
        let (counts, unread, gaps) = (self.counts, self.unread_bytes, self.gaps);
        let mut reach = reach(&now, session, server);
        let listed = reach.listed()?;
        let (directory, name) = now.rsplit_once('/').unwrap_or((".", &now));
        match self.files.take() {
            None => self.begin(&now, &listed, &mut reach)?,
            Some(mut files) => {
                let added = files.added(name, &listed, reuse, reach.bytes_max());
                let read = self.take_added(&added, (directory, name), &mut files, &mut reach);
                self.files = Some(files);
                read?;
            }
        }
        self.file = Some(now);
        let grown = [0, 1].map(|class: usize| {
            let of = |counts: [u64; 2]| counts.get(class).copied().unwrap_or(0);
            of(self.counts) - of(counts)
        });
        self.unread_growth = self.unread_bytes - unread;
        self.gaps_growth = self.gaps - gaps;
        let at = self.read_at.replace(Instant::now());
        self.growth = at.map(|at| (grown, at.elapsed().as_secs_f64()));
        Ok(())
    }

    /// The end of what stands there already tells what happened before.
    fn begin(
        &mut self,
        file: &str,
        listed: &[ListedFile],
        reach: &mut Reach<'_>,
    ) -> Result<(), Refused> {
        let name = file.rsplit('/').next().unwrap_or(file);
        let (mut files, length) = LogFiles::begin(name, listed);
        let first = length.saturating_sub(BEFORE_BYTES.min(reach.bytes_max()));
        let bytes = reach.bytes(file, first, length - first)?;
        let begin = if first == 0 { 0 } else { after_line(&bytes) };
        self.take(bytes.get(begin..).unwrap_or_default(), Age::Before);
        files.read_to(name, first + whole_lines(&bytes));
        self.files = Some(files);
        Ok(())
    }

    fn take_added(
        &mut self,
        added: &Added,
        (directory, current): (&str, &str),
        files: &mut LogFiles,
        reach: &mut Reach<'_>,
    ) -> Result<(), Refused> {
        self.unread_bytes += added.unread_bytes;
        for gap in &added.gaps {
            self.gaps += 1;
            self.last_gap = Some((Instant::now(), gap.clone()));
        }
        for part in &added.parts {
            let file = format!("{directory}/{}", part.name);
            let bytes = reach.bytes(&file, part.first, part.length)?;
            let is_written_on = part.name == current;
            let lines = whole_lines(&bytes);
            if !is_written_on {
                self.take(&bytes, Age::Added);
            } else if lines == 0 && part.length >= reach.bytes_max() {
                // A line without an end is no entry.
                self.unread_bytes += part.length;
            } else {
                let end = usize::try_from(lines).unwrap_or(bytes.len());
                self.take(bytes.get(..end).unwrap_or_default(), Age::Added);
                files.read_to(&part.name, part.first + lines);
            }
        }
        Ok(())
    }

    fn take(&mut self, bytes: &[u8], age: Age) {
        let mut entries = LogEntries::new(bytes);
        // Bytes in memory cannot fail to be read.
        while let Ok(Some(entry)) = entries.next_entry() {
            if is_raised(&entry) {
                continue;
            }
            if let Some(found) = explained(&entry) {
                self.note(&found, &entry, age);
            }
        }
    }

    fn note(&mut self, found: &Match, entry: &LogEntry, age: Age) {
        let page = found.message;
        let by_sqlstate = entry.sqlstate.is_some();
        let is_damage = is_of_damage(entry, &page.sqlstates);
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
        own.by_sqlstate = by_sqlstate;
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

/// What a function of a user raised has its words, and whatever SQLSTATE it likes; the innermost
/// line of the context names the statement.
fn is_raised(entry: &LogEntry) -> bool {
    let has_own_state = |own: &String| own.starts_with(RAISED);
    let innermost = entry.context.lines().next().unwrap_or_default();
    entry.sqlstate.as_ref().is_some_and(has_own_state) || innermost.ends_with(" RAISE")
}

/// By its SQLSTATE, else by its words. Where WAL ends is logged with words of damage, at every end
/// of a recovery.
fn is_of_damage(entry: &LogEntry, of_words: &[&str]) -> bool {
    let is_normal = NORMAL.iter().any(|own| entry.severity.starts_with(own));
    let by_words = of_words.iter().any(|own| OF_DAMAGE.contains(own));
    let by_sqlstate = match entry.sqlstate.as_deref() {
        Some(own) => OF_DAMAGE.contains(&own) || (by_words && of_words.contains(&own)),
        None => by_words,
    };
    !is_normal && by_sqlstate
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

/// The files, where this process may read them and they are surely those of the server.
fn reach<'a>(file: &str, session: &'a mut Session, server: &ServerOnDisk) -> Reach<'a> {
    let directory = server.data_directory.as_ref();
    let directory = directory.filter(|own| server.runs_on(own).is_ok());
    let is_readable = |own: &&PathBuf| File::open(own.join(Path::new(file))).is_ok();
    match directory.filter(is_readable) {
        Some(directory) => Reach::Files(directory.clone(), directory.join(Path::new(file))),
        None => Reach::Server(session),
    }
}

impl Reach<'_> {
    fn bytes_max(&self) -> u64 {
        match self {
            Reach::Files(..) => FILE_BYTES_MAX,
            Reach::Server(_) => SQL_BYTES_MAX,
        }
    }

    /// The files beside the one that is written now, itself included.
    fn listed(&mut self) -> Result<Vec<ListedFile>, Refused> {
        match self {
            Reach::Files(_, path) => listed_beside(path).map_err(|error| unreadable(path, &error)),
            Reach::Server(session) => {
                let rows = session.query(LIST).map_err(Refused::Sql)?;
                let file = |row: &pgclinic_servers::TextRow| {
                    let cell = |at: usize| row.get(at).cloned().flatten();
                    Some(ListedFile {
                        name: cell(0)?,
                        size: cell(1)?.parse().ok()?,
                        modified: cell(2)?.parse().ok()?,
                    })
                };
                Ok(rows.iter().filter_map(file).collect())
            }
        }
    }

    fn bytes(&mut self, file: &str, first: u64, length: u64) -> Result<Vec<u8>, Refused> {
        if length == 0 {
            return Ok(Vec::new());
        }
        match self {
            Reach::Files(directory, _) => {
                let path = directory.join(Path::new(file));
                part_of(&path, first, length).map_err(|error| unreadable(&path, &error))
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

fn listed_beside(path: &Path) -> io::Result<Vec<ListedFile>> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(ENTRIES_MAX) {
        let entry = entry?;
        // One that was removed since is not there.
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else {
            continue;
        };
        let modified = metadata.modified()?.duration_since(UNIX_EPOCH);
        files.extend(metadata.is_file().then(|| ListedFile {
            name,
            size: metadata.len(),
            modified: modified.map_or(0.0, |own| own.as_secs_f64()),
        }));
    }
    Ok(files)
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

    /// Whoever may log in can have these words written.
    #[test]
    fn what_a_user_raises_is_no_damage() {
        let words = "invalid page in block 3 of relation base/5/16384";
        let entry = |sqlstate: Option<&str>, context: &str| LogEntry {
            severity: "ERROR".to_owned(),
            sqlstate: sqlstate.map(str::to_owned),
            message: words.to_owned(),
            context: context.to_owned(),
            ..LogEntry::default()
        };
        let raised = "PL/pgSQL function inline_code_block line 1 at RAISE";
        assert!(is_raised(&entry(Some("P0001"), "")) && is_raised(&entry(Some("XX001"), raised)));
        assert!(is_raised(&entry(None, raised)));
        let outer = "PL/pgSQL function f() line 2 at SQL statement\nSQL function g() at RAISE";
        assert!(!is_raised(&entry(Some("XX001"), outer)));
        let of_words = ["XX001"];
        assert!(is_of_damage(&entry(Some("XX001"), ""), &of_words));
        assert!(is_of_damage(&entry(None, ""), &of_words));
        assert!(!is_of_damage(&entry(Some("22023"), ""), &of_words));
        let notice = LogEntry {
            severity: "NOTICE".to_owned(),
            ..entry(None, "")
        };
        assert!(!is_of_damage(&notice, &of_words));
    }

    #[test]
    fn a_line_that_is_being_written_waits() {
        assert_eq!(whole_lines(b"one\ntwo"), 4);
        assert_eq!(whole_lines(b"one"), 0);
        assert_eq!(after_line(b"one\ntwo"), 4);
        assert_eq!(from_hex("4a0aff0"), [0x4a, 0x0a, 0xff]);
    }
}
