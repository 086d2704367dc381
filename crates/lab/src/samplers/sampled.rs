//! What samplers saw.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The sum of all samplers of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// `wal.bytes`, `processor.steal_percent`, by name.
    pub metrics: BTreeMap<String, f64>,
    /// (seconds since the begin, value), by name.
    pub series: BTreeMap<String, Vec<[f64; 2]>>,
    /// What else went on, in sentences: checkpoints, autovacuum, a machine that was given away.
    pub overlaps: Vec<String>,
    /// What watching cost.
    pub costs: Vec<SamplerCost>,
}

/// What one sampler cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SamplerCost {
    /// The sampler, or `session` for the backend that served them all.
    pub name: String,
    /// How often it read.
    pub samples: u64,
    /// Processor time: of our thread, or of the backend for `session`.
    pub cpu_s: f64,
    /// From the first byte asked for to the last one read.
    pub elapsed_s: f64,
    /// Readings that failed.
    pub failed: u64,
    /// Why the first of them failed, or why there was none.
    pub trouble: Option<String>,
}

impl Sampled {
    /// One more metric.
    pub fn metric(&mut self, name: impl Into<String>, value: f64) {
        self.metrics.insert(name.into(), value);
    }

    /// One more series; an empty one is left out.
    pub fn series(&mut self, name: &str, samples: Vec<[f64; 2]>) {
        if !samples.is_empty() {
            self.series.insert(name.to_owned(), samples);
        }
    }

    /// Processor time of all samplers together, both ends.
    pub fn cpu_s(&self) -> f64 {
        self.costs.iter().map(|cost| cost.cpu_s).sum()
    }
}
