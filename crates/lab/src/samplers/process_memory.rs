//! Memory of client backends, as the kernel counts it (`/proc/PID/smaps_rollup`, else `smaps`).
//!
//! Resident memory counts shared buffers in every process that touched them. Private memory is what
//! would be free if the process ended; proportional memory shares each page among those who map it,
//! so that it can be added up.

use std::time::Duration;

use pgclinic_servers::Session;

use super::proc_files::kilobytes;
use super::{ReadingError, Sampled, Sampler, Sampling, WatchedServer, text};

/// Backends whose memory is read; the kernel walks all page tables of each.
const BACKENDS_MAX: usize = 8;

/// The memory of one process, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Its own: clean and dirty pages that nobody else maps.
    pub private_bytes: u64,
    /// Its own, and its part of each shared page.
    pub proportional_bytes: u64,
    /// Every page that it maps and that is in memory.
    pub resident_bytes: u64,
    /// Swapped out.
    pub swapped_bytes: u64,
}

/// The memory of a process, which must be ours, or we root.
pub fn memory_of(pid: u32) -> std::io::Result<Memory> {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    let text = read("smaps_rollup").or_else(|_| read("smaps"))?;
    let sum = |name| kilobytes(&text, name).unwrap_or(0);
    Ok(Memory {
        private_bytes: sum("Private_Clean") + sum("Private_Dirty") + sum("Private_Hugetlb"),
        proportional_bytes: sum("Pss"),
        resident_bytes: sum("Rss"),
        swapped_bytes: sum("Swap"),
    })
}

const SQL: &str = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' \
    AND pid <> pg_backend_pid() ORDER BY backend_start, pid LIMIT 8";

/// Samples the memory of client backends.
pub struct ProcessMemory;

#[derive(Default)]
struct Readings {
    private: Vec<[f64; 2]>,
    proportional: Vec<[f64; 2]>,
    most_private: f64,
}

impl Sampler for ProcessMemory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn about(&self) -> &'static str {
        "Reads smaps_rollup of the eight oldest client backends: private and proportional memory of a backend."
    }

    fn cost(&self) -> &'static str {
        "Each second one statement, and a walk over the page tables of eight backends: about 0.1 ms for each, more with \
         large shared buffers on small pages."
    }

    fn every(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn missing(&self, place: &WatchedServer) -> Option<String> {
        place.not_ours()
    }

    fn open(&self, _place: &WatchedServer) -> Box<dyn Sampling> {
        Box::new(Readings::default())
    }
}

impl Sampling for Readings {
    fn sample(&mut self, at: f64, session: &mut Session) -> Result<(), ReadingError> {
        let rows = session.query(SQL)?;
        let pids = rows.iter().filter_map(|row| text(row, 0).parse().ok());
        // A backend may end between the two looks.
        let memories: Vec<Memory> = pids
            .take(BACKENDS_MAX)
            .filter_map(|pid| memory_of(pid).ok())
            .collect();
        if memories.is_empty() {
            return if rows.is_empty() {
                Ok(())
            } else {
                Err(ReadingError(
                    "the kernel does not show the memory of backends to us".to_owned(),
                ))
            };
        }
        let mean = |of: fn(&Memory) -> u64| {
            memories.iter().map(of).sum::<u64>() as f64 / memories.len() as f64
        };
        self.private.push([at, mean(|memory| memory.private_bytes)]);
        self.proportional
            .push([at, mean(|memory| memory.proportional_bytes)]);
        let most = memories.iter().map(|memory| memory.private_bytes).max();
        self.most_private = self.most_private.max(most.unwrap_or(0) as f64);
        Ok(())
    }

    fn finish(self: Box<Self>, _seconds: f64, sampled: &mut Sampled) {
        if let (Some(private), Some(proportional)) = (self.private.last(), self.proportional.last())
        {
            sampled.metric("memory.private_bytes", private[1]);
            sampled.metric("memory.proportional_bytes", proportional[1]);
            sampled.metric("memory.private_bytes_max", self.most_private);
        }
        sampled.series("memory.private_bytes", self.private);
        sampled.series("memory.proportional_bytes", self.proportional);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_told() {
        let memory = memory_of(std::process::id()).expect("our own smaps");
        assert!(memory.private_bytes > 0 && memory.private_bytes <= memory.resident_bytes);
    }
}
