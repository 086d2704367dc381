//! Which of the two is another relation's file, where an index and its table have different keys.
//!
//! No two relations have a page alike to the byte with the position of the write-ahead log in it:
//! where a table has such a page of another one, which agrees with its own index, somebody put a
//! copy of that file in its place. The same is asked of the index. Files that were exchanged have
//! no twin, and whether tables or indexes were exchanged nothing tells.

use pgclinic_cluster::{ForkFiles, Leaves, Pieces, RelKind, Relation, each_leaf};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::{BlockNo, Lsn, Oid, Page};

use super::own_keys::{KeySamples, read_page};
use super::roots::RootPages;
use super::witnesses::Witnesses;

/// Whose file stands where another one should.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum ForeignFile {
    /// The table's is a copy of this table's.
    OfTable(String),
    /// The index's is a copy of this index's.
    OfIndex(String),
    /// Nothing tells.
    Unknown,
}

impl Witnesses<'_> {
    /// Looks for the relation whose file stands in the place of the table's or the index's.
    pub(super) fn foreign_file(&self, table: &Relation, index: Oid) -> ForeignFile {
        let index = self.catalog.relations.get(&index);
        let of_index = index.and_then(|index| self.twin(index, 1));
        let of_table = self.twin(table, 0);
        match (of_table, of_index) {
            (Some(other), None) if self.has_own_keys(other) => {
                ForeignFile::OfTable(other.qualified_name())
            }
            (None, Some(other)) => ForeignFile::OfIndex(other.qualified_name()),
            _ => ForeignFile::Unknown,
        }
    }

    /// Another relation of the kind whose file has the same pages from that block on.
    fn twin(&self, relation: &Relation, first: BlockNo) -> Option<&Relation> {
        let own = self.files.of(self.catalog, relation);
        let blocks = own.bytes() / u64::from(self.cluster.build.block_size);
        let last = BlockNo::try_from(blocks).ok()?.checked_sub(1)?;
        let wanted = [first, first.midpoint(last), last];
        let mut others = self.catalog.relations.values();
        others.find(|other| {
            let is_alike = is_table(other) == is_table(relation)
                && other.page_method() == relation.page_method()
                && other.oid != relation.oid;
            is_alike && {
                let files = self.files.of(self.catalog, other);
                wanted
                    .iter()
                    .all(|block| self.is_same_page(*block, &own, &files))
            }
        })
    }

    fn is_same_page(&self, block: BlockNo, one: &ForkFiles, other: &ForkFiles) -> bool {
        let read = |files| {
            let pieces = Pieces::of(files, self.cluster.build);
            read_page(block, self.cluster, &pieces)
        };
        let Some((own, bytes)) = read(one).zip(read(other)) else {
            return false;
        };
        let lsn = Page::parse(&own).map_or(Lsn(0), |page| page.pd_lsn());
        lsn != Lsn(0) && own == bytes
    }

    /// Some index of the table has the keys of its rows.
    fn has_own_keys(&self, table: &Relation) -> bool {
        let heap = self.files.of(self.catalog, table);
        let pages = RootPages {
            cluster: self.cluster,
            pieces: &Pieces::of(&heap, self.cluster.build),
            tells: &|_| true,
            moment: self.moment(),
        };
        let mut indexes = self.catalog.relations.values().filter(|relation| {
            let index = relation.index.as_ref();
            let is_own = index.is_some_and(|index| index.table == table.oid && index.valid);
            is_own && relation.page_method() == Some(AccessMethod::Btree)
        });
        indexes.any(|index| {
            let mut samples = KeySamples::new(index, table);
            let files = self.files.of(self.catalog, index);
            each_leaf(self.cluster, &files, Leaves::Sound, &mut |_, leaf| {
                for (_, tuple) in leaf.data() {
                    tuple.rows().for_each(|tid| samples.meet(tid, tuple));
                }
                !self.progress.is_interrupted()
            });
            samples.compare(&pages).holds()
        })
    }
}

fn is_table(relation: &Relation) -> bool {
    matches!(relation.kind, RelKind::Table | RelKind::MaterializedView)
}
