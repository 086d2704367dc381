//! What the columns of a query refer to, and how a reference is written; truth: `get_variable`.

use pgclinic_format::Oid;

use super::super::catalog::Catalogs;
use super::super::refusal::{Refusal, Written};
use super::columns::Columns;
use super::tree::{Node, Value};
use super::writer::{Casts, Writer};

/// `RTEKind`
pub(super) mod kind {
    pub(in super::super) const RELATION: i64 = 0;
    pub(in super::super) const SUBQUERY: i64 = 1;
    pub(in super::super) const JOIN: i64 = 2;
    pub(in super::super) const FUNCTION: i64 = 3;
    pub(in super::super) const TABLE_FUNCTION: i64 = 4;
    pub(in super::super) const VALUES: i64 = 5;
    pub(in super::super) const CTE: i64 = 6;
    pub(in super::super) const GROUP: i64 = 9;
}

/// Aliases of aliases through joins.
const STEPS_MAX: usize = 300;

/// Where a whole row stands: alone it needs its type behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    Alone,
    Inside,
}

/// One entry of a range table.
pub(super) struct Entry<'n> {
    /// Its node; none for the relation that an expression belongs to.
    pub(super) node: Option<&'n Node>,
    /// Its name in the query; unnamed joins have none.
    pub(super) name: Option<String>,
    pub(super) columns: Columns,
}

impl<'n> Entry<'n> {
    pub(super) fn kind(&self) -> i64 {
        self.node.map_or(kind::RELATION, |node| node.int("rtekind"))
    }

    /// The name that was given to it in the query.
    pub(super) fn alias(&self) -> Option<&'n Node> {
        self.node?.node("alias")
    }
}

/// The range table of one query.
#[derive(Default)]
pub(super) struct Scope<'n> {
    pub(super) entries: Vec<Entry<'n>>,
    /// The query itself.
    pub(super) query: Option<&'n Node>,
    /// Names of merged columns that must be unique in the whole query.
    pub(super) using_names: Vec<String>,
    pub(super) unique_using: bool,
}

impl Scope<'_> {
    /// One relation, as expressions in defaults, checks, indexes and policies see it.
    pub(super) fn of_relation(catalogs: &Catalogs<'_>, oid: Oid) -> Written<Self> {
        let row = catalogs
            .row("pg_class", oid)
            .ok_or_else(|| Refusal::absent("relation", oid))?;
        Ok(Scope {
            entries: vec![relation_entry(catalogs, oid, row.name("relname"))],
            ..Scope::default()
        })
    }

    /// The two rows that a trigger or rule sees.
    pub(super) fn old_and_new(catalogs: &Catalogs<'_>, oid: Oid) -> Written<Self> {
        let both = ["old", "new"].map(|name| relation_entry(catalogs, oid, name.into()));
        Ok(Scope {
            entries: both.into(),
            ..Scope::default()
        })
    }

    /// An entry by its number, from 1.
    pub(super) fn entry(&self, number: i64) -> Option<&Entry<'_>> {
        self.entries.get(index(number)?)
    }
}

/// The index of what is numbered from 1.
pub(super) fn index(number: i64) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

fn relation_entry<'n>(catalogs: &Catalogs<'_>, oid: Oid, name: String) -> Entry<'n> {
    let attributes = catalogs.attributes(oid).into_iter();
    let names = attributes.map(|row| (!row.flag("attisdropped")).then(|| row.name("attname")));
    Entry {
        node: None,
        name: Some(name),
        columns: Columns::named(names.collect()),
    }
}

/// `SystemAttributeDefinition`
fn system_column(number: i64) -> Option<&'static str> {
    Some(match number {
        -1 => "ctid",
        -2 => "xmin",
        -3 => "cmin",
        -4 => "xmax",
        -5 => "cmax",
        -6 => "tableoid",
        _ => return None,
    })
}

