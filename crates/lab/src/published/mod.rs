//! What others have published: reference series with their source, and whether this machine shows
//! the same effect.
//!
//! Sizes and machines differ, so that absolute values are only shown beside each other; what is
//! compared is how many times one side is better than the other.

mod answer;
mod bound;
mod series;

use pgclinic_model::document::{MetricFigure, PublishedLine};

use crate::cell::Point;

pub use answer::answer;
pub use series::SERIES;

/// Where figures come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    /// Who, when, what.
    pub title: &'static str,
    /// On which machine and version.
    pub machine: &'static str,
}

impl Source {
    /// Both in one line.
    pub fn words(&self) -> String {
        format!("{}; {}", self.title, self.machine)
    }
}

/// One arm's published values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Series {
    /// Name of the experiment.
    pub experiment: &'static str,
    /// Name of the metric.
    pub metric: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// Name of the arm.
    pub arm: &'static str,
    /// Axis of the values; empty where there is one value without an axis.
    pub axis: &'static str,
    /// Values of other axes that it holds for; axes that are not named do not matter.
    pub held: &'static [(&'static str, &'static str)],
    /// The same at any place of the axis, such as bytes a row: where a place has no value, the
    /// nearest one serves.
    pub is_scale_free: bool,
    /// (place on the axis, value).
    pub values: &'static [(&'static str, f64)],
    /// Where it stands.
    pub source: &'static Source,
}

impl Series {
    /// The value at a place of the axis.
    pub fn at(&self, place: &str) -> Option<f64> {
        let found = self.values.iter().find(|(at, _)| is_same(at, place));
        found.map(|(_, value)| *value)
    }

    /// The value at a place, or where it does not depend on the place, that of the nearest one,
    /// with the place it was published of.
    pub fn near(&self, place: &str) -> Option<(&'static str, f64)> {
        if let Some(found) = self.values.iter().find(|(at, _)| is_same(at, place)) {
            return Some(*found);
        }
        let place: f64 = place.parse().ok().filter(|_| self.is_scale_free)?;
        let distance = |at: &str| {
            let at: f64 = at.parse().unwrap_or(f64::INFINITY);
            (at / place).ln().abs()
        };
        let mut values = self.values.to_vec();
        values.sort_by(|(one, _), (other, _)| distance(one).total_cmp(&distance(other)));
        values.first().copied()
    }

    /// It was measured under these values of other axes.
    pub fn fits(&self, point: &Point) -> bool {
        let differs = |(axis, value): &(&str, &str)| {
            point.get(*axis).is_some_and(|other| !is_same(value, other))
        };
        !self.held.iter().any(differs)
    }
}

/// `10` and `10.0` are one place.
fn is_same(one: &str, other: &str) -> bool {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// What was published as words, and is to be said where it cannot be drawn.
pub fn without_series(experiment: &str) -> Option<&'static str> {
    let found = series::WITHOUT_SERIES
        .iter()
        .find(|(name, _)| *name == experiment);
    found.map(|(_, words)| *words)
}

/// All published series of a metric along an axis (empty for none).
pub fn of<'a>(
    experiment: &'a str,
    metric: &'a str,
    axis: &'a str,
) -> impl Iterator<Item = &'static Series> + 'a {
    SERIES.iter().filter(move |series| {
        series.experiment == experiment && series.metric == metric && series.axis == axis
    })
}

/// The lines to lay over a figure: values where the unit is the same, and how many times better
/// where the figure compares.
pub fn lines(experiment: &str, figure: &MetricFigure) -> Vec<PublishedLine> {
    let axis = figure.axis.as_ref().map_or("", |axis| axis.name.as_str());
    let all: Vec<&Series> = of(experiment, &figure.metric.name, axis)
        .filter(|series| series.fits(&figure.held))
        .collect();
    all.iter()
        .map(|series| line(series, &all, figure))
        .collect()
}

fn line(series: &Series, all: &[&Series], figure: &MetricFigure) -> PublishedLine {
    let own = |(at, value): &(&str, f64)| ((*at).to_owned(), *value);
    let effect = figure
        .effects
        .iter()
        .find(|effect| effect.name == series.arm);
    let against = effect.map(|effect| effect.against.as_str());
    let times = against.map_or_else(Vec::new, |against| times(series, all, figure, against));
    PublishedLine {
        name: series.arm.to_owned(),
        source: series.source.words(),
        values: if series.unit == figure.metric.unit {
            series.values.iter().map(own).collect()
        } else {
            Vec::new()
        },
        against: against.filter(|_| !times.is_empty()).map(str::to_owned),
        times,
    }
}

/// Against another arm place by place, or against the same arm at one place (`14 at 10`).
fn times(
    series: &Series,
    all: &[&Series],
    figure: &MetricFigure,
    against: &str,
) -> Vec<(String, f64)> {
    let better = figure.metric.better;
    let fixed = against
        .rsplit_once(" at ")
        .and_then(|(arm, place)| all.iter().find(|other| other.arm == arm)?.at(place));
    let other = all.iter().find(|other| other.arm == against);
    let places = series.values.iter().filter_map(|(at, value)| {
        let baseline = fixed.or_else(|| other?.at(at))?;
        let times = crate::decision::times_better(better, baseline, *value)?;
        Some(((*at).to_owned(), times))
    });
    places.collect()
}

#[cfg(test)]
mod tests;
