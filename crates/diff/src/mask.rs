//! Two versions of a page that may differ though no WAL was written between them: hint bits, the
//! checksum, the space that nothing uses.
//!
//! Truth: `src/backend/access/common/bufmask.c` and the `*_mask` functions of the access methods.

use pgclinic_format::btree::BTP_DELETED;
use pgclinic_format::gin::GIN_DELETED;
use pgclinic_format::hash::{LH_PAGE_HAS_DEAD_TUPLES, LH_PAGE_TYPE, LH_UNUSED_PAGE};
use pgclinic_format::heap_tuple::{
    HEAP_COMBOCID, HEAP_XMAX_COMMITTED, HEAP_XMAX_INVALID, HEAP_XMIN_COMMITTED, HEAP_XMIN_FROZEN,
};
use pgclinic_format::index_page::{AccessMethod, method_of_page_id};
use pgclinic_format::page::{HEADER_BYTES, PD_ALL_VISIBLE, PD_HAS_FREE_LINES, PD_PAGE_FULL};
use pgclinic_format::spgist::SPGIST_META;
use pgclinic_format::{BlockNo, Fork, HeapTuple, LinePointer, LpFlags, Page, gist};

/// `BTP_HAS_GARBAGE`.
const BTREE_GARBAGE: u16 = 0x0040;
/// `BTP_SPLIT_END`: replay sets it in no page, the server in a page that was split during a VACUUM.
const BTREE_SPLIT_END: u16 = 0x0020;
/// `BRIN_EVACUATE_PAGE`.
const BRIN_EVACUATE: u16 = 0x0001;
/// `SpecTokenOffsetNumber`: `t_ctid` holds the token of an `INSERT … ON CONFLICT` that is not
/// decided yet.
const SPECULATIVE: u16 = 0xFFFE;

/// Two versions of a page are equal but for what may differ though no WAL was written between them.
/// LSNs are not compared. Without an access method it is told by the page.
pub fn are_alike(
    (a, b): (&[u8], &[u8]),
    fork: Fork,
    method: Option<AccessMethod>,
    block: BlockNo,
) -> bool {
    // Bits of the visibility map are cleared, and pages of both maps written, without a new LSN.
    if matches!(fork, Fork::Vm | Fork::Fsm) {
        return true;
    }
    match (masked(a, method, block), masked(b, method, block)) {
        (Some(of_a), Some(of_b)) => of_a == of_b && !contradict_each_other((a, b), method),
        _ => a == b,
    }
}

/// What may differ may not say opposite things: pages of rows and of sequences that are equal
/// otherwise.
fn contradict_each_other((a, b): (&[u8], &[u8]), method: Option<AccessMethod>) -> bool {
    let (Some(a), Some(b)) = (Page::parse(a), Page::parse(b)) else {
        return false;
    };
    let contradict = match method.or_else(|| method_of(a)) {
        Some(AccessMethod::Heap) => hints_exclude_each_other,
        Some(AccessMethod::Sequence) => values_exclude_each_other,
        _ => return false,
    };
    let rows = a.line_pointers().zip(b.line_pointers());
    let tuples = rows.filter_map(|((_, a_pointer), (_, b_pointer))| {
        let a = a.item(a_pointer).and_then(HeapTuple::parse)?;
        Some((a, b.item(b_pointer).and_then(HeapTuple::parse)?))
    });
    tuples.into_iter().any(|(a, b)| contradict(a, b))
}

/// The fate of a transaction never changes.
fn hints_exclude_each_other(a: HeapTuple<'_>, b: HeapTuple<'_>) -> bool {
    let pairs = [HEAP_XMIN_FROZEN, HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID];
    pairs.into_iter().any(|both| {
        let (of_a, of_b) = (a.t_infomask() & both, b.t_infomask() & both);
        of_a & of_b == 0 && of_a | of_b == both && of_a != 0 && of_b != 0
    })
}

/// Between two records of WAL each value that a sequence gives lowers `log_cnt`.
fn values_exclude_each_other(a: HeapTuple<'_>, b: HeapTuple<'_>) -> bool {
    let of = |tuple: HeapTuple<'_>| {
        let data = tuple.bytes().get(usize::from(tuple.t_hoff())..)?;
        let number = |at: usize| {
            let bytes = data.get(at..)?.first_chunk::<8>()?;
            Some(i64::from_le_bytes(*bytes))
        };
        Some((number(0)?, number(8)?))
    };
    match (of(a), of(b)) {
        (Some((value_a, count_a)), Some((value_b, count_b))) => {
            count_a == count_b && value_a != value_b
        }
        _ => false,
    }
}

