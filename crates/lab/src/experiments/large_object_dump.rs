//! What do a million large objects cost `pg_dump`? Until 16 each object has an entry of its own in
//! the archive's catalogue, and in the memory of `pg_dump`; 17 gathers neighbours of one owner into
//! one entry (`pg_dump.c`, `getLOs`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use pgclinic_servers::{Installation, Session, StopMode, everywhere};

use crate::bench::Bench;
use crate::cell::{Arm, Axis, Better, Cell, Metric, Point, RunResult};
use crate::cost::Cost;
use crate::decision::{Comparison, on_metrics};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::need::Need;
use crate::table_profile::TableShape;

mod archive;

/// The experiment that dumps large objects with several majors of `pg_dump`.
#[derive(Debug, Clone)]
pub struct LargeObjectDump {
    /// Number and size of a person's own objects.
    own: Option<(u64, u64)>,
}

/// On as many objects as in the articles.
pub static LARGE_OBJECT_DUMP: LargeObjectDump = LargeObjectDump { own: None };

/// Objects of a person's own that are made at most, by scale.
const OWN_MAX: [u64; 3] = [500, 20_000, 1_500_000];

const EXPLAIN: &str = "\
Fills a database with large objects and dumps it with the newest pg_dump that still writes an entry for each of \
them (16 and before) and with the newest that gathers them (17 and later), to the custom and to the directory format. \
Measured are the peak of pg_dump's own memory (VmHWM of its process, examined while it runs), the time, the size of \
the archive, the entries and bytes of its catalogue, and the number of files.

The server is a PostgreSQL 15, as a pg_dump refuses servers newer than itself. The programs are looked for among all \
installed servers and those that `cargo xtask servers` has made (16.2 and 18.6 come in Python wheels with all client \
programs); without one the arm is skipped.

The arm salvage reads the files of the stopped server with `pgclinic salvage`; it writes one tar file, a member for each \
object, which stands beside the custom format; for the directory format it is not run.

At the published scale all numbers of objects are tried with empty ones; with 2 kB and 1 MB an object no more than 1 GB in all, \
and a hundred owners with 50,000 and a million empty ones.

What it shows: memory and catalogue grow with the number of objects, not with their bytes; the directory format writes \
a file for each object whatever the version, so there the file system sets the time.

With --learn-from PGDATA --relation pg_catalog.pg_largeobject the objects are as many (bounded) and on average as large as yours.

Published: a million empty objects, custom 36.7 s with 16 and 34.7 s with 17, 756 and 218 MB of memory, files of 211 \
and 29 MB; directory 8:23 and 7:51 minutes, catalogue 185 and 6.9 MB, 1,000,003 and 1,001,002 files.";

/// The arm that needs no server.
const SALVAGE: &str = "salvage";

/// With many owners, each of these owns as many objects as the others.
const OWNERS: u64 = 100;

/// All objects of a database together hold no more bytes than this.
const BYTES_MAX: u64 = 1 << 30;

/// Most objects at the quick scale.
const QUICK_MAX: u64 = 10_000;

/// Objects made in one transaction.
const BATCH: u64 = 10_000;

/// How often a running `pg_dump` is looked at.
const STEP: Duration = Duration::from_millis(10);

impl Experiment for LargeObjectDump {
    fn name(&self) -> &str {
        "large-object-dump"
    }

    fn question(&self) -> &str {
        "What do a million large objects cost pg_dump?"
    }

    fn explain(&self) -> &str {
        EXPLAIN
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let arms = vec![
            Arm::new(
                "pg-dump-16",
                "pg_dump 16 or before, an entry for each object",
            )
            .on_version("15"),
            Arm::new(
                "pg-dump-17",
                "pg_dump 17 or later, entries for groups of objects",
            )
            .on_version("15"),
            Arm::new(
                SALVAGE,
                "pgclinic salvage, from the files of the stopped server",
            )
            .on_version("15"),
        ];
        let formats = Axis::new("format", "", &["custom", "directory"]);
        let hundreds: &[u64] = scale.pick(
            &[5],
            &[50, QUICK_MAX / 100],
            &[10, 500, 1_000, 2_000, 5_000, 10_000, 15_000],
        );
        let mut counts: Vec<u64> = hundreds.iter().map(|count| count * 100).collect();
        let mut bytes = scale.pick(vec![0], vec![0, 2_048], vec![0, 2_048, 1 << 20]);
        if let Some((objects, size)) = self.own {
            let [smallest, quick, published] = OWN_MAX;
            let most = objects.min(scale.pick(smallest, quick, published));
            let most = most.min(BYTES_MAX / size.max(1)).max(4);
            counts = vec![most / 4, most];
            bytes = vec![0, size.max(1)];
        }
        let owners: &[&str] = scale.pick(&["one"], &["one"], &["one", "many"]);
        let axes = vec![
            formats,
            Axis::new("objects", "objects", &counts),
            Axis::new("object-bytes", "bytes", &bytes),
            Axis::new("owners", "", owners),
        ];
        Matrix {
            arms,
            axes,
            blocks: scale.pick(1, 6, 3),
        }
    }

