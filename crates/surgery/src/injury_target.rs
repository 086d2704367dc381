//! A place that can be hurt: a page or a file, with its healthy bytes and all that is known of it.

use std::ops::Range;

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Relation, Visibility, XactStatus};
use pgclinic_format::control_file::Checkpoint;
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::wal::{PageHeader, RecordHeader};
use pgclinic_format::{
    Attribute, Attributes, BlockNo, ColumnLayout, Fork, HeapTuple, LinePointer, LpFlags, Oid, Page,
    Varlena, Xid, varlena, visibility_map,
};

use crate::injury_targets::InjuryTargets;

/// Kinds of places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum InjuryTargetKind {
    /// A page of a table or materialised view.
    HeapPage,
    /// A page of a TOAST relation.
    ToastPage,
    /// A page of an index.
    IndexPage,
    /// The page of a sequence.
    SequencePage,
    /// A page of a system catalog that is not shared.
    CatalogPage,
    /// A page of a table's free space map.
    FreeSpacePage,
    /// A table's main fork as a file.
    HeapFile,
    /// An index's main fork as a file.
    IndexFile,
    /// A sequence's main fork as a file.
    SequenceFile,
    /// The init fork of an unlogged relation.
    InitFile,
    /// `PG_VERSION` of a database.
    VersionFile,
    /// `global/pg_control`.
    ControlFile,
    /// `pg_filenode.map`.
    RelationMap,
    /// A file of `pg_xact`.
    TransactionLog,
    /// A file of `pg_multixact/offsets`.
    MultixactOffsets,
    /// A file of `pg_multixact/members`.
    MultixactMembers,
    /// The file of a prepared transaction.
    PreparedTransaction,
    /// The state of a replication slot.
    ReplicationSlot,
    /// `pg_logical/replorigin_checkpoint`.
    ReplicationOrigins,
    /// The WAL page with the last checkpoint record.
    WalCheckpoint,
    /// The first page of that segment.
    WalHead,
    /// A WAL page with a whole record from before the redo point.
    WalOlder,
}

/// Every kind of page.
pub(crate) const ANY_PAGE: &[InjuryTargetKind] = &[
    InjuryTargetKind::HeapPage,
    InjuryTargetKind::ToastPage,
    InjuryTargetKind::IndexPage,
    InjuryTargetKind::SequencePage,
];
/// Pages of catalogs.
pub(crate) const CATALOG_PAGE: &[InjuryTargetKind] = &[InjuryTargetKind::CatalogPage];
/// Pages of free space maps.
pub(crate) const FREE_SPACE_PAGE: &[InjuryTargetKind] = &[InjuryTargetKind::FreeSpacePage];
/// Pages of tables.
pub(crate) const HEAP_PAGE: &[InjuryTargetKind] = &[InjuryTargetKind::HeapPage];
/// Pages of tables and TOAST relations.
pub(crate) const ROW_PAGE: &[InjuryTargetKind] =
    &[InjuryTargetKind::HeapPage, InjuryTargetKind::ToastPage];
/// Pages of TOAST relations.
pub(crate) const TOAST_PAGE: &[InjuryTargetKind] = &[InjuryTargetKind::ToastPage];
/// Pages of indexes.
pub(crate) const INDEX_PAGE: &[InjuryTargetKind] = &[InjuryTargetKind::IndexPage];
/// Pages of sequences.
pub(crate) const SEQUENCE_PAGE: &[InjuryTargetKind] = &[InjuryTargetKind::SequencePage];
/// Files of tables.
pub(crate) const HEAP_FILE: &[InjuryTargetKind] = &[InjuryTargetKind::HeapFile];
/// Files of indexes.
pub(crate) const INDEX_FILE: &[InjuryTargetKind] = &[InjuryTargetKind::IndexFile];
/// Files of sequences.
pub(crate) const SEQUENCE_FILE: &[InjuryTargetKind] = &[InjuryTargetKind::SequenceFile];
/// Init forks.
pub(crate) const INIT_FILE: &[InjuryTargetKind] = &[InjuryTargetKind::InitFile];
/// `PG_VERSION` of databases.
pub(crate) const VERSION_FILE: &[InjuryTargetKind] = &[InjuryTargetKind::VersionFile];
/// The control file.
pub(crate) const CONTROL_FILE: &[InjuryTargetKind] = &[InjuryTargetKind::ControlFile];
/// Relation maps.
pub(crate) const RELATION_MAP: &[InjuryTargetKind] = &[InjuryTargetKind::RelationMap];
/// Files of `pg_xact`.
pub(crate) const TRANSACTION_LOG: &[InjuryTargetKind] = &[InjuryTargetKind::TransactionLog];
/// Files of `pg_multixact/offsets`.
pub(crate) const MULTIXACT_OFFSETS: &[InjuryTargetKind] = &[InjuryTargetKind::MultixactOffsets];
/// Files of `pg_multixact/members`.
pub(crate) const MULTIXACT_MEMBERS: &[InjuryTargetKind] = &[InjuryTargetKind::MultixactMembers];
/// Files of prepared transactions.
pub(crate) const PREPARED_TRANSACTION: &[InjuryTargetKind] =
    &[InjuryTargetKind::PreparedTransaction];
