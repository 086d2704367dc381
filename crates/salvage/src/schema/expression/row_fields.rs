//! Fields of row values; truth: `get_name_for_var_field`.

use super::super::refusal::{Refusal, Written};
use super::scope::{index, kind};
use super::tree::{Node, Value};
use super::types;
use super::writer::{Casts, Writer, node_of};

/// Sub-selects through which the name of a field is looked for.
const STEPS_MAX: usize = 100;

impl<'n> Writer<'n> {
    pub(super) fn field_select(&mut self, node: &'n Node) -> Written {
        let inner = node_of(node.field("arg").unwrap_or(&Value::Nothing))?;
        let bare = matches!(inner.tag.as_str(), "SUBSCRIPTINGREF" | "FIELDSELECT");
        self.parenthesised(!bare, |writer| writer.node(inner, Casts::All))?;
        let name = self.field_name(inner, node.int("fieldnum"))?;
        self.put(".");
        self.put_name(&name);
        Ok(())
    }

    fn field_name(&self, value: &'n Node, number: i64) -> Written<String> {
        let oid = types::type_of(self.names, value)?;
        let row = self.names.row("pg_type", oid);
        let row = match row {
            Some(row) if row.letter("typtype") == 'd' => {
                self.names.row("pg_type", row.oid("typbasetype"))
            }
            other => other,
        };
        if let Some(relation) = row.map(|row| row.oid("typrelid")).filter(|oid| *oid != 0) {
            let attribute = self.names.attribute(relation, number);
            let name = attribute.map(|row| row.name("attname"));
            return name.ok_or_else(|| Refusal(format!("field {number} of a row is not known")));
        }
        self.record_field(value, number)
    }

    /// A field of a record, whose names stand where the record was made.
    fn record_field(&self, value: &'n Node, number: i64) -> Written<String> {
        let refusal = || Refusal(format!("field {number} of a record has no known name"));
        let mut queries: Vec<Option<&'n Node>> =
            self.scopes.iter().map(|scope| scope.query).collect();
        let mut value = value;
        for _ in 0..STEPS_MAX {
            if value.tag != "VAR" {
                return self.made_field(value, number).ok_or_else(refusal);
            }
            let up = usize::try_from(value.int("varlevelsup")).map_err(|_| refusal())?;
            queries.truncate(queries.len().checked_sub(up).ok_or_else(refusal)?);
            let query = queries.last().copied().flatten().ok_or_else(refusal)?;
            let tables = query.list("rtable");
            let table = index(value.int("varno")).and_then(|at| tables.get(at));
            let table = table.and_then(Value::node).ok_or_else(refusal)?;
            let attno = value.int("varattno");
            if attno == 0 {
                let names = table.node("eref").map(|eref| eref.texts("colnames"));
                let name = names
                    .zip(index(number))
                    .and_then(|(names, at)| names.get(at).copied());
                return name.map(str::to_owned).ok_or_else(refusal);
            }
            let made = record_source(table, attno, &mut queries);
            value = made.ok_or_else(refusal)?;
        }
        Err(refusal())
    }

    /// The name of a field where a record is made: by a row expression, or a function with OUT
    /// arguments.
    fn made_field(&self, value: &Node, number: i64) -> Option<String> {
        let at = index(number)?;
        if value.tag == "ROWEXPR" {
            return value
                .texts("colnames")
                .get(at)
                .map(|name| (*name).to_owned());
        }
        if value.tag != "FUNCEXPR" {
            return None;
        }
        let row = self.names.row("pg_proc", value.oid("funcid"))?;
        let (modes, names) = (row.letters("proargmodes"), row.texts("proargnames"));
        let out = modes
            .iter()
            .zip(names)
            .filter(|(mode, _)| matches!(mode, 'o' | 'b' | 't'));
        out.map(|(_, name)| name).nth(at)
    }
}

/// The expression behind a column of a joined table, sub-select or WITH query; `queries` become
/// those around it.
fn record_source<'n>(
    table: &'n Node,
    attno: i64,
    queries: &mut Vec<Option<&'n Node>>,
) -> Option<&'n Node> {
    match table.int("rtekind") {
        kind::JOIN => table.list("joinaliasvars").get(index(attno)?)?.node(),
        kind::GROUP => table.list("groupexprs").get(index(attno)?)?.node(),
        kind::VALUES => table
            .list("values_lists")
            .first()?
            .list()
            .get(index(attno)?)?
            .node(),
        kind::SUBQUERY => {
            let query = table.node("subquery")?;
            queries.push(Some(query));
            target(query, attno)
        }
        kind::CTE => {
            let up = usize::try_from(table.int("ctelevelsup")).ok()?;
            queries.truncate(queries.len().checked_sub(up)?);
            let tables = queries.last().copied()??.nodes("cteList");
            let name = table.text("ctename");
            let own = tables.into_iter().find(|own| own.text("ctename") == name)?;
            let query = own.node("ctequery")?;
            queries.push(Some(query));
            target(query, attno)
        }
        _ => None,
    }
}

fn target(query: &Node, number: i64) -> Option<&Node> {
    let targets = query.nodes("targetList");
    let found = targets
        .iter()
        .find(|target| target.int("resno") == number)?;
    found.node("expr")
}
