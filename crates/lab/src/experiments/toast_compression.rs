//! pglz, lz4 or none for my JSON?
//!
//! A value of more than about 2 kB is compressed and cut into chunks
//! (`src/backend/access/heap/heaptoast.c`); to read one key of it, the whole value is put together
//! and unpacked, by each session on its own processor.

mod documents;

use std::time::Instant;

use documents::{BYTES, Documents, KINDS};
use pgclinic_servers::{Session, SqlError};

use crate::asking::{backend_cpu_s, number};
use crate::bench::Bench;
use crate::bench_processors;
use crate::cell::{Arm, Axis, Better, Cell, Metric, Point, RunResult};
use crate::cost::Cost;
use crate::decision::{Comparison, on_metrics};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::external_server::ByUrl;
use crate::need::Need;
use crate::table_profile::{Parts, SEED, TableShape};

/// The axis of the processors that the server may use.
const CORES: &str = "cores";
/// That of the documents.
const DOCUMENTS: &str = "documents";
/// That of those who read at once.
const SESSIONS: &str = "sessions";

/// How a document is packed (`pg_column_compression`, from 14 on), with the number of documents.
const PACKED: &str = "SELECT coalesce(pg_column_compression(body), 'none'), count(*) FROM document GROUP BY 1 ORDER BY 1";

/// The experiment that stores the same values under each compression method.
#[derive(Debug, Clone)]
pub struct ToastCompression {
    shape: Option<TableShape>,
}

/// On documents like the events of a code host.
pub static TOAST_COMPRESSION: ToastCompression = ToastCompression { shape: None };

impl Experiment for ToastCompression {
    fn name(&self) -> &str {
        "toast-compression"
    }

    fn question(&self) -> &str {
        "pglz, lz4 or no compression for JSON documents?"
    }

    fn explain(&self) -> &str {
        "Tables of the same JSON documents, their column stored with pglz, with lz4, and EXTERNAL, that is out of line and not \
         compressed. The axis documents has events like those of a code host, lines of a log, and prose, which compress \
         differently; a third of each is longer than the 2 kB from which a row is TOASTed. Which method gives the smaller table \
         is a matter of the documents: --learn-from asks it of yours. One to several sessions each read one key of all \
         documents, from the start, the middle or the end of the document. Measured are the bytes a row takes, the \
         processor time for a million rows, and the time.\n\n\
         The documents are made through text, so that each is compressed by its own table's method; a copy from one table to \
         another keeps the old packing, as pg_column_compression shows, which is asked in each run. The axis cores bounds the server to so \
         many processors, as taskset would; clients keep all of them. lz4 needs PostgreSQL 14 or newer, built with it.\n\n\
         With --learn-from the rows have the shape of your table, and its longest column is read as a whole.\n\n\
         At the published scale there are 98 GB of events, more than the memory of that machine; where they fit into yours, \
         the times lack the disk's part, and the report says so.\n\n\
         Published, a week of events: 41 GB with pglz, 38 GB with lz4, 98 GB without; lz4 ahead everywhere, and pglz \
         collapsing when there are more sessions than processors."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let sessions: &[u32] = scale.pick(&[1], &[1, 2, 4], &[1, 2, 3, 4, 8, 16]);
        let cores: &[u32] = scale.pick(&[1], &[1, 2], &[8, 20]);
        let mut axes = vec![
            Axis::new(SESSIONS, "sessions", sessions),
            Axis::new(CORES, "processors of the server", cores),
        ];
        if self.shape.is_none() {
            let keys: &[&str] =
                scale.pick(&["end"], &["start", "end"], &["start", "middle", "end"]);
            axes.push(Axis::new("key", "", keys));
            let kinds = scale.pick(1, KINDS.len(), 1);
            let names: Vec<&str> = KINDS.iter().take(kinds).map(|kind| kind.name).collect();
            axes.push(Axis::new(DOCUMENTS, "", &names));
        }
        Matrix {
            arms: vec![
                Arm::new("pglz", "pglz, the default before 19")
                    .with_parameter("storage", "EXTENDED COMPRESSION pglz"),
                Arm::new("lz4", "lz4").with_parameter("storage", "EXTENDED COMPRESSION lz4"),
                Arm::new("external", "out of line, not compressed")
                    .with_parameter("storage", "EXTERNAL"),
            ],
            axes,
            blocks: scale.pick(1, 5, 5),
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::timing(
                "read_s",
                "time until all sessions have read all rows",
                "s",
                Better::Lower,
            ),
            Metric::timing(
                "cpu_s_million",
                "processor time for a million rows",
                "s",
                Better::Lower,
            ),
            Metric::exact(
                "bytes_row",
                "bytes a row, TOASTed values included",
                "bytes",
                Better::Lower,
            ),
            Metric::exact(
                "value_bytes",
                "bytes of a document as stored",
                "bytes",
                Better::Lower,
            ),
            Metric::exact(
                "share",
                "size, of what the documents take uncompressed",
                "%",
                Better::Lower,
            ),
            Metric::exact(
                "packed_percent",
                "documents that are compressed by the arm's method",
                "%",
                Better::Higher,
            ),
        ]
    }

