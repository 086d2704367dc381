//! The figures of a cluster's relations as a page: a table of all, and of each its pictures.

use std::io;

use pgclinic_diagnose::document::{Figure, MeasureDocument, MeasuredRelation, Spread};
use pgclinic_diagnose::measures::{MEASURES, Unit};

use super::escape::Esc;
use super::{details, shell};
use crate::words::{self, bytes, count, plural};

/// Relations that get figures and pictures of their own.
const WHOLE_MAX: usize = 200;
/// Bars of a picture: more values than these share bars.
const BARS_MAX: u64 = 101;

pub(super) fn render(document: &MeasureDocument, out: &mut dyn io::Write) -> io::Result<()> {
    shell::open("Measurements", out)?;
    shell::kicker("pgclinic measure", &document.target, out)?;
    let word = if document.interrupted {
        "INTERRUPTED"
    } else {
        "MEASURED"
    };
    writeln!(
        out,
        "<section class=\"banner good\">\n<h1>{word}</h1>\n<p class=extent>{}, {} in {}</p>\n</section>",
        plural(document.coverage.relations, "relation"),
        bytes(document.coverage.bytes_seen),
        words::seconds(document.elapsed_s)
    )?;
    shell::facts(&shell::target_facts(&document.target), out)?;
    details::not_checked(&document.coverage.not_checked, out)?;
    let mut relations: Vec<_> = document.relations.iter().collect();
    relations.sort_by_key(|own| std::cmp::Reverse(own.bytes));
    overview(&relations, out)?;
    out.write_all(b"<section>\n<h2>Relation by relation</h2>\n")?;
    let with_figures = relations
        .iter()
        .enumerate()
        .filter(|(_, own)| !own.sections.is_empty());
    for (number, own) in with_figures.take(WHOLE_MAX) {
        whole(number, own, out)?;
    }
    out.write_all(b"</section>\n")?;
    shell::close(&document.tool, out)
}

