//! FROM: tables, sub-selects, functions, joins and their aliases; truth: `get_from_clause_item`.

use super::super::refusal::{Refusal, Written};
use super::query::Names;
use super::scope::{index, kind};
use super::tree::{Node, Value};
use super::writer::{Casts, STEP, Writer, node_of};

/// `unnest(anyarray)`
const UNNEST: u32 = 2331;

impl<'n> Writer<'n> {
    pub(super) fn tables_clause(&mut self, query: &'n Node, word: &str) -> Written {
        let tree = query.node("jointree");
        let items = tree.map(|tree| tree.nodes("fromlist")).unwrap_or_default();
        let mut is_first = true;
        for item in items {
            if item.tag == "RANGETBLREF" && !self.table(query, item)?.flag("inFromCl") {
                continue;
            }
            if is_first {
                self.keyword(word, -STEP, STEP, 2);
                self.table_item(item, query)?;
                is_first = false;
                continue;
            }
            self.put(", ");
            let text = self.aside(|writer| writer.table_item(item, query))?;
            if text.starts_with('\n') {
                let kept = self.out.trim_end_matches(' ').len();
                self.out.truncate(kept);
            } else {
                self.keyword("", -STEP, STEP, 4);
            }
            self.put(&text);
        }
        Ok(())
    }

