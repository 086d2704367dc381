//! Attribute bytes to what the server's send function gives: the values of `COPY … (FORMAT binary)`
//! and of binary results.
//!
//! Numbers are big-endian, texts have no end and stand in the encoding of the client, and what
//! holds other values gives each with its length in front. Truth: the `…send` functions in
//! `src/backend/utils/adt/` and `contrib`.

mod containers;
mod scalars;
mod words;

use super::element::Unpacking;
use super::types::{TypeInfo, TypeKind};
use super::undecodable::Undecodable;
use super::{Limits, Prober};
use crate::types::FIRST_NORMAL_OID;

const DEPTH_MAX: u16 = 256;

/// Appends a text in the encoding of the client; false where some bytes stand for nothing.
pub type Recode<'r> = dyn FnMut(&[u8], &mut Vec<u8>) -> bool + 'r;

/// Writes value after value.
pub struct BinaryWriter {
    limits: Limits,
    /// For types that are sent as their text.
    prober: Prober,
}

impl BinaryWriter {
    /// Within these limits, for each value anew.
    pub fn new(limits: Limits) -> Self {
        BinaryWriter {
            limits,
            prober: Prober::new(limits),
        }
    }

    /// Appends a value: a fixed one whole, a varlena's payload. Tells whether all of its text was
    /// some; where it is an error, what was appended is of no use.
    pub fn write(
        &mut self,
        ty: &TypeInfo,
        value: &[u8],
        out: &mut Vec<u8>,
        recode: &mut Recode<'_>,
    ) -> Result<bool, Undecodable> {
        let end = out.len().saturating_add(self.limits.output_bytes);
        let mut sender = Sender {
            out,
            end,
            depth: 0,
            limits: self.limits,
            unpacking: Unpacking {
                left: self.limits.unpacked_bytes,
            },
            prober: &mut self.prober,
            recode,
            is_text: true,
        };
        sender.value(ty, value)?;
        Ok(sender.is_text)
    }
}

type Send = fn(&mut Sender<'_, '_>, &TypeInfo, &[u8]) -> Result<(), Undecodable>;

struct Sender<'a, 'r> {
    out: &'a mut Vec<u8>,
    end: usize,
    depth: u16,
    limits: Limits,
    unpacking: Unpacking,
    prober: &'a mut Prober,
    recode: &'a mut Recode<'r>,
    is_text: bool,
}

