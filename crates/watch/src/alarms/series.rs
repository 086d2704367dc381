//! The last hours of the series that alerts are about, and what an expression gives of them.
//!
//! Semantics are those of Prometheus, with one difference: what grew within a range is not
//! extrapolated to its borders, so that nothing alarms that was not seen.

use std::collections::{BTreeMap, VecDeque};

use pgclinic_model::Labels;

use super::expression::{Aggregate, Expression, Matching, Operator, OverTime, Selector};

/// Between two points that are kept, at least; what is now is known besides.
const SPACING_MIN_S: f64 = 15.0;
/// The same at most: well within what stands for an earlier moment.
const SPACING_MAX_S: f64 = 120.0;
/// Points of a series, whatever range is asked for; so many of a longer range stand further apart.
const POINTS_MAX: f64 = 240.0;
/// Series of one metric.
const SERIES_MAX: usize = 5000;
/// How old a point may be that stands for an earlier moment.
const LOOK_BACK_S: f64 = 300.0;

/// Figures by what they are of.
pub(super) type Vector = Vec<(Labels, f64)>;

#[derive(Debug, Default)]
struct Series {
    points: VecDeque<(f64, f64)>,
    now: Option<(f64, f64)>,
}

/// The series.
#[derive(Debug, Default)]
pub(super) struct Store {
    /// How far back each metric is asked for, in seconds.
    reach_s: BTreeMap<String, f64>,
    series: BTreeMap<String, BTreeMap<Labels, Series>>,
    now: f64,
}

impl Store {
    /// For what these expressions ask.
    pub(super) fn of<'a>(expressions: impl Iterator<Item = &'a Expression>) -> Self {
        let mut reach_s = BTreeMap::new();
        for selector in expressions.flat_map(Expression::selectors) {
            let reach = selector.range_s.max(selector.offset_s + LOOK_BACK_S);
            let own: &mut f64 = reach_s.entry(selector.metric.clone()).or_default();
            *own = own.max(reach);
        }
        Self {
            reach_s,
            ..Self::default()
        }
    }

    /// A new sample begins.
    pub(super) fn begin(&mut self, now: f64) {
        self.now = now;
    }

    /// Adds what a sample has; metrics that nobody asks for are left out.
    pub(super) fn add(&mut self, metric: &str, labels: impl FnOnce() -> Labels, value: f64) {
        let Some(reach) = self.reach_s.get(metric) else {
            return;
        };
        let of_metric = self.series.entry(metric.to_owned()).or_default();
        let labels = labels();
        if of_metric.len() >= SERIES_MAX && !of_metric.contains_key(&labels) {
            return;
        }
        let series = of_metric.entry(labels).or_default();
        series.now = Some((self.now, value));
        let spacing = spacing_of(*reach);
        let is_due = |(last, _): &(f64, f64)| self.now - last >= spacing;
        if series.points.back().is_none_or(is_due) {
            series.points.push_back((self.now, value));
        }
        let first = self.now - reach - spacing;
        while series.points.front().is_some_and(|(at, _)| *at < first) {
            series.points.pop_front();
        }
    }

    /// Drops series of which nothing was heard for as long as anybody asks.
    pub(super) fn end(&mut self) {
        for (metric, of_metric) in &mut self.series {
            let reach = self.reach_s.get(metric).copied().unwrap_or(0.0);
            let first = self.now - reach - spacing_of(reach);
            of_metric.retain(|_, own| own.now.is_some_and(|(at, _)| at >= first));
        }
    }

    /// What an expression gives now; a number is a figure without labels.
    pub(super) fn value(&self, expression: &Expression) -> Vector {
        match self.evaluated(expression) {
            Value::Number(own) => vec![(Labels::default(), own)],
            Value::Vector(own) => own,
        }
    }

    fn evaluated(&self, expression: &Expression) -> Value {
        match expression {
            Expression::Number(own) => Value::Number(*own),
            Expression::Time => Value::Number(self.now),
            Expression::Selector(own) => Value::Vector(self.selected(own)),
            Expression::OverTime(function, own, number) => {
                Value::Vector(self.over_time(*function, own, *number))
            }
            Expression::By(aggregate, labels, inner) => {
                Value::Vector(gathered(*aggregate, labels, self.value(inner)))
            }
            Expression::Binary(operator, matching, left, right) => joined(
                *operator,
                matching,
                self.evaluated(left),
                self.evaluated(right),
            ),
        }
    }

    fn matching<'a>(
        &'a self,
        selector: &'a Selector,
    ) -> impl Iterator<Item = (&'a Labels, &'a Series)> {
        let of_metric = self.series.get(&selector.metric).into_iter().flatten();
        of_metric.filter(|(labels, _)| {
            let mut asked = selector.labels.iter();
            asked.all(|(name, value)| labels.get(name) == Some(value))
        })
    }

    fn selected(&self, selector: &Selector) -> Vector {
        let at = self.now - selector.offset_s;
        let value = |own: &Series| match own.now {
            // What the last sample did not have is gone, however fresh it was.
            Some((last, value)) if selector.offset_s == 0.0 => (last >= self.now).then_some(value),
            _ => {
                let mut points = own.points.iter().rev();
                let (then, value) = points.find(|(then, _)| *then <= at)?;
                (at - then <= LOOK_BACK_S).then_some(*value)
            }
        };
        let series = self.matching(selector);
        series
            .filter_map(|(labels, own)| Some((labels.clone(), value(own)?)))
            .collect()
    }

    fn over_time(&self, function: OverTime, selector: &Selector, number: f64) -> Vector {
        let end = self.now - selector.offset_s;
        let begin = end - selector.range_s;
        let series = self.matching(selector).filter_map(|(labels, own)| {
            let points = own.points.iter().copied().chain(
                own.now
                    .filter(|now| own.points.back().is_none_or(|(last, _)| *last < now.0)),
            );
            let points: Vec<_> = points
                .filter(|(at, _)| (begin..=end).contains(at))
                .collect();
            Some((labels.clone(), of_points(function, &points, end + number)?))
        });
        series.collect()
    }
}