    fn table(&self, query: &'n Node, reference: &Node) -> Written<&'n Node> {
        let tables = query.list("rtable");
        let table = index(reference.int("rtindex")).and_then(|at| tables.get(at));
        node_of(table.unwrap_or(&Value::Nothing))
    }

    fn table_item(&mut self, item: &'n Node, query: &'n Node) -> Written {
        self.descend(|writer| match item.tag.as_str() {
            "RANGETBLREF" => writer.plain_table(item, query),
            "JOINEXPR" => writer.join(item, query),
            other => Err(Refusal(format!("a {other} in FROM"))),
        })
    }

    fn plain_table(&mut self, item: &'n Node, query: &'n Node) -> Written {
        let table = self.table(query, item)?;
        self.put(if table.flag("lateral") {
            "LATERAL "
        } else {
            ""
        });
        match table.int("rtekind") {
            kind::RELATION => {
                let name = self.names.relation_name(table.oid("relid"))?;
                self.put(if table.flag("inh") { "" } else { "ONLY " });
                self.put(&name);
            }
            kind::SUBQUERY => {
                self.put("(");
                let inner = node_of(table.field("subquery").unwrap_or(&Value::Nothing))?;
                self.query(inner, None, Names::Visible)?;
                self.put(")");
            }
            kind::FUNCTION => self.functions(table)?,
            kind::TABLE_FUNCTION => self.field(table, "tablefunc", Casts::All)?,
            kind::VALUES => {
                self.put("(");
                self.values(table.list("values_lists"))?;
                self.put(")");
            }
            kind::CTE => self.put_name(table.text("ctename").unwrap_or_default()),
            _ => return Err(Refusal("a table of unknown kind in FROM".into())),
        }
        let number = item.int("rtindex");
        self.table_alias(table, number, " ")?;
        match record_columns(table) {
            Some(function) => self.column_definitions(function, Some(number))?,
            None => self.column_aliases(number)?,
        }
        if let Some(sample) = table.node("tablesample") {
            self.sample(sample)?;
        }
        Ok(())
    }

    fn functions(&mut self, table: &'n Node) -> Written {
        let functions = table.nodes("functions");
        let ordinality = table.flag("funcordinality");
        let calls: Written<Vec<&'n Node>> = functions
            .iter()
            .map(|function| node_of(function.field("funcexpr").unwrap_or(&Value::Nothing)))
            .collect();
        let calls = calls?;
        let has_columns = |function: &&Node| function.field("funccolnames").is_some();
        match (calls.as_slice(), functions.as_slice()) {
            ([call], [function]) if !has_columns(function) || !ordinality => {
                self.call_in_from(call)?;
            }
            _ if !functions.iter().any(has_columns) && calls.iter().all(|call| is_unnest(call)) => {
                self.put("UNNEST(");
                let arguments = calls.iter().flat_map(|call| call.list("args"));
                for (at, argument) in arguments.enumerate() {
                    self.put(if at > 0 { ", " } else { "" });
                    self.value(argument, Casts::All)?;
                }
                self.put(")");
            }
            _ => {
                self.put("ROWS FROM(");
                for (at, (call, function)) in calls.iter().zip(&functions).enumerate() {
                    self.put(if at > 0 { ", " } else { "" });
                    self.call_in_from(call)?;
                    if has_columns(function) {
                        self.put(" AS ");
                        self.column_definitions(function, None)?;
                    }
                }
                self.put(")");
            }
        }
        self.done(if ordinality { " WITH ORDINALITY" } else { "" })
    }

    /// The alias, where the table does not bring its name along.
    pub(super) fn table_alias(&mut self, table: &Node, number: i64, before: &str) -> Written {
        let scope = self.scopes.last();
        let entry = scope.and_then(|scope| scope.entry(number));
        let refusal = || Refusal("a table is not in its query".into());
        let entry = entry.ok_or_else(refusal)?;
        let name = entry.name.clone().unwrap_or_default();
        let wanted = table.field("alias").is_some()
            || entry.columns.listed
            || match table.int("rtekind") {
                kind::RELATION => {
                    let row = self.names.row("pg_class", table.oid("relid"));
                    row.is_none_or(|row| row.name("relname") != name)
                }
                kind::FUNCTION | kind::SUBQUERY | kind::VALUES => true,
                kind::CTE => table.text("ctename") != Some(name.as_str()),
                _ => false,
            };
        if wanted {
            self.put(before);
            self.put_name(&name);
        }
        Ok(())
    }

    fn column_aliases(&mut self, number: i64) -> Written {
        let scope = self.scopes.last();
        let Some(columns) = scope
            .and_then(|scope| scope.entry(number))
            .map(|entry| &entry.columns)
        else {
            return Ok(());
        };
        if !columns.listed || columns.new_names.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = columns
            .new_names
            .iter()
            .map(|(name, _)| self.names.quoted(name))
            .collect();
        self.done(&format!("({})", names.join(", ")))
    }

    /// `(a integer, b text)` behind a function that returns records.
    fn column_definitions(&mut self, function: &'n Node, number: Option<i64>) -> Written {
        let scope = self.scopes.last();
        let entry = number.and_then(|number| scope.and_then(|scope| scope.entry(number)));
        let aliases = entry
            .map(|entry| entry.columns.names.clone())
            .unwrap_or_default();
        let own = function.texts("funccolnames");
        let (types, typmods) = (
            function.numbers("funccoltypes"),
            function.numbers("funccoltypmods"),
        );
        let collations = function.numbers("funccolcollations");
        self.put("(");
        for (at, oid) in types.iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            let alias = aliases.get(at).cloned().flatten();
            self.put_name(
                alias
                    .as_deref()
                    .unwrap_or(own.get(at).copied().unwrap_or_default()),
            );
            let oid = u32::try_from(*oid).unwrap_or(0);
            let name = self
                .names
                .type_with(oid, typmods.get(at).copied().unwrap_or(-1))?;
            self.put(&format!(" {name}"));
            let collation = collations
                .get(at)
                .and_then(|oid| u32::try_from(*oid).ok())
                .unwrap_or(0);
            let usual = self
                .names
                .row("pg_type", oid)
                .map_or(0, |row| row.oid("typcollation"));
            if collation != usual {
                let collate = self.names.collate(collation);
                self.put(&collate);
            }
        }
        self.done(")")
    }

    fn join(&mut self, join: &'n Node, query: &'n Node) -> Written {
        let refusal = || Refusal("a join has a side that is no table".into());
        let condition = join.field("quals");
        self.put("(");
        self.table_item(join.node("larg").ok_or_else(refusal)?, query)?;
        let word = match join.int("jointype") {
            0 if condition.is_some() => " JOIN ",
            0 => " CROSS JOIN ",
            1 => " LEFT JOIN ",
            2 => " FULL JOIN ",
            3 => " RIGHT JOIN ",
            _ => return Err(Refusal("a join of unknown kind".into())),
        };
        self.keyword(word, -STEP, STEP, 4);
        self.table_item(join.node("rarg").ok_or_else(refusal)?, query)?;
        let number = join.int("rtindex");
        if !join.list("usingClause").is_empty() {
            self.using(join, number);
        } else if let Some(condition) = condition {
            self.put(" ON (");
            self.value(condition, Casts::Explicit)?;
            self.put(")");
        } else if word != " CROSS JOIN " {
            self.put(" ON TRUE");
        }
        self.put(")");
        if join.field("alias").is_some() {
            let scope = self.scopes.last();
            let entry = scope.and_then(|scope| scope.entry(number));
            let name = entry
                .and_then(|entry| entry.name.clone())
                .unwrap_or_default();
            self.put(" ");
            self.put_name(&name);
            self.column_aliases(number)?;
        }
        Ok(())
    }

