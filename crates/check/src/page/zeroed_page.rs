//! A page of a table is all zero, and entries of its indexes lead to it. Where recovery is due or
//! the server runs, also one of which only the visibility map knows (else the pass over the pages
//! tells of it).

use pgclinic_cluster::Cluster;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Fork};
use pgclinic_model::Rule;
use pgclinic_model::document::Level;
use pgclinic_source::Source;

use crate::block_set::BlockSet;
use crate::causes;
use crate::check::ForkCx;
use crate::entries::lost_map;
use crate::entries::lost_rows::{IndexWitness, ask_indexes, without_foreign};
use crate::findings::Findings;
use crate::heap::visibility_bits::VisibilityBits;
use crate::maps::visibility_map_wrong::ZEROED_PAGE_MARKED_VISIBLE;
use crate::page::vacant_page::{Vacancy, tell};
use crate::relation_check::{RelationCheck, RelationCx};

/// The rule.
pub static ZEROED_PAGE: Rule = Rule::from_page(include_str!("../../rules/zeroed-page.md"));

/// How a page of zeros is told.
static ZEROED: Vacancy = Vacancy {
    rule: &ZEROED_PAGE,
    seen: "is all zero",
    place: "a page of zeros",
    cause: Some(causes::whole_page_zeroed::cause),
};

/// See [`ZEROED_PAGE`].
pub struct ZeroedPage;

impl RelationCheck for ZeroedPage {
    fn rules(&self) -> &'static [&'static Rule] {
        const { &[&ZEROED_PAGE] }
    }

    fn level(&self) -> Level {
        Level::Structure
    }

    fn method(&self) -> AccessMethod {
        AccessMethod::Heap
    }

    fn check(&self, relation: &RelationCx<'_>, out: &mut Findings) {
        let zeroed = relation.neighbours.zeroed_in(relation.fork);
        let Some(zeroed) = zeroed.filter(|_| relation.settles()) else {
            return;
        };
        if zeroed.omitted > 0 {
            let what = format!("{} all-zero pages against index entries", zeroed.omitted);
            relation.not_checked(out, &what, "there are too many to remember", false);
        }
        let blocks = || {
            zeroed
                .blocks
                .iter()
                .filter_map(|at| BlockNo::try_from(at).ok())
        };
        let mut set = BlockSet::none_of(&(0..relation.fork.blocks));
        blocks().for_each(|block| set.add(u64::from(block)));
        let witnesses = ask_indexes(
            relation,
            |named| blocks().any(|block| named.may_name(block)),
            |block| set.has(block),
        );
        let witnesses = without_foreign(relation, witnesses, out);
        tell_unsettled(relation, blocks(), &witnesses, out);
        let marks = marks_beside(relation);
        if witnesses.iter().all(|witness| witness.entries == 0) && marks.is_none() {
            let is_denied = witnesses.iter().any(IndexWitness::denies_all);
            if is_denied || tell_logged(relation, &set, out) {
                return;
            }
            if lost_map::is_lost(relation) {
                let what = format!("{} all-zero pages", blocks().count());
                lost_map::leave_open(relation, &what, "they may have held rows", out);
            }
            return;
        }
        for block in blocks() {
            if relation.is_interrupted() {
                return;
            }
            let is_named = witnesses.iter().any(|own| own.blocks.contains_key(&block));
            match &marks {
                Some(marks) if !is_named => tell_marked(relation, block, marks, out),
                _ => {
                    let map = relation.fork.heap.visibility();
                    let map = map.map_or(0, |map| map.of(block));
                    tell(relation, (block, map), &witnesses, &ZEROED, out);
                }
            }
        }
    }
}

/// Pages of which WAL from before the last checkpoint has records; whether there are some.
fn tell_logged(relation: &RelationCx<'_>, zeroed: &BlockSet, out: &mut Findings) -> bool {
    let fork = relation.fork;
    let logged = fork.cluster.map(|own| own.logged_blocks(fork.files));
    let mut logged = logged.unwrap_or_default();
    logged.retain(|block| zeroed.has(*block));
    for block in &logged {
        let message = format!("block {block} is all zero, but WAL has records of it");
        let draft = relation.draft(&ZEROED_PAGE, *block, message);
        out.add(draft.cause(causes::whole_page_zeroed::cause()).rooted());
    }
    !logged.is_empty()
}