    /// Which key is read is asked on the most processors only, and documents of other kinds by one
    /// session.
    fn asks(&self, _arm: &Arm, point: &Point, scale: Scale) -> bool {
        let at = |axis: &str| point.get(axis).map_or("", String::as_str);
        let is_usual = ["", "events"].contains(&at(DOCUMENTS));
        let is_last_key = ["", "end"].contains(&at("key"));
        match scale {
            Scale::Quick if !is_usual => at(CORES) != "1" && at(SESSIONS) == "1" && is_last_key,
            Scale::Quick => at(CORES) != "1" || is_last_key,
            Scale::Smallest | Scale::Published => true,
        }
    }

    fn needs(&self, cell: &Cell, arm: &Arm) -> Vec<Need> {
        let mut needs = Vec::new();
        if arm.name == "lz4" {
            needs.push(Need::SettingValue {
                name: "default_toast_compression",
                value: "lz4".to_owned(),
            });
        }
        needs.extend(cell.number_at(CORES).and_then(bench_processors::need));
        needs
    }

    fn cost(&self, cell: &Cell, scale: Scale) -> Cost {
        let sessions = cell.number_at::<f64>(SESSIONS).unwrap_or(1.0);
        let documents = self.documents(cell.at(DOCUMENTS), scale);
        Cost::seconds(1.5 + sessions * (documents * self.bytes()) as f64 * 2.5e-9)
    }

    fn base(&self, cell: &Cell, arm: &Arm, _scale: Scale) -> Base {
        let name = format!("{} {}", arm.name, cell.at(DOCUMENTS));
        Base::shared(name.trim_end())
    }

    fn fill(&self, base: &str, scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        let (base, kind) = base.split_once(' ').unwrap_or((base, ""));
        let storage = if base == "external" {
            "EXTERNAL"
        } else {
            "EXTENDED"
        };
        // Before 14 there is only pglz, and no word for it.
        let compression = match base {
            "external" => String::new(),
            method => format!(
                "DO $$BEGIN IF current_setting('server_version_num')::int >= 140000 THEN \
                 ALTER TABLE document ALTER COLUMN body SET COMPRESSION {method}; END IF; END$$;"
            ),
        };
        let (columns, rows) = self.table(kind, self.documents(kind, scale));
        session
            .execute(&format!(
                "{SEED}; CREATE TABLE document (id bigint, {columns}); \
                 ALTER TABLE document ALTER COLUMN body SET STORAGE {storage}; {compression} \
                 INSERT INTO document {rows}"
            ))
            .map_err(Error::sql("making the documents"))?;
        session
            .execute("VACUUM (FREEZE, ANALYZE) document")
            .map_err(Error::sql("cleaning up"))
    }

