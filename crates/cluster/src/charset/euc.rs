//! Encodings of several bytes a character, by tables that a server gave (`cargo xtask charsets`).
//!
//! ```text
//! file   for each set of characters 94 or 94 × 94 cells: three bytes, little-endian; then the pairs
//! cell   the character; 0 for none; from 0x110000 on the number of a pair of characters
//! pair   two cells
//! ```
//!
//! Truth: the conversions in `src/backend/utils/mb/Unicode` of PostgreSQL, which differ from those
//! of web browsers in some signs.

/// The bytes of a cell.
const CELL_BYTES: usize = 3;
/// The bytes 0xA1 to 0xFE.
const CELLS: usize = 94;
const FIRST: u8 = 0xA1;
/// No character has more bytes.
const BYTES_MAX: usize = 4;
/// Behind the last character.
const PAIRS: u32 = 0x11_0000;

/// Characters with the same bytes in front.
#[derive(PartialEq, Eq, Debug)]
struct Set {
    prefix: &'static [u8],
    /// Bytes behind the prefix, one or two.
    len: usize,
}

impl Set {
    const fn cells(&self) -> usize {
        match self.len {
            1 => CELLS,
            _ => CELLS * CELLS,
        }
    }
}

const fn pair(prefix: &'static [u8]) -> Set {
    Set { prefix, len: 2 }
}

/// An encoding.
#[derive(PartialEq, Eq, Debug)]
pub struct Euc {
    sets: &'static [Set],
    cells: &'static [u8],
}

static JAPANESE: [Set; 3] = [
    pair(&[]),
    Set {
        prefix: &[0x8E],
        len: 1,
    },
    pair(&[0x8F]),
];

/// EUC_JP.
pub(super) static EUC_JP: Euc = Euc {
    sets: &JAPANESE,
    cells: include_bytes!("euc_jp.bin"),
};

/// EUC_JIS_2004.
pub(super) static EUC_JIS_2004: Euc = Euc {
    sets: &JAPANESE,
    cells: include_bytes!("euc_jis_2004.bin"),
};

/// EUC_TW: the first two planes of CNS 11643, the only ones that the server converts; the first has
/// two ways to be written.
pub(super) static EUC_TW: Euc = Euc {
    sets: &[pair(&[]), pair(&[0x8E, 0xA1]), pair(&[0x8E, 0xA2])],
    cells: include_bytes!("euc_tw.bin"),
};

/// EUC_CN.
pub(super) static EUC_CN: Euc = Euc {
    sets: &[pair(&[])],
    cells: include_bytes!("euc_cn.bin"),
};

/// EUC_KR.
pub(super) static EUC_KR: Euc = Euc {
    sets: &[pair(&[])],
    cells: include_bytes!("euc_kr.bin"),
};

impl Euc {
    /// Appends the text in UTF-8; false where some bytes stand for nothing, each of which is
    /// marked.
    pub(super) fn decode(&self, mut text: &[u8], out: &mut Vec<u8>) -> bool {
        let mut is_whole = true;
        while let Some((&first, rest)) = text.split_first() {
            if first.is_ascii() {
                out.push(first);
                text = rest;
                continue;
            }
            match self.character(text) {
                Some((characters, behind)) => {
                    characters.iter().flatten().for_each(|one| push(*one, out));
                    text = behind;
                }
                None => {
                    push(char::REPLACEMENT_CHARACTER, out);
                    is_whole = false;
                    text = rest;
                }
            }
        }
        is_whole
    }

    /// How many of these bytes are whole characters, where the text goes on behind them.
    pub(super) fn whole_bytes(&self, text: &[u8]) -> usize {
        // A byte of ASCII is never part of another character.
        let ascii = text.iter().rposition(u8::is_ascii);
        let mut at = ascii.map_or(0, |last| last + 1);
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            at += match self.character(rest) {
                Some((_, behind)) => rest.len() - behind.len(),
                None if rest.len() < BYTES_MAX => break,
                None => 1,
            };
        }
        at
    }

    /// The one or two characters that the text begins with, and what is behind them.
    fn character<'t>(&self, text: &'t [u8]) -> Option<([Option<char>; 2], &'t [u8])> {
        let mut before = 0;
        for set in self.sets {
            if let Some(rest) = text.strip_prefix(set.prefix)
                && let Some((cell, behind)) = place(rest, set.len)
            {
                return Some((self.characters(before + cell)?, behind));
            }
            before += set.cells();
        }
        None
    }

    fn characters(&self, cell: usize) -> Option<[Option<char>; 2]> {
        let word = self.word(cell)?;
        let Some(number) = word.checked_sub(PAIRS) else {
            return (word > 0).then_some([char::from_u32(word), None]);
        };
        let cells: usize = self.sets.iter().map(Set::cells).sum();
        let at = cells + 2 * usize::try_from(number).ok()?;
        let one = |at| self.word(at).and_then(char::from_u32);
        Some([one(at), one(at + 1)])
    }

    fn word(&self, cell: usize) -> Option<u32> {
        let at = cell * CELL_BYTES;
        let bytes = self.cells.get(at..at + CELL_BYTES)?;
        let [low, middle, high] = *bytes.first_chunk()?;
        Some(u32::from_le_bytes([low, middle, high, 0]))
    }
}

/// The cell that so many bytes name, and what is behind them.
fn place(text: &[u8], len: usize) -> Option<(usize, &[u8])> {
    let (bytes, behind) = text.split_at_checked(len)?;
    let mut cell = 0;
    for byte in bytes {
        let number = usize::from(byte.checked_sub(FIRST)?);
        cell = cell * CELLS + (number < CELLS).then_some(number)?;
    }
    Some((cell, behind))
}

fn push(character: char, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(euc: &Euc, text: &[u8]) -> (String, bool) {
        let mut out = Vec::new();
        let is_whole = euc.decode(text, &mut out);
        (String::from_utf8(out).expect("UTF-8"), is_whole)
    }

    #[test]
    fn characters_of_each_set_are_found() {
        let text = b"a\xC6\xFC\xCB\xDC\x8E\xB1\x8F\xB0\xA1z";
        assert_eq!(decoded(&EUC_JP, text), ("a日本ｱ丂z".into(), true));
        // One code, two characters.
        assert_eq!(
            decoded(&EUC_JIS_2004, b"\xA4\xF7"),
            ("か\u{309A}".into(), true)
        );
        assert_eq!(decoded(&EUC_TW, b"\xC4\xE3"), ("中".into(), true));
    }

    #[test]
    fn what_stands_for_nothing_is_marked() {
        assert_eq!(decoded(&EUC_JP, b"\xC6"), ("\u{FFFD}".into(), false));
        assert_eq!(
            decoded(&EUC_JP, b"\x80a\x8E!"),
            ("\u{FFFD}a\u{FFFD}!".into(), false)
        );
    }
}