/// Between two points of a series that is asked for so far back.
fn spacing_of(reach_s: f64) -> f64 {
    (reach_s / POINTS_MAX).clamp(SPACING_MIN_S, SPACING_MAX_S)
}

enum Value {
    Number(f64),
    Vector(Vector),
}

fn of_points(function: OverTime, points: &[(f64, f64)], ahead: f64) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    let pairs = || {
        points
            .windows(2)
            .filter_map(|pair| Some((pair.first()?.1, pair.last()?.1)))
    };
    // A counter that went back began at 0 again.
    let growth = || {
        pairs()
            .map(|(old, new)| if new < old { new } else { new - old })
            .sum::<f64>()
    };
    let seconds = last.0 - first.0;
    match function {
        OverTime::Changes => Some(
            pairs()
                .map(|(old, new)| f64::from(u8::from(old != new)))
                .sum(),
        ),
        OverTime::Average => {
            Some(points.iter().map(|(_, own)| own).sum::<f64>() / points.len() as f64)
        }
        _ if seconds <= 0.0 => None,
        OverTime::Increase => Some(growth()),
        OverTime::Rate => Some(growth() / seconds),
        OverTime::Slope => Some(line(points)?.0),
        OverTime::Forecast => {
            let (slope, at_first) = line(points)?;
            Some(at_first + slope * (ahead - first.0))
        }
    }
}

/// Slope a second, and height at the first point, by least squares.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let begin = points.first()?.0;
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x - begin).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let both = |(x, y): &(f64, f64)| (x - begin - mean_x, y - mean_y);
    let squares = points.iter().map(|own| both(own).0.powi(2)).sum::<f64>();
    let products = points
        .iter()
        .map(|own| both(own).0 * both(own).1)
        .sum::<f64>();
    let slope = products / squares;
    slope
        .is_finite()
        .then_some((slope, mean_y - slope * mean_x))
}

fn gathered(aggregate: Aggregate, by: &[String], vector: Vector) -> Vector {
    let mut groups: BTreeMap<Labels, f64> = BTreeMap::new();
    for (labels, value) in vector {
        let group = groups.entry(labels.only(by)).or_insert(match aggregate {
            Aggregate::Sum => 0.0,
            Aggregate::Max => f64::NEG_INFINITY,
        });
        *group = match aggregate {
            Aggregate::Sum => *group + value,
            Aggregate::Max => group.max(value),
        };
    }
    groups.into_iter().collect()
}

/// What a comparison leaves out is no figure; what is computed is.
fn combined(operator: Operator, left: f64, right: f64) -> Option<f64> {
    match operator {
        Operator::Plus => Some(left + right),
        Operator::Minus => Some(left - right),
        Operator::Times => Some(left * right),
        Operator::Over => Some(left / right),
        Operator::Greater => (left > right).then_some(left),
        Operator::Less => (left < right).then_some(left),
        Operator::AtLeast => (left >= right).then_some(left),
        Operator::AtMost => (left <= right).then_some(left),
        Operator::Equal => (left == right).then_some(left),
        Operator::And | Operator::Or | Operator::Unless => None,
    }
}

fn joined(operator: Operator, matching: &Matching, left: Value, right: Value) -> Value {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            combined(operator, left, right).map_or(Value::Vector(Vec::new()), Value::Number)
        }
        (Value::Vector(left), Value::Number(right)) => {
            let own = left.into_iter();
            let own =
                own.filter_map(|(labels, own)| Some((labels, combined(operator, own, right)?)));
            Value::Vector(own.collect())
        }
        (Value::Number(left), Value::Vector(right)) => {
            let own = right.into_iter();
            let own =
                own.filter_map(|(labels, own)| Some((labels, combined(operator, left, own)?)));
            Value::Vector(own.collect())
        }
        (Value::Vector(left), Value::Vector(right)) => {
            Value::Vector(of_vectors(operator, matching, left, right))
        }
    }
}

