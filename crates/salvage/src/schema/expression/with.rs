//! WITH; truth: `get_with_clause`.

use super::super::refusal::{Refusal, Written};
use super::constant::value_text;
use super::query::Names;
use super::tree::{Node, Value};
use super::writer::{Casts, STEP, Writer, node_of};

impl<'n> Writer<'n> {
    pub(super) fn with_clause(&mut self, query: &'n Node) -> Written {
        let tables = query.nodes("cteList");
        if tables.is_empty() {
            return Ok(());
        }
        self.indent += STEP;
        self.put(" ");
        for (at, table) in tables.into_iter().enumerate() {
            self.put(match (at, query.flag("hasRecursive")) {
                (0, true) => "WITH RECURSIVE ",
                (0, false) => "WITH ",
                _ => ", ",
            });
            self.common_table(table)?;
        }
        self.indent -= STEP;
        self.keyword("", 0, 0, 0);
        Ok(())
    }

    fn common_table(&mut self, table: &'n Node) -> Written {
        self.put_name(table.text("ctename").unwrap_or_default());
        let columns = table.texts("aliascolnames");
        if !columns.is_empty() {
            self.put("(");
            self.put_names(&columns);
            self.put(")");
        }
        self.put(" AS ");
        self.put(match table.int("ctematerialized") {
            1 => "MATERIALIZED ",
            2 => "NOT MATERIALIZED ",
            _ => "",
        });
        self.put("(");
        self.keyword("", 0, 0, 0);
        let inner = node_of(table.field("ctequery").unwrap_or(&Value::Nothing))?;
        self.query(inner, None, Names::Visible)?;
        self.keyword("", 0, 0, 0);
        self.put(")");
        self.search(table)?;
        self.cycle(table)
    }

    fn put_names(&mut self, names: &[&str]) {
        for (at, name) in names.iter().enumerate() {
            self.put(if at > 0 { ", " } else { "" });
            self.put_name(name);
        }
    }

    fn search(&mut self, table: &'n Node) -> Written {
        let Some(search) = table.node("search_clause") else {
            return Ok(());
        };
        let breadth = search.flag("search_breadth_first");
        self.put(if breadth {
            " SEARCH BREADTH FIRST BY "
        } else {
            " SEARCH DEPTH FIRST BY "
        });
        self.put_names(&search.texts("search_col_list"));
        self.put(" SET ");
        self.put_name(search.text("search_seq_column").unwrap_or_default());
        Ok(())
    }

    fn cycle(&mut self, table: &'n Node) -> Written {
        let Some(cycle) = table.node("cycle_clause") else {
            return Ok(());
        };
        self.put(" CYCLE ");
        self.put_names(&cycle.texts("cycle_col_list"));
        self.put(" SET ");
        self.put_name(cycle.text("cycle_mark_column").unwrap_or_default());
        let refusal = || Refusal("a cycle has no mark".into());
        let mark = cycle.node("cycle_mark_value").ok_or_else(refusal)?;
        let usual = cycle.node("cycle_mark_default").ok_or_else(refusal)?;
        let is = |node: &Node, text: &str| {
            node.oid("consttype") == 16
                && value_text(self.names, node).is_ok_and(|value| value == text)
        };
        if !(is(mark, "t") && is(usual, "f")) {
            self.put(" TO ");
            self.node(mark, Casts::Explicit)?;
            self.put(" DEFAULT ");
            self.node(usual, Casts::Explicit)?;
        }
        self.put(" USING ");
        self.put_name(cycle.text("cycle_path_column").unwrap_or_default());
        Ok(())
    }
}