impl Sender<'_, '_> {
    fn value(&mut self, ty: &TypeInfo, value: &[u8]) -> Result<(), Undecodable> {
        if self.depth >= self.limits.depth.min(DEPTH_MAX) {
            return Err(Undecodable::limit(
                "the value is nested deeper than the limit",
            ));
        }
        self.depth += 1;
        let done = match &ty.kind {
            TypeKind::Base => match send_of(ty) {
                Some(send) => send(self, ty, value),
                None => Err(Undecodable::unsupported("the type has no binary form")),
            },
            TypeKind::Enum(_) => self.as_text(ty, value),
            TypeKind::Domain(base) => self.value(base, value),
            TypeKind::Composite(fields) => containers::record(self, fields, value),
            TypeKind::Array(element) => containers::array(self, element, value),
            TypeKind::Range(subtype) => containers::range(self, subtype, value),
            TypeKind::Multirange(subtype) => containers::multirange(self, subtype, value),
            TypeKind::Bytes => self.raw(value),
            TypeKind::Unknown => Err(Undecodable::unsupported("nothing is known of this type")),
        };
        self.depth -= 1;
        done
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), Undecodable> {
        if bytes.len() > self.end.saturating_sub(self.out.len()) {
            return Err(Undecodable::limit("the value is longer than the limit"));
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    fn i32(&mut self, number: i32) -> Result<(), Undecodable> {
        self.raw(&number.to_be_bytes())
    }

    fn u32(&mut self, number: u32) -> Result<(), Undecodable> {
        self.raw(&number.to_be_bytes())
    }

    fn u16(&mut self, number: u16) -> Result<(), Undecodable> {
        self.raw(&number.to_be_bytes())
    }

    fn count(&mut self, count: usize) -> Result<(), Undecodable> {
        let count = i32::try_from(count);
        self.i32(count.map_err(|_| Undecodable::limit("there are too many parts"))?)
    }

    /// A text as the client has it.
    fn text(&mut self, text: &[u8]) -> Result<(), Undecodable> {
        if let Some(at) = text.iter().position(|&byte| byte == 0) {
            return Err(Undecodable::damaged("text holds a zero byte", at));
        }
        self.is_text &= (self.recode)(text, self.out);
        self.hold_to_limit()
    }

    fn hold_to_limit(&self) -> Result<(), Undecodable> {
        if self.out.len() > self.end {
            Err(Undecodable::limit("the value is longer than the limit"))
        } else {
            Ok(())
        }
    }

    /// A value whose binary form is its text.
    fn as_text(&mut self, ty: &TypeInfo, value: &[u8]) -> Result<(), Undecodable> {
        let text = self.prober.print(ty, value)?;
        self.is_text &= (self.recode)(text, self.out);
        self.hold_to_limit()
    }

    /// What `send` appends, with its length in front.
    fn with_length(
        &mut self,
        send: impl FnOnce(&mut Self) -> Result<(), Undecodable>,
    ) -> Result<(), Undecodable> {
        let start = self.out.len();
        self.i32(0)?;
        let from = self.out.len();
        send(self)?;
        let length = i32::try_from(self.out.len() - from)
            .map_err(|_| Undecodable::limit("the value is longer than the limit"))?;
        if let Some(slot) = self.out.get_mut(start..from) {
            slot.copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }

    /// A value inside another one.
    fn part(&mut self, ty: &TypeInfo, value: &[u8]) -> Result<(), Undecodable> {
        self.with_length(|sender| sender.value(ty, value))
    }

    /// In the place of a value that is null.
    fn null(&mut self) -> Result<(), Undecodable> {
        self.i32(-1)
    }
}

fn send_of(ty: &TypeInfo) -> Option<Send> {
    if ty.oid >= FIRST_NORMAL_OID {
        return Some(match ty.name.as_str() {
            "citext" => |sender, ty, value| sender.as_text(ty, value),
            "hstore" => words::hstore,
            "ltree" => |sender, ty, value| words::versioned_text(sender, ty, value),
            "cube" => scalars::cube,
            _ => return None,
        });
    }
    Some(match ty.oid {
        17 | 2950 | 829 | 774 | 3361 | 3402 | 5017 => |sender, _, value| sender.raw(value),
        16
        | 18
        | 20
        | 21
        | 23
        | 24
        | 26
        | 28
        | 29
        | 700
        | 701
        | 790
        | 1082
        | 1083
        | 1114
        | 1184
        | 3220
        | 5069
        | 2202..=2206
        | 3734
        | 3769
        | 4089
        | 4096
        | 4191 => scalars::turned,
        27 => scalars::tid,
        1186 => |sender, _, value| scalars::words_of(sender, value, &[8, 4, 4]),
        1266 => |sender, _, value| scalars::words_of(sender, value, &[8, 4]),
        600 | 601 | 603 | 628 | 718 => scalars::doubles,
        602 => scalars::path,
        604 => scalars::polygon,
        650 | 869 => scalars::address,
        1560 | 1562 => scalars::bits,
        1700 => scalars::numeric,
        2970 | 5038 => scalars::snapshot,
        22 | 30 | 2277 => containers::any_array,
        3614 => words::tsvector,
        3615 => words::tsquery,
        3802 | 4072 => |sender, ty, value| words::versioned_text(sender, ty, value),
        19 | 25 | 114 | 142 | 194 | 705 | 1042 | 1043 | 1790 | 2275 => {
            |sender, ty, value| sender.as_text(ty, value)
        }
        _ => return None,
    })
}
