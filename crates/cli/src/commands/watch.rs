//! `pgclinic watch`: the live signs of running servers.
//!
//! ```text
//! --once            two samples, one document, an exit code
//! a terminal        one screen, a few keys          screen.rs
//! anything else     a document each interval
//! --listen ADDRESS  metrics and a page              endpoint.rs
//! --alert-command    alerts are judged and sent on   watching.rs, deliver.rs, webhook.rs
//! --scrub RATE      their files are checked slowly  scrub.rs, repeated.rs, background.rs
//! --measure RATE    their files are measured        measured.rs
//! diff A B          growth between two documents    diff.rs
//! ```

mod alert_command;
mod background;
mod deliver;
mod diff;
mod endpoint;
mod measured;
mod own_files;
mod raw_terminal;
mod repeated;
mod screen;
mod scrub;
mod watching;
mod webhook;

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use clap::{ArgMatches, Args, Command as ClapCommand, FromArgMatches};
use pgclinic_lab::{environment, samplers};
use pgclinic_model::document::{SignState, WATCH_SCHEMA, WatchDocument};
use pgclinic_report::Document;
use pgclinic_servers::ConnectionTarget;
use pgclinic_watch::listen::{self, Access, Token};
use pgclinic_watch::{
    BackendMemory, FileSources, Machine, ServerTls, Thoroughness, WatchOptions, WatchedServers,
};

use crate::args::rate;
use crate::commands::Command;
use crate::destination::refuse_directory_early;
use crate::env::{Env, moment, sleep_unless};
use crate::exit::{Exit, FailOnArgs, Failure, ResultClass};
use crate::output::OutputArgs;
use crate::status_line::StatusCode;
use deliver::Receiver;
use repeated::Schedule;
use watching::{Clock, Watching};
use webhook::Webhook;

/// Between the two samples of one document: enough for a rate.
const ONCE_S: f64 = 1.0;
/// Between two samples of a run without end.
const INTERVAL_S: f64 = 10.0;
/// Between the end of a command and the sample after it.
const SETTLING: Duration = Duration::from_millis(500);
/// A second between two samples keeps the cost for the server small.
const INTERVAL_MIN_S: f64 = 1.0;
const INTERVAL_MAX_S: f64 = 86_400.0;
/// A year.
const HOURS_MAX: f64 = 8760.0;

