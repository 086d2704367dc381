//! The kernel's own figures, out of `/proc` (`Documentation/filesystems/proc.rst` of Linux).

/// Ticks of a second in `/proc/*/stat`: `USER_HZ`, 100 on every machine that PostgreSQL is built
/// for.
const TICKS: f64 = 100.0;

/// Processor time that a process has used, both in user and in kernel mode: in nanoseconds where
/// the kernel counts them (`Documentation/scheduler/sched-stats.rst`), else in ticks. Of a process
/// with threads that of the first one, which is all of a server's processes.
pub(crate) fn cpu_seconds(pid: u32) -> Option<f64> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let counted = read("schedstat").and_then(|text| nanoseconds_of(&text));
    counted.or_else(|| cpu_of(&read("stat")?))
}

/// The first number of `time on a processor, time in the queue, times on a processor`; a kernel
/// that does not count says 0.
fn nanoseconds_of(schedstat: &str) -> Option<f64> {
    let nanoseconds: u64 = schedstat.split_whitespace().next()?.parse().ok()?;
    (nanoseconds > 0).then_some(nanoseconds as f64 / 1e9)
}

/// Fields 14 and 15, counted after the name, which may hold blanks and parentheses.
fn cpu_of(stat: &str) -> Option<f64> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace().skip(11);
    let user: f64 = fields.next()?.parse().ok()?;
    let system: f64 = fields.next()?.parse().ok()?;
    Some((user + system) / TICKS)
}

/// A line such as `Pss:   120 kB` in bytes; lines of the same name are added up, as `smaps` has one for each mapping.
pub(super) fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let mut found = None;
    for line in text.lines() {
        let value = line
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix(':'));
        let Some(value) = value else { continue };
        let number: u64 = value.split_whitespace().next()?.parse().ok()?;
        found = Some(found.unwrap_or(0) + number * 1024);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (postgres: a) b) S 1 7 7 0 -1 4194560 1 0 0 0 150 50 0 0 20 0 1 0 9 1 2";
        assert_eq!(cpu_of(stat), Some(2.0));
    }

    #[test]
    fn nanoseconds_come_first_and_ticks_where_there_are_none() {
        assert_eq!(
            nanoseconds_of("2500000000 700 12\n").map(|seconds| seconds * 2.0),
            Some(5.0)
        );
        assert_eq!(nanoseconds_of("0 0 0\n"), None);
        assert!(cpu_seconds(std::process::id()).is_some());
        assert_eq!(cpu_seconds(u32::MAX), None);
    }

    #[test]
    fn mappings_are_added_up() {
        let smaps = "00-01 r--p\nPss:       4 kB\nPss_Dirty: 9 kB\n01-02 r--p\nPss:       8 kB\n";
        assert_eq!(kilobytes(smaps, "Pss"), Some(12 * 1024));
        assert_eq!(kilobytes(smaps, "Swap"), None);
    }
}
