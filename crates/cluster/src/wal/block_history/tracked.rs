//! The blocks that are wanted, each with the newest page that WAL has given so far.

use std::collections::{BTreeMap, HashMap};
use std::io;

use pgclinic_format::wal::redo::{OldRow, RedoFault, RedoKind, apply, deed};
use pgclinic_format::wal::{BlockReference, FileNumber, Record};
use pgclinic_format::{BlockNo, Fork, Lsn, Oid, Page};

use super::BlockAddress;
use super::outcome::NotProven;
use super::page_copies::{BasePage, PageCopy};
use crate::wal::replayed::page_store::{PageNumber, PageStore};
use crate::wal::replayed::{set_lsn, words_of};

const HEAP2: u8 = 9;
const HEAP: u8 = 10;
const SEQUENCE: u8 = 15;
/// `XLOG_HEAP2_VISIBLE`, which takes no image of the heap page where hints are not logged.
const VISIBLE: u8 = 0x40;
const OPERATION: u8 = 0x70;
/// Bits that tell most blocks apart from those that are wanted.
const FILTER_BITS: u64 = 1 << 20;

/// The last record that spoke of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Touch {
    pub(super) lsn: Lsn,
    /// What the page's LSN is then; nothing where the record speaks of the whole file.
    pub(super) end: Option<Lsn>,
    pub(super) crc: u32,
}

/// What a page in the store began with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Begin {
    Image(Lsn),
    NewPage(Lsn),
    Copy(BasePage),
}

/// What is known of a sequence's page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SequenceState {
    NoSequence,
    /// As its last record has it: no value was given that is later.
    AsRecorded,
    /// As it was at some moment, after which values may have been given without a record.
    AsSeen,
}

/// A page that is followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageChain {
    pub(super) number: PageNumber,
    pub(super) begin: Begin,
    pub(super) lsn: Lsn,
    pub(super) applied: u64,
    pub(super) last: Option<Lsn>,
    pub(super) sequence: SequenceState,
}

/// What WAL has given of a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Chain {
    /// No page; why it is not proven.
    Nothing(NotProven),
    Page(PageChain),
}

/// A block that is wanted.
pub(super) struct TrackedBlock {
    pub(super) address: BlockAddress,
    pub(super) base: Option<BasePage>,
    /// Why pages of copies are none to begin with.
    pub(super) refused: Vec<String>,
    pub(super) chain: Chain,
    /// In the present run of WAL.
    pub(super) last: Option<Touch>,
    /// Why nothing can prove it.
    pub(super) never: Option<NotProven>,
}

/// How far a main fork reaches, as WAL has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ForkEnd {
    /// Records speak of no block from here on, since the fork was last truncated or made.
    pub blocks: BlockNo,
    /// It was truncated or made in this WAL, so that nothing counts that a copy has past `blocks`.
    pub is_from_wal: bool,
    /// More blocks may have come without records: the file was copied with its database, or was
    /// filled by the transaction that made it, while `wal_level` was `minimal`.
    pub may_be_longer: bool,
    /// The most blocks that a copy has whose pages count here; nothing where none has the file.
    pub in_copies: Option<BlockNo>,
}

/// All of them.
pub(super) struct TrackedBlocks<'a> {
    pub(super) blocks: Vec<TrackedBlock>,
    /// Of the main forks in which one of them lies.
    pub(super) ends: BTreeMap<FileNumber, ForkEnd>,
    index: HashMap<BlockAddress, usize>,
    filter: Vec<u64>,
    pub(super) pages: PageStore,
    copies: &'a [PageCopy<'a>],
    major: u16,
    page_bytes: usize,
    /// A record of visibility carries the LSN of the heap page on.
    logs_hints: bool,
    /// `wal_level` is one at which all that is written to a new file has records.
    logs_contents: bool,
}

/// What a cluster tells of its pages and its WAL.
#[derive(Clone, Copy)]
pub(super) struct TrackedShape {
    pub(super) major: u16,
    pub(super) page_bytes: usize,
    pub(super) has_checksums: bool,
    pub(super) logs_contents: bool,
}

