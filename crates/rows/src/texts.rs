//! The text of a row's values, in the encoding of the files that are written.

use pgclinic_format::datum::{ColumnPrinter, Limits, Printed};

use crate::charset::Charset;
use crate::shape::Column;
use crate::values::{Fault, FaultKind};

/// Prints the values of one table, for one thread.
pub struct Texts {
    printers: Vec<ColumnPrinter>,
    charset: Charset,
    recoded: Vec<u8>,
    faults: Vec<Fault>,
}

impl Texts {
    /// For these columns.
    pub fn new(columns: &[Column], limits: Limits, charset: Charset) -> Self {
        let printers = columns
            .iter()
            .map(|column| ColumnPrinter::new(&column.ty, limits));
        Texts {
            printers: printers.collect(),
            charset,
            recoded: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// The text of a value, or what of it was appended to `out`. `None` where it has none: that is remembered.
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

    /// What had no text since the last call.
    pub fn take_faults(&mut self) -> std::vec::Drain<'_, Fault> {
        self.faults.drain(..)
    }
}
