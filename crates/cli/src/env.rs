//! What the program is given by the operating system, so that tests can give something else.

use std::ffi::OsString;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pgclinic_format::calendar::{DAYS_FROM_1970_TO_2000, civil};
use pgclinic_report::{Document, in_columns};
use pgclinic_servers::{ConnectionDefaults, ConnectionTarget, Passwords};

use crate::exit::{Exit, Failure};
use crate::output::closed_pipe;
use crate::status_line::StatusCode;

/// What kind of terminal there is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terminal {
    /// stdin is one.
    pub stdin: bool,
    /// stdout is one.
    pub stdout: bool,
    /// stderr is one.
    pub stderr: bool,
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
    /// `NO_COLOR` is set.
    pub no_color: bool,
    /// `TERM` is `dumb` or missing: the cursor cannot be moved.
    pub is_dumb: bool,
}

impl Terminal {
    /// stdout shows colours, and nobody asked it not to.
    pub fn may_be_coloured(&self) -> bool {
        self.stdout && self.understands_colours()
    }

    fn understands_colours(&self) -> bool {
        !self.no_color && !self.is_dumb
    }
}

/// The outside.
pub struct Env<'a> {
    /// What is piped in.
    pub stdin: &'a mut dyn BufRead,
    /// Data.
    pub stdout: &'a mut dyn Write,
    /// Everything else.
    pub stderr: &'a mut dyn Write,
    /// The terminal.
    pub terminal: Terminal,
    /// When the run began.
    pub started: SystemTime,
    /// The name of this machine.
    pub host: Option<String>,
    /// Where files without a name may lie for a while.
    pub temp_folder: PathBuf,
    /// `PGDATA`, the data directory that programs of the server take where none is named.
    pub pgdata: Option<OsString>,
    /// Where options of every run may stand; the last one goes before the others.
    pub config_files: Vec<PathBuf>,
    /// What URLs of servers may leave out.
    pub server_defaults: ConnectionDefaults,
    /// Passwords of servers whose URL has none.
    pub passwords: Passwords,
    /// Set by SIGINT and SIGTERM.
    pub interrupted: Arc<AtomicBool>,
    /// This program, for children of its own.
    pub program: Option<PathBuf>,
    /// Where what outlives a run is kept.
    pub state_directory: Option<PathBuf>,
    /// Nothing else is done in this process, so that its priority may be changed.
    pub has_own_process: bool,
}

impl Env<'_> {
    /// Somebody wants it to stop.
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Says in the document when and where it was made.
    pub(crate) fn date(&self, document: &mut Document) {
        for tool in document.tools_mut() {
            tool.started = Some(moment(self.started));
            tool.host.clone_from(&self.host);
        }
    }

    /// The server of a URL, with its password.
    pub(crate) fn server(&mut self, url: &str) -> Result<ConnectionTarget, Failure> {
        let target = self.server_without_password(url)?;
        Ok(self.with_password(target))
    }

    /// The server of a URL, with no password but its own.
    pub(crate) fn server_without_password(&self, url: &str) -> Result<ConnectionTarget, Failure> {
        let defaults = self.server_defaults.resolved().map_err(Failure::new)?;
        ConnectionTarget::from_url_or(url, &defaults).map_err(Failure::new)
    }

    /// The server with its password, where there is one.
    pub(crate) fn with_password(&mut self, mut target: ConnectionTarget) -> ConnectionTarget {
        if let Some(warning) = self.passwords.give(&mut target) {
            self.say(&warning);
        }
        target
    }

    /// Says a sentence on stderr. A closed stderr is nobody's loss.
    pub fn say(&mut self, sentence: &str) {
        let _unheard = if self.terminal.stderr {
            let sentence = in_columns(sentence, self.terminal.width);
            writeln!(self.stderr, "{sentence}")
        } else {
            writeln!(self.stderr, "{sentence}")
        };
    }

    /// Prints lines for a reader on stdout.
    pub(crate) fn print(&mut self, lines: &str) -> Result<(), Failure> {
        if self.terminal.stdout {
            let lines = in_columns(lines, self.terminal.width);
            self.write(lines.as_bytes())
        } else {
            self.write(lines.as_bytes())
        }
    }

    /// Writes to stdout what is made already.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stdout
            .write_all(bytes)
            .or_else(closed_pipe)
            .map_err(|error| Failure::new(format!("cannot write to stdout: {error}")))
    }

    pub(crate) fn usage(&mut self, error: &clap::Error) -> Exit {
        let text = error.render();
        let colored = if self.terminal.understands_colours() {
            text.ansi().to_string()
        } else {
            text.to_string()
        };
        if error.use_stderr() {
            let words = if self.terminal.stderr {
                colored
            } else {
                text.to_string()
            };
            let _unheard = self.stderr.write_all(words.as_bytes());
            return Exit::Failed;
        }
        let words = if self.terminal.stdout {
            colored
        } else {
            text.to_string()
        };
        match self.write(words.as_bytes()) {
            Ok(()) => Exit::Healthy,
            Err(failure) => self.failed(&failure),
        }
    }

    pub(crate) fn failed(&mut self, failure: &Failure) -> Exit {
        self.say(&format!("pgclinic: {}", failure.0));
        if self.is_interrupted() {
            Exit::Interrupted
        } else {
            Exit::Failed
        }
    }
}

impl Env<'_> {
    /// Says that the report of a run could not be written.
    pub(crate) fn report_failed(&mut self, failure: &Failure) -> Exit {
        self.failed(failure);
        Exit::Failed
    }

    /// Says that something beside the report could not be written, and gives the run's exit code:
    /// damage and an interruption are worse than that.
    pub(crate) fn unwritten(&mut self, failure: &Failure, verdict: Exit) -> Exit {
        let failed = self.failed(failure);
        match verdict {
            Exit::Damaged | Exit::Interrupted | Exit::Status(StatusCode::Critical) => verdict,
            Exit::Status(_) => Exit::Status(StatusCode::Unknown),
            Exit::Healthy | Exit::Incomplete | Exit::Failed => failed,
        }
    }
}

/// `2026-11-25T03:50:56Z`.
pub(crate) fn moment(time: SystemTime) -> String {
    const DAY: u64 = 86_400;
    let since = time.duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |since| since.as_secs());
    let day = i64::try_from(seconds / DAY).unwrap_or(0);
    let date = civil(day - DAYS_FROM_1970_TO_2000);
    let (hours, rest) = (seconds % DAY / 3600, seconds % 3600);
    format!(
        "{:04}-{:02}-{:02}T{hours:02}:{:02}:{:02}Z",
        date.year,
        date.month,
        date.day,
        rest / 60,
        rest % 60
    )
}

/// Between two looks at whether somebody wants the run to end.
const SLEEP_STEP: Duration = Duration::from_millis(20);

/// Lets so much time pass, or less where somebody wants the run to end.
pub(crate) fn sleep_unless(interrupted: &AtomicBool, time: Duration) {
    let end = Instant::now() + time;
    while !interrupted.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(SLEEP_STEP));
    }
}
