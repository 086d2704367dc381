//! A reader whose next bytes can be looked at before somebody takes them.

use std::io::{self, BufRead, Read};

/// Bytes that can be looked at: as many as tell what a frame is.
const HEAD_BYTES: usize = 4;

/// A reader that shows its next bytes before they are taken.
pub(super) struct PeekReader<R> {
    inner: R,
    head: [u8; HEAD_BYTES],
    /// Bytes of the head that were taken, and that are there.
    at: usize,
    len: usize,
    is_at_end: bool,
}

impl<R: Read> PeekReader<R> {
    pub(super) fn of(inner: R) -> Self {
        PeekReader {
            inner,
            head: [0; HEAD_BYTES],
            at: 0,
            len: 0,
            is_at_end: false,
        }
    }

    /// The next four bytes, which stay where they are; fewer only at the end.
    pub(super) fn look(&mut self) -> io::Result<&[u8]> {
        let (at, len) = (self.at.min(self.len), self.len);
        self.head.copy_within(at..len, 0);
        (self.at, self.len) = (0, len - at);
        while let Some(room) = self
            .head
            .get_mut(self.len..)
            .filter(|room| !room.is_empty())
        {
            match self.inner.read(room) {
                Ok(0) => break,
                Ok(count) => self.len = self.len.saturating_add(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.left())
    }

    /// Somebody wanted to take bytes, and none were left.
    pub(super) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Takes up to four bytes that were looked at.
    pub(super) fn take_head(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.len);
    }

    fn left(&self) -> &[u8] {
        self.head.get(self.at..self.len).unwrap_or_default()
    }
}

impl<R: Read> Read for PeekReader<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.left().is_empty() {
            let count = self.inner.read(buf)?;
            self.is_at_end |= count == 0 && !buf.is_empty();
            return Ok(count);
        }
        let count = self.left().read(buf)?;
        self.take_head(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for PeekReader<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at < self.len {
            Ok(self.left())
        } else {
            self.inner.fill_buf()
        }
    }

    fn consume(&mut self, amount: usize) {
        if self.at < self.len {
            self.take_head(amount)
        } else {
            self.inner.consume(amount)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_at_comes_again() {
        let mut looked = PeekReader::of(&b"abcdefg"[..]);
        assert_eq!(looked.look().expect("bytes"), b"abcd");
        assert_eq!(looked.look().expect("bytes"), b"abcd");
        looked.take_head(1);
        assert_eq!(looked.look().expect("bytes"), b"bcde");
        assert_eq!(looked.fill_buf().expect("bytes"), b"bcde");
        looked.consume(2);
        let mut rest = Vec::new();
        looked.read_to_end(&mut rest).expect("bytes");
        assert_eq!(rest, b"defg");
        assert!(looked.is_at_end());
        assert_eq!(looked.look().expect("the end"), b"");
    }

    #[test]
    fn the_end_is_not_told_before_somebody_meets_it() {
        let mut looked = PeekReader::of(&b"abc"[..]);
        assert_eq!(looked.look().expect("bytes"), b"abc");
        looked.read_exact(&mut [0; 3]).expect("bytes");
        assert!(!looked.is_at_end());
        assert_eq!(looked.read(&mut [0; 1]).expect("the end"), 0);
        assert!(looked.is_at_end());
    }
}
