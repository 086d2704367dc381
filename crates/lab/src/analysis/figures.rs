//! What is drawn: one metric along one axis, the other axes held still.

use pgclinic_model::document::{
    AxisSummary, Better, Dot, EffectLine, EffectPoint, MeasuredLine, MeasuredPoint, MetricFigure,
    MetricSummary, NoiseFloor, Slope,
};

use super::{Design, Study, noise};
use crate::cell::{self, Axis, Point};
use crate::decision::times_better;
use crate::published;
use crate::statistics::noise::Noise;
use crate::statistics::quantile::{median, median_interval};
use crate::statistics::spread::{Pooled, pooled};
use crate::statistics::{Interval, bootstrap, hodges_lehmann, paired, student, theil_sen};

/// A page with more figures of one metric is no longer read.
const HELD_MAX: usize = 12;

/// Intervals of points err this often, each for itself; decisions are made by cards.
const ALPHA: f64 = 0.05;

/// Names of latencies' quantiles begin so.
const QUANTILE: &str = "latency_p";

/// With fewer runs a bootstrap of a median errs more often than [`ALPHA`] says.
const RUNS_MIN: usize = 10;

/// Draws of a bootstrap.
const RESAMPLES: usize = 2_000;

/// Same runs, same interval.
const SEED: u64 = 1;

/// Two places always lie on a line.
const PLACES_MIN: usize = 3;

/// No median lies farther from a line than this share of its rise.
const OFF_MAX: f64 = 0.1;

/// The metric as the document says it.
pub(super) fn metric(metric: &cell::Metric) -> MetricSummary {
    MetricSummary {
        name: metric.name.clone(),
        words: metric.words.clone(),
        unit: metric.unit.clone(),
        better: match metric.better {
            cell::Better::Lower => Better::Lower,
            cell::Better::Higher => Better::Higher,
        },
        timing: metric.timing,
    }
}

/// Figures of the deciding metrics at all held values, then the others where the decision is made.
pub(super) fn all(study: &Study<'_>) -> Vec<MetricFigure> {
    // Arms that nothing compares stand side by side, unless something else can.
    let is_drawn = |axis: &&Axis| axis.values.len() > 1 || !study.comparisons.is_empty();
    let axis = drawn_axis(&study.plan.matrix.axes).filter(is_drawn);
    let held = held(study, axis);
    let deciding = |name: &str| {
        study
            .comparisons
            .iter()
            .any(|comparison| comparison.metric == name)
    };
    let (first, rest): (Vec<_>, Vec<_>) = study
        .plan
        .metrics
        .iter()
        .partition(|metric| deciding(&metric.name));
    let mut figures = Vec::new();
    for metric in first {
        figures.extend(
            held.iter()
                .take(HELD_MAX)
                .map(|held| figure(study, metric, axis, held, true)),
        );
    }
    let decided = decided_at(study, axis);
    for metric in rest {
        figures.push(figure(study, metric, axis, &decided, false));
    }
    figures.retain(|figure| figure.lines.iter().any(|line| !line.points.is_empty()));
    figures
}

/// The longest axis of numbers, else the longest of all.
fn drawn_axis(axes: &[Axis]) -> Option<&Axis> {
    let are_numbers = |axis: &Axis| axis.values.iter().all(|value| value.parse::<f64>().is_ok());
    let rank = |axis: &&Axis| {
        (
            are_numbers(axis) && axis.values.len() > 1,
            axis.values.len(),
        )
    };
    // The first of equals.
    axes.iter().rev().max_by_key(rank)
}

/// All combinations of the other axes.
fn held(study: &Study<'_>, drawn: Option<&Axis>) -> Vec<Point> {
    let mut points = vec![Point::new()];
    let others = study
        .plan
        .matrix
        .axes
        .iter()
        .filter(|axis| Some(axis.name.as_str()) != drawn.map(|axis| axis.name.as_str()));
    for axis in others {
        let mut longer = Vec::new();
        for value in &axis.values {
            for mut point in points.iter().cloned() {
                point.insert(axis.name.clone(), value.clone());
                longer.push(point);
            }
        }
        points = longer;
    }
    points
}