#[derive(Debug, Args)]
struct Arguments {
    /// URLs of servers
    ///
    /// postgres://user@host:5432/database. Signs of tables and catalogs are those of that database,
    /// all others are of the whole server. Passwords come from PGPASSWORD, ~/.pgpass or a service
    /// file.
    #[arg(value_name = "URL", required_unless_present_any = ["rules", "dashboard"])]
    urls: Vec<String>,
    /// Take one document and end
    ///
    /// Two samples are taken, so that it has rates.
    #[arg(long)]
    once: bool,
    /// Seconds between two samples
    ///
    /// 10 by default, 1 with --once.
    #[arg(long, value_name = "SECONDS")]
    interval: Option<f64>,
    /// Alerts count each sample as so many seconds, and the interval may be 0
    ///
    /// For tests of a day within minutes.
    #[arg(long, value_name = "SECONDS", hide = true)]
    clock_step: Option<f64>,
    /// End after so many documents
    #[arg(long, value_name = "N", conflicts_with = "once")]
    samples: Option<u64>,
    /// Show what this command does
    ///
    /// It runs between two samples, given to sh; what it prints goes to stderr. Rates are those of
    /// its time, and JSON and page have the growth of each figure.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["once", "samples", "interval", "listen"])]
    around: Option<String>,
    /// Serve /metrics and a page on this address
    ///
    /// 127.0.0.1:9187, or another one that only this machine reaches. /metrics speaks the text
    /// format of Prometheus, and OpenMetrics to whoever accepts it. Addresses that others reach
    /// need --listen-token-file, --listen-cert and --listen-key.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["once", "output"])]
    listen: Option<String>,
    /// Demand the token in this file
    ///
    /// Its first line, of 16 letters or more, as `Authorization: Bearer TOKEN`, or as the password
    /// of any user. Others may not read the file.
    #[arg(long, value_name = "FILE", requires = "listen")]
    listen_token_file: Option<PathBuf>,
    /// Certificates of the endpoint, PEM
    #[arg(long, value_name = "FILE", requires_all = ["listen", "listen_key"])]
    listen_cert: Option<PathBuf>,
    /// Key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires_all = ["listen", "listen_cert"])]
    listen_key: Option<PathBuf>,
    /// Run this when an alert begins or ends
    ///
    /// It is given to sh, with the message as JSON on its standard input. Alerts are those of
    /// --rules, judged here; each has to hold for a while before it counts.
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["once", "around"])]
    alert_command: Option<String>,
    /// POST alerts that begin or end to this URL
    ///
    /// http://host/path or https://host/path, or @FILE that holds the URL, for one with a secret.
    #[arg(long, value_name = "URL", conflicts_with_all = ["once", "around"])]
    webhook: Option<String>,
    /// Authorities of the webhook's certificate
    ///
    /// PEM; by default those of the system.
    #[arg(long, value_name = "FILE", requires = "webhook")]
    webhook_ca: Option<PathBuf>,
    /// Check the servers' files slowly, all along
    ///
    /// Such as 50MB/s. Checksums and headers of all pages, by `pgclinic check --level pages` as a
    /// process of its own, after everybody else's work and reads. It goes on where it was
    /// stopped, also after a restart. The data directories must be on this machine, and readable.
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with_all = ["once", "around"])]
    scrub: Option<NonZeroU64>,
    /// Hours from scrub to scrub
    #[arg(long, value_name = "HOURS", default_value_t = 24.0, requires = "scrub")]
    scrub_every: f64,
    /// Measure the servers' files in the background
    ///
    /// Such as 50MB/s: exact dead bytes, free space and index density of the worst relations, by
    /// `pgclinic measure` as a process of its own. The data directories must be on this machine.
    #[arg(long, value_name = "RATE", value_parser = rate, conflicts_with_all = ["once", "around"])]
    measure: Option<NonZeroU64>,
    /// Hours from one to the next
    #[arg(
        long,
        value_name = "HOURS",
        default_value_t = 1.0,
        requires = "measure"
    )]
    measure_every: f64,
    /// Measure these files of the same cluster
    ///
    /// The data directory of a standby, or a base backup: the server itself is not read.
    #[arg(long, value_name = "TARGET", requires = "measure")]
    files: Option<PathBuf>,
    /// Directory for what both of them keep
    ///
    /// States and results of scrubs and measurements. By default $STATE_DIRECTORY of a service,
    /// else pgclinic in $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Print alerts on these metrics for Prometheus
    #[arg(long, conflicts_with_all = ["urls", "dashboard"])]
    rules: bool,
    /// Print a dashboard of these metrics for Grafana
    #[arg(long, conflicts_with = "urls")]
    dashboard: bool,
    #[command(flatten)]
    fail_on: FailOnArgs,
    #[command(flatten)]
    output: OutputArgs,
}

const DIFF: &str = "diff";

/// The command `watch`.
pub struct Watch;

