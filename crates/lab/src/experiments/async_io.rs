//! Which `io_method`, and how far ahead?
//!
//! Since 18 a backend can have many reads under way: by I/O worker processes, by io_uring, or one
//! at a time as before (`src/backend/storage/aio`). How far it looks ahead is set by
//! `effective_io_concurrency`, for VACUUM and ANALYZE by `maintenance_io_concurrency`, how much one
//! request may hold by `io_combine_limit`.

use std::time::Instant;

use pgclinic_servers::Session;

use crate::asking::number;
use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric, Point};
use crate::cost::Cost;
use crate::decision::{CardTone, Comparison, along_an_axis, with_the_first_arm};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::need::Need;
use crate::samplers::cpu_seconds;
use crate::table_profile::{Parts, SEED, TableShape};

/// Samplers that tell of I/O.
const WATCHED: [&str; 4] = ["io", "aio", "disk", "wait"];

/// Arms that are read in every way; the others vary one of them and read from begin to end.
const MAIN: [&str; 4] = ["worker", "sync", "17", "io-uring"];

/// Reads whose pages do not follow each other, where looking ahead matters most: a query's and
/// maintenance's.
const SCATTERED: [&str; 2] = ["bitmap", "analyze"];

/// What a row of the table takes, and what its long column holds.
const ROW_BYTES: u64 = 1_024;
const FILLER_BYTES: u64 = 950;

/// The experiment that reads with each `io_method` and several concurrencies.
#[derive(Debug, Clone)]
pub struct AsyncIo {
    shape: Option<TableShape>,
}

/// On rows of a kilobyte.
pub static ASYNC_IO: AsyncIo = AsyncIo { shape: None };

impl Experiment for AsyncIo {
    fn name(&self) -> &str {
        "async-io"
    }

    fn question(&self) -> &str {
        "Which io_method reads a cold table fastest, and with how many workers?"
    }

    fn explain(&self) -> &str {
        "The server is restarted and its files are put out of the kernel's cache; then one session reads a table: from \
         begin to end, by a bitmap of every tenth page or so, or for VACUUM or ANALYZE. Measured are the time, the bytes that \
         the disk itself has read (the proof of cold), the processor time of the backend and of I/O workers, and, on 18, the \
         requests in flight: looks every few milliseconds at those that were handed over and are not done. A read that is over \
         within a tenth of a second leaves too few looks for that, and tells none. With --learn-from the table has the shape of \
         yours, with the columns id and place in front.\n\n\
         The axis io-concurrency sets effective_io_concurrency, which queries obey, and maintenance_io_concurrency, which \
         VACUUM and ANALYZE obey. Values other than the shipped 16 are tried where pages do not follow each other, by the \
         bitmap and by ANALYZE, at the published scale in every way; arms that change the number of workers, io_combine_limit or io_max_concurrency read from \
         begin to end.\n\n\
         A fast local disk hides what asynchronous requests buy, since each is over before the next is asked for; the gain \
         shows on disks with a long way, as in clouds. In a virtual machine the cache of the host stays out of reach: a \
         cold run may still be served from memory there."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let eighteen = |name: &str, words: &str, method: &str| {
            Arm::new(name, words)
                .on_version("18")
                .with_setting("io_method", method)
        };
        let mut arms = vec![
            eighteen("worker", "18, worker, three workers as shipped", "worker"),
            eighteen("sync", "18, sync", "sync"),
            Arm::new("17", "PostgreSQL 17").on_version("17"),
            eighteen("io-uring", "18, io_uring", "io_uring"),
        ];
        if scale != Scale::Smallest {
            arms.extend(["1", "8", "16"].map(|workers| {
                let words = format!("18, worker, io_workers = {workers}");
                eighteen(&format!("worker-{workers}"), &words, "worker")
                    .with_setting("io_workers", workers)
            }));
            for (prefix, method) in [("worker", "worker"), ("io-uring", "io_uring")] {
                let large = format!("18, {method}, requests of up to 1 MB");
                let few = format!("18, {method}, io_max_concurrency = 4");
                arms.push(
                    eighteen(&format!("{prefix}-combine-1mb"), &large, method)
                        .with_setting("io_max_combine_limit", "1MB")
                        .with_setting("io_combine_limit", "1MB"),
                );
                arms.push(
                    eighteen(&format!("{prefix}-few-handles"), &few, method)
                        .with_setting("io_max_concurrency", "4"),
                );
            }
        }
        let reads = scale.pick(
            vec!["sequential", "analyze"],
            ALL_READS.to_vec(),
            ALL_READS.to_vec(),
        );
        let ahead = scale.pick(vec![1, 16], vec![1, 16, 64], vec![0, 1, 4, 16, 64, 256]);
        Matrix {
            arms,
            axes: vec![
                Axis::new("read", "", &reads),
                Axis::new(AHEAD, "requests", &ahead).sets(EFFECTIVE),
            ],
            blocks: scale.pick(1, 3, 5),
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::timing("seconds", "time of the cold read", "s", Better::Lower),
            Metric::timing("mb_s", "read from the disk", "MB/s", Better::Higher),
            Metric::timing("in_flight", "requests in flight", "", Better::Higher),
            Metric::timing(
                "backend_cpu_s",
                "processor time of the backend",
                "s",
                Better::Lower,
            ),
            Metric::timing(
                "workers_cpu_s",
                "processor time of I/O workers",
                "s",
                Better::Lower,
            ),
            Metric::exact("pages", "pages of the table", "", Better::Lower),
        ]
    }