/// Pages that recovery leaves alone and that no index could be asked about: recovery writes the
/// pages that would name them.
fn tell_unsettled(
    relation: &RelationCx<'_>,
    blocks: impl Iterator<Item = BlockNo>,
    witnesses: &[IndexWitness<'_>],
    out: &mut Findings,
) {
    let fork = relation.fork;
    let replay = fork.cluster.and_then(Cluster::replay);
    let Some(replay) = replay.filter(|_| fork.replay_is_due()) else {
        return;
    };
    let is_open = |block: &BlockNo| {
        let is_named = witnesses.iter().any(|own| own.blocks.contains_key(block));
        let is_denied = || witnesses.iter().any(|own| own.denies(*block));
        relation.is_lasting(fork, *block) && !is_named && !is_denied()
    };
    let relpages = fork.relation.map_or(0, |own| own.relpages);
    let zeroed = relation.neighbours.zeroed_in(fork);
    let inside =
        replay.end_before_checkpoint(fork.file_number(), (relpages, fork.blocks), |block| {
            zeroed.is_some_and(|zeroed| zeroed.blocks.has(u64::from(block)))
        });
    let open: Vec<BlockNo> = blocks.filter(is_open).collect();
    let names = |own: &IndexWitness<'_>, block| own.unsettled.holds(block);
    let has_inner = open.iter().any(|block| u64::from(*block) < inside);
    for index in witnesses {
        let hides = has_inner && index.may_hide_entries();
        let is_doubtful =
            |block: &&BlockNo| names(index, **block) || (hides && u64::from(**block) < inside);
        let mut doubtful = open.iter().filter(is_doubtful);
        if let Some(first) = doubtful.next() {
            leave_open(relation, (*first, doubtful.count()), index, out);
            return;
        }
    }
}

/// Tells what would settle whether these pages held rows.
fn leave_open(
    relation: &RelationCx<'_>,
    (first, more): (BlockNo, usize),
    index: &IndexWitness<'_>,
    out: &mut Findings,
) {
    let what = match more {
        0 => format!("whether block {first}, which is all zeros, held rows"),
        more => format!(
            "whether {} blocks of zeros held rows, the first block {first},",
            more + 1
        ),
    };
    let why = format!(
        "recovery changes {}, which would name them: a server that recovers a copy of the cluster settles it",
        index.name()
    );
    relation.not_checked(out, &what, &why, false);
}

/// The visibility map, where the pass over the pages may not compare it with them.
fn marks_beside<'a>(relation: &RelationCx<'a>) -> Option<VisibilityBits<'a>> {
    if relation.fork.heap.visibility().is_some() {
        return None;
    }
    let map = relation.neighbours.beside(relation.fork, Fork::Vm)?;
    Some(map_of(relation.source, map))
}

/// The bits in the visibility map that is this fork.
pub(crate) fn map_of<'a>(source: &'a dyn Source, map: &'a ForkCx<'a>) -> VisibilityBits<'a> {
    VisibilityBits::new(source, map.files, map.build, has_checksums(map))
}

pub(crate) fn has_checksums(fork: &ForkCx<'_>) -> bool {
    fork.cluster.and_then(Cluster::checksums) == Some(true)
}

/// What no record since the last checkpoint touches is in the map as it is in the table.
fn tell_marked(
    relation: &RelationCx<'_>,
    block: BlockNo,
    marks: &VisibilityBits<'_>,
    out: &mut Findings,
) {
    let bits = marks.of(block);
    if bits != 0 && relation.believes_absence_of(relation.fork, block) {
        let message = "the page is all zeros, and the visibility map has a bit set for it";
        let draft = relation.draft(&ZEROED_PAGE_MARKED_VISIBLE, block, message);
        let draft = draft
            .fact("map_bits", bits)
            .cause(causes::whole_page_zeroed::cause());
        out.add(draft.rooted());
    }
}
