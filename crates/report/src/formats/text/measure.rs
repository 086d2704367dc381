//! The figures of a cluster's relations as text: the largest in two tables, a few in whole.

use std::io;

use pgclinic_model::document::{Figure, Growth, MeasureDocument, MeasuredRelation, Sections};
use pgclinic_model::{FigureKind, FigureKinds, FigureList};

use super::drill::table;
use super::sheet::{Ink, Sheet};
use crate::figure_words::{interval, time, value};
use crate::measured::figure as short;
use crate::words::{self, bytes, clean, count, count_of, plural};

/// Relations of a kind that are listed.
const LISTED_MAX: usize = 25;
/// So many relations or fewer are told in whole.
const WHOLE_MAX: usize = 8;
/// Hints, limits and relations that grow are listed up to this number.
const NOTED_MAX: usize = 10;

pub(super) fn render(
    document: &MeasureDocument,
    kinds: &FigureKinds,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    headline(document, sheet)?;
    sheet.text(2, &clean(&words::target(&document.target)))?;
    for note in &document.notes {
        sheet.text(2, &clean(note))?;
    }
    for entry in &document.coverage.not_checked {
        let words = format!("not measured: {}: {}", entry.what, entry.why);
        sheet.text(2, &clean(&words))?;
    }
    if let Some(percent) = document.sample_percent {
        let words = format!(
            "a sample of {} %: figures of large relations are estimates, in brackets where they lie with a confidence of 95 %",
            short(percent)
        );
        sheet.text(2, &words)?;
    }
    if document.relations.len() <= WHOLE_MAX {
        for relation in &document.relations {
            whole(relation, kinds, sheet)?;
        }
    } else {
        tables(document, sheet)?;
        btrees(document, sheet)?;
        others(document, sheet)?;
        long_values(document, sheet)?;
        databases(document, &kinds.of_databases, sheet)?;
    }
    hints(document, sheet)?;
    document
        .growth
        .iter()
        .try_for_each(|growth| growing(growth, sheet))
}

fn headline(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let total = |name: &str| {
        let counts = document
            .relations
            .iter()
            .filter_map(|own| own.count("table", name));
        counts.sum::<u64>()
    };
    let (length, dead, free) = (
        total("table_len"),
        total("dead_tuple_len"),
        total("free_space"),
    );
    let word = match document.interrupted {
        true => sheet.ink(Ink::Warn, "INTERRUPTED"),
        false => sheet.ink(Ink::Good, "MEASURED"),
    };
    let coverage = &document.coverage;
    let size = bytes(coverage.bytes_seen);
    let relations = plural(coverage.relations, "relation");
    let time = words::seconds(document.elapsed_s);
    let beside = words::beside(&document.target);
    let mut line = format!("{word}{beside}  {relations}, {size} in {time}");
    if length > 0 {
        let (dead, free) = (words::percent(dead, length), words::percent(free, length));
        line += &format!("; tables are {dead} % dead rows and {free} % free space");
    }
    sheet.text(0, &line)
}

/// The largest relations that a test picks, and how many more there are. What is under a thousandth
/// of the largest is left out.
fn largest(
    document: &MeasureDocument,
    picked: impl Fn(&MeasuredRelation) -> bool,
) -> (Vec<&MeasuredRelation>, usize) {
    let mut all: Vec<_> = document
        .relations
        .iter()
        .filter(|own| picked(own) && own.bytes > 0)
        .collect();
    all.sort_by_key(|own| std::cmp::Reverse(own.bytes));
    let least = all.first().map_or(0, |own| own.bytes / 1000);
    let worth = all.partition_point(|own| own.bytes >= least);
    let listed = worth.min(LISTED_MAX);
    let more = all.len().saturating_sub(listed);
    all.truncate(listed);
    (all, more)
}

fn tables(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let (listed, more) = largest(document, |own| own.sections.contains_key("table"));
    let header = ["table", "size", "rows", "dead %", "free %", "rewrite frees"];
    let rows = listed.iter().map(|own| {
        let frees = own.count("table", "rewrite_gives_back_bytes");
        vec![
            title(own),
            bytes(own.bytes),
            number(own, "table", "tuple_count"),
            share(own, "table", "dead_tuple_percent"),
            share(own, "table", "free_percent"),
            frees.map_or_else(unknown, bytes),
        ]
    });
    section(&header, rows.collect(), more, sheet)
}

