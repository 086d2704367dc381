//! The headers of tar archives: ustar with the extensions of GNU tar and pax, as far as backups use
//! them.
//!
//! ```text
//! 0 name 100 | 124 size 12 | 148 checksum 8 | 156 kind 1 | 157 link 100 | 257 "ustar" | 345 prefix 155 | 512
//! ```
//!
//! Numbers are octal digits, or from bit 7 of their first byte on base 256. The checksum is the sum
//! of all bytes with its own field as blanks. Truth: POSIX `pax`, `tar(5)`; `src/port/tar.c`.

mod sparse;

pub use sparse::{ISLANDS_MAX, MapInContent, OldMap, PaxSparse, REAL_SIZE_MAX, Run, SparseMap};

/// Bytes of a header; members are filled up to a multiple of it.
pub const BLOCK: usize = 512;

/// What a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemberKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    SymbolicLink,
    /// A further name of another member.
    HardLink,
    /// The content is the name of the next member (GNU).
    LongName,
    /// The content is the link of the next member (GNU).
    LongLink,
    /// The content describes the next member (pax).
    Described,
    /// The content describes all members from here on (pax).
    DescribedAll,
    /// A regular file of which only islands are stored (GNU); [`OldMap`] tells where they stood.
    Sparse,
    /// A device or anything else.
    Other(u8),
}

/// A member's header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Its name.
    pub name: Vec<u8>,
    /// Bytes of its content.
    pub size: u64,
    /// What it is.
    pub kind: MemberKind,
    /// What a link leads to; for a hard link the name of another member.
    pub link: Vec<u8>,
}

/// Why a block is no header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeaderFault {
    /// Zeros only: the archive ends here.
    End,
    /// The checksum does not fit the bytes.
    Checksum,
    /// The size is no number.
    Size,
}

impl Header {
    /// Reads a block.
    pub fn parse(block: &[u8; BLOCK]) -> Result<Self, HeaderFault> {
        if block.iter().all(|byte| *byte == 0) {
            return Err(HeaderFault::End);
        }
        let told = number(field(block, 148, 8));
        if told != Some(sum(block)) && told != Some(signed_sum(block)) {
            return Err(HeaderFault::Checksum);
        }
        let kind = kind(block.get(156).copied().unwrap_or(0));
        let size = number(field(block, 124, 12)).ok_or(HeaderFault::Size)?;
        let has_content = !matches!(
            kind,
            MemberKind::Folder | MemberKind::SymbolicLink | MemberKind::HardLink
        );
        let mut name = text(field(block, 0, 100)).to_vec();
        // GNU tar has other things than a prefix there, and says so by a blank behind "ustar".
        let prefix = text(field(block, 345, 155));
        if field(block, 257, 6) == b"ustar\0" && !prefix.is_empty() {
            name = [prefix, b"/", &name].concat();
        }
        Ok(Header {
            name,
            size: if has_content { size } else { 0 },
            kind,
            link: text(field(block, 157, 100)).to_vec(),
        })
    }

    /// Bytes of the content with what fills its last block; `None` when no archive is that long.
    pub fn padded_size(&self) -> Option<u64> {
        self.size.checked_next_multiple_of(BLOCK as u64)
    }
}

/// What a description says of the next member.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Description {
    /// Its name.
    pub path: Option<Vec<u8>>,
    /// Bytes of its content.
    pub size: Option<u64>,
    /// What it leads to, where it is a link.
    pub link: Option<Vec<u8>>,
    /// It is a file with holes.
    pub sparse: Option<PaxSparse>,
}

impl Description {
    /// Reads lines `LENGTH KEY=VALUE`; what is not as it must be ends the reading.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut description = Description::default();
        let mut real_name = None;
        let mut rest = bytes;
        while let Some((key, value, behind)) = pax_line(rest) {
            match key {
                b"path" => description.path = Some(value.to_vec()),
                b"size" => description.size = digits(value, 10),
                b"linkpath" => description.link = Some(value.to_vec()),
                b"GNU.sparse.name" => real_name = Some(value.to_vec()),
                _ => {
                    if let Some(key) = key.strip_prefix(b"GNU.sparse.") {
                        let sparse = description.sparse.get_or_insert_default();
                        sparse.take(key, value);
                    }
                }
            }
            rest = behind;
        }
        // The other name says only where programs that know of no holes put what is stored.
        description.path = real_name.or(description.path);
        description
    }

    /// The same; what it does not say an earlier one does.
    pub fn or(self, earlier: Self) -> Self {
        Description {
            path: self.path.or(earlier.path),
            size: self.size.or(earlier.size),
            link: self.link.or(earlier.link),
            sparse: self.sparse.or(earlier.sparse),
        }
    }
}

fn pax_line(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let blank = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let len = usize::try_from(digits(bytes.get(..blank)?, 10)?).ok()?;
    let line = bytes.get(blank + 1..len)?.strip_suffix(b"\n")?;
    let equals = line.iter().position(|byte| *byte == b'=')?;
    Some((
        line.get(..equals)?,
        line.get(equals + 1..)?,
        bytes.get(len..)?,
    ))
}

fn field(block: &[u8; BLOCK], at: usize, len: usize) -> &[u8] {
    block.get(at..at + len).unwrap_or_default()
}

/// Up to the first NUL.
pub fn text(field: &[u8]) -> &[u8] {
    let end = field.iter().position(|byte| *byte == 0);
    field.get(..end.unwrap_or(field.len())).unwrap_or_default()
}

