//! Line pointers redirected, dead and unused, and rows frozen: what each major has its own records
//! for.
//!
//! ```text
//! 13      0x10 clean   | xid u32 | nredirected u16 | ndead u16 |   data: | from, to … | dead … | unused … |
//!         0x20 freeze  | xid u32 | ntuples u16 |                   data: | xmax u32 | offnum | infomask2 | infomask | flags u8 | … 12 bytes each
//! 14, 15  0x10 prune as clean, 0x20 vacuum | nunused u16 | data: | unused … |, 0x30 freeze as 13
//! 16      0x30 freeze  | xid u32 | nplans u16 |  data: | xmax u32 | infomask2 | infomask | flags u8, - | ntuples u16 | … | offnum … |
//! 17, 18  0x10 to 0x30 | reason u8 | flags u8 | [xid u32] |  data: [nplans u16, -, plans as 16] [n, redirected] [n, dead] [n, unused] [offnum …]
//! ```
//!
//! Truth: `src/include/access/heapam_xlog.h`, `heap_page_prune_execute` in
//! `src/backend/access/heap/pruneheap.c`.

use super::{RedoBlock, RedoFault, page, tuple};
use crate::bytes::{u16_at, u32_at};
use crate::line_pointer::{LinePointer, LpFlags};
use crate::types::Xid;
use crate::wal::record::Record;

const FREEZE_XVAC: u8 = 0x02;
const INVALID_XVAC: u8 = 0x04;
/// Bytes of a frozen row up to 15, and of a plan since.
const PLAN_BYTES: usize = 12;

const CLEANUP_LOCK: u8 = 1 << 2;
const HAS_PLANS: u8 = 1 << 4;
const HAS_REDIRECTIONS: u8 = 1 << 5;
const HAS_DEAD: u8 = 1 << 6;
const HAS_UNUSED: u8 = 1 << 7;

/// What happens to line pointers.
#[derive(Default)]
struct Pointers {
    redirected: Vec<u16>,
    dead: Vec<u16>,
    unused: Vec<u16>,
}

/// What is left of the space.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Space {
    Compacted(page::RowOrder),
    /// Unused line pointers at the end are given up, too: from 15 on.
    CompactedAndCut,
    /// Only line pointers at the end are given up.
    Kept,
}

/// How some rows are frozen.
struct FreezePlan {
    xmax: u32,
    infomask2: u16,
    infomask: u16,
    flags: u8,
    rows: usize,
}

pub(crate) fn apply(
    record: &Record<'_>,
    major: u16,
    operation: u8,
    target: &mut RedoBlock<'_>,
) -> Result<(), RedoFault> {
    match (major, operation) {
        (17.., 0x10..=0x30) => prune_and_freeze(record, target),
        (..=13, 0x30) => Ok(()),
        (_, 0x10) => clean(record, major, target),
        (14..=16, 0x20) => vacuum(record, target),
        (..=13, 0x20) | (14..=15, 0x30) => freeze_rows(record, target),
        (16, 0x30) => freeze_by_plans(record, target),
        _ => Err(RedoFault::Unknown),
    }
}

/// A cursor over the data of the block.
struct Data<'a> {
    rest: &'a [u8],
}

impl<'a> Data<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], RedoFault> {
        let (taken, rest) = self.rest.split_at_checked(bytes).ok_or(RedoFault::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    fn numbers(&mut self, count: usize) -> Result<Vec<u16>, RedoFault> {
        let bytes = self.take(count.checked_mul(2).ok_or(RedoFault::Short)?)?;
        let (pairs, _) = bytes.as_chunks::<2>();
        Ok(pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect())
    }

    fn number(&mut self) -> Result<u16, RedoFault> {
        let bytes = self.take(2)?;
        u16_at(bytes, 0).ok_or(RedoFault::Short)
    }

    fn plans(&mut self, count: usize) -> Result<Vec<FreezePlan>, RedoFault> {
        let bytes = self.take(count.checked_mul(PLAN_BYTES).ok_or(RedoFault::Short)?)?;
        let plans = bytes.as_chunks::<PLAN_BYTES>().0.iter().map(|plan| {
            Some(FreezePlan {
                xmax: u32_at(plan, 0)?,
                infomask2: u16_at(plan, 4)?,
                infomask: u16_at(plan, 6)?,
                flags: *plan.get(8)?,
                rows: usize::from(u16_at(plan, 10)?),
            })
        });
        plans.collect::<Option<_>>().ok_or(RedoFault::Short)
    }
}

fn count(record: &Record<'_>, at: usize) -> Result<usize, RedoFault> {
    u16_at(record.main, at)
        .map(usize::from)
        .ok_or(RedoFault::Short)
}

