//! Shares of a whole, histograms and points.

use std::collections::BTreeSet;
use std::io;

use super::Esc;
use crate::view::picture::{Histogram, Shares};
use crate::words::{self, bytes, count};

/// Parts of a whole side by side, and named below.
pub(super) fn shares(own: &Shares, out: &mut dyn io::Write) -> io::Result<()> {
    if own.total == 0 {
        return Ok(());
    }
    let percent = |part: u64| words::percent(part, own.total);
    write!(
        out,
        "<svg class=\"strip ledger\" viewBox=\"0 0 1000 24\" preserveAspectRatio=none role=img aria-label=\"{}\">",
        own.label
    )?;
    let mut left = 0.0;
    for (part, class, words) in &own.parts {
        let width = *part as f64 * 1000.0 / own.total as f64;
        write!(
            out,
            "<rect class={class} x={left:.1} y=0 width={width:.1} height=24><title>{words}: {}, {} %</title></rect>",
            bytes(*part),
            percent(*part)
        )?;
        left += width;
    }
    let parts = own.parts.iter().filter(|(part, _, _)| *part > 0);
    let named = parts.map(|(part, _, words)| format!("{words} {} %", percent(*part)));
    let named = Vec::from_iter(named).join(" \u{b7} ");
    writeln!(out, "</svg>\n<p class=q>{named}</p>")
}

/// One bar a value, or a range of values.
pub(super) fn histogram(own: &Histogram, out: &mut dyn io::Write) -> io::Result<()> {
    let most = own.bars.iter().map(|(often, _)| *often).max().unwrap_or(1);
    let width = 1000.0 / own.bars.len().max(1) as f64;
    write!(
        out,
        "<figure><figcaption class=q>{0}</figcaption><svg class=\"strip bars\" viewBox=\"0 0 1000 80\" preserveAspectRatio=none role=img aria-label=\"{0}\">",
        Esc(own.caption)
    )?;
    let bars = own.bars.iter().enumerate();
    for (bar, (often, words)) in bars.filter(|(_, (often, _))| *often > 0) {
        let height = (*often as f64 / most.max(1) as f64 * 78.0).max(1.0);
        write!(
            out,
            "<rect class=l x={:.1} y={:.1} width={:.1} height={height:.1}><title>{}: {}</title></rect>",
            bar as f64 * width,
            80.0 - height,
            (width - 0.6).max(0.6),
            Esc(words),
            count(*often)
        )?;
    }
    let [first, last] = &own.ends;
    ends(first, last, out)
}

/// The first number to the right, the second upwards.
pub(super) fn scatter(
    caption: &str,
    points: &[[u64; 2]],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let most = |of: fn(&[u64; 2]) -> u64| points.iter().map(of).max().unwrap_or(0);
    let (right, top) = (most(|[x, _]| *x), most(|[_, y]| *y));
    write!(
        out,
        "<figure class=strip><figcaption class=q>{0}</figcaption><svg class=scatter viewBox=\"0 0 1000 400\" preserveAspectRatio=none role=img aria-label=\"{0}\">",
        Esc(caption)
    )?;
    // Points of one spot of the picture are drawn once.
    let spots: BTreeSet<(u64, u64)> = points
        .iter()
        .map(|[x, y]| (spot(*x, right, 249), 98 - spot(*y, top, 98)))
        .collect();
    out.write_all(b"<path class=l d=\"")?;
    for (x, y) in spots {
        write!(out, "M{} {}h5v5h-5z", x * 4, y * 4)?;
    }
    out.write_all(b"\"/>")?;
    ends(
        &format!("rank 0 to {}", count(right)),
        &format!("page 0 to {}", count(top)),
        out,
    )
}

/// In which of so many steps a number of at most `most` lies.
fn spot(number: u64, most: u64, steps: u64) -> u64 {
    let step = u128::from(number) * u128::from(steps) / u128::from(most.max(1));
    u64::try_from(step).unwrap_or(steps).min(steps)
}

fn ends(first: &str, last: &str, out: &mut dyn io::Write) -> io::Result<()> {
    let (first, last) = (Esc(first), Esc(last));
    writeln!(
        out,
        "</svg><p class=\"q ends\"><span>{first}</span><span>{last}</span></p></figure>"
    )
}
