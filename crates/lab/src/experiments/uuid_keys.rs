//! v4, v7 or bigint as a key?
//!
//! Random keys land on random leaves: each page of the index is split in the middle, filled by half
//! again, and written to the WAL in full after each checkpoint. Ordered keys go to the rightmost
//! leaf, which is split so that the left one stays full (`_bt_findsplitloc` in
//! `src/backend/access/nbtree/nbtsplitloc.c`).

mod leaves;

use pgclinic_servers::Session;

use crate::asking::{buffers, number, timed, wal_bytes};
use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric, RunResult};
use crate::cost::Cost;
use crate::decision::{Comparison, on_metrics};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::external_server::ByUrl;
use crate::need::Need;
use crate::table_profile::{Parts, SEED, TableShape};

/// The experiment that fills tables by random, ordered and counted keys.
#[derive(Debug, Clone)]
pub struct UuidKeys {
    shape: Option<TableShape>,
}

/// On rows of a key and a bigint.
pub static UUID_KEYS: UuidKeys = UuidKeys { shape: None };

impl Experiment for UuidKeys {
    fn name(&self) -> &str {
        "uuid-keys"
    }

    fn question(&self) -> &str {
        "UUIDv4, UUIDv7 or bigint as a primary key?"
    }

    fn explain(&self) -> &str {
        "One INSERT … SELECT puts rows of a key and a bigint into an empty table, and into one that already holds as many, \
         with the primary key in place. The keys are made before the clock starts, in the order in which an application \
         would make them, so that the price of the generator is not in the answer: v4 from a hash of a counter, v7 from a \
         clock that goes forward by 10 microseconds a row and the same hash, bigint from the counter.\n\n\
         Counted are the index's bytes a row, its leaf density and fragmentation (pgstatindex), how its leaves lie in the file \
         (pageinspect, where the session may use it), the buffers of a read in key order, the WAL a row and the \
         correlation between key order and row order (with --learn-from, rows carry columns of your table's shape beside the key); timed are the insert and a read of all rows in key order. WAL a row \
         grows with the number of checkpoints in the run, as a page is written whole after each.\n\n\
         Published, 50 million rows on PostgreSQL 18: 20:39 and 1:46 minutes for v4 and v7, indexes of 1981 and 1504 MB; the \
         next 50 million took 46:16 and 1:40."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let rows: &[u64] = scale.pick(&[40_000], &[250_000, 1_000_000], &[1_000_000, 50_000_000]);
        Matrix {
            arms: vec![
                Arm::new("v4", "UUIDv4: random"),
                Arm::new("v7", "UUIDv7: time first, then random"),
                Arm::new("bigint", "bigint from a sequence"),
            ],
            axes: vec![
                Axis::new("rows", "rows", rows),
                Axis::new("table", "", &["empty", "full"]),
            ],
            blocks: scale.pick(1, 3, 3),
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        let exact = Metric::exact;
        vec![
            exact(
                "index_bytes_row",
                "index bytes a row",
                "bytes",
                Better::Lower,
            ),
            exact("wal_bytes_row", "WAL a row", "bytes", Better::Lower),
            exact(
                "leaf_density",
                "how full the leaves are",
                "%",
                Better::Higher,
            ),
            exact("fragmentation", "leaves out of order", "%", Better::Lower),
            exact(
                "correlation",
                "key order against row order",
                "",
                Better::Higher,
            ),
            exact("leaf_pages", "leaf pages", "", Better::Lower),
            exact(
                "leaf_span_density",
                "leaf pages, of the blocks from the first to the last",
                "",
                Better::Higher,
            ),
            exact(
                "contiguous_percent",
                "leaves whose next one is the next block",
                "%",
                Better::Higher,
            ),
            exact(
                "time_delta_us",
                "time between two rows, as their keys give it away",
                "µs",
                Better::Higher,
            ),
            exact(
                "ordered_buffers_row",
                "buffers that a read in key order takes a row",
                "",
                Better::Lower,
            ),
            Metric::timing("insert_s", "time of the insert", "s", Better::Lower),
            Metric::timing(
                "ordered_read_s",
                "read of all rows in key order",
                "s",
                Better::Lower,
            ),
        ]
    }

    fn needs(&self, _cell: &Cell, _arm: &Arm) -> Vec<Need> {
        vec![Need::Extension("pgstattuple")]
    }

    fn cost(&self, cell: &Cell, _scale: Scale) -> Cost {
        let rows = cell.number_at::<u64>("rows").unwrap_or(0);
        let per_row = if cell.arm == "v4" { 12e-6 } else { 5e-6 };
        Cost::seconds(1.5 + rows as f64 * per_row)
            .with_data(rows.saturating_mul(300 + 2 * self.payload_bytes()))
    }

    fn base(&self, cell: &Cell, arm: &Arm, _scale: Scale) -> Base {
        Base::copied(&format!(
            "{} {} {}",
            arm.name,
            cell.at("table"),
            cell.at("rows")
        ))
    }

    fn fill(&self, base: &str, _scale: Scale, seed: u64, session: &mut Session) -> Result<()> {
        let (kind, table, rows) = parts(base)?;
        let (key, column) = match kind {
            "bigint" => ("i".to_owned(), "bigint"),
            kind => (uuid_of(kind, seed), "uuid"),
        };
        let total = if table == "full" { 2 * rows } else { rows };
        let (columns, new) = self.rows(&key, [total - rows + 1, total]);
        session
            .execute(&format!(
                "{SEED}; CREATE EXTENSION IF NOT EXISTS pgstattuple; \
                 CREATE TABLE key_new (id {column} NOT NULL, ord bigint NOT NULL{columns}); \
                 CREATE TABLE demo (id {column} PRIMARY KEY, ord bigint NOT NULL{columns}); \
                 INSERT INTO key_new {new}"
            ))
            .map_err(Error::sql("making the keys"))?;
        if table == "full" {
            let (_, half) = self.rows(&key, [1, rows]);
            session
                .execute(&format!("INSERT INTO demo {half}"))
                .map_err(Error::sql("filling the table"))?;
        }
        for vacuum in [
            "VACUUM (FREEZE, ANALYZE) key_new",
            "VACUUM (FREEZE, ANALYZE) demo",
        ] {
            session.execute(vacuum).map_err(Error::sql("cleaning up"))?;
        }
        Ok(())
    }

    fn fill_cost(&self, base: &str, _scale: Scale) -> Cost {
        let (_, table, rows) = parts(base).unwrap_or(("", "", 0));
        let made = if table == "full" { 3 * rows } else { rows };
        Cost::seconds(3.0 + made as f64 * 6e-6)
            .with_data(made.saturating_mul(90 + self.payload_bytes()))
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        bench.set("autovacuum", "off");
        let mut session = bench.connect()?;
        let rows = number(&mut session, "SELECT count(*) FROM key_new")?;
        let before = wal_bytes(&mut session)?;
        let insert = "INSERT INTO demo SELECT * FROM key_new ORDER BY ord";
        let insert_s = timed(&mut session, "inserting", insert)?;
        let wal = wal_bytes(&mut session)? - before;
        session
            .execute(
                "SET enable_sort = off; SET enable_seqscan = off; SET enable_bitmapscan = off; \
                 SET max_parallel_workers_per_gather = 0",
            )
            .map_err(Error::sql("asking for the index"))?;
        let read = "SELECT count(ord) FROM (SELECT ord FROM demo ORDER BY id OFFSET 0) AS ordered";
        let ordered_read_s = timed(&mut session, "reading in key order", read)?;
        let ordered_buffers = buffers(&mut session, read)?;
        let leaves = leaves::of(&mut session, "demo_pkey").unwrap_or_default();
        session
            .execute("ANALYZE demo")
            .map_err(Error::sql("analyzing"))?;
        let index = |column: &str| format!("SELECT {column} FROM pgstatindex('demo_pkey')");
        let total = number(&mut session, "SELECT count(*) FROM demo")?;
        let index_bytes = number(&mut session, "SELECT pg_relation_size('demo_pkey')")?;
        let correlation = "SELECT correlation FROM pg_stats WHERE schemaname = current_schema() AND tablename = 'demo' AND attname = 'id'";
        Ok(Measured::default()
            .with("index_bytes_row", index_bytes / total.max(1.0))
            .with("wal_bytes_row", wal / rows.max(1.0))
            .with(
                "leaf_density",
                number(&mut session, &index("avg_leaf_density"))?,
            )
            .with(
                "fragmentation",
                number(&mut session, &index("leaf_fragmentation"))?,
            )
            .with("leaf_pages", number(&mut session, &index("leaf_pages"))?)
            .with("correlation", number(&mut session, correlation)?)
            .with("leaf_span_density", leaves.span_density())
            .with("contiguous_percent", leaves.contiguous_percent())
            .with(
                "time_delta_us",
                time_delta_us(&mut session, &bench.arm().name)?,
            )
            .with("ordered_buffers_row", ordered_buffers / total.max(1.0))
            .with("insert_s", insert_s)
            .with("ordered_read_s", ordered_read_s))
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        let size = ["index_bytes_row", "wal_bytes_row"];
        let shape = ["leaf_density", "fragmentation", "ordered_buffers_row"];
        on_metrics(matrix, self, &[&size[..], &shape, &["insert_s"]].concat())
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.name.as_str() {
            "v4" => "id uuid PRIMARY KEY DEFAULT gen_random_uuid()",
            "v7" => "id uuid PRIMARY KEY DEFAULT uuidv7()  -- built in from 18; before, let the application make them",
            _ => "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
        }
        .to_owned()
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        let shape = Some(shape.renamed());
        Ok(Box::new(Self { shape }))
    }

    fn by_url(&self) -> ByUrl {
        ByUrl::InASchema
    }

    fn remarks(&self, _results: &[RunResult]) -> Vec<String> {
        vec![
            "a UUIDv7 tells when its row was made to everybody who sees it, and the differences between rows how fast they were made \
             (`pgclinic measure` gives the first and last time and values a day); where that must stay private, v4 is the price"
                .to_owned(),
        ]
    }
}

impl UuidKeys {
    /// More columns of both tables, with a comma in front, and a query for the rows with these
    /// numbers.
    fn rows(&self, key: &str, [from, to]: [u64; 2]) -> (String, String) {
        let Some(shape) = &self.shape else {
            let rows = format!("SELECT {key}, i FROM generate_series({from}, {to}) AS i");
            return (String::new(), rows);
        };
        let parts = Parts::of(shape);
        let columns: String = parts
            .declared
            .iter()
            .map(|column| format!(", {column}"))
            .collect();
        (
            columns,
            parts.rows(&[key.to_owned(), "i".to_owned()], [from, to]),
        )
    }

