//! Entries of a log, one at a time, whatever its format; also of a mixture.

use std::io::{BufRead, Result};

use super::csv::Record;
use super::json::{JsonLine, json_line};
use super::labels::{Label, label_in, program_line};
use super::lines::BoundedLines;
use super::timestamp::time_in;
use crate::server_messages::sqlstate::{is_sqlstate, is_unmistakable};

/// What is kept of each part of an entry, in bytes.
const PART_BYTES_MAX: usize = 16 * 1024;

/// One entry.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct LogEntry {
    /// As it stands in the log.
    pub time: Option<String>,
    /// In English, or as the log has it; empty where a line has none.
    pub severity: String,
    /// Where the log has it.
    pub sqlstate: Option<String>,
    /// Where the log has it in a place of its own.
    pub database: Option<String>,
    /// What happened.
    pub message: String,
    /// The DETAIL.
    pub detail: String,
    /// The CONTEXT.
    pub context: String,
}

/// To which part of the entry a continued line belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Message,
    Detail,
    Context,
    /// To nothing that is kept.
    Other,
}

/// Reads a stream entry by entry.
#[derive(Debug)]
pub struct LogEntries<R> {
    lines: BoundedLines<R>,
    lines_read: u64,
    open: Option<LogEntry>,
    part: Part,
    record: Option<Record>,
}

impl<R: BufRead> LogEntries<R> {
    /// Entries of this stream.
    pub fn new(reader: R) -> Self {
        LogEntries {
            lines: BoundedLines::new(reader),
            lines_read: 0,
            open: None,
            part: Part::Other,
            record: None,
        }
    }

    /// Lines that were read.
    pub fn lines_read(&self) -> u64 {
        self.lines_read
    }

    /// The next entry with all its lines.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read.
    pub fn next_entry(&mut self) -> Result<Option<LogEntry>> {
        while let Some(line) = self.lines.next_line()? {
            self.lines_read += 1;
            if let Some(entry) = self.take_line(&line) {
                return Ok(Some(entry));
            }
        }
        let last_record = self.record.take().and_then(|record| record.entry());
        Ok(match last_record {
            Some(entry) => self.begin(entry, Part::Other).or_else(|| self.open.take()),
            None => self.open.take(),
        })
    }

    /// Uses a line; gives the entry that it ends, if it ends one.
    fn take_line(&mut self, line: &str) -> Option<LogEntry> {
        if self.record.is_some() {
            return self.continue_record(line);
        }
        match json_line(line) {
            Some(JsonLine::Entry(entry)) => return self.begin(*entry, Part::Other),
            Some(JsonLine::Text(text)) => return self.take_text(&text),
            None => {}
        }
        self.record = Record::begin(line);
        match self.record {
            Some(_) => self.end_record(),
            None => self.take_text(line),
        }
    }

    fn continue_record(&mut self, line: &str) -> Option<LogEntry> {
        if let Some(record) = &mut self.record {
            record.add(line);
        }
        self.end_record()
    }

    fn end_record(&mut self) -> Option<LogEntry> {
        let record = self.record.take_if(|record| record.is_complete())?;
        self.begin(record.entry()?, Part::Other)
    }

    /// A line of the stderr format, of syslog or of a program.
    fn take_text(&mut self, line: &str) -> Option<LogEntry> {
        if let Some(text) = line.strip_prefix('\t') {
            self.append(text);
            return None;
        }
        match label_in(line) {
            Some((prefix, Label::Severity(severity), text)) => {
                let entry = entry_of(prefix, severity, text);
                self.begin(entry, Part::Message)
            }
            Some((_, label, text)) => {
                self.begin_part(label, text);
                None
            }
            None => self.take_unlabelled(line),
        }
    }

    fn take_unlabelled(&mut self, line: &str) -> Option<LogEntry> {
        match program_line(line) {
            Some((Label::Severity(severity), text)) => {
                let entry = entry_of("", severity, text);
                self.begin(entry, Part::Message)
            }
            Some((label, text)) => {
                self.begin_part(label, text);
                None
            }
            None if self.is_continued_by(line) => {
                self.append(line);
                None
            }
            None => self.begin(entry_of("", "", line), Part::Message),
        }
    }

    /// A line without any label goes on with an entry that had one, and an indented line with any.
    fn is_continued_by(&self, line: &str) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|entry| !entry.severity.is_empty() || line.starts_with(' '))
            && !is_head_of_pg_amcheck(line)
    }

    fn begin(&mut self, entry: LogEntry, part: Part) -> Option<LogEntry> {
        self.part = part;
        self.open.replace(entry)
    }

    fn begin_part(&mut self, label: Label, text: &str) {
        self.part = match label {
            Label::Detail => Part::Detail,
            Label::Context => Part::Context,
            Label::Severity(_) | Label::Other => Part::Other,
        };
        self.append(text);
    }

    fn append(&mut self, text: &str) {
        let Some(entry) = &mut self.open else {
            return;
        };
        let part = match self.part {
            Part::Message => &mut entry.message,
            Part::Detail => &mut entry.detail,
            Part::Context => &mut entry.context,
            Part::Other => return,
        };
        if part.len() + text.len() < PART_BYTES_MAX {
            let separator = if part.is_empty() { "" } else { "\n" };
            part.push_str(separator);
            part.push_str(text);
        }
    }
}

/// `heap table "shop.public.docs", block 3, offset 7:`, above the line that says what is wrong.
fn is_head_of_pg_amcheck(line: &str) -> bool {
    let heads = ["heap table \"", "btree index \""];
    heads.iter().any(|head| line.starts_with(head)) && line.ends_with(':')
}

/// `XX001: invalid page …` where the log is verbose, else the message alone.
fn entry_of(prefix: &str, severity: &str, text: &str) -> LogEntry {
    let verbose = text.split_once(':').filter(|(state, _)| is_sqlstate(state));
    let (sqlstate, message) = match verbose {
        Some((state, message)) => (Some(state), message.trim_start()),
        None => (sqlstate_in(prefix), text),
    };
    let end = message.floor_char_boundary(PART_BYTES_MAX);
    LogEntry {
        time: time_in(prefix).map(str::to_owned),
        severity: severity.to_owned(),
        sqlstate: sqlstate.map(str::to_owned),
        message: message.get(..end).unwrap_or(message).to_owned(),
        ..LogEntry::default()
    }
}

/// `%e` of a prefix, when no number can be taken for it.
fn sqlstate_in(prefix: &str) -> Option<&str> {
    let mut words = prefix.split(|char: char| !char.is_ascii_alphanumeric());
    words.find(|word| is_sqlstate(word) && is_unmistakable(word))
}
