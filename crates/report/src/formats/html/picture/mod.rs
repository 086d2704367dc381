//! Drawings of a page, each as an SVG that carries its values as words.

mod bars;
mod curves;
mod map;

use std::io;

use super::escape::Esc;
use crate::hex;
use crate::view::picture::{CoverageBar, Picture};
use crate::words::{self, byte_range};

pub(super) fn picture(own: &Picture, out: &mut dyn io::Write) -> io::Result<()> {
    match own {
        Picture::Map(own) => map::write(own, out),
        Picture::Strip(len, ranges) => strip(*len, ranges, out),
        Picture::Shares(own) => bars::shares(own, out),
        Picture::Histogram(own) => bars::histogram(own, out),
        Picture::Scatter(caption, points) => bars::scatter(caption, points, out),
        Picture::Curves(own) => curves::curves(own, out),
    }
}

/// Checked, skipped, unreadable: a part that exists is never thinner than can be seen.
pub(super) fn coverage(own: &CoverageBar, out: &mut dyn io::Write) -> io::Result<()> {
    const WIDTH: u64 = 1000;
    const THIN: u64 = 8;
    let part = |number: u64| match (number, own.seen) {
        (0, _) | (_, 0) => 0,
        (number, seen) => {
            let share = u128::from(number.min(seen)) * u128::from(WIDTH) / u128::from(seen);
            u64::try_from(share).unwrap_or(WIDTH).max(THIN)
        }
    };
    let (skipped, unreadable) = (part(own.skipped), part(own.unreadable));
    let checked = part(own.checked).min(WIDTH.saturating_sub(skipped + unreadable));
    let percent = words::percent(own.checked, own.seen);
    write!(
        out,
        "<svg class=bar viewBox=\"0 0 {WIDTH} 10\" preserveAspectRatio=none role=img \
         aria-label=\"{percent} percent checked\"><rect class=rest width={WIDTH} height=10 />"
    )?;
    let parts = [
        ("checked", 0, checked),
        ("skipped", checked, skipped),
        ("unread", checked + skipped, unreadable),
    ];
    for (class, x, width) in parts.into_iter().filter(|(_, _, width)| *width > 0) {
        write!(out, "<rect class={class} x={x} width={width} height=10 />")?;
    }
    out.write_all(b"</svg>\n")
}

/// The page drawn to scale.
fn strip(
    len: usize,
    ranges: &[pgclinic_model::document::HexRange],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    write!(
        out,
        "<figure class=strip><svg viewBox=\"0 0 {len} 100\" preserveAspectRatio=none role=img \
         aria-label=\"the page drawn to scale\"><rect class=o width={len} height=100 />"
    )?;
    for range in ranges {
        let bytes = hex::clamp(range.bytes, len);
        write!(
            out,
            "<rect class={} x={} width={} height=100><title>{}, {}</title></rect>",
            super::dump::part_class(&range.part),
            bytes.start,
            bytes.len(),
            Esc(&range.label),
            byte_range(range.bytes)
        )?;
    }
    writeln!(
        out,
        "</svg><figcaption><span>byte 0</span><span>{len}</span></figcaption></figure>"
    )
}
