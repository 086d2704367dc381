//! From the encoding of a database to that of the files that are written.

mod euc;

use encoding_rs::Encoding;
pub use euc::Euc;
use euc::{EUC_CN, EUC_JIS_2004, EUC_JP, EUC_KR, EUC_TW};

/// What is done with the bytes of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charset {
    /// They stay as they are.
    Raw,
    /// They must be UTF-8, as the database says or as nothing says.
    Utf8,
    /// Each is a character of Unicode's first 256.
    Latin1,
    /// They are decoded by a table of characters.
    Table(&'static Encoding),
    /// The same but for these bytes.
    Changed(&'static Encoding, &'static [(u8, char)]),
    /// Several bytes may stand for one character.
    Euc(&'static Euc),
    /// Nothing here turns them into UTF-8; plain ASCII is the same everywhere.
    Ascii,
}

/// Encodings as the server numbers them.
const SQL_ASCII: i32 = 0;
const UTF8: i32 = 6;
const MULE_INTERNAL: i32 = 7;
const LATIN1: i32 = 8;

/// Encodings of one byte a character that are the same here and in the server.
static TABLES: [(i32, &Encoding); 24] = [
    (9, encoding_rs::ISO_8859_2),
    (10, encoding_rs::ISO_8859_3),
    (11, encoding_rs::ISO_8859_4),
    (13, encoding_rs::ISO_8859_10),
    (14, encoding_rs::ISO_8859_13),
    (15, encoding_rs::ISO_8859_14),
    (16, encoding_rs::ISO_8859_15),
    (17, encoding_rs::ISO_8859_16),
    (18, encoding_rs::WINDOWS_1256),
    (19, encoding_rs::WINDOWS_1258),
    (20, encoding_rs::IBM866),
    (21, encoding_rs::WINDOWS_874),
    (22, encoding_rs::KOI8_R),
    (23, encoding_rs::WINDOWS_1251),
    (24, encoding_rs::WINDOWS_1252),
    (25, encoding_rs::ISO_8859_5),
    (26, encoding_rs::ISO_8859_6),
    (27, encoding_rs::ISO_8859_7),
    (28, encoding_rs::ISO_8859_8),
    (29, encoding_rs::WINDOWS_1250),
    (30, encoding_rs::WINDOWS_1253),
    (31, encoding_rs::WINDOWS_1254),
    (32, encoding_rs::WINDOWS_1255),
    (33, encoding_rs::WINDOWS_1257),
];

/// What LATIN5 has elsewhere than the table for Turkish of Windows, which has its own signs from
/// 0x80 to 0x9F.
static LATIN5_CHANGES: [(u8, char); 32] = controls();
/// What the server's KOI8U has elsewhere than the newer table of that name.
static KOI8U_CHANGES: [(u8, char); 2] = [(0xAE, '\u{255D}'), (0xBE, '\u{256C}')];

/// The control characters from 0x80 to 0x9F.
#[expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "32 of them, and a constant expression can do no better"
)]
const fn controls() -> [(u8, char); 32] {
    let mut controls = [(0, '\0'); 32];
    let mut at = 0;
    while at < controls.len() {
        let byte = 0x80 + at as u8;
        controls[at] = (byte, byte as char);
        at += 1;
    }
    controls
}

impl Charset {
    /// From a database's encoding to UTF-8; a database of unknown encoding is taken for UTF-8. Of
    /// MULE_INTERNAL the server has no conversion to UTF-8 either: its bytes are kept.
    pub fn to_utf8(encoding: Option<i32>) -> Self {
        match encoding {
            None | Some(SQL_ASCII | UTF8) => Charset::Utf8,
            Some(LATIN1) => Charset::Latin1,
            Some(MULE_INTERNAL) => Charset::Raw,
            Some(1) => Charset::Euc(&EUC_JP),
            Some(2) => Charset::Euc(&EUC_CN),
            Some(3) => Charset::Euc(&EUC_KR),
            Some(4) => Charset::Euc(&EUC_TW),
            Some(5) => Charset::Euc(&EUC_JIS_2004),
            Some(12) => Charset::Changed(encoding_rs::WINDOWS_1254, &LATIN5_CHANGES),
            Some(34) => Charset::Changed(encoding_rs::KOI8_U, &KOI8U_CHANGES),
            Some(other) => TABLES
                .iter()
                .find(|(number, _)| *number == other)
                .map_or(Charset::Ascii, |(_, table)| Charset::Table(table)),
        }
    }

