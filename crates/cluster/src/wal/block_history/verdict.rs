//! What is proven of each block once the pass is over.

use std::collections::BTreeMap;

use pgclinic_format::Lsn;
use pgclinic_format::wal::FileNumber;

use super::goal::Goal;
use super::outcome::{ExactPage, NotProven, PageOrigin};
use super::page_copies::PageCopy;
use super::pass::Passed;
use super::tracked::{
    Begin, Chain, ForkEnd, PageChain, SequenceState, TrackedBlock, TrackedBlocks, is_sequence,
    no_room,
};
use super::{RecoveredBlock, RecoveredBlocks};
use crate::wal::replayed::page_store::{PageNumber, PageStore};

/// What is known when a block is judged.
struct Judge<'a, 'b> {
    passed: &'b Passed<'a>,
    copies: &'b [PageCopy<'a>],
    goal: &'b Goal,
    pages: PageStore,
}

pub(super) fn verdicts<'a>(
    tracked: TrackedBlocks<'a>,
    passed: Passed<'a>,
    copies: &[PageCopy<'a>],
    goal: &Goal,
) -> RecoveredBlocks {
    let mut judge = Judge {
        passed: &passed,
        copies,
        goal,
        pages: tracked.pages,
    };
    let judged = tracked.blocks.into_iter().map(|block| {
        let outcome = judge.outcome(&block);
        let (outcome, page) = match outcome {
            Ok((exact, page)) => (Ok(exact), Some(page)),
            Err(why) => (Err(why), None),
        };
        RecoveredBlock {
            address: block.address,
            outcome,
            refused_copies: block.refused,
            page,
        }
    });
    let blocks = judged.collect();
    let ends = with_copies(tracked.ends, &passed, copies);
    let pages = judge.pages.keep();
    RecoveredBlocks {
        blocks,
        status: Vec::new(),
        ends,
        refused_copies: Vec::new(),
        troubles: Vec::new(),
        wal_bytes: passed.pages.bytes_read(),
        records: passed.records,
        pages: Some(pages),
    }
}

/// Copies count whose checkpoint was met, with no gap in WAL since.
fn with_copies(
    mut ends: BTreeMap<FileNumber, ForkEnd>,
    passed: &Passed<'_>,
    copies: &[PageCopy<'_>],
) -> BTreeMap<FileNumber, ForkEnd> {
    let met = copies.iter().zip(&passed.met);
    let met = met.filter(|(copy, is_met)| **is_met && copy.redo >= passed.run_from);
    let usable: Vec<&PageCopy<'_>> = met.map(|(copy, _)| copy).collect();
    for (file, end) in &mut ends {
        let own = usable.iter().filter_map(|copy| copy.blocks_of(*file));
        end.in_copies = own.max();
    }
    ends
}

impl Judge<'_, '_> {
    fn outcome(&mut self, block: &TrackedBlock) -> Result<(ExactPage, PageNumber), NotProven> {
        let never = block.never.as_ref().or(self.passed.failure.as_ref());
        if let Some(why) = never {
            return Err(why.clone());
        }
        match &block.chain {
            Chain::Page(chain) => self.chain(chain),
            Chain::Nothing(why) => {
                let untouched = self.untouched(block)?;
                let found = match untouched {
                    Some(found) => Some(found),
                    None => self.same_state(block)?,
                };
                found.ok_or_else(|| self.with_start(why))
            }
        }
    }

    fn with_start(&self, why: &NotProven) -> NotProven {
        match why {
            NotProven::NoPage { .. } => NotProven::NoPage {
                wal_from: self.passed.run_from,
            },
            other => other.clone(),
        }
    }

    fn chain(&self, chain: &PageChain) -> Result<(ExactPage, PageNumber), NotProven> {
        if chain.sequence == SequenceState::AsSeen {
            return Err(NotProven::Sequence);
        }
        let file = |lsn| self.passed.pages.words_at(lsn).unwrap_or_default();
        let origin = match chain.begin {
            Begin::Image(lsn) => PageOrigin::Image {
                lsn,
                file: file(lsn),
            },
            Begin::NewPage(lsn) => PageOrigin::NewPage {
                lsn,
                file: file(lsn),
            },
            Begin::Copy(base) => self.origin(base.copy, base.lsn)?,
        };
        let exact = ExactPage {
            applied: chain.applied,
            last: chain.last,
            is_sequence: chain.sequence == SequenceState::AsRecorded,
            ..self.exact(chain.lsn, origin)
        };
        Ok((exact, chain.number))
    }

    fn exact(&self, lsn: Lsn, origin: PageOrigin) -> ExactPage {
        ExactPage {
            lsn,
            origin,
            applied: 0,
            last: None,
            wal_from: self.passed.run_from,
            wal_to: self.goal.at,
            wal_end: self.goal.words(),
            is_sequence: false,
        }
    }

    /// A copy counts where its checkpoint is the one that WAL has.
    fn origin(&self, number: usize, page_lsn: Lsn) -> Result<PageOrigin, NotProven> {
        let copy = self.copies.get(number).ok_or(NotProven::FilesMissing)?;
        let is_met = self.passed.met.get(number) == Some(&true);
        if !is_met {
            return Err(NotProven::CopyOfOtherHistory {
                name: copy.name.to_owned(),
                at: copy.control.checkpoint_lsn,
            });
        }
        Ok(PageOrigin::Copy {
            name: copy.name.to_owned(),
            page_lsn,
            redo: copy.redo,
            has_checksum: copy.has_checksums(),
        })
    }

    /// The page of a copy that no record has touched since.
    fn untouched(
        &mut self,
        block: &TrackedBlock,
    ) -> Result<Option<(ExactPage, PageNumber)>, NotProven> {
        let base = block.base_within(self.passed.run_from);
        let Some(base) = base.filter(|base| base.redo <= self.goal.at) else {
            return Ok(None);
        };
        let copy = self.copies.get(base.copy);
        let page = copy.and_then(|copy| copy.sound_page(block.address).ok());
        let Some((page, lsn)) = page.filter(|(_, lsn)| *lsn == base.lsn) else {
            return Ok(None);
        };
        if is_sequence(&page) {
            return Err(NotProven::Sequence);
        }
        let origin = self.origin(base.copy, lsn)?;
        let added = self.pages.add(page, Some(block.address.block));
        let number = added.map_err(no_room)?;
        Ok(Some((self.exact(lsn, origin), number)))
    }

    /// The page of a copy that carries the LSN of the last record, which both have.
    fn same_state(
        &mut self,
        block: &TrackedBlock,
    ) -> Result<Option<(ExactPage, PageNumber)>, NotProven> {
        let Some((last, end)) = block.last.and_then(|last| Some((last, last.end?))) else {
            return Ok(None);
        };
        for copy in self.copies {
            let Ok((page, lsn)) = copy.sound_page(block.address) else {
                continue;
            };
            let is_same = lsn == end
                && copy.cannot_be_torn()
                && !is_sequence(&page)
                && copy.has_record(last.lsn, last.crc);
            if is_same {
                let origin = PageOrigin::SameState {
                    name: copy.name.to_owned(),
                    lsn: last.lsn,
                };
                let added = self.pages.add(page, Some(block.address.block));
                let number = added.map_err(no_room)?;
                return Ok(Some((self.exact(lsn, origin), number)));
            }
        }
        Ok(None)
    }
}
