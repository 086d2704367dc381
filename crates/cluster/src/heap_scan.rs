//! The rows of a heap relation, straight from its pages, each with what it is to a new transaction:
//! whatever can be read is given, the rest counted. Of a replayed cluster the pages are those that
//! recovery leaves.

use std::borrow::Cow;
use std::ops::Range;

use pgclinic_format::attribute::Attribute;
use pgclinic_format::checksum::page_checksum;
use pgclinic_format::page::{HEADER_BYTES, is_never_begun};
use pgclinic_format::{
    Attributes, BlockNo, ColumnLayout, HeapTuple, LinePointer, LpFlags, Oid, Page, varlena,
};

use crate::catalog_encoding::CatalogEncoding;
use crate::cluster::Cluster;
use crate::comparison::Comparison;
use crate::files::ForkFiles;
use crate::row_places::{PlaceState, RowPlaces};
use crate::visibility::{RowState, Visibility};
use crate::witness::{LostKeys, each_row_in, keys_of_lost_rows};

/// Bytes of one read.
const READ_BYTES: usize = 256 * 1024;
/// A row of a page of 32 kB unpacks to less, even if it is all one long match.
const UNPACKED_MAX: u32 = 16 << 20;

/// A row whose attributes have been found but not understood.
pub struct RawRow<'a> {
    /// Where it stands: block and line pointer.
    pub block: BlockNo,
    /// Line pointer number.
    pub item: u16,
    /// The tuple.
    pub tuple: HeapTuple<'a>,
    /// What a new transaction makes of it.
    pub state: RowState,
    attributes: &'a [Attribute],
    words: CatalogEncoding,
}

impl<'a> RawRow<'a> {
    /// The bytes of column `index`, from 0; nothing for nulls and missing columns.
    pub fn bytes(&self, index: usize) -> Option<&'a [u8]> {
        match self.attributes.get(index)? {
            Attribute::Value(range) => self.tuple.bytes().get(Range::clone(range)),
            Attribute::Null | Attribute::Missing => None,
        }
    }

    /// A 4-byte number.
    pub fn u32(&self, index: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes(index)?.first_chunk()?))
    }

    /// An 8-byte number.
    pub fn i64(&self, index: usize) -> Option<i64> {
        Some(i64::from_le_bytes(*self.bytes(index)?.first_chunk()?))
    }

    /// A 2-byte number.
    pub fn i16(&self, index: usize) -> Option<i16> {
        Some(i16::from_le_bytes(*self.bytes(index)?.first_chunk()?))
    }

    /// A byte.
    pub fn u8(&self, index: usize) -> Option<u8> {
        self.bytes(index)?.first().copied()
    }

    /// A `bool`.
    pub fn bool(&self, index: usize) -> Option<bool> {
        self.u8(index).map(|byte| byte != 0)
    }

    /// The bytes of a `name`: up to its first zero.
    pub fn name_bytes(&self, index: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes(index)?;
        let end = bytes.iter().position(|byte| *byte == 0);
        bytes.get(..end.unwrap_or(bytes.len()))
    }

    /// A `name`. Bytes that are no text are shown as escapes.
    pub fn name(&self, index: usize) -> Option<String> {
        let bytes = self.name_bytes(index)?;
        Some(self.words.readable(bytes))
    }

    /// A short `text` that stands in the row as it is.
    pub fn text(&self, index: usize) -> Option<String> {
        let bytes = self.payload(index)?;
        Some(self.words.readable(bytes))
    }

    /// The payload of a varlena that is neither compressed nor elsewhere.
    pub fn payload(&self, index: usize) -> Option<&'a [u8]> {
        varlena::parse(self.bytes(index)?).ok()?.0.as_it_is()
    }

    /// The payload of a varlena that is not elsewhere, unpacked where it is compressed.
    pub fn unpacked(&self, index: usize) -> Option<Cow<'a, [u8]>> {
        varlena::parse(self.bytes(index)?)
            .ok()?
            .0
            .unpacked(UNPACKED_MAX)
    }
}

