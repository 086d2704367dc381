//! The nodes of an SP-GiST index do not lead to each of its tuples once, or a value lies under the
//! wrong node.
//!
//! First all pages are read for what they hold. Then the inner tuples are followed from the two
//! roots; what their nodes promise of the chains of leaf tuples is sorted aside by page. Last, all
//! leaf pages are held against that.
//!
//! Truth: `src/backend/access/spgist/README`, `spgdoinsert.c`, `spgscan.c`.

use std::io;

use pgclinic_cluster::Persistence;
use pgclinic_format::BlockNo;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::spgist::{NULL_ROOT, ROOT, SpgistPage, State};
use pgclinic_format::types::Tid;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_model::plural;
use pgclinic_scan::PageReader;
use pgclinic_spill::SortedRuns;

use crate::findings::Findings;
use crate::relation_check::{RelationCheck, RelationCx};
use crate::spgist::chains::Chains;
use crate::spgist::nodes::{Promise, ValueKind};
use crate::spgist::tree::{Holds, SpgistTree, Visit};

/// Downlinks.
pub static SPGIST_DOWNLINK: Rule = Rule::from_page(include_str!("../../rules/spgist-downlink.md"));

/// Lost tuples.
pub static SPGIST_PAGE_UNREACHABLE: Rule =
    Rule::from_page(include_str!("../../rules/spgist-page-unreachable.md"));

/// Values.
pub static SPGIST_VALUE_OUTSIDE_NODE: Rule =
    Rule::from_page(include_str!("../../rules/spgist-value-outside-node.md"));

/// See [`SPGIST_DOWNLINK`], [`SPGIST_PAGE_UNREACHABLE`] and [`SPGIST_VALUE_OUTSIDE_NODE`].
pub struct SpgistLinks;

impl RelationCheck for SpgistLinks {
    fn rules(&self) -> &'static [&'static Rule] {
        const {
            &[
                &SPGIST_DOWNLINK,
                &SPGIST_PAGE_UNREACHABLE,
                &SPGIST_VALUE_OUTSIDE_NODE,
            ]
        }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Spgist
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let Ok(blocks) = u32::try_from(relation.fork.blocks) else {
            return;
        };
        if blocks == 0 || !is_comparable(relation) {
            return;
        }
        if let Err(error) = compare(relation, blocks, out) {
            relation.not_checked(out, "the tree", &error.to_string(), false);
        }
    }
}

/// Pages agree with each other: no replay is due, and the index was built to its end.
fn is_comparable(relation: &RelationCx<'_>) -> bool {
    let own = relation.fork.relation;
    let index = own.and_then(|relation| relation.index.as_ref());
    let temporary = relation.fork.files.temporary.is_some()
        || own.is_some_and(|own| own.persistence == Persistence::Temporary);
    relation.settled() && !temporary && index.is_some_and(|index| index.ready)
}

/// Memory for promises before they are written to a temporary file.
const PROMISES_BYTES: usize = 8 << 20;

fn compare(relation: &RelationCx<'_>, blocks: BlockNo, out: &mut Findings) -> io::Result<()> {
    let Some(mut tree) = read_tree(relation, blocks) else {
        return Ok(());
    };
    let _memory = relation
        .budget
        .take(tree.bytes().saturating_add(PROMISES_BYTES as u64));
    let kind = known_kind(relation, out);
    let mut promises = SortedRuns::new(PROMISES_BYTES, relation.spill_folder)?;
    follow(relation, &mut tree, kind, &mut promises, out)?;
    if relation.is_interrupted() {
        return Ok(());
    }
    for (block, item) in tree.lost() {
        let message = "no node leads to this inner tuple";
        let draft = relation.draft(&SPGIST_PAGE_UNREACHABLE, block, message);
        out.add(draft.item(item).follows_fork(relation.fork));
    }
    leaves(relation, blocks, &tree, kind, promises, out)
}

fn read_tree(relation: &RelationCx<'_>, blocks: BlockNo) -> Option<SpgistTree> {
    let mut tree = SpgistTree::new(usize::try_from(blocks).ok()?);
    let mut pages = relation.pages();
    for block in 0..blocks {
        if relation.is_interrupted() {
            return None;
        }
        tree.add(block, pages.page(block));
    }
    Some(tree)
}

