//! Whether the columns in front of a row are all there, asked of its bitmap of nulls at once.

/// The bits of so many columns.
#[derive(Debug)]
pub(crate) struct FrontBits(Vec<u8>);

impl FrontBits {
    pub(crate) fn of(columns: usize) -> Self {
        let mut bytes = vec![0xFF; columns / 8];
        if !columns.is_multiple_of(8) {
            bytes.push((1 << (columns % 8)) - 1);
        }
        FrontBits(bytes)
    }

    /// None of the columns is null. A row without a bitmap has no nulls; one that stores fewer
    /// columns is not to be asked.
    #[inline]
    pub(crate) fn are_set(&self, bitmap: Option<&[u8]>) -> bool {
        bitmap.is_none_or(|bitmap| {
            let mut bytes = bitmap.iter().zip(&self.0);
            bytes.all(|(own, wanted)| own & wanted == *wanted)
        })
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
}
