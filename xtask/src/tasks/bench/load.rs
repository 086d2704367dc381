//! `pgclinic lab load` beside `pgbench`, on one server, in turns: how much of the rate is the generator's own doing.

use std::path::{Path, PathBuf};
use std::process::Command;

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
    let seconds = args.number("--seconds", 2)?.max(1);
    let runs = args.number("--runs", 3)?.max(1);
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
            "Script `{name}`, protocol {protocol}, {runs} runs of {seconds} s of each in turns.\n"
        );
        println!(
            "| clients | pgbench tps | pgclinic tps | pgclinic / pgbench | least and most of the pairs |"
        );
        println!("|--:|--:|--:|--:|--:|");
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
        let pairs: Vec<f64> = ours
            .iter()
            .zip(theirs)
            .map(|(ours, theirs)| ours / theirs)
            .collect();
        let sorted = |rates: &[f64]| {
            let mut rates = rates.to_vec();
            rates.sort_by(f64::total_cmp);
            rates
        };
        let pairs = sorted(&pairs);
        let (least, most) = (
            pairs.first().unwrap_or(&f64::NAN),
            pairs.last().unwrap_or(&f64::NAN),
        );
        format!(
            "| {} | {:.0} | {:.0} | {:.3} | {least:.3} to {most:.3} |",
            self.clients,
            median(&sorted(theirs)),
            median(&sorted(ours)),
            median(&pairs)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_two_runs_of_the_same_moment() {
        let row = Row {
            clients: 8,
            rates: [vec![100.0, 200.0, 50.0], vec![99.0, 210.0, 50.0]],
        };
        assert_eq!(row.line(), "| 8 | 100 | 99 | 1.000 | 0.990 to 1.050 |");
    }
}