impl<'n> Writer<'n> {
    /// A reference to a column or a whole row; gives the column's name.
    pub(super) fn variable(
        &mut self,
        var: &'n Node,
        standing: Standing,
    ) -> Written<Option<String>> {
        let (mut node, mut up) = (var, 0);
        for _ in 0..STEPS_MAX {
            up += usize::try_from(node.int("varlevelsup")).unwrap_or(usize::MAX / 2);
            let (varno, attno) = match node.int("varnosyn") {
                1.. => (node.int("varnosyn"), node.int("varattnosyn")),
                _ => (node.int("varno"), node.int("varattno")),
            };
            let refusal = || Refusal("a column refers to no table of its query".into());
            let at = self.scopes.len().checked_sub(up.saturating_add(1));
            let scope = at.and_then(|at| self.scopes.get(at)).ok_or_else(refusal)?;
            let entries = scope.entries.get(index(varno).ok_or_else(refusal)?);
            let entry = entries.ok_or_else(refusal)?;
            if entry.kind() == kind::GROUP {
                let expressions = entry.node.map(|node| node.list("groupexprs"));
                let expression = expressions
                    .zip(index(attno))
                    .and_then(|(list, at)| list.get(at));
                return self.grouped(expression.ok_or_else(refusal)?, up, standing);
            }
            if let Some(inner) = aliased(entry, attno) {
                node = inner;
                continue;
            }
            let column = column_name(entry, attno)?;
            let relation = match node.int("varreturningtype") {
                1 => Some("old".to_owned()),
                2 => Some("new".to_owned()),
                _ => entry.name.clone(),
            };
            return self.reference(node, relation, column, standing);
        }
        Err(refusal_of_loop())
    }

    fn reference(
        &mut self,
        var: &Node,
        relation: Option<String>,
        column: Option<String>,
        standing: Standing,
    ) -> Written<Option<String>> {
        if let Some(relation) = relation.filter(|_| self.prefix || column.is_none()) {
            self.put_name(&relation);
            self.put(".");
        }
        match &column {
            Some(column) => self.put_name(column),
            None => {
                self.put("*");
                if standing == Standing::Alone {
                    let name = self
                        .names
                        .type_with(var.oid("vartype"), var.int("vartypmod"))?;
                    self.put(&format!("::{name}"));
                }
            }
        }
        Ok(column)
    }

    /// What a query groups by stands in an entry of its own since 18; it is written where it is
    /// used.
    fn grouped(
        &mut self,
        expression: &'n Value,
        up: usize,
        standing: Standing,
    ) -> Written<Option<String>> {
        let keep = self.scopes.len().saturating_sub(up);
        let inner = self.scopes.split_off(keep);
        let mut name = None;
        let done = match expression.node().filter(|node| node.tag == "VAR") {
            Some(var) => self.variable_again(var, standing, &mut name),
            None => self.value(expression, Casts::All),
        };
        self.scopes.extend(inner);
        done.map(|()| name)
    }

    fn variable_again(
        &mut self,
        var: &'n Node,
        standing: Standing,
        name: &mut Option<String>,
    ) -> Written {
        self.descend(|writer| {
            *name = writer.variable(var, standing)?;
            Ok(())
        })
    }

    /// A parameter: of a function whose body this is.
    pub(super) fn parameter(&mut self, node: &Node) -> Written {
        let number = node.int("paramid");
        if node.int("paramkind") != 0 {
            return Err(Refusal("a parameter of a plan".into()));
        }
        if let Some((function, names)) = &self.arguments {
            let name = index(number).and_then(|at| names.get(at));
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                let (function, name) = (self.names.quoted(function), self.names.quoted(name));
                let qualified = self.scopes.iter().any(|scope| !scope.entries.is_empty());
                if qualified {
                    self.put(&format!("{function}."));
                }
                self.put(&name);
                return Ok(());
            }
        }
        self.done(&format!("${number}"))
    }
}

fn refusal_of_loop() -> Refusal {
    Refusal("a column is an alias of too many others".into())
}

/// In an unnamed join, the column of the joined table, if it is one.
fn aliased<'n>(entry: &Entry<'n>, attno: i64) -> Option<&'n Node> {
    let node = entry.node.filter(|_| entry.kind() == kind::JOIN)?;
    if entry.alias().is_some() {
        return None;
    }
    let column = node.list("joinaliasvars").get(index(attno)?)?.node()?;
    (column.tag == "VAR").then_some(column)
}

fn column_name(entry: &Entry<'_>, attno: i64) -> Written<Option<String>> {
    if attno == 0 {
        return Ok(None);
    }
    if attno < 0 {
        let name = system_column(attno).map(str::to_owned);
        return name
            .map(Some)
            .ok_or_else(|| Refusal(format!("system column {attno} is not known")));
    }
    let known = index(attno).and_then(|at| entry.columns.names.get(at));
    match known {
        Some(Some(name)) => Ok(Some(name.clone())),
        Some(None) => Err(Refusal(format!("column {attno} was dropped"))),
        None => Err(Refusal(format!("column {attno} is not in its table"))),
    }
}
