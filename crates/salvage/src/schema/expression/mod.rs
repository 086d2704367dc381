//! Stored expressions and queries as SQL again: what `pg_get_expr`, `pg_get_viewdef` and their like
//! print.
//!
//! ```text
//! pg_node_tree text ─► tree (bounded, no recursion) ─► writer (recursion to a written depth) ─► SQL
//! ```
//!
//! What is not understood is a [`Refusal`](super::refusal::Refusal), never a wrong statement.
//! Truth: `src/backend/utils/adt/ruleutils.c`.

mod calls;
mod columns;
mod constant;
mod from;
mod json;
mod modify;
mod node;
mod query;
mod row_fields;
mod scope;
mod sql_syntax;
mod sublink;
mod targets;
pub(crate) mod tree;
mod types;
mod with;
mod writer;
mod xml;

use pgclinic_format::Oid;

use super::catalog::{Catalogs, Row};
use super::refusal::{Refusal, Written};
use scope::Scope;
use tree::{Node, Value};
use writer::{Casts, Writer};

/// The column of a function's code, which is written without being held in memory.
pub(crate) const BODY: &str = "prosrc";

/// Reads a `pg_node_tree` column; nothing where it is null.
pub(crate) fn stored(row: Row<'_>, column: &str) -> Written<Option<Value>> {
    if row.is_lost(column) {
        return Err(Refusal(format!("its {column} cannot be read")));
    }
    row.fits_but_for(BODY)?;
    let refusal = |why| Refusal(format!("its {column} cannot be read: {why}"));
    let text = row.text(column);
    let most = row.tree_parts_max();
    text.map(|text| tree::parse_within(&text, most).map_err(refusal))
        .transpose()
}

/// The same of a column that must not be null.
pub(crate) fn needed(row: Row<'_>, column: &str) -> Written<Value> {
    stored(row, column)?.ok_or_else(|| Refusal(format!("its {column} is missing")))
}

/// An expression over the columns of one relation (0 for none), as `pg_get_expr` prints it.
pub(crate) fn on_relation(catalogs: &Catalogs<'_>, tree: &Value, relation: Oid) -> Written<String> {
    let mut writer = Writer::new(catalogs);
    if relation != 0 {
        writer.scopes.push(Scope::of_relation(catalogs, relation)?);
    }
    writer.value(tree, Casts::Explicit)?;
    Ok(writer.finish())
}

/// An expression over `old` and `new` rows of one relation, with their names before every column.
pub(crate) fn on_old_and_new(
    catalogs: &Catalogs<'_>,
    tree: &Value,
    relation: Oid,
) -> Written<String> {
    let mut writer = Writer::new(catalogs);
    writer.scopes.push(Scope::old_and_new(catalogs, relation)?);
    writer.prefix = true;
    writer.value(tree, Casts::Explicit)?;
    Ok(writer.finish())
}

/// A query whose columns have these names, as `pg_get_viewdef` prints it, without its semicolon.
pub(crate) fn query(
    catalogs: &Catalogs<'_>,
    query: &Node,
    result_names: &[String],
) -> Written<String> {
    let mut writer = Writer::new(catalogs);
    writer.query(query, Some(result_names), query::Names::Visible)?;
    Ok(writer.finish())
}

/// The body of an SQL function of this name, whose arguments have these names (empty for none).
pub(crate) fn body_statement(
    catalogs: &Catalogs<'_>,
    query: &Node,
    function: &str,
    arguments: &[String],
) -> Written<String> {
    let mut writer = Writer::new(catalogs);
    writer.arguments = Some((function.to_owned(), arguments.to_vec()));
    writer.indent = 1;
    writer.query(query, None, query::Names::Hidden)?;
    Ok(writer.finish())
}

/// The condition of a rule, whose first action has `old` and `new` among its tables.
pub(crate) fn rule_condition(
    catalogs: &Catalogs<'_>,
    condition: &Value,
    action: &Node,
) -> Written<String> {
    let mut writer = Writer::new(catalogs);
    let scope = columns::scope_of(catalogs, rule_tables(action), &[])?;
    writer.prefix = scope.entries.len() != 1;
    writer.scopes.push(scope);
    writer.indent = writer::STEP;
    writer.value(condition, Casts::Explicit)?;
    Ok(writer.finish())
}

/// In `INSERT … SELECT` it is the SELECT that has `old` and `new`.
fn rule_tables(action: &Node) -> &Node {
    const INSERT: i64 = 3;
    let is_old = |table: &&Node| {
        let name = table.node("eref").and_then(|eref| eref.text("aliasname"));
        name == Some("old")
    };
    if action.int("commandType") != INSERT || action.nodes("rtable").first().is_some_and(is_old) {
        return action;
    }
    let tables = action.nodes("rtable");
    let select = tables.iter().find_map(|table| table.node("subquery"));
    select.unwrap_or(action)
}

/// An action of a rule on a relation.
pub(crate) fn rule_action(catalogs: &Catalogs<'_>, query: &Node) -> Written<String> {
    let mut writer = Writer::new(catalogs);
    writer.query(query, None, query::Names::Visible)?;
    Ok(writer.finish())
}

/// It looks like a call, so that it may stand in an index without parentheses.
pub(crate) fn looks_like_call(node: &Node) -> bool {
    match node.tag.as_str() {
        "FUNCEXPR" => matches!(node.int("funcformat"), 0 | 3),
        "NULLIFEXPR" | "COALESCEEXPR" | "MINMAXEXPR" | "SQLVALUEFUNCTION" | "XMLEXPR"
        | "JSONEXPR" => true,
        _ => false,
    }
}

/// The type of an expression.
pub(crate) fn type_of(catalogs: &Catalogs<'_>, node: &Node) -> Written<Oid> {
    types::type_of(catalogs, node)
}

/// The collation of an expression; 0 for none.
pub(crate) fn collation_of(node: &Node) -> Oid {
    types::collation_of(node)
}
