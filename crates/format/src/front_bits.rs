//! Whether the columns in front of a row are all there, asked of its bitmap of nulls at once.

use crate::ColumnLayout;

/// The bits of so many columns.
#[derive(Debug)]
pub struct FrontBits(Vec<u8>);

impl FrontBits {
    /// The bits of so many columns in front.
    pub fn of(columns: usize) -> Self {
        let mut bytes = vec![0xFF; columns / 8];
        if !columns.is_multiple_of(8) {
            bytes.push((1 << (columns % 8)) - 1);
        }
        FrontBits(bytes)
    }

    /// None of the columns is null. A row without a bitmap has no nulls; one that stores fewer
    /// columns is not to be asked.
    #[inline]
    pub fn are_set(&self, bitmap: Option<&[u8]>) -> bool {
        bitmap.is_none_or(|bitmap| {
            let mut bytes = bitmap.iter().zip(&self.0);
            bytes.all(|(own, wanted)| own & wanted == *wanted)
        })
    }
}

/// The columns in front whose place is the same in every row that has no null among them.
#[derive(Debug)]
pub struct FixedFront {
    /// How many they are.
    columns: usize,
    /// Where they end, from the first value on.
    end: usize,
    bits: FrontBits,
}

impl FixedFront {
    /// Of these columns, those before the first of variable length.
    pub fn of(layouts: &[ColumnLayout]) -> Self {
        let (mut columns, mut end) = (0, 0usize);
        for layout in layouts {
            let Ok(len) = usize::try_from(layout.attlen) else {
                break;
            };
            end = end.next_multiple_of(usize::from(layout.attalign.max(1))) + len;
            columns += 1;
        }
        FixedFront {
            columns,
            end,
            bits: FrontBits::of(columns),
        }
    }

    /// Columns of a row that may be passed over, and where the next value is looked for. `stored`
    /// columns stand in the row.
    #[inline]
    pub fn skip(&self, bitmap: Option<&[u8]>, stored: usize) -> (usize, usize) {
        if stored >= self.columns && self.bits.are_set(bitmap) {
            (self.columns, self.end)
        } else {
            (0, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_columns_in_front_are_asked() {
        let ten = FrontBits::of(10);
        assert!(ten.are_set(None) && ten.are_set(Some(&[0xFF, 0b011])));
        assert!(!ten.are_set(Some(&[0xFF, 0b101])) && !ten.are_set(Some(&[0xFE, 0xFF])));
        assert!(FrontBits::of(0).are_set(Some(&[0])));
    }

    #[test]
    fn fixed_columns_in_front_are_passed_over_where_none_is_null() {
        let column = |attlen, attalign| ColumnLayout { attlen, attalign };
        let front = FixedFront::of(&[column(2, 2), column(8, 8), column(-1, 4), column(4, 4)]);
        assert_eq!(front.skip(None, 4), (2, 16));
        assert_eq!(front.skip(Some(&[0b1011]), 4), (2, 16));
        assert_eq!(front.skip(Some(&[0b1101]), 4), (0, 0));
        assert_eq!(front.skip(None, 1), (0, 0));
    }
}
