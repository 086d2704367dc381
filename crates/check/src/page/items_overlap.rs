//! Two line pointers name the same bytes.

use std::ops::Range;

use pgclinic_format::{LinePointer, Page};
use pgclinic_model::Rule;

use crate::check::{PageCheck, PageCx, Wants};
use crate::findings::{Draft, Findings};
use crate::page::line_pointers::pointer_bytes;

/// The rule.
pub static ITEMS_OVERLAP: Rule = Rule::from_page(include_str!("../../rules/items-overlap.md"));

/// Most eighths that a page can have.
const EIGHTHS_MAX: usize = 32768 / 8;

/// See [`ITEMS_OVERLAP`].
pub struct ItemsOverlap;

impl PageCheck for ItemsOverlap {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ITEMS_OVERLAP] }
    }

    fn wants(&self) -> Wants {
        Wants::LINE_POINTERS
    }

    fn check(&self, page: Page<'_>, _cx: &PageCx<'_>, out: &mut Findings) {
        let mut taken = Taken([0; EIGHTHS_MAX / 64]);
        for (number, pointer) in page.line_pointers() {
            let Some(item) = storage(page, pointer) else {
                continue;
            };
            if taken.take(&item) {
                continue;
            }
            if let Some((other_number, other)) = first_owner(page, number, &item) {
                out.add(overlap(number, &item, other_number, &other));
            }
        }
    }
}

/// The bytes that belong to an item, with the padding behind it; nothing for an item that is not
/// where items can be, which has a rule of its own.
#[inline]
fn storage(page: Page<'_>, pointer: LinePointer) -> Option<Range<usize>> {
    let item = pointer.range()?;
    let is_sound = item.start.is_multiple_of(8) && item.end <= page.len();
    is_sound.then(|| item.start..item.end.next_multiple_of(8))
}

/// One bit for each eight bytes of a page: an item has them already.
struct Taken([u64; EIGHTHS_MAX / 64]);

impl Taken {
    /// Takes the bytes; `false` when another item has some of them.
    #[inline]
    fn take(&mut self, item: &Range<usize>) -> bool {
        let mut at = item.start / 8;
        let end = item.end / 8;
        let mut free = true;
        while at < end {
            let count = (end - at).min(64 - at % 64);
            let bits = (u64::MAX >> (64 - count)) << (at % 64);
            let Some(word) = self.0.get_mut(at / 64) else {
                break;
            };
            free &= *word & bits == 0;
            *word |= bits;
            at += count;
        }
        free
    }
}

/// The first item before `number` that shares bytes with `item`.
fn first_owner(page: Page<'_>, number: u16, item: &Range<usize>) -> Option<(u16, Range<usize>)> {
    let before = page
        .line_pointers()
        .take_while(|(other, _)| *other < number);
    let mut stored = before.filter_map(|(other, pointer)| Some((other, storage(page, pointer)?)));
    stored.find(|(_, other)| other.start < item.end && item.start < other.end)
}

fn overlap(number: u16, item: &Range<usize>, other_number: u16, other: &Range<usize>) -> Draft {
    let message = format!(
        "item from {} to {} shares bytes with item {other_number} from {} to {}",
        item.start, item.end, other.start, other.end
    );
    let bytes = pointer_bytes(number);
    Draft::new(&ITEMS_OVERLAP, message)
        .item(number)
        .bytes(bytes.start, bytes.end)
        .fact("start_bytes", item.start)
        .fact("end_bytes", item.end)
        .fact("other_item", other_number)
}

#[cfg(test)]
mod tests {
    use pgclinic_format::LpFlags;
    use pgclinic_format::build::{PageBuilder, TupleBuilder};

    use super::*;
    use crate::trial::Trial;

    #[test]
    fn the_later_of_two_items_is_told() {
        let page = PageBuilder::new(8192, &[])
            .item(&[9; 1000])
            .item(&TupleBuilder::new(0).finish())
            .line_pointer(LinePointer::new(8152, LpFlags::Normal, 40))
            .finish(0);
        let told = Trial::table().told(&ItemsOverlap, &page);
        let expected =
            "3 items-overlap: item from 8152 to 8192 shares bytes with item 1 from 7192 to 8192";
        assert_eq!(told, [expected]);
    }

    #[test]
    fn items_in_any_order_side_by_side_are_right() {
        let page = PageBuilder::new(8192, &[])
            .item(&[9; 1001])
            .line_pointer(LinePointer::new(6000, LpFlags::Normal, 1176))
            .line_pointer(LinePointer::new(5992, LpFlags::Dead, 8))
            .line_pointer(LinePointer::new(2, LpFlags::Redirect, 0))
            .line_pointer(LinePointer::new(0, LpFlags::Dead, 0))
            .finish(0);
        assert!(Trial::table().told(&ItemsOverlap, &page).is_empty());
    }

    #[test]
    fn every_eighth_of_a_long_item_is_taken() {
        let item = |start, end| start..end;
        let mut taken = Taken([0; EIGHTHS_MAX / 64]);
        assert!(taken.take(&item(8, 32760)));
        assert!(taken.take(&item(0, 8)) && taken.take(&item(32760, 32768)));
        assert!(!taken.take(&item(16384, 16392)));
    }
}
