//! The registers of checks: each check is one file here and one line below.
//!
//! The order is the order in which a page is looked at, and of findings of one page that follow
//! from each other: the first one is the root.

use pgclinic_format::registry;
use pgclinic_model::Rule;
use pgclinic_model::document::Level;

use crate::check::{ClusterCheck, DatabaseCheck, PageCheck};
use crate::relation_check::RelationCheck;

pub mod hash_rules;

registry! {
    /// Checks of one page.
    pub static PAGE_CHECKS: [PageCheck] = [
        checksum_mismatch::ChecksumMismatch,
        new_page_with_content::NewPageWithContent,
        first_page_zeroed::FirstPageZeroed,
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
        hot_flags_alone::HotFlagsAlone,
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
        multixact_flags::MultixactFlags,
        moved_by_unknown_vacuum::MovedByUnknownVacuum,
        hint_bits::HintBits,
        update_chain_links::UpdateChainLinks,
        update_chain_fates::UpdateChainFates,
        attribute_faults::AttributeFaults,
        compressed_value::CompressedValue,
        toast_pointer::ToastPointerCheck,
        page_not_all_visible::PageNotAllVisible,
        visibility_map_wrong::VisibilityMapWrong,
        value_does_not_decode::ValueDoesNotDecode,
        toasted_toast_chunk::ToastedToastChunk,
        chunk_number_impossible::ChunkNumberImpossible,
        chunk_size_impossible::ChunkSizeImpossible,
        row_shape::RowShape,
        sequence_magic::SequenceMagic,
        sequence_tuple::SequenceTuple,
        sequence_value::SequenceValue,
        index_page_kind::IndexPageKind,
        btree_link_beyond_end::BtreeLinkBeyondEnd,
        btree_page_flags::BtreePageFlags,
        btree_tuple_shape::BtreeTupleShape,
        btree_item_order::BtreeItemOrder,
        btree_shared_entries_wrong::BtreeSharedEntriesWrong,
        gin_page_flags::GinPageFlags,
        gin_meta_page::GinMetaPage,
        gin_link_beyond_end::GinLinkBeyondEnd,
        gin_entry::GinEntry,
        gin_posting_page::GinPostingPage,
        gin_pending_page::GinPendingPage,
        brin_meta_page::BrinMetaPage,
        gist_page_flags::GistPageFlags,
        gist_link_beyond_end::GistLinkBeyondEnd,
        gist_tuple::GistTuple,
        gist_nsn::GistNsn,
        spgist_page_flags::SpgistPageFlags,
        spgist_tuple_counts::SpgistTupleCounts,
        spgist_tuple::SpgistTuple,
        spgist_leaf_chain::SpgistLeafChain,
        spgist_link::SpgistLink,
        free_space_map_tree::FreeSpaceMapTree,
        hash_meta_sense::HashMetaSense,
        hash_entries::HashEntries,
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
        database_lost::DatabaseLost,
        status_file_missing::StatusFileMissing,
        status_file_cut::StatusFileCut,
        status_file_zeroed::StatusFileZeroed,
        multixact_offset_impossible::MultixactOffsetImpossible,
        multixact_member_impossible::MultixactMemberImpossible,
        prepared_transaction_file::PreparedTransactionFile,
        replication_slot_file::ReplicationSlotFile,
        replication_origin_file::ReplicationOriginFile,
        wal_segment_missing::WalSegmentMissing,
        wal_page_header::WalPageHeader,
        wal_record_checksum::WalRecordChecksum,
        wal_record_broken::WalRecordBroken,
        checkpoint_record_missing::CheckpointRecordMissing,
        timeline_history::TimelineHistory,
        backup_label::BackupLabelCheck,
        backup_manifest::BackupManifestCheck,
        backup_file_missing::BackupFileMissing,
        backup_file_changed::BackupFileChanged,
        backup_file_extra::BackupFileExtra,
        older_wal::OlderWal,
    ];
}

