//! The text of a row's values, in the encoding of the files that are written.

mod packing;

use std::sync::Arc;

use pgclinic_cluster::Charset;
use pgclinic_format::datum::{BinaryWriter, ColumnPrinter, Limits, Printed, Style, TypeInfo};

use crate::shape::Column;
use crate::values::{Fault, FaultKind};
use packing::ArrowEncoder;
pub(crate) use packing::{Refusal, below_domains, fields_of};

/// Prints the values of one table, for one thread.
pub struct Texts {
    printers: Vec<ColumnPrinter>,
    types: Vec<Arc<TypeInfo>>,
    writer: BinaryWriter,
    charset: Charset,
    recoded: Vec<u8>,
    faults: Vec<Fault>,
    packings: Arc<[ArrowEncoder]>,
    sent: Vec<u8>,
    refusals: Vec<Refusal>,
}

impl Texts {
    /// For these columns.
    pub fn new(columns: &[Column], limits: Limits, charset: Charset, style: &Arc<Style>) -> Self {
        let printers = columns
            .iter()
            .map(|column| ColumnPrinter::styled(&column.ty, limits, style));
        Texts {
            printers: printers.collect(),
            types: columns
                .iter()
                .map(|column| Arc::clone(&column.ty))
                .collect(),
            writer: BinaryWriter::new(limits),
            charset,
            recoded: Vec::new(),
            faults: Vec::new(),
            packings: columns
                .iter()
                .map(|column| ArrowEncoder::of(column, charset))
                .collect(),
            sent: Vec::new(),
            refusals: Vec::new(),
        }
    }

    /// The text of a value, or what of it was appended to `out`. `None` where it has none: that is
    /// remembered.
    #[inline]
    pub fn print<'a>(
        &'a mut self,
        column: usize,
        value: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Option<Printed<'a>> {
        let start = out.len();
        let printer = self.printers.get_mut(column)?;
        let text = match printer.print(value, out) {
            Ok(Printed::Plain) => return Some(Printed::Plain),
            Ok(Printed::Text(text)) => text,
            Err(error) => {
                out.truncate(start);
                let kind = FaultKind::Undecodable(error);
                self.faults.push(Fault { column, kind });
                return None;
            }
        };
        match self.charset.recode(text, &mut self.recoded) {
            Ok(text) => Some(Printed::Text(text)),
            Err(text) => {
                let kind = FaultKind::Encoding;
                self.faults.push(Fault { column, kind });
                Some(Printed::Text(text))
            }
        }
    }

    /// Appends the text of a value whose type is a text, where nothing has to be asked of it: ASCII
    /// without a backslash and without what is not printed, which is the same in every encoding and
    /// needs no escape in `COPY` text.
    #[inline]
    pub(crate) fn print_simple(&self, column: usize, value: &[u8], out: &mut Vec<u8>) -> bool {
        let is_text = self
            .printers
            .get(column)
            .is_some_and(ColumnPrinter::is_text);
        let is_simple = is_text && is_simple(value);
        if is_simple {
            out.extend_from_slice(value);
        }
        is_simple
    }

    /// Appends the binary form of a value. `None` where it has none: that is remembered, and what
    /// was appended is of no use.
    pub fn write(&mut self, column: usize, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let ty = self.types.get(column)?;
        let (charset, memory) = (self.charset, &mut self.recoded);
        let mut recode = |text: &[u8], out: &mut Vec<u8>| {
            let recoded = charset.recode(text, memory);
            let (Ok(text) | Err(text)) = recoded;
            out.extend_from_slice(text);
            recoded.is_ok()
        };
        let kind = match self.writer.write(ty, value, out, &mut recode) {
            Ok(true) => return Some(()),
            Ok(false) => FaultKind::Encoding,
            Err(error) => FaultKind::Undecodable(error),
        };
        let is_written = kind == FaultKind::Encoding;
        self.faults.push(Fault { column, kind });
        is_written.then_some(())
    }

    /// What had no text since the last call.
    pub fn take_faults(&mut self) -> std::vec::Drain<'_, Fault> {
        self.faults.drain(..)
    }
}

const fn bytes_of(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

/// No byte is below 14, a backslash, or beyond ASCII. Eight bytes are asked at once: whether one is
/// below a bound shows in the highest bit of a difference.
#[inline]
fn is_simple(text: &[u8]) -> bool {
    let special = |word: u64| {
        let backslash = word ^ bytes_of(b'\\');
        let is_none = backslash.wrapping_sub(bytes_of(1)) & !backslash;
        let is_low = word.wrapping_sub(bytes_of(14)) & !word;
        word | is_none | is_low
    };
    let (words, rest) = text.as_chunks::<8>();
    let words = words.iter().map(|word| special(u64::from_le_bytes(*word)));
    let mut last = bytes_of(b'a').to_le_bytes();
    for (slot, byte) in last.iter_mut().zip(rest) {
        *slot = *byte;
    }
    let all = words.fold(special(u64::from_le_bytes(last)), |all, word| all | word);
    all & bytes_of(0x80) == 0
}

#[cfg(test)]
mod tests {
    use super::is_simple;

    #[test]
    fn simple_text_has_no_byte_that_is_looked_at() {
        for byte in 0..=u8::MAX {
            let is_special = byte < 14 || byte == b'\\' || byte > 127;
            for at in 0..20 {
                let mut text = *b"twenty bytes of text";
                if let Some(slot) = text.get_mut(at) {
                    *slot = byte;
                }
                assert_eq!(is_simple(&text), !is_special, "{byte} at {at}");
                assert_eq!(text.get(at..=at).map(is_simple), Some(!is_special));
            }
        }
        assert!(is_simple(b""));
    }
}
