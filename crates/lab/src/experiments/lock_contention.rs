//! Does the new minor scale past 128 clients?
//!
//! Every round takes a transaction number and ends: all that backends do is queue up for the shared
//! list of running transactions (`ProcArrayLock`, `XidGenLock`). Up to 15.5 a waiter that left the
//! queue of a lightweight lock searched all of it, which grows with the square of the waiters;
//! since 15.6 it knows whether it still stands in the queue (`LWLockDequeueSelf` in
//! `src/backend/storage/lmgr/lwlock.c`).

use std::collections::BTreeMap;
use std::time::Duration;

use crate::bench::Bench;
use crate::bench_load::script;
use crate::cell::{Arm, Axis, Better, Cell, Metric, RunResult};
use crate::cost::Cost;
use crate::decision::words::figure;
use crate::decision::{Comparison, with_the_first_arm};
use crate::error::Result;
use crate::experiment::{Experiment, Matrix, Measured, Scale};
use crate::external_server::ByUrl;
use crate::load::Load;

/// Active sessions that wait for nothing, as the sampler calls them.
const RUNNING: &str = "running";

/// Published as the number of clients up to which the releases are equal.
const EQUAL_UP_TO: &str = "128";

/// The experiment that lets many clients take transaction numbers at once.
pub struct LockContention;

impl Experiment for LockContention {
    fn name(&self) -> &str {
        "lock-contention"
    }

    fn question(&self) -> &str {
        "Does the new minor release scale past 128 clients?"
    }

    fn explain(&self) -> &str {
        "Clients run SELECT txid_current() over prepared statements as fast as they can: a transaction number each, and \
         nothing else. The rate at rising numbers of clients shows where the locks of the server itself become the limit. \
         The clock starts when all clients are connected; where they could not be, there is no result.\n\n\
         The published figures come from 20 cores. On a few cores the clients and the server share them and the queue for \
         the lock stays short, so that the two releases may well be equal here: that is an answer for this machine. What the \
         sessions waited for meanwhile is looked at ten times a second and told below the decision."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let published = [
            1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
        ];
        let clients = scale.pick(vec![1, 8], vec![1, 16, 128, 512, 1024], published.to_vec());
        Matrix {
            arms: vec![
                Arm::new("15.5", "PostgreSQL 15.5, before the change").on_version("15.5"),
                Arm::new("15.6", "PostgreSQL 15.6, with the change").on_version("15.6"),
            ],
            axes: vec![Axis::new("clients", "clients", &clients)],
            blocks: scale.pick(1, 6, 3),
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::timing("tps", "transactions a second", "1/s", Better::Higher),
            Metric::timing(
                "latency_p99_ms",
                "latency of the slowest hundredth",
                "ms",
                Better::Lower,
            ),
            Metric::timing(
                "generator_cpu_s",
                "processor time of the load generator",
                "s",
                Better::Lower,
            ),
        ]
    }

    fn cost(&self, cell: &Cell, scale: Scale) -> Cost {
        let clients = cell.number_at("clients").unwrap_or(1);
        let window = scale.pick(1.0, 3.0, 5.0);
        Cost::seconds(window + 1.5 + f64::from(clients) / 200.0)
            .with_connections(clients)
            .with_memory((256 << 20) + u64::from(clients) * (4 << 20))
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        let clients = bench.cell().number_at("clients").unwrap_or(1);
        let window = Duration::from_secs(bench.scale().pick(1, 3, 5));
        let mut load = Load::new(script("SELECT txid_current();", &[]), clients, window);
        load.seed = bench.seed();
        let before = next_xid(bench)?;
        let loaded = bench.load(&load, &["wait"])?;
        let xids = next_xid(bench)? - before;
        Ok(loaded.measured().with("xids", xids))
    }

    fn by_url(&self) -> ByUrl {
        ByUrl::Never("it compares two minor releases, which it starts itself")
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        // Where the queue is longest, and where the two were published to be equal still.
        let advice = |arm: &Arm| self.advice(arm);
        let most = with_the_first_arm(matrix, "tps", "transactions", &advice);
        let mut cards = most.clone();
        for mut card in most {
            card.at(&[("clients", EQUAL_UP_TO)], matrix);
            if !cards.contains(&card) {
                cards.push(card);
            }
        }
        for card in &mut cards {
            card.action = format!(
                "run PostgreSQL {} instead of {}",
                card.candidate.arm, card.baseline.arm
            );
        }
        cards
    }

