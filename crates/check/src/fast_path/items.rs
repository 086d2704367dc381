//! Whether items lie where items may, and whether two share bytes.

use pgclinic_format::{LinePointer, Page};

/// Words of one bit per eight bytes of the largest page.
const GRANULE_WORDS: usize = 32768 / 8 / 64;

/// Where items may stand on a page.
pub(super) struct Bounds {
    upper: usize,
    special: usize,
    least: usize,
}

impl Bounds {
    pub(super) fn of(page: Page<'_>, least: usize) -> Self {
        Bounds {
            upper: usize::from(page.pd_upper()),
            special: usize::from(page.pd_special()),
            least,
        }
    }

    #[inline]
    pub(super) fn hold(&self, pointer: LinePointer) -> bool {
        let (start, len) = (usize::from(pointer.lp_off()), usize::from(pointer.lp_len()));
        start >= self.upper && start % 8 == 0 && len >= self.least && start + len <= self.special
    }
}

/// Which eighths of a page belong to an item. Nothing is asked on the way: items share none
/// exactly if as many eighths are taken in the end as they have together.
pub(super) struct Taken {
    words: [u64; GRANULE_WORDS],
    granules: u32,
}

impl Taken {
    pub(super) fn new() -> Self {
        Taken {
            words: [0; GRANULE_WORDS],
            granules: 0,
        }
    }

    /// Takes the bytes of an item that [`Bounds`] hold, and the padding behind them.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
    pub(super) fn take(&mut self, pointer: LinePointer) {
        let first = usize::from(pointer.lp_off()) / 8;
        let count = u32::from(pointer.lp_len()).div_ceil(8);
        self.granules += count;
        if count > 64 {
            return self.take_many(first, first + count as usize);
        }
        let bits = ((1u128 << count) - 1) << (first % 64);
        self.take_bits(first / 64, bits as u64);
        self.take_bits(first / 64 + 1, (bits >> 64) as u64);
    }

    fn take_many(&mut self, first: usize, end: usize) {
        for word in first / 64..end.div_ceil(64) {
            let from = first.max(word * 64) - word * 64;
            let to = end.min(word * 64 + 64) - word * 64;
            self.take_bits(word, (u64::MAX >> (64 - (to - from))) << from);
        }
    }

    #[inline]
    fn take_bits(&mut self, word: usize, bits: u64) {
        if let Some(slot) = self.words.get_mut(word) {
            *slot |= bits;
        }
    }

    /// No two items share a byte.
    pub(super) fn is_disjoint(&self) -> bool {
        let taken: u32 = self.words.iter().map(|word| word.count_ones()).sum();
        taken == self.granules
    }
}

/// Where items of one size begin.
pub(super) struct Starts {
    words: [u64; GRANULE_WORDS],
    count: u32,
}

impl Starts {
    pub(super) fn new() -> Self {
        Starts {
            words: [0; GRANULE_WORDS],
            count: 0,
        }
    }

    /// Notes an item at this offset, a multiple of eight.
    #[inline]
    pub(super) fn add(&mut self, offset: usize) {
        self.count += 1;
        if let Some(word) = self.words.get_mut(offset / 512) {
            *word |= 1 << (offset / 8 % 64);
        }
    }

    /// Gives all items, of so many bytes each, their eighths.
    pub(super) fn take_all(&self, item_bytes: usize, taken: &mut Taken) {
        let each = item_bytes.div_ceil(8);
        taken.granules += self.count * u32::try_from(each).unwrap_or(0);
        let mut moved = self.words;
        for step in 0..each {
            if step > 0 {
                move_up(&mut moved);
            }
            for (slot, bits) in taken.words.iter_mut().zip(&moved) {
                *slot |= bits;
            }
        }
    }
}

/// Every bit goes to the next place.
fn move_up(words: &mut [u64; GRANULE_WORDS]) {
    let mut carry = 0;
    for word in words {
        let next = *word >> 63;
        *word = *word << 1 | carry;
        carry = next;
    }
}

#[cfg(test)]
mod tests {
    use pgclinic_format::LpFlags;

    use super::*;

    fn disjoint(items: &[(u16, u16)]) -> bool {
        let mut taken = Taken::new();
        for (start, len) in items {
            taken.take(LinePointer::new(*start, LpFlags::Normal, *len));
        }
        taken.is_disjoint()
    }

    #[test]
    fn items_that_share_bytes_are_noticed() {
        assert!(disjoint(&[(512, 8), (504, 8), (520, 1000), (1520, 24)]));
        assert!(disjoint(&[(8, 500), (508 + 4, 513), (1040, 20_000)]));
        assert!(!disjoint(&[(512, 16), (520, 8)]));
        assert!(!disjoint(&[(8, 8), (8, 8)]));
        assert!(!disjoint(&[(1040, 20_000), (21_032, 8)]));
    }

    #[test]
    fn items_of_one_size_are_taken_at_once() {
        let disjoint = |offsets: &[usize]| {
            let (mut starts, mut taken) = (Starts::new(), Taken::new());
            offsets.iter().for_each(|offset| starts.add(*offset));
            taken.take(LinePointer::new(800, LpFlags::Normal, 8));
            starts.take_all(24, &mut taken);
            taken.is_disjoint()
        };
        assert!(disjoint(&[504, 528, 480, 808]));
        assert!(!disjoint(&[504, 520]));
        assert!(!disjoint(&[504, 504]));
        assert!(!disjoint(&[792]));
    }
}
