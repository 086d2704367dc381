//! One expression node; truth: `get_rule_expr`.

use super::super::identifier::literal;
use super::super::refusal::{Refusal, Written};
use super::sublink;
use super::tree::{Node, Value};
use super::types;
use super::writer::{Casts, Writer, node_of};

/// `COERCE_IMPLICIT_CAST`
pub(super) const IMPLICIT_CAST: i64 = 2;

impl<'n> Writer<'n> {
    pub(super) fn node(&mut self, node: &'n Node, casts: Casts) -> Written {
        self.descend(|writer| writer.dispatch(node, casts))
    }

    fn dispatch(&mut self, node: &'n Node, casts: Casts) -> Written {
        match node.tag.as_str() {
            "VAR" => self
                .variable(node, super::scope::Standing::Inside)
                .map(|_| ()),
            "CONST" => self.constant(node, super::constant::Label::AsNeeded),
            "PARAM" => self.parameter(node),
            "AGGREF" => self.aggregate(node),
            "GROUPINGFUNC" => self.call("GROUPING", node),
            "WINDOWFUNC" => self.window_function(node),
            "SUBSCRIPTINGREF" => self.subscript(node, casts),
            "FUNCEXPR" => self.function(node, casts),
            "NAMEDARGEXPR" => self.named_argument(node, casts),
            "OPEXPR" => self.operator(node),
            "DISTINCTEXPR" => self.infix(node, " IS DISTINCT FROM "),
            "NULLIFEXPR" => self.call("NULLIF", node),
            "SCALARARRAYOPEXPR" => self.array_operator(node),
            "BOOLEXPR" => self.boolean(node),
            "SUBLINK" => self.sublink(node),
            "FIELDSELECT" => self.field_select(node),
            "FIELDSTORE" => self.field_store(node, casts),
            "RELABELTYPE" => self.cast(node, "relabelformat", casts),
            "COERCEVIAIO" | "ARRAYCOERCEEXPR" => self.cast(node, "coerceformat", casts),
            "CONVERTROWTYPEEXPR" => self.cast(node, "convertformat", casts),
            "COERCETODOMAIN" => self.cast(node, "coercionformat", casts),
            "COLLATEEXPR" => self.collate(node, casts),
            "CASEEXPR" => self.case(node),
            "ARRAYEXPR" => self.array(node),
            "ROWEXPR" => self.row(node),
            "ROWCOMPAREEXPR" => self.row_comparison(node),
            "COALESCEEXPR" => self.call("COALESCE", node),
            "MINMAXEXPR" if node.int("op") == 1 => self.call("LEAST", node),
            "MINMAXEXPR" => self.call("GREATEST", node),
            "SQLVALUEFUNCTION" => self.sql_value(node),
            "XMLEXPR" => self.xml(node),
            "NULLTEST" => self.null_test(node),
            "BOOLEANTEST" => self.boolean_test(node),
            "COERCETODOMAINVALUE" => self.done("VALUE"),
            "SETTODEFAULT" => self.done("DEFAULT"),
            "NEXTVALUEEXPR" => self.next_value(node),
            "INFERENCEELEM" => self.inference(node),
            "PARTITIONBOUNDSPEC" => self.partition_bound(node),
            "TABLEFUNC" => self.table_function(node),
            "JSONVALUEEXPR" => self.json_value(node),
            "JSONCONSTRUCTOREXPR" => self.json_constructor(node),
            "JSONISPREDICATE" => self.json_predicate(node),
            "MERGESUPPORTFUNC" => self.done("MERGE_ACTION()"),
            "RETURNINGEXPR" => self.field(node, "retexpr", casts),
            other => Err(Refusal(format!("nodes of kind {other} are not known here"))),
        }
    }

    pub(super) fn done(&mut self, text: &str) -> Written {
        self.put(text);
        Ok(())
    }

    /// `NAME(arguments)`
    fn call(&mut self, name: &str, node: &'n Node) -> Written {
        self.put(name);
        self.put("(");
        self.list(node.list("args"), Casts::All)?;
        self.done(")")
    }

    fn infix(&mut self, node: &'n Node, between: &str) -> Written {
        self.put("(");
        self.argument(node, 0, Casts::All)?;
        self.put(between);
        self.argument(node, 1, Casts::All)?;
        self.done(")")
    }

