//! Pages of visibility maps as the server takes them: it throws away what it cannot read
//! (`vm_readbuf` in `src/backend/access/heap/visibilitymap.c`).

use pgclinic_format::checksum::page_checksum;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::visibility_map::{bits, heap_blocks_per_page};
use pgclinic_format::{BlockNo, Fork, Page};
use pgclinic_source::Source;

use crate::build::Build;
use crate::cluster::Cluster;
use crate::files::{ForkFiles, Segment, read_block};

/// A page of the map in `files`, whose pages have checksums if `is_summed`; nothing where the map
/// ends before it, and where the server throws the page away or it was never written. What has come
/// to the place of a map's page and has a sound header is taken for one.
pub fn map_page(
    source: &dyn Source,
    files: &ForkFiles,
    (build, is_summed): (Build, bool),
    number: BlockNo,
) -> Option<Vec<u8>> {
    let bytes = read_block(source, files, build, number)?;
    let page = Page::parse(&bytes).filter(|page| !page.is_new())?;
    let is_right = !is_summed || page_checksum(&bytes, number) == page.pd_checksum();
    (is_right && page.header_is_sane_to_the_server()).then_some(bytes)
}

/// The same of a page that may bear witness: a map has no line pointers, and one that has them is
/// another page.
fn witness_page(
    source: &dyn Source,
    files: &ForkFiles,
    pages: (Build, bool),
    number: BlockNo,
) -> Option<Vec<u8>> {
    let bytes = map_page(source, files, pages, number)?;
    let is_map = Page::parse(&bytes)?.line_pointer_count() == 0;
    is_map.then_some(bytes)
}

/// What a map marks of blocks behind the end of its table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MarkedBeyond {
    /// The last block.
    pub last: BlockNo,
    /// The page of the map that marks it.
    pub map_page: BlockNo,
    /// Blocks that the table lost. A map marks most blocks of a table: where it marks fewer, some
    /// of its bits are rather wrong themselves, and only marked blocks count.
    pub lost: u64,
}

impl MarkedBeyond {
    /// Of the map in `files` of a table of `end` blocks; `counts` leaves out bits of another
    /// moment.
    pub fn of(
        source: &dyn Source,
        files: &ForkFiles,
        (build, is_summed): (Build, bool),
        end: u64,
        counts: impl Fn(BlockNo) -> bool,
    ) -> Option<Self> {
        let covered = heap_blocks_per_page(usize::try_from(build.block_size).ok()?);
        // Pages of the map behind this one could only be about blocks that no table can have.
        let pages = files
            .blocks(build.block_size, build.segment_bytes)
            .min(u64::from(BlockNo::MAX) / covered + 1);
        let mut found: Option<(BlockNo, BlockNo)> = None;
        let mut count = 0;
        for number in end.checked_div(covered)?..pages {
            let map_page_number = BlockNo::try_from(number).ok()?;
            // The bits of a damaged page mean nothing.
            let Some(bytes) = witness_page(source, files, (build, is_summed), map_page_number)
            else {
                continue;
            };
            let beyond = marked_on(&bytes, number * covered)
                .filter(|block| u64::from(*block) >= end && counts(*block));
            for block in beyond {
                found = Some((block, map_page_number));
                count += 1;
            }
        }
        let (last, map_page) = found?;
        let missing = u64::from(last) + 1 - end;
        Some(MarkedBeyond {
            last,
            map_page,
            lost: if count * 2 >= missing { missing } else { count },
        })
    }
}

/// The blocks that a page of the map marks, whose first bits are for `first`.
fn marked_on(page: &[u8], first: u64) -> impl Iterator<Item = BlockNo> {
    let bits = page.get(HEADER_BYTES..).unwrap_or_default();
    let quads = bits.iter().zip((first..).step_by(4));
    quads
        .filter(|(byte, _)| **byte != 0)
        .flat_map(|(byte, block)| {
            let places = (0..4).filter(move |place| byte >> (place * 2) & 3 != 0);
            places.filter_map(move |place| BlockNo::try_from(block + place).ok())
        })
}

impl Cluster {
    /// What the visibility map of the table with these files marks behind its end.
    pub fn marked_beyond(
        &self,
        table: &ForkFiles,
        end: u64,
        counts: impl Fn(BlockNo) -> bool,
    ) -> Option<MarkedBeyond> {
        let mut map = ForkFiles {
            fork: Fork::Vm,
            segments: Vec::new(),
            ..table.clone()
        };
        let len = self.source().len(&map.path(0)).ok()?;
        // One segment of a map is enough for the largest table.
        map.segments.push(Segment { number: 0, len });
        let pages = (self.build, self.checksums() == Some(true));
        MarkedBeyond::of(self.source().as_ref(), &map, pages, end, counts)
    }

    /// The two bits that the visibility map of the table with these files has of a block; 0 where
    /// it does not reach so far.
    pub fn map_bits(&self, table: &ForkFiles, block: BlockNo) -> u8 {
        let page = self.map_page_of(table, self.map_page_number(block));
        page.map_or(0, |page| self.map_bits_in(&page, block))
    }

    /// The same of a page of the map that has them.
    pub fn map_bits_in(&self, map_page: &[u8], block: BlockNo) -> u8 {
        let per_page = heap_blocks_per_page(self.page_bytes()).max(1);
        let page = Page::parse(map_page);
        page.and_then(|page| bits(page, u64::from(block) % per_page))
            .unwrap_or(0)
    }

    /// The number of the page of a map that has the bits of this block.
    pub fn map_page_number(&self, block: BlockNo) -> BlockNo {
        let per_page = heap_blocks_per_page(self.page_bytes()).max(1);
        BlockNo::try_from(u64::from(block) / per_page).unwrap_or(BlockNo::MAX)
    }

    /// A page of the visibility map of the table with these files.
    pub fn map_page_of(&self, table: &ForkFiles, number: BlockNo) -> Option<Vec<u8>> {
        let map = ForkFiles {
            fork: Fork::Vm,
            ..table.clone()
        };
        let is_summed = self.checksums() == Some(true);
        witness_page(
            self.source().as_ref(),
            &map,
            (self.build, is_summed),
            number,
        )
    }
}
