//! What runs cost, said before they are made.

use serde::{Deserialize, Serialize};

/// An estimate for one run, or the sum over many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Time.
    pub seconds: f64,
    /// Space that is taken at the same time.
    pub disk_bytes: u64,
    /// What the disk has to write; it wears flash.
    pub written_bytes: u64,
    /// Memory beside the page cache.
    pub memory_bytes: u64,
    /// Connections at the same time.
    pub connections: u32,
}

/// An empty cluster with its first WAL segment.
const CLUSTER_BYTES: u64 = 64 << 20;

impl Cost {
    /// So much time on a cluster that holds next to nothing.
    pub fn seconds(seconds: f64) -> Self {
        Self {
            seconds,
            disk_bytes: CLUSTER_BYTES,
            written_bytes: CLUSTER_BYTES,
            memory_bytes: 256 << 20,
            connections: 5,
        }
    }

    /// The same with this much more data, written once.
    #[must_use]
    pub fn with_data(mut self, bytes: u64) -> Self {
        self.disk_bytes = self.disk_bytes.saturating_add(bytes);
        self.written_bytes = self.written_bytes.saturating_add(bytes);
        self
    }

    /// The same with so many connections.
    #[must_use]
    pub fn with_connections(mut self, connections: u32) -> Self {
        self.connections = connections;
        self
    }

    /// The same with this much memory.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// One after the other: times and writes add up, the rest is used anew.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            seconds: self.seconds + next.seconds,
            disk_bytes: self.disk_bytes.max(next.disk_bytes),
            written_bytes: self.written_bytes.saturating_add(next.written_bytes),
            memory_bytes: self.memory_bytes.max(next.memory_bytes),
            connections: self.connections.max(next.connections),
        }
    }

    /// One beside the other: space adds up too.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        Self {
            disk_bytes: self.disk_bytes.saturating_add(other.disk_bytes),
            ..self.then(other)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_reuse_their_space_and_bases_stay() {
        let run = Cost::seconds(3.0).with_data(100);
        let runs = run.then(run);
        assert_eq!((runs.seconds, runs.disk_bytes), (6.0, run.disk_bytes));
        assert_eq!(runs.written_bytes, 2 * run.written_bytes);
        assert_eq!(run.beside(run).disk_bytes, 2 * run.disk_bytes);
    }
}