    fn named_argument(&mut self, node: &'n Node, casts: Casts) -> Written {
        self.put_name(node.text("name").unwrap_or_default());
        self.put(" => ");
        self.field(node, "arg", casts)
    }

    fn boolean(&mut self, node: &'n Node) -> Written {
        self.put("(");
        let between = match node.text("boolop") {
            Some("and") => " AND ",
            Some("or") => " OR ",
            Some("not") => {
                self.put("NOT ");
                ""
            }
            _ => return Err(Refusal("a boolean expression of unknown kind".into())),
        };
        for (index, value) in node.list("args").iter().enumerate() {
            if index > 0 {
                self.put(between);
            }
            self.value(value, Casts::Explicit)?;
        }
        self.done(")")
    }

    fn subscript(&mut self, node: &'n Node, casts: Casts) -> Written {
        if let Some(assigned) = node.field("refassgnexpr") {
            let target = node.node("refexpr").map(|node| node.tag.as_str());
            return match target {
                Some("CASETESTEXPR") => self.value(assigned, casts),
                _ => Err(Refusal("an assignment to an element outside UPDATE".into())),
            };
        }
        let inner = node.node("refexpr").map(|node| node.tag.as_str());
        let bare = matches!(inner, Some("VAR" | "FIELDSELECT"));
        self.parenthesised(!bare, |writer| writer.field(node, "refexpr", casts))?;
        self.subscripts(node)
    }

    /// `[1]`, `[1:2]`, `[:2]`, …
    pub(super) fn subscripts(&mut self, node: &'n Node) -> Written {
        let lower = node.list("reflowerindexpr");
        for (index, upper) in node.list("refupperindexpr").iter().enumerate() {
            self.put("[");
            if !lower.is_empty() {
                self.value(lower.get(index).unwrap_or(&Value::Nothing), Casts::Explicit)?;
                self.put(":");
            }
            self.value(upper, Casts::Explicit)?;
            self.put("]");
        }
        Ok(())
    }

    pub(super) fn parenthesised(
        &mut self,
        wanted: bool,
        write: impl FnOnce(&mut Self) -> Written,
    ) -> Written {
        self.put(if wanted { "(" } else { "" });
        write(self)?;
        self.done(if wanted { ")" } else { "" })
    }

    fn field_store(&mut self, node: &'n Node, casts: Casts) -> Written {
        let values = node.list("newvals");
        self.put(if values.len() == 1 { "" } else { "ROW(" });
        self.list(values, casts)?;
        self.done(if values.len() == 1 { "" } else { ")" })
    }

    /// Any of the casts, which are written unless nobody wrote them.
    fn cast(&mut self, node: &'n Node, format: &str, casts: Casts) -> Written {
        if node.int(format) == IMPLICIT_CAST && casts == Casts::Explicit {
            return self.field(node, "arg", Casts::Explicit);
        }
        let typmod = node.text("resulttypmod").and_then(|text| text.parse().ok());
        self.coercion(
            node_of(node.field("arg").unwrap_or(&Value::Nothing))?,
            node.oid("resulttype"),
            typmod.unwrap_or(-1),
        )
    }

    /// `(arg)::type`, or `'…'::type` for a constant of that type.
    pub(super) fn coercion(&mut self, arg: &'n Node, oid: u32, typmod: i64) -> Written {
        let is_constant =
            arg.tag == "CONST" && arg.oid("consttype") == oid && arg.int("consttypmod") == -1;
        if is_constant {
            self.constant(arg, super::constant::Label::Never)?;
        } else {
            self.put("(");
            self.node(arg, Casts::Explicit)?;
            self.put(")");
        }
        self.put("::");
        let name = self.names.type_with(oid, typmod)?;
        self.done(&name)
    }

    fn collate(&mut self, node: &'n Node, casts: Casts) -> Written {
        self.put("(");
        self.field(node, "arg", casts)?;
        let collate = self.names.collate(node.oid("collOid"));
        self.done(&format!("{collate})"))
    }

