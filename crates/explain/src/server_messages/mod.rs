//! The textbook of what a server says when its files are damaged.
//!
//! Each family of messages is one Markdown file in `texts/` and one line in the register. The order
//! is the order of the answers: what explains most comes first, what accompanies others comes last.
//! What a step says of a cluster (names, commands, ranges of bytes) is in `names`, shared by all.

mod facts;
pub mod log;
mod message;
mod names;
mod pasted;
mod pattern;
mod render;
mod resolved;
mod rows_at_risk;
mod sqlstate;
mod status_files;
mod suggestions;

#[cfg(test)]
mod gallery;
#[cfg(test)]
mod sites;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

pub use facts::Facts;
pub use message::{Match, ServerMessage};
pub use names::Names;
pub use render::{FIRST_LINE, explain_rule, render, render_unknown};
use render::{place, visible};
pub use resolved::{Named, Resolved, resolve};
pub use rows_at_risk::RowsAtRisk;
pub use suggestions::closest;

use pasted::Pasted;

/// Every family of messages.
pub static SERVER_MESSAGES: LazyLock<Vec<ServerMessage>> = LazyLock::new(|| {
    PAGES
        .iter()
        .map(|page| ServerMessage::parse(page))
        .collect()
});

/// Their pages, in the order of the answers.
const PAGES: &[&str] = &[
    include_str!("texts/control-file-checksum.md"),
    include_str!("texts/relation-map-damaged.md"),
    include_str!("texts/zeroing-out-page.md"),
    include_str!("texts/ignoring-checksum-failure.md"),
    include_str!("texts/invalid-page.md"),
    include_str!("texts/page-verification-failed.md"),
    include_str!("texts/could-not-access-status-of-transaction.md"),
    include_str!("texts/multixact-apparent-wraparound.md"),
    include_str!("texts/invalid-memory-alloc-request-size.md"),
    include_str!("texts/concurrent-change-in-progress.md"),
    include_str!("texts/toast-chunk-number.md"),
    include_str!("texts/toast-chunk-size.md"),
    include_str!("texts/large-object-damaged.md"),
    include_str!("texts/found-toasted-toast-chunk.md"),
    include_str!("texts/compressed-data-is-corrupt.md"),
    include_str!("texts/sequence-returned-no-row.md"),
    include_str!("texts/sequence-bad-magic.md"),
    include_str!("texts/short-read.md"),
    include_str!("texts/input-output-error.md"),
    include_str!("texts/no-space-left.md"),
    include_str!("texts/missing-segment.md"),
    include_str!("texts/could-not-open-relation.md"),
    include_str!("texts/critical-system-index.md"),
    include_str!("texts/unexpected-data-beyond-eof.md"),
    include_str!("texts/xid-before-relfrozenxid.md"),
    include_str!("texts/multixact-before-relminmxid.md"),
    include_str!("texts/xid-out-of-range.md"),
    include_str!("texts/heap-tuple-malformed.md"),
    include_str!("texts/update-chain-broken.md"),
    include_str!("texts/btree-sibling-links.md"),
    include_str!("texts/index-page-corrupted.md"),
    include_str!("texts/index-structure-broken.md"),
    include_str!("texts/btree-parent-key.md"),
    include_str!("texts/btree-posting-list.md"),
    include_str!("texts/index-order-violated.md"),
    include_str!("texts/index-uniqueness-violated.md"),
    include_str!("texts/corrupted-page-pointers.md"),
    include_str!("texts/visibility-map-wrong.md"),
    include_str!("texts/xlog-flush-not-satisfied.md"),
    include_str!("texts/wraparound-protection.md"),
    include_str!("texts/no-valid-checkpoint-record.md"),
    include_str!("texts/incompatible-files.md"),
    include_str!("texts/lock-file-of-the-postmaster.md"),
    include_str!("texts/data-directory-refused.md"),
    include_str!("texts/wal-ends-too-early.md"),
    include_str!("texts/timelines-do-not-fit.md"),
    include_str!("texts/prepared-transaction-refused.md"),
    include_str!("texts/replication-state-refused.md"),
    include_str!("texts/recovery-settings-refused.md"),
    include_str!("texts/wal-does-not-fit-the-files.md"),
    include_str!("texts/wal-not-available.md"),
    include_str!("texts/rewind-refused.md"),
    include_str!("texts/backup-label.md"),
    include_str!("texts/backup-manifest-unreadable.md"),
    include_str!("texts/backup-differs-from-manifest.md"),
    include_str!("texts/dump-archive-damaged.md"),
    include_str!("texts/dump-finds-catalog-gap.md"),
    include_str!("texts/upgrade-refused.md"),
    include_str!("texts/cache-lookup-failed.md"),
    include_str!("texts/catalog-rows-contradict.md"),
    include_str!("texts/attribute-mismatch.md"),
    include_str!("texts/tuple-already-updated.md"),
    include_str!("texts/invalid-byte-sequence.md"),
    include_str!("texts/value-makes-no-sense.md"),
    include_str!("texts/collation-version-mismatch.md"),
    include_str!("texts/temporary-file-failed.md"),
    include_str!("texts/statistics-file-corrupted.md"),
    include_str!("texts/file-exists.md"),
    include_str!("texts/out-of-memory.md"),
    include_str!("texts/missing-file.md"),
    include_str!("texts/server-crashed.md"),
    include_str!("texts/wal-record-refused.md"),
    include_str!("texts/checksum-failures-counter.md"),
    include_str!("texts/zero-damaged-pages-setting.md"),
    include_str!("texts/ignore-checksum-failure-setting.md"),
    include_str!("texts/ignore-system-indexes-setting.md"),
    include_str!("texts/fsync-and-full-page-writes.md"),
    include_str!("texts/pg-checksums.md"),
    include_str!("texts/pg-surgery.md"),
    include_str!("texts/pg-resetwal.md"),
    include_str!("texts/amcheck.md"),
    include_str!("texts/data-corrupted.md"),
    include_str!("texts/index-corrupted.md"),
    include_str!("texts/internal-error.md"),
];

