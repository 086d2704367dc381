//! Whether the columns that a person gives are those of the rows in a file, asked before anything is written.

use pgclinic_cluster::Cluster;
use pgclinic_format::attribute::Attribute;
use pgclinic_format::datum::Limits;
use pgclinic_format::types::Tid;
use pgclinic_format::{Attributes, HeapTuple, LpFlags, Page};

use super::error::SalvageError;
use super::pieces::{Piece, Pieces};
use crate::carve::PageState;
use crate::charset::Charset;
use crate::readable::Readable;
use crate::shape::Table;

/// Pieces of the file that are looked at, spread over it, and rows of each.
const PIECES: u64 = 8;
const ROWS_OF_PIECE: u64 = 500;

/// What was seen of the rows.
#[derive(Default)]
struct Sample {
    rows: u64,
    misfits: u64,
    first: Option<(Tid, String)>,
}

/// An error where more rows contradict the columns than fit them.
pub(super) fn hold(cluster: &Cluster, table: &Table, charset: Charset) -> Result<(), SalvageError> {
    let limits = Limits {
        major: cluster.layout.major,
        ..Limits::default()
    };
    let mut readable = Readable::new(table, limits, charset);
    let mut sample = Sample::default();
    let pieces = Pieces::of(&table.files, cluster.build);
    let step = pieces.count().div_ceil(PIECES).max(1);
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    for number in (0..pieces.count()).step_by(step) {
        if let Some(piece) = pieces.get(number) {
            sample.take(cluster, table, &piece, &mut readable);
        }
    }
    match sample.first {
        Some((place, why)) if sample.misfits * 2 > sample.rows => {
            Err(SalvageError::ColumnsDoNotFit {
                table: format!("{}.{}", table.schema, table.name),
                rows: sample.rows,
                misfits: sample.misfits,
                place,
                why,
            })
        }
        _ => Ok(()),
    }
}

impl Sample {
    fn take(&mut self, cluster: &Cluster, table: &Table, piece: &Piece, readable: &mut Readable) {
        let page_bytes = usize::try_from(cluster.build.block_size).unwrap_or(8192);
        let mut buffer = vec![0; usize::try_from(piece.len).unwrap_or(0)];
        let read = cluster
            .source()
            .read_at(&piece.path, piece.offset, &mut buffer);
        buffer.truncate(read.unwrap_or(0));
        let pages = buffer.chunks_exact(page_bytes).filter_map(Page::parse);
        let end = self.rows + ROWS_OF_PIECE;
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
                if self.rows >= end {
                    return;
                }
                self.rows += 1;
                if let Some(why) = misfit(tuple, table, readable) {
                    self.misfits += 1;
                    self.first.get_or_insert((Tid { block, offset }, why));
                }
            }
        }
    }
}

/// What in a row contradicts the columns.
fn misfit(tuple: HeapTuple<'_>, table: &Table, readable: &mut Readable) -> Option<String> {
    let (stored, given) = (usize::from(tuple.attribute_count()), table.layouts.len());
    if stored > given {
        return Some(format!("it has {stored} columns where {given} are given"));
    }
    let name = |index: usize| match table.name_of_attribute(index) {
        Some(name) => format!("column {name}"),
        None => format!("column {}", index + 1),
    };
    let mut walk = Attributes::new(tuple, &table.layouts);
    for index in 0..given {
        match walk.next()? {
            Ok(Attribute::Value(range)) => {
                let bytes = tuple.bytes().get(range).unwrap_or_default();
                if !readable.fits(index, bytes) {
                    return Some(format!(
                        "{} holds bytes that are none of its type",
                        name(index)
                    ));
                }
            }
            Ok(Attribute::Null | Attribute::Missing) => {}
            Err(_) => return Some(format!("{} would end behind the row", name(index))),
        }
    }
    let (end, len) = (walk.end(), tuple.bytes().len());
    (end != len)
        .then(|| format!("the columns that are given end at byte {end} of a row of {len} bytes"))
}
