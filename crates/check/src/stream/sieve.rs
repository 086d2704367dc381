//! The pages of one file as they pass by: which of them nobody needs to see again.
//!
//! A page is quiet when its checksum is right and every check of level `pages` is silent about it.
//! All but one of them need no name: how long the special space must be depends on the access
//! method. A file has one, so pages of a file whose special space differs from the others' are kept
//! as well.

use pgclinic_cluster::{DatabaseDirectory, ForkContext, ForkFiles, RelationFileName};
use pgclinic_format::checksum::{checksum_at, page_hash, page_hashes};
use pgclinic_format::{BlockNo, Page};
use pgclinic_model::document::Level;
use pgclinic_scan::{Cursor, guarded};

use crate::check::ForkCx;
use crate::findings::Findings;
use crate::stream::{PageSums, Shape};
use crate::walker::{PageChecker, PageOutcome, ThreadFindings};

/// What came of some bytes.
#[derive(Default)]
pub(super) struct Tally {
    /// Offset in the file, block in the fork, and the page.
    pub(super) suspects: Vec<(u64, BlockNo, Vec<u8>)>,
    /// Pages that are not all zeros.
    pub(super) filled: u64,
    /// Pages without a checksum, where that is not known to be right.
    pub(super) unsummed: u64,
}

/// The page that tells the special space of the others.
struct Model {
    place: u64,
    page: Vec<u8>,
    /// It is among the suspects already.
    is_told: bool,
}

/// Sorts out the pages of one file that need not be kept.
pub(super) struct FileSieve {
    pages: PageSieve,
    model: Option<Model>,
}

/// What is known of the pages of one file.
struct PageSieve {
    shape: Shape,
    files: ForkFiles,
    first_block: u64,
}

impl FileSieve {
    pub(super) fn new(name: RelationFileName, shape: &Shape) -> Self {
        let home = DatabaseDirectory {
            tablespace: 0,
            database: 0,
            folder: String::new(),
        };
        let pages = PageSieve {
            shape: *shape,
            files: ForkFiles {
                home,
                filenode: name.filenode,
                fork: name.fork,
                temporary: None,
                segments: Vec::new(),
            },
            first_block: u64::from(name.segment).saturating_mul(shape.build.segment_blocks()),
        };
        FileSieve { pages, model: None }
    }

    /// The number of its first block in the fork.
    pub(super) fn first_block(&self) -> u64 {
        self.pages.first_block
    }

    /// Looks at bytes of the file, which begin at this offset, a multiple of a page, and adds to
    /// the tally. Where a check fails on a page, what was seen before it stays.
    pub(super) fn look(&mut self, bytes: &[u8], offset: u64, cursor: &Cursor, tally: &mut Tally) {
        let model = &mut self.model;
        self.pages.look(model, (bytes, offset), cursor, tally);
    }
}

impl PageSieve {
    fn look(
        &self,
        model: &mut Option<Model>,
        (bytes, offset): (&[u8], u64),
        cursor: &Cursor,
        tally: &mut Tally,
    ) {
        let block_bytes = usize::try_from(self.shape.build.block_size).unwrap_or(8192);
        let fork = nameless(&self.shape, &self.files);
        let looker = PageChecker::new(&fork, 0);
        let pages = bytes.chunks_exact(block_bytes);
        let hashes = self.hashes(pages.clone());
        let first = self.first_block + offset / block_bytes as u64;
        for ((page, at), hash) in pages.zip(0u64..).zip(hashes) {
            let Ok(block) = BlockNo::try_from(first + at) else {
                continue;
            };
            cursor.at(block);
            let place = offset + at * block_bytes as u64;
            let Some(own) = Page::parse(page) else {
                continue;
            };
            if own.is_new() && own.is_zeroed() {
                continue;
            }
            tally.filled += 1;
            if !self.sum_is_right(own, hash, block, tally) || !is_silent(&looker, page, block) {
                tally.suspects.push((place, block, page.to_vec()));
                continue;
            }
            match model.take() {
                Some(same) if special_of(&same.page) == Some(own.pd_special()) => {
                    *model = Some(same);
                }
                before => {
                    let is_told = before.is_some();
                    if let Some(before) = before {
                        self.tell_both(before, (place, page), tally);
                    }
                    let page = page.to_vec();
                    *model = Some(Model {
                        place,
                        page,
                        is_told,
                    });
                }
            }
        }
    }

    /// Two pages of one file whose special spaces differ: which one is right nobody knows here.
    fn tell_both(&self, before: Model, (place, page): (u64, &[u8]), tally: &mut Tally) {
        if !before.is_told {
            let block = self.block_at(before.place);
            tally.suspects.push((before.place, block, before.page));
        }
        tally
            .suspects
            .push((place, self.block_at(place), page.to_vec()));
    }