    /// What counts is the number of objects: all numbers are tried with empty ones, bytes only as
    /// far as they fit on a common disk (in minutes, at one place), and many owners at the smallest
    /// and the largest number of the articles.
    fn asks(&self, arm: &Arm, point: &Point, scale: Scale) -> bool {
        let at = |axis: &str| point.get(axis).map_or("", String::as_str);
        let count = |axis: &str| at(axis).parse::<u64>().unwrap_or_default();
        let (objects, bytes) = (count("objects"), count("object-bytes"));
        if arm.name == SALVAGE && at("format") == "directory" {
            return false;
        }
        match (scale, self.own) {
            (Scale::Smallest, _) | (_, Some(_)) => return true,
            (Scale::Quick, None) => {
                return bytes == 0 || (objects == QUICK_MAX && at("format") == "custom");
            }
            (Scale::Published, None) => {}
        }
        match at("owners") {
            "many" => bytes == 0 && [50_000, 1_000_000].contains(&objects),
            _ => objects.saturating_mul(bytes) <= BYTES_MAX,
        }
    }

    fn metrics(&self) -> Vec<Metric> {
        let timing = |name, words, unit| Metric::timing(name, words, unit, Better::Lower);
        let exact = |name, words, unit| Metric::exact(name, words, unit, Better::Lower);
        vec![
            timing("peak_memory_kb", "peak memory of the dump", "kB"),
            timing("dump_s", "time of the dump", "s"),
            exact(
                "entries",
                "entries in the archive's catalogue, or in the tar file",
                "",
            ),
            exact("archive_bytes", "size of the archive", "bytes"),
            exact(
                "catalogue_bytes",
                "size of toc.dat, directory format",
                "bytes",
            ),
            exact("files", "files of the archive", ""),
        ]
    }

    fn needs(&self, _cell: &Cell, arm: &Arm) -> Vec<Need> {
        let is_there = match arm.name.as_str() {
            SALVAGE => own_program().is_some(),
            dump => tools_of(dump).is_some(),
        };
        if is_there {
            Vec::new()
        } else {
            vec![Need::Missing(missing(&arm.name))]
        }
    }

    fn cost(&self, cell: &Cell, _scale: Scale) -> Cost {
        let objects: f64 = cell.number_at("objects").unwrap_or_default();
        let per_object = if cell.at("format") == "directory" {
            500e-6
        } else {
            250e-6
        };
        let (count, bytes) = (pgclinic_model::whole(objects), object_bytes(cell));
        Cost::seconds(2.0 + objects * (per_object + bytes as f64 / 50e6))
            .with_data(count.saturating_mul(bytes.saturating_add(4_096)))
            .with_memory(count.saturating_mul(1_024))
    }

    fn base(&self, cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        let (objects, bytes) = (cell.at("objects"), cell.at("object-bytes"));
        Base::shared(&format!("{objects}-{bytes}-{}", cell.at("owners")))
    }

    fn fill(&self, base: &str, _scale: Scale, _seed: u64, session: &mut Session) -> Result<()> {
        let (objects, bytes, owners) = parse_base(base)
            .ok_or_else(|| Error::Refused(format!("{base} names no base of large objects")))?;
        for owner in 1..=owners {
            execute(session, &format!("CREATE ROLE owner_{owner}"))?;
            execute(session, &format!("SET ROLE owner_{owner}"))?;
            let own = objects / owners + u64::from(owner <= objects % owners);
            for first in (0..own).step_by(usize::try_from(BATCH).unwrap_or(usize::MAX)) {
                execute(session, &make(BATCH.min(own - first), bytes))?;
            }
            execute(session, "RESET ROLE")?;
        }
        execute(session, "VACUUM (ANALYZE)")
    }

