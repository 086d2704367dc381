//! What the indexes of a table know of blocks that are not there, or hold nothing.
//!
//! Only indexes whose summary of the pass ([`crate::entries::named_blocks`]) gives reason to are
//! read again: on a sound table none is.

use std::collections::BTreeMap;

use pgclinic_cluster::wal::Replay;
use pgclinic_cluster::{BlockSet, Cluster, Relation};
use pgclinic_format::BlockNo;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_model::plural;

use crate::check::ForkCx;
use crate::entries::against_rows::INDEX_ENTRY_WITHOUT_ROW;
use crate::entries::foreign_index;
use crate::entries::index::EntryPlace;
use crate::entries::named_blocks::{NamedBlocks, is_witness};
use crate::findings::{Draft, Findings};
use crate::gin;
use crate::relation_check::{RelationCx, draft_at};
use pgclinic_format::index_entries::for_each_entry;

/// Blocks of the table of which each is remembered with its entries; of more, entries are only
/// counted.
const BLOCKS_KEPT: usize = 100_000;

/// One index, and the entries in it that lead to lost blocks.
pub(crate) struct IndexWitness<'a> {
    pub(crate) fork: &'a ForkCx<'a>,
    pub(crate) entries: u64,
    pub(crate) highest: BlockNo,
    pub(crate) blocks: BTreeMap<BlockNo, LeadingEntries>,
    /// Lost blocks with entries that are not among these.
    is_cut_short: bool,
    has_damage: bool,
    /// Recovery changes it, or may.
    is_touched: bool,
    /// Lost blocks that only pages name which recovery changes, and which may be torn.
    pub(crate) unsettled: BlockSet,
}

/// Entries that lead to one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeadingEntries {
    pub(crate) entries: u64,
    /// A row that they name, and where its entry stands.
    pub(crate) first: (Tid, EntryPlace),
}

/// Asks every index of the table that is a witness. Those whose summary is above suspicion have no
/// such entry.
pub(crate) fn ask_indexes<'a>(
    relation: &RelationCx<'a>,
    is_suspicious: impl Fn(&NamedBlocks) -> bool,
    is_lost: impl Fn(BlockNo) -> bool,
) -> Vec<IndexWitness<'a>> {
    let mut witnesses = Vec::new();
    let indexes = relation.indexes();
    for index in indexes.into_iter().filter(|index| is_witness(index)) {
        let Some(named) = relation.neighbours.named_by(index) else {
            continue;
        };
        let mut witness = IndexWitness::new(relation, index);
        if is_suspicious(named) {
            witness.read(relation, &is_lost);
        }
        witnesses.push(witness);
    }
    witnesses
}

/// Without those whose file is another index's, which are accused instead.
pub(crate) fn without_foreign<'a>(
    relation: &RelationCx<'a>,
    mut witnesses: Vec<IndexWitness<'a>>,
    out: &mut Findings,
) -> Vec<IndexWitness<'a>> {
    witnesses.retain(|witness| {
        let leads = witness.entries > 0 && !witness.fork.replay_is_due();
        let sample = leads.then(|| foreign_index::sample(relation, witness.fork));
        let foreign = sample.filter(|sample| sample.is_foreign());
        if let Some(sample) = foreign {
            out.add(sample.accuse(witness.fork));
        }
        foreign.is_none()
    });
    witnesses
}

impl<'a> IndexWitness<'a> {
    fn new(relation: &RelationCx<'a>, fork: &'a ForkCx<'a>) -> Self {
        let damaged = relation.neighbours.damaged_in(fork);
        IndexWitness {
            fork,
            entries: 0,
            highest: 0,
            blocks: BTreeMap::new(),
            is_cut_short: false,
            has_damage: damaged.is_some_and(|blocks| blocks.runs() > 0),
            is_touched: is_touched(fork),
            unsettled: BlockSet::default(),
        }
    }

    /// Its pages but those with damage, which prove nothing.
    fn read(&mut self, relation: &RelationCx<'a>, is_lost: &impl Fn(BlockNo) -> bool) {
        let fork = self.fork;
        let Some(method) = fork.method else { return };
        let damaged = relation.neighbours.damaged_in(fork);
        let reached = (method == AccessMethod::Gin).then(|| gin::reached(&relation.of(fork)));
        let mut pages = relation.pages_of(fork);
        for number in 0..fork.blocks {
            let Ok(block) = BlockNo::try_from(number) else {
                return;
            };
            let is_out = damaged.is_some_and(|damaged| damaged.has(number))
                || reached.as_ref().is_some_and(|own| !own.contains(block));
            if relation.is_interrupted() {
                return;
            }
            if is_out {
                continue;
            }
            let Some(page) = pages.page(block) else {
                // What could not be read may hold the entries that are missed.
                self.has_damage |= pages.bytes(block).is_none();
                continue;
            };
            let is_believed = relation.believes_entries_of(fork, (page, block));
            for_each_entry(method, page, |item, tid| {
                let misses = |at| is_lost(at) && relation.believes_absence_of(relation.fork, at);
                match misses(tid.block) {
                    true if is_believed => self.add(tid, EntryPlace { block, item }),
                    true => self.unsettled.insert(tid.block),
                    false => {}
                }
            });
        }
    }