impl Command for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn arguments(&self) -> ClapCommand {
        let diff = diff::Arguments::augment_args(ClapCommand::new(DIFF))
            .about("Shows what each figure grew by between two documents")
            .long_about(
                "Shows what each figure grew by between two documents of watch --once\n\
                 --format json: mark, work, mark. Statistics that were reset at the first\n\
                 mark begin at 0.",
            );
        Arguments::augment_args(ClapCommand::new(self.name()))
            .subcommand(diff)
            .args_conflicts_with_subcommands(true)
            .subcommand_negates_reqs(true)
            .about("Shows the live signs of running servers: screen, metrics, alerts")
            .after_help(
                "Exit codes of --once: 0 nothing critical, 1 a critical sign, 2 no server\n\
                 answered, 3 not all was answered; --fail-on warning adds warnings.\n\
                 --format nagios has codes of plugins, 3 where the server refused signs.",
            )
    }

    fn run(&self, matches: &ArgMatches, world: &mut Env<'_>) -> Result<Exit, Failure> {
        if let Some((DIFF, matches)) = matches.subcommand() {
            return diff::run(&diff::Arguments::from_arg_matches(matches)?, world);
        }
        let arguments = Arguments::from_arg_matches(matches)?;
        if arguments.rules {
            return given(&pgclinic_watch::rules(), world);
        }
        if arguments.dashboard {
            return given(&pgclinic_watch::dashboard(), world);
        }
        arguments.output.refuse_early(WATCH_SCHEMA, &[])?;
        let access = arguments.access()?;
        let address = arguments.listen.as_deref();
        let address = address.map(|address| listen::address(address, &access));
        let address = address.transpose().map_err(Failure::new)?;
        let receivers = arguments.receivers()?;
        let clock = arguments.clock_step.map_or(Clock::Real, Clock::Steps);
        let privacy = arguments.output.privacy.clone();
        let mut servers = Watching::new(arguments.servers(world)?, receivers, privacy, clock);
        let ended = match address {
            Some(address) => {
                let place = endpoint::Place { address, access };
                endpoint::run(&arguments, &place, &mut servers, world)
            }
            None if arguments.around.is_some() => arguments.around(&mut servers, world),
            None if arguments.once => arguments.once(&mut servers, world),
            None if arguments.has_screen(world) => screen::run(&arguments, &mut servers, world),
            None => arguments.each_interval(&mut servers, world),
        };
        for why in servers.end() {
            world.say(&format!("pgclinic: {why}"));
        }
        ended
    }
}

fn given(text: &str, world: &mut Env<'_>) -> Result<Exit, Failure> {
    world.write(text.as_bytes())?;
    Ok(Exit::Healthy)
}

impl Arguments {
    fn interval(&self) -> Result<Duration, Failure> {
        let usual = if self.once { ONCE_S } else { INTERVAL_S };
        let seconds = self.interval.unwrap_or(usual);
        let least = if self.clock_step.is_some() {
            0.0
        } else {
            INTERVAL_MIN_S
        };
        if !(least..=INTERVAL_MAX_S).contains(&seconds) {
            let limits =
                format!("--interval must be {INTERVAL_MIN_S} s or more, and a day at most");
            return Err(Failure::new(limits));
        }
        Ok(Duration::from_secs_f64(seconds))
    }

    fn servers(&self, world: &mut Env<'_>) -> Result<WatchedServers, Failure> {
        let interval = self.interval()?;
        let mut targets = Vec::new();
        for url in &self.urls {
            let own = self.target(url, world)?;
            // Their metrics would have the same labels.
            if targets
                .iter()
                .any(|other: &ConnectionTarget| other.to_string() == own.to_string())
            {
                return Err(Failure::new(format!("{own} is named twice")));
            }
            targets.push(own);
        }
        let options = WatchOptions {
            machine: Some(machine()),
            ..WatchOptions::default()
        };
        let files = self.files(world)?;
        Ok(WatchedServers::new(targets, &options, interval, files))
    }

    fn access(&self) -> Result<Access, Failure> {
        let token = self.listen_token_file.as_deref().map(Token::from_file);
        let tls = match (&self.listen_cert, &self.listen_key) {
            (Some(certificates), Some(key)) => Some(ServerTls::from_files(certificates, key)),
            _ => None,
        };
        Ok(Access {
            token: token.transpose().map_err(Failure::new)?,
            tls: tls.transpose().map_err(Failure::new)?,
        })
    }

