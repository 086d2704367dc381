//! The curves: what was measured, how many times better, and both as numbers.

use pgclinic_model::document::{ExperimentDocument, MeasuredPoint, MetricFigure, PublishedLine};

use super::super::picture::{Curves, Picture};
use super::super::{
    Block, Fold, Frame, Medium, Part, Row, Table, Words, fold, in_terminal, left, on_page, right,
    section, text, words,
};
use super::runs;
use crate::chart::{Band, Chart, Dot, Height, Line, Point, Spacing};
use crate::measured;

/// What stands under a figure with medians.
const CAPTION: &str = "Marks are medians with their intervals, every dot is a run";

/// Values of a line that was published, by their places.
type Published = Vec<(String, f64)>;

/// The figures that decide, then the others.
pub(super) fn all(document: &ExperimentDocument) -> Vec<Block> {
    let figures = document.figures.iter();
    let (first, rest): (Vec<_>, Vec<_>) = figures.partition(|figure| figure.primary);
    let title = if first.is_empty() {
        "Measured"
    } else {
        "Also measured"
    };
    let parts = [("Curves", first), (title, rest)]
        .into_iter()
        .flat_map(|(title, figures)| {
            let figures = figures.into_iter().map(|figure| one(document, figure));
            Part::new(Frame::PageSection, title).unless_empty(figures.collect())
        });
    parts.collect()
}

fn one(document: &ExperimentDocument, figure: &MetricFigure) -> Block {
    let numbers = || Block::Table(numbers(document, figure));
    let folded = fold(Fold::More, false, "The numbers").of(vec![numbers()]);
    let mut page = vec![values(document, figure)];
    page.extend(effects(document, figure));
    page.push(folded);
    let mut blocks = vec![on_page(page), in_terminal(vec![numbers()])];
    let slopes = figure.lines.iter();
    blocks.extend(
        slopes
            .filter_map(|line| measured::slope(figure, line))
            .map(text),
    );
    let mut lines = effect_lines(figure);
    lines.extend(figure.noise.map(|noise| text(measured::noise(noise))));
    blocks.push(in_terminal(lines));
    let title = section(measured::metric(&figure.metric));
    title.about(measured::point(&figure.held)).of(blocks)
}

/// Places of the x axis: those of the figure and of what is laid over it; arms where there is no
/// axis.
fn places(
    figure: &MetricFigure,
    names: Vec<String>,
    of: fn(&PublishedLine) -> &Published,
) -> Vec<String> {
    let Some(axis) = &figure.axis else {
        return names;
    };
    let mut places = axis.values.clone();
    for (place, _) in figure.published.iter().flat_map(of) {
        if !places.contains(place) {
            places.push(place.clone());
        }
    }
    let number = |place: &String| {
        let number = place.parse::<f64>().ok();
        number.filter(|number| number.is_finite())
    };
    if places.iter().all(|place| number(place).is_some()) {
        let value = |place: &String| number(place).unwrap_or(0.0);
        places.sort_by(|one, other| value(one).total_cmp(&value(other)));
    }
    places
}

fn place_of(places: &[String], x: &str) -> Option<usize> {
    places.iter().position(|place| place == x)
}

fn x_title(figure: &MetricFigure) -> String {
    match &figure.axis {
        Some(axis) if axis.unit.is_empty() || axis.unit == axis.name => axis.name.clone(),
        Some(axis) => format!("{}, {}", axis.name, axis.unit),
        None => String::new(),
    }
}

/// The place of a value: on the axis, or where the name stands without one.
fn place_name<'a>(figure: &MetricFigure, name: &'a str, x: &'a str) -> &'a str {
    if figure.axis.is_some() { x } else { name }
}

fn at(name: &str, x: &str) -> String {
    if x.is_empty() {
        name.to_owned()
    } else {
        format!("{name} at {x}")
    }
}

/// Lines of a chart and their names in its legend.
#[derive(Default)]
struct ChartLines {
    lines: Vec<Line>,
    names: Vec<(usize, bool, String)>,
}

impl ChartLines {
    fn measured(&mut self, style: usize, name: String, points: Vec<Point>, dots: Vec<Dot>) {
        self.names.push((style, false, name));
        self.lines.push(Line {
            style,
            is_foreign: false,
            points,
            dots,
        });
    }