    /// Why the text of a database of this encoding does not become UTF-8, where not even the server
    /// makes it that.
    pub fn kept(encoding: Option<i32>) -> Option<&'static str> {
        (encoding == Some(MULE_INTERNAL)).then_some(
            "it is in MULE_INTERNAL, which no server converts to UTF-8: its bytes were kept, as with --encoding raw",
        )
    }

    /// The text, if all of it is some.
    pub fn text(self, bytes: &[u8]) -> Option<String> {
        let mut memory = Vec::new();
        let text = self.recode(bytes, &mut memory).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }

    /// How many of these bytes are whole characters, where the text goes on behind them.
    pub fn whole_bytes(self, text: &[u8]) -> usize {
        match self {
            Charset::Utf8 => {
                let lead = text.iter().rposition(|byte| byte & 0xC0 != 0x80);
                let start = lead.unwrap_or(0);
                let last = text.get(start..).unwrap_or_default();
                let is_cut = |error: std::str::Utf8Error| error.error_len().is_none();
                if std::str::from_utf8(last).is_err_and(is_cut) {
                    start
                } else {
                    text.len()
                }
            }
            Charset::Euc(euc) => euc.whole_bytes(text),
            _ => text.len(),
        }
    }

    /// The text in UTF-8, in `memory` where it had to be changed. An error holds it with marks in
    /// the place of bytes that stand for nothing.
    #[inline]
    pub fn recode<'a>(self, text: &'a [u8], memory: &'a mut Vec<u8>) -> Result<&'a [u8], &'a [u8]> {
        match self {
            Charset::Raw => Ok(text),
            _ if text.is_ascii() => Ok(text),
            Charset::Utf8 if std::str::from_utf8(text).is_ok() => Ok(text),
            Charset::Latin1 => {
                memory.clear();
                let mut buffer = [0; 4];
                for byte in text {
                    let character = char::from(*byte).encode_utf8(&mut buffer);
                    memory.extend_from_slice(character.as_bytes());
                }
                Ok(memory)
            }
            Charset::Utf8 => {
                memory.clear();
                memory.extend_from_slice(String::from_utf8_lossy(text).as_bytes());
                Err(memory)
            }
            Charset::Table(table) => {
                let (decoded, damaged) = table.decode_without_bom_handling(text);
                memory.clear();
                memory.extend_from_slice(decoded.as_bytes());
                if damaged { Err(memory) } else { Ok(memory) }
            }
            Charset::Changed(table, changes) => {
                memory.clear();
                for byte in text {
                    let changed = changes.iter().find(|(changed, _)| changed == byte);
                    match changed {
                        Some((_, character)) => {
                            let mut buffer = [0; 4];
                            let character = character.encode_utf8(&mut buffer);
                            memory.extend_from_slice(character.as_bytes());
                        }
                        None => {
                            let one = [*byte];
                            let (decoded, _) = table.decode_without_bom_handling(&one);
                            memory.extend_from_slice(decoded.as_bytes());
                        }
                    }
                }
                Ok(memory)
            }
            Charset::Euc(euc) => {
                memory.clear();
                if euc.decode(text, memory) {
                    Ok(memory)
                } else {
                    Err(memory)
                }
            }
            Charset::Ascii => {
                memory.clear();
                for byte in text {
                    if byte.is_ascii() {
                        memory.push(*byte)
                    } else {
                        memory.extend_from_slice("\u{FFFD}".as_bytes())
                    }
                }
                Err(memory)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text that comes in parts of any size is the text that comes at once.
    #[test]
    fn parts_end_between_characters() {
        let utf8 = "aé中\u{1F418}z".as_bytes();
        let japanese = b"a\xC6\xFC\xCB\xDC\x8E\xB1\x8F\xB0\xA1z\xC6\xFC";
        for (charset, text) in [
            (Charset::Utf8, utf8),
            (Charset::to_utf8(Some(1)), japanese.as_slice()),
            (Charset::Latin1, b"n\xE4h".as_slice()),
        ] {
            let whole = charset.text(text).expect("text");
            for size in 1..text.len() {
                let (mut found, mut open) = (String::new(), Vec::new());
                for part in text.chunks(size) {
                    open.extend_from_slice(part);
                    let rest = open.split_off(charset.whole_bytes(&open));
                    found += &charset.text(&open).expect("whole characters");
                    open = rest;
                }
                assert_eq!((found.as_str(), open.len()), (whole.as_str(), 0), "{size}");
            }
        }
        // What is no text is not waited for.
        assert_eq!(Charset::Utf8.whole_bytes(b"ab\x80\x80\x80\x80\x80"), 7);
        assert_eq!(Charset::Utf8.whole_bytes(b"ab\xFF"), 3);
    }

    #[test]
    fn what_is_no_text_is_marked_and_said() {
        let mut memory = Vec::new();
        assert_eq!(
            Charset::Utf8.recode("näh".as_bytes(), &mut memory),
            Ok("näh".as_bytes())
        );
        assert_eq!(
            Charset::Utf8.recode(b"n\xE4h", &mut memory),
            Err("n\u{FFFD}h".as_bytes())
        );
        assert_eq!(
            Charset::Latin1.recode(b"n\xE4h", &mut memory),
            Ok("näh".as_bytes())
        );
        assert_eq!(
            Charset::Raw.recode(b"n\xE4h", &mut memory),
            Ok(b"n\xE4h".as_slice())
        );
    }
}