fn kind(flag: u8) -> MemberKind {
    match flag {
        0 | b'0' | b'7' => MemberKind::File,
        b'1' => MemberKind::HardLink,
        b'2' => MemberKind::SymbolicLink,
        b'5' => MemberKind::Folder,
        b'S' => MemberKind::Sparse,
        b'L' => MemberKind::LongName,
        b'K' => MemberKind::LongLink,
        b'x' => MemberKind::Described,
        b'g' => MemberKind::DescribedAll,
        other => MemberKind::Other(other),
    }
}

fn number(field: &[u8]) -> Option<u64> {
    match field {
        [first, rest @ ..] if first & 0x80 != 0 => {
            let high = u64::from(first & 0x7f);
            rest.iter().try_fold(high, |value, byte| {
                (value >> 56 == 0).then_some(value << 8 | u64::from(*byte))
            })
        }
        _ => digits(text(field).trim_ascii(), 8),
    }
}

/// Digits only; no digits at all are 0, as old archives write it.
fn digits(text: &[u8], base: u32) -> Option<u64> {
    text.iter().try_fold(0u64, |value, byte| {
        let digit = char::from(*byte).to_digit(base)?;
        value
            .checked_mul(u64::from(base))?
            .checked_add(u64::from(digit))
    })
}

fn sum(block: &[u8; BLOCK]) -> u64 {
    let bytes = block.iter().enumerate();
    bytes
        .map(|(at, byte)| {
            if (148..156).contains(&at) {
                32
            } else {
                u64::from(*byte)
            }
        })
        .sum()
}

/// Some old programs took bytes for signed.
fn signed_sum(block: &[u8; BLOCK]) -> u64 {
    let high = block.iter().enumerate();
    let high = high.filter(|(at, byte)| **byte >= 128 && !(148..156).contains(at));
    sum(block).wrapping_sub(256 * high.count() as u64)
}

/// A member's header, for building archives: an octal size where it fits, else base 256.
pub fn build_header(name: &[u8], size: u64, flag: u8) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| {
        if let Some(room) = block.get_mut(at..at + bytes.len()) {
            room.copy_from_slice(bytes);
        }
    };
    put(0, name.get(..name.len().min(100)).unwrap_or_default());
    put(100, b"0000600\0");
    match size {
        0..=0o77_777_777_777 => put(124, format!("{size:011o}\0").as_bytes()),
        _ => put(124, &[&[0x80, 0, 0, 0][..], &size.to_be_bytes()].concat()),
    }
    put(156, &[flag]);
    put(257, b"ustar\x0000");
    let told = format!("{:06o}\0 ", sum(&block));
    if let Some(room) = block.get_mut(148..156) {
        room.copy_from_slice(told.as_bytes());
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_is_read() {
        for size in [0, 8192, 0o77_777_777_777, 1 << 40, u64::MAX] {
            let block = build_header(b"base/5/16384.1", size, b'0');
            let header = Header::parse(&block).expect("a header");
            assert_eq!(
                (header.name.as_slice(), header.size),
                (&b"base/5/16384.1"[..], size)
            );
            assert_eq!(header.kind, MemberKind::File);
        }
        let link = Header::parse(&build_header(b"pg_tblspc/1", 77, b'2')).expect("a header");
        assert_eq!((link.kind, link.size), (MemberKind::SymbolicLink, 0));
    }

    #[test]
    fn what_is_no_header_is_told_apart() {
        assert_eq!(Header::parse(&[0; BLOCK]), Err(HeaderFault::End));
        assert_eq!(Header::parse(&[b'x'; BLOCK]), Err(HeaderFault::Checksum));
        let mut changed = build_header(b"a", 1, b'0');
        changed[0] = b'b';
        assert_eq!(Header::parse(&changed), Err(HeaderFault::Checksum));
        let mut odd = build_header(b"a", 1, b'0');
        // Two digits change places with two letters of the same sum.
        odd[124] = b'8';
        odd[125] = b'0' - 8;
        assert_eq!(Header::parse(&odd), Err(HeaderFault::Size));
    }

    #[test]
    fn a_prefix_is_put_in_front() {
        let mut block = build_header(b"16384", 1, b'0');
        block[345..351].copy_from_slice(b"base/5");
        let told = format!("{:06o}\0 ", sum(&block));
        block[148..156].copy_from_slice(told.as_bytes());
        assert_eq!(
            Header::parse(&block).expect("a header").name,
            b"base/5/16384"
        );
    }

    #[test]
    fn links_tell_where_they_lead() {
        let mut block = build_header(b"base/5/2", 0, b'1');
        block[157..165].copy_from_slice(b"base/5/1");
        let told = format!("{:06o}\0 ", sum(&block));
        block[148..156].copy_from_slice(told.as_bytes());
        let header = Header::parse(&block).expect("a header");
        assert_eq!(
            (header.kind, &*header.link),
            (MemberKind::HardLink, &b"base/5/1"[..])
        );
        let described = Description::parse(b"21 linkpath=base/5/9\n");
        assert_eq!(described.link.as_deref(), Some(&b"base/5/9"[..]));
    }

    #[test]
    fn descriptions_are_read_as_far_as_they_make_sense() {
        let read = Description::parse(b"16 path=base/5\n12 size=77\n99 x=y\n");
        assert_eq!(read, Description::default(), "the first length is wrong");
        let read = Description::parse(b"15 path=base/5\n11 size=77\n99 x=y\n");
        assert_eq!(read.path.as_deref(), Some(&b"base/5"[..]));
        assert_eq!(read.size, Some(77));
    }
}
