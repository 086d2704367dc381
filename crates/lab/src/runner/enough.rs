//! Whether the machine has what the plan needs, before anything is begun: disk, memory,
//! connections, open files.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::cell::{Cell, FOLDER};
use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::servers_of_arms::Site;

/// Left free on the disk whatever happens.
const SPARE_BYTES: u64 = 512 << 20;

/// Files that a server process may have open beside its connections.
const FILES_BESIDE: u64 = 200;

/// Refuses a plan that this machine cannot hold, with what is short by how much.
pub(super) fn check(experiment: &dyn Experiment, plan: &Plan, site: &mut Site) -> Result<()> {
    match &mut site.given {
        None => room_for_servers(experiment, plan, site)?,
        Some(given) => {
            let free = given.free_connections()?;
            let needs = u64::from(plan.cost.connections);
            refuse(needs, free, |needs, has| {
                format!(
                    "the plan needs {needs} connections and the server at the URL has {has} free: leave the largest values out with --only"
                )
            })?;
        }
    }
    // The limit that holds now is raised up to this one before clients connect.
    let files = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    enough_files(&plan.cost, files)
}

fn enough_files(cost: &Cost, files: u64) -> Result<()> {
    let connections = u64::from(cost.connections);
    refuse(connections + FILES_BESIDE, files, |_, has| {
        format!(
            "the plan needs {connections} connections and this process may open {has} files at most: raise the hard limit (ulimit -Hn), or leave the largest values out with --only"
        )
    })
}

/// Disk and memory for servers of our own.
fn room_for_servers(experiment: &dyn Experiment, plan: &Plan, site: &Site) -> Result<()> {
    for (folder, bytes) in by_disk(&by_folder(experiment, plan, &site.data_folder()?))? {
        let found = rustix::fs::statvfs(&folder)
            .map_err(|error| Error::io("examine the disk of", &folder)(error.into()))?;
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        enough_disk(bytes, &folder, free)?;
    }
    enough_memory(&plan.cost, available_memory())
}

/// What lies where at the same time: arms that are folders have their data there, the others in
/// `home`.
fn by_folder(experiment: &dyn Experiment, plan: &Plan, home: &Path) -> Vec<(PathBuf, u64)> {
    let folder_of = |cell: &Cell| {
        let arm = plan.arm(&cell.arm);
        arm.and_then(|arm| arm.parameters.get(FOLDER))
            .map(PathBuf::from)
    };
    let required = plan.cells.iter().filter(|cell| !plan.is_spare(cell));
    let mut cells: BTreeMap<Option<PathBuf>, Vec<Cell>> = BTreeMap::new();
    for cell in required {
        cells.entry(folder_of(cell)).or_default().push(cell.clone());
    }
    let needs = cells.into_iter().map(|(folder, cells)| {
        let bytes = plan.price_of(experiment, &cells).disk_bytes;
        (folder.unwrap_or_else(|| home.to_path_buf()), bytes)
    });
    needs.collect()
}

/// The same with folders of one disk taken together, under the first of them.
fn by_disk(folders: &[(PathBuf, u64)]) -> Result<Vec<(PathBuf, u64)>> {
    let mut disks: BTreeMap<u64, (PathBuf, u64)> = BTreeMap::new();
    for (folder, bytes) in folders {
        let folder = existing(folder);
        let found = std::fs::metadata(&folder).map_err(Error::io("examine", &folder))?;
        let (_, sum) = disks.entry(found.dev()).or_insert((folder, 0));
        *sum = sum.saturating_add(*bytes);
    }
    Ok(disks.into_values().collect())
}

fn enough_disk(bytes: u64, folder: &Path, free: u64) -> Result<()> {
    let needs = bytes.saturating_add(SPARE_BYTES);
    refuse(needs, free, |needs, has| {
        format!(
            "the plan needs {} MB of disk, {} MB stay free, and {} has {} MB free: plan with --disk, a smaller --scale, or another --data-folder",
            bytes >> 20,
            (needs - bytes) >> 20,
            folder.display(),
            has >> 20
        )
    })
}

fn enough_memory(cost: &Cost, available: u64) -> Result<()> {
    refuse(cost.memory_bytes, available, |needs, has| {
        format!(
            "the plan needs {} MB of memory and {} MB are available: choose a smaller --scale or fewer values with --only",
            needs >> 20,
            has >> 20
        )
    })
}

fn refuse(needs: u64, has: u64, words: impl Fn(u64, u64) -> String) -> Result<()> {
    if needs > has {
        Err(Error::Refused(words(needs, has)))
    } else {
        Ok(())
    }
}

/// The folder, or the nearest one above it that is there.
fn existing(folder: &Path) -> PathBuf {
    let found = folder.ancestors().find(|folder| folder.is_dir());
    found.unwrap_or(Path::new("/")).to_path_buf()
}

/// `MemAvailable` of `/proc/meminfo`; where it is not told, memory is not checked.
fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.map_or(u64::MAX, |kilobytes| kilobytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::experiment_named;
    use crate::plan::PlanOptions;
    use crate::prepared_folder::PreparedFolder;

    #[test]
    fn what_is_short_is_said_with_what_to_do() {
        let cost = Cost::seconds(1.0)
            .with_data(10 << 30)
            .with_connections(1_536);
        let said = |refused: Result<()>| refused.expect_err("too little").to_string();
        let disk = said(enough_disk(cost.disk_bytes, Path::new("/data"), 4 << 30));
        assert!(
            disk.contains("/data has 4096 MB free: plan with --disk"),
            "{disk}"
        );
        let memory = said(enough_memory(&cost, 64 << 20));
        assert!(memory.contains("64 MB are available"), "{memory}");
        let files = said(enough_files(&cost, 1_024));
        assert!(
            files.contains("1536 connections") && files.contains("ulimit -Hn"),
            "{files}"
        );
        assert!(enough_disk(cost.disk_bytes, Path::new("/data"), 40 << 30).is_ok());
    }

    #[test]
    fn folders_that_are_arms_need_their_own_disk_and_those_of_one_disk_share_it() {
        let home = tempfile::tempdir().expect("a directory");
        let folders = ["one", "other"].map(|name| home.path().join(name));
        for folder in &folders {
            std::fs::create_dir(folder).expect("a directory");
        }
        let experiment = experiment_named("filesystem").expect("it is registered");
        let prepared = |path: &PathBuf| PreparedFolder {
            name: None,
            path: path.clone(),
        };
        let options = PlanOptions {
            folders: folders.each_ref().map(prepared).to_vec(),
            ..PlanOptions::default()
        };
        let plan = Plan::make(experiment, None, &options).expect("a plan");
        let needs = by_folder(experiment, &plan, Path::new("/nowhere"));
        let places: Vec<&Path> = needs.iter().map(|(folder, _)| folder.as_path()).collect();
        assert_eq!(places, folders.each_ref().map(PathBuf::as_path));
        let each: u64 = needs.iter().map(|(_, bytes)| bytes).sum();
        let together = by_disk(&needs).expect("folders");
        assert_eq!(together, [(folders[0].clone(), each)]);
    }
}
