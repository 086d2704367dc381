//! The page carries no checksum at all: it was written while they were off.

use pgclinic_format::Page;
use serde_json::{Map, Value};

use crate::causes::{CauseOf, facts};
use crate::check::{Checksum, PageCx};

/// The cause of a page that was written while checksums were off.
pub struct ChecksumsOffWhenWritten;

impl CauseOf for ChecksumsOffWhenWritten {
    fn name(&self) -> &'static str {
        "checksums-off-when-written"
    }

    fn evidence(&self, page: Page<'_>, cx: &PageCx<'_>) -> Option<(f64, Map<String, Value>)> {
        let unsummed = page.pd_checksum() == 0 && matches!(cx.checksum, Checksum::Wrong { .. });
        let sane = page.header_is_sane_to_the_server() && !page.is_new();
        (unsummed && sane).then(|| (0.6, facts([("stored", 0.into())])))
    }
}