    fn fill_cost(&self, base: &str, _scale: Scale) -> Cost {
        let (objects, bytes, _) = parse_base(base).unwrap_or_default();
        let stored = objects.saturating_mul(bytes.saturating_add(300));
        Cost::seconds(2.0 + objects as f64 * 30e-6 + stored as f64 / 50e6).with_data(stored)
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        if bench.arm().name == SALVAGE {
            return salvage(bench);
        }
        let tools =
            tools_of(&bench.arm().name).ok_or_else(|| Error::Skip(missing(&bench.arm().name)))?;
        bench.fact(
            "pg_dump",
            format!("{} in {}", tools.version, tools.bindir.display()),
        );
        let place = bench.site.scratch()?;
        let archive = place.path().join("archive");
        let format = bench.cell().at("format").to_owned();
        let dumped = dump(bench, &tools, &format, &archive)?;
        let size = archive::measure(&archive)?;
        let mut listing = bench.run_as().command(&tools.bindir.join("pg_restore"));
        let entries = archive::entries(listing.arg("-l").arg(&archive))?;
        let mut measured = Measured::default()
            .with("peak_memory_kb", dumped.peak_kb as f64)
            .with("dump_s", dumped.seconds)
            .with("entries", entries as f64)
            .with("archive_bytes", size.bytes as f64)
            .with("files", size.files as f64)
            .with_series("memory_kb", dumped.memory_kb);
        if let Some(bytes) = size.catalogue_bytes {
            measured = measured.with("catalogue_bytes", bytes as f64);
        }
        Ok(measured)
    }

    fn comparisons(&self, matrix: &Matrix) -> Vec<Comparison> {
        let metrics = ["peak_memory_kb", "dump_s", "entries", "files"];
        let mut cards = on_metrics(matrix, self, &metrics);
        // Salvage writes no catalogue and one file, whatever it is held against: only memory and
        // time are alike.
        let is_alike = |metric: &str| ["peak_memory_kb", "dump_s"].contains(&metric);
        cards.retain(|card| is_alike(&card.metric) || card.candidate.arm != SALVAGE);
        for card in &mut cards {
            let format = if card.metric == "files" {
                "directory"
            } else {
                "custom"
            };
            let empty = [("format", format), ("object-bytes", "0"), ("owners", "one")];
            card.at(&empty, matrix);
            if card.candidate.arm == SALVAGE {
                // What pg_dump asks for is read by a server's process, what salvage reads is not.
                card.conditions
                    .push_str("; the server that pg_dump needs is not counted");
            }
        }
        cards
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        let own = shape.large_objects();
        if own.is_none() {
            return Err(Error::Refused(
                "large-object-dump learns from the table of large objects: --relation pg_catalog.pg_largeobject".to_owned(),
            ));
        }
        Ok(Box::new(Self { own }))
    }

    fn advice(&self, arm: &Arm) -> String {
        match arm.name.as_str() {
            "pg-dump-16" => "either pg_dump will do",
            SALVAGE => "stop the server, or take a copy or a backup of it, and: pgclinic salvage PGDATA --to DIR (a tar file of the objects by number, without owners and rights)",
            _ => "dump with pg_dump 17 or later: it also dumps older servers, and pg_restore must be as new",
        }
        .to_owned()
    }

    fn remarks(&self, results: &[RunResult]) -> Vec<String> {
        let arms: BTreeSet<&str> = results
            .iter()
            .map(|result| result.cell.arm.as_str())
            .collect();
        arms.into_iter()
            .filter_map(|arm| memory_of_an_object(results, arm))
            .collect()
    }
}

/// What each further empty object costs, from the smallest and the largest number of them in the
/// custom format.
fn memory_of_an_object(results: &[RunResult], arm: &str) -> Option<String> {
    let plain = |cell: &Cell| {
        cell.arm == arm
            && cell.at("format") == "custom"
            && object_bytes(cell) == 0
            && cell.at("owners") == "one"
    };
    let peaks = results
        .iter()
        .filter(|result| plain(&result.cell))
        .filter_map(|result| {
            Some((
                result.cell.number_at::<u64>("objects")?,
                *result.metrics.get("peak_memory_kb")?,
            ))
        });
    let peaks: BTreeMap<u64, f64> = peaks.collect();
    let ((few, low), (many, high)) = (peaks.first_key_value()?, peaks.last_key_value()?);
    let more = many.checked_sub(*few).filter(|more| *more > 0)?;
    let each = (high - low) / more as f64;
    Some(format!(
        "{arm}: each further object costs {:.0} bytes of memory, a million about {:.0} MB (between {few} and {many} objects)",
        each * 1_024.0,
        each * 1_000_000.0 / 1_024.0
    ))
}

