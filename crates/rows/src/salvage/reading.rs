//! Pieces of a fork in memory, and what is wrong with a page as a whole.

use pgclinic_cluster::{Cluster, ForkFiles, Piece, fork_path};
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::visibility_map::heap_blocks_per_page;
use pgclinic_format::{BlockNo, Fork, Page};
use pgclinic_model::document::{LossPlace, Tally};
use pgclinic_source::SourceError;

use super::crew::Crew;
use crate::carve::PageState;
use crate::shape::Table;

/// Of a page of zeros that is none of those which were never written.
pub(super) const HELD_ROWS: &str =
    "the page is all zeros, and the visibility map says that it held rows";

/// Which of a table's two forks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    Table,
    Toast,
}

/// Reads a piece into memory; what could not be read is a loss.
pub(super) fn read_piece(
    crew: &Crew<'_>,
    piece: &Piece,
    of: Of,
    mut buffer: Vec<u8>,
    tally: &mut Tally,
) -> Vec<u8> {
    buffer.resize(usize::try_from(piece.len).unwrap_or(0), 0);
    let source = crew.cluster.source();
    let read = source.read_at(&piece.path, piece.offset, &mut buffer);
    let page_bytes = usize::try_from(crew.cluster.build.block_size).unwrap_or(8192);
    let is_out_of_reach = read.as_ref().is_err_and(SourceError::is_out_of_reach);
    tally.out_of_reach |= is_out_of_reach;
    let mut lose = |from: usize, pages: usize, why: String| {
        tally.damaged_pages += pages as u64;
        let behind = u32::try_from(from / page_bytes).unwrap_or(0);
        if of == Of::Table {
            let first = piece.first_block.saturating_add(behind);
            let count = u32::try_from(pages).unwrap_or(0);
            (first..first.saturating_add(count)).for_each(|block| tally.doubt_block(block));
            tally.pages.unread += pages as u64;
        }
        tally.lose(LossPlace {
            in_toast: of == Of::Toast,
            ..LossPlace::page(piece.first_block.saturating_add(behind), why)
        });
    };
    match read {
        Err(error) => {
            let pages = buffer.len().div_ceil(page_bytes);
            lose(
                0,
                pages,
                format!("{pages} blocks from here cannot be read: {error}"),
            );
            buffer.clear();
        }
        Ok(count) if count < buffer.len() => {
            let pages = (buffer.len() - count).div_ceil(page_bytes);
            lose(
                count,
                pages,
                format!("{pages} blocks from here are gone: the file became shorter"),
            );
            buffer.truncate(count);
        }
        Ok(_) => {}
    }
    // A page that is cut short by the end of the file: what is missing is taken for zeros.
    let whole = buffer.len().next_multiple_of(page_bytes);
    if whole > buffer.len() {
        let why = "the file ends within this block".to_owned();
        lose(buffer.len(), 1, why);
        buffer.resize(whole, 0);
    }
    crew.progress.advance(piece.len);
    buffer
}

/// The pages of a piece.
pub(super) fn pages<'b>(
    buffer: &'b [u8],
    piece: &Piece,
    crew: &Crew<'_>,
) -> impl Iterator<Item = (BlockNo, Page<'b>)> {
    let page_bytes = usize::try_from(crew.cluster.build.block_size).unwrap_or(8192);
    let blocks = piece.first_block..;
    let pages = buffer.chunks_exact(page_bytes).filter_map(Page::parse);
    blocks.zip(pages)
}

/// What a page is, and what is wrong with it as a whole.
pub(super) fn look(
    cluster: &Cluster,
    page: Page<'_>,
    block: BlockNo,
) -> (PageState, Option<&'static str>) {
    let state = PageState::of(page);
    let why = match state {
        PageState::Empty => None,
        PageState::Broken => {
            Some("the header of the page makes no sense: its rows were found by their structure")
        }
        PageState::Sound if cluster.checksums() != Some(true) => None,
        PageState::Sound if page.pd_checksum() == page_checksum(page.bytes(), block) => None,
        PageState::Sound => {
            Some("the checksum of the page is wrong: its rows were taken as they are")
        }
    };
    (state, why)
}

/// The bit of a map that says so of all rows of a page.
pub(super) const ALL_VISIBLE: u8 = 1;

/// The visibility map says something of this block, which is true of no page without rows.
pub(super) fn map_marks(cluster: &Cluster, table: &Table, block: BlockNo) -> bool {
    map_bits(cluster, &table.files, block).is_some_and(|bits| bits != 0)
}

/// What the visibility map of a table says of a block; nothing where it does not reach so far.
pub(super) fn map_bits(cluster: &Cluster, files: &ForkFiles, block: BlockNo) -> Option<u8> {
    let page_bytes = u64::from(cluster.build.block_size);
    let per_page = heap_blocks_per_page(usize::try_from(page_bytes).unwrap_or(8192));
    let (map_page, within) = (u64::from(block) / per_page, u64::from(block) % per_page);
    let path = fork_path(&files.home.folder, files.filenode, Fork::Vm, 0);
    let at = map_page * page_bytes + HEADER_BYTES as u64 + within / 4;
    let mut byte = [0];
    let read = cluster.source().read_at(&path, at, &mut byte);
    (read == Ok(1)).then(|| byte[0] >> (within % 4 * 2) & 3)
}