/// Reads a heap from its first to its last page.
pub struct HeapScan<'a> {
    cluster: &'a Cluster,
    files: &'a ForkFiles,
    columns: &'a [ColumnLayout],
    visibility: Visibility<'a>,
    block_size: usize,
    words: CatalogEncoding,
    /// Pages that could not be read or whose header makes no sense, by block.
    pub unreadable: Vec<BlockNo>,
    /// Rows whose attributes do not fit their tuple.
    pub broken_rows: u64,
    /// Where rows stand, if somebody wants to know.
    places: Option<RowPlaces>,
    /// Those of the row at hand.
    attributes: Vec<Attribute>,
}

impl<'a> HeapScan<'a> {
    /// Over the main fork in `files`, with words in UTF-8.
    pub fn new(cluster: &'a Cluster, files: &'a ForkFiles, columns: &'a [ColumnLayout]) -> Self {
        HeapScan {
            cluster,
            files,
            columns,
            visibility: Visibility::new(cluster),
            block_size: usize::try_from(cluster.build.block_size).unwrap_or(8192),
            words: CatalogEncoding::default(),
            unreadable: Vec::new(),
            broken_rows: 0,
            places: None,
            attributes: Vec::new(),
        }
    }

    /// The same with a list of where rows stand, for entries of indexes to be compared with. While
    /// a server runs nothing is, before its WAL was applied: a page of zeros on disk may have its
    /// rows in memory.
    pub fn noting_places(self) -> Self {
        let may_compare = |what| self.cluster.may_compare(what);
        let places = if may_compare(Comparison::PagesOfOnePass) {
            Some(RowPlaces::default())
        } else if may_compare(Comparison::CatalogEntriesWithPages) {
            let truncated_to = self.cluster.truncated_to(self.files.number());
            Some(RowPlaces::beside_a_server(truncated_to))
        } else {
            None
        };
        HeapScan { places, ..self }
    }

    /// Entries of a btree on all rows that lead to none of those that were read; 0 where the
    /// places of rows were not noted, or where entries may be of another moment.
    pub fn rows_missed_by(&self, index: &ForkFiles) -> u64 {
        let mut missed = 0;
        if let Some(places) = self
            .places
            .as_ref()
            .filter(|_| self.cluster.catalog_entries_prove())
        {
            each_row_in(self.cluster, index, &mut |tid| {
                let state = places.state(tid);
                missed += u64::from(matches!(state, PlaceState::PageLost | PlaceState::NoRow));
            });
        }
        missed
    }

