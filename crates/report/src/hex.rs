//! A page in lines of sixteen bytes, each byte with the label that covers it.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use pgclinic_model::document::HexRange;

/// Bytes in a line.
pub(crate) const LINE_BYTES: usize = 16;
/// Shorter runs of zero lines are shown.
const FOLD_LINES: usize = 3;
/// Labels are laid over each other at most so many times the page's length.
const LAYERS_MAX: usize = 16;
/// `BLCKSZ` at its largest, in bytes.
const PAGE_BYTES_MAX: usize = 32768;

/// A page and what covers each of its bytes.
pub(crate) struct Hex<'a> {
    /// The bytes.
    pub(crate) page: &'a [u8],
    /// The labels.
    pub(crate) ranges: &'a [HexRange],
    /// Index into `ranges`, by byte.
    owners: Vec<Option<usize>>,
}

/// A line, or many lines of zeros.
pub(crate) enum Line {
    /// Up to sixteen bytes.
    Bytes(Range<usize>),
    /// Nothing but zeros, and no label begins in it.
    Zeros(Range<usize>),
}

/// The bytes of a page in base64, if it is one and no longer than a page can be.
pub(crate) fn decode(base64: &str) -> Option<Vec<u8>> {
    let fits = base64.len() <= PAGE_BYTES_MAX.div_ceil(3) * 4;
    fits.then(|| STANDARD.decode(base64).ok())
        .flatten()
        .filter(|page| page.len() <= PAGE_BYTES_MAX)
}

/// Half-open offsets cut to the page.
pub(crate) fn clamp([start, end]: [u64; 2], len: usize) -> Range<usize> {
    let cut = |offset: u64| usize::try_from(offset).unwrap_or(len).min(len);
    cut(start)..cut(end).max(cut(start))
}

impl<'a> Hex<'a> {
    /// Lays labels over a page; where they overlap the later one is seen.
    pub(crate) fn new(page: &'a [u8], ranges: &'a [HexRange]) -> Self {
        let mut owners = vec![None; page.len()];
        let mut budget = page.len().saturating_mul(LAYERS_MAX);
        for (index, range) in ranges.iter().enumerate() {
            let bytes = clamp(range.bytes, page.len());
            let Some(rest) = budget.checked_sub(bytes.len()) else {
                break;
            };
            budget = rest;
            if let Some(owners) = owners.get_mut(bytes) {
                owners.fill(Some(index));
            }
        }
        Hex {
            page,
            ranges,
            owners,
        }
    }

    /// The label over a byte.
    pub(crate) fn label(&self, at: usize) -> Option<&'a HexRange> {
        let owner = self.owners.get(at).copied().flatten()?;
        self.ranges.get(owner)
    }

    fn owner(&self, at: usize) -> Option<usize> {
        self.owners.get(at).copied().flatten()
    }

    /// Whether another label than before begins here.
    fn begins(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.owner(before));
        self.owner(at).is_some_and(|owner| Some(owner) != before)
    }

    /// What begins in a line, runs of numbered labels together: `line pointer 1-4`.
    pub(crate) fn beginnings(&self, line: Range<usize>) -> Vec<String> {
        let labels = line
            .filter(|at| self.begins(*at))
            .filter_map(|at| self.label(at));
        let mut runs: Vec<(&str, Option<[u64; 2]>)> = Vec::new();
        for label in labels {
            let (stem, number) = numbered(&label.label);
            match (runs.last_mut(), number) {
                (Some((last, Some([_, end]))), Some(number))
                    if *last == stem && end.checked_add(1) == Some(number) =>
                {
                    *end = number;
                }
                _ => runs.push((stem, number.map(|number| [number, number]))),
            }
        }
        let words = runs.into_iter().map(|(stem, run)| match run {
            None => stem.to_owned(),
            Some([first, last]) if first == last => format!("{stem} {first}"),
            Some([first, last]) => format!("{stem} {first}-{last}"),
        });
        words.collect()
    }

    /// Runs of a line under one label; `also` cuts them at further borders.
    pub(crate) fn runs(
        &self,
        line: Range<usize>,
        also: &dyn Fn(usize) -> Option<usize>,
    ) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        let key = |at: usize| (self.owner(at), also(at));
        for at in line {
            match runs.last_mut() {
                Some(run) if key(run.start) == key(at) => run.end = at + 1,
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }

    /// All lines; long runs of zeros that hold no border are folded. `keep` says which bytes
    /// must be seen.
    pub(crate) fn lines(&self, keep: &dyn Fn(usize) -> bool) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut zeros: Vec<Range<usize>> = Vec::new();
        for start in (0..self.page.len()).step_by(LINE_BYTES) {
            let line = start..(start + LINE_BYTES).min(self.page.len());
            if self.is_dull(line.clone(), keep) {
                zeros.push(line);
            } else {
                fold(&mut zeros, &mut lines);
                lines.push(Line::Bytes(line));
            }
        }
        fold(&mut zeros, &mut lines);
        lines
    }

    fn is_dull(&self, line: Range<usize>, keep: &dyn Fn(usize) -> bool) -> bool {
        let zero = |at: usize| self.page.get(at) == Some(&0);
        line.into_iter()
            .all(|at| zero(at) && !self.begins(at) && !keep(at))
    }
}

fn fold(zeros: &mut Vec<Range<usize>>, lines: &mut Vec<Line>) {
    match (zeros.first(), zeros.last()) {
        (Some(first), Some(last)) if zeros.len() >= FOLD_LINES => {
            lines.push(Line::Zeros(first.start..last.end));
            zeros.clear();
        }
        _ => lines.extend(zeros.drain(..).map(Line::Bytes)),
    }
}

/// `line pointer 3` as its words and its number.
fn numbered(label: &str) -> (&str, Option<u64>) {
    match label.rsplit_once(' ') {
        Some((stem, number)) if number.bytes().all(|digit| digit.is_ascii_digit()) => number
            .parse()
            .map_or((label, None), |number| (stem, Some(number))),
        _ => (label, None),
    }
}

/// The byte as a letter, or a point.
pub(crate) fn letter(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' {
        char::from(byte)
    } else {
        '.'
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64, label: &str) -> HexRange {
        HexRange {
            bytes: [start, end],
            label: label.into(),
            part: "header".into(),
        }
    }

    #[test]
    fn zeros_are_folded_unless_something_begins_there() {
        let page = [0; 256];
        let ranges = [range(0, 8, "pd_lsn"), range(128, 132, "line pointer 1")];
        let hex = Hex::new(&page, &ranges);
        let kept: Vec<_> = hex
            .lines(&|_| false)
            .iter()
            .map(|line| match line {
                Line::Bytes(line) => (line.start, line.end),
                Line::Zeros(line) => (line.end, line.start),
            })
            .collect();
        assert_eq!(kept, [(0, 16), (128, 16), (128, 144), (256, 144)]);
    }

    #[test]
    fn numbered_labels_are_told_in_one() {
        let ranges = [
            range(0, 4, "line pointer 1"),
            range(4, 8, "line pointer 2"),
            range(8, 9, "x"),
        ];
        let hex = Hex::new(&[1; 16], &ranges);
        assert_eq!(hex.beginnings(0..16), ["line pointer 1-2", "x"]);
    }

    #[test]
    fn labels_that_lie_about_their_bytes_do_no_harm() {
        let ranges: Vec<_> = (0..100_000).map(|_| range(9, u64::MAX, "x")).collect();
        let hex = Hex::new(&[1; 32], &ranges);
        assert!(hex.label(8).is_none());
        assert!(hex.label(31).is_some());
    }
}