    fn fill_cost(&self, base: &str, scale: Scale) -> Cost {
        let (_, kind) = base.split_once(' ').unwrap_or((base, ""));
        let bytes = self.documents(kind, scale) * self.bytes();
        Cost::seconds(2.0 + bytes as f64 * 50e-9).with_data(bytes * 3 / 4)
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        bench.set("autovacuum", "off");
        if let Some(cores) = bench.cell().number_at(CORES) {
            bench.set_processors(cores);
        }
        let key = match bench.cell().at("key") {
            "start" => "aa",
            "middle" => "middle_key",
            _ => "zz_key_that_comes_last_in_the_order_of_jsonb",
        };
        let count = bench.cell().number_at::<usize>(SESSIONS).unwrap_or(1);
        bench.warm(&["document"])?;
        let mut sessions = Vec::new();
        for _ in 0..count {
            sessions.push(bench.connect()?);
        }
        let rows = number(&mut bench.connect()?, "SELECT count(*) FROM document")?;
        // Joined to nothing, a value is put together and unpacked as a whole.
        let read = match self.shape {
            Some(_) => "body::text || ''".to_owned(),
            None => format!("body ->> '{key}'"),
        };
        let sql =
            format!("SET max_parallel_workers_per_gather = 0; SELECT count({read}) FROM document");
        let is_here = bench.is_on_this_machine();
        let cpu = |sessions: &mut [Session]| -> Result<f64> {
            let seen = sessions.iter_mut().filter(|_| is_here);
            seen.map(backend_cpu_s).sum()
        };
        bench.watch(&[])?;
        let cpu_before = cpu(&mut sessions)?;
        let start = Instant::now();
        all_at_once(&mut sessions, &sql)?;
        let read_s = start.elapsed().as_secs_f64();
        let cpu_s = cpu(&mut sessions)? - cpu_before;
        bench.watched();
        // Processes of another machine are not seen: there is no number, which is not 0.
        let cpu_s_million = if is_here {
            cpu_s / (rows * count as f64) * 1e6
        } else {
            f64::NAN
        };
        let mut session = bench.connect()?;
        let packed_percent = packed(bench, &mut session)?;
        let stored = number(&mut session, "SELECT pg_table_size('document')")?;
        if is_here && fits_memory(bench, stored) {
            bench.fact(FITS, "yes");
        }
        let unpacked = "SELECT avg(octet_length(document::text)) FROM document";
        let unpacked = number(&mut session, unpacked)?;
        let value = "SELECT avg(pg_column_size(body)) FROM document";
        Ok(Measured::default()
            .with("value_bytes", number(&mut session, value)?)
            .with("read_s", read_s)
            .with("cpu_s_million", cpu_s_million)
            .with("packed_percent", packed_percent.unwrap_or(f64::NAN))
            .with("bytes_row", stored / rows)
            .with("share", 100.0 * stored / (rows * unpacked)))
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        let mut cards = on_metrics(matrix, self, &["read_s", "cpu_s_million"]);
        // How many read them does not change what they take.
        let few = matrix.axes.iter().find(|axis| axis.name == SESSIONS);
        let few = few.and_then(|axis| axis.values.first());
        let few = few.map_or("", String::as_str);
        for card in on_metrics(matrix, self, &["share"]) {
            for kind in KINDS.iter().map(|kind| kind.name) {
                let mut card = card.clone();
                card.at(
                    &[(SESSIONS, few), (DOCUMENTS, kind), ("key", "end")],
                    matrix,
                );
                if !cards.contains(&card) {
                    cards.push(card);
                }
            }
        }
        cards
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.name.as_str() {
            "external" => "ALTER TABLE … ALTER COLUMN … SET STORAGE EXTERNAL",
            "lz4" => "ALTER TABLE … ALTER COLUMN … SET COMPRESSION lz4, and default_toast_compression = lz4 for new tables",
            _ => "keep pglz, the default",
        }
        .to_owned()
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        if shape.longest().is_none() {
            let table = &shape.table;
            return Err(Error::Refused(format!(
                "{table} has no column of any length: there is nothing to compress"
            )));
        }
        let shape = Some(shape.clone());
        Ok(Box::new(Self { shape }))
    }

    fn by_url(&self) -> ByUrl {
        ByUrl::InASchema
    }

    fn remarks(&self, results: &[RunResult]) -> Vec<String> {
        let fits = results
            .iter()
            .any(|result| result.environment.contains_key(FITS));
        let words = "all documents fit into this machine's memory, so that no read waited for the disk; the published ones did not (98 GB, 32 GB of memory)";
        let mut remarks: Vec<String> = fits.then(|| words.to_owned()).into_iter().collect();
        remarks.push(
            "rows that are there keep the packing they have: UPDATE … SET body = body::text::jsonb packs them again, and \
             pg_column_compression(body) shows how each is compressed"
                .to_owned(),
        );
        remarks
    }
}

/// The fact of a run whose table fits into memory.
const FITS: &str = "documents_fit_memory";

fn fits_memory(bench: &Bench<'_>, bytes: f64) -> bool {
    let facts = crate::environment::machine(bench.folder());
    let memory: Option<f64> = facts.get("memory_bytes").and_then(|text| text.parse().ok());
    memory.is_some_and(|memory| bytes < memory)
}