    fn receivers(&self) -> Result<Vec<Receiver>, Failure> {
        let authorities = self.webhook_ca.as_deref();
        let webhook = self.webhook.as_ref();
        let webhook = webhook.map(|url| Webhook::of(url, authorities)).transpose();
        let webhook = webhook.map_err(Failure::new)?.map(Receiver::Webhook);
        let command = self.alert_command.clone().map(Receiver::Command);
        Ok(command.into_iter().chain(webhook).collect())
    }

    /// What works on the files of each server: nothing where it is not asked for.
    fn files(&self, world: &Env<'_>) -> Result<impl Fn() -> FileSources, Failure> {
        let hours = [self.scrub_every, self.measure_every];
        if !hours.iter().all(|own| (0.0..=HOURS_MAX).contains(own)) {
            let limits = "--scrub-every and --measure-every must be 0 to 8760 hours";
            return Err(Failure::new(limits));
        }
        let is_asked = self.scrub.is_some() || self.measure.is_some();
        let schedule = is_asked.then(|| self.schedule(world)).transpose()?;
        // One directory is of one server.
        let is_one = self.urls.len() == 1;
        let pgdata = world.pgdata.as_ref().filter(|_| is_one).map(PathBuf::from);
        if self.files.is_some() && !is_one {
            return Err(Failure::new(
                "--files is of one server, and several are watched",
            ));
        }
        let (scrub, measure, files) = (self.scrub, self.measure, self.files.clone());
        let [scrub_every, measure_every] = hours.map(|own| Duration::from_secs_f64(own * 3600.0));
        Ok(move || {
            let every = |every| schedule.clone().map(|own| Schedule { every, ..own });
            let pairs = (
                scrub.zip(every(scrub_every)),
                measure.zip(every(measure_every)),
            );
            FileSources {
                scrub: pairs
                    .0
                    .map(|(rate, own)| scrub::source(rate, own, pgdata.clone())),
                measured: pairs
                    .1
                    .map(|(rate, own)| measured::source(rate, own, files.clone(), pgdata.clone())),
            }
        })
    }

    fn schedule(&self, world: &Env<'_>) -> Result<Schedule, Failure> {
        let nowhere = || Failure::new("name --state DIR: the environment names no home");
        let state = self.state.clone().or_else(|| world.state_directory.clone());
        let unknown = || Failure::new("this program cannot be found, to run it beside itself");
        let state = state.ok_or_else(nowhere)?.join("watch");
        refuse_directory_early(&state, "state", &[])?;
        Ok(Schedule {
            every: Duration::ZERO,
            state,
            program: world.program.clone().ok_or_else(unknown)?,
        })
    }

    fn target(&self, url: &str, world: &mut Env<'_>) -> Result<ConnectionTarget, Failure> {
        let own = world.server_without_password(url)?;
        if own.password.is_some() {
            world.say(&format!(
                "the password of {own} stands in the list of processes while this runs: ~/.pgpass is the place for it"
            ));
        }
        Ok(world.with_password(own))
    }

    /// Whether a user sits before it.
    fn has_screen(&self, world: &Env<'_>) -> bool {
        let terminal = world.terminal;
        let is_plain = self.output.format == "text" && self.output.output.is_none();
        is_plain && terminal.stdin && terminal.stdout && !terminal.is_dumb && self.samples.is_none()
    }

    fn once(&self, servers: &mut Watching, world: &mut Env<'_>) -> Result<Exit, Failure> {
        servers.sample(Thoroughness::All);
        sleep_unless(&world.interrupted, self.interval()?);
        self.give(servers.sample(Thoroughness::All), world)
    }

