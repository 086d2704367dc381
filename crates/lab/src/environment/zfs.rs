//! What a ZFS dataset is set to, and the parameters of the kernel's module (zfsprops(7), zfs(4)).
//!
//! ```text
//! zfs get -Hp -o property,value all tank/pg      recordsize <tab> 16384
//! /sys/module/zfs/parameters/zfs_arc_max         0
//! ```

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Facts, read};

const PARAMETERS: &str = "/sys/module/zfs/parameters";

/// Properties that speed and size depend on.
const PROPERTIES: [&str; 10] = [
    "atime",
    "checksum",
    "compression",
    "dedup",
    "logbias",
    "primarycache",
    "recordsize",
    "redundant_metadata",
    "sync",
    "xattr",
];

/// A dataset of the kernel's module, or of the program zfs-fuse.
pub(super) fn is_zfs(kind: &str) -> bool {
    matches!(kind, "zfs" | "fuse.zfs")
}

/// Facts on the dataset, and every parameter of the module that a person is likely to have changed.
pub(super) fn facts(dataset: &str) -> Facts {
    let properties = said(dataset).unwrap_or_default();
    let mut facts = chosen(&properties);
    for name in [
        "zfs_arc_max",
        "zfs_arc_min",
        "zfs_txg_timeout",
        "zfs_prefetch_disable",
        "zfs_dirty_data_max",
    ] {
        let value = read(&format!("{PARAMETERS}/{name}"));
        facts.extend(value.map(|value| (format!("zfs.module.{name}"), value)));
    }
    facts
}

/// Every property and every parameter, one a line, as a raw file.
pub(super) fn everything(dataset: &str) -> String {
    let mut text = said(dataset).unwrap_or_default();
    let entries = std::fs::read_dir(Path::new(PARAMETERS))
        .into_iter()
        .flatten()
        .flatten();
    let mut lines: Vec<String> = entries
        .filter_map(|entry| {
            let value = read(&entry.path().to_string_lossy())?;
            Some(format!(
                "{}\t{value}\n",
                entry.file_name().to_string_lossy()
            ))
        })
        .collect();
    lines.sort_unstable();
    text.extend(lines);
    text
}

/// What `zfs` says; nothing where it is not installed or may not be asked.
fn said(dataset: &str) -> Option<String> {
    let mut command = Command::new("zfs");
    command
        .args(["get", "-Hp", "-o", "property,value", "all", dataset])
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = command.output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(text)
}

fn chosen(said: &str) -> Facts {
    let pairs = said.lines().filter_map(|line| line.split_once('\t'));
    let known = pairs.filter(|(name, _)| PROPERTIES.contains(name));
    known
        .map(|(name, value)| (format!("zfs.{name}"), value.trim().to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_read_off_what_zfs_says() {
        let said =
            "type\tfilesystem\nrecordsize\t16384\ncompression\tlz4\natime\toff\norg:note\ta\tb\n";
        let facts = chosen(said);
        assert_eq!(facts.len(), 3);
        assert_eq!(facts["zfs.recordsize"], "16384");
        assert_eq!(
            (
                facts["zfs.compression"].as_str(),
                facts["zfs.atime"].as_str()
            ),
            ("lz4", "off")
        );
    }
}
