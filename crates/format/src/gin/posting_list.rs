//! A compressed list of row numbers (`GinPostingList`).
//!
//! ```text
//! 0        6        8
//! | first  | nbytes | differences, 7 bits a byte, low ones first; the high bit says that more follow
//! ```
//!
//! A row number is `block << 11 | offset`; each difference to the one before is at least 1.
//! Truth: `src/backend/access/gin/ginpostinglist.c`.

use std::fmt;

use crate::bytes::{tid_at, u16_at};
use crate::types::Tid;

/// The highest line pointer number that fits (`MaxHeapTuplesPerPageBits` is 11).
pub const OFFSET_MAX: u16 = (1 << OFFSET_BITS) - 1;
const OFFSET_BITS: u32 = 11;
/// Bytes before the differences.
const HEADER_BYTES: usize = 8;
/// `MaxBytesPerInteger`.
const NUMBER_BYTES_MAX: u32 = 7;
/// Bytes of a row number as it stands.
const TID_BYTES: usize = 6;

/// Why a list of row numbers cannot be read on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostingFault {
    /// The list is longer than the room it has.
    BeyondEnd {
        /// Bytes it claims.
        claimed: usize,
        /// Bytes there are.
        available: usize,
    },
    /// A difference is cut off or has more bytes than any has.
    BrokenNumber,
    /// A row number is not above the one before.
    NotRising {
        /// The one before.
        before: Tid,
        /// This one.
        tid: Tid,
    },
    /// No row has this number.
    Impossible {
        /// The number.
        tid: Tid,
    },
    /// Behind this one a block number would be needed that no block has.
    TooHigh {
        /// The one before.
        before: Tid,
    },
}

impl fmt::Display for PostingFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PostingFault::BeyondEnd { claimed, available } => {
                write!(
                    f,
                    "a list of {claimed} bytes stands where {available} are left"
                )
            }
            PostingFault::BrokenNumber => f.write_str("a compressed number has no end"),
            PostingFault::NotRising { before, tid } => {
                write!(f, "row {tid} stands after row {before}")
            }
            PostingFault::Impossible { tid } => write!(f, "no row can be numbered {tid}"),
            PostingFault::TooHigh { before } => {
                write!(f, "the number after row {before} is too high for any row")
            }
        }
    }
}

/// The row numbers of one list; it ends after the first fault.
#[derive(Clone, Debug)]
pub struct PostingRows<'a> {
    rest: &'a [u8],
    form: Form,
    before: Option<Tid>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// The first row number comes next, given; differences follow.
    First(Tid),
    Differences,
    Plain,
    Fault(PostingFault),
    Done,
}

impl<'a> PostingRows<'a> {
    /// The compressed list at the start of `bytes`, and the bytes it occupies.
    pub fn compressed(bytes: &'a [u8]) -> (Self, usize) {
        let available = bytes.len();
        let header = tid_at(bytes, 0).zip(u16_at(bytes, TID_BYTES));
        let Some((first, packed)) = header else {
            let claimed = HEADER_BYTES;
            return (
                Self::faulty(PostingFault::BeyondEnd { claimed, available }),
                available,
            );
        };
        let end = HEADER_BYTES + usize::from(packed);
        let Some(rest) = bytes.get(HEADER_BYTES..end) else {
            let fault = PostingFault::BeyondEnd {
                claimed: end,
                available,
            };
            return (Self::faulty(fault), available);
        };
        let rows = PostingRows {
            rest,
            form: Form::First(first),
            before: None,
        };
        (rows, end.next_multiple_of(2))
    }

    /// An array of row numbers as they stand, as 9.3 and older wrote them.
    pub fn plain(bytes: &'a [u8], count: u16) -> Self {
        let claimed = usize::from(count) * TID_BYTES;
        match bytes.get(..claimed) {
            Some(rest) => PostingRows {
                rest,
                form: Form::Plain,
                before: None,
            },
            None => {
                let available = bytes.len();
                Self::faulty(PostingFault::BeyondEnd { claimed, available })
            }
        }
    }

    /// No rows.
    pub fn none() -> Self {
        PostingRows {
            rest: &[],
            form: Form::Done,
            before: None,
        }
    }

    fn faulty(fault: PostingFault) -> Self {
        PostingRows {
            rest: &[],
            form: Form::Fault(fault),
            before: None,
        }
    }

    fn differing(&mut self) -> Option<Result<Tid, PostingFault>> {
        if self.rest.is_empty() {
            return None;
        }
        let before = self.before?;
        let Some(difference) = take_number(&mut self.rest) else {
            return Some(Err(PostingFault::BrokenNumber));
        };
        if difference == 0 {
            return Some(Err(PostingFault::NotRising {
                before,
                tid: before,
            }));
        }
        let packed = pack(before).saturating_add(difference);
        Some(unpack(packed).ok_or(PostingFault::TooHigh { before }))
    }

