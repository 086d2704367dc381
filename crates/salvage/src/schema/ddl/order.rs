//! The order of a schema: nothing before what it needs, and otherwise by kind and name.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use pgclinic_format::types::FIRST_NORMAL_OID;

use super::super::catalog::Catalogs;
use super::super::refusal::Refusal;
use super::item::{Item, Key, Rank, Stage, class};

/// Where an item wants to stand.
type Wish = (Stage, Rank, String, usize);

/// The items in an order in which they can be made. A circle is broken at the item that wants to
/// come first.
pub(super) fn sorted(catalogs: &Catalogs<'_>, mut items: Vec<Item>) -> Vec<Item> {
    let needs = needs_of(catalogs, &items);
    delay(&mut items, &needs);
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    let mut missing: Vec<usize> = needs.iter().map(BTreeSet::len).collect();
    for (at, needs) in needs.iter().enumerate() {
        for need in needs {
            if let Some(list) = needed_by.get_mut(*need) {
                list.push(at);
            }
        }
    }
    let wish = |at: usize| -> Reverse<Wish> {
        let item = items.get(at);
        Reverse((
            item.map_or(Stage::BeforeData, |item| item.stage),
            item.map_or(Rank::Schema, |item| item.rank),
            item.map(|item| item.what.clone()).unwrap_or_default(),
            at,
        ))
    };
    let mut waiting: BTreeSet<Wish> = (0..items.len()).map(|at| wish(at).0).collect();
    let mut ready: BinaryHeap<Reverse<Wish>> = (0..items.len())
        .filter(|at| missing.get(*at) == Some(&0))
        .map(wish)
        .collect();
    let mut order = Vec::with_capacity(items.len());
    while let Some(next) = ready
        .pop()
        .map(|next| next.0)
        .or_else(|| waiting.first().cloned())
    {
        if !waiting.remove(&next) {
            continue;
        }
        order.push(next.3);
        for other in needed_by.get(next.3).into_iter().flatten() {
            if let Some(count) = missing.get_mut(*other) {
                *count = count.saturating_sub(1);
                if *count == 0 {
                    ready.push(wish(*other));
                }
            }
        }
    }
    let mut slots: Vec<Option<Item>> = items.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|at| slots.get_mut(at).and_then(Option::take))
        .collect()
}

/// What needs something that is not written is not written either. A table has columns, and rows,
/// without what else it needs.
pub(super) fn refuse_followers(catalogs: &Catalogs<'_>, items: &mut [Item]) {
    let mut waiting: Vec<usize> = (0..items.len())
        .filter(|at| items.get(*at).is_some_and(|item| item.text.is_err()))
        .collect();
    if waiting.is_empty() {
        return;
    }
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    for (at, needs) in needs_of(catalogs, items).iter().enumerate() {
        for need in needs {
            if let Some(list) = needed_by.get_mut(*need) {
                list.push(at);
            }
        }
    }
    while let Some(refused) = waiting.pop() {
        let Some((rank, what)) = items
            .get(refused)
            .map(|item| (item.rank, item.what.clone()))
        else {
            continue;
        };
        for follower in needed_by.get(refused).into_iter().flatten() {
            let Some(item) = items.get_mut(*follower).filter(|item| item.text.is_ok()) else {
                continue;
            };
            if item.holds_rows && !makes_columns(rank) {
                continue;
            }
            item.text = Err(Refusal(format!("it needs {what}, which is not written")));
            waiting.push(*follower);
        }
    }
}

/// No table is made without these.
fn makes_columns(rank: Rank) -> bool {
    matches!(
        rank,
        Rank::Schema | Rank::ShellType | Rank::Type | Rank::Foreign | Rank::Relation | Rank::View
    )
}

/// For each item, the items that it needs.
fn needs_of(catalogs: &Catalogs<'_>, items: &[Item]) -> Vec<BTreeSet<usize>> {
    let mut home: HashMap<Key, usize> = HashMap::new();
    for (at, item) in items.iter().enumerate() {
        for key in &item.keys {
            home.entry(*key).or_insert(at);
        }
    }
    let shells = support_functions(catalogs);
    let mut needs: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); items.len()];
    for row in catalogs.table("pg_depend").iter() {
        let key = (row.oid("classid"), row.oid("objid"));
        let needed = (row.oid("refclassid"), row.oid("refobjid"));
        // A sequence is made before the column that owns it.
        let owned = key.0 == class::RELATION && row.letter("deptype") == 'a';
        let is_sequence = || {
            let relation = catalogs.row("pg_class", key.1);
            relation.is_some_and(|row| row.letter("relkind") == 'S')
        };
        if owned && is_sequence() {
            continue;
        }
        let needs_shell = key.0 == class::FUNCTION && shells.contains(&(key.1, needed.1));
        let needed = if needs_shell {
            (class::SHELL, needed.1)
        } else {
            needed
        };
        if let Some(at) = home.get(&key) {
            add(&mut needs, &home, *at, needed);
        }
    }
    for (at, item) in items.iter().enumerate() {
        for needed in &item.needs {
            add(&mut needs, &home, at, *needed);
        }
    }
    needs
}

/// Functions of base types, with their types.
fn support_functions(catalogs: &Catalogs<'_>) -> HashSet<(u32, u32)> {
    let types = catalogs.table("pg_type").iter();
    let base = types.filter(|row| row.letter("typtype") == 'b' && row.id() >= FIRST_NORMAL_OID);
    base.flat_map(|row| super::types::support_functions(row).map(|function| (function, row.id())))
        .collect()
}

fn add(needs: &mut [BTreeSet<usize>], home: &HashMap<Key, usize>, at: usize, needed: Key) {
    if let Some(need) = home.get(&needed)
        && at != *need
        && let Some(set) = needs.get_mut(at)
    {
        set.insert(*need);
    }
}

/// What needs something that comes after the data comes after the data.
fn delay(items: &mut [Item], needs: &[BTreeSet<usize>]) {
    // Each round moves one item at least, or is the last.
    for _ in 0..items.len() {
        let late: Vec<usize> = (0..items.len())
            .filter(|at| {
                let is_early = items
                    .get(*at)
                    .is_some_and(|item| item.stage == Stage::BeforeData);
                let mut needs = needs.get(*at).into_iter().flatten();
                let is_late = |need: &usize| {
                    items.get(*need).map(|item| item.stage) == Some(Stage::AfterData)
                };
                is_early && needs.any(is_late)
            })
            .collect();
        if late.is_empty() {
            return;
        }
        for at in late {
            if let Some(item) = items.get_mut(at) {
                item.stage = Stage::AfterData;
            }
        }
    }
}