    /// Mark, work, mark.
    fn around(&self, servers: &mut Watching, world: &mut Env<'_>) -> Result<Exit, Failure> {
        servers.sample(Thoroughness::All);
        let command = self.around.as_deref().unwrap_or_default();
        let mut shell = std::process::Command::new("sh");
        let output = shell.args(["-c", command]).stdin(Stdio::null()).output()?;
        world.stderr.write_all(&output.stdout)?;
        world.stderr.write_all(&output.stderr)?;
        if !output.status.success() {
            world.say(&format!("the command ended with {}", output.status));
        }
        // Backends send their statistics on when they end, a moment after their client.
        sleep_unless(&world.interrupted, SETTLING);
        self.give(servers.sample(Thoroughness::All), world)
    }

    /// A document each interval, until somebody wants it to end.
    fn each_interval(&self, servers: &mut Watching, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let interval = self.interval()?;
        let mut left = self.samples.unwrap_or(u64::MAX);
        loop {
            // A server that is down may be up at the next sample.
            let given = self.give(servers.sample(Thoroughness::Due), world)?;
            Self::say_failures(servers, world);
            left = left.saturating_sub(1);
            if left == 0 || world.is_interrupted() {
                return Ok(given);
            }
            world.stdout.flush()?;
            sleep_unless(&world.interrupted, interval);
            if world.is_interrupted() {
                return Ok(Exit::Interrupted);
            }
        }
    }

    /// A receiver of alerts that is not reached is reported, and stops nothing.
    fn say_failures(servers: &Watching, world: &mut Env<'_>) {
        for why in servers.failures() {
            world.say(&format!("pgclinic: {why}"));
        }
    }

    fn give(&self, document: WatchDocument, world: &mut Env<'_>) -> Result<Exit, Failure> {
        let exit = self.exit(&document, world);
        let document = self.closed(document, world)?;
        self.output.write_again(&document, world)?;
        Ok(exit)
    }

    /// The document with the moment of its sample, and with what it may hold.
    fn closed(&self, document: WatchDocument, world: &Env<'_>) -> Result<Document, Failure> {
        let mut document = Document::Watch(document);
        self.output.close(&mut document, world)?;
        for tool in document.tools_mut() {
            tool.started = Some(moment(SystemTime::now()));
        }
        Ok(document)
    }

    fn exit(&self, document: &WatchDocument, world: &Env<'_>) -> Exit {
        if world.is_interrupted() {
            return Exit::Interrupted;
        }
        if self.output.format == "nagios" {
            return Exit::Status(match document.state() {
                SignState::NotAvailable | SignState::Unknown => StatusCode::Unknown,
                SignState::Ok => StatusCode::Ok,
                SignState::Warning => StatusCode::Warning,
                SignState::Critical => StatusCode::Critical,
            });
        }
        let unreachable = document.unreachable();
        if unreachable == document.targets.len() {
            return Exit::Failed;
        }
        let has = |state| document.count(state) > 0;
        let classes = [
            (has(SignState::Critical), ResultClass::Damage),
            (
                unreachable > 0
                    || has(SignState::Unknown)
                    || document.state() == SignState::NotAvailable,
                ResultClass::Incomplete,
            ),
            (has(SignState::Warning), ResultClass::Warning),
        ];
        let held = classes.into_iter().filter(|(holds, _)| *holds);
        let held: Vec<ResultClass> = held.map(|(_, class)| class).collect();
        self.fail_on.exit(&held, false)
    }
}

/// What the laboratory knows of this machine.
fn machine() -> Machine {
    Machine {
        memory_of,
        facts: environment::machine,
        advice: environment::advice,
    }
}

/// The memory of a backend. A process of that number that is no server of PostgreSQL is one of
/// another container.
fn memory_of(pid: u32) -> std::io::Result<BackendMemory> {
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm"))?;
    if !name.starts_with("postgres") {
        return Err(std::io::Error::other("not a process of PostgreSQL"));
    }
    let memory = samplers::memory_of(pid)?;
    Ok(BackendMemory {
        private: memory.private_bytes,
        proportional: memory.proportional_bytes,
    })
}
