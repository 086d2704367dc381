//! Starting a postmaster that ends when this process ends.
//!
//! `setpriv --pdeathsig` (util-linux) asks the kernel to send SIGQUIT, an immediate shutdown, when
//! the parent *thread* ends (`PR_SET_PDEATHSIG`). So one thread that lives as long as the process
//! starts all servers. Where `setpriv` is missing, the sweep at the next start is what remains
//! after a SIGKILL.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::run_as::RunAs;

struct Job {
    command: Command,
    answer: Sender<io::Result<Child>>,
}

/// A command that runs `program` as the server's user, out of reach of the terminal's Ctrl-C, and
/// dies with us.
pub(crate) fn server_command(program: &Path, run_as: &RunAs) -> Command {
    let mut command = dying_with_us(program);
    run_as.apply(&mut command);
    command
}

/// The same as the user that we are.
pub(crate) fn dying_with_us(program: &Path) -> Command {
    let mut command = if has_setpriv() {
        let mut wrapper = Command::new("setpriv");
        wrapper.args(["--pdeathsig", "QUIT", "--"]).arg(program);
        wrapper
    } else {
        Command::new(program)
    };
    command.process_group(0);
    command
}

/// Starts the command on the thread that never ends.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: OnceLock<Mutex<Sender<Job>>> = OnceLock::new();
    let spawner = SPAWNER.get_or_init(|| Mutex::new(start_spawner()));
    let (answer, child) = channel();
    let sent = spawner
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .send(Job { command, answer });
    sent.map_err(|_| io::Error::other("the thread that starts servers has ended"))?;
    child
        .recv()
        .map_err(|_| io::Error::other("the thread that starts servers has ended"))?
}

fn start_spawner() -> Sender<Job> {
    let (jobs, inbox) = channel::<Job>();
    std::thread::spawn(move || {
        for mut job in inbox {
            let _ = job.answer.send(job.command.spawn());
        }
    });
    jobs
}

/// Whether util-linux's `setpriv` is there; busybox has one without this option.
fn has_setpriv() -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let help = Command::new("setpriv")
            .arg("--help")
            .stdin(Stdio::null())
            .output();
        help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--pdeathsig"))
    })
}