fn overview(relations: &[&MeasuredRelation], out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(
        b"<section>\n<h2>Relations, the largest first</h2>\n\
          <div class=tools data-filter=\"tbody tr\" data-marks=\"all table index\"></div>\n\
          <div class=wide><table class=board>\n<thead><tr><th>Relation</th><th>Database</th><th>Kind</th><th class=n>Size</th>\
          <th class=n>Rows</th><th class=n>Live %</th><th class=n>Dead %</th><th class=n>Free %</th>\
          <th class=n>Density %</th><th class=n>Fragments %</th></tr></thead>\n<tbody>\n",
    )?;
    for (number, own) in relations.iter().enumerate() {
        let section = if own.sections.contains_key("table") {
            "table"
        } else {
            "index"
        };
        let share = |name: &str| {
            own.real(section, name)
                .map_or_else(String::new, |share| format!("{share:.1}"))
        };
        let kind = own.access_method.as_deref().unwrap_or("");
        writeln!(
            out,
            "<tr data-mark={section}><td><a href=\"#r{number}\">{}</a></td><td>{}</td><td>{}</td><td class=n>{}</td><td class=n>{}</td>\
             <td class=n>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td></tr>",
            Esc(&own.name()),
            Esc(own.database.as_deref().unwrap_or("")),
            Esc(kind),
            bytes(own.bytes),
            own.count(section, "tuple_count")
                .map_or_else(String::new, count),
            share("tuple_percent"),
            share("dead_tuple_percent"),
            share("free_percent"),
            share("avg_leaf_density"),
            share("leaf_fragmentation"),
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

fn whole(number: usize, own: &MeasuredRelation, out: &mut dyn io::Write) -> io::Result<()> {
    let open = if number < 3 { " open" } else { "" };
    writeln!(
        out,
        "<details id=r{number} class=item{open}><summary><strong>{}</strong> <span class=q>{}, {}</span></summary>",
        Esc(&own.name()),
        bytes(own.bytes),
        plural(own.blocks, "page")
    )?;
    ledger(own, out)?;
    out.write_all(b"<div class=wide><table>\n<tbody>\n")?;
    for measure in MEASURES {
        for kind in measure.figures() {
            let Some(figure) = own.figure(measure.section(), kind.name) else {
                continue;
            };
            let words = match (figure, kind.unit) {
                (Figure::Count(number), Unit::Bytes) if *number >= 1024 => {
                    format!("{} ({})", count(*number), bytes(*number))
                }
                (Figure::Count(number), _) => count(*number),
                (Figure::Real(number), _) => format!("{number:.2}"),
                (Figure::Spread(spread), _) => format!(
                    "{} to {}, mean {:.2}",
                    spread.minimum, spread.maximum, spread.mean
                ),
            };
            writeln!(
                out,
                "<tr><td><code>{}</code></td><td class=n>{}</td><td>{}</td></tr>",
                Esc(kind.name),
                words,
                Esc(kind.summary)
            )?;
        }
    }
    out.write_all(b"</tbody></table></div>\n")?;
    for measure in MEASURES {
        for kind in measure.figures() {
            if let Some(Figure::Spread(spread)) = own.figure(measure.section(), kind.name) {
                picture(kind.summary, spread, out)?;
            }
        }
    }
    out.write_all(b"</details>\n")
}

/// Where the bytes of a table go, as one bar.
fn ledger(own: &MeasuredRelation, out: &mut dyn io::Write) -> io::Result<()> {
    const PARTS: [(&str, &str, &str); 6] = [
        ("live_bytes", "l", "live rows"),
        ("dead_bytes", "d", "dead row versions"),
        ("line_pointer_bytes", "h", "line pointers"),
        ("header_bytes", "h", "page headers"),
        ("padding_bytes", "s", "padding"),
        ("hole_bytes", "f", "free"),
    ];
    let total = own.bytes.max(1);
    if own.count("table", "live_bytes").is_none() || own.bytes == 0 {
        return Ok(());
    }
    out.write_all(b"<svg class=\"strip ledger\" viewBox=\"0 0 1000 24\" preserveAspectRatio=none role=img aria-label=\"where the bytes go\">")?;
    let mut left = 0.0;
    for (name, class, words) in PARTS {
        let part = own.count("table", name).unwrap_or(0);
        let width = part as f64 * 1000.0 / total as f64;
        write!(
            out,
            "<rect class={class} x={left:.1} y=0 width={width:.1} height=24><title>{words}: {}, {} %</title></rect>",
            bytes(part),
            words::percent(part, total)
        )?;
        left += width;
    }
    out.write_all(b"</svg>\n<p class=q>")?;
    let named = PARTS.iter().map(|(name, _, words)| {
        let part = own.count("table", name).unwrap_or(0);
        format!("{words} {} %", words::percent(part, total))
    });
    out.write_all(Vec::from_iter(named).join(" \u{b7} ").as_bytes())?;
    out.write_all(b"</p>\n")
}

/// A histogram: one bar a value, or a range of values.
fn picture(summary: &str, spread: &Spread, out: &mut dyn io::Write) -> io::Result<()> {
    let values = spread
        .maximum
        .saturating_sub(spread.minimum)
        .saturating_add(1);
    let per_bar = values.div_ceil(BARS_MAX).max(1);
    let bars = values.div_ceil(per_bar);
    let mut heights = vec![0u64; usize::try_from(bars).unwrap_or(1)];
    for [value, often] in &spread.histogram {
        let bar = usize::try_from((value - spread.minimum) / per_bar).unwrap_or(0);
        if let Some(height) = heights.get_mut(bar) {
            *height += often;
        }
    }
    let most = heights.iter().copied().max().unwrap_or(1).max(1) as f64;
    let width = 1000.0 / heights.len().max(1) as f64;
    write!(
        out,
        "<figure><figcaption class=q>{}</figcaption><svg class=\"strip bars\" viewBox=\"0 0 1000 80\" preserveAspectRatio=none role=img aria-label=\"{}\">",
        Esc(summary),
        Esc(summary)
    )?;
    for (bar, often) in heights.iter().enumerate().filter(|(_, often)| **often > 0) {
        let first = spread.minimum + bar as u64 * per_bar;
        let height = (*often as f64 / most * 78.0).max(1.0);
        write!(
            out,
            "<rect class=l x={:.1} y={:.1} width={:.1} height={height:.1}><title>{}: {}</title></rect>",
            bar as f64 * width,
            80.0 - height,
            (width - 0.6).max(0.6),
            match per_bar {
                1 => first.to_string(),
                _ => format!("{first}-{}", first + per_bar - 1),
            },
            count(*often)
        )?;
    }
    writeln!(
        out,
        "</svg><p class=\"q ends\"><span>{}</span><span>{}</span></p></figure>",
        count(spread.minimum),
        count(spread.maximum)
    )
}
