//! Some rows of a file, spread over it.

use pgclinic_cluster::{Cluster, ForkFiles, Piece, Pieces};
use pgclinic_format::types::Tid;
use pgclinic_format::{HeapTuple, LpFlags, Page};

use crate::carve::PageState;
use crate::schema::given::{GivenTable, tables_in};
use crate::schema::guess::{GuessedColumn, columns_of, confidence, statement};

/// Pieces of the file that are looked at, and rows of each.
const PIECES: u64 = 8;
const ROWS_OF_PIECE: u64 = 500;

/// Gives rows of sound pages, dead ones too.
pub(super) fn each_row(
    cluster: &Cluster,
    files: &ForkFiles,
    each: &mut dyn FnMut(HeapTuple<'_>, Tid),
) {
    let pieces = Pieces::of(files, cluster.build);
    let step = pieces.count().div_ceil(PIECES).max(1);
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    for number in (0..pieces.count()).step_by(step) {
        if let Some(piece) = pieces.get(number) {
            let mut left = ROWS_OF_PIECE;
            rows_of_piece(cluster, &piece, &mut |tuple, place| {
                each(tuple, place);
                left -= 1;
                left > 0
            });
        }
    }
}

/// Gives all rows of sound pages, dead ones too, while the caller says true.
pub(super) fn every_row(
    cluster: &Cluster,
    files: &ForkFiles,
    each: &mut dyn FnMut(HeapTuple<'_>, Tid) -> bool,
) {
    let pieces = Pieces::of(files, cluster.build);
    let mut all = (0..pieces.count()).filter_map(|number| pieces.get(number));
    while all
        .next()
        .is_some_and(|piece| rows_of_piece(cluster, &piece, each))
    {}
}

/// False where the caller wants no more.
fn rows_of_piece(
    cluster: &Cluster,
    piece: &Piece,
    each: &mut dyn FnMut(HeapTuple<'_>, Tid) -> bool,
) -> bool {
    let page_bytes = usize::try_from(cluster.build.block_size).unwrap_or(8192);
    let mut buffer = vec![0; usize::try_from(piece.len).unwrap_or(0)];
    let read = cluster
        .source()
        .read_at(&piece.path, piece.offset, &mut buffer);
    buffer.truncate(read.unwrap_or(0));
    let pages = buffer.chunks_exact(page_bytes).filter_map(Page::parse);
    for (block, page) in (piece.first_block..).zip(pages) {
        if PageState::of(page) != PageState::Sound {
            continue;
        }
        for (offset, pointer) in page.line_pointers() {
            let row = page
                .item(pointer)
                .filter(|_| pointer.flags() == LpFlags::Normal);
            let Some(tuple) = row.and_then(HeapTuple::parse) else {
                continue;
            };
            if !each(tuple, Tid { block, offset }) {
                return false;
            }
        }
    }
    true
}

/// The columns that the rows of a file seem to have; nothing where none fit.
pub fn guess_columns(cluster: &Cluster, files: &ForkFiles) -> Option<Vec<GuessedColumn>> {
    let mut rows = Vec::new();
    each_row(cluster, files, &mut |tuple, _| {
        rows.push(tuple.bytes().to_vec())
    });
    columns_of(&rows)
}

/// The same as a table of some name, with what was guessed of each column.
pub(super) fn guessed_table(
    cluster: &Cluster,
    files: &ForkFiles,
    name: &str,
) -> Option<(GivenTable, Vec<GuessedColumn>)> {
    let columns = guess_columns(cluster, files).filter(|columns| !columns.is_empty())?;
    let name = format!("\"{}\"", name.replace('"', "\"\""));
    let mut table = tables_in(&statement(&name, &columns))
        .ok()?
        .into_iter()
        .next()?;
    table.confidence = Some(confidence(&columns));
    Some((table, columns))
}
