//! The figures of a cluster's relations as a page: a table of all, and of each its pictures.

use std::io;

use pgclinic_format::types::FIRST_NORMAL_OID;
use pgclinic_model::document::{Figure, MeasureDocument, MeasuredRelation, Sections, Spread};
use pgclinic_model::{FigureKind, FigureKinds, FigureList, Unit};

use super::escape::Esc;
use super::{details, shell};
use crate::figure_words::{date, interval, time, value};
use crate::measured::figure as short;
use crate::words::{self, bytes, count, plural};

/// Relations that get figures and pictures of their own.
const WHOLE_MAX: usize = 200;
/// Bars of a picture: more values than these share bars.
const BARS_MAX: u64 = 101;

pub(super) fn render(
    document: &MeasureDocument,
    kinds: &FigureKinds,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    shell::open("Measurements", out)?;
    shell::kicker("pgclinic measure", &document.target, out)?;
    let word = if document.interrupted {
        "INTERRUPTED"
    } else {
        "MEASURED"
    };
    writeln!(
        out,
        "<section class=\"banner good\">\n<h1>{word}{}</h1>\n<p class=extent>{}, {} in {}</p>\n</section>",
        words::beside(&document.target),
        plural(document.coverage.relations, "relation"),
        bytes(document.coverage.bytes_seen),
        words::seconds(document.elapsed_s)
    )?;
    shell::facts(&shell::target_facts(&document.target), out)?;
    for note in &document.notes {
        writeln!(out, "<p>{}</p>", Esc(note))?;
    }
    details::not_checked(&document.coverage.not_checked, out)?;
    let mut relations: Vec<_> = document.relations.iter().collect();
    relations.sort_by_key(|own| std::cmp::Reverse(own.bytes));
    sample(document, out)?;
    hints(document, out)?;
    growth(document, out)?;
    overview(&relations, out)?;
    databases(document, &kinds.of_databases, out)?;
    out.write_all(b"<section>\n<h2>Relation by relation</h2>\n")?;
    let with_figures = relations
        .iter()
        .enumerate()
        .filter(|(_, own)| !own.sections.is_empty());
    for (number, own) in with_figures.take(WHOLE_MAX) {
        whole(number, own, kinds, out)?;
    }
    out.write_all(b"</section>\n")?;
    shell::close(&document.tool, out)
}

/// The relations of people, and folded below them those of the server itself.
fn overview(relations: &[&MeasuredRelation], out: &mut dyn io::Write) -> io::Result<()> {
    let numbered = || relations.iter().copied().enumerate();
    let (own, servers): (Vec<_>, Vec<_>) = numbered().partition(|(_, own)| !is_servers(own));
    out.write_all(
        b"<section>\n<h2>Relations, the largest first</h2>\n\
          <div class=tools data-filter=\".board tbody tr\" data-marks=\"all table index\"></div>\n",
    )?;
    if !own.is_empty() {
        board(&own, out)?;
    }
    if !servers.is_empty() {
        let open = if own.is_empty() { " open" } else { "" };
        let words = plural(words::count_of(servers.len()), "relation");
        writeln!(
            out,
            "<details class=folded{open}><summary>{words} of the server itself</summary>"
        )?;
        board(&servers, out)?;
        out.write_all(b"</details>\n")?;
    }
    out.write_all(b"</section>\n")
}

fn is_servers(own: &MeasuredRelation) -> bool {
    own.relation_oid.is_some_and(|oid| oid < FIRST_NORMAL_OID)
}

fn board(relations: &[(usize, &MeasuredRelation)], out: &mut dyn io::Write) -> io::Result<()> {
    out.write_all(b"<div class=wide><table class=\"board cards\">\n<thead><tr>")?;
    for (name, class) in COLUMNS {
        write!(out, "<th{class}>{name}</th>")?;
    }
    out.write_all(b"</tr></thead>\n<tbody>\n")?;
    for (number, own) in relations {
        let section = section_of(own);
        write!(out, "<tr data-mark={section}>")?;
        for ((name, class), cell) in COLUMNS.iter().zip(cells(*number, own, section)) {
            write!(out, "<td{class} data-name=\"{name}\">{cell}</td>")?;
        }
        out.write_all(b"</tr>\n")?;
    }
    out.write_all(b"</tbody></table></div>\n")
}

/// Columns of the table of all, and how they are set.
const COLUMNS: [(&str, &str); 10] = [
    ("Relation", ""),
    ("Database", ""),
    ("Kind", ""),
    ("Size", " class=n"),
    ("Rows", " class=n"),
    ("Live %", " class=n"),
    ("Dead %", " class=n"),
    ("Free %", " class=n"),
    ("Density %", " class=n"),
    ("Fragments %", " class=n"),
];

fn section_of(own: &MeasuredRelation) -> &'static str {
    match own.sections.contains_key("table") {
        true => "table",
        false => "index",
    }
}

