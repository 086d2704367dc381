//! The pages of a GiST index do not make one balanced tree, or a page sticks out of its downlink's
//! key.
//!
//! Truth: `src/backend/access/gist/README`, `gistgetadjusted` and `gistMakeUnionItVec` in
//! `src/backend/access/gist/gistutil.c`.

use pgclinic_cluster::Persistence;
use pgclinic_format::gist::{F_LEAF, GistItem, GistPage, ROOT, TUPLE_IS_INVALID};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{Attribute, BlockNo, ColumnLayout, Page};
use pgclinic_model::document::Level;
use pgclinic_model::{Rule, Severity};
use pgclinic_scan::PageReader;

use crate::findings::Findings;
use crate::gist::keys::KeyKind;
use crate::gist::nsn::{GIST_NSN, is_logged};
use crate::gist::tree::{BYTES_PER_BLOCK, DoubleLink, GistTree, Holds, Reached};
use crate::relation_check::{RelationCheck, RelationCx};

/// Downlinks.
pub static GIST_DOWNLINK: Rule = Rule::from_page(include_str!("../../rules/gist-downlink.md"));

/// Lost pages.
pub static GIST_PAGE_UNREACHABLE: Rule =
    Rule::from_page(include_str!("../../rules/gist-page-unreachable.md"));

/// Keys.
pub static GIST_KEY_NOT_COVERED: Rule =
    Rule::from_page(include_str!("../../rules/gist-key-not-covered.md"));

/// See [`GIST_DOWNLINK`], [`GIST_PAGE_UNREACHABLE`] and [`GIST_KEY_NOT_COVERED`].
pub struct GistLinks;

impl RelationCheck for GistLinks {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &GIST_DOWNLINK,
                &GIST_PAGE_UNREACHABLE,
                &GIST_KEY_NOT_COVERED,
            ]
        }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Gist
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let Ok(blocks) = u32::try_from(relation.fork.blocks) else {
            return;
        };
        if blocks == 0 || !is_comparable(relation) {
            return;
        }
        let _memory = relation
            .budget
            .take(BYTES_PER_BLOCK.saturating_mul(u64::from(blocks)));
        let Some(mut tree) = read_tree(relation, blocks, out) else {
            return;
        };
        places(relation, blocks, &mut tree, out);
        keys(relation, blocks, &tree, out);
    }
}

/// Pages agree with each other: no replay is due, and the index was built to its end.
fn is_comparable(relation: &RelationCx<'_>) -> bool {
    let index = relation
        .fork
        .relation
        .and_then(|relation| relation.index.as_ref());
    let temporary = relation.fork.files.temporary.is_some()
        || relation
            .fork
            .relation
            .is_some_and(|own| own.persistence == Persistence::Temporary);
    relation.settled() && !temporary && index.is_some_and(|index| index.ready)
}

fn read_tree(relation: &RelationCx<'_>, blocks: BlockNo, out: &mut Findings) -> Option<GistTree> {
    let mut tree = GistTree::new(usize::try_from(blocks).ok()?);
    let mut pages = relation.pages();
    for block in 0..blocks {
        if relation.is_interrupted() {
            return None;
        }
        for double in tree.add(block, pages.page(block)) {
            tell_double(relation, double, out);
        }
    }
    for double in tree.join_splits() {
        tell_double(relation, double, out);
    }
    Some(tree)
}

fn tell_double(relation: &RelationCx<'_>, double: DoubleLink, out: &mut Findings) {
    let DoubleLink {
        block,
        item,
        to,
        other,
    } = double;
    let link = match item {
        Some(_) => "the downlink",
        None => "the right link of an unfinished split",
    };
    let message = match other {
        None => format!("{link} leads to the root"),
        Some(other) => format!("{link} leads to block {to}, to which block {other} leads already"),
    };
    let mut draft = relation.draft(&GIST_DOWNLINK, block, message);
    if let Some(item) = item {
        draft = draft.item(item);
    }
    if let Some(other) = other {
        draft = draft.follows(relation.fork, other);
    }
    out.add(draft.follows(relation.fork, to).fact("to", to));
}

