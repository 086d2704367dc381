//! Documents to bytes: findings, a page taken apart, scoreboards, as text, JSON or one HTML file.
//!
//! Nothing is computed here that the JSON document does not say: every format is made from it,
//! also later and on another machine. Names and messages come from damaged or hostile clusters:
//! each format escapes them at the last step.
#![forbid(unsafe_code)]

mod block_map;
mod chart;
mod diffed;
mod document;
mod drill_row_line;
mod figure_words;
mod format;
pub mod formats;
mod groups;
mod headline;
mod hex;
mod markdown;
mod measured;
mod neighbours;
mod page_labels;
mod privacy;
mod rows_at_risk;
mod salvaged;
mod treemap;
mod view;
mod watch_screen;
mod watched;
mod words;

pub use document::{BLIND, CHECK, DRILL, Document, Error, INSPECT, LAB, LOSS, SALVAGE};
pub use drill_row_line::drill_row_line;
pub use format::{Format, Options, RuleText};
pub use formats::nagios::plugin_line;
pub use formats::prometheus::{Exposition, watch_metrics};
pub use formats::text::{in_columns, write_manual};
pub use formats::{FORMATS, by_name};
pub use headline::{Headline, headline};
pub use neighbours::Neighbour;
pub use privacy::{RedactionKey, redacted};
pub use watch_screen::{ScreenKey, WatchScreen};
pub use words::bytes;

use pgclinic_model::document::{Place, Target};

/// The command that takes the page of a place apart; nothing where no page of a relation is meant.
pub fn inspect_command(target: &Target, place: &Place) -> Option<String> {
    view::inspect_command(target, place)
}
