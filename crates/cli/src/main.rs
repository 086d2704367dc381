//! `pgclinic`: the only place that reads arguments and environment, prints and exits.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pgclinic_cli::{Env, Terminal, run};
use pgclinic_servers::{ConnectionDefaults, Passwords};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::{SIGINT, SIGTERM};

fn main() -> ExitCode {
    raise_open_files();
    let interrupted = Arc::new(AtomicBool::new(false));
    if let Err(error) = watch_signals(Arc::clone(&interrupted)) {
        let _unheard = writeln!(stderr(), "pgclinic: cannot watch for signals: {error}");
    }
    let terminal = Terminal {
        stdin: stdin().is_terminal(),
        stdout: stdout().is_terminal(),
        stderr: stderr().is_terminal(),
        width: columns(),
        no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
    };
    let mut world = Env {
        stdin: &mut stdin().lock(),
        stdout: &mut stdout(),
        stderr: &mut stderr(),
        terminal,
        temp_folder: std::env::temp_dir(),
        pgdata: std::env::var_os("PGDATA").filter(|path| !path.is_empty()),
        config_files: config_files(),
        server_defaults: server_defaults(),
        passwords: passwords(),
        interrupted,
        has_own_process: true,
    };
    let exit = run(std::env::args_os().collect(), &mut world);
    ExitCode::from(exit.code())
}

/// Open files are a budget like memory: what the machine allows at most is what this process may
/// have. Where that is refused, the limit stays as it is, and sources keep to it.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some() && limit.current != limit.maximum {
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        let _refused = setrlimit(Resource::Nofile, raised);
    }
}

/// The first signal asks politely; the second ends the program, its servers and its folders.
fn watch_signals(interrupted: Arc<AtomicBool>) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for _ in signals.forever() {
                if interrupted.swap(true, Ordering::Relaxed) {
                    pgclinic_servers::remove_all();
                    #[allow(clippy::exit, reason = "the user asked twice")]
                    std::process::exit(130);
                }
            }
        })?;
    Ok(())
}

/// That of the machine, and one's own.
fn config_files() -> Vec<PathBuf> {
    let of_home = || Some(std::env::home_dir()?.join(".config"));
    let own = std::env::var_os("XDG_CONFIG_HOME").filter(|path| !path.is_empty());
    let own = own.map(PathBuf::from).or_else(of_home);
    let own = own.map(|folder| folder.join("pgclinic/pgclinic.toml"));
    let machine = PathBuf::from("/etc/pgclinic.toml");
    [machine].into_iter().chain(own).collect()
}

/// As libpq finds them.
fn server_defaults() -> ConnectionDefaults {
    let given = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let files = || match given("PGSERVICEFILE") {
        Some(file) => vec![file.into()],
        None => {
            let of_system = given("PGSYSCONFDIR").unwrap_or_else(|| SYSTEM_CONFIGURATION.into());
            let own = std::env::home_dir().map(|home| home.join(".pg_service.conf"));
            let system = PathBuf::from(of_system).join("pg_service.conf");
            own.into_iter().chain([system]).collect()
        }
    };
    ConnectionDefaults {
        host: given("PGHOST"),
        port: given("PGPORT"),
        user: given("PGUSER"),
        database: given("PGDATABASE"),
        sslmode: given("PGSSLMODE"),
        sslrootcert: given("PGSSLROOTCERT"),
        service: given("PGSERVICE").map(|name| (name, files())),
    }
}

/// Where Debian's libpq looks.
const SYSTEM_CONFIGURATION: &str = "/etc/postgresql-common";

/// As libpq finds them.
fn passwords() -> Passwords {
    let of_home = || Some(std::env::home_dir()?.join(".pgpass"));
    Passwords {
        password: std::env::var("PGPASSWORD").ok(),
        file: std::env::var_os("PGPASSFILE").map_or_else(of_home, |path| Some(path.into())),
    }
}

/// Columns of the terminal, as it says itself or as the environment says.
fn columns() -> u16 {
    let asked = rustix::termios::tcgetwinsize(stdout())
        .ok()
        .map(|size| size.ws_col)
        .filter(|columns| *columns > 0);
    let told = || {
        std::env::var("COLUMNS")
            .ok()
            .and_then(|columns| columns.parse().ok())
    };
    asked.or_else(told).unwrap_or(100)
}
