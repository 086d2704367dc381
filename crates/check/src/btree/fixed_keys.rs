//! Keys of numbers: they stand at the same place in every entry, and a word or two of each say
//! which comes first.

use pgclinic_format::ColumnLayout;
use pgclinic_format::order::Word;

use crate::btree::key_order::DATA_AT;

/// Words of a key that are compared this way.
pub(crate) const WORDS_MAX: usize = 3;

/// How the keys of an index are read, where all its columns are of fixed size.
#[derive(Debug)]
pub(crate) struct FixedKeys {
    /// Bytes of an entry without nulls that names one row.
    pub(crate) entry_bytes: u16,
    words: Vec<Word>,
}

impl FixedKeys {
    /// `keys` gives the words of each key column and whether it is in descending order.
    pub(super) fn new(
        layouts: &[ColumnLayout],
        keys: impl Iterator<Item = Option<(Vec<Word>, bool)>>,
    ) -> Option<Self> {
        let mut starts = Vec::new();
        let mut end = DATA_AT;
        for layout in layouts {
            let start = end.next_multiple_of(usize::from(layout.attalign.max(1)));
            starts.push(start);
            end = start.checked_add(usize::try_from(layout.attlen).ok()?)?;
        }
        let mut words = Vec::new();
        for (key, start) in keys.zip(starts) {
            let (own, descending) = key?;
            words.extend(own.iter().map(|word| word.placed(start, descending)));
        }
        let entry_bytes = u16::try_from(end.next_multiple_of(8)).ok()?;
        (1..=WORDS_MAX).contains(&words.len()).then_some(())?;
        Some(FixedKeys { entry_bytes, words })
    }

    /// The words, if they are so many.
    pub(crate) fn words<const N: usize>(&self) -> Option<&[Word; N]> {
        self.words.as_slice().try_into().ok()
    }
}

/// A key as numbers that compare as keys do; nothing where the entry is too short.
#[inline]
pub(crate) fn image<const N: usize>(words: &[Word; N], entry: &[u8]) -> Option<[u64; N]> {
    let mut image = [0; N];
    for (number, word) in image.iter_mut().zip(words) {
        *number = word.read(entry)?;
    }
    Some(image)
}