impl<'a> TrackedBlocks<'a> {
    pub(super) fn new(
        blocks: Vec<TrackedBlock>,
        pages: PageStore,
        copies: &'a [PageCopy<'a>],
        shape: TrackedShape,
    ) -> Self {
        let index: HashMap<_, _> = blocks
            .iter()
            .enumerate()
            .map(|(number, block)| (block.address, number))
            .collect();
        let mut filter = vec![0; usize::try_from(FILTER_BITS / 64).unwrap_or(0)];
        for block in &blocks {
            let (word, bit) = filter_place(block.address);
            if let Some(word) = filter.get_mut(word) {
                *word |= bit;
            }
        }
        let of_main = blocks
            .iter()
            .filter(|block| block.address.fork == Fork::Main);
        let ends = of_main
            .map(|block| (block.address.file, ForkEnd::default()))
            .collect();
        TrackedBlocks {
            blocks,
            ends,
            index,
            filter,
            pages,
            copies,
            major: shape.major,
            page_bytes: shape.page_bytes,
            logs_hints: shape.has_checksums,
            logs_contents: shape.logs_contents,
        }
    }

    /// The block is one of them, or looks like it.
    pub(super) fn may_want(&self, reference: &BlockReference<'_>) -> bool {
        let end = (reference.fork == Fork::Main)
            .then(|| self.ends.get(&reference.file))
            .flatten();
        if end.is_some_and(|end| end.blocks <= reference.block) {
            return true;
        }
        let address = BlockAddress::of(reference);
        let (word, bit) = filter_place(address);
        self.filter.get(word).is_some_and(|word| word & bit != 0)
            && self.index.contains_key(&address)
    }

    /// What a record does to those blocks that it speaks of. An update's old page comes before its
    /// new one.
    pub(super) fn take(&mut self, record: &Record<'_>, run_from: Lsn) {
        for reference in record.blocks.iter().rev() {
            if let Some(end) = self.end_of(reference.file, reference.fork) {
                end.blocks = end.blocks.max(reference.block.saturating_add(1));
            }
            let Some(number) = self.index.get(&BlockAddress::of(reference)).copied() else {
                continue;
            };
            let chain = self.change(number, record, reference, run_from);
            let Some(block) = self.blocks.get_mut(number) else {
                continue;
            };
            block.last = Some(Touch {
                lsn: record.lsn,
                end: Some(record.end),
                crc: record.header.crc,
            });
            let chain = match (chain, &block.chain) {
                (Ok(chain), _) => Chain::Page(chain),
                // Why there was no page before tells more.
                (Err(NotProven::NoImage { .. }), Chain::Nothing(why))
                    if !matches!(why, NotProven::NoPage { .. }) =>
                {
                    Chain::Nothing(why.clone())
                }
                (Err(why), _) => Chain::Nothing(why),
            };
            self.put(number, chain);
        }
    }

    fn end_of(&mut self, file: FileNumber, fork: Fork) -> Option<&mut ForkEnd> {
        (fork == Fork::Main)
            .then(|| self.ends.get_mut(&file))
            .flatten()
    }

    /// Main forks that `is_hit` takes end here now.
    pub(super) fn end_at(&mut self, blocks: BlockNo, is_hit: impl Fn(FileNumber) -> bool) {
        let ends = self.ends.iter_mut();
        for (_, end) in ends.filter(|(file, _)| is_hit(**file)) {
            *end = ForkEnd {
                blocks,
                is_from_wal: true,
                may_be_longer: !self.logs_contents,
                in_copies: None,
            };
        }
    }

    /// Files of a database are copied, whose length no record tells.
    pub(super) fn copy_database(&mut self, database: Oid) {
        self.end_at(0, |own| own.database == database);
        let ends = self.ends.iter_mut();
        for (_, end) in ends.filter(|(file, _)| file.database == database) {
            end.may_be_longer = true;
        }
    }

    /// Up to here `wal_level` may have been another one.
    pub(super) fn doubt_ends(&mut self) {
        for end in self.ends.values_mut() {
            end.may_be_longer |= end.is_from_wal;
        }
    }

    fn put(&mut self, number: usize, chain: Chain) {
        let Some(block) = self.blocks.get_mut(number) else {
            return;
        };
        if let (Chain::Page(before), false) = (&block.chain, holds_same_page(&block.chain, &chain))
        {
            self.pages.remove(before.number);
        }
        block.chain = chain;
    }

    /// What the block's page is after the record.
    fn change(
        &mut self,
        number: usize,
        record: &Record<'_>,
        reference: &BlockReference<'_>,
        run_from: Lsn,
    ) -> Result<PageChain, NotProven> {
        let lsn = record.lsn;
        if let Some(image) = reference.image.filter(|image| image.apply) {
            let page = image.page(self.page_bytes);
            let page = page.map_err(|_| NotProven::Image { lsn })?;
            return self.begin_with_image(number, record, page);
        }
        let header = record.header;
        let unknown = NotProven::UnknownRecord {
            lsn,
            manager: header.manager,
            operation: header.operation(),
        };
        let changes_rows = matches!(header.manager, HEAP | HEAP2 | SEQUENCE)
            && deed(record, reference.id) == RedoKind::Rows;
        if !changes_rows {
            return Err(unknown);
        }
        let chain = if reference.will_init {
            let zeros = vec![0; self.page_bytes];
            self.store(number, zeros, Begin::NewPage(lsn), Lsn(0))?
        } else {
            self.page_before(number, record, run_from)?
        };
        self.apply(chain, record, reference, unknown)
    }

    /// A sequence's image is older than the record that gave its values in advance, where there is
    /// one.
    fn begin_with_image(
        &mut self,
        number: usize,
        record: &Record<'_>,
        mut page: Vec<u8>,
    ) -> Result<PageChain, NotProven> {
        let is_new = Page::parse(&page).is_none_or(Page::is_new);
        if !is_new {
            set_lsn(&mut page, record.end);
        }
        let sequence = is_sequence(&page);
        let before = self.blocks.get(number).map(|block| &block.chain);
        if sequence
            && let Some(Chain::Page(before)) = before
            && before.sequence == SequenceState::AsRecorded
        {
            let mut chain = *before;
            chain.lsn = record.end;
            let kept = self.pages.page(chain.number, Some(self.block_of(number)));
            set_lsn(kept.map_err(no_room)?, record.end);
            return Ok(chain);
        }
        let lsn = if is_new { Lsn(0) } else { record.end };
        let mut chain = self.store(number, page, Begin::Image(record.lsn), lsn)?;
        if sequence {
            chain.sequence = SequenceState::AsSeen;
        }
        Ok(chain)
    }

    /// The page that a record finds: the one that is followed, or that of a copy.
    fn page_before(
        &mut self,
        number: usize,
        record: &Record<'_>,
        run_from: Lsn,
    ) -> Result<PageChain, NotProven> {
        let no_image = NotProven::NoImage { lsn: record.lsn };
        let Some(block) = self.blocks.get(number) else {
            return Err(no_image);
        };
        if let Chain::Page(chain) = &block.chain {
            return Ok(*chain);
        }
        let header = record.header;
        let needs_no_image = header.manager == HEAP2 && header.info & OPERATION == VISIBLE;
        let base = block.base_within(run_from);
        let base = base.filter(|base| base.redo <= record.lsn);
        let base = base.filter(|base| base.is_whole || needs_no_image);
        let base = base.ok_or(no_image)?;
        let address = block.address;
        let copy = self.copies.get(base.copy);
        let page = copy.and_then(|copy| copy.sound_page(address).ok());
        let (page, lsn) = page.ok_or(NotProven::NoImage { lsn: record.lsn })?;
        let sequence = is_sequence(&page);
        let mut chain = self.store(number, page, Begin::Copy(base), lsn)?;
        if sequence {
            chain.sequence = SequenceState::AsSeen;
        }
        Ok(chain)
    }

    fn apply(
        &mut self,
        mut chain: PageChain,
        record: &Record<'_>,
        reference: &BlockReference<'_>,
        unknown: NotProven,
    ) -> Result<PageChain, NotProven> {
        let header = record.header;
        let page = self.pages.page(chain.number, Some(reference.block));
        let page = page.map_err(no_room)?;
        let mut old = OldRow::default();
        let done = apply(record, self.major, reference.id, page, &mut old);
        done.map_err(|fault| match fault {
            RedoFault::Unknown => unknown,
            fault => NotProven::DoesNotFit {
                lsn: record.lsn,
                why: words_of(fault),
            },
        })?;
        let is_hint = header.manager == HEAP2 && header.info & OPERATION == VISIBLE;
        if !is_hint || self.logs_hints {
            set_lsn(page, record.end);
            chain.lsn = record.end;
        }
        if header.manager == SEQUENCE {
            chain.sequence = SequenceState::AsRecorded;
        }
        if chain.begin != Begin::NewPage(record.lsn) {
            chain.applied += 1;
            chain.last = Some(record.lsn);
        }
        Ok(chain)
    }

    fn store(
        &mut self,
        number: usize,
        page: Vec<u8>,
        begin: Begin,
        lsn: Lsn,
    ) -> Result<PageChain, NotProven> {
        let block = Some(self.block_of(number));
        let before = self.blocks.get(number).map(|block| &block.chain);
        let number = match before {
            Some(Chain::Page(before)) => {
                let replaced = self.pages.replace(before.number, page, block);
                replaced.map(|()| before.number)
            }
            _ => self.pages.add(page, block),
        };
        Ok(PageChain {
            number: number.map_err(no_room)?,
            begin,
            lsn,
            applied: 0,
            last: None,
            sequence: SequenceState::NoSequence,
        })
    }

    fn block_of(&self, number: usize) -> u32 {
        let block = self.blocks.get(number);
        block.map_or(0, |block| block.address.block)
    }

    /// A record makes, cuts or removes what all blocks that `is_hit` takes lie in.
    pub(super) fn lose(
        &mut self,
        touch: Touch,
        why: &NotProven,
        is_hit: impl Fn(&BlockAddress) -> bool,
    ) {
        for number in 0..self.blocks.len() {
            let Some(block) = self.blocks.get_mut(number) else {
                continue;
            };
            if is_hit(&block.address) {
                block.last = Some(touch);
                self.put(number, Chain::Nothing(why.clone()));
            }
        }
    }

    /// WAL has a gap: of no block is known what happened in it.
    pub(super) fn lose_all(&mut self, why: &NotProven) {
        for number in 0..self.blocks.len() {
            if let Some(block) = self.blocks.get_mut(number) {
                block.last = None;
            }
            self.put(number, Chain::Nothing(why.clone()));
        }
        for end in self.ends.values_mut() {
            *end = ForkEnd::default();
        }
    }
}

