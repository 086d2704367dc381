//! The textbook of what a server says when its files are damaged.
//!
//! Each family of messages is one file here and one line in the register. The order is the order of
//! the answers: what explains most comes first, what accompanies others comes last.

mod facts;
mod message;
mod names;
mod pasted;
mod pattern;
mod render;
mod resolved;
mod rows_at_risk;
mod status_files;

#[cfg(test)]
mod tests;

use pgclinic_format::registry;

pub use facts::Facts;
pub use message::{Match, ServerMessage};
pub use names::Names;
pub(crate) use names::shell_word;
pub use render::{FIRST_LINE, explain_rule, render, render_unknown};
pub use resolved::{Named, Resolved, resolve};
pub use rows_at_risk::RowsAtRisk;

use pasted::Pasted;

registry! {
    /// Every family of messages.
    pub static SERVER_MESSAGES: [ServerMessage] = [
        control_file::ControlFileMessage,
        relation_map::RelationMapMessage,
        zeroing_out_page::ZeroingOutPage,
        ignoring_checksum_failure::IgnoringChecksumFailure,
        invalid_page::InvalidPage,
        page_verification_failed::PageVerificationFailed,
        transaction_status::TransactionStatus,
        multixact_wraparound::MultixactWraparound,
        invalid_memory_alloc::InvalidMemoryAlloc,
        concurrent_in_progress::ConcurrentInProgress,
        toast_chunk_number::ToastChunkNumber,
        toast_chunk_size::ToastChunkSize,
        toasted_toast_chunk::ToastedToastChunk,
        compressed_data_corrupt::CompressedDataCorrupt,
        sequence_without_row::SequenceWithoutRow,
        sequence_bad_magic::SequenceBadMagic,
        short_read::ShortRead,
        read_error::ReadError,
        missing_segment::MissingSegment,
        missing_relation::MissingRelation,
        frozen_xid::FrozenXid,
        frozen_multixact::FrozenMultixact,
        btree_sibling::BtreeSibling,
        index_page_corrupted::IndexPageCorrupted,
        index_structure::IndexStructure,
        btree_parent::BtreeParent,
        btree_posting::BtreePosting,
        btree_order::BtreeOrder,
        corrupted_page_pointers::CorruptedPagePointers,
        visibility_map_wrong::VisibilityMapWrong,
        xlog_flush::XlogFlush,
        no_checkpoint::NoCheckpoint,
        incompatible_files::IncompatibleFiles,
        cache_lookup_failed::CacheLookupFailed,
        attribute_mismatch::AttributeMismatch,
        tuple_already_updated::TupleAlreadyUpdated,
        invalid_byte_sequence::InvalidByteSequence,
        value_makes_no_sense::ValueMakesNoSense,
        missing_file::MissingFile,
        server_crashed::ServerCrashed,
        zero_damaged_pages::ZeroDamagedPages,
        ignore_checksum_failure::IgnoreChecksumFailure,
    ];
}

/// The messages that stand in a text, best first. The text may come with the prefixes of logs and
/// programs, with line breaks, and with quotes and dashes that a word processor changed.
pub fn explain_message(text: &str) -> Vec<Match> {
    let text = Pasted::new(text);
    let found = SERVER_MESSAGES.iter().filter_map(|message| {
        let mut facts = message.find(&text)?;
        facts.complete(&text);
        Some(Match {
            message: *message,
            facts,
        })
    });
    found.collect()
}

/// The family of this name.
pub fn message_named(name: &str) -> Option<&'static dyn ServerMessage> {
    SERVER_MESSAGES
        .iter()
        .copied()
        .find(|message| message.name() == name)
}
