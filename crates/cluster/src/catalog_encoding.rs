//! Names and other words of the catalogs as text: they are in the encoding of their database.

use crate::charset::Charset;

/// How the words of a catalog are read.
#[derive(Clone, Copy, Debug)]
pub struct CatalogEncoding {
    charset: Charset,
    is_shared: bool,
}

impl Default for CatalogEncoding {
    fn default() -> Self {
        CatalogEncoding::of(None)
    }
}

impl CatalogEncoding {
    /// Of a database of this encoding (`pg_database.encoding`); what is unknown is taken for UTF-8.
    pub fn of(encoding: Option<i32>) -> Self {
        CatalogEncoding {
            charset: Charset::to_utf8(encoding),
            is_shared: false,
        }
    }

    /// Of a catalog that all databases share, read from one of them: its words have the encodings
    /// of the databases in which they were given, so that what is UTF-8 is taken for that.
    pub fn shared(self) -> Self {
        CatalogEncoding {
            is_shared: true,
            ..self
        }
    }

    /// The text, if all of the bytes stand for some.
    pub fn text(self, bytes: &[u8]) -> Option<String> {
        match std::str::from_utf8(bytes) {
            Ok(text) if self.is_shared => Some(text.to_owned()),
            _ => self.charset.text(bytes),
        }
    }

    /// The text; where some bytes stand for nothing, what is UTF-8 with escapes for the others.
    pub fn readable(self, bytes: &[u8]) -> String {
        self.text(bytes)
            .unwrap_or_else(|| CatalogEncoding::with_escapes(bytes))
    }

    /// The bytes of a text; nothing where that is another encoding's, of more than ASCII.
    pub fn bytes(self, text: &str) -> Option<Vec<u8>> {
        let bytes = text.as_bytes();
        (self.text(bytes).as_deref() == Some(text)).then(|| bytes.to_vec())
    }

    /// What of the bytes is UTF-8, with escapes for the others.
    pub fn with_escapes(bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            text.extend(chunk.invalid().escape_ascii().map(char::from));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQL_ASCII: i32 = 0;
    const UTF8: i32 = 6;
    const LATIN1: i32 = 8;
    const WIN1251: i32 = 23;

    #[test]
    fn words_are_read_in_the_encoding_of_their_database() {
        let read = |encoding, bytes: &[u8]| CatalogEncoding::of(Some(encoding)).readable(bytes);
        assert_eq!(read(LATIN1, b"n\xE4ive"), "näive");
        assert_eq!(read(WIN1251, b"\xF6\xE2\xE5\xF2"), "цвет");
        // These two characters of LATIN1 look like one of UTF-8.
        assert_eq!(read(LATIN1, "ä".as_bytes()), "Ã¤");
        assert_eq!(read(UTF8, "näive".as_bytes()), "näive");
    }

    #[test]
    fn what_stands_for_nothing_is_escaped_and_the_rest_kept() {
        let read = |encoding, bytes: &[u8]| CatalogEncoding::of(Some(encoding)).readable(bytes);
        assert_eq!(read(SQL_ASCII, "grün".as_bytes()), "grün");
        let mixed = b"\"gr\xC3\xBCn\"\nn\xE4ive";
        assert_eq!(read(SQL_ASCII, mixed), "\"grün\"\nn\\xe4ive");
        assert_eq!(read(UTF8, mixed), "\"grün\"\nn\\xe4ive");
        assert_eq!(CatalogEncoding::of(Some(SQL_ASCII)).text(mixed), None);
    }

    #[test]
    fn shared_words_come_from_any_database() {
        let shared = CatalogEncoding::of(Some(LATIN1)).shared();
        assert_eq!(shared.readable("näive".as_bytes()), "näive");
        assert_eq!(shared.readable(b"n\xE4ive"), "näive");
    }
}
