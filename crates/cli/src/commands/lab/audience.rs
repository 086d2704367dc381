//! How a run of the laboratory is told: a bar on a terminal, a line a run elsewhere.

use std::io::Write;

use pgclinic_lab::{Audience, Cell, RunResult};

use crate::progress::Bar;

/// Tells on stderr.
pub(super) struct Telling<'a> {
    pub(super) stderr: &'a mut dyn Write,
    pub(super) bar: Bar,
    pub(super) quiet: bool,
    pub(super) lines: bool,
}

impl Telling<'_> {
    fn line(&mut self, words: &str) {
        if !self.quiet {
            self.bar.above(&mut || {
                let _unheard = writeln!(self.stderr, "lab: {words}");
            });
        }
    }
}

impl Audience for Telling<'_> {
    fn tell(&mut self, words: &str) {
        self.line(words);
    }

    fn begins(&mut self, at: usize, total: usize, cell: &Cell) {
        self.bar.at(at.saturating_sub(1), &cell.id);
        if self.lines {
            self.line(&format!("run {at} of {total}: {}", cell.id));
        }
    }

    fn ends(&mut self, result: &RunResult) {
        self.bar.step(&result.cell.id);
        if !result.is_done() {
            self.line(&format!("{} {}", result.cell.id, result.outcome.words()));
        }
    }
}
