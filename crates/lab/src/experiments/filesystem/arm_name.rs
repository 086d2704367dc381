//! What an arm is called by what lies in its directory: the file system and every option that is
//! not the usual one, `ext4-noatime-writeback`, `zfs-noatime-lz4-16k`.

use crate::environment::Facts;

/// The longest name that an arm may have.
const NAME_MAX: usize = 60;

/// Options that every mount of these file systems has, or that say nothing of speed; what ends in
/// `=` is usual whatever its value.
const USUAL: &[&str] = &[
    // Any file system.
    "rw",
    "relatime",
    "nosuid",
    "nodev",
    "noexec",
    "seclabel",
    "acl",
    "noacl",
    "posixacl",
    "user_xattr",
    "xattr",
    "errors=",
    "stripe=",
    // ext4.
    "data=ordered",
    "barrier",
    "barrier=1",
    "delalloc",
    "quota",
    "jqfmt=",
    "usrquota",
    "grpquota",
    // xfs.
    "attr2",
    "inode64",
    "logbufs=8",
    "logbsize=32k",
    "noquota",
    "sunit=",
    "swidth=",
    // btrfs.
    "ssd",
    "discard=async",
    "space_cache",
    "space_cache=v2",
    "subvolid=",
    "subvol=",
    // tmpfs, overlay, FUSE, zfs.
    "size=",
    "nr_inodes=",
    "mode=",
    "lowerdir=",
    "upperdir=",
    "workdir=",
    "index=",
    "xino=",
    "metacopy=",
    "redirect_dir=",
    "user_id=",
    "group_id=",
    "default_permissions",
    "allow_other",
    "max_read=",
    "blksize=",
    "casesensitive",
];

/// Properties of a ZFS dataset as shipped, and how another value is called.
const PROPERTIES: &[(&str, &str, &str)] = &[
    ("zfs.logbias", "latency", ""),
    ("zfs.sync", "standard", "sync-"),
    ("zfs.primarycache", "all", "cache-"),
    ("zfs.checksum", "on", "checksum-"),
    ("zfs.redundant_metadata", "all", "metadata-"),
    ("zfs.dedup", "off", "dedup-"),
];

/// The name for these facts of a directory.
pub(super) fn named(facts: &Facts) -> String {
    let fact = |name: &str| facts.get(name).map_or("", String::as_str);
    let mut words = vec![match plain(fact("file_system.type")) {
        kind if kind.is_empty() => "directory".to_owned(),
        kind => kind,
    }];
    let mut add = |word: String| {
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
        }
    };
    let options: Vec<&str> = fact("file_system.options").split(',').collect();
    // A ZFS that is mounted by FUSE tells it by the property alone.
    if options.contains(&"noatime") || fact("zfs.atime") == "off" {
        add("noatime".to_owned());
    }
    options
        .iter()
        .filter_map(|option| word_of(option))
        .for_each(&mut add);
    properties(facts).into_iter().for_each(&mut add);
    let mut name = words.join("-");
    name.truncate(NAME_MAX);
    name
}

/// The word for an option; `None` for a usual one.
fn word_of(option: &str) -> Option<String> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let has_usual_name = |usual: &&str| usual.strip_suffix('=') == Some(name);
    let is_usual = USUAL.contains(&option) || USUAL.iter().any(has_usual_name);
    // noatime includes directories.
    if is_usual || matches!(option, "noatime" | "nodiratime" | "") {
        return None;
    }
    Some(match (name, value) {
        ("barrier", "0") => "nobarrier".to_owned(),
        ("data", mode) => plain(mode),
        (name, "") => plain(name),
        (name, value) => format!("{}-{}", plain(name), plain(value)),
    })
}

fn properties(facts: &Facts) -> Vec<String> {
    let mut words = Vec::new();
    let fact = |name: &str| facts.get(name).map_or("", String::as_str);
    match fact("zfs.compression") {
        "" | "off" => {}
        // lz4 in the kernel's module, lzjb in zfs-fuse.
        "on" => words.push("compressed".to_owned()),
        other => words.push(plain(other)),
    }
    match fact("zfs.recordsize").parse::<u64>() {
        // As shipped.
        Ok(131_072) | Err(_) => {}
        Ok(bytes) => words.push(format!("{}k", bytes / 1024)),
    }
    for (name, shipped, before) in PROPERTIES {
        let value = fact(name);
        if !value.is_empty() && value != *shipped {
            words.push(format!("{before}{}", plain(value)));
        }
    }
    words
}

/// Small letters, digits and hyphens.
fn plain(text: &str) -> String {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    let parts = parts.filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("-").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named_by(facts: &[(&str, &str)]) -> String {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        named(&facts.iter().map(own).collect())
    }

    fn ext4(options: &str) -> String {
        named_by(&[
            ("file_system.type", "ext4"),
            ("file_system.options", options),
        ])
    }

    #[test]
    fn every_option_that_is_not_usual_stands_in_the_name() {
        assert_eq!(ext4("rw,relatime,errors=remount-ro"), "ext4");
        assert_eq!(ext4("rw,noatime,nodiratime,data=ordered"), "ext4-noatime");
        assert_eq!(ext4("rw,noatime,data=writeback"), "ext4-noatime-writeback");
        assert_eq!(
            ext4("rw,noatime,nobarrier,commit=60,data=journal"),
            "ext4-noatime-nobarrier-commit-60-journal"
        );
        assert_eq!(ext4("rw,barrier=0"), "ext4-nobarrier");
        let btrfs = [
            ("file_system.type", "btrfs"),
            (
                "file_system.options",
                "rw,relatime,compress=zstd:3,subvolid=5,subvol=/",
            ),
        ];
        assert_eq!(named_by(&btrfs), "btrfs-compress-zstd-3");
        assert_eq!(named_by(&[]), "directory");
    }

    #[test]
    fn the_datasets_of_the_talk_on_zfs_are_called_as_published() {
        let zfs = [
            ("file_system.type", "zfs"),
            ("file_system.options", "rw,noatime,xattr,noacl"),
            ("zfs.compression", "lz4"),
            ("zfs.recordsize", "16384"),
            ("zfs.logbias", "throughput"),
        ];
        assert_eq!(named_by(&zfs[..2]), "zfs-noatime");
        assert_eq!(named_by(&zfs[..3]), "zfs-noatime-lz4");
        assert_eq!(named_by(&zfs[..4]), "zfs-noatime-lz4-16k");
        assert_eq!(named_by(&zfs), "zfs-noatime-lz4-16k-throughput");
        let by_property = [("file_system.type", "zfs"), ("zfs.atime", "off")];
        assert_eq!(named_by(&by_property), "zfs-noatime");
    }
}
