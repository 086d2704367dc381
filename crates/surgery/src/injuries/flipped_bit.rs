//! A single bit of a page is flipped.

use crate::followers;
use crate::injury::{Injury, SiteWants, Wound};
use crate::site::{HEAP_PAGE, Site};
use crate::way_out;

/// See the module.
pub struct FlippedBit;

impl Injury for FlippedBit {
    fn name(&self) -> &'static str {
        "flipped-bit"
    }

    fn summary(&self) -> &'static str {
        "a single bit of a page is flipped"
    }

    fn wants(&self) -> SiteWants {
        SiteWants::page(HEAP_PAGE)
    }

    fn wound(&self, site: &Site<'_>, seed: u64) -> Option<Wound> {
        let mut random = fastrand::Rng::with_seed(seed);
        let (at, bit) = (random.usize(24..site.bytes.len()), random.u8(0..8));
        let mut after = site.bytes.clone();
        *after.get_mut(at)? ^= 1 << bit;
        let wound = Wound::bytes(site, &after, format!("bit {bit} of byte {at} flipped"))?;
        let wound = wound.may(&[
            followers::LINE_POINTERS,
            followers::TUPLE_HEADER,
            followers::ATTRIBUTES,
        ]);
        Some(wound.blind("one bit may stand in free space or in a value"))
    }

    fn way_out(&self) -> &'static str {
        way_out::PAGE_LOST
    }
}