fn cells(number: usize, own: &MeasuredRelation, section: &str) -> [String; 10] {
    let share = |name: &str| {
        let share = own.real(section, name);
        share.map_or_else(String::new, |share| format!("{share:.1}"))
    };
    let rows = own.count(section, "tuple_count");
    [
        format!("<a href=\"#r{number}\">{}</a>", Esc(&own.name())),
        Esc(own.database.as_deref().unwrap_or("")).to_string(),
        Esc(own.access_method.as_deref().unwrap_or("")).to_string(),
        bytes(own.bytes),
        rows.map_or_else(String::new, count),
        share("tuple_percent"),
        share("dead_tuple_percent"),
        share("free_percent"),
        share("avg_leaf_density"),
        share("leaf_fragmentation"),
    ]
}

fn whole(
    number: usize,
    own: &MeasuredRelation,
    kinds: &FigureKinds,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let open = if number < 3 { " open" } else { "" };
    writeln!(
        out,
        "<details id=r{number} class=item{open}><summary><strong>{}</strong> <span class=q>{}, {}</span></summary>",
        Esc(&own.name()),
        bytes(own.bytes),
        plural(own.blocks, "page")
    )?;
    ledger(own, out)?;
    let range = |section: &str, kind: &FigureKind| interval(own, section, kind);
    figures(&kinds.of_relations, &own.sections, &range, out)?;
    for column in &own.columns {
        writeln!(
            out,
            "<h3>{} <span class=q>{}</span></h3>",
            Esc(&column.name),
            Esc(&column.type_name)
        )?;
        make_up(&column.sections, out)?;
        figures(
            &kinds.of_columns,
            &column.sections,
            &|_, _| String::new(),
            out,
        )?;
    }
    out.write_all(b"</details>\n")
}