    /// Lines that were not measured here, in the style of the arm of the same name.
    fn published(
        &mut self,
        figure: &MetricFigure,
        places: &[String],
        of: fn(&PublishedLine) -> &Published,
        said: &dyn Fn(&str, &str, f64) -> String,
    ) {
        for (index, line) in figure.published.iter().enumerate() {
            let points = of(line).iter().filter_map(|(x, value)| {
                Some(Point {
                    place: place_of(places, place_name(figure, &line.name, x))?,
                    value: *value,
                    interval: None,
                    words: format!("published, {}", said(&line.name, x, *value)),
                })
            });
            let points: Vec<Point> = points.collect();
            if !points.is_empty() {
                let style = style_of(figure, &line.name, index);
                self.names
                    .push((style, true, format!("{}, published", line.name)));
                self.lines.push(Line {
                    style,
                    is_foreign: true,
                    points,
                    dots: Vec::new(),
                });
            }
        }
    }
}

fn style_of(figure: &MetricFigure, name: &str, otherwise: usize) -> usize {
    let arm = figure.lines.iter().position(|line| line.arm == name);
    arm.unwrap_or(otherwise)
}

fn values(document: &ExperimentDocument, figure: &MetricFigure) -> Block {
    let unit = &figure.metric.unit;
    let arms = figure.lines.iter().map(|line| line.arm.clone());
    let places = places(figure, arms.collect(), |line| &line.values);
    let mut lines = ChartLines::default();
    for (style, line) in figure.lines.iter().enumerate() {
        let points = line.points.iter();
        let points = points.filter_map(|point| measured_point(figure, &line.arm, point, &places));
        let dots = dots(document, figure, &line.arm, &line.points, &places);
        lines.measured(style, line.arm.clone(), points.collect(), dots);
    }
    lines.published(figure, &places, |line| &line.values, &|name, x, value| {
        format!("{name} {x}: {}", measured::value(value, unit))
    });
    let metric = measured::metric(&figure.metric);
    let chart = Chart {
        label: format!("{metric} by {}", x_title(figure)),
        x_title: x_title(figure),
        places,
        are_names: figure.axis.is_none(),
        y_title: measured::title(&figure.metric),
        height: Height::ByRange,
        bands: Vec::new(),
        lines: lines.lines,
    };
    let mut caption = CAPTION.to_owned();
    if let Some(noise) = figure.noise.filter(|noise| !measured::has_ratio(*noise)) {
        caption = format!("{caption}; {}", measured::noise(noise));
    }
    if chart.spacing() == Spacing::Even {
        caption.push_str("; the places stand side by side, not to scale");
    }
    caption.push('.');
    curves(chart, lines.names, caption)
}

fn curves(chart: Chart, names: Vec<(usize, bool, String)>, caption: String) -> Block {
    Block::Picture(Picture::Curves(Curves {
        chart,
        names,
        caption,
    }))
}

fn measured_point(
    figure: &MetricFigure,
    arm: &str,
    point: &MeasuredPoint,
    places: &[String],
) -> Option<Point> {
    let unit = &figure.metric.unit;
    let (name, median) = (at(arm, &point.x), measured::value(point.median, unit));
    let more = match point.interval {
        Some([low, high]) => {
            let (low, high) = (measured::figure(low), measured::value(high, unit));
            format!(", {low} to {high}")
        }
        None if measured::is_exact(point) => " in every run".to_owned(),
        None => String::new(),
    };
    Some(Point {
        place: place_of(places, place_name(figure, arm, &point.x))?,
        value: point.median,
        interval: point.interval,
        words: format!("{name}: median {median}{more}"),
    })
}

fn dots(
    document: &ExperimentDocument,
    figure: &MetricFigure,
    arm: &str,
    points: &[MeasuredPoint],
    places: &[String],
) -> Vec<Dot> {
    let dots = points.iter().flat_map(|point| {
        let place = place_of(places, place_name(figure, arm, &point.x));
        point.dots.iter().filter_map(move |dot| {
            let run = document.runs.iter().find(|run| run.id == dot.run);
            let value = measured::value(dot.value, &figure.metric.unit);
            Some(Dot {
                place: place?,
                value: dot.value,
                words: format!("{}: {value}", dot.run),
                link: run.and_then(runs::raw_file),
            })
        })
    });
    dots.collect()
}