/// What each link leads to, what none leads to, and how deep the leaves are.
fn places(relation: &RelationCx<'_>, blocks: BlockNo, tree: &mut GistTree, out: &mut Findings) {
    let leaf_depth = common_leaf_depth(blocks, tree);
    for block in 0..blocks {
        let holds = tree.holds(block);
        let reached = tree.reached(block);
        if let Some((from, link)) = from(reached) {
            let wrong = match holds {
                Holds::Nothing => Some("holds no page of the index"),
                Holds::Deleted => Some("was deleted"),
                Holds::EmptyLeaf | Holds::Leaf | Holds::Inner => None,
            };
            if let Some(wrong) = wrong {
                let message = format!("{link} leads to block {block}, which {wrong}");
                let draft = relation.draft(&GIST_DOWNLINK, from, message);
                out.add(draft.follows(relation.fork, block).fact("to", block));
                continue;
            }
        }
        let depth = tree.depth(block);
        let filled = matches!(holds, Holds::Leaf | Holds::Inner);
        if block != ROOT && filled && depth.is_none() {
            unreachable(relation, block, holds, reached, tree, out);
        }
        let is_leaf = matches!(holds, Holds::Leaf | Holds::EmptyLeaf);
        if let (Some(depth), true) = (depth, is_leaf)
            && Some(depth) != leaf_depth
        {
            let others = leaf_depth.unwrap_or_default();
            let message =
                format!("a leaf on level {depth} where most leaves are on level {others}");
            let draft = relation.draft(&GIST_DOWNLINK, block, message);
            let follows = tree.parent(block).map_or(ROOT, |(parent, _)| parent);
            out.add(draft.follows(relation.fork, follows));
        }
    }
}

fn from(reached: Reached) -> Option<(BlockNo, &'static str)> {
    match reached {
        Reached::Not => None,
        Reached::From(parent) => Some((parent, "a downlink")),
        Reached::RightOf(left) => Some((left, "the right link of an unfinished split")),
    }
}

/// The level on which most leaves are.
fn common_leaf_depth(blocks: BlockNo, tree: &mut GistTree) -> Option<u8> {
    let mut counts = [0_u32; 256];
    for block in 0..blocks {
        if matches!(tree.holds(block), Holds::Leaf | Holds::EmptyLeaf)
            && let Some(depth) = tree.depth(block)
            && let Some(count) = counts.get_mut(usize::from(depth))
        {
            *count += 1;
        }
    }
    let most = (0_u8..=255).zip(counts).max_by_key(|(_, count)| *count)?;
    (most.1 > 0).then_some(most.0)
}

/// Told of the topmost lost page, and of inner pages that lead to each other in a circle.
fn unreachable(
    relation: &RelationCx<'_>,
    block: BlockNo,
    holds: Holds,
    reached: Reached,
    tree: &GistTree,
    out: &mut Findings,
) {
    let message = match (reached, tree.parent(block)) {
        (Reached::Not, _) => "no downlink leads to this page, which has entries",
        (_, Some((parent, _))) if holds == Holds::Inner && in_circle(tree, parent, block) => {
            "only pages below this page lead to it"
        }
        _ => return,
    };
    let draft = relation.draft(&GIST_PAGE_UNREACHABLE, block, message);
    out.add(draft.follows_fork(relation.fork));
}

/// Going up from `parent` one comes by `block`, within as many steps as a tree has levels.
fn in_circle(tree: &GistTree, parent: BlockNo, block: BlockNo) -> bool {
    let mut at = parent;
    for _ in 0..=u8::MAX {
        if at == block {
            return true;
        }
        match tree.parent(at) {
            Some((above, _)) => at = above,
            None => return false,
        }
    }
    false
}

/// What is known of the key columns.
struct Keys<'a> {
    layouts: &'a [ColumnLayout],
    inner: &'a [ColumnLayout],
    kinds: Vec<Option<KeyKind>>,
}

fn keys(relation: &RelationCx<'_>, blocks: BlockNo, tree: &GistTree, out: &mut Findings) {
    let Some(keys) = known_keys(relation, out) else {
        return;
    };
    let (mut pages, mut parents) = (relation.pages(), relation.pages());
    for block in 0..blocks {
        if relation.is_interrupted() {
            return;
        }
        let filled = matches!(tree.holds(block), Holds::Leaf | Holds::Inner);
        let Some((parent, child)) = tree.parent(block).filter(|_| filled) else {
            continue;
        };
        compare(
            relation,
            &keys,
            (block, &mut pages),
            (parent, child, &mut parents),
            out,
        );
    }
}

