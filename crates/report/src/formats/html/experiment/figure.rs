//! The curves: what was measured, and how many times better.

use std::io;

use pgclinic_model::document::{ExperimentDocument, MeasuredPoint, MetricFigure};

use super::super::escape::Esc;
use super::runs;
use crate::chart::{Band, Chart, Dot, Height, Line, Point, Spacing, Width, swatch};
use crate::measured;

pub(super) fn all(document: &ExperimentDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let (first, rest): (Vec<_>, Vec<_>) =
        document.figures.iter().partition(|figure| figure.primary);
    if !first.is_empty() {
        out.write_all(b"<section>\n<h2>Curves</h2>\n")?;
        each(document, &first, out)?;
        out.write_all(b"</section>\n")?;
    }
    if !rest.is_empty() {
        let title = if first.is_empty() {
            "Measured"
        } else {
            "Also measured"
        };
        writeln!(out, "<section>\n<h2>{title}</h2>")?;
        each(document, &rest, out)?;
        out.write_all(b"</section>\n")?;
    }
    Ok(())
}

fn each(
    document: &ExperimentDocument,
    figures: &[&MetricFigure],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    for figure in figures {
        let held = measured::point(&figure.held);
        let held = if held.is_empty() {
            held
        } else {
            format!(" <span class=q>{}</span>", Esc(held))
        };
        writeln!(
            out,
            "<h3>{}{held}</h3>",
            Esc(measured::metric(&figure.metric))
        )?;
        values(document, figure, out)?;
        effects(document, figure, out)?;
        numbers(document, figure, out)?;
    }
    Ok(())
}

