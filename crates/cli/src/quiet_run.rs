//! The program within this one: its words are kept instead of shown.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use pgclinic_servers::{ConnectionDefaults, Passwords};

use crate::env::{Env, Terminal};

/// Where such a run takes place.
pub(crate) struct Surroundings {
    pub(crate) terminal: Terminal,
    /// When its documents say that they were begun.
    pub(crate) started: SystemTime,
    pub(crate) host: Option<String>,
}

/// Neither anybody who looks, nor a time or a place that another run would not have.
pub(crate) const NOWHERE: Surroundings = Surroundings {
    terminal: Terminal {
        stdin: false,
        stdout: false,
        stderr: false,
        width: 100,
        height: 24,
        no_color: true,
        is_dumb: true,
    },
    started: SystemTime::UNIX_EPOCH,
    host: None,
};

/// What a run gave.
pub(crate) struct QuietRun {
    pub(crate) exit: u8,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `pgclinic` with these words.
pub(crate) fn run_quietly(words: &[&str], around: &Surroundings, temp_folder: &Path) -> QuietRun {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut world = Env {
        stdin: &mut std::io::empty(),
        stdout: &mut out,
        stderr: &mut err,
        terminal: around.terminal,
        started: around.started,
        host: around.host.clone(),
        temp_folder: temp_folder.to_owned(),
        pgdata: None,
        config_files: Vec::new(),
        server_defaults: ConnectionDefaults::default(),
        passwords: Passwords::default(),
        interrupted: Arc::new(AtomicBool::new(false)),
        program: None,
        state_directory: None,
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