    fn asks(&self, arm: &Arm, point: &Point, scale: Scale) -> bool {
        let at = |axis: &str| point.get(axis).map_or("", String::as_str);
        let is_main = MAIN.contains(&arm.name.as_str());
        if at(AHEAD) == AHEAD_SHIPPED {
            is_main || at("read") == "sequential"
        } else {
            is_main && (scale == Scale::Published || SCATTERED.contains(&at("read")))
        }
    }

    fn needs(&self, _cell: &Cell, arm: &Arm) -> Vec<Need> {
        let method = arm.settings.get("io_method");
        let method = method.map(|value| Need::SettingValue {
            name: "io_method",
            value: value.clone(),
        });
        method.into_iter().collect()
    }

    fn cost(&self, _cell: &Cell, scale: Scale) -> Cost {
        Cost::seconds(scale.pick(2.0, 3.0, 60.0))
    }

    fn fill_cost(&self, _base: &str, scale: Scale) -> Cost {
        let bytes = self.rows(scale).saturating_mul(self.row_bytes());
        Cost::seconds(2.0 + bytes as f64 / 50e6).with_data(bytes)
    }

    fn base(&self, _cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        Base::shared("large")
    }

    fn fill(&self, _base: &str, scale: Scale, seed: u64, session: &mut Session) -> Result<()> {
        let (columns, rows) = self.table(self.rows(scale), seed % 1_000);
        for sql in [
            format!(
                "{SEED}; CREATE TABLE large (id bigint, place bigint, {columns}) WITH (autovacuum_enabled = off)"
            ),
            format!("INSERT INTO large {rows}"),
            "CREATE INDEX large_place ON large (place)".to_owned(),
        ] {
            session
                .execute(&sql)
                .map_err(Error::sql("filling the table"))?;
        }
        session
            .execute("VACUUM (FREEZE, ANALYZE) large")
            .map_err(Error::sql("cleaning the table"))
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        bench.set("autovacuum", "off");
        bench.set("max_parallel_workers_per_gather", "0");
        let ahead = bench.cell().at(AHEAD).to_owned();
        bench.set(MAINTENANCE, &ahead);
        let read = bench.cell().at("read").to_owned();
        let cold = bench.cold()?;
        let mut session = bench.connect()?;
        let pages = number(&mut session, PAGES)?;
        let processes = Processes::find(&mut session)?;
        // Last before the read: whoever looks on has read once when this returns.
        bench.watch(&WATCHED)?;
        let (cpu, start) = (processes.used(), Instant::now());
        for sql in statements(&read, self.long_column(), pages) {
            session.execute(&sql).map_err(Error::sql(sql.clone()))?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let used = processes.used();
        let sampled = bench.watched();
        let in_flight = sampled.metrics.get("aio.in_flight_mean").copied();
        // A bitmap reads a part only, and ANALYZE a sample: they prove cold with less.
        let share = match read.as_str() {
            "sequential" | "vacuum" => 0.9,
            _ => 0.01,
        };
        if let Some(doubt) = cold.doubt(pgclinic_model::whole(pages * 8192.0 * share)) {
            bench.overlap(doubt);
        }
        let bytes = cold
            .read_bytes()
            .map_or(pages * 8192.0, |bytes| bytes as f64);
        let mut measured = Measured::default().beside(&sampled);
        measured
            .metrics
            .extend(in_flight.map(|mean| ("in_flight".to_owned(), mean)));
        Ok(measured
            .with("seconds", seconds)
            .with("mb_s", bytes / 1e6 / seconds.max(1e-9))
            .with("backend_cpu_s", used.backend - cpu.backend)
            .with("workers_cpu_s", used.workers - cpu.workers)
            .with("pages", pages))
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        let shape = Some(shape.renamed());
        Ok(Box::new(Self { shape }))
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        let advice = |arm: &Arm| self.advice(arm);
        let mut cards = with_the_first_arm(matrix, "seconds", "a cold sequential read", &advice);
        for card in &mut cards {
            card.at(&[("read", "sequential"), (AHEAD, AHEAD_SHIPPED)], matrix);
            let arm = |name: &str| matrix.arms.iter().find(|arm| arm.name == name);
            if let Some((from, to)) = arm(&card.baseline.arm).zip(arm(&card.candidate.arm)) {
                card.action = action(from, to);
            }
        }
        cards.extend(look_further_ahead(matrix, "bitmap", EFFECTIVE));
        cards.extend(look_further_ahead(matrix, "analyze", MAINTENANCE));
        cards
    }

    fn advice(&self, arm: &Arm) -> String {
        let set = SET_BY_ARMS.iter().filter_map(|(name, shipped, when)| {
            let value = arm.settings.get(*name).filter(|value| value != shipped)?;
            Some(format!("ALTER SYSTEM SET {name} = '{value}';  -- {when}"))
        });
        let lines: Vec<String> = set.collect();
        if lines.is_empty() {
            format!("run {}", arm.words)
        } else {
            lines.join("\n")
        }
    }
}

/// What arms set, what 18 ships, and when a change is taken up.
const SET_BY_ARMS: [(&str, &str, &str); 5] = [
    ("io_method", "worker", "takes a restart"),
    ("io_workers", "3", "takes a reload"),
    ("io_max_combine_limit", "128kB", "takes a restart"),
    ("io_combine_limit", "128kB", "takes a reload"),
    ("io_max_concurrency", "64", "takes a restart"),
];

/// The axis of how far ahead is looked, its two settings, and where they are as 18 ships them.
const AHEAD: &str = "io-concurrency";
const EFFECTIVE: &str = "effective_io_concurrency";
const MAINTENANCE: &str = "maintenance_io_concurrency";
const AHEAD_SHIPPED: &str = "16";

/// What one would do to get from one arm to another.
fn action(from: &Arm, to: &Arm) -> String {
    if from.version != to.version {
        let version = |arm: &Arm| arm.version.clone().unwrap_or_default();
        return format!("run PostgreSQL {} instead of {}", version(to), from.words);
    }
    let value = |arm: &Arm, name: &str, shipped: &str| {
        let set = arm.settings.get(name);
        set.map_or_else(|| shipped.to_owned(), Clone::clone)
    };
    let changes = SET_BY_ARMS.iter().filter_map(|(name, shipped, _)| {
        let (old, new) = (value(from, name, shipped), value(to, name, shipped));
        (old != new).then(|| format!("set {name} to {new} instead of {old}"))
    });
    changes.collect::<Vec<_>>().join(", ")
}

/// On the first arm, by a read whose pages do not follow each other.
fn look_further_ahead(matrix: &Matrix, read: &str, setting: &str) -> Option<Comparison> {
    let arm = matrix.arms.first()?;
    let values = |name: &str| {
        let axis = matrix.axes.iter().find(|axis| axis.name == name);
        axis.map_or(&[] as &[String], |axis| axis.values.as_slice())
    };
    let last = values(AHEAD).last().filter(|last| *last != AHEAD_SHIPPED)?;
    if !values("read").iter().any(|other| other == read) {
        return None;
    }
    let mut sides = along_an_axis(matrix, &arm.name, AHEAD, [AHEAD_SHIPPED, last])?;
    for side in &mut sides {
        side.point.insert("read".to_owned(), read.to_owned());
    }
    let [baseline, candidate] = sides;
    let what = if read == "bitmap" {
        "a cold bitmap read"
    } else {
        "a cold ANALYZE"
    };
    Some(Comparison {
        metric: "seconds".to_owned(),
        baseline,
        candidate,
        action: format!("raise {setting} from {AHEAD_SHIPPED} to {last}"),
        voice: CardTone::Choice,
        subject: format!("{what} on {}", arm.words),
        conditions: String::new(),
        apply: vec![format!(
            "ALTER SYSTEM SET {setting} = {last};  -- takes a reload"
        )],
    })
}

const ALL_READS: [&str; 4] = ["sequential", "bitmap", "vacuum", "analyze"];

const PAGES: &str = "SELECT pg_relation_size('large') / current_setting('block_size')::int";

fn table_bytes(scale: Scale) -> u64 {
    scale.pick(16 << 20, 512 << 20, 16 << 30)
}

impl AsyncIo {
    /// As many as make a table of the usual size.
    fn rows(&self, scale: Scale) -> u64 {
        (table_bytes(scale) / self.row_bytes()).max(1_000)
    }