fn decided_at(study: &Study<'_>, drawn: Option<&Axis>) -> Point {
    let mut point = study
        .comparisons
        .first()
        .map_or_else(Point::new, |first| first.baseline.point.clone());
    if let Some(axis) = drawn {
        point.remove(&axis.name);
    }
    point
}

fn figure(
    study: &Study<'_>,
    measured: &cell::Metric,
    axis: Option<&Axis>,
    held: &Point,
    primary: bool,
) -> MetricFigure {
    let noise = noise::everywhere(&study.observations, &measured.name);
    let places = Places { axis, held };
    let lines = study
        .plan
        .matrix
        .arms
        .iter()
        .map(|arm| line(study, &measured.name, &arm.name, &places));
    let mut figure = MetricFigure {
        metric: metric(measured),
        primary,
        held: held.clone(),
        axis: axis.map(|axis| AxisSummary {
            name: axis.name.clone(),
            unit: axis.unit.clone(),
            values: axis.values.clone(),
        }),
        lines: lines.collect(),
        effects: Vec::new(),
        noise: noise.map(|noise| NoiseFloor {
            times: noise.times(),
            pairs: u32::try_from(noise.pairs()).unwrap_or(u32::MAX),
        }),
        published: Vec::new(),
    };
    let of = Measure {
        is_time: measured.timing,
        is_quantile: measured.name.starts_with(QUANTILE),
    };
    with_intervals(&mut figure.lines, of);
    for line in &mut figure.lines {
        line.slope = slope(&line.points);
    }
    figure.effects = effects(study, &figure.metric, &places);
    figure.published = published::lines(&study.plan.experiment, &figure);
    figure
}

/// The places of a figure.
struct Places<'a> {
    axis: Option<&'a Axis>,
    held: &'a Point,
}

impl Places<'_> {
    /// (value of the axis, point); one without an axis.
    fn all(&self) -> Vec<(String, Point)> {
        let Some(axis) = self.axis else {
            return vec![(String::new(), self.held.clone())];
        };
        let at = |value: &String| (value.clone(), self.at(&axis.name, value));
        axis.values.iter().map(at).collect()
    }

    fn at(&self, axis: &str, value: &str) -> Point {
        let mut point = self.held.clone();
        point.insert(axis.to_owned(), value.to_owned());
        point
    }
}

fn line(study: &Study<'_>, metric: &str, arm: &str, places: &Places<'_>) -> MeasuredLine {
    let points = places.all().into_iter().filter_map(|(x, point)| {
        let dots = study
            .observations
            .0
            .iter()
            .filter(|one| one.arm == arm && one.point == point);
        let dots = dots.filter_map(|one| {
            let value = one
                .metrics
                .get(metric)
                .copied()
                .filter(|value| value.is_finite())?;
            Some(Dot {
                run: one.run.clone(),
                value,
            })
        });
        let dots: Vec<Dot> = dots.collect();
        let median = median(&values(&dots))?;
        Some(MeasuredPoint {
            x,
            median,
            interval: None,
            dots,
        })
    });
    MeasuredLine {
        arm: arm.to_owned(),
        points: points.collect(),
        slope: None,
    }
}

/// What one more of the axis adds, where the axis is one of numbers and the medians lie on a line
/// that rises or falls.
fn slope(points: &[MeasuredPoint]) -> Option<Slope> {
    let at = |point: &MeasuredPoint| point.x.parse::<f64>().ok();
    let places: Option<Vec<f64>> = points.iter().map(at).collect();
    let places = places.filter(|places| places.len() >= PLACES_MIN)?;
    let runs = points.iter().zip(&places).flat_map(|(point, x)| {
        let dots = point.dots.iter();
        dots.map(move |dot| [*x, dot.value])
    });
    let estimate = theil_sen::slope_interval(&runs.collect::<Vec<_>>(), ALPHA)?;
    let is_level = estimate.interval.contains(0.0);
    let medians = points.iter().zip(&places);
    let above: Vec<f64> = medians
        .map(|(point, x)| point.median - estimate.value * x)
        .collect();
    let start = median(&above)?;
    let off = above
        .iter()
        .map(|rest| (rest - start).abs())
        .fold(0.0, f64::max);
    let length = estimate.value.abs() * (places.last()? - places.first()?).abs();
    (!is_level && off <= length * OFF_MAX).then_some(Slope {
        each: estimate.value,
        interval: [estimate.interval.low, estimate.interval.high],
    })
}