/// States of replication slots.
pub(crate) const REPLICATION_SLOT: &[InjuryTargetKind] = &[InjuryTargetKind::ReplicationSlot];
/// Progress of replication origins.
pub(crate) const REPLICATION_ORIGINS: &[InjuryTargetKind] = &[InjuryTargetKind::ReplicationOrigins];

/// The WAL page with the last checkpoint record.
pub(crate) const WAL_CHECKPOINT: &[InjuryTargetKind] = &[InjuryTargetKind::WalCheckpoint];
/// The first page of that segment.
pub(crate) const WAL_HEAD: &[InjuryTargetKind] = &[InjuryTargetKind::WalHead];
/// WAL pages from before the redo point.
pub(crate) const WAL_OLDER: &[InjuryTargetKind] = &[InjuryTargetKind::WalOlder];

/// A place with its healthy bytes.
pub struct InjuryTarget<'a> {
    pub(crate) targets: &'a InjuryTargets<'a>,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The database's catalogs.
    pub catalog: Option<&'a Catalog>,
    /// The relation.
    pub relation: Option<&'a Relation>,
    /// The fork.
    pub files: Option<&'a ForkFiles>,
    /// Kind of place.
    pub kind: InjuryTargetKind,
    /// Block through all segments; 0 for whole files.
    pub block: BlockNo,
    /// The file, relative to the data directory.
    pub path: String,
    /// Offset of the page in that file; 0 for whole files.
    pub offset: u64,
    /// The page, or the whole of a small file; empty for a relation's file.
    pub bytes: Vec<u8>,
    /// The row that a user asked for.
    pub item: Option<u16>,
}

/// A row of a target's page.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Line pointer number.
    pub item: u16,
    /// Offset of the tuple on the page.
    pub at: usize,
    /// The line pointer.
    pub pointer: LinePointer,
    /// The tuple.
    pub tuple: HeapTuple<'a>,
}

/// A value of a row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// `attnum`.
    pub attribute: u16,
    /// The column.
    pub column: ColumnLayout,
    /// Its bytes in the tuple.
    pub range: Range<usize>,
}

