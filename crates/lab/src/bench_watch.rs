//! What goes on beside a run. Checkpoints, autovacuum and stolen processor time are watched in
//! every run: over the window that the experiment names, else for as long as its server is up.
//! `watched.json` in the run's folder holds all that was seen, and what watching cost.

use crate::bench::Bench;
use crate::error::{Error, Result};
use crate::samplers::{RunningSamplers, Sampled, Sampler, sampler_named};

/// What makes a run slower than its neighbours without being asked about.
const ALWAYS: [&str; 3] = ["checkpoints", "autovacuum", "processor"];

/// The samplers of these names, and those of every run.
pub(crate) fn samplers(more: &[&str]) -> Result<Vec<&'static dyn Sampler>> {
    let mut names = ALWAYS.to_vec();
    names.extend(more.iter().filter(|name| !ALWAYS.contains(name)));
    let named = |name: &str| {
        sampler_named(name).ok_or_else(|| Error::Refused(format!("there is no sampler {name}")))
    };
    names.into_iter().map(named).collect()
}

impl Bench<'_> {
    /// Watches from here on, with these samplers too. What was seen until now belongs to the
    /// preparations and is forgotten.
    pub fn watch(&mut self, more: &[&str]) -> Result<()> {
        let samplers = samplers(more)?;
        self.watching = None;
        let session = self.connect()?;
        self.watching = Some(RunningSamplers::start(&samplers, &self.place(), session));
        Ok(())
    }

    /// The same for a server that has just come up. A run is not lost because nobody could look on.
    pub(crate) fn watch_from_the_start(&mut self) {
        if let Err(error) = self.watch(&[]) {
            self.overlap(format!("nothing was watched: {error}"));
        }
    }

    /// Ends the window that [`Bench::watch`] began and says what was seen; overlaps are noted.
    pub fn watched(&mut self) -> Sampled {
        let sampled = self.watching.take().map(RunningSamplers::stop);
        let Some(sampled) = sampled else {
            return Sampled::default();
        };
        for overlap in &sampled.overlaps {
            if !self.overlaps.contains(overlap) {
                self.overlaps.push(overlap.clone());
            }
        }
        self.seen.push(sampled.clone());
        sampled
    }

    /// Ends the last window, and keeps what was seen in all of them.
    pub(crate) fn keep_what_was_watched(&mut self) -> Result<()> {
        self.watched();
        if self.seen.is_empty() {
            return Ok(());
        }
        let json =
            serde_json::to_vec_pretty(&self.seen).expect("plain data can be written as JSON");
        self.keep("watched.json", &json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_run_watches_is_named_once() {
        let names = |more: &[&str]| -> Vec<&str> {
            let found = samplers(more).expect("samplers").into_iter();
            found.map(Sampler::name).collect()
        };
        assert_eq!(names(&[]), ALWAYS);
        assert_eq!(
            names(&["wait", "processor"]),
            ["checkpoints", "autovacuum", "processor", "wait"]
        );
        assert!(samplers(&["weather"]).is_err());
    }
}
