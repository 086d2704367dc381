//! Charts as SVG, without a request and without a script: lines with bands and dots over a list of
//! places.
//!
//! A line has its colour (Okabe and Ito's, told apart by colour-blind people), its shape and, when
//! it is not our own measurement, dashes; the style sheet gives colours for light, dark and paper.
//! Everything carries its value in a `<title>`. The page's script adds zoom and quick tooltips: it
//! needs the group `plot`, whose marks are placed by `transform`, and the scale of y in the
//! attributes `data-y`.

mod draw;
mod scale;
mod ticks;

use std::fmt;

pub(crate) use scale::Spacing;

use scale::{Places, Scale};

/// Styles repeat after this many lines.
pub(crate) const STYLES: usize = 7;

/// One value at a place.
pub(crate) struct Point {
    /// Number of the place.
    pub(crate) place: usize,
    /// The value.
    pub(crate) value: f64,
    /// Where it may as well be.
    pub(crate) interval: Option<[f64; 2]>,
    /// What the tooltip says.
    pub(crate) words: String,
}

/// A single run.
pub(crate) struct Dot {
    /// Number of the place.
    pub(crate) place: usize,
    /// The value.
    pub(crate) value: f64,
    /// What the tooltip says.
    pub(crate) words: String,
    /// A link that is safe to follow, to its raw file.
    pub(crate) link: Option<String>,
}

/// One line.
pub(crate) struct Line {
    /// Which colour and shape.
    pub(crate) style: usize,
    /// Not measured here: dashed and hollow.
    pub(crate) is_foreign: bool,
    /// Joined where places are ordered.
    pub(crate) points: Vec<Point>,
    /// Every run.
    pub(crate) dots: Vec<Dot>,
}

/// A band over all places.
pub(crate) struct Band {
    /// Class of the style sheet.
    pub(crate) class: &'static str,
    /// From and to.
    pub(crate) values: [f64; 2],
    /// What the tooltip says.
    pub(crate) words: String,
}

/// How y is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Height {
    /// Logarithmic where the values span much, else linear.
    ByRange,
    /// Ratios: logarithmic, with a line at 1.
    Ratio,
}

/// A chart.
pub(crate) struct Chart {
    /// For those who do not see it.
    pub(crate) label: String,
    /// Under the x axis.
    pub(crate) x_title: String,
    /// The places of the x axis.
    pub(crate) places: Vec<String>,
    /// Places are names even where they look like numbers: `13` and `14`.
    pub(crate) are_names: bool,
    /// Beside the y axis.
    pub(crate) y_title: String,
    /// How y is drawn.
    pub(crate) height: Height,
    /// Behind the lines.
    pub(crate) bands: Vec<Band>,
    /// The lines, the first in front.
    pub(crate) lines: Vec<Line>,
}

/// For which width a chart is drawn; a page holds it for both and its style sheet shows one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    /// A desk or a sheet of paper.
    Wide,
    /// A phone.
    Narrow,
}

/// Room around the plot and its size.
struct Frame {
    class: &'static str,
    width: f64,
    height: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x_ticks: usize,
    y_ticks: usize,
}

impl Width {
    fn frame(self) -> Frame {
        match self {
            Width::Wide => Frame {
                class: "wide-chart",
                width: 860.0,
                height: 380.0,
                left: 72.0,
                right: 16.0,
                top: 28.0,
                bottom: 46.0,
                x_ticks: 17,
                y_ticks: 7,
            },
            Width::Narrow => Frame {
                class: "narrow-chart",
                width: 340.0,
                height: 300.0,
                left: 52.0,
                right: 8.0,
                top: 26.0,
                bottom: 42.0,
                x_ticks: 7,
                y_ticks: 6,
            },
        }
    }
}

impl Frame {
    fn plot(&self) -> [f64; 2] {
        [
            self.width - self.left - self.right,
            self.height - self.top - self.bottom,
        ]
    }
}

impl Chart {
    /// Writes the chart for one width.
    pub(crate) fn svg(&self, width: Width, out: &mut dyn fmt::Write) -> fmt::Result {
        let frame = width.frame();
        let [plot_width, plot_height] = frame.plot();
        let places = Places::new(&self.places, self.spacing(), plot_width);
        let scale = Scale::of(self.height, &self.values(), plot_height);
        draw::chart(self, &frame, &places, &scale, out)
    }

    /// How the places are spaced, whatever the width.
    pub(crate) fn spacing(&self) -> Spacing {
        if self.are_names {
            return Spacing::Words;
        }
        Spacing::of(&self.places)
    }

    /// Every value that must be seen.
    fn values(&self) -> Vec<f64> {
        let bands = self.bands.iter().flat_map(|band| band.values);
        let lines = self.lines.iter().flat_map(|line| {
            let points = line.points.iter().map(|point| point.value);
            let ends = line
                .points
                .iter()
                .filter_map(|point| point.interval)
                .flatten();
            points
                .chain(ends)
                .chain(line.dots.iter().map(|dot| dot.value))
        });
        bands
            .chain(lines)
            .filter(|value| value.is_finite())
            .collect()
    }
}

/// The mark of a style in a legend, as an SVG of its own.
pub(crate) fn swatch(style: usize, is_foreign: bool, out: &mut dyn fmt::Write) -> fmt::Result {
    let class = draw::class(style, is_foreign);
    write!(
        out,
        "<svg class=\"swatch {class}\" width=32 height=14 viewBox=\"0 0 32 14\" aria-hidden=true>\
         <path class=line d=\"M1 7H31\"/>{}</svg>",
        draw::shape(style, 16.0, 7.0)
    )
}

#[cfg(test)]
mod tests;
