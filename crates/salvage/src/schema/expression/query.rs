//! Queries: `SELECT`, `VALUES` and set operations; truth: `get_query_def`, `get_select_query_def`.

use super::super::refusal::{Refusal, Written};
use super::columns::scope_of;
use super::scope::{index, kind};
use super::targets::Naming;
use super::tree::{Node, Value};
use super::writer::{Casts, STEP, Writer, node_of};

/// Whether anybody sees the names of the columns; where not, they need not be kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Names {
    Visible,
    Hidden,
}

impl<'n> Writer<'n> {
    /// A query inside those that are being written. `result` names its columns, if it is known.
    pub(super) fn query(
        &mut self,
        query: &'n Node,
        result: Option<&[String]>,
        names: Names,
    ) -> Written {
        if query.tag != "QUERY" {
            return Err(Refusal(format!(
                "a {} stands where a query belongs",
                query.tag
            )));
        }
        let scope = scope_of(self.names, query, &self.scopes)?;
        let tables = scope.entries.iter();
        let tables = tables.filter(|entry| entry.kind() != kind::GROUP).count();
        let before = (
            self.prefix,
            self.indent,
            self.grouping,
            std::mem::take(&mut self.windows),
            std::mem::take(&mut self.window_targets),
        );
        let inside = !self.scopes.is_empty() || self.arguments.is_some();
        self.prefix = inside || tables != 1;
        self.grouping = false;
        self.scopes.push(scope);
        self.descend(|writer| writer.command(query, result, names))?;
        self.scopes.pop();
        (
            self.prefix,
            self.indent,
            self.grouping,
            self.windows,
            self.window_targets,
        ) = before;
        Ok(())
    }

    fn command(&mut self, query: &'n Node, result: Option<&[String]>, names: Names) -> Written {
        // MERGE came in 15, before the last two.
        let has_merge = self.names.major >= 15;
        match query.int("commandType") {
            1 => self.select(query, result, names),
            2 => self.update(query, names),
            3 => self.insert(query, names),
            4 => self.delete(query, names),
            5 if has_merge => Err(Refusal("MERGE is not written".into())),
            6 if !has_merge => self.done("NOTHING"),
            7 if has_merge => self.done("NOTHING"),
            5 | 6 => self.notify(query),
            _ => Err(Refusal("a query of unknown kind".into())),
        }
    }

    fn notify(&mut self, query: &'n Node) -> Written {
        let statement = query.node("utilityStmt");
        let statement = statement.filter(|node| node.tag == "NOTIFYSTMT");
        let statement = statement.ok_or_else(|| Refusal("a command that is no query".into()))?;
        self.keyword("", 0, STEP, 1);
        self.put("NOTIFY ");
        self.put_name(statement.text("conditionname").unwrap_or_default());
        if let Some(payload) = statement.text("payload") {
            self.put(&format!(", {}", super::super::identifier::literal(payload)));
        }
        Ok(())
    }

    fn select(&mut self, query: &'n Node, result: Option<&[String]>, names: Names) -> Written {
        self.with_clause(query)?;
        self.windows = query.nodes("windowClause");
        self.window_targets = query.nodes("targetList");
        let naming = match query.node("setOperations") {
            Some(operation) => {
                self.set_operation(operation, query, result, names)?;
                Naming::ByNumber
            }
            None => {
                self.basic_select(query, result, names)?;
                Naming::ByExpression
            }
        };
        let order = query.list("sortClause");
        if !order.is_empty() {
            self.keyword(" ORDER BY ", -STEP, STEP, 1);
            let targets = query.nodes("targetList");
            self.order_by(order, &targets, naming)?;
        }
        if let Some(offset) = query.field("limitOffset") {
            self.keyword(" OFFSET ", -STEP, STEP, 0);
            self.value(offset, Casts::Explicit)?;
        }
        if let Some(count) = query.field("limitCount") {
            self.limit(count, query.int("limitOption"))?;
        }
        if query.flag("hasForUpdate") {
            self.row_marks(query)?;
        }
        Ok(())
    }

    fn limit(&mut self, count: &'n Value, option: i64) -> Written {
        // LIMIT_OPTION_WITH_TIES: 1 since 13, where 0 is COUNT.
        if option == 1 {
            self.keyword(" FETCH FIRST ", -STEP, STEP, 0);
            self.put("(");
            self.value(count, Casts::Explicit)?;
            return self.done(") ROWS WITH TIES");
        }
        self.keyword(" LIMIT ", -STEP, STEP, 0);
        let is_all = |node: &&Node| node.tag == "CONST" && node.flag("constisnull");
        if count.node().as_ref().is_some_and(is_all) {
            return self.done("ALL");
        }
        self.value(count, Casts::Explicit)
    }

    fn row_marks(&mut self, query: &'n Node) -> Written {
        for mark in query.nodes("rowMarks") {
            if mark.flag("pushedDown") {
                continue;
            }
            let words = match mark.int("strength") {
                1 => " FOR KEY SHARE",
                2 => " FOR SHARE",
                3 => " FOR NO KEY UPDATE",
                4 => " FOR UPDATE",
                _ => return Err(Refusal("a row lock of unknown kind".into())),
            };
            self.keyword(words, -STEP, STEP, 0);
            let scope = self.scopes.last();
            let entry = scope.and_then(|scope| scope.entry(mark.int("rti")));
            let name = entry
                .and_then(|entry| entry.name.clone())
                .unwrap_or_default();
            self.put(" OF ");
            self.put_name(&name);
            self.put(match mark.int("waitPolicy") {
                1 => " SKIP LOCKED",
                2 => " NOWAIT",
                _ => "",
            });
        }
        Ok(())
    }

