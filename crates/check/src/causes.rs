//! The likely cause of a page whose checksum is wrong: each cause is one file here and one line
//! below, asked in this order until one is sure of itself.

use pgclinic_format::{Page, registry};
use pgclinic_model::document::Cause;
use serde_json::{Map, Value};

use crate::check::PageCx;

/// Looks for the marks that one cause leaves.
pub trait CauseOf: Sync {
    /// Its kebab-case name.
    fn name(&self) -> &'static str;
    /// Confidence from 0 to 1 and the evidence; nothing when its marks are not there.
    fn evidence(&self, page: Page<'_>, cx: &PageCx<'_>) -> Option<(f64, Map<String, Value>)>;
}

registry! {
    /// Every known cause.
    pub static CAUSES: [CauseOf] = [
        checksums_off_when_written::ChecksumsOffWhenWritten,
        written_to_wrong_place::WrittenToWrongPlace,
        bit_flip::BitFlip,
        text_overwrite::TextOverwrite,
        whole_page_zeroed::WholePageZeroed,
        torn_page::TornPage,
        zeroed_header::ZeroedHeader,
        zeroed_in_part::ZeroedInPart,
    ];
}

/// The cause with the most evidence.
pub(crate) fn likely(page: Page<'_>, cx: &PageCx<'_>) -> Option<Cause> {
    let found = CAUSES.iter().filter_map(|cause| {
        let (confidence, facts) = cause.evidence(page, cx)?;
        Some(Cause {
            name: cause.name().into(),
            confidence,
            facts,
        })
    });
    found.reduce(|best, next| {
        if next.confidence > best.confidence {
            next
        } else {
            best
        }
    })
}

/// Facts from name and value.
pub(crate) fn facts<const N: usize>(facts: [(&str, Value); N]) -> Map<String, Value> {
    facts
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
