//! Every published figure must find the experiment's own words again.

use super::*;
use crate::experiment::Scale;
use crate::experiments::EXPERIMENTS;

#[test]
fn series_name_metrics_arms_and_axes_of_their_experiment() {
    for series in SERIES {
        let Some(experiment) = EXPERIMENTS
            .iter()
            .find(|one| one.name() == series.experiment)
        else {
            continue;
        };
        let said = format!("{} {} {}", series.experiment, series.metric, series.arm);
        let metrics = experiment.metrics();
        let metric = metrics.iter().find(|metric| metric.name == series.metric);
        assert_eq!(
            metric.map(|metric| metric.unit.as_str()),
            Some(series.unit),
            "{said}"
        );
        let matrix = experiment.matrix(Scale::Published);
        // Arms that are a person's folders are called by what lies there.
        let are_folders = experiment.arms_in(&[]).is_some();
        assert!(
            are_folders || matrix.arms.iter().any(|arm| arm.name == series.arm),
            "{said}: no such arm"
        );
        let axis = matrix.axes.iter().find(|axis| axis.name == series.axis);
        for (place, _) in series.values {
            let has = match axis {
                Some(axis) => axis.values.iter().any(|value| is_same(value, place)),
                None => matrix.axes.is_empty() && place.is_empty(),
            };
            assert!(has, "{said}: {place} is not on the axis {}", series.axis);
        }
        for (axis, value) in series.held {
            let held = matrix.axes.iter().find(|other| other.name == *axis);
            assert!(
                held.is_some_and(|held| held.values.iter().any(|v| v == value)),
                "{said}: {axis} {value}"
            );
        }
    }
}

#[test]
fn totals_of_the_article_on_failed_inserts_are_among_the_figures() {
    for (metric, value) in [("dead_percent", 85.0), ("index_entries", 21_000.0)] {
        let mut found = of("duplicate-inserts", metric, "collides");
        assert_eq!(
            found.next().and_then(|series| series.at("second")),
            Some(value)
        );
    }
    assert!(without_series("toast-compression").is_some_and(|words| words.contains("20 cores")));
}

#[test]
fn series_hold_only_where_they_were_measured() {
    let series = of("duplicate-inserts", "xids", "collides")
        .next()
        .expect("published");
    let at = |autovacuum: &str| Point::from([("autovacuum".to_owned(), autovacuum.to_owned())]);
    assert!(series.fits(&at("off")) && !series.fits(&at("on")));
}
