//! Text that stands in its chunks as it is, on its way: it has no zero byte, and is in the encoding
//! of its database.

/// What was seen of it so far. It is never held.
pub(super) struct ExternalText {
    is_utf8: bool,
    /// Bytes that were seen.
    seen: u64,
    /// The beginning of a character that goes on in the next piece.
    begun: Vec<u8>,
    fault: Option<String>,
}

impl ExternalText {
    pub(super) fn new(is_utf8: bool) -> Self {
        ExternalText {
            is_utf8,
            seen: 0,
            begun: Vec::new(),
            fault: None,
        }
    }

    pub(super) fn feed(&mut self, piece: &[u8]) {
        if self.fault.is_some() {
            return;
        }
        if let Some(place) = piece.iter().position(|byte| *byte == 0) {
            let at = self.seen + place as u64;
            self.fault = Some(format!("text holds a zero byte at byte {at}"));
        } else if self.is_utf8 {
            self.feed_characters(piece);
        }
        self.seen += piece.len() as u64;
    }

    fn feed_characters(&mut self, piece: &[u8]) {
        let first = self.seen - self.begun.len() as u64;
        self.begun.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.begun) {
            Ok(text) => text.len(),
            Err(error) => {
                let whole = error.valid_up_to();
                if error.error_len().is_some() {
                    let at = first + whole as u64;
                    self.fault = Some(format!("text is not UTF-8 from byte {at} on"));
                }
                whole
            }
        };
        self.begun.drain(..whole);
    }

    /// What is wrong with it.
    pub(super) fn finish(self) -> Option<String> {
        let cut = || (!self.begun.is_empty()).then(|| "text ends within a character".to_owned());
        self.fault.or_else(cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(is_utf8: bool, pieces: &[&[u8]]) -> Option<String> {
        let mut text = ExternalText::new(is_utf8);
        pieces.iter().for_each(|piece| text.feed(piece));
        text.finish()
    }

    #[test]
    fn characters_may_stand_in_two_pieces() {
        let euro = "€".as_bytes();
        assert_eq!(told(true, &[b"a", &euro[..1], &euro[1..], b"b"]), None);
        assert_eq!(
            told(true, &[b"ab", &euro[..2]]).as_deref(),
            Some("text ends within a character")
        );
        assert_eq!(
            told(true, &[b"ab", &euro[..1], b"c"]).as_deref(),
            Some("text is not UTF-8 from byte 2 on")
        );
        assert_eq!(told(false, &[b"ab", &euro[..1], b"c"]), None);
    }

    #[test]
    fn no_text_holds_a_zero_byte() {
        for is_utf8 in [false, true] {
            let words = told(is_utf8, &[b"abc", b"de\0f", b"\0"]);
            assert_eq!(words.as_deref(), Some("text holds a zero byte at byte 5"));
        }
    }
}
