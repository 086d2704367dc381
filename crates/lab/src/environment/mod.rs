//! The machine and the server of a run as facts by name, so that two runs can be compared word by
//! word.
//!
//! ```text
//! cpu.model       "Intel(R) Xeon(R) …"       file_system.type     "ext4"
//! cpu.count       "2"                        file_system.options  "rw,relatime"
//! kernel          "6.1.0-18-amd64"           build.options        "'--with-llvm' …"
//! ```
//!
//! What cannot be read is left out. Nothing in here names a host, an address or a person.

mod advice;
mod mounts;
mod zfs;

pub use advice::advice;

use std::collections::BTreeMap;
use std::path::Path;

use pgclinic_servers::{Session, SqlError};

/// Files of `/proc/sys/vm` that a database feels.
const KERNEL_SETTINGS: [&str; 8] = [
    "dirty_background_bytes",
    "dirty_background_ratio",
    "dirty_bytes",
    "dirty_ratio",
    "overcommit_memory",
    "overcommit_ratio",
    "swappiness",
    "zone_reclaim_mode",
];

/// Facts by name.
pub type Facts = BTreeMap<String, String>;

/// The machine, and the file system below `folder`.
pub fn machine(folder: &Path) -> Facts {
    let mut facts = Facts::new();
    let mut put = |name: &str, value: Option<String>| {
        let value = value.filter(|value| !value.is_empty());
        facts.extend(value.map(|value| (name.to_owned(), value)));
    };
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let count = std::thread::available_parallelism().ok();
    put("kernel", read("/proc/sys/kernel/osrelease"));
    put("cpu.model", cpu_model(&cpuinfo));
    put("cpu.count", count.map(|count| count.to_string()));
    put(
        "memory_bytes",
        bytes_of("MemTotal:", &read("/proc/meminfo").unwrap_or_default()),
    );
    put("virtual_machine", Some(virtual_machine(&cpuinfo)));
    put(
        "clock_source",
        read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    );
    put(
        "cpu.governor",
        read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
    );
    let huge = read("/sys/kernel/mm/transparent_hugepage/enabled");
    put("huge_pages.transparent", huge.as_deref().and_then(chosen));
    put("huge_pages.reserved", read("/proc/sys/vm/nr_hugepages"));
    put("numa.nodes", numa_nodes());
    put("numa.balancing", read("/proc/sys/kernel/numa_balancing"));
    put(
        "swap_bytes",
        bytes_of("SwapTotal:", &read("/proc/meminfo").unwrap_or_default()),
    );
    for name in KERNEL_SETTINGS {
        put(&format!("vm.{name}"), read(&format!("/proc/sys/vm/{name}")));
    }
    facts.extend(mounts::below(folder));
    facts
}

/// Every property of the ZFS dataset below `folder` and every parameter of the module, one a line;
/// `None` on other file systems.
pub fn everything_of_zfs(folder: &Path) -> Option<String> {
    let facts = mounts::below(folder);
    let is_zfs = facts
        .get("file_system.type")
        .is_some_and(|kind| zfs::is_zfs(kind));
    let dataset = facts.get("file_system.source").filter(|_| is_zfs);
    dataset.map(|dataset| zfs::everything(dataset))
}

/// What the server was built with. Its version and settings are noted where it is started.
pub fn server(session: &mut Session) -> Result<Facts, SqlError> {
    let mut facts = Facts::new();
    let wanted =
        "SELECT name, setting FROM pg_config() WHERE name IN ('CONFIGURE', 'CFLAGS', 'CC')";
    for row in session.query(wanted)? {
        if let [Some(name), Some(value)] = row.as_slice() {
            let name = match name.as_str() {
                "CONFIGURE" => "build.options",
                "CFLAGS" => "build.flags",
                _ => "build.compiler",
            };
            facts.insert(name.to_owned(), value.clone());
        }
    }
    Ok(facts)
}

fn read(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// `model name` of the first processor; ARM has none and gives numbers.
fn cpu_model(cpuinfo: &str) -> Option<String> {
    let field = |name: &str| {
        let mut lines = cpuinfo.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.split_once(':'));
        found.map(|(_, value)| value.trim().to_owned())
    };
    field("model name").or_else(|| {
        let (maker, part) = (field("CPU implementer")?, field("CPU part")?);
        Some(format!("ARM implementer {maker} part {part}"))
    })
}

/// A line of `/proc/meminfo` in bytes.
fn bytes_of(name: &str, meminfo: &str) -> Option<String> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some((kilobytes * 1024).to_string())
}

/// Memories of processors: more than one where some memory is nearer than other.
fn numa_nodes() -> Option<String> {
    let entries = std::fs::read_dir("/sys/devices/system/node").ok()?;
    let is_node = |name: &str| {
        name.strip_prefix("node")
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let nodes = names.filter(|name| name.to_str().is_some_and(is_node));
    Some(nodes.count().max(1).to_string())
}

/// Whether a hypervisor is below us, and whose. It may hide; a container is said too.
fn virtual_machine(cpuinfo: &str) -> String {
    let mut flags = cpuinfo.lines().filter(|line| line.starts_with("flags"));
    let hypervisor = flags
        .next()
        .is_some_and(|flags| flags.split_whitespace().any(|flag| flag == "hypervisor"));
    let vendor = read("/sys/class/dmi/id/sys_vendor");
    let product = read("/sys/class/dmi/id/product_name");
    let named: Vec<String> = [vendor, product].into_iter().flatten().collect();
    let mut words = match (hypervisor, named.join(" ")) {
        (true, name) if name.is_empty() => "yes".to_owned(),
        (true, name) => format!("yes: {name}"),
        (false, _) => "none seen".to_owned(),
    };
    if Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists() {
        words.push_str(", in a container");
    }
    words
}

/// The word in brackets of `always [madvise] never`.
fn chosen(choices: &str) -> Option<String> {
    let (_, rest) = choices.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_a_kernel_processors_and_a_file_system() {
        let facts = machine(Path::new("/"));
        for name in [
            "kernel",
            "cpu.count",
            "memory_bytes",
            "virtual_machine",
            "vm.overcommit_memory",
            "vm.dirty_ratio",
            "vm.swappiness",
            "numa.nodes",
            "file_system.type",
            "file_system.block_bytes",
        ] {
            assert!(facts.contains_key(name), "{name} of {facts:?}");
        }
    }

    #[test]
    fn words_are_taken_out_of_the_kernels_files() {
        assert_eq!(chosen("always [madvise] never").as_deref(), Some("madvise"));
        let total = bytes_of("MemTotal:", "MemTotal:  16 kB\nSwapTotal: 0 kB\n");
        assert_eq!(total.as_deref(), Some("16384"));
        let x86 = "processor\t: 0\nmodel name\t: Xeon: fast\n";
        assert_eq!(cpu_model(x86).as_deref(), Some("Xeon: fast"));
        let guest = virtual_machine("flags\t\t: fpu hypervisor sse\n");
        assert!(guest.starts_with("yes"), "{guest}");
    }
}
