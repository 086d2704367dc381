//! The bytes of a compressed long value were overwritten in its first chunk.

use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{Site, TOAST_PAGE, is_plain};
use crate::way_out;

/// Bytes of the length of the raw value, with its method, at the beginning of the first chunk.
const SIZE_BYTES: usize = 4;
/// Text read as such a length gives more than this.
const RAW_MAX: u32 = 1 << 24;

/// See the module.
pub struct ChunkOverwritten;

impl Injury for ChunkOverwritten {
    fn name(&self) -> &'static str {
        "chunk-overwritten"
    }

    fn summary(&self) -> &'static str {
        "the bytes of a compressed long value were overwritten in its first chunk"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(TOAST_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let (row, value) = site.value(seed, is_plain)?;
        let data = value.range.start.checked_add(4)?..value.range.end;
        let bytes = row.tuple.bytes().get(data.clone())?;
        let size = u32::from_le_bytes(*bytes.first_chunk()?) & 0x3FFF_FFFF;
        let chunk = site.cluster.build.toast_chunk;
        // Zeros behind the length are no compressed text, and text gives no such length.
        (chunk..RAW_MAX).contains(&size).then_some(())?;
        let wound = Wound::edit_row(site, &row, "the compressed bytes set to 0xFF", |tuple| {
            let behind = tuple.get_mut(data.start + SIZE_BYTES..data.end);
            behind.into_iter().for_each(|bytes| bytes.fill(0xFF));
        })?;
        Some(wound.must(&["toast-value-corrupt"]))
    }

    fn way_out(&self) -> &'static str {
        way_out::TOAST
    }
}
