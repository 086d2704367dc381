//! Theil and Sen's slope: the median of the slopes of all pairs of points that differ in x, with an
//! interval by exact ranks.
//!
//! The interval holds for points whose errors are independent. Samples of one process's memory are
//! not; there the slope is one number a run, and runs are compared.

use super::quantile::{median, sorted};
use super::ranks::slopes_outside;
use super::{Estimate, Interval};

/// More points are thinned evenly to this many, so that pairs stay below 200,000.
pub const POINTS_MAX: usize = 600;

/// The slope alone. `None` when no two points differ in x.
pub fn slope(points: &[[f64; 2]]) -> Option<f64> {
    median(&slopes(&thinned(points)))
}

/// The slope with an interval that errs at most `alpha`. `None` where so few points cannot bear it
/// (below five for 0.05).
pub fn slope_interval(points: &[[f64; 2]], alpha: f64) -> Option<Estimate> {
    let points = thinned(points);
    let slopes = sorted(&slopes(&points));
    let outside = slopes_outside(&groups(&points), alpha)?;
    let opposite = slopes.len().checked_sub(outside + 1)?;
    Some(Estimate {
        value: median(&slopes)?,
        interval: Interval::between(*slopes.get(outside)?, *slopes.get(opposite)?),
    })
}

/// How many points stand at each x, in its order.
fn groups(points: &[[f64; 2]]) -> Vec<usize> {
    let places: Vec<f64> = points.iter().map(|[x, _]| *x).collect();
    let places = sorted(&places);
    places.chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    points.iter().step_by(step).copied().collect()
}

fn slopes(points: &[[f64; 2]]) -> Vec<f64> {
    let mut slopes = Vec::new();
    for (at, [x, y]) in points.iter().enumerate() {
        let later = points[at + 1..].iter().filter(|later| later[0] != *x);
        slopes.extend(later.map(|later| (later[1] - y) / (later[0] - x)));
    }
    slopes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wild_point_does_not_tilt_the_line() {
        let mut points: Vec<[f64; 2]> = (0..20)
            .map(|x| [f64::from(x), 80.0 * f64::from(x)])
            .collect();
        points[19][1] = -1e6;
        assert_eq!(slope(&points), Some(80.0));
        assert!(slope_interval(&points, 0.05).is_some_and(|e| e.interval.contains(80.0)));
        assert_eq!(slope(&[[1.0, 1.0], [1.0, 2.0]]), None);
    }

    #[test]
    fn many_points_are_thinned() {
        let points: Vec<[f64; 2]> = (0..100_000).map(|x| [f64::from(x), f64::from(x)]).collect();
        assert_eq!(slope(&points), Some(1.0));
    }
}
