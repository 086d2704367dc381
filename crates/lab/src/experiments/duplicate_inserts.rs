//! What do failed inserts leave behind?
//!
//! A plain `INSERT` writes the row first and asks the unique indexes afterwards, in the order of
//! their creation (`ExecInsertIndexTuples` in `src/backend/executor/execIndexing.c`): a refused row
//! stays as a dead row, with an entry in every index before the one that refused. `ON CONFLICT`
//! asks first (`ExecCheckIndexConstraints`).

use pgclinic_servers::{Session, SqlError};

use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric, Point};
use crate::cost::Cost;
use crate::decision::{Comparison, with_the_first_arm};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::external_server::ByUrl;
use crate::need::Need;
use crate::table_profile::{Parts, SEED, TableShape};

/// Rows that are there before.
const LIVE_ROWS: u64 = 1_000;

/// `unique_violation`.
const UNIQUE_VIOLATION: &str = "23505";

/// The experiment that inserts rows whose keys are there already.
#[derive(Debug, Clone)]
pub struct DuplicateInserts {
    shape: Option<TableShape>,
}

/// On rows of 54 bytes, as in the published test.
pub static DUPLICATE_INSERTS: DuplicateInserts = DuplicateInserts { shape: None };

impl Experiment for DuplicateInserts {
    fn name(&self) -> &str {
        "duplicate-inserts"
    }

    fn question(&self) -> &str {
        "What do failed inserts leave behind?"
    }

    fn explain(&self) -> &str {
        "A table of 1,000 rows of 54 bytes with a primary key and a second unique key is asked to take rows that it already has, one \
         statement and one transaction each: by a plain INSERT whose error the application catches, by INSERT … ON CONFLICT \
         DO NOTHING and DO UPDATE, by MERGE, and by looking first. Counted are the dead bytes in the table (pgstattuple), \
         the bytes of WAL and the transaction numbers used up, each for 1,000 attempts.\n\n\
         Which key collides matters, and which index was created first: a refused row has entries in all indexes that were \
         asked before the one that refused. Autovacuum hides what is left, so it is an axis; with it on, the outcome \
         depends on when it came by, and only the tables whose primary key came first are tried.\n\n\
         With --learn-from rows also have the columns of your table: what a refused TOASTed value leaves in the TOAST table is part \
         of the growth."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let arms = vec![
            Arm::new("insert", "plain INSERT, the error caught"),
            Arm::new("do-nothing", "INSERT … ON CONFLICT DO NOTHING"),
            Arm::new("do-update", "INSERT … ON CONFLICT DO UPDATE"),
            Arm::new("merge", "MERGE … WHEN NOT MATCHED THEN INSERT"),
            Arm::new("look-first", "INSERT … SELECT … WHERE NOT EXISTS"),
        ];
        let keys = ["primary", "second"];
        let autovacuum = scale.pick(vec!["off"], vec!["off", "on"], vec!["off", "on"]);
        Matrix {
            arms,
            axes: vec![
                Axis::new("collides", "", &keys),
                Axis::new("created-first", "", &keys),
                Axis::new("autovacuum", "", &autovacuum).sets("autovacuum"),
            ],
            blocks: scale.pick(1, 3, 5),
        }
    }