    fn basic_select(
        &mut self,
        query: &'n Node,
        result: Option<&[String]>,
        names: Names,
    ) -> Written {
        self.indent += STEP;
        self.put(" ");
        if let Some(values) = simple_values(query, result) {
            return self.values(values.list("values_lists"));
        }
        self.put(if query.flag("isReturn") {
            "RETURN"
        } else {
            "SELECT"
        });
        self.distinct(query)?;
        self.target_list(&query.nodes("targetList"), result, names)?;
        self.tables_clause(query, " FROM ")?;
        self.where_clause(query)?;
        self.group_by(query)?;
        if let Some(having) = query.field("havingQual") {
            self.keyword(" HAVING ", -STEP, STEP, 0);
            self.value(having, Casts::Explicit)?;
        }
        self.window_clause(query)
    }

    fn distinct(&mut self, query: &'n Node) -> Written {
        let distinct = query.nodes("distinctClause");
        if distinct.is_empty() {
            return Ok(());
        }
        self.put(" DISTINCT");
        if query.flag("hasDistinctOn") {
            self.put(" ON (");
            self.sort_references(&distinct, &query.nodes("targetList"))?;
            self.put(")");
        }
        Ok(())
    }

    pub(super) fn where_clause(&mut self, query: &'n Node) -> Written {
        let tree = query.node("jointree");
        if let Some(condition) = tree.and_then(|tree| tree.field("quals")) {
            self.keyword(" WHERE ", -STEP, STEP, 1);
            self.value(condition, Casts::Explicit)?;
        }
        Ok(())
    }

    /// `VALUES (…), (…)`
    pub(super) fn values(&mut self, lists: &'n [Value]) -> Written {
        self.put("VALUES ");
        for (index, list) in lists.iter().enumerate() {
            self.put(if index > 0 { ", (" } else { "(" });
            for (index, value) in list.list().iter().enumerate() {
                self.put(if index > 0 { "," } else { "" });
                match value.node().filter(|node| node.tag == "VAR") {
                    Some(_) => self.top_level(value)?,
                    None => self.value(value, Casts::Explicit)?,
                }
            }
            self.put(")");
        }
        Ok(())
    }

    fn set_operation(
        &mut self,
        operation: &'n Node,
        query: &'n Node,
        result: Option<&[String]>,
        names: Names,
    ) -> Written {
        if operation.tag == "RANGETBLREF" {
            return self.set_operand(operation, query, result, names);
        }
        let kinds = ["", "UNION ", "INTERSECT ", "EXCEPT "];
        let kind = usize::try_from(operation.int("op")).unwrap_or(0);
        let word = kinds.get(kind).filter(|word| !word.is_empty());
        let word = word.ok_or_else(|| Refusal("a set operation of unknown kind".into()))?;
        let (left, right) = (side(operation, "larg")?, side(operation, "rarg")?);
        let is_operation = |node: &Node| node.tag == "SETOPERATIONSTMT";
        let same = |node: &Node| {
            node.int("op") == operation.int("op") && node.flag("all") == operation.flag("all")
        };
        let parens = is_operation(left) && !same(left);
        let step = if parens { STEP } else { 0 };
        if parens {
            self.put("(");
            self.keyword("", step, 0, 0);
        }
        self.descend(|writer| writer.set_operation(left, query, result, names))?;
        self.keyword(if parens { ") " } else { "" }, -step, 0, 0);
        self.put(word);
        self.put(if operation.flag("all") { "ALL " } else { "" });
        let parens = is_operation(right);
        let step = if parens { STEP } else { 0 };
        self.put(if parens { "(" } else { "" });
        self.keyword("", step, 0, 0);
        self.descend(|writer| writer.set_operation(right, query, result, Names::Hidden))?;
        self.indent -= step;
        if parens {
            self.keyword(")", 0, 0, 0);
        }
        Ok(())
    }

    fn set_operand(
        &mut self,
        reference: &'n Node,
        query: &'n Node,
        result: Option<&[String]>,
        names: Names,
    ) -> Written {
        let tables = query.list("rtable");
        let table = index(reference.int("rtindex")).and_then(|at| tables.get(at));
        let operand = table
            .and_then(Value::node)
            .and_then(|node| node.node("subquery"));
        let operand = operand.ok_or_else(|| Refusal("a set operation has no query".into()))?;
        let parts = [
            "cteList",
            "sortClause",
            "rowMarks",
            "limitOffset",
            "limitCount",
            "setOperations",
        ];
        let parens = parts.iter().any(|part| operand.field(part).is_some());
        self.parenthesised(parens, |writer| writer.query(operand, result, names))
    }
}

fn side<'t>(operation: &'t Node, field: &str) -> Written<&'t Node> {
    node_of(operation.field(field).unwrap_or(&Value::Nothing))
}

/// The one VALUES list that the whole query is.
fn simple_values<'n>(query: &'n Node, result: Option<&[String]>) -> Option<&'n Node> {
    let mut found = None;
    for table in query.nodes("rtable") {
        match (table.int("rtekind"), table.flag("inFromCl")) {
            (kind::VALUES, true) if found.is_none() => found = Some(table),
            (kind::RELATION, false) => {}
            _ => return None,
        }
    }
    let columns = found?.node("eref")?.texts("colnames");
    let targets = query.nodes("targetList");
    if targets.len() != columns.len() {
        return None;
    }
    for (at, (target, column)) in targets.iter().zip(columns).enumerate() {
        let own = result.and_then(|names| names.get(at)).map(String::as_str);
        if target.flag("resjunk") || own.or(target.text("resname")) != Some(column) {
            return None;
        }
    }
    found
}
