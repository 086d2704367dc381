//! What is drawn, and what must never be.

use super::*;

fn line(style: usize, values: &[f64]) -> Line {
    let points = values.iter().enumerate().map(|(place, value)| Point {
        place,
        value: *value,
        interval: Some([value * 0.9, value * 1.1]),
        words: format!("median {value}"),
    });
    let dots = values.iter().enumerate().map(|(place, value)| Dot {
        place,
        value: *value,
        words: "run <1>".into(),
        link: Some("runs/b01-a/run.json".into()),
    });
    Line {
        style,
        is_foreign: false,
        points: points.collect(),
        dots: dots.collect(),
    }
}

fn chart(places: &[&str], lines: Vec<Line>) -> Chart {
    Chart {
        label: "time by \"clients\"".into(),
        x_title: "clients".into(),
        places: places.iter().map(|place| (*place).to_owned()).collect(),
        are_names: false,
        y_title: "s".into(),
        height: Height::ByRange,
        bands: Vec::new(),
        lines,
    }
}

fn drawn(chart: &Chart) -> String {
    let mut text = String::new();
    chart
        .svg(Width::Wide, &mut text)
        .expect("a string takes everything");
    text
}

#[test]
fn a_line_has_its_ribbon_its_dots_and_its_titles() {
    let svg = drawn(&chart(&["1", "2", "4"], vec![line(0, &[3.0, 2.0, 1.0])]));
    assert_eq!(svg.matches("class=ribbon").count(), 1);
    assert_eq!(svg.matches("class=dot").count(), 3);
    assert_eq!(svg.matches("class=mark").count(), 3);
    assert!(svg.contains("<title>run &lt;1&gt;</title>"));
    assert!(svg.contains("<a href=\"runs/b01-a/run.json\""));
    assert!(svg.contains("aria-label=\"time by &quot;clients&quot;\""));
}

#[test]
fn words_are_not_joined() {
    let svg = drawn(&chart(&["pglz", "lz4"], vec![line(0, &[3.0, 2.0])]));
    assert!(!svg.contains("class=line") && !svg.contains("class=ribbon"));
    assert_eq!(svg.matches("class=whisker").count(), 2);
}

#[test]
fn what_is_no_number_is_never_drawn() {
    let wild = [f64::NAN, f64::INFINITY, f64::MIN_POSITIVE];
    for values in [&wild[..], &[], &[0.0, 0.0, 0.0]] {
        let svg = drawn(&chart(&["1", "2", "4"], vec![line(0, values)]));
        let numbers = svg
            .split("<title>")
            .map(|part| part.split_once("</title>").map_or(part, |p| p.1));
        assert!(
            numbers
                .into_iter()
                .all(|part| !part.contains("NaN") && !part.contains("inf")),
            "{svg}"
        );
    }
}

#[test]
fn the_same_chart_gives_the_same_bytes_for_both_widths() {
    let chart = chart(
        &["0", "1", "500"],
        vec![line(0, &[1.0, 2.0, 3.0]), line(1, &[2.0, 2.0, 2.0])],
    );
    assert_eq!(drawn(&chart), drawn(&chart));
    let mut narrow = String::new();
    chart
        .svg(Width::Narrow, &mut narrow)
        .expect("a string takes everything");
    assert!(narrow.contains("viewBox=\"0 0 340 300\""));
    assert_eq!(chart.spacing(), Spacing::Even);
}