/// A table of figures, then their pictures.
fn figures(
    kinds: &FigureList,
    sections: &Sections,
    range: &dyn Fn(&str, &FigureKind) -> String,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let there = |(section, kind): &(&'static str, &'static FigureKind)| {
        let figure = sections.get(*section)?.get(kind.name)?.as_ref()?;
        Some((*section, *kind, figure))
    };
    let there: Vec<_> = kinds.iter().filter_map(there).collect();
    out.write_all(b"<div class=wide><table class=figures>\n<tbody>\n")?;
    for (section, kind, figure) in &there {
        if matches!(figure, Figure::Points(_)) {
            continue;
        }
        writeln!(
            out,
            "<tr><td><code>{}</code></td><td class=n>{}{}</td><td>{}</td></tr>",
            Esc(kind.name),
            Esc(value(kind, figure)),
            range(section, kind),
            Esc(kind.summary)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n")?;
    for (_, kind, figure) in &there {
        match figure {
            Figure::Spread(spread) => picture(kind, spread, out)?,
            Figure::Points(points) => scatter(kind.summary, points, out)?,
            _ => {}
        }
    }
    Ok(())
}

/// How the values of a column are kept, as one bar.
fn make_up(sections: &Sections, out: &mut dyn io::Write) -> io::Result<()> {
    const PARTS: [(&str, &str, &str); 6] = [
        ("plain_bytes", "l", "in the row as they are"),
        ("pglz_bytes", "h", "in the row, pglz"),
        ("lz4_bytes", "t", "in the row, lz4"),
        ("external_bytes", "f", "outside as they are"),
        ("external_pglz_bytes", "s", "outside, pglz"),
        ("external_lz4_bytes", "d", "outside, lz4"),
    ];
    let count = |name: &str| match sections.get("toast").and_then(|own| own.get(name)) {
        Some(Some(Figure::Count(number))) => *number,
        _ => 0,
    };
    bar(
        "how its bytes are kept",
        count("stored_bytes"),
        &PARTS.map(|(name, class, words)| (count(name), class, words)),
        out,
    )
}

/// Parts of a whole side by side, and named below.
fn bar(
    label: &str,
    total: u64,
    parts: &[(u64, &str, &str)],
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if total == 0 {
        return Ok(());
    }
    write!(
        out,
        "<svg class=\"strip ledger\" viewBox=\"0 0 1000 24\" preserveAspectRatio=none role=img aria-label=\"{label}\">"
    )?;
    let mut left = 0.0;
    for (part, class, words) in parts {
        let width = *part as f64 * 1000.0 / total as f64;
        write!(
            out,
            "<rect class={class} x={left:.1} y=0 width={width:.1} height=24><title>{words}: {}, {} %</title></rect>",
            bytes(*part),
            words::percent(*part, total)
        )?;
        left += width;
    }
    let named = parts
        .iter()
        .filter(|(part, _, _)| *part > 0)
        .map(|(part, _, words)| format!("{words} {} %", words::percent(*part, total)));
    writeln!(
        out,
        "</svg>\n<p class=q>{}</p>",
        Vec::from_iter(named).join(" \u{b7} ")
    )
}

/// Points of two numbers: the first to the right, the second upwards.
fn scatter(summary: &str, points: &[[u64; 2]], out: &mut dyn io::Write) -> io::Result<()> {
    let most = |at: usize| points.iter().map(|point| point[at]).max().unwrap_or(0);
    let (right, top) = (most(0), most(1));
    write!(
        out,
        "<figure class=\"strip\"><figcaption class=q>{}</figcaption><svg class=scatter viewBox=\"0 0 1000 400\" preserveAspectRatio=none role=img aria-label=\"{}\">",
        Esc(summary),
        Esc(summary)
    )?;
    for [x, y] in points {
        let x = *x as f64 / right.max(1) as f64 * 994.0;
        let y = 394.0 - *y as f64 / top.max(1) as f64 * 394.0;
        write!(out, "<rect class=l x={x:.0} y={y:.0} width=6 height=6 />")?;
    }
    writeln!(
        out,
        "</svg><p class=\"q ends\"><span>rank 0 to {}</span><span>page 0 to {}</span></p></figure>",
        count(right),
        count(top)
    )
}

fn sample(document: &MeasureDocument, out: &mut dyn io::Write) -> io::Result<()> {
    match document.sample_percent {
        None => Ok(()),
        Some(percent) => writeln!(
            out,
            "<p>A sample of {} %: figures of large relations are estimates; in brackets is where they lie with a confidence of 95 %.</p>",
            short(percent)
        ),
    }
}

fn hints(document: &MeasureDocument, out: &mut dyn io::Write) -> io::Result<()> {
    if document.hints.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section>\n<h2>Indexes that could go</h2>\n<div class=wide><table>\n<thead><tr><th>Index</th><th>Database</th><th class=n>Size</th><th>Why</th></tr></thead>\n<tbody>\n")?;
    for hint in &document.hints {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=n>{}</td><td>{}</td></tr>",
            Esc(&hint.relation),
            Esc(&hint.database),
            bytes(hint.bytes),
            Esc(&hint.message)
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

fn growth(document: &MeasureDocument, out: &mut dyn io::Write) -> io::Result<()> {
    let Some(growth) = &document.growth else {
        return Ok(());
    };
    writeln!(
        out,
        "<section>\n<h2>Growth</h2>\n<p>In {} hours, a day: {} bytes of relations, {} dead rows, {} transactions, {} bytes of WAL.</p>",
        short(growth.seconds as f64 / 3600.0),
        short(growth.bytes_per_day.round()),
        short(growth.dead_rows_per_day.round()),
        short(growth.xids_per_day.round()),
        short(growth.wal_bytes_per_day.round())
    )?;
    for limit in &growth.limits {
        writeln!(
            out,
            "<p>{}: {} {}, and the limit of {} is reached on {} if all goes on like this.</p>",
            Esc(&limit.what),
            count(limit.now),
            Esc(&limit.of),
            count(limit.limit),
            time(limit.reached)
        )?;
    }
    out.write_all(b"<div class=wide><table>\n<thead><tr><th>Relation</th><th class=n>Size</th><th class=n>Bytes a day</th><th class=n>Dead rows a day</th></tr></thead>\n<tbody>\n")?;
    for own in &growth.relations {
        let dead = own.dead_rows_per_day.map(|dead| short(dead.round()));
        writeln!(
            out,
            "<tr><td>{}</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td></tr>",
            Esc(&own.relation),
            bytes(own.bytes),
            short(own.bytes_per_day.round()),
            dead.unwrap_or_default()
        )?;
    }
    out.write_all(b"</tbody></table></div>\n</section>\n")
}

fn databases(
    document: &MeasureDocument,
    kinds: &FigureList,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    if document.databases.is_empty() {
        return Ok(());
    }
    out.write_all(b"<section>\n<h2>Databases</h2>\n")?;
    for own in &document.databases {
        writeln!(
            out,
            "<details class=item><summary><strong>{}</strong></summary>",
            Esc(&own.database)
        )?;
        figures(kinds, &own.sections, &|_, _| String::new(), out)?;
        out.write_all(b"</details>\n")?;
    }
    out.write_all(b"</section>\n")
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
    if own.count("table", "live_bytes").is_none() {
        return Ok(());
    }
    let parts =
        PARTS.map(|(name, class, words)| (own.count("table", name).unwrap_or(0), class, words));
    bar("where the bytes go", own.bytes, &parts, out)
}

/// A histogram: one bar a value, or a range of values.
fn picture(kind: &FigureKind, spread: &Spread, out: &mut dyn io::Write) -> io::Result<()> {
    let summary = kind.summary;
    let named = |value: u64| match kind.unit {
        Unit::Day => date(i64::try_from(value).unwrap_or(i64::MAX)),
        _ => count(value),
    };
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
                1 => named(first),
                _ => format!("{} to {}", named(first), named(first + per_bar - 1)),
            },
            count(*often)
        )?;
    }
    writeln!(
        out,
        "</svg><p class=\"q ends\"><span>{}</span><span>{}</span></p></figure>",
        named(spread.minimum),
        named(spread.maximum)
    )
}
