//! A single flipped bit: all candidates, and which of them the page's structure confirms.
//!
//! About one candidate turns up by chance on any page, so one is only believed when the page is
//! wrong in structure as it is and plainly right with the bit turned back.

use pgclinic_format::Page;
use pgclinic_format::checksum::single_bit_candidates;
use serde_json::{Map, Value};

use crate::causes::{CauseOf, facts};
use crate::check::{Checksum, PageCx};
use crate::fast_path::{FastPath, FastPathVerdict};

/// Candidates told.
const TOLD: usize = 8;

/// The cause of a page on which one bit is wrong.
pub struct BitFlip;

impl CauseOf for BitFlip {
    fn name(&self) -> &'static str {
        "bit-flip"
    }

    fn evidence(&self, page: Page<'_>, cx: &PageCx<'_>) -> Option<(f64, Map<String, Value>)> {
        let Checksum::Wrong { computed } = cx.checksum else {
            return None;
        };
        let stored = page.pd_checksum();
        if (stored ^ computed).is_power_of_two() && stored != 0 {
            return Some((0.7, facts([("in", "the stored checksum itself".into())])));
        }
        let candidates = single_bit_candidates(page.bytes(), cx.block, stored);
        let confirmed: Vec<usize> = confirmed(page, cx, &candidates);
        let confidence = match (confirmed.len(), candidates.len()) {
            (1, _) => 0.95,
            (2.., _) => 0.5,
            (0, 1..) => 0.25,
            (0, 0) => return None,
        };
        let told = |bits: &[usize]| {
            Value::from(
                bits.iter()
                    .take(TOLD)
                    .map(|bit| format!("byte {} bit {}", bit / 8, bit % 8))
                    .collect::<Vec<_>>(),
            )
        };
        let evidence = [
            ("candidates", told(&candidates)),
            ("candidates_total", candidates.len().into()),
            ("confirmed_by_structure", told(&confirmed)),
        ];
        Some((confidence, facts(evidence)))
    }
}

fn confirmed(page: Page<'_>, cx: &PageCx<'_>, candidates: &[usize]) -> Vec<usize> {
    let screen = FastPath::new(cx.fork);
    let before = screen.glance(page, cx.block);
    if before == FastPathVerdict::Plain {
        return Vec::new();
    }
    let mut bytes = page.bytes().to_vec();
    let mut proven = Vec::new();
    for bit in candidates {
        let Some(byte) = bytes.get_mut(bit / 8) else {
            continue;
        };
        *byte ^= 1 << (bit % 8);
        if Page::parse(&bytes).is_some_and(|mended| screen.glance(mended, cx.block) > before) {
            proven.push(*bit);
        }
        if let Some(byte) = bytes.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }
    proven
}
