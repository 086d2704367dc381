//! What to change about a kernel and a file system below a database, by the facts of a run: the
//! settings that Federico Campoli's talk on ZFS (POSETTE 2024) goes through, each with its reason.

use super::Facts;

/// A share of memory that waits to be written; beyond it every writer stops.
const DIRTY_RATIO_MIN: u64 = 40;

/// The share from which the kernel writes in the background.
const DIRTY_BACKGROUND_MAX: u64 = 5;

/// Memory of programs is swapped out for the page cache above this.
const SWAPPINESS_MAX: u64 = 10;

/// Sentences, each with what is so, what it does, and the command; none where all is well.
pub fn advice(facts: &Facts) -> Vec<String> {
    let all = [
        overcommit(facts),
        numa(facts),
        huge_pages(facts),
        dirty(facts),
        swap(facts),
        barriers(facts),
        blocks(facts),
    ];
    all.into_iter().flatten().collect()
}

fn number(facts: &Facts, name: &str) -> Option<u64> {
    facts.get(name)?.parse().ok()
}

fn overcommit(facts: &Facts) -> Option<String> {
    let value = number(facts, "vm.overcommit_memory").filter(|value| *value != 2)?;
    Some(format!(
        "vm.overcommit_memory is {value}: the kernel promises more memory than there is and may end the server when it is asked for; \
         with 2 a query gets \"out of memory\" instead (sysctl vm.overcommit_memory=2, vm.overcommit_ratio so that shared buffers and work_mem fit)"
    ))
}

fn numa(facts: &Facts) -> Option<String> {
    let nodes = number(facts, "numa.nodes").filter(|nodes| *nodes > 1)?;
    Some(format!(
        "memory has {nodes} NUMA nodes: shared buffers may all lie on one of them; start the server with numactl --interleave=all, or the kernel with numa=off"
    ))
}

fn huge_pages(facts: &Facts) -> Option<String> {
    number(facts, "huge_pages.reserved").filter(|pages| *pages == 0)?;
    Some(
        "no huge pages are reserved, so that shared buffers are mapped in pages of 4 kB by every session: vm.nr_hugepages and huge_pages = on \
         (`pgclinic lab run connection-memory` says what they save)"
            .to_owned(),
    )
}

fn dirty(facts: &Facts) -> Option<String> {
    // Where bytes are set, the ratios do not count.
    let in_bytes = |name: &str| number(facts, name).is_some_and(|bytes| bytes > 0);
    if in_bytes("vm.dirty_bytes") || in_bytes("vm.dirty_background_bytes") {
        return None;
    }
    let background = number(facts, "vm.dirty_background_ratio")?;
    let ratio = number(facts, "vm.dirty_ratio")?;
    if background <= DIRTY_BACKGROUND_MAX && ratio >= DIRTY_RATIO_MIN {
        return None;
    }
    Some(format!(
        "vm.dirty_background_ratio is {background} and vm.dirty_ratio {ratio}: writing begins late and then stops every writer"
    ))
}

fn swap(facts: &Facts) -> Option<String> {
    let swappiness = number(facts, "vm.swappiness").filter(|value| *value > SWAPPINESS_MAX)?;
    number(facts, "swap_bytes").filter(|bytes| *bytes > 0)?;
    Some(format!(
        "vm.swappiness is {swappiness} and there is swap: memory of sessions may be swapped out for the page cache"
    ))
}

fn barriers(facts: &Facts) -> Option<String> {
    let is_off = facts.get("file_system.barriers")? == "off";
    is_off.then(|| {
        "barriers are off: after a loss of power the disk may hold what came later and lack what came before. Never on a disk with WAL or of a \
         virtual machine, and only with data checksums"
            .to_owned()
    })
}

fn blocks(facts: &Facts) -> Option<String> {
    // A record of ZFS is written whole and elsewhere, whatever stat(2) says of its directories.
    let record = number(facts, "zfs.recordsize");
    let bytes = record.or_else(|| number(facts, "file_system.block_bytes"));
    let bytes = bytes.filter(|bytes| *bytes < 8_192)?;
    Some(format!(
        "a block of the file system has {bytes} bytes, a page of the server 8,192: a page may be half written, so full_page_writes stays on \
         (on x86 Linux takes no larger ones; ZFS does)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    /// The machine of the talk, on which nothing is left to be said but that ext4 has small blocks.
    #[test]
    fn the_kernel_of_the_talk_on_zfs_is_as_advised() {
        let talk = facts(&[
            ("vm.overcommit_memory", "2"),
            ("vm.dirty_background_ratio", "5"),
            ("vm.dirty_ratio", "99"),
            ("vm.swappiness", "0"),
            ("numa.nodes", "1"),
            ("huge_pages.reserved", "600"),
            ("file_system.barriers", "on"),
            ("file_system.block_bytes", "2048"),
            ("zfs.recordsize", "16384"),
        ]);
        assert_eq!(advice(&talk), [""; 0]);
    }

    #[test]
    fn a_kernel_as_it_is_shipped_is_advised_on_each_setting() {
        let shipped = facts(&[
            ("vm.overcommit_memory", "0"),
            ("vm.dirty_background_ratio", "10"),
            ("vm.dirty_ratio", "20"),
            ("vm.swappiness", "60"),
            ("swap_bytes", "1024"),
            ("numa.nodes", "2"),
            ("huge_pages.reserved", "0"),
            ("file_system.barriers", "off"),
            ("file_system.block_bytes", "4096"),
        ]);
        assert_eq!(advice(&shipped).len(), 7);
        assert!(advice(&Facts::new()).is_empty());
    }
}
