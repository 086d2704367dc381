//! The SVG itself.

use std::fmt;

use super::scale::{Places, Scale, Spacing};
use super::{Band, Chart, Dot, Frame, Height, Line, Point, STYLES, ticks};
use crate::formats::html::escape::Esc;

/// Pixels between lines that share a place of words.
const BESIDE: f64 = 13.0;

/// Pixels between the runs of one place.
const DOT_STEP: f64 = 3.0;

/// What everything is drawn with.
struct Pen<'a> {
    places: &'a Places,
    scale: &'a Scale,
    /// Lines that stand beside each other at a place; 1 where no place has two.
    beside: usize,
}

pub(super) fn chart(
    chart: &Chart,
    frame: &Frame,
    places: &Places,
    scale: &Scale,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let [width, height] = frame.plot();
    let Frame { left, top, .. } = frame;
    write!(
        out,
        "<svg class={} viewBox=\"0 0 {} {}\" width={} height={} role=img aria-label=\"{}\" \
         data-y=\"{} {} {}\">",
        frame.class,
        frame.width,
        frame.height,
        frame.width,
        frame.height,
        Esc(&chart.label),
        if scale.is_log { "log" } else { "linear" },
        scale.values[0],
        scale.values[1],
    )?;
    axes(chart, frame, places, scale, out)?;
    write!(
        out,
        "<svg class=plot x={left} y={top} width={width} height={height}>\
         <rect class=ground width={width} height={height} /><g class=moved>"
    )?;
    let pen = Pen {
        places,
        scale,
        beside: beside(chart),
    };
    for band in &chart.bands {
        pen.flat_band(band, width, out)?;
    }
    if chart.height == Height::Ratio {
        let y = round(scale.at(1.0));
        write!(out, "<path class=one d=\"M0 {y}H{width}\"/>")?;
    }
    for (index, line) in chart.lines.iter().enumerate().rev() {
        pen.line(index, line, out)?;
    }
    out.write_str("</g></svg></svg>\n")
}

fn axes(
    chart: &Chart,
    frame: &Frame,
    places: &Places,
    scale: &Scale,
    out: &mut dyn fmt::Write,
) -> fmt::Result {
    let [width, height] = frame.plot();
    let (left, top) = (frame.left, frame.top);
    write!(
        out,
        "<text class=title x=0 y=14>{}</text>",
        Esc(&chart.y_title)
    )?;
    write!(out, "<g class=y transform=\"translate({left} {top})\">")?;
    let values = if scale.is_log {
        ticks::log(scale.values, frame.y_ticks)
    } else {
        ticks::linear(scale.values, frame.y_ticks)
    };
    for value in values {
        let y = round(scale.at(value));
        let words = ticks::words(value);
        write!(
            out,
            "<g class=tick transform=\"translate(0 {y})\"><path d=\"M0 0H{width}\"/>\
             <text x=-8 y=4>{words}</text></g>"
        )?;
    }
    let bottom = top + height;
    write!(
        out,
        "</g><g class=x transform=\"translate({left} {bottom})\">"
    )?;
    let shown = shown_places(places.all(), &chart.places, frame);
    for (place, words) in chart.places.iter().enumerate() {
        let Some(x) = places.at(place) else { continue };
        let words = if shown.contains(&place) {
            words.as_str()
        } else {
            ""
        };
        write!(
            out,
            "<g class=tick transform=\"translate({} 0)\"><path d=\"M0 0V5\"/><text y=18>{}</text></g>",
            round(x),
            Esc(words)
        )?;
    }
    write!(
        out,
        "</g><text class=\"title end\" x={} y={}>{}</text>",
        left + width,
        frame.height - 6.0,
        Esc(&chart.x_title)
    )
}

/// The places whose names find room; the first and those that follow at a distance.
fn shown_places(at: &[f64], names: &[String], frame: &Frame) -> Vec<usize> {
    let mut shown = Vec::new();
    let mut free_from = f64::NEG_INFINITY;
    let slot = frame.plot()[0] / f64::from(u32::try_from(frame.x_ticks).unwrap_or(1));
    for (place, (x, name)) in at.iter().zip(names).enumerate() {
        let letters = f64::from(u32::try_from(name.chars().count()).unwrap_or(u32::MAX));
        let half = letters * 3.4;
        if x - half >= free_from {
            shown.push(place);
            free_from = x + half + slot.min(8.0);
        }
    }
    shown
}