fn btrees(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let (listed, more) = largest(document, is_btree);
    let header = [
        "btree",
        "size",
        "rows",
        "density %",
        "fragments %",
        "a leaf",
    ];
    let rows = listed.iter().map(|own| {
        let items = match own.figure("index", "items_per_leaf") {
            Some(Figure::Spread(spread)) => format!("{:.2}", spread.mean),
            _ => unknown(),
        };
        vec![
            title(own),
            bytes(own.bytes),
            number(own, "index", "row_count"),
            share(own, "index", "avg_leaf_density"),
            share(own, "index", "leaf_fragmentation"),
            items,
        ]
    });
    section(&header, rows.collect(), more, sheet)
}

fn is_btree(own: &MeasuredRelation) -> bool {
    own.access_method.as_deref() == Some("btree")
}

fn others(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let (listed, more) = largest(document, |own| {
        !own.sections.contains_key("table") && !is_btree(own)
    });
    let header = ["other relation", "kind", "size", "items", "free %"];
    let rows = listed.iter().map(|own| {
        vec![
            title(own),
            own.access_method.clone().unwrap_or_else(unknown),
            bytes(own.bytes),
            number(own, "index", "tuple_count"),
            share(own, "index", "free_percent"),
        ]
    });
    section(&header, rows.collect(), more, sheet)
}

fn number(own: &MeasuredRelation, section: &str, name: &str) -> String {
    own.count(section, name).map_or_else(unknown, count)
}

fn section(
    header: &[&str],
    rows: Vec<Vec<String>>,
    more: usize,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    table(header, &[], rows, sheet)?;
    if more > 0 {
        let words = format!(
            "and {} smaller ones; --relation NAME shows all figures of one, --format json those of all",
            count(count_of(more))
        );
        sheet.text(2, &words)?;
    }
    Ok(())
}

fn title(own: &MeasuredRelation) -> String {
    titled(own, &own.name())
}

fn titled(own: &MeasuredRelation, name: &str) -> String {
    clean(&match &own.database {
        Some(database) => format!("{name} in {database}"),
        None => name.to_owned(),
    })
}

fn share(own: &MeasuredRelation, section: &str, name: &str) -> String {
    own.real(section, name)
        .map_or_else(unknown, |share| format!("{share:.1}"))
}

fn unknown() -> String {
    "-".into()
}

/// Every figure of one relation.
fn whole(own: &MeasuredRelation, kinds: &FigureKinds, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let title = sheet.ink(Ink::Strong, &title(own));
    sheet.text(
        0,
        &format!(
            "{title}  {}, {}",
            bytes(own.bytes),
            plural(own.blocks, "page")
        ),
    )?;
    for (section, kind) in &kinds.of_relations {
        if let Some(figure) = own.figure(section, kind.name) {
            let range = interval(own, section, kind);
            figure_line(kind, figure, &range, sheet)?;
        }
    }
    for column in &own.columns {
        let name = format!("column {} ({})", column.name, column.type_name);
        let name = sheet.ink(Ink::Strong, &clean(&name));
        sheet.text(2, &name)?;
        figures(kinds.of_columns.iter(), &column.sections, sheet)?;
    }
    Ok(())
}

/// What a section says of one thing; figures of nothing at all are left out.
fn figures<'a>(
    kinds: impl Iterator<Item = &'a (&'static str, &'static FigureKind)>,
    sections: &Sections,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    for (section, kind) in kinds {
        let figure = sections
            .get(*section)
            .and_then(|own| own.get(kind.name)?.as_ref());
        match figure {
            None | Some(Figure::Count(0)) => {}
            Some(figure) => figure_line(kind, figure, "", sheet)?,
        }
    }
    Ok(())
}

fn figure_line(
    kind: &FigureKind,
    figure: &Figure,
    range: &str,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let words = format!("{}{range}  {}", clean(&value(kind, figure)), kind.summary);
    sheet.entry(2, kind.name, 28, &words)
}

