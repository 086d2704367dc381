//! The file system below a folder (`/proc/self/mountinfo`, proc_pid_mountinfo(5)) and the queue of
//! its disk.
//!
//! ```text
//! 36 35 98:0 /root /mount/point rw,noatime shared:1 - ext4 /dev/sda1 rw,errors=continue
//!        device    where        options             type source    options of the file system
//! ```

use std::path::{Path, PathBuf};

use super::{Facts, read, zfs};

struct Mount {
    device: String,
    place: PathBuf,
    options: String,
    kind: String,
    source: String,
    deeper_options: String,
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
        "zfs" => zfs::facts(&mount.source),
        _ => Facts::new(),
    };
    facts.extend([
        ("file_system.type".to_owned(), mount.kind),
        ("file_system.source".to_owned(), mount.source),
        ("file_system.options".to_owned(), mount.options),
        (
            "file_system.deeper_options".to_owned(),
            mount.deeper_options,
        ),
    ]);
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
        deeper_options: own(&back, 2)?,
    })
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
}
