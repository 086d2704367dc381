//! A place that can be hurt: a page or a file, with its healthy bytes and all that is known of it.

use std::ops::Range;

use pgclinic_cluster::{Catalog, Cluster, ForkFiles, Relation, Visibility, XactStatus};
use pgclinic_format::control_file::Checkpoint;
use pgclinic_format::heap_tuple::{
    HEAP_HOT_UPDATED, HEAP_XMAX_INVALID, HEAP_XMAX_IS_MULTI, HEAP_XMIN_FROZEN, HEAP_XMIN_INVALID,
};
use pgclinic_format::index_page::AccessMethod;
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::slru::{GROUP_BYTES, PAGES_PER_SEGMENT};
use pgclinic_format::wal::{PageHeader, RecordHeader};
use pgclinic_format::{
    Attribute, Attributes, BlockNo, ColumnLayout, Fork, HeapTuple, LinePointer, LpFlags, Oid, Page,
    StatusLog, Varlena, Xid, varlena, visibility_map,
};

use crate::sites::Sites;

/// Transactions that are asked about when one of a certain fate is wanted.
const XIDS_TRIED: usize = 100_000;

/// Kinds of places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SiteKind {
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
pub(crate) const ANY_PAGE: &[SiteKind] = &[
    SiteKind::HeapPage,
    SiteKind::ToastPage,
    SiteKind::IndexPage,
    SiteKind::SequencePage,
];
/// Pages of catalogs.
pub(crate) const CATALOG_PAGE: &[SiteKind] = &[SiteKind::CatalogPage];
/// Pages of free space maps.
pub(crate) const FREE_SPACE_PAGE: &[SiteKind] = &[SiteKind::FreeSpacePage];
/// Pages of tables.
pub(crate) const HEAP_PAGE: &[SiteKind] = &[SiteKind::HeapPage];
/// Pages of tables and TOAST relations.
pub(crate) const ROW_PAGE: &[SiteKind] = &[SiteKind::HeapPage, SiteKind::ToastPage];
/// Pages of TOAST relations.
pub(crate) const TOAST_PAGE: &[SiteKind] = &[SiteKind::ToastPage];
/// Pages of indexes.
pub(crate) const INDEX_PAGE: &[SiteKind] = &[SiteKind::IndexPage];
/// Pages of sequences.
pub(crate) const SEQUENCE_PAGE: &[SiteKind] = &[SiteKind::SequencePage];
/// Files of tables.
pub(crate) const HEAP_FILE: &[SiteKind] = &[SiteKind::HeapFile];
/// Files of indexes.
pub(crate) const INDEX_FILE: &[SiteKind] = &[SiteKind::IndexFile];
/// Files of sequences.
pub(crate) const SEQUENCE_FILE: &[SiteKind] = &[SiteKind::SequenceFile];
/// Init forks.
pub(crate) const INIT_FILE: &[SiteKind] = &[SiteKind::InitFile];
/// `PG_VERSION` of databases.
pub(crate) const VERSION_FILE: &[SiteKind] = &[SiteKind::VersionFile];
/// The control file.
pub(crate) const CONTROL_FILE: &[SiteKind] = &[SiteKind::ControlFile];
/// Relation maps.
pub(crate) const RELATION_MAP: &[SiteKind] = &[SiteKind::RelationMap];
/// Files of `pg_xact`.
pub(crate) const TRANSACTION_LOG: &[SiteKind] = &[SiteKind::TransactionLog];
/// Files of `pg_multixact/offsets`.
pub(crate) const MULTIXACT_OFFSETS: &[SiteKind] = &[SiteKind::MultixactOffsets];
/// Files of `pg_multixact/members`.
pub(crate) const MULTIXACT_MEMBERS: &[SiteKind] = &[SiteKind::MultixactMembers];
/// Files of prepared transactions.
pub(crate) const PREPARED_TRANSACTION: &[SiteKind] = &[SiteKind::PreparedTransaction];
/// States of replication slots.
pub(crate) const REPLICATION_SLOT: &[SiteKind] = &[SiteKind::ReplicationSlot];
/// Progress of replication origins.
pub(crate) const REPLICATION_ORIGINS: &[SiteKind] = &[SiteKind::ReplicationOrigins];