impl InjuryTarget<'_> {
    /// The page.
    pub fn page(&self) -> Option<Page<'_>> {
        Page::parse(&self.bytes)
    }

    /// How the page is laid out.
    pub fn method(&self) -> Option<AccessMethod> {
        self.relation?.page_method()
    }

    /// The page, if it belongs to an index of this access method.
    pub fn page_of(&self, method: AccessMethod) -> Option<Page<'_>> {
        self.page().filter(|_| self.method() == Some(method))
    }

    /// The operator class of the index's first column.
    pub fn first_class(&self) -> Option<&str> {
        let index = self.relation?.index.as_ref()?;
        Some(index.classes.first()?.name.as_str())
    }

    /// Where the special space of the page begins.
    pub fn special_at(&self) -> Option<usize> {
        Some(usize::from(self.page()?.pd_special()))
    }

    /// Offset of an item on the page.
    pub fn item_at(&self, item: u16) -> Option<usize> {
        Some(usize::from(self.page()?.line_pointer(item)?.lp_off()))
    }

    /// A block well past the end of the fork.
    pub fn block_beyond_end(&self) -> Option<BlockNo> {
        BlockNo::try_from(self.blocks()).ok()?.checked_add(1000)
    }

    /// The fork, where it is a single file.
    pub fn single_file(&self) -> Option<&ForkFiles> {
        self.files.filter(|files| files.segments.len() == 1)
    }

    /// A transaction that has not begun.
    pub fn future_xid(&self) -> Option<u32> {
        self.checkpoint()?.next_xid().0.checked_add(1000)
    }

    /// The checkpoint that bounds every number on disk; nothing in a cluster that was not shut
    /// down.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        let control = self.cluster.control.trusted()?;
        control.is_shut_down().then_some(&control.checkpoint)
    }

    /// Data checksums are known to be on.
    pub fn has_checksums(&self) -> bool {
        self.cluster.checksums() == Some(true)
    }

    /// Blocks in the fork.
    pub fn blocks(&self) -> u64 {
        let build = self.cluster.build;
        self.files.map_or(0, |files| {
            files.blocks(build.block_size, build.segment_bytes)
        })
    }

    /// Offset of line pointer `item` on the page.
    pub fn pointer_at(item: u16) -> usize {
        HEADER_BYTES + (usize::from(item).saturating_sub(1)) * LinePointer::SIZE
    }

    /// Rows of a heap page that have storage and whose attributes can be walked.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let columns = self.columns();
        let visibility = Visibility::new(self.cluster);
        self.page()
            .map(|page| rows_of(page))
            .unwrap_or_default()
            .into_iter()
            .filter(|row| self.item.is_none_or(|item| item == row.item))
            .filter(|row| visibility.was_inserted(row.tuple) == Some(true))
            .filter(|row| Attributes::new(row.tuple, columns).all(|attribute| attribute.is_ok()))
            .collect()
    }

    /// One of the rows that `fits`, by the seed.
    pub fn row(&self, seed: u64, fits: impl Fn(&Row<'_>) -> bool) -> Option<Row<'_>> {
        let fitting: Vec<Row<'_>> = self.rows().into_iter().filter(fits).collect();
        choose(&fitting, seed).copied()
    }

    /// Any row, by the seed.
    pub fn any_row(&self, seed: u64) -> Option<Row<'_>> {
        self.row(seed, |_| true)
    }

    /// One value that `fits`, and its row, by the seed.
    pub fn value(
        &self,
        seed: u64,
        fits: impl Fn(&Row<'_>, &Value) -> bool,
    ) -> Option<(Row<'_>, Value)> {
        let mut fitting = Vec::new();
        for row in self.rows() {
            let values = self.values(row.tuple).into_iter();
            fitting.extend(
                values
                    .filter(|value| fits(&row, value))
                    .map(|value| (row, value)),
            );
        }
        choose(&fitting, seed).cloned()
    }

    fn columns(&self) -> &[ColumnLayout] {
        self.relation
            .and_then(|relation| relation.layouts.as_deref())
            .unwrap_or_default()
    }

    /// The values that stand in a tuple.
    pub fn values(&self, tuple: HeapTuple<'_>) -> Vec<Value> {
        let columns = self.columns();
        let attributes = Attributes::new(tuple, columns).zip(columns).zip(1..);
        attributes
            .filter_map(|((attribute, column), number)| match attribute {
                Ok(Attribute::Value(range)) => Some(Value {
                    attribute: number,
                    column: *column,
                    range,
                }),
                _ => None,
            })
            .collect()
    }

    /// Line pointer numbers that redirects lead to.
    pub fn redirect_targets(&self) -> Vec<u16> {
        let pointers = self.page().into_iter().flat_map(Page::line_pointers);
        pointers
            .filter(|(_, pointer)| pointer.flags() == LpFlags::Redirect)
            .map(|(_, pointer)| pointer.lp_off())
            .collect()
    }

    /// What the commit log says, within the bounds in which it says anything.
    pub fn status(&self, xid: Xid) -> Option<XactStatus> {
        let checkpoint = self.checkpoint()?;
        let bounded = xid.is_normal()
            && xid.precedes(checkpoint.next_xid())
            && !xid.precedes(checkpoint.oldest_xid);
        bounded.then(|| self.cluster.transactions.status(xid))?
    }

    /// Another fork of the target's relation.
    pub(crate) fn sibling(&self, fork: Fork) -> Option<&ForkFiles> {
        self.targets.sibling(self, fork)
    }

    /// The bits of the visibility map for the page.
    pub fn map_bits(&self) -> u8 {
        let bits = || {
            let map = self.targets.sibling(self, Fork::Vm)?;
            let len = usize::try_from(self.cluster.build.block_size).ok()?;
            let per_page = visibility_map::heap_blocks_per_page(len).max(1);
            let block = u64::from(self.block);
            let page = self
                .targets
                .read_page(map, BlockNo::try_from(block / per_page).ok()?)?;
            visibility_map::bits(Page::parse(&page)?, block % per_page)
        };
        bits().unwrap_or(0)
    }

    /// The type of a column.
    pub fn type_oid(&self, attribute: u16) -> Option<Oid> {
        let columns = self.relation?.columns.as_ref()?;
        let column = columns.iter().find(|column| column.attnum == attribute)?;
        (!column.dropped).then_some(column.type_oid)
    }

    /// The healthy bytes of another block of this fork.
    pub fn other_block(&self, block: BlockNo) -> Option<Vec<u8>> {
        self.targets.read_page(self.files?, block)
    }

    /// The file of another block of this fork, and its offset there.
    pub fn place_of_block(&self, block: BlockNo) -> Option<(String, u64)> {
        let build = self.cluster.build;
        let per_segment = build.segment_blocks();
        let segment = u32::try_from(u64::from(block).checked_div(per_segment)?).ok()?;
        let within = u64::from(block).checked_rem(per_segment)?;
        let offset = within.checked_mul(u64::from(build.block_size))?;
        Some((self.files?.path(segment), offset))
    }

    /// Blocks of this fork but this one, in an order by the seed, 64 at most.
    pub fn other_blocks(&self, seed: u64) -> Vec<BlockNo> {
        let mut random = fastrand::Rng::with_seed(seed);
        let blocks = u32::try_from(self.blocks()).unwrap_or(u32::MAX);
        let mut others: Vec<BlockNo> = match blocks {
            0..=4096 => (0..blocks).collect(),
            _ => (0..4096).map(|_| random.u32(0..blocks)).collect(),
        };
        others.retain(|block| *block != self.block);
        random.shuffle(&mut others);
        others.truncate(64);
        others
    }

    /// Pages of other relations of the database, with the relation, in an order by the seed.
    pub fn donors(
        &self,
        seed: u64,
        fits: impl Fn(&Relation) -> bool,
    ) -> Vec<(&Relation, BlockNo, Vec<u8>)> {
        self.targets.donors(self, seed, fits)
    }

    /// The last heap block that the visibility map says something about.
    pub fn last_marked(&self) -> Option<BlockNo> {
        let map = self.targets.sibling(self, Fork::Vm)?;
        let build = self.cluster.build;
        let blocks = map.blocks(build.block_size, build.segment_bytes);
        let per_page =
            visibility_map::heap_blocks_per_page(usize::try_from(build.block_size).ok()?);
        (0..blocks).rev().find_map(|block| {
            let bytes = self
                .targets
                .read_page(map, BlockNo::try_from(block).ok()?)?;
            visibility_map::last_marked(Page::parse(&bytes)?, block * per_page)
        })
    }
}

fn varlena_of<'a>(row: &Row<'a>, value: &Value) -> Option<Varlena<'a>> {
    let bytes = row.tuple.bytes().get(value.range.clone())?;
    (value.column.attlen == -1).then_some(())?;
    Some(varlena::parse(bytes).ok()?.0)
}

