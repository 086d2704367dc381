//! Fields of the page header that follow from the rest of the page.
//!
//! | field | follows from | how sure |
//! |---|---|---|
//! | `pd_special`, `pd_pagesize_version` | every page of a table has the same | exact |
//! | `pd_upper` | where the lowest tuple begins | the checksum confirms it |
//! | `pd_lower` | how many line pointers lead to tuples that fill the page up to its end | the checksum confirms it |
//! | `pd_flags` | none of its own bits, where it has others | the checksum chooses |
//!
//! `pd_lsn`, `pd_prune_xid` and `pd_checksum` follow from nothing on the page.

use pgclinic_format::build::put_u16;
use pgclinic_format::page::{HEADER_BYTES, LAYOUT_VERSION, PD_VALID_FLAG_BITS};
use pgclinic_format::{LinePointer, LpFlags, Page};

use super::trial::PageTrial;
use super::{Candidate, CandidateSource};

const FLAGS_AT: usize = 10;
const LOWER_AT: usize = 12;
const UPPER_AT: usize = 14;
const SPECIAL_AT: usize = 16;
const VERSION_AT: usize = 18;
const MAXALIGN: usize = 8;

/// The header with constants put right, and what else follows.
pub(super) fn candidates(trial: &PageTrial<'_>, page: Page<'_>) -> Vec<Candidate> {
    let mut constant = page.bytes().to_vec();
    let (Ok(special), Ok(len)) = (u16::try_from(page.len()), u16::try_from(page.len())) else {
        return Vec::new();
    };
    put_u16(&mut constant, SPECIAL_AT, special);
    put_u16(&mut constant, VERSION_AT, len | u16::from(LAYOUT_VERSION));
    let mut found = vec![(constant.clone(), CandidateSource::Constants)];
    for lower in lowers(&constant) {
        for upper in uppers(&constant, lower) {
            for flags in flags(trial, page) {
                let mut candidate = constant.clone();
                put_u16(&mut candidate, FLAGS_AT, flags);
                put_u16(&mut candidate, LOWER_AT, lower);
                put_u16(&mut candidate, UPPER_AT, upper);
                found.push((candidate, CandidateSource::Header));
            }
        }
    }
    found.retain(|(candidate, _)| candidate.as_slice() != page.bytes());
    found
        .into_iter()
        .map(|(candidate, source)| Candidate {
            what: words(page, &candidate),
            page: candidate,
            source,
        })
        .collect()
}

/// `pd_lower 0 becomes 48`, for each field that changes.
fn words(page: Page<'_>, candidate: &[u8]) -> String {
    let Some(after) = Page::parse(candidate) else {
        return String::new();
    };
    let fields: [(&str, u16, u16); 5] = [
        ("pd_flags", page.pd_flags(), after.pd_flags()),
        ("pd_lower", page.pd_lower(), after.pd_lower()),
        ("pd_upper", page.pd_upper(), after.pd_upper()),
        ("pd_special", page.pd_special(), after.pd_special()),
        (
            "pd_pagesize_version",
            page.pd_pagesize_version(),
            after.pd_pagesize_version(),
        ),
    ];
    let changed = fields.iter().filter(|(_, before, after)| before != after);
    let words = changed.map(|(name, before, after)| format!("{name} {before} becomes {after}"));
    words.collect::<Vec<_>>().join(", ")
}

/// Ends of the line pointers with which tuples fill the page up to its end.
fn lowers(bytes: &[u8]) -> Vec<u16> {
    let Some(page) = Page::parse(bytes) else {
        return Vec::new();
    };
    let array = bytes.get(HEADER_BYTES..).unwrap_or_default();
    let (pointers, _) = array.as_chunks::<4>();
    let mut stored: Vec<std::ops::Range<usize>> = Vec::new();
    let mut found = Vec::new();
    let mut end = HEADER_BYTES;
    let own = usize::from(page.pd_lower());
    for raw in pointers {
        if fills(&stored, page.len()) && stored.iter().all(|item| item.start >= end) {
            found.extend(u16::try_from(end));
        }
        let pointer = LinePointer(u32::from_le_bytes(*raw));
        if !is_plausible(pointer, page.len()) {
            break;
        }
        stored.extend(pointer.range());
        end += LinePointer::SIZE;
    }
    // The present one is right where it is among them.
    if found.iter().any(|lower| usize::from(*lower) == own) {
        found.retain(|lower| usize::from(*lower) == own);
    }
    found
}

fn is_plausible(pointer: LinePointer, page_len: usize) -> bool {
    match (pointer.flags(), pointer.range()) {
        (_, Some(range)) => {
            range.end <= page_len
                && range.start > HEADER_BYTES
                && range.start.is_multiple_of(MAXALIGN)
        }
        (LpFlags::Normal, None) => false,
        (LpFlags::Unused | LpFlags::Dead, None) => pointer.lp_len() == 0 && pointer.lp_off() == 0,
        (LpFlags::Redirect, None) => pointer.lp_off() > 0 && pointer.lp_len() == 0,
    }
}

/// Tuples stand side by side from the lowest one to the end of the page.
fn fills(stored: &[std::ops::Range<usize>], page_len: usize) -> bool {
    let mut sorted = stored.to_vec();
    sorted.sort_by_key(|item| item.start);
    let mut at = sorted.first().map_or(page_len, |item| item.start);
    for item in &sorted {
        if item.start != at {
            return false;
        }
        at = item.end.next_multiple_of(MAXALIGN);
    }
    at == page_len
}

/// The begin of the lowest tuple, and the present value where that is possible.
fn uppers(bytes: &[u8], lower: u16) -> Vec<u16> {
    let mut with_lower = bytes.to_vec();
    put_u16(&mut with_lower, LOWER_AT, lower);
    let Some(page) = Page::parse(&with_lower) else {
        return Vec::new();
    };
    let lowest = page
        .line_pointers()
        .filter_map(|(_, pointer)| Some(pointer.range()?.start))
        .min();
    let lowest = u16::try_from(lowest.unwrap_or(page.len())).unwrap_or(page.pd_special());
    let own = page.pd_upper();
    let is_possible = own >= lower && own < lowest;
    let mut found = vec![lowest];
    found.extend(is_possible.then_some(own));
    found
}

fn flags(trial: &PageTrial<'_>, page: Page<'_>) -> Vec<u16> {
    let own = page.pd_flags();
    if own & !PD_VALID_FLAG_BITS == 0 {
        vec![own]
    } else if trial.has_checksums() {
        (0..=PD_VALID_FLAG_BITS).collect()
    } else {
        vec![own & PD_VALID_FLAG_BITS]
    }
}
