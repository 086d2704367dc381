//! The write-ahead log: pages, records across pages, block references, and the records that tell
//! of transactions, files and limits.
//!
//! ```text
//! segment  | page | page | …          xlog_seg_size bytes, a file of pg_wal
//! page     | header (24, first: 40) | rest of a record | record | record | rec…
//! record   | header (24) | block header … | main data header | image, data of block … | main data |
//! ```
//!
//! Records begin at multiples of 8 and go on behind the header of the next page. Truth:
//! `src/include/access/{xlog_internal,xlogrecord}.h`, `src/backend/access/transam/xlogreader.c`.

mod block;
pub mod build;
mod end;
mod event;
mod history;
mod managers;
mod noop;
mod page_header;
mod reader;
mod record;
pub mod redo;
mod rows_written;
mod transaction;

pub use block::{BlockReference, Compression, FileNumber, Image};
pub use end::{EndReason, WalEnd};
pub use event::{Event, ForkOf};
pub use history::{FIRST_TIMELINE, History, HistoryFault, Switch, parse_lsn};
pub use managers::{MANAGERS, Manager, manager_name};
pub use page_header::{PageFault, PageHeader, Shape};
pub use reader::{WalPages, WalReader};
pub use record::{HEADER_BYTES, Record, RecordFault, RecordHeader, WholeRecord};
pub use rows_written::RowsWritten;
pub use transaction::{Ended, Outcome};