fn known_keys<'a>(relation: &RelationCx<'a>, out: &mut Findings) -> Option<Keys<'a>> {
    let layouts = relation.fork.columns?;
    let index = relation.fork.relation?.index.as_ref()?;
    let inner = layouts.get(..usize::from(index.key_count))?;
    let kind = |column: usize| index.classes.get(column).and_then(KeyKind::of);
    let kinds: Vec<_> = (0..inner.len()).map(kind).collect();
    for (column, _) in kinds.iter().enumerate().filter(|(_, kind)| kind.is_none()) {
        let class = index
            .classes
            .get(column)
            .map_or("an unknown class", |class| &class.name);
        let why = format!("what {class} keeps as keys is not known here");
        let what = format!("keys of column {}", column + 1);
        relation.not_checked(out, &what, &why, true);
    }
    Some(Keys {
        layouts,
        inner,
        kinds,
    })
}

fn compare(
    relation: &RelationCx<'_>,
    keys: &Keys<'_>,
    (block, pages): (BlockNo, &mut PageReader<'_>),
    (parent, child, parents): (BlockNo, BlockNo, &mut PageReader<'_>),
    out: &mut Findings,
) {
    let Some(page) = pages.page(block).and_then(GistPage::parse) else {
        return;
    };
    let Some(upper_page) = parents.page(parent) else {
        return;
    };
    let Some(upper) = downlink(upper_page, child) else {
        return;
    };
    if is_logged(relation.fork) && child == block && page.nsn() > upper_page.pd_lsn() {
        let message = format!(
            "NSN {} is beyond LSN {} of the parent in block {parent}",
            page.nsn(),
            upper_page.pd_lsn()
        );
        let draft = relation.draft(&GIST_NSN, block, message);
        out.add(
            draft
                .severity(Severity::Warning)
                .follows(relation.fork, parent),
        );
    }
    let Some(upper_key) = values(upper, keys.inner) else {
        return;
    };
    let columns = if page.has(F_LEAF) {
        keys.layouts
    } else {
        keys.inner
    };
    let mut first = None;
    let mut count = 0_u32;
    for item in page.items() {
        let Some(lower_key) = values(item, columns) else {
            continue;
        };
        if let Some(column) = outside(keys, &upper_key, &lower_key) {
            first.get_or_insert((item.number, column));
            count += 1;
        }
    }
    let Some((number, column)) = first else {
        return;
    };
    let more = match count {
        1 => String::new(),
        count => format!("; {count} entries of this page are"),
    };
    let message = format!(
        "column {column} of the entry is outside the key of item {} in block {parent}{more}",
        upper.number
    );
    let draft = relation
        .draft(&GIST_KEY_NOT_COVERED, block, message)
        .item(number);
    out.add(
        draft
            .follows(relation.fork, parent)
            .fact("parent", parent)
            .fact("entries", count),
    );
}

/// The entry of a parent that leads to the child, unless it was marked invalid by an old server.
fn downlink(parent: Page<'_>, child: BlockNo) -> Option<GistItem<'_>> {
    let page = GistPage::parse(parent)?;
    let mut items = page.items();
    let leads = |item: &GistItem<'_>| item.tuple.t_tid().block == child;
    items
        .find(leads)
        .filter(|item| item.tuple.t_tid().offset != TUPLE_IS_INVALID)
}

/// The key's values; nothing when one cannot be read, which another check tells.
fn values<'a>(item: GistItem<'a>, columns: &[ColumnLayout]) -> Option<Vec<Option<&'a [u8]>>> {
    let bytes = item.tuple.bytes();
    let one = |attribute| match attribute {
        Ok(Attribute::Value(range)) => Some(Some(bytes.get(range)?)),
        Ok(Attribute::Null | Attribute::Missing) => Some(None),
        Err(_) => None,
    };
    item.tuple.attributes(columns).map(one).collect()
}

/// The first key column, from 1, whose value is outside.
fn outside(keys: &Keys<'_>, upper: &[Option<&[u8]>], lower: &[Option<&[u8]>]) -> Option<usize> {
    let columns = keys.kinds.iter().zip(upper).zip(lower);
    columns
        .zip(1..)
        .find(|(((kind, upper), lower), _)| match (kind, upper, lower) {
            (_, None, Some(_)) => true,
            (Some(kind), Some(upper), Some(lower)) => kind.covers(upper, lower) == Some(false),
            _ => false,
        })
        .map(|(_, column)| column)
}
