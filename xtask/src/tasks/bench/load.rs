//! `pgclinic lab load` beside `pgbench`, on one server, in turns: how much of the rate is the
//! generator's own doing.

use std::path::{Path, PathBuf};
use std::process::Command;

use pgclinic_statistics::{Estimate, equivalence, paired};

use super::check::{build, tools};
use super::table::{machine, median};
use crate::args::Args;
use crate::shell::{self, at};
use crate::task::Outcome;

const FOLDER: &str = "/var/cache/pgclinic/bench/load";

/// Durability is not what is compared, and would only add the noise of the disk.
const SETTINGS: &[&str] = &["fsync=off", "max_connections=200", "shared_buffers=256MB"];

const CLIENTS: &[u32] = &[1, 2, 4, 8, 16, 32, 64];

/// The scripts, from the one that asks most of the generator to one that asks most of the server.
const SCRIPTS: &[(&str, &str)] = &[
    ("nothing", "SELECT 1;\n"),
    (
        "look-up",
        "\\set aid random(1, 100000)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n",
    ),
];

/// Each row errs this often, for itself.
const ALPHA: f64 = 0.05;

/// Rates this close are the same: the aim of the load generator.
const MARGIN: f64 = 0.05;

const DRIVERS: [&str; 2] = ["pgbench", "built-in"];

struct Bench<'a> {
    pgclinic: &'a Path,
    socket: &'a Path,
    seconds: u64,
    runs: u64,
    protocol: &'a str,
}

/// One line of the table.
struct Row {
    clients: u32,
    /// Rates by driver, ascending.
    rates: [Vec<f64>; 2],
}

pub(super) fn run(words: &[String]) -> Outcome {
    let mut args = Args::new(words);
    let seconds = args.number("--seconds", 3)?.max(1);
    // Single pairs differ by a tenth; so many bring the interval of their centre below the margin.
    let runs = args.number("--runs", 20)?.max(1);
    let protocol = args
        .value("--protocol")?
        .unwrap_or_else(|| "prepared".into());
    let given = args.value("--program")?.map(PathBuf::from);
    args.finish()?;

    let tools = tools()?;
    let pgclinic = match given {
        Some(program) => program,
        None => build()?,
    };
    let folder = Path::new(FOLDER);
    if folder.exists() {
        std::fs::remove_dir_all(folder).map_err(at(folder))?;
    }
    tools.new_cluster(folder)?;
    let server = tools.start(folder, SETTINGS)?;
    let mut fill = server.client("pgbench");
    shell::capture(fill.args(["-i", "-q", "-s", "1", "postgres"]))?;
    let bench = Bench {
        pgclinic: &pgclinic,
        socket: server.folder(),
        seconds,
        runs,
        protocol: &protocol,
    };
    println!("{}\n", machine());
    for (name, script) in SCRIPTS {
        bench.table(name, script)?;
    }
    server.stop()?;
    std::fs::remove_dir_all(folder).map_err(at(folder))
}

impl Bench<'_> {
    fn table(&self, name: &str, script: &str) -> Outcome {
        let (runs, seconds, protocol) = (self.runs, self.seconds, self.protocol);
        println!(
            "Script `{name}`, protocol {protocol}, {runs} runs of {seconds} s of each in turns; the interval errs in {:.0} % of \
             cases, `the same` is within {:.0} %.\n",
            ALPHA * 100.0,
            MARGIN * 100.0
        );
        println!(
            "| clients | pgbench tps | pgclinic tps | pgclinic / pgbench | its interval | verdict |"
        );
        println!("|--:|--:|--:|--:|--:|:--|");
        let file = std::env::temp_dir().join(format!("pgclinic-bench-{}.sql", std::process::id()));
        std::fs::write(&file, script).map_err(at(&file))?;
        for clients in CLIENTS {
            println!("{}", self.row(*clients, &file)?.line());
        }
        println!();
        std::fs::remove_file(&file).map_err(at(&file))
    }

    /// A B, B A, A B …: what drifts hits both alike.
    fn row(&self, clients: u32, script: &Path) -> Result<Row, String> {
        let mut rates = [Vec::new(), Vec::new()];
        for run in 0..self.runs {
            let order = if run % 2 == 0 { [0, 1] } else { [1, 0] };
            for driver in order {
                rates[driver].push(self.rate(DRIVERS[driver], clients, script)?);
            }
        }
        Ok(Row { clients, rates })
    }

    fn rate(&self, driver: &str, clients: u32, script: &Path) -> Result<f64, String> {
        let mut command = Command::new(self.pgclinic);
        let url = format!(
            "postgres:///postgres?user=postgres&host={}",
            self.socket.display()
        );
        command
            .args(["lab", "load", "--format", "json", "--driver", driver])
            .args(["--url", &url, "--protocol", self.protocol])
            .args(["--clients", &clients.to_string()])
            .args(["--seconds", &self.seconds.to_string()])
            .arg(script);
        let text = shell::capture(&mut command)?;
        let json: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| format!("{error} in {text}"))?;
        json["load"]["tps"]
            .as_f64()
            .ok_or_else(|| format!("no rate in {text}"))
    }
}