fn known_kind(relation: &RelationCx<'_>, out: &mut Findings) -> Option<ValueKind> {
    let index = relation.fork.relation?.index.as_ref()?;
    let class = index.classes.first();
    let kind = class.and_then(ValueKind::of);
    if kind.is_none() {
        let name = class.map_or("an unknown class", |class| &class.name);
        let why = format!("how {name} divides its values is not known here");
        relation.not_checked(out, "values under their nodes", &why, true);
    }
    kind
}

/// One inner tuple on the way down.
struct Step {
    at: Tid,
    level: u32,
    promise: Promise,
    nulls: bool,
}

/// Follows all inner tuples from the roots.
fn follow(
    relation: &RelationCx<'_>,
    tree: &mut SpgistTree,
    kind: Option<ValueKind>,
    promises: &mut SortedRuns,
    out: &mut Findings,
) -> io::Result<()> {
    let at_root = kind.map_or(Promise::Nothing, ValueKind::at_root);
    let mut steps = Vec::new();
    for (root, promise) in [(ROOT, at_root), (NULL_ROOT, Promise::Nothing)] {
        let at = Tid {
            block: root,
            offset: 1,
        };
        if tree.visit(at) == Visit::First {
            steps.push(Step {
                at,
                level: 0,
                promise,
                nulls: root == NULL_ROOT,
            });
        }
    }
    let mut pages = relation.pages();
    while let Some(step) = steps.pop() {
        if relation.is_interrupted() {
            return Ok(());
        }
        let page = pages.page(step.at.block).and_then(SpgistPage::parse);
        let Some(tuple) = page.and_then(|page| page.tuple(step.at.offset)) else {
            continue;
        };
        let inner = tuple.inner();
        for (number, node) in (0_u16..).zip(inner.nodes()) {
            // Links out of the index are told by the page's own check.
            let Some(to) = node.downlink().filter(|to| tree.is_target(to.block)) else {
                continue;
            };
            let promise = kind.map_or(Promise::Nothing, |kind| {
                kind.narrow(step.promise, inner, number, step.level)
            });
            let wrong = match tree.holds(to.block) {
                Holds::Nothing => Some("block without a page of the index".to_owned()),
                Holds::Inner { nulls } | Holds::Leaf { nulls } if nulls != step.nulls => {
                    Some("page of the other tree".to_owned())
                }
                Holds::Leaf { .. } => {
                    promises.push(&key(to), &record(step.at, number, promise))?;
                    None
                }
                Holds::Inner { .. } => match tree.visit(to) {
                    Visit::First => {
                        steps.push(Step {
                            at: to,
                            level: step.level.saturating_add(1),
                            promise,
                            nulls: step.nulls,
                        });
                        None
                    }
                    Visit::Again => Some("tuple to which another node leads already".to_owned()),
                    Visit::NotLive => Some("place without a live tuple".to_owned()),
                },
            };
            if let Some(wrong) = wrong {
                tell_downlink(relation, step.at, number, to, &wrong, out);
            }
        }
    }
    Ok(())
}

fn tell_downlink(
    relation: &RelationCx<'_>,
    from: Tid,
    node: u16,
    to: Tid,
    wrong: &str,
    out: &mut Findings,
) {
    let node = u32::from(node) + 1;
    let message = format!("node {node} leads to {to}, a {wrong}");
    let draft = relation.draft(&SPGIST_DOWNLINK, from.block, message);
    let draft = draft.item(from.offset).fact("to", to.to_string());
    out.add(draft.follows(relation.fork, to.block));
}

/// Sorted as the pages are read.
fn key(to: Tid) -> [u8; 6] {
    let ([a, b, c, d], [e, f]) = (to.block.to_be_bytes(), to.offset.to_be_bytes());
    [a, b, c, d, e, f]
}

fn record(from: Tid, node: u16, promise: Promise) -> Vec<u8> {
    let mut bytes = key(from).to_vec();
    bytes.extend(node.to_le_bytes());
    bytes.extend(promise.to_bytes());
    bytes
}

/// A node's promise of a chain.
struct Promised {
    to: Tid,
    from: Tid,
    node: u16,
    promise: Promise,
}

fn promised((key, value): (Vec<u8>, Vec<u8>)) -> Option<Promised> {
    let (from, rest) = value.split_at_checked(6)?;
    let (node, promise) = rest.split_first_chunk::<2>()?;
    Some(Promised {
        to: tid(&key)?,
        from: tid(from)?,
        node: u16::from_le_bytes(*node),
        promise: Promise::from_bytes(promise),
    })
}