/// The value stands in TOAST.
pub(crate) fn is_external(row: &Row<'_>, value: &Value) -> bool {
    matches!(varlena_of(row, value), Some(Varlena::External(_)))
}

/// The value is compressed in its row.
pub(crate) fn is_compressed(row: &Row<'_>, value: &Value) -> bool {
    matches!(varlena_of(row, value), Some(Varlena::Compressed(_)))
}

/// The value stands in its row as it is, with a header of four bytes and some payload.
pub(crate) fn is_plain(row: &Row<'_>, value: &Value) -> bool {
    matches!(varlena_of(row, value), Some(Varlena::Plain(payload)) if payload.len() >= 32)
}

/// Rows of a heap page that have storage.
pub(crate) fn rows_of(page: Page<'_>) -> Vec<Row<'_>> {
    page.line_pointers()
        .filter(|(_, pointer)| {
            pointer.flags() == LpFlags::Normal && pointer.lp_off().is_multiple_of(8)
        })
        .filter_map(|(item, pointer)| {
            let tuple = HeapTuple::parse(page.item(pointer)?)?;
            Some(Row {
                item,
                at: usize::from(pointer.lp_off()),
                pointer,
                tuple,
            })
        })
        .collect()
}

/// Where the first record begins that stands whole on a WAL page.
pub(crate) fn wal_record_on(page: &[u8]) -> Option<usize> {
    let header = PageHeader::parse(page)?;
    let rest = if header.continues() {
        u64::from(header.remaining).next_multiple_of(8)
    } else {
        0
    };
    let at = usize::try_from(header.bytes() + rest).ok()?;
    let record = RecordHeader::parse(page.get(at..)?)?;
    let len = usize::try_from(record.total_bytes).ok()?;
    (len > 32 && at.checked_add(len)? <= page.len()).then_some(at)
}

/// One of these, by the seed.
pub(crate) fn choose<T>(from: &[T], seed: u64) -> Option<&T> {
    let count = u64::try_from(from.len()).ok().filter(|count| *count > 0)?;
    let index = fastrand::Rng::with_seed(seed).u64(0..count);
    from.get(usize::try_from(index).ok()?)
}
