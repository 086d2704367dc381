//! All tests of this crate that need more than one module: one program, so that it is linked once.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "a test that panics has failed"
)]
mod index_clusters;

mod brin;
mod cases;
mod catalog_rows;
mod causes;
mod collation_versions;
mod counted;
mod directories;
mod files_that_change;
mod gin;
mod lost_blocks;
mod lost_status;
mod missing_wal;
mod recovery;
mod running;
mod screen;
mod state;
mod status_files;
mod trees;
mod update_chains;
mod wal;

use pgclinic_model::Severity;
use pgclinic_model::document::CheckDocument;

/// Rule and file of what no other finding explains.
fn roots(document: &CheckDocument) -> Vec<(&str, &str)> {
    let damage = document
        .findings
        .iter()
        .filter(|own| own.severity == Severity::Damage && own.caused_by.is_none());
    damage
        .map(|own| (own.rule.as_str(), own.place.path.as_str()))
        .collect()
}
