//! Names for the tables and columns of a query, unique where they must be.
//!
//! Tables may have got or lost columns since the query was stored, and names that are equal; the
//! text must mean the same again. Merged columns of `JOIN … USING` hand their names down to the
//! joined tables. Truth: `set_rtable_names`, `set_using_names`, `set_relation_column_names`,
//! `set_join_column_names`.

use std::collections::{HashMap, HashSet};

use super::super::catalog::Catalogs;
use super::super::refusal::{Refusal, Written};
use super::scope::{Entry, Scope, index, kind};
use super::tree::Node;
use super::types;

/// `NAMEDATALEN` less the closing zero.
const NAME_BYTES_MAX: usize = 63;
/// Joins inside each other.
const JOINS_MAX: usize = 300;

/// The columns of one entry of a range table.
#[derive(Clone, Default)]
pub(super) struct Columns {
    /// By number; dropped ones have no name.
    pub(super) names: Vec<Option<String>>,
    /// Those that the entry would have when the query is parsed again, and whether it got them
    /// since.
    pub(super) new_names: Vec<(String, bool)>,
    /// The list of names stands behind the alias.
    pub(super) listed: bool,
    /// Names of merged columns, in a join.
    pub(super) using: Vec<String>,
    parent_using: Vec<String>,
    left: usize,
    right: usize,
    left_numbers: Vec<i64>,
    right_numbers: Vec<i64>,
}

impl Columns {
    /// Those of one relation by itself.
    pub(super) fn named(names: Vec<Option<String>>) -> Self {
        Columns {
            names,
            ..Columns::default()
        }
    }

    fn reserve(&mut self, count: usize) {
        if self.names.len() < count {
            self.names.resize(count, None);
        }
    }

    fn set(&mut self, number: i64, name: &str) {
        if let Some(at) = index(number) {
            self.reserve(at + 1);
            if let Some(slot) = self.names.get_mut(at) {
                *slot = Some(name.to_owned());
            }
        }
    }

    fn number_of(numbers: &[i64], at: usize) -> i64 {
        numbers.get(at).copied().unwrap_or(0)
    }
}

/// The scope of a query inside others.
pub(super) fn scope_of<'n>(
    catalogs: &Catalogs<'_>,
    query: &'n Node,
    outer: &[Scope<'n>],
) -> Written<Scope<'n>> {
    let mut scope = Scope {
        entries: named_entries(catalogs, query, outer)?,
        query: Some(query),
        ..Scope::default()
    };
    if let Some(tree) = query.node("jointree") {
        let joins = joins_of(tree)?;
        scope.unique_using = joins.iter().any(|join| is_dangerous(&scope, join));
        for join in &joins {
            merge_names(&mut scope, join)?;
        }
    }
    for at in 0..scope.entries.len() {
        if scope
            .entries
            .get(at)
            .is_some_and(|entry| entry.kind() == kind::JOIN)
        {
            name_join_columns(&mut scope, at);
        } else {
            name_columns(catalogs, &mut scope, at)?;
        }
    }
    Ok(scope)
}

/// Every entry with a name that no other one has, here or further out.
fn named_entries<'n>(
    catalogs: &Catalogs<'_>,
    query: &'n Node,
    outer: &[Scope<'n>],
) -> Written<Vec<Entry<'n>>> {
    let outer_names = outer.iter().flat_map(|scope| &scope.entries);
    let mut taken: HashMap<String, u32> = outer_names
        .filter_map(|entry| Some((entry.name.clone()?, 0)))
        .collect();
    let mut entries = Vec::new();
    for node in query.nodes("rtable") {
        let wanted = wanted_name(catalogs, node)?;
        entries.push(Entry {
            node: Some(node),
            name: wanted.map(|name| unique_name(&mut taken, name)),
            columns: Columns::default(),
        });
    }
    Ok(entries)
}

fn wanted_name(catalogs: &Catalogs<'_>, node: &Node) -> Written<Option<String>> {
    let named = |field| {
        let alias = node.node(field)?;
        alias.text("aliasname").map(str::to_owned)
    };
    if node.field("alias").is_some() {
        return Ok(named("alias"));
    }
    match node.int("rtekind") {
        kind::RELATION => {
            let oid = node.oid("relid");
            let row = catalogs.row("pg_class", oid);
            row.map(|row| Some(row.name("relname")))
                .ok_or_else(|| Refusal::absent("relation", oid))
        }
        kind::JOIN => Ok(None),
        _ => Ok(named("eref")),
    }
}