fn tid(bytes: &[u8]) -> Option<Tid> {
    let (block, offset) = bytes.split_first_chunk::<4>()?;
    Some(Tid {
        block: u32::from_be_bytes(*block),
        offset: u16::from_be_bytes(*offset.first_chunk()?),
    })
}

fn leaves(
    relation: &RelationCx<'_>,
    blocks: BlockNo,
    tree: &SpgistTree,
    kind: Option<ValueKind>,
    promises: SortedRuns,
    out: &mut Findings,
) -> io::Result<()> {
    let mut promises = promises.finish()?.peekable();
    let mut pages = relation.pages();
    for block in 0..blocks {
        if relation.is_interrupted() {
            return Ok(());
        }
        let mut own = Vec::new();
        let here = |record: &io::Result<(Vec<u8>, Vec<u8>)>| match record {
            Ok((key, _)) => tid(key).is_none_or(|to| to.block <= block),
            Err(_) => true,
        };
        while let Some(record) = promises.next_if(here) {
            own.extend(promised(record?));
        }
        let leaf = matches!(tree.holds(block), Holds::Leaf { .. });
        if leaf && block > NULL_ROOT {
            leaf_page(relation, block, &own, kind, &mut pages, out);
        }
    }
    Ok(())
}

fn leaf_page(
    relation: &RelationCx<'_>,
    block: BlockNo,
    promises: &[Promised],
    kind: Option<ValueKind>,
    pages: &mut PageReader<'_>,
    out: &mut Findings,
) {
    let Some(page) = pages.page(block).and_then(SpgistPage::parse) else {
        return;
    };
    let chains = Chains::of(page);
    let mut reached = Vec::new();
    for promised in promises {
        let number = promised.to.offset;
        let wrong = match chains.state(number) {
            _ if reached.last() == Some(&number) => {
                Some("chain to which another node leads already".to_owned())
            }
            Some(State::Live) if chains.is_head(number) => None,
            Some(State::Live) => Some("tuple in the middle of a chain".to_owned()),
            Some(State::Dead) => None,
            Some(state) => Some(format!("{} tuple", state.name())),
            None => Some("place without a tuple".to_owned()),
        };
        reached.push(number);
        match wrong {
            Some(wrong) => tell_downlink(
                relation,
                promised.from,
                promised.node,
                promised.to,
                &wrong,
                out,
            ),
            None => values(relation, page, &chains, promised, kind, out),
        }
    }
    let lost: Vec<u16> = chains
        .heads()
        .filter(|head| reached.binary_search(head).is_err())
        .collect();
    let Some(first) = lost.first() else { return };
    let rows: usize = lost.iter().map(|head| chains.rows(*head).len()).sum();
    let message = format!(
        "no node leads to {} with {}",
        plural(lost.len(), "chain"),
        plural(rows, "row")
    );
    let draft = relation.draft(&SPGIST_PAGE_UNREACHABLE, block, message);
    let draft = draft.item(*first).fact("rows", rows);
    out.add(draft.follows_fork(relation.fork));
}

/// The first value of the chain that breaks the promise.
fn values(
    relation: &RelationCx<'_>,
    page: SpgistPage<'_>,
    chains: &Chains,
    promised: &Promised,
    kind: Option<ValueKind>,
    out: &mut Findings,
) {
    let Some(kind) = kind.filter(|_| promised.promise != Promise::Nothing) else {
        return;
    };
    let outside = |row: &u16| {
        let leaf = page.tuple(*row).map(|tuple| tuple.leaf());
        leaf.and_then(|leaf| kind.keeps(promised.promise, leaf)) == Some(false)
    };
    let rows = chains.rows(promised.to.offset);
    let count = rows.iter().filter(|row| outside(row)).count();
    let Some(first) = rows.into_iter().find(outside) else {
        return;
    };
    let (from, node) = (promised.from, u32::from(promised.node) + 1);
    let message = format!(
        "the value lies outside node {node} of {from}, or of a node above it; {count} of its chain do"
    );
    let draft = relation.draft(&SPGIST_VALUE_OUTSIDE_NODE, promised.to.block, message);
    let draft = draft.item(first).fact("from", from.to_string());
    out.add(draft.follows(relation.fork, from.block));
}