    fn case(&mut self, node: &'n Node) -> Written {
        self.keyword("CASE", 0, 4, 0);
        let tested = node.field("arg");
        if let Some(tested) = tested {
            self.put(" ");
            self.value(tested, Casts::All)?;
        }
        for when in node.nodes("args") {
            self.keyword("WHEN ", 0, 0, 0);
            let condition = node_of(when.field("expr").unwrap_or(&Value::Nothing))?;
            let condition = match tested {
                Some(_) => compared_with(condition)?,
                None => condition,
            };
            self.node(condition, Casts::Explicit)?;
            self.put(" THEN ");
            self.field(when, "result", Casts::All)?;
        }
        self.keyword("ELSE ", 0, 0, 0);
        match node.field("defresult") {
            Some(value) => self.value(value, Casts::All)?,
            None => self.put("NULL"),
        }
        self.keyword("END", -4, 0, 0);
        Ok(())
    }

    fn array(&mut self, node: &'n Node) -> Written {
        let elements = node.list("elements");
        self.put("ARRAY[");
        self.list(elements, Casts::All)?;
        self.put("]");
        if elements.is_empty() {
            let name = self.names.type_name(node.oid("array_typeid"))?;
            self.put(&format!("::{name}"));
        }
        Ok(())
    }

    fn row(&mut self, node: &'n Node) -> Written {
        const RECORD: u32 = 2249;
        let oid = node.oid("row_typeid");
        let mut columns = Vec::new();
        if oid != RECORD {
            let relation = self
                .names
                .row("pg_type", oid)
                .map(|row| row.oid("typrelid"));
            columns = self.names.attributes(relation.unwrap_or(0));
        }
        let values = node.list("args");
        self.put("ROW(");
        let mut between = "";
        for index in 0..values.len().max(columns.len()) {
            if columns
                .get(index)
                .is_some_and(|row| row.flag("attisdropped"))
            {
                continue;
            }
            self.put(between);
            between = ", ";
            match values.get(index) {
                Some(value) => self.top_level(value)?,
                None => self.put("NULL"),
            }
        }
        self.put(")");
        if node.int("row_format") == 1 {
            let name = self.names.type_name(oid)?;
            self.put(&format!("::{name}"));
        }
        Ok(())
    }

    /// As an element of a list, where a whole row needs its type.
    pub(super) fn top_level(&mut self, value: &'n Value) -> Written {
        match value.node() {
            Some(node) if node.tag == "VAR" => {
                let standing = super::scope::Standing::Alone;
                self.variable(node, standing).map(|_| ())
            }
            _ => self.value(value, Casts::All),
        }
    }

    fn row_comparison(&mut self, node: &'n Node) -> Written {
        let operator = node.numbers("opnos").first();
        let operator = operator.and_then(|oid| u32::try_from(*oid).ok());
        self.put("(ROW(");
        self.top_levels(node.list("largs"))?;
        let name = self.names.operator_name(operator.unwrap_or(0))?;
        self.put(&format!(") {name} ROW("));
        self.top_levels(node.list("rargs"))?;
        self.done("))")
    }

