//! Sub-selects in expressions; truth: `get_sublink_expr`.

use super::super::refusal::{Refusal, Written};
use super::query::Names;
use super::tree::{Node, Value};
use super::writer::{Casts, Writer, node_of};

pub(super) fn write<'n>(writer: &mut Writer<'n>, node: &'n Node) -> Written {
    let query = node_of(node.field("subselect").unwrap_or(&Value::Nothing))?;
    let kind = node.int("subLinkType");
    writer.put(if kind == 6 { "ARRAY(" } else { "(" });
    let operator = match node.node("testexpr") {
        Some(test) => tested(writer, test)?,
        None => String::new(),
    };
    let needs_parens = match kind {
        0 => writer.done("EXISTS ").map(|()| true)?,
        1 => writer.done(&format!(" {operator} ALL ")).map(|()| true)?,
        2 if operator == "=" => writer.done(" IN ").map(|()| true)?,
        2 => writer.done(&format!(" {operator} ANY ")).map(|()| true)?,
        3 => writer.done(&format!(" {operator} ")).map(|()| true)?,
        4..=6 => false,
        _ => return Err(Refusal("a sub-select of unknown kind".into())),
    };
    writer.put(if needs_parens { "(" } else { "" });
    writer.query(query, None, Names::Hidden)?;
    writer.done(if needs_parens { "))" } else { ")" })
}

/// Writes what is compared with the rows, and gives the operator.
fn tested<'n>(writer: &mut Writer<'n>, test: &'n Node) -> Written<String> {
    let operator_of = |writer: &Writer<'n>, oid: u32| writer.names.operator_name(oid);
    match test.tag.as_str() {
        "OPEXPR" => {
            writer.argument(test, 0, Casts::All)?;
            operator_of(writer, test.oid("opno"))
        }
        "BOOLEXPR" => {
            let comparisons = test.nodes("args");
            writer.put("(");
            for (at, comparison) in comparisons.iter().enumerate() {
                writer.put(if at > 0 { ", " } else { "" });
                writer.argument(comparison, 0, Casts::All)?;
            }
            writer.put(")");
            operator_of(
                writer,
                comparisons.first().map_or(0, |first| first.oid("opno")),
            )
        }
        "ROWCOMPAREEXPR" => {
            writer.put("(");
            writer.list(test.list("largs"), Casts::All)?;
            writer.put(")");
            let oid = test.numbers("opnos").first().copied().unwrap_or(0);
            operator_of(writer, u32::try_from(oid).unwrap_or(0))
        }
        other => Err(Refusal(format!("a sub-select is compared by a {other}"))),
    }
}
