//! The oracle: a real server, started on a copy, that reads every relation and says what it says.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::time::{Duration, Instant};

use pgclinic_model::document::ServerAnswer;
use pgclinic_servers::{ConnectOptions, Message, Server, Session, SqlError, StopMode};

use crate::drill::master::Master;
use crate::drill::readings::{DatabaseReadings, Reading, Way};

/// A statement on a damaged page of a drill may run for ever.
const STATEMENT: Duration = Duration::from_secs(20);
/// A server that recovers from a crash takes connections again within this.
const RECOVERY: Duration = Duration::from_secs(20);
/// Crashes after which the rest is not read.
const CRASHES_MAX: usize = 6;

/// What the healthy cluster gives, by database and relation.
pub(crate) type Baseline = BTreeMap<(String, String), u64>;

/// Everything the server said and gave.
#[derive(Default, Debug)]
pub(crate) struct Heard {
    pub(crate) answer: ServerAnswer,
    pub(crate) rows: Baseline,
}

/// Starts the server on `pgdata`, reads everything, stops it.
pub(crate) fn hear(
    master: &Master,
    pgdata: &std::path::Path,
    readings: &[DatabaseReadings],
) -> Heard {
    let mut heard = Heard::default();
    let mut server = match master.start(pgdata) {
        Ok(server) => server,
        Err(error) => {
            heard.answer.messages = fatal_lines(&error.to_string());
            return heard;
        }
    };
    read_everything(&server, readings, STATEMENT, &mut heard);
    let _hurt_servers_may_fail_to_stop = server.stop(StopMode::Immediate);
    heard
}

/// Asks a server to read everything, no statement for longer than `patience`.
pub(crate) fn read_everything(
    server: &Server,
    readings: &[DatabaseReadings],
    patience: Duration,
    heard: &mut Heard,
) {
    heard.answer.started = true;
    let mut crashes = 0;
    for database in readings {
        let mut rest = database.readings.as_slice();
        while let (false, Some(mut session)) = (
            rest.is_empty(),
            connect(server, (&database.database, patience), heard, crashes),
        ) {
            rest = read(&mut session, &database.database, rest, heard);
            if rest.is_empty() {
                break;
            }
            crashes += 1;
            heard.answer.crashed = true;
        }
    }
}

fn connect(
    server: &Server,
    (database, patience): (&str, Duration),
    heard: &mut Heard,
    crashes: usize,
) -> Option<Session> {
    if crashes > CRASHES_MAX {
        heard.say("the server crashed again and again; the rest was not read".into());
        return None;
    }
    let options = ConnectOptions {
        wall_limit: patience,
        statement_timeout: Some(patience),
        ..ConnectOptions::default()
    };
    let start = Instant::now();
    loop {
        match server.connect_with(database, &options) {
            Ok(session) => return Some(session),
            Err(error)
                if start.elapsed() > RECOVERY || (crashes == 0 && error.message().is_some()) =>
            {
                heard.say(words(&error));
                return None;
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Reads until the end or a crash; what is left comes back.
fn read<'a>(
    session: &mut Session,
    database: &str,
    readings: &'a [Reading],
    heard: &mut Heard,
) -> &'a [Reading] {
    let mut rest = readings;
    while let Some((reading, after)) = rest.split_first() {
        rest = after;
        let outcome = one(session, reading);
        for message in session.take_messages() {
            heard.say(first_lines(&message));
        }
        match outcome {
            Ok(_) if matches!(reading.way, Way::Pages | Way::Page | Way::Scan) => {}
            Ok(hash) => drop(
                heard
                    .rows
                    .insert((database.to_owned(), reading.relation.clone()), hash),
            ),
            Err(error) => heard.say(words(&error)),
        }
        if reading.way == Way::Sequence
            && heard
                .rows
                .get(&(database.to_owned(), reading.relation.clone()))
                == Some(&NO_ROW)
        {
            let name = reading.relation.rsplit('.').next().unwrap_or_default();
            heard.say(format!("pg_dump: error: query to get data of sequence \"{name}\" returned 0 rows (expected 1)"));
        }
        if session.is_over() {
            return if rest.is_empty() { &END } else { rest };
        }
    }
    rest
}

const END: [Reading; 0] = [];
/// The hash of nothing.
const NO_ROW: u64 = 0;

/// Hash of all rows, 0 for none.
fn one(session: &mut Session, reading: &Reading) -> Result<u64, SqlError> {
    match reading.way {
        Way::Pages | Way::Page => return session.execute(&reading.sql).map(|()| NO_ROW),
        Way::Scan => {
            let scan = session.execute(&reading.sql).map(|()| NO_ROW);
            if scan.is_err() && !session.is_over() {
                let _left_behind = session.execute("ROLLBACK");
            }
            return scan;
        }
        Way::Copy | Way::Sequence => {}
    }
    let mut hasher = DefaultHasher::new();
    let rows = session.copy_out(&reading.sql, &mut |bytes| hasher.write(bytes))?;
    Ok(if rows == 0 {
        NO_ROW
    } else {
        hasher.finish() | 1
    })
}

impl Heard {
    fn say(&mut self, words: String) {
        if !self.answer.messages.contains(&words) {
            self.answer.messages.push(words);
        }
    }

    /// Names relations whose rows differ though no message said so, and drops what the healthy
    /// cluster says too.
    pub(crate) fn compared_with(mut self, healthy: &Heard) -> ServerAnswer {
        if self.answer.started {
            for (place, rows) in &healthy.rows {
                if self.rows.get(place).is_some_and(|found| found != rows) {
                    self.answer.silent.push(format!("{}: {}", place.0, place.1));
                }
            }
        }
        self.answer
            .messages
            .retain(|message| !healthy.answer.messages.contains(message));
        self.answer
    }
}

/// The server's message, or why there is none.
pub(crate) fn words(error: &SqlError) -> String {
    match error {
        SqlError::Server(message) => first_lines(message),
        other => other.to_string(),
    }
}

/// Severity, text and detail: hints and contexts differ from version to version and say no more.
fn first_lines(message: &Message) -> String {
    let detail = message
        .detail
        .as_ref()
        .map(|detail| format!("\nDETAIL:  {detail}"))
        .unwrap_or_default();
    format!("{}:  {}{detail}", message.severity, message.message)
}

/// The lines of a server log that tell why it did not start.
pub(crate) fn fatal_lines(log: &str) -> Vec<String> {
    let severities = ["FATAL:", "PANIC:", "ERROR:"];
    let line = |line: &str| {
        severities
            .iter()
            .find_map(|severity| line.find(severity))
            .and_then(|at| line.get(at..))
            .map(str::to_owned)
    };
    let mut found: Vec<String> = log.lines().filter_map(line).collect();
    found.dedup();
    if found.is_empty() {
        found.push("the server did not start".into());
    }
    found
}
