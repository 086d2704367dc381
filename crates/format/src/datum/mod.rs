//! Attribute bytes to the text that the server's output function prints.
//!
//! The bytes are those of one attribute of PostgreSQL 13-18, little-endian: all of a fixed-size
//! value, or the payload of a varlena after its header was taken off and the value was fetched
//! and decompressed. The text is what `COPY` and psql show, before COPY's own escapes, with the
//! settings of a [`Style`].
//!
//! Two things are printed otherwise than the server does where a style does not bring their names,
//! because they need catalogs: a `reg*` value is its number, and the roles of an `aclitem` are
//! numbers.
//!
//! Truth: the output functions in `src/backend/utils/adt/` of PostgreSQL. Each file here names
//! its own.

pub(crate) mod array;
mod binary;
mod bits;
mod builtin;
mod column;
mod contrib;
mod date_style;
mod date_time;
mod decompress;
pub(crate) mod element;
mod float;
mod geometry;
mod integer;
mod interval;
mod interval_style;
mod json_escape;
pub(crate) mod jsonb;
mod jsonpath;
mod money;
mod multirange;
mod network;
mod numeric;
mod object;
mod packed_walk;
mod printer;
mod range;
pub(crate) mod reader;
pub(crate) mod record;
mod register;
mod snapshot;
mod style;
mod system;
mod text;
mod tsquery;
mod tsvector;
mod types;
mod undecodable;
mod unpacker;
mod xml;
mod zone;
mod zone_rule;

pub use binary::{BinaryWriter, Recode};
pub use builtin::{builtin, builtin_oids};
pub use column::{ColumnPrinter, Printed, is_printed};
pub use decompress::{DecompressError, decompress};
pub use packed_walk::PackedWalk;
pub use style::{
    ByteaOutput, DateOrder, DateStyle, IntervalStyle, MoneyFormat, MoneySigns, ObjectNames, Style,
};
pub use types::{DESCRIBED_OID, Field, TypeInfo, TypeKind};
pub use undecodable::{Undecodable, UndecodableKind};
pub use unpacker::{Unpacker, decompress_prefix};
pub use zone::Zone;

use std::sync::Arc;

use printer::Printer;

/// How far a value may take the printer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest text, in bytes.
    pub output_bytes: usize,
    /// All that compressed values inside arrays, ranges and records may unpack to, in bytes.
    pub unpacked_bytes: usize,
    /// How deep arrays, ranges, records, domains and jsonpath expressions may hold each other;
    /// never taken beyond 256.
    pub depth: u16,
    /// The major whose output functions are followed; they differ for high `"char"` bytes (15)
    /// and infinite intervals (17).
    pub major: u16,
}

impl Default for Limits {
    /// 64 MiB of text, 64 MiB unpacked, 128 levels, as PostgreSQL 18 prints.
    fn default() -> Self {
        Limits {
            output_bytes: 64 << 20,
            unpacked_bytes: 64 << 20,
            depth: 128,
            major: 18,
        }
    }
}

/// What the server would print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Printed text that is UTF-8.
    Text(String),
    /// Printed text that is not UTF-8: a database of another encoding (legal there) or damage.
    Bytes(Vec<u8>),
}

/// Prints the value as the server does, in whatever encoding its bytes have.
pub fn to_value(ty: &TypeInfo, value: &[u8], limits: Limits) -> Result<Value, Undecodable> {
    let mut printer = Printer::new(limits);
    printer.value(ty, value)?;
    Ok(match String::from_utf8(printer.into_bytes()) {
        Ok(text) => Value::Text(text),
        Err(error) => Value::Bytes(error.into_bytes()),
    })
}

/// As [`to_value`], for callers that want UTF-8 or nothing. Text of another encoding is an
/// `Undecodable` of [`UndecodableKind::Encoding`] whose `at` counts in the printed text.
pub fn to_text(ty: &TypeInfo, value: &[u8], limits: Limits) -> Result<String, Undecodable> {
    let mut printer = Printer::new(limits);
    printer.value(ty, value)?;
    String::from_utf8(printer.into_bytes())
        .map_err(|error| Undecodable::encoding(error.utf8_error().valid_up_to()))
}

/// Prints value after value into the same memory: for whoever only wants to know whether they can
/// be.
pub struct Prober {
    printer: Printer,
}

impl Prober {
    /// Within these limits, for each value anew.
    pub fn new(limits: Limits) -> Self {
        Prober {
            printer: Printer::new(limits),
        }
    }

    /// The same in another style than the plain one.
    pub fn styled(limits: Limits, style: Arc<Style>) -> Self {
        Prober {
            printer: Printer::styled(limits, style),
        }
    }

    /// The text of the value, in whatever encoding its bytes have.
    pub fn print(&mut self, ty: &TypeInfo, value: &[u8]) -> Result<&[u8], Undecodable> {
        self.printer.clear();
        self.printer.value(ty, value)?;
        Ok(self.printer.since(0))
    }
}
