//! From the encoding of a database to that of the files that are written.

/// What is done with the bytes of text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Charset {
    /// They stay as they are.
    Raw,
    /// They must be UTF-8, as the database says or as nothing says.
    Utf8,
    /// Each is a character of Unicode's first 256.
    Latin1,
    /// Nothing here turns them into UTF-8; plain ASCII is the same everywhere.
    Ascii,
}

/// Encodings as the server numbers them.
const SQL_ASCII: i32 = 0;
const UTF8: i32 = 6;
const LATIN1: i32 = 8;

impl Charset {
    /// From a database's encoding to UTF-8; a database of unknown encoding is taken for UTF-8.
    pub fn to_utf8(encoding: Option<i32>) -> Self {
        match encoding {
            None | Some(SQL_ASCII | UTF8) => Charset::Utf8,
            Some(LATIN1) => Charset::Latin1,
            Some(_) => Charset::Ascii,
        }
    }

    /// The text in UTF-8, in `memory` where it had to be changed. An error holds it with marks in the place of bytes
    /// that stand for nothing.
    #[inline]
    pub(crate) fn recode<'a>(
        self,
        text: &'a [u8],
        memory: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], &'a [u8]> {
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
            Charset::Ascii => {
                memory.clear();
                for byte in text {
                    match byte.is_ascii() {
                        true => memory.push(*byte),
                        false => memory.extend_from_slice("\u{FFFD}".as_bytes()),
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
