//! `lab load`: a pgbench script, many clients, one server by URL.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use pgclinic_lab::load::{Length, Load, LoadResult, Measured, Pace, Protocol, Script, pgbench};
use serde_json::json;

use super::arguments::DriverName;
use crate::env::Env;
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// A pgbench script
    ///
    /// It has \set with whole numbers and random(), and SQL with :variables.
    script: PathBuf,
    /// The server's URL
    ///
    /// postgres://user:password@host:5432/database, or postgres:///database?host=/socket/directory.
    #[arg(long)]
    url: String,
    /// Connections, each a client of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    clients: u32,
    /// Threads that drive the clients
    ///
    /// By default one for each processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Seconds, from when all are connected
    #[arg(
        long,
        value_name = "N",
        default_value_t = 10.0,
        conflicts_with = "rounds"
    )]
    seconds: f64,
    /// Rounds of each client, instead of --seconds
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// Mode
    ///
    /// How SQL is sent.
    #[arg(long, value_enum, value_name = "MODE", default_value_t = ProtocolName::Prepared)]
    protocol: ProtocolName,
    /// Open loop: rounds that fall due each second
    ///
    /// They fall due whatever the server does.
    #[arg(long, value_name = "N", conflicts_with = "think_ms")]
    rate: Option<f64>,
    /// Closed loop: milliseconds of pause after a round
    #[arg(long, value_name = "N")]
    think_ms: Option<u64>,
    /// A variable that is set before the script begins
    #[arg(long, value_name = "NAME=N", value_parser = variable)]
    define: Vec<(String, i64)>,
    /// Seed of the clients' random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Load driver
    #[arg(long, value_enum, value_name = "DRIVER", default_value_t = DriverName::BuiltIn)]
    driver: DriverName,
    /// Format
    #[arg(long, value_enum, default_value_t = Form::Text)]
    format: Form,
}

/// A protocol by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum ProtocolName {
    /// As text, parsed and planned each time
    Simple,
    /// With parameters, parsed and planned each time
    Extended,
    /// Parsed once for each client
    Prepared,
}

/// How the answer is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Form {
    /// For people
    Text,
    /// With histogram and seconds
    Json,
}

pub(super) fn run(arguments: &Arguments, world: &mut Env<'_>) -> Result<Exit, Failure> {
    let mut load = arguments.load()?;
    load.stop = Arc::clone(&world.interrupted);
    let target = world.server(&arguments.url)?;
    let result = match arguments.driver {
        DriverName::BuiltIn => {
            let target = target.without_tls().map_err(Failure::new)?;
            load.run(&target, &|| {})
        }
        DriverName::Pgbench => {
            let program =
                pgbench::installed().ok_or_else(|| Failure::new("no pgbench is installed here"))?;
            pgbench::run(&program, &load, &target, &|| {}).map_err(Failure::new)?
        }
    };
    let (text, exit) = match result {
        LoadResult::Measured(measured) => (arguments.words(&measured)?, exit(&measured)),
        LoadResult::Empty { why } => return Err(Failure::new(why)),
    };
    world.write(text.as_bytes())?;
    Ok(if world.is_interrupted() {
        Exit::Interrupted
    } else {
        exit
    })
}

/// A load in which something failed is not the load that was asked for.
fn exit(measured: &Measured) -> Exit {
    match measured.failed + measured.abandoned + u64::from(measured.lost_clients) {
        0 => Exit::Healthy,
        _ => Exit::Incomplete,
    }
}

impl Arguments {
    fn load(&self) -> Result<Load, Failure> {
        let name = self.script.display();
        let text = std::fs::read_to_string(&self.script)
            .map_err(|error| Failure::new(format!("cannot read {name}: {error}")))?;
        let given: BTreeMap<String, i64> = self.define.iter().cloned().collect();
        let script = Script::parse(&text, &given)
            .map_err(|error| Failure::new(format!("{name}, {error}")))?;
        let window = Duration::try_from_secs_f64(self.seconds)
            .ok()
            .filter(|window| !window.is_zero())
            .ok_or_else(|| Failure::new("--seconds must be above 0"))?;
        let mut load = Load::new(script, self.clients, window);
        load.threads = self.threads;
        load.seed = self.seed;
        load.protocol = match self.protocol {
            ProtocolName::Simple => Protocol::Simple,
            ProtocolName::Extended => Protocol::Extended,
            ProtocolName::Prepared => Protocol::Prepared,
        };
        if let Some(rounds) = self.rounds {
            load.length = Length::Rounds(rounds);
        }
        load.pace = self.pace()?;
        Ok(load)
    }

    fn pace(&self) -> Result<Pace, Failure> {
        match self.rate {
            Some(rate) => Pace::open(rate).map_err(|why| Failure::new(format!("--rate: {why}"))),
            None => Ok(Pace::Closed {
                think: Duration::from_millis(self.think_ms.unwrap_or(0)),
            }),
        }
    }

    fn words(&self, measured: &Measured) -> Result<String, Failure> {
        match self.format {
            Form::Text => Ok(text(measured)),
            Form::Json => {
                let document = json!({
                    "schema": "pgclinic.lab-load/1",
                    "tool": {"name": "pgclinic", "version": env!("CARGO_PKG_VERSION")},
                    "load": measured,
                });
                Ok(format!("{document:#}\n"))
            }
        }
    }
}

fn text(measured: &Measured) -> String {
    let mut text = format!(
        "{:.1} rounds a second: {} rounds in {:.1} s by {} clients ({}, {}, {} threads), connected in {:.2} s\n",
        measured.tps,
        measured.rounds,
        measured.window_s,
        measured.clients,
        measured.driver,
        measured.protocol.name(),
        measured.threads,
        measured.connect_s
    );
    let latency = |what: &str, latency: &pgclinic_lab::load::Latency| {
        let mut line = format!("{what}: mean {:.3}", latency.mean_ms);
        let quantiles = [
            ("p50", latency.p50_ms),
            ("p90", latency.p90_ms),
            ("p99", latency.p99_ms),
            ("p99.9", latency.p999_ms),
            ("max", latency.max_ms),
        ];
        for (name, value) in quantiles {
            if let Some(value) = value {
                let _ = write!(line, ", {name} {value:.3}");
            }
        }
        line + " ms\n"
    };
    text += &latency("latency", &measured.latency);
    if let Some(lag) = &measured.lag {
        text += &latency("began late by", lag);
    }
    let rounds = (measured.rounds + measured.failed) as f64;
    if let Some(cpu_s) = measured.generator_cpu_s
        && rounds > 0.0
    {
        let _ = writeln!(
            text,
            "generator: {cpu_s:.2} s of processor time, {:.1} µs a round",
            cpu_s * 1e6 / rounds
        );
    }
    let counts = [
        (measured.failed, "rounds failed"),
        (measured.ended_late, "rounds ended after the window"),
        (measured.overdue, "rounds fell due and never began"),
        (measured.abandoned, "rounds were cancelled"),
        (
            u64::from(measured.lost_clients),
            "clients lost their connection",
        ),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(text, "{count} {what}");
    }
    if !measured.errors.is_empty() {
        let _ = writeln!(text, "errors: {}", measured.trouble());
    }
    text
}

fn variable(text: &str) -> Result<(String, i64), String> {
    let wrong = || format!("{text:?} sets no variable to a whole number; write scale=10");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    let value = value.parse().map_err(|_| wrong())?;
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_whole_numbers() {
        assert_eq!(variable("scale=10"), Ok(("scale".to_owned(), 10)));
        assert!(variable("scale").is_err() && variable("scale=big").is_err());
    }
}
