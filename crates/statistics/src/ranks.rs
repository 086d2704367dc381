//! The exact distributions of three rank statistics when there is no difference, by counting.

use statrs::distribution::{ContinuousCDF, Normal};

use super::number;

/// Samples up to this size are counted; larger ones follow the normal distribution closely enough.
const COUNTED_MAX: usize = 50;

/// Chance of `rank` or fewer heads among `count` tosses.
pub(super) fn coin_tail(count: usize, rank: usize) -> f64 {
    let mut chance = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut tail = chance;
    for heads in 1..=rank.min(count) {
        chance *= number(count - heads + 1) / number(heads);
        tail += chance;
    }
    tail
}

/// How many of the lowest of all sorted candidates lie outside an interval that errs at most
/// `alpha`, for a statistic whose distribution over 0, 1, 2 … is `chances`. `None` when even none
/// outside errs more.
fn outside(chances: &[f64], alpha: f64) -> Option<usize> {
    let mut tail = 0.0;
    let mut kept = None;
    for (value, chance) in chances.iter().enumerate() {
        tail += chance;
        if tail > alpha / 2.0 {
            break;
        }
        kept = Some(value);
    }
    kept
}

/// The same for a statistic that is close to normal.
fn outside_normal(mean: f64, variance: f64, alpha: f64) -> Option<usize> {
    let quantile = standard_normal().inverse_cdf(alpha / 2.0);
    let at = mean + quantile * variance.sqrt() - 1.0;
    (at >= 0.0).then(|| super::place(at))
}

/// The normal distribution of mean 0 and variance 1.
pub(super) fn standard_normal() -> Normal {
    Normal::standard()
}

/// How many of the lowest pairwise means (Walsh averages) of `count` differences are left out:
/// Wilcoxon's signed rank.
pub(super) fn signed_rank_outside(count: usize, alpha: f64) -> Option<usize> {
    if count > COUNTED_MAX {
        let n = number(count);
        return outside_normal(
            n * (n + 1.0) / 4.0,
            n * (n + 1.0) * (2.0 * n + 1.0) / 24.0,
            alpha,
        );
    }
    let mut chances = vec![0.0; count * (count + 1) / 2 + 1];
    chances[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..chances.len()).rev() {
            let with = sum.checked_sub(rank).map_or(0.0, |rest| chances[rest]);
            chances[sum] = (chances[sum] + with) / 2.0;
        }
    }
    outside(&chances, alpha)
}

/// How many of the lowest pairwise differences of two samples are left out: Mann and Whitney.
pub(super) fn rank_sum_outside(one: usize, other: usize, alpha: f64) -> Option<usize> {
    if one == 0 || other == 0 {
        return None;
    }
    if one.max(other) > COUNTED_MAX {
        let (n, m) = (number(one), number(other));
        return outside_normal(n * m / 2.0, n * m * (n + m + 1.0) / 12.0, alpha);
    }
    outside(&rank_sum_chances(one, other), alpha)
}

/// Chances of the rank sum's values: the largest of all is from one sample or from the other.
fn rank_sum_chances(one: usize, other: usize) -> Vec<f64> {
    let len = one * other + 1;
    let mut rows: Vec<Vec<f64>> = vec![certain_zero(len); other + 1];
    for taken in 1..=one {
        let mut next = vec![certain_zero(len)];
        for rest in 1..=other {
            let from_one = number(taken) / number(taken + rest);
            let mut chances = vec![0.0; len];
            for (value, chance) in chances.iter_mut().enumerate() {
                let above = value.checked_sub(rest).map_or(0.0, |left| rows[rest][left]);
                *chance = from_one * above + (1.0 - from_one) * next[rest - 1][value];
            }
            next.push(chances);
        }
        rows = next;
    }
    rows.swap_remove(other)
}

fn certain_zero(len: usize) -> Vec<f64> {
    let mut chances = vec![0.0; len];
    chances[0] = 1.0;
    chances
}

