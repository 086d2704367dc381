//! One bit turned back.

use std::collections::BTreeSet;
use std::ops::Range;

use pgclinic_format::checksum::{page_checksum, single_bit_candidates};
use pgclinic_format::page::HEADER_BYTES;
use pgclinic_format::{LinePointer, Page};

use super::trial::PageTrial;
use super::{Candidate, CandidateSource};

const CHECKSUM_AT: usize = 8;
const TUPLE_HEADER_BYTES: usize = 23;

/// With checksums, the bits with which the checksum is right. Without, every bit whose turning may
/// make the structure sound.
pub(super) fn candidates(trial: &PageTrial<'_>, page: Page<'_>, damaged: &[u16]) -> Vec<Candidate> {
    let bits = if trial.has_checksums() {
        let mut bits = single_bit_candidates(page.bytes(), trial.block, page.pd_checksum());
        bits.extend(bit_of_checksum(trial, page));
        bits
    } else {
        bits_of_structure(page, damaged)
    };
    let candidates = bits.into_iter().filter_map(|bit| turned(page, bit));
    candidates.collect()
}

/// The flipped bit may be one of the stored checksum.
fn bit_of_checksum(trial: &PageTrial<'_>, page: Page<'_>) -> Option<usize> {
    let differing = page.pd_checksum() ^ page_checksum(page.bytes(), trial.block);
    let bit = usize::try_from(differing.trailing_zeros()).ok()?;
    differing.is_power_of_two().then_some(CHECKSUM_AT * 8 + bit)
}

fn turned(page: Page<'_>, bit: usize) -> Option<Candidate> {
    let mut bytes = page.bytes().to_vec();
    let byte = bytes.get_mut(bit / 8)?;
    *byte ^= 1 << (bit % 8);
    Some(Candidate {
        page: bytes,
        what: format!("bit {} of byte {} is turned back", bit % 8, bit / 8),
        source: CandidateSource::SingleBit,
    })
}

/// Header, line pointers, headers of tuples, and whatever stands in the rows that are damaged:
/// values of other rows change no finding.
fn bits_of_structure(page: Page<'_>, damaged: &[u16]) -> Vec<usize> {
    let array_end = HEADER_BYTES + usize::from(page.line_pointer_count()) * LinePointer::SIZE;
    let mut bytes: BTreeSet<usize> = (0..array_end).collect();
    for (item, pointer) in page.line_pointers() {
        let Some(Range { start, end }) = pointer.range() else {
            continue;
        };
        let end = end.min(page.len());
        let header_end = end.min(start.saturating_add(TUPLE_HEADER_BYTES));
        let wanted = if damaged.contains(&item) {
            start..end
        } else {
            start..header_end
        };
        bytes.extend(wanted);
    }
    let bits = bytes
        .into_iter()
        .flat_map(|byte| (0..8).map(move |bit| byte * 8 + bit));
    bits.collect()
}
