//! What a session takes while it executes: its memory and that of its workers, read from the kernel
//! until the statement ends.

use std::time::Duration;

use pgclinic_servers::Session;

use crate::bench::Bench;
use crate::cell::Arm;
use crate::error::{Error, Result};
use crate::experiment::Scale;
use crate::samplers::memory_of;

/// The parameter `does` of these arms.
pub(super) const DOES: &str = "executes";

/// Their names begin with this.
const PREFIX: &str = "running-";

/// So many sessions execute the plan, one after the other.
const TURNS: usize = 3;

/// Between two looks at the memory.
const STEP: Duration = Duration::from_millis(5);

/// One plan that is executed: its statements, as many sorts or hashes as its name says.
struct Plan {
    name: &'static str,
    words: &'static str,
    /// Settings that make the planner choose it.
    settings: &'static str,
    sql: &'static str,
}

const PLANS: [Plan; 4] = [
    Plan {
        name: "sort",
        words: "while it sorts",
        settings: "SET max_parallel_workers_per_gather = 0",
        sql: "SELECT count(filler) FROM (SELECT filler FROM large ORDER BY md5(id::text) OFFSET 0) sorted",
    },
    Plan {
        name: "3-sorts",
        words: "while it sorts in three nodes of one plan",
        settings: "SET max_parallel_workers_per_gather = 0; SET enable_hashjoin = off; SET enable_nestloop = off",
        sql: "SELECT count(a.filler || b.filler || c.filler) FROM large a JOIN large b ON md5(a.id::text) = md5(b.id::text) \
              JOIN large c ON md5(b.id::text) = md5(c.id::text)",
    },
    Plan {
        name: "hash",
        words: "while it builds a hash, which may take hash_mem_multiplier times work_mem",
        settings: "SET max_parallel_workers_per_gather = 0; SET enable_mergejoin = off; SET enable_nestloop = off",
        sql: "SELECT count(a.filler || b.filler) FROM large a JOIN large b ON md5(a.id::text) = md5(b.id::text)",
    },
    Plan {
        name: "parallel-sort",
        words: "while it and two workers sort",
        settings: "SET max_parallel_workers_per_gather = 2; SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; \
                   SET min_parallel_table_scan_size = 0",
        sql: "SELECT count(filler) FROM (SELECT filler FROM large ORDER BY md5(id::text) OFFSET 0) sorted",
    },
];

/// The arms of all plans.
pub(super) fn arms(scale: Scale) -> Vec<Arm> {
    let work_mem = scale.pick("4MB", "16MB", "16MB");
    let arm = |plan: &Plan| {
        let words = format!("{}, work_mem = {work_mem}", plan.words);
        Arm::new(&format!("{PREFIX}{}", plan.name), &words)
            .with_parameter("does", DOES)
            .with_parameter("work_mem", work_mem)
    };
    PLANS.iter().map(arm).collect()
}

/// Whether an arm of this name executes while it is looked at.
pub(super) fn is_named_running(arm: &str) -> bool {
    arm.starts_with(PREFIX)
}

/// What was taken at most, on average over the sessions.
pub(super) struct Peaks {
    pub(super) bytes: f64,
    /// Beyond what the sessions had before; no number where nothing was executed.
    pub(super) times_work_mem: f64,
}

impl Peaks {
    /// Of sessions that only keep what they have.
    pub(super) fn idle(bytes: &[u64]) -> Self {
        Self {
            bytes: mean(bytes),
            times_work_mem: f64::NAN,
        }
    }
}

fn mean(bytes: &[u64]) -> f64 {
    bytes.iter().sum::<u64>() as f64 / bytes.len().max(1) as f64
}

/// A plan with its work_mem.
pub(super) struct RunningPlan {
    plan: &'static Plan,
    work_mem: String,
}

impl RunningPlan {
    /// That of an arm; `None` of one that idles.
    pub(super) fn of(arm: &Arm) -> Option<Self> {
        let name = arm.name.strip_prefix(PREFIX)?;
        let plan = PLANS.iter().find(|plan| plan.name == name)?;
        let work_mem = arm.parameter("work_mem").to_owned();
        Some(Self { plan, work_mem })
    }

    /// Executes it in one session after the other.
    pub(super) fn peaks(&self, bench: &mut Bench<'_>, sessions: &mut [Session]) -> Result<Peaks> {
        let mut watcher = bench.connect()?;
        let work_mem = format!("SELECT pg_size_bytes('{}')", self.work_mem);
        let work_mem = crate::asking::number(&mut watcher, &work_mem)?;
        let (mut before, mut peaks) = (Vec::new(), Vec::new());
        for session in sessions.iter_mut().take(TURNS) {
            bench.check_interrupted()?;
            let pid = crate::asking::number(session, "SELECT pg_backend_pid()")?;
            let pid = u32::try_from(pgclinic_model::whole(pid)).unwrap_or_default();
            let settings = format!("SET work_mem = '{}'; {}", self.work_mem, self.plan.settings);
            session
                .execute(&settings)
                .map_err(Error::sql("choosing the plan"))?;
            before.push(private_bytes(pid));
            peaks.push(peak(session, self.plan.sql, pid, &mut watcher)?);
        }
        let bytes = mean(&peaks);
        Ok(Peaks {
            bytes,
            times_work_mem: (bytes - mean(&before)).max(0.0) / work_mem.max(1.0),
        })
    }
}

/// Executes a statement in a thread of its own and gives the most that the backend and its workers
/// had at one time.
fn peak(session: &mut Session, sql: &str, pid: u32, watcher: &mut Session) -> Result<u64> {
    let workers = format!("SELECT pid FROM pg_stat_activity WHERE leader_pid = {pid}");
    std::thread::scope(|scope| {
        let running = scope.spawn(|| session.execute(sql));
        let mut most = 0;
        while !running.is_finished() {
            let rows = watcher
                .query(&workers)
                .map_err(Error::sql("asking for workers"))?;
            let pids = rows.into_iter().flatten().flatten();
            let pids = pids.filter_map(|pid| pid.parse().ok());
            let all: u64 = pids.map(private_bytes).sum();
            most = most.max(all + private_bytes(pid));
            std::thread::sleep(STEP);
        }
        let ended = running
            .join()
            .map_err(|_| Error::Empty("the session's thread ended early".to_owned()))?;
        ended.map_err(Error::sql("executing the plan"))?;
        Ok(most)
    })
}

/// Nothing of a process that is gone.
fn private_bytes(pid: u32) -> u64 {
    memory_of(pid).map_or(0, |memory| memory.private_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_arm_finds_its_plan() {
        for arm in arms(Scale::Quick) {
            assert!(is_named_running(&arm.name));
            assert!(RunningPlan::of(&arm).is_some(), "{}", arm.name);
        }
        assert!(RunningPlan::of(&Arm::new("idle", "")).is_none());
        assert!(Peaks::idle(&[1, 3]).times_work_mem.is_nan());
    }
}