registry! {
    /// Checks of a database's files against its catalogs.
    pub static DATABASE_CHECKS: [DatabaseCheck] = [
        missing_database_folder::MissingDatabaseFolder,
        version_file::VersionFile,
        empty_catalog::EmptyCatalog,
        relation_lost::RelationLost,
        missing_file::MissingFile,
        missing_segment::MissingSegment,
        short_segment::ShortSegment,
        extra_segment::ExtraSegment,
        partial_block::PartialBlock,
        empty_index::EmptyIndex,
        empty_sequence::EmptySequence,
        missing_init_fork::MissingInitFork,
        init_fork_content::InitForkContent,
        map_beyond_end::MapBeyondEnd,
        pages_beyond_end::PagesBeyondEnd,
        orphan_file::OrphanFile,
        collation_version_changed::CollationVersionChanged,
        catalog_attributes_missing::CatalogAttributesMissing,
        catalog_key_doubled::CatalogKeyDoubled,
        catalog_reference_missing::CatalogReferenceMissing,
    ];
}

registry! {
    /// Checks of one relation as a whole.
    pub static RELATION_CHECKS: [RelationCheck] = [
        file_truncated::FileTruncated,
        zeroed_page::ZeroedPage,
        entries_against_rows::EntriesAgainstRows,
        toast_values::ToastValues,
        btree_tree::BtreeTree,
        btree_downlinks::BtreeDownlinks,
        unique_key_doubled::UniqueKeyDoubled,
        gin_pending_list::GinPendingList,
        gin_tree::GinTree,
        brin_map::BrinMap,
        brin_cover::BrinCover,
        btree_not_in_collation_order::BtreeNotInCollationOrder,
        gist_links::GistLinks,
        spgist_links::SpgistLinks,
        sequence_beyond_bounds::SequenceBeyondBounds,
        hash_chains::HashChains,
        hash_code_wrong::HashCodeWrong,
    ];
}

/// Every rule of every check, in the order of the registers.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    let page = PAGE_CHECKS.iter().flat_map(|check| check.rules());
    let cluster = CLUSTER_CHECKS.iter().flat_map(|check| check.rules());
    let database = DATABASE_CHECKS.iter().flat_map(|check| check.rules());
    let relation = RELATION_CHECKS.iter().flat_map(|check| check.rules());
    page.chain(cluster).chain(database).chain(relation).copied()
}

/// The rule is one of single pages.
pub fn is_of_a_page(rule: &str) -> bool {
    let mut rules = PAGE_CHECKS.iter().flat_map(|check| check.rules());
    rules.any(|own| own.name == rule)
}

/// The rule is one of comparisons: what it finds may stand on another page than the damage.
pub fn is_comparison(rule: &str) -> bool {
    let mut rules = RELATION_CHECKS.iter().flat_map(|check| check.rules());
    rules.any(|own| own.name == rule)
}

/// The lowest level at which every check that can tell the rule runs.
pub fn level_of(rule: &str) -> Option<Level> {
    let page = PAGE_CHECKS
        .iter()
        .map(|check| (check.rules(), check.wants().level));
    let cluster = CLUSTER_CHECKS.iter().flat_map(|check| {
        let level = check.level();
        [(check.rules(), level), (check.borrows(), level)]
    });
    let database = DATABASE_CHECKS
        .iter()
        .map(|check| (check.rules(), check.level()));
    let relation = RELATION_CHECKS
        .iter()
        .map(|check| (check.rules(), check.level()));
    let all = page.chain(cluster).chain(database).chain(relation);
    all.filter(|(rules, _)| rules.iter().any(|own| own.name == rule))
        .map(|(_, level)| level)
        .max()
}

/// The rule of this name.
pub fn rule_named(name: &str) -> Option<&'static Rule> {
    rules().find(|rule| rule.name == name)
}

#[cfg(test)]
mod tests;
