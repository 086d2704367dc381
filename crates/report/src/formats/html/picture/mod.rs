//! Drawings of a page, each as an SVG that carries its values as words.

mod bars;
mod curves;
mod map;
mod treemap;

use std::io;

use pgclinic_model::document::HexRange;

use super::escape::Esc;
use crate::hex;
use crate::view::picture::{BarPart, Fate, PartsBar, Picture, Strip, StripMark};
use crate::words::byte_range;

pub(super) fn picture(own: &Picture, out: &mut dyn io::Write) -> io::Result<()> {
    match own {
        Picture::Map(own) => map::write(own, out),
        Picture::Strip(own) => strip(own, out),
        Picture::Shares(own) => bars::shares(own, out),
        Picture::Treemap(own) => treemap::treemap(own, out),
        Picture::Histogram(own) => bars::histogram(own, out),
        Picture::Scatter(caption, points) => bars::scatter(caption, points, out),
        Picture::Curves(own) => curves::curves(own, out),
    }
}

/// The parts side by side, each named below. What is not as it should be is never thinner than can
/// be seen.
pub(super) fn parts_bar(own: &PartsBar, out: &mut dyn io::Write) -> io::Result<()> {
    const WIDTH: u64 = 1000;
    const THIN: u64 = 8;
    let total: u64 = own.parts.iter().map(|part| part.number).sum();
    let width = |part: &BarPart| {
        let share = u128::from(part.number) * u128::from(WIDTH) / u128::from(total.max(1));
        u64::try_from(share).unwrap_or(WIDTH).max(THIN)
    };
    let (sound, rest): (Vec<_>, Vec<_>) =
        own.parts.iter().partition(|part| part.fate == Fate::Sound);
    let taken: u64 = rest.iter().map(|part| width(part)).sum();
    let words: Vec<&str> = own.parts.iter().map(|part| part.words.as_str()).collect();
    write!(
        out,
        "<svg class=bar viewBox=\"0 0 {WIDTH} 10\" preserveAspectRatio=none role=img \
         aria-label=\"{}\">",
        Esc(words.join(", "))
    )?;
    let mut x = 0;
    for part in sound.iter().chain(&rest) {
        let width = match part.fate {
            Fate::Sound => width(part).min(WIDTH.saturating_sub(taken)),
            _ => width(part),
        };
        let class = fate_class(part.fate);
        write!(out, "<rect class={class} x={x} width={width} height=10 />")?;
        x += width;
    }
    out.write_all(b"</svg>\n<p class=parts>")?;
    for part in &own.parts {
        let (class, words) = (fate_class(part.fate), Esc(&part.words));
        write!(out, "<span><i class={class}></i>{words}</span>")?;
    }
    out.write_all(b"</p>\n")
}

fn fate_class(fate: Fate) -> &'static str {
    match fate {
        Fate::Sound => "sound",
        Fate::Doubtful => "doubtful",
        Fate::Bad => "bad",
        Fate::Missing => "missing",
        Fate::Unknown => "unknown",
    }
}

/// The page drawn to scale, what is wrong marked below it, with an axis in bytes.
fn strip(own: &Strip, out: &mut dyn io::Write) -> io::Result<()> {
    const QUARTERS: usize = 4;
    let len = own.len;
    write!(
        out,
        "<figure class=strip><svg viewBox=\"0 0 {len} 100\" preserveAspectRatio=none role=group \
         aria-label=\"the page drawn to scale\"><rect class=o width={len} height=100 />"
    )?;
    for block in blocks(&own.ranges) {
        let bytes = hex::clamp(block.bytes, len);
        let (first, last) = (Esc(block.first), Esc(block.last));
        write!(
            out,
            "<rect class={} x={} width={} height=100><title>{first}",
            block.class,
            bytes.start,
            bytes.len(),
        )?;
        if block.first != block.last {
            write!(out, " to {last}")?;
        }
        write!(out, ", {}</title></rect>", byte_range(block.bytes))?;
    }
    for mark in &own.marks {
        strip_mark(mark, len, out)?;
    }
    out.write_all(b"</svg><figcaption>")?;
    for quarter in 0..=QUARTERS {
        write!(out, "<span>{}</span>", len * quarter / QUARTERS)?;
    }
    out.write_all(b"</figcaption></figure>\n")
}

/// Neighbours of one colour.
struct StripBlock<'a> {
    bytes: [u64; 2],
    class: &'static str,
    first: &'a str,
    last: &'a str,
}

/// A page has more parts than a screen has pixels, so neighbours of one colour are drawn as one.
fn blocks(ranges: &[HexRange]) -> Vec<StripBlock<'_>> {
    let mut blocks: Vec<StripBlock<'_>> = Vec::new();
    for range in ranges {
        let (class, label) = (super::dump::part_class(&range.part), range.label.as_str());
        let [start, end] = range.bytes;
        match blocks.last_mut() {
            Some(block) if block.class == class && block.bytes[1] == start => {
                block.bytes[1] = end;
                block.last = label;
            }
            _ => blocks.push(StripBlock {
                bytes: range.bytes,
                class,
                first: label,
                last: label,
            }),
        }
    }
    blocks
}

/// Never thinner than can be seen and pointed at.
fn strip_mark(own: &StripMark, len: usize, out: &mut dyn io::Write) -> io::Result<()> {
    let width = own.bytes.len().max(len / 256);
    let x = own.bytes.start.min(len.saturating_sub(width));
    if let Some(link) = &own.link {
        write!(out, "<a href=\"#{}\">", Esc(link))?;
    }
    write!(
        out,
        "<rect class=x x={x} y=60 width={width} height=40><title>{}</title></rect>",
        Esc(&own.words)
    )?;
    out.write_all(if own.link.is_some() { b"</a>" } else { b"" })
}
