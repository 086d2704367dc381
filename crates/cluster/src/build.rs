//! Build options of a cluster's server: by the control file, else by the pages.

use std::collections::BTreeMap;

use pgclinic_format::{ControlFile, Page};
use pgclinic_source::Source;

use crate::control_state::ControlState;

/// Build options that decide where a byte is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Build {
    /// Bytes in a page.
    pub block_size: u32,
    /// Bytes in a segment of a relation.
    pub segment_bytes: u64,
    /// Bytes in a full TOAST chunk.
    pub toast_chunk: u32,
}

impl Build {
    /// The options of nearly every PostgreSQL: 8 kB pages, 1 GB segments.
    pub const USUAL: Build = Build {
        block_size: 8192,
        segment_bytes: 1 << 30,
        toast_chunk: 1996,
    };

    /// Pages of so many bytes, in segments of 1 GB.
    pub fn of_blocks(block_size: u32) -> Build {
        // `TOAST_MAX_CHUNK_SIZE` in `src/include/access/heaptoast.h`: four chunks to a page.
        let chunk_row = (block_size.saturating_sub(40) / 4) & !7;
        Build {
            block_size,
            toast_chunk: chunk_row.saturating_sub(36),
            ..Build::USUAL
        }
    }

    pub(crate) fn of(control: &ControlFile) -> Option<Build> {
        let sound = (1024..=32768).contains(&control.blcksz)
            && control.blcksz.is_power_of_two()
            && control.relseg_size > 0;
        sound.then(|| Build {
            block_size: control.blcksz,
            segment_bytes: control.segment_bytes(),
            toast_chunk: control.toast_max_chunk_size,
        })
    }

    /// Blocks in a full segment.
    pub fn segment_blocks(&self) -> u64 {
        self.segment_bytes / u64::from(self.block_size)
    }
}

/// Sizes by the control file. Where its checksum is wrong they are believed if the pages of shared
/// relations agree; without one, pages tell their own size, and segments are taken for the usual
/// ones.
pub(crate) fn build_of(source: &dyn Source, control: &ControlState) -> Build {
    if let Some(build) = control.trusted().and_then(Build::of) {
        return build;
    }
    let block_size = block_size_of_pages(source);
    let doubted = match control {
        ControlState::WrongCrc(control)
        | ControlState::Foreign { control, .. }
        | ControlState::Older { control, .. } => Build::of(control),
        _ => None,
    };
    let agrees = |build: &Build| block_size.is_none_or(|size| size == build.block_size);
    let by_pages = || block_size.map_or(Build::USUAL, Build::of_blocks);
    doubted.filter(agrees).unwrap_or_else(by_pages)
}

/// The block size that most of some pages in `global` carry in their headers.
fn block_size_of_pages(source: &dyn Source) -> Option<u32> {
    const FILES_TRIED: usize = 16;
    let entries = source.list("global").ok()?.into_iter();
    let relations = entries.filter(|entry| entry.name.bytes().all(|byte| byte.is_ascii_digit()));
    let mut votes: BTreeMap<u32, usize> = BTreeMap::new();
    for entry in relations.take(FILES_TRIED) {
        // The smallest page that there is.
        let mut head = [0; 1024];
        let path = format!("global/{}", entry.name);
        let read = source.read_at(&path, 0, &mut head);
        let size = Page::parse(&head).map_or(0, Page::page_size);
        let sound = (1024..=32768).contains(&size) && size.is_power_of_two();
        if sound && read == Ok(head.len()) {
            *votes.entry(u32::from(size)).or_default() += 1;
        }
    }
    let (size, _) = votes.into_iter().max_by_key(|(_, votes)| *votes)?;
    Some(size)
}
