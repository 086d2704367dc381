//! XML expressions; truth: the `T_XmlExpr` case of `get_rule_expr`.

use super::super::refusal::{Refusal, Written};
use super::constant::value_text;
use super::tree::{Node, Value};
use super::writer::{Casts, Writer, argument, node_of};

const PARSE: i64 = 3;
const ROOT: i64 = 5;
const SERIALIZE: i64 = 6;
const DOCUMENT: i64 = 7;
const FOREST: i64 = 2;

impl<'n> Writer<'n> {
    pub(super) fn xml(&mut self, node: &'n Node) -> Written {
        let op = node.int("op");
        if op == DOCUMENT {
            self.list(node.list("args"), Casts::Explicit)?;
            return self.done(" IS DOCUMENT");
        }
        let words = [
            "XMLCONCAT(",
            "XMLELEMENT(",
            "XMLFOREST(",
            "XMLPARSE(",
            "XMLPI(",
            "XMLROOT(",
            "XMLSERIALIZE(",
        ];
        let word = usize::try_from(op).ok().and_then(|op| words.get(op));
        self.put(word.ok_or_else(|| Refusal("an XML expression of unknown kind".into()))?);
        if op == PARSE || op == SERIALIZE {
            // XMLOPTION_DOCUMENT is 0.
            let is_document = node.int("xmloption") == 0;
            self.put(if is_document { "DOCUMENT " } else { "CONTENT " });
        }
        let mut between = "";
        if let Some(name) = node.text("name") {
            self.put("NAME ");
            self.put_name(&sql_identifier(name));
            between = ", ";
        }
        if !node.list("named_args").is_empty() {
            self.put(between);
            self.xml_attributes(node, op)?;
            between = ", ";
        }
        if !node.list("args").is_empty() {
            self.put(between);
            self.xml_arguments(node, op)?;
        }
        if op == SERIALIZE {
            let name = self.names.type_with(node.oid("type"), node.int("typmod"))?;
            self.put(&format!(" AS {name}"));
            // INDENT and NO INDENT came in 16.
            if self.names.major >= 16 {
                self.put(if node.flag("indent") {
                    " INDENT"
                } else {
                    " NO INDENT"
                });
            }
        }
        self.done(")")
    }

    fn xml_attributes(&mut self, node: &'n Node, op: i64) -> Written {
        self.put(if op == FOREST { "" } else { "XMLATTRIBUTES(" });
        let names = node.texts("arg_names");
        for (at, value) in node.list("named_args").iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            self.value(value, Casts::All)?;
            self.put(" AS ");
            self.put_name(&sql_identifier(names.get(at).copied().unwrap_or_default()));
        }
        self.done(if op == FOREST { "" } else { ")" })
    }

    fn xml_arguments(&mut self, node: &'n Node, op: i64) -> Written {
        match op {
            PARSE => {
                self.argument(node, 0, Casts::All)?;
                let keep = value_text(self.names, node_of(argument(node, 1)?)?)? == "t";
                self.done(if keep {
                    " PRESERVE WHITESPACE"
                } else {
                    " STRIP WHITESPACE"
                })
            }
            ROOT => self.xml_root(node),
            _ => self.list(node.list("args"), Casts::All),
        }
    }

    fn xml_root(&mut self, node: &'n Node) -> Written {
        self.argument(node, 0, Casts::All)?;
        self.put(", VERSION ");
        let version = node_of(argument(node, 1)?)?;
        if version.tag == "CONST" && version.flag("constisnull") {
            self.put("NO VALUE");
        } else {
            self.node(version, Casts::Explicit)?;
        }
        let standalone = node_of(argument(node, 2).unwrap_or(&Value::Nothing))?;
        if standalone.flag("constisnull") {
            return Ok(());
        }
        match value_text(self.names, standalone)?.as_str() {
            "0" => self.done(", STANDALONE YES"),
            "1" => self.done(", STANDALONE NO"),
            "2" => self.done(", STANDALONE NO VALUE"),
            _ => Ok(()),
        }
    }
}

/// `_x0020_` stands for a blank in an XML name; truth: `map_xml_name_to_sql_identifier`.
fn sql_identifier(name: &str) -> String {
    let mut text = String::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let code = rest.strip_prefix("_x").and_then(|hex| {
            let code = u32::from_str_radix(hex.get(..4)?, 16).ok()?;
            char::from_u32(code).filter(|_| hex.get(4..5) == Some("_"))
        });
        let taken = match code {
            Some(code) => {
                text.push(code);
                7
            }
            None => {
                text.push(first);
                first.len_utf8()
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_xml_are_names_of_sql_again() {
        assert_eq!(sql_identifier("a_x0020_b"), "a b");
        assert_eq!(sql_identifier("_x00"), "_x00");
    }
}