fn of_vectors(operator: Operator, matching: &Matching, left: Vector, right: Vector) -> Vector {
    let key = |labels: &Labels| match &matching.on {
        Some(names) => labels.only(names),
        None => labels.clone(),
    };
    let of_right: BTreeMap<Labels, f64> = right
        .iter()
        .map(|(labels, own)| (key(labels), *own))
        .collect();
    let has = |labels: &Labels| of_right.contains_key(&key(labels));
    match operator {
        Operator::And => left.into_iter().filter(|(labels, _)| has(labels)).collect(),
        Operator::Unless => left
            .into_iter()
            .filter(|(labels, _)| !has(labels))
            .collect(),
        Operator::Or => {
            let of_left: Vec<Labels> = left.iter().map(|(labels, _)| key(labels)).collect();
            let more = right
                .into_iter()
                .filter(|(labels, _)| !of_left.contains(&key(labels)));
            left.into_iter().chain(more).collect()
        }
        _ => {
            let own = left.into_iter().filter_map(|(labels, own)| {
                let other = of_right.get(&key(&labels))?;
                let value = combined(operator, own, *other)?;
                let labels = match &matching.on {
                    Some(names) if !matching.is_many_to_one => labels.only(names),
                    _ => labels,
                };
                Some((labels, value))
            });
            own.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::expression::parse;
    use super::*;

    fn store(text: &str) -> (Store, Expression) {
        let expression = parse(text).expect(text);
        (Store::of(std::iter::once(&expression)), expression)
    }

    fn labels(own: &[(&str, &str)]) -> Labels {
        own.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn what_grows_is_seen_within_its_range_and_over_a_reset() {
        let (mut store, expression) = store("increase(a_total[5m]) > 3");
        let counts = [10.0, 10.0, 12.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0];
        let mut found = Vec::new();
        for (at, count) in counts.into_iter().enumerate() {
            store.begin(60.0 * at as f64);
            store.add("a_total", || labels(&[("server", "s")]), count);
            store.end();
            found.push(store.value(&expression).first().map(|(_, own)| *own));
        }
        assert_eq!(found.get(2), Some(&None));
        assert_eq!(
            found.get(4),
            Some(&Some(4.0)),
            "2 before the reset, 2 after it"
        );
        assert_eq!(found.last(), Some(&None), "out of the range");
    }

    #[test]
    fn sides_find_each_other_by_their_labels() {
        let text = "age > on (server) group_left () (0.5 * limit{id=\"xid\"} + on (server) 1 * limit{id=\"stop\"})";
        let (mut store, expression) = store(text);
        store.begin(1.0);
        for (database, age) in [("a", 8.0), ("b", 20.0)] {
            store.add(
                "age",
                || labels(&[("server", "s"), ("database", database)]),
                age,
            );
        }
        store.add("limit", || labels(&[("server", "s"), ("id", "xid")]), 10.0);
        store.add("limit", || labels(&[("server", "s"), ("id", "stop")]), 4.0);
        let found = store.value(&expression);
        assert_eq!(
            found,
            [(labels(&[("server", "s"), ("database", "b")]), 20.0)]
        );
    }

    #[test]
    fn what_is_gone_is_not_there_and_was_there_an_hour_ago() {
        let (mut store, expression) = store("(a offset 1h) unless a");
        for minute in 0..100 {
            store.begin(60.0 * f64::from(minute));
            if minute < 50 {
                store.add("a", || labels(&[("server", "s")]), 1.0);
            }
            store.end();
            let is_silent = !store.value(&expression).is_empty();
            assert_eq!(is_silent, minute >= 60, "{minute}");
        }
    }

    #[test]
    fn a_long_range_takes_no_more_points_than_a_short_one() {
        let (mut store, expression) = store("increase(a_total[6h]) > 0");
        for sample in 0..8640 {
            store.begin(10.0 * f64::from(sample));
            store.add("a_total", || labels(&[]), f64::from(sample));
            store.end();
        }
        let points = store.series["a_total"][&labels(&[])].points.len();
        assert!((200..=250).contains(&points), "{points}");
        let grown = store.value(&expression).first().map(|(_, own)| *own);
        // 2,160 samples of 10 s, less than one spacing of them not seen.
        assert!(
            grown.is_some_and(|own| (2150.0..=2160.0).contains(&own)),
            "{grown:?}"
        );
    }

    #[test]
    fn a_line_is_drawn_on() {
        let (mut store, expression) = store("predict_linear(a[1h], 2 * 60) > 0");
        for minute in 0..10 {
            store.begin(60.0 * f64::from(minute));
            store.add("a", || labels(&[]), 100.0 * f64::from(minute));
        }
        let found = store.value(&expression).first().map(|(_, own)| own.round());
        assert_eq!(found, Some(1100.0));
    }
}
