//! Relations as tiles of their size, in each the part that would come back.

use std::io;

use super::Esc;
use crate::treemap::tiles;
use crate::view::picture::{Space, Treemap};
use crate::words::bytes;

/// Widths and heights of the two drawings, and their classes; a style sheet shows one.
const DRAWINGS: [(&str, f64, f64); 2] = [
    ("wide-chart", 1136.0, 360.0),
    ("narrow-chart", 358.0, 460.0),
];
/// Room that a letter takes, and a line.
const LETTER: f64 = 7.2;
const LINE: f64 = 17.0;
/// PostgreSQL has no longer name of a relation, with its schema before it.
const NAME_LETTERS_MAX: usize = 128;

/// What the colours mean.
const LEGEND: [(&str, &str); 5] = [
    ("h", "table"),
    ("l", "index"),
    ("t", "TOAST"),
    ("d", "other"),
    ("f", "many small ones"),
];

pub(super) fn treemap(own: &Treemap, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<figure class=treemap>\n")?;
    let sizes: Vec<u64> = own.tiles.iter().map(|tile| tile.bytes).collect();
    for (class, width, height) in DRAWINGS {
        write!(
            out,
            "<svg class={class} viewBox=\"0 0 {width} {height}\" role=group aria-label=\"relations by size\">"
        )?;
        for (space, tile) in own.tiles.iter().zip(tiles(&sizes, width, height)) {
            self::tile(space, tile, out)?;
        }
        out.write_all(b"</svg>\n")?;
    }
    out.write_all(b"<figcaption class=legend>")?;
    let is_used = |class: &str| own.tiles.iter().any(|tile| tile.class == class);
    for (class, words) in LEGEND.iter().filter(|(class, _)| is_used(class)) {
        write!(out, "<i class={class}>{words}</i> ")?;
    }
    if own.tiles.iter().any(|tile| tile.freed > 0) {
        out.write_all(b"<i class=freed>what would come back</i>")?;
    }
    out.write_all(b"</figcaption></figure>\n")
}

fn tile(own: &Space, [x, y, width, height]: [f64; 4], out: &mut dyn io::Write) -> io::Result<()> {
    let link = own.link.as_deref();
    if let Some(link) = link {
        write!(out, "<a href=\"#{}\">", Esc(link))?;
    }
    let (name, size) = (Esc(&own.name), bytes(own.bytes));
    let back = match own.freed {
        0 => String::new(),
        freed => format!(", of which about {} would come back", bytes(freed)),
    };
    write!(
        out,
        "<g><title>{name}: {size}{back}</title>\
         <rect class={} x={x:.1} y={y:.1} width={width:.1} height={height:.1} />",
        own.class
    )?;
    if own.freed > 0 && own.bytes > 0 {
        let part = height * (own.freed as f64 / own.bytes as f64).min(1.0);
        write!(
            out,
            "<rect class=freed x={x:.1} y={:.1} width={width:.1} height={part:.1} />",
            y + height - part
        )?;
    }
    let room = lines_in(width, height);
    let name = own.name.trim_start_matches("public.");
    let mut lines = folded(name, width, room.saturating_sub(1).max(1));
    lines.push(size);
    for (line, number) in lines.iter().zip(1..=room) {
        write!(
            out,
            "<text x={:.1} y={:.1}>{}</text>",
            x + 6.0,
            y + f64::from(number) * LINE,
            Esc(cut(line, width))
        )?;
    }
    out.write_all(if link.is_some() { b"</g></a>" } else { b"</g>" })
}

/// So many lines stand in a tile.
fn lines_in(width: f64, height: f64) -> u8 {
    match height {
        _ if width < 10.0 * LETTER => 0,
        _ if height >= 3.7 * LINE => 3,
        _ if height >= 2.7 * LINE => 2,
        _ if height >= 1.7 * LINE => 1,
        _ => 0,
    }
}

/// A name in as few lines as hold it, of at most so many.
fn folded(name: &str, width: f64, lines_max: u8) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut lines = Vec::new();
    let mut rest = letters.as_slice();
    while lines.len() + 1 < usize::from(lines_max) && rest.len() > letters_in(width) {
        let (line, more) = rest.split_at(letters_in(width));
        lines.push(line.iter().collect());
        rest = more;
    }
    lines.push(cut(&String::from_iter(rest), width));
    lines
}

/// Letters that a line of a tile has room for.
fn letters_in(width: f64) -> usize {
    let fits = |letters: &usize| *letters as f64 * LETTER <= width - 14.0;
    (1..=NAME_LETTERS_MAX).take_while(fits).count().max(1)
}

/// As much of a line as has room.
fn cut(line: &str, width: f64) -> String {
    let room = letters_in(width);
    if line.chars().count() <= room {
        return line.to_owned();
    }
    let kept = line.chars().take(room - 1);
    kept.chain(['\u{2026}']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_and_small_tiles_have_none() {
        assert_eq!(cut("docs", 100.0), "docs");
        assert_eq!(cut("a_very_long_name", 72.0), "a_very_\u{2026}");
        assert_eq!(cut("a_very_l", 72.0), "a_very_l");
        assert_eq!(
            folded("a_very_long_name", 72.0, 2),
            ["a_very_l", "ong_name"]
        );
        assert_eq!(lines_in(40.0, 100.0), 0);
        assert_eq!(lines_in(100.0, 50.0), 2);
    }
}