fn object_bytes(cell: &Cell) -> u64 {
    cell.number_at("object-bytes").unwrap_or_default()
}

/// Objects, bytes of each, and owners, out of `50000-2048-one`.
fn parse_base(base: &str) -> Option<(u64, u64, u64)> {
    let mut parts = base.split('-');
    let (objects, bytes) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let owners = if parts.next()? == "many" { OWNERS } else { 1 };
    Some((objects, bytes, owners))
}

/// A statement that makes objects which do not compress.
fn make(count: u64, bytes: u64) -> String {
    let (chunks, rest) = (bytes / 32, bytes % 32);
    if bytes == 0 {
        return format!("SELECT count(lo_create(0)) FROM generate_series(1, {count})");
    }
    let noise = format!(
        "(SELECT string_agg(sha256(int8send(i * 100000 + part)), '') FROM generate_series(1, {}) part)",
        chunks + u64::from(rest > 0)
    );
    format!(
        "SELECT count(lo_from_bytea(0, substr({noise}, 1, {bytes}))) FROM generate_series(1::bigint, {count}) i"
    )
}

fn execute(session: &mut Session, sql: &str) -> Result<()> {
    session
        .execute(sql)
        .map_err(Error::sql("making large objects"))
}

/// The newest `pg_dump` of the arm's kind that is there with its `pg_restore`.
fn tools_of(arm: &str) -> Option<Installation> {
    let is_old = arm == "pg-dump-16";
    let fits = |found: &Installation| {
        // A 15 is the oldest that dumps the server of this experiment.
        let of_kind = if is_old {
            (15..=16).contains(&found.major)
        } else {
            found.major >= 17
        };
        of_kind && found.tool("pg_dump").is_some() && found.tool("pg_restore").is_some()
    };
    everywhere()
        .into_iter()
        .filter(fits)
        .max_by_key(|found| found.major)
}

fn missing(arm: &str) -> String {
    let which = match arm {
        SALVAGE => return "salvage is run by the program pgclinic".to_owned(),
        "pg-dump-16" => "15 or 16",
        _ => "17 or 18",
    };
    format!("no pg_dump {which} is here; `cargo xtask servers` brings 16.2, 17 and 18.6")
}

/// This program, unless it is one of tests.
fn own_program() -> Option<PathBuf> {
    let program = std::fs::read_link("/proc/self/exe").ok()?;
    (program.file_name()? == "pgclinic").then_some(program)
}

