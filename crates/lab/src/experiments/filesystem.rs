//! ext4, ZFS and others: which mount, which dataset options?
//!
//! The folders are prepared by the person: each is an arm, and the cluster of its runs lies in it.

mod arm_name;

use std::path::Path;
use std::time::Duration;

use pgclinic_servers::Session;

use crate::bench::Bench;
use crate::bench_load::script;
use crate::cell::{Arm, Axis, Better, Cell, Metric, RunResult};
use crate::cost::Cost;
use crate::environment::{self, Facts};
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::load::Load;
use crate::prepared_folder::PreparedFolder;
use crate::servers_of_arms::Device;
use crate::table_profile::TableShape;

/// pgbench's TPC-B, as its manual prints it, but for the number of accounts.
const TPC_B: &str = "\\set aid random(1, :accounts * :scale)\n\
    \\set bid random(1, 1 * :scale)\n\
    \\set tid random(1, 10 * :scale)\n\
    \\set delta random(-5000, 5000)\n\
    BEGIN;\n\
    UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;\n\
    SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n\
    UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;\n\
    UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;\n\
    INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);\n\
    END;\n";

/// The experiment that runs one load on each of the prepared directories.
#[derive(Debug, Clone)]
pub struct Filesystem {
    /// Share of its bytes that data keeps when it is compressed, as learned from a table.
    kept: Option<f64>,
}

/// On pgbench's blanks, and on data that nothing compresses.
pub static FILESYSTEM: Filesystem = Filesystem { kept: None };

/// Between checkpoints the server keeps about so much WAL, which no run at the quick scale reaches.
const MAX_WAL_BYTES: u64 = 8 << 30;

/// Width of pgbench's filler.
const FILLER_BYTES: u64 = 84;

impl Experiment for Filesystem {
    fn name(&self) -> &str {
        "filesystem"
    }

    fn question(&self) -> &str {
        "Which file system, with which options, carries the most transactions?"
    }

    fn explain(&self) -> &str {
        "pgbench's TPC-B-like load on a cluster in each of the directories that you name with --folder: file systems that you \
         have made and mounted with the options to be compared. Recorded are the mount options as the kernel tells them, those of \
         the superblock too, and the kernel's settings for memory and writing; what is not as advised is listed below the decision. \
         Measured are the rate in the second half of the window, when caches have settled, the slowest hundredth, the \
         space on disk and the time to load.\n\n\
         pgbench's filler is blanks, which any compressing file system makes vanish; so the compressibility of the data is \
         an axis; with --learn-from it is that of your table. An arm is called as you say (--folder NAME=DIR), else by its file system and every option that is not the usual \
         one, for ZFS by the properties of the dataset as `zfs get` tells them. All properties of the dataset \
         and the parameters of the module are recorded where they exist. The published ZFS arm with module parameters and a \
         log device of its own is called zfs-module-and-log. Directories on one disk share it: whatever runs on one of them is felt on \
         the other, and the arm says so. Without --folder the \
         directory of the laboratory's data is the only arm, which gives figures and no comparison."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let fillers = match (self.kept, scale) {
            (Some(_), _) => vec!["blanks", "learned"],
            (None, Scale::Smallest) => vec!["blanks"],
            (None, _) => vec!["blanks", "random"],
        };
        Matrix {
            arms: vec![Arm::new(
                "data-folder",
                "the directory of the laboratory's data",
            )],
            axes: vec![Axis::new("filler", "", &fillers)],
            blocks: scale.pick(1, 6, 3),
        }
    }

    fn arms_in(&self, folders: &[PreparedFolder]) -> Option<Vec<Arm>> {
        let found: Vec<Facts> = folders
            .iter()
            .map(|folder| environment::machine(&folder.path))
            .collect();
        let names: Vec<String> = folders
            .iter()
            .zip(&found)
            .map(|(folder, facts)| {
                folder
                    .name
                    .clone()
                    .unwrap_or_else(|| arm_name::named(facts))
            })
            .collect();
        let arm = |(number, folder): (usize, &PreparedFolder)| {
            let name = names.get(number).map_or("directory", String::as_str);
            let is_only = names.iter().filter(|other| *other == name).count() == 1;
            let name = if is_only || folder.name.is_some() {
                name.to_owned()
            } else {
                format!("{name}-{}", number + 1)
            };
            let path = folder.path.display();
            let mut words = format!(
                "{path} ({})",
                found.get(number).map(kind).unwrap_or_default()
            );
            if let Some(other) = same_disk(folders, number) {
                words.push_str(&format!(", on one disk with {}", other.path.display()));
            }
            Arm::new(&name, &words).with_parameter("folder", &path.to_string())
        };
        Some(folders.iter().enumerate().map(arm).collect())
    }