    #[cold]
    fn add(&mut self, tid: Tid, at: EntryPlace) {
        self.entries += 1;
        self.highest = self.highest.max(tid.block);
        if let Some(leading) = self.blocks.get_mut(&tid.block) {
            leading.entries += 1;
        } else if self.blocks.len() < BLOCKS_KEPT {
            let (entries, first) = (1, (tid, at));
            self.blocks
                .insert(tid.block, LeadingEntries { entries, first });
        } else {
            self.is_cut_short = true;
        }
    }

    /// Every live row of its table has its entry here, as far as pages tell.
    fn is_complete(&self) -> bool {
        let index = self.fork.relation.and_then(|own| own.index.as_ref());
        let whole = index.is_some_and(|index| !index.has_predicate);
        // Its pages that recovery writes were not asked.
        let whole = whole && !self.is_touched;
        whole && self.fork.method == Some(AccessMethod::Btree) && !self.has_damage
    }

    /// It would have an entry for each row of these blocks, and has none.
    pub(crate) fn denies_all(&self) -> bool {
        self.is_complete() && self.entries == 0
    }

    /// It would have an entry for each row of this block, and has none.
    pub(crate) fn denies(&self, block: BlockNo) -> bool {
        self.is_complete() && !self.is_cut_short && !self.blocks.contains_key(&block)
    }

    /// Entries of pages that recovery leaves alone may stand in WAL alone: those of a btree move
    /// to new pages only.
    pub(crate) fn may_hide_entries(&self) -> bool {
        let (file, blocks) = (self.fork.file_number(), self.fork.blocks);
        let adds_pages = |replay: &Replay| replay.adds_pages(file, blocks);
        let is_btree = self.fork.method == Some(AccessMethod::Btree);
        self.is_touched && (!is_btree || replay_of(self.fork).is_none_or(adds_pages))
    }

    /// How well its entries count rows: the lower, the better.
    fn rank(&self) -> u32 {
        let index = self.fork.relation.and_then(|own| own.index.as_ref());
        let unique = index.is_some_and(|index| index.unique);
        match self.fork.method {
            Some(AccessMethod::Btree) if self.is_complete() => u32::from(!unique),
            // A row has an entry for each of its keys there.
            Some(AccessMethod::Gin) => 4,
            _ if index.is_some_and(|index| index.has_predicate) => 3,
            _ => 2,
        }
    }

    /// Its entries are as many as the rows that they lead to.
    pub(crate) fn counts_rows(&self) -> bool {
        self.fork.method != Some(AccessMethod::Gin)
    }

    /// The index's name.
    pub(crate) fn name(&self) -> String {
        let own = self.fork.relation;
        own.map_or_else(|| self.fork.files.path(0), Relation::qualified_name)
    }

    /// Entries of this index, not the table, are wrong: other indexes know of no such row.
    pub(crate) fn accuse(&self, leading: &LeadingEntries, why: &str) -> Draft {
        let (tid, at) = leading.first;
        let name = self.name();
        let message = match leading.entries {
            1 => format!("an entry of {name} names row {tid}, {why}"),
            more => format!(
                "{} of {name} name rows of block {}, the first row {tid}, {why}",
                plural(more, "entry"),
                tid.block
            ),
        };
        let draft = draft_at(self.fork, &INDEX_ENTRY_WITHOUT_ROW, Some(at.block), message)
            .rows(0)
            .fact("index", name)
            .fact("entries", leading.entries)
            .fact("row", tid.to_string());
        match at.item {
            Some(item) => draft.item(item),
            None => draft,
        }
    }
}

/// What recovery will do.
fn replay_of<'a>(fork: &ForkCx<'a>) -> Option<&'a Replay> {
    fork.cluster.and_then(Cluster::replay)
}

/// Recovery is due and changes the file, or may.
fn is_touched(fork: &ForkCx<'_>) -> bool {
    let touches = |replay: &Replay| replay.touches(fork.file_number());
    fork.replay_is_due() && replay_of(fork).is_none_or(touches)
}

/// Of those with such entries the one whose entries count rows best.
pub(crate) fn best<'w, 'a>(
    witnesses: impl Iterator<Item = &'w IndexWitness<'a>>,
) -> Option<&'w IndexWitness<'a>>
where
    'a: 'w,
{
    witnesses
        .filter(|witness| witness.entries > 0)
        .min_by_key(|witness| witness.rank())
}