/// How many of the lowest slopes between points are left out, where points stand in groups of equal
/// x: `groups` are their sizes in the order of x. Jonckheere and Terpstra's count of pairs out of
/// order, which is Kendall's where each group is one.
pub(super) fn slopes_outside(groups: &[usize], alpha: f64) -> Option<usize> {
    let count: usize = groups.iter().sum();
    if count > COUNTED_MAX {
        let weight = |size: usize| number(size) * (number(size) - 1.0) * (2.0 * number(size) + 5.0);
        let tied: f64 = groups.iter().map(|size| weight(*size)).sum();
        return outside_normal(
            number(pairs_between(groups)) / 2.0,
            (weight(count) - tied) / 72.0,
            alpha,
        );
    }
    // Where the points of a group stand among all before it does not depend on how those stand
    // among themselves.
    let mut chances = vec![1.0];
    let mut before = 0;
    for size in groups.iter().copied().filter(|size| *size > 0) {
        if before > 0 {
            chances = sum_of(&chances, &rank_sum_chances(size, before));
        }
        before += size;
    }
    outside(&chances, alpha)
}

/// Pairs of points that are not of one group.
fn pairs_between(groups: &[usize]) -> usize {
    let all = |count: usize| count * count.saturating_sub(1) / 2;
    let within: usize = groups.iter().map(|size| all(*size)).sum();
    all(groups.iter().sum()) - within
}

/// Chances of the sum of two independent counts.
fn sum_of(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut chances = vec![0.0; one.len() + other.len() - 1];
    for (at, chance) in one.iter().enumerate() {
        for (more, other) in other.iter().enumerate() {
            chances[at + more] += chance * other;
        }
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_tables() {
        // R: qsignrank(0.025, 6) = 1, qsignrank(0.025, 10) = 9, qsignrank(0.025, 20) = 53.
        assert_eq!(signed_rank_outside(5, 0.05), None);
        assert_eq!(signed_rank_outside(6, 0.05), Some(0));
        assert_eq!(signed_rank_outside(10, 0.05), Some(8));
        assert_eq!(signed_rank_outside(20, 0.05), Some(52));
        // R: qwilcox(0.025, 4, 4) = 1, qwilcox(0.025, 10, 10) = 24, qwilcox(0.025, 5, 8) = 7.
        assert_eq!(rank_sum_outside(3, 3, 0.05), None);
        assert_eq!(rank_sum_outside(4, 4, 0.05), Some(0));
        assert_eq!(rank_sum_outside(10, 10, 0.05), Some(23));
        assert_eq!(rank_sum_outside(5, 8, 0.05), Some(6));
        // 1/120 in order among five, 1/24 among four.
        assert_eq!(slopes_outside(&[1; 4], 0.05), None);
        assert_eq!(slopes_outside(&[1; 5], 0.05), Some(0));
        // Two groups are two samples.
        assert_eq!(slopes_outside(&[10, 10], 0.05), Some(23));
        // 1/90 in order among three pairs, and as many again each one step off.
        assert_eq!(slopes_outside(&[2, 2, 2], 0.05), Some(0));
    }

    #[test]
    fn beyond_the_counted_the_normal_distribution_agrees() {
        let counted = signed_rank_outside(COUNTED_MAX, 0.05).unwrap_or(0);
        let n = number(COUNTED_MAX);
        let mean = n * (n + 1.0) / 4.0;
        let normal = outside_normal(mean, mean * (2.0 * n + 1.0) / 6.0, 0.05).unwrap_or(0);
        assert!(counted.abs_diff(normal) <= 2, "{counted} {normal}");

        let groups = [10; 5];
        let counted = slopes_outside(&groups, 0.05).unwrap_or(0);
        let larger = slopes_outside(&[11; 5], 0.05).unwrap_or(0);
        let share =
            |outside: usize, groups: &[usize]| number(outside) / number(pairs_between(groups));
        let (counted, normal) = (share(counted, &groups), share(larger, &[11; 5]));
        assert!((counted - normal).abs() < 0.02, "{counted} {normal}");
    }
}
