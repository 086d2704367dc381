//! What does a connection cost?
//!
//! A backend's own memory: its copy of what the postmaster wrote, caches of catalogs, the memory
//! that queries left behind in the allocator, and page tables, which resident memory does not even
//! count. With huge pages a page table entry covers 2 MB of shared buffers instead of 4 kB.

mod running;

use pgclinic_servers::Session;

use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric, Point};
use crate::cost::Cost;
use crate::decision::{CardTone, Comparison, along_an_axis, on_metrics};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::need::Need;
use crate::samplers::{Memory, memory_of};

/// Small tables, so that a session can fill its caches of catalogs.
const TABLES: u32 = 300;

/// What a server of the usual size asks for, with some room, in pages of 2 MB.
const HUGE_PAGES: u64 = 80;

/// The arm whose sessions have read all shared buffers.
const READ_ALL: &str = "all-buffers";

/// The experiment that counts the private memory of many backends.
pub struct ConnectionMemory;

impl Experiment for ConnectionMemory {
    fn name(&self) -> &str {
        "connection-memory"
    }

    fn question(&self) -> &str {
        "What does a connection cost?"
    }

    fn explain(&self) -> &str {
        "So many sessions are opened, each does what the arm says, and then all are idle while the kernel is asked for the \
         memory of every backend: private memory (what would be free if it ended), proportional memory (shared pages \
         divided among those who map them) and page tables. Resident memory counts shared buffers once for each backend \
         and is only shown.\n\n\
         What a session takes while it works is more than what it keeps: each sort may take work_mem, a hash \
         hash_mem_multiplier times as much (2 from 15 on), every node of a plan its own, and every parallel worker again all \
         of it. The arms running-… execute such a plan in one session after the other and read its memory, and that of \
         its workers, from the kernel all the while; the peak counts, in bytes and in times of work_mem.\n\n\
         Idle means connected and nothing else. A sort leaves behind what the allocator did not give back. Reading a table \
         as large as the shared buffers fills the page tables; huge pages make them small, where the machine has some \
         reserved (vm.nr_hugepages), and are tried for that arm only."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let sort = |name: &str, work_mem: &str| {
            Arm::new(
                name,
                &format!("idle after a sort with work_mem = {work_mem}"),
            )
            .with_parameter("does", "sort")
            .with_parameter("work_mem", work_mem)
        };
        let mut arms = vec![
            Arm::new("idle", "idle since it connected"),
            sort("sort-16mb", "16MB"),
            Arm::new("many-tables", "idle after examining 300 tables")
                .with_parameter("does", "tables"),
            Arm::new(READ_ALL, "idle after reading all shared buffers")
                .with_parameter("does", "buffers"),
        ];
        if scale != Scale::Smallest {
            arms.push(sort("sort-1mb", "1MB"));
            arms.push(sort("sort-64mb", "64MB"));
        }
        arms.extend(running::arms(scale));
        let connections = connections(scale);
        let huge_pages = scale.pick(vec!["off"], vec!["off", "on"], vec!["off", "on"]);
        Matrix {
            arms,
            axes: vec![
                Axis::new("connections", "connections", &connections),
                Axis::new("huge-pages", "", &huge_pages).sets("huge_pages"),
            ],
            blocks: scale.pick(1, 2, 3),
        }
    }

