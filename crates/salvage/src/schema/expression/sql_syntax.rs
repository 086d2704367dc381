//! Functions that the standard calls with words instead of commas; truth: `get_func_sql_syntax`.

use super::super::refusal::{Refusal, Written};
use super::constant::value_text;
use super::tree::Node;
use super::types;
use super::writer::{Casts, Writer, argument, node_of};

const TEXT: u32 = 25;

/// True when the call was written; some functions are called with commas all the same.
pub(super) fn write<'n>(writer: &mut Writer<'n>, node: &'n Node) -> Written<bool> {
    let oid = node.oid("funcid");
    let row = writer
        .names
        .row("pg_proc", oid)
        .ok_or_else(|| Refusal::absent("function", oid))?;
    let count = node.list("args").len();
    match (row.name("proname").as_str(), count) {
        ("timezone", 1) => words(writer, node, &["(", " AT LOCAL)"], &[0])?,
        ("timezone", _) => words(writer, node, &["(", " AT TIME ZONE ", ")"], &[1, 0])?,
        ("overlaps", _) => {
            let between = ["((", ", ", ") OVERLAPS (", ", ", "))"];
            words(writer, node, &between, &[0, 1, 2, 3])?;
        }
        ("extract", _) => {
            let field = value_text(writer.names, node_of(argument(node, 0)?)?)?;
            words(
                writer,
                node,
                &[&format!("EXTRACT({field} FROM "), ")"],
                &[1],
            )?;
        }
        ("is_normalized", 1) => words(writer, node, &["(", " IS NORMALIZED)"], &[0])?,
        ("is_normalized", _) => {
            let form = value_text(writer.names, node_of(argument(node, 1)?)?)?;
            words(
                writer,
                node,
                &["(", &format!(" IS {form} NORMALIZED)")],
                &[0],
            )?;
        }
        ("pg_collation_for", _) => words(writer, node, &["COLLATION FOR (", ")"], &[0])?,
        ("normalize", 1) => words(writer, node, &["NORMALIZE(", ")"], &[0])?,
        ("normalize", _) => {
            let form = value_text(writer.names, node_of(argument(node, 1)?)?)?;
            words(writer, node, &["NORMALIZE(", &format!(", {form})")], &[0])?;
        }
        ("overlay", 3) => {
            words(
                writer,
                node,
                &["OVERLAY(", " PLACING ", " FROM ", ")"],
                &[0, 1, 2],
            )?;
        }
        ("overlay", _) => {
            let between = ["OVERLAY(", " PLACING ", " FROM ", " FOR ", ")"];
            words(writer, node, &between, &[0, 1, 2, 3])?;
        }
        ("position", _) => words(writer, node, &["POSITION((", ") IN (", "))"], &[1, 0])?,
        ("substring", _) => return substring(writer, node),
        ("btrim", _) => trim(writer, node, "BOTH")?,
        ("ltrim", _) => trim(writer, node, "LEADING")?,
        ("rtrim", _) => trim(writer, node, "TRAILING")?,
        ("system_user", _) => writer.put("SYSTEM_USER"),
        ("xmlexists", _) => words(writer, node, &["XMLEXISTS((", ") PASSING (", "))"], &[0, 1])?,
        _ => return Ok(false),
    }
    Ok(true)
}

/// The arguments of these numbers between the words.
fn words<'n>(
    writer: &mut Writer<'n>,
    node: &'n Node,
    between: &[&str],
    arguments: &[usize],
) -> Written {
    for (index, word) in between.iter().enumerate() {
        writer.put(word);
        if let Some(number) = arguments.get(index) {
            writer.argument(node, *number, Casts::Explicit)?;
        }
    }
    Ok(())
}

fn substring<'n>(writer: &mut Writer<'n>, node: &'n Node) -> Written<bool> {
    let second = types::type_of(writer.names, node_of(argument(node, 1)?)?)?;
    let count = node.list("args").len();
    if second == TEXT && count == 2 {
        return Ok(false);
    }
    if second == TEXT {
        let between = ["SUBSTRING(", " SIMILAR ", " ESCAPE ", ")"];
        words(writer, node, &between, &[0, 1, 2])?;
    } else if count == 2 {
        words(writer, node, &["SUBSTRING(", " FROM ", ")"], &[0, 1])?;
    } else {
        words(
            writer,
            node,
            &["SUBSTRING(", " FROM ", " FOR ", ")"],
            &[0, 1, 2],
        )?;
    }
    Ok(true)
}

fn trim<'n>(writer: &mut Writer<'n>, node: &'n Node, side: &str) -> Written {
    if node.list("args").len() == 1 {
        return words(writer, node, &[&format!("TRIM({side} FROM "), ")"], &[0]);
    }
    words(
        writer,
        node,
        &[&format!("TRIM({side} "), " FROM ", ")"],
        &[1, 0],
    )
}