    fn using(&mut self, join: &'n Node, number: i64) {
        let entry = self.scopes.last().and_then(|scope| scope.entry(number));
        let names = entry
            .map(|entry| entry.columns.using.clone())
            .unwrap_or_default();
        let names: Vec<String> = names.iter().map(|name| self.names.quoted(name)).collect();
        self.put(&format!(" USING ({})", names.join(", ")));
        if let Some(alias) = join.node("join_using_alias") {
            self.put(" AS ");
            self.put_name(alias.text("aliasname").unwrap_or_default());
        }
    }

    fn sample(&mut self, sample: &'n Node) -> Written {
        let name = self.names.function_name(sample.oid("tsmhandler"))?;
        self.put(&format!(" TABLESAMPLE {name} ("));
        self.list(sample.list("args"), Casts::Explicit)?;
        self.put(")");
        if let Some(seed) = sample.field("repeatable") {
            self.put(" REPEATABLE (");
            self.value(seed, Casts::Explicit)?;
            self.put(")");
        }
        Ok(())
    }

    /// `XMLTABLE(…)`
    pub(super) fn table_function(&mut self, node: &'n Node) -> Written {
        if node.int("functype") != 0 {
            return Err(Refusal("JSON_TABLE is not written".into()));
        }
        self.put("XMLTABLE(");
        let uris = node.list("ns_uris");
        if !uris.is_empty() {
            self.namespaces(node, uris)?;
        }
        self.put("(");
        self.field(node, "rowexpr", Casts::All)?;
        self.put(") PASSING (");
        self.field(node, "docexpr", Casts::All)?;
        self.put(")");
        if !node.list("colexprs").is_empty() {
            self.put(" COLUMNS ");
            self.xml_columns(node)?;
        }
        self.done(")")
    }

    fn namespaces(&mut self, node: &'n Node, uris: &'n [Value]) -> Written {
        self.put("XMLNAMESPACES (");
        for (at, uri) in uris.iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            let name = node.list("ns_names").get(at).and_then(Value::text);
            self.put(if name.is_none() { "DEFAULT " } else { "" });
            self.value(uri, Casts::All)?;
            if let Some(name) = name {
                self.put(" AS ");
                self.put_name(name);
            }
        }
        self.done("), ")
    }

    fn xml_columns(&mut self, node: &'n Node) -> Written {
        let (types, typmods) = (node.numbers("coltypes"), node.numbers("coltypmods"));
        let (paths, defaults) = (node.list("colexprs"), node.list("coldefexprs"));
        for (at, name) in node.texts("colnames").into_iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            self.put_name(name);
            let number = i64::try_from(at).unwrap_or(-1);
            if node.int("ordinalitycol") == number {
                self.put(" FOR ORDINALITY");
                continue;
            }
            let oid = types
                .get(at)
                .and_then(|oid| u32::try_from(*oid).ok())
                .unwrap_or(0);
            let ty = self
                .names
                .type_with(oid, typmods.get(at).copied().unwrap_or(-1))?;
            self.put(&format!(" {ty}"));
            for (word, values) in [(" DEFAULT (", defaults), (" PATH (", paths)] {
                if let Some(value) = values.get(at).filter(|value| **value != Value::Nothing) {
                    self.put(word);
                    self.value(value, Casts::All)?;
                    self.put(")");
                }
            }
            self.put(if node.numbers("notnulls").contains(&number) {
                " NOT NULL"
            } else {
                ""
            });
        }
        Ok(())
    }
}

/// The one function of an entry that returns records, whose columns are defined in the query.
fn record_columns(table: &Node) -> Option<&Node> {
    let functions = table.nodes("functions");
    match functions.as_slice() {
        [function] if function.field("funccolnames").is_some() && !table.flag("funcordinality") => {
            Some(function)
        }
        _ => None,
    }
}

fn is_unnest(call: &Node) -> bool {
    call.tag == "FUNCEXPR" && call.oid("funcid") == UNNEST
}