fn unique_name(taken: &mut HashMap<String, u32>, name: String) -> String {
    let Some(mut counter) = taken.get(&name).copied() else {
        taken.insert(name.clone(), 0);
        return name;
    };
    loop {
        counter += 1;
        let tried = with_number(&name, counter);
        if !taken.contains_key(&tried) {
            taken.insert(name, counter);
            taken.insert(tried.clone(), 0);
            return tried;
        }
    }
}

/// The name with a number behind it, cut so that it is not too long.
fn with_number(name: &str, number: u32) -> String {
    let tail = format!("_{number}");
    let mut kept = name.len().min(NAME_BYTES_MAX.saturating_sub(tail.len()));
    while !name.is_char_boundary(kept) {
        kept -= 1;
    }
    format!("{}{tail}", name.get(..kept).unwrap_or_default())
}

/// The joins of a query, outer ones before those in them, with the names of merged columns from
/// above.
fn joins_of(tree: &Node) -> Written<Vec<&Node>> {
    let mut found = Vec::new();
    let mut waiting: Vec<&Node> = tree.nodes("fromlist");
    waiting.reverse();
    while let Some(node) = waiting.pop() {
        if node.tag != "JOINEXPR" {
            continue;
        }
        if found.len() >= JOINS_MAX {
            return Err(Refusal(format!("it has more than {JOINS_MAX} joins")));
        }
        found.push(node);
        waiting.extend(node.node("rarg"));
        waiting.extend(node.node("larg"));
    }
    Ok(found)
}

/// An unnamed join merges columns into something that is no column of either side.
fn is_dangerous(scope: &Scope<'_>, join: &Node) -> bool {
    if join.field("alias").is_some() || join.list("usingClause").is_empty() {
        return false;
    }
    let entry = scope
        .entry(join.int("rtindex"))
        .and_then(|entry| entry.node);
    entry.is_some_and(|entry| {
        let merged = usize::try_from(entry.int("joinmergedcols")).unwrap_or(0);
        let columns = entry.list("joinaliasvars").iter().take(merged);
        columns
            .into_iter()
            .any(|value| value.node().is_none_or(|node| node.tag != "VAR"))
    })
}

fn side(join: &Node, field: &str) -> Written<usize> {
    let node = join.node(field);
    let number = node.map(|node| node.int("rtindex"));
    let refusal = || Refusal("a join has a side that is no table".into());
    number.and_then(index).ok_or_else(refusal)
}

/// Works out which columns a join has, and hands the names of merged ones down.
fn merge_names(scope: &mut Scope<'_>, join: &Node) -> Written {
    let refusal = || Refusal("a join is not in its range table".into());
    let at = index(join.int("rtindex")).ok_or_else(refusal)?;
    let node = scope
        .entries
        .get(at)
        .and_then(|entry| entry.node)
        .ok_or_else(refusal)?;
    let (left, right) = (side(join, "larg")?, side(join, "rarg")?);
    if left >= scope.entries.len() || right >= scope.entries.len() || left == at || right == at {
        return Err(refusal());
    }
    let mut own = std::mem::take(&mut scope.entries.get_mut(at).ok_or_else(refusal)?.columns);
    (own.left, own.right) = (left, right);
    (own.left_numbers, own.right_numbers) = numbers_of(node);
    let alias = node.node("alias");
    if alias.is_none() {
        for (at, name) in own.names.iter().enumerate() {
            if let Some(name) = name {
                hand_down(scope, &own, at, name);
            }
        }
    }
    let mut parent_using = own.parent_using.clone();
    for (at, wanted) in join.texts("usingClause").into_iter().enumerate() {
        let name = match own.names.get(at).cloned().flatten() {
            Some(name) => name,
            None => {
                let aliases = alias
                    .map(|alias| alias.texts("colnames"))
                    .unwrap_or_default();
                let wanted = aliases.get(at).copied().unwrap_or(wanted);
                let name = unique_column(scope, &own, wanted);
                if scope.unique_using {
                    scope.using_names.push(name.clone());
                }
                own.reserve(join.list("usingClause").len());
                own.set(i64::try_from(at).unwrap_or(0) + 1, &name);
                name
            }
        };
        own.using.push(name.clone());
        parent_using.push(name.clone());
        hand_down(scope, &own, at, &name);
    }
    for child in [left, right] {
        if let Some(entry) = scope.entries.get_mut(child) {
            entry.columns.parent_using = parent_using.clone();
        }
    }
    if let Some(entry) = scope.entries.get_mut(at) {
        entry.columns = own;
    }
    Ok(())
}