    fn row_bytes(&self) -> u64 {
        let shape = self.shape.as_ref();
        shape.map_or(ROW_BYTES, TableShape::row_bytes)
    }

    /// A column that no index has: counting rows alone would read the smaller index instead of the
    /// table.
    fn long_column(&self) -> &'static str {
        match self.shape {
            Some(_) => "c1",
            None => "filler",
        }
    }

    /// The columns behind number and place, and a query for so many rows.
    fn table(&self, rows: u64, seed: u64) -> (String, String) {
        // The order of `place` has nothing to do with that of the pages.
        let place = format!("(i::bigint * 7919 + {seed}) % {rows}");
        let Some(shape) = &self.shape else {
            let columns = format!("filler char({FILLER_BYTES}) NOT NULL");
            let rows = format!("SELECT i, {place}, '' FROM generate_series(1, {rows}) AS i");
            return (columns, rows);
        };
        let parts = Parts::of(shape);
        (
            parts.declared.join(", "),
            parts.rows(&["i".to_owned(), place], [1, rows]),
        )
    }
}

fn statements(read: &str, column: &str, pages: f64) -> Vec<String> {
    let one = |sql: &str| vec![sql.to_owned()];
    match read {
        "bitmap" => vec![
            "SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off"
                .to_owned(),
            // Rows of one range of places lie on pages all over the table: a row for each tenth
            // page.
            format!(
                "SELECT count({column}) FROM large WHERE place < {:.0}",
                pages / 10.0
            ),
        ],
        "vacuum" => one("VACUUM (DISABLE_PAGE_SKIPPING) large"),
        "analyze" => one("ANALYZE large"),
        _ => vec![format!("SELECT count({column}) FROM large")],
    }
}

