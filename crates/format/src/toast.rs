//! A pointer to a value in the TOAST relation (`varatt_external`).
//!
//! ```text
//! 0         4                 8            12
//! | rawsize | extsize, method | value id   | TOAST relation |
//! ```
//!
//! Truth: `src/include/varatt.h`, `src/include/access/toast_internals.h`.

use crate::bytes::u32_at;
use crate::types::Oid;
use crate::varlena::{self, Varlena, size_and_method};
use crate::{Attribute, Attributes, ColumnLayout, HeapTuple};

/// The pointers of a row, with the numbers of their columns from 1 on.
pub fn pointers_of<'t>(
    tuple: HeapTuple<'t>,
    layouts: &'t [ColumnLayout],
) -> impl Iterator<Item = (u16, ToastPointer)> + 't {
    let values = (1u16..).zip(layouts).zip(Attributes::new(tuple, layouts));
    let varying = values.filter(|((_, layout), _)| layout.attlen == -1);
    varying.filter_map(move |((number, _), value)| {
        let Ok(Attribute::Value(range)) = value else {
            return None;
        };
        match varlena::parse(tuple.bytes().get(range)?).ok()?.0 {
            Varlena::External(pointer) => Some((number, pointer)),
            _ => None,
        }
    })
}

/// The largest value PostgreSQL stores, with its 4-byte header: 1 GB less one byte.
pub const MAX_VALUE_BYTES: u32 = 0x3FFF_FFFF;

/// What the row keeps of a value that was moved out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ToastPointer {
    /// Bytes of the value before compression, with its 4-byte header.
    pub va_rawsize: u32,
    /// Bytes stored in the TOAST relation.
    pub va_extsize: u32,
    /// 0 pglz, 1 lz4; counts only when the value is compressed.
    pub method: u8,
    /// The value's number in the TOAST relation.
    pub va_valueid: Oid,
    /// OID of the TOAST relation.
    pub va_toastrelid: Oid,
}

impl ToastPointer {
    /// The pointer in the 16 bytes behind header and tag.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (va_extsize, method) = size_and_method(u32_at(bytes, 4)?);
        Some(ToastPointer {
            va_rawsize: u32_at(bytes, 0)?,
            va_extsize,
            method,
            va_valueid: u32_at(bytes, 8)?,
            va_toastrelid: u32_at(bytes, 12)?,
        })
    }

    /// The same 16 bytes again.
    pub fn to_bytes(self) -> [u8; 16] {
        let words = [
            self.va_rawsize,
            self.va_extsize | u32::from(self.method) << 30,
            self.va_valueid,
            self.va_toastrelid,
        ];
        let mut bytes = [0; 16];
        for (slot, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(words) {
            *slot = word.to_le_bytes();
        }
        bytes
    }

    /// A value is compressed if it takes less room than its payload, whatever the method says.
    pub fn is_compressed(self) -> bool {
        self.va_extsize < self.va_rawsize.saturating_sub(4)
    }
}
