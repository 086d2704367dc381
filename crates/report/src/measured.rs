//! Measured values, places and links of an experiment, as a person reads or follows them.

use std::collections::BTreeMap;
use std::fmt::Write;

use pgclinic_model::document::{
    Better, DecisionCard, Dot, Effect, ExperimentDocument, MeasuredLine, MeasuredPoint,
    MetricFigure, MetricSummary, NoiseFloor, RunSummary, RunWord, Side,
};

use crate::view::permalinks::link_to;
use crate::words;

/// Four figures that matter at most: `0.01234`, `5.777`, `21,000`.
pub(crate) fn figure(number: f64) -> String {
    if !number.is_finite() {
        return "unknown".into();
    }
    let size = number.abs();
    let decimals = match size {
        _ if size >= 1000.0 || number.fract() == 0.0 => 0,
        _ if size >= 100.0 => 1,
        _ if size >= 10.0 => 2,
        _ if size >= 1.0 => 3,
        _ => 5,
    };
    let text = format!("{number:.decimals$}");
    let text = if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let (sign, digits) = match whole.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", whole),
    };
    let whole = digits
        .parse()
        .map_or_else(|_| digits.to_owned(), words::count);
    match fraction {
        "" => format!("{sign}{whole}"),
        _ => format!("{sign}{whole}.{fraction}"),
    }
}

/// The unit of rates, whose words say it already.
const RATE: &str = "1/s";

/// A value with its unit.
pub(crate) fn value(number: f64, unit: &str) -> String {
    match unit {
        "" => figure(number),
        RATE => format!("{} a second", figure(number)),
        _ => format!("{} {unit}", figure(number)),
    }
}

/// Ratios beyond this say that one side is next to nothing, and no more.
const RATIO_MAX: f64 = 10_000.0;

/// Equal runs that differ by more than this many times are so close to zero that they have no
/// ratio.
const NOISE_MAX: f64 = 10.0;

/// A ratio: `1.73`; `over 10,000` where one side is next to nothing.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        _ if ratio.is_nan() => "unknown".into(),
        _ if ratio > RATIO_MAX => "over 10,000".into(),
        _ if ratio < 1.0 / RATIO_MAX => "under 0.0001".into(),
        _ if ratio < 0.01 => figure(ratio),
        _ if ratio >= 100.0 => figure(ratio.round()),
        _ if ratio >= 10.0 => format!("{ratio:.1}"),
        _ if (0.9..1.1).contains(&ratio) => format!("{ratio:.3}"),
        _ => format!("{ratio:.2}"),
    }
}

/// `1.73 [1.5, 1.9]`.
pub(crate) fn times_with(ratio: f64, interval: Option<[f64; 2]>) -> String {
    let said = times(ratio);
    match interval.map(|ends| ends.map(times)) {
        Some([low, high]) if low == said && high == said => said,
        Some([low, high]) => format!("{said} [{low}, {high}]"),
        None => said,
    }
}

/// `pg-dump-16: each of objects adds 0.75 kB [0.73, 0.77]`; nothing where runs lie on no line.
pub(crate) fn slope(figure: &MetricFigure, line: &MeasuredLine) -> Option<String> {
    let (slope, axis) = (line.slope?, figure.axis.as_ref()?);
    let [low, high] = slope.interval.map(self::figure);
    let each = value(slope.each, &figure.metric.unit);
    let (arm, axis) = (&line.arm, &axis.name);
    Some(format!("{arm}: each of {axis} adds {each} [{low}, {high}]"))
}

/// Whether ratios of equal runs mean anything.
pub(crate) fn has_ratio(noise: NoiseFloor) -> bool {
    (1.0..=NOISE_MAX).contains(&noise.times)
}

/// How much equal runs differ, in words.
pub(crate) fn noise(noise: NoiseFloor) -> String {
    if !has_ratio(noise) {
        return "noise floor: equal runs are more than ten times apart, as values next to zero are; examine the runs, not the ratios"
            .to_owned();
    }
    let most = match noise.times {
        1.0 => "two equal runs gave the same".to_owned(),
        most => format!("two equal runs differ by up to {} times", times(most)),
    };
    let pairs = words::plural(noise.pairs, "control pair");
    format!("noise floor: {most} ({pairs})")
}

/// The ends of a point's interval; `exact` where every run gave the same.
pub(crate) fn ends(point: &MeasuredPoint) -> [String; 2] {
    match point.interval {
        Some(ends) => ends.map(figure),
        None if is_exact(point) => ["exact".to_owned(), String::new()],
        None => Default::default(),
    }
}

/// Whether there is more than one run, and all gave the same.
pub(crate) fn is_exact(point: &MeasuredPoint) -> bool {
    let same = |dot: &Dot| dot.value == point.median;
    point.dots.len() > 1 && point.dots.iter().all(same)
}

/// `clients 128, cache cold`; empty for no axis.
pub(crate) fn point(point: &BTreeMap<String, String>) -> String {
    let parts = point.iter().map(|(axis, at)| format!("{axis} {at}"));
    parts.collect::<Vec<_>>().join(", ")
}

/// `1.41 s, 15.6 at clients 128`.
pub(crate) fn at_side(number: f64, unit: &str, at: &Side) -> String {
    format!("{}, {}", value(number, unit), side(at))
}

/// `15.6 at clients 128`.
pub(crate) fn side(side: &Side) -> String {
    match point(&side.point).as_str() {
        "" => side.arm.clone(),
        place => format!("{} at {place}", side.arm),
    }
}

