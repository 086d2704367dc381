//! Fields by table: name, place, width and how they read.

use std::ops::Range;

use pgclinic_format::flags::{self, FlagName};
use pgclinic_format::types::INVALID_BLOCK;
use pgclinic_model::document::Field;

use super::bytes::{tid_at, u16_at, u32_at, u64_at};
use super::cover::{Cover, Part};

/// How a field reads.
#[derive(Clone, Copy)]
pub(super) enum Show {
    U8,
    U16,
    U32,
    I64,
    F64,
    /// A WAL position, high half first.
    Lsn,
    /// A block number; 0xFFFFFFFF is none.
    Block,
    /// Hexadecimal, 2 bytes.
    Hex16,
    /// Hexadecimal, 4 bytes.
    Hex32,
    /// 6 bytes.
    Tid,
    /// 2 bytes of flags.
    Flags(&'static [FlagName]),
}

impl Show {
    fn width(self) -> usize {
        match self {
            Show::U8 => 1,
            Show::U16 | Show::Hex16 | Show::Flags(_) => 2,
            Show::U32 | Show::Hex32 | Show::Block => 4,
            Show::Tid => 6,
            Show::I64 | Show::F64 | Show::Lsn => 8,
        }
    }

    fn words(self, bytes: &[u8], at: usize) -> Option<String> {
        Some(match self {
            Show::U8 => bytes.get(at)?.to_string(),
            Show::U16 => u16_at(bytes, at)?.to_string(),
            Show::U32 => u32_at(bytes, at)?.to_string(),
            Show::I64 => u64_at(bytes, at)?.cast_signed().to_string(),
            Show::F64 => f64::from_bits(u64_at(bytes, at)?).to_string(),
            Show::Lsn => format!(
                "{:X}/{:X}",
                u32_at(bytes, at)?,
                u32_at(bytes, at.checked_add(4)?)?
            ),
            Show::Block => match u32_at(bytes, at)? {
                INVALID_BLOCK => "none".into(),
                block => block.to_string(),
            },
            Show::Hex16 | Show::Flags(_) => format!("0x{:04x}", u16_at(bytes, at)?),
            Show::Hex32 => format!("0x{:08x}", u32_at(bytes, at)?),
            Show::Tid => tid_at(bytes, at).map(|(block, offset)| format!("({block},{offset})"))?,
        })
    }
}

/// A field of a struct: PostgreSQL's name, offset in the struct, how it reads.
pub(super) type Entry = (&'static str, usize, Show);

/// The fields of a struct that begins at `base` on the page, as far as they lie on it.
pub(super) fn read(page: &[u8], base: usize, entries: &[Entry]) -> Vec<Field> {
    let fields = entries.iter().filter_map(|(name, offset, show)| {
        let at = base.checked_add(*offset)?;
        let mut field = field(
            name,
            at..at.checked_add(show.width())?,
            show.words(page, at)?,
        );
        if let Show::Flags(table) = show {
            let bits = u16_at(page, at)?;
            field.meaning = flags::names(bits, table)
                .into_iter()
                .map(str::to_owned)
                .collect();
        }
        Some(field)
    });
    fields.collect()
}

/// A field without a meaning.
pub(super) fn field(name: &str, at: Range<usize>, value: impl Into<String>) -> Field {
    Field {
        name: name.into(),
        bytes: offsets(&at),
        value: value.into(),
        meaning: Vec::new(),
        fault: None,
    }
}

/// Half-open offsets as documents have them.
pub(super) fn offsets(range: &Range<usize>) -> [u64; 2] {
    [range.start, range.end].map(|at| u64::try_from(at).unwrap_or(u64::MAX))
}

/// Labels for fields.
pub(super) fn paint(fields: &[Field], part: Part, prefix: &str, cover: &mut Cover) {
    for field in fields {
        let [start, end] = field
            .bytes
            .map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        cover.paint(start..end, part, format!("{prefix}{}", field.name));
    }
}

/// The field of this name.
pub(super) fn named<'a>(fields: &'a mut [Field], name: &str) -> Option<&'a mut Field> {
    fields.iter_mut().find(|field| field.name == name)
}
