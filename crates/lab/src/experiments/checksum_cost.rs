//! What do data checksums cost?
//!
//! A page's checksum is computed when it is written and compared when it is read into the server's
//! buffers, also when the kernel had it in its cache. And the first hint bit set on a page after a
//! checkpoint writes the page to the WAL (`MarkBufferDirtyHint` in
//! `src/backend/storage/buffer/bufmgr.c`).

use std::time::Instant;

use pgclinic_servers::{Session, StopMode};

use crate::asking::{backend_cpu_s, wal_bytes};
use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric};
use crate::cost::Cost;
use crate::decision::{CardTone, Comparison, on_metrics};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::need::Need;
use crate::table_profile::{Parts, SEED, TableShape};

/// About what a row takes on disk, with its key in the index and the free space of its page.
const ROW_BYTES: u64 = 160;

/// What of it is the filler.
const FILLER_BYTES: u64 = 68;

/// The experiment that runs one load with data checksums and without.
#[derive(Debug, Clone)]
pub struct ChecksumCost {
    shape: Option<TableShape>,
}

/// On short rows.
pub static CHECKSUM_COST: ChecksumCost = ChecksumCost { shape: None };

impl Experiment for ChecksumCost {
    fn name(&self) -> &str {
        "checksum-cost"
    }

    fn question(&self) -> &str {
        "What do data checksums cost?"
    }

    fn explain(&self) -> &str {
        "The same cluster, made without data checksums, is copied for each run; for the arm with checksums pg_checksums \
         turns them on in the copy. One session then makes transactions, each an update and three reads by key of random \
         rows, over a table that fits in the server's buffers, one that only fits in the kernel's cache (the server has \
         buffers for an eighth of it), and one that is read from disk. Measured are the processor time of the backend and \
         the WAL for each transaction, and the rate.\n\n\
         Before the measuring, every row of the table was just updated by another transaction, so that reads set hint bits: \
         with checksums each page whose first change after a checkpoint is a hint bit goes to the WAL whole. The WAL of a \
         whole cluster can grow by half where much is read soon after it was written, and hardly at all elsewhere.\n\n\
         This is the worst case: each transaction changes a page, reads follow changes at once, and commits do not wait for \
         the disk, so that nothing hides the cost. Published, for normal loads: usually below two percent."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let places: &[&str] = scale.pick(
            &["buffers"],
            &["buffers", "page-cache", "disk"],
            &["buffers", "page-cache", "disk"],
        );
        Matrix {
            arms: vec![
                arm("off", "without data checksums"),
                arm("on", "with data checksums"),
            ],
            axes: vec![Axis::new("data-in", "", places)],
            blocks: scale.pick(1, 6, 10),
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::timing(
                "cpu_us",
                "processor time of the backend a transaction",
                "µs",
                Better::Lower,
            ),
            Metric::exact("wal_bytes", "WAL a transaction", "bytes", Better::Lower),
            Metric::timing("tps", "transactions a second", "1/s", Better::Higher),
        ]
    }

    fn needs(&self, _cell: &Cell, _arm: &Arm) -> Vec<Need> {
        vec![Need::Tool("pg_checksums")]
    }

    fn cost(&self, cell: &Cell, scale: Scale) -> Cost {
        let slow = if cell.at("data-in") == "disk" {
            3.0
        } else {
            1.0
        };
        let bytes = self.rows(scale) * self.row_bytes();
        Cost::seconds(4.0 + slow * transactions(scale) as f64 * 0.4e-3 + bytes as f64 / 50e6)
            .with_data(2 * bytes)
    }

    fn base(&self, _cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        Base::copied("account")
    }

    fn fill(&self, _base: &str, scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        let (columns, rows) = self.table(self.rows(scale));
        session
            .execute(&format!(
                "{SEED}; CREATE TABLE account (id bigint, balance bigint NOT NULL, {columns}) WITH (fillfactor = 80, autovacuum_enabled = off); \
                 INSERT INTO account {rows}; \
                 ALTER TABLE account ADD PRIMARY KEY (id)",
            ))
            .map_err(Error::sql("filling the table"))?;
        session
            .execute("VACUUM (FREEZE, ANALYZE) account")
            .map_err(Error::sql("cleaning up"))
    }

    fn fill_cost(&self, _base: &str, scale: Scale) -> Cost {
        let rows = self.rows(scale);
        Cost::seconds(4.0 + rows as f64 * 5e-6).with_data(rows * self.row_bytes())
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        toggle(bench)?;
        let place = bench.cell().at("data-in").to_owned();
        let rows = self.rows(bench.scale());
        let table_mb = rows * self.row_bytes() / 1_000_000;
        let buffers = match place.as_str() {
            "buffers" => table_mb * 2 + 64,
            _ => table_mb / 8 + 1,
        };
        bench.set("shared_buffers", &format!("{}MB", buffers.max(2)));
        bench.set("autovacuum", "off");
        // The rate of commits is that of the disk otherwise, and says nothing of checksums.
        bench.set("synchronous_commit", "off");
        touch_some(bench)?;
        let cold = match place.as_str() {
            "disk" => Some(bench.cold()?),
            _ => {
                bench.warm(&["account"])?;
                None
            }
        };
        let mut session = bench.connect()?;
        session
            .execute("CHECKPOINT")
            .map_err(Error::sql("checkpointing"))?;
        // The checkpoint is ours.
        bench.watch(&[])?;
        let measured = transact(bench, &mut session, rows)?;
        let doubt = cold.and_then(|cold| cold.doubt(table_mb * 1_000_000 / 20));
        if let Some(doubt) = doubt {
            bench.overlap(doubt);
        }
        Ok(measured)
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        let mut cards = on_metrics(matrix, self, &["cpu_us", "wal_bytes", "tps"]);
        for card in cards.iter_mut().filter(|card| card.candidate.arm == "on") {
            card.action = "data checksums".to_owned();
            card.voice = CardTone::Price;
            card.conditions = format!(" in the worst case{}", card.conditions);
        }
        cards
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        let shape = Some(shape.renamed());
        Ok(Box::new(Self { shape }))
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.name.as_str() {
            "on" => {
                "pg_checksums --enable on the stopped cluster (the default of initdb from 18 on)"
            }
            _ => "leave them off, and lose the only proof that the disk returns what was written",
        }
        .to_owned()
    }
}

