//! pgbench at work: when its clients are connected, and when it is told to end.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pgclinic_servers::{ConnectOptions, Session};

use crate::load::{ConnectionTarget, Load};

/// Between two looks at whether it has connected or ended.
const STEP: Duration = Duration::from_millis(5);

/// A started pgbench whose words are gathered while it runs.
pub(super) struct Process {
    child: Child,
    out: JoinHandle<String>,
    err: JoinHandle<String>,
    /// What its sessions call themselves.
    name: String,
}

/// How it came to its end.
pub(super) enum Ended {
    /// With what it said.
    ByItself {
        status: ExitStatus,
        out: String,
        err: String,
    },
    /// It was ended, since connecting took longer than the load allows.
    StillConnecting,
}

impl Process {
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        let name = format!("pgclinic-{}-{}", std::process::id(), fastrand::u32(..));
        let mut child = command
            .env("PGAPPNAME", &name)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (out, err) = (gathered(child.stdout.take()), gathered(child.stderr.take()));
        Ok(Self {
            child,
            out,
            err,
            name,
        })
    }

    /// Waits for its end, which comes early where somebody wants the load to stop. `begun` is
    /// called when all clients are connected, or at once where the server lets nobody ask.
    pub(super) fn run(
        mut self,
        load: &Load,
        target: &ConnectionTarget,
        begun: &dyn Fn(),
    ) -> io::Result<Ended> {
        let start = Instant::now();
        let mut session = Session::open(target, &ConnectOptions::default()).ok();
        let mut has_begun = false;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(self.ended(status));
            }
            if !has_begun && self.is_connected(session.as_mut(), load.clients) {
                has_begun = true;
                session = None;
                begun();
            }
            let is_late = !has_begun && start.elapsed() > load.connect_limit;
            if is_late || load.is_stopped() {
                self.child.kill()?;
                let status = self.child.wait()?;
                return Ok(if is_late {
                    Ended::StillConnecting
                } else {
                    self.ended(status)
                });
            }
            std::thread::sleep(STEP);
        }
    }

    fn is_connected(&self, session: Option<&mut Session>, clients: u32) -> bool {
        let Some(session) = session else {
            return true;
        };
        let asked = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = '{}'",
            self.name
        );
        let found = session.query_value(&asked).ok().flatten();
        let found = found.and_then(|found| found.parse::<u32>().ok());
        found.is_none_or(|found| found >= clients)
    }

    fn ended(self, status: ExitStatus) -> Ended {
        Ended::ByItself {
            status,
            out: self.out.join().unwrap_or_default(),
            err: self.err.join().unwrap_or_default(),
        }
    }
}

/// Reads to the end beside the program: a full pipe would stop it.
fn gathered(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