/// The page with everything set to zero that may differ.
fn masked(bytes: &[u8], method: Option<AccessMethod>, block: BlockNo) -> Option<Vec<u8>> {
    let page = Page::parse(bytes).filter(|page| page.header_is_sane_to_the_server())?;
    let mut copy = bytes.to_vec();
    // pd_lsn, which is compared before, pd_checksum, the hints of pd_flags, pd_prune_xid.
    clear(&mut copy, 0, 10);
    let flags = page.pd_flags() & !(PD_HAS_FREE_LINES | PD_PAGE_FULL | PD_ALL_VISIBLE);
    put(&mut copy, 10, &flags.to_le_bytes());
    clear(&mut copy, 20, 4);
    let (lower, upper) = (usize::from(page.pd_lower()), usize::from(page.pd_upper()));
    let method = method.or_else(|| method_of(page));
    // Pages of GIN that set no pd_lower fill the space with something else.
    if lower > HEADER_BYTES || (lower == HEADER_BYTES && method != Some(AccessMethod::Gin)) {
        clear(&mut copy, lower, upper.saturating_sub(lower));
    }
    match method {
        Some(AccessMethod::Heap) => mask_rows(page, &mut copy, block),
        // WAL runs up to 32 values ahead of the page of the server that gives them out.
        Some(AccessMethod::Sequence) => clear(
            &mut copy,
            upper,
            usize::from(page.pd_special()).saturating_sub(upper),
        ),
        Some(AccessMethod::Btree) => mask_btree(page, &mut copy),
        Some(AccessMethod::Hash) => mask_hash(page, &mut copy),
        Some(AccessMethod::Gist) => mask_gist(page, &mut copy),
        Some(AccessMethod::Gin) if special_flags(page, 6) & GIN_DELETED != 0 => {
            mask_content(&mut copy);
        }
        // Its meta page keeps which pages had room last, without a record.
        Some(AccessMethod::Spgist) if special_flags(page, 0) & SPGIST_META != 0 => {
            mask_content_from(page, &mut copy, HEADER_BYTES + 4);
        }
        Some(AccessMethod::Brin) => mask_flags(page, &mut copy, 4, BRIN_EVACUATE),
        _ => {}
    }
    Some(copy)
}

/// What a page of an unknown owner looks like.
fn method_of(page: Page<'_>) -> Option<AccessMethod> {
    let special = page.special()?;
    match special.last_chunk::<2>() {
        None => Some(AccessMethod::Heap),
        Some(id) => method_of_page_id(u16::from_le_bytes(*id)),
    }
}

fn mask_btree(page: Page<'_>, copy: &mut [u8]) {
    if special_flags(page, 12) & BTP_DELETED != 0 {
        mask_content(copy);
    } else {
        mask_pointers(page, copy);
    }
    mask_flags(page, copy, 12, BTREE_GARBAGE | BTREE_SPLIT_END);
    // The cycle of the vacuum that split the page last.
    mask_flags(page, copy, 14, u16::MAX);
}

fn mask_hash(page: Page<'_>, copy: &mut [u8]) {
    if special_flags(page, 12) & LH_PAGE_TYPE == LH_UNUSED_PAGE {
        mask_content(copy);
    } else {
        mask_pointers(page, copy);
    }
    mask_flags(page, copy, 12, LH_PAGE_HAS_DEAD_TUPLES);
}

fn mask_gist(page: Page<'_>, copy: &mut [u8]) {
    mask_pointers(page, copy);
    // The NSN.
    clear(copy, usize::from(page.pd_special()), 8);
    mask_flags(page, copy, 12, gist::F_HAS_GARBAGE | gist::F_FOLLOW_RIGHT);
}

/// A page that nothing is read from: pd_lower, pd_upper and all behind the header. The special
/// space too: replay leaves no links in a deleted page, where the server that deleted it keeps
/// them.
fn mask_content(copy: &mut [u8]) {
    clear(copy, 12, 4);
    clear(copy, HEADER_BYTES, copy.len().saturating_sub(HEADER_BYTES));
}

fn mask_content_from(page: Page<'_>, copy: &mut [u8], from: usize) {
    let len = usize::from(page.pd_special()).saturating_sub(from);
    clear(copy, from, len);
}

fn special_flags(page: Page<'_>, offset: usize) -> u16 {
    let special = page.special().and_then(|special| special.get(offset..));
    let flags = special.and_then(|special| special.first_chunk::<2>());
    flags.map_or(0, |flags| u16::from_le_bytes(*flags))
}