/// Our own way: the server is stopped, and its files are read.
fn salvage(bench: &mut Bench<'_>) -> Result<Measured> {
    let program = own_program().ok_or_else(|| Error::Skip("this is not pgclinic".to_owned()))?;
    bench.server()?;
    bench.stop(StopMode::Fast)?;
    let place = bench.site.scratch()?;
    let saved = place.path().join("saved");
    let complaints = bench.folder().join("salvage.log");
    let log = std::fs::File::create(&complaints).map_err(Error::io("create", &complaints))?;
    let mut command = Command::new(program);
    command
        .arg("salvage")
        .arg(bench.pgdata())
        .arg("--to")
        .arg(&saved)
        .args(["--database", "postgres", "--quiet", "--progress", "none"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let dumped = watch(bench, command)?.map_err(|status| {
        let said = std::fs::read_to_string(&complaints).unwrap_or_default();
        Error::Refused(format!("salvage ended with {status}: {}", said.trim_end()))
    })?;
    let (size, objects) = archive::salvaged(&saved)?;
    Ok(Measured::default()
        .with("peak_memory_kb", dumped.peak_kb as f64)
        .with("dump_s", dumped.seconds)
        .with("entries", objects as f64)
        .with("archive_bytes", size.bytes as f64)
        .with("files", size.files as f64)
        .with_series("memory_kb", dumped.memory_kb))
}

struct Dumped {
    seconds: f64,
    peak_kb: u64,
    memory_kb: Vec<[f64; 2]>,
}

fn dump(
    bench: &mut Bench<'_>,
    tools: &Installation,
    format: &str,
    archive: &Path,
) -> Result<Dumped> {
    let host = bench.server()?.socket_folder().to_path_buf();
    let complaints = bench.folder().join("pg_dump.log");
    let log = std::fs::File::create(&complaints).map_err(Error::io("create", &complaints))?;
    let mut command = bench.run_as().command(&tools.bindir.join("pg_dump"));
    command
        .args(["-U", "postgres", "-F", format, "-f"])
        .arg(archive)
        .arg("-h")
        .arg(host)
        .arg("postgres")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let dumped = watch(bench, command)?;
    match dumped {
        Ok(dumped) => Ok(dumped),
        Err(status) => {
            let said = std::fs::read_to_string(&complaints).unwrap_or_default();
            Err(Error::Refused(format!(
                "pg_dump ended with {status}: {}",
                said.trim_end()
            )))
        }
    }
}

/// Runs a program to its end and notes the peak of its memory, which the kernel keeps while it
/// lives.
fn watch(bench: &Bench<'_>, mut command: Command) -> Result<std::result::Result<Dumped, String>> {
    let program = PathBuf::from(command.get_program());
    let start = Instant::now();
    let mut child = command.spawn().map_err(Error::io("run", &program))?;
    let status_file = PathBuf::from(format!("/proc/{}/status", child.id()));
    let (mut peak_kb, mut memory_kb) = (0, Vec::new());
    loop {
        let seconds = start.elapsed().as_secs_f64();
        if let Some(ended) = child.try_wait().map_err(Error::io("wait for", &program))? {
            let dumped = Dumped {
                seconds,
                peak_kb,
                memory_kb,
            };
            return Ok(if ended.success() {
                Ok(dumped)
            } else {
                Err(ended.to_string())
            });
        }
        let status = std::fs::read_to_string(&status_file).unwrap_or_default();
        if let Some(high) = kilobytes(&status, "VmHWM:") {
            peak_kb = peak_kb.max(high);
            memory_kb.push([seconds, kilobytes(&status, "VmRSS:").unwrap_or(high) as f64]);
        }
        if let Err(interrupted) = bench.check_interrupted() {
            let _ = child.kill();
            let _ = child.wait();
            return Err(interrupted);
        }
        std::thread::sleep(STEP);
    }
}

/// The number after a name in `/proc/PID/status`.
fn kilobytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_told_by_its_name() {
        assert_eq!(parse_base("50000-2048-one"), Some((50_000, 2_048, 1)));
        assert_eq!(parse_base("50000-0-many"), Some((50_000, 0, OWNERS)));
        assert_eq!(parse_base("empty"), None);
    }

    #[test]
    fn the_published_sizes_fit_on_a_disk() {
        let options = crate::PlanOptions {
            scale: Scale::Published,
            ..crate::PlanOptions::default()
        };
        let plan = crate::Plan::make(&LARGE_OBJECT_DUMP, None, &options).expect("a plan");
        assert!(
            plan.cost.disk_bytes < 40 << 30,
            "{}",
            plan.cost.disk_bytes >> 30
        );
        assert!(
            plan.cost.seconds < 16.0 * 3600.0,
            "{}",
            plan.cost.seconds / 3600.0
        );
        let has = |objects: &str, bytes: &str, owners: &str| {
            plan.cells.iter().any(|cell| {
                (
                    cell.at("objects"),
                    cell.at("object-bytes"),
                    cell.at("owners"),
                ) == (objects, bytes, owners)
            })
        };
        assert!(has("1500000", "0", "one") && has("1000000", "0", "many"));
        assert!(has("1000", "1048576", "one") && !has("50000", "1048576", "one"));
    }

    #[test]
    fn time_entries_and_files_are_decided_too_where_they_are_measured() {
        for scale in [Scale::Smallest, Scale::Quick, Scale::Published] {
            let matrix = LARGE_OBJECT_DUMP.matrix(scale);
            let cards = LARGE_OBJECT_DUMP.comparisons(&matrix);
            let metrics: BTreeSet<&str> = cards.iter().map(|card| card.metric.as_str()).collect();
            assert_eq!(metrics.len(), 4);
            for side in cards
                .iter()
                .flat_map(|card| [&card.baseline, &card.candidate])
            {
                let arm = Arm::new(&side.arm, "");
                assert!(LARGE_OBJECT_DUMP.asks(&arm, &side.point, scale), "{side:?}");
            }
        }
    }

    #[test]
    fn memory_is_read_off_the_status_of_a_process() {
        let status = "Name:\tpg_dump\nVmHWM:\t  756000 kB\nVmRSS:\t  700000 kB\n";
        assert_eq!(kilobytes(status, "VmHWM:"), Some(756_000));
        assert_eq!(kilobytes("", "VmHWM:"), None);
    }
}
