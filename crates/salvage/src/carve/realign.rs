//! A page whose content was moved by some bytes: a write that began at the wrong place, or a copy
//! that lost or gained bytes before it.
//!
//! ```text
//! as it was   header 24 · line pointers … rows
//! as it lies  garbage n · header 24 · line pointers … rows (the last n bytes are gone)      moved up by n
//!             header's end · line pointers … rows · garbage n                               moved down by n, the first n are gone
//! ```
//!
//! The word with the page's size and layout version stands 18 bytes behind the beginning of its
//! header, wherever that is.

use pgclinic_format::{BlockNo, Page};

use super::{Probe, derived_pointers, named};

/// Where a header has the page's size and layout version.
const SIZE_AND_VERSION_AT: usize = 18;
/// The only layout version there is; it stands in the low byte of the size, which is a multiple of
/// 256.
const LAYOUT_VERSION: usize = 4;
/// Places that are tried: the word is rare.
const CANDIDATES_MAX: usize = 32;

/// A page as it was before its content was moved.
pub(crate) struct Realigned {
    /// Its bytes where they stood, with zeros in the place of those that are lost.
    pub(crate) bytes: Vec<u8>,
    /// By how many bytes the content was moved.
    pub(crate) moved: isize,
    /// Where the lost bytes at its end begin.
    pub(crate) known_bytes: usize,
}

/// Moves the content back; nothing where no place has more line pointers that name rows than the
/// page has as it lies there.
pub(crate) fn realigned(page: Page<'_>, block: BlockNo, probe: &Probe<'_>) -> Option<Realigned> {
    let rows_of = |page: Page<'_>| named(page, block, &derived_pointers(page), probe).len();
    let mut best = (rows_of(page), None);
    for at in header_words(page) {
        let bytes = match at.checked_sub(SIZE_AND_VERSION_AT) {
            Some(up) => moved_down(page, up),
            None => moved_up(page, SIZE_AND_VERSION_AT - at),
        };
        let rows = Page::parse(&bytes).map_or(0, rows_of);
        if rows > best.0 {
            let moved = at.checked_signed_diff(SIZE_AND_VERSION_AT)?;
            let lost = usize::try_from(moved).unwrap_or(0);
            let known_bytes = page.len().saturating_sub(lost);
            best = (
                rows,
                Some(Realigned {
                    bytes,
                    moved,
                    known_bytes,
                }),
            );
        }
    }
    best.1
}

/// Where the word stands, but for its own place.
fn header_words(page: Page<'_>) -> impl Iterator<Item = usize> {
    let word = u16::try_from(page.len() | LAYOUT_VERSION).unwrap_or(0);
    let pairs = page.bytes().windows(2).enumerate();
    let found = pairs.filter(move |(_, pair)| *pair == word.to_le_bytes().as_slice());
    let places = found.map(|(at, _)| at);
    places
        .filter(|at| *at != SIZE_AND_VERSION_AT)
        .take(CANDIDATES_MAX)
}

/// What lies behind the first bytes, with zeros in the place of the lost end.
fn moved_down(page: Page<'_>, by: usize) -> Vec<u8> {
    let mut bytes = page.bytes().get(by..).unwrap_or_default().to_vec();
    bytes.resize(page.len(), 0);
    bytes
}

/// Zeros in the place of the lost beginning, and all but the last bytes.
fn moved_up(page: Page<'_>, by: usize) -> Vec<u8> {
    let mut bytes = vec![0; by];
    bytes.extend_from_slice(page.bytes());
    bytes.truncate(page.len());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_moves_both_ways() {
        let bytes: Vec<u8> = (0..=255).cycle().take(1024).collect();
        let page = Page::parse(&bytes).expect("a page");
        let down = moved_down(page, 1020);
        assert_eq!(down.get(..6), Some([252, 253, 254, 255, 0, 0].as_slice()));
        let up = moved_up(page, 3);
        assert_eq!(up.get(..5), Some([0, 0, 0, 0, 1].as_slice()));
        assert_eq!((down.len(), up.len()), (1024, 1024));
    }
}
