//! The program within this one: its words are kept instead of shown.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgclinic_servers::{ConnectionDefaults, Passwords};

use crate::env::{Env, Terminal};

/// Nothing that anybody looks at.
pub(crate) const NO_TERMINAL: Terminal = Terminal {
    stdin: false,
    stdout: false,
    stderr: false,
    width: 100,
    no_color: true,
};

/// What a run gave.
pub(crate) struct QuietRun {
    pub(crate) exit: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `pgclinic` with these words, as on this terminal.
pub(crate) fn run_quietly(words: &[&str], terminal: Terminal, temp_folder: &Path) -> QuietRun {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut world = Env {
        stdin: &mut std::io::empty(),
        stdout: &mut out,
        stderr: &mut err,
        terminal,
        temp_folder: temp_folder.to_owned(),
        pgdata: None,
        config_files: Vec::new(),
        server_defaults: ConnectionDefaults::default(),
        passwords: Passwords::default(),
        interrupted: Arc::new(AtomicBool::new(false)),
        has_own_process: false,
    };
    let line = std::iter::once("pgclinic").chain(words.iter().copied());
    let exit = crate::run(line.map(OsString::from).collect(), &mut world).code();
    QuietRun {
        exit,
        out: String::from_utf8_lossy(&out).into_owned(),
        err: String::from_utf8_lossy(&err).into_owned(),
    }
}