    fn top_levels(&mut self, list: &'n [Value]) -> Written {
        for (index, value) in list.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            self.top_level(value)?;
        }
        Ok(())
    }

    fn sql_value(&mut self, node: &Node) -> Written {
        let typmod = node.int("typmod");
        let text = match node.int("op") {
            0 => "CURRENT_DATE".into(),
            1 => "CURRENT_TIME".into(),
            2 => format!("CURRENT_TIME({typmod})"),
            3 => "CURRENT_TIMESTAMP".into(),
            4 => format!("CURRENT_TIMESTAMP({typmod})"),
            5 => "LOCALTIME".into(),
            6 => format!("LOCALTIME({typmod})"),
            7 => "LOCALTIMESTAMP".into(),
            8 => format!("LOCALTIMESTAMP({typmod})"),
            9 => "CURRENT_ROLE".into(),
            10 => "CURRENT_USER".into(),
            11 => "USER".into(),
            12 => "SESSION_USER".into(),
            13 => "CURRENT_CATALOG".into(),
            14 => "CURRENT_SCHEMA".into(),
            _ => return Err(Refusal("a value function of unknown kind".into())),
        };
        self.done(&text)
    }

    fn null_test(&mut self, node: &'n Node) -> Written {
        self.put("(");
        self.field(node, "arg", Casts::All)?;
        let arg = node_of(node.field("arg").unwrap_or(&Value::Nothing))?;
        let is_null = node.int("nulltesttype") == 0;
        let as_row = node.flag("argisrow")
            || !types::is_row_type(self.names, types::type_of(self.names, arg)?);
        self.done(match (as_row, is_null) {
            (true, true) => " IS NULL)",
            (true, false) => " IS NOT NULL)",
            (false, true) => " IS NOT DISTINCT FROM NULL)",
            (false, false) => " IS DISTINCT FROM NULL)",
        })
    }

    fn boolean_test(&mut self, node: &'n Node) -> Written {
        self.put("(");
        self.field(node, "arg", Casts::Explicit)?;
        let words = match node.int("booltesttype") {
            0 => " IS TRUE)",
            1 => " IS NOT TRUE)",
            2 => " IS FALSE)",
            3 => " IS NOT FALSE)",
            4 => " IS UNKNOWN)",
            5 => " IS NOT UNKNOWN)",
            _ => return Err(Refusal("a truth test of unknown kind".into())),
        };
        self.done(words)
    }

    fn next_value(&mut self, node: &Node) -> Written {
        let name = self.names.relation_name(node.oid("seqid"))?;
        self.done(&format!("nextval({})", literal(&name)))
    }

    fn inference(&mut self, node: &'n Node) -> Written {
        let expression = node_of(node.field("expr").unwrap_or(&Value::Nothing))?;
        let bare = expression.tag == "VAR"
            || expression.tag == "FUNCEXPR" && expression.int("funcformat") == 0;
        let before = std::mem::replace(&mut self.prefix, false);
        self.parenthesised(!bare, |writer| writer.node(expression, Casts::Explicit))?;
        self.prefix = before;
        let collate = self.names.collate(node.oid("infercollid"));
        self.put(&collate);
        let class = node.oid("inferopclass");
        if class == 0 {
            return Ok(());
        }
        let input = self.names.row("pg_opclass", class);
        let input = input.map_or(0, |row| row.oid("opcintype"));
        let class = self.names.class_if_needed(class, input)?;
        self.done(&class)
    }

    fn partition_bound(&mut self, node: &'n Node) -> Written {
        if node.flag("is_default") {
            return self.done("DEFAULT");
        }
        match node.text("strategy") {
            Some("h") => {
                let (modulus, remainder) = (node.int("modulus"), node.int("remainder"));
                self.done(&format!(
                    "FOR VALUES WITH (modulus {modulus}, remainder {remainder})"
                ))
            }
            Some("l") => {
                self.put("FOR VALUES IN ");
                self.bounds(node.list("listdatums"))
            }
            Some("r") => {
                self.put("FOR VALUES FROM ");
                self.bounds(node.list("lowerdatums"))?;
                self.put(" TO ");
                self.bounds(node.list("upperdatums"))
            }
            _ => Err(Refusal("a partition bound of unknown kind".into())),
        }
    }

    fn bounds(&mut self, bounds: &'n [Value]) -> Written {
        self.put("(");
        for (index, bound) in bounds.iter().enumerate() {
            self.put(if index > 0 { ", " } else { "" });
            let bound = node_of(bound)?;
            match (bound.tag.as_str(), bound.int("kind")) {
                ("PARTITIONRANGEDATUM", -1) => self.put("MINVALUE"),
                ("PARTITIONRANGEDATUM", 1) => self.put("MAXVALUE"),
                ("PARTITIONRANGEDATUM", _) => {
                    let value = node_of(bound.field("value").unwrap_or(&Value::Nothing))?;
                    self.constant(value, super::constant::Label::Never)?;
                }
                _ => self.constant(bound, super::constant::Label::Never)?,
            }
        }
        self.done(")")
    }

    fn sublink(&mut self, node: &'n Node) -> Written {
        sublink::write(self, node)
    }
}

/// In `CASE x WHEN y`, the `y` of the stored `x = y`.
fn compared_with(condition: &Node) -> Written<&Node> {
    let args = condition.nodes("args");
    let (Some(first), Some(second)) = (args.first(), args.get(1)) else {
        return Ok(condition);
    };
    let is_test = types::without_implicit_casts(first).tag == "CASETESTEXPR";
    if condition.tag == "OPEXPR" && args.len() == 2 && is_test {
        return Ok(second);
    }
    Ok(condition)
}
