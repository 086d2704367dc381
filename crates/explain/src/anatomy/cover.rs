//! Which label covers which byte: labels are laid over each other, and each byte keeps the last
//! one.

use std::ops::Range;

use pgclinic_model::document::HexRange;

/// Labels are laid over each other at most so many times the page's length.
const LAYERS_MAX: usize = 16;

/// A kind of bytes, for colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    Header,
    LinePointer,
    TupleHeader,
    TupleData,
    Special,
    Free,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Header => "header",
            Part::LinePointer => "line-pointer",
            Part::TupleHeader => "tuple-header",
            Part::TupleData => "tuple-data",
            Part::Special => "special",
            Part::Free => "free",
        }
    }
}

/// The labels of a page.
pub(super) struct Cover {
    labels: Vec<(String, Part)>,
    owners: Vec<u32>,
    budget: usize,
}

impl Cover {
    /// All bytes free.
    pub(super) fn new(len: usize) -> Self {
        Cover {
            labels: vec![("unused".into(), Part::Free)],
            owners: vec![0; len],
            budget: len.saturating_mul(LAYERS_MAX),
        }
    }

    /// Lays a label over bytes, as far as they lie on the page. When a damaged page asks for too
    /// much, labels of items are left out; the header's and line pointers' are small.
    pub(super) fn paint(&mut self, range: Range<usize>, part: Part, label: impl Into<String>) {
        let end = range.end.min(self.owners.len());
        let start = range.start.min(end);
        let small = matches!(part, Part::Header | Part::LinePointer);
        if start == end || (self.budget < end - start && !small) {
            return;
        }
        self.budget = self.budget.saturating_sub(end - start);
        let Ok(owner) = u32::try_from(self.labels.len()) else {
            return;
        };
        self.labels.push((label.into(), part));
        if let Some(owners) = self.owners.get_mut(start..end) {
            owners.fill(owner);
        }
    }

    /// Ranges in order that cover the page without gaps and overlaps.
    pub(super) fn into_ranges(self) -> Vec<HexRange> {
        let mut ranges: Vec<HexRange> = Vec::new();
        let mut last = None;
        for (owner, at) in self.owners.into_iter().zip(0u64..) {
            match ranges.last_mut() {
                Some(range) if last == Some(owner) => range.bytes[1] = at + 1,
                _ => {
                    let label = usize::try_from(owner)
                        .ok()
                        .and_then(|owner| self.labels.get(owner));
                    let (label, part) = label.cloned().unwrap_or(("unused".into(), Part::Free));
                    ranges.push(HexRange {
                        bytes: [at, at + 1],
                        label,
                        part: part.name().into(),
                    });
                }
            }
            last = Some(owner);
        }
        ranges
    }
}
