//! A row with values larger than memory allows, on its way into a server: they come chunk by chunk,
//! unpacked and escaped on the way, in a COPY of that row's own.

use std::collections::BTreeMap;

use pgclinic_cluster::{Charset, ToastReader};
use pgclinic_format::datum::{TypeInfo, TypeKind};
use pgclinic_format::toast::ToastPointer;
use pgclinic_servers::{CopyIn, SqlError};

use super::database_job::DatabaseJob;
use super::large_value::{Ending, in_parts};
use super::server::Streamed;
use crate::formats::{copy_around, copy_escape};
use crate::shape::Column;
use crate::texts::{Texts, below_domains};
use crate::values::{FaultKind, Partial, Row};

/// By column, why its value does not stand in its row as it was; nothing where it does.
pub(super) type LostValues = BTreeMap<usize, Option<String>>;

/// A row that is sent to a server chunk by chunk.
pub(super) struct LargeRow<'r, 'c> {
    pub(super) crew: &'c DatabaseJob<'c>,
    pub(super) table: usize,
    pub(super) columns: &'r [Column],
    pub(super) row: Row<'r>,
    pub(super) texts: &'r mut Texts,
    pub(super) chunks: Option<&'r mut ToastReader<'c>>,
}

impl LargeRow<'_, '_> {
    /// Loads the row. False where it is still to be loaded, without these values.
    pub(super) fn load(mut self, large: &[(usize, ToastPointer)]) -> (bool, LostValues) {
        let mut fates = LostValues::new();
        let mut open: Vec<(usize, ToastPointer, Way)> = Vec::new();
        for (column, pointer) in large {
            let ty = self.columns.get(*column).map(|column| &column.ty);
            match ty.and_then(|ty| way_of(ty)) {
                Some(way) if self.chunks.is_some() => open.push((*column, *pointer, way)),
                _ => {
                    let why = "; values of its type do not come in parts: a larger --memory gives it, or a directory as the destination";
                    fates.insert(*column, Some(why.into()));
                }
            }
        }
        while !open.is_empty() {
            match self.stream(&open, &mut fates) {
                None | Some(Streamed::Taken) => return (true, fates),
                Some(Streamed::Broken(column, why)) => {
                    open.retain(|(other, ..)| *other != column);
                    fates.insert(column, Some(format!("; {why}")));
                }
                Some(Streamed::Refused(why)) => {
                    for (column, ..) in open.drain(..) {
                        let why = format!("; the server does not take it: {why}");
                        fates.insert(column, Some(why));
                    }
                }
            }
            // The row is printed again.
            self.texts.take_faults();
        }
        (false, fates)
    }

    /// Once, with these values.
    fn stream(
        &mut self,
        open: &[(usize, ToastPointer, Way)],
        fates: &mut LostValues,
    ) -> Option<Streamed> {
        let columns: Vec<usize> = open.iter().map(|(column, ..)| *column).collect();
        let around = copy_around(&self.row, &columns, self.texts);
        let crew = self.crew;
        let (charset, partial) = (crew.charset, crew.options.partial);
        let chunks = self.chunks.as_mut()?;
        let mut give = |copy: &mut CopyIn<'_>| {
            let mut around = around.iter();
            for (column, pointer, way) in open {
                copy.send(around.next().map_or(&[], Vec::as_slice))?;
                let mut value = Escaped::begin(*way, charset, copy)?;
                let ending = in_parts(*pointer, chunks, &mut |bytes| value.add(bytes))?;
                let (bytes, is_text) = value.end()?;
                match ending {
                    Ending::Broken(_) if partial == Partial::Kept && bytes > 0 => {
                        let why = format!(
                            "; the first {bytes} of its bytes stand in the row, the others are missing"
                        );
                        fates.insert(*column, Some(why));
                    }
                    Ending::Broken(why) => return Ok(Some((*column, why))),
                    Ending::Whole if !is_text => {
                        let why = format!("; it was written in parts, and {}", FaultKind::Encoding);
                        fates.insert(*column, Some(why));
                    }
                    Ending::Whole => {
                        fates.insert(*column, None);
                    }
                }
            }
            copy.send(around.next().map_or(&[], Vec::as_slice))?;
            Ok(None)
        };
        crew.outlet.stream(self.table, &mut give)
    }
}

/// How the bytes of a value become text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// They are text.
    Text,
    /// Two digits each.
    Hex,
}

/// Nothing for types whose text is not that of one byte after the other.
fn way_of(ty: &TypeInfo) -> Option<Way> {
    let ty = below_domains(ty);
    match ty.oid {
        _ if ty.kind != TypeKind::Base => None,
        17 => Some(Way::Hex),
        // text, json, char(n), varchar.
        25 | 114 | 1042 | 1043 => Some(Way::Text),
        _ => (ty.name == "citext").then_some(Way::Text),
    }
}

/// A value as COPY wants it, part by part.
struct Escaped<'w, 's> {
    way: Way,
    charset: Charset,
    copy: &'w mut CopyIn<'s>,
    /// The beginning of a character.
    open: Vec<u8>,
    recoded: Vec<u8>,
    out: Vec<u8>,
    bytes: u64,
    is_text: bool,
}

impl<'w, 's> Escaped<'w, 's> {
    fn begin(way: Way, charset: Charset, copy: &'w mut CopyIn<'s>) -> Result<Self, SqlError> {
        if way == Way::Hex {
            copy.send(b"\\\\x")?;
        }
        Ok(Escaped {
            way,
            charset,
            copy,
            open: Vec::new(),
            recoded: Vec::new(),
            out: Vec::new(),
            bytes: 0,
            is_text: true,
        })
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), SqlError> {
        self.bytes += bytes.len() as u64;
        if self.way == Way::Hex {
            self.out.clear();
            for byte in bytes {
                self.out.extend([byte >> 4, byte & 15].map(digit));
            }
            return self.copy.send(&self.out);
        }
        self.open.extend_from_slice(bytes);
        let whole = self.charset.whole_bytes(&self.open);
        self.give(whole)
    }

    /// Sends so many of the bytes that are open.
    fn give(&mut self, count: usize) -> Result<(), SqlError> {
        self.out.clear();
        let text = self.open.get(..count).unwrap_or_default();
        let recoded = self.charset.recode(text, &mut self.recoded);
        self.is_text &= recoded.is_ok();
        let (Ok(text) | Err(text)) = recoded;
        copy_escape(text, &mut self.out);
        self.open.drain(..count.min(self.open.len()));
        self.copy.send(&self.out)
    }

    /// How many bytes there were, and whether all of them were text.
    fn end(mut self) -> Result<(u64, bool), SqlError> {
        self.give(self.open.len())?;
        Ok((self.bytes, self.is_text))
    }
}

/// A hexadecimal digit of a number below 16.
fn digit(half: u8) -> u8 {
    match half {
        0..10 => b'0' + half,
        _ => b'a' + half - 10,
    }
}