fn clear(copy: &mut [u8], at: usize, len: usize) {
    if let Some(room) = copy.get_mut(at..at.saturating_add(len)) {
        room.fill(0);
    }
}

fn put(copy: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(room) = copy.get_mut(at..at.saturating_add(bytes.len())) {
        room.copy_from_slice(bytes);
    }
}

/// Entries of indexes are marked dead without a record.
fn mask_pointers(page: Page<'_>, copy: &mut [u8]) {
    for (number, pointer) in page.line_pointers() {
        if pointer.flags() == LpFlags::Dead {
            let normal = LinePointer::new(pointer.lp_off(), LpFlags::Normal, pointer.lp_len());
            let at = HEADER_BYTES + usize::from(number.saturating_sub(1)) * LinePointer::SIZE;
            put(copy, at, &normal.0.to_le_bytes());
        }
    }
}

/// Flags in the special space.
fn mask_flags(page: Page<'_>, copy: &mut [u8], offset: usize, flags: u16) {
    let at = usize::from(page.pd_special()).saturating_add(offset);
    let own = special_flags(page, offset);
    put(copy, at, &(own & !flags).to_le_bytes());
}

/// What was found out about transactions since, the command's number, and the bytes that fill up.
#[expect(clippy::cast_possible_truncation, reason = "the two halves are meant")]
fn mask_rows(page: Page<'_>, copy: &mut [u8], block: BlockNo) {
    for (number, pointer) in page.line_pointers() {
        let Some(range) = pointer
            .range()
            .filter(|_| pointer.flags() == LpFlags::Normal)
        else {
            continue;
        };
        let Some(tuple) = page.item(pointer).and_then(HeapTuple::parse) else {
            continue;
        };
        let frozen = tuple.t_infomask() & HEAP_XMIN_FROZEN == HEAP_XMIN_FROZEN;
        let mut hints = HEAP_XMAX_COMMITTED | HEAP_XMAX_INVALID | HEAP_COMBOCID;
        if !frozen {
            hints |= HEAP_XMIN_FROZEN | HEAP_XMIN_COMMITTED;
        }
        let infomask = tuple.t_infomask() & !hints;
        put(copy, range.start + 20, &infomask.to_le_bytes());
        clear(copy, range.start + 8, 4);
        if tuple.t_ctid().offset == SPECULATIVE {
            // Replay has the row point to itself.
            let (high, low) = ((block >> 16) as u16, block as u16);
            for (at, part) in [high, low, number].into_iter().enumerate() {
                put(copy, range.start + 12 + 2 * at, &part.to_le_bytes());
            }
        }
        let filled = range.end.next_multiple_of(8).saturating_sub(range.end);
        clear(copy, range.end, filled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgclinic_format::btree::{BTP_INCOMPLETE_SPLIT, BTP_LEAF};
    use pgclinic_format::build::put_u16;

    /// A page with one row of 32 bytes at the end.
    fn page() -> Vec<u8> {
        let mut bytes = vec![0; 8192];
        put_u16(&mut bytes, 12, 28);
        put_u16(&mut bytes, 14, 8160);
        put_u16(&mut bytes, 16, 8192);
        put_u16(&mut bytes, 18, 8192 | 4);
        let pointer = LinePointer::new(8160, LpFlags::Normal, 29);
        put(&mut bytes, 24, &pointer.0.to_le_bytes());
        put_u16(&mut bytes, 8160 + 18, 1);
        bytes[8160 + 22] = 24;
        bytes[8160 + 24..8160 + 29].fill(7);
        bytes
    }

    #[track_caller]
    fn alike(edit: impl FnOnce(&mut [u8]), expected: bool) {
        let (a, mut b) = (page(), page());
        edit(&mut b);
        assert_ne!(a, b);
        let heap = Some(AccessMethod::Heap);
        assert_eq!(are_alike((&a, &b), Fork::Main, heap, 0), expected);
    }

    #[test]
    fn hints_and_unused_space_may_differ() {
        alike(|page| page[8] = 1, true);
        alike(|page| page[20] = 9, true);
        alike(|page| page[10] = 4, true);
        alike(|page| page[4000] = 1, true);
        alike(|page| page[8160 + 21] = 1, true);
        alike(|page| page[8191] = 1, true);
        let combo_command = |page: &mut [u8]| page[8160 + 20] = 0x20;
        alike(combo_command, true);
    }

    #[test]
    fn hints_may_be_missing_and_not_opposite() {
        let with = |bits: u8| {
            let mut page = page();
            page[8160 + 21] = bits;
            page
        };
        let alike = |a: u8, b: u8| {
            let heap = Some(AccessMethod::Heap);
            are_alike((&with(a), &with(b)), Fork::Main, heap, 0)
        };
        let (xmin_committed, xmin_invalid, xmax_committed, xmax_invalid) = (1, 2, 4, 8);
        assert!(alike(xmin_committed, 0) && alike(0, xmax_invalid));
        assert!(alike(xmin_committed | xmax_invalid, xmin_committed));
        assert!(!alike(xmin_committed, xmin_invalid));
        assert!(!alike(xmax_committed, xmax_invalid | xmin_committed));
    }

    #[test]
    fn a_sequence_counts_down_with_its_values() {
        let with = |value: u8, left: u8| {
            let mut page = page();
            let pointer = LinePointer::new(8136, LpFlags::Normal, 41);
            put(&mut page, 24, &pointer.0.to_le_bytes());
            put_u16(&mut page, 14, 8136);
            page[8136..8192].fill(0);
            put_u16(&mut page, 8136 + 18, 3);
            page[8136 + 22] = 24;
            (page[8160], page[8168]) = (value, left);
            page
        };
        let alike = |a: (u8, u8), b: (u8, u8)| {
            let sequence = Some(AccessMethod::Sequence);
            are_alike((&with(a.0, a.1), &with(b.0, b.1)), Fork::Main, sequence, 0)
        };
        assert!(alike((33, 0), (5, 28)) && alike((7, 3), (7, 3)));
        assert!(!alike((33, 5), (5, 5)));
    }

    #[test]
    fn an_undecided_insert_points_to_itself_after_replay() {
        let (mut a, mut b) = (page(), page());
        put(&mut a, 8160 + 12, &[0, 0, 9, 0, 0xFE, 0xFF]);
        put(&mut b, 8160 + 12, &[0, 0, 3, 0, 1, 0]);
        let heap = Some(AccessMethod::Heap);
        assert!(are_alike((&a, &b), Fork::Main, heap, 3));
        assert!(!are_alike((&a, &b), Fork::Main, heap, 4));
    }

    #[test]
    fn a_page_of_nobody_is_masked_as_what_it_looks_like() {
        let (a, mut b) = (page(), page());
        b[8160 + 21] = 1;
        assert!(are_alike((&a, &b), Fork::Main, None, 0));
    }

    #[test]
    fn links_of_a_deleted_page_are_gone_after_replay() {
        let deleted = |link: u8, flags: u16| {
            let mut bytes = vec![0; 8192];
            put_u16(&mut bytes, 12, 24);
            put_u16(&mut bytes, 14, 8184);
            put_u16(&mut bytes, 16, 8184);
            put_u16(&mut bytes, 18, 8192 | 4);
            bytes[8184] = link;
            put_u16(&mut bytes, 8190, flags);
            bytes
        };
        let alike = |flags: u16| {
            let (a, b) = (deleted(3, flags), deleted(0xFF, flags));
            are_alike((&a, &b), Fork::Main, Some(AccessMethod::Gin), 5)
        };
        assert!(alike(GIN_DELETED));
        assert!(!alike(0));
    }

    #[test]
    fn marks_of_a_split_during_vacuum_are_not_replayed() {
        let leaf = |cycle: u16, flags: u16| {
            let mut bytes = vec![0; 8192];
            put_u16(&mut bytes, 12, 24);
            put_u16(&mut bytes, 14, 8176);
            put_u16(&mut bytes, 16, 8176);
            put_u16(&mut bytes, 18, 8192 | 4);
            put_u16(&mut bytes, 8188, flags);
            put_u16(&mut bytes, 8190, cycle);
            bytes
        };
        let alike = |flags: u16| {
            let (a, b) = (leaf(7, BTP_LEAF | flags), leaf(0, BTP_LEAF));
            are_alike((&a, &b), Fork::Main, Some(AccessMethod::Btree), 5)
        };
        assert!(alike(BTREE_SPLIT_END));
        assert!(!alike(BTP_INCOMPLETE_SPLIT));
    }

    #[test]
    fn rows_may_not() {
        alike(|page| page[8160 + 24] = 8, false);
        alike(|page| page[8160] = 8, false);
        alike(|page| page[8160 + 18] = 2, false);
        alike(|page| page[24] ^= 1, false);
    }
}
