//! The whole page is zeros: nothing on it tells who wrote them.

use pgclinic_format::Page;
use pgclinic_model::document::Cause;
use serde_json::{Map, Value};

use crate::causes::{CauseOf, facts};
use crate::check::PageCx;

/// A write that was lost, zeros given for a block that could not be read, and `zero_damaged_pages`
/// look alike.
const CONFIDENCE: f64 = 0.5;

/// The cause of a page that holds nothing but zeros.
pub struct WholePageZeroed;

impl CauseOf for WholePageZeroed {
    fn name(&self) -> &'static str {
        "zeroed-page"
    }

    fn evidence(&self, page: Page<'_>, _cx: &PageCx<'_>) -> Option<(f64, Map<String, Value>)> {
        let zero_bytes = page.len().into();
        page.is_zeroed()
            .then(|| (CONFIDENCE, facts([("zero_bytes", zero_bytes)])))
    }
}

/// The same for a page that is known to be all zero.
pub(crate) fn cause() -> Cause {
    Cause {
        name: WholePageZeroed.name().into(),
        confidence: CONFIDENCE,
        facts: Map::new(),
    }
}
