//! Where printed text gathers, never beyond the caller's limits.

use std::fmt;
use std::sync::Arc;

use super::element::Unpacking;
use super::style::Style;
use super::types::{TypeInfo, TypeKind};
use super::undecodable::Undecodable;
use super::{Limits, array, multirange, range, record, register, text};

/// What prints the values of one type.
pub(super) type Print = fn(&mut Printer, &[u8]) -> Result<(), Undecodable>;

const DEPTH_MAX: u16 = 256;

pub(super) struct Printer {
    out: Vec<u8>,
    limits: Limits,
    depth: u16,
    unpacking: Unpacking,
    /// None is the plain one.
    style: Option<Arc<Style>>,
}

impl Printer {
    pub(super) fn new(limits: Limits) -> Self {
        Printer {
            style: None,
            out: Vec::new(),
            limits,
            depth: 0,
            unpacking: Unpacking {
                left: limits.unpacked_bytes,
            },
        }
    }

    /// As [`Printer::new`], in a style that is not the plain one.
    pub(super) fn styled(limits: Limits, style: Arc<Style>) -> Self {
        Printer {
            style: Some(style),
            ..Printer::new(limits)
        }
    }

    /// Forgets what was printed, and keeps its memory.
    pub(super) fn clear(&mut self) {
        self.out.clear();
        self.depth = 0;
        self.unpacking.left = self.limits.unpacked_bytes;
    }

    pub(super) fn style(&self) -> &Style {
        const PLAIN: &Style = &Style::PLAIN;
        self.style.as_deref().unwrap_or(PLAIN)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    pub(super) fn major(&self) -> u16 {
        self.limits.major
    }

    /// Prints one value of any type.
    pub(super) fn value(&mut self, ty: &TypeInfo, value: &[u8]) -> Result<(), Undecodable> {
        self.descend(|printer| match &ty.kind {
            TypeKind::Base => {
                let print = register::printer(ty).ok_or(Undecodable::unsupported(
                    "values of this type are not decoded",
                ))?;
                print(printer, value)
            }
            TypeKind::Enum(labels) => register::enum_label(printer, labels, value),
            TypeKind::Composite(fields) => record::print(printer, fields, value),
            TypeKind::Domain(base) => printer.value(base, value),
            TypeKind::Array(element) => array::print(printer, element, value),
            TypeKind::Range(subtype) => range::print(printer, subtype, value),
            TypeKind::Multirange(subtype) => multirange::print(printer, subtype, value),
            TypeKind::Bytes => text::print_bytea(printer, value),
            TypeKind::Unknown => Err(Undecodable::unsupported("nothing is known of this type")),
        })
    }

    /// One level deeper, if the limit allows it.
    pub(super) fn descend(
        &mut self,
        print: impl FnOnce(&mut Self) -> Result<(), Undecodable>,
    ) -> Result<(), Undecodable> {
        if self.depth >= self.limits.depth.min(DEPTH_MAX) {
            return Err(Undecodable::limit(
                "the value is nested deeper than the limit",
            ));
        }
        self.depth += 1;
        let done = print(self);
        self.depth -= 1;
        done
    }

    /// What compressed values may still unpack to.
    pub(super) fn unpacking(&mut self) -> &mut Unpacking {
        &mut self.unpacking
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), Undecodable> {
        if bytes.len() > self.limits.output_bytes.saturating_sub(self.out.len()) {
            return Err(Undecodable::limit("the text is longer than the limit"));
        }
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn text(&mut self, text: &str) -> Result<(), Undecodable> {
        self.raw(text.as_bytes())
    }

    pub(super) fn byte(&mut self, byte: u8) -> Result<(), Undecodable> {
        self.raw(&[byte])
    }

    /// What `append` adds, which is never more than a few hundred kilobytes.
    pub(super) fn appended(
        &mut self,
        append: impl FnOnce(&mut Vec<u8>) -> Result<(), Undecodable>,
    ) -> Result<(), Undecodable> {
        append(&mut self.out)?;
        if self.out.len() > self.limits.output_bytes {
            return Err(Undecodable::limit("the text is longer than the limit"));
        }
        Ok(())
    }

    pub(super) fn put(&mut self, arguments: fmt::Arguments<'_>) -> Result<(), Undecodable> {
        fmt::write(self, arguments)
            .map_err(|_| Undecodable::limit("the text is longer than the limit"))
    }

    /// Text in which the bytes that `escape` knows have its answer before them.
    pub(super) fn escaped(
        &mut self,
        text: &[u8],
        escape: fn(u8) -> Option<u8>,
    ) -> Result<(), Undecodable> {
        for part in text.split_inclusive(|&byte| escape(byte).is_some()) {
            let (last, before) = match part.split_last() {
                Some((&last, before)) => (last, before),
                None => continue,
            };
            self.raw(before)?;
            if let Some(sign) = escape(last) {
                self.byte(sign)?;
            }
            self.byte(last)?;
        }
        Ok(())
    }

    /// Where the next byte goes.
    pub(super) fn mark(&self) -> usize {
        self.out.len()
    }

    /// What was printed since `mark`.
    pub(super) fn since(&self, mark: usize) -> &[u8] {
        self.out.get(mark..).unwrap_or_default()
    }

    /// Puts what was printed since `mark` between double quotes, with escapes.
    pub(super) fn quote_since(
        &mut self,
        mark: usize,
        escape: fn(u8) -> Option<u8>,
    ) -> Result<(), Undecodable> {
        let text = self.out.split_off(mark.min(self.out.len()));
        self.byte(b'"')?;
        self.escaped(&text, escape)?;
        self.byte(b'"')
    }
}

impl fmt::Write for Printer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text).map_err(|_| fmt::Error)
    }
}