/// The messages that stand in a text, best first. The text may come with the prefixes of logs and
/// programs, with line breaks, and with quotes and dashes that a word processor changed.
pub fn explain_message(text: &str) -> Vec<Match> {
    let text = Pasted::new(text);
    let found = SERVER_MESSAGES.iter().filter_map(|message| {
        let mut facts = message.find(&text)?;
        facts.complete(&text);
        Some(Match { message, facts })
    });
    let found: Vec<Match> = found.collect();
    if found.is_empty() {
        let state = sqlstate::named_in(text.plain());
        return state
            .and_then(|state| explain_sqlstate(state, &text))
            .into_iter()
            .collect();
    }
    found
}

/// What an entry of a log means: its message decides, its other parts say more of the place.
fn explain_logged(entry: &log::LogEntry) -> Option<Match> {
    let message = Pasted::new(&entry.message);
    let known = SERVER_MESSAGES
        .iter()
        .find_map(|page| Some((page, page.find(&message)?)));
    let Some((page, mut facts)) = known else {
        return explain_sqlstate(entry.sqlstate.as_deref()?, &message);
    };
    let whole = [&entry.message, &entry.detail, &entry.context].map(String::as_str);
    facts.complete(&Pasted::new(&whole.join("\n")));
    Some(Match {
        message: page,
        facts,
    })
}

/// What a message of this SQLSTATE means whose words no page knows, with the files and blocks that
/// stand in it in any language.
fn explain_sqlstate(state: &str, text: &Pasted) -> Option<Match> {
    let message = SERVER_MESSAGES
        .iter()
        .find(|message| message.stands_for.contains(&state))?;
    let mut facts = Facts::of_any_language(text);
    facts.complete(text);
    Some(Match { message, facts })
}

/// The family of this name, or the page of this setting, tool, file or counter.
pub fn message_named(name: &str) -> Option<&'static ServerMessage> {
    let term = as_term(name);
    let named = SERVER_MESSAGES.iter().find(|message| message.name == name);
    named.or_else(|| {
        let has_term =
            |message: &&ServerMessage| message.terms.iter().any(|known| as_term(known) == term);
        SERVER_MESSAGES.iter().find(has_term)
    })
}

/// A name as it is compared: people write `REINDEX SYSTEM`, `zero-damaged-pages` and
/// `pg_surgery`.
fn as_term(name: &str) -> String {
    let of_name = |char: char| char.is_alphanumeric() || char == '.';
    let words = name.trim().split(|char: char| !of_name(char));
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    words.join("_")
}

/// Every name that [`message_named`] knows.
pub fn names() -> impl Iterator<Item = &'static str> {
    SERVER_MESSAGES
        .iter()
        .flat_map(|message| std::iter::once(message.name).chain(message.terms.iter().copied()))
}