    /// What autovacuum hides is shown where the primary key was created first, as it mostly is.
    fn asks(&self, _arm: &Arm, point: &Point, _scale: Scale) -> bool {
        let is = |axis: &str, value: &str| point.get(axis).is_some_and(|other| other == value);
        !is("autovacuum", "on") || is("created-first", "primary")
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::exact(
                "dead_bytes",
                "dead bytes in the table for each 1,000 attempts",
                "bytes",
                Better::Lower,
            ),
            Metric::exact(
                "wal_bytes",
                "WAL for each 1,000 attempts",
                "bytes",
                Better::Lower,
            ),
            Metric::exact(
                "xids",
                "transaction numbers for each 1,000 attempts",
                "",
                Better::Lower,
            ),
            Metric::exact(
                "dead_percent",
                "dead share of the table",
                "%",
                Better::Lower,
            ),
            Metric::exact(
                "index_entries",
                "entries in the primary key's index",
                "",
                Better::Lower,
            ),
            Metric::exact(
                "growth_bytes",
                "growth of table and indexes for each 1,000 attempts",
                "bytes",
                Better::Lower,
            ),
            Metric::timing("attempts_s", "attempts a second", "1/s", Better::Higher),
        ]
    }

    fn needs(&self, _cell: &Cell, arm: &Arm) -> Vec<Need> {
        let mut needs = vec![Need::Extension("pgstattuple")];
        if arm.name == "merge" {
            needs.push(Need::Major(15..=18));
        }
        needs
    }

    fn cost(&self, _cell: &Cell, scale: Scale) -> Cost {
        Cost::seconds(scale.pick(1.0, 4.0, 4.0)).with_data(scale.pick(1 << 20, 20 << 20, 20 << 20))
    }

    fn base(&self, cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        Base::copied(cell.at("created-first"))
    }

    fn fill(&self, base: &str, _scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        let primary = "ALTER TABLE account ADD PRIMARY KEY (id)";
        let second = "CREATE UNIQUE INDEX account_email_key ON account (email)";
        let (one, two) = match base {
            "second" => (second, primary),
            _ => (primary, second),
        };
        let (columns, names) = (self.columns(), self.names());
        let (samples, more, joined) = match &self.shape {
            None => (String::new(), String::new(), ""),
            Some(shape) => (samples(shape), names.clone(), "JOIN sample ON sample.n = i"),
        };
        session
            .execute(&format!(
                "CREATE EXTENSION IF NOT EXISTS pgstattuple; {samples} \
                 CREATE TABLE account (id bigint, seen integer NOT NULL DEFAULT 0, email text NOT NULL, name text NOT NULL{columns}); \
                 INSERT INTO account (id, email, name{names}) SELECT i, to_char(i, 'FM00000') || '@ex.org', 'here'{more} \
                 FROM generate_series(1, {LIVE_ROWS}) i {joined}; \
                 {one}; {two}",
            ))
            .map_err(Error::sql("filling the table"))?;
        session
            .execute("VACUUM (ANALYZE) account")
            .map_err(Error::sql("cleaning the table"))
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        if bench.cell().at("autovacuum") == "on" {
            bench.set("autovacuum_naptime", "1s");
        }
        // What is left behind does not depend on when a commit reaches the disk, and the disk is
        // not asked about.
        bench.set("synchronous_commit", "off");
        let attempts = bench.scale().pick(2_000, 20_000, 20_000);
        let key = bench.cell().at("collides").to_owned();
        let arm = bench.arm().name.clone();
        let mut session = bench.connect()?;
        let before = State::of(&mut session)?;
        let start = std::time::Instant::now();
        for attempt in 1..=attempts {
            attempt_one(&mut session, &self.statement(&arm, &key, attempt))?;
            if attempt % 1_000 == 0 {
                bench.check_interrupted()?;
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        let after = State::of(&mut session)?;
        if after.live_rows != LIVE_ROWS {
            let found = after.live_rows;
            return Err(Error::Refused(format!(
                "the table holds {found} rows after the attempts and must hold {LIVE_ROWS}"
            )));
        }
        Ok(measured(&before, &after, attempts, seconds))
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        let shape = Some(shape.renamed());
        Ok(Box::new(Self { shape }))
    }

    fn by_url(&self) -> ByUrl {
        ByUrl::InASchema
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        // As in the article: the index that was created last refuses.
        let point = [
            ("collides", "second"),
            ("created-first", "primary"),
            ("autovacuum", "off"),
        ];
        let metrics = self.metrics();
        let of = |name: &str| {
            let metric = metrics.iter().find(|metric| metric.name == name);
            let words = metric.map_or(name, |metric| metric.words.as_str());
            let advice = |arm: &Arm| self.advice(arm);
            with_the_first_arm(matrix, name, words, &advice)
        };
        let mut all = [of("dead_bytes"), of("wal_bytes"), of("xids")].concat();
        for comparison in &mut all {
            comparison.at(&point, matrix);
        }
        all
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.name.as_str() {
            "insert" => "keep the plain INSERT",
            "do-nothing" => "write INSERT … ON CONFLICT DO NOTHING",
            "do-update" => "write INSERT … ON CONFLICT (key) DO UPDATE",
            "merge" => "write MERGE … WHEN NOT MATCHED THEN INSERT",
            _ => "look first: INSERT … SELECT … WHERE NOT EXISTS (and keep the unique key: two at once can both look)",
        }
        .to_owned()
    }
}

impl DuplicateInserts {
    /// More columns of the table as they are declared, with a comma in front.
    fn columns(&self) -> String {
        let shape = self.shape.as_ref();
        let declared = shape.map_or_else(Vec::new, |shape| Parts::of(shape).declared);
        declared
            .iter()
            .map(|column| format!(", {column}"))
            .collect()
    }

    /// Their names, with a comma in front.
    fn names(&self) -> String {
        let columns = self.shape.iter().flat_map(|shape| &shape.columns);
        columns.map(|column| format!(", {}", column.name)).collect()
    }

    /// One attempt at a row that is there already. The other key is fresh each time. A row takes 54
    /// bytes, as in the published test, or is as those of a learned shape.
    fn statement(&self, arm: &str, key: &str, attempt: u64) -> String {
        let known = (attempt - 1) % LIVE_ROWS + 1;
        let fresh = LIVE_ROWS + attempt;
        let (id, owner) = match key {
            "primary" => (known, fresh),
            _ => (fresh, known),
        };
        let row = format!("{id}, '{owner:05}@ex.org', 'here'");
        let column = if key == "primary" { "id" } else { "email" };
        let names = format!("id, email, name{}", self.names());
        let insert = format!("INSERT INTO account ({names})");
        // A row that is there already as a sample, so that an attempt costs no more than a literal
        // one.
        let (values, source) = match &self.shape {
            None => (
                format!("VALUES ({row})"),
                format!("(VALUES ({row})) AS n ({names})"),
            ),
            Some(_) => {
                let select = format!("SELECT {row}{} FROM sample WHERE n = {known}", self.names());
                (select.clone(), format!("({select}) AS n ({names})"))
            }
        };
        let of_source = names.replace(", ", ", n.");
        match arm {
            "do-nothing" => format!("{insert} {values} ON CONFLICT DO NOTHING"),
            "do-update" => format!(
                "{insert} {values} ON CONFLICT ({column}) DO UPDATE SET seen = account.seen + 1"
            ),
            "merge" => format!(
                "MERGE INTO account a USING {source} ON a.{column} = n.{column} \
                 WHEN NOT MATCHED THEN INSERT ({names}) VALUES (n.{of_source})"
            ),
            "look-first" => format!(
                "{insert} SELECT * FROM {source} \
                 WHERE NOT EXISTS (SELECT FROM account a WHERE a.{column} = n.{column})"
            ),
            _ => format!("{insert} {values}"),
        }
    }
}

/// A row of the learned shape for each live row, by number.
fn samples(shape: &TableShape) -> String {
    let parts = Parts::of(shape);
    format!(
        "{SEED}; CREATE TABLE sample (n bigint, {}); INSERT INTO sample {}; ALTER TABLE sample ADD PRIMARY KEY (n);",
        parts.declared.join(", "),
        parts.rows(&["i".to_owned()], [1, LIVE_ROWS])
    )
}

fn attempt_one(session: &mut Session, sql: &str) -> Result<()> {
    match session.execute(sql) {
        Ok(()) => Ok(()),
        Err(SqlError::Server(message)) if message.sqlstate == UNIQUE_VIOLATION => Ok(()),
        Err(error) => Err(Error::sql("inserting a row that is there already")(error)),
    }
}

/// What the table and the server have spent.
struct State {
    live_rows: u64,
    dead_bytes: f64,
    dead_percent: f64,
    index_entries: f64,
    total_bytes: f64,
    wal_bytes: f64,
    next_xid: f64,
}

impl State {
    /// Reads it without using up a transaction number.
    fn of(session: &mut Session) -> Result<Self> {
        let rows = session
            .query(
                "SELECT (SELECT count(*) FROM account), t.dead_tuple_len, t.dead_tuple_percent, \
                 i.tuple_count + i.dead_tuple_count, pg_total_relation_size('account'), \
                 pg_current_wal_insert_lsn() - '0/0', pg_snapshot_xmax(pg_current_snapshot()) \
                 FROM pgstattuple('account') t, pgstattuple('account_pkey') i",
            )
            .map_err(Error::sql("counting what is left"))?;
        let row = rows.first().map(Vec::as_slice).unwrap_or_default();
        let number = |at: usize| -> Option<f64> { row.get(at)?.as_ref()?.parse().ok() };
        let read = || {
            Some(Self {
                live_rows: row.first()?.as_ref()?.parse().ok()?,
                dead_bytes: number(1)?,
                dead_percent: number(2)?,
                index_entries: number(3)?,
                total_bytes: number(4)?,
                wal_bytes: number(5)?,
                next_xid: number(6)?,
            })
        };
        read().ok_or_else(|| Error::Empty("pgstattuple gave no numbers".to_owned()))
    }
}

fn measured(before: &State, after: &State, attempts: u64, seconds: f64) -> Measured {
    let thousands = attempts as f64 / 1_000.0;
    let each = |after: f64, before: f64| (after - before) / thousands;
    Measured::default()
        .with("dead_bytes", each(after.dead_bytes, before.dead_bytes))
        .with("wal_bytes", each(after.wal_bytes, before.wal_bytes))
        .with("xids", each(after.next_xid, before.next_xid))
        .with("dead_percent", after.dead_percent)
        .with("index_entries", after.index_entries)
        .with("growth_bytes", each(after.total_bytes, before.total_bytes))
        .with("attempts_s", attempts as f64 / seconds.max(1e-9))
}