/// Both begin with the same cluster without checksums.
fn arm(name: &str, words: &str) -> Arm {
    let mut arm = Arm::new(name, words).with_parameter("checksums", name);
    arm.initdb.push("--no-data-checksums".to_owned());
    arm
}

impl ChecksumCost {
    /// As many as make a table of the usual size.
    fn rows(&self, scale: Scale) -> u64 {
        let usual = scale.pick(20_000, 400_000, 10_000_000);
        (usual * ROW_BYTES / self.row_bytes()).max(100)
    }

    fn row_bytes(&self) -> u64 {
        let shape = self.shape.as_ref();
        shape.map_or(ROW_BYTES, |shape| {
            ROW_BYTES - FILLER_BYTES + shape.row_bytes()
        })
    }

    /// The columns behind the balance, and a query for so many rows.
    fn table(&self, rows: u64) -> (String, String) {
        let Some(shape) = &self.shape else {
            let filler = "md5(i::text) || md5((i + 1)::text)";
            let rows = format!("SELECT i, 0, {filler} FROM generate_series(1, {rows}) AS i");
            return ("filler text NOT NULL".to_owned(), rows);
        };
        let parts = Parts::of(shape);
        let first = ["i".to_owned(), "0".to_owned()];
        (parts.declared.join(", "), parts.rows(&first, [1, rows]))
    }
}

fn transactions(scale: Scale) -> u64 {
    scale.pick(1_500, 7_000, 300_000)
}

/// The base has no checksums: the arm with them turns them on in its copy.
fn toggle(bench: &mut Bench<'_>) -> Result<()> {
    let wanted = bench.arm().parameter("checksums") == "on";
    let mut session = bench.connect()?;
    let has = session
        .query_value("SHOW data_checksums")
        .map_err(Error::sql("asking for checksums"))?;
    drop(session);
    // Both arms start anew behind this, with the settings of the run.
    bench.stop(StopMode::Fast)?;
    if (has.as_deref() == Some("on")) == wanted {
        return Ok(());
    }
    let tool = bench
        .installation()
        .tool("pg_checksums")
        .ok_or_else(|| Error::Skip("pg_checksums is gone".to_owned()))?;
    let ran = bench
        .run_as()
        .command(&tool)
        .arg(if wanted { "--enable" } else { "--disable" })
        .arg("--no-sync")
        .arg("-D")
        .arg(bench.pgdata())
        .output()
        .map_err(Error::io("run", &tool))?;
    if ran.status.success() {
        Ok(())
    } else {
        Err(Error::Refused(format!(
            "pg_checksums: {}",
            String::from_utf8_lossy(&ran.stderr).trim()
        )))
    }
}

/// Every row of every fourth page is updated and committed, so that reads have hint bits to set.
fn touch_some(bench: &mut Bench<'_>) -> Result<()> {
    let mut session = bench.connect()?;
    session
        .execute(
            "UPDATE account SET balance = balance + 1 WHERE (ctid::text::point)[0]::int % 4 = 0",
        )
        .map_err(Error::sql("updating rows"))
}

fn transact(bench: &Bench<'_>, session: &mut Session, rows: u64) -> Result<Measured> {
    let transactions = transactions(bench.scale());
    let mut random = fastrand::Rng::with_seed(bench.seed());
    session
        .execute(
            "PREPARE change(bigint) AS UPDATE account SET balance = balance + 1 WHERE id = $1; \
             PREPARE look(bigint) AS SELECT balance FROM account WHERE id = $1",
        )
        .map_err(Error::sql("preparing"))?;
    let (wal, cpu, start) = (wal_bytes(session)?, backend_cpu_s(session)?, Instant::now());
    for transaction in 0..transactions {
        let mut key = || random.u64(1..=rows);
        let sql = format!(
            "EXECUTE change({}); EXECUTE look({}); EXECUTE look({}); EXECUTE look({})",
            key(),
            key(),
            key(),
            key()
        );
        session
            .execute(&sql)
            .map_err(Error::sql("making transactions"))?;
        if transaction % 1_000 == 0 {
            bench.check_interrupted()?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let each = |total: f64| total / transactions as f64;
    Ok(Measured::default()
        .with("cpu_us", each(backend_cpu_s(session)? - cpu) * 1e6)
        .with("wal_bytes", each(wal_bytes(session)? - wal))
        .with("tps", transactions as f64 / seconds.max(1e-9)))
}
