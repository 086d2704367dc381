//! Constants; truth: `get_const_expr`.

use std::borrow::Cow;

use pgclinic_format::datum::{Limits, Value as Printed, to_value};
use pgclinic_format::{Oid, varlena};

use super::super::catalog::Catalogs;
use super::super::identifier::literal;
use super::super::refusal::{Refusal, Written};
use super::tree::{Node, Value};
use super::writer::Writer;

/// Whether the type stands behind the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Label {
    Never,
    AsNeeded,
    Always,
}

impl<'n> Writer<'n> {
    pub(super) fn constant(&mut self, node: &'n Node, label: Label) -> Written {
        let (oid, typmod) = (node.oid("consttype"), node.int("consttypmod"));
        if node.flag("constisnull") {
            self.put("NULL");
            if label == Label::Never {
                return Ok(());
            }
            self.label(oid, typmod)?;
            return self.constant_collation(node);
        }
        let text = value_text(self.names, node)?;
        let needs_label = self.constant_text(oid, &text);
        if label == Label::Never {
            return Ok(());
        }
        let needs_label = match oid {
            16 | 705 => false,
            23 => needs_label,
            1700 => needs_label || typmod >= 0,
            _ => true,
        };
        if needs_label || label == Label::Always {
            self.label(oid, typmod)?;
        }
        self.constant_collation(node)
    }

    fn label(&mut self, oid: Oid, typmod: i64) -> Written {
        let name = self.names.type_with(oid, typmod)?;
        self.done(&format!("::{name}"))
    }

    /// Writes the value; true when it needs its type to mean the same again.
    fn constant_text(&mut self, oid: Oid, text: &str) -> bool {
        let begins_with_digit = text.starts_with(|first: char| first.is_ascii_digit());
        match oid {
            16 => self.put(if text == "t" { "true" } else { "false" }),
            23 if begins_with_digit => self.put(text),
            1700 if begins_with_digit && text.contains(['e', 'E', '.']) => self.put(text),
            _ => {
                self.put(&literal(text));
                return true;
            }
        }
        false
    }

    fn constant_collation(&mut self, node: &Node) -> Written {
        let own = node.oid("constcollid");
        let of_type = self.names.row("pg_type", node.oid("consttype"));
        if own == 0 || of_type.is_some_and(|row| row.oid("typcollation") == own) {
            return Ok(());
        }
        let collate = self.names.collate(own);
        self.done(&collate)
    }
}

/// The text of a constant, as the server's output function prints it.
pub(super) fn value_text(catalogs: &Catalogs<'_>, node: &Node) -> Written<String> {
    let oid = node.oid("consttype");
    let Some(Value::Datum(bytes)) = node.field("constvalue") else {
        return Err(Refusal("a constant has no value".into()));
    };
    let bytes = payload(bytes, node.int("constlen"))?;
    if let Some(text) = registered(catalogs, oid, &bytes) {
        return text;
    }
    let info = catalogs.catalog.type_info(oid);
    let limits = Limits {
        major: catalogs.major,
        ..Limits::default()
    };
    let refusal = |why: &str| Refusal(format!("a constant of type {}: {why}", info.name));
    let written = |text: &[u8]| {
        let text = catalogs.words.text(text);
        text.ok_or_else(|| refusal("its text is none in the encoding of the database"))
    };
    match to_value(&info, &bytes, limits) {
        Ok(Printed::Text(text)) => written(text.as_bytes()),
        Ok(Printed::Bytes(text)) => written(&text),
        Err(error) => Err(refusal(error.what)),
    }
}

/// Bytes of the longest constant that is written out.
const CONSTANT_BYTES_MAX: u32 = 64 << 20;

fn payload(bytes: &[u8], len: i64) -> Written<Cow<'_, [u8]>> {
    match len {
        -1 => match varlena::parse(bytes) {
            Ok((value, _)) => value
                .unpacked(CONSTANT_BYTES_MAX)
                .ok_or_else(|| Refusal("a constant does not unpack".into())),
            Err(_) => Err(Refusal("a constant is no value of varying length".into())),
        },
        -2 => Ok(bytes.strip_suffix(&[0]).unwrap_or(bytes).into()),
        len => {
            let len = usize::try_from(len).unwrap_or(0);
            let bytes = bytes.get(..len);
            let bytes = bytes.ok_or_else(|| Refusal("a constant is truncated".into()))?;
            Ok(bytes.into())
        }
    }
}

/// The types whose values are OIDs of other things: their names, as an empty `search_path` shows
/// them.
fn registered(catalogs: &Catalogs<'_>, oid: Oid, bytes: &[u8]) -> Option<Written<String>> {
    let value = Oid::from_le_bytes(*bytes.first_chunk()?);
    let named = match oid {
        24 => catalogs.function_name(value),
        2202 => catalogs
            .function_signature(value)
            .map(|text| text.replace(", ", ",")),
        2203 => operator(catalogs, value).map(|(name, _)| name),
        2204 => operator(catalogs, value).map(|(name, types)| format!("{name}({types})")),
        2205 => catalogs.relation_name(value),
        2206 => catalogs.type_name(value),
        3734 => catalogs.configuration_name(value),
        3769 => catalogs.dictionary_name(value),
        4089 => catalogs
            .schema_name(value)
            .map(|name| catalogs.quoted(&name)),
        4096 => catalogs.role_name(value),
        4191 => catalogs.collation_name(value),
        _ => return None,
    };
    if value == 0 {
        return Some(Ok("-".into()));
    }
    Some(named)
}

fn operator(catalogs: &Catalogs<'_>, oid: Oid) -> Written<(String, String)> {
    let row = catalogs
        .row("pg_operator", oid)
        .ok_or_else(|| Refusal::absent("operator", oid))?;
    let (schema, name) = (row.oid("oprnamespace"), row.name("oprname"));
    let name = if schema == super::super::catalog::PG_CATALOG {
        name
    } else {
        format!("{}.{name}", catalogs.quoted(&catalogs.schema_name(schema)?))
    };
    let side = |oid: Oid| match oid {
        0 => Ok("NONE".into()),
        oid => catalogs.type_name(oid),
    };
    let types = format!(
        "{},{}",
        side(row.oid("oprleft"))?,
        side(row.oid("oprright"))?
    );
    Ok((name, types))
}