/// For each column of a join, the numbers of the left and right columns that it comes from, 0 for
/// none.
fn numbers_of(node: &Node) -> (Vec<i64>, Vec<i64>) {
    let merged = usize::try_from(node.int("joinmergedcols")).unwrap_or(0);
    let mut left = node.numbers("joinleftcols").to_vec();
    let mut right = vec![0; left.len()];
    for (at, number) in node.numbers("joinrightcols").iter().enumerate() {
        match right.get_mut(at).filter(|_| at < merged) {
            Some(slot) => *slot = *number,
            None => {
                left.push(0);
                right.push(*number);
            }
        }
    }
    (left, right)
}

fn hand_down(scope: &mut Scope<'_>, join: &Columns, at: usize, name: &str) {
    let sides = [
        (join.left, &join.left_numbers),
        (join.right, &join.right_numbers),
    ];
    for (child, numbers) in sides {
        let number = Columns::number_of(numbers, at);
        if let Some(entry) = scope.entries.get_mut(child).filter(|_| number > 0) {
            entry.columns.set(number, name);
        }
    }
}

fn unique_column(scope: &Scope<'_>, columns: &Columns, wanted: &str) -> String {
    let own = columns.names.iter().flatten();
    let new = columns.new_names.iter().map(|(name, _)| name);
    let taken: HashSet<&str> = own
        .chain(new)
        .chain(&scope.using_names)
        .chain(&columns.parent_using)
        .map(String::as_str)
        .collect();
    let mut name = wanted.to_owned();
    let mut number = 0;
    while taken.contains(name.as_str()) {
        number += 1;
        name = with_number(wanted, number);
    }
    name
}

/// The names that an entry's columns have by themselves, now; dropped ones have none.
fn real_names(catalogs: &Catalogs<'_>, node: &Node) -> Written<Vec<Option<String>>> {
    let stored = node
        .node("eref")
        .map(|eref| eref.texts("colnames"))
        .unwrap_or_default();
    let own = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    match node.int("rtekind") {
        kind::RELATION => Ok(attribute_names(catalogs, node.oid("relid"))),
        kind::FUNCTION => function_names(catalogs, node, &stored),
        _ => Ok(stored.into_iter().map(own).collect()),
    }
}

fn attribute_names(catalogs: &Catalogs<'_>, relation: u32) -> Vec<Option<String>> {
    let rows = catalogs.attributes(relation).into_iter();
    rows.map(|row| (!row.flag("attisdropped")).then(|| row.name("attname")))
        .collect()
}

fn function_names(
    catalogs: &Catalogs<'_>,
    node: &Node,
    stored: &[&str],
) -> Written<Vec<Option<String>>> {
    let mut names = Vec::new();
    let mut at = 0;
    for function in node.nodes("functions") {
        let count = usize::try_from(function.int("funccolcount")).unwrap_or(0);
        let call = function.node("funcexpr");
        let call = call.ok_or_else(|| Refusal("a function in FROM is empty".into()))?;
        let oid = types::type_of(catalogs, call)?;
        let relation = catalogs
            .row("pg_type", oid)
            .map_or(0, |row| row.oid("typrelid"));
        let mut own = attribute_names(catalogs, relation);
        own.resize(own.len().max(count), Some(String::new()));
        for (offset, name) in own.into_iter().enumerate() {
            let known = stored.get(at + offset).filter(|_| offset < count);
            names.push(name.map(|name| known.map_or(name, |known| (*known).to_owned())));
        }
        at += count;
    }
    if node.flag("funcordinality") {
        names.extend(stored.get(at).map(|name| Some((*name).to_owned())));
    }
    Ok(names)
}

/// Names the columns of anything but a join.
fn name_columns(catalogs: &Catalogs<'_>, scope: &mut Scope<'_>, at: usize) -> Written {
    let Some(entry) = scope.entries.get_mut(at) else {
        return Ok(());
    };
    let Some(node) = entry.node else {
        return Ok(());
    };
    let mut own = std::mem::take(&mut entry.columns);
    let real = real_names(catalogs, node)?;
    let stored = node
        .node("eref")
        .map_or(0, |eref| eref.list("colnames").len());
    let aliases = node
        .node("alias")
        .map(|alias| alias.texts("colnames"))
        .unwrap_or_default();
    own.reserve(real.len());
    let mut changed = false;
    for (column, real) in real.iter().enumerate() {
        let Some(real) = real else {
            continue;
        };
        let name = match own.names.get(column).cloned().flatten() {
            Some(name) => name,
            None => {
                let wanted = aliases.get(column).copied().unwrap_or(real);
                let name = unique_column(scope, &own, wanted);
                own.set(i64::try_from(column).unwrap_or(0) + 1, &name);
                name
            }
        };
        changed |= name != *real;
        own.new_names.push((name, column >= stored));
    }
    own.listed = match node.int("rtekind") {
        kind::RELATION => changed,
        kind::FUNCTION => true,
        kind::TABLE_FUNCTION => false,
        _ => changed || !aliases.is_empty(),
    };
    if let Some(entry) = scope.entries.get_mut(at) {
        entry.columns = own;
    }
    Ok(())
}

