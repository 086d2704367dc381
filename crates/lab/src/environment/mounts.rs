//! The file system below a folder (`/proc/self/mountinfo`, proc_pid_mountinfo(5)) and the queue of
//! its disk.
//!
//! ```text
//! 36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw,data=writeback
//!        device    where        options             type source    options of the superblock
//! ```
//!
//! What is said to one mount point (`noatime`) stands in front of the dash, what is said to the
//! file system as a whole (`data=writeback`, `nobarrier`) behind it; both are options of `mount
//! -o`.

use std::path::{Path, PathBuf};

use super::{Facts, read, zfs};

struct Mount {
    device: String,
    place: PathBuf,
    options: String,
    kind: String,
    source: String,
    superblock_options: String,
}

impl Mount {
    /// All options, those of the mount point first; what both lists hold once.
    fn all_options(&self) -> String {
        let mut all: Vec<&str> = self.options.split(',').collect();
        for option in self.superblock_options.split(',') {
            if !all.contains(&option) {
                all.push(option);
            }
        }
        all.retain(|option| !option.is_empty());
        all.join(",")
    }
}

/// Facts on the mount that holds `folder`.
pub(super) fn below(folder: &Path) -> Facts {
    let folder = folder
        .canonicalize()
        .unwrap_or_else(|_| folder.to_path_buf());
    let text = read("/proc/self/mountinfo").unwrap_or_default();
    let Some(mount) = holding(&text, &folder) else {
        return Facts::new();
    };
    let mut facts = match mount.kind.as_str() {
        kind if zfs::is_zfs(kind) => zfs::facts(&mount.source),
        _ => Facts::new(),
    };
    let options = mount.all_options();
    let barriers = barriers(&mount.kind, &options);
    facts.extend([
        ("file_system.type".to_owned(), mount.kind),
        ("file_system.source".to_owned(), mount.source),
        ("file_system.options".to_owned(), options),
    ]);
    facts.extend(barriers.map(|is| ("file_system.barriers".to_owned(), is.to_owned())));
    facts.extend(block_bytes(&folder).map(|is| ("file_system.block_bytes".to_owned(), is)));
    for (name, file) in [
        ("disk.scheduler", "scheduler"),
        ("disk.rotates", "rotational"),
        ("disk.read_ahead_kb", "read_ahead_kb"),
        ("disk.write_cache", "write_cache"),
    ] {
        let value = queue(&mount.device, file);
        facts.extend(value.map(|value| (name.to_owned(), value)));
    }
    facts
}

/// The deepest mount point above a folder; the last one of equals covers the others.
fn holding(mountinfo: &str, folder: &Path) -> Option<Mount> {
    let mounts = mountinfo.lines().filter_map(parse);
    let above = mounts.filter(|mount| folder.starts_with(&mount.place));
    above.max_by_key(|mount| mount.place.components().count())
}

fn parse(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let front: Vec<&str> = front.split(' ').collect();
    let back: Vec<&str> = back.split(' ').collect();
    let own = |fields: &[&str], position: usize| fields.get(position).map(|field| plain(field));
    Some(Mount {
        device: own(&front, 2)?,
        place: own(&front, 4)?.into(),
        options: own(&front, 5)?,
        kind: own(&back, 0)?,
        source: own(&back, 1)?,
        superblock_options: own(&back, 2)?,
    })
}

/// Whether the disk is told to write its cache before what comes next; `None` for file systems that
/// have no such option.
fn barriers(kind: &str, options: &str) -> Option<&'static str> {
    let is_off = |option: &str| matches!(option, "nobarrier" | "barrier=0");
    match kind {
        "ext3" | "ext4" | "xfs" | "btrfs" if options.split(',').any(is_off) => Some("off"),
        "ext3" | "ext4" | "xfs" | "btrfs" => Some("on"),
        _ => None,
    }
}

/// The size that the file system gives for its blocks (`st_blksize` in stat(2)).
fn block_bytes(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(folder).ok()?;
    Some(found.blksize().to_string())
}

/// Blanks stand as `\040`.
fn plain(field: &str) -> String {
    field
        .replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\134", "\\")
}

/// A file of the disk's request queue; a partition's lies with its disk.
fn queue(device: &str, file: &str) -> Option<String> {
    let folder = format!("/sys/dev/block/{device}");
    let own = read(&format!("{folder}/queue/{file}"));
    own.or_else(|| read(&format!("{folder}/../queue/{file}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_mount_holds_a_folder() {
        let text = "21 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n\
            36 21 8:17 / /data\\040disk rw,noatime shared:1 - xfs /dev/sdb1 rw,attr2\n\
            37 21 0:5 / /data rw - tmpfs tmpfs rw\n";
        let mount = holding(text, Path::new("/data disk/pg")).expect("a mount");
        assert_eq!(
            (mount.kind.as_str(), mount.options.as_str()),
            ("xfs", "rw,noatime")
        );
        let root = holding(text, Path::new("/data2")).expect("a mount");
        assert_eq!(root.kind, "ext4");
    }

    /// As the kernel prints an ext4 that was mounted with noatime,data=writeback,barrier=0.
    #[test]
    fn options_of_the_superblock_are_mount_options_too() {
        let line =
            "96 27 7:0 / /mnt rw,noatime shared:55 - ext4 /dev/loop0 rw,nobarrier,data=writeback";
        let options = parse(line).expect("a mount").all_options();
        assert_eq!(options, "rw,noatime,nobarrier,data=writeback");
        assert_eq!(barriers("ext4", &options), Some("off"));
        assert_eq!(barriers("ext4", "rw"), Some("on"));
        assert_eq!(barriers("zfs", "rw"), None);
    }
}
