//! One run of a program: seconds, and the peak of its memory.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::shell::{self, at};
use crate::task::Outcome;

/// Whether the files may be in memory when the clock starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    Warm,
    Cold,
}

/// What one run cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) seconds: f64,
    /// Largest resident set that the kernel recorded, as last seen before the end.
    pub(super) peak_bytes: u64,
}

/// How often the kernel's own high-water mark is read; it only grows, so little can be missed.
const INTERVAL: Duration = Duration::from_millis(2);

/// Runs to the end; an exit code other than 0 is an error.
pub(super) fn run(command: &mut Command, cache: Cache) -> Result<Sample, String> {
    run_to(command, cache, &[0])
}

/// The same where these exit codes are answers.
pub(super) fn run_to(
    command: &mut Command,
    cache: Cache,
    answers: &[i32],
) -> Result<Sample, String> {
    if cache == Cache::Cold {
        drop_caches()?;
    }
    let start = Instant::now();
    let line = shell::line(command);
    let mut child = command
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start {line}: {error}"))?;
    let status_file = PathBuf::from(format!("/proc/{}/status", child.id()));
    let ended = AtomicBool::new(false);
    let (status, peak_bytes) = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&status_file, &ended));
        let status = child.wait();
        ended.store(true, Ordering::Relaxed);
        (status, watcher.join().unwrap_or(0))
    });
    let seconds = start.elapsed().as_secs_f64();
    let status = status.map_err(|error| format!("{line}: {error}"))?;
    if status.code().is_some_and(|code| answers.contains(&code)) {
        Ok(Sample {
            seconds,
            peak_bytes,
        })
    } else {
        Err(format!("{line} ended with {status}"))
    }
}

fn watch(status_file: &PathBuf, ended: &AtomicBool) -> u64 {
    let mut peak = 0;
    while !ended.load(Ordering::Relaxed) {
        let text = std::fs::read_to_string(status_file).unwrap_or_default();
        peak = high_water(&text).unwrap_or(0).max(peak);
        std::thread::sleep(INTERVAL);
    }
    peak
}

fn high_water(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

pub(super) fn drop_caches() -> Outcome {
    shell::run(&mut Command::new("sync"))?;
    let switch = PathBuf::from("/proc/sys/vm/drop_caches");
    std::fs::write(&switch, "3\n").map_err(at(&switch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_high_water_mark_is_in_bytes() {
        assert_eq!(
            high_water("VmPeak:\t  9 kB\nVmHWM:\t   12 kB\n"),
            Some(12 * 1024)
        );
        assert_eq!(high_water("Name: x\n"), None);
    }

    #[test]
    fn failure_is_told() {
        let error = run(&mut Command::new("false"), Cache::Warm).map(|sample| sample.seconds);
        assert_eq!(error, Err("false ended with exit status: 1".into()));
    }
}
