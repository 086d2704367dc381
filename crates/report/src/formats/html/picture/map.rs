//! The map of a damaged fork: one cell a block, or as many blocks as it takes.

use std::io;

use super::Esc;
use crate::view::picture::ForkMap;
use crate::words::{count, plural};

/// Cells in a row of each drawing, and its class; a style sheet shows one.
const DRAWINGS: [(&str, u64); 2] = [("wide-chart", 64), ("narrow-chart", 28)];
/// Side of a cell with its gap, in units of the drawing.
const SIDE: u64 = 10;
/// Room for the numbers of blocks at the left.
const AXIS: u64 = 60;
/// Rows from one number to the next at least.
const ROWS_APART: u64 = 3;

pub(super) fn write(own: &ForkMap, out: &mut dyn io::Write) -> io::Result<()> {
    if own.map.cells == 0 {
        return Ok(());
    }
    out.write_all(b"<figure class=map>")?;
    for (class, columns) in DRAWINGS {
        drawing(own, class, columns.min(own.map.cells), out)?;
    }
    write!(out, "\n<figcaption>{}", Esc(caption(own)))?;
    out.write_all(b"</figcaption></figure>\n")
}

fn drawing(own: &ForkMap, class: &str, columns: u64, out: &mut dyn io::Write) -> io::Result<()> {
    let map = &own.map;
    let (full, rest) = (map.cells / columns, map.cells % columns);
    let (width, height) = (columns * SIDE, map.cells.div_ceil(columns) * SIDE);
    write!(
        out,
        "<svg class={class} viewBox=\"-{AXIS} -1 {} {}\" width={} role=group \
         aria-label=\"map of the blocks of {}\">",
        width + AXIS,
        height + 2,
        width + AXIS,
        Esc(&own.path)
    )?;
    axis(
        map.blocks_per_cell * columns,
        map.cells.div_ceil(columns),
        out,
    )?;
    write!(
        out,
        "<g><title>no damage found</title><path class=sound d=\"M0 0h{width}v{}h-{width}z",
        full * SIDE
    )?;
    if rest > 0 {
        let rest = rest * SIDE;
        write!(out, "M0 {}h{rest}v{SIDE}h-{rest}z", full * SIDE)?;
    }
    out.write_all(b"\"/></g>")?;
    grid(width, height, out)?;
    for cell in &map.damaged {
        let place = [cell.index % columns * SIDE, cell.index / columns * SIDE];
        let [first, end] = cell.blocks;
        let link = own.anchors.range(first..end).next();
        let title = title(cell.blocks, cell.damaged, own.first_missing);
        hurt(place, &title, link.map(|(_, link)| link.as_str()), out)?;
    }
    out.write_all(b"</svg>")
}

/// A crossed cell, which leads to the finding.
fn hurt(
    [x, y]: [u64; 2],
    title: &str,
    link: Option<&str>,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if let Some(link) = link {
        write!(out, "<a href=\"#{link}\">")?;
    }
    write!(
        out,
        "<g><title>{title}</title><rect class=hurt x={x} y={y} width=9 height=9 />\
         <path class=cross d=\"M{} {}l5 5m0-5l-5 5\"/></g>",
        x + 2,
        y + 2
    )?;
    out.write_all(if link.is_some() { b"</a>" } else { b"" })
}

/// The first block of some rows.
fn axis(blocks_a_row: u64, rows: u64, out: &mut dyn io::Write) -> io::Result<()> {
    for row in (0..rows).step_by(usize::try_from(ROWS_APART).unwrap_or(1)) {
        let y = row * SIDE + SIDE - 1;
        let block = count(row.saturating_mul(blocks_a_row));
        write!(out, "<text x=-6 y={y}>{block}</text>")?;
    }
    Ok(())
}

/// Lines between the cells, drawn over them.
fn grid(width: u64, height: u64, out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<path class=grid d=\"")?;
    for x in (SIDE..=width).step_by(10) {
        write!(out, "M{}.5 0v{height}", x - 1)?;
    }
    for y in (SIDE..=height).step_by(10) {
        write!(out, "M0 {}.5h{width}", y - 1)?;
    }
    out.write_all(b"\"/>")
}

fn title([first, end]: [u64; 2], damaged: u64, first_missing: Option<u64>) -> String {
    let is_missing = first_missing.is_some_and(|missing| missing <= first);
    match end - first {
        1 if is_missing => format!("block {first}: missing"),
        1 => format!("block {first}: damaged"),
        _ if is_missing => format!("blocks {first}-{}: missing", end - 1),
        blocks => format!(
            "blocks {first}-{}: {} of {} damaged",
            end - 1,
            count(damaged),
            count(blocks)
        ),
    }
}

fn caption(own: &ForkMap) -> String {
    let map = &own.map;
    let mut words = match own.fork.as_str() {
        "main" => String::new(),
        name => format!("Fork {name}: "),
    };
    let cell = match map.blocks_per_cell {
        1 => "one block".to_owned(),
        blocks => format!("{} blocks", count(blocks)),
    };
    let damaged: u64 = map
        .damaged
        .iter()
        .map(|cell| cell.damaged)
        .fold(0, u64::saturating_add);
    let blocks = plural(own.blocks, "block");
    let missing = own
        .first_missing
        .map(|first| (first, own.blocks - first.min(own.blocks)));
    words.push_str(&match missing {
        None => format!(
            "{blocks}, {} damaged. A cell is {cell}; a crossed one holds damage.",
            count(damaged)
        ),
        Some((first, missing)) => {
            let hurt = match damaged.saturating_sub(missing) {
                0 => String::new(),
                hurt => format!("{} damaged, ", count(hurt)),
            };
            format!(
                "{blocks}, {hurt}{} missing from block {} on. A cell is {cell}; a crossed one is missing or holds damage.",
                count(missing),
                count(first)
            )
        }
    });
    if map.beyond > 0 {
        let beyond = plural(map.beyond, "damaged block");
        words.push_str(&format!(" {beyond} beyond the end of the files."));
    }
    words
}