/// The processes that read: a session's backend and the I/O workers.
struct Processes {
    backend: Vec<u32>,
    workers: Vec<u32>,
}

/// Processor time so far.
struct Used {
    backend: f64,
    workers: f64,
}

impl Processes {
    fn find(session: &mut Session) -> Result<Self> {
        let mut pids = |sql: &str| -> Result<Vec<u32>> {
            let rows = session.query(sql).map_err(Error::sql("asking who reads"))?;
            let pids = rows.into_iter().flatten().flatten();
            Ok(pids.filter_map(|pid| pid.parse().ok()).collect())
        };
        Ok(Self {
            backend: pids("SELECT pg_backend_pid()")?,
            workers: pids("SELECT pid FROM pg_stat_activity WHERE backend_type = 'io worker'")?,
        })
    }

    fn used(&self) -> Used {
        let sum = |pids: &[u32]| pids.iter().filter_map(|pid| cpu_seconds(*pid)).sum();
        Used {
            backend: sum(&self.backend),
            workers: sum(&self.workers),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_reads_scattered_pages_is_tried_at_other_distances() {
        let asks_at = |scale: Scale, arm: &str, read: &str, ahead: &str| {
            let point = [("read", read), (AHEAD, ahead)];
            let point = point.map(|(axis, value)| (axis.to_owned(), value.to_owned()));
            ASYNC_IO.asks(&Arm::new(arm, ""), &point.into(), scale)
        };
        let asks = |arm: &str, read: &str, ahead: &str| asks_at(Scale::Quick, arm, read, ahead);
        assert!(asks("worker", "vacuum", "16") && asks("sync", "analyze", "64"));
        assert!(asks("worker-8", "sequential", "16"));
        assert!(!asks("worker-8", "bitmap", "16") && !asks("worker-8", "sequential", "64"));
        assert!(!asks("worker", "sequential", "64"));
        let published = |arm: &str, read: &str| asks_at(Scale::Published, arm, read, "64");
        assert!(published("sync", "sequential") && published("io-uring", "vacuum"));
        assert!(!published("worker-8", "sequential"));
    }
}
