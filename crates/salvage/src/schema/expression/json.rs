//! The standard's JSON constructors and tests, 16 and later; truth: `get_json_constructor`.

use super::super::refusal::{Refusal, Written};
use super::tree::Node;
use super::writer::{Casts, Writer};

/// `JSFormatDefault`
const DEFAULT_FORMAT: i64 = 0;
const JSON: u32 = 114;
const JSONB: u32 = 3802;

impl<'n> Writer<'n> {
    pub(super) fn json_value(&mut self, node: &'n Node) -> Written {
        self.field(node, "raw_expr", Casts::Explicit)?;
        self.json_format(node.node("format"))
    }

    fn json_format(&mut self, format: Option<&Node>) -> Written {
        let Some(format) = format.filter(|node| node.int("format_type") != DEFAULT_FORMAT) else {
            return Ok(());
        };
        // JS_FORMAT_JSONB is 2.
        self.put(if format.int("format_type") == 2 {
            " FORMAT JSONB"
        } else {
            " FORMAT JSON"
        });
        self.done(match format.int("encoding") {
            1 => " ENCODING UTF8",
            2 => " ENCODING UTF16",
            3 => " ENCODING UTF32",
            _ => "",
        })
    }

    /// `JSCTOR_…`: object, array, aggregates of both, parse, scalar, serialize.
    pub(super) fn json_constructor(&mut self, node: &'n Node) -> Written {
        let kind = node.int("type");
        let words = [
            "",
            "JSON_OBJECT(",
            "JSON_ARRAY(",
            "",
            "",
            "JSON(",
            "JSON_SCALAR(",
            "JSON_SERIALIZE(",
        ];
        let word = usize::try_from(kind).ok().and_then(|kind| words.get(kind));
        let word = word.filter(|word| !word.is_empty());
        self.put(word.ok_or_else(|| Refusal("a JSON aggregate is not written".into()))?);
        let is_object = kind == 1;
        for (at, value) in node.list("args").iter().enumerate() {
            self.put(match (at, is_object && at % 2 == 1) {
                (0, _) => "",
                (_, true) => " : ",
                _ => ", ",
            });
            self.value(value, Casts::All)?;
        }
        if node.flag("absent_on_null") {
            self.put(if is_object { " ABSENT ON NULL" } else { "" });
        } else if kind == 2 {
            self.put(" NULL ON NULL");
        }
        self.put(if node.flag("unique") {
            " WITH UNIQUE KEYS"
        } else {
            ""
        });
        if kind != 5 && kind != 6 {
            self.json_returning(node)?;
        }
        self.done(")")
    }

    fn json_returning(&mut self, node: &'n Node) -> Written {
        let Some(returning) = node.node("returning").filter(|node| node.oid("typid") != 0) else {
            return Ok(());
        };
        let oid = returning.oid("typid");
        let name = self.names.type_with(oid, returning.int("typmod"))?;
        self.put(&format!(" RETURNING {name}"));
        let format = returning.node("format");
        let kind = format.map_or(0, |format| format.int("format_type"));
        let usual = if oid == JSONB { 2 } else { 1 };
        if kind == usual && (oid == JSON || oid == JSONB) {
            return Ok(());
        }
        self.json_format(format)
    }

    /// `x IS JSON …`
    pub(super) fn json_predicate(&mut self, node: &'n Node) -> Written {
        self.put("(");
        self.field(node, "expr", Casts::All)?;
        self.put(" IS JSON");
        self.put(match node.int("item_type") {
            1 => " OBJECT",
            2 => " ARRAY",
            3 => " SCALAR",
            _ => "",
        });
        self.put(if node.flag("unique_keys") {
            " WITH UNIQUE KEYS"
        } else {
            ""
        });
        self.done(")")
    }
}