    fn metrics(&self) -> Vec<Metric> {
        vec![
            Metric::timing(
                "steady_tps",
                "transactions a second in the second half",
                "1/s",
                Better::Higher,
            ),
            Metric::timing(
                "latency_p99_ms",
                "latency of the slowest hundredth",
                "ms",
                Better::Lower,
            ),
            Metric::exact("disk_bytes", "space on disk", "bytes", Better::Lower),
            Metric::timing("load_s", "time to load", "s", Better::Lower),
            Metric::timing(
                "tps",
                "transactions a second over the whole window",
                "1/s",
                Better::Higher,
            ),
        ]
    }

    fn cost(&self, _cell: &Cell, scale: Scale) -> Cost {
        Cost::seconds(scale.pick(6.0, 18.0, 400.0))
            .with_data(table_bytes(scale) + wal_bytes(scale))
            .with_connections(clients(scale))
    }

    fn base(&self, _cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        Base::empty()
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        let scale = bench.scale();
        bench.set("max_wal_size", &format!("{}GB", MAX_WAL_BYTES >> 30));
        let facts = environment::machine(bench.pgdata());
        for (name, value) in facts {
            bench.fact(&name, value);
        }
        if let Some(all) = environment::everything_of_zfs(bench.pgdata()) {
            bench.keep("zfs.txt", all.as_bytes())?;
        }
        let filler = bench.cell().at("filler").to_owned();
        let start = std::time::Instant::now();
        fill(
            &mut bench.connect()?,
            scale,
            self.noise(&filler),
            bench.seed(),
        )?;
        let load_s = start.elapsed().as_secs_f64();
        let given = [
            ("scale", i64::from(branches(scale))),
            ("accounts", i64::from(accounts(scale))),
        ];
        let script = script(TPC_B, &given);
        let window = Duration::from_secs(scale.pick(1, 10, 120));
        let mut load = Load::new(script, clients(scale), window);
        load.seed = bench.seed();
        let loaded = bench.load(&load, &["wal", "disk"])?;
        let steady = steady(&loaded.load.seconds, window.as_secs());
        Ok(loaded
            .measured()
            .with("steady_tps", steady)
            .with("load_s", load_s)
            .with("disk_bytes", disk_bytes(bench.pgdata()) as f64))
    }

    fn with_shape(&self, shape: &TableShape) -> Result<Box<dyn Experiment>> {
        let kept = Some(shape.kept());
        Ok(Box::new(Self { kept }))
    }

    fn remarks(&self, results: &[RunResult]) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for result in results.iter().filter(|result| result.is_done()) {
            for advised in environment::advice(&result.environment) {
                // What is below one arm only is said of it.
                let of_its_folder = ["barriers", "a block"];
                let is_own = of_its_folder.iter().any(|begin| advised.starts_with(begin));
                let sentence = if is_own {
                    format!("{}: {advised}", result.cell.arm)
                } else {
                    advised
                };
                if !words.contains(&sentence) {
                    words.push(sentence);
                }
            }
        }
        words
    }

    fn advice(&self, arm: &Arm) -> String {
        format!("put the data directory on {}", arm.words)
    }
}

fn branches(scale: Scale) -> u32 {
    scale.pick(1, 20, 500)
}

/// Accounts of a branch; pgbench has 100,000, and at the quick scale more branches with fewer
/// accounts, so that clients do not queue up for one.
fn accounts(scale: Scale) -> u32 {
    scale.pick(2_000, 25_000, 100_000)
}

/// The tables of pgbench with their keys.
fn table_bytes(scale: Scale) -> u64 {
    u64::from(branches(scale)) * u64::from(accounts(scale)) * 160
}

/// WAL that lies on disk at the end: rows and keys once as they are loaded, and the load's own
/// records with the pages that it first changes.
fn wal_bytes(scale: Scale) -> u64 {
    let of_the_load = scale.pick(16, 64, 4_096) << 20;
    MAX_WAL_BYTES.min(table_bytes(scale) + of_the_load)
}

fn clients(scale: Scale) -> u32 {
    scale.pick(4, 50, 50)
}

/// Another of these folders whose file system lies on the same disk.
fn same_disk(folders: &[PreparedFolder], number: usize) -> Option<&PreparedFolder> {
    let own = disk_of(&folders.get(number)?.path)?;
    let mut others = folders.iter().enumerate();
    let is_other = |(at, folder): &(usize, &PreparedFolder)| {
        *at != number && disk_of(&folder.path).as_ref() == Some(&own)
    };
    others.find(is_other).map(|(_, folder)| folder)
}

/// What tells one disk from another: its name without the partition, else the number of the device.
fn disk_of(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    if let Some(device) = Device::of(folder) {
        return Some(device.disk());
    }
    let found = std::fs::metadata(folder).ok()?;
    Some(found.dev().to_string())
}

/// The type of a file system and its options, in brackets behind a folder.
fn kind(facts: &Facts) -> String {
    let told = [
        "file_system.type",
        "file_system.options",
        "zfs.compression",
        "zfs.recordsize",
    ];
    let told = told.into_iter().filter_map(|name| facts.get(name));
    told.map(String::as_str).collect::<Vec<_>>().join(" ")
}