/// Names the columns of a join, whose sides have theirs.
fn name_join_columns(scope: &mut Scope<'_>, at: usize) {
    let Some(entry) = scope.entries.get_mut(at) else {
        return;
    };
    let Some(node) = entry.node else {
        return;
    };
    let mut own = std::mem::take(&mut entry.columns);
    let columns_of = |scope: &Scope<'_>, at: usize| {
        let entry = scope.entries.get(at);
        entry.map(|entry| entry.columns.clone()).unwrap_or_default()
    };
    let (left, right) = (columns_of(scope, own.left), columns_of(scope, own.right));
    let stored = node
        .node("eref")
        .map(|eref| eref.texts("colnames"))
        .unwrap_or_default();
    let alias = node.node("alias");
    let aliases = alias
        .map(|alias| alias.texts("colnames"))
        .unwrap_or_default();
    own.reserve(stored.len());
    let mut changed = false;
    for column in own.using.len()..stored.len() {
        let from = |side: &Columns, numbers: &[i64]| {
            let at = index(Columns::number_of(numbers, column))?;
            Some(side.names.get(at).cloned().flatten())
        };
        let real = from(&left, &own.left_numbers)
            .or_else(|| from(&right, &own.right_numbers))
            .unwrap_or_else(|| stored.get(column).map(|name| (*name).to_owned()));
        let name = match (&real, alias) {
            (None, _) => None,
            (Some(real), None) => Some(real.clone()),
            (Some(real), Some(_)) => Some(match own.names.get(column).cloned().flatten() {
                Some(name) => name,
                None => {
                    let wanted = aliases.get(column).copied().unwrap_or(real);
                    unique_column(scope, &own, wanted)
                }
            }),
        };
        changed |= name != real;
        if let Some(slot) = own.names.get_mut(column) {
            *slot = name;
        }
    }
    changed |= list_join_columns(scope, &mut own, [&left, &right], alias.is_some());
    own.listed = alias.is_some() && changed;
    if let Some(entry) = scope.entries.get_mut(at) {
        entry.columns = own;
    }
}

/// The columns that a join would have when it is parsed again: merged ones, then the rest of either
/// side.
fn list_join_columns(
    scope: &Scope<'_>,
    own: &mut Columns,
    sides: [&Columns; 2],
    is_named: bool,
) -> bool {
    let merged = own.using.len();
    let mut changed = false;
    for at in 0..merged {
        let name = own.names.get(at).cloned().flatten();
        own.new_names.extend(name.map(|name| (name, false)));
    }
    let mut next = merged;
    let numbers = [own.left_numbers.clone(), own.right_numbers.clone()];
    for (side, numbers) in sides.into_iter().zip(&numbers) {
        let merged_here: HashSet<i64> = numbers.iter().take(merged).copied().collect();
        let mut column = 0;
        for (child, is_new) in &side.new_names {
            if *is_new {
                let name = if is_named {
                    unique_column(scope, own, child)
                } else {
                    child.clone()
                };
                changed |= name != *child;
                own.new_names.push((name, true));
                continue;
            }
            while side.names.get(column).is_some_and(Option::is_none) {
                column += 1;
            }
            column += 1;
            if merged_here.contains(&i64::try_from(column).unwrap_or(0)) {
                continue;
            }
            while own.names.get(next).is_some_and(Option::is_none) {
                next += 1;
            }
            let name = own.names.get(next).cloned().flatten();
            own.new_names.extend(name.map(|name| (name, false)));
            next += 1;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_numbers_until_they_are_unique() {
        let mut taken = HashMap::new();
        let mut take = |name: &str| unique_name(&mut taken, name.into());
        assert_eq!(
            (take("t"), take("t"), take("t_1")),
            ("t".into(), "t_1".into(), "t_1_1".into())
        );
        assert_eq!(take("t"), "t_2");
        let long = "ä".repeat(31);
        assert_eq!(with_number(&long, 1), format!("{}_1", "ä".repeat(30)));
    }
}
