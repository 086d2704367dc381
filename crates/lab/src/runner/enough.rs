//! Whether the machine has what the plan needs, before anything is begun: disk, memory, connections, open files.

use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use crate::cost::Cost;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::servers_of_arms::Site;

/// Left free on the disk whatever happens.
const SPARE_BYTES: u64 = 512 << 20;

/// Files that a server process may have open beside its connections.
const FILES_BESIDE: u64 = 200;

/// Refuses a plan that this machine cannot hold, with what is short by how much.
pub(super) fn check(plan: &Plan, site: &mut Site) -> Result<()> {
    match &mut site.given {
        None => room_for_servers(plan, site)?,
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
    let files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    enough_files(&plan.cost, files)
}

fn enough_files(cost: &Cost, files: u64) -> Result<()> {
    let connections = u64::from(cost.connections);
    refuse(connections + FILES_BESIDE, files, |_, has| {
        format!(
            "the plan needs {connections} connections and this process may open {has} files: raise the limit with ulimit -n, or leave the largest values out with --only"
        )
    })
}

/// Disk and memory for servers of our own.
fn room_for_servers(plan: &Plan, site: &Site) -> Result<()> {
    let of_arms = plan
        .matrix
        .arms
        .iter()
        .filter_map(|arm| arm.parameters.get("folder"));
    let mut folders: Vec<PathBuf> = of_arms.map(PathBuf::from).collect();
    folders.push(existing(&site.data_folder()?));
    for folder in &folders {
        enough_disk(&plan.cost, folder, free_bytes(folder)?)?;
    }
    enough_memory(&plan.cost, available_memory())
}

fn free_bytes(folder: &Path) -> Result<u64> {
    let found = rustix::fs::statvfs(folder)
        .map_err(|error| Error::io("look at the disk of", folder)(error.into()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

fn enough_disk(cost: &Cost, folder: &Path, free: u64) -> Result<()> {
    let needs = cost.disk_bytes.saturating_add(SPARE_BYTES);
    refuse(needs, free, |needs, has| {
        format!(
            "the plan needs {} MB of disk and {} has {} MB free: plan with --disk, a smaller --scale, or another --data-folder",
            needs >> 20,
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
    match needs > has {
        true => Err(Error::Refused(words(needs, has))),
        false => Ok(()),
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

    #[test]
    fn what_is_short_is_said_with_what_to_do() {
        let cost = Cost::seconds(1.0)
            .with_data(10 << 30)
            .with_connections(1_536);
        let said = |refused: Result<()>| refused.expect_err("too little").to_string();
        let disk = said(enough_disk(&cost, Path::new("/data"), 4 << 30));
        assert!(
            disk.contains("/data has 4096 MB free: plan with --disk"),
            "{disk}"
        );
        let memory = said(enough_memory(&cost, 64 << 20));
        assert!(memory.contains("64 MB are available"), "{memory}");
        let files = said(enough_files(&cost, 1_024));
        assert!(
            files.contains("1536 connections") && files.contains("ulimit -n"),
            "{files}"
        );
        assert!(enough_disk(&cost, Path::new("/data"), 40 << 30).is_ok());
    }
}