/// Places of the x axis: those of the figure and of what is laid over it; arms where there is no
/// axis.
fn places(figure: &MetricFigure, published: &[&[(String, f64)]]) -> Vec<String> {
    let Some(axis) = &figure.axis else {
        let arms = figure.lines.iter().map(|line| line.arm.clone());
        return arms.collect();
    };
    let mut places = axis.values.clone();
    for (place, _) in published.iter().copied().flatten() {
        if !places.contains(place) {
            places.push(place.clone());
        }
    }
    let number = |place: &String| {
        place
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
    };
    if places.iter().all(|place| number(place).is_some()) {
        places.sort_by(|one, other| {
            let numbers = (number(one).unwrap_or(0.0), number(other).unwrap_or(0.0));
            numbers.0.total_cmp(&numbers.1)
        });
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

/// Lines that are not measured here take the style of the arm of the same name.
fn style_of(figure: &MetricFigure, name: &str, otherwise: usize) -> usize {
    let arm = figure.lines.iter().position(|line| line.arm == name);
    arm.unwrap_or(otherwise)
}

fn values(
    document: &ExperimentDocument,
    figure: &MetricFigure,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let published: Vec<&[(String, f64)]> = figure
        .published
        .iter()
        .map(|line| line.values.as_slice())
        .collect();
    let places = places(figure, &published);
    let mut lines: Vec<Line> = Vec::new();
    let mut names: Vec<(usize, bool, String)> = Vec::new();
    for (style, line) in figure.lines.iter().enumerate() {
        names.push((style, false, line.arm.clone()));
        lines.push(Line {
            style,
            is_foreign: false,
            points: measured_points(figure, &line.arm, &line.points, &places),
            dots: dots(document, figure, &line.arm, &line.points, &places),
        });
    }
    for (index, line) in figure.published.iter().enumerate() {
        let at_arm = |x: &str| {
            if figure.axis.is_none() {
                line.name.clone()
            } else {
                x.to_owned()
            }
        };
        let points = line.values.iter().filter_map(|(x, value)| {
            Some(Point {
                place: place_of(&places, &at_arm(x))?,
                value: *value,
                interval: None,
                words: format!(
                    "published, {} {x}: {}",
                    line.name,
                    measured::value(*value, &figure.metric.unit)
                ),
            })
        });
        let points: Vec<Point> = points.collect();
        if !points.is_empty() {
            let style = style_of(figure, &line.name, index);
            names.push((style, true, format!("{}, published", line.name)));
            lines.push(Line {
                style,
                is_foreign: true,
                points,
                dots: Vec::new(),
            });
        }
    }
    let chart = Chart {
        label: format!(
            "{} by {}",
            measured::metric(&figure.metric),
            x_title(figure)
        ),
        x_title: x_title(figure),
        places,
        are_names: figure.axis.is_none(),
        y_title: measured::title(&figure.metric),
        height: Height::ByRange,
        bands: Vec::new(),
        lines,
    };
    let mut caption = "Marks are medians with their intervals, every dot is a run".to_owned();
    if let Some(noise) = figure.noise.filter(|noise| !measured::has_ratio(*noise)) {
        caption = format!("{caption}; {}", measured::noise(noise));
    }
    if chart.spacing() == Spacing::Even {
        caption.push_str("; the places stand side by side, not to scale");
    }
    caption.push('.');
    put(&chart, &names, &[], &caption, out)
}

fn measured_points(
    figure: &MetricFigure,
    arm: &str,
    points: &[MeasuredPoint],
    places: &[String],
) -> Vec<Point> {
    let point = |point: &MeasuredPoint| {
        let unit = &figure.metric.unit;
        let mut words = format!(
            "{}: median {}",
            at(arm, &point.x),
            measured::value(point.median, unit)
        );
        if let Some([low, high]) = point.interval {
            words = format!(
                "{words}, {} to {}",
                measured::figure(low),
                measured::value(high, unit)
            );
        } else if measured::is_exact(point) {
            words.push_str(" in every run");
        }
        Some(Point {
            place: place_of(places, place_name(figure, arm, &point.x))?,
            value: point.median,
            interval: point.interval,
            words,
        })
    };
    points.iter().filter_map(point).collect()
}

fn place_name<'a>(figure: &MetricFigure, arm: &'a str, x: &'a str) -> &'a str {
    if figure.axis.is_some() { x } else { arm }
}

fn at(arm: &str, x: &str) -> String {
    if x.is_empty() {
        arm.to_owned()
    } else {
        format!("{arm} at {x}")
    }
}

fn dots(
    document: &ExperimentDocument,
    figure: &MetricFigure,
    arm: &str,
    points: &[MeasuredPoint],
    places: &[String],
) -> Vec<Dot> {
    let mut dots = Vec::new();
    for point in points {
        let Some(place) = place_of(places, place_name(figure, arm, &point.x)) else {
            continue;
        };
        for dot in &point.dots {
            let run = document.runs.iter().find(|run| run.id == dot.run);
            dots.push(Dot {
                place,
                value: dot.value,
                words: format!(
                    "{}: {}",
                    dot.run,
                    measured::value(dot.value, &figure.metric.unit)
                ),
                link: run.and_then(runs::raw_file),
            });
        }
    }
    dots
}

fn effects(
    document: &ExperimentDocument,
    figure: &MetricFigure,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if figure.effects.iter().all(|effect| effect.points.is_empty()) {
        return Ok(());
    }
    let published: Vec<&[(String, f64)]> = figure
        .published
        .iter()
        .map(|line| line.times.as_slice())
        .collect();
    let places = effect_places(figure, &published);
    let mut lines = Vec::new();
    let mut names = Vec::new();
    for (index, effect) in figure.effects.iter().enumerate() {
        let style = style_of(figure, &effect.name, index);
        names.push((
            style,
            false,
            format!("{} against {}", effect.name, effect.against),
        ));
        let points = effect.points.iter().filter_map(|point| {
            let place = if figure.axis.is_some() {
                &point.x
            } else {
                &effect.name
            };
            Some(Point {
                place: place_of(&places, place)?,
                value: point.times,
                interval: point.interval,
                words: format!(
                    "{}: {} times as good",
                    at(&effect.name, &point.x),
                    measured::times_with(point.times, point.interval)
                ),
            })
        });
        lines.push(Line {
            style,
            is_foreign: false,
            points: points.collect(),
            dots: Vec::new(),
        });
    }
    for (index, line) in figure
        .published
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.times.is_empty())
    {
        let style = style_of(figure, &line.name, index);
        names.push((style, true, format!("{}, published", line.name)));
        let points = line.times.iter().filter_map(|(x, times)| {
            let place = if figure.axis.is_some() { x } else { &line.name };
            Some(Point {
                place: place_of(&places, place)?,
                value: *times,
                interval: None,
                words: format!(
                    "published, {}: {} times as good",
                    at(&line.name, x),
                    measured::times(*times)
                ),
            })
        });
        lines.push(Line {
            style,
            is_foreign: true,
            points: points.collect(),
            dots: Vec::new(),
        });
    }
    let bands = bands(document, figure);
    let keys: Vec<(&str, String)> = bands
        .iter()
        .map(|band| (band.class, band.words.clone()))
        .collect();
    let chart = Chart {
        label: format!(
            "how many times better, {} by {}",
            figure.metric.name,
            x_title(figure)
        ),
        x_title: x_title(figure),
        places,
        are_names: figure.axis.is_none(),
        y_title: "times as good; 1 is no difference".into(),
        height: Height::Ratio,
        bands,
        lines,
    };
    put(&chart, &names, &keys, &sources(figure), out)
}

fn effect_places(figure: &MetricFigure, published: &[&[(String, f64)]]) -> Vec<String> {
    if figure.axis.is_some() {
        return places(figure, published);
    }
    let names = figure.effects.iter().map(|effect| effect.name.clone());
    names.collect()
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
        bands.push(Band {
            class: "margin",
            values: [1.0 - margin, 1.0 / (1.0 - margin)],
            words: format!(
                "no matter: below {} %",
                measured::figure((margin * 1e4).round() / 1e2)
            ),
        });
    }
    bands
}