/// The WAL page with the last checkpoint record.
pub(crate) const WAL_CHECKPOINT: &[SiteKind] = &[SiteKind::WalCheckpoint];
/// The first page of that segment.
pub(crate) const WAL_HEAD: &[SiteKind] = &[SiteKind::WalHead];
/// WAL pages from before the redo point.
pub(crate) const WAL_OLDER: &[SiteKind] = &[SiteKind::WalOlder];

/// Changes one byte.
pub(crate) fn flip(bytes: &mut [u8], at: usize) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 0x10;
    }
}

/// A place with its healthy bytes.
pub struct Site<'a> {
    pub(crate) sites: &'a Sites<'a>,
    /// The cluster.
    pub cluster: &'a Cluster,
    /// The database's catalogs.
    pub catalog: Option<&'a Catalog>,
    /// The relation.
    pub relation: Option<&'a Relation>,
    /// The fork.
    pub files: Option<&'a ForkFiles>,
    /// Kind of place.
    pub kind: SiteKind,
    /// Block through all segments; 0 for whole files.
    pub block: BlockNo,
    /// The file, relative to the data directory.
    pub path: String,
    /// Offset of the page in that file; 0 for whole files.
    pub offset: u64,
    /// The page, or the whole of a small file; empty for a relation's file.
    pub bytes: Vec<u8>,
    /// The row that a person asked for.
    pub item: Option<u16>,
}

/// A row of a site's page.
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

