//! INSERT, UPDATE, DELETE and MERGE, as rules and SQL functions hold them.

use super::super::refusal::{Refusal, Written};
use super::query::Names;
use super::scope::{index, kind};
use super::tree::{Node, Value};
use super::writer::{Casts, STEP, Writer, node_of};

/// Assignments inside an assignment: `a.b[1].c = …`.
const STEPS_MAX: usize = 100;

impl<'n> Writer<'n> {
    fn result_relation(&self, query: &'n Node) -> Written<&'n Node> {
        let tables = query.list("rtable");
        let table = index(query.int("resultRelation")).and_then(|at| tables.get(at));
        let table = node_of(table.unwrap_or(&Value::Nothing))?;
        if table.int("rtekind") != kind::RELATION {
            return Err(Refusal("a command changes what is no table".into()));
        }
        Ok(table)
    }

    /// `UPDATE table alias` and the like, after the indentation of a command.
    fn begin(&mut self, query: &'n Node, word: &str, alias: &str) -> Written<&'n Node> {
        self.with_clause(query)?;
        let table = self.result_relation(query)?;
        self.put(" ");
        self.indent += STEP;
        self.put(word);
        self.put(if table.flag("inh") || word == "INSERT INTO " {
            ""
        } else {
            "ONLY "
        });
        let name = self.names.relation_name(table.oid("relid"))?;
        self.put(&name);
        self.table_alias(table, query.int("resultRelation"), alias)?;
        Ok(table)
    }

    pub(super) fn insert(&mut self, query: &'n Node, names: Names) -> Written {
        let table = self.begin(query, "INSERT INTO ", " AS ")?;
        self.put(" ");
        let targets = query.nodes("targetList");
        let mut columns = Vec::new();
        let mut values = Vec::new();
        for target in targets.iter().filter(|target| !target.flag("resjunk")) {
            let value = target.field("expr").unwrap_or(&Value::Nothing);
            let (path, value) = self.assignment(table, target, value)?;
            columns.push(path);
            values.push(value);
        }
        if !columns.is_empty() {
            self.put(&format!("({}) ", columns.join(", ")));
        }
        self.put(match query.int("override") {
            1 => "OVERRIDING USER VALUE ",
            2 => "OVERRIDING SYSTEM VALUE ",
            _ => "",
        });
        self.inserted(query, &values)?;
        if let Some(conflict) = query.node("onConflict") {
            self.on_conflict(conflict, table)?;
        }
        self.returning(query, names)
    }

    fn inserted(&mut self, query: &'n Node, values: &[&'n Value]) -> Written {
        for source in query.nodes("rtable") {
            match source.int("rtekind") {
                kind::SUBQUERY => {
                    let inner = node_of(source.field("subquery").unwrap_or(&Value::Nothing))?;
                    return self.query(inner, None, Names::Hidden);
                }
                kind::VALUES => return self.values(source.list("values_lists")),
                _ => {}
            }
        }
        if values.is_empty() {
            return self.done("DEFAULT VALUES");
        }
        self.keyword("VALUES (", -STEP, STEP, 2);
        for (at, value) in values.iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            match value.node().filter(|node| node.tag == "VAR") {
                Some(_) => self.top_level(value)?,
                None => self.value(value, Casts::Explicit)?,
            }
        }
        self.done(")")
    }

    fn on_conflict(&mut self, conflict: &'n Node, table: &'n Node) -> Written {
        self.put(" ON CONFLICT");
        let arbiters = conflict.list("arbiterElems");
        if !arbiters.is_empty() {
            self.put("(");
            self.list(arbiters, Casts::Explicit)?;
            self.put(")");
            if let Some(condition) = conflict.field("arbiterWhere") {
                let before = std::mem::replace(&mut self.prefix, false);
                self.keyword(" WHERE ", -STEP, STEP, 1);
                self.value(condition, Casts::Explicit)?;
                self.prefix = before;
            }
        } else if conflict.oid("constraint") != 0 {
            let oid = conflict.oid("constraint");
            let row = self.names.row("pg_constraint", oid);
            let row = row.ok_or_else(|| Refusal::absent("constraint", oid))?;
            self.put(" ON CONSTRAINT ");
            self.put_name(&row.name("conname"));
        }
        // ONCONFLICT_NOTHING is 1.
        if conflict.int("action") == 1 {
            return self.done(" DO NOTHING");
        }
        self.put(" DO UPDATE SET ");
        self.assignments(&conflict.nodes("onConflictSet"), table)?;
        if let Some(condition) = conflict.field("onConflictWhere") {
            self.keyword(" WHERE ", -STEP, STEP, 1);
            self.value(condition, Casts::Explicit)?;
        }
        Ok(())
    }

