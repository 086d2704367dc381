//! Whole logs: entries read one at a time, and gathered to one account of each cause.
//!
//! ```text
//! bytes ─► BoundedLines ─► LogEntries ─┬─ stderr: any log_line_prefix, continued lines (labels)
//!                                      ├─ csvlog (csv)
//!                                      └─ jsonlog (json)
//!                              └─► LogSummary ─► text
//! ```
//!
//! What a log holds is not trusted: lines, entries and groups have written limits, and what does
//! not fit is counted. The forms are those of `src/backend/utils/error/` (elog.c, csvlog.c,
//! jsonlog.c).

mod csv;
mod entries;
mod json;
mod labels;
mod lines;
mod summary;
mod timestamp;

#[cfg(test)]
mod tests;

pub use entries::{LogEntries, LogEntry};
pub use summary::{CauseInLog, LogSummary, explained};