/// `time of an ANALYZE, s`.
pub(crate) fn title(metric: &MetricSummary) -> String {
    let words = if metric.words.is_empty() {
        &metric.name
    } else {
        &metric.words
    };
    match metric.unit.as_str() {
        "" => words.clone(),
        RATE if words.contains(" a second") => words.clone(),
        unit => format!("{words}, {unit}"),
    }
}

/// `time of an ANALYZE, s, lower is better`.
pub(crate) fn metric(metric: &MetricSummary) -> String {
    let wanted = match metric.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    };
    format!("{}, {wanted}", title(metric))
}

/// `1.73 times better [1.5, 1.9]`, or nothing where there is no ratio.
pub(crate) fn effect(effect: &Effect) -> Option<String> {
    let ratio = effect.times?;
    let mut text = format!("{} times as good", times_with(ratio, effect.times_interval));
    if let Some(confidence) = effect
        .confidence
        .filter(|_| effect.times_interval.is_some())
    {
        let _ = write!(
            text,
            ", {} % sure",
            figure((confidence * 1000.0).round() / 10.0)
        );
    }
    Some(text)
}

/// The metric of a card; `None` where nothing of it was measured.
pub(crate) fn metric_of<'a>(
    document: &'a ExperimentDocument,
    card: &DecisionCard,
) -> Option<&'a MetricSummary> {
    let mut metrics = document.figures.iter().map(|figure| &figure.metric);
    metrics.find(|metric| metric.name == card.metric)
}

/// `12 of 14 runs done, 1 failed, 1 skipped`.
pub(crate) fn runs(runs: &[RunSummary]) -> String {
    let count =
        |word: RunWord| words::count_of(runs.iter().filter(|run| run.outcome == word).count());
    let all = words::count_of(runs.len());
    let mut text = format!(
        "{} of {} done",
        words::count(count(RunWord::Done)),
        words::plural(all, "run")
    );
    for word in [
        RunWord::Failed,
        RunWord::Empty,
        RunWord::Skipped,
        RunWord::NotRun,
    ] {
        let number = count(word);
        if number > 0 {
            let _ = write!(text, ", {} {}", words::count(number), word.name());
        }
    }
    text
}

/// The raw file of a run as a link that stays inside the experiment's folder; `None` for anything
/// else.
pub(crate) fn link(path: &str) -> Option<String> {
    let inside = path
        .split('/')
        .all(|part| !part.is_empty() && part != ".." && part != ".");
    (inside && !path.contains(['\\', ':'])).then(|| link_to(path))
}

/// Settings and facts that are not equal for all arms: (name, a value for each arm).
pub(crate) fn differences(document: &ExperimentDocument) -> Vec<(String, Vec<String>)> {
    let mut names: Vec<&String> = Vec::new();
    for arm in &document.arms {
        names.extend(arm.settings.keys().chain(arm.environment.keys()));
    }
    names.sort();
    names.dedup();
    let of_arms = names.into_iter().map(|name| {
        let values = document.arms.iter().map(|arm| {
            let set = arm.settings.get(name).or_else(|| arm.environment.get(name));
            set.cloned().unwrap_or_default()
        });
        (name.clone(), values.collect::<Vec<_>>())
    });
    of_arms
        .filter(|(_, values)| values.iter().any(|value| Some(value) != values.first()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_figures_that_matter() {
        let said = [0.012_34, 5.777_2, 20_000.0, 1504.4, 0.0, -12.3456].map(figure);
        assert_eq!(said, ["0.01234", "5.777", "20,000", "1,504", "0", "-12.35"]);
        assert_eq!(figure(0.84), "0.84");
        assert_eq!(value(8_006.0, "1/s"), "8,006 a second");
        assert_eq!(times_with(1.732, Some([1.5, 12.25])), "1.73 [1.50, 12.2]");
        assert_eq!(times(1.0041), "1.004");
        assert_eq!(
            times_with(3e9, Some([1e-9, 2e12])),
            "over 10,000 [under 0.0001, over 10,000]"
        );
    }

    #[test]
    fn what_every_run_gave_is_exact_and_noise_next_to_zero_has_no_ratio() {
        let dot = |value| Dot {
            run: String::new(),
            value,
        };
        let point = |dots: Vec<Dot>| MeasuredPoint {
            x: String::new(),
            median: 133.0,
            interval: None,
            dots,
        };
        assert_eq!(ends(&point(vec![dot(133.0), dot(133.0)]))[0], "exact");
        assert_eq!(ends(&point(vec![dot(133.0), dot(134.0)]))[0], "");
        assert_eq!(ends(&point(vec![dot(133.0)]))[0], "");
        let floor = |times| noise(NoiseFloor { times, pairs: 3 });
        assert!(floor(38_992_349_857.0).contains("next to zero"));
        assert_eq!(
            floor(1.02),
            "noise floor: two equal runs differ by up to 1.020 times (3 control pairs)"
        );
    }

    #[test]
    fn a_link_never_leaves_the_folder() {
        assert_eq!(
            link("runs/b01-a/run.json").as_deref(),
            Some("runs/b01-a/run.json")
        );
        assert_eq!(
            link("runs/a b/run.json").as_deref(),
            Some("runs/a%20b/run.json")
        );
        for bad in [
            "javascript:alert(1)",
            "/etc/passwd",
            "runs/../../x",
            "a//b",
            "",
            "c:\\x",
        ] {
            assert_eq!(link(bad), None, "{bad}");
        }
    }
}
