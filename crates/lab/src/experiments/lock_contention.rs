//! Does the new minor scale past 128 clients?
//!
//! Every round takes a transaction number and ends: all that backends do is queue up for the shared list of running
//! transactions (`ProcArrayLock`, `XidGenLock`). Up to 15.5 a waiter that left the queue of a lightweight lock searched all
//! of it, which grows with the square of the waiters; since 15.6 it knows whether it still stands in the queue
//! (`LWLockDequeueSelf` in `src/backend/storage/lmgr/lwlock.c`).

use std::time::Duration;

use crate::bench::Bench;
use crate::bench_load::script;
use crate::by_url::ByUrl;
use crate::cell::{Arm, Axis, Better, Cell, Metric};
use crate::cost::Cost;
use crate::decision::{Comparison, with_the_first_arm};
use crate::error::Result;
use crate::experiment::{Experiment, Matrix, Measured, Scale};
use crate::load::Load;

/// Published as the number of clients up to which the releases are equal.
const EQUAL_UP_TO: &str = "128";

/// See the module.
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
         the lock stays short, so that the two releases may well be equal here: that is an answer for this machine."
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

    fn advice(&self, arm: &Arm) -> String {
        match arm.version.as_deref() {
            Some(version) => format!("run PostgreSQL {version}"),
            None => "run this release".to_owned(),
        }
    }
}

/// The next transaction number, without using one up.
fn next_xid(bench: &mut Bench<'_>) -> Result<f64> {
    let mut session = bench.connect()?;
    let next = session
        .query_value("SELECT pg_snapshot_xmax(pg_current_snapshot())")
        .map_err(crate::Error::sql("asking for the next transaction number"))?;
    Ok(next.and_then(|next| next.parse().ok()).unwrap_or(0.0))
}
