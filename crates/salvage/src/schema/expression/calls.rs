//! Operators, functions, aggregates and window functions.

use pgclinic_format::Oid;

use super::super::catalog::PG_CATALOG;
use super::super::refusal::{Refusal, Written};
use super::sql_syntax;
use super::tree::{Node, Value};
use super::types;
use super::writer::{Casts, Writer, argument, node_of};

const EXPLICIT_CAST: i64 = 1;
const SQL_SYNTAX: i64 = 3;

impl<'n> Writer<'n> {
    pub(super) fn operator(&mut self, node: &'n Node) -> Written {
        let name = self.names.operator_name(node.oid("opno"))?;
        self.put("(");
        if node.list("args").len() == 2 {
            self.argument(node, 0, Casts::All)?;
            self.put(&format!(" {name} "));
            self.argument(node, 1, Casts::All)?;
        } else {
            self.put(&format!("{name} "));
            self.argument(node, 0, Casts::All)?;
        }
        self.done(")")
    }

    pub(super) fn array_operator(&mut self, node: &'n Node) -> Written {
        const EXPRESSION_SUBLINK: i64 = 4;
        let name = self.names.operator_name(node.oid("opno"))?;
        let any = if node.flag("useOr") { "ANY" } else { "ALL" };
        self.put("(");
        self.argument(node, 0, Casts::All)?;
        self.put(&format!(" {name} {any} ("));
        self.argument(node, 1, Casts::All)?;
        let array = node_of(argument(node, 1)?)?;
        if array.tag == "SUBLINK" && array.int("subLinkType") == EXPRESSION_SUBLINK {
            let oid = types::type_of(self.names, array)?;
            let name = self.names.type_name(oid)?;
            self.put(&format!("::{name}"));
        }
        self.done("))")
    }

    /// The name of a called function, always with its schema where the bare one would mean
    /// something else.
    fn called(&self, oid: Oid) -> Written<String> {
        let row = self
            .names
            .row("pg_proc", oid)
            .ok_or_else(|| Refusal::absent("function", oid))?;
        let name = row.name("proname");
        let is_grouping = self.grouping && (name == "cube" || name == "rollup");
        if row.oid("pronamespace") == PG_CATALOG && is_grouping {
            return self.names.with_schema(PG_CATALOG, &name);
        }
        self.names.function_name(oid)
    }

    pub(super) fn function(&mut self, node: &'n Node, casts: Casts) -> Written {
        let format = node.int("funcformat");
        if format == super::node::IMPLICIT_CAST && casts == Casts::Explicit {
            return self.argument(node, 0, Casts::Explicit);
        }
        if format == EXPLICIT_CAST || format == super::node::IMPLICIT_CAST {
            let arg = node_of(argument(node, 0)?)?;
            let typmod = length_coercion(node);
            return self.coercion(arg, node.oid("funcresulttype"), typmod);
        }
        if format == SQL_SYNTAX && sql_syntax::write(self, node)? {
            return Ok(());
        }
        let name = self.called(node.oid("funcid"))?;
        self.put(&format!("{name}("));
        self.variadic_list(node.list("args"), node.flag("funcvariadic"))?;
        self.done(")")
    }

    fn variadic_list(&mut self, args: &'n [Value], variadic: bool) -> Written {
        for (index, value) in args.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            if variadic && index + 1 == args.len() {
                self.put("VARIADIC ");
            }
            self.value(value, Casts::All)?;
        }
        Ok(())
    }

    pub(super) fn aggregate(&mut self, node: &'n Node) -> Written {
        let name = self.called(node.oid("aggfnoid"))?;
        self.put(&name);
        self.put("(");
        if !node.list("aggdistinct").is_empty() {
            self.put("DISTINCT ");
        }
        let order = node.list("aggorder");
        let targets = node.nodes("args");
        if matches!(node.text("aggkind"), Some("o" | "h")) {
            self.list(node.list("aggdirectargs"), Casts::All)?;
            self.put(") WITHIN GROUP (ORDER BY ");
            self.order_by(order, &targets, super::targets::Naming::ByExpression)?;
        } else {
            self.aggregate_arguments(node, &targets)?;
            if !order.is_empty() {
                self.put(" ORDER BY ");
                self.order_by(order, &targets, super::targets::Naming::ByExpression)?;
            }
        }
        self.aggregate_filter(node)?;
        self.done(")")
    }

    fn aggregate_arguments(&mut self, node: &'n Node, targets: &[&'n Node]) -> Written {
        if node.flag("aggstar") {
            return self.done("*");
        }
        let shown: Vec<&'n Node> = targets
            .iter()
            .filter(|target| !target.flag("resjunk"))
            .copied()
            .collect();
        for (index, target) in shown.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            if node.flag("aggvariadic") && index + 1 == shown.len() {
                self.put("VARIADIC ");
            }
            self.field(target, "expr", Casts::All)?;
        }
        Ok(())
    }

    fn aggregate_filter(&mut self, node: &'n Node) -> Written {
        if let Some(filter) = node.field("aggfilter") {
            self.put(") FILTER (WHERE ");
            self.value(filter, Casts::Explicit)?;
        }
        Ok(())
    }

    pub(super) fn window_function(&mut self, node: &'n Node) -> Written {
        let name = self.called(node.oid("winfnoid"))?;
        self.put(&format!("{name}("));
        if node.flag("winstar") {
            self.put("*");
        } else {
            self.list(node.list("args"), Casts::All)?;
        }
        self.aggregate_filter(node)?;
        self.put(") OVER ");
        let number = node.int("winref");
        let window = self
            .windows
            .iter()
            .find(|window| window.int("winref") == number)
            .copied()
            .ok_or_else(|| Refusal(format!("window {number} is not in its query")))?;
        match window.text("name") {
            Some(name) => self.put_name(name),
            None => {
                let targets = self.window_targets.clone();
                self.window(window, &targets)?;
            }
        }
        Ok(())
    }

    /// A call, or `CAST(…)` around what does not look like one, as FROM wants it.
    pub(super) fn call_in_from(&mut self, node: &'n Node) -> Written {
        if super::looks_like_call(node) {
            return self.node(node, Casts::All);
        }
        let oid = types::type_of(self.names, node)?;
        let name = self.names.type_name(oid)?;
        self.put("CAST(");
        self.node(node, Casts::Explicit)?;
        self.done(&format!(" AS {name})"))
    }
}

/// The modifier that a length coercion such as `varchar(text, 40, true)` brings about; -1 for none.
fn length_coercion(node: &Node) -> i64 {
    let args = node.nodes("args");
    let Some(second) = args.get(1).filter(|_| (2..=3).contains(&args.len())) else {
        return -1;
    };
    let is_number = second.tag == "CONST" && second.oid("consttype") == 23;
    match second.field("constvalue") {
        Some(Value::Datum(bytes)) if is_number && !second.flag("constisnull") => bytes
            .first_chunk()
            .map_or(-1, |bytes| i64::from(i32::from_le_bytes(*bytes))),
        _ => -1,
    }
}