impl Filesystem {
    /// Bytes of a filler that cannot be compressed; the rest are blanks.
    fn noise(&self, filler: &str) -> u64 {
        match (filler, self.kept) {
            ("random", _) => FILLER_BYTES,
            ("learned", Some(kept)) => {
                pgclinic_model::whole((kept.clamp(0.0, 1.0) * FILLER_BYTES as f64).round())
            }
            _ => 0,
        }
    }
}

/// pgbench's tables, so many bytes of each filler being incompressible text.
fn fill(session: &mut Session, scale: Scale, noise: u64, seed: u64) -> Result<()> {
    let filler = match noise {
        0 => "''".to_owned(),
        noise => {
            let part =
                |salt: u64| format!("md5((i + {})::text)", seed.wrapping_add(salt) % 1_000_000);
            format!("left({} || {} || {}, {noise})", part(0), part(1), part(2))
        }
    };
    let branches = branches(scale);
    let each = accounts(scale);
    let accounts = u64::from(branches) * u64::from(each);
    let tellers = u64::from(branches) * 10;
    session
        .execute(&format!(
            "CREATE TABLE pgbench_branches (bid integer NOT NULL, bbalance integer, filler char(88)) WITH (fillfactor = 100); \
             CREATE TABLE pgbench_tellers (tid integer NOT NULL, bid integer, tbalance integer, filler char(84)) WITH (fillfactor = 100); \
             CREATE TABLE pgbench_accounts (aid integer NOT NULL, bid integer, abalance integer, filler char(84)) WITH (fillfactor = 100); \
             CREATE TABLE pgbench_history (tid integer, bid integer, aid integer, delta integer, mtime timestamp, filler char(22)); \
             INSERT INTO pgbench_branches SELECT i, 0, NULL FROM generate_series(1, {branches}) i; \
             INSERT INTO pgbench_tellers SELECT i, (i - 1) / 10 + 1, 0, NULL FROM generate_series(1, {tellers}) i; \
             INSERT INTO pgbench_accounts SELECT i, (i - 1) / {each} + 1, 0, {filler} FROM generate_series(1, {accounts}) i; \
             ALTER TABLE pgbench_branches ADD PRIMARY KEY (bid); ALTER TABLE pgbench_tellers ADD PRIMARY KEY (tid); \
             ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid)"
        ))
        .map_err(Error::sql("loading the tables"))?;
    for sql in ["VACUUM (ANALYZE)", "CHECKPOINT"] {
        session.execute(sql).map_err(Error::sql(sql))?;
    }
    Ok(())
}

/// The mean rate of the second half of the window.
fn steady(seconds: &[crate::load::SecondOfLoad], window: u64) -> f64 {
    let half = usize::try_from(window / 2).unwrap_or(0);
    let whole = usize::try_from(window).unwrap_or(0).min(seconds.len());
    let later = seconds.get(half.min(whole)..whole).unwrap_or_default();
    let rounds: u64 = later.iter().map(|second| second.rounds).sum();
    rounds as f64 / later.len().max(1) as f64
}

/// What the files really take on disk: a compressing file system tells it by blocks.
fn disk_bytes(pgdata: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files = crate::servers_of_arms::files_below(&pgdata.join("base"));
    let blocks = files
        .iter()
        .filter_map(|file| Some(file.metadata().ok()?.blocks()));
    blocks.sum::<u64>() * 512
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::SecondOfLoad;

    #[test]
    fn the_first_half_does_not_count() {
        let second = |rounds| SecondOfLoad {
            rounds,
            ..SecondOfLoad::default()
        };
        let seconds = [second(1), second(1), second(50), second(70), second(900)];
        assert_eq!(steady(&seconds, 4), 60.0);
        assert_eq!(steady(&[], 4), 0.0);
    }

    #[test]
    fn folders_on_one_disk_are_told_and_a_given_name_stays() {
        let homes =
            [tempfile::tempdir(), tempfile::tempdir()].map(|home| home.expect("a directory"));
        let folders = homes.each_ref().map(|home| PreparedFolder {
            name: Some("zfs-module-and-log".to_owned()).filter(|_| home.path() == homes[0].path()),
            path: home.path().to_path_buf(),
        });
        let arms = FILESYSTEM
            .arms_in(&folders)
            .expect("directories are its arms");
        assert_eq!(arms[0].name, "zfs-module-and-log");
        let other = format!("on one disk with {}", homes[1].path().display());
        assert!(arms[0].words.ends_with(&other), "{}", arms[0].words);
        let alone = FILESYSTEM
            .arms_in(&folders[..1])
            .expect("directories are its arms");
        assert!(
            !alone[0].words.contains("on one disk"),
            "{}",
            alone[0].words
        );
    }

    #[test]
    fn the_script_is_understood() {
        assert_eq!(
            script(TPC_B, &[("scale", 1), ("accounts", 10)]).statements(),
            7
        );
    }
}
