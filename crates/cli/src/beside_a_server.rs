//! A run beside a server at work: it has time for the server to finish what it writes, asks it for
//! pages, and lets it go first.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pgclinic_check::{AskedPage, LiveServer, ServerSays};
use pgclinic_cluster::LIVE_LIMITS;

use crate::args::IoPriority;
use crate::asked_server::AskedServer;
use crate::env::{Env, sleep_unless};

/// How a run treats the server that runs on the same files.
pub(crate) struct BesideAServer {
    interrupted: Arc<AtomicBool>,
    server: Option<AskedServer>,
}

impl BesideAServer {
    pub(crate) fn new(interrupted: &Arc<AtomicBool>, server: Option<AskedServer>) -> Self {
        BesideAServer {
            interrupted: Arc::clone(interrupted),
            server,
        }
    }
}

impl LiveServer for BesideAServer {
    fn wait(&self) {
        sleep_unless(&self.interrupted, LIVE_LIMITS.look_wait);
    }

    fn checkpoint(&self) {
        if let Some(server) = &self.server {
            server.checkpoint();
        }
    }

    fn ask(&self, page: &AskedPage<'_>) -> Option<ServerSays> {
        self.server.as_ref()?.ask(page)
    }
}

/// For systems without the idle classes: beside a server that needs all processors this leaves a
/// tenth of one (`sched(7)`).
const NICENESS: i32 = 10;

/// Lets the work and the reads of others go first where this is wanted, as far as the system does.
///
/// What is only nice goes on until its slice ends while a process of the server that has just got
/// its answer waits, and a server waits for many answers a second. What is idle (`SCHED_IDLE`)
/// stops at once.
pub(crate) fn let_others_go_first(
    priority: IoPriority,
    is_beside_a_server: bool,
    world: &mut Env<'_>,
) {
    if !priority.is_idle(is_beside_a_server) || !world.has_own_process {
        return;
    }
    // Threads that are started from now on have it too. Nobody is kept from being nicer.
    let _niceness = rustix::process::nice(NICENESS);
    let own = std::process::id().to_string();
    // The system calls are out of reach without `unsafe`, so util-linux makes them.
    if let Err(why) = run("chrt", &["-i", "-p", "0", &own]) {
        world.say(&format!("pgclinic: the work is nice, not idle: {why}"));
    }
    if let Err(why) = run("ionice", &["-c", "3", "-p", &own]) {
        world.say(&format!("pgclinic: reads have their usual priority: {why}"));
    }
}

/// Says what went wrong.
fn run(program: &str, words: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    let output = command.args(words).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }
}