    /// What huge pages save is page tables, and only who has read all shared buffers has large
    /// ones. What a plan takes does not depend on how many sessions idle meanwhile.
    fn asks(&self, arm: &Arm, point: &Point, scale: Scale) -> bool {
        let is_on = point.get("huge-pages").is_some_and(|value| value == "on");
        let few = connections(scale).first().map(u32::to_string);
        let is_few = point.get("connections") == few.as_ref();
        (!is_on || arm.name == READ_ALL) && (!running::is_named_running(&arm.name) || is_few)
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::exact(
                "private_bytes",
                "private memory of a connection",
                "bytes",
                Better::Lower,
            ),
            Metric::exact(
                "proportional_bytes",
                "proportional memory of a connection",
                "bytes",
                Better::Lower,
            ),
            Metric::exact(
                "page_table_bytes",
                "page tables of a connection",
                "bytes",
                Better::Lower,
            ),
            Metric::exact(
                "resident_bytes",
                "resident memory of a connection, shared buffers included",
                "bytes",
                Better::Lower,
            ),
            Metric::exact(
                "peak_private_bytes",
                "most private memory of a connection while it executes, its workers included",
                "bytes",
                Better::Lower,
            ),
            Metric::exact(
                "times_work_mem",
                "what it took while it executed, in times of work_mem",
                "",
                Better::Lower,
            ),
            Metric::timing("connect_ms", "time to connect", "ms", Better::Lower),
        ]
    }

    fn needs(&self, cell: &Cell, _arm: &Arm) -> Vec<Need> {
        let free = free_huge_pages();
        if cell.at("huge-pages") == "on" && free < HUGE_PAGES {
            vec![Need::Missing(format!(
                "a server with 128 MB of shared buffers takes {HUGE_PAGES} huge pages, and this machine has {free} free (vm.nr_hugepages)"
            ))]
        } else {
            Vec::new()
        }
    }

    fn cost(&self, cell: &Cell, scale: Scale) -> Cost {
        let connections: u32 = cell.number_at("connections").unwrap_or(1);
        let each = u64::from(connections) * (scale.pick(8, 24, 24) << 20);
        Cost::seconds(3.0 + f64::from(connections) * 0.1)
            .with_data(scale.pick(40, 160, 160) << 20)
            .with_connections(connections)
            .with_memory((256 << 20) + each)
    }

    fn base(&self, _cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        Base::shared("tables")
    }

    fn fill(&self, _base: &str, scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        let megabytes = scale.pick(24, 128, 128);
        let rows = megabytes * 1024;
        session
            .execute(&format!(
                "CREATE TABLE large (id integer, filler char(1000) NOT NULL); \
                 INSERT INTO large SELECT i, '' FROM generate_series(1, {rows}) i; CREATE INDEX ON large (id); \
                 DO $$BEGIN FOR i IN 1..{TABLES} LOOP \
                 EXECUTE format('CREATE TABLE small_%s (id integer PRIMARY KEY, name text, seen timestamptz)', i); \
                 END LOOP; END$$"
            ))
            .map_err(Error::sql("filling the tables"))?;
        session
            .execute("VACUUM (ANALYZE) large")
            .map_err(Error::sql("cleaning the table"))
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        let megabytes = bench.scale().pick("32MB", "128MB", "128MB");
        bench.set("shared_buffers", megabytes);
        let connections = bench.cell().number_at("connections").unwrap_or(1);
        let work = Work::of(bench.arm());
        let plan = running::RunningPlan::of(bench.arm());
        bench.server()?;
        bench.watch(&["memory"])?;
        crate::load::make_room_for(connections).map_err(Error::Empty)?;
        let (mut sessions, mut pids, mut connecting) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..connections {
            bench.check_interrupted()?;
            let start = std::time::Instant::now();
            let mut session =
                bench.connect_to("postgres", &[("max_parallel_workers_per_gather", "0")])?;
            connecting += start.elapsed().as_secs_f64();
            pids.push(work.done_by(&mut session)?);
            sessions.push(session);
        }
        let costs: Vec<Costs> = pids
            .iter()
            .map(|pid| Costs::of(*pid))
            .collect::<Result<_>>()?;
        let peaks = match &plan {
            Some(plan) => plan.peaks(bench, &mut sessions)?,
            None => running::Peaks::idle(&costs_private(&costs)),
        };
        let sampled = bench.watched();
        drop(sessions);
        Ok(mean(&costs)
            .with("peak_private_bytes", peaks.bytes)
            .with("times_work_mem", peaks.times_work_mem)
            .beside(&sampled)
            .with("connect_ms", connecting * 1e3 / f64::from(connections)))
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        let metrics = [
            "private_bytes",
            "proportional_bytes",
            "page_table_bytes",
            "peak_private_bytes",
        ];
        let mut cards = on_metrics(matrix, self, &metrics);
        // Reading shared buffers fills page tables, executing has a peak, everything else keeps
        // private memory.
        cards.retain(|card| {
            let tells = match card.candidate.arm.as_str() {
                READ_ALL => &["page_table_bytes"][..],
                arm if running::is_named_running(arm) => &["peak_private_bytes"],
                _ => &["private_bytes", "proportional_bytes"],
            };
            tells.contains(&card.metric.as_str())
        });
        for card in &mut cards {
            let arm = matrix
                .arms
                .iter()
                .find(|arm| arm.name == card.candidate.arm);
            let words = arm.map_or("", |arm| arm.words.as_str());
            card.action = format!("a session kept {words}");
            card.voice = CardTone::Price;
            if running::is_named_running(&card.candidate.arm) {
                card.action = format!("a session {words}");
                let few = matrix.axes.iter().find(|axis| axis.name == "connections");
                let few = few.and_then(|axis| axis.values.first());
                card.at(&[("connections", few.map_or("", String::as_str))], matrix);
            }
        }
        cards.extend(huge_pages(matrix));
        cards
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.parameter("does") {
            running::DOES => format!("multiply work_mem = {} by the nodes of the plan, by hash_mem_multiplier for a hash, and by one more than its workers; \
                     SET LOCAL work_mem for the few queries that need more", arm.parameter("work_mem")),
            "sort" => format!("plan for sessions that have sorted with work_mem = {}", arm.parameter("work_mem")),
            "" => "keep idle connections; a pool saves the rest".to_owned(),
            _ => "plan for sessions that have seen much, or end them now and then (a pool's lifetime of a connection)".to_owned(),
        }
    }
}

