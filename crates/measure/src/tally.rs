//! Sums over pages.

use super::Sums;

/// What was added up.
#[derive(Clone, Default)]
pub(super) struct Tally {
    pub(super) sums: Vec<Sums>,
    /// By column and measure.
    pub(super) columns: Vec<Vec<Sums>>,
    pub(super) pages: u64,
    pub(super) empty_pages: u64,
    pub(super) broken_pages: u64,
}

impl Tally {
    /// Pages that could not be read.
    pub(super) fn add_unread(&mut self, pages: u64) {
        self.pages += pages;
        self.broken_pages += pages;
    }

    pub(super) fn absorb(&mut self, other: &Tally) {
        absorb_all(&mut self.sums, &other.sums);
        let columns = self.columns.len().max(other.columns.len());
        self.columns.resize(columns, Vec::new());
        for (own, more) in self.columns.iter_mut().zip(&other.columns) {
            absorb_all(own, more);
        }
        self.pages += other.pages;
        self.empty_pages += other.empty_pages;
        self.broken_pages += other.broken_pages;
    }

    /// As if the whole relation had been seen.
    pub(super) fn scaled(&self, times: f64) -> Tally {
        let grown = |amount: u64| (amount as f64 * times).round() as u64;
        let all = |sums: &Vec<Sums>| sums.iter().map(|sums| sums.scaled(times)).collect();
        Tally {
            sums: all(&self.sums),
            columns: self.columns.iter().map(all).collect(),
            pages: grown(self.pages),
            empty_pages: grown(self.empty_pages),
            broken_pages: grown(self.broken_pages),
        }
    }
}

fn absorb_all(own: &mut Vec<Sums>, more: &[Sums]) {
    own.resize(own.len().max(more.len()), Sums::default());
    for (sums, more) in own.iter_mut().zip(more) {
        sums.absorb(more);
    }
}