impl Row {
    fn line(&self) -> String {
        let [theirs, ours] = &self.rates;
        let differences = self.differences();
        let interval = |alpha: f64| paired::interval(&differences, None, alpha);
        let (ratio, ends, word) = match (interval(ALPHA), interval(2.0 * ALPHA)) {
            (Some(found), Some(wider)) => {
                let times = found.map(f64::exp);
                let ends = format!("{:.3} to {:.3}", times.interval.low, times.interval.high);
                (format!("{:.3}", times.value), ends, verdict(found, wider))
            }
            _ => ("?".into(), "?".into(), "too few pairs"),
        };
        format!(
            "| {} | {:.0} | {:.0} | {ratio} | {ends} | {word} |",
            self.clients,
            median(&sorted(theirs)),
            median(&sorted(ours)),
        )
    }

    /// Logarithms of ours to theirs, pair by pair.
    fn differences(&self) -> Vec<f64> {
        let numbered = |rates: &[f64]| -> Vec<(u32, f64)> { (0..).zip(rates.to_vec()).collect() };
        let [theirs, ours] = &self.rates;
        paired::log_ratios(&numbered(theirs), &numbered(ours))
            .map_or_else(Vec::new, |pairs| pairs.differences)
    }
}

/// `wider` errs twice as often as `found`.
fn verdict(found: Estimate, wider: Estimate) -> &'static str {
    if equivalence::holds(wider.interval, MARGIN) {
        "the same"
    } else if found.interval.low > 0.0 {
        "pgclinic faster"
    } else if found.interval.high < 0.0 {
        "pgbench faster"
    } else {
        "undecided"
    }
}

fn sorted(rates: &[f64]) -> Vec<f64> {
    let mut rates = rates.to_vec();
    rates.sort_by(f64::total_cmp);
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs whose second is `ratio` times the first, but for a wobble of 1 % to either side.
    fn row(ratio: f64, pairs: u32) -> Row {
        let wobble = |pair: u32| if pair.is_multiple_of(2) { 1.01 } else { 0.99 };
        let theirs: Vec<f64> = (1..=pairs).map(|pair| 100.0 * f64::from(pair)).collect();
        let numbered = (0..).zip(&theirs);
        let ours = numbered
            .map(|(pair, rate)| rate * ratio * wobble(pair))
            .collect();
        Row {
            clients: 8,
            rates: [theirs, ours],
        }
    }

    #[test]
    fn a_pair_is_two_runs_of_the_same_moment_and_many_pairs_decide() {
        let line = row(1.0, 9).line();
        assert_eq!(
            line,
            "| 8 | 500 | 505 | 1.000 | 0.990 to 1.010 | the same |"
        );
        assert!(row(0.8, 10).line().ends_with("| pgbench faster |"));
        assert!(row(1.2, 10).line().ends_with("| pgclinic faster |"));
    }

    #[test]
    fn few_pairs_stay_undecided() {
        assert!(row(0.96, 2).line().ends_with("| undecided |"));
        assert_eq!(
            row(1.0, 1).line(),
            "| 8 | 100 | 101 | ? | ? | too few pairs |"
        );
    }
}
