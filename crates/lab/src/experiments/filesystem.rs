//! ext4, xfs, ZFS: which mount, which dataset options?
//!
//! The folders are prepared by the person: each is an arm, and the cluster of its runs lies in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pgclinic_servers::Session;

use crate::bench::Bench;
use crate::bench_load::script;
use crate::cell::{Arm, Axis, Better, Cell, Metric};
use crate::cost::Cost;
use crate::environment;
use crate::error::{Error, Result};
use crate::experiment::{Base, Experiment, Matrix, Measured, Scale};
use crate::load::Load;
use crate::samplers::sampler_named;

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

/// See the module.
pub struct Filesystem;

impl Experiment for Filesystem {
    fn name(&self) -> &str {
        "filesystem"
    }

    fn question(&self) -> &str {
        "Which file system, with which options, carries the most transactions?"
    }

    fn explain(&self) -> &str {
        "pgbench's TPC-B-like load on a cluster in each of the folders that you name with --folder: file systems that you \
         have made and mounted with the options to be compared. Recorded are the mount options as the kernel tells them. \
         Measured are the rate in the second half of the window, when caches have settled, the slowest hundredth, the \
         space on disk and the time to load.\n\n\
         pgbench's filler is blanks, which any compressing file system makes vanish; so the compressibility of the data is \
         an axis. An arm is called by its file system and the options that were compared in public; what a ZFS dataset is set to \
         is not among the mount options, so give each dataset's folder a telling name. Folders on one disk share it: whatever runs on one of them is felt on the other. Without --folder the \
         folder of the laboratory's data is the only arm, which gives figures and no comparison."
    }

    fn matrix(&self, scale: Scale) -> Matrix {
        let fillers = scale.pick(
            vec!["blanks"],
            vec!["blanks", "random"],
            vec!["blanks", "random"],
        );
        Matrix {
            arms: vec![Arm::new(
                "data-folder",
                "the folder of the laboratory's data",
            )],
            axes: vec![Axis::new("filler", "", &fillers)],
            blocks: scale.pick(1, 3, 3),
        }
    }

    fn arms_in(&self, folders: &[PathBuf]) -> Option<Vec<Arm>> {
        let names: Vec<String> = folders.iter().map(|folder| name_of(folder)).collect();
        let arm = |(number, folder): (usize, &PathBuf)| {
            let name = names.get(number).map_or("folder", String::as_str);
            let is_only = names.iter().filter(|other| *other == name).count() == 1;
            let name = match is_only {
                true => name.to_owned(),
                false => format!("{name}-{}", number + 1),
            };
            let words = format!("{} ({})", folder.display(), kind(folder));
            Arm::new(&name, &words).with_parameter("folder", &folder.display().to_string())
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
        let rows = u64::from(branches(scale)) * u64::from(accounts(scale));
        Cost::seconds(scale.pick(6.0, 60.0, 400.0))
            .with_data(rows * 160)
            .with_connections(clients(scale))
    }

    fn base(&self, _cell: &Cell, _arm: &Arm, _scale: Scale) -> Base {
        Base::empty()
    }

    fn run(&self, bench: &mut Bench<'_>) -> Result<Measured> {
        let scale = bench.scale();
        bench.set("max_wal_size", "8GB");
        let facts = environment::machine(bench.pgdata());
        for (name, value) in facts {
            bench.fact(&name, value);
        }
        let filler = bench.cell().at("filler").to_owned();
        let start = std::time::Instant::now();
        fill(&mut bench.connect()?, scale, &filler, bench.seed())?;
        let load_s = start.elapsed().as_secs_f64();
        let given = [
            ("scale", i64::from(branches(scale))),
            ("accounts", i64::from(accounts(scale))),
        ];
        let script = script(TPC_B, &given);
        let window = Duration::from_secs(scale.pick(1, 20, 120));
        let mut load = Load::new(script, clients(scale), window);
        load.seed = bench.seed();
        let samplers: Vec<_> = ["wal", "checkpoints", "autovacuum", "processor", "disk"]
            .into_iter()
            .filter_map(sampler_named)
            .collect();
        let loaded = bench.load(&load, &samplers)?;
        let steady = steady(&loaded.load.seconds, window.as_secs());
        Ok(loaded
            .measured()
            .with("steady_tps", steady)
            .with("load_s", load_s)
            .with("disk_bytes", disk_bytes(bench.pgdata()) as f64))
    }

    fn advice(&self, arm: &Arm) -> String {
        format!("put the data directory on {}", arm.words)
    }
}

fn branches(scale: Scale) -> u32 {
    scale.pick(1, 20, 500)
}

/// Accounts of a branch; pgbench has 100,000.
fn accounts(scale: Scale) -> u32 {
    scale.pick(2_000, 100_000, 100_000)
}

fn clients(scale: Scale) -> u32 {
    scale.pick(4, 50, 50)
}

/// The file system with the options that were compared in public: `ext4-noatime-writeback`.
fn name_of(folder: &Path) -> String {
    let facts = environment::machine(folder);
    let fact = |name: &str| facts.get(name).map_or("", String::as_str);
    named(fact("file_system.type"), fact("file_system.options"))
}

fn named(kind: &str, options: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric();
    let mut name: String = kind.chars().filter(|c| plain(*c)).collect();
    if name.is_empty() {
        name.push_str("folder");
    }
    let has = |option: &str| options.split(',').any(|other| other == option);
    for (option, word) in [("noatime", "-noatime"), ("data=writeback", "-writeback")] {
        if has(option) {
            name.push_str(word);
        }
    }
    name
}

/// The type of the file system below a folder.
fn kind(folder: &Path) -> String {
    let facts = environment::machine(folder);
    let fact = |name: &str| facts.get(name).cloned().unwrap_or_default();
    format!(
        "{} {}",
        fact("file_system.type"),
        fact("file_system.options")
    )
}

/// pgbench's tables, with blanks or incompressible text as filler.
fn fill(session: &mut Session, scale: Scale, filler: &str, seed: u64) -> Result<()> {
    let filler = match filler {
        "random" => {
            let part =
                |salt: u64| format!("md5((i + {})::text)", seed.wrapping_add(salt) % 1_000_000);
            format!("left({} || {} || {}, 84)", part(0), part(1), part(2))
        }
        _ => "''".to_owned(),
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
    fn a_folder_is_called_by_its_file_system() {
        assert_eq!(
            named("ext4", "rw,noatime,data=writeback"),
            "ext4-noatime-writeback"
        );
        assert_eq!(named("zfs", "rw,xattr,noacl"), "zfs");
        assert_eq!(named("", ""), "folder");
    }

    #[test]
    fn the_script_is_understood() {
        assert_eq!(
            script(TPC_B, &[("scale", 1), ("accounts", 10)]).statements(),
            7
        );
    }
}