fn values(dots: &[Dot]) -> Vec<f64> {
    dots.iter().map(|dot| dot.value).collect()
}

/// What kind of metric a figure shows.
#[derive(Clone, Copy)]
struct Measure {
    is_time: bool,
    is_quantile: bool,
}

/// Intervals of the medians: of a latency's quantile by bootstrap where there are ten runs, else by
/// ranks where there are enough runs, else by the spread that all points of the figure share. A
/// count that came out the same in every run is exact: the spread of other points says nothing of
/// it.
fn with_intervals(lines: &mut [MeasuredLine], of: Measure) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let are_ratios = points().all(|point| point.dots.iter().all(|dot| dot.value > 0.0));
    let plain = |value: f64| if are_ratios { value.ln() } else { value };
    let samples = points().map(|point| values(&point.dots).into_iter().map(plain).collect());
    let Some(shared) = pooled(&samples.collect::<Vec<Vec<f64>>>()) else {
        return;
    };
    let is_exact = |point: &MeasuredPoint| {
        let same = point.dots.iter().all(|dot| dot.value == point.median);
        !of.is_time && same && point.dots.len() > 1
    };
    let points = lines.iter_mut().flat_map(|line| &mut line.points);
    for point in points.filter(|point| !is_exact(point)) {
        let interval = by_bootstrap(point)
            .filter(|_| of.is_quantile)
            .or_else(|| median_interval(&values(&point.dots), ALPHA))
            .or_else(|| by_shared_spread(point, shared, are_ratios));
        point.interval = interval.filter(|i| i.low < i.high).map(|i| [i.low, i.high]);
    }
}

/// A quantile of latency is skewed and has gaps: its ends come from the runs themselves. `None` for
/// few runs.
fn by_bootstrap(point: &MeasuredPoint) -> Option<Interval> {
    if point.dots.len() < RUNS_MIN {
        return None;
    }
    let middle = |samples: &[Vec<f64>]| {
        let values = samples.first().map(Vec::as_slice).unwrap_or_default();
        median(values).unwrap_or(f64::NAN)
    };
    let sample = values(&point.dots);
    bootstrap::interval(&[sample], &middle, ALPHA, RESAMPLES, SEED).map(|found| found.interval)
}

fn by_shared_spread(point: &MeasuredPoint, shared: Pooled, are_ratios: bool) -> Option<Interval> {
    let centre = if are_ratios {
        point.median.ln()
    } else {
        point.median
    };
    let interval = shared.interval(centre, point.dots.len(), ALPHA)?;
    Some(if are_ratios {
        interval.map(f64::exp)
    } else {
        interval
    })
}

/// Every other arm against the first, or every arm against itself where the experiment compares
/// along the axis.
fn effects(study: &Study<'_>, metric: &MetricSummary, places: &Places<'_>) -> Vec<EffectLine> {
    if study.comparisons.is_empty() {
        return Vec::new();
    }
    let arms = &study.plan.matrix.arms;
    let along = study
        .comparisons
        .iter()
        .find(|one| one.metric == metric.name || study.comparisons.len() == 1)
        .filter(|one| one.baseline.arm == one.candidate.arm);
    let base = along
        .zip(places.axis)
        .and_then(|(one, axis)| one.baseline.point.get(&axis.name));
    let lines = arms.iter().enumerate().filter_map(|(index, arm)| {
        let against = match (base, arms.first()) {
            (Some(value), _) => format!("{} at {value}", arm.name),
            (None, Some(first)) if index > 0 => first.name.clone(),
            _ => return None,
        };
        let points = places.all().into_iter().filter_map(|(x, point)| {
            let baseline = match (base, places.axis) {
                (Some(value), Some(axis)) => (arm.name.as_str(), places.at(&axis.name, value)),
                _ => (arms.first()?.name.as_str(), point.clone()),
            };
            effect(study, metric, baseline, (&arm.name, point), x)
        });
        Some(EffectLine {
            name: arm.name.clone(),
            against,
            points: points.collect(),
        })
    });
    lines.filter(|line| !line.points.is_empty()).collect()
}