fn sources(figure: &MetricFigure) -> String {
    let mut sources: Vec<&str> = figure
        .published
        .iter()
        .map(|line| line.source.as_str())
        .collect();
    sources.dedup();
    match sources.is_empty() {
        true => String::new(),
        false => format!("Published: {}.", sources.join("; ")),
    }
}

/// Writes legend, both widths and caption.
fn put(
    chart: &Chart,
    names: &[(usize, bool, String)],
    keys: &[(&str, String)],
    caption: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut text = String::from("<figure class=chart>\n<p class=key>");
    let drawn = (|| {
        for (style, is_foreign, name) in names {
            text.push_str("<span>");
            swatch(*style, *is_foreign, &mut text)?;
            text.push_str(&format!("{}</span> ", Esc(name)));
        }
        for (class, words) in keys {
            text.push_str(&format!(
                "<span><i class={class}></i>{}</span> ",
                Esc(words)
            ));
        }
        text.push_str("</p>\n");
        chart.svg(Width::Wide, &mut text)?;
        chart.svg(Width::Narrow, &mut text)
    })();
    drawn.map_err(io::Error::other)?;
    if !caption.is_empty() {
        text.push_str(&format!("<figcaption>{}</figcaption>\n", Esc(caption)));
    }
    text.push_str("</figure>\n");
    out.write_all(text.as_bytes())
}

/// The same as a table, for those who cannot see or want to copy.
fn numbers(
    document: &ExperimentDocument,
    figure: &MetricFigure,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let x = figure.axis.as_ref().map_or("", |axis| axis.name.as_str());
    writeln!(
        out,
        "<details class=folded><summary>The numbers</summary>\n<div class=wide><table>\n<thead><tr><th>Arm</th>\
         <th>{}</th><th class=n>Median</th><th class=n>From</th><th class=n>To</th><th>Runs</th></tr></thead>\n<tbody>",
        Esc(x)
    )?;
    for line in &figure.lines {
        for point in &line.points {
            let [low, high] = measured::ends(point);
            write!(
                out,
                "<tr><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{low}</td><td class=n>{high}</td><td class=runs>",
                Esc(&line.arm),
                Esc(&point.x),
                measured::figure(point.median)
            )?;
            for dot in &point.dots {
                run_value(document, &dot.run, &measured::figure(dot.value), out)?;
            }
            out.write_all(b"</td></tr>\n")?;
        }
    }
    out.write_all(b"</tbody></table></div>\n</details>\n")?;
    for words in figure
        .lines
        .iter()
        .filter_map(|line| measured::slope(figure, line))
    {
        writeln!(out, "<p class=q>{}</p>", Esc(words))?;
    }
    Ok(())
}

fn run_value(
    document: &ExperimentDocument,
    id: &str,
    value: &str,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let run = document.runs.iter().find(|run| run.id == id);
    match run.and_then(runs::raw_file) {
        Some(link) => write!(
            out,
            "<a href=\"{}\" title=\"{}\">{value}</a> ",
            Esc(link),
            Esc(id)
        ),
        None => write!(out, "{value} "),
    }
}