/// What huge pages make of the page tables, where the machine has some.
fn huge_pages(matrix: &Matrix) -> Option<Comparison> {
    let [baseline, candidate] = along_an_axis(matrix, READ_ALL, "huge-pages", ["off", "on"])?;
    let connections = candidate.point.get("connections")?;
    Some(Comparison {
        metric: "page_table_bytes".to_owned(),
        action: "turn huge pages on".to_owned(),
        voice: CardTone::Choice,
        subject: "page tables of a connection that has read all shared buffers".to_owned(),
        conditions: format!(" (connections {connections})"),
        apply: vec![
            "postgres -D PGDATA -C shared_memory_size_in_huge_pages   # how many, of a stopped server, from 15 on".to_owned(),
            "sysctl -w vm.nr_hugepages=THAT-MANY".to_owned(),
            "ALTER SYSTEM SET huge_pages = on;  -- takes a restart".to_owned(),
        ],
        baseline,
        candidate,
    })
}

/// What each session does before it idles.
struct Work(Vec<String>);

impl Work {
    fn of(arm: &Arm) -> Self {
        let sort = || {
            let work_mem = arm.parameter("work_mem");
            vec![
                format!("SET work_mem = '{work_mem}'"),
                "SELECT count(*) FROM (SELECT md5(i::text) m FROM generate_series(1, \
                 pg_size_bytes(current_setting('work_mem')) / 100) i ORDER BY 1) s"
                    .to_owned(),
            ]
        };
        let tables =
            || (1..=TABLES).map(|i| format!("SELECT count(*) FROM small_{i} WHERE id = 1"));
        Self(match arm.parameter("does") {
            "sort" => sort(),
            "tables" => tables().collect(),
            "buffers" => vec![
                // A sequential read of a large table keeps to a ring of 256 kB; one by an index
                // does not.
                "SET enable_seqscan = off; SET enable_bitmapscan = off".to_owned(),
                "SELECT count(filler) FROM large WHERE id > 0".to_owned(),
            ],
            _ => Vec::new(),
        })
    }

    /// Does it, and gives the number of the backend's process.
    fn done_by(&self, session: &mut Session) -> Result<u32> {
        for sql in &self.0 {
            session.execute(sql).map_err(Error::sql(sql.clone()))?;
        }
        let pid = session
            .query_value("SELECT pg_backend_pid()")
            .map_err(Error::sql("asking for the backend"))?;
        pid.and_then(|pid| pid.parse().ok())
            .ok_or_else(|| Error::Empty("a backend has no number".to_owned()))
    }
}

/// How many sessions are opened.
fn connections(scale: Scale) -> Vec<u32> {
    scale.pick(vec![4], vec![10, 50, 100], vec![10, 100, 500, 1_000])
}

fn costs_private(costs: &[Costs]) -> Vec<u64> {
    costs.iter().map(|cost| cost.memory.private_bytes).collect()
}

struct Costs {
    memory: Memory,
    page_table_bytes: u64,
}

impl Costs {
    fn of(pid: u32) -> Result<Self> {
        let read = |file: &str| Error::io("read", format!("/proc/{pid}/{file}"));
        let status =
            std::fs::read_to_string(format!("/proc/{pid}/status")).map_err(read("status"))?;
        Ok(Self {
            memory: memory_of(pid).map_err(read("smaps_rollup"))?,
            page_table_bytes: page_tables(&status).unwrap_or(0),
        })
    }
}

/// `VmPTE:      96 kB` in bytes.
fn page_tables(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmPTE:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn mean(costs: &[Costs]) -> Measured {
    let mean = |of: fn(&Costs) -> u64| {
        costs.iter().map(of).sum::<u64>() as f64 / costs.len().max(1) as f64
    };
    Measured::default()
        .with("private_bytes", mean(|costs| costs.memory.private_bytes))
        .with(
            "proportional_bytes",
            mean(|costs| costs.memory.proportional_bytes),
        )
        .with("resident_bytes", mean(|costs| costs.memory.resident_bytes))
        .with("page_table_bytes", mean(|costs| costs.page_table_bytes))
}

fn free_huge_pages() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let free = text
        .lines()
        .find_map(|line| line.strip_prefix("HugePages_Free:"));
    free.and_then(|free| free.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_tables_are_in_bytes() {
        assert_eq!(
            page_tables("VmRSS:\t 12 kB\nVmPTE:\t      96 kB\n"),
            Some(96 * 1024)
        );
        assert_eq!(page_tables("Name:\tx\n"), None);
    }
}
