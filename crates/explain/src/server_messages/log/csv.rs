//! Records of csvlog (csvlog.c): the columns that are needed, by their place. A value in quotes may
//! have line breaks, so that a record can be many lines.

use super::entries::LogEntry;
use super::timestamp::time_in;

/// What is kept of a record, in bytes; a statement of megabytes stands behind what is needed.
const RECORD_BYTES_MAX: usize = 256 * 1024;
/// Lines that belong to one record at most, so that a stray quote does not swallow the log.
const RECORD_LINES_MAX: usize = 10_000;

const LOG_TIME: usize = 0;
const DATABASE: usize = 2;
const SEVERITY: usize = 11;
const SQLSTATE: usize = 12;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;
const CONTEXT: usize = 18;

/// A record whose lines are being gathered.
#[derive(Debug)]
pub(super) struct Record {
    text: String,
    lines: usize,
    is_in_quotes: bool,
}

impl Record {
    /// The first line of a record: it begins with a time and a comma.
    pub(super) fn begin(line: &str) -> Option<Record> {
        let time = time_in(line.get(..40).unwrap_or(line))?;
        let begins = line.strip_prefix(time)?.starts_with(',');
        let mut record = Record {
            text: String::new(),
            lines: 0,
            is_in_quotes: false,
        };
        begins.then(|| record.add(line))?;
        Some(record)
    }

    /// One more line.
    pub(super) fn add(&mut self, line: &str) {
        let quotes = line.bytes().filter(|byte| *byte == b'"').count();
        self.is_in_quotes ^= quotes % 2 == 1;
        self.lines += 1;
        if self.text.len() + line.len() < RECORD_BYTES_MAX {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    /// No quote is open any more.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_in_quotes || self.lines > RECORD_LINES_MAX
    }

    /// The entry, when the record has a server's columns.
    pub(super) fn entry(&self) -> Option<LogEntry> {
        let columns = columns(&self.text);
        let column = |number: usize| {
            columns
                .get(number)
                .filter(|value| !value.is_empty())
                .cloned()
        };
        Some(LogEntry {
            time: column(LOG_TIME),
            severity: column(SEVERITY)
                .filter(|word| word.bytes().all(|byte| byte.is_ascii_alphanumeric()))?,
            sqlstate: column(SQLSTATE),
            database: column(DATABASE),
            message: column(MESSAGE)?,
            detail: column(DETAIL).unwrap_or_default(),
            context: column(CONTEXT).unwrap_or_default(),
        })
    }
}

/// The values up to the last one that is needed.
fn columns(record: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let mut is_in_quotes = false;
    let mut chars = record.trim_end().chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if is_in_quotes && chars.peek() == Some(&'"') => {
                chars.next();
                push(&mut columns, '"');
            }
            '"' => is_in_quotes = !is_in_quotes,
            ',' if !is_in_quotes && columns.len() > CONTEXT => break,
            ',' if !is_in_quotes => columns.push(String::new()),
            char => push(&mut columns, char),
        }
    }
    columns
}

fn push(columns: &mut [String], char: char) {
    if let Some(last) = columns.last_mut() {
        last.push(char);
    }
}
