//! Entries of indexes that lead to what a cure takes away: every index of the table is read once.

use std::collections::BTreeMap;

use pgclinic_cluster::{DatabaseContext, Relation, SilentPages, each_row_named};
use pgclinic_format::index_entries::names_rows;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::types::Tid;
use pgclinic_format::{BlockNo, Oid};
use pgclinic_model::document::DanglingEntries;

/// What no index entry may lead to any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Gone {
    /// These line pointers of the block.
    Items(Vec<u16>),
    /// The whole block.
    Page,
    /// Nothing goes, but this column of the row to which these line pointers lead has another
    /// value.
    Value {
        /// `attnum`.
        column: u16,
        /// Line pointers to which entries of the row lead.
        items: Vec<u16>,
    },
}

impl Gone {
    fn holds(&self, item: u16) -> bool {
        match self {
            Gone::Items(items) | Gone::Value { items, .. } => items.contains(&item),
            Gone::Page => true,
        }
    }

    /// An index of the table has to do with it.
    fn concerns(&self, index: &Relation) -> bool {
        let Gone::Value { column, .. } = self else {
            return true;
        };
        index.index.as_ref().is_some_and(|own| {
            let is_key = own
                .keys
                .iter()
                .any(|key| u16::try_from(*key) == Ok(*column));
            is_key || own.has_expressions || own.has_predicate
        })
    }
}

/// Entries by TID of one index, of the blocks that are of interest.
struct Entries {
    schema: String,
    name: String,
    counts: Option<BTreeMap<(BlockNo, u16), u64>>,
    why: Option<String>,
    relation: Oid,
}

/// The indexes of one table, read.
pub(super) struct IndexesOfTable {
    indexes: Vec<Entries>,
}

impl IndexesOfTable {
    /// Reads every index of the table, and keeps what leads to these blocks.
    pub(super) fn read(
        database: &DatabaseContext<'_>,
        table: &Relation,
        blocks: &[BlockNo],
    ) -> Self {
        let relations = database.catalog.relations.values();
        let own = relations.filter(|relation| {
            let index = relation.index.as_ref();
            index.is_some_and(|index| index.table == table.oid && index.live)
        });
        let mut indexes: Vec<Entries> = own
            .filter(|index| index.page_method() != Some(AccessMethod::Brin))
            .map(|index| read_index(database, index, blocks))
            .collect();
        indexes.sort_by(|one, other| (&one.schema, &one.name).cmp(&(&other.schema, &other.name)));
        IndexesOfTable { indexes }
    }

    /// What leads to these line pointers of a block; indexes without such entries are left out.
    pub(super) fn dangling(
        &self,
        database: &DatabaseContext<'_>,
        block: BlockNo,
        gone: &Gone,
    ) -> Vec<DanglingEntries> {
        let concerned = self.indexes.iter().filter(|index| {
            let relation = database.catalog.relations.get(&index.relation);
            relation.is_some_and(|relation| gone.concerns(relation))
        });
        let counted = concerned.map(|index| DanglingEntries {
            schema: index.schema.clone(),
            index: index.name.clone(),
            entries: index.counts.as_ref().map(|counts| {
                let here = counts
                    .iter()
                    .filter(|((of, item), _)| *of == block && gone.holds(*item));
                here.map(|(_, count)| count).sum()
            }),
            why: index.why.clone(),
        });
        counted
            .filter(|own| own.entries != Some(0) || own.why.is_some())
            .collect()
    }
}

fn read_index(database: &DatabaseContext<'_>, index: &Relation, blocks: &[BlockNo]) -> Entries {
    let mut entries = Entries {
        schema: index.schema.clone(),
        name: index.name.clone(),
        counts: None,
        why: None,
        relation: index.oid,
    };
    let Some(method) = index.page_method().filter(|method| names_rows(*method)) else {
        entries.why = Some("its access method belongs to an extension".into());
        return entries;
    };
    let Some(files) = database.main_fork(index) else {
        entries.why = Some("its file is not there".into());
        return entries;
    };
    let mut counts: BTreeMap<(BlockNo, u16), u64> = BTreeMap::new();
    let silent = each_row_named(database.cluster, files, method, &mut |tid: Tid, _| {
        if blocks.contains(&tid.block) {
            let count = counts.entry((tid.block, tid.offset)).or_default();
            *count = count.saturating_add(1);
        }
        true
    });
    entries.why = why_more(silent);
    entries.counts = Some(counts);
    entries
}

fn why_more(silent: SilentPages) -> Option<String> {
    let pages = silent.broken.saturating_add(silent.zeroed);
    (pages > 0).then(|| format!("{pages} of its pages are damaged, and may hold more"))
}