    fn remarks(&self, results: &[RunResult]) -> Vec<String> {
        let clients = |result: &RunResult| result.cell.number_at::<u32>("clients");
        let done = results.iter().filter(|result| result.is_done());
        let Some(most) = done.clone().filter_map(clients).max() else {
            return Vec::new();
        };
        let mut arms: Vec<&str> = done.clone().map(|run| run.cell.arm.as_str()).collect();
        arms.sort_unstable();
        arms.dedup();
        let at_most = |arm: &&str| -> Vec<&RunResult> {
            let fits = |run: &&RunResult| run.cell.arm == *arm && clients(run) == Some(most);
            done.clone().filter(fits).collect()
        };
        let told = |arm: &&str| waited(arm, most, &at_most(arm));
        arms.iter().filter_map(told).collect()
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.version.as_deref() {
            Some(version) => format!("run PostgreSQL {version}"),
            None => "run this release".to_owned(),
        }
    }
}

/// What most sessions of these runs waited for, on average over the runs.
fn waited(arm: &str, clients: u32, runs: &[&RunResult]) -> Option<String> {
    let mut sessions: BTreeMap<&str, f64> = BTreeMap::new();
    for (name, mean) in runs.iter().flat_map(|run| &run.metrics) {
        if let Some(event) = name.strip_prefix("wait.") {
            *sessions.entry(event).or_default() += mean / runs.len() as f64;
        }
    }
    let running = sessions.remove(RUNNING).unwrap_or(0.0);
    let most = sessions
        .iter()
        .max_by(|one, other| one.1.total_cmp(other.1));
    let clients = figure(f64::from(clients));
    let waited = match most {
        Some((event, mean)) if *mean < 0.5 => {
            format!("fewer than 1 of {clients} sessions waited for {event}")
        }
        Some((event, mean)) => format!(
            "{} of {clients} sessions waited for {event}",
            figure(mean.round())
        ),
        None if running > 0.0 => "no session was seen waiting".to_owned(),
        None => return None,
    };
    let running = figure(running.round());
    Some(format!(
        "at {clients} clients on {arm}: {waited} and {running} were running, on average over the looks"
    ))
}

/// The next transaction number, without using one up.
fn next_xid(bench: &mut Bench<'_>) -> Result<f64> {
    let mut session = bench.connect()?;
    let next = session
        .query_value("SELECT pg_snapshot_xmax(pg_current_snapshot())")
        .map_err(crate::Error::sql("asking for the next transaction number"))?;
    Ok(next.and_then(|next| next.parse().ok()).unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::Outcome;

    fn run(arm: &str, clients: &str, waits: &[(&str, f64)]) -> RunResult {
        let named = |(event, mean): &(&str, f64)| (format!("wait.{event}"), *mean);
        RunResult {
            cell: Cell {
                id: String::new(),
                arm: arm.to_owned(),
                point: [("clients".to_owned(), clients.to_owned())].into(),
                block: 1,
                repeat: 0,
                is_control: false,
            },
            outcome: Outcome::Done,
            metrics: waits.iter().map(named).collect(),
            series: Default::default(),
            environment: Default::default(),
            overlaps: Vec::new(),
            files: Vec::new(),
            started: 0,
            elapsed_s: 0.0,
        }
    }

    #[test]
    fn what_most_waited_for_is_told_where_most_clients_were() {
        let results = [
            run(
                "15.5",
                "1024",
                &[("LWLock:ProcArray", 900.0), ("running", 3.0)],
            ),
            run(
                "15.5",
                "1024",
                &[("LWLock:ProcArray", 950.0), ("LWLock:XidGen", 40.0)],
            ),
            run("15.5", "64", &[("LWLock:WALWrite", 64.0)]),
            run("15.6", "1024", &[("running", 2.0)]),
            run("15.7", "1024", &[("Client:ClientRead", 0.2)]),
        ];
        assert_eq!(
            LockContention.remarks(&results),
            [
                "at 1,024 clients on 15.5: 925 of 1,024 sessions waited for LWLock:ProcArray and 2 were running, on average over the looks",
                "at 1,024 clients on 15.6: no session was seen waiting and 2 were running, on average over the looks",
                "at 1,024 clients on 15.7: fewer than 1 of 1,024 sessions waited for Client:ClientRead and 0 were running, on average over the looks",
            ]
        );
        assert!(LockContention.remarks(&[]).is_empty());
    }
}