    fn standing(&mut self) -> Option<Result<Tid, PostingFault>> {
        let tid = tid_at(self.rest, 0)?;
        self.rest = self.rest.get(TID_BYTES..)?;
        match self.before {
            Some(before) if tid <= before => Some(Err(PostingFault::NotRising { before, tid })),
            _ => Some(Ok(tid)),
        }
    }
}

impl Iterator for PostingRows<'_> {
    type Item = Result<Tid, PostingFault>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = match std::mem::replace(&mut self.form, Form::Done) {
            Form::First(tid) => {
                self.form = Form::Differences;
                Some(Ok(tid))
            }
            Form::Differences => {
                self.form = Form::Differences;
                self.differing()
            }
            Form::Plain => {
                self.form = Form::Plain;
                self.standing()
            }
            Form::Fault(fault) => Some(Err(fault)),
            Form::Done => None,
        };
        let step = match step {
            Some(Ok(tid)) if tid.offset == 0 || tid.offset > OFFSET_MAX => {
                Some(Err(PostingFault::Impossible { tid }))
            }
            step => step,
        };
        match step {
            Some(Ok(tid)) => self.before = Some(tid),
            Some(Err(_)) | None => self.form = Form::Done,
        }
        step
    }
}

fn pack(tid: Tid) -> u64 {
    u64::from(tid.block) << OFFSET_BITS | u64::from(tid.offset)
}

fn unpack(packed: u64) -> Option<Tid> {
    Some(Tid {
        block: u32::try_from(packed >> OFFSET_BITS).ok()?,
        offset: u16::try_from(packed & u64::from(OFFSET_MAX)).ok()?,
    })
}

/// Takes one number of at most seven bytes.
fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for place in 0..NUMBER_BYTES_MAX {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7F) << (7 * place);
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(first: (u32, u16), packed: &[u8]) -> Vec<u8> {
        let (block, offset) = first;
        let [b0, b1, b2, b3] = block.to_le_bytes();
        let [o0, o1] = offset.to_le_bytes();
        let [n0, n1] = u16::try_from(packed.len()).expect("short").to_le_bytes();
        let mut bytes = vec![b2, b3, b0, b1, o0, o1, n0, n1];
        bytes.extend_from_slice(packed);
        bytes
    }

    fn rows(bytes: &[u8]) -> Result<Vec<String>, PostingFault> {
        let (rows, _) = PostingRows::compressed(bytes);
        rows.map(|row| row.map(|tid| tid.to_string())).collect()
    }

    #[test]
    fn differences_add_up() {
        let bytes = list((70_000, 5), &[1, 0x80, 0x10]);
        assert_eq!(
            rows(&bytes).expect("whole"),
            ["(70000,5)", "(70000,6)", "(70001,6)"]
        );
        assert_eq!(
            PostingRows::compressed(&bytes).1,
            12,
            "rounded up to two bytes"
        );
    }

    #[test]
    fn a_broken_list_ends_with_its_fault() {
        let tid = Tid {
            block: 1,
            offset: 5,
        };
        let again = PostingFault::NotRising { before: tid, tid };
        assert_eq!(rows(&list((1, 5), &[0])), Err(again));
        assert_eq!(
            rows(&list((1, 5), &[0x81])),
            Err(PostingFault::BrokenNumber)
        );
        assert_eq!(
            rows(&list((1, 5), &[0xFF; 9])),
            Err(PostingFault::BrokenNumber)
        );
        let zero = PostingFault::Impossible {
            tid: Tid {
                block: 1,
                offset: 0,
            },
        };
        assert_eq!(rows(&list((1, 0), &[])), Err(zero));
        let high = Tid {
            block: u32::MAX,
            offset: 2047,
        };
        assert_eq!(
            rows(&list((u32::MAX, 2047), &[1])),
            Err(PostingFault::TooHigh { before: high })
        );
        let mut cut = list((1, 5), &[1, 1]);
        cut.truncate(9);
        let beyond = PostingFault::BeyondEnd {
            claimed: 10,
            available: 9,
        };
        assert_eq!(rows(&cut), Err(beyond));
    }

    #[test]
    fn old_lists_stand_as_they_are() {
        let bytes = [0, 0, 1, 0, 2, 0, 0, 0, 1, 0, 1, 0];
        let rows: Vec<_> = PostingRows::plain(&bytes, 2).collect();
        let tid = |offset| Tid { block: 1, offset };
        let back = PostingFault::NotRising {
            before: tid(2),
            tid: tid(1),
        };
        assert_eq!(rows, [Ok(tid(2)), Err(back)]);
    }
}