impl Site<'_> {
    /// Where the checkpoint record stands on a WAL page.
    pub fn checkpoint_at(&self) -> Option<usize> {
        let recovery = self.cluster.recovery()?;
        let at = recovery.start.checkpoint;
        usize::try_from(at.0 - recovery.shape.page_of(at).0).ok()
    }

    /// The WAL page goes on with a record, does not begin its segment and lies before the redo
    /// point.
    pub fn is_inner_older_page(&self) -> bool {
        let redo = self.cluster.recovery().map(|recovery| {
            let page = recovery.shape.page_of(recovery.start.redo);
            page.0 / u64::from(recovery.shape.page_bytes)
        });
        let continues = PageHeader::parse(&self.bytes).is_some_and(|header| header.continues());
        continues && self.offset != 0 && redo != Some(u64::from(self.block))
    }

    /// Where the first record of a WAL page begins, which ends on it too.
    pub fn first_record(&self) -> Option<usize> {
        wal_record_on(&self.bytes)
    }

    /// The page.
    pub fn page(&self) -> Option<Page<'_>> {
        Page::parse(&self.bytes)
    }

    /// How the page is laid out.
    pub fn method(&self) -> Option<AccessMethod> {
        self.relation?.page_method()
    }

    /// The checkpoint that bounds every number on disk; nothing in a cluster that was not shut down.
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        let control = self.cluster.control.trusted()?;
        control.is_shut_down().then_some(&control.checkpoint)
    }

    /// The bytes of this file of a status log that are in use, if the next number lies in it.
    pub fn status_bytes_in_use(&self) -> Option<usize> {
        let checkpoint = self.checkpoint()?;
        let (log, next) = match self.kind {
            SiteKind::TransactionLog => (StatusLog::Xact, checkpoint.next_xid().0),
            SiteKind::MultixactOffsets => (StatusLog::MultiOffsets, checkpoint.next_multi.0),
            SiteKind::MultixactMembers => (StatusLog::MultiMembers, checkpoint.next_multi_offset),
            _ => return None,
        };
        let page_bytes = u64::from(self.cluster.build.block_size);
        let (page, entry) = (
            log.page_of(next, page_bytes),
            log.entry_of(next, page_bytes),
        );
        (log.path(page / PAGES_PER_SEGMENT, self.cluster.layout.major) == self.path)
            .then_some(())?;
        let within = match log {
            StatusLog::Xact => entry / 4,
            StatusLog::MultiMembers => entry / 4 * GROUP_BYTES,
            _ => entry * 4,
        };
        usize::try_from((page % PAGES_PER_SEGMENT) * page_bytes + within)
            .ok()
            .filter(|bytes| *bytes > 0)
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

    /// A row that a transaction updated and left its new version on the page, by the seed.
    pub fn row_updated_in_place(&self, seed: u64) -> Option<Row<'_>> {
        self.row(seed, |row| {
            row.tuple.t_infomask2() & HEAP_HOT_UPDATED != 0
                && !row.tuple.has(HEAP_XMAX_INVALID)
                && !row.tuple.has(HEAP_XMAX_IS_MULTI)
                && !row.tuple.xmax_is_locked_only()
                && row.tuple.t_infomask() & HEAP_XMIN_FROZEN != HEAP_XMIN_INVALID
        })
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

    /// Rows of the page that were updated to another row of it, with their next versions.
    pub fn updates(&self) -> Vec<(Row<'_>, Row<'_>)> {
        let rows = self.page().map(rows_of).unwrap_or_default();
        let next = |old: &Row<'_>| {
            let ctid = old.tuple.t_ctid();
            let counts = ctid.block == self.block
                && !old.tuple.has(HEAP_XMAX_IS_MULTI)
                && !old.tuple.xmax_is_locked_only()
                && old.tuple.t_xmax().is_normal();
            let follows = |new: &&Row<'_>| {
                new.item == ctid.offset
                    && new.item != old.item
                    && new.tuple.t_xmin() == old.tuple.t_xmax()
            };
            counts.then(|| rows.iter().find(follows).copied())?
        };
        rows.iter()
            .filter(|row| self.item.is_none_or(|item| item == row.item))
            .filter_map(|old| Some((*old, next(old)?)))
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

    /// A transaction that was rolled back and is young enough for the relation.
    pub fn aborted_xid(&self) -> Option<Xid> {
        let (first, next) = (self.relation?.relfrozenxid, self.checkpoint()?.next_xid());
        (first.0.max(3)..next.0)
            .take(XIDS_TRIED)
            .map(Xid)
            .find(|xid| self.status(*xid) == Some(XactStatus::Aborted))
    }

    /// Another fork of the site's relation.
    pub(crate) fn sibling(&self, fork: Fork) -> Option<&ForkFiles> {
        self.sites.sibling(self, fork)
    }

    /// The bits of the visibility map for the page.
    pub fn map_bits(&self) -> u8 {
        let bits = || {
            let map = self.sites.sibling(self, Fork::Vm)?;
            let len = usize::try_from(self.cluster.build.block_size).ok()?;
            let per_page = visibility_map::heap_blocks_per_page(len).max(1);
            let block = u64::from(self.block);
            let page = self
                .sites
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
        self.sites.read_page(self.files?, block)
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
        self.sites.donors(self, seed, fits)
    }

    /// The last heap block that the visibility map says something about.
    pub fn last_marked(&self) -> Option<BlockNo> {
        let map = self.sites.sibling(self, Fork::Vm)?;
        let build = self.cluster.build;
        let blocks = map.blocks(build.block_size, build.segment_bytes);
        let per_page =
            visibility_map::heap_blocks_per_page(usize::try_from(build.block_size).ok()?);
        (0..blocks).rev().find_map(|block| {
            let bytes = self.sites.read_page(map, BlockNo::try_from(block).ok()?)?;
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

/// `hoff-mismatch`, if some row of the page has a `t_hoff` that contradicts its own header.
pub(crate) fn hoff_contradiction(page: &[u8]) -> Option<&'static str> {
    let rows = Page::parse(page).map(rows_of).unwrap_or_default();
    let wrong = |row: &Row<'_>| usize::from(row.tuple.t_hoff()) != row.tuple.expected_hoff();
    rows.iter().any(wrong).then_some("hoff-mismatch")
}

/// Where the first record begins that stands whole on a WAL page.
pub(crate) fn wal_record_on(page: &[u8]) -> Option<usize> {
    let header = PageHeader::parse(page)?;
    let rest = match header.continues() {
        true => u64::from(header.remaining).next_multiple_of(8),
        false => 0,
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