fn effect(
    study: &Study<'_>,
    metric: &MetricSummary,
    (base_arm, base_point): (&str, Point),
    (arm, point): (&str, Point),
    x: String,
) -> Option<EffectPoint> {
    let baseline = study
        .observations
        .values(&metric.name, base_arm, &base_point);
    let candidate = study.observations.values(&metric.name, arm, &point);
    let is_itself = base_arm == arm && base_point == point;
    let middle =
        |side: &[(u32, f64)]| median(&side.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    let times = times_better(metric.better, middle(&baseline)?, middle(&candidate)?)?;
    let noise = noise::at(&study.observations, &metric.name, base_arm, &base_point);
    let estimate = match study.design {
        _ if is_itself => None,
        Design::Blocks => {
            let pairs = paired::log_ratios(&baseline, &candidate)?;
            paired::interval(&pairs.differences, noise.as_ref(), ALPHA)
        }
        Design::Apart => {
            let plain =
                |side: &[(u32, f64)]| side.iter().map(|(_, value)| value.ln()).collect::<Vec<_>>();
            let (one, other) = (plain(&baseline), plain(&candidate));
            let floor = noise.as_ref().map_or(0.0, Noise::spread);
            hodges_lehmann::unpaired(&one, &other, ALPHA)
                .or_else(|| student::unpaired(&one, &other, floor, ALPHA))
        }
    };
    let estimate = estimate.map(|estimate| match metric.better {
        Better::Lower => estimate.map(|log| (-log).exp()),
        Better::Higher => estimate.map(f64::exp),
    });
    Some(EffectPoint {
        x,
        times: estimate.map_or(times, |estimate| estimate.value),
        interval: estimate.map(|estimate| [estimate.interval.low, estimate.interval.high]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(x: &str, values: &[f64]) -> MeasuredPoint {
        let dot = |value: &f64| Dot {
            run: String::new(),
            value: *value,
        };
        MeasuredPoint {
            x: x.to_owned(),
            median: median(values).expect("values"),
            interval: None,
            dots: values.iter().map(dot).collect(),
        }
    }

    #[test]
    fn a_line_has_a_slope_and_a_curve_has_none() {
        let at = |x: u32, y: f64| point(&x.to_string(), &[y, y * 1.01, y * 0.99]);
        let line: Vec<MeasuredPoint> = [10, 20, 50, 100]
            .map(|x| at(x, 500.0 + 40.0 * f64::from(x)))
            .into();
        let found = slope(&line).expect("a line");
        assert!((found.each - 40.0).abs() < 1.0, "{found:?}");
        assert!(
            found.interval[0] > 35.0 && found.interval[1] < 45.0,
            "{found:?}"
        );
        let curve: Vec<MeasuredPoint> = [1, 10, 20, 50].map(|x| at(x, 20.0 / f64::from(x))).into();
        assert_eq!(slope(&curve), None);
        let level: Vec<MeasuredPoint> = [1, 10, 20, 50].map(|x| at(x, 20.0)).into();
        assert_eq!(slope(&level), None);
        assert_eq!(slope(&[point("on", &[1.0]), point("off", &[2.0])]), None);
    }

    #[test]
    fn a_quantile_of_latency_with_ten_runs_has_a_bootstrap_interval() {
        let values = [4.0, 4.2, 4.1, 4.3, 4.0, 9.0, 4.4, 4.2, 30.0, 4.1];
        let ends = |is_quantile: bool, values: &[f64]| {
            let mut lines = [MeasuredLine {
                arm: "one".to_owned(),
                points: vec![point("1", values)],
                slope: None,
            }];
            let of = Measure {
                is_time: true,
                is_quantile,
            };
            with_intervals(&mut lines, of);
            lines[0].points[0].interval
        };
        let bootstrapped = by_bootstrap(&point("1", &values)).expect("ten runs");
        assert_eq!(
            ends(true, &values),
            Some([bootstrapped.low, bootstrapped.high])
        );
        let by_ranks = ends(false, &values).expect("ten runs");
        assert_ne!([bootstrapped.low, bootstrapped.high], by_ranks);
        let few = &values[..9];
        assert_eq!(ends(true, few), ends(false, few), "too few for a bootstrap");
    }
}