fn effects(document: &ExperimentDocument, figure: &MetricFigure) -> Option<Block> {
    if figure.effects.iter().all(|effect| effect.points.is_empty()) {
        return None;
    }
    let names = figure.effects.iter().map(|effect| effect.name.clone());
    let places = places(figure, names.collect(), |line| &line.times);
    let mut lines = ChartLines::default();
    for (index, effect) in figure.effects.iter().enumerate() {
        let points = effect.points.iter().filter_map(|point| {
            let times = measured::times_with(point.times, point.interval);
            Some(Point {
                place: place_of(&places, place_name(figure, &effect.name, &point.x))?,
                value: point.times,
                interval: point.interval,
                words: format!("{}: {times} times as good", at(&effect.name, &point.x)),
            })
        });
        let name = format!("{} against {}", effect.name, effect.against);
        let style = style_of(figure, &effect.name, index);
        lines.measured(style, name, points.collect(), Vec::new());
    }
    lines.published(figure, &places, |line| &line.times, &|name, x, times| {
        format!("{}: {} times as good", at(name, x), measured::times(times))
    });
    let (metric, title) = (&figure.metric.name, x_title(figure));
    let chart = Chart {
        label: format!("how many times better, {metric} by {title}"),
        x_title: title,
        places,
        are_names: figure.axis.is_none(),
        y_title: "times as good; 1 is no difference".into(),
        height: Height::Ratio,
        bands: bands(document, figure),
        lines: lines.lines,
    };
    Some(curves(chart, lines.names, sources(figure)))
}

/// The noise floor and what does not matter.
fn bands(document: &ExperimentDocument, figure: &MetricFigure) -> Vec<Band> {
    let mut bands = Vec::new();
    if let Some(noise) = figure.noise.filter(|noise| measured::has_ratio(*noise)) {
        bands.push(Band {
            class: "noise",
            values: [1.0 / noise.times, noise.times],
            words: measured::noise(noise),
        });
    }
    let margin = document.plan.margin;
    if margin > 0.0 && margin < 1.0 {
        let percent = measured::figure((margin * 1e4).round() / 1e2);
        bands.push(Band {
            class: "margin",
            values: [1.0 - margin, 1.0 / (1.0 - margin)],
            words: format!("no matter: below {percent} %"),
        });
    }
    bands
}

fn sources(figure: &MetricFigure) -> String {
    let lines = figure.published.iter();
    let mut sources: Vec<&str> = lines.map(|line| line.source.as_str()).collect();
    sources.dedup();
    if sources.is_empty() {
        String::new()
    } else {
        format!("Published: {}.", sources.join("; "))
    }
}

/// The effects in a line each, for a terminal.
fn effect_lines(figure: &MetricFigure) -> Vec<Block> {
    let lines = figure.effects.iter().map(|effect| {
        let points = effect.points.iter().map(|point| {
            let times = measured::times_with(point.times, point.interval);
            if point.x.is_empty() {
                times
            } else {
                format!("at {}: {times}", point.x)
            }
        });
        let points = points.collect::<Vec<_>>().join("; ");
        let (name, against) = (&effect.name, &effect.against);
        text(format!("{name} against {against}, times as good: {points}"))
    });
    lines.collect()
}

/// The same as a table, for those who cannot see or want to copy.
fn numbers(document: &ExperimentDocument, figure: &MetricFigure) -> Table {
    let axis = figure.axis.as_ref().map_or("", |axis| axis.name.as_str());
    let columns = vec![
        left("Arm"),
        left(axis),
        right("Median"),
        right("From"),
        right("To"),
        left("Runs"),
    ];
    let points = figure.lines.iter();
    let points = points.flat_map(|line| line.points.iter().map(|point| (&line.arm, point)));
    let rows = points.map(|(arm, point)| {
        let [low, high] = measured::ends(point);
        let runs = point.dots.iter().fold(Words::default(), |all, dot| {
            all.then(run_value(document, &dot.run, &measured::figure(dot.value)))
        });
        Row::of(vec![
            words(arm),
            words(&point.x),
            measured::figure(point.median).into(),
            low.into(),
            high.into(),
            runs.in_terminal(point.dots.len().to_string()),
        ])
    });
    Table::new(columns, rows)
}

/// The value of a run, which leads to its raw file.
fn run_value(document: &ExperimentDocument, id: &str, value: &str) -> Words {
    let run = document.runs.iter().find(|run| run.id == id);
    let value = runs::linked(run.and_then(runs::raw_file), value).tip(id);
    value.only(Medium::Page).on_page(" ")
}