impl ToastCompression {
    fn documents(&self, kind: &str, scale: Scale) -> u64 {
        let of_the_article = scale.pick(600, 48_000, 30_000_000);
        let usual = match kind {
            "" | "events" => of_the_article,
            // Their size is asked, not the time that they take.
            _ => of_the_article / 4,
        };
        // As many bytes as of the usual documents, but not more rows than the table has.
        let shape = self.shape.as_ref();
        shape.map_or(usual, |shape| {
            let rows = usual.saturating_mul(BYTES) / shape.row_bytes();
            rows.min(shape.rows).max(1)
        })
    }

    /// About what a row takes unpacked.
    fn bytes(&self) -> u64 {
        let shape = self.shape.as_ref();
        shape.map_or(BYTES, TableShape::row_bytes)
    }

    /// The columns behind the number, and a query for so many rows. The longest column of a learned
    /// shape is the body.
    fn table(&self, kind: &str, rows: u64) -> (String, String) {
        let Some(shape) = &self.shape else {
            let rows = Documents::named(kind).rows(rows);
            return ("body jsonb".to_owned(), rows);
        };
        let mut renamed = shape.renamed();
        let longest = shape.longest().map(|(at, _)| at);
        if let Some(column) = longest.and_then(|at| renamed.columns.get_mut(at)) {
            column.name = "body".to_owned();
        }
        let parts = Parts::of(&renamed);
        (
            parts.declared.join(", "),
            parts.rows(&["i".to_owned()], [1, rows]),
        )
    }
}

/// Percent of the documents that are packed, all by the method of the arm; `None` before 14, which
/// does not tell.
fn packed(bench: &Bench<'_>, session: &mut Session) -> Result<Option<f64>> {
    if bench.installation().major < 14 {
        return Ok(None);
    }
    let rows = session
        .query(PACKED)
        .map_err(Error::sql("asking how documents are compressed"))?;
    let counts = rows.iter().filter_map(|row| match row.as_slice() {
        [Some(method), Some(count)] => Some((method.as_str(), count.parse().ok()?)),
        _ => None,
    });
    packed_by(&bench.arm().name, &counts.collect::<Vec<_>>()).map(Some)
}

/// Documents that a method has packed, in percent; a document of another method makes the run none
/// of this arm.
fn packed_by(arm: &str, counts: &[(&str, f64)]) -> Result<f64> {
    let other = counts
        .iter()
        .find(|(method, _)| ![arm, "none"].contains(method));
    if let Some((method, count)) = other {
        return Err(Error::Refused(format!(
            "{count} documents of the arm {arm} are compressed by {method}"
        )));
    }
    let sum = |wanted: &str| -> f64 {
        let fits = counts
            .iter()
            .filter(|(method, _)| wanted.is_empty() || *method == wanted);
        // The sum of nothing would be -0.
        fits.fold(0.0, |sum, (_, count)| sum + count)
    };
    Ok(100.0 * sum(arm) / sum("").max(1.0))
}

/// Each session runs the statement in a thread of its own; the first error is told.
fn all_at_once(sessions: &mut [Session], sql: &str) -> Result<()> {
    let answers: Vec<std::result::Result<(), SqlError>> = std::thread::scope(|scope| {
        let running: Vec<_> = sessions
            .iter_mut()
            .map(|session| scope.spawn(move || session.execute(sql)))
            .collect();
        let joined = running.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|joined| joined.unwrap_or(Err(SqlError::Gone)))
            .collect()
    });
    answers
        .into_iter()
        .try_for_each(|answer| answer.map_err(Error::sql("reading the documents")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_of_another_method_are_none_of_the_arm() {
        let percent = packed_by("lz4", &[("lz4", 75.0), ("none", 25.0)]).expect("all its own");
        assert_eq!(percent, 75.0);
        assert_eq!(
            packed_by("external", &[("none", 9.0)]).expect("all its own"),
            0.0
        );
        let copied = packed_by("lz4", &[("lz4", 75.0), ("pglz", 25.0)])
            .unwrap_err()
            .to_string();
        assert!(
            copied.contains("25 documents of the arm lz4 are compressed by pglz"),
            "{copied}"
        );
        assert!(packed_by("external", &[("pglz", 1.0)]).is_err());
    }
}
