//! `pgclinic`: the only place that reads arguments and environment, prints and exits.
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use pgclinic_cli::{Env, Terminal, run};
use pgclinic_servers::{ConnectionDefaults, Passwords};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::termios::{Winsize, tcgetwinsize};
use signal_hook::consts::{SIGINT, SIGTERM};

fn main() -> ExitCode {
    raise_open_files();
    let interrupted = Arc::new(AtomicBool::new(false));
    if let Err(error) = watch_signals(Arc::clone(&interrupted)) {
        let _unheard = writeln!(stderr(), "pgclinic: cannot watch for signals: {error}");
    }
    let screen = screen();
    let terminal = Terminal {
        stdin: stdin().is_terminal(),
        stdout: stdout().is_terminal(),
        stderr: stderr().is_terminal(),
        width: screen.map_or_else(columns_told, |size| size.ws_col),
        height: screen.map_or(ROWS_USUAL, |size| size.ws_row),
        no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
        is_dumb: std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb"),
    };
    let mut world = Env {
        stdin: &mut stdin().lock(),
        stdout: &mut stdout(),
        stderr: &mut stderr(),
        terminal,
        started: SystemTime::now(),
        host: host(),
        temp_folder: std::env::temp_dir(),
        pgdata: std::env::var_os("PGDATA").filter(|path| !path.is_empty()),
        config_files: config_files(),
        server_defaults: server_defaults(),
        passwords: passwords(),
        interrupted,
        program: std::env::current_exe().ok(),
        state_directory: state_directory(),
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

/// That of a service, else one's own.
fn state_directory() -> Option<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    if let Some(of_service) = given("STATE_DIRECTORY") {
        return Some(of_service.into());
    }
    let of_home = || Some(std::env::home_dir()?.join(".local/state"));
    let own = given("XDG_STATE_HOME").map(PathBuf::from).or_else(of_home);
    own.map(|directory| directory.join("pgclinic"))
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
        service: given("PGSERVICE"),
        service_files: files(),
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

/// Rows of a terminal that does not say how many it has.
const ROWS_USUAL: u16 = 24;

/// Columns and rows of the terminal, as it says itself.
fn screen() -> Option<Winsize> {
    let asked = tcgetwinsize(stdout()).ok();
    asked.filter(|size| size.ws_col > 0 && size.ws_row > 0)
}

/// Columns as the environment says.
fn columns_told() -> u16 {
    let told = std::env::var("COLUMNS").ok();
    told.and_then(|columns| columns.parse().ok()).unwrap_or(100)
}

/// The name that the machine gives itself.
fn host() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}
