//! Lines of a stream, none longer than a limit.

use std::io::{BufRead, Result};

/// What is kept of a line, in bytes; a longer one is read to its end all the same.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Reads lines of any bytes.
#[derive(Debug)]
pub(super) struct BoundedLines<R> {
    reader: R,
}

impl<R: BufRead> BoundedLines<R> {
    pub(super) fn new(reader: R) -> Self {
        BoundedLines { reader }
    }

    /// The next line without its end; bytes that are no UTF-8 are replaced.
    ///
    /// # Errors
    ///
    /// When the stream cannot be read.
    pub(super) fn next_line(&mut self) -> Result<Option<String>> {
        let mut line = Vec::new();
        let mut has_begun = false;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(has_begun.then(|| text(&line)));
            }
            has_begun = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or(buffer);
            let room = LINE_BYTES_MAX.saturating_sub(line.len());
            line.extend(part.iter().take(room));
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(text(&line)));
            }
        }
    }
}

fn text(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    String::from_utf8_lossy(line).into_owned()
}