    pub(super) fn update(&mut self, query: &'n Node, names: Names) -> Written {
        let table = self.begin(query, "UPDATE ", " ")?;
        self.put(" SET ");
        self.assignments(&query.nodes("targetList"), table)?;
        self.tables_clause(query, " FROM ")?;
        self.where_clause(query)?;
        self.returning(query, names)
    }

    pub(super) fn delete(&mut self, query: &'n Node, names: Names) -> Written {
        self.begin(query, "DELETE FROM ", " ")?;
        self.tables_clause(query, " USING ")?;
        self.where_clause(query)?;
        self.returning(query, names)
    }

    fn returning(&mut self, query: &'n Node, names: Names) -> Written {
        let targets = query.nodes("returningList");
        if targets.is_empty() {
            return Ok(());
        }
        self.keyword(" RETURNING", -STEP, STEP, 1);
        self.target_list(&targets, None, names)
    }

    fn assignments(&mut self, targets: &[&'n Node], table: &'n Node) -> Written {
        let shown = targets.iter().filter(|target| !target.flag("resjunk"));
        for (at, target) in shown.enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            let value = target.field("expr").unwrap_or(&Value::Nothing);
            let (path, value) = self.assignment(table, target, value)?;
            self.put(&path);
            self.put(" = ");
            if value
                .node()
                .is_some_and(|node| node.tag == "PARAM" && node.int("paramkind") == 3)
            {
                return Err(Refusal(
                    "several columns are set from one sub-select".into(),
                ));
            }
            self.value(value, Casts::Explicit)?;
        }
        Ok(())
    }

    /// The column that is assigned to, with its fields and elements, and the value.
    fn assignment(
        &mut self,
        table: &Node,
        target: &Node,
        value: &'n Value,
    ) -> Written<(String, &'n Value)> {
        let number = target.int("resno");
        let column = self.names.attribute(table.oid("relid"), number);
        let column = column.ok_or_else(|| Refusal(format!("column {number} is not known")))?;
        let mut path = self.names.quoted(&column.name("attname"));
        let mut value = value;
        for _ in 0..STEPS_MAX {
            let Some(node) = value.node() else {
                break;
            };
            match node.tag.as_str() {
                "FIELDSTORE" if node.list("newvals").len() == 1 => {
                    let field = node.numbers("fieldnums").first().copied().unwrap_or(0);
                    let relation = self.names.row("pg_type", node.oid("resulttype"));
                    let relation = relation.map_or(0, |row| row.oid("typrelid"));
                    let name = self.names.attribute(relation, field);
                    let name = name.ok_or_else(|| Refusal("a field is not known".into()))?;
                    path = format!("{path}.{}", self.names.quoted(&name.name("attname")));
                    value = node.list("newvals").first().unwrap_or(&Value::Nothing);
                }
                "SUBSCRIPTINGREF" if node.field("refassgnexpr").is_some() => {
                    path += &self.aside(|writer| writer.subscripts(node))?;
                    value = node.field("refassgnexpr").unwrap_or(&Value::Nothing);
                }
                "COERCETODOMAIN" if node.int("coercionformat") == super::node::IMPLICIT_CAST => {
                    let inner = node.field("arg").unwrap_or(&Value::Nothing);
                    let stores = matches!(
                        inner.node().map(|node| node.tag.as_str()),
                        Some("FIELDSTORE" | "SUBSCRIPTINGREF")
                    );
                    if !stores {
                        break;
                    }
                    value = inner;
                }
                _ => break,
            }
        }
        Ok((path, value))
    }
}
