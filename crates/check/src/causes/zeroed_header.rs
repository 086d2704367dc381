//! The header of a page is zeros, and what stands after it is not: somebody wrote over the header
//! alone.

use pgclinic_format::Page;
use pgclinic_format::page::HEADER_BYTES;
use serde_json::{Map, Value};

use crate::causes::{CauseOf, facts};
use crate::check::PageCx;

/// The cause of a page whose header is all zeros.
pub struct ZeroedHeader;

impl CauseOf for ZeroedHeader {
    fn name(&self) -> &'static str {
        "zeroed-header"
    }

    fn evidence(&self, page: Page<'_>, _cx: &PageCx<'_>) -> Option<(f64, Map<String, Value>)> {
        let end = page.bytes().iter().position(|byte| *byte != 0)?;
        // The server fills the header of a page before anything else of it.
        (end >= HEADER_BYTES).then(|| (0.7, facts([("bytes", vec![0, HEADER_BYTES].into())])))
    }
}
