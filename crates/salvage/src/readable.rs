//! Whether some bytes can be a value of a table's column: what tells a row from other bytes.

use pgclinic_cluster::Charset;
use pgclinic_format::datum::{ColumnPrinter, Limits, Printed};
use pgclinic_format::toast::MAX_VALUE_BYTES;
use pgclinic_format::{Varlena, varlena};

use crate::shape::{Origin, Table};

/// Values that are compressed in a row never unpack to more: the longest match of a page of 32 kB.
const UNPACKED_MAX: u32 = 16 << 20;

/// Tries values of one table, for one thread.
pub(crate) struct Readable {
    /// By attribute; none where its type is not known or not written.
    printers: Vec<Option<(i16, ColumnPrinter)>>,
    toast: Option<u32>,
    charset: Charset,
    text: Vec<u8>,
}

impl Readable {
    pub(crate) fn new(table: &Table, limits: Limits, charset: Charset) -> Self {
        let mut printers: Vec<Option<(i16, ColumnPrinter)>> =
            table.layouts.iter().map(|_| None).collect();
        for column in &table.columns {
            if let Origin::Attribute(index) = column.origin
                && let Some(slot) = printers.get_mut(index)
            {
                let attlen = table.layouts.get(index).map_or(-1, |layout| layout.attlen);
                *slot = Some((attlen, ColumnPrinter::new(&column.ty, limits)));
            }
        }
        Readable {
            printers,
            toast: table.toast.as_ref().map(|(oid, _)| *oid),
            charset,
            text: Vec::new(),
        }
    }

    /// The bytes, with a varlena's header, can be a value of this attribute.
    pub(crate) fn fits(&mut self, attribute: usize, value: &[u8]) -> bool {
        let Some(Some((attlen, printer))) = self.printers.get_mut(attribute) else {
            return true;
        };
        self.text.clear();
        let text = &mut self.text;
        let mut is_text = |value: &[u8]| match printer.print(value, text) {
            Ok(Printed::Plain) => true,
            Ok(Printed::Text(text)) => {
                self.charset != Charset::Utf8 || std::str::from_utf8(text).is_ok()
            }
            Err(_) => false,
        };
        if *attlen != -1 {
            return is_text(value);
        }
        match varlena::parse(value) {
            Ok((Varlena::External(pointer), _)) => {
                let is_own = |oid| oid == Table::ANY_TOAST || oid == pointer.va_toastrelid;
                self.toast.is_some_and(is_own)
                    && pointer.va_rawsize <= MAX_VALUE_BYTES
                    && pointer.va_extsize <= pointer.va_rawsize
            }
            Ok((value, _)) => value
                .unpacked(UNPACKED_MAX)
                .is_some_and(|payload| is_text(&payload)),
            Err(_) => false,
        }
    }
}
