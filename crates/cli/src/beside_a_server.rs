//! A run beside a server at work: it has time for the server to finish what it writes, asks it for pages, and lets it go first.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pgclinic_diagnose::{AskedPage, Bystander, ServerSays};

use crate::asked_server::AskedServer;
use crate::world::{World, sleep_unless};

/// A page that a server began to write is whole long before.
const WAIT: Duration = Duration::from_millis(500);
/// See the module.
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

impl Bystander for BesideAServer {
    fn wait(&self) {
        sleep_unless(&self.interrupted, WAIT);
    }

    fn ask(&self, page: &AskedPage<'_>) -> Option<ServerSays> {
        self.server.as_ref()?.ask(page)
    }
}

/// Beside a server that needs all processors this leaves a tenth of one (`sched(7)`): with less a run would hardly end, and what it
/// has seen would be old before.
const NICENESS: i32 = 10;

/// Lets the work and the reads of others go first where this is wanted, as far as the system does.
pub(crate) fn let_others_go_first(is_wanted: bool, world: &mut World<'_>) {
    if !is_wanted || !world.has_own_process {
        return;
    }
    // Threads that are started from now on have it too. Nobody is kept from being nicer.
    let _niceness = rustix::process::nice(NICENESS);
    if let Err(why) = lower_io_priority() {
        world.say(&format!("pgclinic: reads have their usual priority: {why}"));
    }
}

/// Puts the reads of this thread, and of those that it starts from now on, into the system's idle class: they wait for everybody
/// else's. The system call is out of reach without `unsafe`, so `ionice` of util-linux makes it. Says what went wrong.
fn lower_io_priority() -> Result<(), String> {
    let mut command = Command::new("ionice");
    command
        .args(["-c", "3", "-p"])
        .arg(std::process::id().to_string());
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("ionice: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
