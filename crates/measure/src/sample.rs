//! Which pages of a large relation a sample takes, and how far what they say can be trusted.
//!
//! A relation is cut into strata of as many groups of neighbouring pages as the share asks for; of
//! each stratum one group is taken, by a number that follows from the file's. Intervals come from a
//! jackknife: the groups are dealt to ten parts, every figure is computed again without each part,
//! and the spread of the ten is the spread of the figure.

use std::ops::Range;

/// Pages of a group: one read.
pub(super) const GROUP_PAGES: u64 = 8;
/// Fewer groups tell too little.
const GROUPS_MIN: u64 = 80;
/// Parts of the jackknife.
pub(super) const PARTS: usize = 10;
/// Student's t for a confidence of 95 % and nine degrees of freedom.
const T: f64 = 2.262;

/// The groups of a relation that are read, as ranges of blocks; nothing when all of it is.
pub(super) fn groups(blocks: u64, percent: f64, seed: u64) -> Option<Vec<Range<u64>>> {
    let all = blocks.div_ceil(GROUP_PAGES);
    let wanted = pgclinic_model::whole((all as f64 * percent / 100.0).ceil()).max(GROUPS_MIN);
    if wanted * 2 > all {
        return None;
    }
    let groups = (0..wanted).map(|stratum| {
        let first = stratum * all / wanted;
        let behind = (stratum + 1) * all / wanted;
        let group = first + mixed(seed ^ stratum.rotate_left(32)) % (behind - first).max(1);
        let start = group * GROUP_PAGES;
        start..(start + GROUP_PAGES).min(blocks)
    });
    Some(groups.collect())
}

/// The part of the jackknife that a group belongs to.
pub(super) fn part_of(first_block: u64) -> usize {
    let part = mixed(first_block / GROUP_PAGES) % PARTS as u64;
    usize::try_from(part).unwrap_or(0)
}

/// The finalizer of SplitMix64: equal numbers give equal ones, neighbours give far ones.
pub(super) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Where each figure lies, from the figures without each part. `unread` is the share of pages that
/// were not read.
pub(super) fn interval(whole: f64, without: &[f64], unread: f64) -> [f64; 2] {
    let count = without.len() as f64;
    let mean = without.iter().sum::<f64>() / count;
    let squares: f64 = without.iter().map(|value| (value - mean).powi(2)).sum();
    let error = (squares * (count - 1.0) / count * unread).sqrt();
    [(whole - T * error).max(0.0), whole + T * error]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_takes_one_group_of_each_stratum() {
        let groups = groups(1_000_000, 1.0, 7).expect("a sample");
        assert_eq!(groups.len(), 1250);
        assert!(groups.windows(2).all(|pair| pair[0].end <= pair[1].start));
        assert!(
            groups
                .iter()
                .all(|group| group.end <= 1_000_000 && !group.is_empty())
        );
        assert_eq!(
            super::groups(1_000, 1.0, 7),
            None,
            "80 groups of 125 are most of it"
        );
    }

    #[test]
    fn equal_parts_leave_no_doubt() {
        assert_eq!(interval(5.0, &[5.0; PARTS], 0.99), [5.0, 5.0]);
        let [low, high] = interval(
            5.0,
            &[4.9, 5.1, 4.9, 5.1, 4.9, 5.1, 4.9, 5.1, 4.9, 5.1],
            1.0,
        );
        assert!(
            (low - 4.321).abs() < 0.01 && (high - 5.679).abs() < 0.01,
            "{low} {high}"
        );
    }
}