    fn block_at(&self, place: u64) -> BlockNo {
        let block = self.first_block + place / u64::from(self.shape.build.block_size);
        BlockNo::try_from(block).unwrap_or(BlockNo::MAX)
    }

    fn hashes<'p>(&self, pages: impl Iterator<Item = &'p [u8]>) -> Vec<u32> {
        let pages: Vec<&[u8]> = pages.collect();
        if self.shape.sums == PageSums::Off {
            return vec![0; pages.len()];
        }
        let (fours, rest) = pages.as_chunks::<4>();
        let hashes = fours.iter().flat_map(|four| page_hashes(*four));
        hashes
            .chain(rest.iter().map(|page| page_hash(page)))
            .collect()
    }

    fn sum_is_right(&self, page: Page<'_>, hash: u32, block: BlockNo, tally: &mut Tally) -> bool {
        match self.shape.sums {
            PageSums::Off => true,
            _ if page.is_new() => true,
            PageSums::Unknown if page.pd_checksum() == 0 => {
                tally.unsummed += 1;
                true
            }
            PageSums::On | PageSums::Unknown => checksum_at(hash, block) == page.pd_checksum(),
        }
    }
}

fn special_of(page: &[u8]) -> Option<u16> {
    Page::parse(page).map(|page| page.pd_special())
}

/// Every check of level pages has nothing to say, damage or not.
fn is_silent(looker: &PageChecker<'_>, page: &[u8], block: BlockNo) -> bool {
    let mut notes = ThreadFindings {
        findings: Findings::default(),
        causes_left: 0,
        faces: None,
    };
    looker.look((page, None), block, &mut notes) == PageOutcome::Quiet
}

/// The page, read again, is as sound as it must be.
pub(super) fn is_sound(shape: &Shape, name: RelationFileName, page: &[u8], offset: u64) -> bool {
    let (mut sieve, mut tally) = (FileSieve::new(name, shape), Tally::default());
    let looked = guarded(|| sieve.look(page, offset, &Cursor::default(), &mut tally));
    // One on which a check fails stays a suspect: the walker meets it again, and reports the
    // failure.
    looked.is_ok() && tally.suspects.is_empty()
}

/// A fork of which nothing is known but its kind.
fn nameless<'a>(shape: &Shape, files: &'a ForkFiles) -> ForkCx<'a> {
    let base = ForkContext {
        layout: Some(shape.layout),
        ..ForkContext::nameless(shape.build, files)
    };
    ForkCx::alone(base, Level::Pages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_cluster::Build;
    use pgclinic_format::Layout;
    use pgclinic_format::build::PageBuilder;

    fn shape(sums: PageSums) -> Shape {
        Shape {
            build: Build::USUAL,
            layout: Layout::of_major(18).expect("a layout"),
            sums,
            suspects_max: 100,
        }
    }

    fn page(block: u32) -> Vec<u8> {
        PageBuilder::new(8192, &[]).item(&[7; 40]).finish(block)
    }

    fn suspects(sums: PageSums, pages: &[Vec<u8>]) -> (Vec<u32>, u64) {
        let name = RelationFileName::parse("16384").expect("a name");
        let (mut sieve, mut tally) = (FileSieve::new(name, &shape(sums)), Tally::default());
        sieve.look(&pages.concat(), 0, &Cursor::default(), &mut tally);
        let blocks = tally.suspects.iter().map(|(_, block, _)| *block);
        (blocks.collect(), tally.unsummed)
    }

    #[test]
    fn a_sound_page_passes_and_a_wrong_one_is_kept() {
        let mut wrong = page(2);
        wrong[5000] ^= 1;
        let mut header = page(3);
        header[12..14].copy_from_slice(&9000u16.to_le_bytes());
        let pages = [page(0), vec![0; 8192], wrong, header];
        assert_eq!(suspects(PageSums::On, &pages), (vec![2, 3], 0));
        assert_eq!(suspects(PageSums::Off, &pages), (vec![3], 0));
    }

    #[test]
    fn a_page_without_a_checksum_is_counted_where_nobody_knows() {
        let mut without = page(0);
        without[8..10].fill(0);
        let pages = [without, page(1)];
        assert_eq!(suspects(PageSums::Unknown, &pages), (vec![], 1));
        assert_eq!(suspects(PageSums::On, &pages), (vec![0], 0));
    }

    #[test]
    fn another_special_space_than_before_is_kept_with_what_was_before() {
        let mut other = page(1);
        other[16..18].copy_from_slice(&8176u16.to_le_bytes());
        let pages = [page(0), other, page(2), page(3)];
        assert_eq!(suspects(PageSums::Off, &pages).0, [0, 1, 2]);
    }
}
