//! What one who was asked said: messages with their SQLSTATE, and rows held against those that were
//! there before.

use pgclinic_servers::{Message, SqlError};

use super::scene::{Lines, lines_of};

/// Messages that are kept of one answer.
const SAID_MAX: usize = 3;

/// Rows that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Rows {
    /// As they were.
    pub(super) right: u64,
    /// Of no row that was there.
    pub(super) wrong: u64,
    /// That were there before.
    pub(super) of: u64,
}

impl Rows {
    /// Holds lines of `COPY` against those of the healthy cluster.
    pub(super) fn compared(bytes: &[u8], truth: &Lines) -> Self {
        let mut left = truth.clone();
        let mut rows = Rows {
            of: truth.values().sum(),
            ..Rows::default()
        };
        for (line, count) in lines_of(bytes) {
            let there = left.entry(line).or_default();
            let right = count.min(*there);
            *there -= right;
            rows.right += right;
            rows.wrong += count - right;
        }
        rows
    }

    /// Of the row of a sequence: it may stand further on, so that no number is given twice.
    pub(super) fn of_sequence(bytes: &[u8], truth: &Lines) -> Self {
        let next_there = truth.keys().filter_map(|line| next_of(line)).max();
        let found: Vec<Option<i64>> = lines_of(bytes).keys().map(|line| next_of(line)).collect();
        let right = found.iter().filter(|next| **next >= next_there).count() as u64;
        Rows {
            right,
            wrong: found.len() as u64 - right,
            of: truth.values().sum(),
        }
    }

    pub(super) fn are_all(self) -> bool {
        self.right == self.of && self.wrong == 0
    }
}

/// The number that a sequence gives next, by its `last_value` and `is_called`.
fn next_of(line: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(line).ok()?;
    let (last, is_called) = text.split_once('\t')?;
    let last: i64 = last.parse().ok()?;
    last.checked_add(i64::from(is_called == "t"))
}

/// How a statement or a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Ending {
    /// It did what it was asked for.
    #[default]
    Done,
    /// With an error.
    Refused,
    /// The server crashed.
    Crashed,
    /// Not within the time that a scenario waits.
    TimedOut,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Answer {
    pub(super) said: Vec<String>,
    /// Messages beyond those that are kept.
    pub(super) more: u64,
    pub(super) rows: Option<Rows>,
    pub(super) ending: Ending,
}

impl Answer {
    /// Keeps the first messages of each severity and counts the others.
    pub(super) fn say(&mut self, words: String) {
        let severity = |words: &str| {
            words
                .split_once(": ")
                .map(|(severity, _)| severity.to_owned())
        };
        let own = severity(&words);
        let of_it = self
            .said
            .iter()
            .filter(|said| severity(said) == own)
            .count();
        let is_error = ["ERROR", "FATAL", "PANIC"]
            .iter()
            .any(|word| words.contains(word));
        if self.said.contains(&words) || (of_it >= SAID_MAX - 1 && !is_error) {
            self.more += 1;
        } else {
            self.said.push(words);
        }
    }

    pub(super) fn hear(&mut self, messages: &[Message]) {
        for message in messages
            .iter()
            .filter(|message| message.severity != "NOTICE")
        {
            self.say(words_of(message));
        }
    }

    /// An error ends what was asked; what came before stays.
    pub(super) fn fail(&mut self, error: &SqlError) {
        self.ending = match error {
            SqlError::Server(message) => {
                self.say(words_of(message));
                Ending::Refused
            }
            SqlError::Gone => Ending::Crashed,
            SqlError::TimedOut { .. } => Ending::TimedOut,
            // A server that goes down resets its sockets.
            _ => Ending::Crashed,
        };
    }
}

/// SQLSTATE, severity, text and detail.
fn words_of(message: &Message) -> String {
    let detail = message.detail.as_ref();
    let detail = detail.map(|detail| format!("\nDETAIL:  {detail}"));
    format!(
        "{} {}:  {}{}",
        message.sqlstate,
        message.severity,
        message.message,
        detail.unwrap_or_default()
    )
}