    /// What a row holds beside key and number.
    fn payload_bytes(&self) -> u64 {
        self.shape.as_ref().map_or(0, TableShape::row_bytes)
    }
}

/// The median time between a key and the next of the first rows; no number of keys that hold no
/// time.
fn time_delta_us(session: &mut Session, arm: &str) -> Result<f64> {
    if arm != "v7" {
        return Ok(f64::NAN);
    }
    // 48 bits of milliseconds, then 12 bits of their fraction, as this experiment fills them.
    let bits = |from: u32, digits: u32| {
        format!(
            "('x' || lpad(substr(replace(id::text, '-', ''), {from}, {digits}), 16, '0'))::bit(64)::bigint"
        )
    };
    let time = format!("{} * 1000 + {} * 1000 / 4096.0", bits(1, 12), bits(14, 3));
    number(
        session,
        &format!(
            "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY delta) FROM (SELECT time - lag(time) OVER (ORDER BY time) AS delta \
             FROM (SELECT {time} AS time FROM demo ORDER BY id LIMIT 10000) AS times) AS deltas WHERE delta IS NOT NULL"
        ),
    )
}

/// Kind of key, `empty` or `full`, rows.
fn parts(base: &str) -> Result<(&str, &str, u64)> {
    let mut words = base.split(' ');
    let (kind, table, rows) = (words.next(), words.next(), words.next());
    let rows = rows.and_then(|rows| rows.parse().ok());
    match (kind, table, rows) {
        (Some(kind), Some(table), Some(rows)) => Ok((kind, table, rows)),
        _ => Err(Error::Refused(format!(
            "\"{base}\" is no base of this experiment"
        ))),
    }
}

/// The key of row `i` as SQL: the same for the same seed on every machine and version.
fn uuid_of(kind: &str, seed: u64) -> String {
    let random = format!("md5('{seed} ' || i)");
    if kind == "v4" {
        return format!("overlay(overlay({random} placing '4' from 13) placing '8' from 17)::uuid");
    }
    // 48 bits of milliseconds, 12 bits of their fraction, then random ones.
    let clock = "(1767225600000000 + i * 10)";
    format!(
        "(lpad(to_hex({clock} / 1000), 12, '0') || '7' || lpad(to_hex(({clock} % 1000) * 4096 / 1000), 3, '0') \
         || '8' || substr({random}, 18))::uuid"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_base_says_what_it_holds() {
        let name = UUID_KEYS.base(
            &Cell {
                id: String::new(),
                arm: "v7".to_owned(),
                point: [("rows", "40000"), ("table", "full")]
                    .map(|(name, value)| (name.to_owned(), value.to_owned()))
                    .into(),
                block: 1,
                repeat: 0,
                is_control: false,
            },
            &Arm::new("v7", ""),
            Scale::Smallest,
        );
        assert_eq!(parts(&name.name).expect("a base"), ("v7", "full", 40_000));
        assert!(parts("v7 full many").is_err());
    }
}
