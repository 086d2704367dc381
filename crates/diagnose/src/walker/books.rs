//! What a run has seen so far: the ledger, the findings, the evidence.

use std::collections::BTreeMap;

use pgclinic_cluster::{Cluster, Trouble};

use crate::document::{Coverage, NotChecked, RelationSummary};
use crate::findings::Findings;

/// Ranges of damaged blocks kept for one fork; beyond them, near ones are joined.
const RANGES_MAX: usize = 10_000;

/// Damaged blocks of one fork.
#[derive(Clone, Default, Debug)]
pub(crate) struct DamagedBlocks {
    ranges: BTreeMap<u64, u64>,
}

impl DamagedBlocks {
    /// Adds one block.
    pub(crate) fn add(&mut self, block: u64) {
        self.add_range(block, block + 1);
    }

    fn add_range(&mut self, mut start: u64, mut end: u64) {
        if let Some((before, its_end)) = self
            .ranges
            .range(..=start)
            .next_back()
            .map(|(a, b)| (*a, *b))
            && its_end >= start
        {
            self.ranges.remove(&before);
            (start, end) = (before, end.max(its_end));
        }
        while let Some((next, its_end)) =
            self.ranges.range(start..=end).next().map(|(a, b)| (*a, *b))
        {
            self.ranges.remove(&next);
            end = end.max(its_end);
        }
        self.ranges.insert(start, end);
    }

    pub(crate) fn absorb(&mut self, other: &DamagedBlocks) {
        for (start, end) in &other.ranges {
            self.add_range(*start, *end);
        }
    }

    /// In order, at most so many that a document can hold them.
    pub(crate) fn ranges(&self) -> Vec<[u64; 2]> {
        let mut ranges: Vec<[u64; 2]> = self
            .ranges
            .iter()
            .map(|(start, end)| [*start, *end])
            .collect();
        let mut gap = 1;
        while ranges.len() > RANGES_MAX {
            let mut joined: Vec<[u64; 2]> = Vec::new();
            for [start, end] in ranges {
                match joined.last_mut() {
                    Some(last) if start.saturating_sub(last[1]) <= gap => last[1] = end,
                    _ => joined.push([start, end]),
                }
            }
            ranges = joined;
            gap *= 2;
        }
        ranges
    }
}

/// A damaged page, by path and block.
pub(crate) type Pages = BTreeMap<(String, u32), Vec<u8>>;

/// The books.
pub(crate) struct Books {
    pub(crate) coverage: Coverage,
    pub(crate) findings: Findings,
    pub(crate) relations: Vec<RelationSummary>,
    pub(crate) evidence: Pages,
    pub(crate) interrupted: bool,
}

impl Books {
    pub(crate) fn new() -> Self {
        Books {
            coverage: Coverage::default(),
            findings: Findings::default(),
            relations: Vec::new(),
            evidence: Pages::new(),
            interrupted: false,
        }
    }

    /// Tells what could not be read of names and catalogs.
    pub(crate) fn troubles(&mut self, troubles: &[Trouble]) {
        for trouble in troubles {
            self.not_checked(super::not_checked(trouble));
        }
    }

    /// Tells it once.
    pub(crate) fn not_checked(&mut self, entry: NotChecked) {
        if !self.coverage.not_checked.contains(&entry) {
            self.coverage.not_checked.push(entry);
        }
    }

    /// Books a small file that a check of the whole cluster has read.
    pub(crate) fn file(&mut self, cluster: &Cluster, path: &str) {
        let Ok(len) = cluster.source().len(path) else {
            return;
        };
        self.coverage.bytes_seen += len;
        self.coverage.bytes_checked += len;
    }

    /// Books the small files of a database's folder.
    pub(crate) fn small_files(&mut self, cluster: &Cluster, folder: &str) {
        self.file(cluster, &format!("{folder}/PG_VERSION"));
        self.file(cluster, &format!("{folder}/pg_filenode.map"));
    }

    /// Keeps a page as evidence if it is among the first ones.
    pub(crate) fn keep_evidence(
        evidence: &mut Pages,
        max: usize,
        path: &str,
        block: u32,
        page: &[u8],
    ) {
        let key = (path.to_owned(), block);
        if evidence.len() >= max
            && evidence
                .last_key_value()
                .is_none_or(|(last, _)| *last <= key)
        {
            return;
        }
        evidence.insert(key, page.to_vec());
        if evidence.len() > max {
            evidence.pop_last();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_ranges_become_one() {
        let mut blocks = DamagedBlocks::default();
        for block in [7, 3, 4, 9, 8, 3] {
            blocks.add(block);
        }
        assert_eq!(blocks.ranges(), [[3, 5], [7, 10]]);
    }
}