fn clean(record: &Record<'_>, major: u16, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let (redirected, dead) = (count(record, 4)?, count(record, 6)?);
    let mut data = Data { rest: target.data };
    let redirected = data.numbers(redirected * 2)?;
    let dead = data.numbers(dead)?;
    let unused = data.numbers(data.rest.len() / 2)?;
    let pointers = Pointers {
        redirected,
        dead,
        unused,
    };
    let space = match major {
        15.. => Space::CompactedAndCut,
        14 => Space::Compacted(page::RowOrder::OfLinePointers),
        _ => Space::Compacted(page::RowOrder::Kept),
    };
    execute(&pointers, space, target)
}

fn vacuum(record: &Record<'_>, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let unused = Data { rest: target.data }.numbers(count(record, 0)?)?;
    let pointers = Pointers {
        unused,
        ..Pointers::default()
    };
    execute(&pointers, Space::Kept, target)
}

fn execute(pointers: &Pointers, space: Space, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let (pairs, _) = pointers.redirected.as_chunks::<2>();
    for [from, to] in pairs {
        let redirect = LinePointer::new(*to, LpFlags::Redirect, 0);
        page::put_pointer(target.page, *from, redirect);
    }
    for number in &pointers.dead {
        page::put_pointer(target.page, *number, LinePointer::new(0, LpFlags::Dead, 0));
    }
    for number in &pointers.unused {
        page::put_pointer(
            target.page,
            *number,
            LinePointer::new(0, LpFlags::Unused, 0),
        );
    }
    match space {
        Space::Compacted(order) => page::compact(target.page, order),
        Space::CompactedAndCut => {
            page::compact(target.page, page::RowOrder::OfLinePointers)?;
            page::truncate_pointers(target.page, 0)
        }
        Space::Kept => page::truncate_pointers(target.page, 1),
    }
}

fn freeze(plan: &FreezePlan, number: u16, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let row = page::row(target.page, number)?;
    tuple::set_xmax(row, plan.xmax);
    if plan.flags & FREEZE_XVAC != 0 {
        tuple::set_xvac(row, Xid::FROZEN.0);
    }
    if plan.flags & INVALID_XVAC != 0 {
        tuple::set_xvac(row, Xid::INVALID.0);
    }
    tuple::set_masks(row, plan.infomask2, plan.infomask);
    Ok(())
}

fn freeze_rows(record: &Record<'_>, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let rows = count(record, 4)?;
    let (all, _) = target.data.as_chunks::<PLAN_BYTES>();
    for row in all.get(..rows).ok_or(RedoFault::Short)? {
        let plan = || {
            let plan = FreezePlan {
                xmax: u32_at(row, 0)?,
                infomask2: u16_at(row, 6)?,
                infomask: u16_at(row, 8)?,
                flags: *row.get(10)?,
                rows: 1,
            };
            Some((plan, u16_at(row, 4)?))
        };
        let (plan, number) = plan().ok_or(RedoFault::Short)?;
        freeze(&plan, number, target)?;
    }
    Ok(())
}

fn freeze_by_plans(record: &Record<'_>, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let mut data = Data { rest: target.data };
    let plans = data.plans(count(record, 4)?)?;
    carry_out(&plans, &mut data, target)
}

/// The numbers of the rows stand behind all plans, in their order.
fn carry_out(
    plans: &[FreezePlan],
    data: &mut Data<'_>,
    target: &mut RedoBlock<'_>,
) -> Result<(), RedoFault> {
    for plan in plans {
        for number in data.numbers(plan.rows)? {
            freeze(plan, number, target)?;
        }
    }
    Ok(())
}

fn prune_and_freeze(record: &Record<'_>, target: &mut RedoBlock<'_>) -> Result<(), RedoFault> {
    let flags = record.main.get(1).copied().ok_or(RedoFault::Short)?;
    let mut data = Data { rest: target.data };
    let mut plans = Vec::new();
    if flags & HAS_PLANS != 0 {
        let count = usize::from(data.number()?);
        data.take(2)?;
        plans = data.plans(count)?;
    }
    let mut items = |flag: u8, each: usize| -> Result<Vec<u16>, RedoFault> {
        if flags & flag == 0 {
            return Ok(Vec::new());
        }
        let count = usize::from(data.number()?);
        data.numbers(count * each)
    };
    let pointers = Pointers {
        redirected: items(HAS_REDIRECTIONS, 2)?,
        dead: items(HAS_DEAD, 1)?,
        unused: items(HAS_UNUSED, 1)?,
    };
    if flags & (HAS_REDIRECTIONS | HAS_DEAD | HAS_UNUSED) != 0 {
        let space = match flags & CLEANUP_LOCK {
            0 => Space::Kept,
            _ => Space::CompactedAndCut,
        };
        execute(&pointers, space, target)?;
    }
    carry_out(&plans, &mut data, target)
}