    /// What the indexes of this catalog, found by their OIDs, have of rows that were not there.
    /// Nothing where the places of rows were not noted, or where entries may be of another moment.
    pub fn keys_of_lost_rows<'f>(
        &self,
        catalog: Oid,
        files_of: &dyn Fn(Oid) -> Option<&'f ForkFiles>,
    ) -> Vec<LostKeys> {
        let places = self.places.as_ref();
        let places = places.filter(|_| self.cluster.catalog_entries_prove());
        places.map_or_else(Vec::new, |places| {
            keys_of_lost_rows(self.cluster, catalog, places, files_of)
        })
    }

    /// The list, after the rows were read.
    pub(crate) fn places(&mut self) -> Option<RowPlaces> {
        self.places.take()
    }

    /// The same with words of this kind.
    pub fn in_words(self, words: CatalogEncoding) -> Self {
        HeapScan { words, ..self }
    }

    /// Every page and row was read, so that one which was not seen is not there.
    pub fn is_whole(&self) -> bool {
        let is_there = !self.files.segments.is_empty();
        is_there && self.unreadable.is_empty() && self.broken_rows == 0
    }

    /// Calls `each` for every row version, live or not.
    pub fn each_row(&mut self, mut each: impl FnMut(RawRow<'_>)) {
        let blocks_per_segment = self.cluster.build.segment_bytes / self.block_size as u64;
        let files = self.files;
        for segment in &files.segments {
            let first = u64::from(segment.number).saturating_mul(blocks_per_segment);
            self.segment(&files.path(segment.number), segment.len, first, &mut each);
        }
    }

    /// The same for those that are not known to be void.
    pub fn each_that_may_count(&mut self, mut each: impl FnMut(RawRow<'_>)) {
        self.each_row(|row| {
            if row.state.may_count() {
                each(row);
            }
        });
    }

    fn segment(
        &mut self,
        path: &str,
        len: u64,
        first_block: u64,
        each: &mut dyn FnMut(RawRow<'_>),
    ) {
        let mut buffer = vec![0; READ_BYTES.max(self.block_size)];
        let mut offset = 0;
        while offset < len {
            let block = first_block + offset / self.block_size as u64;
            let read = self
                .cluster
                .source
                .read_at(path, offset, &mut buffer)
                .unwrap_or(0);
            let pages = buffer
                .get(..read)
                .unwrap_or_default()
                .chunks_exact(self.block_size);
            if pages.len() == 0 {
                let block = BlockNo::try_from(block).unwrap_or(BlockNo::MAX);
                if is_never_begun(pages.remainder()) {
                    if let Some(places) = &mut self.places {
                        places.zeroed(block);
                    }
                    return;
                }
                self.unreadable.push(block);
                if let Some(places) = &mut self.places {
                    places.unread(block);
                }
                return;
            }
            offset += (pages.len() * self.block_size) as u64;
            for (page, block) in pages.zip(block..) {
                self.page(page, BlockNo::try_from(block).unwrap_or(BlockNo::MAX), each);
            }
        }
    }

    fn page(&mut self, bytes: &[u8], block: BlockNo, each: &mut dyn FnMut(RawRow<'_>)) {
        let Some(page) = Page::parse(bytes) else {
            return;
        };
        if page.is_new() && page.is_zeroed() {
            if let Some(places) = &mut self.places {
                places.zeroed(block);
            }
            return;
        }
        // The server takes a header of zeros for an empty page; its rows are lost all the same.
        let tells_rows = !page.is_new() && usize::from(page.pd_lower()) >= HEADER_BYTES;
        if !tells_rows || !page.header_is_sane_to_the_server() {
            self.unreadable.push(block);
            if let Some(places) = &mut self.places {
                places.senseless(block);
            }
            return;
        }
        let broken_before = self.broken_rows;
        let (mut count, mut unused) = (0, Vec::new());
        for (item, pointer) in page.line_pointers() {
            count = item;
            let is_there = match pointer.flags() {
                LpFlags::Normal => self.row(page, (block, item), pointer, each),
                LpFlags::Redirect | LpFlags::Dead => true,
                LpFlags::Unused => false,
            };
            if !is_there && self.places.is_some() {
                unused.push(item);
            }
        }
        if let Some(places) = &mut self.places {
            let has_checksums = self.cluster.checksums() == Some(true);
            // Beside a server a page may have been half written when it was read.
            let is_denied = has_checksums
                && !places.are_on_their_way()
                && page.pd_checksum() != page_checksum(bytes, block);
            if is_denied {
                places.denied();
            }
            let is_doubtful = is_denied || self.broken_rows > broken_before;
            places.page(block, count, &unused, is_doubtful);
        }
    }

    /// Gives a row that can be read; the others are counted.
    fn row(
        &mut self,
        page: Page<'_>,
        (block, item): (BlockNo, u16),
        pointer: LinePointer,
        each: &mut dyn FnMut(RawRow<'_>),
    ) -> bool {
        let Some(tuple) = page.item(pointer).and_then(HeapTuple::parse) else {
            self.broken_rows += 1;
            return false;
        };
        // One list for all rows: most of what a catalog's row costs would be its memory.
        self.attributes.clear();
        for attribute in Attributes::new(tuple, self.columns) {
            let Ok(attribute) = attribute else {
                self.broken_rows += 1;
                return false;
            };
            self.attributes.push(attribute);
        }
        let state = self.visibility.state(tuple);
        each(RawRow {
            block,
            item,
            tuple,
            state,
            attributes: &self.attributes,
            words: self.words,
        });
        true
    }
}