impl TrackedBlock {
    /// The page of a copy that nothing has touched since, in WAL that is whole since.
    pub(super) fn base_within(&self, run_from: Lsn) -> Option<BasePage> {
        let base = self.base.filter(|base| run_from <= base.redo)?;
        let is_untouched = self.last.is_none_or(|last| last.lsn < base.redo);
        is_untouched.then_some(base)
    }
}

impl BlockAddress {
    fn of(reference: &BlockReference<'_>) -> Self {
        BlockAddress {
            file: reference.file,
            fork: reference.fork,
            block: reference.block,
        }
    }

    pub(super) fn is_in(&self, file: FileNumber) -> bool {
        self.file == file
    }

    pub(super) fn is_of(&self, file: FileNumber, fork: Fork) -> bool {
        self.file == file && self.fork == fork
    }
}

pub(super) fn is_sequence(page: &[u8]) -> bool {
    let magic = Page::parse(page).and_then(pgclinic_format::sequence::magic);
    magic == Some(pgclinic_format::sequence::SEQUENCE_MAGIC)
}

fn holds_same_page(before: &Chain, after: &Chain) -> bool {
    match (before, after) {
        (Chain::Page(before), Chain::Page(after)) => before.number == after.number,
        _ => false,
    }
}

fn filter_place(address: BlockAddress) -> (usize, u64) {
    let mixed = u64::from(address.file.filenode).wrapping_mul(0x9E37_79B9_7F4A_7C15)
        ^ u64::from(address.block).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
    let bit = (mixed >> 40) % FILTER_BITS;
    (usize::try_from(bit / 64).unwrap_or(0), 1 << (bit % 64))
}

pub(super) fn no_room(error: io::Error) -> NotProven {
    NotProven::NoRoom(error.to_string())
}
