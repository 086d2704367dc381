//! What is read of a fork.

use std::ops::Range;

use pgclinic_cluster::{Build, ForkFiles};

/// A fork to read. The engine knows no catalog: `number` is the consumer's own and comes back with
/// every call.
pub struct ForkTask<'a> {
    /// What the consumer calls it.
    pub number: usize,
    /// Its files.
    pub files: &'a ForkFiles,
    /// Sizes of its pages and segments.
    pub build: Build,
    pub(crate) ranges: Vec<FileRange>,
}

/// A range of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileRange {
    /// From the root of the data directory.
    pub path: String,
    /// Number of the segment.
    pub segment: u32,
    /// Where it begins in the file, at a page.
    pub offset: u64,
    /// Its bytes.
    pub len: u64,
    /// The block at its begin, counted through the fork.
    pub first_block: u64,
}

impl<'a> ForkTask<'a> {
    /// All of it.
    pub fn whole(number: usize, files: &'a ForkFiles, build: Build) -> Self {
        Self::after(number, files, build, &|_| 0)
    }

    /// From where an earlier pass ended in each file; what it has done whole is not read.
    pub fn after(
        number: usize,
        files: &'a ForkFiles,
        build: Build,
        done: &dyn Fn(&str) -> u64,
    ) -> Self {
        let block = u64::from(build.block_size).max(1);
        let segments = files.segments.iter().filter_map(|segment| {
            let path = files.path(segment.number);
            let offset = done(&path);
            let len = segment.len.checked_sub(offset).filter(|len| *len > 0)?;
            let first = u64::from(segment.number).saturating_mul(build.segment_blocks());
            Some(FileRange {
                path,
                segment: segment.number,
                offset,
                len,
                first_block: first.saturating_add(offset / block),
            })
        });
        ForkTask {
            number,
            files,
            build,
            ranges: segments.collect(),
        }
    }

    /// Groups of blocks, each cut at the end of its segment.
    pub fn groups(
        number: usize,
        files: &'a ForkFiles,
        build: Build,
        groups: &[Range<u64>],
    ) -> Self {
        let block = u64::from(build.block_size);
        let per_segment = build.segment_blocks().max(1);
        let ranges = groups.iter().map(|group| {
            let segment = u32::try_from(group.start / per_segment).unwrap_or(u32::MAX);
            let within = group.start % per_segment;
            let blocks = group.end.saturating_sub(group.start);
            FileRange {
                path: files.path(segment),
                segment,
                offset: within * block,
                len: blocks.min(per_segment - within) * block,
                first_block: group.start,
            }
        });
        ForkTask {
            number,
            files,
            build,
            ranges: ranges.filter(|range| range.len > 0).collect(),
        }
    }

    /// Bytes past the size of a segment are not read: no server puts them there.
    pub fn within_segments(mut self) -> Self {
        for range in &mut self.ranges {
            let rest = self.build.segment_bytes.saturating_sub(range.offset);
            range.len = range.len.min(rest);
        }
        self.ranges.retain(|range| range.len > 0);
        self
    }

    /// A fork without a byte has one unit all the same, without bytes: its end asks for an output,
    /// too.
    pub fn with_empty_unit(mut self) -> Self {
        if self.ranges.is_empty() {
            self.ranges.push(FileRange {
                path: self.files.path(0),
                segment: 0,
                offset: 0,
                len: 0,
                first_block: 0,
            });
        }
        self
    }

    /// Bytes that will be read.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.len).sum()
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        u64::from(self.build.block_size).max(1)
    }
}
