//! The registers of checks: each check is one file here and one line below.
//!
//! The order is the order in which a page is looked at, and of findings of one page that follow
//! from each other: the first one is the root.

use pgclinic_format::registry;

use crate::check::{ClusterCheck, DatabaseCheck, PageCheck};
use crate::rule::Rule;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        checksum_mismatch::ChecksumMismatch,
        new_page_with_content::NewPageWithContent,
        invalid_page_flags::InvalidPageFlags,
        lower_inside_header::LowerInsideHeader,
        lower_beyond_upper::LowerBeyondUpper,
        upper_beyond_special::UpperBeyondSpecial,
        special_beyond_page::SpecialBeyondPage,
        special_misaligned::SpecialMisaligned,
        wrong_page_size::WrongPageSize,
        wrong_layout_version::WrongLayoutVersion,
        special_size_mismatch::SpecialSizeMismatch,
        lsn_beyond_wal::LsnBeyondWal,
        prune_xid_in_the_future::PruneXidInTheFuture,
        page_of_another_block::PageOfAnotherBlock,
        item_beyond_page::ItemBeyondPage,
        item_before_upper::ItemBeforeUpper,
        item_misaligned::ItemMisaligned,
        item_too_short::ItemTooShort,
        items_overlap::ItemsOverlap,
        unused_with_storage::UnusedWithStorage,
        redirect_target::RedirectTarget,
        redirect_in_index::RedirectInIndex,
        too_many_attributes::TooManyAttributes,
        hoff_mismatch::HoffMismatch,
        hoff_beyond_tuple::HoffBeyondTuple,
        unused_infomask_bits::UnusedInfomaskBits,
        multixact_marked_committed::MultixactMarkedCommitted,
        xmax_committed_and_invalid::XmaxCommittedAndInvalid,
        hot_update_leaves_page::HotUpdateLeavesPage,
        ctid_impossible::CtidImpossible,
        xmin_bounds::XminBounds,
        xmax_bounds::XmaxBounds,
        multixact_bounds::MultixactBounds,
        attribute_faults::AttributeFaults,
        compressed_value::CompressedValue,
        toast_pointer::ToastPointerCheck,
        toasted_toast_chunk::ToastedToastChunk,
        chunk_number_impossible::ChunkNumberImpossible,
        chunk_size_impossible::ChunkSizeImpossible,
        sequence_magic::SequenceMagic,
        sequence_tuple::SequenceTuple,
        sequence_value::SequenceValue,
        index_page_kind::IndexPageKind,
        btree_link_beyond_end::BtreeLinkBeyondEnd,
    ];
}

registry! {
    /// Checks of the cluster as a whole.
    pub static CLUSTER_CHECKS: [ClusterCheck] = [
        control_file_unreadable::ControlFileUnreadable,
        control_file_checksum::ControlFileChecksum,
        control_file_sense::ControlFileSense,
        relation_map_unreadable::RelationMapUnreadable,
        relation_map_checksum::RelationMapChecksum,
        relation_map_sense::RelationMapSense,
    ];
}

registry! {
    /// Checks of a database's files against its catalogs.
    pub static DATABASE_CHECKS: [DatabaseCheck] = [
        missing_database_folder::MissingDatabaseFolder,
        version_file::VersionFile,
        missing_file::MissingFile,
        missing_segment::MissingSegment,
        short_segment::ShortSegment,
        extra_segment::ExtraSegment,
        partial_block::PartialBlock,
        empty_index::EmptyIndex,
        empty_sequence::EmptySequence,
        missing_init_fork::MissingInitFork,
        map_beyond_end::MapBeyondEnd,
        pages_beyond_end::PagesBeyondEnd,
        orphan_file::OrphanFile,
    ];
}

/// Every rule of every check, in the order of the registers.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let page = PAGE_CHECKS.iter().flat_map(|check| check.rules());
    let cluster = CLUSTER_CHECKS.iter().flat_map(|check| check.rules());
    let database = DATABASE_CHECKS.iter().flat_map(|check| check.rules());
    page.chain(cluster).chain(database).copied()
}

/// The rule of this name.
pub fn rule_named(name: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.name == name)
}