impl Pen<'_> {
    fn flat_band(&self, band: &Band, width: f64, out: &mut dyn fmt::Write) -> fmt::Result {
        let [one, other] = band.values.map(|value| self.scale.at(value));
        write!(
            out,
            "<rect class={} width={width} y={} height={}><title>{}</title></rect>",
            band.class,
            round(one.min(other)),
            round((one - other).abs()),
            Esc(&band.words)
        )
    }

    /// Pixels of a place for one of the lines: beside each other where places are words.
    fn x(&self, place: usize, line: usize) -> Option<f64> {
        let x = self.places.at(place)?;
        if self.places.spacing != Spacing::Words || self.beside < 2 {
            return Some(x);
        }
        let middle = (float(self.beside) - 1.0) / 2.0;
        let step = BESIDE.min(60.0 / float(self.beside));
        Some(x + (float(line) - middle) * step)
    }

    fn line(&self, index: usize, line: &Line, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(
            out,
            "<g class=\"series {}\">",
            class(line.style, line.is_foreign)
        )?;
        let at: Vec<(f64, &Point)> = line
            .points
            .iter()
            .filter_map(|point| Some((self.x(point.place, index)?, point)))
            .collect();
        if self.places.spacing == Spacing::Words {
            self.whiskers(&at, out)?;
        } else {
            self.ribbon(&at, out)?;
            self.joined(&at, out)?;
        }
        self.dots(index, &line.dots, out)?;
        for (x, point) in at {
            write!(
                out,
                "<g class=mark transform=\"translate({} {})\"><g>{}</g><title>{}</title></g>",
                round(x),
                round(self.scale.at(point.value)),
                shape(line.style, 0.0, 0.0),
                Esc(&point.words)
            )?;
        }
        out.write_str("</g>")
    }

    fn whiskers(&self, at: &[(f64, &Point)], out: &mut dyn fmt::Write) -> fmt::Result {
        for (x, point) in at {
            if let Some([low, high]) = point.interval {
                let (x, low, high) = (round(*x), self.scale.at(low), self.scale.at(high));
                write!(
                    out,
                    "<path class=whisker d=\"M{x} {}V{}\"/>",
                    round(low),
                    round(high)
                )?;
            }
        }
        Ok(())
    }

    /// The intervals as one area: along the lower ends, and back along the upper ones.
    fn ribbon(&self, at: &[(f64, &Point)], out: &mut dyn fmt::Write) -> fmt::Result {
        let ends: Vec<(f64, [f64; 2])> = at
            .iter()
            .filter_map(|(x, point)| Some((*x, point.interval?)))
            .collect();
        if ends.len() < 2 {
            return self.whiskers(at, out);
        }
        out.write_str("<path class=ribbon d=\"")?;
        let lower = ends.iter().map(|(x, [low, _])| (*x, *low));
        let upper = ends.iter().rev().map(|(x, [_, high])| (*x, *high));
        self.path(lower.chain(upper), out)?;
        out.write_str("Z\"/>")
    }

    fn joined(&self, at: &[(f64, &Point)], out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str("<path class=line d=\"")?;
        self.path(at.iter().map(|(x, point)| (*x, point.value)), out)?;
        out.write_str("\"/>")
    }

    fn path(
        &self,
        points: impl Iterator<Item = (f64, f64)>,
        out: &mut dyn fmt::Write,
    ) -> fmt::Result {
        for (index, (x, value)) in points.enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            write!(out, "{letter}{} {}", round(x), round(self.scale.at(value)))?;
        }
        Ok(())
    }

    fn dots(&self, index: usize, dots: &[Dot], out: &mut dyn fmt::Write) -> fmt::Result {
        for (number, dot) in dots.iter().enumerate() {
            let Some(x) = self.x(dot.place, index) else {
                continue;
            };
            let same = |other: &&Dot| other.place == dot.place;
            let before = dots.iter().take(number).filter(same).count();
            let all = dots.iter().filter(same).count();
            let step = DOT_STEP.min(18.0 / float(all));
            let x = x + (float(before) - (float(all) - 1.0) / 2.0) * step;
            let circle = format!(
                "<g class=dot transform=\"translate({} {})\"><circle r=2.5 /><title>{}</title></g>",
                round(x),
                round(self.scale.at(dot.value)),
                Esc(&dot.words)
            );
            match &dot.link {
                Some(link) => write!(out, "<a href=\"{}\" tabindex=-1>{circle}</a>", Esc(link))?,
                None => out.write_str(&circle)?,
            }
        }
        Ok(())
    }
}

/// How many lines must stand beside each other so that none covers another.
fn beside(chart: &Chart) -> usize {
    let mut taken: Vec<usize> = Vec::new();
    for line in &chart.lines {
        taken.extend(line.points.iter().map(|point| point.place));
    }
    let all = taken.len();
    taken.sort_unstable();
    taken.dedup();
    if taken.len() < all {
        chart.lines.len()
    } else {
        1
    }
}

/// The classes of a line.
pub(super) fn class(style: usize, is_foreign: bool) -> String {
    let foreign = if is_foreign { " foreign" } else { "" };
    format!("s{}{foreign}", style % STYLES)
}

/// The shape of a style around a point.
pub(super) fn shape(style: usize, x: f64, y: f64) -> String {
    let drawn = match style % STYLES {
        0 => "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
        1 => "m-4 -4h8v8h-8z",
        2 => "m0 -5l5 8.5h-10z",
        3 => "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
        4 => "m0 5l5 -8.5h-10z",
        5 => "m-1.5 -5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
        _ => "m-5 -3l2 -2l3 3l3 -3l2 2l-3 3l3 3l-2 2l-3 -3l-3 3l-2 -2l3 -3z",
    };
    format!("<path class=shape d=\"M{x} {y}{drawn}\"/>")
}

fn float(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// To a tenth of a pixel, and never anything that is no number.
fn round(pixels: f64) -> f64 {
    let rounded = (pixels * 10.0).round() / 10.0;
    if rounded.is_finite() {
        rounded.clamp(-1e5, 1e5)
    } else {
        0.0
    }
}