/// How the long values of columns are kept, the largest first.
fn long_values(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    let count_of = |own: &Sections, name: &str| match own.get("toast").and_then(|own| own.get(name))
    {
        Some(Some(Figure::Count(number))) => *number,
        _ => 0,
    };
    let mut columns: Vec<_> = document
        .relations
        .iter()
        .flat_map(|own| own.columns.iter().map(move |column| (own, column)))
        .filter(|(_, column)| {
            let long = [
                "pglz_values",
                "lz4_values",
                "external_values",
                "external_pglz_values",
                "external_lz4_values",
            ];
            long.iter().any(|name| count_of(&column.sections, name) > 0)
        })
        .collect();
    columns
        .sort_by_key(|(_, column)| std::cmp::Reverse(count_of(&column.sections, "stored_bytes")));
    let more = columns.len().saturating_sub(NOTED_MAX);
    let header = [
        "long values of",
        "stored",
        "unpacked",
        "as they are",
        "pglz",
        "lz4",
        "outside",
        "old",
    ];
    let rows = columns.iter().take(NOTED_MAX).map(|(own, column)| {
        let sum = |names: &[&str]| {
            names
                .iter()
                .map(|name| count_of(&column.sections, name))
                .sum::<u64>()
        };
        vec![
            titled(own, &format!("{}.{}", own.name(), column.name)),
            bytes(sum(&["stored_bytes"])),
            bytes(sum(&["raw_bytes"])),
            count(sum(&["plain_values", "external_values"])),
            count(sum(&["pglz_values", "external_pglz_values"])),
            count(sum(&["lz4_values", "external_lz4_values"])),
            count(sum(&[
                "external_values",
                "external_pglz_values",
                "external_lz4_values",
            ])),
            count(sum(&["old_method_values"])),
        ]
    });
    section(&header, rows.collect(), more, sheet)
}

/// Large objects, where there are any.
fn databases(
    document: &MeasureDocument,
    kinds: &FigureList,
    sheet: &mut Sheet<'_>,
) -> io::Result<()> {
    let with_objects = document
        .databases
        .iter()
        .filter(|own| own.sections.contains_key("large_objects"));
    for own in with_objects {
        sheet.gap()?;
        let name = format!("large objects of {}", clean(&own.database));
        let name = sheet.ink(Ink::Strong, &name);
        sheet.text(0, &name)?;
        let kinds = kinds
            .iter()
            .filter(|(section, _)| *section == "large_objects");
        figures(kinds, &own.sections, sheet)?;
    }
    Ok(())
}

fn hints(document: &MeasureDocument, sheet: &mut Sheet<'_>) -> io::Result<()> {
    if document.hints.is_empty() {
        return Ok(());
    }
    sheet.gap()?;
    for hint in document.hints.iter().take(NOTED_MAX) {
        let words = format!(
            "{} {} in {}, {}: {}",
            hint.hint,
            hint.relation,
            hint.database,
            bytes(hint.bytes),
            hint.message
        );
        sheet.text(0, &clean(&words))?;
    }
    let more = document.hints.len().saturating_sub(NOTED_MAX);
    if more > 0 {
        sheet.text(0, &format!("and {}", plural(count_of(more), "more hint")))?;
    }
    Ok(())
}

fn growing(growth: &Growth, sheet: &mut Sheet<'_>) -> io::Result<()> {
    sheet.gap()?;
    let hours = growth.seconds as f64 / 3600.0;
    let line = format!(
        "in {} hours, a day: {} bytes of relations, {} dead rows, {} transactions, {} bytes of WAL",
        short(hours),
        short(growth.bytes_per_day.round()),
        short(growth.dead_rows_per_day.round()),
        short(growth.xids_per_day.round()),
        short(growth.wal_bytes_per_day.round())
    );
    sheet.text(0, &line)?;
    for limit in growth.limits.iter().take(NOTED_MAX) {
        let words = format!(
            "{}: {} {}, and the limit of {} is reached on {} if all goes on like this",
            limit.what,
            count(limit.now),
            limit.of,
            count(limit.limit),
            time(limit.reached)
        );
        sheet.text(2, &clean(&words))?;
    }
    let rows = growth.relations.iter().take(NOTED_MAX).map(|own| {
        let dead = own
            .dead_rows_per_day
            .map_or_else(unknown, |dead| short(dead.round()));
        vec![
            clean(&own.relation),
            bytes(own.bytes),
            short(own.bytes_per_day.round()),
            dead,
        ]
    });
    let more = growth.relations.len().saturating_sub(NOTED_MAX);
    section(
        &["grows", "size", "bytes a day", "dead rows a day"],
        rows.collect(),
        more,
        sheet,
    )
}
